//! Next number of workers of a run, from what is measured of those there are: pure arithmetic,
//! without clocks and without threads.
//!
//! There are two reasons for more. [`by_work`] compares the work ahead with the price of a worker:
//! sizes are mostly not known before a file is open, and the cost of a file depends on its storage,
//! so that the number that pays is decided while the work is done. [`by_waiting`] looks at the time
//! that those there are have waited.

use std::time::Duration;

use crate::MAX_WORKERS;

/// Files begun before the clock is started: the first files pay for setup in the process and in the
/// kernel, which is no measure of those that follow. And a dozen files are too few to distinguish
/// slow storage from a worker that has lost its CPU for a moment.
const WARM_UP: u64 = 16;

/// Part of the time, one in so many, above which waiting calls for more workers. With everything
/// cached the workers waited for less than one in 30, also while other processes took the CPUs;
/// with nothing cached two workers on two CPUs waited for two in five, and four for one in six.
pub(super) const WAITED: u32 = 8;

/// Estimate of one worker's time for some work, in nanoseconds, which errs on the short side, so
/// that no worker is started for nothing. Addition saturates.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Effort(u64);

impl Effort {
    /// Nanoseconds to open, read and close a small file that is cached; 3 to 6 µs on machines of
    /// the last years. A file that is not cached takes longer, which is noticed while it is read.
    const PER_FILE: u64 = 4_000;
    /// Bytes read and hashed in a nanosecond: about what copying out of the page cache alone
    /// allows, and the fastest digests do.
    const BYTES_PER_NANOSECOND: u64 = 8;
    /// Cost of one more worker: 40 to 130 µs pass before its first instruction (two virtual CPUs,
    /// Zen 5), and then it has to set up its buffers and its lanes.
    const START: Effort = Effort(100_000);

    /// Returns the effort of reading and hashing so many files with so many bytes together.
    ///
    /// ```
    /// use bc_pool::Effort;
    ///
    /// assert_eq!(Effort::of(10, 100_000).worth(64), 1);
    /// assert_eq!(Effort::of(86_629, 1_490_000_000).worth(16), 16);
    /// assert_eq!(Effort::of(2, 1 << 30).worth(2), 2);
    /// ```
    pub fn of(files: u64, bytes: u64) -> Effort {
        let files = files.saturating_mul(Effort::PER_FILE);
        Effort(files.saturating_add(bytes / Effort::BYTES_PER_NANOSECOND))
    }

    /// Returns the number of workers in `1..=most` with which it is over soonest, if to start each
    /// one takes its time: with n of them it takes (n - 1) starts and 1/n of the work, so that the
    /// n-th pays as long as `n * (n - 1)` starts take less than all of the work.
    pub fn worth(self, most: usize) -> usize {
        let starts = self.0 / Effort::START.0;
        let root = starts.isqrt() as usize;
        // n * (n - 1) < starts <= (root + 1)^2 holds for n = root, perhaps for root + 1.
        let next = root as u64 + 1;
        let ideal = if next * (next - 1) < starts {
            root + 1
        } else {
            root
        };
        ideal.clamp(1, most.clamp(1, MAX_WORKERS))
    }
}

impl From<Duration> for Effort {
    fn from(time: Duration) -> Effort {
        Effort(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl std::ops::AddAssign for Effort {
    fn add_assign(&mut self, more: Effort) {
        self.0 = self.0.saturating_add(more.0);
    }
}

/// Files that a worker has begun, and the effort that their sizes mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BegunFiles {
    pub(super) files: u64,
    effort: Effort,
    /// The effort at the last look.
    looked: Effort,
}

impl BegunFiles {
    /// Counts a file; returns whether it is time to look at the clock and decide: at every doubling
    /// of the number of files, and when the effort has gone up by the price of a worker.
    #[inline]
    pub(super) fn begin(&mut self, bytes: u64) -> bool {
        self.files += 1;
        self.effort += Effort::of(1, bytes);
        let doubled = self.files >= WARM_UP && self.files.is_power_of_two();
        if doubled || self.effort.0 - self.looked.0 >= Effort::START.0 {
            self.looked = self.effort;
            return true;
        }
        false
    }
}

/// Measured time: so many files took so long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimedFiles {
    pub(super) files: u64,
    pub(super) took: Effort,
}

/// Returns how many workers the `left` files are worth that no worker has taken, of at most `most`,
/// where there are `workers`. They are assumed to be like those that one worker has begun: by their
/// sizes, or by the clock where that gives more, as on slow storage.
pub(super) fn by_work(
    begun: &BegunFiles,
    timed: TimedFiles,
    left: usize,
    workers: usize,
    most: usize,
) -> usize {
    let each = timed.took.0.checked_div(timed.files).unwrap_or(0);
    let each = each.max(begun.effort.0 / begun.files.max(1));
    let ahead = Effort(each.saturating_mul(left as u64));
    // Each of those who join has to find a file.
    ahead.worth(most).min(workers.saturating_add(left))
}

/// Time that workers had something to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    pub(super) busy: Duration,
    /// Part of that in which the worker had the CPU or wanted it; the rest it waited.
    pub(super) running: Duration,
}

