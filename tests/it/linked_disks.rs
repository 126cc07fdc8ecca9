//! Links that lead to other file systems: a manifest records where those begin.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{TestTree, left_out};
use serde_json::Value;

use crate::common::Bc;

/// The paths that a manifest says something is mounted at.
fn mounted(manifest: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(manifest);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mounted = lines.filter(|line: &Value| line.get("mount").is_some());
    mounted
        .map(|line| line["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn another_disk_begins_at_the_link() {
    let t = TestTree::new();
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return left_out("no /dev/shm");
    }
    let other = TestTree::new_in(memory);
    let dev = |tree: &TestTree| tree.path().metadata().unwrap().dev();
    if dev(&t) == dev(&other) {
        return left_out("no second file system");
    }
    other
        .write("disk/deep/deeper/f", "1")
        .write("second/deep/g", "2")
        .write("alone", "3")
        .dir("empty");
    // Names that sort between a directory and what is in it.
    for path in ["r/a/f", "r/a-b/f", "r/a.b/c/f", "r/a0", "home/f", "near/f"] {
        t.write(path, "here");
    }
    t.symlink(other.join("disk"), "r/a/link")
        .symlink(other.join("second/deep"), "r/a.b/c/to deep")
        .symlink(other.join("alone"), "r/a/file")
        .symlink(other.join("empty"), "r/none")
        .symlink("../../near", "r/a.b/near");
    other.symlink(t.join("home"), "disk/deep/home");
    let made = t.bc_line("integrity manifest --follow-symlinks r").go();
    made.code(0);
    // A file as well, and back from there; what holds nothing cannot be missed.
    let expected = ["a.b/c/to deep", "a/file", "a/link", "a/link/deep/home"];
    assert_eq!(mounted(&made.stdout), expected, "{}", made.text());
}
