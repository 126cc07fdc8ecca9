//! `bc copy`: the same command once more after a copy that was complete. What that copy has made and
//! is still its source in everything is done; nothing else is.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use bc_testkit::TestTree;
use rustix::fs::{XattrFlags, setxattr};

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, complete, rich};

/// So that nothing is told apart by times that are fresh, which no copy of a real tree has.
pub fn rest() {
    std::thread::sleep(Duration::from_millis(250));
}

/// A tree whose files were at rest when they were copied, and its copy.
pub fn copied(make: fn() -> TestTree, line: &str) -> TestTree {
    let t = make();
    rest();
    t.bc_line(line).go().code(0);
    t
}

pub fn small() -> TestTree {
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
        for how in ["fail", "skip", "update", "replace", "fail"] {
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

/// What replaces takes the place of what is not the copy any more, and of nothing else.
#[test]
fn only_what_is_not_the_copy_any_more_is_replaced() {
    let t = copied(small, "copy -T r to");
    t.write("to/b", "mine").mtime("to/b", 5, 1000);
    let out = t.bc_line("copy -T -f --itemize r to").go();
    out.code(0)
        .stdout_is("= to/a: done by an earlier run\n~ to/b\n= to/l: done by an earlier run\n");
    assert_eq!(t.read("to/b"), b"two");
    let out = t.bc_line("copy -T -f --restart r to").go();
    out.code(0).stderr_has("; 6 B written");
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

/// A file that loses one of its names to the copy has one fewer in the manifest, whether the other
/// name is copied again or was recorded by an earlier copy alone.
#[test]
fn a_name_that_is_replaced_is_not_counted_any_more() {
    for line in [
        "copy -T --on-conflict=replace r to",
        "copy --on-conflict=replace r/b to",
        "copy --on-conflict=replace r/a to",
    ] {
        let t = TestTree::new();
        t.write("r/a", "the same").hard_link("r/a", "r/b");
        rest();
        t.bc_line("copy r to").go().code(0);
        let name = if line.ends_with("r/a to") { "a" } else { "b" };
        t.remove(format!("r/{name}"))
            .write(format!("r/{name}"), "another");
        rest();
        t.bc_line(line).go().code(0);
        assert_eq!(t.join("to/a").metadata().unwrap().nlink(), 1, "{line}");
        assert_eq!(t.read(format!("to/{name}")), b"another", "{line}");
        let line = format!("integrity verify to to/{MANIFEST}");
        t.bc_line(&line).go().code(0).stdout_is("");
    }
}

/// The destination of a copy to a new name is a directory afterwards, and the next copy goes into it.
#[test]
fn a_copy_that_is_made_within_a_copy_says_so() {
    let t = TestTree::new();
    t.write("a/file", "content").dir("there");
    let hint = "is a copy already: this one is made in it";
    let says = |line: &str| {
        let out = t.bc_line(line).go();
        out.code(0);
        out.error_text().contains(hint)
    };
    assert!(!says("copy a b"));
    assert!(!says("copy -T a b"));
    assert!(says("copy --dry-run a b"));
    assert!(says("copy a b"));
    assert!(t.exists("b/a/file"));
    // By now that is what the command means.
    assert!(!says("copy a b"));
    // Nor is a directory a copy that others were made in.
    assert!(!says("copy a there"));
    t.write("other/else", "other");
    assert!(!says("copy other there") && !says("copy other b"));
}
