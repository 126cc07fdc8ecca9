//! `bc dup prune` on a disk that is unplugged: no content is lost, what was not done is named, and the
//! same command ends it. Undo gives back what was there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bc_testkit::{Behaviour, DiskLoss, Sweep, TestTree};
use rustix::io::Errno;

use crate::common::Bc;
use crate::copy_trees::figures;
use crate::move_faulty_disks::{disk, lost_at};

/// Regular files and links below a directory, with what they hold.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

fn contents(root: &Path) -> Contents {
    let mut found = Contents::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let (path, kind) = entry.map(|one| (one.path(), one.file_type())).unwrap();
            match kind.unwrap().is_dir() {
                true => pending.push(path),
                false => {
                    let content = std::fs::read(&path).unwrap_or_default();
                    found.insert(path.strip_prefix(root).unwrap().to_owned(), content);
                }
            }
        }
    }
    found
}

/// Contents, each once.
fn distinct(of: &Contents) -> BTreeSet<&[u8]> {
    of.values().map(Vec::as_slice).collect()
}

/// Files that are temporary, of this program.
fn temporaries(of: &Contents) -> Vec<PathBuf> {
    let is_ours = |path: &&PathBuf| path.to_string_lossy().contains(".bc-dup.");
    of.keys().filter(is_ours).cloned().collect()
}

const FILES: [(&str, &str); 7] = [
    ("keep/one", "the same"),
    ("keep/other", "another one"),
    ("in/one", "the same"),
    ("in/deep/one", "the same"),
    ("in/other", "another one"),
    ("in/only", "without a copy"),
    ("last", "the same"),
];

/// Prunes a tree on a disk that is unplugged in the middle, again once it is back, and undoes all.
fn unplugged(action: &str) {
    let ways = [DiskLoss::Errors(Errno::IO), DiskLoss::Gone];
    let mut sweep = Sweep::new(2).ways(ways.len());
    while let Some(point) = sweep.next() {
        let Some(mut disk) = disk(Behaviour {
            records: true,
            ..Behaviour::default()
        }) else {
            return;
        };
        let t = TestTree::new();
        let shown = disk.shown().to_owned();
        for (nth, (name, content)) in FILES.into_iter().enumerate() {
            let path = shown.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + nth as u64);
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(time).unwrap();
        }
        let before = contents(&shown);
        let place = disk.path().display().to_string();
        let action = action.replace("DISK", &place);
        let run = || {
            let line =
                format!("dup prune --yes --force --keep=path:keep --action={action} {place}");
            t.bc_line(&line).go()
        };
        let loss = ways[sweep.way()];
        let (out, is_lost) = lost_at(&mut disk, &mut sweep, &point, loss, run);
        let context = format!("{action}: {loss:?} at {point}: {out}");
        let moved = || contents(&t.join("moved"));
        let is_whole = |context: &str| {
            let (there, away) = (contents(&shown), moved());
            let all: BTreeSet<&[u8]> = distinct(&there).union(&distinct(&away)).copied().collect();
            assert!(distinct(&before).is_subset(&all), "{context}: {there:?}");
            // What is kept, and what has no copy, is never touched.
            for name in ["keep/one", "keep/other", "in/only"] {
                let name = Path::new(name);
                assert_eq!(there.get(name), before.get(name), "{context}");
            }
            // No name has other bytes than it had.
            for (path, content) in &there {
                let then = before.get(path);
                assert!(
                    then.is_none_or(|then| then == content),
                    "{context}: {path:?}"
                );
            }
        };
        is_whole(&context);
        let code = out.status.code();
        assert!(
            matches!(code, Some(0..=2)) && (is_lost || code == Some(0)),
            "{context}"
        );
        if code != Some(0) {
            assert!(out.error_text().contains("bc dup: "), "{context}");
        }
        let again = run();
        let context = format!("{context}\nagain: {again}");
        assert_eq!(again.status.code(), Some(0), "{context}");
        is_whole(&context);
        // Another machine may work on a file system that shows others' files: leftovers stay there, and
        // are counted.
        let left = temporaries(&contents(&shown));
        let is_counted = again.error_text().contains("temporary of another run");
        assert!(left.is_empty() || is_counted, "{context}: {left:?}");
        let third = run();
        assert!(
            third.error_text().contains("nothing to do"),
            "{context}\nthird: {third}"
        );
        // The newest first.
        let state = t.scratch("home").join(".local/state/bc");
        let journals = std::fs::read_dir(state).into_iter().flatten().flatten();
        let mut journals: Vec<PathBuf> = journals.map(|one| one.path()).collect();
        journals.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        journals
            .sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
        let mut is_undone = true;
        for journal in journals {
            let undone = t.bc_line("dup undo").arg(&journal).go();
            let context = format!("{context}\nundo: {undone}");
            is_whole(&context);
            // After a new mount the device has another number, and files have no time of birth: what
            // cannot be known again stays, and is named.
            let (code, text) = (undone.status.code(), undone.error_text());
            assert!(
                code == Some(0) || text.contains("not restored"),
                "{context}"
            );
            is_undone &= code == Some(0);
        }
        let mut after = contents(&shown);
        for left in temporaries(&after) {
            after.remove(&left);
        }
        if is_undone {
            assert_eq!(after, before, "{context}");
        }
        assert!(is_undone || is_lost, "{context}");
    }
    assert!(sweep.reached() > 0, "{action}");
    let reached = sweep.reached();
    figures(&format!(
        "prune --action={action}: unplugged at {reached} requests"
    ));
}

#[test]
fn an_unplugged_disk_loses_nothing_to_links() {
    unplugged("hardlink");
    unplugged("symlink");
}

#[test]
fn an_unplugged_disk_loses_nothing_to_deletion() {
    unplugged("delete");
}

#[test]
fn an_unplugged_disk_loses_nothing_to_moves() {
    unplugged("move:DISK/moved");
    unplugged("move:moved");
}
