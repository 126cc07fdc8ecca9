//! The rows of the guide's page about the programs that this one grew out of: each line of theirs
//! does here what its row says.

use std::path::Path;

use bc_testkit::{Outcome, TestTree};
use serde_json::Value;

use crate::common::Bc;

const PAGE: &str = include_str!("../../src/guide/seeds.md");

/// Returns the first cells of the table of options.
fn rows() -> Vec<&'static str> {
    let text = PAGE.split("\n## Options\n").nth(1).unwrap();
    let table = text.split("\n## ").next().unwrap().lines();
    let rows = table.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    rows.skip(1).collect()
}

/// Test of a row, under the beginning of the row's first cell.
type RowTest = (&'static str, fn(&TestTree));

/// Tests of the rows.
const TESTS: &[RowTest] = &[
    ("`bchash hash --type=sha256 DIR", lists),
    ("`--type` with SHA-1", types),
    ("`bcduplicate scan DIR`, ", duplicates),
    ("`--algorithm=xxh3`", duplicate_algorithms),
    ("groups as `jdupes`", groups),
    ("`bcintegrity manifest", manifests),
    ("path, digest, size", fields),
    ("`--threads=mono`", threads),
    ("`--memory-budget=N`", budget_and_description),
    ("`bcduplicate scan --hidden`", hidden),
    ("exit codes", exit_codes),
    ("`bcmr copy -r A B`", copies),
    ("`-V`, `-C`", hints),
    ("`bcmr move`", moves),
    ("`--type` and `--algorithm` with a name", unknown_names),
    ("`scripts/bx build`", own_commands),
    ("`scripts/bench.sh compare", own_commands),
    ("`scripts/correctness-3way.sh`", own_commands),
    ("a log of each bench run", records),
    ("`scripts/install-deps.sh", installer),
    ("ASan, TSan, UBSan", own_commands),
    ("coverage", whole_suite),
    ("the whole suite", whole_suite),
];

#[test]
fn every_row_of_options_does_what_the_guide_says() {
    let rows = rows();
    for row in &rows {
        let tests = TESTS.iter().filter(|(cell, _)| row.starts_with(cell));
        assert_eq!(tests.count(), 1, "{row}");
    }
    for (cell, test) in TESTS {
        let of_row = rows.iter().filter(|row| row.starts_with(cell));
        assert_eq!(of_row.count(), 1, "{cell}");
        let t = TestTree::new();
        t.write("DIR/a", "same")
            .write("DIR/b", "same")
            .write("DIR/alone", "alone");
        test(&t);
    }
}

/// Runs a line of theirs under the program's name.
fn theirs(t: &TestTree, line: &str) -> Outcome {
    let (name, rest) = line.split_once(' ').unwrap();
    t.bc().arg0(name).args(rest.split_whitespace()).go()
}

fn lists(t: &TestTree) {
    let list = theirs(t, "bchash hash --type=sha256 DIR");
    list.code(0);
    t.write("MANIFEST", list.text());
    theirs(t, "bchash check MANIFEST").code(0);
    t.write("DIR/b", "other");
    theirs(t, "bchash check MANIFEST").code(1);
    t.write("NEW", theirs(t, "bchash hash --type=sha256 DIR").text());
    theirs(t, "bchash diff MANIFEST NEW")
        .code(1)
        .stdout_has("DIR/b");
}

fn types(t: &TestTree) {
    for (name, digits) in [
        ("sha1", 40),
        ("sha256", 64),
        ("sha512", 128),
        ("md5", 32),
        ("blake2b", 128),
        ("xxh64", 16),
        ("xxh128", 32),
    ] {
        let out = theirs(t, &format!("bchash hash --type={name} DIR/a"));
        out.code(0);
        let text = out.text();
        let digest = text.split_whitespace().next().unwrap();
        assert_eq!(digest.len(), digits, "{name}: {text}");
    }
}

fn duplicates(t: &TestTree) {
    theirs(t, "bcduplicate scan DIR")
        .code(0)
        .stdout_is("DIR/a\nDIR/b\n");
    theirs(t, "bcduplicate prune --action=hardlink DIR").code(0);
    let inode = |name: &str| rustix::fs::lstat(t.join(name)).unwrap().st_ino;
    assert_eq!(inode("DIR/a"), inode("DIR/b"));
}

fn duplicate_algorithms(t: &TestTree) {
    for name in ["xxh3", "xxh128", "sha256", "blake3"] {
        let out = theirs(t, &format!("bcduplicate scan --algorithm={name} DIR"));
        out.code(0).stdout_is("DIR/a\nDIR/b\n");
    }
}

fn groups(t: &TestTree) {
    theirs(t, "bcduplicate scan DIR")
        .code(0)
        .stdout_is("DIR/a\nDIR/b\n");
    let json = theirs(t, "bcduplicate scan --format=json DIR").text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["groups"][0]["files"].as_array().unwrap().len(), 2);
    let script = theirs(t, "bcduplicate scan --format=script DIR");
    script.code(0).stdout_has("#!/bin/sh").stdout_has("DIR/b");
}

