//! `bc hash check`.

use bc_testkit::{TestTree, tool};

use crate::common::{ABC, Bc, EMPTY};

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("b", "")
        .write("SUMS", format!("{ABC}  a\n{EMPTY}  b\n"));
    t
}

#[test]
fn verdicts_in_manifest_order() {
    let t = tree();
    t.bc_line("hash check SUMS")
        .go()
        .code(0)
        .stdout_is("a: OK\nb: OK\n")
        .stderr_is("");
    t.write("SUMS", format!("{EMPTY}  b\n{EMPTY}  a\n{ABC}  missing\n"));
    t.bc_line("hash check SUMS")
        .go()
        .code(1)
        .stdout_is("b: OK\na: FAILED\nmissing: FAILED open or read\n")
        .stderr_has("missing: ")
        .stderr_has("WARNING: 1 listed file could not be read")
        .stderr_has("WARNING: 1 computed checksum did NOT match");
}

#[test]
fn flags_mean_what_gnu_means() {
    let t = tree();
    t.bc_line("hash check --quiet SUMS")
        .go()
        .code(0)
        .stdout_is("")
        .stderr_is("");
    t.bc_line("hash check --status SUMS")
        .go()
        .code(0)
        .stdout_is("")
        .stderr_is("");
    t.write("SUMS", format!("{ABC}  a\n{ABC}  missing\n"));
    t.bc_line("hash check --ignore-missing SUMS")
        .go()
        .code(0)
        .stdout_is("a: OK\n")
        .stderr_is("");
    t.write("SUMS", format!("{ABC}  missing\n"));
    t.bc_line("hash check --ignore-missing SUMS")
        .go()
        .code(1)
        .stdout_is("")
        .stderr_has("SUMS: no file was verified");
    t.write("SUMS", format!("{ABC}  a\nnonsense\n"));
    t.bc_line("hash check SUMS")
        .go()
        .code(0)
        .stderr_has("WARNING: 1 line is improperly formatted");
    t.bc_line("hash check --strict SUMS").go().code(1);
    t.bc_line("hash check -w SUMS")
        .go()
        .code(0)
        .stderr_has("SUMS: 2: improperly formatted");
    t.write("SUMS", "nonsense\n");
    t.bc_line("hash check SUMS")
        .go()
        .code(1)
        .stderr_has("SUMS: no properly formatted checksum lines found");
    t.bc_line("hash check --status SUMS")
        .go()
        .code(1)
        .stderr_has("no properly formatted");
}

/// The same inputs through coreutils: same stdout, same exit code.
#[test]
fn agrees_with_sha256sum() {
    if tool("sha256sum").is_none() {
        bc_testkit::left_out("sha256sum is not installed");
        return;
    }
    let t = tree();
    t.write_bytes(b"new\nline", "abc")
        .write_bytes(b"back\\slash", "abc")
        .write("-dash", "abc")
        .write("c*d", "abc");
    let upper = ABC.to_uppercase();
    let short = &ABC[..62];
    for manifest in [
        format!("{ABC}  a\n{EMPTY}  b\n"),
        format!("{ABC} *a\n{EMPTY} *b\n"),
        format!("{ABC}  a\r\n{EMPTY}  b\r\n"),
        format!("# comment\n\n{ABC}  a\n"),
        format!("{upper}  a\n"),
        format!("{short}  a\n{ABC}  a\n"),
        format!("\\{ABC}  new\\nline\n\\{ABC}  back\\\\slash\n"),
        format!("\\{ABC}  bad\\escape\n{ABC}  a\n"),
        format!("SHA256 (a) = {ABC}\n"),
        format!("SHA256 (missing) = {ABC}\n"),
        format!("{ABC}  -dash\n{ABC}  ./c*d\n"),
        format!("{ABC}  a"),
        String::new(),
        format!("{EMPTY}  a\n{EMPTY}  a\n{ABC}  nowhere\nimproper\n"),
        format!("   {ABC}  a\n"),
        format!("{ABC}  a\n\0\0\0\n"),
    ] {
        t.write("SUMS", &manifest);
        for flags in [
            "",
            "--quiet",
            "--status",
            "--ignore-missing",
            "--strict",
            "--strict --quiet",
            "--ignore-missing --quiet",
        ] {
            let expected = t
                .run("sha256sum")
                .arg("-c")
                .args(flags.split_whitespace())
                .arg("SUMS")
                .go();
            let got = t
                .bc_line("hash check")
                .args(flags.split_whitespace())
                .arg("SUMS")
                .go();
            let context = format!(
                "manifest {manifest:?} flags {flags:?}: {}",
                got.error_text()
            );
            assert_eq!(got.text(), expected.text(), "{context}");
            assert_eq!(got.status.code(), expected.status.code(), "{context}");
        }
    }
}

