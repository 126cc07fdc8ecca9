//! `bc install` says what it did with each name, replaces nothing of others' unasked, and takes away
//! what it made and no more.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{Outcome, TestTree, copy_program};

use crate::common::{BC, Bc};

const NAMES: [&str; 13] = [
    "bitcrafts",
    "bchash",
    "bc-hash",
    "bcdup",
    "bc-dup",
    "bcintegrity",
    "bc-integrity",
    "bccopy",
    "bc-copy",
    "bccp",
    "bcmove",
    "bc-move",
    "bcmv",
];

/// Every name that stdout tells `what` of, without the directory.
fn reported(out: &Outcome, what: &str, dir: &str) -> Vec<String> {
    let start = format!("{what} {dir}/");
    let text = out.text();
    let names = text.lines().filter_map(|line| line.strip_prefix(&start));
    names.map(str::to_owned).collect()
}

/// What is in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_link_is_told_and_a_second_run_makes_nothing() {
    let t = TestTree::new();
    t.dir("bin");
    let first = t.bc_line("install bin").go();
    let mut made = reported(first.code(0), "made", "bin");
    made.sort();
    assert_eq!(made, names(&t.join("bin")));
    assert!(
        NAMES
            .iter()
            .all(|name| made.iter().any(|made| made == name))
    );
    let inode = || t.join("bin/bchash").symlink_metadata().unwrap().ino();
    let before = inode();
    for again in [
        "install bin",
        "install --force bin",
        "install --symbolic bin",
    ] {
        let out = t.bc_line(again).go();
        let mut kept = reported(out.code(0), "kept", "bin");
        kept.sort();
        assert_eq!(kept, made, "{out}");
        assert_eq!(inode(), before, "{again}");
    }
    let out = t.bc_line("install --remove bin").go();
    let mut removed = reported(out.code(0), "removed", "bin");
    removed.sort();
    assert_eq!(removed, made);
    assert_eq!(names(&t.join("bin")), [""; 0]);
}

/// Files, directories and links of others, under names of ours.
#[test]
fn what_is_not_ours_stays() {
    let t = TestTree::new();
    t.write("bin/bchash", "a program of somebody else")
        .dir("bin/bcdup")
        .symlink("/somewhere/else", "bin/bcintegrity");
    // They lead here, and were made by somebody else all the same.
    t.symlink(BC, "ours");
    t.symlink(t.join("ours"), "bin/bc-hash");
    let out = t.bc_line("install bin").go();
    out.code(2)
        .stderr_has("bin/bchash: exists and is not ours; --force replaces it\n")
        .stderr_has("bin/bcdup: exists and is not ours; --force replaces it\n")
        .stderr_has("bin/bcintegrity: leads to /somewhere/else, not here; --force replaces it\n");
    assert_eq!(reported(&out, "kept", "bin"), ["bc-hash"]);
    assert!(reported(&out, "made", "bin").contains(&"bitcrafts".to_owned()));
    let out = t.bc_line("install --remove bin").go();
    out.code(0).stderr_is("");
    let foreign = ["bc-hash", "bcdup", "bchash", "bcintegrity"];
    assert_eq!(names(&t.join("bin")), foreign, "{out}");
    assert_eq!(t.read("bin/bchash"), b"a program of somebody else");
    // A directory is not even replaced by force; nothing half-made stays.
    let out = t.bc_line("install --force bin").go();
    out.code(2).stderr_has("bin/bcdup: rename: ");
    assert_eq!(reported(&out, "replaced", "bin"), ["bchash", "bcintegrity"]);
    assert!(
        names(&t.join("bin"))
            .iter()
            .all(|name| !name.contains("tmp"))
    );
    t.bc_line("install --remove --mkdir bin").go().code(0);
    assert_eq!(names(&t.join("bin")), ["bc-hash", "bcdup"]);
}

