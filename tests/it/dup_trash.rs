//! `bc dup prune --action=trash`: files go where desktops find them, and undo takes them out.

use std::fs;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::injected_errors::each_fault;
use crate::strace::{self, KILL};

const TRASH: &str = "home/.local/share/Trash";

/// The name of a file, with what an address has to escape.
const NAME: &str = "b/ä b%\n+=~.txt";

fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["a/keep", NAME, "b/two"] {
        t.write(name, "same").mtime(name, 1_000_000_000, 7);
    }
    t.write("b/other", "another");
    t
}

fn infos(t: &TestTree) -> Vec<PathBuf> {
    let read = fs::read_dir(t.scratch(TRASH).join("info")).into_iter();
    let mut infos: Vec<PathBuf> = read.flatten().map(|info| info.unwrap().path()).collect();
    infos.sort();
    infos
}

/// Returns the line about the path in a file of `info`.
fn path_line(info: &Path) -> String {
    let text = fs::read_to_string(info).unwrap();
    let line = text.lines().find(|line| line.starts_with("Path="));
    line.unwrap().to_owned()
}

#[test]
fn a_trash_is_one_that_desktops_know() {
    let t = tree();
    let line = "dup prune --action=trash --keep=first --yes --journal=../j .";
    let dry = t.bc_line(&line.replace("--yes", "--dry-run")).go();
    dry.code(0);
    assert!(!t.scratch(TRASH).exists());
    let out = t.bc_line(line).go();
    out.code(0);
    assert_eq!(out.text(), dry.text());
    assert_eq!(
        out.text(),
        "trash ./b/two (kept: ./a/keep)\ntrash ./b/ä b%\\n+=~.txt (kept: ./a/keep)\n"
    );
    assert!(out.error_text().contains("2 files changed, 0 B freed"));
    let ours = infos(&t);
    assert_eq!(ours.len(), 2);

    // Another program's word for the same name.
    if tool("gio").is_none() {
        left_out("gio is not installed");
    } else {
        t.write(NAME, "other");
        let gio = t.run("gio").args(["trash", NAME]).go();
        match gio.status.success() {
            true => {
                let new = infos(&t).into_iter().find(|info| !ours.contains(info));
                let new = new.expect("gio has the same trash");
                let same = ours.iter().any(|info| path_line(info) == path_line(&new));
                assert!(same, "{}", path_line(&new));
            }
            false => left_out(&format!("gio takes nothing here: {}", gio.error_text())),
        }
    }
    if tool("trash-list").is_none() {
        left_out("trash-cli is not installed");
    } else {
        let list = t.run("trash-list").go();
        list.code(0);
        let two = t.join("b/two").display().to_string();
        assert!(list.text().contains(&two), "{list}");
    }
    let undone = t.bc_line("dup undo ../j").go();
    undone.code(0);
    assert_eq!(undone.text().lines().count(), 2, "{undone}");
    assert_eq!(t.read(NAME), b"same");
    assert!(ours.iter().all(|info| !info.exists()));
}

/// A run that was killed before the file went has left its word for it, which the next one takes
/// away: not that for another file, nor one that was given just now.
#[test]
fn what_a_killed_run_says_of_a_file_that_never_went_is_removed() {
    let line = "dup prune --action=trash --keep=first --yes --journal=../j .";
    for (is_old, is_its, expected) in [(true, true, 1), (false, true, 2), (true, false, 2)] {
        let t = TestTree::new();
        t.write("a", "same").write("b", "same");
        t.bc_line(line).go().code(0);
        let info = infos(&t).remove(0);
        fs::rename(t.scratch(TRASH).join("files/b"), t.join("b")).unwrap();
        fs::remove_file(t.scratch("j")).unwrap();
        if !is_its {
            let text = fs::read_to_string(&info).unwrap();
            fs::write(&info, text.replace("/b\n", "/c/b\n")).unwrap();
        }
        if is_old {
            let file = fs::File::options().write(true).open(&info).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        t.bc_line(line).go().code(0);
        assert_eq!(infos(&t).len(), expected, "{is_old} {is_its}");
        assert!(!t.exists("b"));
    }
}

#[test]
fn it_asks_and_takes_whole_directories_too() {
    let t = TestTree::new();
    for copy in ["a", "b"] {
        t.write(format!("{copy}/in/one"), "same")
            .write(format!("{copy}/two"), "another");
    }
    let line = "dup prune --dirs --action=trash --journal=../j a b";
    let out = t.bc_line(line).go();
    out.code(2);
    assert!(out.error_text().contains("needs --yes"), "{out}");
    let out = t.bc_line(&format!("{line} --yes")).go();
    out.code(0);
    assert_eq!(out.text(), "trash b/ with 2 files (kept: a/)\n");
    assert!(!t.exists("b") && t.scratch(TRASH).join("files/b/in/one").exists());
    t.bc_line("dup undo ../j").go().code(0);
    assert_eq!(t.read("b/in/one"), b"same");
    assert!(infos(&t).is_empty());

    t.bc_line(&format!("{line} --yes")).go().code(0);
    fs::remove_dir_all(t.scratch(TRASH)).unwrap();
    let out = t.bc_line("dup undo ../j").go();
    out.code(1);
    let text = "is no longer in the trash, which was emptied";
    assert!(out.error_text().contains(text), "{out}");
}

/// Undo ends as before the run, wherever that ended, with nothing in the trash.
#[track_caller]
fn check(t: &TestTree, context: &str) {
    for content in ["same", "another"] {
        let all = ["a/keep", "b/other"].map(|name| t.read(name));
        assert!(all.contains(&content.into()), "{context}: {content}");
    }
    if t.scratch("j").exists() {
        let out = t.bc_line("dup undo ../j").go();
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
    }
    for name in [NAME, "b/two"] {
        assert_eq!(t.read(name), b"same", "{context}");
    }
    let files = fs::read_dir(t.scratch(TRASH).join("files"));
    assert_eq!(files.into_iter().flatten().count(), 0, "{context}");
}

const LINE: &str = "dup prune --action=trash --keep=first --yes --journal=../j .";

#[test]
fn killed_at_every_call() {
    if !strace::is_able() {
        return;
    }
    let mut sweep = strace::kills(4);
    while let Some(point) = sweep.next() {
        let t = tree();
        let (out, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, LINE);
        let context = format!("killed at {point}");
        if !killed {
            assert_eq!(out.status.code(), Some(0), "{context}");
            assert!(!t.exists("b/two"), "{context}");
        }
        check(&t, &context);
    }
    assert!(sweep.reached() >= 4, "{}", sweep.reached());
}

#[test]
fn calls_that_fail() {
    each_fault(LINE, tree, |t, out, context| {
        if out.status.success() {
            assert!(!t.exists("b/two"), "{context}");
        }
        check(t, context);
    });
}