fn manifests(t: &TestTree) {
    theirs(t, "bcintegrity manifest --output=FILE DIR").code(0);
    theirs(t, "bcintegrity verify DIR FILE").code(0);
    t.write("DIR/b", "other");
    theirs(t, "bcintegrity verify DIR FILE").code(1);
    theirs(t, "bcintegrity manifest --output=NEW DIR").code(0);
    theirs(t, "bcintegrity diff FILE NEW")
        .code(1)
        .stdout_has("~c b");
}

fn fields(t: &TestTree) {
    let text = theirs(t, "bcintegrity manifest DIR").text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let entry = lines.iter().find(|line| line["path"] == "a").unwrap();
    for name in [
        "digest", "size", "mode", "uid", "gid", "mtime_ns", "ino", "nlink",
    ] {
        assert!(!entry[name].is_null(), "{name}: {entry}");
    }
    assert_eq!(lines.last().unwrap()["type"], "trailer");
    // What is cut off shows.
    t.write("CUT", &text[..text.len() - 20]);
    theirs(t, "bcintegrity verify DIR CUT").code(2);
}

fn threads(t: &TestTree) {
    for option in [
        "--threads=mono",
        "--threads=compute",
        "--threads=io",
        "--threads=3",
        "--jobs=3",
    ] {
        theirs(t, &format!("bchash hash {option} DIR")).code(0);
    }
}

fn budget_and_description(t: &TestTree) {
    theirs(t, "bchash hash --memory-budget=1G DIR").code(0);
    let text = theirs(t, "bchash --describe").text();
    serde_json::from_str::<Value>(&text).unwrap();
}

fn hidden(t: &TestTree) {
    t.write("DIR/.c", "same");
    for option in ["", "--hidden "] {
        let out = theirs(t, &format!("bcduplicate scan {option}DIR"));
        out.code(0).stdout_has("DIR/.c\n");
    }
}

fn exit_codes(t: &TestTree) {
    theirs(t, "bchash hash DIR").code(0);
    theirs(t, "bchash hash DIR gone").code(1);
    theirs(t, "bchash hash --what DIR").code(2);
}

fn copies(t: &TestTree) {
    for (nth, options) in [
        "-r",
        "-r -p",
        "-r --sync",
        "-r --sync=file",
        "-r --jobs 2",
        "-r -j 2",
        "-r --reflink=disable",
    ]
    .into_iter()
    .enumerate()
    {
        theirs(t, &format!("bccopy {options} DIR to-{nth}")).code(0);
        assert_eq!(t.read(format!("to-{nth}/a")), b"same", "{options}");
    }
    // Where blocks cannot be shared, that is the reason and no other.
    let forced = theirs(t, "bccopy -r --reflink=force DIR shared");
    if forced.status.success() {
        assert_eq!(t.read("shared/a"), b"same");
    } else {
        forced.code(1).stderr_has(": clone: ");
    }
}

