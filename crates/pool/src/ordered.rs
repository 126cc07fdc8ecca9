//! Items of a list, shared out among workers: a position that hands out batches, which shrink towards
//! the end, and results that are returned in the order of the items.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::growth::{Growth, Waiting, WorkerHandle};
use crate::run::WorkerPanic;
use crate::threads::Workers;

/// Batches per worker that the remaining work is cut into: a worker that takes the next
/// batch leaves enough for the others to finish at about the same time.
const SHARE: usize = 4;

/// Largest batch by default: large enough that the shared counter costs nothing, small
/// enough that one worker's batch of slow items does not keep the others waiting.
const MAX_BATCH: usize = 256;

/// Workers above which each begins far from the others, and stays there where it waits: so many would
/// meet in one directory, whose lock the kernel holds while a server answers.
const FEW_NEIGHBOURS: usize = 8;

/// Items in a worker's first batch, and at most in one where they take long.
const FIRST_BATCH: usize = 1;
const SLOW_BATCH: usize = 4;

/// Items that are worth another worker where those there are wait.
const WORTH_A_WORKER: usize = 2;

/// Hands out `0..len` in batches: `remaining / (4 * workers)` items, within bounds, so the
/// tail goes in small pieces and the workers end together.
///
/// ```
/// let cursor = bc_pool::Cursor::new(1000, 2);
/// let mut seen = 0;
/// while let Some(batch) = cursor.next() {
///     assert_eq!(batch.start, seen);
///     seen = batch.end;
///     assert_eq!(cursor.remaining(), 1000 - seen);
/// }
/// assert_eq!(seen, 1000);
/// ```
#[derive(Debug)]
pub struct Cursor {
    next: AtomicUsize,
    len: usize,
    divisor: usize,
    min: usize,
    max: usize,
    /// Ranges that workers have for their own, and the number of items in them.
    own: Mutex<Vec<Range<usize>>>,
    owned: AtomicUsize,
}

impl Cursor {
    /// Makes a cursor with batches of 1 to 256 items.
    pub fn new(len: usize, workers: usize) -> Cursor {
        Cursor::with_batch(len, workers, 1, MAX_BATCH)
    }

    /// Makes a cursor with batches of `min` to `max` items (both at least 1; `max` at least `min`);
    /// the last may be smaller.
    pub fn with_batch(len: usize, workers: usize, min: usize, max: usize) -> Cursor {
        let min = min.max(1);
        Cursor {
            next: AtomicUsize::new(0),
            len,
            divisor: workers.max(1).saturating_mul(SHARE),
            min,
            max: max.max(min),
            own: Mutex::default(),
            owned: AtomicUsize::new(0),
        }
    }

    /// Returns the number of items that have not been handed out yet.
    pub fn remaining(&self) -> usize {
        self.ahead() + self.owned.load(Ordering::Relaxed)
    }

