//! Calls that wait: for a disk that has to fetch what is not resident, for a server, or for a
//! processor. File systems are asked where they report it, and timed where they do not. Workers start
//! with the experience of others before them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bc_pool::LastRun;
use bc_walk::Listing;

/// Experience of workers that read with clones of the same [`ReadOptions`](crate::ReadOptions): a
/// search in several passes, or many workers, need not ask again what was asked before. It decides
/// about speed alone.
#[derive(Clone, Debug, Default)]
pub struct Residency(Arc<Learned>);

#[derive(Debug, Default)]
struct Learned {
    /// Misses in a row, by [`Call`], of the worker that asked last, as far as they count.
    misses: [AtomicU8; 2],
    /// Devices that cannot report what of a file is resident.
    silent: Mutex<Vec<u64>>,
    last_run: LastRun,
}

/// Calls that can be tried without waiting for the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Call {
    Open,
    Read,
}

/// Frequency of questions: after so many misses in a row, one call of so many is asked. A disk's
/// latency is a hundred times what a question costs, so one miss is enough to ask less; 512 files
/// more or less on the ring are not noticed. So both calls of a file together fail for less than
/// one file in a hundred, whether all of them are cold or any part.
const ONE_OF: [u32; 4] = [1, 8, 64, 512];
/// Misses that a new worker believes in without having seen them: what it is to read may have
/// become resident since.
const BELIEVED: u8 = 2;

/// One worker's memory of how one of the calls went.
#[derive(Debug)]
pub(crate) struct CallHistory {
    call: Call,
    misses: u8,
    /// Calls since the last question.
    passed: u32,
    residency: Residency,
}

impl Residency {
    /// Returns the memory of a worker that begins.
    pub(crate) fn asked(&self, call: Call) -> CallHistory {
        let misses = self.0.misses[call as usize].load(Ordering::Relaxed);
        CallHistory {
            call,
            misses: misses.min(BELIEVED),
            passed: 0,
            residency: self.clone(),
        }
    }

    /// Returns what the last run found out about its number of workers: that over these files before,
    /// or else the walk that listed them.
    pub(crate) fn last_run(&self, listing: &Listing) -> &LastRun {
        let last_run = &self.0.last_run;
        last_run.take_over(listing.last_run());
        last_run
    }

    /// Returns the devices that were found silent: they cannot report what of a file is resident.
    pub(crate) fn silent(&self) -> MutexGuard<'_, Vec<u64>> {
        let devs = self.0.silent.lock();
        devs.unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallHistory {
    /// True if the next call is to be asked.
    pub(crate) fn is_due(&self) -> bool {
        self.passed + 1 >= ONE_OF[usize::from(self.misses)]
    }

    /// Notes that the data asked for were resident.
    pub(crate) fn hit(&mut self) {
        if self.misses > 0 {
            self.report(0);
        }
    }

    /// Notes that the data asked for were not resident.
    pub(crate) fn miss(&mut self) {
        let most = ONE_OF.len() as u8 - 1;
        self.passed = 0;
        self.report((self.misses + 1).min(most));
    }

    /// Notes that a call was made without a question.
    pub(crate) fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1).min(u32::MAX - 1);
    }

    /// Shares the misses; others' lines of the cache are written to only when something has
    /// changed.
    fn report(&mut self, misses: u8) {
        self.misses = misses;
        let reported = &self.residency.0.misses[self.call as usize];
        if reported.load(Ordering::Relaxed) != misses {
            reported.store(misses, Ordering::Relaxed);
        }
    }
}

/// An open of this length has waited for so long that a few more workers are no help: those
/// [join](bc_pool::Growth) before, and wait for less without having to be woken by the ring's. With 50 µs and with 1 ms 2,982 files of 21 KB took as long,
/// cold and warm, on bindfs, fuse-overlayfs, EROFS and an overlay: 0.9 to 1.1 of it.
const SLOW: Duration = Duration::from_micros(200);
/// Slow opens, less the fast ones among them, after which opens are queued.
const ENOUGH: u8 = 4;
/// More slow opens than this are not remembered.
const MOST: u8 = 8;
/// Number of queued opens of which one is a plain one, and timed.
const PROBE: u8 = 16;

