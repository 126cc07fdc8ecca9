//! Shortage of descriptors: the number that a process can still open, and waiting where it or the
//! system has none left and others are about to close theirs. This is the one place that decides how
//! long that is worth while.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::call::FailedCall;

/// Number of waits for a descriptor: a second in all.
const WAITS: u32 = 1000;
/// Duration of one wait, which is the longest time that a cancellation goes unnoticed.
const WAIT: Duration = Duration::from_millis(1);

/// Errors that may have the system's number.
pub trait ErrorNumber {
    /// Returns the system's number of this error; `None` where no call failed.
    fn error_number(&self) -> Option<i32>;
}

impl ErrorNumber for Errno {
    fn error_number(&self) -> Option<i32> {
        Some(self.raw_os_error())
    }
}

impl ErrorNumber for FailedCall {
    fn error_number(&self) -> Option<i32> {
        self.errno.error_number()
    }
}

impl ErrorNumber for io::Error {
    fn error_number(&self) -> Option<i32> {
        self.raw_os_error()
    }
}

/// True if a step failed for want of a descriptor.
pub fn is_shortage(error: &impl ErrorNumber) -> bool {
    let errno = error.error_number().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// Shortage of descriptors, shared by all workers of a job.
///
/// What was waited for in vain once is not waited for again before as many descriptors were found
/// by somebody: without that each of a million files would cost its second.
///
/// ```
/// use bc_fs::shortage::Shortage;
///
/// let (shortage, mut kept) = (Shortage::new(), vec![std::fs::File::open(".")?]);
/// let mut wait = shortage.wait(1);
/// let file = loop {
///     let opened = std::fs::File::open("Cargo.toml");
///     if !wait.again(&opened, || false, || kept.clear()) {
///         break opened?;
///     }
/// };
/// # drop(file);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Shortage {
    /// True once there was a shortage.
    is_short: AtomicBool,
    /// Least number of descriptors that was waited for in vain the last time.
    in_vain: AtomicU32,
}

impl Default for Shortage {
    fn default() -> Shortage {
        Shortage::new()
    }
}

impl Shortage {
    /// Starts without a shortage.
    pub const fn new() -> Shortage {
        Shortage {
            is_short: AtomicBool::new(false),
            in_vain: AtomicU32::new(u32::MAX),
        }
    }

    /// True if descriptors have been short, so that none should be kept without need.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Remembers that descriptors are short.
    pub fn note(&self) {
        self.is_short.store(true, Ordering::Relaxed);
    }

    /// Begins a step that opens `needed` descriptors and has them all open at its end. Nothing is
    /// waited for before it fails.
    pub fn wait(&self, needed: u32) -> Wait<'_> {
        Wait {
            shortage: self,
            needed,
            waits: 0,
        }
    }
}

/// One step that may have to wait for its descriptors.
#[derive(Debug)]
pub struct Wait<'s> {
    shortage: &'s Shortage,
    needed: u32,
    /// Failures so far.
    waits: u32,
}

impl Wait<'_> {
    /// Takes the result of the step. True if it failed for want of a descriptor and is to be tried
    /// again now. `let_go` closes descriptors that the caller can do without: as that may be
    /// enough, the second try is at once, and each later one after a wait. False after a second in
    /// vain, after a cancellation, and where others had no luck with as few descriptors: the error
    /// is the step's result then.
    pub fn again<T, E: ErrorNumber>(
        &mut self,
        tried: &Result<T, E>,
        is_cancelled: impl FnOnce() -> bool,
        let_go: impl FnOnce(),
    ) -> bool {
        match tried {
            Err(error) if is_shortage(error) => {}
            Err(_) => return false,
            Ok(_) => {
                self.found();
                return false;
            }
        }
        let shortage = self.shortage;
        shortage.note();
        let_go();
        if self.waits == 0 {
            self.waits = 1;
            return true;
        }
        if self.waits >= WAITS {
            shortage.in_vain.fetch_min(self.needed, Ordering::Relaxed);
        }
        if shortage.in_vain.load(Ordering::Relaxed) <= self.needed || is_cancelled() {
            self.waits = 0;
            return false;
        }
        std::thread::sleep(WAIT);
        self.waits += 1;
        true
    }

    /// Notes that the step has its descriptors; the next step begins.
    pub fn found(&mut self) {
        if !self.shortage.is_short() {
            return;
        }
        self.waits = 0;
        if self.shortage.in_vain.load(Ordering::Relaxed) <= self.needed {
            self.shortage.in_vain.store(u32::MAX, Ordering::Relaxed);
        }
    }
}

/// Descriptors that any command can do with, beside those that are open when it begins: a journal,
/// the directories on both sides, a file on each, and those for questions to the system.
pub(crate) const ENOUGH: usize = 12;

/// Fewer descriptors are left than are needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooFew {
    left: usize,
    allowed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { left, allowed } = self;
        let more = ENOUGH - left;
        write!(
            f,
            "too few open files are allowed: {left} are left of {allowed}, and {ENOUGH} are needed; use: \
             ulimit -n {}",
            allowed + more as u64
        )
    }
}

impl std::error::Error for TooFew {}

/// Verifies that as many more files can be opened as a job needs.
///
/// # Errors
/// If not, with numbers.
pub fn check() -> Result<(), TooFew> {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let left = free(ENOUGH, allowed);
    match left < ENOUGH {
        true => Err(TooFew { left, allowed }),
        false => Ok(()),
    }
}

/// Numbers asked about at once.
const AT_ONCE: u64 = 64;