#[test]
fn every_format_of_ours() {
    let t = TestTree::new();
    t.write("d/a", "abc")
        .write_bytes(b"d/new\nline", "")
        .write_bytes(b"d/inv\xffalid", "x");
    for (i, options) in [
        "",
        "-z",
        "--format=bsd",
        "--format=bsd -z",
        "--format=json",
        "--format=jsonl",
        "--format=csv",
        "--type=md5,blake3",
        "--type=xxh3 --format=bsd",
        "--type=md5,xxh128 --format=csv",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("m{i}");
        t.bc_line("hash d")
            .args(options.split_whitespace())
            .args(["--output", &name])
            .go()
            .code(0);
        let zero = if options.contains("-z") {
            "-z"
        } else {
            "--threads=auto"
        };
        let out = t.bc_line("hash check").arg(zero).arg(&name).go();
        out.code(0).stderr_is("");
        assert!(out.text().contains("d/a: OK"), "{options}: {}", out.text());
        t.write("d/a", "abd");
        t.bc_line("hash check --quiet")
            .arg(zero)
            .arg(&name)
            .go()
            .code(1)
            .stdout_has("d/a: FAILED");
        t.write("d/a", "abc");
    }
}

#[test]
fn algorithm_from_name_option_and_tag() {
    let t = TestTree::new();
    t.write("a", "abc");
    for algorithm in [
        "blake3",
        "xxh128",
        "sha512-256",
        "xxh3",
        "crc32c",
        "blake2b-256",
    ] {
        let name = format!("a.{algorithm}");
        t.bc_line("hash a")
            .args(["--type", algorithm, "--output", &name])
            .go()
            .code(0);
        t.bc_line("hash check")
            .arg(&name)
            .go()
            .code(0)
            .stdout_is("a: OK\n");
        std::fs::rename(t.join(&name), t.join("plain")).unwrap();
        t.bc_line("hash check plain")
            .args(["--type", algorithm])
            .go()
            .code(0)
            .stdout_is("a: OK\n");
        // Tried on the file.
        t.bc_line("hash check plain")
            .go()
            .code(0)
            .stdout_is("a: OK\n");
    }
}

#[test]
fn what_cannot_be_looked_into_may_hold_unlisted_files() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/locked/new", "x");
    t.write("SUMS", format!("{ABC}  d/a\n{ABC}  gone/a\n"));
    // A listed directory that is gone is no error of its own.
    t.remove("d/locked/new").remove("d/locked");
    t.bc_line("hash check --unlisted --ignore-missing SUMS")
        .go()
        .code(0)
        .stderr_is("");
    if bc_testkit::is_root() {
        return bc_testkit::left_out("root reads everything");
    }
    t.write("d/locked/new", "x").mode("d/locked", 0);
    for status in ["", "--status"] {
        let line = format!("hash check --unlisted --ignore-missing {status} SUMS");
        let out = t.bc_line(&line).go();
        out.code(1).stderr_has("d/locked: open: Permission denied");
    }
    t.mode("d/locked", 0o700);
}

/// A directory that may be read and not searched tells the names and kinds of its files. Each is an
/// error of its own all the same.
#[test]
fn names_that_cannot_be_reached_are_errors_each() {
    let t = TestTree::new();
    let (mut list, mut verdicts) = (String::new(), String::new());
    for number in 0..12 {
        let name = format!("d/{number}");
        t.write(&name, "abc");
        list += &format!("{ABC}  {name}\n");
        verdicts += &format!("{name}: FAILED open or read\n");
    }
    t.write("SUMS", list).mode("d", 0o444);
    let out = t.bc_line("hash check SUMS").as_nobody().go();
    out.code(1)
        .stdout_is(&verdicts)
        .stderr_has("d/0: stat: Permission denied")
        .stderr_has("d/11: stat: Permission denied")
        .stderr_has("12 listed files could not be read");
    t.mode("d", 0o700);
}

#[test]
fn unlisted_files() {
    let t = TestTree::new();
    t.write("d/a", "abc")
        .write("d/sub/new", "x")
        .write("SUMS", format!("{ABC}  d/a\n"));
    t.bc_line("hash check --unlisted SUMS")
        .go()
        .code(1)
        .stdout_is("d/a: OK\nd/sub/new: UNLISTED\n")
        .stderr_has("WARNING: 1 file is not listed");
    t.write("d/SUMS", format!("{ABC}  a\n"));
    t.bc_line("hash check --unlisted --base=d d/SUMS")
        .go()
        .code(1)
        .stdout_is("d/a: OK\nd/sub/new: UNLISTED\n");
    t.remove("d/sub/new");
    t.bc_line("hash check --unlisted --base=d d/SUMS")
        .go()
        .code(0);
    // A file may be named as stdin is.
    t.remove("d/SUMS").write("d/-", "x");
    t.bc_line("hash check --quiet --unlisted -")
        .stdin(format!("{ABC}  a\n"))
        .current_dir(t.join("d"))
        .go()
        .code(1)
        .stdout_is("./-: UNLISTED\n");
}

