//! `bc integrity restore` as a user meets it: what it says, how it ends, and what is left of it
//! wherever it is killed.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use bc_testkit::{TestTree, is_root, left_out, seen};
use serde_json::Value;

use crate::common::Bc;
use crate::strace;

/// A tree `r` with its manifest `m` and a copy `copy`; then one file is damaged, one is gone, and
/// one that has two names is damaged, too.
fn wounded() -> TestTree {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/a/large", vec![7; 200_000])
        .write("r/gone/deep", "deep")
        .write("r/two", "names")
        .hard_link("r/two", "r/a/names")
        .symlink("a/file", "r/link")
        .mode("r/a/file", 0o640)
        .mode("r/gone", 0o750);
    for (path, seconds) in [("r/a/file", 5), ("r/a/large", 7), ("r/two", 8), ("r/a", 9)] {
        t.mtime(path, seconds, 123_456_789);
    }
    t.bc_line("integrity manifest --output=m r").go().code(0);
    t.mode("m", 0o600);
    t.run("cp").args(["-a", "r", "copy"]).go().code(0);
    t.write("r/a/file", "cOntent").write("r/two", "nAmes");
    t.mtime("r/a/file", 5, 123_456_789)
        .mtime("r/two", 8, 123_456_789);
    t.remove("r/gone").remove("r/link");
    t
}

const LINE: &str = "integrity restore --from=copy r m";

/// Files by path: content.
fn contents(t: &TestTree) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let all = seen(&t.join("r"), "none").unwrap().into_iter();
    all.filter(|(_, seen)| seen.mode & 0o170_000 == 0o100_000)
        .map(|(path, seen)| (path, seen.content))
        .collect()
}

/// Stages in the tree.
fn litter(t: &TestTree) -> usize {
    let all = seen(&t.join("r"), "none").unwrap().into_keys();
    all.filter(|path| path.to_string_lossy().contains(".bc-copy."))
        .count()
}

#[test]
fn what_it_says() {
    let t = wounded();
    let out = t.bc_line(&format!("{LINE} --dry-run")).go();
    out.code(0)
        .stderr_has("dry run: nothing is written: 6 restored");
    assert_eq!(out.text().lines().count(), 6, "{out}");
    let out = t.bc_line(LINE).go();
    out.code(0)
        .stdout_has("+ a/file: from copy/a/file; what was there is a/file.damaged-")
        .stdout_has("+ gone\n")
        .stdout_has("+ gone/deep: from copy/gone/deep\n")
        .stdout_has("+ link\n")
        .stdout_has("+ two: linked to a/names")
        .stderr_has("6 restored");
    let out = t.bc_line("integrity verify r m").go();
    // But for the two second names, and the time of what `gone` lies in.
    let lines: Vec<String> = out.text().lines().map(str::to_owned).collect();
    let (added, other): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("+ "));
    assert_eq!(added.len(), 2, "{out}");
    assert!(other.iter().all(|line| line.starts_with("~m . ")), "{out}");
    assert_eq!(
        t.join("r/a").metadata().unwrap().modified().unwrap(),
        t.join("copy/a").metadata().unwrap().modified().unwrap()
    );
    t.bc_line(LINE)
        .go()
        .code(0)
        .stderr_has("nothing to restore");
}

#[test]
fn what_no_copy_holds_is_named() {
    let t = wounded();
    t.remove("copy/a/file");
    t.bc_line(LINE)
        .go()
        .code(1)
        .stdout_has("!! a/file: damaged: no copy holds it\n")
        .stderr_has("5 restored, 1 that no copy holds");
    let out = t.bc_line(&format!("{LINE} --format=json")).go();
    let lines = out.code(1).text();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["command"], "restore");
    assert_eq!(lines[1]["type"], "missing");
    assert_eq!(
        (&lines[1]["path"], &lines[1]["loss"]),
        (&"a/file".into(), &"damaged".into())
    );
    assert_eq!(lines[2]["missing"], 1);
}

#[test]
fn what_is_asked_must_make_sense() {
    let t = wounded();
    let before = contents(&t);
    let text = String::from_utf8(t.read("m")).unwrap();
    let (cut, _) = text.trim_end().rsplit_once('\n').unwrap();
    t.dir("empty").write("cut", format!("{cut}\n"));
    for (line, says) in [
        ("integrity restore --from=none r m", "none: stat: "),
        ("integrity restore --from=copy none m", "none: "),
        ("integrity restore --from=copy r none", "none: open: "),
        ("integrity restore --from=copy r cut", "truncated"),
        ("integrity restore --from=copy empty m", "not mounted?"),
        ("integrity restore --from=copy r", "MANIFEST"),
        (
            "integrity restore --from=/dev/null r m",
            "neither a directory nor a file",
        ),
    ] {
        t.bc_line(line).go().code(2).stderr_has(says);
        assert_eq!(contents(&t), before, "{line}");
    }
}

/// Where nothing can be written, that is foreseen, named and harmless.
#[test]
fn a_directory_that_cannot_be_written_to() {
    if is_root() {
        return left_out("root writes everywhere");
    }
    let t = wounded();
    t.mode("r/a", 0o555);
    let before = t.read("r/a/file");
    for line in [format!("{LINE} --dry-run"), LINE.to_owned()] {
        let out = t.bc_line(&line).go();
        out.code(1)
            .stderr_has("r/a/file: create: Permission denied");
        assert_eq!(t.read("r/a/file"), before);
    }
    t.mode("r/a", 0o755);
}

