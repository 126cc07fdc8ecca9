//! `bc dup prune`, killed at each system call that changes something: every content stays, and the
//! next run or undo finishes and leaves nothing behind. The engine's own tests do the same between
//! its calls; here it is the program with its journal, as it is installed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out};

use crate::common::Bc;
use crate::strace::{self, KILL};

const NAMES: [&str; 3] = ["a/keep", "b/one", "b/two"];

/// Three copies of one file, and one of another.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in NAMES {
        t.write(name, "same").mtime(name, 1_000_000_000, 7);
    }
    t.write("b/other", "another");
    t
}

/// Files and links below a directory, by their paths in it.
fn names(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => pending.push(entry.path()),
                false => found.push(entry.path().strip_prefix(root).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

/// Both contents are in some file of the tree or of what files are moved to.
#[track_caller]
fn nothing_is_lost(t: &TestTree, to: &Path, context: &str) {
    for content in ["same", "another"] {
        let stands = [t.path(), to].iter().any(|root| {
            names(root).iter().any(|name| {
                std::fs::read(root.join(name)).is_ok_and(|found| found == content.as_bytes())
            })
        });
        assert!(stands, "{context}: '{content}' is gone");
    }
}

/// Which of the names are what after a run that was not disturbed.
fn state(t: &TestTree, to: &Path) -> (Vec<PathBuf>, Vec<PathBuf>, u64) {
    let links = t.join("a/keep").symlink_metadata().unwrap().nlink();
    (names(t.path()), names(to), links)
}

/// `action` with the place that files are moved to, made anew for each run.
fn killed_at_every_call(action: &str, place: impl Fn(&TestTree) -> Option<PathBuf>) {
    if !strace::is_able() {
        return;
    }
    let line = |to: &Path, journal: &str| {
        let action = action.replace("DIR", &to.display().to_string());
        format!("dup prune --action={action} --keep=first --yes --journal=../{journal} .")
    };
    let t = tree();
    let Some(to) = place(&t) else { return };
    let plain = t.bc_line(&line(&to, "j")).go();
    if !plain.status.success() {
        return left_out(&format!(
            "{action} does not work here: {}",
            plain.error_text()
        ));
    }
    let whole = state(&t, &to);
    let _ = std::fs::remove_dir_all(&to);
    // What comes next: undo, or the same run once more.
    let mut sweep = strace::kills(4).ways(2);
    while let Some(point) = sweep.next() {
        let t = tree();
        let Some(to) = place(&t) else { return };
        let line = |journal: &str| line(&to, journal);
        let (out, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, &line("j"));
        let context = format!("{action}, killed at {point}");
        nothing_is_lost(&t, &to, &context);
        if !killed {
            assert_eq!(out.status.code(), Some(0), "{context}");
            assert_eq!(state(&t, &to), whole, "{context}");
        } else if sweep.way() == 0 && t.scratch("j").exists() {
            take_back(&t, &to, &context);
        } else {
            // With a journal of its own: that of the killed run is not at hand.
            let out = t.bc_line(&line("second")).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            nothing_is_lost(&t, &to, &context);
            second_names_go(&t, &to, &line("third"), &context);
            assert_eq!(state(&t, &to), whole, "{context}: {out}");
        }
        let _ = std::fs::remove_dir_all(&to);
    }
    assert!(sweep.reached() >= 5, "{action}: {}", sweep.reached());
}

/// A run that is killed when it has moved the last file may leave that a second name. No name of the
/// tree leads there any more; the next run that moves something to that directory takes it away.
#[track_caller]
fn second_names_go(t: &TestTree, to: &Path, line: &str, context: &str) {
    let is_temporary = |name: &PathBuf| {
        let name = name.file_name().unwrap();
        name.as_encoded_bytes().starts_with(b".bc-dup.")
    };
    let Some(second) = names(to).into_iter().find(is_temporary) else {
        return;
    };
    let inode = |name: &Path| to.join(name).symlink_metadata().unwrap().ino();
    let others = names(to).into_iter().filter(|name| *name != second);
    let of: Vec<PathBuf> = others
        .filter(|name| inode(name) == inode(&second))
        .collect();
    assert_eq!(of.len(), 1, "{context}: {}", second.display());
    t.write("b/last", "same");
    let out = t.bc_line(line).go();
    let moved = to.join("b/last");
    assert!(out.status.success() && moved.exists(), "{context}: {out}");
    std::fs::remove_file(moved).unwrap();
}

/// Undo of the killed run's journal: all is as it was.
#[track_caller]
fn take_back(t: &TestTree, to: &Path, context: &str) {
    let out = t.bc_line("dup undo ../j").go();
    assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    let all: Vec<PathBuf> = ["a/keep", "b/one", "b/other", "b/two"]
        .map(PathBuf::from)
        .into();
    assert_eq!(names(t.path()), all, "{context}: {out}");
    assert_eq!(names(to), Vec::<PathBuf>::new(), "{context}: {out}");
    for name in NAMES {
        let meta = t.join(name).symlink_metadata().unwrap();
        assert!(
            meta.is_file() && meta.nlink() == 1,
            "{context}: {name}: {out}"
        );
        assert_eq!(t.read(name), b"same", "{context}: {name}");
        let time = (meta.mtime(), meta.mtime_nsec());
        assert_eq!(time, (1_000_000_000, 7), "{context}: {name}: {out}");
    }
}

fn beside(t: &TestTree) -> Option<PathBuf> {
    Some(t.scratch("moved"))
}

#[test]
fn hardlink() {
    killed_at_every_call("hardlink", beside);
}

#[test]
fn reflink() {
    killed_at_every_call("reflink", beside);
}

#[test]
fn symlink() {
    killed_at_every_call("symlink", beside);
}

#[test]
fn delete() {
    killed_at_every_call("delete", beside);
}

#[test]
fn moving() {
    killed_at_every_call("move:DIR", beside);
}

#[test]
fn moving_to_another_file_system() {
    killed_at_every_call("move:DIR", |t| {
        let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
        let memory = ["/dev/shm", "/tmp", "/var/tmp"]
            .map(Path::new)
            .into_iter()
            .find(|path| device(path).is_some_and(|dev| Some(dev) != device(t.path())));
        let dir = memory.and_then(|path| tempfile::tempdir_in(path).ok());
        if dir.is_none() {
            left_out("no second file system");
        }
        dir.map(|dir| dir.keep())
    });
}
