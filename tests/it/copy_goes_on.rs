//! `bc copy` of a large file, killed in the middle: the same command writes only what is missing,
//! whatever digest it takes.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::copy_kill_points::{MANIFEST, litter};
use crate::strace;

/// Bytes that one call writes.
const PART: usize = 512 << 10;

fn tree() -> TestTree {
    let t = TestTree::new();
    let content: Vec<u8> = (0..65 << 20)
        .map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    // Times of long ago prove what they say.
    t.write("r/large", content).mtime("r/large", 5, 1);
    t
}

#[test]
fn killed_in_a_large_file_only_the_rest_is_written() {
    if !strace::is_able() {
        return;
    }
    for algorithm in ["sha256", "xxh128", "none"] {
        let t = tree();
        // Of all the calls of the program nearly all write a part of the file.
        let line = format!("copy --algorithm={algorithm} --sparse=always --reflink=never r to");
        let status = strace::injected(&t, "pwrite64", "signal=KILL", 100, &line).status;
        assert_eq!(status.signal(), Some(9), "{algorithm}");
        assert!(!t.exists("to/large"), "{algorithm}");
        let second = strace::counted(&t, &["pwrite64"], &line);
        let parts = t.join("r/large").metadata().unwrap().len() as usize / PART;
        let written = second["pwrite64"];
        assert!((10..parts / 2).contains(&written), "{algorithm}: {written} of {parts}");
        assert!(t.read("to/large") == t.read("r/large"), "{algorithm}");
        assert!(litter(&t).is_empty(), "{algorithm}: {:?}", litter(&t));
        if algorithm != "none" {
            let verify = format!("integrity verify to to/{MANIFEST}");
            t.bc_line(&verify).go().code(0);
        }
    }
}
