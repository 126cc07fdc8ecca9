//! `bc dup undo` that is killed and run again, or of a run that was stopped: all is as it was.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, is_root, left_out, tool};

use crate::common::Bc;
use crate::strace::{self, KILL};

/// Two copies of a directory; the second has files of two names, and modes and times of its own.
fn tree() -> TestTree {
    let t = TestTree::new();
    for copy in ["keep", "copy"] {
        t.write(format!("{copy}/in/one"), "same")
            .symlink("in/one", format!("{copy}/link"))
            .dir(format!("{copy}/void"));
    }
    t.write("keep/two", "same")
        .hard_link("copy/in/one", "copy/two");
    t.mtime("copy/two", 1_000_000_000, 7);
    if is_root() {
        t.run("chown")
            .args(["1000:1001", "copy", "copy/in"])
            .go()
            .code(0);
    }
    for (dir, mode) in [("copy/void", 0o2711), ("copy/in", 0o755), ("copy", 0o2750)] {
        t.mode(dir, mode);
        t.mtime(dir, 1_000_000_000, 7);
    }
    t
}

/// What of the copy undo is to give back.
fn all(t: &TestTree) -> BTreeMap<PathBuf, String> {
    let names = ["", "in", "in/one", "two", "link", "void"];
    let reported = |name: &&str| {
        let meta = t.join("copy").join(name).symlink_metadata().unwrap();
        let one_file = meta.ino() == t.join("copy/two").symlink_metadata().unwrap().ino();
        let time = (meta.mtime(), meta.mtime_nsec());
        let owner = (meta.mode(), meta.uid(), meta.gid());
        (
            PathBuf::from(name),
            format!("{owner:?} {time:?} {one_file}"),
        )
    };
    names.iter().map(reported).collect()
}

const PRUNE: &str = "dup prune --dirs --action=delete --keep=path:*keep --yes --journal=../j .";

#[test]
fn killed_at_every_call() {
    if !strace::is_able() {
        return;
    }
    let undo = "dup undo ../j";
    let mut sweep = strace::kills(4);
    while let Some(point) = sweep.next() {
        let t = tree();
        let before = all(&t);
        t.bc_line(PRUNE).go().code(0);
        assert!(!t.exists("copy"));
        let (first, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, undo);
        let context = format!("killed at {point}");
        let out = t.bc_line(undo).go();
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
        assert_eq!(all(&t), before, "{context}: {out}");
        assert!(killed || first.status.success(), "{context}: {first}");
    }
    assert!(sweep.reached() >= 6, "{}", sweep.reached());
}

/// Of the names of one file the run took the first alone.
#[test]
fn a_run_that_was_stopped_parts_no_names() {
    if !strace::is_able() {
        return;
    }
    for action in ["delete", "move:../moved"] {
        let t = tree();
        let before = all(&t);
        let line = PRUNE.replace("delete", action);
        strace::injected(&t, "unlinkat", "signal=INT", 1, &line);
        let out = t.bc_line("dup undo ../j").go();
        assert_eq!(out.status.code(), Some(0), "{action}: {out}");
        assert_eq!(all(&t), before, "{action}: {out}");
    }
}

fn flags(t: &TestTree, path: &Path) -> String {
    let listed = t.run("lsattr").arg("-d").arg(path).go().text();
    let shown = listed.split(' ').next().unwrap_or("").to_owned();
    // How the content is stored.
    shown.replace('e', "-")
}

#[test]
fn flags_come_back() {
    if tool("chattr").is_none() {
        return left_out("not installed: chattr");
    }
    let mut tried = 0;
    let lines = [
        PRUNE.to_owned(),
        PRUNE.replace("--dirs ", ""),
        PRUNE.replace(
            "--dirs --action=delete",
            "--action=hardlink --ignore-metadata",
        ),
    ];
    for line in lines {
        let t = TestTree::new();
        let names = ["copy", "copy/in", "copy/in/one"].map(|name| t.join(name));
        t.write("keep/in/one", "same").write("copy/in/one", "same");
        for (flag, name) in ["d", "A", "S", "D", "T"]
            .iter()
            .flat_map(|flag| names.iter().map(move |name| (flag, name)))
        {
            t.run("chattr").arg(format!("+{flag}")).arg(name).go();
        }
        let before = names.each_ref().map(|name| flags(&t, name));
        if before
            .iter()
            .all(|flags| flags.bytes().all(|one| one == b'-'))
        {
            continue;
        }
        tried += 1;
        t.bc_line(&line).go().code(0);
        t.bc_line("dup undo ../j").go().code(0);
        let after = names.each_ref().map(|name| flags(&t, name));
        assert_eq!(after, before, "{line}");
    }
    if tried == 0 {
        left_out("no flag can be set here");
    }
}
