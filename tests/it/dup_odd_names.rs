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
        run.code(0)
            .stderr_has(format!("{} files changed", odd.len()));
        for name in odd {
            assert_eq!(t.read(format!("kept/{name}")), name.as_bytes());
            if action.ends_with("link") {
                assert_eq!(content(name), name.as_bytes(), "{action}");
            }
        }
        t.bc_line("dup undo ../j")
            .go()
            .code(0)
            .stderr_has(format!("{} restored", odd.len()));
        for name in odd {
            assert_eq!(content(name), name.as_bytes(), "{action}");
        }
        std::fs::remove_file(t.scratch("j")).unwrap();
    }
}
