//! File systems that cannot swap two names (FUSE, old NFS): there a link takes the place of a
//! duplicate by a rename after a last look, and nothing may be lost either.

use super::*;
use rustix::io::Errno;

/// The actions that put something in the place of a name.
const REPLACING: [usize; 2] = [0, 1];

/// The calls of a run whose first swap is refused: where that is, and all of them.
fn refused(index: usize, errno: Errno) -> (usize, Vec<&'static str>) {
    let probe = quick_sample();
    let calls = calls_of(&probe, &options(actions(&probe)[index].clone()));
    let swap = calls.iter().position(|op| *op == "exchange").unwrap();
    let tree = quick_sample();
    fail::arm(swap, fail::Fault::Errno(errno));
    let (summary, lines) = run(&tree, &options(actions(&tree)[index].clone()));
    let calls = fail::disarm();
    assert!(summary.is_clean() && summary.changed >= 3, "{lines:?}");
    assert!(temporaries(tree.path()).is_empty(), "{lines:?}");
    (swap, calls)
}

#[test]
fn a_refused_swap_is_a_rename_whatever_fails_then() {
    for index in REPLACING {
        let (swap, calls) = refused(index, Errno::INVAL);
        for n in swap + 1..calls.len() {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let before = snapshot(tree.path());
            fail::arm_all(vec![
                (swap, fail::Fault::Errno(Errno::INVAL)),
                (n, fail::Fault::Errno(Errno::IO)),
            ]);
            let (_, lines) = run(&tree, &options(action.clone()));
            let seen = fail::disarm();
            let context = format!("{} {n} {:?}: {lines:?}", action.name(), seen.get(n));
            check_invariant(&tree, &before, &action, &context);
            let (second, lines) = run(&tree, &options(action.clone()));
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &action, &context);
            assert_eq!(second.errors, 0, "{context}");
        }
    }
}

#[test]
fn every_way_to_refuse_a_swap_leads_there() {
    for errno in [Errno::NOSYS, Errno::OPNOTSUPP] {
        let (swap, calls) = refused(0, errno);
        let renames = calls[swap..].iter().filter(|op| **op == "rename");
        assert_eq!(renames.count(), 1, "{errno:?}: {calls:?}");
    }
}

/// Up to the last look; what comes between that and the rename no call can tell.
#[test]
fn what_another_puts_there_before_the_last_look_stays() {
    const NEW: &[u8] = b"an editor's new version";
    for index in REPLACING {
        let (swap, calls) = refused(index, Errno::INVAL);
        let renamed = swap + calls[swap..].iter().position(|op| *op == "rename").unwrap();
        assert!(renamed > swap + 2, "{calls:?}");
        for n in swap + 1..renamed {
            let tree = quick_sample();
            let action = actions(&tree)[index].clone();
            let target = tree.join("b/one");
            let there = target.clone();
            fail::arm_all(vec![
                (swap, fail::Fault::Errno(Errno::INVAL)),
                (
                    n,
                    fail::Fault::Run(Box::new(move || {
                        fs::remove_file(&there).unwrap();
                        fs::write(&there, NEW).unwrap();
                    })),
                ),
            ]);
            let (_, lines) = run(&tree, &options(action.clone()));
            let seen = fail::disarm();
            let context = format!("{} {n} {:?}: {lines:?}", action.name(), seen.get(n));
            assert_eq!(fs::read(&target).unwrap(), NEW, "{context}");
            assert!(temporaries(tree.path()).is_empty(), "{context}");
        }
    }
}
