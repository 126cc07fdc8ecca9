//! Effects of each action when nothing goes wrong.

use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn hardlink_merges_all_names() {
    let tree = sample();
    let before = snapshot(tree.path());
    let (summary, lines) = run(&tree, &options(Action::Hardlink));
    assert!(summary.is_clean(), "{lines:?}");
    assert_eq!(summary.changed, 3);
    assert_eq!(summary.freed, 2 * blocks(content().len()), "{lines:?}");
    let kept = inode(tree.join("a/keep"));
    for name in ["a/keep2", "b/one", "b/two", "c/two-too"] {
        assert_eq!(inode(tree.join(name)), kept, "{name}");
    }
    check_invariant(&tree, &before, &Action::Hardlink, "hardlink");
    assert_eq!(snapshot(tree.path()), before);
}

/// Bytes that a file of this size takes where the tests run.
fn blocks(size: usize) -> u64 {
    let tree = TestTree::new();
    tree.write("x", vec![1; size]);
    tree.join("x").metadata().unwrap().blocks() * 512
}

#[test]
fn symlink_is_relative_and_leads_to_the_keeper() {
    let tree = sample();
    let before = snapshot(tree.path());
    let (summary, lines) = run(&tree, &options(Action::Symlink));
    assert!(summary.is_clean(), "{lines:?}");
    assert_eq!(
        fs::read_link(tree.join("c/two-too")).unwrap(),
        Path::new("../a/keep")
    );
    assert_eq!(snapshot(tree.path()), before);
    assert!(tree.join("a/keep2").symlink_metadata().unwrap().is_file());
}

#[test]
fn each_action_leaves_as_many_copies_as_are_asked_for() {
    for action in [Action::Delete, Action::Hardlink, Action::Symlink] {
        let tree = sample();
        tree.write("d/last", content());
        let groups = groups(tree.path());
        // Of the same size and time, and no copy any more: another one stays for it.
        let stat = fs::metadata(tree.join("b/one")).unwrap();
        tree.write("b/one", vec![7; stat.len() as usize]);
        tree.mtime("b/one", stat.mtime(), stat.mtime_nsec() as u32);
        let mut options = options(action.clone());
        options.rules.copies = 2;
        let mut lines = Vec::new();
        let summary = prune(groups, &options, None, &Cancel::new(), &mut |event| {
            lines.push(format!("{event:?}"));
        });
        assert_eq!(summary.changed, 1, "{lines:?}");
        let of = |name: &str| fs::symlink_metadata(tree.join(name)).ok();
        let plain = |name: &str| of(name).is_some_and(|meta| meta.is_file());
        assert!(plain("b/two") && plain("c/two-too"), "{lines:?}");
        assert_ne!(inode(tree.join("a/keep")), inode(tree.join("b/two")));
        assert!(plain("b/one"), "{lines:?}");
        let last = of("d/last").filter(|meta| meta.is_file());
        let kept = inode(tree.join("a/keep"));
        assert!(last.is_none_or(|meta| meta.ino() == kept), "{lines:?}");
    }
}

#[test]
fn nothing_goes_where_too_few_copies_are_proven() {
    let tree = sample();
    let groups = groups(tree.path());
    tree.write("b/one", b"another");
    let mut options = options(Action::Delete);
    options.rules.copies = 3;
    let before = snapshot(tree.path());
    let summary = prune(groups, &options, None, &Cancel::new(), &mut |_| {});
    assert_eq!(summary.changed, 0);
    assert_eq!(snapshot(tree.path()), before);
}

#[test]
fn delete_leaves_every_name_of_the_keeper() {
    let tree = sample();
    let (summary, lines) = run(&tree, &options(Action::Delete));
    assert!(summary.is_clean(), "{lines:?}");
    assert_eq!(summary.changed, 3);
    assert_eq!(summary.freed, 2 * blocks(content().len()));
    let left: Vec<PathBuf> = snapshot(tree.path()).into_keys().collect();
    assert_eq!(
        left,
        ["a/keep", "a/keep2", "c/other"].map(|name| tree.join(name))
    );
}

