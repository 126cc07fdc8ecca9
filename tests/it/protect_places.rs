//! Where parity lies: on a disk that is not mounted or only read, in a directory of another user, in the
//! tree, and under the name of an output.

use bc_testkit::TestTree;
use rustix::io::Errno;

use crate::common::Bc;
use crate::denied::without;
use crate::dup_dirs;
use crate::protect::{FILES, bytes, is_whole, protected, rot};

const RESTORE: &str = "integrity restore r m.jsonl";

/// A tree that is recorded, and has no parity.
fn recorded() -> TestTree {
    let t = TestTree::new();
    t.write("r/a", bytes(70_000, 1)).write("r/b", "other");
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t
}

fn rename(t: &TestTree, from: &str, to: &str) {
    std::fs::rename(t.join(from), t.join(to)).unwrap();
}

#[test]
fn an_empty_mount_point_gets_no_parity_and_has_none() {
    let t = recorded();
    t.bc_line("integrity protect --parity=disk r m.jsonl")
        .go()
        .code(0);
    // The disk is not mounted.
    rename(&t, "disk", "away");
    t.dir("disk").write("r/new", "new").remove("r/b");
    let update = "integrity update --protect --parity=disk r m.jsonl";
    t.bc_line(update)
        .go()
        .code(2)
        .stderr_has("disk: has no parity yet, or is not mounted");
    for line in [
        "integrity restore --parity=disk r m.jsonl",
        "integrity restore --removed --parity=disk r m.jsonl",
        "integrity restore --removed=b --parity=disk r m.jsonl",
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stderr_has("disk: has no parity: not mounted?");
    }
    assert_eq!(std::fs::read_dir(t.join("disk")).unwrap().count(), 0);
    std::fs::remove_dir(t.join("disk")).unwrap();
    rename(&t, "away", "disk");
    t.bc_line(update)
        .go()
        .code(0)
        .stderr_has("1 volume written");
    t.bc_line("integrity restore --removed=b --parity=disk r m.jsonl")
        .go()
        .code(0)
        .stdout_has("+ b: from disk/000001.bcp");
    assert_eq!(t.read("r/b"), b"other");
}

#[test]
fn parity_that_cannot_be_opened_is_named() {
    let t = protected();
    rot(&t, "r/large", 100);
    t.mode("m.parity", 0o000);
    let named = "m.parity: open directory: Permission denied";
    t.bc_line("integrity restore --dry-run r m.jsonl")
        .as_nobody()
        .go()
        .code(1)
        .stdout_has("!! large: damaged: no copy holds it\n")
        .stderr_has(named);
    t.bc_line("integrity restore --dry-run --removed r m.jsonl")
        .as_nobody()
        .go()
        .code(2)
        .stderr_has(named);
    t.bc_line("integrity verify r m.jsonl")
        .as_nobody()
        .go()
        .code(3)
        .stderr_has(named);
    t.mode("m.parity", 0o700);
    t.bc_line(RESTORE).go().code(0);
    is_whole(&t);
}

/// Runs a line with the parity directory mounted read-only.
fn read_only(t: &TestTree, line: &str) -> Option<(String, String)> {
    let mounts = "mount --bind m.parity m.parity && mount -o remount,bind,ro m.parity";
    // The code comes last, as the line is to end well.
    dup_dirs::mounted(t, mounts, &format!("{line}; echo code $?"))
}

#[test]
fn parity_that_is_only_read_is_of_use() {
    let t = protected();
    rot(&t, "r/large", 100);
    rot(&t, "m.parity/000001.bcp", 20_000);
    let Some((out, said)) = read_only(&t, "integrity protect --check r m.jsonl") else {
        return;
    };
    assert!(
        out.contains("1 of them damaged")
            && out.ends_with("code 0\n")
            && !said.contains("Read-only"),
        "{out}{said}"
    );
    let (out, said) = read_only(&t, "integrity protect --dry-run r m.jsonl").unwrap();
    assert!(
        out.ends_with("code 0\n") && said.contains("no new content"),
        "{out}{said}"
    );
    let (out, said) = read_only(&t, "integrity protect r m.jsonl").unwrap();
    assert!(
        out.ends_with("code 2\n") && said.contains("Read-only file system"),
        "{out}{said}"
    );
    let (out, said) = read_only(&t, RESTORE).unwrap();
    assert!(
        out.contains("+ large: from m.parity/000001.bcp") && out.ends_with("code 0\n"),
        "{out}{said}"
    );
    is_whole(&t);
}

