//! `bc copy` a second time: what the manifest has proven of files that stay is not forgotten, and no
//! damage is recorded as what was copied.

use std::os::unix::fs::FileExt;

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::copy_trees::MANIFEST;

/// A tree, its copy, and a file of the copy that has decayed: its size and its time are as they were.
fn decayed() -> TestTree {
    let t = TestTree::new();
    t.write("r/a", "precious").write("r/b", "other");
    t.bc_line("copy r to").go().code(0);
    let file = std::fs::File::options()
        .write(true)
        .open(t.join("to/a"))
        .unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"P", 0).unwrap();
    file.set_modified(time).unwrap();
    t
}

fn verify(t: &TestTree) -> String {
    let out = t
        .bc_line(&format!("integrity verify to to/{MANIFEST}"))
        .go();
    out.code(3).text()
}

#[test]
fn damage_is_not_recorded_as_what_was_copied() {
    for how in ["skip", "update"] {
        let t = decayed();
        let out = t.bc_line(&format!("copy -T --on-conflict={how} r to")).go();
        out.code(1).stderr_has("to/a: compare: ");
        assert!(verify(&t).contains("!! a: "), "{how}: {}", verify(&t));
    }
}

#[test]
fn a_file_that_is_in_the_way_keeps_its_record() {
    let t = decayed();
    let out = t.bc_line("copy -T r to").go();
    out.code(1).stderr_has("to/a: ");
    let found = verify(&t);
    assert!(found.contains("!! a: "), "{found}");
    assert!(!found.contains(": b"), "{found}");
}

#[test]
fn what_was_edited_is_no_damage() {
    let t = decayed();
    t.write("to/a", "edited by hand");
    t.bc_line("copy -T --on-conflict=skip r to").go().code(0);
    let line = format!("integrity verify to to/{MANIFEST}");
    t.bc_line(&line).go().code(0);
}
