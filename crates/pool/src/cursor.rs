//! A shared position in a list, handed out in batches that shrink towards the end.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Batches per worker that the remaining work is cut into: a worker that takes the next
/// batch leaves enough for the others to finish at about the same time.
const SHARE: usize = 4;

/// Largest batch by default: large enough that the shared counter costs nothing, small
/// enough that one worker's batch of slow items does not keep the others waiting.
const MAX_BATCH: usize = 256;

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
        let mut start = self.next.load(Ordering::Relaxed);
        loop {
            let remaining = self.len.saturating_sub(start);
            if remaining == 0 {
                return None;
            }
            let batch = (remaining / self.divisor).clamp(self.min, self.max);
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
}
