//! Results that wait for those before them: any thread leaves one, and a thread that finds no other
//! giving results out does so. No thread waits for another that writes lines.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{self, AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use bc_digest::Algorithm;

use super::family::{FamilyResult, Sum};
use super::setup::Setup;
use super::stdout::Lost;
use super::turn;

/// Longest time that a line waits for others that go out with it.
const TOGETHER: Duration = Duration::from_millis(5);

/// A file to hash.
#[derive(Clone, Debug)]
pub struct FileJob {
    /// Path as it was named; `-` is standard input.
    pub path: Vec<u8>,
    /// Digest to compute.
    pub sum: Sum,
}

impl FileJob {
    /// Returns a job for each of these files, all with this digest.
    pub fn each(files: &[OsString], algorithm: Algorithm) -> Vec<FileJob> {
        let job = |path: &OsString| FileJob {
            path: path.as_bytes().to_vec(),
            sum: Sum::Of(algorithm),
        };
        files.iter().map(job).collect()
    }
}

/// Gets the results, one after the other.
pub trait InOrder: Send {
    /// Takes the result of the job with this index.
    fn result(&mut self, index: usize, result: io::Result<FamilyResult>) -> Result<(), Lost>;
    /// Prepares for a result that may take its time: nothing may wait for it.
    fn pause(&mut self) -> Result<(), Lost>;
}

/// The results of some jobs in a row.
pub struct Board<'a> {
    jobs: &'a [FileJob],
    setup: &'a Setup,
    /// The job of the first slot.
    first: usize,
    /// Result of each job; `None` inside is a result that is computed when its turn comes.
    slots: Vec<OnceLock<Option<FamilyResult>>>,
    giver: Mutex<Giver<'a>>,
}

/// Gives the results out.
struct Giver<'a> {
    to: &'a mut dyn InOrder,
    /// The job whose result is given next.
    next: usize,
    lost: bool,
}

impl<'a> Board<'a> {
    /// Returns the board of the jobs from `first` on, one for each of `later`: true if its result
    /// is computed only at its turn.
    pub fn new(
        jobs: &'a [FileJob],
        setup: &'a Setup,
        to: &'a mut dyn InOrder,
        first: usize,
        later: impl Iterator<Item = bool>,
    ) -> Board<'a> {
        let slot = |later| match later {
            true => OnceLock::from(None),
            false => OnceLock::new(),
        };
        Board {
            jobs,
            setup,
            first,
            slots: later.map(slot).collect(),
            giver: Mutex::new(Giver {
                to,
                next: first,
                lost: false,
            }),
        }
    }

    pub fn jobs(&self) -> &'a [FileJob] {
        self.jobs
    }

    /// Leaves the result of a job; `None` if its turn has to bring it.
    pub fn put(&self, index: usize, hashed: Option<FamilyResult>) {
        // It is put once.
        let _ = self.slots[index - self.first].set(hashed);
    }

    /// Gives all results whose turn has come, unless another thread is doing so.
    pub fn advance(&self) {
        loop {
            // Either this thread gets the lock, or the thread that holds it sees afterwards the
            // result put before: of the two orders "put, look at the lock" and "give the lock back,
            // look at the slot" one comes first.
            atomic::fence(Ordering::SeqCst);
            let mut giver = match self.giver.try_lock() {
                Ok(giver) => giver,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.give(&mut giver);
            let (next, lost) = (giver.next, giver.lost);
            drop(giver);
            atomic::fence(Ordering::SeqCst);
            if lost || !self.is_ready(next) {
                return;
            }
        }
    }

    fn is_ready(&self, index: usize) -> bool {
        let slot = self.slots.get(index - self.first);
        slot.is_some_and(|slot| slot.get().is_some())
    }

    fn give(&self, giver: &mut Giver<'_>) {
        while !giver.lost
            && let Some(slot) = self.slots.get(giver.next - self.first)
            && let Some(hashed) = slot.get()
        {
            let result = match hashed {
                Some(hashed) => Ok(*hashed),
                // It may take its time.
                None if giver.to.pause().is_err() => return self.lose(giver),
                None => {
                    let job = &self.jobs[giver.next];
                    turn::hash(&job.path, job.sum, self.setup.cpu)
                }
            };
            if giver.to.result(giver.next, result).is_err() {
                self.lose(giver);
            }
            giver.next += 1;
        }
    }

    /// Stops the run: results cannot be written any more.
    fn lose(&self, giver: &mut Giver<'_>) {
        giver.lost = true;
        self.setup.cancel.cancel(1);
    }

    fn giver(&self) -> MutexGuard<'_, Giver<'a>> {
        self.giver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the lines that wait.
    fn flush(&self) {
        let mut giver = self.giver();
        if giver.to.pause().is_err() {
            self.lose(&mut giver);
        }
        drop(giver);
        // Results put meanwhile found the lock taken.
        self.advance();
    }

    /// Runs `work` while another thread sees to it that no result waits for long.
    pub fn flushed<T>(&self, work: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flush = || {
                while !over.load(Ordering::Relaxed) {
                    std::thread::park_timeout(TOGETHER);
                    self.flush();
                }
            };
            let thread = std::thread::Builder::new().spawn_scoped(scope, flush);
            // Without a thread to spare lines wait until there are enough of them.
            let _over = EndOnDrop(&over, thread.as_ref().ok().map(|thread| thread.thread()));
            work()
        })
    }

    /// Returns the receiver of the results, unless they could not be written.
    pub fn into_taker(self) -> Result<&'a mut dyn InOrder, Lost> {
        let giver = self.giver.into_inner();
        let giver = giver.unwrap_or_else(PoisonError::into_inner);
        if giver.lost { Err(Lost) } else { Ok(giver.to) }
    }
}

/// Ends the flushing thread when it is dropped, also when the work panics.
struct EndOnDrop<'o>(&'o AtomicBool, Option<&'o std::thread::Thread>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1 {
            thread.unpark();
        }
    }
}