/// Counts free descriptors below the limit, up to `enough` of them.
#[allow(
    unsafe_code,
    reason = "poll of numbers that are not open, for which rustix has no call"
)]
fn free(enough: usize, allowed: u64) -> usize {
    let mut found = 0;
    let mut from = 0;
    while from < allowed && found < enough {
        let end = allowed.min(from + AT_ONCE);
        let numbers = from..end.min(i32::MAX as u64);
        let mut asked: Vec<libc::pollfd> = numbers
            .map(|fd| libc::pollfd {
                fd: fd as i32,
                events: 0,
                revents: 0,
            })
            .collect();
        // SAFETY: the kernel writes to as many elements as there are; a number that is not open is
        // answered with POLLNVAL, and nothing is done with one that is.
        let answered = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
        if answered < 0 || asked.is_empty() {
            // Unknown, and nothing is refused because of that.
            return enough;
        }
        let is_free = |fd: &&libc::pollfd| fd.revents & libc::POLLNVAL != 0;
        found += asked.iter().filter(is_free).count();
        from = end;
    }
    found.min(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of tries of a step that needs `needed` descriptors and finds them at the
    /// try `found`.
    fn tries(shortage: &Shortage, needed: u32, found: u32) -> u32 {
        cancelled_tries(shortage, needed, found, u32::MAX)
    }

    /// The same with a cancellation at a try.
    fn cancelled_tries(shortage: &Shortage, needed: u32, found: u32, cancelled: u32) -> u32 {
        let mut wait = shortage.wait(needed);
        let (mut tries, mut let_go) = (0, 0);
        loop {
            tries += 1;
            let tried = match tries < found {
                true => Err(Errno::MFILE),
                false => Ok(()),
            };
            if !wait.again(&tried, || tries >= cancelled, || let_go += 1) {
                assert_eq!(tried.is_ok(), tries == found);
                assert_eq!(let_go, tries - u32::from(tried.is_ok()));
                assert!(shortage.is_short() || let_go == 0);
                return tries;
            }
        }
    }

    #[test]
    fn what_never_comes_is_waited_for_once() {
        let shortage = Shortage::new();
        assert_eq!(tries(&shortage, 1, 1), 1);
        assert!(!shortage.is_short());
        assert_eq!(tries(&shortage, 1, 5), 5);
        assert_eq!(tries(&shortage, 1, u32::MAX), WAITS + 1);
        assert_eq!(tries(&shortage, 1, u32::MAX), 2);
        // Nor is more.
        assert_eq!(tries(&shortage, 2, u32::MAX), 2);
        // One was found: there is hope again.
        assert_eq!(tries(&shortage, 1, 1), 1);
        assert_eq!(tries(&shortage, 1, 5), 5);
    }

    #[test]
    fn one_descriptor_is_no_hope_for_two() {
        let shortage = Shortage::new();
        assert_eq!(tries(&shortage, 2, u32::MAX), WAITS + 1);
        for _ in 0..3 {
            // A directory finds one each time, and the file in it none.
            assert_eq!(tries(&shortage, 1, 1), 1);
            assert_eq!(tries(&shortage, 1, 3), 3);
            assert_eq!(tries(&shortage, 2, u32::MAX), 2);
        }
        assert_eq!(tries(&shortage, 3, 2), 2);
        assert_eq!(tries(&shortage, 2, 3), 3);
    }

    #[test]
    fn nobody_waits_after_a_cancellation() {
        let shortage = Shortage::new();
        assert_eq!(cancelled_tries(&shortage, 1, 5, u32::MAX), 5);
        assert_eq!(cancelled_tries(&shortage, 1, u32::MAX, 1), 2);
        assert_eq!(cancelled_tries(&shortage, 1, u32::MAX, 7), 7);
        // That proves nothing of what there is.
        assert_eq!(tries(&shortage, 1, 5), 5);
    }

    #[test]
    fn other_errors_are_final() {
        let shortage = Shortage::new();
        let mut wait = shortage.wait(1);
        let tried: Result<(), io::Error> = Err(Errno::ACCESS.into());
        assert!(!wait.again(&tried, || false, || ()));
        assert!(!shortage.is_short());
        let tried: Result<(), _> = Err(FailedCall {
            op: "open",
            errno: Errno::NFILE,
        });
        assert!(wait.again(&tried, || false, || ()));
        assert!(shortage.is_short());
    }

    /// The workers of a job hold all descriptors, and give them back while one of them waits; another
    /// program takes each at once. The wait ends when all are back, with the error.
    #[test]
    fn a_job_whose_descriptors_are_all_taken_by_others_ends() {
        let (shortage, mut held) = (Shortage::new(), 20);
        let mut wait = shortage.wait(1);
        let tried: Result<(), Errno> = Err(Errno::MFILE);
        while wait.again(&tried, || false, || held = std::cmp::max(held, 1) - 1) {}
        assert_eq!((tried, held), (Err(Errno::MFILE), 0));
        // Whatever else is to be opened, the job does not stop at each.
        assert_eq!(tries(&shortage, 1, u32::MAX), 2);
        assert_eq!(tries(&shortage, 2, u32::MAX), 2);
    }

    #[test]
    fn free_ones_are_counted() {
        let files: Vec<_> = (0..100)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        assert_eq!(free(5, u64::MAX), 5);
        assert!(check().is_ok());
        // The first few numbers are in use.
        assert_eq!(free(5, 3), 0);
        drop(files);
    }

    #[test]
    fn the_message_has_the_figures() {
        let text = TooFew {
            left: 9,
            allowed: 12,
        };
        assert_eq!(
            text.to_string(),
            "too few open files are allowed: 9 are left of 12, and 12 are needed; use: ulimit -n 15"
        );
    }
}
