//! File systems that cannot swap two names, nor rename without replacing (NFS, some of FUSE): there
//! a name that is changed is missing for a moment, and nothing may be lost either.

use rustix::io::Errno;

use super::super::undo;
use super::crash::{died, kills, spawn_without_flags};
use super::race::{Race, one_race};
use super::*;

/// The actions that put something in the place of a name.
const REPLACING: [usize; 2] = [0, 1];

/// Refuses the first swap, and has something happen at one of the calls after it.
fn refuse(errno: Errno, point: &Point, fault: faults::Fault) {
    let refused = (Point::first("exchange"), faults::Fault::Errno(errno));
    faults::arm_then(refused, (point.clone(), fault));
}

#[test]
fn a_refused_swap_is_three_renames_whatever_fails_then() {
    for index in REPLACING {
        let mut sweep = Sweep::new(FEW);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let before = snapshot(tree.path());
            refuse(Errno::INVAL, &point, faults::Fault::Errno(Errno::IO));
            let (summary, lines) = run(&tree, &options(action.clone()));
            let context = format!("{} {point}: {lines:?}", action.name());
            if !saw(&mut sweep, &faults::disarm()) {
                assert!(summary.is_clean() && summary.changed >= 3, "{context}");
                assert!(temporaries(tree.path()).is_empty(), "{context}");
            }
            check_invariant(&tree, &before, &action, &context);
            let (second, lines) = run(&tree, &options(action.clone()));
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            assert_eq!(second.errors, 0, "{context}");
        }
        assert!(sweep.reached() >= 8, "{}", sweep.reached());
    }
}

#[test]
fn every_way_to_refuse_a_swap_leads_there() {
    for errno in [Errno::NOSYS, Errno::OPNOTSUPP] {
        let tree = quick_sample();
        refuse(errno, &Point::nowhere(), faults::Fault::Kill);
        let (summary, lines) = run(&tree, &options(actions(&tree)[0].clone()));
        let calls = faults::disarm().calls;
        assert!(summary.is_clean() && summary.changed >= 3, "{lines:?}");
        let renames = calls.iter().filter(|op| **op == "rename");
        assert_eq!(renames.count(), 3, "{errno:?}: {calls:?}");
    }
}

#[test]
fn what_another_puts_there_at_any_moment_stays() {
    const NEW: &[u8] = b"an editor's new version";
    for index in REPLACING {
        let mut sweep = Sweep::new(EVERY);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let target = tree.join("b/one");
            let there = target.clone();
            let put = faults::Fault::Run(Box::new(move || {
                let _ = fs::remove_file(&there);
                fs::write(&there, NEW).unwrap();
            }));
            refuse(Errno::INVAL, &point, put);
            let (_, lines) = run(&tree, &options(action.clone()));
            let context = format!("{} {point}: {lines:?}", action.name());
            if saw(&mut sweep, &faults::disarm()) {
                assert_eq!(fs::read(&target).unwrap(), NEW, "{context}");
            }
        }
    }
}

#[test]
fn without_flags_every_action_does_what_it_does_with_them() {
    let _no_flags = faults::refuse_rename_flags();
    for index in 0..4 {
        let tree = quick_sample();
        let action = actions(&tree)[index].clone();
        let before = snapshot(tree.path());
        let (summary, lines) = run(&tree, &options(action.clone()));
        assert!(summary.is_clean() && summary.changed >= 3, "{lines:?}");
        check_invariant(&tree, &before, &action, action.name());
        assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
    }
}

/// A program that saves its file by a rename, or moves it, between any two calls.
#[test]
fn without_flags_no_process_loses_what_it_saves() {
    let _no_flags = faults::refuse_rename_flags();
    let races = [Race::Replace, Race::RenameAway];
    for index in 0..4 {
        let mut sweep = Sweep::new(FEW).ways(races.len());
        while let Some(point) = sweep.next() {
            let seen = one_race(index, races[sweep.way()], "b/one", &point);
            saw(&mut sweep, &seen);
        }
        assert!(sweep.reached() >= 8, "{index}: {}", sweep.reached());
    }
}

