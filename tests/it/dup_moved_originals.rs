//! `bc dup prune --action=move:DIR`: a file goes only for a copy that is its own, and what a killed
//! move has set aside is neither rubbish nor passed over in silence.

use bc_testkit::TestTree;

use crate::common::Bc;

/// Names as a killed run leaves them; no process has that number.
const LEFT: &str = ".bc-dup.4194305.7.0.65024-12.tmp";

/// Two files of one relative name, in two directories, moved to one place by two runs.
#[test]
fn no_name_goes_for_the_copy_of_another_file() {
    let t = TestTree::new();
    for name in ["keep", "one/in/x", "two/in/x"] {
        t.write(name, "same").mtime(name, 1_000_000_000, 7);
    }
    let prune = |dir: &str, journal: &str| {
        t.bc()
            .current_dir(t.join(dir))
            .args([
                "dup",
                "prune",
                "--action=move:../seen",
                "--reference=../keep",
                "--yes",
                "in",
            ])
            .arg(format!("--journal=../../{journal}"))
            .go()
    };
    prune("one", "j1").code(0);
    prune("two", "j2")
        .code(1)
        .stderr_has("the destination exists; it is equal, but not known to be a copy of this file");
    assert_eq!(t.read("two/in/x"), b"same");
    // The kept file is not needed any more.
    t.remove("keep");
    t.bc_line("dup undo ../j2").go().code(0);
    t.bc_line("dup undo ../j1")
        .go()
        .code(0)
        .stdout_has("restored");
    assert_eq!(
        (t.read("one/in/x"), t.read("two/in/x")),
        (b"same".to_vec(), b"same".to_vec())
    );
}

/// Whether it is a duplicate still or of nothing, it stays and is named.
#[test]
fn the_original_of_a_killed_move_is_named() {
    for (content, action) in [
        ("same", "delete"),
        ("same", "hardlink"),
        ("same", "move:D"),
        ("other", "delete"),
        ("other", "move:D"),
    ] {
        let t = TestTree::new();
        let left = format!("in/{LEFT}");
        t.write("keep/a", "same").write(&left, content);
        for mode in ["--dry-run", "--yes"] {
            let action = format!("--action={action}");
            t.bc()
                .args([
                    "dup",
                    "prune",
                    &action,
                    mode,
                    "--reference=keep",
                    "--journal=../j",
                    "in",
                ])
                .go()
                .code(1)
                .stderr_has(LEFT)
                .stderr_has("the original of a move that was killed");
            assert_eq!(t.read(&left), content.as_bytes(), "{action} {mode}");
        }
    }
}

/// One temporary is not several; a file that went meanwhile is no error of the system's.
#[test]
fn what_is_said_is_so() {
    let t = TestTree::new();
    t.write("a", "same").write("b/x", "same");
    t.symlink("../a", "b/.bc-dup.4194305.7.0.tmp");
    t.bc_line("dup prune --action=delete --keep=first --yes --journal=../j a b")
        .go()
        .code(0)
        .stderr_has("; 1 temporary of a killed run removed");
}

/// A journal whose last line was cut off tells of all steps before; one of which a whole line is
/// damaged of those behind as well, and that line is named.
#[test]
fn a_damaged_line_costs_its_own_step() {
    let journal = || {
        let t = TestTree::new();
        t.write("a", "same")
            .write("b/x", "same")
            .write("b/y", "same");
        t.bc_line("dup prune --action=delete --keep=first --yes --journal=../j a b")
            .go()
            .code(0);
        let text = std::fs::read_to_string(t.scratch("j")).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 5, "{text}");
        (t, lines)
    };
    for end in ["", "\n", "\n\n"] {
        let (t, mut lines) = journal();
        let half = lines[3][..lines[3].len() / 2].to_owned();
        lines.truncate(3);
        let text = format!("{}\n{half}{end}", lines.join("\n"));
        std::fs::write(t.scratch("j"), text).unwrap();
        let undone = t.bc_line("dup undo ../j").go();
        undone.stderr_has("1 restored");
        match end {
            "" => undone.code(0),
            _ => undone.code(1).stderr_has("line 4 is damaged"),
        };
        assert!(t.exists("b/x") && !t.exists("b/y"), "{end:?}");
    }
    let (t, mut lines) = journal();
    lines[1].truncate(40);
    std::fs::write(t.scratch("j"), lines.join("\n") + "\n").unwrap();
    t.bc_line("dup undo ../j")
        .go()
        .code(1)
        .stderr_has("line 2 is damaged")
        .stderr_has("1 restored");
    assert!(!t.exists("b/x") && t.exists("b/y"));
}
