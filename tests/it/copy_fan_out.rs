//! `bc copy` to several destinations at once: read once, and each of them as if it were alone.

use std::path::Path;

use bc_testkit::{TestTree, full_disk, is_root, left_out, seen};

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, complete, litter, nothing_is_half_done, tree};
use crate::strace::{self, KILL};

/// Both copies are what their source is, and have their own proof.
#[track_caller]
fn both(t: &TestTree, destinations: [&str; 2]) {
    for to in destinations {
        complete(t, to, to);
    }
}

#[test]
fn each_destination_is_a_copy_with_its_own_manifest() {
    for line in [
        "copy r one --to=two",
        "copy r --to=one --to=two",
        "copy --verify=read --sync=batch --algorithm=sha256 r one --to=two",
    ] {
        let t = tree();
        let out = t.bc_line(line).go();
        out.code(0)
            .stderr_has("one: 7 copied of 7")
            .stderr_has("two: 7 copied of 7");
        both(&t, ["one", "two"]);
        // Further names are names within each of them.
        for to in ["one", "two"] {
            use std::os::unix::fs::MetadataExt;
            let inode = |name: &str| t.join(to).join(name).metadata().unwrap().ino();
            assert_eq!(inode("a/file"), inode("second"), "{to}");
        }
        assert!(t.exists("r/a/file"));
    }
}

/// Where it goes is the rule of each: into a directory, or in the place of what is not there.
#[test]
fn each_is_understood_as_a_destination_is() {
    let t = tree();
    t.dir("into").write("other/file", "more");
    t.bc_line("copy r --to=into --to=new").go().code(0);
    assert!(t.exists("into/r/a/file") && t.exists("new/a/file"));
    t.dir("third").dir("fourth");
    t.bc_line("copy r other third --to=fourth").go().code(0);
    for to in ["third", "fourth"] {
        assert!(t.exists(Path::new(to).join("r/a/file")), "{to}");
        assert_eq!(t.read(Path::new(to).join("other/file")), b"more");
        let verify = format!("integrity verify {to} {to}/{MANIFEST}");
        t.bc_line(&verify).go().code(0);
    }
    t.bc_line("copy -T r third --to=exact").go().code(0);
    assert!(t.exists("third/a/file") && t.exists("exact/a/file"));
    // Nothing is written by a dry run, and each is told of.
    let out = t.bc_line("copy --dry-run r --to=x --to=y").go();
    out.code(0)
        .stdout_has("+ x/a/file")
        .stdout_has("+ y/a/file");
    assert!(!t.exists("x") && !t.exists("y"));
}

#[test]
fn destinations_must_be_apart() {
    let t = tree();
    t.dir("to/sub").symlink("to", "way").symlink("r/a", "in");
    for (line, says) in [
        ("copy r to --to=to", "same destination"),
        ("copy r to --to=./to/../to/", "same destination"),
        ("copy r to --to=way", "same destination"),
        ("copy r new --to=./new", "same destination"),
        ("copy -T r new --to=way/../new", "same destination"),
        ("copy r to --to=to/sub", "lies in"),
        ("copy r to/sub --to=to", "lies in"),
        ("copy r to/sub/new --to=way", "lies in"),
        ("copy -T r to --to=to/sub/new", "lies in"),
        ("copy r to --to=r/new", "into itself"),
        ("copy r to --to=in", "into itself"),
        ("copy --manifest=m r to --to=new", "its own"),
        ("copy --to=to", "at least one source"),
        ("copy -T r in to --to=new", "-T"),
    ] {
        let before = seen(t.path(), MANIFEST).unwrap();
        let out = t.bc_line(line).go();
        out.code(2).stderr_has(says);
        assert_eq!(seen(t.path(), MANIFEST).unwrap(), before, "{line}: {out}");
        assert!(litter(&t).is_empty(), "{line}");
    }
}

/// Conflicts, failures and counts are those of each destination.
#[test]
fn one_that_fails_stops_none_of_the_others() {
    let t = tree();
    t.write("one/a/large", "mine").write("two/link", "mine too");
    let out = t.bc_line("copy -T r one --to=two --to=three").go();
    out.code(1)
        .stderr_has("one/a/large: create: File exists")
        .stderr_has("two/link: create: File exists")
        .stderr_has("one: 6 copied, 1 failed of 7")
        .stderr_has("two: 6 copied, 1 failed of 7")
        .stderr_has("three: 7 copied of 7");
    assert_eq!(t.read("one/a/large"), b"mine");
    assert_eq!(t.read("two/link"), b"mine too");
    complete_of(&t, "three");
    // The same command tries what failed; what is complete is none the worse for it.
    let out = t
        .bc_line("copy -T --on-conflict=replace r one --to=two --to=three")
        .go();
    out.code(0).stderr_has("of them by an earlier run");
    both(&t, ["one", "two"]);
    // What fails of the source fails at each, and is told once.
    t.remove("three");
    if !is_root() {
        t.mode("r/a/large", 0);
        let out = t.bc_line("copy r --to=three --to=four").go();
        out.code(1)
            .stderr_has("three: 6 copied, 1 failed of 7")
            .stderr_has("four: 6 copied, 1 failed of 7");
        let reported = out.error_text().matches("Permission denied").count();
        assert_eq!(reported, 1, "{out}");
    }
}

