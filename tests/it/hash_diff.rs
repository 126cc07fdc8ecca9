//! `bc hash diff`.

use bc_testkit::TestTree;

use crate::common::Bc;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("d/same", "1")
        .write("d/edit", "2")
        .write("d/gone", "3")
        .write("d/old-name", "4");
    t.bc_line("hash d --output=old").go().code(0);
    t.write("d/edit", "changed")
        .remove("d/gone")
        .write("d/new", "5")
        .write("d/z-name", "4")
        .remove("d/old-name");
    t
}

const EXPECTED: &str =
    "MODIFIED d/edit\nREMOVED d/gone\nADDED d/new\nMOVED d/old-name -> d/z-name\n";

#[test]
fn text() {
    let t = tree();
    t.bc_line("hash d --output=new").go().code(0);
    t.bc_line("hash diff old new")
        .go()
        .code(1)
        .stdout_is(EXPECTED)
        .stderr_has("1 added, 1 removed, 1 modified, 1 moved, 1 the same");
    t.bc_line("hash diff new new").go().code(0).stdout_is("");
}

#[test]
fn any_two_formats_compare() {
    let t = tree();
    for format in ["gnu", "bsd", "json", "jsonl", "csv"] {
        t.bc_line("hash d --output=new --format")
            .arg(format)
            .go()
            .code(0);
        t.bc_line("hash diff -q old new")
            .go()
            .code(1)
            .stdout_is(EXPECTED)
            .stderr_is("");
    }
    t.bc_line("hash d --output=new --type=md5,sha256")
        .go()
        .code(0);
    t.bc_line("hash diff old new")
        .go()
        .code(1)
        .stdout_is(EXPECTED);
    t.bc_line("hash d --output=new --type=sha1").go().code(0);
    t.bc_line("hash diff old new")
        .go()
        .code(2)
        .stderr_has("no algorithm in common");
}

#[test]
fn json() {
    let t = tree();
    t.bc_line("hash d --output=new").go().code(0);
    let out = t.bc_line("hash diff --format=json old new").go();
    let document: serde_json::Value = serde_json::from_slice(&out.code(1).stdout).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["changes"][3]["change"], "MOVED");
    assert_eq!(document["changes"][3]["to"], "d/z-name");
    assert_eq!(document["summary"]["same"], 1);
}

#[test]
fn unusable_input() {
    let t = tree();
    t.bc_line("hash diff old missing")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_has("missing: open: No such file");
    t.write("nonsense", "what is this\n");
    t.bc_line("hash diff old nonsense")
        .go()
        .code(2)
        .stderr_has("no properly formatted");
    t.write("empty", "");
    t.bc_line("hash diff empty empty").go().code(0);
    t.bc_line("hash diff old").go().code(2).stderr_has("NEW");
}

/// A file that could not be read when it was listed is neither gone nor new.
#[test]
fn unread_files_are_neither_removed_nor_added() {
    let t = TestTree::new();
    t.write("d/a", "1").write("d/b", "2").write("d/c", "3");
    for format in ["json", "jsonl", "csv"] {
        t.mode("d", 0o755).mode("d/b", 0o644);
        let line = format!("hash --relative --format={format} d");
        let write = |name: &str, code: i32| {
            let listed = t.bc_line(&line).as_nobody().go();
            t.write(name, &listed.code(code).stdout);
        };
        write("whole", 0);
        t.mode("d/b", 0);
        write("part", 1);
        for (old, new) in [("whole", "part"), ("part", "whole")] {
            t.bc_line(&format!("hash diff {old} {new}"))
                .go()
                .code(1)
                .stdout_is("")
                .stderr_has("part: no digest of b: ")
                .stderr_has("0 added, 0 removed, 0 modified, 0 moved, 2 the same");
        }
    }
}

/// The guide, "Is everything on the backup?": whatever the names and the numbers of copies, a line
/// REMOVED is content that the backup lacks.
#[test]
fn removed_is_what_the_backup_lacks() {
    let t = TestTree::new();
    t.write("here/a", "twice here")
        .write("here/b", "twice here")
        .write("here/c", "once here, twice there")
        .write("here/same", "in its place, and copied")
        .write("here/sub/same", "in its place, and copied")
        .write("here/lost", "only here")
        .write("there/x/a", "twice here")
        .write("there/x/c", "once here, twice there")
        .write("there/y/c", "once here, twice there")
        .write("there/same", "in its place, and copied")
        .write("there/new", "only there");
    t.bc_line("hash --relative --output=here.sha256 here")
        .go()
        .code(0);
    t.bc_line("hash --relative --output=there.sha256 there")
        .go()
        .code(0);
    let text = "MOVED a -> x/a\nMOVED b -> x/a\nMOVED c -> x/c\nMOVED c -> y/c\nREMOVED lost\n\
                ADDED new\nMOVED sub/same -> same\n";
    t.bc_line("hash diff here.sha256 there.sha256")
        .go()
        .code(1)
        .stdout_is(text)
        .stderr_has("1 added, 1 removed, 0 modified, 5 moved, 1 the same");
    let json = t
        .bc_line("hash diff --format=json here.sha256 there.sha256")
        .go();
    let document: serde_json::Value = serde_json::from_slice(&json.code(1).stdout).unwrap();
    assert_eq!(document["changes"][1]["path"], "b");
    assert_eq!(document["changes"][1]["to"], "x/a");
    assert_eq!(document["summary"]["moved"], 5);
    // Which of them is held in memory makes no difference.
    t.write("padded", [vec![b'#'; 4000], b"\n".to_vec()].concat());
    for (old, new) in [
        ("here.sha256 padded", "there.sha256"),
        ("here.sha256", "there.sha256 padded"),
    ] {
        t.run("sh")
            .args(["-c", &format!("cat {old} > old; cat {new} > new")])
            .go()
            .code(0);
        t.bc_line("hash diff -q old new")
            .go()
            .code(1)
            .stdout_is(text);
    }
    // Nothing that could be compared is no proof that all is there, or that nothing is.
    t.bc_line("hash --relative --type=md5 --output=there.md5 there/x")
        .go()
        .code(0);
    t.bc_line("hash diff here.sha256 there.md5")
        .go()
        .code(2)
        .stderr_has("no algorithm in common");
}

#[test]
fn standard_input_is_one_manifest() {
    let t = tree();
    for sides in ["- -", "- /dev/stdin", "/proc/self/fd/0 -"] {
        t.bc_line(&format!("hash diff {sides}"))
            .go()
            .code(2)
            .stderr_has("both manifests are standard input");
    }
}
