//! `hash`: digests of files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_digest::{Algorithm, Digest};
use bc_fs::PathError;
use bc_hash::{EntryOutcome, HashOptions, HashProgress, Hashes, hash_listing};
use bc_walk::{Listing, Metadata, Spellings};

use super::error::{Error, path_of};
use super::filter::{Filter, filters};
use super::outcome::{says_what_is_missing, unless_cancelled};
use super::run::{Progress, Run, runs};
use super::walk::{list, refuse_nothing, roots};

/// Hashes these files, and all files below those that are directories: with BLAKE3, unless
/// [`algorithm`](HashJob::algorithm) is called.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let letter = dir.path().join("letter");
/// # std::fs::write(&letter, "abc")?;
/// use bit_crafts::Algorithm;
///
/// let hashed = bit_crafts::hash([&letter]).algorithm(Algorithm::Md5).run()?.complete()?;
/// let digest = hashed.files[0].digest();
/// assert_eq!(digest.to_string(), "900150983cd24fb0d6963f7d28e17f72");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hash<'a, P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> HashJob<'a> {
    HashJob {
        paths: roots(paths),
        algorithms: vec![Algorithm::Blake3],
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`hash`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct HashJob<'a> {
    paths: Vec<PathBuf>,
    algorithms: Vec<Algorithm>,
    filter: Filter,
    run: Run<'a>,
}

runs!(HashJob);
filters!(HashJob);

impl HashJob<'_> {
    /// Hashes with this algorithm.
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        self.algorithms([algorithm])
    }

    /// Hashes with all of these, reading each file once.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Runs the job.
    ///
    /// A file that is named in two ways is listed under both; a name that is given twice once.
    ///
    /// # Errors
    /// If there is no algorithm, a path is not there or a pattern is wrong; if it was cancelled; if a
    /// worker panicked.
    pub fn run(mut self) -> Result<Hashed, Error> {
        Run::begin()?;
        let mut walk = self.filter.to_walk(Metadata::None)?;
        walk.spellings = Spellings::Each;
        let (progress, total) = (HashProgress::default(), AtomicU64::new(0));
        let now = || Progress {
            files: progress.files.load(Relaxed),
            bytes: progress.bytes.load(Relaxed),
            files_total: Some(total.load(Relaxed)).filter(|total| *total > 0),
            bytes_total: None,
        };
        let mut report = self.run.report.take();
        let mut options = HashOptions::new(self.algorithms);
        options.check()?;
        options.workers = self.run.workers();
        options.read = self.run.reading();
        options.start = self.run.start();
        Run::watched(&mut report, now, || {
            let cancel = &self.run.cancel;
            refuse_nothing(&self.paths)?;
            let listing = list(&self.paths, &walk, &self.run)?;
            total.store(listing.len() as u64, Relaxed);
            let hashes = hash_listing(&listing, &options, cancel, &progress)?;
            let hashed = Hashed::of(&listing, &hashes);
            let cancelled = hashed.cancelled;
            unless_cancelled(hashed, cancelled)
        })
    }
}

/// Files with their digests.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Hashed {
    /// Files hashed, in bytewise order of their paths.
    pub files: Vec<HashedFile>,
    /// Paths that could not be read.
    pub errors: Vec<PathError>,
    /// True if the job was cancelled before all was done: only in the result
    /// [inside an error](Error::partial). Files that were not done are missing then.
    pub cancelled: bool,
    /// Bytes read. A file with several names may have been read only once.
    pub bytes: u64,
}

says_what_is_missing!(Hashed, cancelled);

impl Hashed {
    fn of(listing: &Listing, hashes: &Hashes) -> Hashed {
        let mut files = Vec::with_capacity(listing.len());
        let mut cancelled = listing.is_cancelled();
        for entry in listing.ids() {
            match hashes.outcome(entry) {
                EntryOutcome::Hashed { size, .. } => files.push(HashedFile {
                    path: path_of(&listing.path(entry)),
                    size,
                    digests: hashes.digests(entry).into_iter().flatten().collect(),
                }),
                EntryOutcome::Failed(_) => {}
                EntryOutcome::NotDone => cancelled = true,
            }
        }
        let of_files = hashes.errors().map(|(_, error)| error);
        let errors = listing.errors().iter().chain(of_files);
        Hashed {
            files,
            errors: errors.map(PathError::from).collect(),
            cancelled,
            bytes: hashes.totals().read.bytes,
        }
    }
}

/// A file with its digests.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct HashedFile {
    /// The path: as it was named, or below a directory as that was named.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Digests, one for each algorithm, in their order; at least one.
    pub digests: Vec<Digest>,
}

impl HashedFile {
    /// Returns the digest by the first algorithm.
    pub fn digest(&self) -> Digest {
        self.digests[0]
    }
}
