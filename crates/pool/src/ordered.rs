//! Items of a list, shared out among workers: a position that hands out batches, which shrink towards
//! the end, and results that are returned in the order of the items.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::growth::{Growth, Waiting, WorkerHandle};
use crate::run::WorkerPanic;
use crate::threads::Workers;

/// Batches per worker that the remaining work is cut into: a worker that takes the next
/// batch leaves enough for the others to finish at about the same time.
const SHARE: usize = 4;

/// Largest batch by default: large enough that the shared counter costs nothing, small
/// enough that one worker's batch of slow items does not keep the others waiting.
const MAX_BATCH: usize = 256;

/// Items in a worker's first batch, and at most in one where they take long.
const FIRST_BATCH: usize = 2;
const SLOW_BATCH: usize = 16;

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
        }
    }

    /// Returns the number of items that have not been handed out yet.
    pub fn remaining(&self) -> usize {
        self.len.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Returns the next batch, or `None` when everything has been handed out.
    pub fn next(&self) -> Option<Range<usize>> {
        self.next_of(usize::MAX)
    }

    /// Returns the next batch, of at most so many items and at least one.
    pub fn next_of(&self, most: usize) -> Option<Range<usize>> {
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
            true => (cursor.remaining() / (4 * self.handle.workers())).min(SLOW_BATCH),
            false => usize::MAX,
        };
        let batch = cursor.next_of(most)?;
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
    let growth = Growth::new(workers).left(&left, FIRST_BATCH);
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
    use crate::run;

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
    fn who_may_be_joined_begins_with_little() {
        let first = |workers: Workers| {
            let ranges = ordered(workers, 100, 50, || (), |(), range| range);
            ranges.unwrap().remove(0)
        };
        assert_eq!(first(Workers::from(1)), 0..50);
        assert_eq!(first(Workers::adaptive(1)), 0..2);
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