fn hints(t: &TestTree) {
    for (option, line) in [
        ("-V", "bccopy --verify=read DIR to"),
        ("-C", "bccopy DIR to"),
        ("--resume", "bccopy DIR to"),
        ("--strict", "bccopy DIR to"),
        ("--append", "bccopy DIR to"),
    ] {
        let out = theirs(t, &format!("bccopy {option} DIR to"));
        out.code(2).stderr_has(format!("use: {line}"));
    }
    assert!(!t.exists("to"));
}

fn moves(t: &TestTree) {
    theirs(t, "bcmv DIR to").code(0);
    assert!(!t.exists("DIR") && t.exists("to/a"));
    t.bc_line("move to DIR").go().code(0);
    assert!(!t.exists("to") && t.exists("DIR/a"));
}

fn unknown_names(t: &TestTree) {
    let out = theirs(t, "bchash hash --type=sha257 DIR");
    out.code(2).stderr_has("sha257").stderr_has("sha256");
    let out = theirs(t, "bcduplicate scan --algorithm=xxh4 DIR");
    out.code(2).stderr_has("xxh4").stderr_has("xxh128");
}

/// Every command of the project that the page names is one.
fn own_commands(_: &TestTree) {
    let help = include_str!("../../xtask/src/help.rs");
    let cells = PAGE.lines().flat_map(|line| line.split(" | "));
    let cells = cells.filter_map(|cell| cell.split_once("`cargo xtask "));
    // What follows in the same cell are commands, too.
    let named = cells.flat_map(|(_, text)| text.split("`, `"));
    let named: Vec<&str> = named.map(|text| text.split('`').next().unwrap()).collect();
    assert!(named.len() >= 7, "{named:?}");
    for line in named {
        let mut words = line.split(' ');
        let command = words.next().unwrap();
        let known = help.split(&format!("\n  {command} ")).nth(1);
        let usage = known.unwrap_or_else(|| panic!("{line}: not a command"));
        for word in words {
            let usage = usage.lines().next().unwrap();
            assert!(usage.contains(word), "{line}: {usage}");
        }
    }
}

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn records(_: &TestTree) {
    let all = std::fs::read_dir(project("benches/record")).unwrap();
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let of_days = names.filter(|name| name.starts_with("20") && name.ends_with(".md"));
    assert!(of_days.count() > 0);
}

fn whole_suite(_: &TestTree) {
    let run = std::fs::read_to_string(project(".ci/run")).unwrap();
    assert!(run.contains("\ncargo test --workspace ") && !run.contains("llvm-cov"));
}

/// Programs that are there are not installed again, and one that cannot be had costs no other.
fn installer(t: &TestTree) {
    let stub = |name: &str, text: &str| {
        let path = format!("bin/{name}");
        t.write(&path, format!("#!/bin/sh\n{text}\n"))
            .mode(&path, 0o755);
    };
    stub("fclones", "exit 0");
    stub(
        "cargo",
        "echo \"$*\" >> \"$LOG\"; case \"$*\" in *cpz) exit 1;; esac",
    );
    let install = |option: Option<&str>| {
        let _ = std::fs::remove_file(t.join("log"));
        // Nothing else is to be found, so that nothing else is installed.
        let out = t
            .run("/bin/bash")
            .arg(project(".ci/install"))
            .args(option)
            .env("PATH", t.join("bin"))
            .env("LOG", t.join("log"))
            .go();
        let log = std::fs::read_to_string(t.join("log")).unwrap_or_default();
        (out, log)
    };
    let (out, log) = install(Some("--peers"));
    out.code(0)
        .stdout_has("install: cpz: not to be had\n")
        .stdout_has("no apt-get");
    let line = |package: &str| format!("install --locked --quiet {package}\n");
    assert_eq!(log, ["yadf", "fd-find", "cpz", "xcp"].map(line).concat());
    let (out, log) = install(None);
    out.code(0).stdout_has("no apt-get");
    assert_eq!(log, "");
    let (out, log) = install(Some("--pears"));
    out.code(2).stdout_has("unknown option --pears");
    assert_eq!(log, "");
}
