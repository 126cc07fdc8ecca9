//! Under the names of coreutils' checksum programs: the same bytes, messages and exit codes as the
//! installed ones, where those are coreutils and their version has what is compared.

use std::path::PathBuf;

use bc_testkit::{Outcome, TestTree, left_out, tool};
use rustix::io::Errno;

use crate::common::Bc;

pub const PROGRAMS: &[&str] = &[
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "cksum",
];

/// Where coreutils' program lies, and its version; says why if there is none.
pub fn installed(name: &str) -> Option<(PathBuf, (u32, u32))> {
    let found = tool(name).and_then(|path| {
        let out = std::process::Command::new(&path)
            .arg("--version")
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let number = text.lines().next()?.split_once("(GNU coreutils) ")?.1;
        let (major, minor) = number.split_once('.')?;
        let digits = minor.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((path, (major.parse().ok()?, digits.parse().ok()?)))
    });
    if found.is_none() {
        left_out(&format!("{name} of GNU coreutils is not installed"));
    }
    found
}

/// Runs ours under that name.
pub fn ours(t: &TestTree, name: &str, args: &[&str], stdin: &str) -> Outcome {
    t.bc()
        .arg0(name)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(stdin)
        .go()
}

/// Compares what both print and say, and how they end.
#[track_caller]
fn same(t: &TestTree, name: &str, args: &[&str], stdin: &str) {
    let Some((path, version)) = installed(name) else {
        return;
    };
    // Older ones took a directory, and whatever else could not be read, for an empty file.
    let crc = name == "cksum" && !args.iter().any(|arg| arg.starts_with("-a") || *arg == "-c");
    if crc && version < READ_ERRORS && args.iter().any(|arg| BAD.contains(arg) || *arg == "d1") {
        return;
    }
    // Before it took --text and --binary, only one option of cksum began so, and was always allowed.
    let is_new = |arg: &&str| ["--t", "--tag", "-b", "-t"].contains(arg);
    if name == "cksum" && version < TEXT && args.iter().any(is_new) {
        return;
    }
    let theirs = t
        .run(path)
        .arg0(name)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(stdin)
        .go();
    let ours = ours(t, name, args, stdin);
    let all = |out: &Outcome| {
        let code = format!("{:?}\n", out.status.code());
        let all = [code.as_bytes(), &out.stdout, b"--\n", &out.stderr].concat();
        // Names in what checking says are quoted only since then.
        match version < QUOTED && args.iter().any(|arg| arg.starts_with("-c")) {
            true => all.into_iter().filter(|byte| *byte != b'\'').collect(),
            false => all,
        }
    };
    let (theirs, ours) = (in_own_words(all(&theirs)), all(&ours));
    let shown = || bc_testkit::diff::lines(&theirs, &ours);
    assert!(ours == theirs, "{name} {args:?}\n{}", shown());
}

/// Message of glibc, with which coreutils are linked, for links that lead in a circle.
const LOOP: &[u8] = b"Too many levels of symbolic links";

/// Replaces that message with the one of the C library that the program under test has.
fn in_own_words(mut text: Vec<u8>) -> Vec<u8> {
    let own = Errno::LOOP.to_string();
    let own = own.split(" (os error").next().unwrap_or_default();
    let mut from = 0;
    while let Some(at) = text[from..]
        .windows(LOOP.len())
        .position(|part| part == LOOP)
    {
        let at = from + at;
        text.splice(at..at + LOOP.len(), own.bytes());
        from = at + own.len();
    }
    text
}

/// The first versions in which cksum says that a file cannot be read, and takes --text, and names are
/// quoted while checking.
const READ_ERRORS: (u32, u32) = (9, 4);
const TEXT: (u32, u32) = (9, 2);
const QUOTED: (u32, u32) = (9, 11);

/// Names of all kinds: links, directories, missing ones, what needs escaping.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("empty", "")
        .write(" b", "b")
        .write("*c", "c")
        .write("back\\slash", "x")
        .write("new\nline", "y")
        .write("cr\rname", "z")
        .write("-dash", "d")
        .write("long", "0123456789abcdef".repeat(70_000))
        .dir("dir")
        .symlink("a", "link")
        .symlink("nowhere", "dangling")
        .symlink("loop", "loop");
    t.write_bytes(b"no\xfftext", "w");
    t
}

