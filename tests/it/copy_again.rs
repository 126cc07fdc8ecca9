//! `bc copy`: the same command once more after a copy that was complete. What that copy has made and
//! is still its source in everything is done; nothing else is.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use bc_manifest::integrity::{Found, Policy, Reader, Writer};
use bc_testkit::TestTree;
use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with, setxattr};

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, complete, rich};
use crate::strace;

/// So that nothing is told apart by times that are fresh, which no copy of a real tree has.
fn rest() {
    std::thread::sleep(Duration::from_millis(250));
}

/// A tree whose files were at rest when they were copied, and its copy.
fn copied(make: fn() -> TestTree, line: &str) -> TestTree {
    let t = make();
    rest();
    t.bc_line(line).go().code(0);
    t
}

fn small() -> TestTree {
    let t = TestTree::new();
    t.write("r/a", "one")
        .write("r/b", "two")
        .symlink("a", "r/l");
    for name in ["r/a", "r/b"] {
        t.mtime(name, 5, 1000);
    }
    t
}

/// Inode, last change and mode of everything at the destination.
fn state(t: &TestTree, at: &str) -> Vec<(String, u64, i64, i64, u32)> {
    let mut found = Vec::new();
    let mut left = vec![t.join(at)];
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            left.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        let name = path.display().to_string();
        found.push((
            name,
            meta.ino(),
            meta.ctime(),
            meta.ctime_nsec(),
            meta.mode(),
        ));
    }
    found.sort();
    found
}

#[test]
fn nothing_is_to_be_done() {
    for line in ["copy -T r to", "copy r/. there", "copy r r/a into"] {
        let make = || {
            let t = rich();
            t.dir("there").dir("into");
            t
        };
        let t = copied(make, line);
        let to = line.rsplit(' ').next().unwrap();
        for how in ["fail", "skip", "update", "fail"] {
            let before = state(&t, to);
            let out = t.bc_line(&format!("{line} --on-conflict={how}")).go();
            out.code(0).stderr_has("; 0 B written");
            // Directories that have attributes or lists get them again, and their times after that.
            let files = |all: Vec<(String, u64, i64, i64, u32)>| -> Vec<_> {
                let is_file = |one: &(String, u64, i64, i64, u32)| one.4 & 0o170_000 != 0o040_000;
                let is_kept = |name: &str| !name.ends_with(MANIFEST);
                let files = all.into_iter().filter(is_file);
                files.filter(|one| is_kept(&one.0)).collect()
            };
            assert_eq!(files(before), files(state(&t, to)), "{line} {how}");
            let verify = format!("integrity verify {to} {to}/{MANIFEST}");
            t.bc_line(&verify).go().code(0);
        }
        if line.contains("-T") {
            complete(&t, to, line);
        }
    }
}

#[test]
fn a_manifest_that_would_say_the_same_is_left_as_it_is() {
    let t = copied(small, "copy -T r to");
    let before = state(&t, "to");
    t.bc_line("copy -T r to").go().code(0);
    assert_eq!(before, state(&t, "to"));
    // One file more, and it is another one.
    t.write("r/c", "three");
    let out = t.bc_line("copy -T r to").go();
    out.code(0).stderr_has("5 B written");
    let manifest = t.read(format!("to/{MANIFEST}"));
    assert!(String::from_utf8(manifest).unwrap().contains("\"c\""));
}

/// Written to without another size or another time: its last change tells.
#[test]
fn a_source_that_was_changed_behind_its_time_is_not_done() {
    let t = copied(small, "copy -T r to");
    t.write("r/a", "ONE").mtime("r/a", 5, 1000);
    let out = t.bc_line("copy -T r to").go();
    out.code(1).stderr_has("to/a: create: ");
    assert_eq!(t.read("to/a"), b"one");
    // A failure is no proof: it is none the next time either, when it is at rest.
    rest();
    for _ in 0..2 {
        let out = t.bc_line("copy -T r to").go();
        out.code(1).stderr_has("to/a: create: ");
    }
    t.bc_line("copy -T --on-conflict=replace r to").go().code(0);
    assert_eq!(t.read("to/a"), b"ONE");
    t.bc_line("copy -T r to")
        .go()
        .code(0)
        .stderr_has("; 0 B written");
}

/// A further name changes a source's last change, and nothing of what is copied.
#[test]
fn a_further_name_of_a_source_makes_no_difference() {
    let t = copied(small, "copy -T r to");
    t.hard_link("r/a", "elsewhere");
    t.bc_line("copy -T r to")
        .go()
        .code(0)
        .stderr_has("; 0 B written");
}

/// Other permissions or attributes are to be copied, at whichever end they have changed, and that is
/// what is asked about.
#[test]
fn what_has_other_metadata_is_not_done() {
    for changed in ["r/a", "to/a"] {
        let t = copied(small, "copy -T r to");
        t.mode(changed, 0o600);
        let out = t.bc_line("copy -T r to").go();
        out.code(1).stderr_has("to/a: create: ");
        let t = copied(small, "copy -T r to");
        if setxattr(t.join(changed), "user.x", b"y", XattrFlags::empty()).is_ok() {
            let out = t.bc_line("copy -T r to").go();
            out.code(1).stderr_has("to/a: create: ");
        }
    }
    let t = small();
    t.mode("r/a", 0o4751);
    t.bc_line("copy -T --preserve=times r to").go().code(0);
    let out = t.bc_line("copy -T r to").go();
    out.code(1).stderr_has("to/a: create: ");
}