/// Links by a relative path are somebody's own.
#[test]
fn relative_links_are_kept() {
    let t = TestTree::new();
    t.dir("bin");
    let program = t.join("bin/bc");
    copy_program(BC.as_ref(), &program).unwrap();
    t.symlink("bc", "bin/bchash");
    let run = |line: &str| {
        let run = t.run(&program).args(line.split_whitespace());
        run.go()
    };
    assert_eq!(
        reported(run("install bin").code(0), "kept", "bin"),
        ["bchash"]
    );
    run("install --remove bin").code(0);
    assert_eq!(names(&t.join("bin")), ["bc", "bchash"]);
    // Symbolic links of ours become hard ones, and those of others do not.
    run("install bin").code(0);
    let out = run("install --hard bin");
    assert_eq!(reported(out.code(0), "kept", "bin"), ["bchash"], "{out}");
    assert!(reported(&out, "replaced", "bin").contains(&"bcdup".to_owned()));
    let inode = |name: &str| t.join(name).symlink_metadata().unwrap().ino();
    assert_eq!(inode("bin/bcdup"), inode("bin/bc"));
    let out = run("install bin");
    assert_eq!(reported(out.code(0), "made", "bin"), [""; 0], "{out}");
    run("install --remove bin").code(0);
    assert_eq!(names(&t.join("bin")), ["bc", "bchash"]);
}

#[test]
fn directories_are_made_when_asked() {
    let t = TestTree::new();
    t.bc_line("install a/b/bin")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_is(
            "bc install: a/b/bin: stat: No such file or directory (os error 2); --mkdir creates it\n",
        );
    assert!(!t.exists("a"));
    let out = t.bc_line("install --mkdir a/b/bin").go();
    let text = out.code(0).text();
    assert!(
        text.starts_with("made a\nmade a/b\nmade a/b/bin\nmade a/b/bin/"),
        "{text}"
    );
    let again = t.bc_line("install --mkdir ./a/b/bin/").go();
    assert!(!again.code(0).text().contains("made "), "{again}");
    t.write("a/b/bin/own", "somebody's");
    t.bc_line("install --remove --mkdir a/b/bin").go().code(0);
    assert_eq!(names(&t.join("a/b/bin")), ["own"]);
    t.remove("a/b/bin/own");
    let out = t.bc_line("install --remove --mkdir a/b/bin").go();
    out.code(0).stdout_is("removed a/b/bin\n").stderr_is("");
    assert!(t.exists("a/b"));
    t.write("file", "");
    t.bc_line("install --mkdir file")
        .go()
        .code(2)
        .stderr_is("bc install: file: stat: Not a directory (os error 20)\n");
    // Through a link to a directory, and to nothing.
    t.dir("real")
        .symlink("real", "to")
        .symlink("none", "nowhere");
    t.bc_line("install to")
        .go()
        .code(0)
        .stdout_has("made to/bchash\n");
    assert!(t.exists("real/bchash"));
    t.bc_line("install --mkdir nowhere").go().code(2);
}

/// Each name is told, and so is the reason.
#[test]
fn a_directory_that_cannot_be_written() {
    let t = TestTree::new();
    t.dir("bin").mode(".", 0o755).mode("bin", 0o555);
    let out = t.bc_line("install bin").as_nobody().go();
    out.code(2)
        .stdout_is("")
        .stderr_has("bc install: bin/bchash: link: Permission denied (os error 13)\n");
    assert!(out.error_lines().len() >= NAMES.len(), "{out}");
    t.mode("bin", 0o755);
    t.bc_line("install bin").go().code(0);
    t.mode("bin", 0o555);
    // Root may; and the copy that root runs as somebody else would be another program's.
    if !bc_testkit::is_root() {
        let out = t.bc_line("install --remove bin").go();
        out.code(2)
            .stdout_is("")
            .stderr_has("bc install: bin/bchash: unlink: Permission denied (os error 13)\n");
        assert!(t.exists("bin/bchash"));
    }
    t.mode("bin", 0o755);
}