/// Another run could be reading what is removed.
#[test]
fn without_locks_nothing_is_removed() {
    let t = protected();
    t.remove("r/a/one");
    t.bc_line("integrity update r m.jsonl").go().code(0);
    let protect = "integrity protect --keep-removed=0d r m.jsonl";
    let errno = Errno::OPNOTSUPP.raw_os_error();
    without(&[libc::SYS_flock], errno, || {
        t.bc_line(protect)
            .go()
            .code(1)
            .stderr_has("1 volume written")
            .stderr_has("no volume is removed: there are no locks on this file system");
    });
    assert!(t.exists("m.parity/000001.bcp") && t.exists("m.parity/000002.bcp"));
    t.bc_line(protect).go().code(0).stderr_has("1 removed");
    assert!(!t.exists("m.parity/000001.bcp"));
}

#[test]
fn a_comparison_leaves_out_the_parity_beside_the_manifest() {
    let t = recorded();
    rename(&t, "m.jsonl", "r/m.jsonl");
    t.bc_line("integrity protect r r/m.jsonl").go().code(0);
    for line in [
        "integrity diff --ignore=mtime,ctime,dir-size,dir-nlink r/m.jsonl r",
        "integrity diff --ignore=mtime,ctime,dir-size,dir-nlink r r/m.jsonl",
    ] {
        t.bc_line(line).go().code(0).stdout_is("");
    }
}

#[test]
fn a_restore_leaves_out_all_parity_that_it_knows() {
    let t = recorded();
    rename(&t, "m.jsonl", "r/m.jsonl");
    t.bc_line("integrity protect r r/m.jsonl").go().code(0);
    t.bc_line("integrity protect --parity=other r r/m.jsonl")
        .go()
        .code(0);
    t.remove("r/b");
    let out = t
        .bc_line("integrity restore --parity=other r r/m.jsonl")
        .go();
    out.code(0).stdout_is("+ b: from other/000001.bcp\n");
    assert!(!out.error_text().contains("other differences"), "{out}");
}

#[test]
fn metrics_replace_no_volume() {
    let t = protected();
    let volume = t.read("m.parity/000001.bcp");
    t.bc_line("integrity protect --parity=named r m.jsonl")
        .go()
        .code(0);
    let named = t.read("named/000001.bcp");
    rot(&t, "r/large", 100);
    for (line, file) in [
        ("integrity protect", "m.parity/000001.bcp"),
        ("integrity protect --check", "m.parity/000001.bcp"),
        ("integrity update --protect", "m.parity/000001.bcp"),
        ("integrity restore", "m.parity/000001.bcp"),
        ("integrity protect --parity=named", "named/000001.bcp"),
        (
            "integrity update --protect --parity=named",
            "named/000001.bcp",
        ),
        ("integrity restore --parity=named", "named/000001.bcp"),
    ] {
        t.bc_line(&format!("{line} --metrics={file} r m.jsonl"))
            .go()
            .code(2)
            .stderr_has(format!("--metrics={file}: is one of the files"));
    }
    assert!(t.read("m.parity/000001.bcp") == volume && t.read("named/000001.bcp") == named);
    // Nor was anything done; other metrics are written.
    let line = "integrity restore --metrics=m.json r m.jsonl";
    t.bc_line(line).go().code(0);
    is_whole(&t);
    t.bc_line(line).go().code(0);
}

/// Digests for which contents can be made up suffice where the directory is one's own.
#[test]
fn parity_works_with_all_algorithms_that_identify_content() {
    for algorithm in [
        "md5", "sha1", "xxh128", "sha256", "sha512", "blake2b", "blake3",
    ] {
        let t = TestTree::new();
        let content = bytes(300_000, 5);
        t.write("r/a", &content).write("r/b", "other");
        t.bc_line(&format!(
            "integrity manifest --algorithm={algorithm} --output=m.jsonl r"
        ))
        .go()
        .code(0);
        t.bc_line("integrity protect --redundancy=40% r m.jsonl")
            .go()
            .code(0);
        rot(&t, "r/a", 70_000);
        t.remove("r/b");
        t.bc_line(RESTORE).go().code(0).stderr_has("2 restored");
        assert!(
            t.read("r/a") == content && t.read("r/b") == b"other",
            "{algorithm}"
        );
        t.bc_line("integrity protect --check r m.jsonl")
            .go()
            .code(0);
    }
}

