//! Every action and its undo where directories and files have names that a path, an option or the
//! kernel's own spelling of a path could be mistaken for.

use bc_testkit::TestTree;

use crate::common::Bc;

#[test]
fn no_name_is_taken_for_anything_else() {
    let t = TestTree::new();
    let odd = [
        "x (deleted)",
        " lead",
        "trail ",
        "-rf",
        "new\nline",
        "a\\b",
        "\"q\"",
        "...",
        "~",
        ".bc-dup.1.2.3.tmp",
        "*",
        "{}",
    ];
    for name in odd {
        t.write(format!("in/{name}/-{name}"), name);
    }
    let content = |name: &str| t.read(format!("in/{name}/-{name}"));
    // What a killed run may have left is nothing to rely on: its copy stays.
    let changed = odd.len() - 1;
    for action in ["symlink", "hardlink", "delete", "move:D"] {
        for name in odd {
            t.write(format!("kept/{name}"), name);
        }
        let action = format!("--action={action}");
        let run = t
            .bc()
            .args(["dup", "prune", &action, "--yes", "--journal=../j"])
            .args(["--reference=kept", "in"])
            .go();
        run.code(0).stderr_has(format!("{changed} files changed"));
        for name in odd {
            assert_eq!(t.read(format!("kept/{name}")), name.as_bytes());
            if action.ends_with("link") {
                assert_eq!(content(name), name.as_bytes(), "{action}");
            }
        }
        t.bc_line("dup undo ../j")
            .go()
            .code(0)
            .stderr_has(format!("{changed} restored"));
        for name in odd {
            assert_eq!(content(name), name.as_bytes(), "{action}");
        }
        std::fs::remove_file(t.scratch("j")).unwrap();
    }
}

/// Names that are no text at all.
#[test]
fn arguments_are_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bytes = OsStr::from_bytes;
    for dirs in [false, true] {
        let t = TestTree::new();
        t.write_bytes(b"in/k\xff/d/f", "twice")
            .write_bytes(b"in/a\xfe/d/f", "twice");
        let prune = |more: &str| {
            let run = t.bc().args(["dup", "prune", "--yes", "--journal=../j"]);
            let run = run.arg(bytes(b"--action=move:to\xff\xfe here"));
            let run = run.arg("--keep=path:k*").args(more.split_whitespace());
            if dirs { run.arg("--dirs") } else { run }.arg("in").go()
        };
        let from = t.join_bytes(b"in/a\xfe/d/f");
        let to = t.join_bytes(b"to\xff\xfe here/in/a\xfe/d/f");
        let dry = prune("--dry-run");
        dry.code(0);
        assert!(from.exists());
        prune("").code(0).stdout_is(dry.text());
        assert!(!from.exists() && to.exists(), "{dry:?}");
        // Nothing below it is moved again.
        prune("").code(0).stdout_is("");
        t.bc_line("dup undo ../j").go().code(0);
        assert!(from.exists() && !to.exists());
        // Patterns are text; which one is not is said.
        let out = t.bc().args(["dup", "prune", "--yes", "--action=delete"]);
        let out = out.arg(bytes(b"--keep=path:k\xff")).arg("in").go();
        out.code(2).stderr_has("k\\xff").stderr_has("not UTF-8");
    }
}
