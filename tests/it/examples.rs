//! The examples of the libraries run and print what they say. Each has a case here.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bc_testkit::{Outcome, TestTree};

use crate::common::{ABC, Bc};

/// An example: its package, its name, and a check.
type Case = (&'static str, &'static str, fn(&Example<'_>));

struct Example<'a> {
    program: PathBuf,
    t: &'a TestTree,
}

impl Example<'_> {
    fn run(&self, line: &str, stdin: &str) -> Outcome {
        let run = self.t.run(&self.program).args(line.split_whitespace());
        run.stdin(stdin).go()
    }
}

const CASES: &[Case] = &[
    ("bc-edit", "sponge", |e| {
        e.run("new", "abc").code(0).stdout_is("3 bytes\n");
        assert_eq!(e.t.read("new"), b"abc");
    }),
    ("bc-digest", "many_messages", |e| {
        e.run("", "abc\n\nabc\n")
            .code(0)
            .stdout_is(format!("{ABC}  abc\n{ABC}  abc\n"));
        e.run("md5", "abc")
            .code(0)
            .stdout_is("900150983cd24fb0d6963f7d28e17f72  abc\n");
    }),
    ("bc-fs", "show", |e| {
        e.run("", "a\x1b[2J \u{202e}b\r\n\x07")
            .code(0)
            .stdout_is("a\\x1b[2J \\u{202e}b\r\n\\x07");
    }),
    ("bc-pool", "collatz", |e| {
        e.run("10 7", "")
            .code(0)
            // 1; 2; 4; 8; 16, 5; 32, 10, 3 ...: of those below 10 all but 6, 7 and 9.
            .stdout_is("6 numbers below 10 reach 1 within 7 steps\n");
    }),
    ("bc-testkit", "fuse_disk", |e| {
        let out =
            e.t.run(&e.program)
                .args(["1000", "cp -r d $SHOWN && ls $DISK/d"]);
        let out = out.go();
        match out.status.code() {
            Some(0) => {
                out.stdout_is("a\nb\nlarge\nsub\n")
                    .stderr_has("requests, at most");
            }
            _ => bc_testkit::left_out(&out.error_text()),
        }
    }),
    ("bc-walk", "largest", |e| {
        e.run("d", "").code(0).stdout_is(
            "        3000  d/large\n           6  d/sub/lines\n           3  d/a\n           3  d/b\n",
        );
    }),
    ("bc-read", "count_lines", |e| {
        e.run("d", "").code(0).stdout_is(
            "       0 d/a\n       0 d/b\n       0 d/large\n       3 d/sub/lines\n       3 total\n",
        );
    }),
    ("bc-manifest", "convert", |e| {
        e.run("", &format!("SHA256 (a b) = {ABC}\nnonsense\n"))
            .code(0)
            .stdout_is(format!("{ABC}  a b\n"))
            .stderr_is("1 improper lines\n");
    }),
    ("bc-manifest", "integrity_throughput", |e| {
        e.run("1000", "").code(0).stdout_has("wrote 1000 entries");
    }),
    ("bc-hash", "sha256_tree", |e| {
        e.run("d/a d/b", "")
            .code(0)
            .stdout_is(format!("{ABC}  d/a\n{ABC}  d/b\n"));
    }),
    ("bc-hash", "hash_tree", |e| {
        e.run("portable sha256 d", "")
            .code(0)
            .stdout_has(format!("{ABC}  d/a\n"));
    }),
    ("bc-copy", "backup", |e| {
        e.run("d to", "").code(0).stdout_is("6 of 6 copied\n");
        assert_eq!(e.t.read("to/sub/lines"), b"1\n2\n3\n");
    }),
    ("bc-find", "find_duplicates", |e| {
        e.run("d", "").code(0).stdout_is("d/a\nd/b\n\n");
    }),
    ("bc-find", "duplicates", |e| {
        e.run("d", "").code(0).stdout_is("d/a\nd/b\n\n");
    }),
    ("bc-prune", "link_duplicates", |e| {
        let ino = |name| e.t.join(name).metadata().unwrap().ino();
        e.run("journal d", "")
            .code(0)
            .stdout_is("hardlink d/b to d/a\n1 changed, 0 errors\n");
        assert_eq!(ino("d/a"), ino("d/b"));
        e.run("journal", "").code(0).stdout_is("1 restored\n");
        assert_ne!(ino("d/a"), ino("d/b"));
    }),
    ("bit-crafts", "equal_files", |e| {
        e.run("d", "").code(0).stdout_is("d/a\nd/b\n\n");
        e.run("d none", "").code(1).stderr_has("none: stat: ");
    }),
    ("bit-crafts", "hash_service", |e| {
        let done = e.run("", "d/sub\nnone\n");
        done.code(0);
        done.stdout_has("  d/sub/lines\n")
            .stdout_has("d/sub: done, 0 errors\n")
            .stdout_has("none: stat: ");
        // More than it could read before the next line comes.
        let large = std::fs::File::create(e.t.join("d/z")).unwrap();
        large.set_len(1 << 40).unwrap();
        e.run("", "d\nstop\n").code(0).stdout_has("d: stopped\n");
    }),
    ("bit-crafts", "import_photos", |e| {
        e.t.write("card/1.jpg", "old").write("card/2.jpg", "new");
        e.t.write("card/deep/2.jpg", "other")
            .write("card/x.txt", "no picture");
        e.t.write("archive/2.jpg", "old");
        let run = |line| e.run(line, "").code(0).text();
        assert!(run("card archive june").contains("2 imported, 1 known"));
        assert_eq!(e.t.read("archive/june/2.jpg"), b"new");
        assert_eq!(e.t.read("archive/june/deep/2.jpg"), b"other");
        assert!(!e.t.exists("archive/june/x.txt"));
        assert!(run("card archive july").contains("0 imported, 3 known"));
        assert!(!e.t.exists("archive/july"));
    }),
    ("bit-crafts", "check_backup", |e| {
        e.run("d m.jsonl", "")
            .code(0)
            .stdout_is("4 files recorded\n");
        e.run("d m.jsonl", "").code(0).stdout_is("");
        e.t.write("d/a", "abcd").write("d/new", "");
        e.run("d m.jsonl", "")
            .code(0)
            .stdout_is("meta: .\nmodified: a\nadded: new\n");
    }),
    ("bit-crafts", "content_cache", |e| {
        e.t.write("d/words", "three little words");
        e.run("c d/words", "")
            .code(0)
            .stdout_is("d/words: 3 words, counted\n");
        e.t.write("d/again", "three little words");
        e.run("c d/words d/again", "")
            .code(0)
            .stdout_is("d/again: 3 words, known\nd/words: 3 words, known\n");
    }),
    ("bc-integrity", "what_changed", |e| {
        e.run("d", "\n")
            .code(0)
            .stdout_is("6 entries recorded; press Enter\n");
    }),
    ("bc-fleet", "whole_tree", |e| {
        for part in ["1", "2"] {
            let line = format!("integrity manifest --quiet --shard={part}/2 --output=part{part} d");
            e.t.bc_line(&line).go().code(0);
        }
        e.run("part2 part1", "").code(0).stderr_is("6 entries\n");
    }),
    ("bc-parity", "protect_tree", |e| {
        e.t.write("r/a", "abc").write("r/b", "other");
        e.t.bc_line("integrity manifest --quiet --output=m.jsonl r")
            .go()
            .code(0);
        e.run("r m.jsonl", "")
            .code(0)
            .stdout_is("parity for 8 bytes, 1 volumes in all\n");
        e.t.write("r/c", "later");
        e.t.bc_line("integrity update --quiet r m.jsonl").go();
        e.t.write("r/c", "edited");
        e.run("r m.jsonl", "")
            .code(1)
            .stderr_has("r/c")
            .stderr_has("some files have no parity");
    }),
];

