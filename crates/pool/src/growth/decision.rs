//! Next number of workers of a run, from what is measured of those there are: pure arithmetic,
//! without clocks and without threads.
//!
//! There are two reasons for more. [`by_work`] compares the work ahead with the price of a worker:
//! sizes are mostly not known before a file is open, and the cost of a file depends on its storage,
//! so that the number that pays is decided while the work is done. [`Climb`] looks at the time that
//! those there are have waited, and at what they finish.

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

/// Time that one more worker costs: 40 to 130 µs pass before its first instruction (two virtual CPUs,
/// Zen 5), and then it has to set up its buffers and its lanes.
const START: Duration = Duration::from_micros(100);

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
    /// Cost of one more worker.
    const START: Effort = Effort(START.as_nanos() as u64);

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

/// Time that workers had something to do, and the work that they did in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    pub(super) busy: Duration,
    /// Part of that in which the worker had the CPU or wanted it; the rest it waited.
    pub(super) running: Duration,
    /// Files, and pieces of large ones.
    pub(super) work: u64,
}

impl BusyTime {
    /// True if so much of it was waited that more workers may help.
    pub(super) fn has_waited(self) -> bool {
        self.busy.saturating_sub(self.running) * WAITED > self.busy
    }

    /// True if a piece of work took so long that another worker, or a look at the clock after each, is
    /// nothing beside it.
    pub(super) fn is_slow(self) -> bool {
        self.each() >= SLOW
    }

    /// Returns the number of times as many workers than `workers` to try. What they wait for may be
    /// all that holds them up; and where each measurement takes long, there is less time for several.
    fn times_as_many(self, workers: usize, quickest: Duration) -> usize {
        match self.running * WAITED < self.busy {
            true if quickest >= VERY_SLOW => 16,
            true if workers < MANY => 4,
            _ => 2,
        }
    }

    /// Returns the time for a piece of work.
    fn each(self) -> Duration {
        self.busy / u32::try_from(self.work.max(1)).unwrap_or(u32::MAX)
    }

    /// Returns the work that so many workers finish in a second: those who are at work all the
    /// time, each of which takes the measured time for its own (Little's law). Unlike a count of what
    /// is finished between two moments this needs no time in which new workers fill the pipe.
    fn throughput(self, workers: usize) -> f64 {
        workers as f64 * self.work as f64 / self.busy.as_secs_f64().max(1e-9)
    }
}

/// Number of workers, and the work that they finish in a second.
#[derive(Clone, Copy, Debug)]
struct Throughput {
    workers: usize,
    rate: f64,
}

impl Throughput {
    /// Returns the number of workers from which on these have finished no more than the `fewer`, if
    /// each did as much as one of those up to there.
    fn knee(self, fewer: Throughput) -> f64 {
        fewer.workers as f64 * self.rate / fewer.rate
    }

    /// True if these workers are not far from as many times the work of those `fewer` as they are.
    fn grows(self, fewer: Throughput) -> bool {
        self.knee(fewer) >= GROWS * self.workers as f64
    }

    /// True if these workers hardly wait for each other: there is nothing but latency.
    fn is_latency(self, fewer: Throughput) -> bool {
        self.knee(fewer) >= LATENCY * self.workers as f64
    }

    /// True if these workers stay.
    fn is_gain_over(self, fewer: Throughput, usual: usize) -> bool {
        match self.workers <= FEW * usual {
            true => self.rate >= fewer.rate,
            false => self.grows(fewer) && self.is_worth_more_than(fewer),
        }
    }

    /// True if it would be a loss to go on with those `fewer`.
    fn is_loss_to_end(self, fewer: Throughput, usual: usize) -> bool {
        match self.workers <= FEW * usual {
            true => self.rate > fewer.rate * SAME,
            false => self.is_worth_more_than(fewer),
        }
    }

    /// True if these workers do so much more than those `fewer` that the difference is worth
    /// having: a fifth more for twice as many.
    fn is_worth_more_than(self, fewer: Throughput) -> bool {
        let times = self.workers as f64 / fewer.workers as f64;
        self.rate >= fewer.rate * (1.0 + (times - 1.0) / 5.0)
    }
}

/// Time for a file that is slow: several starts of a thread. Cached ones are copied in a tenth of it.
const SLOW: Duration = Duration::from_micros(500);

/// Time for a file several requests of which a server across a country answers.
const VERY_SLOW: Duration = Duration::from_millis(2);

