//! Results of many items, made by several workers and returned in the order of the items.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::run::{WorkerPanic, run};

/// Cuts `0..len` into ranges of `batch` items, has up to `workers` of them at work at a time, and
/// returns what `produce` makes of each range, in order. Each worker has a state of its own, which
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
    workers: usize,
    len: usize,
    batch: usize,
    begin: impl Fn() -> S + Sync,
    produce: impl Fn(&mut S, Range<usize>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let batch = batch.max(1);
    let workers = workers.min(len.div_ceil(batch)).max(1);
    let cursor = Cursor::with_batch(len, workers, batch, batch);
    let produced = run(workers, |_| {
        let mut state = begin();
        let mut produced = Vec::new();
        while let Some(range) = cursor.next() {
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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
