//! Manifests so large that what is the same is only counted: nothing else may be lost by that.

use bc_testkit::{TestTree, is_root};

use crate::common::Bc;

/// What the walk could not look at behind all that is the same.
#[test]
fn what_cannot_be_looked_at_is_told_behind_many_that_are_the_same() {
    let t = TestTree::new();
    let long = "n".repeat(240);
    for file in 0..1600 {
        t.write(format!("a/{long}/{file:04}{long}"), "");
    }
    t.write("zz/one", "1").write("zz/two", "2");
    // Root records them all the same, and then nothing differs.
    if is_root() {
        t.mode("zz", 0o444);
    }
    let m = t.scratch("m.jsonl").to_str().unwrap().to_owned();
    t.bc_line(&format!("integrity manifest --output={m} ."))
        .go()
        .code(0);
    assert!(std::fs::metadata(&m).unwrap().len() > 1 << 20);
    if !is_root() {
        t.mode("zz", 0o444);
    }
    let reported = ["", "--force"].map(|force| {
        let line = format!("integrity verify --mode=meta {force} . {m}");
        let ran = t.bc_line(&line).as_nobody().go();
        ran.code(1)
            .stdout_has("?? zz/one: ")
            .stdout_has("?? zz/two: ");
        ran.text()
    });
    assert_eq!(reported[0], reported[1]);
    t.mode("zz", 0o755);
}
