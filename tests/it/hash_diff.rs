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
