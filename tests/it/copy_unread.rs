//! `bc copy` of what cannot be read: the manifest says what is missing in the copy, and so does
//! `bc integrity verify`, however much later it is asked.

use std::os::unix::fs::PermissionsExt;

use bc_testkit::{NOBODY, Outcome, TestTree, is_root};

use crate::common::Bc;
use crate::copy_trees::MANIFEST;

/// A tree with `r/closed`, which nobody may open, and `out`, which everybody may write to.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("r/closed/file", "never seen")
        .write("r/closed/deep/er", "nor this")
        .write("r/closed-not", "beside it")
        .write("r/open/file", "copied");
    t.dir("out").mode("out", 0o777).mode("r/closed", 0);
    if is_root() {
        let home = t.scratch("home");
        std::fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    t
}

/// A command of somebody to whom permission bits count.
fn ask(t: &TestTree, line: &str) -> Outcome {
    t.bc_line(line).as_nobody().go()
}

/// The lines of a manifest that have an error, by path.
fn errors(t: &TestTree, manifest: &str) -> Vec<(String, serde_json::Value)> {
    let text = String::from_utf8(t.read(manifest)).unwrap();
    let values = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let of = |value: serde_json::Value| {
        let error = value.get("error")?.clone();
        Some((value["path"].as_str()?.to_owned(), error))
    };
    values.filter_map(of).collect()
}

fn open_up(t: &TestTree, dir: &str) {
    std::fs::set_permissions(t.join(dir), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error_of_its_own() {
    let t = tree();
    let out = ask(&t, "copy r out/to");
    out.code(1)
        .stderr_has("r/closed: open: Permission denied")
        .stderr_has("4 copied, 1 failed of 5");
    let found = errors(&t, &format!("out/to/{MANIFEST}"));
    let [(path, error)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&path[..], &error["op"]), ("closed", &"open".into()));
    assert_eq!(error["errno"], 13, "{error}");
    // Of the source as of the copy: what is below was never seen, so nothing there is new.
    open_up(&t, "r/closed");
    open_up(&t, "out/to/closed");
    for root in ["r", "out/to"] {
        let out = ask(&t, &format!("integrity verify {root} out/to/{MANIFEST}"));
        out.code(1)
            .stdout_has("?? closed: no content recorded: open: ");
        assert!(!out.text().contains("?? closed-not"), "{out}");
    }
    // Once it can be read, the same command completes the copy and the manifest has no error.
    ask(&t, "copy r out/to").code(0);
    assert_eq!(t.read("out/to/closed/deep/er"), b"nor this");
    let found = errors(&t, &format!("out/to/{MANIFEST}"));
    assert!(found.is_empty(), "{found:?}");
    ask(&t, &format!("integrity verify out/to out/to/{MANIFEST}")).code(0);
}

/// Among several sources one that cannot be opened is in the manifest, too.
#[test]
fn sources_that_cannot_be_opened() {
    let t = tree();
    let out = ask(&t, "copy r/closed out/alone");
    out.code(1)
        .stderr_has("r/closed: open: Permission denied")
        .stderr_has("0 copied, 1 failed of 1");
    assert!(!t.exists("out/alone"));
    let out = ask(&t, "copy r/closed r/open out");
    out.code(1).stderr_has("2 copied, 1 failed of 3");
    let found = errors(&t, &format!("out/{MANIFEST}"));
    let paths: Vec<&str> = found.iter().map(|(path, _)| &path[..]).collect();
    assert_eq!(paths, ["closed"], "{found:?}");
    ask(&t, &format!("integrity verify out out/{MANIFEST}")).code(1);
}

/// What its owner may not write to is copied as it is, with its manifest, and again.
#[test]
fn directories_that_may_not_be_written_to() {
    let t = tree();
    t.remove("r/closed").mode("r/open", 0o555).mode("r", 0o555);
    let mode = |path: &str| t.join(path).metadata().unwrap().permissions().mode() & 0o777;
    for line in [
        "copy r out/to",
        "copy -T --on-conflict=update r out/to",
        "copy -T --on-conflict=verify r out/to",
    ] {
        ask(&t, line).code(0);
        assert_eq!(
            (mode("out/to"), mode("out/to/open")),
            (0o555, 0o555),
            "{line}"
        );
        assert_eq!(t.read("out/to/open/file"), b"copied");
        ask(&t, &format!("integrity verify out/to out/to/{MANIFEST}")).code(0);
    }
    open_up(&t, "r");
}

/// Where a directory cannot be made, what was to be in it fails for the same reason, and says so.
#[test]
fn what_was_to_be_in_a_directory_that_cannot_be_made() {
    let t = tree();
    t.remove("r/closed").write("r/open/deep/er", "below");
    t.dir("out/to").mode("out/to", 0o555);
    let out = ask(&t, "copy -T --manifest=out/manifest r out/to");
    out.code(1)
        .stderr_has("out/to/open: mkdir: Permission denied")
        .stderr_has("out/to/open/file: make its directory: Permission denied")
        .stderr_has("out/to/open/deep: make its directory: Permission denied")
        .stderr_has("out/to/open/deep/er: make its directory: Permission denied");
    let reported = out.error_text();
    assert!(!reported.contains("No such file"), "{reported}");
    t.mode("out/to", 0o755);
}
