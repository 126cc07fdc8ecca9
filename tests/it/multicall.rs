//! One binary, several names.

use bc_testkit::TestTree;

use crate::common::{ABC, Bc};

#[test]
fn the_program_name_chooses_the_applet() {
    let t = TestTree::new();
    t.write("a", "abc");
    let line = format!("{ABC}  a\n");
    for name in ["bchash", "bc-hash", "/usr/local/bin/bchash"] {
        t.bc().arg0(name).arg("a").go().code(0).stdout_is(&line);
        t.bc()
            .arg0(name)
            .args(["hash", "a"])
            .go()
            .code(0)
            .stdout_is(&line);
    }
    for name in ["bc", "bitcrafts", "renamed"] {
        t.bc()
            .arg0(name)
            .args(["hash", "a"])
            .go()
            .code(0)
            .stdout_is(&line);
    }
}

#[test]
fn the_calculator_is_elsewhere() {
    let t = TestTree::new();
    t.write("expressions", "1+1\n");
    for args in [
        &[][..],
        &["-l"],
        &["-q"],
        &["--mathlib"],
        &["expressions"],
        &["-"],
    ] {
        let out = t.bc().args(args).stdin("1+1\n").go();
        out.code(2).stdout_is("").stderr_has("not the calculator");
        assert_eq!(out.error_lines().len(), 1);
    }
}

#[test]
fn unknown_applets_get_a_suggestion() {
    let t = TestTree::new();
    t.bc_line("hsah x")
        .go()
        .code(2)
        .stderr_has("did you mean 'bc hash'?");
    t.bc_line("frobnicate x")
        .go()
        .code(2)
        .stderr_has("bc --list");
    t.bc_line("hash chekc --strict x")
        .go()
        .code(2)
        .stderr_has("did you mean 'bc hash check'?");
    t.write("chekc", "abc");
    t.bc_line("hash chekc")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  chekc\n"));
}

#[test]
fn list_version_help() {
    let t = TestTree::new();
    let list = t.bc_line("--list").go();
    list.code(0).stdout_has("hash\n");
    t.bc_line("--version")
        .go()
        .code(0)
        .stdout_has("CPU features: ")
        .stdout_has("readers: sync");
    t.bc_line("--help").go().code(0).stdout_has("calculator");
    t.bc_line("hash --help")
        .go()
        .code(0)
        .stdout_has("Examples:");
    t.bc_line("hash check --help")
        .go()
        .code(0)
        .stdout_has("Examples:");
    t.bc_line("help hash").go().code(0).stdout_has("Examples:");
}

#[test]
fn install_makes_links_and_respects_what_is_there() {
    let t = TestTree::new();
    t.write("a", "abc")
        .dir("bin")
        .write("bin/bchash", "a program of somebody else");
    t.bc_line("install bin")
        .go()
        .code(2)
        .stderr_has("bchash")
        .stderr_has("--force");
    assert_eq!(t.read("bin/bchash"), b"a program of somebody else");
    t.bc_line("install --force bin").go().code(0);
    t.run(t.join("bin/bchash"))
        .arg("a")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n"));
    t.bc_line("install bin").go().code(0);
    t.bc_line("install missing")
        .go()
        .code(2)
        .stderr_has("missing/");
    let leftovers = std::fs::read_dir(t.join("bin")).unwrap().filter(|e| {
        e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("tmp")
    });
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn describe_is_json_of_the_whole_tree() {
    let t = TestTree::new();
    let out = t.bc_line("--describe").go();
    let tree: serde_json::Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    let names: Vec<&str> = tree["subcommands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"hash"), "{names:?}");
    t.bc_line("hash --describe")
        .go()
        .code(0)
        .stdout_has("\"long\": \"ignore-missing\"");
}