/// Paths and contents change by other commands, whose results are protected as edits are.
#[test]
fn other_commands_change_a_protected_tree() {
    let t = protected();
    let protect = "integrity update --protect r m.jsonl";
    // An edit that keeps the old time is accepted.
    t.write("r/a/two", bytes(70, 50));
    t.mtime("r/a/two", 1_000_000, 5);
    t.bc_line("integrity accept r m.jsonl a/two").go().code(0);
    t.bc_line("integrity verify r m.jsonl")
        .go()
        .code(0)
        .stderr_has("the parity in m.parity does not have all of it");
    t.bc_line(protect)
        .go()
        .code(0)
        .stderr_has("1 volume written");
    t.remove("r/a/two");
    t.bc_line(RESTORE)
        .go()
        .code(0)
        .stdout_has("+ a/two: from m.parity/000002.bcp");
    assert!(t.read("r/a/two") == bytes(70, 50));
    // Moved.
    t.bc_line("move r/large r/a/moved").go().code(0);
    t.bc_line(protect).go().code(0).stderr_has("no new content");
    rot(&t, "r/a/moved", 100);
    let restore = "integrity restore --discard-damaged r m.jsonl";
    t.bc_line(restore).go().code(0);
    assert!(t.read("r/a/moved") == bytes(FILES[2].1, 2));
    // One of two files becomes a name of the other.
    t.write("r/twin", bytes(FILES[4].1, 4));
    t.bc_line(protect).go().code(0).stderr_has("no new content");
    t.bc_line("dup prune --action=hardlink --yes --journal=../j r")
        .go()
        .code(0);
    t.bc_line(protect).go().code(0).stderr_has("no new content");
    rot(&t, "r/z", 100);
    t.bc_line(RESTORE).go().code(0);
    for path in ["r/z", "r/twin"] {
        assert!(t.read(path) == bytes(FILES[4].1, 4), "{path}");
    }
}

/// A message of the digests that can be forged would be another one's.
#[test]
fn removed_files_come_from_no_directory_of_others() {
    let t = protected();
    t.mode("m.parity", 0o770);
    t.bc_line("integrity restore --removed r m.jsonl")
        .go()
        .code(2)
        .stderr_has("others may write to it, and no manifest proves what was removed");
}

/// Whoever has the parity on another disk learns that the disk is away, not that the files are lost.
#[test]
fn a_place_of_parity_with_none_in_it_is_named() {
    let t = protected();
    rename(&t, "m.parity", "disk");
    t.symlink("disk", "m.parity");
    t.bc_line("integrity verify r m.jsonl").go().code(0);
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0);
    // The disk is not mounted.
    rename(&t, "disk", "away");
    let named = "m.parity: is a link to a path that does not exist: is its disk mounted?";
    let empty = "m.parity: has no parity yet, or is not mounted";
    let no_dir = format!("m.parity: open directory: {}", Errno::NOTDIR);
    let look = |why: &str, takes_first: bool| {
        for line in [
            "integrity verify r m.jsonl",
            "integrity update r m.jsonl",
            "integrity restore --dry-run r m.jsonl",
        ] {
            t.bc_line(line).go().code(0).stderr_has(why);
        }
        if !takes_first {
            t.write("r/new", "new");
            t.bc_line("integrity update --protect r m.jsonl")
                .go()
                .code(2)
                .stderr_has("m.parity: ");
        }
    };
    look(named, false);
    t.dir("disk");
    look(empty, false);
    assert_eq!(std::fs::read_dir(t.join("disk")).unwrap().count(), 0);
    std::fs::remove_dir(t.join("disk")).unwrap();
    t.write("disk", "no directory");
    look(&no_dir, false);
    t.remove("disk")
        .remove("m.parity")
        .write("m.parity", "file");
    look(&no_dir, false);
    t.remove("m.parity").dir("m.parity");
    look(empty, true);
    // Where nothing is, or something else of the user's, there is nothing to say.
    t.write("m.parity/notes", "mine");
    t.bc_line("integrity verify r m.jsonl")
        .go()
        .code(0)
        .stderr_is("");
    t.bc_line("integrity protect --check --parity=nowhere r m.jsonl")
        .go()
        .code(1)
        .stderr_has("no volume in nowhere; ");
}
