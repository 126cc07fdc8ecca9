//! The names of b3sum and xxhsum, compared with the installed programs in their common uses.

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::gnu_alike::ours;

/// Digests, checks and what is printed of failures.
fn compared(name: &str, stdout_of: &[&[&str]]) {
    let Some(path) = tool(name) else {
        return left_out(&format!("{name} is not installed"));
    };
    let t = TestTree::new();
    t.write("a", "abc")
        .write("b", "b".repeat(300_000))
        .write("empty", "")
        .dir("d");
    let lines = t.run(&path).args(["a", "b", "empty"]).go().text();
    let bad = lines
        .replacen(['1', '2', '3'], "0", 3)
        .replace("  empty", "  missing");
    t.write("sums", &lines)
        .write("bad", format!("{lines}{bad}"));
    for args in stdout_of {
        let theirs = t.run(&path).args(*args).stdin("input").go();
        let ours = t.bc().arg0(name).args(*args).stdin("input").go();
        assert_eq!(ours.text(), theirs.text(), "{name} {args:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{name} {args:?}");
    }
}

#[test]
fn b3sum_as_it_is_commonly_used() {
    compared(
        "b3sum",
        &[
            &["a", "b", "empty"],
            &[],
            &["-"],
            &["a", "missing", "d", "b"],
            &["--no-names", "a", "b"],
            &["--num-threads", "1", "--no-mmap", "b"],
            &["-l", "8", "a"],
            &["--length=20", "a"],
            &["--raw", "a"],
            &["-c", "sums"],
            &["--check", "bad"],
            &["-c", "--quiet", "bad", "sums"],
        ],
    );
    let t = TestTree::new();
    t.write("a", "abc");
    let digest = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    ours(&t, "b3sum", &["--tag", "a"], "")
        .code(0)
        .stdout_is(format!("BLAKE3 (a) = {digest}\n"));
    for args in [
        &["--keyed", "a"][..],
        &["--derive-key", "x", "a"],
        &["-l", "33", "a"],
    ] {
        ours(&t, "b3sum", args, "")
            .code(1)
            .stdout_is("")
            .stderr_has("BLAKE3's own b3sum");
    }
}

/// Those that clap reads end with 2, since b3sum 1.4; what b3sum itself refuses with 1.
#[test]
fn b3sum_tells_wrong_arguments_from_failures() {
    let t = TestTree::new();
    t.write("a", "abc").write("b", "abc");
    for (args, code) in [
        (&["--nope"][..], 2),
        (&["-z", "a"], 2),
        (&["--length=x", "a"], 2),
        (&["--length"], 2),
        (&["--num-threads=x", "a"], 2),
        (&["--quiet", "a"], 2),
        (&["--check", "--raw", "a"], 2),
        (&["--check", "--tag", "a"], 2),
        (&["--no-names", "-c", "a"], 2),
        (&["--raw", "a", "b"], 1),
        (&["missing"], 1),
        (&["-c", "missing"], 1),
    ] {
        ours(&t, "b3sum", args, "").code(code).stdout_is("");
    }
}

/// Its arguments are read by hand: options end at the first name, and only an attached number is
/// that of -H.
#[test]
fn xxhsum_reads_its_arguments_and_lines_as_c_does() {
    let Some(path) = tool("xxhsum") else {
        return left_out("xxhsum is not installed");
    };
    let t = TestTree::new();
    t.write("a", "abc").write("b", "other");
    let lines = t.run(&path).args(["a", "b"]).go().text();
    let (a, b) = lines.split_once("  a\n").unwrap();
    for (nth, text) in [
        format!("{a}  a\0x\n{b}"),
        format!("{a}\0  a\n{b}"),
        format!("XXH64 (a) = {a}\0zz\n{b}"),
        format!("XXH64 (a\0) = {a}\n{b}"),
        format!("{a}  a\0x"),
        format!("{a} \0 a\n{b}"),
        "\0".repeat(10),
    ]
    .iter()
    .enumerate()
    {
        t.write(format!("sums{nth}"), text);
    }
    let mut all: Vec<Vec<String>> = (0..7)
        .map(|nth| vec!["-c".to_owned(), format!("sums{nth}")])
        .collect();
    for line in [
        "-H a",
        "-H",
        "-H9 a",
        "-Hx a",
        "-Hc sums0",
        "-H2q a",
        "-z a",
        "--nope a",
        "--chec sums0",
        "a --tag",
        "a -c",
        "-- -c",
        "- a",
        "--check",
        "--tag -H32 a b",
    ] {
        all.push(line.split_whitespace().map(str::to_owned).collect());
    }
    for args in &all {
        let theirs = t.run(&path).args(args).stdin("input").go();
        let ours = t.bc().arg0("xxhsum").args(args).stdin("input").go();
        assert_eq!(ours.text(), theirs.text(), "{args:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{args:?}");
    }
}

#[test]
fn xxhsum_as_it_is_commonly_used() {
    let all: &[&[&str]] = &[
        &["a", "b", "empty"],
        &[],
        &["-"],
        &["a", "missing", "d", "b"],
        &["--tag", "a", "b"],
        &["--little-endian", "a"],
        &["-c", "sums"],
        &["-c", "bad"],
        &["-c", "--quiet", "bad"],
        &["-c", "--status", "bad"],
        &["--check", "--strict", "sums"],
        &["-q", "-c", "sums"],
    ];
    for name in ["xxhsum", "xxh32sum", "xxh64sum", "xxh128sum"] {
        compared(name, all);
    }
    compared(
        "xxhsum",
        &[
            &["-H0", "a"],
            &["-H2", "a"],
            &["-H32", "b"],
            &["-H128", "a", "b"],
        ],
    );
    let t = TestTree::new();
    t.write("a", "abc");
    ours(&t, "xxhsum", &["-H3", "a"], "")
        .code(0)
        .stdout_is("XXH3_78af5f94892f3950  a\n");
}