    /// Returns the number of items that are no worker's own.
    fn ahead(&self) -> usize {
        self.len.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Returns the next batch, or `None` when everything has been handed out.
    pub fn next(&self) -> Option<Range<usize>> {
        self.next_of(usize::MAX)
    }

    /// Returns the next batch, of at most so many items and at least one.
    pub(crate) fn next_of(&self, most: usize) -> Option<Range<usize>> {
        let mut start = self.next.load(Ordering::Relaxed);
        loop {
            let remaining = self.len.saturating_sub(start);
            if remaining == 0 {
                return None;
            }
            let batch = (remaining / self.divisor).clamp(self.min, self.max);
            let batch = batch.min(most).max(1);
            let end = start + batch.min(remaining);
            // Relaxed: the counter hands out disjoint ranges and publishes nothing else.
            match self
                .next
                .compare_exchange_weak(start, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(start..end),
                Err(now) => start = now,
            }
        }
    }

    /// Returns the next batch, of at most so many items, out of a range that is the worker's own,
    /// or of half of the largest that there is. So workers are far from each other, and seldom wait
    /// for the lock of the same directory.
    ///
    /// A worker that ends leaves its own range to others. There always is one, for worker 0 ends only
    /// when it has seen here that nothing is left, and then no range gets new items.
    fn next_apart(&self, worker: usize, most: usize) -> Option<Range<usize>> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() <= worker {
            own.resize(worker + 1, 0..0);
        }
        while own[worker].is_empty() {
            let largest = (0..own.len()).max_by_key(|other| own[*other].len())?;
            let (ahead, len) = (self.ahead(), own[largest].len());
            if ahead == 0 && len == 0 {
                return None;
            }
            own[worker] = if ahead >= len {
                self.take_half(ahead)
            } else {
                let middle = own[largest].start + len / 2;
                middle..std::mem::replace(&mut own[largest].end, middle)
            };
        }
        let range = &mut own[worker];
        let end = range.start + (range.len() / SHARE).clamp(1, most.min(self.max).max(1));
        let batch = range.start..end;
        range.start = end;
        let owned = own.iter().map(Range::len).sum();
        // Under the lock, as all its writers are.
        self.owned.store(owned, Ordering::Relaxed);
        Some(batch)
    }

    /// Takes half of what is no worker's own, of which there were so many items a moment ago.
    fn take_half(&self, ahead: usize) -> Range<usize> {
        let end = |start: usize| self.len.min(start + ahead.div_ceil(2));
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |start| {
                (start < self.len).then(|| end(start))
            });
        taken.map_or(0..0, |start| start..end(start))
    }
}

/// Batches that one worker takes: small ones while it is not known how long they take, and where
/// that is long, so that there are some for those that join.
#[derive(Debug)]
pub struct WorkerBatches<'h, 'g> {
    handle: &'h mut WorkerHandle<'g>,
    taken: usize,
    /// True once the worker is to end.
    is_ending: bool,
}

impl<'h, 'g> WorkerBatches<'h, 'g> {
    /// Makes the batches of a worker that begins.
    pub fn new(handle: &'h mut WorkerHandle<'g>) -> WorkerBatches<'h, 'g> {
        handle.waiting(Waiting::Begins);
        WorkerBatches {
            handle,
            taken: 0,
            is_ending: false,
        }
    }

    /// Returns the next batch, once the one before is done; `None` if there is none for this worker.
    pub fn next(&mut self, cursor: &Cursor) -> Option<Range<usize>> {
        let is_first = self.taken == 0;
        self.report();
        if self.is_ending {
            return None;
        }
        let most = match self.handle.is_slow() {
            _ if is_first && self.handle.may_grow() => FIRST_BATCH,
            true => SLOW_BATCH,
            false => usize::MAX,
        };
        let worker = self.handle.number();
        let are_many = self.handle.workers() > FEW_NEIGHBOURS;
        let is_apart = match self.handle.is_slow() {
            true => are_many || self.handle.has_more_than_usual(),
            false => are_many && is_first,
        };
        let ahead = match is_apart {
            true => None,
            false => cursor.next_of(most),
        };
        let batch = ahead.or_else(|| cursor.next_apart(worker, most))?;
        self.taken = batch.len();
        Some(batch)
    }

    /// Reports what was taken last as done.
    fn report(&mut self) {
        if self.taken > 0 {
            self.handle.count(self.taken as u64);
            self.handle.waiting(Waiting::GoesOn);
            self.taken = 0;
            self.is_ending = self.is_ending || self.handle.ends();
        }
    }

    /// Returns the number of the next of so many large files, if there is one for this worker.
    pub fn next_large(&mut self, next: &AtomicUsize, count: usize) -> Option<usize> {
        self.report();
        if self.is_ending {
            return None;
        }
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= count {
            return None;
        }
        self.taken = 1;
        Some(at)
    }
}

