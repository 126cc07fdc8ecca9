//! `walk`: the files below some directories.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bc_fs::PathError;
use bc_walk::{EntryId, FileKind, Listing, Metadata, Skipped, WalkOptions, walk_with};

use super::error::{Error, path_of};
use super::filter::{Filter, filters};
use super::outcome::{says_what_is_missing, unless_cancelled};
use super::run::{Progress, Run, runs};

/// Lists these files, and all files below those that are directories, in bytewise order of their
/// paths.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for name in ["a.rs", "b.o"] { std::fs::write(dir.path().join(name), name)?; }
/// # let dir = dir.path();
/// use bit_crafts::Filter;
///
/// let walked = bit_crafts::walk([dir]).filter(Filter::new().exclude("*.o")).run()?;
/// for file in walked.files() {
///     println!("{}: {:?} bytes", file.path.display(), file.size);
/// }
/// assert!(walked.is_complete() && walked.len() == 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn walk<'a, P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> WalkJob<'a> {
    WalkJob {
        paths: roots(paths),
        metadata: Metadata::None,
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`walk`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct WalkJob<'a> {
    paths: Vec<PathBuf>,
    metadata: Metadata,
    filter: Filter,
    run: Run<'a>,
}

runs!(WalkJob);
filters!(WalkJob);

impl WalkJob<'_> {
    /// Looks up sizes and times too, which takes a system call for each file.
    pub fn metadata(mut self) -> Self {
        self.metadata = Metadata::Basic;
        self
    }

    /// Runs the job.
    ///
    /// # Errors
    /// If a path is not there or a pattern is wrong; if it was cancelled; if a worker panicked.
    pub fn run(mut self) -> Result<Walked, Error> {
        Run::begin()?;
        let walk = self.filter.to_walk(self.metadata)?;
        let found = AtomicU64::new(0);
        let now = || Progress {
            files: found.load(Relaxed),
            ..Progress::default()
        };
        let mut report = self.run.report.take();
        Run::watched(&mut report, now, || {
            refuse_nothing(&self.paths)?;
            let listing = list(&self.paths, &walk, &self.run)?;
            found.store(listing.len() as u64, Relaxed);
            let cancelled = listing.is_cancelled();
            let walked = Walked {
                errors: listing.errors().iter().map(PathError::from).collect(),
                cancelled,
                listing,
            };
            unless_cancelled(walked, cancelled)
        })
    }
}

/// The files that were found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Walked {
    /// Paths that could not be looked at.
    pub errors: Vec<PathError>,
    /// True if the walk was cancelled before it had seen everything: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
    listing: Listing,
}

impl Walked {
    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.listing.len()
    }

    /// Returns true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.listing.is_empty()
    }

    /// Returns the files, in bytewise order of their paths. They are stored compactly: each path is
    /// put together when it is asked for.
    pub fn files(&self) -> impl ExactSizeIterator<Item = WalkedFile> + '_ {
        self.listing.ids().map(|entry| self.file(entry))
    }

    fn file(&self, entry: EntryId) -> WalkedFile {
        let stamp = self.listing.meta(entry).map(|meta| meta.stamp);
        WalkedFile {
            path: path_of(&self.listing.path(entry)),
            kind: self.listing.kind(entry),
            size: stamp.map(|stamp| stamp.size),
            modified: stamp.map(|stamp| time(stamp.mtime_ns)),
        }
    }

    /// Returns the number of entries that were left out, by reason.
    pub fn skipped(&self) -> &Skipped {
        self.listing.skipped()
    }
}

says_what_is_missing!(Walked, cancelled);

/// A file that was found.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WalkedFile {
    /// The path: as it was named, or below a directory as that was named.
    pub path: PathBuf,
    /// Kind of the entry.
    pub kind: FileKind,
    /// Bytes, if [metadata](WalkJob::metadata) was asked for.
    pub size: Option<u64>,
    /// Time of the last change to its content, if metadata was asked for.
    pub modified: Option<SystemTime>,
}

/// Returns nanoseconds since 1970 as a time.
pub(crate) fn time(ns: i64) -> SystemTime {
    let from_epoch = Duration::from_nanos(ns.unsigned_abs());
    match ns < 0 {
        true => UNIX_EPOCH - from_epoch,
        false => UNIX_EPOCH + from_epoch,
    }
}

/// Collects the paths that the caller named.
pub(crate) fn roots<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Vec<PathBuf> {
    let paths = paths.into_iter();
    paths.map(|path| path.as_ref().to_owned()).collect()
}

/// Refuses an empty list of paths: an empty answer would look like a result.
pub(crate) fn refuse_nothing(paths: &[PathBuf]) -> Result<(), Error> {
    match paths.is_empty() {
        true => Err(Error::usage("no path to look through")),
        false => Ok(()),
    }
}

/// Refuses paths that do not exist: an empty answer would look like a result.
pub(crate) fn refuse_missing<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Error> {
    for path in paths {
        std::fs::metadata(path).map_err(|error| Error::io(path, "stat", &error))?;
    }
    Ok(())
}

/// Walks the paths.
///
/// # Errors
/// If one of the paths is not there; if a worker panicked.
pub(crate) fn list(
    paths: &[PathBuf],
    options: &WalkOptions,
    run: &Run<'_>,
) -> Result<Listing, Error> {
    refuse_missing(paths)?;
    let paths: Vec<OsString> = paths.iter().map(|path| path.clone().into()).collect();
    Ok(walk_with(&paths, options, || run.walkers(), &run.cancel)?)
}
