//! undo restores separate files, with their metadata, and reports the parts that it could not.

use std::os::unix::fs::MetadataExt;

use super::*;

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

fn undo_all(tree: &TestTree, mode: RunMode) -> (UndoSummary, Vec<String>) {
    let mut lines = Vec::new();
    let journal = tree.scratch("journal");
    let summary = undo(&journal, mode, &Cancel::new(), &mut |event| {
        lines.push(format!("{event:?}"));
    })
    .unwrap();
    (summary, lines)
}

fn prune_with_journal(tree: &TestTree, options: &PruneOptions) -> PruneSummary {
    let groups = groups(tree.path());
    let path = tree.scratch("journal");
    let mut journal = Journal::create(&path, &options.action, &groups, &Cancel::new()).unwrap();
    let (summary, lines) = run_groups(groups, options, Some(&mut journal));
    assert!(summary.is_clean(), "{lines:?}");
    summary
}

#[test]
fn everything_comes_back() {
    for index in 0..5 {
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
        options.on_metadata_diff = OnMetadataDiff::Ignore;
        let before = facts(&tree);
        let done = prune_with_journal(&tree, &options);
        assert_eq!(done.changed, 3);
        let between = snapshot(tree.path());
        let (dry, lines) = undo_all(&tree, RunMode::DryRun);
        assert_eq!(dry.restored, 3, "{action:?}: {lines:?}");
        assert_eq!(snapshot(tree.path()), between);

        let (summary, lines) = undo_all(&tree, RunMode::Execute);
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

        let (again, lines) = undo_all(&tree, RunMode::Execute);
        assert_eq!(
            (again.restored, again.failed),
            (0, 0),
            "{action:?}: {lines:?}"
        );
        assert_eq!(facts(&tree), before);
    }
}

/// A file that keeps a name, in another directory than the one that went, is found by that.
#[test]
fn a_file_that_kept_one_of_its_names_is_one_file_again() {
    let make = || {
        let tree = TestTree::new();
        tree.write("a/1", "same")
            .hard_link("a/1", "a/2")
            .write("b/1", "same")
            .hard_link("b/1", "c/1")
            .hard_link("b/1", "c/d/1")
            .write("e/1", "same");
        for file in ["a/1", "b/1", "e/1"] {
            tree.mtime(file, 1_000_000, 0);
        }
        tree
    };
    for index in 0..5 {
        // The kept file has no room for all names of the next.
        let tree = make();
        let action = actions(&tree)[index].clone();
        let mut options = options(action.clone());
        options.max_links = Some(3);
        let before = facts(&tree);
        prune_with_journal(&tree, &options);
        let (undone, lines) = undo_all(&tree, RunMode::Execute);
        assert_eq!((undone.failed, undone.incomplete), (0, 0), "{lines:?}");
        assert_eq!(facts(&tree), before, "{action:?}: {lines:?}");
        assert_eq!(inode(tree.join("b/1")), inode(tree.join("c/d/1")));

        // One of its names is not to be touched, whichever that is.
        for stays in ["b/1", "c/1", "c/d/1"] {
            let tree = make();
            let action = actions(&tree)[index].clone();
            let mut options = super::options(action.clone());
            options.rules.roots = Roots::Across;
            let mut groups = groups(tree.path());
            for file in &mut groups[0].files {
                let below = file.relative();
                file.root = u32::from(below != b"a/1" && below != stays.as_bytes());
            }
            let before = facts(&tree);
            let path = tree.scratch("journal");
            let mut journal = Journal::create(&path, &action, &groups, &Cancel::new()).unwrap();
            let (summary, lines) = run_groups(groups, &options, Some(&mut journal));
            drop(journal);
            assert!(summary.changed >= 2, "{lines:?}");
            assert_eq!(facts(&tree)[&tree.join(stays)].content, b"same");
            let (undone, lines) = undo_all(&tree, RunMode::Execute);
            let context = format!("{action:?}, {stays}: {lines:?}");
            assert_eq!((undone.failed, undone.incomplete), (0, 0), "{context}");
            assert_eq!(facts(&tree), before, "{context}");
        }
    }
}

