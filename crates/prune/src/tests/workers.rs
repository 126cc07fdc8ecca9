//! Several threads do what one does, and are killed as safely.

use std::collections::HashMap;

use super::super::undo;
use super::crash::{died, kills, spawn_crew};
use super::*;

/// Number of groups that [`many`] makes: some batches, the last of which is not full.
const GROUPS: usize = 300;

/// Groups of two to five names in a few directories, some of them names of one file, some of two
/// files of other modes, which are not linked.
fn many() -> TestTree {
    let tree = quick_tree();
    for at in 0..GROUPS {
        let content = format!("{at:04} ").repeat(1 + at % 50).into_bytes();
        let first = format!("d{}/{at:04}", at % 7);
        tree.write(&first, &content);
        for copy in 0..1 + at % 3 {
            let name = format!("e{}/{at:04}-{copy}", (at + copy) % 5);
            tree.write(&name, &content);
            tree.mtime(&name, 1_000_000_000 + at as i64, 0);
            if at % 11 == 0 {
                tree.mode(&name, 0o640);
            }
        }
        if at % 5 == 0 {
            tree.hard_link(&first, format!("d{}/{at:04}-too", at % 7));
        }
        if at % 13 == 0 {
            tree.hard_link(format!("e{}/{at:04}-0", at % 5), format!("f/{at:04}"));
        }
        tree.mtime(&first, 1_000_000_000, 0);
    }
    tree
}

/// Returns the names of each file, by the first of them.
fn linked(tree: &TestTree) -> BTreeMap<PathBuf, Vec<PathBuf>> {
    let mut by_inode: HashMap<u64, Vec<PathBuf>> = HashMap::new();
    for path in files(tree.path()) {
        let name = path.strip_prefix(tree.path()).unwrap().to_owned();
        by_inode.entry(inode(&path)).or_default().push(name);
    }
    let named = |names: Vec<PathBuf>| (names[0].clone(), names);
    by_inode.into_values().map(named).collect()
}

/// Returns the lines without the parts that differ from tree to tree.
fn plain(tree: &TestTree, lines: &[String]) -> Vec<String> {
    let root = tree.path().to_str().unwrap();
    lines.iter().map(|line| line.replace(root, "")).collect()
}

#[test]
fn any_number_of_threads_does_and_says_the_same() {
    for action in [Action::Hardlink, Action::Symlink, Action::Delete] {
        let mut seen = Vec::new();
        for workers in [1, 2, 5] {
            let tree = many();
            let dry = options(action.clone())
                .workers(workers)
                .mode(RunMode::DryRun);
            let (foreseen, would) = run(&tree, &dry);
            let before = snapshot(tree.path());
            let journal = tree.scratch("journal");
            let mut written = create(&journal, action.clone(), &tree).unwrap();
            let groups = groups(tree.path());
            let options = options(action.clone()).workers(workers);
            let (summary, did) = run_groups(groups, &options, Some(&mut written));
            drop(written);
            let context = format!("{action:?}, {workers}");
            assert_eq!(plain(&tree, &would), plain(&tree, &did), "{context}");
            assert_eq!(foreseen.changed, summary.changed, "{context}");
            assert_eq!(summary.groups, GROUPS as u64, "{context}");
            check_invariant(&tree, &before, &action, &context);
            assert!(temporaries(tree.path()).is_empty(), "{context}");
            let names = snapshot(tree.path());
            let names: Vec<PathBuf> = names
                .keys()
                .map(|path| path.strip_prefix(tree.path()).unwrap().to_owned())
                .collect();
            seen.push((plain(&tree, &did), summary, linked(&tree), names));

            let undone = undo::undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| {});
            assert_eq!(undone.unwrap().failed, 0, "{context}");
            assert_eq!(snapshot(tree.path()), before, "{context}");
        }
        assert!(seen[0].1.changed > 400, "{action:?}: {:?}", seen[0].1);
        assert!(
            seen[1..].iter().all(|other| *other == seen[0]),
            "{action:?}"
        );
    }
}

