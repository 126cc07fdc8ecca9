//! One binary, several names.

use bc_testkit::TestTree;

use crate::common::{ABC, BC, Bc};

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
        .stderr_has("bc --help");
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
        .stdout_has("bc (bit-crafts) ")
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
    // Who called it by another name is told of that one.
    for name in ["bitcrafts", "odd name"] {
        let called = t.run("bash").env("BC", BC).env("NAME", name);
        let called = called.args(["-c", "exec -a \"/x/$NAME\" \"$BC\" --version"]);
        let first = format!("{name} (bit-crafts) ");
        assert!(called.go().code(0).text().starts_with(&first), "{name}");
    }
    // Each command has one, the one without subcommands too, by every name.
    for name in [
        "bchash",
        "bcduplicate",
        "bcintegrity",
        "bccopy",
        "bccp",
        "bcmove",
        "bcmv",
    ] {
        let called = t.run("bash").env("BC", BC).env("NAME", name);
        let called = called.args(["-c", "exec -a \"$NAME\" \"$BC\" --version"]);
        let line = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(called.go().code(0).text(), line);
    }
    t.bc_line("copy --version")
        .go()
        .code(0)
        .stdout_has("bc copy ");
    let help = t.bc_line("copy --help").go();
    assert!(!help.code(0).text().contains("-V, "));
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
    t.bc_line("install --mkdir missing/below").go().code(0);
    assert!(t.join("missing/below/bchash").is_symlink());
    // What can be no directory is named once, not once a link.
    t.bc_line("install --mkdir a/bin")
        .go()
        .code(2)
        .stderr_is("bc install: a/bin: stat: Not a directory (os error 20)\n");
    let leftovers = std::fs::read_dir(t.join("bin")).unwrap().filter(|e| {
        e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("tmp")
    });
    assert_eq!(leftovers.count(), 0);
}

/// The program may be called as one of the links, and lie where they are wanted.
#[test]
fn install_never_replaces_the_program_by_a_link_to_itself() {
    for options in ["", "--force", "--symbolic", "--hard", "--hard --force"] {
        for name in ["bitcrafts", "bchash"] {
            for earlier in [None, Some("--hard")] {
                let t = TestTree::new();
                t.dir("bin").write("a", "abc");
                let program = t.join("bin").join(name);
                std::fs::hard_link(copied_program(), &program)
                    .or_else(|_| bc_testkit::copy_program(crate::common::BC.as_ref(), &program))
                    .unwrap();
                for options in earlier.into_iter().chain([options]) {
                    // As an applet's name it has no subcommand `install`; any other link does.
                    let called = t.join("called");
                    let _ = std::fs::remove_file(&called);
                    std::os::unix::fs::symlink(&program, &called).unwrap();
                    t.run(&called)
                        .arg("install")
                        .args(options.split_whitespace())
                        .arg("bin/../bin")
                        .go()
                        .code(0);
                }
                assert!(!program.is_symlink(), "{name}, {options}, {earlier:?}");
                for link in ["bitcrafts", "bchash", "bcdup", "bc-integrity"] {
                    t.run(t.join("bin").join(link))
                        .arg("--version")
                        .go()
                        .code(0);
                }
            }
        }
    }
}

/// A copy of the program that the test's other names can be linked to.
fn copied_program() -> std::path::PathBuf {
    static COPY: std::sync::OnceLock<(TestTree, std::path::PathBuf)> = std::sync::OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let t = TestTree::new();
        let path = t.join("bc");
        bc_testkit::copy_program(crate::common::BC.as_ref(), &path).unwrap();
        (t, path)
    });
    path.clone()
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