const NAMES: &[&str] = &[
    "a",
    "empty",
    " b",
    "*c",
    "back\\slash",
    "new\nline",
    "cr\rname",
    "./-dash",
    "long",
    "link",
];

const BAD: &[&str] = &[
    "dir", "dir/", "dangling", "loop", "missing", "a/b", "", "it's", "a b c",
];

#[test]
fn digests_of_files() {
    let t = tree();
    for name in PROGRAMS {
        same(&t, name, NAMES, "");
        same(&t, name, &[], "from a pipe");
        same(&t, name, &["-"], "from a pipe");
        same(&t, name, &["a", "-", "a", "-", "a"], "once");
        same(&t, name, BAD, "");
        let mixed: Vec<&str> = NAMES.iter().zip(BAD).flat_map(|(a, b)| [*a, *b]).collect();
        same(&t, name, &mixed, "");
        same(
            &t,
            name,
            &["/dev/stdin", "/dev/null", "/proc/version"],
            "by its path",
        );
    }
}

#[test]
fn ways_to_write_them() {
    let t = tree();
    for name in PROGRAMS {
        for options in [
            "-b", "-t", "-z", "--zero", "--binary", "--text", "-bz", "-tb", "-zt",
        ] {
            // cksum of today refuses text with tags whatever the order.
            if *name == "cksum" && options.contains(['t', 'b']) && options != "--zero" {
                continue;
            }
            let args: Vec<&str> = std::iter::once(options)
                .chain(NAMES.iter().copied())
                .collect();
            same(&t, name, &args, "");
        }
        if *name != "cksum" {
            let args: Vec<&str> = std::iter::once("--tag")
                .chain(NAMES.iter().copied())
                .collect();
            same(&t, name, &args, "");
            same(&t, name, &["--tag", "-z", "new\nline", "a"], "");
        }
    }
    for bits in ["0", "8", "128", "256", "504", "512", " 16", "+16"] {
        same(&t, "b2sum", &["-l", bits, "a", "long"], "");
        same(&t, "b2sum", &["--tag", "--length", bits, "a", "empty"], "");
    }
}

#[test]
fn all_that_cksum_computes() {
    let t = tree();
    let Some((_, version)) = installed("cksum") else {
        return;
    };
    for algorithm in [
        "bsd", "sysv", "crc", "crc32b", "md5", "sha1", "sha224", "sha256", "sha384", "sha512",
        "blake2b", "sm3",
    ] {
        if algorithm == "crc32b" && version < (9, 7) {
            continue;
        }
        let all = |options: &[&'static str]| -> Vec<&str> {
            ["-a", algorithm]
                .into_iter()
                .chain(options.iter().copied())
                .chain(NAMES.iter().copied())
                .collect()
        };
        same(&t, "cksum", &all(&[]), "");
        same(&t, "cksum", &all(&["-z"]), "");
        same(&t, "cksum", &all(&["--untagged"]), "");
        same(&t, "cksum", &["-a", algorithm], "standard input");
        same(&t, "cksum", &["-a", algorithm, "-"], "standard input");
        if version >= (9, 2) {
            same(&t, "cksum", &all(&["--base64"]), "");
            same(&t, "cksum", &["-a", algorithm, "--raw", "long"], "");
        }
    }
    if version >= (9, 8) {
        for bits in ["224", "256", "384", "512"] {
            same(&t, "cksum", &["-a", "sha2", "-l", bits, "a", "long"], "");
            same(&t, "cksum", &["-a", "sha3", "-l", bits, "a", "long"], "");
        }
    }
}

