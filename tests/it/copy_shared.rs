//! `bc copy` into directories where others may write: what they plant under the names of stages,
//! journals and manifests is not believed, not followed and not harmed.

use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use bc_testkit::{NOBODY, TestTree, is_root, left_out, tool};

use crate::common::Bc;
use crate::copy_again::rest;
use crate::copy_trees::{MANIFEST, litter_below, pattern};
use crate::move_across::other_disk;
use crate::strace;

/// A copy that is killed just before its files get their names; its stages.
fn killed(t: &TestTree) -> Vec<PathBuf> {
    for number in 0..5_usize {
        t.write(format!("r/{number}"), pattern(1000 + number));
    }
    t.write("victim", "kept").dir("to").mode("to", 0o777);
    // The key of all journals is made before that.
    t.write("other", "")
        .bc_line("copy other copied")
        .go()
        .code(0);
    // What is read back has a name before it has its own.
    let line = "copy -T --verify=read r to";
    let out = strace::injected(t, "renameat2", "signal=KILL", 1, line);
    assert_eq!(out.status.signal(), Some(9), "{out}");
    let mut stages: Vec<_> = litter_below(&t.join("to")).collect();
    stages.sort();
    assert_eq!(stages.len(), 5, "{stages:?}");
    stages
}

#[test]
fn what_is_planted_for_stages() {
    if !strace::is_able() {
        return;
    }
    let t = TestTree::new();
    let stages = killed(&t);
    for stage in &stages {
        std::fs::remove_file(stage).unwrap();
    }
    let [link, name, dir, pipe, file] = &stages[..] else {
        panic!("{stages:?}");
    };
    symlink("../victim", link).unwrap();
    std::fs::hard_link(t.join("victim"), name).unwrap();
    std::fs::create_dir(dir).unwrap();
    std::fs::write(dir.join("inside"), "kept").unwrap();
    t.fifo(pipe);
    std::fs::write(
        file,
        "planted, and longer than what it would be replaced by".repeat(100),
    )
    .unwrap();
    if is_root() {
        for path in [link, pipe, file] {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let out = t.bc_line("copy -T r to").go();
    out.code(0).stderr_has("left alone");
    for number in 0..5_usize {
        assert!(
            t.read(format!("to/{number}")) == pattern(1000 + number),
            "{out}"
        );
    }
    assert_eq!(t.read("victim"), b"kept");
    assert_eq!(t.join("victim").metadata().unwrap().nlink(), 2);
    assert_eq!(std::fs::read(dir.join("inside")).unwrap(), b"kept");
    assert!(!t.exists("to/r"), "{out}");
}

/// In a sticky directory the manifest of another user keeps its name, so that none can be written:
/// that is said before anything is copied.
#[test]
fn a_manifest_that_cannot_be_set_aside_is_refused_at_once() {
    if !is_root() {
        return left_out("only root has files of others");
    }
    for command in ["copy", "move"] {
        let t = TestTree::new();
        let Some(disk) = other_disk(&t) else {
            return;
        };
        t.write("r/file", "content").mode("", 0o777);
        let home = t.scratch("home");
        std::fs::create_dir_all(&home).unwrap();
        for path in [&home, &t.join("r"), &t.join("r/file")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        disk.write(MANIFEST, "another's").mode("", 0o1777);
        let to = disk.path().display();
        for dry in ["", " --dry-run"] {
            let line = format!("{command}{dry} r/file {to}/");
            let out = t.bc_line(&line).as_nobody().go();
            out.code(2)
                .stderr_has("cannot be carried on, nor get another name")
                .stderr_has("--manifest");
            assert!(!disk.exists("file") && t.exists("r/file"), "{line}");
        }
        let line = format!("{command} --manifest=none r/file {to}/");
        t.bc_line(&line).as_nobody().go().code(0);
        assert_eq!(disk.read("file"), b"content");
        assert_eq!(disk.read(MANIFEST), b"another's");
    }
}

/// The same of one's own that cannot be replaced.
#[test]
fn an_immutable_manifest_is_refused_at_once() {
    let t = TestTree::new();
    t.write("r/file", "content");
    t.bc_line("copy r to").go().code(0);
    let manifest = t.join("to").join(MANIFEST);
    let mark = |how: &str| t.run("chattr").arg(how).arg(&manifest).go();
    if tool("chattr").is_none() || !mark("+i").status.success() {
        return left_out("immutable files: no chattr, or no such attribute here");
    }
    t.write("r/new", "new");
    let runs = ["", " --dry-run"].map(|dry| t.bc_line(&format!("copy{dry} -T r to")).go());
    let is_copied = t.exists("to/new");
    mark("-i").code(0);
    for out in runs {
        out.code(2)
            .stderr_has("cannot be replaced by the manifest of this copy: rename:")
            .stderr_has("--manifest");
    }
    assert!(!is_copied);
    let out = t.bc_line("copy -T r to").go();
    out.code(0);
    assert!(!out.error_text().contains("to resume"), "{out}");
    assert_eq!(t.read("to/new"), b"new");
}

/// A copy that is complete writes none.
#[test]
fn an_immutable_manifest_keeps_no_complete_copy_from_being_done() {
    let t = TestTree::new();
    t.write("r/file", "content");
    rest();
    t.bc_line("copy r to").go().code(0);
    let manifest = t.join("to").join(MANIFEST);
    let mark = |how: &str| t.run("chattr").arg(how).arg(&manifest).go();
    if tool("chattr").is_none() || !mark("+i").status.success() {
        return left_out("immutable files: no chattr, or no such attribute here");
    }
    let runs = ["", " --dry-run"].map(|dry| t.bc_line(&format!("copy{dry} -T r to")).go());
    mark("-i").code(0);
    for out in runs {
        out.code(0);
    }
}

/// A manifest of somebody else's would be carried on as if it had been proven here.
#[test]
fn what_is_planted_for_the_manifest() {
    let digest = "00".repeat(32);
    let forged = |t: &TestTree| {
        t.write("to/old", "abc")
            .bc_line("integrity manifest --output=m to")
            .go()
            .code(0);
        let text = String::from_utf8(t.read("m")).unwrap();
        let found =
            serde_json::from_str::<serde_json::Value>(text.lines().nth(2).unwrap()).unwrap();
        let real = found["digest"].as_str().unwrap_or_default().to_owned();
        t.write(Path::new("to").join(MANIFEST), text.replace(&real, &digest));
    };
    // Anybody may write it; or it is another user's.
    let t = TestTree::new();
    t.write("r/a", "a").dir("to");
    forged(&t);
    t.mode(Path::new("to").join(MANIFEST), 0o666);
    let check = |t: &TestTree| {
        let out = t.bc_line("copy -T r to").go();
        out.code(0).stderr_has("is not carried on");
        let text = String::from_utf8(t.read(Path::new("to").join(MANIFEST))).unwrap();
        assert!(!text.contains(&digest), "{text}");
        let verify = format!("integrity verify to to/{MANIFEST}");
        t.bc_line(&verify).go().code(0);
    };
    check(&t);
    if !is_root() {
        return left_out("files of other users need root");
    }
    let t = TestTree::new();
    t.write("r/a", "a").dir("to");
    forged(&t);
    chown(t.join("to").join(MANIFEST), Some(NOBODY), None).unwrap();
    check(&t);
}

/// The same for a user, whose directory root and others have been in.
#[test]
fn what_is_planted_for_a_user() {
    if !is_root() {
        return left_out("files of other users need root");
    }
    let t = TestTree::new();
    t.write("r/a", "a").write("r/b", "b").dir("to").dir("state");
    t.write("victim", "kept").mode("victim", 0o600);
    for dir in ["to", "state"] {
        chown(t.join(dir), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let copy = |line: &str| {
        let run = t.bc_line(line).env("XDG_STATE_HOME", t.join("state"));
        run.as_nobody().go()
    };
    // A journal of root's in the place of the user's own.
    t.write("to/b", "mine");
    chown(t.join("to/b"), Some(NOBODY), Some(NOBODY)).unwrap();
    copy("copy -T r to")
        .code(1)
        .stderr_has("to/b: create: File exists");
    let journal = litter_below(&t.join("state")).next().expect("no journal");
    chown(&journal, Some(0), Some(0)).unwrap();
    let out = copy("copy -T r to");
    out.code(1)
        .stderr_has("is not ours")
        .stderr_has("File exists");
    assert_eq!(journal.metadata().unwrap().uid(), 0);
    // A link to what is not the user's under the name of the manifest, and of a file.
    t.remove("to/a").symlink("../victim", "to/a");
    let manifest = Path::new("to").join(MANIFEST);
    t.remove(&manifest).symlink("../victim", &manifest);
    copy("copy -T --on-conflict=replace r to")
        .code(2)
        .stderr_has("is no regular file");
    t.remove(&manifest);
    copy("copy -T --on-conflict=replace r to").code(0);
    assert_eq!(
        (t.read("to/a"), t.read("to/b")),
        (b"a".to_vec(), b"b".to_vec())
    );
    assert_eq!(t.read("victim"), b"kept");
}
