//! Files that another process has open for writing, or opens while they are compared.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::*;

fn writer(tree: &TestTree, name: &str) -> File {
    OpenOptions::new()
        .write(true)
        .open(tree.join(name))
        .unwrap()
}

/// Returns true if a lease can be taken on the files of the tree: only their owner can, and not on
/// every file system.
pub(super) fn leases(tree: &TestTree, name: &str) -> bool {
    match bc_fs::lease::take(File::open(tree.join(name)).unwrap()) {
        Ok(()) => true,
        Err(why) => {
            bc_testkit::left_out(&format!("no leases here: {why:?}"));
            false
        }
    }
}

/// The writer has the file open all the time, and writes whenever he likes.
#[test]
fn what_is_open_for_writing_before_is_left_alone() {
    for index in 0..4 {
        for (name, kept) in [("a/keep", true), ("b/one", false)] {
            let tree = quick_sample();
            if !leases(&tree, "a/keep") {
                return;
            }
            let action = actions(&tree)[index].clone();
            let found = groups(tree.path());
            let writer = writer(&tree, name);
            let (summary, lines) = run_groups(found, &options(action.clone()), None);
            let context = format!("{name}, {action:?}: {lines:?}");
            assert!(!summary.is_clean(), "{context}");
            assert_eq!(
                summary.skipped.keys().next(),
                Some(&"open for writing"),
                "{context}"
            );
            // With the kept file nothing can be compared; the other targets are not concerned.
            assert_eq!(summary.changed > 0, !kept, "{context}");
            writer.write_all_at(b"written much later", 50).unwrap();
            let there = fs::read(tree.join(name)).unwrap();
            assert_eq!(&there[50..68], b"written much later", "{context}");
        }
    }
}

/// The writer comes between any two calls; it is let in, and its data is not lost, unless it came
/// after the last question.
#[test]
fn whoever_opens_meanwhile_is_noticed() {
    for index in 0..4 {
        let probe = quick_sample();
        if !leases(&probe, "a/keep") {
            return;
        }
        let mut sweep = Sweep::new(12).of(&["lease"]);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let path = tree.join("b/one");
            // Does not wait, for it is this thread that he would wait for; but the lease is broken.
            let open = move || {
                let mut options = OpenOptions::new();
                options.write(true);
                let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
                drop(options.custom_flags(flags).open(&path));
            };
            faults::arm(point.clone(), faults::Fault::Run(Box::new(open)));
            let before = snapshot(tree.path());
            let (_, lines) = run(&tree, &options(action.clone()));
            saw(&mut sweep, &faults::disarm());
            let context = format!("before {point}, {action:?}: {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            if lines.iter().any(|line| line.ends_with("open for writing")) {
                assert!(tree.join("b/one").exists(), "{context}");
            }
        }
    }
}

/// At a byte a second the bytes that were compared are paid for in days.
#[test]
fn whoever_opens_meanwhile_does_not_wait_for_the_limit() {
    let tree = TestTree::new();
    for name in ["a/keep", "b/one"] {
        tree.write(name, [7; 100_000]);
    }
    if !leases(&tree, "a/keep") {
        return;
    }
    let path = tree.join("a/keep");
    let open = move || {
        let mut options = OpenOptions::new();
        options.write(true);
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        drop(options.custom_flags(flags).open(&path));
    };
    // The lease of the kept file is the first.
    faults::arm(Point::new("lease", 2), faults::Fault::Run(Box::new(open)));
    let limited = PruneOptions {
        rate: Some(bc_read::Rate::new(1)),
        ..options(Action::Hardlink)
    };
    let (summary, lines) = run(&tree, &limited);
    faults::disarm();
    assert_eq!(summary.changed, 0, "{lines:?}");
    assert!(
        summary.skipped.contains_key("open for writing"),
        "{lines:?}"
    );
}

/// Without leases the run continues, and says so once.
#[test]
fn where_there_are_no_leases_that_is_said_once() {
    let tree = quick_sample();
    let errno = rustix::io::Errno::INVAL;
    // The two of the first target: from then on there is nothing to ask for.
    let both = [1, 2].map(|nth| (Point::new("lease", nth), faults::Fault::Errno(errno)));
    faults::arm_all(both);
    let (summary, lines) = run(&tree, &options(Action::Delete));
    faults::disarm();
    assert!(summary.is_clean() && summary.changed == 3, "{lines:?}");
    let reported = lines
        .iter()
        .filter(|line| line.contains("no lease: 22"))
        .count();
    assert_eq!(reported, 1, "{lines:?}");
}

/// Nothing of ours holds a file's writers up once the run is over.
#[test]
fn leases_end_with_the_run() {
    let tree = quick_sample();
    run(&tree, &options(Action::Hardlink));
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options
        .write(true)
        .custom_flags(flags)
        .open(tree.join("a/keep"))
        .unwrap();
}
