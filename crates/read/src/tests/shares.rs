//! Number of long files that a worker has in hand, and the fate of the rest of its batch.

use std::collections::BTreeMap;

use bc_pool::Cancel;
use bc_testkit::{Behaviour, fuse_disk, left_out};
use bc_walk::{EntryId, Error, Metadata};

use super::{CLOCK_AHEAD_NS, NO_LEASE, Recorder, each_backend, files, list, options, walk};
use crate::open::{Opener, Waits};
use crate::{Choice, Consumer, Feed, Opened, Plan, pump};

/// Counts the files between `begin` and `finish`.
struct Live {
    width: usize,
    now: usize,
    most: usize,
    /// Size from which on it takes files over.
    takes: u64,
    taken: Vec<EntryId>,
    finished: usize,
}

impl Live {
    fn new(width: usize, takes: u64) -> Live {
        Live {
            width,
            now: 0,
            most: 0,
            takes,
            taken: Vec::new(),
            finished: 0,
        }
    }
}

impl Consumer for Live {
    fn width(&self) -> usize {
        self.width
    }

    fn take_over(&mut self, opened: &Opened) -> bool {
        let takes = opened.stat.stamp.size >= self.takes;
        self.taken.extend(takes.then_some(opened.entry));
        takes
    }

    fn begin(&mut self, _slot: usize, _opened: &Opened) {
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        assert!(feeds.len() <= self.width);
        consumed.push(feeds[0].slot);
    }

    fn finish(&mut self, _slot: usize, result: Result<Opened, Error>, _entry: EntryId) {
        result.unwrap();
        self.now -= 1;
        self.finished += 1;
    }
}

/// Runs one worker of several, of which the others have not come yet: it leaves them their share,
/// and as they never come, reads it all in the end.
#[test]
fn no_more_long_files_in_hand_than_a_share() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    for (count, workers, width, most) in [
        (6, 1, 20, 6),
        (6, 2, 20, 3),
        (6, 4, 20, 2),
        (6, 64, 20, 1),
        (60, 2, 20, 30),
        (60, 16, 20, 4),
        (60, 1, 20, 20),
        (6, 2, 1, 1),
    ] {
        let (_tree, paths, _) = files(&vec![300_000; count]);
        let listing = list(&paths, Metadata::None);
        each_backend(|backend| {
            let plan = Plan::all(&listing, workers);
            let mut live = Live::new(width, u64::MAX);
            let options = options(backend);
            let stats = pump(&listing, &plan, &options, &Cancel::new(), &mut live);
            assert_eq!((stats.files, live.finished), (count as u64, count));
            let what = format!("{count} files, {workers} workers, {width} wide, {backend:?}");
            // Files that have to be waited for are begun many at a time, whatever the width.
            let bound = match backend {
                Choice::Sync => most,
                _ => count.div_ceil(workers),
            };
            assert!(live.most <= bound, "{what}: {} in hand", live.most);
            // Where files arrive as they may, some are done before the last of a share is begun.
            let is_reached = live.most >= most || workers == 1 || backend != Choice::Sync;
            assert!(is_reached, "{what}: {} in hand", live.most);
            assert_eq!((plan.long(), plan.left()), (0, 0));
        });
    }
}

#[test]
fn small_files_are_not_shared_out() {
    let (_tree, paths, _) = files(&[900; 60]);
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        let plan = Plan::all(&listing, 12);
        let mut live = Live::new(20, u64::MAX);
        pump(
            &listing,
            &plan,
            &options(backend),
            &Cancel::new(),
            &mut live,
        );
        assert!(live.most >= 20, "{} in hand", live.most);
    });
}

#[test]
fn what_is_taken_over_is_not_heard_of_again() {
    let mut lengths = vec![900; 30];
    lengths[7] = 3 << 20;
    lengths[9] = 3 << 20;
    let (_tree, paths, _) = files(&lengths);
    // No writer could be waiting for one of the small ones.
    CLOCK_AHEAD_NS.set(10_000_000_000);
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        let plan = Plan::all(&listing, 2);
        let mut live = Live::new(4, 3 << 20);
        let stats = pump(
            &listing,
            &plan,
            &options(backend),
            &Cancel::new(),
            &mut live,
        );
        let mut taken = live.taken.clone();
        taken.sort_unstable();
        assert_eq!(taken, [EntryId(7), EntryId(9)]);
        assert_eq!((stats.files, stats.errors, live.finished), (28, 0, 28));
        assert_eq!(plan.long(), 0);
    });
}

