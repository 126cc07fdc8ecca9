//! How many long files a worker has in hand, and what becomes of the rest of its batch.

use bc_pool::Cancel;
use bc_walk::{EntryId, Error, Metadata};

use super::{each_backend, files, list, options};
use crate::{Choice, Consumer, Feed, Opened, Plan, pump};

/// Counts the files between `begin` and `finish`.
struct Live {
    width: usize,
    now: usize,
    most: usize,
    /// What it takes over, from this size on.
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

/// One worker of several, of which the others have not come yet: it leaves them their share, and
/// as they never come, reads it all in the end.
#[test]
fn no_more_long_files_in_hand_than_a_share() {
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
            // What has to be waited for is begun many at a time, whatever the width.
            let bound = match backend {
                Choice::Sync => most,
                _ => count.div_ceil(workers),
            };
            assert!(live.most <= bound, "{what}: {} in hand", live.most);
            assert!(
                live.most >= most || workers == 1,
                "{what}: {} in hand",
                live.most
            );
            assert_eq!((plan.long(), plan.left()), (0, 0));
        });
    }
}

#[test]
fn small_files_are_not_shared_out() {
    let (_tree, paths, _) = files(&[900; 60]);
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        let plan = Plan::all(&listing, 60);
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
