//! More workers for a run that turns out to be worth them.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::{Effort, Start};
use crate::Spawner;

/// Files begun before the clock is started: the first files pay for setup in the process and in the
/// kernel, which is no measure of those that follow. And a dozen files are too few to distinguish
/// slow storage from a worker that has lost its CPU for a moment.
const WARM_UP: u64 = 16;

/// Number of workers of a run, shared by all of them. Written only when one is added.
#[derive(Debug)]
pub struct WorkerCount {
    most: usize,
    workers: AtomicUsize,
    start: Start,
}

impl WorkerCount {
    /// Starts the count of a run that begins with `workers` of at most `most`.
    pub fn new(start: Start, workers: usize, most: usize) -> WorkerCount {
        WorkerCount {
            most,
            workers: AtomicUsize::new(workers),
            start,
        }
    }

    /// Returns the number of workers that there are, or are about to be.
    pub fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    fn is_complete(&self) -> bool {
        self.start == Start::Together || self.workers() >= self.most
    }

    /// Starts workers until there are `wanted`, or the system refuses one.
    fn grow(&self, wanted: usize, spawner: &Spawner<'_>) {
        let mut workers = self.workers();
        while workers < wanted.min(self.most) {
            // Relaxed: a number, with nothing behind it.
            let counted = self.workers.compare_exchange(
                workers,
                workers + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match counted {
                Ok(_) if spawner.spawn() => workers += 1,
                Ok(_) => {
                    self.workers.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
                Err(now) => workers = now,
            }
        }
    }
}

/// One worker's estimate of the rest of its run, from the files that it has begun itself: from
/// their sizes, or from the clock where that gives more, as on slow storage. The remaining files
/// are assumed to be alike.
///
/// Nothing shared is written for a file, and the clock is asked at every doubling of the number of
/// files only, and when the reckoning has gone up by the price of a worker.
pub struct WorkerAdder<'r> {
    count: &'r WorkerCount,
    spawner: &'r Spawner<'r>,
    /// True once there will be no more workers: none need look any longer.
    over: bool,
    reckoning: Reckoning,
    /// Time when the clock was started, and the number of files before it.
    since: Option<(Instant, u64)>,
}

impl fmt::Debug for WorkerAdder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerAdder").finish_non_exhaustive()
    }
}

impl<'r> WorkerAdder<'r> {
    /// Makes the estimate of one worker of a run, with its way to start others.
    pub fn new(count: &'r WorkerCount, spawner: &'r Spawner<'r>) -> WorkerAdder<'r> {
        WorkerAdder {
            count,
            spawner,
            over: count.is_complete(),
            reckoning: Reckoning::default(),
            since: None,
        }
    }

    /// Counts a file that the worker begins, of this size; `left` returns how many no worker has
    /// taken yet. True if there are more workers than before.
    #[inline]
    pub fn begin(&mut self, bytes: u64, left: impl FnOnce() -> usize) -> bool {
        !self.over && self.reckoning.begin(bytes) && self.look(left())
    }

    #[cold]
    fn look(&mut self, left: usize) -> bool {
        let now = Instant::now();
        let (since, files) = *self.since.get_or_insert((now, self.reckoning.files));
        let timed = Timed {
            files: self.reckoning.files - files,
            took: Effort::from(now - since),
        };
        let before = self.count.workers();
        let wanted = self.reckoning.wanted(timed, left, before, self.count.most);
        self.count.grow(wanted, self.spawner);
        self.over = self.count.is_complete();
        self.count.workers() > before
    }
}

/// Measured time: so many files took so long.
#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    files: u64,
    took: Effort,
}

/// The arithmetic of it, without a clock.
#[derive(Debug, Default)]
struct Reckoning {
    files: u64,
    effort: Effort,
    /// The effort at the last look.
    looked: Effort,
}

impl Reckoning {
    /// Takes note of a file; returns whether it is time to look.
    #[inline]
    fn begin(&mut self, bytes: u64) -> bool {
        self.files += 1;
        self.effort += Effort::of(1, bytes);
        let doubled = self.files >= WARM_UP && self.files.is_power_of_two();
        if doubled || self.effort.0 - self.looked.0 >= Effort::START.0 {
            self.looked = self.effort;
            return true;
        }
        false
    }

