//! The search: size, fast hash, full hash.
//!
//! 1. Entries of one size form a class; names of one inode are one file. A
//!    class of one file is done without being opened.
//! 2. A first read of each candidate: both ends, or all of it where that is
//!    little or where nearly everything turns out equal ([`first`]).
//! 3. What is still equal and was not read whole is read whole, large files in
//!    rounds that stop when a file is alone ([`rounds`]).
//!
//! A file without a digest (unreadable, changed, not reached) is in no group.

mod candidates;
mod first;
mod groups;
mod pass;
mod rounds;
mod verify;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bc_digest::{Algorithm, Digest, Kernels};
use bc_pool::{Cancel, WorkerPanic};
use bc_walk::{EntryId, Error, Listing};

use candidates::Candidates;
use pass::Pass;

/// Whether names of one inode count as duplicates of each other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HardLinks {
    /// They are one file with several names, which wastes nothing.
    #[default]
    OneFile,
    /// They are reported like any other equal files.
    Duplicates,
}

/// How sure equality has to be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Proof {
    /// Equal digests.
    #[default]
    Digest,
    /// Every byte compared as well.
    Bytes,
}

/// Which roots a group has to span.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Span {
    /// Any.
    #[default]
    Any,
    /// At least two.
    AcrossRoots,
}

/// What to look for and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Digest that decides: `Xxh128`, `Xxh3`, `Blake3` or `Sha256`.
    pub algorithm: Algorithm,
    /// Smallest size looked at, in bytes.
    pub min_size: u64,
    /// What hard links are.
    pub hard_links: HardLinks,
    /// Roots (by index) whose files are never to be changed.
    pub reference_roots: Vec<usize>,
    /// Which groups count.
    pub span: Span,
    /// What equality takes.
    pub proof: Proof,
    /// How files are read.
    pub read: bc_read::Options,
    /// Threads, at least 1.
    pub workers: usize,
    /// Instruction sets.
    pub kernels: Kernels,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            algorithm: Algorithm::Xxh128,
            min_size: 1,
            hard_links: HardLinks::default(),
            reference_roots: Vec::new(),
            span: Span::default(),
            proof: Proof::default(),
            read: bc_read::Options::default(),
            workers: 1,
            kernels: Kernels::detect(),
        }
    }
}

/// Counters for a progress display.
#[derive(Debug, Default)]
pub struct Progress {
    /// Reads finished: a file read twice counts twice.
    pub files: AtomicU64,
    /// Bytes handed to hashers.
    pub bytes: AtomicU64,
    /// Reads planned so far; grows when the second pass is known.
    pub planned: AtomicU64,
}

/// Digests remembered from earlier runs. A cached digest only ever answers for
/// a file whose identity, size and times are those it was stored with.
pub trait Memory: Sync {
    /// The digest of the scope, if known.
    fn recall(&self, entry: EntryId, scope: Scope) -> Option<Digest>;
}

/// Which bytes of a file a remembered digest is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
pub enum Scope {
    /// The first and the last 4096 bytes.
    Ends,
    /// All of it.
    Whole,
}

/// A digest that was computed by reading, for a cache to store.
#[derive(Clone, Copy, Debug)]
pub struct Learnt {
    /// The file.
    pub entry: EntryId,
    /// What was read of it.
    pub scope: Scope,
    /// The digest: of [`Options::algorithm`] for `Whole`, XXH128 for `Ends`.
    pub digest: Digest,
}

/// Files with equal content.
#[derive(Clone, Debug)]
pub struct Group {
    /// Bytes of each.
    pub size: u64,
    /// Digest of the content.
    pub digest: Digest,
    /// Bytes of disk that all but one of the files use.
    pub wasted: u64,
    /// The files; those under reference roots first, then in path order.
    pub files: Vec<File>,
}

/// One physical file of a group.
#[derive(Clone, Debug)]
pub struct File {
    /// Its names in path order; at least one.
    pub names: Vec<EntryId>,
    /// Disk blocks of 512 bytes it uses.
    pub blocks: u64,
}

/// Figures of a search.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Files of at least the smallest size, hard links counted once.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that share their size with another.
    pub size_candidates: u64,
    /// Files read in the first pass.
    pub fast_hashed: u64,
    /// Files read again, whole.
    pub full_hashed: u64,
    /// Answers taken from [`Memory`].
    pub remembered: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Wall time of grouping by size, of the first and of the second read.
    pub times: [Duration; 3],
    /// What read the files.
    pub backend: bc_read::Backend,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Largest waste first, ties by first path.
    pub groups: Vec<Group>,
    /// Files that could not be judged, in path order.
    pub errors: Vec<Error>,
    /// Figures.
    pub stats: Stats,
    /// Digests computed in this run.
    pub learnt: Vec<Learnt>,
}

impl Scan {
    /// Files that could be given up: all of each group but one.
    pub fn duplicates(&self) -> u64 {
        self.groups
            .iter()
            .map(|group| group.files.len() as u64 - 1)
            .sum()
    }

    /// Bytes of disk that would be freed.
    pub fn wasted(&self) -> u64 {
        self.groups.iter().map(|group| group.wasted).sum()
    }
}

/// Searches `listing`, which must have been walked with
/// [`Metadata::Basic`](bc_walk::Metadata::Basic) or more.
///
/// After a cancellation the result is incomplete.
///
/// # Errors
/// A worker that panicked.
///
/// # Panics
/// If the listing has no metadata.
pub fn scan(
    listing: &Listing,
    options: &Options,
    memory: Option<&dyn Memory>,
    cancel: &Cancel,
    progress: &Progress,
) -> Result<Scan, WorkerPanic> {
    let begun = Instant::now();
    let mut found = Scan::default();
    let candidates = Candidates::by_size(listing, options, &mut found.stats);
    let sized = Instant::now();
    progress
        .planned
        .fetch_add(candidates.len() as u64, Ordering::Relaxed);
    let mut pass = Pass::new(listing, &candidates, options, memory, cancel, progress);
    first::read(&mut pass)?;
    let first = Instant::now();
    rounds::read(&mut pass)?;
    let mut keys = pass.finish(&mut found);
    if options.proof == Proof::Bytes && !cancel.is_cancelled() {
        verify::compare(listing, &candidates, &mut keys, options, cancel, &mut found)?;
    }
    groups::collect(listing, &candidates, &keys, options, &mut found);
    found.errors.sort_by(|a, b| a.path().cmp(b.path()));
    found.stats.times = [sized - begun, first - sized, first.elapsed()];
    Ok(found)
}
