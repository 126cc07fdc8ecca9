//! `bc copy`: what an earlier run has taken down of both ends proves that it is done. Nothing of that
//! is read again, and no change at either end is overlooked.

use bc_manifest::integrity::{ContentFault, Policy, Reader, Writer};
use bc_testkit::TestTree;
use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with, setxattr};

use crate::common::{BC, Bc};
use crate::copy_again::{copied, rest, small};
use crate::copy_trees::MANIFEST;
use crate::strace;

/// Files of all sizes that are copied in different ways, one with two names.
fn sizes() -> TestTree {
    let t = TestTree::new();
    for (name, size) in [
        ("r/small", 5_000),
        ("r/d/medium", 700_000),
        ("r/large", 65 << 20),
    ] {
        t.write(name, vec![7; size]).mtime(name, 5, 1000);
    }
    t.hard_link("r/d/medium", "r/further");
    t
}

/// Bytes of both ends that a run reads, manifests aside.
fn bytes_read(t: &TestTree, line: &str) -> u64 {
    ["r/small", "r/d", "r/large", "r/further"]
        .iter()
        .flat_map(|name| [(*name).to_owned(), name.replacen('r', "to", 1)])
        .map(|name| strace::read_of(t, &format!("/tree/{name}"), line))
        .sum()
}

/// What a copy has taken down of both ends proves it done.
#[test]
fn what_is_done_is_not_read_again() {
    if !strace::is_able() {
        return;
    }
    for sync in ["none", "end", "batch", "file"] {
        let line = format!("copy -T --sync={sync} r to");
        let t = copied(sizes, &line);
        assert_eq!(bytes_read(&t, &line), 0, "{sync}");
        // Nor if other bytes are to be forced to the disk now, or none.
        assert_eq!(bytes_read(&t, "copy -T r to"), 0, "{sync}");
        // One file more makes no other one doubtful.
        t.write("r/new", "new").mtime("r/new", 5, 1000);
        rest();
        assert_eq!(bytes_read(&t, &line), 0, "{sync}");
        assert_eq!(t.read("to/new"), b"new");
        assert_eq!(bytes_read(&t, &line), 0, "{sync}");
        // What is given otherwise now is to be looked at.
        assert_ne!(bytes_read(&t, "copy -T --preserve=mode r to"), 0, "{sync}");
    }
}

/// Whether a run takes the whole copy for done: else it begins by making its directories.
fn is_done_as_a_whole(t: &TestTree, line: &str) -> bool {
    strace::counted(t, &["mkdirat"], line).is_empty()
}

