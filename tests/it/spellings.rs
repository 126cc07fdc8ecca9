//! One file under several spellings: each spelling that is named has a line and a verdict of its
//! own, whatever else names the same file.

use bc_testkit::TestTree;

use crate::common::{ABC, Bc, EMPTY};

/// A file and the ways to name it, sorted as they are listed.
fn tree() -> (TestTree, Vec<String>) {
    let t = TestTree::new();
    t.write("a", "abc").dir("d");
    t.symlink(".", "here").symlink("a", "link");
    let mut spellings: Vec<String> = [".//a", "./a", "a", "d/../a", "here/a", "link"]
        .map(String::from)
        .to_vec();
    spellings.push(t.join("a").to_str().unwrap().to_owned());
    spellings.sort();
    (t, spellings)
}

fn gnu(path: &str, digest: &str) -> String {
    format!("{digest}  {path}\n")
}

fn bsd(path: &str, digest: &str) -> String {
    format!("SHA256 ({path}) = {digest}\n")
}

fn jsonl(path: &str, digest: &str) -> String {
    format!(
        "{{\"type\":\"file\",\"path\":\"{path}\",\"size\":3,\"digests\":{{\"sha256\":\"{digest}\"}}}}\n"
    )
}

type Line = fn(&str, &str) -> String;

/// The good digest under all spellings but one, which may stand anywhere.
#[test]
fn each_line_of_a_manifest_has_its_own_verdict() {
    let (t, spellings) = tree();
    let formats: [(&str, Line); 3] = [("M.sha256", gnu), ("M.bsd", bsd), ("M.jsonl", jsonl)];
    for (name, line) in formats {
        for bad in &spellings {
            // Neither sorted nor the other way round: verdicts come in the manifest's order.
            let mut order = spellings.clone();
            order.rotate_left(3);
            order.swap(0, 2);
            let digest = |path: &String| if path == bad { EMPTY } else { ABC };
            let manifest: String = order.iter().map(|p| line(p, digest(p))).collect();
            t.write(name, manifest);
            let word = |path: &String| if path == bad { "FAILED" } else { "OK" };
            let verdicts: String = order
                .iter()
                .map(|path| format!("{path}: {}\n", word(path)))
                .collect();
            let failed = format!("{bad}: FAILED\n");
            for (options, expected) in [
                ("", verdicts.as_str()),
                ("--strict", &verdicts),
                ("--quiet", &failed),
                ("--ignore-missing", &verdicts),
                ("--status", ""),
            ] {
                t.bc_line(&format!("hash check {options} {name}"))
                    .go()
                    .code(1)
                    .stdout_is(expected);
            }
        }
    }
}

#[test]
fn damage_in_one_of_two_lines_is_never_missed() {
    let (t, spellings) = tree();
    for good in &spellings {
        for bad in &spellings {
            for bad_first in [false, true] {
                let mut lines = [(good, ABC, "OK"), (bad, EMPTY, "FAILED")];
                if bad_first {
                    lines.reverse();
                }
                t.write(
                    "M.sha256",
                    lines.map(|(path, digest, _)| gnu(path, digest)).concat(),
                );
                t.bc_line("hash check M.sha256").go().code(1).stdout_is(
                    lines
                        .map(|(path, _, word)| format!("{path}: {word}\n"))
                        .concat(),
                );
            }
        }
    }
}

/// The release that is there now, and the one that a link no longer leads to.
#[test]
fn a_link_to_a_directory_hides_no_damage_there() {
    let t = TestTree::new();
    t.write("release-2/x", "abc")
        .symlink("release-2", "current");
    for (good, bad) in [("current/x", "release-2/x"), ("release-2/x", "current/x")] {
        t.write("M.sha256", gnu(good, ABC) + &gnu(bad, EMPTY));
        t.bc_line("hash check M.sha256")
            .go()
            .code(1)
            .stdout_is(format!("{good}: OK\n{bad}: FAILED\n"));
    }
}

#[test]
fn each_spelling_is_hashed() {
    let (t, spellings) = tree();
    let expected: String = spellings.iter().map(|path| gnu(path, ABC)).collect();
    let mut given = spellings.clone();
    given.reverse();
    t.bc()
        .arg("hash")
        .args(&given)
        .go()
        .code(0)
        .stdout_is(&expected);
    let list = given
        .iter()
        .map(|path| format!("{path}\n"))
        .collect::<String>();
    t.bc_line("hash --files-from=-")
        .stdin(list.clone())
        .go()
        .code(0)
        .stdout_is(&expected);
    // A repeated argument is one argument.
    t.bc_line("hash --files-from=-")
        .stdin(list.clone() + &list)
        .go()
        .code(0)
        .stdout_is(&expected);
    t.bc()
        .arg("hash")
        .args(&given)
        .args(&given)
        .go()
        .code(0)
        .stdout_is(&expected);
    // Beside a directory that has the file: what is named is listed as it is named, and not
    // met again there.
    let beside: Vec<&str> = vec!["d", ".", "a", "d/../a"];
    t.remove("link").remove("here");
    t.bc()
        .arg("hash")
        .args(beside)
        .go()
        .code(0)
        .stdout_is(gnu("a", ABC) + &gnu("d/../a", ABC));
}

/// What is there once is no duplicate, however often it is named.
#[test]
fn a_search_for_duplicates_counts_a_file_once() {
    let (t, spellings) = tree();
    t.remove("link");
    let spellings: Vec<_> = spellings.iter().filter(|path| *path != "link").collect();
    for options in ["", "--match-hardlinks"] {
        t.bc()
            .arg("dup")
            .args(options.split_whitespace())
            .args(&spellings)
            .go()
            .code(0)
            .stdout_is("");
    }
    t.bc_line("dup prune --action=delete --yes --journal=j")
        .args(&spellings)
        .go()
        .code(0);
    assert_eq!(t.read("a"), b"abc");
}