/// Workers from which on each trial takes only twice as many, unless the work is very slow: a server
/// on the same processors has none left for more requests by then. 20,000 files of 26 KB on a FUSE file
/// system with 0.2 ms a request, XXH128, two CPUs: 8 workers take 3.4 s, 32 and 64 take 2.0 s, 128 take
/// 2.6 s; and a trial starts as many threads.
const MANY: usize = 32;

/// Times the usual number up to which those that join only have to be no loss. Through bindfs, cached,
/// two workers on two CPUs finished 20,000 files a second, four mostly no more, eight 30,000: a search
/// that asked four for more ended there, and hashing took 1.1 times as long.
const FEW: usize = 4;

/// Measurements of those that do not decide against them. Each is of one or two files of each of
/// them, large ones or small, so that single ones are half and twice the average.
const FEW_MEASURED: u8 = 4;

/// Times as much, up to which two averages may be of the same.
const SAME: f64 = 1.1;

/// Measurements in a row in which workers did not wait, after which fewer of them are tried: a server on
/// the same processors takes them from its clients for a moment.
const NOT_WAITED: u8 = 4;

/// Part of what as many times the workers would bring at best, from which on more are tried.
const GROWS: f64 = 0.4;

/// Part of that from which on more are tried at once, whatever a trial costs. Through bindfs eight
/// workers brought 0.4 of it beside two.
const LATENCY: f64 = 0.75;

/// Times as much as before that is worth having, and the part of the workers beyond the knee that is
/// kept, for its measurement is not exact.
const WORTH_HAVING: f64 = 1.2;
const BEYOND_KNEE: f64 = 1.25;

/// Decisions after a trial that failed, before the next one. They are twice as many each time, also if
/// one of many workers seemed a gain meanwhile: at 0.2 ms a request most of those do. A trial
/// takes the time of two decisions, and of starting its workers: with 4 of them a second of work at a
/// server on the same processors had six trials.
const PAUSE: u32 = 16;

/// The longest such pause.
const LONGEST_PAUSE: u32 = 1024;

/// Decisions, and with [`RARELY`](super::RARELY) a second, after a trial where the next one would be
/// costly: see [`Climb::is_trial_costly`]. Through bindfs, cached, manifests of 3,000 files took 1.12 of the time of
/// 8 workers, as 32 were tried at once; they take 0.2 s, and a worker that joins takes a thousandth of
/// that. And of 30,000 files, which take 1.3 s, each trial cost 1 %.
const LONG_PAUSE: u32 = 64;

/// Others, for each worker, that have to find something to do so that a costly trial is worth it. The
/// last 30 ms of 1.3 s through bindfs took 60 with 16 and then 32 workers on trial.
const WORTH_A_TRIAL: usize = 64;

/// Throughput that is so many times another, at the same number of workers, is that of another place.
/// Less is the difference between large files and small ones.
const CHANGE: f64 = 4.0;

/// Failed trial of a few workers. What follows may be slower for other reasons, larger files for one,
/// and was then already during the trial: over sshfs, from the same processors, two workers were left
/// at 1,200 files a second where eight had been dismissed at 1,300, and later finished 5,500.
#[derive(Debug)]
struct Doubt {
    /// Work that they finished in a second.
    rate: f64,
    /// Measurements left until it is compared with that of those before.
    left: u8,
}

/// Number of those: the average counts the last most.
const DOUBTFUL: u8 = 3;

/// Search for the number of workers beyond which throughput does not grow with their number, from one
/// measurement of it to the next.
///
/// What workers wait for cannot be asked: a server takes a hundred requests as fast as one, one
/// decompressor or one disk arm takes them in turn. So more workers are tried, and dismissed if
/// they bring too little. Where the workers wait no longer, or do much less than they did, the place
/// has changed, and fewer are tried.
#[derive(Debug)]
pub(super) struct Climb {
    /// Number before the trial that is going on.
    before: Option<Throughput>,
    /// Measurements left of that trial, or of the number that the run began with, that do not decide
    /// against it. By the first it would have to be twice as good as it need be: the first requests of
    /// many find a server idle that all of them together keep busy, so that it seems to answer up to
    /// twice as fast as it does. And who joins opens directories first: a search for duplicates at 10
    /// ms a request had 43 workers from 128 where a given 80 were compared by these.
    filling: u8,
    /// Average of the present number, if that is settled: each measurement counts as much as all
    /// those before it, as one alone may be that of a moment in which another process ran.
    settled: Option<f64>,
    /// Smaller number than which the present one was found better.
    fewer: Option<Throughput>,
    /// True while no trial of this run speaks for the number that it began with. A greater one is
    /// tried first, and fewer once that has failed: the other way round, a search for duplicates at 2
    /// ms a request took 1.13 times as long, for its passes are over before that pays.
    is_given: bool,
    /// Failed trial of a few that is to be compared with what follows it.
    doubt: Option<Doubt>,
    /// True if the next trial repeats the one that failed.
    is_repetition: bool,
    /// Least time that a piece of work took, at any number of workers: what it takes longer with more of
    /// them is their queue, which is no reason for more.
    quickest: Duration,
    /// Number of measurements, up to [`NOT_WAITED`], since the workers waited.
    without_waiting: u8,
    /// True if the last trial showed nothing but latency.
    is_latency: bool,
    pause: u32,
    /// Length of the next pause.
    next_pause: u32,
}

