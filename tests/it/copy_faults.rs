//! `bc copy` where one system call fails: nothing half done, nothing lost, every failure told once,
//! and the same command completes the copy afterwards.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bc_testkit::{Outcome, TestTree, full_disk, left_out};
use serde_json::Value;

use crate::common::Bc;
use crate::copy_trees::{complete, figures, is_over, litter, nothing_is_half_done, tree};
use crate::strace;

/// Calls, and errors that they may fail with.
pub const FAULTS: [(&str, &[&str]); 26] = [
    (
        "openat",
        &[
            "EMFILE", "EACCES", "EIO", "ENOSPC", "EROFS", "EDQUOT", "EINTR",
        ],
    ),
    ("openat2", &["EIO", "EACCES", "EINTR", "ENOSYS"]),
    (
        "renameat2",
        &["EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR", "EINVAL"],
    ),
    (
        "linkat",
        &[
            "EIO", "EMLINK", "EPERM", "ENOENT", "EACCES", "ENOSPC", "EROFS", "EINTR",
        ],
    ),
    ("symlinkat", &["EIO", "ENOSPC", "EPERM", "EDQUOT", "EROFS"]),
    ("mkdirat", &["EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR"]),
    ("mknodat", &["EIO", "EPERM", "ENOSPC", "EDQUOT"]),
    ("unlinkat", &["EIO", "EROFS"]),
    ("pwrite64", &["ENOSPC", "EIO", "EDQUOT", "EROFS", "EINTR"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    (
        "copy_file_range",
        &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EXDEV"],
    ),
    ("read", &["EIO", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("ftruncate", &["EIO", "ENOSPC", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("syncfs", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("fdatasync", &["EIO", "EINTR"]),
    ("fchmod", &["EPERM", "EINTR", "EIO", "EROFS"]),
    ("fchown", &["EPERM", "EINTR", "EIO", "EDQUOT"]),
    (
        "fsetxattr",
        &["ENOSPC", "EDQUOT", "EIO", "EINTR", "EOPNOTSUPP"],
    ),
    ("utimensat", &["EPERM", "EINTR", "EIO", "EROFS"]),
    ("statx", &["EIO", "EACCES"]),
    ("newfstatat", &["EIO", "EACCES"]),
    ("fstat", &["EIO"]),
    ("flistxattr", &["EIO", "EOPNOTSUPP"]),
    ("getdents64", &["EIO"]),
];

/// Ways of copying, and the calls that they make and the first does not; none there means all.
const LINES: [(&str, &[&str]); 4] = [
    ("copy --log-format=json r to", &[]),
    (
        "copy --log-format=json --sync=file r to",
        &["fsync", "renameat2"],
    ),
    (
        "copy --log-format=json --sync=batch r to",
        &["syncfs", "fdatasync"],
    ),
    (
        "copy --log-format=json --algorithm=none r to",
        &["copy_file_range", "pread64"],
    ),
];

/// What a run told: errors by path and operation, and its counts if it came to them.
fn reported(out: &Outcome) -> (Vec<(String, String)>, Option<[u64; 5]>) {
    let (mut errors, mut counts) = (Vec::new(), None);
    for line in out.error_text().lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        if text("level") == "error" && record["operation"].is_string() {
            errors.push((text("path"), text("operation")));
        }
        counts = counts.or_else(|| counted(&text("message")));
    }
    (errors, counts)
}

/// Copied, left as they were, failed, not started, and of how many, as the last line has them.
fn counted(text: &str) -> Option<[u64; 5]> {
    let (parts, all) = text.split_once(" of ")?;
    let mut counts = [0; 5];
    for part in parts.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let at = ["copied", "left as they were", "failed", "not started"];
        counts[at.iter().position(|one| *one == what)?] = number.parse().ok()?;
    }
    counts[4] = all.split(';').next()?.trim().parse().ok()?;
    Some(counts)
}

/// Every entry is accounted for, and every failure told once.
#[track_caller]
fn is_accounted_for(out: &Outcome, context: &str) {
    let (errors, counts) = reported(out);
    let Some([copied, skipped, failed, left, walked]) = counts else {
        // Nothing could be begun, or a call that all of it needs failed.
        assert_ne!(out.status.code(), Some(0), "{context}");
        return;
    };
    assert_eq!(copied + skipped + failed + left, walked, "{context}");
    let distinct: BTreeSet<_> = errors.iter().map(|(path, _)| path).collect();
    assert_eq!(distinct.len(), errors.len(), "{context}");
    assert_eq!(errors.len() as u64, failed, "{context}");
    match out.status.code() {
        Some(0) => assert_eq!(failed + left, 0, "{context}"),
        Some(1) => assert!(failed > 0 && left == 0, "{context}"),
        _ => assert!(out.error_text().contains("takes no more"), "{context}"),
    }
}

/// The same command completes what a failure has left; where there could be no journal, names are
/// taken, and what has them is compared.
#[track_caller]
fn the_next_run_completes(t: &TestTree, line: &str, context: &str) {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
    let goes_on = litter(t).iter().any(is_journal) || !t.exists("to");
    let line = match goes_on {
        true => line.to_owned(),
        false => line.replace("r to", "-T --on-conflict=verify r to"),
    };
    let second = t.bc_line(&line).go();
    assert_eq!(second.status.code(), Some(0), "{context}: {second}");
    nothing_is_half_done(t, "to", context);
    if goes_on && !line.contains("none") {
        complete(t, "to", &format!("{context}: {second}"));
    }
}

#[test]
fn every_fault_is_told_and_the_next_run_completes_the_copy() {
    if !strace::is_able() {
        return;
    }
    for (line, only) in LINES {
        let mut sweep = strace::faults(&FAULTS, 3);
        if !only.is_empty() {
            sweep = sweep.of(only);
        }
        while let Some(point) = sweep.next() {
            let t = tree();
            let error = strace::error(&FAULTS, &point, &sweep);
            let (out, _) = strace::disturbed(&mut sweep, &t, &point, &error, line);
            let context = format!("{line}: {error} at {point}: {out}");
            nothing_is_half_done(&t, "to", &context);
            let text = out.error_text();
            match out.status.code() {
                Some(127) if text.contains("shared librar") => continue,
                // Whoever cannot write a message has none.
                Some(0..=2) if point.call == "write" => {}
                Some(0..=2) => is_accounted_for(&out, &context),
                _ => panic!("{context}"),
            }
            if out.status.code() != Some(0) {
                the_next_run_completes(&t, line, &context);
            } else if !text.contains("could not be given") && !is_over(&t, "to") {
                // From a journal that could not be removed a next run goes on, with nothing to do.
                let is_journal =
                    |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
                let left = litter(&t);
                assert!(
                    left.iter().all(is_journal) || point.call == "unlinkat",
                    "{context}"
                );
            }
        }
        assert!(sweep.reached() > 0, "{line}");
        figures(&format!("{line}: {} faults", sweep.reached()));
    }
}

/// Descriptors that others held a moment ago are free in the end: no file stays behind for want of
/// one.
#[test]
fn a_descriptor_that_was_short_once_costs_no_file() {
    if !strace::is_able() {
        return;
    }
    let mut repaired = 0;
    for (line, _) in &LINES[..3] {
        for call in ["openat", "openat2"] {
            let calls = strace::counted(&tree(), &[call], line);
            let all = calls.get(call).copied().unwrap_or(0);
            // The first half is made by the start of the program and by the walk.
            for nth in all / 2 + 1..=all {
                let t = tree();
                let out = strace::injected(&t, call, "error=EMFILE", nth, line);
                let context = format!("{line}: {call} {nth}: {out}");
                // Where the tree was walked, the copying began.
                let (_, Some([_, _, failed, left, walked])) = reported(&out) else {
                    continue;
                };
                if walked < 2 {
                    continue;
                }
                assert_eq!((failed, left), (0, 0), "{context}");
                nothing_is_half_done(&t, "to", &context);
                repaired += u32::from(out.status.code() == Some(0));
            }
        }
    }
    assert!(repaired > 0);
}

/// In a dry run nothing is done again in the end: what finds no descriptor is a failure.
#[test]
fn a_dry_run_that_is_short_of_descriptors_hides_nothing() {
    if !strace::is_able() {
        return;
    }
    let t = tree();
    t.bc_line("copy r to").go().code(0);
    t.write("to/a/large", vec![8; 200_000])
        .mtime("to/a/large", 7, 123_456_789);
    let line = "copy --dry-run --on-conflict=verify -T r to";
    let whole = t.bc_line(line).go();
    whole.code(0).stdout_has("~ to/a/large\n");
    let calls = strace::counted(&t, &["openat"], line);
    // Once, and from the last ones on for good.
    let once = (1..=calls["openat"]).map(|nth| nth.to_string());
    let last = calls["openat"].saturating_sub(6);
    let for_good = (last.max(1)..=calls["openat"]).map(|nth| format!("{nth}+"));
    for nth in once.chain(for_good) {
        let out = strace::injected(&t, "openat", "error=EMFILE", &nth, line);
        if out.status.code() == Some(0) {
            assert_eq!(out.text(), whole.text(), "openat {nth}: {out}");
        }
    }
}

/// Records cannot be written any more when names still can be given: what has its name is no
/// conflict for the run that goes on.
#[test]
fn a_full_disk_that_the_journal_is_on_too() {
    let disk = match full_disk(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = TestTree::new();
    for number in 0..400 {
        t.write(format!("r/{number:03}"), vec![number as u8; 5000]);
    }
    let to = disk.path().join("to");
    let line = format!("copy r {}", to.display());
    let run = || t.bc_line(&line).env("XDG_STATE_HOME", disk.path()).go();
    run().code(2).stderr_has("takes no more");
    let more = ["-o", "remount,size=16M"];
    if !t
        .run("mount")
        .args(more)
        .arg(disk.path())
        .go()
        .status
        .success()
    {
        return left_out("mount cannot change the size of a tmpfs here");
    }
    let out = run();
    out.code(0);
    nothing_is_half_done(&t, &to.display().to_string(), "full disk");
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 401, "{out}");
}

/// The second time that a batch is forced to the disk its files have their names, which may be lost
/// with the power: they are no copies that were asked for.
#[test]
fn names_that_cannot_be_forced_to_the_disk_are_failures() {
    if !strace::is_able() {
        return;
    }
    let t = TestTree::new();
    t.write("r/1", "1").write("r/2", "2");
    let line = "copy --sync=batch -T r to";
    let out = strace::injected(&t, "syncfs", "error=EIO", 2, line);
    out.code(1)
        .stderr_has("to/1: syncfs: ")
        .stderr_has("to/2: syncfs: ");
    out.stderr_has("2 failed of 3");
    t.bc_line(line).go().code(0);
    assert!(litter(&t).is_empty());
}
