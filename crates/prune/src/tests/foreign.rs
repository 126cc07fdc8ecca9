//! Another process put something in the place of a file right before it was set aside, and the run
//! was killed: that has a temporary name of the run, and is not the run's.

use std::process::Command;

use super::super::undo;

use super::moves::run_journalled;
use super::undo_later::undo_as_foreseen;
use super::*;

// No process has that number.
const LINK: &str = "b/.bc-dup.4194305.7.0.tmp";
const FILE: &str = "b/.bc-dup.4194305.7.1.tmp";
const DIR: &str = "b/.bc-dup.4194305.7.2.tmp";
const FIFO: &str = "b/.bc-dup.4194305.7.3.tmp";

fn pair() -> TestTree {
    let tree = TestTree::new();
    tree.write("a/keep", "same").write("b/x", "same");
    tree
}

fn put_foreign(tree: &TestTree) {
    tree.symlink("../else/where", LINK)
        .write(FILE, "their newest save")
        .write(format!("{DIR}/in"), "theirs");
    let made = Command::new("mkfifo").arg(tree.join(FIFO)).status();
    assert!(made.unwrap().success());
}

#[track_caller]
fn check_foreign(tree: &TestTree, lines: &[String]) {
    let text = fs::read_link(tree.join(LINK)).unwrap();
    assert_eq!(text, Path::new("../else/where"));
    assert_eq!(tree.read(FILE), b"their newest save");
    assert_eq!(tree.read(format!("{DIR}/in")), b"theirs");
    assert!(tree.join(FIFO).symlink_metadata().is_ok());
    let reported = lines.iter().filter(|line| line.contains("another process"));
    assert_eq!(reported.count(), 4, "{lines:?}");
}

#[test]
fn what_is_another_process_s_stays_and_is_reported_once() {
    for mode in [RunMode::DryRun, RunMode::Execute] {
        for index in 0..4 {
            let tree = pair();
            let mut options = options(actions(&tree)[index].clone());
            options.mode = mode;
            put_foreign(&tree);
            let (summary, lines) = run(&tree, &options);
            assert_eq!((summary.changed, summary.leftovers), (1, 0), "{lines:?}");
            assert!(summary.is_clean(), "{lines:?}");
            check_foreign(&tree, &lines);
        }
    }
}

#[test]
fn undo_reports_it_too() {
    for index in 0..4 {
        let tree = pair();
        let action = actions(&tree)[index].clone();
        run_journalled(&tree, &options(action));
        put_foreign(&tree);
        for mode in [RunMode::DryRun, RunMode::Execute] {
            let mut lines = Vec::new();
            let journal = tree.scratch("journal");
            let undone = undo::undo(&journal, mode, &Cancel::new(), &mut |event| {
                if let undo::UndoOutcome::Failed(why) = event.outcome {
                    lines.push(why.to_string());
                }
            });
            let undone = undone.unwrap();
            assert_eq!((undone.failed, undone.leftovers), (0, 0), "{lines:?}");
            check_foreign(&tree, &lines);
        }
        assert_eq!(tree.read("b/x"), b"same");
    }
}

/// The directory is searched when its first group comes by; the link is another group's.
#[test]
fn a_link_to_the_kept_file_of_a_later_group_goes() {
    for workers in [1, 3] {
        let tree = pair();
        tree.write("a/other", "other").write("b/y", "other");
        tree.symlink("../a/other", LINK).symlink("../a/keep", FILE);
        let (summary, lines) = run(&tree, &options(Action::Delete).workers(workers));
        assert_eq!((summary.changed, summary.leftovers), (2, 2), "{lines:?}");
        assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
    }
}

/// What its text says counts where the kept file is gone, and where it leads otherwise.
#[test]
fn a_link_of_a_step_goes_with_its_undo() {
    for text in ["../a/keep", "../b/../a/keep"] {
        let tree = pair();
        run_journalled(&tree, &options(Action::Symlink));
        tree.symlink(text, LINK);
        let (undone, lines) = undo_as_foreseen(&tree);
        assert_eq!((undone.restored, undone.leftovers), (1, 1), "{lines:?}");
        assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
    }
}
