//! Ownership of temporary names: a run locks every directory in which it has some, and removes
//! others' only where no process holds a lock.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{FlockOperation, Mode as Permissions, OFlags, flock};

use super::*;

fn open(dir: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Permissions::empty()).unwrap()
}

/// Runs `work` once for each of its system calls that may change that, and looks right before the
/// call whether every directory with a temporary name is locked.
fn every_temporary_is_locked(
    setup: impl Fn() -> (TestTree, Vec<PathBuf>),
    work: impl Fn(&TestTree),
) {
    let mut seen = 0;
    let mut sweep = Sweep::new(EVERY).but(&faults::PURE);
    while let Some(point) = sweep.next() {
        let (tree, roots) = setup();
        let found: Rc<RefCell<Vec<(PathBuf, bool)>>> = Rc::default();
        let look = {
            let found = found.clone();
            move || {
                for name in roots.iter().flat_map(|root| temporaries(root)) {
                    let dir = open(name.parent().unwrap());
                    let free = flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok();
                    found.borrow_mut().push((name, !free));
                }
            }
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(look)));
        work(&tree);
        saw(&mut sweep, &faults::disarm());
        for (name, locked) in found.borrow().iter() {
            assert!(locked, "{name:?} before {point}");
            seen += 1;
        }
    }
    assert!(seen > 0, "no temporary was ever there");
}

#[test]
fn while_pruning() {
    for index in 0..3 {
        every_temporary_is_locked(
            || {
                let tree = quick_sample();
                let roots = vec![tree.path().to_owned()];
                (tree, roots)
            },
            |tree| {
                run(tree, &options(actions(tree)[index].clone()));
            },
        );
    }
}

#[test]
fn while_moving_to_another_file_system_and_back() {
    let Some((_, elsewhere)) = two_file_systems() else {
        return;
    };
    let to = tempfile::tempdir_in(elsewhere.path()).unwrap();
    let action = || Action::Move(to.path().as_os_str().as_bytes().to_vec());
    let both = |tree: &TestTree| vec![tree.path().to_owned(), to.path().to_owned()];
    every_temporary_is_locked(
        || {
            let tree = quick_sample();
            let roots = both(&tree);
            (tree, roots)
        },
        |tree| {
            run(tree, &options(action()));
        },
    );
    every_temporary_is_locked(
        || {
            let tree = quick_sample();
            let mut journal = create(&tree.scratch("journal"), action(), &tree).unwrap();
            run_groups(groups(tree.path()), &options(action()), Some(&mut journal));
            drop(journal);
            let roots = both(&tree);
            (tree, roots)
        },
        |tree| {
            let journal = tree.scratch("journal");
            undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| {}).unwrap();
        },
    );
}

#[test]
fn while_undoing() {
    for index in 0..3 {
        every_temporary_is_locked(
            || {
                let tree = quick_sample();
                let action = actions(&tree)[index].clone();
                let mut journal = create(&tree.scratch("journal"), action.clone(), &tree).unwrap();
                run_groups(groups(tree.path()), &options(action), Some(&mut journal));
                drop(journal);
                let roots = vec![tree.path().to_owned()];
                (tree, roots)
            },
            |tree| {
                let journal = tree.scratch("journal");
                undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| {}).unwrap();
            },
        );
    }
}

/// A run in another PID namespace is not to be seen in /proc: process 1 there
/// is another one than process 1 here.
#[test]
fn what_a_living_run_holds_is_left_alone() {
    for action in 0..4 {
        let tree = quick_sample();
        let action = actions(&tree)[action].clone();
        fs::write(tree.join("b/.bc-dup.1.1.0.part"), &content()[..99]).unwrap();
        std::os::unix::fs::symlink("../a/keep", tree.join("b/.bc-dup.1.1.1.tmp")).unwrap();
        fs::hard_link(tree.join("b/one"), tree.join("b/.bc-dup.1.1.2.tmp")).unwrap();
        let theirs = temporaries(tree.path());
        let lock = open(&tree.join("b"));
        flock(&lock, FlockOperation::LockShared).unwrap();
        for mode in [RunMode::DryRun, RunMode::Execute] {
            let mut options = options(action.clone());
            options.mode = mode;
            let (summary, lines) = run(&tree, &options);
            assert_eq!(summary.leftovers, 0, "{action:?}: {lines:?}");
            assert_eq!(summary.errors, 0, "{action:?}: {lines:?}");
            let in_use = lines
                .iter()
                .filter(|line| line.contains("in use by another"));
            assert_eq!(in_use.count(), 3, "{action:?} {mode:?}: {lines:?}");
            assert_eq!(temporaries(tree.path()), theirs, "{action:?}: {lines:?}");
        }
        drop(lock);
        tree.write("b/three", content());
        let (summary, lines) = run(&tree, &options(action.clone()));
        assert_eq!(summary.leftovers, 3, "{action:?}: {lines:?}");
        assert!(temporaries(tree.path()).is_empty(), "{action:?}: {lines:?}");
    }
}

#[test]
fn a_directory_that_somebody_keeps_locked_is_skipped() {
    let tree = quick_sample();
    let lock = open(&tree.join("b"));
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let before = snapshot(tree.path());
    let (summary, lines) = run(&tree, &options(Action::Hardlink));
    assert_eq!((summary.changed, summary.errors), (1, 2), "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
    assert!(lines[0].contains("lock directory"), "{lines:?}");
}

/// Another run is about to take the other name away.
#[test]
fn a_leftover_of_a_file_that_another_run_has_locked_stays() {
    const EXTRA: &str = "b/.bc-dup.4194305.7.0.tmp";
    const STAGE: &str = "b/.bc-dup.4194305.7.1.part";
    let tree = TestTree::new();
    tree.write("a/keep", "same").hard_link("a/keep", EXTRA);
    tree.write("b/else", "else").hard_link("b/else", STAGE);
    let others = ["a/keep", "b/else"].map(|name| {
        let other = fs::File::open(tree.join(name)).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        other
    });
    let pruned = || {
        tree.write("b/one", "same");
        let names = ["a/keep", "b/one", EXTRA];
        let files = names.map(|name| file_ref(tree.path(), &tree.join(name)));
        let group = FileGroup {
            files: files.to_vec(),
        };
        run_groups(vec![group], &options(Action::Delete), None)
    };
    let (summary, lines) = pruned();
    assert_eq!((summary.changed, summary.leftovers), (1, 0), "{lines:?}");
    let locked = lines.iter().filter(|line| line.contains("locked"));
    assert_eq!(locked.count(), 2, "{lines:?}");
    assert!(tree.exists(EXTRA) && tree.exists(STAGE));
    drop(others);
    let (summary, lines) = pruned();
    assert_eq!((summary.changed, summary.leftovers), (1, 2), "{lines:?}");
    assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
}

/// A target that is kept, as the kept file has all its names, is locked by the run itself.
#[test]
fn a_leftover_of_a_file_that_the_run_has_locked_goes() {
    let tree = TestTree::new();
    tree.write("a/keep", "same").write("b/one", "same");
    tree.hard_link("b/one", "b/.bc-dup.4194305.7.0.tmp");
    let mut options = options(Action::Hardlink);
    options.max_links = Some(1);
    let (summary, lines) = run(&tree, &options);
    assert_eq!((summary.changed, summary.leftovers), (0, 1), "{lines:?}");
    assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
}
