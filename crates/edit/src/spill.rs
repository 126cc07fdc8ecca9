//! Memory beyond a budget in files: an allocator for programs whose users may say how much memory
//! they take.
//!
//! The data kept about very many files is a few large arrays. Where a budget was set with
//! [`begin`], [`Allocator`] counts the bytes of large blocks, and puts those that exceed the budget
//! into files of their own on a disk, mapped into memory (`MAP_SHARED`): the kernel writes their
//! pages out and takes them back when memory is needed elsewhere, under a control group's limit
//! too. So every array of a program can outgrow the budget, whatever it is made of, and results are
//! the same. Without a budget a large allocation costs one comparison and one load more.
//!
//! - The files never have a name (`O_TMPFILE`), or lose it at once where a file system knows no
//!   such files: however the process ends, they go with it.
//! - Their room is reserved before it is used (`fallocate`, or zeros are written), so that a full
//!   disk is an error and no `SIGBUS`. A disk that fails while it is read or written raises
//!   `SIGBUS`, as for every mapped file.
//! - An allocation cannot return an error. A block that no file can be made for stays in memory,
//!   [`failure`] returns the reason, and the flag given to [`begin`] is set, which asks the program
//!   to end.
//! - A file system that is memory itself (tmpfs, ramfs) is skipped: nothing would be gained.
//!
//! ```
//! use std::sync::{Arc, atomic::AtomicUsize};
//!
//! #[global_allocator]
//! static ALLOCATOR: bc_edit::spill::Allocator = bc_edit::spill::Allocator;
//!
//! let stop = Arc::new(AtomicUsize::new(0));
//! bc_edit::spill::begin(1 << 20, &["/var/tmp".into()], Arc::clone(&stop), 1);
//! let large = vec![7_u8; 32 << 20];
//! assert!(large.iter().all(|byte| *byte == 7));
//! // 32 MiB lie in a file, or it is said why not.
//! assert!(bc_edit::spill::most() >= 32 << 20 || bc_edit::spill::failure().is_some());
//! ```

mod allocator;
mod block;
mod directory;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bc_fs::escape;
use rustix::io::Errno;

use self::directory::Directory;

pub use allocator::{Allocator, LARGE};

/// Budget for large blocks of memory, the directory for those that exceed it, and their counts.
struct Spill {
    budget: usize,
    directory: Result<Directory, String>,
    stop: Arc<AtomicUsize>,
    reason: usize,
    /// Bytes of large blocks in memory. Blocks allocated before the budget was set are not in it:
    /// it may be below zero.
    kept: AtomicIsize,
    /// Bytes in files, now and at most.
    spilled: AtomicUsize,
    most: AtomicUsize,
    failure: OnceLock<String>,
}

static SPILL: OnceLock<Spill> = OnceLock::new();

/// Limits blocks of at least [`LARGE`] bytes that are allocated after this to `budget` bytes of
/// memory together; the others are in the first of `directories` that can hold them. If none can
/// when one is needed, `reason` is stored in `stop`, unless that is set already. Smaller blocks are
/// not counted.
///
/// Only the first call in a process has an effect, and only where [`Allocator`] is the global one.
pub fn begin(budget: u64, directories: &[PathBuf], stop: Arc<AtomicUsize>, reason: usize) {
    let spill = Spill {
        budget: usize::try_from(budget).unwrap_or(usize::MAX),
        directory: Directory::first_of(directories),
        stop,
        reason,
        kept: AtomicIsize::new(0),
        spilled: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        failure: OnceLock::new(),
    };
    let _ = SPILL.set(spill);
}

/// Returns the reason why a block that should be in a file is not: directory, operation and the
/// system's reason, or what is wrong with each of the directories. The first failure stays.
pub fn failure() -> Option<&'static str> {
    SPILL.get()?.failure.get().map(String::as_str)
}

/// Returns the directory that files are in, if any of those given is fit to hold them.
pub fn directory() -> Option<&'static Path> {
    let directory = SPILL.get()?.directory.as_ref().ok()?;
    Some(&directory.path)
}

/// Returns the largest number of bytes that were in files at any time.
pub fn most() -> u64 {
    SPILL
        .get()
        .map_or(0, |spill| spill.most.load(Ordering::Relaxed) as u64)
}

impl Spill {
    /// Takes `more` bytes of the budget, if they are left.
    fn keep(&self, more: usize) -> bool {
        let more = more.cast_signed();
        let before = self.kept.fetch_add(more, Ordering::Relaxed);
        let fits = before.saturating_add(more) <= self.budget.cast_signed().max(0);
        if !fits {
            self.kept.fetch_sub(more, Ordering::Relaxed);
        }
        fits
    }

    /// Counts `more` bytes that are kept whether they fit or not.
    fn keep_anyway(&self, more: usize) {
        self.kept.fetch_add(more.cast_signed(), Ordering::Relaxed);
    }

    fn unkeep(&self, less: usize) {
        self.kept.fetch_sub(less.cast_signed(), Ordering::Relaxed);
    }

    fn count(&self, more: usize) {
        let now = self.spilled.fetch_add(more, Ordering::Relaxed) + more;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn uncount(&self, less: usize) {
        self.spilled.fetch_sub(less, Ordering::Relaxed);
    }

    /// Takes note of a failure and asks for the end. Allocates, but nothing large.
    fn fail(&self, error: &SpillFailure) {
        let text = match (&self.directory, error) {
            (Err(unfit), _) => unfit.clone(),
            (Ok(directory), SpillFailure { op, errno }) => {
                let path = escape(directory.path.as_os_str().as_encoded_bytes());
                format!("{path}: {op}: {}", std::io::Error::from(*errno))
            }
        };
        let _ = self.failure.set(text);
        let (order, free) = (Ordering::SeqCst, 0);
        let _ = self.stop.compare_exchange(free, self.reason, order, order);
    }
}

/// A failed operation and its error number.
#[derive(Debug)]
struct SpillFailure {
    op: &'static str,
    errno: Errno,
}

impl SpillFailure {
    fn at(op: &'static str) -> impl Fn(Errno) -> SpillFailure {
        move |errno| SpillFailure { op, errno }
    }
}
