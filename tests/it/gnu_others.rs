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
