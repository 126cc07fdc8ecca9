//! Hashing as a job: paths in, digests out, with the means of a caller of the library.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_digest::Digest;
use bc_fs::PathError;
use bc_read::ReadOptions;
use bc_walk::job::{Error, Means, Progress, owned, path_of, unless_cancelled};
use bc_walk::{Listing, Spellings, WalkOptions};

use crate::engine::hash_listing;
use crate::options::{HashOptions, HashProgress};
use crate::results::{EntryOutcome, Hashes};

impl HashOptions {
    /// Sets workers, start and reading as these means have them.
    #[must_use]
    pub fn with(mut self, means: &Means<'_>) -> HashOptions {
        let workers = means.workers();
        self.workers = workers.usual();
        self.start = means.start();
        self.read = ReadOptions::default().waiting(workers.most());
        self
    }

    /// Hashes these files, and the files below those that are directories, with these means; the
    /// walk's options choose among them. A file that is named in two ways is listed under both; a
    /// name that is given twice once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let letter = dir.path().join("letter");
    /// # std::fs::write(&letter, "abc")?;
    /// use bc_hash::HashOptions;
    /// use bc_walk::WalkOptions;
    /// use bc_walk::job::Means;
    ///
    /// let options = HashOptions::new(vec![bc_digest::Algorithm::Md5]);
    /// let hashed = options.run([&letter], &WalkOptions::default(), &Means::new())?.complete()?;
    /// let digest = hashed.files[0].digest();
    /// assert_eq!(digest.to_string(), "900150983cd24fb0d6963f7d28e17f72");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no algorithm or no path, or a path is not there; if it was cancelled; if a worker
    /// panicked.
    pub fn run<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        walk: &WalkOptions,
        means: &Means<'_>,
    ) -> Result<Hashed, Error> {
        self.check()?;
        let paths = owned(paths);
        let walk = walk.clone().spellings(Spellings::Each);
        let (progress, total) = (HashProgress::default(), AtomicU64::new(0));
        let now = || progress.with_total(total.load(Relaxed));
        means.run(now, || {
            let listing = walk.list(&paths, means)?;
            total.store(listing.len() as u64, Relaxed);
            let options = self.clone().with(means);
            let hashes = hash_listing(&listing, &options, means.cancelled_by(), &progress)?;
            let hashed = Hashed::of(&listing, &hashes);
            let cancelled = hashed.cancelled;
            unless_cancelled(hashed, cancelled)
        })
    }
}

impl HashProgress {
    /// Returns the progress of a job of so many files; 0 if that is not known.
    pub fn with_total(&self, files: u64) -> Progress {
        let bytes = self.bytes.load(Relaxed);
        Progress::new([self.files.load(Relaxed), files], [bytes, 0])
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

bc_walk::says_what_is_missing!(Hashed, cancelled);

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