/// A file that the medium cannot give is damaged, too, and is kept for who can read it one day.
#[test]
fn what_the_medium_cannot_give() {
    if !strace::is_able() {
        return;
    }
    let t = wounded();
    t.bc_line(LINE).go().code(0);
    let line = format!("{LINE} --io=sync");
    strace::unreadable(&t, "r/a/large", &line)
        .code(0)
        .stdout_has("+ a/large: from copy/a/large; what was there is a/large.damaged-unread\n");
    assert_eq!(t.read("r/a/large"), vec![7; 200_000]);
    assert_eq!(t.read("r/a/large.damaged-unread"), vec![7; 200_000]);
    // One that was edited since is not known to be what is recorded.
    t.write("r/a/large", "an edit");
    let out = strace::unreadable(&t, "r/a/large", &line);
    assert_eq!(t.read("r/a/large"), b"an edit", "{out}");
    out.code(1).stderr_has("changed since it was verified");
}

/// What comes through a pipe is nobody's.
#[test]
fn a_manifest_from_a_pipe_gives_content_only() {
    let t = wounded();
    let manifest = t.read("m");
    t.bc_line("integrity restore --from=copy r -")
        .stdin(manifest)
        .go()
        .code(0)
        .stderr_has("--trust-metadata");
    assert_eq!(t.read("r/a/file"), b"content");
    assert_eq!(t.read("r/gone/deep"), b"deep");
}

/// A tree that is one file.
#[test]
fn a_root_that_is_a_file() {
    let t = TestTree::new();
    t.write("d/one", "content").write("copy/one", "content");
    t.mtime("d/one", 5, 0);
    t.bc_line("integrity manifest --output=m d/one")
        .go()
        .code(0);
    t.write("d/one", "cOntent").mtime("d/one", 5, 0);
    t.bc_line("integrity restore --from=copy d/one m")
        .go()
        .code(0)
        .stdout_has("+ one: from copy/one");
    assert_eq!(t.read("d/one"), b"content");
}

/// Calls that change files.
const CALLS: [&str; 13] = [
    "renameat2",
    "renameat",
    "linkat",
    "symlinkat",
    "unlinkat",
    "mkdirat",
    "pwrite64",
    "write",
    "ftruncate",
    "fsync",
    "fchmod",
    "fchown",
    "utimensat",
];

/// All content that there was is there, no path has less, and nothing is half done.
#[track_caller]
fn nothing_is_gone(before: &TestTree, t: &TestTree, context: &str) {
    let good: BTreeSet<Vec<u8>> = ["content", "deep", "names"]
        .into_iter()
        .map(|text| text.as_bytes().to_vec())
        .chain([vec![7; 200_000]])
        .collect();
    let now: BTreeSet<Vec<u8>> = contents(t)
        .into_iter()
        .map(|(_, content)| content)
        .collect();
    for (path, content) in contents(before) {
        assert!(now.contains(&content), "{context}: {}", path.display());
        let is = t.read(Path::new("r").join(&path));
        let better = !good.contains(&content) && good.contains(&is);
        assert!(is == content || better, "{context}: {}", path.display());
    }
}

#[test]
fn killed_at_every_call_no_content_is_gone() {
    if !strace::is_able() {
        return;
    }
    let before = wounded();
    let mut points = 0;
    for call in CALLS {
        for n in 1.. {
            let t = wounded();
            let status = strace::injected(&t, call, "signal=KILL", n, LINE).status;
            let context = format!("killed at {call} {n}");
            nothing_is_gone(&before, &t, &context);
            if status.signal() != Some(9) {
                assert_eq!(status.code(), Some(0), "{context}");
                break;
            }
            points += 1;
            let left = litter(&t);
            let out = t.bc_line(LINE).go();
            assert_eq!(out.status.code(), Some(0), "{context}: {out}");
            let named = out
                .error_text()
                .matches("an interrupted run has left")
                .count();
            assert_eq!(named, left, "{context}: {out}");
            assert!(left <= 1 && litter(&t) == left, "{context}: {out}");
            nothing_is_gone(&before, &t, &context);
            for (path, content) in [
                ("a/file", "content"),
                ("gone/deep", "deep"),
                ("two", "names"),
                ("a/names", "names"),
            ] {
                assert_eq!(
                    t.read(Path::new("r").join(path)),
                    content.as_bytes(),
                    "{context}: {path}"
                );
            }
        }
    }
    assert!(points >= 15, "{points}");
}

#[test]
fn every_fault_is_told_and_no_content_is_gone() {
    if !strace::is_able() {
        return;
    }
    let before = wounded();
    for (call, fate) in [
        ("renameat2", "error=EIO"),
        ("renameat2", "error=EINVAL"),
        ("linkat", "error=EPERM"),
        ("linkat", "error=ENOSPC"),
        ("pwrite64", "error=ENOSPC"),
        ("ftruncate", "error=EDQUOT"),
        ("fsync", "error=EIO"),
        ("mkdirat", "error=EROFS"),
        ("symlinkat", "error=EROFS"),
    ] {
        for n in 1.. {
            let t = wounded();
            let out = strace::injected(&t, call, fate, n, LINE);
            let context = format!("{call} {n} {fate}: {out}");
            nothing_is_gone(&before, &t, &context);
            let code = out.status.code();
            assert!(matches!(code, Some(0 | 1)), "{context}");
            let line = t.bc_line(LINE).go();
            assert_eq!(line.status.code(), Some(0), "{context}: {line}");
            let log = std::fs::read_to_string(t.scratch("log")).unwrap();
            if !log.contains("(INJECTED)") {
                assert_eq!(code, Some(0), "{context}");
                break;
            }
        }
    }
}