impl Climb {
    pub(super) const fn new() -> Climb {
        Climb {
            before: None,
            filling: 0,
            settled: None,
            fewer: None,
            is_given: false,
            doubt: None,
            is_repetition: false,
            quickest: Duration::MAX,
            without_waiting: 0,
            is_latency: false,
            pause: 0,
            next_pause: PAUSE,
        }
    }

    /// Begins the search of a run with more than the usual number, as the one before it ended with.
    pub(super) const fn given() -> Climb {
        Climb {
            is_given: true,
            filling: 1,
            ..Climb::new()
        }
    }

    /// Returns the number for a further run to begin with, where this one goes on with `next`: not
    /// one that is on trial.
    pub(super) fn proven(&self, next: usize) -> usize {
        self.before.map_or(next, |before| before.workers)
    }

    /// True if the next decisions bring no other number than `workers`, as far as the place does not
    /// change, and that is a long pause. Of slow work every measurement counts.
    pub(super) fn is_paused(&self, workers: usize, usual: usize) -> bool {
        self.is_trial_costly(workers, usual) && self.before.is_none() && self.pause > 0
    }

    /// Returns the number of workers that is to follow `workers`, from what these did since they
    /// have been so many: at least `usual`, at most `most`, where so many `more` would find something
    /// to do.
    pub(super) fn next(
        &mut self,
        workers: usize,
        measured: BusyTime,
        usual: usize,
        most: usize,
        more: usize,
    ) -> usize {
        let has_waited = measured.has_waited();
        self.without_waiting = match has_waited {
            true => 0,
            false => NOT_WAITED.min(self.without_waiting + 1),
        };
        let mut has_fallen = false;
        let now = Throughput {
            workers,
            rate: measured.throughput(workers),
        };
        self.quickest = self.quickest.min(measured.each());
        match self.before.take() {
            Some(before) if before.workers < workers => {
                let are_few = workers <= FEW * usual;
                let left = self.filling;
                self.filling = left.saturating_sub(1);
                let is_first = left == if are_few { FEW_MEASURED } else { 1 };
                let mut now = now;
                if are_few && !is_first {
                    now.rate = self.average(now.rate);
                }
                let counted = Throughput {
                    workers,
                    rate: if is_first { now.rate / 2.0 } else { now.rate },
                };
                let is_hopeless = !are_few && !now.grows(before);
                if left > 0 && !is_hopeless && !counted.is_gain_over(before, usual) {
                    self.before = Some(before);
                    return workers;
                }
                if !now.is_gain_over(before, usual) {
                    self.doubt_failure(now, usual);
                    return self.settle(before, now.knee(before), workers, usual);
                }
                let grows = now.grows(before) && now.is_worth_more_than(before);
                self.has_gained();
                if are_few {
                    self.next_pause = PAUSE;
                }
                self.fewer = Some(before);
                self.is_latency = now.is_latency(before);
                self.pause = if self.is_trial_costly(workers, usual) {
                    LONG_PAUSE
                } else if !grows && self.quickest >= SLOW {
                    PAUSE
                } else {
                    0
                };
            }
            Some(before) if before.workers > workers => {
                let rate = self.average(now.rate);
                let now = Throughput { workers, rate };
                if self.filling > 0 {
                    self.filling -= 1;
                    self.before = Some(before);
                    return workers;
                }
                if before.is_loss_to_end(now, usual) {
                    self.has_failed(before, usual);
                    return before.workers.min(most);
                }
                // On, as long as that is no loss.
                self.has_gained();
                if workers > usual {
                    return self.try_fewer(now, usual);
                }
            }
            _ if self.filling > 0 => {
                self.filling -= 1;
                // A few are believed to be what the run before found best.
                if workers == FEW * usual && self.is_trial_costly(workers, usual) {
                    self.pause = LONG_PAUSE;
                }
                return workers;
            }
            _ => has_fallen = self.look_for_change(now.rate),
        }
        let average = self.average(now.rate);
        if let Some(fewer) = self.fewer.filter(|fewer| average < fewer.rate) {
            // What the trial showed was no measure of what followed.
            let rate = average;
            self.doubt_failure(Throughput { workers, rate }, usual);
            self.has_failed(fewer, usual);
            return fewer.workers.clamp(usual, most);
        }
        let now = Throughput {
            workers,
            rate: average,
        };
        self.resolve_doubt(average);
        if self.pause > 0 {
            self.pause -= 1;
            return workers;
        }
        let is_doubtful = self.is_given && self.next_pause > PAUSE;
        let are_too_many = has_fallen || is_doubtful || self.without_waiting == NOT_WAITED;
        if workers > usual && are_too_many {
            return self.try_fewer(now, usual);
        }
        if !has_waited {
            return workers;
        }
        if self.is_trial_costly(workers, usual) && more < WORTH_A_TRIAL * workers {
            return workers;
        }
        // Half as many as the few may be no gain where all of them are one. But a walk of 12 ms through a
        // SquashFS took 13 with as many.
        let least = match workers < usual || self.quickest < START {
            true => 0,
            false => FEW * usual,
        };
        let times = measured.times_as_many(workers, self.quickest);
        let wanted = workers.saturating_mul(times).max(least).min(most);
        let next = wanted.min(workers.saturating_add(more)).max(workers);
        if next > usual && next < workers + (workers / 3).max(1) {
            // What so few bring is less than two measurements of the same differ.
            if self.is_given {
                self.has_failed(now, usual);
            }
            return workers;
        }
        // Up to the usual number no proof is needed.
        if next > workers && next > usual {
            let are_few = next <= FEW * usual;
            (self.before, self.filling) = (Some(now), if are_few { FEW_MEASURED } else { 1 });
            self.settled = None;
        }
        next
    }

