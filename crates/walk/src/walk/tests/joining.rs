//! Workers that join a walk because those it has are waiting for storage.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// Makes directories enough to keep any number of workers supplied, all found at once.
fn wide() -> Tree {
    let tree = Tree::new();
    (0..400).for_each(|number| tree.add(format!("{number}/{}/file", number % 7).as_bytes()));
    tree
}

fn walk_with(
    tree: &Tree,
    workers: Workers,
    cancel: &Cancel,
    metering: Metering,
) -> Result<Listing, WorkerPanic> {
    let tuning = Tuning {
        metering,
        ..at_once()
    };
    let (paths, options) = (vec![tree.root()], WalkOptions::default());
    list(Given::Roots, &paths, &options, workers, cancel, &tuning)
}

/// Returns the number of threads of a walk: an arena each, and one for roots that are files.
fn threads(tree: &Tree, workers: Workers, metering: Metering) -> usize {
    let listing = walk_with(tree, workers, &Cancel::new(), metering).unwrap();
    assert_eq!(listing.len(), 400);
    assert!(listing.errors().is_empty());
    listing.arenas.len() - 1
}

fn busy() -> Metering {
    Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(|busy| busy)),
    }
}

#[test]
fn who_waits_gets_company_and_lists_the_same() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = wide();
    for usual in [1, 2, 8] {
        let threads = threads(&tree, Workers::adaptive(usual), waiting());
        assert!(threads > usual, "{threads}");
    }
    let (_, listing) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(listing.len(), 400);
}

#[test]
fn who_has_the_cpu_or_wants_it_gets_none() {
    let tree = wide();
    for usual in [1, 2, 8] {
        assert_eq!(threads(&tree, Workers::adaptive(usual), busy()), usual);
    }
    let almost = Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(|busy| busy - busy / 10)),
    };
    assert_eq!(threads(&tree, Workers::adaptive(2), almost), 2);
}

#[test]
fn a_number_is_a_bound() {
    let tree = wide();
    for count in [1, 2, 3] {
        assert_eq!(threads(&tree, Workers::from(count), waiting()), count);
    }
}

#[test]
fn nobody_joins_for_want_of_directories() {
    // Each directory is found when the one above it is read: never two at once.
    let tree = Tree::with(&["1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/file"]);
    let listing = walk_with(&tree, Workers::adaptive(1), &Cancel::new(), waiting()).unwrap();
    assert_eq!((listing.len(), listing.arenas.len() - 1), (1, 1));
}

/// Looks at the clock of the caller's thread by which another has been asked for: early ones in the
/// first directory, one at its end, and one among those who may join.
const ASKED: usize = 6;

/// Returns a measurement by which the caller's thread asks for another worker, alone and among those who
/// may join, and then waits until one has joined and done `what` after a first piece of work.
fn as_soon_as_one_joins(what: impl Fn() + Sync + 'static) -> Metering {
    /// Sets the flag, also when `what` panics.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let caller = std::thread::current().id();
    let (asked, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let pretend = move |busy| {
        if std::thread::current().id() != caller {
            let _done = Done(&done);
            what();
        } else if asked.fetch_add(1, Ordering::SeqCst) < ASKED {
            return Duration::ZERO;
        } else {
            while !done.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        busy
    };
    Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(pretend)),
    }
}

#[test]
fn who_joins_can_cancel() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = wide();
    let cancel = Cancel::new();
    let metering = as_soon_as_one_joins({
        let cancel = cancel.clone();
        move || cancel.cancel(15)
    });
    let listing = walk_with(&tree, Workers::adaptive(1), &cancel, metering).unwrap();
    assert!(listing.len() < 400, "{}", listing.len());
}

#[test]
fn a_panic_of_who_joins_ends_the_walk() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = wide();
    let metering = as_soon_as_one_joins(|| panic!("joined in vain"));
    let result = walk_with(&tree, Workers::adaptive(1), &Cancel::new(), metering);
    assert_eq!(result.unwrap_err().message, "joined in vain");
}

#[test]
fn long_lists_of_files_are_looked_at_by_more() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = wide();
    let (_, listing) = walked(&tree, &[], &WalkOptions::default());
    let paths: Vec<_> = listing.ids().map(|id| listing.path(id)).collect();
    let list = |paths: &[Vec<u8>], metering| {
        let options = WalkOptions::default();
        let (workers, cancel) = (Workers::adaptive(1), Cancel::new());
        let tuning = Tuning {
            metering,
            ..at_once()
        };
        list(Given::Exactly, paths, &options, workers, &cancel, &tuning)
    };
    let joined = Arc::new(AtomicBool::new(false));
    let metering = as_soon_as_one_joins({
        let joined = Arc::clone(&joined);
        move || joined.store(true, Ordering::SeqCst)
    });
    let listed = list(&paths, metering).unwrap();
    assert!(joined.load(Ordering::SeqCst));
    let listed: Vec<_> = listed.ids().map(|id| listed.path(id)).collect();
    assert_eq!(listed, paths);
    // Ten files are not worth a thread, however slow: none even asks.
    let metering = Metering {
        pretend: Some(Box::new(|_| unreachable!())),
        ..waiting()
    };
    assert_eq!(list(&paths[..10], metering).unwrap().len(), 10);
}
