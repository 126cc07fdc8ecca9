//! Number of threads for a job: what the user asks for, and the bounds that this means.

use std::fmt;
use std::str::FromStr;

use crate::cpus::physical_cores;
use crate::growth::Effort;
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
    /// use bc_pool::Threads;
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

/// Greatest number of workers while a run waits. More are tried as long as twice as many finish at
/// least a fifth more, and dismissed where they do not.
///
/// 3,000 files of 27 KB on average on a FUSE file system with 2 ms a request, XXH128, two CPUs: 8
/// workers take 11 s, 64 take 1.9, 128 take 1.6. Places where a few are enough: a
/// source tree of 86,629 files, nothing cached, on two CPUs and a virtual disk, is walked in 0.495 s
/// by 2 workers, in 0.352 by 8, in 0.349 by 16; a disk held to 300 reads a second gives 2, 8 and 16
/// workers the same; SquashFS, which has one decompressor on this kernel, took 263, 323 and 440 ms
/// with 2, 4 and 8.
const MOST_WAITING: usize = 128;

/// Number of threads that a run may use, the caller's own being one of them; 1 to [`MAX_WORKERS`],
/// and other numbers are taken for the nearest of these. No result depends on it.
///
/// A number alone, `Workers::from(4)`, is a bound that is always kept.
/// [`Workers::adaptive`] allows for more where they spend their time waiting.
///
/// ```
/// use bc_pool::Workers;
///
/// assert_eq!(Workers::from(0).usual(), 1);
/// assert_eq!(Workers::adaptive(2).usual(), 2);
/// assert_ne!(Workers::adaptive(2), Workers::from(2));
/// assert_eq!(Workers::adaptive(128), Workers::from(128));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Workers {
    usual: usize,
    most: usize,
}

impl Workers {
    /// Allows `usual` threads, as a rule one per CPU. When these have waited for storage for more
    /// than an eighth of the last milliseconds, and there is something that waits for a worker,
    /// others join them, up to 128 in all, and end again where they are no help.
    ///
    /// Losing the CPU to other processes is no waiting, and while everything is cached no worker
    /// joins. The kernel is asked through `/proc/thread-self/schedstat`; where that has no counts,
    /// and where the limit on open files is low, the number stays the usual.
    pub fn adaptive(usual: usize) -> Workers {
        Workers::up_to(usual, MOST_WAITING)
    }

    /// Allows `usual` threads, and up to `most` while these wait: the usual number if that is
    /// greater.
    pub fn up_to(usual: usize, most: usize) -> Workers {
        let usual = usual.clamp(1, MAX_WORKERS);
        Workers {
            usual,
            most: most.clamp(usual, MAX_WORKERS),
        }
    }

    /// Returns the number of threads of a run that does not wait; at least 1.
    pub fn usual(self) -> usize {
        self.usual
    }

    /// Returns the number that is never exceeded; at least the usual.
    pub fn most(self) -> usize {
        self.most
    }

    /// Limits both numbers to these bounds, both at least 1.
    #[must_use]
    pub fn within(self, usual: usize, most: usize) -> Workers {
        let usual = self.usual.min(usual);
        Workers {
            usual,
            most: self.most.min(most).max(usual),
        }
    }
}

impl From<usize> for Workers {
    fn from(count: usize) -> Workers {
        let count = count.clamp(1, MAX_WORKERS);
        Workers {
            usual: count,
            most: count,
        }
    }
}

#[cfg(test)]
mod tests;
