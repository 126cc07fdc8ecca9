//! Copies that stay beside the kept file: whatever happens while their group is processed, no fewer
//! are left.

use super::*;

/// Five equal files.
fn five() -> TestTree {
    let tree = TestTree::new();
    for name in ["a", "b", "c", "d", "e"] {
        tree.write(name, content());
    }
    tree
}

fn two_copies(keep: &str) -> PruneOptions {
    let mut options = options(Action::Delete);
    options.rules = KeepRules::new(vec![keep.parse().unwrap()], Roots::Any).copies(2);
    options
}

/// Runs, and has `meanwhile` done right after the first step.
fn run_and(
    tree: &TestTree,
    options: &PruneOptions,
    cancel: &Cancel,
    meanwhile: impl FnOnce(),
) -> (PruneSummary, Vec<String>) {
    let (mut meanwhile, mut lines) = (Some(meanwhile), Vec::new());
    let all = groups(tree.path());
    let summary = prune(all, options, None, cancel, &mut |event| {
        lines.push(event.to_string());
        if matches!(event, PruneEvent::Step(_, StepOutcome::Done { .. }))
            && let Some(meanwhile) = meanwhile.take()
        {
            meanwhile();
        }
    });
    (summary, lines)
}

#[test]
fn nothing_goes_once_a_copy_is_gone() {
    let tree = five();
    let remove = || fs::remove_file(tree.join("b")).unwrap();
    let options = two_copies("first");
    let (summary, lines) = run_and(&tree, &options, &Cancel::new(), remove);
    assert_eq!((summary.changed, summary.errors), (1, 2), "{lines:?}");
    assert_eq!(summary.skipped["kept file changed"], 2, "{lines:?}");
    assert!(lines[1].contains("/b: the kept file changed"), "{lines:?}");
    let left = ["a", "c", "d", "e"].map(|name| tree.exists(name));
    assert_eq!(left, [true, false, true, true]);
}

#[test]
fn two_runs_that_keep_other_files_leave_enough() {
    let tree = five();
    let other = || {
        // It is stopped after its first step.
        let cancel = Cancel::new();
        run_and(&tree, &two_copies("last"), &cancel, || cancel.cancel(2));
    };
    let options = two_copies("first");
    let (summary, lines) = run_and(&tree, &options, &Cancel::new(), other);
    let left = files(tree.path()).len();
    assert!(left >= 2, "{left} left of 5: {summary:?} {lines:?}");
}

#[test]
fn a_leftover_that_is_another_name_of_a_copy_goes() {
    let tree = TestTree::new();
    for name in ["a/keep", "b/copy", "b/goes"] {
        tree.write(name, content());
    }
    tree.hard_link("b/copy", "b/.bc-dup.4194305.7.1.part");
    let names = ["a/keep", "b/copy", "b/goes"];
    let files = names.map(|name| file_ref(tree.path(), &tree.join(name)));
    let group = FileGroup {
        files: files.to_vec(),
    };
    let (summary, lines) = run_groups(vec![group], &two_copies("first"), None);
    assert_eq!((summary.changed, summary.leftovers), (1, 1), "{lines:?}");
    assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
    assert!(tree.exists("b/copy") && !tree.exists("b/goes"));
}

#[test]
#[should_panic = "of equal directories one stays"]
fn of_directories_no_number_is_promised() {
    let options = two_copies("first");
    prune_trees([], &options, None, &Cancel::new(), &mut |_| ());
}
