//! The tree that the benches of walk, read, search and manifest work on, and how criterion times
//! them: few samples, as each is milliseconds of system calls.
#![allow(
    dead_code,
    reason = "each bench is a program of its own and uses a part"
)]

use std::ffi::OsString;
use std::time::Duration;

use criterion::Criterion;
use tempfile::TempDir;

/// Files in the tree; sizes and duplicates are those of a source tree.
pub(crate) const FILES: usize = 2_000;

/// Lays the tree; it goes with the value.
pub(crate) fn tree() -> TempDir {
    let tree = tempfile::tempdir().expect("a temporary directory");
    let synth = bc_testkit::Synth {
        seed: 1,
        files: FILES,
        bytes: FILES as u64 * (16 << 10),
        ..bc_testkit::Synth::default()
    };
    synth.build(tree.path()).expect("the tree");
    tree
}

/// The tree as the only root.
pub(crate) fn roots(tree: &TempDir) -> [OsString; 1] {
    [tree.path().as_os_str().to_owned()]
}

/// Both ends of what a run may use.
pub(crate) fn threads() -> Vec<usize> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    if all == 1 { vec![1] } else { vec![1, all] }
}

pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2))
}