    /// Returns the average of the present number, this measurement included.
    fn average(&mut self, rate: f64) -> f64 {
        let average = self.settled.map_or(rate, |before| (before + rate) / 2.0);
        self.settled = Some(average);
        average
    }

    /// Has a failed trial compared with what follows it, unless it was for that reason that it took
    /// place, or had many workers, which cost too much to try them again.
    fn doubt_failure(&mut self, tried: Throughput, usual: usize) {
        let is_repetition = std::mem::take(&mut self.is_repetition);
        let is_doubtful = tried.workers <= FEW * usual && !is_repetition;
        self.doubt = is_doubtful.then_some(Doubt {
            rate: tried.rate,
            left: DOUBTFUL,
        });
    }

    /// Ends the pause after a failed trial if those before it finish no more by now, `average` being
    /// what they do.
    fn resolve_doubt(&mut self, average: f64) {
        let Some(doubt) = &mut self.doubt else {
            return;
        };
        doubt.left -= 1;
        if doubt.left == 0 {
            if average < doubt.rate {
                (self.pause, self.is_repetition) = (0, true);
            }
            self.doubt = None;
        }
    }

    fn try_fewer(&mut self, now: Throughput, usual: usize) -> usize {
        let fewer = (now.workers / 2).max(usual);
        self.is_given = false;
        let are_few = now.workers <= FEW * usual;
        self.filling = if are_few { FEW_MEASURED } else { 0 };
        (self.before, self.settled, self.without_waiting) = (Some(now), None, 0);
        fewer
    }

    /// Returns the number that follows `tried`, which brought less than it might: that of the knee,
    /// or the one before if so many bring too little.
    fn settle(&mut self, before: Throughput, knee: f64, tried: usize, usual: usize) -> usize {
        let workers = match knee < WORTH_HAVING * before.workers as f64 {
            true => before.workers,
            false => tried.min((BEYOND_KNEE * knee).ceil() as usize),
        };
        let rate = before.rate * knee.max(before.workers as f64) / before.workers as f64;
        self.has_failed(Throughput { workers, rate }, usual);
        workers
    }

    fn has_gained(&mut self) {
        self.is_given = false;
        self.pause = 0;
        (self.settled, self.fewer, self.filling) = (None, None, 0);
        (self.doubt, self.is_repetition, self.is_latency) = (None, false, false);
    }

    /// True if a trial costs much, beside what it may bring where there are so many workers.
    fn is_trial_costly(&self, workers: usize, usual: usize) -> bool {
        workers >= FEW * usual && self.quickest < SLOW && !self.is_latency
    }