#[test]
fn wrong_options() {
    let t = tree();
    for name in PROGRAMS {
        for args in [
            &["--nope"][..],
            &["--nope=3", "a"],
            &["-x"],
            &["-cx"],
            &["--check=1"],
            &["--t", "a"],
            &["--st"],
            &["--s"],
            &["-z", "-c", "a"],
            &["--tag", "-c", "a"],
            &["-b", "-c", "a"],
            &["-t", "--check", "a"],
            &["--status", "a"],
            &["--quiet", "a"],
            &["-w", "a"],
            &["--warn", "a"],
            &["--strict", "a"],
            &["--ignore-missing", "a"],
            &["--quiet", "--status", "--strict", "a"],
            &["-l"],
            &["--length"],
        ] {
            same(&t, name, args, "");
        }
    }
    same(&t, "md5sum", &["--tag", "--text", "a"], "");
    same(&t, "b2sum", &["--tag", "--text", "a"], "");
    for bits in ["12", "x", "", "8x", "-", "0x10", "9"] {
        same(&t, "b2sum", &["-l", bits, "a"], "");
        same(&t, "cksum", &["-a", "blake2b", "-l", bits, "a"], "");
    }
}

#[test]
fn options_anywhere_and_abbreviated() {
    let t = tree();
    for name in PROGRAMS {
        same(&t, name, &["a", "-z", "empty"], "");
        same(&t, name, &["a", "--ze", "--", "-dash"], "");
        same(&t, name, &["a", "--", "-z"], "");
        same(&t, name, &["--chec", "--ignore", "--qui", "missing"], "");
    }
    let Some((path, _)) = installed("md5sum") else {
        return;
    };
    for args in [
        &["a", "-z", "empty"][..],
        &["-z", "a", "--tag"],
        &["--", "a", "-z"],
    ] {
        let run = |run: bc_testkit::Run| {
            let run = run.arg0("md5sum").args(args).env("LC_ALL", "C");
            run.env("POSIXLY_CORRECT", "1").go()
        };
        let (ours, theirs) = (run(t.bc()), run(t.run(&path)));
        assert_eq!(ours.stdout, theirs.stdout, "{args:?}");
        assert_eq!(ours.error_text(), theirs.error_text(), "{args:?}");
    }
}

