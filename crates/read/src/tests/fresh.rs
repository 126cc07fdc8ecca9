//! Files that are written to while they are read: what is finished is one state of them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use bc_pool::Cancel;
use bc_testkit::{TestTree, as_nobody, is_root, left_out};
use bc_walk::{ErrorKind, Metadata};

use super::{CLOCK_AHEAD_NS, NO_LEASE, Recorder, age, bytes, each_backend, list, options, read_all};
use crate::{Changed, Choice, Options, Want};

/// Runs `test` with leases, if the system has them, and without.
fn each_lease(mut test: impl FnMut()) {
    CLOCK_AHEAD_NS.set(0);
    test();
    NO_LEASE.set(true);
    test();
    NO_LEASE.set(false);
}

/// Overwrites the whole file in place again and again, with one byte each time, while `f` runs.
/// Each time through a descriptor of its own, or all times through one.
fn while_rewritten(path: &Path, len: usize, reopen: bool, f: impl FnOnce(&AtomicU64)) {
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let patterns = [vec![b'A'; len], vec![b'B'; len], vec![b'C'; len]];
            let open = || OpenOptions::new().write(true).open(path).unwrap();
            let mut file = open();
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
                for pattern in &patterns {
                    file.write_all_at(pattern, 0).unwrap();
                    rounds.fetch_add(1, Relaxed);
                    if reopen {
                        drop(file);
                        file = open();
                    }
                }
            }
        });
        f(&rounds);
        stop.store(true, Relaxed);
    });
}

fn is_one_state(content: &[u8]) -> bool {
    content.iter().all(|byte| *byte == content[0])
}

#[test]
fn what_is_read_is_one_state() {
    for (len, times) in [(60_000, 60), (1 << 20, 20), (20 << 20, 2)] {
        for reopen in [true, false] {
            let tree = TestTree::new();
            tree.write("f", vec![b'A'; len]);
            let path = tree.join("f");
            let listing = list(std::slice::from_ref(&path), Metadata::Basic);
            while_rewritten(&path, len, reopen, |_| {
                each_lease(|| {
                    each_backend(|backend| {
                        for _ in 0..times {
                            let mut recorder = Recorder::new(1 + times % 3);
                            read_all(&listing, &options(backend), &mut recorder);
                            match recorder.done.values().next().unwrap() {
                                Ok((_, content)) => {
                                    assert_eq!(content.len(), len);
                                    assert!(is_one_state(content), "{len} {backend:?}");
                                }
                                Err(error) => assert_eq!(error.kind(), ErrorKind::Changed),
                            }
                        }
                    });
                });
            });
        }
    }
}
