//! `bc integrity restore` killed at any of its calls, and with any of them failing: no content is gone,
//! no path has less than it had, and the same command does the rest and leaves nothing behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::copy_faults::FAULTS;
use crate::copy_trees::{figures, litter};
use crate::restore::{LINE, contents, wounded};
use crate::strace::{self, KILL};

/// Ways to heal the same tree.
const LINES: [&str; 2] = [LINE, "integrity restore --discard-damaged --from=copy r m"];

/// What is recorded.
fn good() -> BTreeSet<Vec<u8>> {
    let texts = ["content", "deep", "names"];
    let texts = texts.into_iter().map(|text| text.as_bytes().to_vec());
    texts.chain([vec![7; 200_000]]).collect()
}

/// All content that there was is there, unless it was damaged and is not wanted, no path has less,
/// and nothing is half done.
#[track_caller]
fn nothing_is_gone(before: &TestTree, t: &TestTree, line: &str, context: &str) {
    let good = good();
    let now: BTreeSet<Vec<u8>> = contents(t)
        .into_iter()
        .map(|(_, content)| content)
        .collect();
    let discards = line.contains("--discard");
    for (path, content) in contents(before) {
        let is_kept = now.contains(&content) || discards && !good.contains(&content);
        assert!(is_kept, "{context}: {}", path.display());
        let is = t.read(Path::new("r").join(&path));
        let better = !good.contains(&content) && good.contains(&is);
        assert!(is == content || better, "{context}: {}", path.display());
    }
}

/// The same command heals the rest, says nothing of what is left, and nothing is.
#[track_caller]
fn the_next_run_heals(before: &TestTree, t: &TestTree, line: &str, context: &str) {
    let out = t.bc_line(line).go();
    assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    let text = out.error_text();
    let is_named = text.contains("left alone") || text.contains("has left");
    assert!(!is_named, "{context}: {out}");
    nothing_is_gone(before, t, line, context);
    for (path, content) in [
        ("a/file", "content"),
        ("gone/deep", "deep"),
        ("two", "names"),
        ("a/names", "names"),
        ("link", "content"),
    ] {
        let is = t.read(Path::new("r").join(path));
        assert_eq!(is, content.as_bytes(), "{context}: {path}");
    }
    assert_eq!(litter(t), Vec::<PathBuf>::new(), "{context}: {out}");
}

#[test]
fn killed_at_every_call_no_content_is_gone() {
    if !strace::is_able() {
        return;
    }
    let before = wounded();
    for line in LINES {
        let mut sweep = strace::kills(3);
        while let Some(point) = sweep.next() {
            let t = wounded();
            strace::disturbed(&mut sweep, &t, &point, KILL, line);
            let context = format!("{line}: killed at {point}");
            nothing_is_gone(&before, &t, line, &context);
            the_next_run_heals(&before, &t, line, &context);
        }
        assert!(sweep.reached() >= 8, "{line}: {}", sweep.reached());
        figures(&format!("{line}: killed at {} calls", sweep.reached()));
    }
}

#[test]
fn every_fault_is_told_and_no_content_is_gone() {
    if !strace::is_able() {
        return;
    }
    let before = wounded();
    for line in LINES {
        let mut sweep = strace::faults(&FAULTS, 3);
        let mut reported = 0;
        while let Some(point) = sweep.next() {
            let t = wounded();
            let error = strace::error(&FAULTS, &point, &sweep);
            let (out, _) = strace::disturbed(&mut sweep, &t, &point, &error, line);
            let context = format!("{line}: {error} at {point}: {out}");
            nothing_is_gone(&before, &t, line, &context);
            match out.status.code() {
                Some(127) if out.error_text().contains("shared librar") => continue,
                Some(0) => {}
                // Whoever cannot write a message has none.
                Some(1 | 2) if point.call == "write" => {}
                Some(1 | 2) => {
                    assert!(!out.error_text().is_empty(), "{context}");
                    reported += 1;
                }
                _ => panic!("{context}"),
            }
            the_next_run_heals(&before, &t, line, &context);
        }
        let faults = sweep.reached();
        assert!(faults >= 12, "{line}: {faults}");
        figures(&format!("{line}: {faults} faults, {reported} of them told"));
    }
}