impl BusyTime {
    /// True if so much of it was waited that more workers would help.
    pub(super) fn has_waited(self) -> bool {
        self.busy.saturating_sub(self.running) * WAITED > self.busy
    }
}

/// Returns the number of workers that is to follow `workers`, of at most `most`, where these have
/// waited and `room` more would find something to do. Twice as many: what they wait for may be all
/// that holds them up.
pub(super) fn by_waiting(workers: usize, room: usize, most: usize) -> usize {
    workers
        .saturating_add(room.min(workers))
        .min(most.max(workers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn small_jobs_stay_on_one_thread() {
        for (files, bytes) in [(0, 0), (1, 0), (10, 40_000), (40, 200_000), (1, 1_000_000)] {
            let effort = Effort::of(files, bytes);
            assert_eq!(effort.worth(64), 1, "{files} files, {bytes} bytes");
        }
    }

    #[test]
    fn large_jobs_take_all() {
        let tree = Effort::of(86_629, 1_490_000_000);
        assert_eq!([2, 16].map(|most| tree.worth(most)), [2, 16]);
        assert_eq!(Effort::of(2, 1 << 40).worth(64), 64);
        assert_eq!(
            Effort::of(u64::MAX, u64::MAX).worth(usize::MAX),
            MAX_WORKERS
        );
    }

    /// Compares the number with the sum that it is meant to minimise.
    #[test]
    fn no_other_number_is_over_sooner() {
        for starts in 0..1000 {
            let effort = Effort(starts * Effort::START.0);
            let time = |n: u64| (n - 1) * Effort::START.0 * n * n + effort.0 * n;
            // Compared as n times the time, to stay with whole numbers: a/n < b/m.
            let sooner = |n: u64, m: u64| time(n) * m * m < time(m) * n * n;
            let n = effort.worth(64) as u64;
            assert!((1..=64).all(|m| !sooner(m, n)), "{starts}: {n}");
            assert!((1..n).all(|m| sooner(n, m)), "{starts}: {n}");
        }
    }

    #[test]
    fn nobody_is_no_number_of_workers() {
        for effort in [Effort(0), Effort::START, Effort(u64::MAX)] {
            assert_eq!(effort.worth(0), 1);
        }
    }

    #[test]
    fn slow_files_call_for_others_by_the_clock() {
        let mut begun = BegunFiles::default();
        let looked: Vec<usize> = (1..=64).filter(|_| begun.begin(100)).collect();
        assert!(
            [16, 32, 64].iter().all(|n| looked.contains(n)),
            "{looked:?}"
        );
        let wanted = |took| {
            let took = Effort(took);
            by_work(&begun, TimedFiles { files: 48, took }, 20, 1, 64)
        };
        assert_eq!(wanted(0), 1);
        assert_eq!(wanted(48 * 5_000_000), 21, "5 ms a file, as from afar");
    }

    #[test]
    fn absurd_sizes_are_harmless() {
        let mut begun = BegunFiles::default();
        for _ in 0..3 {
            begun.begin(u64::MAX);
        }
        let timed = TimedFiles {
            files: 1,
            took: Effort(u64::MAX),
        };
        let wanted = by_work(&begun, timed, usize::MAX, 1, 1 << 20);
        assert_eq!(wanted, MAX_WORKERS);
        let none = BegunFiles::default();
        assert_eq!(by_work(&none, TimedFiles::default(), 5, 1, 8), 1);
    }

    #[test]
    fn waiting_for_an_eighth_of_the_time_is_too_much() {
        let waited = |busy: u32, running: u32| {
            let (busy, running) = (busy * MS, running * MS);
            BusyTime { busy, running }.has_waited()
        };
        assert!(waited(1000, 874) && waited(1000, 0));
        assert!(!waited(1000, 875) && !waited(0, 0));
        // Wanting the CPU before there was anything to do is no more than running all the time.
        assert!(!waited(1000, 5000));
    }

    #[test]
    fn who_waits_is_doubled_within_bounds() {
        assert_eq!([1, 2, 3, 8].map(|n| by_waiting(n, 64, 8)), [2, 4, 6, 8]);
        assert_eq!(
            [0, 1, 2, 3].map(|room| by_waiting(2, room, 8)),
            [2, 3, 4, 4]
        );
        assert_eq!(by_waiting(9, 64, 8), 9, "never fewer");
        assert_eq!(by_waiting(usize::MAX, usize::MAX, usize::MAX), usize::MAX);
    }
}
