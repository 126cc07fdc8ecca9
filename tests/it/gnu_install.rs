//! `bc install --gnu` and `--remove`.

use bc_testkit::TestTree;

use crate::common::{ABC, Bc};

#[test]
fn links_under_the_names_of_others() {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("bin/md5sum", "a program of somebody else");
    let out = t.bc_line("install --gnu bin").go();
    out.code(2)
        .stderr_is("bc install: bin/md5sum: exists and is not ours; it stays\n");
    out.stdout_has("bin/sha256sum\n")
        .stdout_has("bin/xxh128sum\n");
    assert!(!out.text().contains("md5sum") && !t.exists("bin/bchash"));
    t.bc_line("install --gnu --force bin").go().code(2);
    t.run(t.join("bin/sha256sum"))
        .arg("a")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n"));
    t.bc_line("install bin")
        .go()
        .code(0)
        .stdout_has("bin/bchash\n");
    let removed = t.bc_line("install --gnu --remove bin").go();
    removed.code(0).stdout_has("bin/sha256sum\n").stderr_is("");
    assert!(t.exists("bin/bchash") && !t.exists("bin/sha256sum"));
    let removed = t.bc_line("install --remove bin").go();
    removed.code(0).stdout_has("bin/bchash\n");
    let left: Vec<_> = std::fs::read_dir(t.join("bin")).unwrap().collect();
    assert_eq!(left.len(), 1, "what is somebody else's stays");
    t.bc_line("install --remove bin").go().code(0).stdout_is("");
    t.bc_line("install --remove --mkdir nowhere")
        .go()
        .code(0)
        .stdout_is("");
}

/// Hard links may be all the names that the program has.
#[test]
fn removal_leaves_the_program() {
    let t = TestTree::new();
    t.dir("bin");
    let program = t.join("bin/bitcrafts");
    bc_testkit::copy_program(crate::common::BC.as_ref(), &program).unwrap();
    t.run(&program)
        .args(["install", "--hard", "bin"])
        .go()
        .code(0);
    t.run(&program)
        .args(["install", "--hard", "--gnu", "bin"])
        .go()
        .code(0);
    assert!(t.exists("bin/cksum"));
    t.run(&program)
        .args(["install", "--remove", "bin"])
        .go()
        .code(0);
    assert!(!t.exists("bin/cksum") && !t.exists("bin/bchash"));
    t.run(&program)
        .args(["install", "--remove", "bin"])
        .go()
        .code(0)
        .stdout_is("");
    assert!(t.exists("bin/bitcrafts"));
}