#[test]
fn without_flags_every_fault_leaves_all_names() {
    let _no_flags = faults::refuse_rename_flags();
    for index in 0..4 {
        let mut sweep = Sweep::new(FEW);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let before = snapshot(tree.path());
            faults::arm(point.clone(), faults::Fault::Errno(Errno::IO));
            let (_, lines) = run(&tree, &options(action.clone()));
            saw(&mut sweep, &faults::disarm());
            let context = format!("{} {point}: {lines:?}", action.name());
            check_invariant(&tree, &before, &action, &context);
            let (second, lines) = run(&tree, &options(action.clone()));
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            assert_eq!(second.errors, 0, "{context}");
        }
    }
}

/// Another run keeps the file that this one replaces by a link, and looks before it does the same to
/// the file that this one keeps.
#[test]
fn without_flags_two_opposite_runs_leave_a_file() {
    let _no_flags = faults::refuse_rename_flags();
    let mut sweep = Sweep::new(EVERY);
    while let Some(point) = sweep.next() {
        let tree = quick_tree();
        let content = content();
        tree.write("a/kept", &content).write("b/target", &content);
        let (kept, target) = (tree.join("a/kept"), tree.join("b/target"));
        let opposite = faults::Fault::Run(Box::new(move || {
            if target.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                let _ = fs::remove_file(&kept);
                std::os::unix::fs::symlink("../b/target", &kept).unwrap();
            }
        }));
        faults::arm(point.clone(), opposite);
        let (_, lines) = run(&tree, &options(Action::Symlink));
        saw(&mut sweep, &faults::disarm());
        let left = files(tree.path());
        let has_content = |path: &PathBuf| fs::read(path).unwrap() == content;
        let context = format!("{point}: {left:?} {lines:?}");
        assert!(left.iter().any(has_content), "{context}");
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}

/// The next run, or undo, finds what a killed run left.
#[test]
fn without_flags_a_killed_run_leaves_all_contents() {
    for name in ["hardlink", "symlink", "delete", "move"] {
        let mut sweep = kills(EVERY).ways(2);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = match name {
                "move" => actions(&tree)[3].clone(),
                name => Action::parse(name.as_bytes()).unwrap(),
            };
            let before = snapshot(tree.path());
            let died = died(&mut sweep, &tree, spawn_without_flags(&tree, name, &point));
            let context = format!("{name} killed at {point}");
            contents_stay(&tree, &before, &context);
            if !died {
                continue;
            }
            if sweep.way() == 0 {
                let (summary, lines) = run(&tree, &options(action.clone()));
                let context = format!("{context}, then {lines:?}");
                assert!(summary.is_clean(), "{context}");
                contents_stay(&tree, &before, &context);
                // A link holds nothing, and goes with the next run that comes to its directory.
                let mut left = temporaries(tree.path()).into_iter();
                assert!(left.all(|left| left.is_symlink()), "{context}");
                continue;
            }
            let journal = tree.scratch("journal");
            let mut lines = Vec::new();
            let undone = undo(&journal, RunMode::Execute, &Cancel::new(), &mut |event| {
                lines.push(format!("{event:?}"));
            });
            let context = format!("{context}, undone: {undone:?} {lines:?}");
            if undone.is_ok() {
                assert_eq!(snapshot(tree.path()), before, "{context}");
            }
        }
        assert!(sweep.reached() >= 4, "{name}: {}", sweep.reached());
    }
}

/// Asserts that no content is gone from the tree, or from where files are moved.
#[track_caller]
fn contents_stay(tree: &TestTree, before: &BTreeMap<PathBuf, Vec<u8>>, context: &str) {
    let after = snapshot(tree.path());
    for content in before.values() {
        let stands = after.values().any(|found| found == content);
        assert!(stands, "{context}: a content is gone: {:?}", after.keys());
    }
}