#[test]
fn move_keeps_the_tree_below_the_destination() {
    let tree = sample();
    let to = tree.scratch("moved/here");
    let action = Action::Move(to.as_os_str().as_bytes().to_vec());
    // A typing error is no tree of new directories.
    for mode in [RunMode::DryRun, RunMode::Execute] {
        let options = PruneOptions {
            mode,
            ..options(action.clone())
        };
        let (summary, lines) = run(&tree, &options);
        assert_eq!((summary.changed, summary.errors), (0, 3), "{lines:?}");
        assert!(!tree.scratch("moved").exists());
    }
    fs::create_dir(tree.scratch("moved")).unwrap();
    let (summary, lines) = run(&tree, &options(action));
    assert!(summary.is_clean(), "{lines:?}");
    assert_eq!((summary.changed, summary.freed), (3, 0));
    let moved = to.join(tree.join("b/two").strip_prefix("/").unwrap());
    assert_eq!(fs::read(moved).unwrap(), content());
    assert!(!tree.join("b/two").exists());
}

#[test]
fn second_run_changes_nothing() {
    let tree = sample();
    for action in actions(&tree) {
        let tree = sample();
        let options = options(action.clone());
        run(&tree, &options);
        let before = snapshot(tree.path());
        let inodes: Vec<u64> = before.keys().map(inode).collect();
        let (summary, lines) = run(&tree, &options);
        assert_eq!(
            (summary.changed, summary.errors),
            (0, 0),
            "{action:?} {lines:?}"
        );
        assert_eq!(snapshot(tree.path()), before);
        assert_eq!(before.keys().map(inode).collect::<Vec<_>>(), inodes);
    }
}

#[test]
fn stale_groups_change_nothing_either() {
    // A report that was acted on already, given again.
    let tree = sample();
    for action in actions(&tree) {
        let tree = sample();
        let stale = groups(tree.path());
        let options = options(action.clone());
        run_groups(stale.clone(), &options, None);
        let before = snapshot(tree.path());
        let (summary, lines) = run_groups(stale, &options, None);
        assert_eq!(summary.changed, 0, "{action:?} {lines:?}");
        assert_eq!(snapshot(tree.path()), before);
    }
}

#[test]
fn dry_run_says_what_the_run_does_and_does_nothing() {
    for index in 0..5 {
        let tree = sample();
        let real = options(actions(&tree)[index].clone());
        let dry = PruneOptions {
            mode: RunMode::DryRun,
            ..real.clone()
        };
        let before = snapshot(tree.path());
        let (dry_summary, dry_lines) = run(&tree, &dry);
        assert_eq!(snapshot(tree.path()), before);
        assert!(!tree.scratch("moved").exists() && !tree.scratch("Trash").exists());
        let (summary, lines) = run(&tree, &real);
        assert_eq!(lines, dry_lines);
        assert_eq!(summary, dry_summary);
        assert!(!lines.is_empty());
    }
}

#[test]
fn full_keeper_hands_over() {
    let tree = TestTree::new();
    for index in 0..7 {
        tree.write(format!("f{index}"), "same");
        tree.mtime(format!("f{index}"), 1_000_000, 0);
    }
    let mut options = options(Action::Hardlink);
    options.max_links = Some(3);
    let dry = PruneOptions {
        mode: RunMode::DryRun,
        ..options.clone()
    };
    let (_, dry_lines) = run(&tree, &dry);
    let (summary, lines) = run(&tree, &options);
    assert_eq!(lines, dry_lines);
    assert!(summary.is_clean());
    assert_eq!(summary.changed, 4, "{lines:?}");
    assert_eq!(summary.skipped["too many links"], 2);
    let links: Vec<u64> = (0..7)
        .map(|index| tree.join(format!("f{index}")).metadata().unwrap().nlink())
        .collect();
    assert_eq!(links, [3, 3, 3, 3, 3, 3, 1]);
}

#[test]
fn emlink_from_the_system_hands_over_too() {
    let tree = sample();
    let before = snapshot(tree.path());
    let fault = faults::Fault::Errno(rustix::io::Errno::MLINK);
    faults::arm(Point::first("link"), fault);
    let (summary, lines) = run(&tree, &options(Action::Hardlink));
    faults::disarm();
    assert!(lines[0].contains("too many links"), "{lines:?}");
    assert!(summary.is_clean());
    assert_eq!(snapshot(tree.path()), before);
    // b/one took over.
    assert_eq!(inode(tree.join("b/two")), inode(tree.join("b/one")));
    assert_ne!(inode(tree.join("b/two")), inode(tree.join("a/keep")));
}
