//! `bc hash --dirs`: one digest for each directory, that other programs can compute.

use bc_testkit::{TestTree, left_out, tool};
use serde_json::Value;

use crate::common::Bc;

/// A tree with each kind of entry that counts.
fn sample() -> TestTree {
    let t = TestTree::new();
    t.write("r/a", "content")
        .write("r/sub/b", "more")
        .write("r/sub/empty", "")
        .symlink("a", "r/link")
        .dir("r/void");
    t
}

/// Returns the digests by the printed paths.
fn lines(text: &str) -> Vec<(String, String)> {
    let split = |line: &str| {
        let (digest, path) = line.split_once("  ").unwrap();
        (path.to_owned(), digest.to_owned())
    };
    text.lines().map(split).collect()
}

#[test]
fn each_directory_has_a_line() {
    let t = sample();
    let out = t.bc_line("hash --dirs r").go().code(0).text();
    let paths: Vec<String> = lines(&out).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["r/", "r/sub/", "r/void/"]);
    let out = t.bc_line("hash --dirs --relative r").go().code(0).text();
    let paths: Vec<String> = lines(&out).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["./", "sub/", "void/"]);
    // The root is the first line, whatever names there are.
    t.dir("r/!first").dir("r/-");
    let out = t.bc_line("hash --dirs --relative r").go().code(0).text();
    assert_eq!(lines(&out)[0].0, "./");
}

#[test]
fn other_programs_compute_the_same() {
    if tool("sha256sum").is_none() {
        return left_out("sha256sum is not installed");
    }
    let t = sample();
    let script = r#"
        of() { sha256sum | cut -c1-64; }
        record() { printf '%s%s%s\0' "$1" "$(of < "$2")" "$3"; }
        sub=$({ record f r/sub/b b; record f /dev/null empty; } | of)
        printf a > target
        { record f r/a a; record l target link; printf 'd%s%s\0' $sub sub; record d /dev/null void; } | of
    "#;
    let other = t.run("sh").args(["-c", script]).go().code(0).text();
    let ours = t.bc_line("hash --dirs r").go().code(0).text();
    assert_eq!(lines(&ours)[0].1, other.trim());
    // As the guide has it.
    let guide = include_str!("../../src/guide/hash.md");
    let (_, rest) = guide
        .split_once("an empty directory `b`:\n\n```sh\n")
        .unwrap();
    let (commands, _) = rest.split_once("```").unwrap();
    t.write("g/a", "1").dir("g/b");
    let script = format!("cd g && {commands}");
    let other = t.run("sh").args(["-c", &script]).go().code(0).text();
    let ours = t.bc_line("hash --dirs g").go().code(0).text();
    assert_eq!(lines(&ours)[0].1, other.trim());
}

#[test]
fn equal_directories_have_the_digest_that_dup_gives_them() {
    let t = sample();
    t.run("cp").args(["-a", "r", "s"]).go().code(0);
    for algorithm in ["sha256", "blake3"] {
        let line = format!("hash --dirs --type={algorithm} r s");
        let ours = lines(&t.bc_line(&line).go().code(0).text());
        let line = format!("dup dirs --format=json --algorithm={algorithm} r s");
        let found: Value = serde_json::from_str(&t.bc_line(&line).go().text()).unwrap();
        let digest = &found["directories"][0]["digest"];
        let of = |path: &str| ours.iter().find(|(one, _)| one == path).unwrap().1.clone();
        assert_eq!(*digest, of("r/"), "{algorithm}");
        assert_eq!(of("r/"), of("s/"));
        assert_eq!(of("r/sub/"), of("s/sub/"));
    }
    // Names, kinds, targets and contents count; times and modes do not.
    let root = |t: &TestTree| lines(&t.bc_line("hash --dirs r").go().text())[0].1.clone();
    let before = root(&t);
    t.mtime("r/a", 5, 0).mode("r/sub", 0o700);
    assert_eq!(root(&t), before);
    for change in [
        |t: &TestTree| drop(std::fs::rename(t.join("r/void"), t.join("r/null"))),
        |t: &TestTree| drop(std::fs::write(t.join("r/sub/empty"), "1")),
        |t: &TestTree| drop(std::fs::rename(t.join("r/sub/b"), t.join("r/b"))),
        |t: &TestTree| {
            t.remove("r/link").symlink("b", "r/link");
        },
    ] {
        let before = root(&t);
        change(&t);
        assert_ne!(root(&t), before);
    }
}