/// Cuts `0..len` into ranges of `batch` items, has up to `workers` of them at work at a time, and
/// returns what `produce` makes of each range, in order. Where the number of workers grows ranges may
/// be smaller. Each worker has a state of its own, which
/// `begin` makes: directories that it has open, a buffer. Neighbours go to one worker; no worker is
/// started that would find nothing to do.
///
/// # Errors
///
/// [`WorkerPanic`] if any worker panicked, once all the others have returned.
///
/// ```
/// let sums = bc_pool::ordered(2, 5, 2, || 0, |_, range| range.sum::<usize>())?;
/// assert_eq!(sums, [0 + 1, 2 + 3, 4]);
/// # Ok::<(), bc_pool::WorkerPanic>(())
/// ```
pub fn ordered<S, T: Send>(
    workers: impl Into<Workers>,
    len: usize,
    batch: usize,
    begin: impl Fn() -> S + Sync,
    produce: impl Fn(&mut S, Range<usize>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let batch = batch.max(1);
    let ranges = len.div_ceil(batch).max(1);
    let workers = workers.into().within(ranges, len.max(1));
    let cursor = Cursor::with_batch(len, workers.usual(), batch, batch);
    let left = || cursor.remaining();
    let growth = Growth::new(workers).left(&left, WORTH_A_WORKER);
    let produced = growth.run(|mut handle| {
        let mut state = begin();
        let mut produced = Vec::new();
        let mut batches = WorkerBatches::new(&mut handle);
        while let Some(range) = batches.next(&cursor) {
            produced.push((range.start, produce(&mut state, range)));
        }
        produced
    })?;
    let mut produced: Vec<(usize, T)> = produced.into_iter().flatten().collect();
    produced.sort_unstable_by_key(|(start, _)| *start);
    Ok(produced.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metering, run};
    use std::time::Duration;

    #[test]
    fn covers_everything_once_and_shrinks() {
        let cursor = Cursor::with_batch(10_000, 2, 2, 500);
        let mut end = 0;
        let mut sizes = Vec::new();
        while let Some(batch) = cursor.next() {
            assert_eq!(batch.start, end);
            end = batch.end;
            sizes.push(batch.len());
        }
        assert_eq!(end, 10_000);
        assert_eq!(sizes[0], 500);
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        assert!(sizes[sizes.len() - 2] == 2);
    }

    #[test]
    fn batches_may_be_asked_for_smaller() {
        let cursor = Cursor::with_batch(100, 1, 10, 10);
        let asked = [2, 0, usize::MAX].map(|most| cursor.next_of(most));
        assert_eq!(asked, [Some(0..2), Some(2..3), Some(3..13)]);
    }

    #[test]
    fn who_waits_works_far_from_others() {
        let cursor = Cursor::with_batch(160, 1, 10, 10);
        assert_eq!(cursor.next_apart(3, 4), Some(0..4), "of 80");
        assert_eq!(cursor.next_apart(1, 4), Some(80..84), "of what is ahead");
        assert_eq!(cursor.next_apart(0, 4), Some(42..46), "of the largest");
        assert_eq!(cursor.next_apart(3, 4), Some(4..8));
        assert_eq!(cursor.remaining(), 160 - 16);
        // One that waits no longer takes what is ahead first, and then what others have left.
        assert_eq!(cursor.next(), Some(120..130));
        while cursor.next().is_some() {}
        let mut left: Vec<usize> = std::iter::from_fn(|| cursor.next_apart(7, 99))
            .flatten()
            .collect();
        left.sort_unstable();
        let expected: Vec<usize> = (8..42).chain(46..80).chain(84..120).collect();
        assert_eq!(left, expected);
        assert_eq!((cursor.remaining(), cursor.next_apart(0, 4)), (0, None));
    }

    /// Checks that one of many workers that wait takes no batch beside those of others, though they are
    /// no more than usual.
    #[test]
    fn many_that_wait_work_far_from_each_other() {
        let ahead_after = |usual| {
            let metering = Metering {
                window: Duration::ZERO,
                pretend: Some(Box::new(|busy| busy)),
            };
            let growth = Growth::new(Workers::up_to(usual, 64)).metering(&metering);
            let cursor = Cursor::with_batch(1000, 1, 10, 10);
            let mut handle = growth.alone(&|| false);
            let mut batches = WorkerBatches::new(&mut handle);
            batches.next(&cursor);
            let first = cursor.ahead();
            // A piece of work that is slow.
            std::thread::sleep(Duration::from_millis(2));
            let second = batches.next(&cursor);
            (first, cursor.ahead(), second)
        };
        assert_eq!(ahead_after(2), (999, 995, Some(1..1 + SLOW_BATCH)));
        assert_eq!(ahead_after(16), (500, 500, Some(1..1 + SLOW_BATCH)));
    }

    #[test]
    fn ranges_of_workers_that_end_are_left_to_others() {
        let cursor = Cursor::with_batch(10_000, 4, 10, 10);
        let mut all: Vec<usize> = run(8, |worker| {
            let mut mine = Vec::new();
            while let Some(batch) = match worker % 2 {
                0 => cursor.next_apart(worker, 4),
                _ => cursor.next().or_else(|| cursor.next_apart(worker, 4)),
            } {
                mine.extend(batch);
                if worker > 0 && mine.len() > 100 {
                    break;
                }
            }
            mine
        })
        .unwrap()
        .concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10_000));
    }

    #[test]
    fn who_may_be_joined_begins_with_little() {
        let first = |workers: Workers| {
            let ranges = ordered(workers, 100, 50, || (), |(), range| range);
            ranges.unwrap().remove(0)
        };
        assert_eq!(first(Workers::from(1)), 0..50);
        assert_eq!(first(Workers::adaptive(1)), 0..1);
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(Cursor::new(0, 8).next(), None);
    }

    #[test]
    fn odd_bounds_are_harmless() {
        let cursor = Cursor::with_batch(5, 0, 0, 0);
        for expected in 0..5 {
            assert_eq!(cursor.next(), Some(expected..expected + 1));
        }
        assert_eq!(cursor.next(), None);
        let cursor = Cursor::with_batch(usize::MAX, usize::MAX, 1, usize::MAX);
        assert_eq!(cursor.next(), Some(0..1));
    }

    #[test]
    fn workers_share_without_overlap() {
        let cursor = Cursor::new(50_000, 4);
        let mut all: Vec<usize> = run(4, |_| {
            let mut mine = Vec::new();
            while let Some(batch) = cursor.next() {
                mine.extend(batch);
            }
            mine
        })
        .unwrap()
        .concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..50_000));
    }

    #[test]
    fn every_item_once_and_in_order() {
        for workers in [0, 1, 3, 8] {
            for len in [0, 1, 63, 64, 65, 1000] {
                for batch in [0, 1, 64, 5000] {
                    let ranges = ordered(workers, len, batch, || (), |(), range| range).unwrap();
                    let items: Vec<usize> = ranges.iter().cloned().flatten().collect();
                    assert!(items.into_iter().eq(0..len), "{workers} {len} {batch}");
                    assert!(ranges.iter().all(|range| range.len() <= batch.max(1)));
                }
            }
        }
    }

    #[test]
    fn each_worker_has_one_state() {
        let begun = AtomicUsize::new(0);
        let begin = || begun.fetch_add(1, Ordering::Relaxed);
        ordered(4, 1000, 1, begin, |state, _| assert!(*state < 4)).unwrap();
        assert!((1..=4).contains(&begun.load(Ordering::Relaxed)));
        // Nobody has nothing to do.
        begun.store(0, Ordering::Relaxed);
        ordered(4, 10, 10, begin, |_, _| ()).unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_panic_is_reported() {
        let produce = |(): &mut (), range: Range<usize>| assert_ne!(range.start, 7, "the seventh");
        let error = ordered(2, 10, 1, || (), produce).unwrap_err();
        assert!(error.message.contains("the seventh"), "{error}");
    }
}