/// The files of a directory that got another name have no other change than that.
#[test]
fn what_came_there_with_its_directory_is_not_done() {
    let t = TestTree::new();
    for (name, content) in [("r/v1/a", "one"), ("r/v2/a", "two")] {
        t.write(name, content).mtime(name, 5, 1000);
    }
    rest();
    t.bc_line("copy -T r to").go().code(0);
    for (from, to) in [("r/v1", "r/old"), ("r/v2", "r/v1")] {
        std::fs::rename(t.join(from), t.join(to)).unwrap();
    }
    let out = t.bc_line("copy -T r to").go();
    out.code(1).stderr_has("to/v1/a: create: ");
    let replace = "copy -T --on-conflict=replace r to";
    t.bc_line(replace).go().code(0);
    assert_eq!(t.read("to/v1/a"), b"two");
}

#[test]
fn what_was_put_in_its_place_is_not_done() {
    let t = copied(small, "copy -T r to");
    for name in ["to/a", "to/l"] {
        std::fs::remove_file(t.join(name)).unwrap();
    }
    t.write("to/a", "One")
        .mtime("to/a", 5, 1000)
        .symlink("b", "to/l");
    let out = t.bc_line("copy -T r to").go();
    out.code(1)
        .stderr_has("to/a: create: ")
        .stderr_has("to/l: create: ");
    assert_eq!(t.read("to/a"), b"One");
}

/// What was left as it was has not been compared with its source, however alike they look.
#[test]
fn what_was_skipped_is_not_done() {
    let t = small();
    t.write("to/a", "One").mtime("to/a", 5, 1000);
    rest();
    let skip = "copy -T --on-conflict=skip r to";
    t.bc_line(skip).go().code(0).stderr_has("left as they were");
    let out = t.bc_line("copy -T r to").go();
    out.code(1).stderr_has("to/a: create: ");
    t.bc_line(skip).go().code(0).stderr_has("left as they were");
    t.bc_line("copy -T r to").go().code(1);
}

/// Who asks for a comparison gets one, and decay is found by it.
#[test]
fn a_comparison_is_made_if_it_is_asked_for() {
    let t = copied(small, "copy -T r to");
    t.write("to/a", "onE").mtime("to/a", 5, 1000);
    let out = t.bc_line("copy -T --on-conflict=verify r to").go();
    out.code(0).stderr_has("3 B written");
    assert_eq!(t.read("to/a"), b"one");
}

#[test]
fn everything_anew_is_anew() {
    let t = copied(small, "copy -T r to");
    let out = t
        .bc_line("copy -T --restart --on-conflict=replace r to")
        .go();
    out.code(0).stderr_has("6 B written");
}

/// A manifest that is not whole proves nothing, though its first lines are.
#[test]
fn a_manifest_that_was_cut_off_says_nothing() {
    let t = copied(small, "copy -T r to");
    let manifest = format!("to/{MANIFEST}");
    let whole = t.read(&manifest);
    for bytes in [
        whole[..whole.len() - 30].to_vec(),
        [&whole[..], b"{}\n"].concat(),
        String::from_utf8(whole.clone())
            .unwrap()
            .replace(":3,", ":4,")
            .into_bytes(),
    ] {
        assert_ne!(bytes, whole);
        t.write(&manifest, bytes).mode(&manifest, 0o600);
        let out = t.bc_line("copy -T --dry-run --itemize r to").go();
        out.code(1)
            .stderr_has("to/a: create: ")
            .stderr_has("to/l: create: ");
    }
}

/// Another source that comes to the same place is another one, however alike its files look.
#[test]
fn what_was_copied_from_elsewhere_is_not_done() {
    let t = small();
    t.write("other/r/a", "ONE")
        .mtime("other/r/a", 5, 1000)
        .dir("to");
    rest();
    t.bc_line("copy r to").go().code(0);
    let other = || {
        let out = t.bc_line("copy other/r to").go();
        out.code(1).stderr_has("to/r/a: create: ");
    };
    other();
    // What was found of the first is not taken for what was found of the second the next time.
    other();
    assert_eq!(t.read("to/r/a"), b"one");
    // A neighbour of the first leaves it what it is.
    let t = small();
    t.write("r2/a", "three").dir("to");
    rest();
    for line in ["copy r to", "copy r2 to"] {
        t.bc_line(line).go().code(0);
    }
    for line in ["copy r to", "copy r2 to", "copy r r2 to"] {
        t.bc_line(line).go().code(0).stderr_has("; 0 B written");
    }
}

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
            (entry.tried_at, entry.found) = (Some(1), Some(Found::Damaged));
        }
        writer.write(&entry).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(&manifest, new).unwrap();
    let read = |name: &str| strace::read_of(&t, &format!("/tree/{name}"), "copy -T --dry-run r to");
    assert_eq!(read("r/large"), 0);
    assert_ne!(read("r/small"), 0);
}