/// A change of any kind at either end, if it can be made here.
type Change = (&'static str, fn(&TestTree) -> bool);

const CHANGES: &[Change] = &[
    ("content behind its time", |t| {
        t.write("r/d/medium", vec![8; 700_000])
            .mtime("r/d/medium", 5, 1000);
        true
    }),
    ("content of the copy behind its time", |t| {
        t.write("to/small", vec![8; 5_000])
            .mtime("to/small", 5, 1000);
        true
    }),
    ("mode", |t| {
        t.mode("r/small", 0o600);
        true
    }),
    ("mode of the copy", |t| {
        t.mode("to/d/medium", 0o600);
        true
    }),
    ("mode of a directory", |t| {
        t.mode("r/d", 0o700);
        true
    }),
    ("mode of a directory's copy", |t| {
        t.mode("to/d", 0o700);
        true
    }),
    ("mode of the root's copy", |t| {
        t.mode("to", 0o700);
        true
    }),
    ("attribute", |t| has_set(t, "r/small")),
    ("attribute of the copy", |t| has_set(t, "to/small")),
    ("attribute of a directory", |t| has_set(t, "r/d")),
    ("attribute of a directory's copy", |t| has_set(t, "to/d")),
    ("attribute of the root", |t| has_set(t, "r")),
    ("attribute of the root's copy", |t| has_set(t, "to")),
    ("two that have changed places", |t| {
        swapped(t, "r/small", "r/e/same")
    }),
    ("two copies that have changed places", |t| {
        swapped(t, "to/small", "to/e/same")
    }),
    ("directories that have changed places", |t| {
        swapped(t, "r/d", "r/e")
    }),
    ("a file more", |t| {
        t.write("r/e/more", "");
        true
    }),
    ("a file less", |t| {
        std::fs::remove_file(t.join("r/e/same")).is_ok()
    }),
    ("a copy less", |t| {
        std::fs::remove_file(t.join("to/e/same")).is_ok()
    }),
    ("another link", |t| {
        std::fs::remove_file(t.join("r/link")).unwrap();
        t.symlink("smalL", "r/link");
        true
    }),
    ("another link's copy", |t| {
        std::fs::remove_file(t.join("to/link")).unwrap();
        t.symlink("smalL", "to/link");
        true
    }),
    ("a copy of its own instead of a name", |t| {
        std::fs::remove_file(t.join("to/further")).unwrap();
        t.write("to/further", vec![7; 700_000])
            .mtime("to/further", 5, 1000);
        true
    }),
    ("a file instead of a name", |t| {
        std::fs::remove_file(t.join("r/further")).unwrap();
        t.write("r/further", vec![7; 700_000])
            .mtime("r/further", 5, 1000);
        true
    }),
    ("a directory instead of a file", |t| {
        std::fs::remove_file(t.join("to/e/same")).unwrap();
        t.dir("to/e/same");
        true
    }),
];

fn swapped(t: &TestTree, one: &str, other: &str) -> bool {
    let (one, other) = (t.join(one), t.join(other));
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

fn has_set(t: &TestTree, name: &str) -> bool {
    setxattr(t.join(name), "user.x", b"y", XattrFlags::empty()).is_ok()
}

/// No change at either end is overlooked by what proves all at once, nor is it made another one of.
#[test]
fn a_change_of_any_kind_is_seen() {
    if !strace::is_able() {
        return;
    }
    let make = || {
        let t = sizes();
        t.write("r/e/same", vec![7; 5_000])
            .mtime("r/e/same", 5, 1000)
            .symlink("small", "r/link");
        t
    };
    let line = "copy -T r to";
    let t = copied(make, line);
    assert!(is_done_as_a_whole(&t, line));
    assert!(is_done_as_a_whole(&t, line));
    for options in [
        "--preserve=mode",
        "--algorithm=xxh128",
        "--on-conflict=verify",
    ] {
        let line = format!("copy -T {options} r to");
        assert!(!is_done_as_a_whole(&t, &line), "{options}");
    }
    // A neighbour's record in the same manifest is none of this copy's.
    let _ = t.bc_line("copy r/small to").go();
    assert!(!is_done_as_a_whole(&t, "copy r/e to"));
    for (what, change) in CHANGES {
        let t = copied(make, line);
        if change(&t) {
            assert!(!is_done_as_a_whole(&t, line), "{what}");
        }
    }
}

/// A source that was written to just before it was copied may have been written to since, at the
/// same time by its clock: it is compared once, and proven by that.
#[test]
fn what_was_too_fresh_is_read_once_more() {
    if !strace::is_able() {
        return;
    }
    let t = sizes();
    for name in ["r/small", "r/d/medium", "r/large"] {
        // Its last change is now, whatever its time is.
        t.mode(name, 0o640).mtime(name, 5, 1000);
    }
    let line = "copy -T r to";
    t.bc_line(line).go().code(0);
    rest();
    // That more is known now is no reason to fail where it cannot be written down.
    let out = strace::injected(&t, "renameat2", "error=EROFS", 1, line);
    out.code(0);
    let manifest = || t.read(format!("to/{MANIFEST}"));
    t.bc_line(line).go().code(0).stderr_has("; 0 B written");
    let after = manifest();
    assert_eq!(bytes_read(&t, line), 0);
    assert_eq!(manifest(), after);
    t.bc_line(&format!("integrity verify to to/{MANIFEST}"))
        .go()
        .code(0);
    let has_stamps = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("copy_stamp");
    assert!(has_stamps(&after));
}

/// Other bytes at the destination behind the same size and time, which an update has accepted.
#[test]
fn what_was_changed_at_the_destination_is_not_done() {
    let t = copied(small, "copy -T r to");
    t.write("to/a", "ONE").mtime("to/a", 5, 1000);
    let again = || {
        let out = t.bc_line("copy -T r to").go();
        out.code(1).stderr_has("to/a: create: ");
        assert_eq!(t.read("to/a"), b"ONE");
    };
    again();
    let manifest = format!("to/{MANIFEST}");
    let update = format!("integrity update --accept-damaged --reread=100% to {manifest}");
    t.bc_line(&update).go();
    t.bc_line(&format!("integrity verify to {manifest}"))
        .go()
        .code(0);
    again();
}

/// Of a file whose content was lost, as an update has found, no record says that it is done.
#[test]
fn what_is_known_to_be_damaged_is_not_done() {
    if !strace::is_able() {
        return;
    }
    let t = copied(sizes, "copy -T r to");
    let manifest = t.join(format!("to/{MANIFEST}"));
    let old = std::fs::read(&manifest).unwrap();
    let mut reader = Reader::new(&old[..], Policy::Strict).unwrap();
    let mut new = Vec::new();
    let mut writer = Writer::new(&mut new, reader.header()).unwrap();
    while let Some(mut entry) = reader.read().unwrap() {
        if entry.path == b"small" {
            assert!(entry.copy_stamp.is_some());
            (entry.tried_at, entry.found) = (Some(1), Some(ContentFault::Damaged));
        }
        writer.write(&entry).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(&manifest, new).unwrap();
    let read = |name: &str| strace::read_of(&t, &format!("/tree/{name}"), "copy -T --dry-run r to");
    assert_eq!(read("r/large"), 0);
    assert_ne!(read("r/small"), 0);
}

/// Threads that the system refuses are done without: whatever is begun, or found done, comes to its
/// end.
#[test]
fn a_refused_thread_is_done_without() {
    if !strace::is_able() {
        return;
    }
    let run = |t: &TestTree, nth: usize| {
        let inject = format!("inject=?clone3,?clone:error=EAGAIN:when={nth}+");
        let options = [
            "-f",
            "-qq",
            "-o",
            "../log",
            "-e",
            "trace=?clone3,?clone",
            "-e",
        ];
        let run = t.run("strace").args(options).arg(inject).arg(BC);
        let line = ["copy", "-T", "--threads=2", "r", "to"];
        run.args(line).go().code(0);
    };
    for nth in 1..=4 {
        let t = sizes();
        rest();
        run(&t, nth);
        t.bc_line(&format!("integrity verify to to/{MANIFEST}"))
            .go()
            .code(0);
        run(&t, nth);
        assert!(is_done_as_a_whole(&t, "copy -T r to"), "{nth}");
    }
}