#[test]
fn what_changed_since_is_left_alone() {
    for index in 0..5 {
        let tree = sample();
        let action = actions(&tree)[index].clone();
        prune_with_journal(&tree, &options(action.clone()));
        // One name was given a new file, and the content itself was edited.
        let _ = fs::remove_file(tree.join("b/one"));
        tree.write("b/one", "new work").write("a/keep", "edited");
        let before = snapshot(tree.path());
        let (summary, lines) = undo_all(&tree, RunMode::Execute);
        assert!(summary.failed > 0, "{action:?}: {lines:?}");
        assert_eq!(tree.read("b/one"), b"new work");
        assert_eq!(tree.read("a/keep"), b"edited");
        check_invariant(&tree, &before, &action, &format!("{action:?}: {lines:?}"));
    }
}

/// The content of `sample`, and of the same length, with another byte in the middle.
fn damaged() -> Vec<u8> {
    let mut damaged = content();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    damaged
}

#[test]
fn a_damaged_file_is_not_what_comes_back() {
    for index in 0..3 {
        let tree = sample();
        let action = actions(&tree)[index].clone();
        prune_with_journal(&tree, &options(action.clone()));
        // In place, and with its former time: only the bytes differ.
        fs::write(tree.join("a/keep"), damaged()).unwrap();
        tree.mtime("a/keep", 1_000_000_000, 5);
        let before = snapshot(tree.path());
        let (summary, lines) = undo_all(&tree, RunMode::Execute);
        assert_eq!(
            (summary.restored, summary.failed),
            (0, 3),
            "{action:?}: {lines:?}"
        );
        assert_eq!(snapshot(tree.path()), before, "{action:?}: {lines:?}");
        assert!(temporaries(tree.path()).is_empty(), "{action:?}: {lines:?}");
    }
}

#[test]
fn a_file_that_is_damaged_meanwhile_is_not_what_comes_back() {
    let undone = |point: Point| {
        let tree = quick_sample();
        prune_with_journal(&tree, &options(Action::Delete));
        let keep = tree.join("a/keep");
        let damage = move || fs::write(&keep, damaged()).unwrap();
        faults::arm(point, faults::Fault::Run(Box::new(damage)));
        let (summary, lines) = undo_all(&tree, RunMode::Execute);
        (tree, summary, lines, faults::disarm())
    };
    let mut refused = 0;
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let (tree, summary, lines, seen) = undone(point.clone());
        if !saw(&mut sweep, &seen) {
            assert_eq!(summary.restored, 3, "{lines:?}");
        }
        for name in ["b/one", "b/two", "c/two-too"] {
            if let Ok(found) = fs::read(tree.join(name)) {
                assert!(found == content(), "{name} at {point}: {lines:?}");
            }
        }
        assert!(temporaries(tree.path()).is_empty(), "{point}: {lines:?}");
        refused += u64::from(summary.failed > 0);
    }
    assert!(refused > 3, "{refused}");
}