#[test]
fn every_example_runs() {
    for (package, name, check) in CASES {
        let t = TestTree::new();
        t.write("d/a", "abc")
            .write("d/b", "abc")
            .write("d/large", [7; 3000])
            .write("d/sub/lines", "1\n2\n3\n");
        let program = built(package, name);
        check(&Example { program, t: &t });
    }
}

/// The guide shows programs as they are, each on a page of forty lines.
#[test]
fn the_guide_shows_whole_programs() {
    let guide = include_str!("../../src/guide/program.md");
    let blocks: Vec<&str> = guide.split("```rust\n").skip(1).collect();
    let names = [
        "equal_files",
        "hash_service",
        "import_photos",
        "check_backup",
        "content_cache",
    ];
    assert_eq!(blocks.len(), names.len());
    for (block, name) in blocks.iter().zip(names) {
        let shown = block.split("```").next().unwrap();
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/library/examples");
        let text = std::fs::read_to_string(own.join(format!("{name}.rs"))).unwrap();
        assert_eq!(shown, text, "{name}");
        let lines = text.lines().count();
        assert!(lines <= 40, "{name}: {lines} lines");
    }
}

#[test]
fn every_example_has_a_case_and_every_library_an_example() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut there = BTreeSet::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/library/examples");
    for file in std::fs::read_dir(own).unwrap() {
        let file = file.unwrap().path();
        let example = file.file_stem().unwrap().to_string_lossy().into_owned();
        there.insert(("bit-crafts".to_owned(), example));
    }
    for package in std::fs::read_dir(crates).unwrap() {
        let package = package.unwrap();
        // The programs of the package for Python are tested from there.
        if !package.path().is_dir() || package.file_name() == "python" {
            continue;
        }
        let name = format!("bc-{}", package.file_name().to_string_lossy());
        let before = there.len();
        for file in std::fs::read_dir(package.path().join("examples"))
            .into_iter()
            .flatten()
        {
            let file = file.unwrap().path();
            let example = file.file_stem().unwrap().to_string_lossy().into_owned();
            there.insert((name.clone(), example));
        }
        assert!(there.len() > before || name == "bc-testkit", "{name}: none");
    }
    let cases = CASES
        .iter()
        .map(|(package, name, _)| ((*package).to_owned(), (*name).to_owned()));
    assert_eq!(cases.collect::<BTreeSet<_>>(), there);
}

/// Where cargo puts the example: a test of the whole workspace has built it already, a test of
/// this package alone builds it now.
fn built(package: &str, name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(name);
    if !program.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["build", "--quiet", "--locked", "--package", package])
            .args(["--example", name, "--target-dir"])
            .arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.status().unwrap();
        assert!(status.success(), "cargo build --example {name}: {status}");
    }
    program
}