    /// Returns how many workers `left` more files like those begun are worth, where there are
    /// `workers`.
    fn wanted(&self, timed: Timed, left: usize, workers: usize, most: usize) -> usize {
        let each = timed.took.0.checked_div(timed.files).unwrap_or(0);
        let each = each.max(self.effort.0 / self.files.max(1));
        let ahead = Effort(each.saturating_mul(left as u64));
        // Each of those who join has to find a file.
        ahead.worth(most).min(workers.saturating_add(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_growing;

    /// Lets one worker after the other begin the remaining files, with a clock that does not
    /// advance; returns the numbers of files after which there were more workers, with those
    /// numbers of workers.
    fn growth(files: usize, bytes: u64, most: usize) -> Vec<(usize, usize)> {
        let count = WorkerCount::new(Start::AsItPays, 1, most);
        let begun = AtomicUsize::new(0);
        let taken = run_growing(1, most, |_, spawner| {
            let mut adder = WorkerAdder::new(&count, spawner);
            let mut seen = Vec::new();
            loop {
                let before = begun.fetch_add(1, Ordering::Relaxed);
                if before >= files {
                    return seen;
                }
                if adder.begin(bytes, || files - before - 1) {
                    seen.push((before + 1, count.workers()));
                }
            }
        });
        taken.unwrap().concat()
    }

    #[test]
    fn a_handful_of_small_files_is_read_by_one() {
        for files in 0..40 {
            assert_eq!(growth(files, 4000, 64), []);
        }
        assert_eq!(growth(1, 1 << 40, 64), [], "nothing is left for another");
    }

    #[test]
    fn large_files_call_for_others_when_they_are_opened() {
        assert_eq!(growth(6, 200_000_000, 64)[0].0, 1);
        assert_eq!(growth(6, 200_000_000, 6)[0], (1, 6));
        assert_eq!(growth(60, 20_000_000, 16)[0], (1, 16));
        assert_eq!(growth(1000, 1_000_000, 16)[0], (1, 16));
        assert_eq!(growth(3000, 300_000, 2)[0], (3, 2));
    }

    #[test]
    fn many_small_files_call_for_others_by_their_number() {
        let (after, workers) = growth(20_000, 4000, 64)[0];
        assert!(after <= 32 && workers > 16, "{workers} after {after}");
    }

    #[test]
    fn slow_files_call_for_others_by_the_clock() {
        let mut reckoning = Reckoning::default();
        let looked: Vec<usize> = (1..=64).filter(|_| reckoning.begin(100)).collect();
        assert!(
            [16, 32, 64].iter().all(|n| looked.contains(n)),
            "{looked:?}"
        );
        let wanted = |took| {
            let took = Effort(took);
            reckoning.wanted(Timed { files: 48, took }, 20, 1, 64)
        };
        assert_eq!(wanted(0), 1);
        assert_eq!(wanted(48 * 5_000_000), 21, "5 ms a file, as from afar");
    }

    #[test]
    fn a_named_number_is_kept_and_a_refusal_accepted() {
        let count = WorkerCount::new(Start::Together, 2, 2);
        let none = run_growing(2, 64, |_, spawner| {
            WorkerAdder::new(&count, spawner).begin(1 << 40, || 1000)
        });
        assert_eq!(none.unwrap(), [false, false]);
        let count = WorkerCount::new(Start::AsItPays, 1, 64);
        run_growing(1, 3, |worker, spawner| {
            if worker == 0 {
                assert!(WorkerAdder::new(&count, spawner).begin(1 << 40, || 1000));
            }
        })
        .unwrap();
        assert_eq!(count.workers(), 3);
    }

    #[test]
    fn absurd_sizes_are_harmless() {
        let mut reckoning = Reckoning::default();
        for _ in 0..3 {
            reckoning.begin(u64::MAX);
        }
        let timed = Timed {
            files: 1,
            took: Effort(u64::MAX),
        };
        let wanted = reckoning.wanted(timed, usize::MAX, 1, 1 << 20);
        assert_eq!(wanted, crate::MAX_WORKERS);
        assert_eq!(Reckoning::default().wanted(Timed::default(), 5, 1, 8), 1);
    }
}
