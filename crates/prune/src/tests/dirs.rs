//! Directories are held for a moment. The duration of a run must not change its steps.

use std::time::Duration;

use super::super::undo;
use super::*;
use crate::check::dir::Parents;
use crate::check::dir::clock;

/// Longer than anything is relied on.
pub(super) const LATER: Duration = Duration::from_millis(25);

#[test]
fn a_path_is_taken_to_lead_to_one_directory_for_a_moment() {
    let tree = TestTree::new();
    for dir in ["", "d/", "d/e/"] {
        tree.write(format!("{dir}file"), b"one");
        let file = file_ref(tree.path(), &tree.join(format!("{dir}file")));
        let parent = tree.join(dir);
        let mut parents = Parents::default();
        let mut id = || parents.of(&file).unwrap().1.ino;
        let first = inode(&parent);
        assert_eq!(id(), first);

        fs::rename(&parent, tree.scratch("elsewhere")).unwrap();
        fs::create_dir(&parent).unwrap();
        assert_eq!(id(), first, "it is held");
        clock::pass(LATER);
        assert_eq!(id(), inode(&parent));
        assert_ne!(id(), first);
        fs::remove_dir(&parent).unwrap();
        fs::rename(tree.scratch("elsewhere"), &parent).unwrap();
    }
}

#[test]
fn a_slow_run_does_and_says_what_a_fast_one_does() {
    for index in 0..5 {
        let seen = [Duration::ZERO, LATER].map(|step| {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let before = snapshot(tree.path());
            let mut journal = create(&tree.scratch("journal"), action.clone(), &tree).unwrap();
            clock::pass_each_time(step);
            faults::watch();
            let groups = groups(tree.path());
            let (summary, lines) = run_groups(groups, &options(action), Some(&mut journal));
            let mut calls = faults::disarm().calls;
            calls.retain(|call| *call == "open directory");
            drop(journal);
            let root = tree.path().parent().unwrap().to_str().unwrap().to_owned();
            let lines: Vec<String> = lines.iter().map(|line| line.replace(&root, "")).collect();
            let path = tree.scratch("journal");
            let undone = undo::undo(&path, RunMode::Execute, &Cancel::new(), &mut |_| {});
            clock::pass_each_time(Duration::ZERO);
            assert_eq!(undone.unwrap().failed, 0, "{lines:?}");
            assert_eq!(snapshot(tree.path()), before);
            ((summary, lines), calls.len())
        });
        assert_eq!(seen[0].0, seen[1].0);
        assert!(seen[0].1 < seen[1].1, "{} and {}", seen[0].1, seen[1].1);
    }
}