#[test]
fn a_listed_file_is_listed_however_its_name_is_written() {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("b", "abc")
        .write("d/c", "abc")
        .write("e/f", "abc")
        .symlink("d", "link");
    let root = t.path().to_str().unwrap();
    let names = [
        "d/../a".to_owned(),
        ".//e/../d/.././b".to_owned(),
        "link/c".to_owned(),
        format!("{root}/e/f"),
    ];
    let lines: String = names
        .iter()
        .map(|name| format!("{ABC}  {name}\n"))
        .collect();
    std::fs::write(t.scratch("SUMS"), lines).unwrap();
    let check = || t.bc_line("hash check --quiet --unlisted ../SUMS").go();
    check().code(0).stdout_is("");
    // Another name of a listed file is none of the list's.
    t.hard_link("a", "d/other").write("new", "x");
    let text = check().code(1).text();
    let mut reported: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_suffix(": UNLISTED"))
        .collect();
    reported.sort_unstable();
    assert_eq!(reported.len(), 2, "{text}");
    assert!(
        reported[0].ends_with("d/other") && reported[1].ends_with("new"),
        "{text}"
    );
    // The directory above is not below this one.
    t.remove("new").remove("d/other");
    std::fs::write(t.join("e/SUMS"), format!("{ABC}  f\n{ABC}  ../a\n")).unwrap();
    t.bc_line("hash check --quiet --unlisted SUMS")
        .current_dir(t.join("e"))
        .go()
        .code(1)
        .stdout_is("../b: UNLISTED\n../d/c: UNLISTED\n");
}

/// What could not be read when it was listed is listed all the same.
#[test]
fn a_file_without_a_digest_is_listed() {
    let t = TestTree::new();
    t.write("d/a", "1").write("d/b", "2");
    t.bc_line("hash --format=jsonl -o sums d").go().code(0);
    let text = String::from_utf8(t.read("sums")).unwrap();
    let failed = r#""error":{"op":"open","errno":13,"message":"Permission denied"}}"#;
    let lines: String = text
        .lines()
        .map(|line| match line.contains("d/b") {
            true => format!("{{\"type\":\"file\",\"path\":\"d/b\",{failed}\n"),
            false => format!("{line}\n"),
        })
        .collect();
    t.write("sums", lines);
    for line in ["sums", "--base=. sums"] {
        let check = t.bc_line(&format!("hash check --unlisted {line}")).go();
        check.code(1).stderr_has("no digest of d/b");
        assert!(!check.text().contains("d/b: UNLISTED"), "{}", check.text());
    }
}

#[test]
fn stdin_and_several_manifests() {
    let t = tree();
    t.write("MORE", "900150983cd24fb0d6963f7d28e17f72  a\n");
    t.bc_line("hash check -")
        .stdin(format!("{ABC}  a\n"))
        .go()
        .code(0)
        .stdout_is("a: OK\n");
    t.bc_line("hash check SUMS MORE")
        .go()
        .code(0)
        .stdout_is("a: OK\nb: OK\na: OK\n");
    t.bc_line("hash check missing SUMS")
        .go()
        .code(2)
        .stdout_is("a: OK\nb: OK\n")
        .stderr_has("missing: open: No such file or directory");
}

#[test]
fn bad_manifests() {
    let t = tree();
    t.write(
        "binary",
        (0..=255_u8).cycle().take(100_000).collect::<Vec<u8>>(),
    );
    t.bc_line("hash check binary")
        .go()
        .code(1)
        .stderr_has("binary: no properly formatted");
    t.write("huge", vec![b'x'; 40 << 20]);
    t.bc_line("hash check huge")
        .go()
        .code(1)
        .stderr_has("huge: no properly formatted");
    t.bc_line("hash check .")
        .go()
        .code(2)
        .stderr_has("Is a directory");
    t.write("mixed", format!("{ABC}  a\nMD5 (a) = 900150983cd24fb0d6963f7d28e17f72\na9993e364706816aba3e25717850c26c9cd0d89d  a\n"));
    t.bc_line("hash check mixed")
        .go()
        .code(0)
        .stdout_is("a: OK\na: OK\na: OK\n");
}

/// Lines and places that check cannot read say why, and what can be done.
#[test]
fn what_no_check_reads_is_explained() {
    let t = TestTree::new();
    t.write("r/d/f", "abc");
    let sums = t.bc_line("hash -t sha256 r").go().text();
    t.write("SUMS", sums);
    for (base, says) in [
        ("nope", "nope: stat: No such file or directory"),
        ("SUMS", "SUMS: stat: "),
    ] {
        let run = t
            .bc()
            .args(["hash", "check", &format!("--base={base}"), "SUMS"])
            .go();
        run.code(2).stderr_has(says).stdout_is("");
    }
    t.bc()
        .args(["hash", "--dirs", ""])
        .go()
        .code(2)
        .stderr_has("bc hash: '': stat: ");
    let dirs = t.bc_line("hash --dirs -t sha256 r").go().text();
    t.write("DIRS", dirs);
    let out = t.bc_line("hash check DIRS").go();
    out.code(1).stderr_has("bc hash diff DIRS NEW");
    t.write("STDIN", format!("{ABC}  -\n"));
    let out = t.bc_line("hash check --type=sha256 STDIN").go();
    out.code(1)
        .stderr_has("-: open: was standard input")
        .stdout_is("-: FAILED open or read\n");
}
