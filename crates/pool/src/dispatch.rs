//! Number of workers for a job: the number that the user asked for, or as many as pay.
//!
//! The number that pays is decided while the work is done ([`WorkerAdder`]): sizes are mostly not
//! known before a file is open, and the cost of a file depends on its storage. Constants measured
//! on a machine beforehand decided nothing that this does not: see [`Effort`] for the three that
//! are left.

mod adaptive;
mod worker_count;
mod workers;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use adaptive::{AdaptiveWorkers, Pace, Pretend, Watch, affordable_workers};
pub use worker_count::{WorkerAdder, WorkerCount};
pub use workers::Workers;

use crate::cpus::physical_cores;
use crate::{MAX_WORKERS, available_cpus};

/// Number of threads that `--threads` asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Threads {
    /// Number that pays, at most one per logical CPU: see [`Start::AsItPays`]; more where they
    /// wait: see [`Workers::adaptive`].
    #[default]
    Auto,
    /// One, the caller's own thread.
    Mono,
    /// One per physical core.
    Compute,
    /// One per logical CPU.
    Io,
    /// Exactly this many, also more than there are CPUs; 1 to 1024.
    Exactly(usize),
}

/// Error for a text that is no value of `--threads`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadsError {
    value: String,
}

impl fmt::Display for ThreadsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is none of auto, mono, compute, io or a number from 0 to {MAX_WORKERS}",
            self.value
        )
    }
}

impl std::error::Error for ThreadsError {}

impl FromStr for Threads {
    type Err = ThreadsError;

    /// Parses `auto`, `mono` or `0`, `compute`, `io`, or a number up to 1024.
    fn from_str(value: &str) -> Result<Threads, ThreadsError> {
        match value {
            "auto" => Ok(Threads::Auto),
            "mono" => Ok(Threads::Mono),
            "compute" => Ok(Threads::Compute),
            "io" => Ok(Threads::Io),
            _ => match value.parse() {
                // Only digits: `parse` alone would let "+4" through.
                Ok(0) if is_digits(value) => Ok(Threads::Mono),
                Ok(count @ 1..=MAX_WORKERS) if is_digits(value) => Ok(Threads::Exactly(count)),
                _ => Err(ThreadsError {
                    value: value.to_owned(),
                }),
            },
        }
    }
}

fn is_digits(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::Auto => f.write_str("auto"),
            Threads::Mono => f.write_str("mono"),
            Threads::Compute => f.write_str("compute"),
            Threads::Io => f.write_str("io"),
            Threads::Exactly(count) => write!(f, "{count}"),
        }
    }
}

impl Threads {
    /// Returns the greatest number of workers: 1 to 1024, and for everything but
    /// [`Threads::Exactly`] at most one per CPU that this process may use.
    ///
    /// ```
    /// use bc_pool::dispatch::Threads;
    ///
    /// assert_eq!(Threads::Exactly(7).most(), 7);
    /// assert_eq!(Threads::Mono.most(), 1);
    /// ```
    pub fn most(self) -> usize {
        match self {
            Threads::Mono => 1,
            Threads::Exactly(count) => count.clamp(1, MAX_WORKERS),
            Threads::Auto | Threads::Io => available_cpus().min(MAX_WORKERS),
            Threads::Compute => physical_cores().min(MAX_WORKERS),
        }
    }

    /// Returns the usual number of workers and that of a run that waits for its storage: equal if
    /// the caller named a number.
    pub fn workers(self) -> Workers {
        match self {
            Threads::Auto => Workers::adaptive(self.most()),
            _ => Workers::from(self.most()),
        }
    }

    /// Returns whether all of them start at once: a caller that names a number gets that number.
    pub fn start(self) -> Start {
        match self {
            Threads::Auto => Start::AsItPays,
            _ => Start::Together,
        }
    }
}

/// Time when the workers of a run start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Start {
    /// All of them before the work.
    #[default]
    Together,
    /// Number that pays by the known sizes; others join while the work turns out to be more.
    AsItPays,
}

impl Start {
    /// Returns the number of workers to begin with, of `most`, for work that is known to take one
    /// of them `effort`.
    pub fn workers(self, most: usize, effort: Effort) -> usize {
        match self {
            Start::Together => most.max(1),
            Start::AsItPays => effort.worth(most),
        }
    }
}

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
    pub(crate) const START: Effort = Effort(100_000);

    /// Returns the effort of reading and hashing so many files with so many bytes together.
    ///
    /// ```
    /// use bc_pool::dispatch::Effort;
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

#[cfg(test)]
mod tests;
