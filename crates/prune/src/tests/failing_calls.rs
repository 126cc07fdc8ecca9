//! Every system call of every action fails once, with every error that
//! matters. Nothing may be lost, and a second, undisturbed run must finish
//! the work and leave no temporary name.

use std::time::Duration;

use rustix::io::Errno;

use super::*;
use crate::check::dir::clock;

const ERRORS: [Errno; 5] = [
    Errno::IO,
    Errno::NOSPC,
    Errno::XDEV,
    Errno::MLINK,
    Errno::PERM,
];

#[test]
fn hardlink() {
    every_fault(0);
}

/// Slowly, so that each directory is opened again every time.
#[test]
fn hardlink_slowly() {
    clock::pass_each_time(super::dirs::LATER);
    every_fault(0);
    clock::pass_each_time(Duration::ZERO);
}

#[test]
fn symlink() {
    every_fault(1);
}

#[test]
fn delete() {
    every_fault(2);
}

#[test]
fn move_() {
    every_fault(3);
}

#[test]
fn trash() {
    every_fault(4);
}

fn every_fault(index: usize) {
    for errno in ERRORS {
        let mut sweep = Sweep::new(FEW);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let before = snapshot(tree.path());
            faults::arm(point.clone(), faults::Fault::Errno(errno));
            let (summary, lines) = run(&tree, &options(action.clone()));
            saw(&mut sweep, &faults::disarm());
            let context = format!("{} {errno:?} at {point}: {lines:?}", action.name());
            check_invariant(&tree, &before, &action, &context);

            let (second, lines) = run(&tree, &options(action.clone()));
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            assert_eq!(second.errors, 0, "{context}");
            assert_finished(&tree, &action, &context);
            // A name that was changed, with its temporary still there, is
            // counted as skipped.
            let left = summary.skipped.get("temporary file left").copied();
            let changed = summary.changed + left.unwrap_or(0) + second.changed;
            assert!(changed >= 3, "{context}");
        }
        assert!(sweep.reached() >= 8, "{errno:?}: {}", sweep.reached());
    }
}

/// Asserts that there are no duplicates left for the action, and no temporary names but those of
/// this very process, which is not dead.
#[track_caller]
fn assert_finished(tree: &TestTree, action: &Action, context: &str) {
    let (third, lines) = run(tree, &options(action.clone()));
    assert_eq!(third.changed, 0, "{context}, then {lines:?}");
}

#[test]
fn move_to_another_file_system_survives_every_fault() {
    // The first rename of a target answers EXDEV, then one more call fails.
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let tree = quick_sample();
        let action = actions(&tree)[3].clone();
        let before = snapshot(tree.path());
        let no_rename = (Point::first("rename"), faults::Fault::Errno(Errno::XDEV));
        faults::arm_then(no_rename, (point.clone(), faults::Fault::Errno(Errno::IO)));
        let (summary, lines) = run(&tree, &options(action.clone()));
        let seen = faults::disarm();
        let failed = saw(&mut sweep, &seen);
        let context = format!("copy, failure at {point}: {lines:?}");
        if !failed {
            assert!(summary.is_clean(), "{context}");
            assert!(seen.calls.contains(&"fsync") && seen.calls.contains(&"create"));
        }
        check_invariant(&tree, &before, &action, &context);
        let (second, lines) = run(&tree, &options(action.clone()));
        let context = format!("{context}, then {lines:?}");
        check_invariant(&tree, &before, &action, &context);
        assert_eq!(second.errors, 0, "{context}");
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}