/// A score with hysteresis: up by one for a slow open, down by one for a fast
/// one; while opens are queued, one fast probe outweighs four slow ones.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    score: u8,
    queued: u8,
    idle: IdleProcessors,
}

impl Latency {
    /// True if the next call is to be queued instead of waited for.
    pub(crate) fn queues(&mut self) -> bool {
        if self.score < ENOUGH {
            return false;
        }
        if !self.idle.is_found() {
            return false;
        }
        self.queued = (self.queued + 1) % PROBE;
        self.queued != 0
    }

    /// True if the last calls were slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.score > 0
    }

    /// Does a plain call, and notes its time if it succeeds.
    pub(crate) fn timed<T, E>(&mut self, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let start = Instant::now();
        let result = call();
        if result.is_ok() {
            let took = start.elapsed();
            // Tests say by themselves what waits: on a busy machine any open may take long.
            #[cfg(test)]
            let took = took.min(Duration::ZERO) + crate::tests::pretended_latency();
            self.note(took);
        }
        result
    }

    fn note(&mut self, took: Duration) {
        if took > SLOW {
            self.score = (self.score + 1).min(MOST);
        } else if self.score < ENOUGH {
            self.score = self.score.saturating_sub(1);
        } else {
            self.score -= ENOUGH;
            self.idle.forget();
        }
    }
}

/// Shortest time between two looks. ProcessorTimes are counted in ticks of 10 ms for each processor: fewer
/// are no measure.
const WINDOW: Duration = Duration::from_millis(40);
/// Share of idle processors that is enough: one in so many.
const SHARE: u64 = 5;

/// A slow call waits for a disk or a network, or else for a processor: a FUSE server decrypts, the
/// kernel decompresses. Only the first kind gets faster if more of them wait at once. On two
/// processors, cold, 3,000 files of 16 KiB hashed with XXH128: plain calls took 0.81 of the time of
/// queued ones on gocryptfs, 0.76 on SquashFS, 0.86 on EROFS, and 1.08 of it on bindfs over ext4.
///
/// The source is `/proc/stat`, read while nothing is queued: a queue keeps processors busy.
#[derive(Debug, Default)]
pub(crate) struct IdleProcessors {
    last: Option<(Instant, ProcessorTimes)>,
    found: bool,
}

/// ProcessorTimes of all processors since the system's start, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessorTimes {
    /// Idle, or idle until a disk answers.
    idle: u64,
    all: u64,
}

impl IdleProcessors {
    /// True if a good part of the processors was idle between earlier calls and this one. `false`
    /// at first; where the system does not report it, they are taken to be.
    pub(crate) fn is_found(&mut self) -> bool {
        // Tests say by themselves what waits.
        if cfg!(test) || self.found {
            return true;
        }
        self.look()
    }

    fn look(&mut self) -> bool {
        let now = Instant::now();
        if let Some((then, _)) = self.last
            && now - then < WINDOW
        {
            return false;
        }
        let Some(times) = std::fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| ProcessorTimes::parse(&text))
        else {
            self.found = true;
            return true;
        };
        self.found = self
            .last
            .is_some_and(|(_, before)| times.is_idle_since(before));
        self.last = Some((now, times));
        self.found
    }

    /// Forgets the answer, so that the next call looks again.
    pub(crate) fn forget(&mut self) {
        *self = IdleProcessors::default();
    }
}

impl ProcessorTimes {
    /// Parses the first line: `cpu`, then ticks in user mode, niced, in the kernel, idle, waiting
    /// for a disk, and others (proc_stat(5)). Time of virtual machines is in the first two already.
    fn parse(text: &str) -> Option<ProcessorTimes> {
        let mut fields = text.lines().next()?.split_whitespace();
        if fields.next() != Some("cpu") {
            return None;
        }
        let ticks: Vec<u64> = fields
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(ProcessorTimes {
            idle: ticks.get(3)? + ticks.get(4).unwrap_or(&0),
            all: ticks.iter().sum(),
        })
    }

    fn is_idle_since(self, before: ProcessorTimes) -> bool {
        let all = self.all.saturating_sub(before.all);
        // The time of waiting for a disk may be counted backwards.
        let idle = self.idle.saturating_sub(before.idle);
        all > 0 && idle * SHARE >= all
    }
}

#[cfg(test)]
mod tests;
