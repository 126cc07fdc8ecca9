//! `bc copy` as a user meets it: hostile places, full disks, other people's files, interruptions.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use bc_testkit::{TestTree, full_disk, is_root, left_out, seen};

use crate::common::Bc;

const MANIFEST: &str = ".bc-copy-manifest.jsonl";

#[test]
fn names_of_the_program() {
    let t = TestTree::new();
    t.write("r/a", "abc");
    for (nth, name) in ["bccopy", "bc-copy", "bccp"].into_iter().enumerate() {
        let to = format!("to{nth}");
        t.bc().arg0(name).args(["r", &to]).go().code(0);
        assert_eq!(t.read(Path::new(&to).join("a")), b"abc");
    }
    // Whatever a source is called, it is no subcommand.
    for name in ["copy", "help", "hash"] {
        t.write(name, name);
        let to = format!("of-{name}");
        t.bc().args(["copy", name, &to]).go().code(0);
        assert_eq!(t.read(&to), name.as_bytes());
    }
}

#[test]
fn what_is_asked_must_make_sense() {
    let t = TestTree::new();
    t.write("r/a", "abc").write("f", "abc");
    for (line, says) in [
        ("copy", "destination"),
        ("copy r", "destination"),
        ("copy r f", "mkdir"),
        ("copy f r none", "no directory"),
        ("copy -T r f to", "-T"),
        ("copy f none/", "no such directory"),
        ("copy r r", "into itself"),
        ("copy r r/a/b", ""),
        ("copy r ./r/new", "into itself"),
        ("copy f f", "is what it would be copied to"),
        ("copy --files-from=f r to", "--files-from"),
        ("copy --follow-symlinks r to", "links are copied"),
        ("copy --algorithm=none --manifest=x r to", "digest"),
        ("copy none to", "none: stat: "),
        ("copy r/a f/b", ""),
        ("copy r/a r/a/", ""),
    ] {
        let out = t.bc_line(line).go();
        assert!(matches!(out.status.code(), Some(1 | 2)), "{line}: {out}");
        assert!(out.error_text().contains(says), "{line}: {out}");
        assert!(
            !t.exists("to") && t.read("f") == b"abc" && t.read("r/a") == b"abc",
            "{line}"
        );
    }
}

/// As `cp -a` copies it, but for the manifest.
#[test]
fn as_cp_does() {
    let t = TestTree::new();
    t.write("r/a/b/file", "content")
        .write("r/large", vec![3; 1 << 20])
        .hard_link("r/large", "r/a/also")
        .symlink("/nowhere", "r/a/link")
        .symlink("../r", "r/a/up")
        .fifo("r/pipe")
        .mode("r/a/b/file", 0o4711)
        .mode("r/a/b", 0o555)
        .mtime("r/a/b/file", -5, 999_999_999)
        .mtime("r/a/b", 4_000_000_000, 1);
    t.run("cp").args(["-a", "r", "theirs"]).go().code(0);
    t.bc_line("copy r ours").go().code(0);
    let (theirs, ours) = (
        seen(&t.join("theirs"), MANIFEST),
        seen(&t.join("ours"), MANIFEST),
    );
    let (theirs, ours) = (theirs.unwrap(), ours.unwrap());
    for (path, one) in &theirs {
        assert_eq!(ours.get(path), Some(one), "{}", path.display());
    }
    assert_eq!(theirs.len(), ours.len());
    for tree in ["r", "theirs", "ours"] {
        t.mode(Path::new(tree).join("a/b"), 0o755);
    }
}

#[test]
fn a_full_disk_is_told_and_gone_on_from() {
    let disk = match full_disk(1 << 20) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let t = TestTree::new();
    for number in 0..20 {
        t.write(format!("r/{number:02}"), vec![number; 100_000]);
    }
    let to = disk.path().join("to");
    let line = format!("copy r {}", to.display());
    let out = t.bc_line(&line).go();
    out.code(2)
        .stderr_has("No space left on device")
        .stderr_has("are still to be written")
        .stderr_has("are free")
        .stderr_has("run the same command again");
    for number in 0..20 {
        if let Ok(found) = std::fs::read(to.join(format!("{number:02}"))) {
            assert!(found == vec![number; 100_000], "{number}");
        }
    }
    // Room is made: the same command completes it.
    let remounted = t
        .run("mount")
        .args(["-o", "remount,size=8M"])
        .arg(disk.path())
        .go();
    if !remounted.status.success() {
        return left_out("mount cannot change the size of a tmpfs here");
    }
    let out = t.bc_line(&line).go();
    out.code(0).stderr_has("by an earlier run");
    assert_eq!(
        seen(&t.join("r"), MANIFEST).unwrap(),
        seen(&to, MANIFEST).unwrap()
    );
    t.bc_line(&format!(
        "integrity verify {0} {0}/{MANIFEST}",
        to.display()
    ))
    .go()
    .code(0);
}