#[test]
fn formats_and_several_algorithms() {
    let t = sample();
    let out = t
        .bc_line("hash --dirs --type=md5,sha256 r")
        .go()
        .code(0)
        .text();
    assert_eq!(out.lines().count(), 6);
    assert!(out.starts_with("MD5 (r/) = "), "{out}");
    let out = t
        .bc_line("hash --dirs --format=jsonl r")
        .go()
        .code(0)
        .text();
    let objects: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let root = &objects[1];
    assert_eq!((&root["type"], &root["path"]), (&"dir".into(), &"r".into()));
    assert_eq!((&root["files"], &root["bytes"]), (&3.into(), &11.into()));
    assert_eq!(root["filtered"], 0);
    let digest = root["digests"]["sha256"].as_str().unwrap();
    let plain = t.bc_line("hash --dirs r").go().text();
    assert_eq!(lines(&plain)[0].1, digest);
    let out = t.bc_line("hash --dirs --format=json r").go().code(0).text();
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["directories"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["directories"][0], *root);
    let out = t.bc_line("hash --dirs --format=csv r").go().code(0).text();
    assert!(out.contains(&format!("r/,11,{digest}")), "{out}");
    // Lists of two hosts are compared.
    t.bc_line("hash --dirs --relative -o one r").go().code(0);
    t.write("r/sub/b", "other");
    t.bc_line("hash --dirs --relative -o other r").go().code(0);
    let out = t.bc_line("hash diff one other").go().code(1).text();
    assert!(out.contains("sub/") && !out.contains("void/"), "{out}");
}

#[test]
fn a_directory_that_is_not_known_as_a_whole_has_no_digest() {
    let t = sample();
    t.fifo("r/sub/fifo");
    let out = t.bc_line("hash --dirs r").go();
    out.code(1).stderr_has("r/sub: hash: it has a FIFO");
    let paths: Vec<String> = lines(&out.text())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(paths, ["r/void/"]);
    let line = "hash --dirs --exclude=fifo --format=jsonl r";
    let out = t.bc_line(line).go().code(0).text();
    let root: Value = serde_json::from_str(out.lines().nth(1).unwrap()).unwrap();
    assert_eq!(root["filtered"], 1);
    t.remove("r/sub/fifo");
    if rustix::process::geteuid().is_root() {
        return left_out("the superuser reads everything");
    }
    t.mode("r/sub/b", 0);
    let out = t.bc_line("hash --dirs r").go();
    out.code(1).stderr_has("r/sub/b: open");
    assert!(!out.text().contains("r/sub/\n"), "{out}");
}

#[test]
fn a_directory_below_itself_has_no_digest_and_is_named() {
    let t = sample();
    t.dir("r/inner");
    t.symlink("../..", "r/inner/up");
    let out = t.bc_line("hash --dirs --follow-symlinks r").go();
    out.code(1).stderr_has("r").stderr_has("listed elsewhere");
    let json = t.bc_line("hash --dirs --follow-symlinks --format=json r");
    let json: Value = serde_json::from_str(&json.go().code(1).text()).unwrap();
    assert!(!json["errors"].as_array().unwrap().is_empty(), "{json}");
}

#[test]
fn only_directories_can_be_named() {
    let t = sample();
    for path in ["r/a", "-"] {
        t.bc_line(&format!("hash --dirs {path}"))
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("no directory");
    }
    for option in ["--shard=1/2", "--allow-changed", "--files-from=-"] {
        t.bc_line(&format!("hash --dirs {option} r")).go().code(2);
    }
    t.bc_line("hash --dirs missing")
        .go()
        .code(2)
        .stderr_has("missing");
}
