//! Input and output of the engine: options, progress, each file's digests, counts.

#[cfg(feature = "resume")]
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bc_digest::{Algorithm, CpuFeatures, Digest};
use bc_pool::Start;
use bc_read::ReadStats;
use bc_walk::job::Error;
use bc_walk::{EntryId, FileStat};

#[cfg(feature = "resume")]
use crate::resume::Resume;

/// Most digests of a file in one run: [`Batch`](bc_digest::Batch) counts them in a byte.
const MOST_ALGORITHMS: usize = u8::MAX as usize;

/// Options of a run: the digests to compute, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HashOptions {
    /// Digests wanted of each file, in this order; each file is read once.
    pub algorithms: Vec<Algorithm>,
    /// Instruction sets to use.
    pub cpu: CpuFeatures,
    /// Options for reading files.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub read: bc_read::ReadOptions,
    /// Threads, at least 1; with 1 the caller's thread does everything.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub workers: usize,
    /// Start of the workers: all at once, or as many as the files turn out to be worth.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub start: Start,
    /// Record of this run, and what an earlier run has recorded of the same files.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    #[cfg(feature = "resume")]
    pub resume: Option<Arc<Resume>>,
}

bc_fs::setters! {
    HashOptions:
    algorithms: Vec<Algorithm>,
    cpu: CpuFeatures,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    read: bc_read::ReadOptions,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    workers: usize,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    start: Start,
}

#[cfg(feature = "resume")]
bc_fs::setters! {
    HashOptions:
    /// Internal to bit-crafts.
    #[doc(hidden)]
    resume: Option<Arc<Resume>>,
}

impl HashOptions {
    /// Makes options for these algorithms on one thread with the best kernels and default reading.
    pub fn new(algorithms: Vec<Algorithm>) -> HashOptions {
        HashOptions {
            algorithms,
            cpu: CpuFeatures::detect(),
            read: bc_read::ReadOptions::default(),
            workers: 1,
            start: Start::Together,
            #[cfg(feature = "resume")]
            resume: None,
        }
    }

    /// Checks that there is something to compute, and no more than can be at once.
    ///
    /// # Errors
    /// If there is no algorithm, or there are more than 255.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.algorithms.len() {
            0 => Err(Error::usage("no algorithm to hash with")),
            1..=MOST_ALGORITHMS => Ok(()),
            count => Err(Error::usage(format!(
                "{count} algorithms: at most {MOST_ALGORITHMS} at once"
            ))),
        }
    }
}

/// Counters that a progress display may read while the engine runs.
#[derive(Debug, Default)]
pub struct HashProgress {
    /// Files finished, well or not.
    pub files: AtomicU64,
    /// Bytes read, those of unfinished large files too.
    pub bytes: AtomicU64,
}

/// Receives each file once, on the worker that read it. Where workers have
/// [tables](bc_pool::Tables::private) of descriptors of their own, a sink is bound by the rules for
/// all code that they execute.
pub trait DigestSink: Send {
    /// Takes the result of a file. `Ok`: metadata of the descriptor that was read, and one digest
    /// per algorithm.
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), bc_walk::Error>);

    /// Hands over gathered results. Called before a large file during which this worker will finish
    /// no other, and when the worker is done: for sinks that gather results before they share them.
    /// Not called after a panic.
    fn hand_over(&mut self) {}
}

/// Totals of the reading of a whole plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Counts of all workers together.
    pub read: ReadStats,
    /// Files that were not read, because an earlier run had read them; among the files of
    /// [`read`](Self::read) and not among its bytes.
    pub taken: Taken,
    /// Greatest number of workers at one time.
    pub workers: usize,
}

impl Totals {
    /// Adds another plan's counts.
    pub fn merge(&mut self, other: Totals) {
        self.read.merge(other.read);
        self.taken.merge(other.taken);
        self.workers = self.workers.max(other.workers);
    }
}

/// Files that were not read, because an earlier run has read them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Number of files; of several names of one file the first.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Taken {
    /// Adds another's.
    pub fn merge(&mut self, other: Taken) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_algorithm_and_too_many_are_the_callers_mistake() {
        let check = |count| HashOptions::new(vec![Algorithm::Md5; count]).check();
        assert!(check(1).is_ok() && check(MOST_ALGORITHMS).is_ok());
        for count in [0, MOST_ALGORITHMS + 1] {
            let error = check(count).unwrap_err();
            assert_eq!(error.kind(), bc_walk::job::ErrorKind::Usage, "{error}");
        }
        // The limit is what a batch takes.
        let cpu = CpuFeatures::detect();
        bc_digest::Batch::new(&[Algorithm::Xxh32; MOST_ALGORITHMS], cpu);
    }
}