#[test]
fn many_files_in_the_order_of_the_arguments() {
    let t = TestTree::new();
    let mut args = Vec::new();
    for i in 0..600 {
        let name = format!("d{}/f{:03}", i % 7, (i * 7919) % 600);
        let size = if i % 50 == 3 {
            300_000
        } else {
            (i * 37) % 5000
        };
        t.write(&name, "x".repeat(size));
        args.push(name);
        if i % 90 == 8 {
            let others = [
                "missing",
                "d1",
                "/dev/null",
                "/proc/version",
                "/sys/devices/system/cpu/possible",
            ];
            args.extend(others.map(str::to_owned));
        }
        if i % 100 == 9 {
            args.push(args[i / 2].clone());
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    for name in ["md5sum", "sha256sum", "sha512sum", "b2sum", "cksum"] {
        same(&t, name, &args, "");
    }
    same(&t, "b2sum", &[&["-l", "128"], &args[..]].concat(), "");
    same(&t, "cksum", &[&["-a", "bsd"], &args[..]].concat(), "");
}

/// Lines of all kinds, good and bad.
fn sums(t: &TestTree, name: &str) -> String {
    let line = |args: &[&str]| ours(t, name, args, "").text();
    let tags: &[&str] = if name == "cksum" {
        &["-a", "sm3"]
    } else {
        &["--tag"]
    };
    let good = line(&[tags, &["a", "long", "link", "empty"]].concat());
    let text = match name {
        "cksum" => String::new(),
        _ => line(&["a", "./-dash"]) + &line(&["-b", "a"]),
    };
    let upper = line(&[tags, &["a"]].concat());
    let (head, digest) = upper.trim_end().rsplit_once(' ').unwrap();
    let bad = format!("{head} {}", digest.replace(['1', '2', '3', '4'], "5"));
    let crlf = format!("{head} {}\r\n", digest.to_uppercase());
    format!(
        "# comment\n{good}\n{text}{crlf}junk\n{bad}\n{head} {digest}0\n \t{good}{}",
        good.replace("(a)", "(missing)").replace("(long)", "(dir)")
    )
}

#[test]
fn lines_are_checked() {
    let t = tree();
    for name in PROGRAMS {
        let lines = sums(&t, name);
        t.write("sums", &lines);
        for options in [
            &["-c"][..],
            &["-c", "--quiet"],
            &["-c", "--status"],
            &["-c", "-w"],
            &["-cw", "--strict"],
            &["-c", "--ignore-missing"],
            &["-c", "--ignore-missing", "--quiet", "--strict"],
            &["-c", "--warn", "--status"],
            &["-c", "--status", "--warn"],
            &["-c", "--quiet", "--warn"],
        ] {
            same(&t, name, &[options, &["sums"]].concat(), "");
            same(&t, name, options, &lines);
            same(&t, name, &[options, &["-", "sums"]].concat(), &lines);
            same(
                &t,
                name,
                &[options, &["missing", "sums", "empty", "dir"]].concat(),
                "",
            );
        }
        let missing =
            "SM3 (missing) = 1ab21d8355cfa17f8e61194831e81a8f22bec8c728fefb747ed035eb5082aa2b\n";
        same(&t, name, &["-c", "--ignore-missing"], missing);
    }
}

#[test]
fn styles_of_lines() {
    let t = tree();
    let digest = "900150983cd24fb0d6963f7d28e17f72";
    for text in [
        format!("{digest} a\n{digest}  b\n"),
        format!("{digest}  a\n{digest} a\n"),
        format!("{digest} *a\n"),
        format!("{digest} \n"),
        format!("{digest}\n"),
        format!("{digest}  \n"),
        format!("MD5(a)= {digest}\n"),
        format!("MD5 (a)={digest}\n"),
        format!("MD5 (a) = {digest} \n"),
        format!("MD5 a = {digest}\n"),
        format!("\\{digest}  a\n"),
        format!("\\{digest}  a\\tb\n"),
        format!("\\MD5 (a\\) = {digest}\n"),
        format!("{digest}  a\0b\n"),
        format!("{}  a\n", "\0".repeat(32)),
        format!("{digest}  -\n"),
        format!("{digest}  a"),
        "MD5 (".to_owned(),
        "MD5 ()".to_owned(),
        "\n\n\n".to_owned(),
        "\r\n".to_owned(),
        "BLAKE2b-24 (a) = abcdef\nBLAKE2b-0 (a) = ab\nBLAKE2b-030 (a) = abcdef\n".to_owned(),
        "SHA256 (a) = ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
            .to_owned(),
    ] {
        t.write("sums", &text);
        for name in ["md5sum", "b2sum", "cksum", "sha256sum"] {
            same(&t, name, &["-c", "sums"], "");
            same(&t, name, &["-cw"], &text);
        }
    }
}

/// Files and directories that an ordinary user may not open, few and many.
#[test]
fn what_may_not_be_read() {
    let t = TestTree::new();
    let Some((path, version)) = installed("sha256sum") else {
        return;
    };
    let mut args: Vec<String> = Vec::new();
    for i in 0..40 {
        t.write(format!("d{}/f{i}", i % 4), "x".repeat(i * 100));
        args.push(format!("d{}/f{i}", i % 4));
    }
    // Nothing can be found in d1, nothing be listed in d2.
    t.mode("d0/f4", 0)
        .mode("d2/f6", 0o200)
        .mode("d1", 0o600)
        .mode("d2", 0o711);
    for (name, path) in [
        ("sha256sum", path.clone()),
        ("cksum", path.with_file_name("cksum")),
    ] {
        for some in [&args[..4], &args] {
            if name == "cksum" && version < READ_ERRORS {
                continue;
            }
            let run = |run: bc_testkit::Run| {
                let run = run.arg0(name).args(some).env("LC_ALL", "C");
                run.as_nobody().go()
            };
            let (ours, theirs) = (run(t.bc()), run(t.run(&path)));
            assert_eq!(ours.text(), theirs.text(), "{name}");
            assert_eq!(ours.error_text(), theirs.error_text(), "{name}");
            assert_eq!(ours.status, theirs.status, "{name}");
        }
    }
    t.mode("d1", 0o755);
}
