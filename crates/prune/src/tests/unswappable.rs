//! File systems that cannot swap two names (FUSE, old NFS): there a link takes the place of a
//! duplicate by a rename after a last look, and nothing may be lost either.

use rustix::io::Errno;

use super::*;

/// The actions that put something in the place of a name.
const REPLACING: [usize; 2] = [0, 1];

/// Refuses the first swap, and has something happen at one of the calls after it.
fn refuse(errno: Errno, point: &Point, fault: faults::Fault) {
    let refused = (Point::first("exchange"), faults::Fault::Errno(errno));
    faults::arm_then(refused, (point.clone(), fault));
}

#[test]
fn a_refused_swap_is_a_rename_whatever_fails_then() {
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
        assert_eq!(renames.count(), 1, "{errno:?}: {calls:?}");
    }
}

/// Up to the last look; a change between that and the rename no call can detect.
#[test]
fn what_another_puts_there_before_the_last_look_stays() {
    const NEW: &[u8] = b"an editor's new version";
    for index in REPLACING {
        let mut before = 0;
        let mut sweep = Sweep::new(EVERY);
        while let Some(point) = sweep.next() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let target = tree.join("b/one");
            let there = target.clone();
            let put = faults::Fault::Run(Box::new(move || {
                fs::remove_file(&there).unwrap();
                fs::write(&there, NEW).unwrap();
            }));
            refuse(Errno::INVAL, &point, put);
            let (_, lines) = run(&tree, &options(action.clone()));
            let seen = faults::disarm();
            let context = format!("{} {point}: {lines:?}", action.name());
            if saw(&mut sweep, &seen) && seen.at < seen.first("rename") {
                assert_eq!(fs::read(&target).unwrap(), NEW, "{context}");
                assert!(temporaries(tree.path()).is_empty(), "{context}");
                before += 1;
            }
        }
        // The few points that were asked for may all come later.
        let are_few = asked_points().is_some_and(|many| many != EVERY);
        assert!(before > 0 || are_few, "nothing was put there in time");
    }
}
