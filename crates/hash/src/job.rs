//! Hashing as a job: paths in, digests out, with the means of a caller of the library.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_digest::Digest;
use bc_fs::PathError;
use bc_read::ReadOptions;
use bc_walk::job::{Error, ErrorKind, Guarded, Means, Progress, owned, path_of, unless_cancelled};
use bc_walk::{EntryId, FileStat, Listing, Spellings, WalkOptions};

use crate::engine::hash_listing;
use crate::in_order::{HashOutcome, hash_in_order};
use crate::options::{HashOptions, HashProgress, Totals};
use crate::results::{EntryOutcome, Hashes};

impl HashOptions {
    /// Sets workers, start and reading as these means have them.
    #[must_use]
    pub(crate) fn with(mut self, means: &Means<'_>) -> HashOptions {
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

impl HashOptions {
    /// Hashes as [`run`](HashOptions::run) does, and calls `each` with one file after the other, in
    /// order of their paths, while later ones are still read; the list in the result is empty. It is
    /// called by the caller's own thread. After a panic in it, it is not called again; the job is
    /// done to its end, and then the panic goes on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # for name in ["a", "b"] { std::fs::write(dir.path().join(name), name)?; }
    /// # let dir = dir.path();
    /// use bc_hash::HashOptions;
    /// use bc_walk::WalkOptions;
    /// use bc_walk::job::Means;
    ///
    /// let blake3 = HashOptions::new(vec![bc_digest::Algorithm::Blake3]);
    /// let mut names = Vec::new();
    /// let all = blake3.run_each([dir], &WalkOptions::default(), &Means::new(), |file| {
    ///     println!("{}  {}", file.digest(), file.path.display());
    ///     names.push(file.path);
    /// })?;
    /// assert_eq!(names, [dir.join("a"), dir.join("b")]);
    /// assert!(all.is_complete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `run`. After a cancellation the files are missing that were not passed on.
    pub fn run_each<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        walk: &WalkOptions,
        means: &Means<'_>,
        each: impl FnMut(HashedFile),
    ) -> Result<Hashed, Error> {
        self.check()?;
        let paths = owned(paths);
        let walk = walk.clone().spellings(Spellings::Each);
        let (progress, total) = (HashProgress::default(), AtomicU64::new(0));
        let now = || progress.with_total(total.load(Relaxed));
        let mut each = Guarded::new(each);
        let hashed = means.run(now, || {
            let listing = walk.list(&paths, means)?;
            total.store(listing.len() as u64, Relaxed);
            let options = self.clone().with(means);
            let cancel = means.cancelled_by();
            let mut errors: Vec<_> = listing.errors().iter().map(PathError::from).collect();
            let done = hash_in_order(
                &listing,
                |_| true,
                &options,
                cancel,
                &progress,
                |range, window| {
                    for entry in range.map(EntryId) {
                        match window.outcome(entry) {
                            HashOutcome::Digest(bytes, stat) => each.call(HashedFile {
                                path: path_of(&listing.path(entry)),
                                size: size_of(&listing, entry, stat),
                                digests: options.split(bytes),
                            }),
                            HashOutcome::Failed(error) => errors.push(PathError::from(error)),
                            HashOutcome::NotRead => {}
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                },
            );
            let totals = unless_cut(done)?;
            let cancelled = totals.is_none() || listing.is_cancelled();
            let bytes = totals.map_or_else(|| progress.bytes.load(Relaxed), |t| t.read.bytes);
            let hashed = Hashed {
                files: Vec::new(),
                errors,
                cancelled,
                bytes,
            };
            unless_cancelled(hashed, cancelled)
        });
        each.end();
        hashed
    }

    /// Returns the digests whose bytes lie one after the other.
    fn split(&self, mut bytes: &[u8]) -> Vec<Digest> {
        let digests = self.algorithms.iter().map(|algorithm| {
            let own;
            (own, bytes) = bytes.split_at(algorithm.digest_len());
            Digest::new(own)
        });
        digests.collect()
    }
}

/// Returns the totals of a run, or none if it was cancelled. A run that failed, by a panic say, may
/// have been cancelled, too: its error stays.
fn unless_cut(done: Result<Totals, Error>) -> Result<Option<Totals>, Error> {
    match done {
        Err(error) if error.kind() == ErrorKind::Cancelled => Ok(None),
        done => done.map(Some),
    }
}

/// Returns the size of a file that was read: that of `stat`, or the walk's.
fn size_of(listing: &Listing, entry: EntryId, stat: Option<&FileStat>) -> u64 {
    stat.map(|stat| stat.stamp.size)
        .or_else(|| listing.size(entry))
        .unwrap_or(0)
}

impl HashProgress {
    /// Returns the progress of a job of so many files; 0 if that is not known.
    pub(crate) fn with_total(&self, files: u64) -> Progress {
        let bytes = self.bytes.load(Relaxed);
        Progress::new([self.files.load(Relaxed), files], [bytes, 0])
    }
}

/// Files with their digests.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Hashed {
    /// Files hashed, in bytewise order of their paths. Empty if they went to a callback.
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

#[cfg(test)]
mod tests {
    use bc_digest::Algorithm;
    use bc_pool::Cancel;
    use bc_testkit::TestTree;

    use super::*;

    fn options() -> HashOptions {
        HashOptions::new(vec![Algorithm::Xxh3, Algorithm::Sha256])
    }

    /// Small files, a large one, and one that cannot be read.
    fn tree() -> TestTree {
        let t = TestTree::new();
        for n in 0..300 {
            t.write(format!("d/{n}"), n.to_string());
        }
        t.write("d/large", vec![7; 3 << 20]);
        t.fifo("d/fifo");
        t
    }

    #[test]
    fn a_callback_hears_what_the_list_has() {
        let t = tree();
        let roots = [t.join("d"), t.join("d/fifo"), t.join("d/7")];
        for threads in [1, 3] {
            let (walk, means) = (WalkOptions::default(), Means::new().threads(threads));
            let all = options().run(&roots, &walk, &means).unwrap();
            let mut heard = Vec::new();
            let each = |file| heard.push(file);
            let rest = options().run_each(&roots, &walk, &means, each).unwrap();
            assert!(heard.len() > 300 && rest.files.is_empty());
            assert_eq!(heard, all.files);
            assert!(!all.errors.is_empty());
            assert_eq!((rest.errors, rest.bytes), (all.errors, all.bytes));
        }
    }

    /// A window is passed on at once, what lies behind it is not begun.
    #[test]
    fn what_was_heard_before_a_cancellation_stays() {
        let t = TestTree::new();
        let count = crate::in_order::WINDOW + 10;
        for n in 0..count {
            t.write(format!("d/{n}"), "");
        }
        let cancel = Cancel::new();
        let means = Means::new().threads(1).cancel(&cancel);
        let mut heard = 0;
        let each = |_| {
            heard += 1;
            cancel.stop();
        };
        let walk = WalkOptions::default();
        let run = options().run_each([t.join("d")], &walk, &means, each);
        let error = run.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.partial::<Hashed>().unwrap().cancelled);
        assert!(heard > 0 && heard < count, "{heard}");
    }

    /// A failure stays one, cancelled or not.
    #[test]
    fn an_error_is_no_cancellation() {
        let ends = |kind| unless_cut(Err(Error::new(kind, "of a test")));
        assert!(ends(ErrorKind::Cancelled).unwrap().is_none());
        for kind in [ErrorKind::Panic, ErrorKind::Io] {
            assert_eq!(ends(kind).unwrap_err().kind(), kind);
        }
        assert!(unless_cut(Ok(Totals::default())).unwrap().is_some());
    }
}
