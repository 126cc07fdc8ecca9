//! Trees made to be difficult.

use bc_testkit::{TestTree, hostile, left_out, tool};

use crate::common::Bc;

#[test]
fn every_file_of_a_hostile_tree_is_hashed_once() {
    let t = TestTree::new();
    t.dir("h");
    hostile::build(&t.join("h")).unwrap();
    let expected = bc_testkit::reference::files(&t.join("h")).unwrap();
    let out = t.bc_line("hash -z --relative --type=md5 h").go();
    let mut names: Vec<Vec<u8>> = out
        .stdout
        .split(|b| *b == 0)
        .filter(|record| !record.is_empty())
        .map(|record| record[34..].to_vec())
        .collect();
    let failed = out.error_lines().len();
    assert_eq!(names.len() + failed, expected.len(), "{}", out.error_text());
    assert!(names.is_sorted());
    names.retain(|name| !expected.contains(name));
    assert!(names.is_empty(), "not in the tree: {names:?}");
}

#[test]
fn standard_tools_and_we_accept_each_other() {
    let t = TestTree::new();
    t.dir("h");
    hostile::build(&t.join("h")).unwrap();
    for (algorithm, program) in [
        ("sha256", "sha256sum"),
        ("md5", "md5sum"),
        ("blake2b", "b2sum"),
    ] {
        if tool(program).is_none() || tool("find").is_none() {
            left_out(&format!("{program} or find is not installed"));
            continue;
        }
        // Paths beyond PATH_MAX are ours alone: tools cannot open them.
        let out = t.bc_line("hash h").args(["--type", algorithm]).go();
        let ours: Vec<&[u8]> = out.lines().into_iter().filter(|l| l.len() < 4000).collect();
        t.write("ours", [ours.join(&b'\n'), b"\n".to_vec()].concat());
        t.run(program)
            .args(["--quiet", "-c", "ours"])
            .go()
            .code(0)
            .stdout_is("");
        let theirs = t
            .run("sh")
            .args([
                "-c",
                &format!("find h -type f -print0 | xargs -0 {program} 2>/dev/null"),
            ])
            .go();
        t.write("theirs", &theirs.stdout);
        t.bc_line("hash check --quiet theirs")
            .args(["--type", algorithm])
            .go()
            .code(0)
            .stdout_is("");
        let mut sorted = theirs.lines();
        sorted.sort_by_key(|line| ours_key(line));
        assert_eq!(sorted, ours, "{program}");
    }
}

/// Sort key of a GNU line: its path, unescaped.
fn ours_key(line: &[u8]) -> Vec<u8> {
    let escaped = line.first() == Some(&b'\\');
    let start = line
        .windows(2)
        .position(|w| w == b"  ")
        .map_or(0, |at| at + 2);
    let mut key = Vec::new();
    let mut bytes = line[start..].iter();
    while let Some(byte) = bytes.next() {
        key.push(match (escaped, byte) {
            (true, b'\\') => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                _ => b'\\',
            },
            _ => *byte,
        });
    }
    key
}