/// Files that are read twice: number of begins of each, and the plan's counts meanwhile.
struct Twice<'p> {
    plan: &'p Plan,
    begun: BTreeMap<EntryId, usize>,
    offered: Vec<EntryId>,
    most: [usize; 2],
    finished: usize,
}

impl Consumer for Twice<'_> {
    fn width(&self) -> usize {
        4
    }

    fn take_over(&mut self, opened: &Opened) -> bool {
        self.offered.push(opened.entry);
        false
    }

    fn begin(&mut self, _slot: usize, opened: &Opened) {
        *self.begun.entry(opened.entry).or_default() += 1;
        let counted = [self.plan.long(), self.plan.huge()];
        self.most = std::array::from_fn(|at| self.most[at].max(counted[at]));
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        consumed.push(feeds[0].slot);
    }

    fn finish(&mut self, _slot: usize, result: Result<Opened, Error>, _entry: EntryId) {
        result.unwrap();
        self.finished += 1;
    }
}

#[test]
fn a_file_that_is_put_off_and_begins_again_counts_once() {
    NO_LEASE.set(true);
    let (_tree, paths, _) = files(&[900, 300_000, 300_000, 300_000, 3 << 20, 3 << 20]);
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        paths.iter().for_each(|path| touch(path));
        let plan = Plan::all(&listing, 4);
        let mut twice = Twice {
            plan: &plan,
            begun: BTreeMap::new(),
            offered: Vec::new(),
            most: [0; 2],
            finished: 0,
        };
        pump(
            &listing,
            &plan,
            &options(backend),
            &Cancel::new(),
            &mut twice,
        );
        assert_eq!(twice.finished, 6);
        let begun: Vec<usize> = twice.begun.into_values().collect();
        assert_eq!(begun, [2; 6], "{backend:?}");
        assert!(twice.most[0] <= 5 && twice.most[1] <= 2, "{:?}", twice.most);
        assert_eq!((plan.long(), plan.huge()), (0, 0));
        // Only the pump knows the readings so far.
        let mut offered = twice.offered.clone();
        offered.dedup();
        assert_eq!(offered.len(), twice.offered.len());
        assert!(offered.len() <= 2 && !offered.is_empty(), "{offered:?}");
    });
}

/// Checks that a huge file is offered only while no writer could wait for a lease on another.
#[test]
fn nobody_waits_for_a_file_that_is_taken_over() {
    let (_tree, paths, _) = files(&[300_000, 3 << 20]);
    let listing = list(&paths, Metadata::None);
    for (no_lease, taken) in [(false, 0), (true, 1)] {
        NO_LEASE.set(no_lease);
        paths.iter().for_each(|path| touch(path));
        let plan = Plan::all(&listing, 1);
        let mut live = Live::new(4, 3 << 20);
        pump(
            &listing,
            &plan,
            &options(Choice::Sync),
            &Cancel::new(),
            &mut live,
        );
        assert_eq!((live.taken.len(), live.finished), (taken, 2 - taken));
    }
}

/// Makes a file fresh again.
fn touch(path: &std::path::Path) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
}

/// Checks that a worker that joins asks no server what another one has asked it.
#[test]
fn who_joins_knows_what_a_device_waits_for() {
    let disk = match fuse_disk(Behaviour::default()) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    std::fs::write(disk.shown().join("file"), "content").unwrap();
    let listing = walk(disk.path(), Metadata::None);
    let plan = Plan::all(&listing, 1);
    let cancel = Cancel::new();
    let waits = || {
        let mut opener = Opener::sharing(&listing, &cancel, plan.device_waits());
        opener.place(EntryId(0)).unwrap().waits
    };
    assert_eq!(waits(), Waits::Disk, "as long as nothing was asked");
    let mut recorder = Recorder::new(1);
    pump(
        &listing,
        &plan,
        &options(Choice::Auto),
        &cancel,
        &mut recorder,
    );
    assert_eq!((recorder.done.len(), waits()), (1, Waits::Unsaid));
}
