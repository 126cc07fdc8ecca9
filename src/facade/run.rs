//! Threads, cancellation and progress callback of a job.

use std::fmt;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use bc_pool::Cancel;
use bc_pool::dispatch::{Start, Threads};
use bc_read::ReadOptions;
use bc_walk::Workers;

use super::error::{Error, ErrorKind};

/// Interval between two calls of a progress callback.
const PERIOD: Duration = Duration::from_millis(100);

/// Progress of a job.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Files that are done. A search for duplicates may count a file twice, as it reads it twice.
    pub files: u64,
    /// Bytes that are done.
    pub bytes: u64,
    /// Number of files in all, once it is known. It may change while a search finds out which files
    /// it has to read.
    pub files_total: Option<u64>,
    /// Number of bytes in all, where it is known.
    pub bytes_total: Option<u64>,
}

/// Progress callback.
pub(crate) type Tell<'a> = Box<dyn FnMut(Progress) + Send + 'a>;

/// Settings that all jobs have.
#[derive(Default)]
pub(crate) struct Run<'a> {
    pub(crate) threads: Threads,
    pub(crate) cancel: Cancel,
    pub(crate) report: Option<Tell<'a>>,
    /// Asked once: the answer takes some 100 µs to find out.
    pub(crate) workers: OnceLock<Workers>,
}

impl Run<'_> {
    /// Refuses a job for which the process has too few descriptors left: it would fail file by file.
    pub(crate) fn begin() -> Result<(), Error> {
        bc_fs::descriptors::check().map_err(|few| Error::new(ErrorKind::Io, few.to_string()))
    }

    /// Returns the most workers that there may be.
    pub(crate) fn workers(&self) -> usize {
        self.walkers().usual()
    }

    /// Returns how the threads start: all at once, or as they pay.
    pub(crate) fn start(&self) -> Start {
        self.threads.start()
    }

    /// Returns the threads of a walk.
    pub(crate) fn walkers(&self) -> Workers {
        *self.workers.get_or_init(|| self.threads.workers())
    }

    /// Returns the options for reading files.
    pub(crate) fn reading(&self) -> ReadOptions {
        ReadOptions::default().waiting(self.walkers().most())
    }

    /// Replaces any error after a cancellation by [`ErrorKind::Cancelled`], whichever operation
    /// noticed it; a panic stays one.
    pub(crate) fn came_to<T>(cancel: &Cancel, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(error) if cancel.is_cancelled() => Err(match error.kind() {
                ErrorKind::Cancelled | ErrorKind::Panic => error,
                _ => Error::cancelled(),
            }),
            result => result,
        }
    }

    /// Does `work`. Meanwhile the callback, if there is one, is called with `now` ten times a
    /// second, from a thread of its own, and once more at the end.
    pub(crate) fn watched<T>(
        report: &mut Option<Tell<'_>>,
        now: impl Fn() -> Progress + Sync,
        work: impl FnOnce() -> T,
    ) -> T {
        let Some(report) = report else {
            return work();
        };
        let (heard, look) = (&mut *report, &now);
        let done = std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            let reporter = move || {
                while is_over.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    heard(look());
                }
            };
            // Where the system refuses a thread, the callback is called only at the end.
            let _refused = Builder::new().spawn_scoped(scope, reporter).is_err();
            let done = work();
            drop(over);
            done
        });
        report(now());
        done
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("threads", &self.threads)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// Gives a job with a field `run` the methods that say how it runs: all of them, or those that are
/// named.
macro_rules! runs {
    ($job:ident) => {
        crate::facade::run::runs!($job: threads, cancel, progress);
    };
    ($job:ident: $($what:ident),+) => {
        $(crate::facade::run::runs!(@$what $job);)+
    };
    (@threads $job:ident) => {
        impl<'a> $job<'a> {
            /// Uses so many threads, the caller's own being one of them; 0 counts as 1. Without this
            /// there are as many as pay, at most one for each CPU.
            pub fn threads(mut self, count: usize) -> Self {
                self.run.threads = bc_pool::dispatch::Threads::Exactly(count.max(1));
                self.run.workers = std::sync::OnceLock::new();
                self
            }
        }
    };
    (@cancel $job:ident) => {
        impl<'a> $job<'a> {
            /// Ends early once `cancel` is asked to: within the time of a piece of a file. That is an
            /// error of the kind [`Cancelled`](crate::ErrorKind::Cancelled).
            pub fn cancel(mut self, cancel: &bc_pool::Cancel) -> Self {
                self.run.cancel = cancel.clone();
                self
            }
        }
    };
    (@progress $job:ident) => {
        impl<'a> $job<'a> {
            /// Calls `callback` with the progress: ten times a second, from another thread, and
            /// once when all is over. The job does not wait for it, but its end does. That last
            /// call is made on the caller's own thread: a panic in it comes out of `run`.
            pub fn progress(
                mut self,
                callback: impl FnMut(crate::facade::run::Progress) + Send + 'a,
            ) -> Self {
                self.run.report = Some(Box::new(callback));
                self
            }
        }
    };
}

pub(crate) use runs;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_callback_hears_of_the_end() {
        let heard = Mutex::new(Vec::new());
        let mut report: Option<Tell<'_>> = Some(Box::new(|now| heard.lock().unwrap().push(now)));
        let progress = Progress {
            files: 3,
            ..Progress::default()
        };
        let done = Run::watched(&mut report, || progress, || 7);
        drop(report);
        assert_eq!(done, 7);
        assert_eq!(heard.lock().unwrap().last(), Some(&progress));
    }

    #[test]
    fn a_panic_comes_out_with_a_callback_too() {
        let mut report: Option<Tell<'_>> = Some(Box::new(|_| ()));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Run::watched(&mut report, Progress::default, || panic!("of a test"))
        }));
        assert!(caught.is_err());
    }
}
