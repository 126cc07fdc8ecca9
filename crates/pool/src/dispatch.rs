//! How many workers a job deserves: what the user asked for, or what pays.

mod calibration;

use std::fmt;
use std::str::FromStr;

pub use calibration::{Calibration, Machine};

use crate::{MAX_WORKERS, available_cpus, physical_cores};

/// What `--threads` asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Threads {
    /// As many as pay, at most one per logical CPU: see [`workers`].
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

/// Not a value of `--threads`.
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

    /// `auto`, `mono` or `0`, `compute`, `io`, or a number up to 1024.
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

/// The work ahead, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Job {
    /// Files to process.
    pub files: usize,
    /// Their bytes; `None`: unknown, so [`Job::GUESS`] bytes a file are assumed.
    pub bytes: Option<u64>,
    /// Bytes per second that one worker gets through; `None` or nonsense: the calibrated
    /// memory bandwidth, which is the most that is possible.
    pub throughput: Option<f64>,
}

impl Job {
    /// Bytes assumed for a file of unknown size: the median of source trees, so that a
    /// handful of unknown files does not look like work for many threads.
    pub const GUESS: u64 = 4096;
}

/// The number of workers for a job of `files` files with `bytes` bytes, at memory speed.
///
/// See [`workers_for`], which also knows the throughput of the job.
pub fn workers(
    threads: Threads,
    calibration: &Calibration,
    files: usize,
    bytes: Option<u64>,
) -> usize {
    let job = Job {
        files,
        bytes,
        throughput: None,
    };
    workers_for(threads, calibration, &job)
}

/// The number of workers for a job: at least 1, at most 1024, and for everything but
/// [`Threads::Exactly`] at most one per CPU that this process may use.
///
/// [`Threads::Auto`] compares `t_mono = files * per_file + bytes / throughput` with
/// `t_multi = startup + t_mono / workers`, where starting costs each further thread its
/// share, and takes the number of workers with the smallest sum: one when threads are no
/// gain. Never panics, whatever the calibration says.
///
/// ```
/// use bc_pool::dispatch::{Calibration, Threads, workers};
///
/// let calibration = Calibration::default();
/// assert_eq!(workers(Threads::Auto, &calibration, 10, Some(1000)), 1);
/// assert_eq!(workers(Threads::Exactly(7), &calibration, 10, None), 7);
/// ```
pub fn workers_for(threads: Threads, calibration: &Calibration, job: &Job) -> usize {
    match threads {
        Threads::Mono => 1,
        Threads::Exactly(count) => count.clamp(1, MAX_WORKERS),
        Threads::Io => available_cpus().min(MAX_WORKERS),
        Threads::Compute => physical_cores().min(MAX_WORKERS),
        // Asking the system for the CPUs costs about as much as a few files: only if one
        // more thread could be a gain at all.
        Threads::Auto if best(calibration, job, 2) == 1 => 1,
        Threads::Auto => best(calibration, job, available_cpus().min(MAX_WORKERS)),
    }
}

/// The number of workers in `1..=most` with the shortest predicted time.
fn best(calibration: &Calibration, job: &Job, most: usize) -> usize {
    let bytes = job
        .bytes
        .unwrap_or_else(|| (job.files as u64).saturating_mul(Job::GUESS));
    let throughput = job
        .throughput
        .filter(|rate| is_positive(*rate))
        .or(Some(calibration.memory_bandwidth).filter(|rate| is_positive(*rate)));
    let Some(throughput) = throughput else {
        return 1;
    };
    let startup = calibration.thread_start;
    let mono = job.files as f64 * calibration.per_file + bytes as f64 / throughput;
    if !is_positive(mono) || !is_positive(startup) {
        return 1;
    }
    // The minimum of (n - 1) * startup + mono / n lies at sqrt(mono / startup); the cast
    // saturates.
    let ideal = (mono / startup).sqrt() as usize;
    let time = |n: usize| (n - 1) as f64 * startup + mono / n as f64;
    [ideal, ideal.saturating_add(1)]
        .into_iter()
        .map(|count| count.clamp(1, most.max(1)))
        .fold(1, |best, count| {
            if time(count) < time(best) {
                count
            } else {
                best
            }
        })
}

/// Finite and above zero; false for NaN.
fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests;
