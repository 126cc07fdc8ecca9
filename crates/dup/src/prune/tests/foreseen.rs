//! A dry run of undo counts names that it would give back itself.

use super::undo_later::undo_as_foreseen;
use super::*;
use std::os::unix::fs::MetadataExt;

/// A file of two names, and another one that is equal.
fn linked() -> TestTree {
    let tree = TestTree::new();
    tree.write("a/keep", "same")
        .write("b/one", "same")
        .hard_link("b/one", "b/two");
    for name in ["a/keep", "b/one"] {
        tree.mtime(name, 1_000_000, 0);
    }
    tree
}

/// Prunes some names alone.
fn pruned(tree: &TestTree, names: &[&str], action: Action) {
    let files = names
        .iter()
        .map(|name| file_ref(tree.path(), &tree.join(name)));
    let group = FileGroup {
        files: files.collect(),
    };
    let options = options(action.clone());
    let path = tree.scratch("journal");
    let all = groups(tree.path());
    let mut journal = Journal::create(path, &action, &all, &Cancel::new()).unwrap();
    let (summary, lines) = run_groups(vec![group], &options, Some(&mut journal));
    assert!(summary.is_clean(), "{lines:?}");
}

#[track_caller]
fn are_one_again(tree: &TestTree, restored: u64, names: u64) {
    let (summary, lines) = undo_as_foreseen(tree);
    let counts = (summary.restored, summary.incomplete, summary.failed);
    assert_eq!(counts, (restored, 0, 0), "{lines:?}");
    let [one, two] = ["b/one", "b/two"].map(|name| inode(tree.join(name)));
    assert_eq!(one, two, "{lines:?}");
    let now = tree.join("b/one").metadata().unwrap().nlink();
    assert_eq!(now, names, "{lines:?}");
}

/// A killed run had set the file aside; its own name is one that the others are given back beside.
#[test]
fn a_name_that_is_put_back_is_another_name() {
    for index in [0, 2] {
        let tree = linked();
        let action = actions(&tree)[index].clone();
        // As the file itself goes with its last name.
        let held = tree.scratch("held");
        fs::hard_link(tree.join("b/one"), &held).unwrap();
        pruned(&tree, &["a/keep", "b/one", "b/two"], action);
        fs::hard_link(&held, tree.join("b/.bc-dup.1.1.1.tmp")).unwrap();
        are_one_again(&tree, 2, 3);
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new());
    }
}

/// One run took a name of the file away, the next moved it under its other one.
#[test]
fn a_name_that_is_moved_back_is_another_name() {
    let tree = linked();
    pruned(&tree, &["a/keep", "b/one"], Action::Delete);
    let moved = tree.scratch("moved").as_os_str().as_bytes().to_vec();
    pruned(&tree, &["a/keep", "b/two"], Action::Move(moved));
    are_one_again(&tree, 2, 2);
}
