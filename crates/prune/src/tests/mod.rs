//! Helpers for every test of prune: groups as a scan would find them, a snapshot of a tree, and the
//! invariant.

mod actions;
mod copies;
mod crash;
mod dirs;
mod existing_target;
mod failing_calls;
mod foreign;
mod foreseen;
mod locks;
mod lost;
mod moves;
mod open;
mod parted;
mod permitted;
mod protect;
mod race;
mod reflink;
mod refusals;
mod trash;
mod trees;
mod undo;
mod undo_later;
mod unswappable;
mod vanish;
mod workers;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_edit::names::prune as prune_names;
use bc_find::Subtrees;
use bc_find::groups::{FileGroup, FileRef, TreeCopy, TreeEntry, TreeGroup, TreeKind};
use bc_fs::faults;
use bc_pool::Cancel;
use bc_testkit::{EVERY, Point, Sweep, TestTree, asked_points};
use bc_walk::FileStat;

use super::*;
use crate::step;

/// Calls of each name that a sweep disturbs unless more are asked for: all of those that change
/// something, and some of the looks.
pub(super) const FEW: usize = 6;

/// Hands a sweep on to its next point; true if the run came to this one.
fn saw(sweep: &mut Sweep, seen: &faults::Seen) -> bool {
    sweep.ran(seen.reached, &seen.calls);
    seen.reached
}

/// Every regular file below `root`, by content: groups of two or more names.
pub(super) fn groups(root: &Path) -> Vec<FileGroup> {
    let mut by_content: BTreeMap<Vec<u8>, Vec<FileRef>> = BTreeMap::new();
    for path in files(root) {
        let content = fs::read(&path).unwrap();
        by_content
            .entry(content)
            .or_default()
            .push(file_ref(root, &path));
    }
    by_content
        .into_values()
        .filter(|files| files.len() > 1)
        .map(|files| FileGroup { files })
        .collect()
}

pub(super) fn file_ref(root: &Path, path: &Path) -> FileRef {
    let stat = rustix::fs::lstat(path).unwrap();
    let stat = FileStat::from(&stat);
    FileRef {
        path: path.as_os_str().as_bytes().to_vec(),
        root_len: root.as_os_str().len(),
        root: 0,
        id: stat.id,
        stamp: stat.stamp,
        nlink: stat.nlink,
        protected: false,
    }
}

pub(super) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Name to content, links followed; all names but directories.
pub(super) fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                pending.push(path);
            } else {
                let content = fs::read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
                found.insert(path, content);
            }
        }
    }
    found
}

/// A tree in memory, and a directory on another file system. `None`, and said,
/// where there is only one file system.
pub(super) fn two_file_systems() -> Option<(TestTree, tempfile::TempDir)> {
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev).ok();
    let other = tempfile::tempdir().unwrap();
    if tempfile::tempfile_in(memory).is_err() || device(memory) == device(other.path()) {
        bc_testkit::left_out("no second file system");
        return None;
    }
    Some((sample_in(memory), other))
}