/// Two copies into one destination at once: each file is one of the two, whole, and the loser says
/// so.
#[test]
fn two_copies_into_one_destination() {
    let t = TestTree::new();
    for number in 0..200 {
        t.write(format!("one/d/{number}"), format!("one {number}"))
            .write(format!("two/d/{number}"), format!("two {number}"));
    }
    t.dir("to");
    let run = |name: &str| {
        t.bc()
            .args(["copy", "-T", &format!("{name}/d"), "to/d"])
            .go()
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run("one"));
        let two = run("two");
        (one.join().unwrap(), two)
    });
    let mut of = [0, 0];
    for number in 0..200 {
        let text = String::from_utf8(t.read(format!("to/d/{number}"))).unwrap();
        let which = ["one", "two"].map(|name| format!("{name} {number}"));
        let nth = which.iter().position(|whole| *whole == text);
        of[nth.unwrap_or_else(|| panic!("{number}: {text:?}"))] += 1;
    }
    for (out, count) in [(&one, of[0]), (&two, of[1])] {
        let expected = if count == 200 { 0 } else { 1 };
        assert_eq!(out.status.code(), Some(expected), "{of:?} {out}");
        let reported = out.error_text().matches("File exists").count();
        assert_eq!(reported, 200 - count, "{out}");
    }
}

/// Links, directories and files of others under the names that a copy would use.
#[test]
fn what_others_planted_is_not_followed() {
    let t = TestTree::new();
    t.write("r/a/file", "content")
        .write("r/b", "b")
        .write("victim", "kept");
    t.dir("to/r");
    symlink("../../victim", t.join("to/r/b")).unwrap();
    symlink("../../outside", t.join("to/r/a")).unwrap();
    t.dir("outside");
    let manifest = t.join("to").join(MANIFEST);
    symlink("../victim", &manifest).unwrap();
    let line = "copy --on-conflict=replace r to";
    t.bc_line(line)
        .go()
        .code(2)
        .stderr_has("is no regular file");
    assert_eq!(t.read("victim"), b"kept");
    std::fs::remove_file(&manifest).unwrap();
    let out = t.bc_line(line).go();
    out.code(1).stderr_has("symbolic link");
    assert!(!t.exists("outside/file"), "{out}");
    assert!(
        !t.join("to/r/b").is_symlink() && t.read("to/r/b") == b"b",
        "{out}"
    );
    assert_eq!(t.read("victim"), b"kept");
}

/// A journal that somebody else may have written is left alone, and so is one that is torn.
#[test]
fn odd_journals() {
    let t = TestTree::new();
    t.write("r/a", "abc").write("to/a", "mine");
    t.bc_line("copy -T r to").go().code(1);
    let dir = t.scratch("home").join(".local/state/bc/copy");
    let journal = std::fs::read_dir(&dir)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = std::fs::read(&journal).unwrap();
    for (content, says) in [
        (b"no journal".to_vec(), "not a journal"),
        (vec![0; 4096], "not a journal"),
        (whole[..whole.len() - 3].to_vec(), "resuming the run of"),
        ([&whole[..], &[0xff; 40]].concat(), "resuming the run of"),
    ] {
        std::fs::write(&journal, &content).unwrap();
        let out = t.bc_line("copy -T r to").go();
        out.code(1)
            .stderr_has(says)
            .stderr_has("to/a: create: File exists");
        assert_eq!(t.read("to/a"), b"mine");
        if says == "not a journal" {
            assert_eq!(std::fs::read(&journal).unwrap(), content);
        }
    }
}

#[test]
fn sources_that_cannot_be_read_stop_nothing() {
    if is_root() {
        return left_out("root reads everything");
    }
    let t = TestTree::new();
    t.write("r/a", "a").write("r/b", "b").write("r/d/c", "c");
    t.mode("r/a", 0).mode("r/d", 0);
    let out = t.bc_line("copy r to").go();
    out.code(1)
        .stderr_has("r/a: open: Permission denied")
        .stderr_has("r/d: open: Permission denied");
    assert_eq!(t.read("to/b"), b"b");
    t.mode("r/a", 0o600).mode("r/d", 0o700);
    t.bc_line("copy r to").go().code(0);
    assert_eq!(
        (t.read("to/a"), t.read("to/d/c")),
        (b"a".to_vec(), b"c".to_vec())
    );
}

#[test]
fn a_damaged_stage_is_found_before_it_has_its_name() {
    let t = TestTree::new();
    t.write("r/a", "abc");
    t.bc_line("copy --verify=read r to").go().code(0);
    assert_eq!(t.read("to/a"), b"abc");
}

/// What a run that has nothing to do does: it opens no file.
#[test]
fn a_run_with_nothing_to_do_reads_nothing() {
    let t = TestTree::new();
    t.write("r/a", "abc").write("r/b/c", "more");
    t.bc_line("copy r to").go().code(0);
    let before = t.join("to/a").metadata().unwrap();
    let out = t.bc_line("copy -T --on-conflict=update r to").go();
    out.code(0).stderr_has("0 B written");
    let after = t.join("to/a").metadata().unwrap();
    assert_eq!(
        (before.ino(), before.ctime_nsec()),
        (after.ino(), after.ctime_nsec())
    );
    t.bc_line(&format!("integrity verify to to/{MANIFEST}"))
        .go()
        .code(0);
}

/// Workers have tables of descriptors of their own, in which the number of the output is another file
/// or none.
#[test]
fn lines_by_many_threads_go_to_the_output_and_nowhere_else() {
    let t = TestTree::new();
    for number in 0..1200 {
        t.write(format!("r/{}{number}", "n".repeat(240)), number.to_string());
    }
    let out = t.bc_line("copy --itemize --threads=4 r to").go();
    // With the directory.
    assert_eq!(out.code(0).lines().len(), 1201, "{}", out.error_text());
    assert!(out.lines().iter().all(|line| line.starts_with(b"+ to")));
    let found = seen(&t.join("to"), MANIFEST).unwrap();
    assert!(found == seen(&t.join("r"), MANIFEST).unwrap());
}