#[test]
fn every_fault_of_undo_is_survived() {
    for index in 0..5 {
        let mut sweep = Sweep::new(FEW);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let original = facts(&tree);
            prune_with_journal(&tree, &options(action.clone()));
            let before = snapshot(tree.path());
            let fault = faults::Fault::Errno(rustix::io::Errno::IO);
            faults::arm(point.clone(), fault);
            let (_, lines) = undo_all(&tree, RunMode::Execute);
            let failed = saw(&mut sweep, &faults::disarm());
            let context = format!("{action:?} failing at {point}: {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            if !failed {
                assert_eq!(facts(&tree), original, "{context}");
                continue;
            }
            let (_, lines) = undo_all(&tree, RunMode::Execute);
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
    assert!(undo(&path, RunMode::Execute, &Cancel::new(), &mut |_| {}).is_err());

    fs::remove_file(&path).unwrap();
    prune_with_journal(&tree, &options(Action::Hardlink));
    let text = fs::read(&path).unwrap();
    // Any cut is read as the lines complete by then, or refused; never a panic.
    for cut in 0..text.len() {
        let _ = journal::steps_in(&text[..cut]);
    }
    let mut damaged = text.clone();
    let middle = text.iter().position(|byte| *byte == b'\n').unwrap() + 5;
    damaged[middle] = b'\n';
    assert_eq!(journal::steps_in(&damaged), Ok(2));

    // A second run in the same journal, after half a line of a dead one.
    fs::write(&path, &text[..text.len() - 4]).unwrap();
    let second = create(&path, Action::Hardlink, &tree).unwrap();
    assert!(create(&path, Action::Hardlink, &tree).is_err(), "locked");
    drop(second);
    let entries = journal::steps_in(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(entries, 3);
}

/// A program that acts as its owner comes back as one only if it has that
/// owner, and only if its content is that owner's.
#[test]
fn set_user_id_needs_the_recorded_owner() {
    let program = || {
        let tree = sample();
        tree.mode("b/one", 0o6755);
        let mut options = options(Action::Hardlink);
        options.on_metadata_diff = OnMetadataDiff::Ignore;
        prune_with_journal(&tree, &options);
        tree
    };
    let mode = |tree: &TestTree| tree.join("b/one").metadata().unwrap().mode() & 0o7777;
    let reported = "set-user-ID and set-group-ID";

    let tree = program();
    let (summary, lines) = undo_all(&tree, RunMode::Execute);
    assert_eq!(mode(&tree), 0o6755, "{lines:?}");
    assert_eq!(summary.incomplete, 0, "{lines:?}");

    if !bc_testkit::is_root() {
        bc_testkit::left_out("another user's content: not root");
        return;
    }
    // The owner cannot be given: every call to do so is refused.
    let tree = program();
    let recorded = tree.scratch("journal");
    let text = fs::read_to_string(&recorded).unwrap();
    let other = text.replace("\"uid\":0", "\"uid\":12345");
    fs::write(&recorded, other).unwrap();
    let refused = |nth| {
        let fault = faults::Fault::Errno(rustix::io::Errno::PERM);
        (Point::new("chown", nth), fault)
    };
    faults::arm_all((1..100).map(refused));
    let (_, lines) = undo_all(&tree, RunMode::Execute);
    faults::disarm();
    assert_eq!(mode(&tree) & 0o6000, 0, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(reported)),
        "{lines:?}"
    );

    // The content is another user's by now.
    let tree = program();
    std::os::unix::fs::chown(tree.join("a/keep"), Some(bc_testkit::NOBODY), None).unwrap();
    let (_, lines) = undo_all(&tree, RunMode::Execute);
    assert_eq!(tree.join("b/one").metadata().unwrap().uid(), 0);
    assert_eq!(mode(&tree) & 0o6000, 0, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(reported)),
        "{lines:?}"
    );
}

/// A directory that was moved out of the searched ones meanwhile is not in the run's directories: a
/// change there could not be undone.
#[test]
fn steps_outside_of_the_directories_of_the_run_are_not_made() {
    let tree = sample();
    let mut within = groups(tree.path());
    for group in &mut within {
        for file in &mut group.files {
            file.root_len = tree.join("b").as_os_str().len();
        }
        let b = tree.join("b").as_os_str().as_bytes().to_vec();
        group.files.retain(|file| file.path.starts_with(&b));
    }
    let path = tree.scratch("journal");
    let mut journal = Journal::create(&path, &Action::Delete, &within, &Cancel::new()).unwrap();
    let before = snapshot(tree.path());
    let all = groups(tree.path());
    let (summary, lines) = run_groups(all, &options(Action::Delete), Some(&mut journal));
    assert_eq!(summary.changed, 0, "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
    assert_eq!(journal::steps_in(&fs::read(&path).unwrap()), Ok(0));
}

/// Another program saves the other name of the file, to which undo is about to link.
#[test]
fn no_further_name_of_another_programs_file_is_left() {
    let tree = quick_sample();
    let journal = tree.scratch("journal");
    let mut writing = create(&journal, Action::Delete, &tree).unwrap();
    run_groups(
        groups(tree.path()),
        &options(Action::Delete),
        Some(&mut writing),
    );
    drop(writing);
    let other = tree.join("c/two-too");
    let new = tree.scratch("new");
    let save = move || {
        fs::write(&new, "saved").unwrap();
        fs::rename(&new, &other).unwrap();
    };
    faults::arm(Point::first("link"), faults::Fault::Run(Box::new(save)));
    let undone = undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| ());
    assert!(faults::disarm().reached);
    assert_eq!(undone.unwrap().failed, 1);
    assert!(temporaries(tree.path()).is_empty());
    let saved = tree.join("c/two-too");
    assert_eq!(rustix::fs::stat(&saved).unwrap().st_nlink, 1);
    assert_eq!(fs::read(saved).unwrap(), b"saved");
}