    /// Notes a failed trial, after which there are those that were there `before`.
    fn has_failed(&mut self, before: Throughput, usual: usize) {
        (self.pause, self.is_latency) = (self.next_pause, false);
        if self.is_trial_costly(before.workers, usual) {
            self.pause = self.pause.max(LONG_PAUSE);
        }
        self.next_pause = (self.next_pause * 2).min(LONGEST_PAUSE);
        (self.settled, self.fewer) = (Some(before.rate), None);
    }

    /// Ends a pause where the place is not the one that was measured; true if it has become slower.
    fn look_for_change(&mut self, rate: f64) -> bool {
        let Some(average) = self.settled else {
            return false;
        };
        let has_fallen = rate * CHANGE < average;
        if has_fallen {
            self.quickest = Duration::MAX;
        }
        if has_fallen || rate > average * CHANGE {
            self.has_gained();
            self.next_pause = PAUSE;
        }
        has_fallen
    }
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
            let work = 1;
            BusyTime {
                busy,
                running,
                work,
            }
            .has_waited()
        };
        assert!(waited(1000, 874) && waited(1000, 0));
        assert!(!waited(1000, 875) && !waited(0, 0));
        // Wanting the CPU before there was anything to do is no more than running all the time.
        assert!(!waited(1000, 5000));
    }

    /// A place: the seconds that each of so many workers needs for a file, and how much of that it
    /// runs.
    type Place = fn(usize) -> (f64, f64);

    /// Reads `files` at each of the places on two processors; returns the numbers of workers, one for
    /// each decision, and the time that all took.
    fn simulated(places: &[Place], files: u64) -> (Vec<usize>, f64) {
        let (mut climb, mut workers) = (Climb::new(), 2);
        let (mut numbers, mut took) = (Vec::new(), 0.0);
        for place in places {
            let mut left = files;
            while left > 0 {
                let (each, running) = place(workers);
                // Everyone's first file, and half of another that was begun before.
                let share = (0.004 / each).max(1.5).min(left as f64 / workers as f64);
                let work = ((share * workers as f64) as u64).clamp(1, left);
                left -= work;
                took += each * share;
                let measured = BusyTime {
                    busy: Duration::from_secs_f64(each * work as f64),
                    running: Duration::from_secs_f64(running * work as f64),
                    work,
                };
                let more = left as usize / 8;
                workers = climb.next(workers, measured, 2, 128, more);
                assert!((2..=128).contains(&workers));
                numbers.push(workers);
            }
        }
        (numbers, took)
    }

    /// Returns the time that so many workers take, none of whom joins or leaves.
    fn fixed(place: Place, files: u64, workers: usize) -> f64 {
        place(workers).0 * files as f64 / workers as f64
    }

    fn best(place: Place, files: u64) -> f64 {
        let times = [1, 2, 8, 32, 64, 128].map(|workers| fixed(place, files, workers));
        times.into_iter().fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn pure_latency_takes_all_there_may_be() {
        let places: [Place; 4] = [
            |_| (0.0002, 2e-5),
            |_| (0.001, 2e-5),
            |_| (0.008, 2e-5),
            |_| (0.04, 2e-5),
        ];
        for place in places {
            let files = if place(2).0 < 0.001 { 30_000 } else { 3000 };
            let (numbers, took) = simulated(&[place], files);
            let first: &[usize] = match place(2).0 < 0.002 {
                true => &[8, 32, 64, 64, 128],
                false => &[32, 128, 128],
            };
            assert!(numbers.starts_with(first), "{numbers:?}");
            // Each decision takes two windows.
            let best = best(place, files);
            assert!(took < 1.2 * best + 0.012, "{took} {best}: {numbers:?}");
        }
    }

    #[test]
    fn requests_per_second_bound_the_number() {
        // 5 ms, and 4,000 files a second at most: 20 workers have that.
        let place: Place = |n| ((n as f64 / 4000.0).max(0.005), 2e-5);
        let (numbers, took) = simulated(&[place], 20_000);
        assert!(took < 1.1 * best(place, 20_000), "{took}");
        let settled = numbers.iter().filter(|number| **number <= 32).count();
        assert!(settled * 20 > numbers.len() * 19, "{numbers:?}");
    }

    #[test]
    fn what_takes_one_at_a_time_gets_no_more_than_usual() {
        let decompressor: Place = |n| (0.00009 * (n as f64).powf(1.37), 8e-6);
        let arm: Place = |n| (0.004 * n as f64, 1e-5);
        let slower_arm: Place = |n| (0.004 * (n as f64).powf(1.2), 1e-5);
        for place in [decompressor, arm, slower_arm] {
            let (numbers, took) = simulated(&[place], 3000);
            let usual = numbers.iter().filter(|number| **number == 2).count();
            assert!(usual * 5 > numbers.len() * 4, "{numbers:?}");
            let two = fixed(place, 3000, 2);
            assert!(took < 1.1 * two, "{took} {two}");
            let (numbers, _) = simulated(&[place], 10_000);
            let usual = numbers.iter().filter(|number| **number == 2).count();
            assert!(usual * 10 > numbers.len() * 9, "{numbers:?}");
        }
    }

    /// A server on the same processors, with everything cached: files a second of 2, 4 and 8 workers
    /// through bindfs.
    #[test]
    fn what_is_not_slow_gets_a_few_and_no_more_at_once() {
        let place: Place = |n| (n as f64 / [20e3, 20e3, 30e3][(n / 4).min(2)], 1e-5);
        let (numbers, _) = simulated(&[place], 7000);
        let first = &numbers[..LONG_PAUSE as usize / 2];
        assert!(first.contains(&8), "{numbers:?}");
        assert!(first.iter().all(|number| *number <= 8), "{numbers:?}");
    }

    /// Checks that a trial beyond what a server answers at a time ends near that number at once.
    #[test]
    fn what_a_trial_shows_decides_how_many_stay() {
        // So many workers of 10 ms a file each.
        let after = |server: usize| {
            let measured = |workers: usize| {
                let wait = 10 * MS * workers.max(server) as u32 / server as u32;
                BusyTime {
                    busy: wait * 1000,
                    running: MS,
                    work: 1000,
                }
            };
            let (mut climb, mut workers) = (Climb::new(), 2);
            [(); 4].map(|()| {
                workers = climb.next(workers, measured(workers), 2, 128, 9999);
                workers
            })
        };
        assert_eq!(after(2), [32, 2, 2, 2]);
        assert_eq!(after(5), [32, 7, 7, 7]);
        assert_eq!(after(10), [32, 13, 13, 13]);
        assert_eq!(after(20), [32, 32, 128, 32]);
        assert_eq!(after(100), [32, 128, 128, 128]);
    }

    /// So many workers that finish so much in a second, and do little else than wait.
    fn at(workers: usize, rate: u64) -> BusyTime {
        let busy = 1000 * MS * workers as u32;
        BusyTime {
            busy,
            running: busy / 100,
            work: rate,
        }
    }

    #[test]
    fn twice_as_many_have_to_bring_a_fifth() {
        let after = |rate| {
            let mut climb = Climb::new();
            assert_eq!(climb.next(32, at(32, 32_000), 2, 128, 9999), 64);
            assert_eq!(climb.next(64, at(64, 64_000), 2, 128, 9999), 64);
            climb.next(64, at(64, rate), 2, 128, 9999)
        };
        assert_eq!([28_000, 37_000, 40_000].map(after), [32, 32, 128]);
    }

    #[test]
    fn a_trial_is_measured_once_more_unless_that_is_clear() {
        let after = |rate| {
            let mut climb = Climb::new();
            assert_eq!(climb.next(8, at(8, 10_000), 2, 128, 9999), 32);
            climb.next(32, at(32, rate), 2, 128, 9999)
        };
        let clear = [10_000, 15_900, 16_100, 31_900, 32_100].map(after);
        assert_eq!(clear, [8, 16, 32, 32, 64]);
    }

    #[test]
    fn a_gain_that_does_not_last_is_given_up() {
        let mut climb = Climb::new();
        let rates = [33_000, 9000, 9000, 9000, 9000, 9000];
        assert_eq!(climb.next(2, at(2, 10_000), 2, 8, 9999), 8);
        let after = rates.map(|rate| climb.next(8, at(8, rate), 2, 8, 9999));
        assert_eq!(after, [8, 8, 8, 8, 8, 2]);
        assert_eq!(climb.next(2, at(2, 10_000), 2, 8, 9999), 2, "for a while");
    }

    /// Checks that such gains make each pause longer, as failures do.
    #[test]
    fn gains_that_do_not_last_are_tried_ever_more_rarely() {
        let mut climb = Climb::new();
        let pauses = [(); 3].map(|()| {
            let mut pause = 0;
            while climb.next(32, at(32, 32_000), 2, 64, 9999) == 32 {
                pause += 1;
            }
            assert_eq!(climb.next(64, at(64, 99_000), 2, 64, 9999), 64);
            while climb.next(64, at(64, 30_000), 2, 64, 9999) == 64 {}
            pause
        });
        assert_eq!(pauses, [0, PAUSE, 2 * PAUSE]);
    }

    #[test]
    fn one_slow_moment_makes_no_trial_look_good() {
        let mut climb = Climb::new();
        let mut next = |workers, rate| climb.next(workers, at(workers, rate), 2, 128, 9999);
        let failed = [(32, 50_000), (64, 50_000), (64, 50_000)];
        assert_eq!(
            failed.map(|(workers, rate)| next(workers, rate)),
            [64, 64, 32]
        );
        for _ in 0..PAUSE {
            assert_eq!(next(32, 50_000), 32);
        }
        // A third of the usual, and then twice that.
        let slow = [(32, 17_500), (64, 35_000), (64, 35_000)];
        assert_eq!(
            slow.map(|(workers, rate)| next(workers, rate)),
            [64, 64, 32]
        );
    }

    #[test]
    fn a_few_stay_unless_they_are_a_loss() {
        let after = |rate| {
            let mut climb = Climb::new();
            assert_eq!(climb.next(2, at(2, 10_000), 2, 8, 9999), 8);
            for _ in 0..FEW_MEASURED {
                assert_eq!(climb.next(8, at(8, 9000), 2, 8, 9999), 8);
            }
            climb.next(8, at(8, rate), 2, 8, 9999)
        };
        assert_eq!([10_900, 11_000].map(after), [2, 8], "on average");
    }

    /// Checks that a trial of few that met slower files is repeated, once.
    #[test]
    fn a_loss_is_none_if_what_follows_is_slower_still() {
        let after_failure = |rate| {
            let mut climb = Climb::new();
            let mut next = |workers, rate| climb.next(workers, at(workers, rate), 2, 8, 9999);
            assert_eq!(next(2, 10_000), 8);
            assert_eq!([6000; 5].map(|rate| next(8, rate)), [8, 8, 8, 8, 2]);
            let followed = [rate; 3].map(|rate| next(2, rate));
            let again = [3000; 5].map(|rate| next(8, rate));
            (followed, again, [2500; 3].map(|rate| next(2, rate)))
        };
        let (followed, again, ended) = after_failure(4000);
        assert_eq!((followed, again), ([2, 2, 8], [8, 8, 8, 8, 2]));
        assert_eq!(ended, [2; 3], "not a second time");
        assert_eq!(after_failure(8000).0, [2; 3]);
    }

    /// Checks that the time that requests wait for each other is no reason for sixteen times as many.
    #[test]
    fn what_takes_long_in_a_queue_is_not_far_away() {
        let each = |time: Duration| BusyTime {
            busy: time * 1000,
            running: MS,
            work: 1000,
        };
        let mut climb = Climb::new();
        assert_eq!(climb.next(2, each(MS), 2, 128, 9999), 8);
        assert_eq!(climb.next(8, each(2 * MS), 2, 128, 9999), 32);
    }

    #[test]
    fn a_few_that_are_given_stay_for_a_while_if_the_work_is_not_slow() {
        let pause = |rate| {
            let mut climb = Climb::given();
            let mut pause = 0;
            while climb.next(8, at(8, rate), 2, 128, 9999) == 8 {
                pause += 1;
            }
            pause
        };
        assert_eq!([30_000, 9000].map(pause), [LONG_PAUSE + 1, 1]);
    }

    #[test]
    fn first_files_are_no_measure_of_a_given_number() {
        let mut climb = Climb::given();
        let mut next = |workers, rate| climb.next(workers, at(workers, rate), 2, 128, 9999);
        let measured = [(60, 9000), (60, 4500), (128, 9000), (128, 9000)];
        let followed = measured.map(|(workers, rate)| next(workers, rate));
        assert_eq!(followed, [60, 128, 128, 128]);
    }

    /// Checks that a number from another run is compared with a smaller one, once a greater one has
    /// failed or cannot be tried.
    #[test]
    fn a_given_number_has_to_show_that_it_is_better_than_fewer() {
        // So many workers at a time are served, 10 ms a file each.
        let numbers = |given: usize, served: usize| {
            let (mut climb, mut workers) = (Climb::given(), given);
            let mut numbers = vec![workers];
            for _ in 0..100 {
                let rate = 100 * workers.min(served) as u64;
                workers = climb.next(workers, at(workers, rate), 2, 128, 9999);
                if numbers.last() != Some(&workers) {
                    numbers.push(workers);
                }
            }
            numbers
        };
        assert!(numbers(32, 1).starts_with(&[32, 128, 32, 16, 8, 4, 2]));
        assert!(numbers(128, 1).starts_with(&[128, 64, 32, 16, 8, 4, 2]));
        assert!(numbers(32, 32).starts_with(&[32, 128, 32, 16, 32, 128, 32]));
        assert_eq!(numbers(32, 128), [32, 128]);
        assert_eq!(numbers(128, 128), [128, 64, 128]);
    }

    #[test]
    fn a_number_on_trial_is_not_passed_on() {
        let mut climb = Climb::new();
        let mut next = |workers, rate| {
            let next = climb.next(workers, at(workers, rate), 2, 128, 9999);
            (next, climb.proven(next))
        };
        assert_eq!(next(2, 1000), (32, 2));
        assert_eq!(next(32, 16_000), (128, 32));
        assert_eq!(next(128, 16_000), (32, 32));
    }

    #[test]
    fn a_costly_trial_needs_much_work_ahead() {
        let next = |rate, more| Climb::new().next(8, at(8, rate), 2, 128, more);
        let enough = 8 * WORTH_A_TRIAL;
        assert_eq!([enough - 1, enough].map(|more| next(30_000, more)), [8, 32]);
        assert_eq!(next(9000, 24), 32, "slow work");
        // 2 workers, and then 8 that finish four times as much: latency.
        let mut climb = Climb::new();
        assert_eq!(climb.next(2, at(2, 8000), 2, 128, 99), 8);
        assert_eq!(climb.next(8, at(8, 64_000), 2, 128, 99), 32);
    }

    #[test]
    fn so_few_more_are_not_tried() {
        let measured = BusyTime {
            busy: 1000 * MS,
            running: 300 * MS,
            work: 1000,
        };
        let next = |workers, more| Climb::new().next(workers, measured, 2, 128, more);
        assert_eq!([3, 4, 5].map(|more| next(12, more)), [12, 16, 17]);
        assert_eq!(next(2, 1), 3);
        assert_eq!(Climb::new().next(6, measured, 8, 128, 1), 7, "no trial");
    }

    /// Checks that a moment in which the server has the processors ends no worker, and that a few are
    /// told from half as many by several measurements.
    #[test]
    fn fewer_are_tried_once_those_there_do_not_wait_any_longer() {
        let runs = |measured: BusyTime| BusyTime {
            running: measured.busy,
            ..measured
        };
        let mut climb = Climb::new();
        for _ in 1..NOT_WAITED {
            assert_eq!(climb.next(8, runs(at(8, 30_000)), 2, 8, 9999), 8);
        }
        assert_eq!(climb.next(8, at(8, 30_000), 2, 8, 9999), 8, "it waits");
        for _ in 1..NOT_WAITED {
            assert_eq!(climb.next(8, runs(at(8, 30_000)), 2, 8, 9999), 8);
        }
        assert_eq!(climb.next(8, runs(at(8, 30_000)), 2, 8, 9999), 4);
        for rate in [60_000, 20_000, 20_000, 20_000] {
            assert_eq!(climb.next(4, runs(at(4, rate)), 2, 8, 9999), 4);
        }
        assert_eq!(climb.next(4, runs(at(4, 20_000)), 2, 8, 9999), 8);
    }

    #[test]
    fn what_is_cached_gets_none() {
        let (numbers, _) = simulated(
            &[|n| (0.00001 * n as f64 / 2.0, 0.00001 * n as f64 / 2.0)],
            9999,
        );
        assert!(numbers.iter().all(|number| *number == 2), "{numbers:?}");
    }

    #[test]
    fn a_place_that_changes_is_measured_again() {
        let latency: Place = |_| (0.008, 2e-5);
        let cached: Place = |n| (0.00001 * n as f64 / 2.0, 0.00001 * n as f64 / 2.0);
        let arm: Place = |n| (0.02 * n as f64, 1e-5);
        for other in [cached, arm] {
            let (numbers, _) = simulated(&[latency, other], 60_000);
            assert!(numbers.contains(&128));
            // But for one trial or another, where there is something to wait for.
            assert!(
                numbers.last() == Some(&2) || other(2).1 < other(2).0,
                "{numbers:?}"
            );
            let last = &numbers[numbers.len() * 9 / 10..];
            let usual = last.iter().filter(|number| **number == 2).count();
            assert!(usual * 10 >= last.len() * 9, "{last:?}");
            let (numbers, took) = simulated(&[other, latency], 30_000);
            assert_eq!(numbers.last(), Some(&128));
            let alone = fixed(other, 30_000, 2) + fixed(latency, 30_000, 128);
            assert!(took < 1.1 * alone, "{took} {alone}");
        }
    }
}