/// Temporary names of ours anywhere below `root`.
pub(super) fn temporaries(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                pending.push(path);
            } else if prune_names::is_ours(path.file_name().unwrap().as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// The tree that most tests act on: two names of one file with three equal
/// files beside them (one with two names), and a file that is nothing's equal.
/// All were written long ago.
pub(super) fn sample() -> TestTree {
    sample_in(&std::env::temp_dir())
}

/// Returns the sample on a file system where `fsync` costs nothing, for tests that run hundreds of
/// times.
pub(super) fn quick_sample() -> TestTree {
    let memory = Path::new("/dev/shm");
    let probe = tempfile::Builder::new().tempfile_in(memory);
    match probe {
        Ok(_) => sample_in(memory),
        Err(_) => sample(),
    }
}

/// An empty tree where `fsync` costs nothing, if there is such a place.
pub(super) fn quick_tree() -> TestTree {
    let memory = Path::new("/dev/shm");
    match tempfile::Builder::new().tempfile_in(memory) {
        Ok(_) => TestTree::new_in(memory),
        Err(_) => TestTree::new(),
    }
}

fn sample_in(parent: &Path) -> TestTree {
    let tree = TestTree::new_in(parent);
    let content = content();
    tree.write("a/keep", &content)
        .hard_link("a/keep", "a/keep2")
        .write("b/one", &content)
        .write("b/two", &content)
        .hard_link("b/two", "c/two-too")
        .write("c/other", b"something else");
    for (index, name) in ["a/keep", "b/one", "b/two", "c/other"].iter().enumerate() {
        tree.mtime(name, 1_000_000_000 + index as i64, 5);
    }
    tree
}

pub(super) fn content() -> Vec<u8> {
    (0..9000u32).flat_map(u32::to_le_bytes).collect()
}

pub(super) fn options(action: Action) -> PruneOptions {
    PruneOptions {
        mode: RunMode::Execute,
        rules: KeepRules {
            keep: vec!["first".parse().unwrap()],
            ..KeepRules::default()
        },
        ..PruneOptions::new(action)
    }
}

/// All actions but reflink, which most file systems lack.
pub(super) fn actions(tree: &TestTree) -> Vec<Action> {
    let to = tree.scratch("moved").as_os_str().as_bytes().to_vec();
    vec![
        Action::Hardlink,
        Action::Symlink,
        Action::Delete,
        Action::Move(to),
        Action::Trash(Some(home_trash(tree.path()))),
    ]
}

/// The trash of the user's home, beside a tree.
pub(super) fn home_trash(root: &Path) -> Vec<u8> {
    let path = root.with_file_name("Trash");
    path.as_os_str().as_bytes().to_vec()
}

/// Reads an action as a front end does, for a tree.
pub(super) fn parse_action(root: &Path, text: &[u8]) -> Action {
    match Action::parse(text).unwrap() {
        Action::Trash(_) => Action::Trash(Some(home_trash(root))),
        action => action,
    }
}

/// Runs and returns the totals and each line that a front end would print.
pub(super) fn run(tree: &TestTree, options: &PruneOptions) -> (PruneSummary, Vec<String>) {
    run_groups(groups(tree.path()), options, None)
}

pub(super) fn run_groups(
    groups: Vec<FileGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
) -> (PruneSummary, Vec<String>) {
    let mut lines = Vec::new();
    let summary = prune(groups, options, journal, &Cancel::new(), &mut |event| {
        lines.push(match event {
            PruneEvent::Step(step, StepOutcome::Skipped(skip)) => format!("{step}: {skip}"),
            PruneEvent::Step(step, StepOutcome::Done { lost, .. }) if !lost.is_empty() => {
                format!("{step}: without {}", lost.join("; "))
            }
            PruneEvent::Step(step, _) => step.to_string(),
            PruneEvent::Tree(step, _) => step.to_string(),
            PruneEvent::Unusable(path, skip) => format!("{}: {skip}", bc_fs::Escaped(&path)),
            PruneEvent::WritersUndetected(path, errno) => {
                format!("{}: no lease: {errno}", bc_fs::Escaped(&path))
            }
            PruneEvent::Journal(skip) => skip.to_string(),
        });
    });
    (summary, lines)
}

/// A journal for a run over the tree.
pub(super) fn create(
    path: &Path,
    action: Action,
    tree: &TestTree,
) -> Result<Journal, bc_fs::PathError> {
    Journal::create(path, &action, &groups(tree.path()), &Cancel::new())
}

pub(super) fn inode(path: impl AsRef<Path>) -> u64 {
    rustix::fs::lstat(path.as_ref()).unwrap().st_ino
}

/// The invariant. Every content is still there under one of the names it had
/// (or, when it was moved, below the destination); every name is still there
/// unless the action was to take duplicates away.
#[track_caller]
pub(super) fn check_invariant(
    tree: &TestTree,
    before: &BTreeMap<PathBuf, Vec<u8>>,
    action: &Action,
    context: &str,
) {
    let after = snapshot(tree.path());
    for content in before.values() {
        let names = before.iter().filter(|(_, found)| *found == content);
        let stands = names
            .filter_map(|(name, _)| after.get(name))
            .any(|found| found == content);
        assert!(stands, "{context}: a content is gone: {:?}", after.keys());
    }
    let may_go = matches!(action, Action::Delete | Action::Move(_) | Action::Trash(_));
    for (name, content) in before {
        match after.get(name) {
            Some(found) => assert_eq!(found, content, "{context}: {name:?}"),
            None => assert!(may_go, "{context}: {name:?} is missing"),
        }
    }
}