/// As [`complete`], where others have left a journal.
#[track_caller]
fn complete_of(t: &TestTree, to: &str) {
    let (from, copy) = (seen(&t.join("r"), MANIFEST), seen(&t.join(to), MANIFEST));
    assert_eq!(from.unwrap(), copy.unwrap());
    let verify = format!("integrity verify {to} {to}/{MANIFEST}");
    t.bc_line(&verify).go().code(0);
}

#[test]
fn a_full_disk_stops_none_of_the_others() {
    let disk = match full_disk(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = tree();
    for number in 0..20 {
        t.write(format!("r/{number:02}"), vec![number; 100_000]);
    }
    // Blocks of it are written by all workers, to both.
    t.write("h/huge", vec![5; 65 << 20]).mtime("h/huge", 5, 0);
    let line = format!("copy h --to={} --to=h2", disk.path().join("h").display());
    t.bc_line(&line)
        .go()
        .code(2)
        .stderr_has("h2: 2 copied of 2");
    assert!(t.read("h/huge") == t.read("h2/huge") && !disk.path().join("h/huge").exists());
    let full = disk.path().join("to");
    let line = format!("copy r --to={} --to=two", full.display());
    let out = t.bc_line(&line).go();
    out.code(2)
        .stderr_has("the destination takes no more")
        .stderr_has("two: 27 copied of 27");
    complete_of(&t, "two");
    // Nor does one that is not there.
    let out = t.bc_line("copy r/a none/there --to=third").go();
    out.code(2)
        .stderr_has("none: open directory: No such file")
        .stderr_has("third: 3 copied of 3");
}

/// Each byte of the source is read once, whatever its size and however many take it.
#[test]
fn each_byte_is_read_once() {
    if !strace::is_able() {
        return;
    }
    let t = TestTree::new();
    t.write("r/small", vec![1; 5_000])
        .write("r/medium", vec![2; 700_000])
        .write("r/large", vec![3; 65 << 20]);
    for name in ["small", "medium", "large"] {
        t.mtime(Path::new("r").join(name), 5, 1);
    }
    for algorithm in ["blake3", "xxh128", "none"] {
        let line = format!("copy --reflink=never --algorithm={algorithm} r one --to=two");
        let read = strace::read_of(&t, "/tree/r/", &line);
        assert_eq!(read, 5_000 + 700_000 + (65 << 20), "{algorithm}");
        for to in ["one", "two"] {
            for name in ["small", "medium", "large"] {
                let (from, copy) = (Path::new("r").join(name), Path::new(to).join(name));
                assert!(t.read(from) == t.read(copy), "{algorithm}: {to}/{name}");
            }
            std::fs::remove_dir_all(t.join(to)).unwrap();
        }
    }
}

/// Killed anywhere, the same command completes each of them, and so does one that names only some.
#[test]
fn killed_it_goes_on_at_each() {
    if !strace::is_able() {
        return;
    }
    let line = "copy r one --to=two";
    let mut sweep = strace::kills(2)
        .of(&["renameat2", "linkat", "pwrite64"])
        .ways(2);
    while let Some(point) = sweep.next() {
        let t = tree();
        let context = format!("killed at {point}");
        let (_, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, line);
        for to in ["one", "two"] {
            nothing_is_half_done(&t, to, &context);
        }
        if killed && sweep.way() == 0 {
            t.bc_line("copy r two").go();
        }
        let out = t.bc_line(line).go();
        let over = ["one", "two"].map(|to| t.exists(Path::new(to).join("r")));
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
        for (to, over) in ["one", "two"].into_iter().zip(over) {
            // What was complete before is a directory now, to copy into.
            match over {
                true => assert!(t.exists(Path::new(to).join("r/second")), "{context}"),
                false => complete(&t, to, &context),
            }
        }
    }
    assert!(sweep.reached() > 1, "{}", sweep.reached());
}
