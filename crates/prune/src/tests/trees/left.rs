//! Directories that are left as they are, each with its report.

use super::*;

/// Runs over these directories, none of which goes; returns the report.
#[track_caller]
fn left(tree: &TestTree, group: TreeGroup, options: &PruneOptions) -> Vec<String> {
    let before = all_of(tree.path(), true);
    for mode in [RunMode::DryRun, RunMode::Execute] {
        let options = PruneOptions {
            mode,
            ..options.clone()
        };
        let (summary, lines) = run_trees(vec![group.clone()], &options, None);
        assert_eq!((summary.dirs, summary.changed), (0, 0), "{lines:?}");
        assert_eq!(all_of(tree.path(), true), before, "{lines:?}");
    }
    run_trees(vec![group], options, None).1
}

#[track_caller]
fn check(tree: &TestTree, group: TreeGroup, options: &PruneOptions, expected: &str) {
    let lines = left(tree, group, options);
    assert!(
        lines.len() == 1 && lines[0].ends_with(expected),
        "{expected}: {lines:?}"
    );
}

#[test]
fn what_is_no_longer_equal() {
    type Change = (&'static str, fn(&TestTree), &'static str);
    let changes: [Change; 8] = [
        (
            "new",
            |t| drop(fs::write(t.join("b/void/new"), "x")),
            "b/void/new was not there when it was searched",
        ),
        (
            "gone",
            |t| fs::remove_file(t.join("b/in/one")).unwrap(),
            "changed since it was scanned",
        ),
        (
            "edited",
            |t| drop(fs::write(t.join("b/in/one"), "x")),
            "changed since it was scanned",
        ),
        (
            "kept edited",
            |t| drop(fs::write(t.join("a/in/one"), "x")),
            "the kept file changed",
        ),
        (
            "no directory",
            |t| fs::remove_dir(t.join("a/void")).unwrap(),
            "the kept file changed",
        ),
        (
            "another link",
            |t| {
                fs::remove_file(t.join("a/link")).unwrap();
                t.symlink("elsewhere", "a/link");
            },
            "the kept file changed",
        ),
        (
            "another directory",
            |t| {
                fs::rename(t.join("b/void"), t.join("was")).unwrap();
                t.dir("b/void");
            },
            "changed since it was scanned",
        ),
        (
            "a link in its place",
            |t| {
                fs::rename(t.join("b"), t.join("was")).unwrap();
                t.symlink("was", "b");
            },
            "",
        ),
    ];
    for action in [0, 1] {
        for (what, change, expected) in changes {
            let tree = copies();
            let action = if action == 0 {
                Action::Delete
            } else {
                moved(&tree)
            };
            let found = group(tree.path(), &["a", "b"]);
            change(&tree);
            let lines = left(&tree, found, &options(action));
            assert!(
                lines.len() == 1 && lines[0].ends_with(expected),
                "{what}: {lines:?}"
            );
        }
    }
}

#[test]
fn what_has_to_stay() {
    let tree = copies();
    fs::remove_file(tree.join("b/in/one")).unwrap();
    tree.hard_link("a/in/one", "b/in/one");
    let delete = options(Action::Delete);
    let found = group(tree.path(), &["a", "b"]);
    check(
        &tree,
        found,
        &delete,
        "it holds a file of the directory that stays",
    );

    let tree = copies();
    tree.write("a/.bc-0123456789abcdef-x", "")
        .write("b/.bc-0123456789abcdef-x", "");
    let found = group(tree.path(), &["a", "b"]);
    check(&tree, found, &delete, "it holds a temporary of a run");

    // A copy's manifest is no temporary.
    let tree = copies();
    tree.write("a/.bc-copy-manifest.jsonl", "{}")
        .write("b/.bc-copy-manifest.jsonl", "{}");
    let found = group(tree.path(), &["a", "b"]);
    let (summary, lines) = run_trees(vec![found], &delete, None);
    assert_eq!(summary.dirs, 1, "{lines:?}");
    assert!(!tree.exists("b"));

    let tree = copies();
    let mut found = group(tree.path(), &["a", "b"]);
    found.filtered = 2;
    check(
        &tree,
        found,
        &delete,
        "filters left out 2 entries, so it is not known to be equal as a whole",
    );

    let tree = copies();
    let found = group(tree.path(), &["a", "b"]);
    let with_journal = PruneOptions {
        journal: Some(tree.join("b/in/journal")),
        ..delete.clone()
    };
    check(&tree, found, &with_journal, "it holds the journal");
}

#[test]
fn references_are_never_touched() {
    for reference in ["b", "b/in", "b/in/one"] {
        let tree = copies();
        let path = tree.join(reference).as_os_str().as_bytes().to_vec();
        let references = Subtrees::open([path]).unwrap();
        let options = PruneOptions {
            references: std::sync::Arc::new(references),
            ..options(Action::Delete)
        };
        let found = group(tree.path(), &["a", "b"]);
        let before = all_of(&tree.join("b"), true);
        let (_, lines) = run_trees(vec![found], &options, None);
        assert_eq!(
            all_of(&tree.join("b"), true),
            before,
            "{reference}: {lines:?}"
        );
    }
}

#[test]
fn what_stays_for_one_group_stays_for_all() {
    let tree = TestTree::new();
    for dir in ["a/x", "b/x", "c/x"] {
        tree.write(format!("{dir}/file"), content());
    }
    tree.write("a/more", "more").write("b/more", "more");
    let whole = group(tree.path(), &["a", "b"]);
    let parts = group(tree.path(), &["a/x", "b/x", "c/x"]);
    // By its own rule the second group would keep the directories that the first removed, and
    // remove those that it kept.
    let (summary, lines) = run_trees(vec![whole, parts], &options(Action::Delete), None);
    assert!(summary.is_clean(), "{lines:?}");
    assert_eq!(summary.dirs, 2, "{lines:?}");
    assert!(
        tree.join("a/x/file").exists() && !tree.join("b").exists(),
        "{lines:?}"
    );
    assert!(!tree.join("c/x").exists(), "{lines:?}");

    let tree = TestTree::new();
    for dir in ["a/x", "b/x", "c/x"] {
        tree.write(format!("{dir}/file"), content());
    }
    let parts = group(tree.path(), &["c/x", "b/x"]);
    let whole = group(tree.path(), &["a", "b"]);
    let mut last = options(Action::Delete);
    last.rules.keep = vec!["path:b".parse().unwrap(), "first".parse().unwrap()];
    let (_, lines) = run_trees(vec![parts], &last, None);
    assert!(
        tree.join("b/x/file").exists() && !tree.join("c/x").exists(),
        "{lines:?}"
    );
    let (_, lines) = run_trees(vec![whole], &options(Action::Delete), None);
    assert!(
        tree.join("a/x/file").exists() && !tree.join("b").exists(),
        "{lines:?}"
    );
}
