//! A dry run of undo counts names that it would give back or take away itself.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use bc_testkit::{Marked, loop_disk};

use super::undo_later::undo_as_foreseen;
use super::*;

/// A file of two names, and another one that is equal.
fn linked() -> TestTree {
    linked_in(&std::env::temp_dir())
}

fn linked_in(parent: &Path) -> TestTree {
    let tree = TestTree::new_in(parent);
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

/// Keeps the number of the file from being given to another one.
fn held(tree: &TestTree) -> fs::File {
    fs::File::open(tree.join("b/one")).unwrap()
}

/// One name comes back, and another one that its file had does not.
#[track_caller]
fn comes_back_parted(tree: &TestTree) {
    let (summary, lines) = undo_as_foreseen(tree);
    let counts = (summary.restored, summary.incomplete, summary.failed);
    assert_eq!(counts, (1, 1, 0), "{lines:?}");
}

/// A killed undo had made two names again, and the temporary name of a third.
#[test]
fn a_name_of_a_killed_undo_is_none_of_the_file() {
    for suffix in ["tmp", "part"] {
        let tree = linked();
        tree.hard_link("b/one", "b/three")
            .hard_link("b/one", "c/four");
        pruned(
            &tree,
            &["a/keep", "b/one", "b/two", "b/three"],
            Action::Delete,
        );
        // The undo of another journal had made a file of its own of that.
        tree.remove("c/four")
            .write("c/four", "same")
            .write("b/three", "same");
        for name in ["b/three", "c/four"] {
            tree.mtime(name, 1_000_000, 0);
        }
        tree.hard_link("b/three", "b/two")
            .hard_link("b/three", format!("b/.bc-dup.1.1.1.{suffix}"));
        comes_back_parted(&tree);
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new());
        assert_eq!(inode(tree.join("b/one")), inode(tree.join("b/three")));
    }
}

/// It equals a file that is still to be made.
#[test]
fn what_a_killed_run_left_of_a_file_that_comes_back_goes() {
    let tree = linked();
    tree.remove("b/two");
    let _held = held(&tree);
    pruned(&tree, &["a/keep", "b/one"], Action::Delete);
    tree.write("b/.bc-dup.1.1.1.tmp", "same")
        .write("b/.bc-dup.1.1.2.tmp", "else");
    let (summary, lines) = undo_as_foreseen(&tree);
    let counts = (summary.restored, summary.incomplete, summary.leftovers);
    assert_eq!(counts, (1, 0, 1), "{lines:?}");
}

/// A link to a file is one of its names only until it is made a separate file again.
#[test]
fn a_link_that_is_parted_is_no_name_any_more() {
    let tree = linked();
    tree.hard_link("b/one", "b/three").write("c/other", "same");
    tree.mtime("c/other", 1_000_000, 0);
    pruned(&tree, &["a/keep", "b/two"], Action::Delete);
    tree.remove("b/three");
    pruned(&tree, &["b/one", "c/other"], Action::Hardlink);
    let (summary, lines) = undo_as_foreseen(&tree);
    let counts = (summary.restored, summary.incomplete, summary.failed);
    assert_eq!(counts, (2, 1, 0), "{lines:?}");
}

/// It is not the moved one, so it is copied once more.
#[test]
fn a_moved_file_that_is_made_again_is_parted() {
    let tree = linked();
    let to = tree.join("moved");
    let action = Action::Move(to.as_os_str().as_bytes().to_vec());
    let _held = held(&tree);
    pruned(&tree, &["a/keep", "b/two"], action);
    tree.remove("b/one");
    let below = tree.join("b/two");
    let moved = to.join(below.strip_prefix("/").unwrap());
    let moved = moved.strip_prefix(tree.path()).unwrap().to_owned();
    pruned(&tree, &["a/keep", moved.to_str().unwrap()], Action::Delete);
    let (summary, lines) = undo_as_foreseen(&tree);
    let counts = (summary.restored, summary.incomplete, summary.failed);
    assert_eq!(counts, (2, 1, 0), "{lines:?}");
}

/// Another name that nothing can be linked to does not count.
#[test]
fn a_name_that_cannot_be_linked_to_is_foreseen() {
    let tree = linked();
    pruned(&tree, &["a/keep", "b/one"], Action::Delete);
    let Some(_marked) = Marked::new(tree.join("b/two"), 'i') else {
        return bc_testkit::left_out("chattr does not work here");
    };
    comes_back_parted(&tree);
}

#[test]
fn a_file_that_has_all_the_names_it_can_have_is_foreseen() {
    const MOST: u64 = 65_000;
    let disk = match loop_disk("ext4", 64 << 20) {
        Ok(disk) => disk,
        Err(reason) => return bc_testkit::left_out(&reason),
    };
    let tree = linked_in(disk.path());
    pruned(&tree, &["a/keep", "b/one"], Action::Delete);
    tree.dir("more");
    for nth in 1..MOST {
        fs::hard_link(tree.join("b/two"), tree.join(format!("more/{nth}"))).unwrap();
    }
    comes_back_parted(&tree);
}

/// No link leads from one mount to another, even of one file system.
#[test]
fn a_name_in_another_mount_is_foreseen() {
    let disk = match loop_disk("ext4", 64 << 20) {
        Ok(disk) => disk,
        Err(reason) => return bc_testkit::left_out(&reason),
    };
    for names in [&["a/keep", "b/one"][..], &["a/keep", "b/one", "c/three"]] {
        let tree = linked_in(disk.path());
        tree.hard_link("b/one", "c/three").remove("b/two");
        pruned(&tree, names, Action::Delete);
        let bound = tree.join("c");
        let mut command = Command::new("mount");
        command.arg("--bind").arg(&bound).arg(&bound);
        if !command.status().is_ok_and(|status| status.success()) {
            return bc_testkit::left_out("no bind mounts");
        }
        let (summary, lines) = undo_as_foreseen(&tree);
        let counts = (summary.restored, summary.incomplete, summary.failed);
        assert_eq!(counts, (names.len() as u64 - 1, 1, 0), "{lines:?}");
    }
}
