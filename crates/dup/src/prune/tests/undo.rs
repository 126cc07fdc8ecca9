//! undo gives separate files back, with their metadata, and says what it
//! could not.

use super::*;
use std::os::unix::fs::MetadataExt;

/// Everything about a file that undo promises.
#[derive(Debug, Eq, PartialEq)]
struct Facts {
    content: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    nlink: u64,
    xattr: Option<Vec<u8>>,
}

fn facts(tree: &TestTree) -> BTreeMap<PathBuf, Facts> {
    files(tree.path())
        .into_iter()
        .map(|path| {
            let meta = path.metadata().unwrap();
            let mut value = [0; 64];
            let xattr = rustix::fs::getxattr(&path, "user.note", &mut value[..])
                .ok()
                .map(|length| value[..length].to_vec());
            let facts = Facts {
                content: fs::read(&path).unwrap(),
                mode: meta.mode(),
                owner: (meta.uid(), meta.gid()),
                mtime: (meta.mtime(), meta.mtime_nsec()),
                nlink: meta.nlink(),
                xattr,
            };
            (path, facts)
        })
        .collect()
}

fn undo_all(tree: &TestTree, mode: Mode) -> (UndoSummary, Vec<String>) {
    let mut lines = Vec::new();
    let journal = tree.scratch("journal");
    let summary = undo(&journal, mode, &Cancel::new(), &mut |event| {
        lines.push(format!("{event:?}"));
    })
    .unwrap();
    (summary, lines)
}

fn prune_with_journal(tree: &TestTree, options: &Options) -> Summary {
    let groups = groups(tree.path());
    let path = tree.scratch("journal");
    let mut journal = Journal::create(&path, &options.action, &groups, &Cancel::new()).unwrap();
    let (summary, lines) = run_groups(groups, options, Some(&mut journal));
    assert!(summary.is_clean(), "{lines:?}");
    summary
}

#[test]
fn everything_comes_back() {
    for index in 0..4 {
        let tree = sample();
        tree.mode("b/one", 0o640);
        let _ = rustix::fs::setxattr(
            tree.join("b/two"),
            "user.note",
            b"mine",
            rustix::fs::XattrFlags::empty(),
        );
        let action = actions(&tree)[index].clone();
        let mut options = options(action.clone());
        options.metadata = Owners::Ignore;
        let before = facts(&tree);
        let done = prune_with_journal(&tree, &options);
        assert_eq!(done.changed, 3);
        let between = snapshot(tree.path());
        let (dry, lines) = undo_all(&tree, Mode::DryRun);
        assert_eq!(dry.restored, 3, "{action:?}: {lines:?}");
        assert_eq!(snapshot(tree.path()), between);

        let (summary, lines) = undo_all(&tree, Mode::Execute);
        assert_eq!(
            (summary.restored, summary.failed, summary.incomplete),
            (3, 0, 0),
            "{action:?}: {lines:?}"
        );
        assert_eq!(facts(&tree), before, "{action:?}: {lines:?}");
        assert_eq!(
            inode(tree.join("b/two")),
            inode(tree.join("c/two-too")),
            "{action:?}"
        );

        let (again, lines) = undo_all(&tree, Mode::Execute);
        assert_eq!(
            (again.restored, again.failed),
            (0, 0),
            "{action:?}: {lines:?}"
        );
        assert_eq!(facts(&tree), before);
    }
}

#[test]
fn what_changed_since_is_left_alone() {
    for index in 0..4 {
        let tree = sample();
        let action = actions(&tree)[index].clone();
        prune_with_journal(&tree, &options(action.clone()));
        // One name was given a new file, and the content itself was edited.
        let _ = fs::remove_file(tree.join("b/one"));
        tree.write("b/one", "new work").write("a/keep", "edited");
        let before = snapshot(tree.path());
        let (summary, lines) = undo_all(&tree, Mode::Execute);
        assert!(summary.failed > 0, "{action:?}: {lines:?}");
        assert_eq!(tree.read("b/one"), b"new work");
        assert_eq!(tree.read("a/keep"), b"edited");
        check_invariant(&tree, &before, &action, &format!("{action:?}: {lines:?}"));
    }
}

#[test]
fn every_fault_of_undo_is_survived() {
    for index in 0..4 {
        for n in 0.. {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let original = facts(&tree);
            prune_with_journal(&tree, &options(action.clone()));
            let before = snapshot(tree.path());
            fail::arm(n, fail::Fault::Errno(rustix::io::Errno::IO));
            let (_, lines) = undo_all(&tree, Mode::Execute);
            let calls = fail::disarm();
            let context = format!("{action:?} failing at {n}: {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            if n >= calls.len() {
                assert!(n > 20);
                assert_eq!(facts(&tree), original, "{context}");
                break;
            }
            let (_, lines) = undo_all(&tree, Mode::Execute);
            let context = format!("{context}, then {lines:?}");
            let now = facts(&tree);
            for (path, facts) in &original {
                assert_eq!(now[path].content, facts.content, "{context}: {path:?}");
            }
        }
    }
}

#[test]
fn foreign_and_damaged_journals_are_refused() {
    let tree = quick_sample();
    let path = tree.scratch("journal");
    fs::write(&path, "important notes\n").unwrap();
    assert!(create(&path, Action::Delete, &tree).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"important notes\n");
    assert!(undo(&path, Mode::Execute, &Cancel::new(), &mut |_| {}).is_err());

    fs::remove_file(&path).unwrap();
    prune_with_journal(&tree, &options(Action::Hardlink));
    let text = fs::read(&path).unwrap();
    // Any cut is read as what was complete by then, or refused; never a panic.
    for cut in 0..text.len() {
        let _ = journal::steps_in(&text[..cut]);
    }
    let mut damaged = text.clone();
    let middle = text.iter().position(|byte| *byte == b'\n').unwrap() + 5;
    damaged[middle] = b'\n';
    assert!(journal::steps_in(&damaged).is_err());

    // A second run in the same journal, after half a line of a dead one.
    fs::write(&path, &text[..text.len() - 4]).unwrap();
    let second = create(&path, Action::Hardlink, &tree).unwrap();
    assert!(create(&path, Action::Hardlink, &tree).is_err(), "locked");
    drop(second);
    let entries = journal::steps_in(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(entries, 3);
}