/// Each run has to find either the file that the scan saw or the one that the other run made of it.
#[test]
fn two_runs_that_race_for_the_same_names_leave_nothing_behind() {
    for round in 0..10 {
        let tree = many();
        let before = snapshot(tree.path());
        let groups = groups(tree.path());
        let runs = std::thread::scope(|scope| {
            let start = |action| {
                let groups = groups.clone();
                scope.spawn(move || run_groups(groups, &options(action), None).1)
            };
            let runs = [Action::Hardlink, Action::Symlink].map(start);
            runs.map(|run| run.join().unwrap())
        });
        let left = temporaries(tree.path());
        let about = |line: &&String| {
            left.iter()
                .any(|left| line.contains(&*left.to_string_lossy()))
        };
        let lines: Vec<&String> = runs.iter().flatten().filter(about).collect();
        assert!(left.is_empty(), "round {round}: {left:?}: {lines:#?}");
        assert!(snapshot(tree.path()) == before, "round {round}");
    }
}

#[test]
fn threads_that_are_killed_lose_nothing() {
    for action in [Action::Hardlink, Action::Symlink, Action::Delete] {
        let name = action.name();
        let mut sweep = kills(1).few_names(3);
        while let Some(point) = sweep.next() {
            let tree = many();
            let before = snapshot(tree.path());
            let died = died(&mut sweep, &tree, spawn_crew(&tree, name, 3, &point));
            let context = format!("{name} killed at {point}");
            check_invariant(&tree, &before, &action, &context);
            if !died {
                continue;
            }

            // The files that every thread was processing are cleared up, and the rest is done.
            let next = options(action.clone()).workers(3);
            let (summary, lines) = run(&tree, &next);
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            assert!(temporaries(tree.path()).is_empty(), "{context}");
            let differ = summary.skipped.get("different metadata").copied();
            let expected = if action == Action::Delete { 0 } else { 1 };
            assert_eq!(u64::from(differ.is_some()), expected, "{context}");
            assert_eq!(summary.errors, differ.unwrap_or(0), "{context}");
            assert_eq!(run(&tree, &next).0.changed, 0, "{context}");

            let journal = tree.scratch("journal");
            let undone = undo::undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| {});
            assert!(undone.is_ok(), "{context}: {undone:?}");
            check_invariant(&tree, &before, &action, &context);
        }
        assert!(sweep.reached() >= 2, "{name}: {}", sweep.reached());
    }
}

/// Groups of a report may have files in common, or leftovers of killed runs: neither meets another
/// thread.
#[test]
fn groups_with_a_file_in_common_wait_for_each_other() {
    for workers in [1, 4] {
        let tree = many();
        let before = snapshot(tree.path());
        let left = tree.join("e1/.bc-dup.1.2.3.tmp");
        fs::hard_link(tree.join("e1/0001-0"), &left).unwrap();
        let mut all = groups(tree.path());
        // Each the other way around as well: files already linked are not linked again.
        let again: Vec<FileGroup> = all.iter().rev().cloned().collect();
        all.extend(again);
        let (summary, lines) = run_groups(all, &options(Action::Hardlink).workers(workers), None);
        check_invariant(&tree, &before, &Action::Hardlink, "twice");
        assert_eq!(summary.groups, 2 * GROUPS as u64);
        assert_eq!(summary.leftovers, 1, "{lines:?}");
        assert!(temporaries(tree.path()).is_empty());
        let once = run(&many(), &options(Action::Hardlink).workers(workers)).0;
        assert_eq!(summary.changed, once.changed, "{workers}: {lines:?}");
    }
}

#[test]
fn a_cancelled_run_stops_all_threads_and_tells_what_they_did() {
    let tree = many();
    let before = snapshot(tree.path());
    let cancel = Cancel::new();
    let options = options(Action::Hardlink).workers(3);
    let mut done = 0;
    let summary = prune(groups(tree.path()), &options, None, &cancel, &mut |event| {
        done += u64::from(matches!(
            event,
            PruneEvent::Step(_, StepOutcome::Done { .. })
        ));
        cancel.cancel(2);
    });
    assert_eq!(summary.changed, done);
    assert!(done > 0, "{summary:?}");
    check_invariant(&tree, &before, &Action::Hardlink, "cancelled");
    assert!(temporaries(tree.path()).is_empty());
}

#[test]
#[should_panic(expected = "who listens")]
fn who_listens_may_panic() {
    let tree = many();
    let options = options(Action::Hardlink).workers(3);
    prune(
        groups(tree.path()),
        &options,
        None,
        &Cancel::new(),
        &mut |_| panic!("who listens"),
    );
}
