//! `bc hash check` of manifests that do not say what their digests are.

use bc_digest::{Algorithm, Plain};
use bc_testkit::TestTree;

use crate::common::Bc;

/// Every algorithm that shares its digests' length with another one and leaves lines untagged.
fn untagged() -> impl Iterator<Item = &'static Algorithm> {
    let shares = |a: &&Algorithm| {
        let length = |b: &&Algorithm| b.digest_len() == a.digest_len();
        Algorithm::ALL.iter().filter(length).count() > 1
    };
    // XXH3 puts its name before the digest; the lines of cksum cannot be told from other text.
    let plain = |a: &&Algorithm| **a != Algorithm::Xxh3 && a.plain() == Plain::Hex;
    Algorithm::ALL.iter().filter(shares).filter(plain)
}

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("d/a", "abc")
        .write("d/b", "longer than the others")
        .write("d/empty", "");
    t
}

#[test]
fn our_own_manifests_check_under_any_name() {
    let t = tree();
    for algorithm in untagged() {
        for format in ["gnu", "gnu -z"] {
            t.bc_line(&format!("hash --type={algorithm} --format={format} d -o m"))
                .go()
                .code(0);
            let zero = if format.ends_with("-z") { "-z" } else { "" };
            t.bc_line(&format!("hash check -v m {zero}"))
                .go()
                .code(0)
                .stdout_is("d/a: OK\nd/b: OK\nd/empty: OK\n")
                .stderr_has(format!(
                    "no algorithm is named; {algorithm} matches d/empty"
                ));
            let manifest = std::fs::read(t.join("m")).unwrap();
            t.bc_line(&format!("hash check --status - {zero}"))
                .stdin(manifest)
                .go()
                .code(0);
        }
    }
}

#[test]
fn damaged_and_missing_files_do_not_decide() {
    let t = tree();
    t.bc_line("hash --type=blake3 d -o m").go().code(0);
    t.write("d/a", "damaged").remove("d/empty");
    t.bc_line("hash check m")
        .go()
        .code(1)
        .stdout_is("d/a: FAILED\nd/b: OK\nd/empty: FAILED open or read\n");
    // Nothing matches: the usual one, as coreutils have it, and a hint.
    t.write("d/b", "damaged too");
    t.bc_line("hash check m")
        .go()
        .code(1)
        .stdout_is("d/a: FAILED\nd/b: FAILED\nd/empty: FAILED open or read\n")
        .stderr_has("nothing matched as sha256");
}

#[test]
fn large_files_decide_without_being_read_twice() {
    let t = TestTree::new();
    let size = 5 << 18;
    for name in ["a", "b", "c", "d"] {
        t.write(format!("d/{name}"), name.repeat(size));
    }
    let all_ok = "d/a: OK\nd/b: OK\nd/c: OK\nd/d: OK\n";
    for (algorithm, once) in [("sha256", true), ("blake3", false), ("sm3", false)] {
        t.bc_line(&format!("hash --type={algorithm} --format=gnu d -o m"))
            .go()
            .code(0);
        for threads in [1, 2, 3, 16] {
            let checked = t
                .bc_line(&format!("hash check -v m --threads={threads}"))
                .go();
            let said = checked
                .code(0)
                .stdout_is(all_ok)
                .stderr_has(format!("no algorithm is named; {algorithm} matches d/"));
            if once {
                said.stderr_has(format!("m: 4 lines, 4 files, {} bytes", 4 * size));
            }
        }
    }
    // Neither the damaged one nor those that are missing decide.
    t.write("d/a", "b".repeat(size)).remove("d/b");
    let damaged = "d/a: FAILED\nd/b: FAILED open or read\nd/c: OK\nd/d: OK\n";
    for algorithm in ["sm3", "sha256"] {
        if algorithm == "sha256" {
            t.write("d/a", "a".repeat(size))
                .write("d/b", "b".repeat(size));
            t.bc_line("hash --type=sha256 --format=gnu d -o m")
                .go()
                .code(0);
            t.write("d/a", "b".repeat(size)).remove("d/b");
        }
        for threads in [1, 2] {
            let line = format!("hash check m --threads={threads}");
            t.bc_line(&line).go().code(1).stdout_is(damaged);
        }
    }
}

#[test]
fn what_is_said_is_never_tried() {
    let t = tree();
    for (algorithm, name, option) in [
        // A name that tells, an option, a tag: wrong ones fail instead of being second-guessed.
        ("blake3", "SHA256SUMS", ""),
        ("xxh128", "d.md5", ""),
        ("sha512", "m", "--type=blake2b"),
    ] {
        t.bc_line(&format!("hash --type={algorithm} d -o {name}"))
            .go()
            .code(0);
        t.bc_line(&format!("hash check {name} {option}"))
            .go()
            .code(1)
            .stdout_is("d/a: FAILED\nd/b: FAILED\nd/empty: FAILED\n");
    }
    t.bc_line("hash --type=blake3 --format=bsd d -o m")
        .go()
        .code(0);
    let text = std::fs::read_to_string(t.join("m")).unwrap();
    t.write("m", text.replace("BLAKE3", "SHA256"));
    t.bc_line("hash check m").go().code(1).stdout_has("FAILED");
}

#[test]
fn each_length_is_settled_by_itself() {
    let t = tree();
    let mut mixed = Vec::new();
    for algorithm in ["blake3", "blake2b", "xxh128"] {
        mixed.extend(
            t.bc_line(&format!("hash d/a d/b --type={algorithm}"))
                .go()
                .stdout,
        );
    }
    t.write("mixed", mixed);
    t.bc_line("hash check --quiet mixed")
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn a_base_is_searched_for_the_files() {
    let t = tree();
    t.bc_line("hash --type=blake3 --relative d -o m")
        .go()
        .code(0);
    t.bc_line("hash check --quiet --base=d m")
        .go()
        .code(0)
        .stdout_is("");
}
