//! System calls that fail, one in each run: never a wrong digest, never exit code 0 with something
//! missing, never a lost content.

use std::collections::BTreeSet;

use bc_testkit::{Outcome, TestTree};

use crate::common::Bc;
use crate::strace;

/// Calls, and the errors that they fail with in turn.
const FAULTS: [(&str, &[&str]); 16] = [
    ("openat2", &["EIO", "EACCES", "EMFILE", "EINTR"]),
    ("openat", &["EMFILE", "EACCES", "EIO", "EINTR"]),
    ("statx", &["EIO", "EACCES"]),
    ("newfstatat", &["EIO", "EACCES"]),
    ("getdents64", &["EIO", "EACCES"]),
    ("read", &["EIO", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("preadv2", &["EIO", "EINTR"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("pwrite64", &["ENOSPC", "EIO", "EINTR"]),
    ("pwritev2", &["ENOSPC", "EIO", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("renameat2", &["EIO", "ENOSPC", "EACCES"]),
    ("linkat", &["EIO", "ENOSPC", "EACCES"]),
    ("unlinkat", &["EIO", "EACCES"]),
];

/// What each job does, by one of these calls: how many it makes in all is the C library's choice.
const EACH_JOB: [&[&str]; 4] = [
    &["openat2", "openat"],
    &["getdents64"],
    &["preadv2", "pread64", "read"],
    &["pwritev2", "write"],
];

/// Three copies of one file and two others, and manifests of them from before one was changed.
fn tree() -> TestTree {
    let t = TestTree::new();
    for (name, content) in FILES {
        t.write(format!("r/{name}"), content);
    }
    t
}

const FILES: [(&str, &str); 5] = [
    ("a/keep", "same"),
    ("b/one", "same"),
    ("b/two", "same"),
    ("b/other", "another"),
    ("c", "third"),
];

/// Runs `line` in a tree of its own each time, with each kind of call failing at its last and at some
/// before that, each time with another error; `check` is told how it went.
pub fn each_fault(
    line: &str,
    make: impl Fn() -> TestTree,
    check: impl Fn(&TestTree, &Outcome, &str),
) {
    if !strace::is_able() {
        return;
    }
    let mut sweep = strace::faults(&FAULTS, 3);
    while let Some(point) = sweep.next() {
        let t = make();
        let error = strace::error(&FAULTS, &point, &sweep);
        let (out, failed) = strace::disturbed(&mut sweep, &t, &point, &error, line);
        let context = format!("{line}: {error} at {point}: {out}");
        match out.status.code() {
            Some(0) => {}
            // Whoever cannot write a message has none; and a difference is none.
            Some(1 | 2) if point.call == "write" || !failed => {}
            Some(1 | 2) => assert!(!out.stderr.is_empty(), "{context}"),
            Some(127) if out.error_text().contains("shared librar") => {}
            _ => panic!("{context}"),
        }
        check(&t, &out, &context);
    }
    for calls in EACH_JOB {
        let reached = sweep.reached();
        assert!(
            sweep.has_met(calls),
            "{line}: {reached} points, none of {calls:?}"
        );
    }
}

/// The lines that are `wanted` of a text that may end within one.
fn lines(out: &Outcome, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let text = out.text();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter(|line| wanted(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn hash_gives_no_wrong_digest() {
    let expected = tree().bc_line("hash r").go().code(0).text();
    let expected: BTreeSet<String> = expected.lines().map(str::to_owned).collect();
    each_fault("hash r", tree, |_, out, context| {
        let found = lines(out, |_| true);
        assert!(found.is_subset(&expected), "{context}");
        if out.status.success() {
            assert_eq!(found, expected, "{context}");
        }
    });
}

#[test]
fn dup_calls_nothing_equal_that_is_not() {
    let expected = tree().bc_line("dup --format=json r").go().code(0).text();
    let names = |text: &str| -> BTreeSet<&str> {
        let names = FILES.map(|(name, _)| name).into_iter();
        names
            .filter(|name| text.contains(&format!("/{name}\"")))
            .collect()
    };
    let all = names(&expected);
    assert_eq!(all, BTreeSet::from(["a/keep", "b/one", "b/two"]));
    each_fault("dup --format=json r", tree, |_, out, context| {
        let text = out.text();
        let found = names(&text);
        if out.status.success() {
            assert_eq!(found, all, "{context}");
        } else if let Ok(report) = serde_json::from_str::<serde_json::Value>(&text) {
            // Files that were not read are named for that only.
            let groups = report["groups"].to_string();
            assert!(names(&groups).is_subset(&all), "{context}");
        }
    });
}

#[test]
fn integrity_manifest_records_no_wrong_digest() {
    let digests = |t: &TestTree| {
        let out = t.bc_line("hash r").go();
        let text = out.code(0).text();
        text.lines().map(|line| line[..64].to_owned()).collect()
    };
    let expected: BTreeSet<String> = digests(&tree());
    let line = "integrity manifest --output=out r";
    each_fault(line, tree, |t, out, context| {
        // Whole or not there at all.
        if !t.exists("out") {
            assert_ne!(out.status.code(), Some(0), "{context}");
            return;
        }
        let text = String::from_utf8(t.read("out")).unwrap();
        let verified = t.bc_line("integrity verify r out").go();
        assert_ne!(verified.status.code(), Some(2), "{context}{verified}");
        let mut found = BTreeSet::new();
        for entry in text.lines() {
            let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
            if let Some(digest) = entry["digest"].as_str() {
                found.insert(digest.to_owned());
            }
        }
        assert!(found.is_subset(&expected), "{context}");
        if out.status.success() {
            assert_eq!(found, expected, "{context}");
            assert_eq!(verified.status.code(), Some(0), "{context}{verified}");
        }
    });
}

/// The tree and a manifest of it, then a file of it is changed, one is removed and one is new.
fn changed() -> TestTree {
    let t = tree();
    t.bc_line("integrity manifest --output=m r").go().code(0);
    t.write("r/c", "thirD")
        .remove("r/b/other")
        .write("r/new", "new");
    t
}

#[test]
fn integrity_verify_never_calls_a_changed_tree_unchanged() {
    let whole = changed().bc_line("integrity verify r m").go();
    assert_eq!(whole.status.code(), Some(1));
    each_fault("integrity verify r m", changed, |_, out, context| {
        assert_ne!(out.status.code(), Some(0), "{context}");
    });
}

#[test]
fn integrity_update_leaves_a_whole_manifest() {
    each_fault("integrity update r m", changed, |t, out, context| {
        let verified = t.bc_line("integrity verify r m").go();
        if out.status.success() {
            assert_eq!(verified.status.code(), Some(0), "{context}{verified}");
        }
        assert_ne!(verified.status.code(), Some(2), "{context}{verified}");
    });
}

/// What a run of prune that fails in some way leaves, the next one finishes.
fn prune_loses_no_content(action: &str) {
    let line = format!("dup prune --action={action} --keep=first --yes --journal=../j r");
    let may_go = matches!(action, "delete" | "move:moved");
    each_fault(&line, tree, |t, out, context| {
        for (name, expected) in FILES {
            match std::fs::read_to_string(t.join(format!("r/{name}"))) {
                Ok(found) => assert_eq!(found, expected, "{context}{name}"),
                // Only what may go goes.
                Err(_) => assert!(may_go && name.starts_with("b/"), "{context}{name}"),
            }
        }
        let again = t.bc_line(&line.replace("../j", "../second")).go();
        assert_eq!(again.status.code(), Some(0), "{context}{again}");
        assert!(t.exists("r/b/other"), "{context}{again}");
        if out.status.success() {
            assert!(again.stdout.is_empty(), "{context}{again}");
        }
    });
}

#[test]
fn prune_loses_no_content_linking() {
    prune_loses_no_content("hardlink");
}

#[test]
fn prune_loses_no_content_deleting() {
    prune_loses_no_content("delete");
}

#[test]
fn prune_loses_no_content_moving() {
    prune_loses_no_content("move:moved");
}
