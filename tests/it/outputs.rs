//! Where `--output` leads: descriptors, links, devices that refuse; and settings that cannot be read.

use bc_testkit::TestTree;

use crate::common::{ABC, BC, Bc};

/// Runs a shell script in the tree with `$BC` set, and returns what it left in `log`.
fn log_after(t: &TestTree, script: &str) -> String {
    t.run("sh")
        .args(["-c", script])
        .env("BC", BC)
        .go()
        .code(0)
        .stderr_is("");
    std::fs::read_to_string(t.join("log")).unwrap()
}

#[test]
fn a_descriptor_is_written_to_and_its_file_never_replaced() {
    let t = TestTree::new();
    t.write("src/a", "abc");
    let line = format!("{ABC}  src/a\n");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"] {
        t.run("sh")
            .args(["-c", "ln -sf /dev/stdout link; echo before > log"])
            .go()
            .code(0);
        let appended = log_after(&t, &format!("\"$BC\" hash src --output={name} >> log"));
        assert_eq!(appended, format!("before\n{line}"), "{name}");
        let between = format!("(echo b; \"$BC\" hash src --output={name}; echo a) > log");
        assert_eq!(log_after(&t, &between), format!("b\n{line}a\n"), "{name}");
        // A log that was rotated away while it was open.
        let deleted = format!(
            "exec 3>&1 > gone; rm gone; \"$BC\" hash src --output={name} && ls -d go* {name} > log 2>/dev/null; true"
        );
        assert_eq!(log_after(&t, &deleted), format!("{name}\n"), "{name}");
    }
    assert!(t.join("link").is_symlink());
    let other = log_after(
        &t,
        "echo before > log; \"$BC\" hash src -o /dev/fd/5 5>> log",
    );
    assert_eq!(other, format!("before\n{line}"));
}

#[test]
fn a_failed_write_names_the_output() {
    let t = TestTree::new();
    t.write("src/a", "abc");
    for command in ["hash src", "integrity manifest src"] {
        t.bc_line(command)
            .arg("--output=/dev/full")
            .go()
            .code(2)
            .stderr_has("/dev/full");
    }
}

/// A disk that is full before the new manifest is whole: here a limit, which needs no disk.
#[test]
fn an_update_that_cannot_be_written_names_its_manifest_and_keeps_it() {
    for manifest in ["m.jsonl", "m.jsonl.zst"] {
        let t = TestTree::new();
        for file in 0..300 {
            t.write(format!("src/{file}"), file.to_string());
        }
        t.bc_line(&format!("integrity manifest --output={manifest} src"))
            .go()
            .code(0);
        let before = t.read(manifest);
        t.write("src/new", "x");
        let limited = "trap '' XFSZ; ulimit -f 2; exec \"$0\" integrity update src \"$1\"";
        t.run("sh")
            .args(["-c", limited, crate::common::BC, manifest])
            .go()
            .code(2)
            .stderr_has(format!("bc integrity: {manifest}: write: "));
        assert!(t.read(manifest) == before, "{manifest}");
        let names = std::fs::read_dir(t.path()).unwrap().count();
        assert_eq!(names, 2, "nothing but the tree and its manifest");
    }
}

#[test]
fn a_home_that_holds_no_settings_is_no_obstacle() {
    let t = TestTree::new();
    t.write("a", "abc").write("file", "");
    let line = format!("{ABC}  a\n");
    for home in ["/dev/null", "file"] {
        t.bc_line("hash a")
            .env("HOME", t.join(home))
            .env("XDG_CONFIG_HOME", "")
            .go()
            .code(0)
            .stderr_is("")
            .stdout_is(&line);
    }
    // One that was named has to be there.
    t.bc_line("hash a --config=file/x").go().code(2);
}
