//! `bc copy` where one system call fails: nothing half done, nothing lost, every failure told, and
//! the same command completes the copy afterwards.

use std::collections::BTreeSet;

use crate::common::Bc;
use crate::copy_kill_points::{complete, is_over, litter, nothing_is_half_done, tree};
use crate::strace;

const FAULTS: [(&str, &[&str]); 19] = [
    ("openat", &["EMFILE", "EACCES", "EIO", "ENOSPC", "EROFS"]),
    ("openat2", &["EIO", "EACCES", "EINTR", "ENOSYS"]),
    ("renameat2", &["EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR"]),
    ("linkat", &["EIO", "EMLINK", "EPERM"]),
    ("symlinkat", &["EIO", "ENOSPC", "EPERM"]),
    ("mkdirat", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("mknodat", &["EIO", "EPERM"]),
    ("pwrite64", &["ENOSPC", "EIO", "EDQUOT", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("fchmod", &["EPERM", "EINTR"]),
    ("fchown", &["EPERM", "EINTR"]),
    ("utimensat", &["EPERM", "EINTR"]),
    ("statx", &["EIO", "EACCES"]),
    ("newfstatat", &["EIO", "EACCES"]),
    ("fstat", &["EIO"]),
    ("flistxattr", &["EIO", "ENOTSUP"]),
    ("getdents64", &["EIO"]),
];

#[test]
fn every_fault_is_told_and_the_next_run_completes_the_copy() {
    if !strace::is_able() {
        return;
    }
    let line = "copy r to";
    let calls = FAULTS.map(|(call, _)| call);
    let counts = strace::counted(&tree(), &calls, line);
    let mut runs = 0;
    for (call, errors) in FAULTS {
        let Some(count) = counts.get(call) else {
            continue;
        };
        // Of the calls before the program begins its loader makes some.
        let at = BTreeSet::from([count / 2, count * 3 / 4, *count]);
        for (turn, n) in at.into_iter().filter(|n| *n > 0).enumerate() {
            let error = errors[turn % errors.len()];
            let t = tree();
            let out = strace::injected(&t, call, &format!("error={error}"), n, line);
            let context = format!("{error} at {call} {n} of {count}: {out}");
            runs += 1;
            nothing_is_half_done(&t, "to", &context);
            match out.status.code() {
                // What was tried again, or could be done without, or was a property that could not
                // be given, which is said.
                Some(0) if out.error_text().contains("could not be given") => continue,
                Some(0) => {
                    // From a journal that could not be removed a next run goes on, with nothing to do.
                    let is_journal = |path: &std::path::PathBuf| {
                        path.extension().is_some_and(|end| end == "journal")
                    };
                    assert!(litter(&t).iter().all(is_journal), "{context}");
                    continue;
                }
                Some(1 | 2) => assert!(!out.stderr.is_empty(), "{context}"),
                Some(127) if out.error_text().contains("shared librar") => continue,
                _ => panic!("{context}"),
            }
            if is_over(&t, "to") && litter(&t).is_empty() {
                // Without a journal from its beginning on, as where it could not be made: the copy
                // is there, as far as it got, under names that are taken now.
                let out = t.bc_line("copy -T --on-conflict=verify r to").go();
                assert_eq!(out.status.code(), Some(0), "{context}: {out}");
                continue;
            }
            let again = match t.exists("to") && litter(&t).is_empty() {
                true => "copy -T --on-conflict=verify r to",
                false => line,
            };
            let second = t.bc_line(again).go();
            assert_eq!(second.status.code(), Some(0), "{context}: {second}");
            if again == line {
                complete(&t, "to", &context);
            }
        }
    }
    assert!(runs >= 20, "{counts:?}");
}
