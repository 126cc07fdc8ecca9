//! `bc dup prune --dirs`, killed at each system call that changes something, and with calls that fail:
//! the directory that stays is as it was, and undo gives back all of the other one.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::injected_errors::each_fault;
use crate::strace::{self, KILL};

/// Two copies of a directory.
fn tree() -> TestTree {
    let t = TestTree::new();
    for copy in ["r/a", "r/b"] {
        t.write(format!("{copy}/in/one"), "same")
            .write(format!("{copy}/two"), "another")
            .symlink("two", format!("{copy}/link"))
            .dir(format!("{copy}/void"));
    }
    for (dir, mode) in [("r/b/void", 0o711), ("r/b/in", 0o750), ("r/b", 0o705)] {
        t.mode(dir, mode);
        t.mtime(dir, 1_000_000_000, 7);
    }
    t
}

/// Everything: mode, and content or where a link leads.
fn all(t: &TestTree) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![t.join("r")];
    while let Some(path) = pending.pop() {
        let meta = path.symlink_metadata().unwrap();
        let what = match meta {
            _ if meta.is_dir() => {
                let read = std::fs::read_dir(&path).unwrap();
                pending.extend(read.map(|entry| entry.unwrap().path()));
                "directory".to_owned()
            }
            _ if meta.is_symlink() => format!("{:?}", std::fs::read_link(&path).unwrap()),
            _ => format!("{:?}", std::fs::read(&path).unwrap()),
        };
        let below = path.strip_prefix(t.path()).unwrap().to_owned();
        found.insert(below, format!("{:o} {what}", meta.mode()));
    }
    found
}

/// The directory that stays is as it was; the rest is undone.
#[track_caller]
fn check(t: &TestTree, context: &str) {
    let before = all(&tree());
    let now = all(t);
    for (path, what) in before.iter().filter(|(path, _)| path.starts_with("r/a")) {
        assert_eq!(now.get(path), Some(what), "{context}: {path:?}");
    }
    if t.scratch("j").exists() {
        let out = t.bc_line("dup undo ../j").go();
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    }
    assert_eq!(all(t), before, "{context}");
}

fn line(action: &str) -> String {
    format!("dup prune --dirs --action={action} --keep=first --yes --journal=../j r")
}

fn killed_at_every_call(action: &str) {
    if !strace::is_able() {
        return;
    }
    let line = line(action);
    let mut sweep = strace::kills(4);
    while let Some(point) = sweep.next() {
        let t = tree();
        let (out, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, &line);
        let context = format!("{action}, killed at {point}");
        if !killed {
            assert_eq!(out.status.code(), Some(0), "{context}");
            assert!(!t.exists("r/b"), "{context}");
        }
        check(&t, &context);
    }
    assert!(sweep.reached() >= 4, "{action}: {}", sweep.reached());
}

#[test]
fn killed_while_deleting() {
    killed_at_every_call("delete");
}

#[test]
fn killed_while_moving() {
    killed_at_every_call("move:moved");
}

#[test]
fn calls_that_fail_while_deleting() {
    each_fault(&line("delete"), tree, |t, out, context| {
        if out.status.success() {
            assert!(!t.exists("r/b"), "{context}");
        }
        check(t, context);
    });
}

#[test]
fn calls_that_fail_while_moving() {
    each_fault(&line("move:moved"), tree, |t, out, context| {
        if out.status.success() {
            assert!(!t.exists("r/b"), "{context}");
        }
        check(t, context);
    });
}
