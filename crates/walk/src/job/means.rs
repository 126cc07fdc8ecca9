//! Threads, cancellation and progress callback of a job.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

use bc_pool::{Cancel, Start, Threads, Workers};

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

impl Progress {
    /// Returns the progress with these counts; totals of 0 are not known yet.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn new([files, files_total]: [u64; 2], [bytes, bytes_total]: [u64; 2]) -> Progress {
        let known = |total: u64| Some(total).filter(|total| *total > 0);
        Progress {
            files,
            bytes,
            files_total: known(files_total),
            bytes_total: known(bytes_total),
        }
    }
}

/// Means of a job: threads, cancellation and progress callback. The same means may serve several
/// jobs, also at a time.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use bc_walk::WalkOptions;
/// use bc_walk::job::Means;
///
/// let cancel = bc_pool::Cancel::new(); // its clone may be given to a signal handler or a button
/// let means = Means::new().threads(2).cancel(&cancel);
/// let listing = WalkOptions::default().run([dir.path()], &means)?;
/// assert!(listing.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Means<'a> {
    threads: Threads,
    cancel: Cancel,
    report: Option<Callback<'a>>,
    /// Asked once: the answer takes some 100 µs to find out.
    workers: OnceLock<Workers>,
}

/// Callback that any thread may call.
type Callback<'a> = Arc<Mutex<dyn FnMut(Progress) + Send + 'a>>;

impl<'a> Means<'a> {
    /// Returns the means by default: as many threads as pay, at most one for each CPU; a job that
    /// nothing cancels, and no callback.
    pub fn new() -> Means<'a> {
        Means::default()
    }

    /// Uses so many threads, the caller's own being one of them; 0 counts as 1.
    #[must_use]
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = Threads::Exactly(count.max(1));
        self.workers = OnceLock::new();
        self
    }

    /// Ends the job early once `cancel` is asked to: within the time of a piece of a file. That is
    /// an error of the kind [`Cancelled`](ErrorKind::Cancelled).
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Calls `callback` with the progress: ten times a second, from another thread, and once when
    /// all is over, on the caller's own. The job does not wait for it, but its end does.
    ///
    /// A panic in it stops no thread of the job, which does not call it again: they end as ever,
    /// nothing is left half written, and then the panic goes on out of `run`. A callback that is to
    /// end the job has a clone of its [`Cancel`].
    #[must_use]
    pub fn progress(mut self, callback: impl FnMut(Progress) + Send + 'a) -> Self {
        self.report = Some(Arc::new(Mutex::new(callback)));
        self
    }

    /// Returns the threads of a walk, and the most of any part of the job.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn workers(&self) -> Workers {
        *self.workers.get_or_init(|| self.threads.workers())
    }

    /// Returns the start of the threads: all at once, or as they pay.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn start(&self) -> Start {
        self.threads.start()
    }

    /// Returns what cancels the job.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn cancelled_by(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns true if there is a progress callback.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn reports(&self) -> bool {
        self.report.is_some()
    }

    /// Does `work`. Meanwhile the callback, if there is one, is called with `now`.
    ///
    /// # Errors
    /// If the process has too few descriptors left, so that the job would fail file by file. Any
    /// error after a cancellation is of the kind [`Cancelled`](ErrorKind::Cancelled), whichever
    /// operation noticed it; a panic stays one.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn run<T>(
        &self,
        now: impl Fn() -> Progress + Sync,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        bc_fs::shortage::check().map_err(|few| Error::new(ErrorKind::Io, few.to_string()))?;
        match self.watched(now, work) {
            Err(error) if self.cancel.is_cancelled() => Err(match error.kind() {
                ErrorKind::Cancelled | ErrorKind::Panic => error,
                _ => Error::cancelled(),
            }),
            result => result,
        }
    }

    /// Does `work`, while a thread of its own calls the callback with `now`; calls it once more at
    /// the end.
    fn watched<T>(&self, now: impl Fn() -> Progress + Sync, work: impl FnOnce() -> T) -> T {
        let Some(callback) = &self.report else {
            return work();
        };
        let report = || {
            let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
            callback(now());
        };
        let (done, ended) = std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            let report = &report;
            let reporter = move || {
                while is_over.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    report();
                }
            };
            // Where the system refuses a thread, the callback is called only at the end.
            let thread = Builder::new().spawn_scoped(scope, reporter);
            let done = work();
            drop(over);
            (done, thread.map_or(Ok(()), ScopedJoinHandle::join))
        });
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
        report();
        done
    }
}

impl fmt::Debug for Means<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Means")
            .field("threads", &self.threads)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_hears_of_the_end() {
        let mut heard = Vec::new();
        let means = Means::new().progress(|now| heard.push(now));
        let progress = Progress::new([3, 0], [0, 0]);
        assert_eq!(means.watched(|| progress, || 7), 7);
        drop(means);
        assert_eq!(heard.last(), Some(&progress));
    }

    /// The callback's own panic comes out, once the work is done.
    #[test]
    fn a_callback_that_panics_ends_no_work() {
        let (called, is_called) = channel();
        let means = Means::new().progress(move |_| {
            called.send(()).unwrap();
            panic!("of a callback");
        });
        let done = std::sync::atomic::AtomicBool::new(false);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            means.watched(Progress::default, || {
                is_called.recv().unwrap();
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            })
        }));
        assert_eq!(
            *caught.unwrap_err().downcast::<&str>().unwrap(),
            "of a callback"
        );
        assert!(done.into_inner());
        // It was not called at the end.
        assert!(is_called.try_recv().is_err());
    }

    #[test]
    fn a_panic_comes_out_with_a_callback_too() {
        let means = Means::new().progress(|_| ());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            means.watched(Progress::default, || panic!("of a test"))
        }));
        assert!(caught.is_err());
    }

    #[test]
    fn an_error_after_a_cancellation_is_the_cancellation() {
        let cancel = Cancel::new();
        let means = Means::new().cancel(&cancel);
        let fails = || means.run(Progress::default, || Err::<(), _>(Error::usage("no")));
        assert_eq!(fails().unwrap_err().kind(), ErrorKind::Usage);
        cancel.stop();
        assert_eq!(fails().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
