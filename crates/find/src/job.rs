//! Searches as jobs: paths in, results out, with the means of a caller of the library.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_fs::PathError;
use bc_read::ReadOptions;
use bc_walk::job::{Error, Guarded, Means, Progress, owned, path_of, unless_cancelled};
use bc_walk::{Listing, Metadata, Symlinks, WalkOptions};

use crate::cache::Cache;
#[cfg(feature = "cache")]
use crate::cache::Location;
use crate::scan::{self, Scan, ScanOptions, ScanProgress, scan};
use crate::subtrees::{Files, Subtrees};

/// Files and directories to search.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for (name, text) in [("a", "same"), ("b", "same"), ("c", "else")] {
/// #     std::fs::write(dir.path().join(name), text)?;
/// # }
/// # let dir = dir.path();
/// use bc_find::Search;
/// use bc_walk::job::Means;
///
/// let found = Search::new([dir]).duplicates(&Means::new())?;
/// for group in &found.groups {
///     let spare = group.paths().skip(1); // all but one
///     println!("{:?} could go", spare.collect::<Vec<_>>());
/// }
/// assert_eq!(found.groups[0].files.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Search {
    /// The paths.
    pub paths: Vec<PathBuf>,
    /// Files and directories that take part too and of which nothing is to go. Duplicates list them
    /// first in each group, and a group of them alone is not listed. For a search of what is
    /// [unique](Search::unique) these are the archives, where a content may be too: directories, or
    /// manifests of disks that are offline.
    pub references: Vec<PathBuf>,
    /// Choice among the files.
    pub walk: WalkOptions,
    /// Options of the comparison.
    pub scan: ScanOptions,
    /// File that keeps digests for the next search of duplicates. It is made if it is not there.
    #[cfg(feature = "cache")]
    pub cache: Option<PathBuf>,
}

bc_fs::setters! {
    Search:
    walk: WalkOptions,
    scan: ScanOptions,
}

impl Search {
    /// Searches these.
    pub fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Search {
        Search {
            paths: owned(paths),
            references: Vec::new(),
            walk: WalkOptions::default(),
            scan: ScanOptions::default(),
            #[cfg(feature = "cache")]
            cache: None,
        }
    }

    /// Adds references.
    #[must_use]
    pub fn references<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Search {
        self.references.extend(owned(paths));
        self
    }

    /// Keeps digests in this file for the next search.
    #[cfg(feature = "cache")]
    #[must_use]
    pub fn cache(mut self, file: impl Into<PathBuf>) -> Search {
        self.cache = Some(file.into());
        self
    }

    /// Finds files with equal content. Empty files do not count, and several names of one file
    /// (hard links) are one file, unless the [options](Search::scan) have it otherwise.
    ///
    /// # Errors
    /// If the algorithm is none that a search can use, a path is not there, a reference cannot be
    /// opened or the cache is a file of another sort; if it was cancelled; if a worker panicked.
    pub fn duplicates(&self, means: &Means<'_>) -> Result<Duplicates, Error> {
        let mut groups = Vec::new();
        let mut found = self.find_duplicates(means, |group| {
            groups.push(group);
            ControlFlow::Continue(())
        })?;
        found.groups = groups;
        let cancelled = found.cancelled;
        unless_cancelled(found, cancelled)
    }

    /// Finds files with equal content as [`duplicates`](Search::duplicates) does, and calls `each`
    /// with one group after the other, those that waste most first; the list in the result is empty.
    /// It is called by the caller's own thread, once all files are compared: only then is known
    /// which groups there are. It is not called again after a cancellation, nor after a panic in it,
    /// which goes on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # for name in ["a", "b", "c"] { std::fs::write(dir.path().join(name), "same")?; }
    /// # let dir = dir.path();
    /// use bc_find::Search;
    /// use bc_walk::job::Means;
    ///
    /// let mut spare = 0;
    /// Search::new([dir]).duplicates_each(&Means::new(), |group| spare += group.files.len() - 1)?;
    /// assert_eq!(spare, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `duplicates`.
    pub fn duplicates_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(EqualFiles),
    ) -> Result<Duplicates, Error> {
        let mut each = Guarded::new(each);
        // There may be many groups, and it may take its time for each.
        let found =
            self.find_duplicates(means, |group| match means.cancelled_by().is_cancelled() {
                true => ControlFlow::Break(()),
                false => {
                    each.call(group);
                    ControlFlow::Continue(())
                }
            });
        each.end();
        let found = found?;
        let cancelled = found.cancelled;
        unless_cancelled(found, cancelled)
    }

    /// Finds the groups; a search that was cancelled, or that `each` ends, says so.
    fn find_duplicates(
        &self,
        means: &Means<'_>,
        each: impl FnMut(EqualFiles) -> ControlFlow<()>,
    ) -> Result<Duplicates, Error> {
        let progress = ScanProgress::default();
        means.run(
            || progress.now(),
            || {
                let mut cache = self.open_cache()?;
                let searched = self.search(cache.as_mut(), means, &progress)?;
                let (listing, scan) = (&searched.listing, &searched.scan);
                let flow = groups(listing, scan).try_for_each(each);
                Ok(Duplicates {
                    groups: Vec::new(),
                    errors: searched.errors,
                    cancelled: listing.is_cancelled() || scan.is_cancelled() || flow.is_break(),
                    files: scan.stats.files,
                    wasted: scan.wasted(),
                })
            },
        )
    }

    #[cfg(feature = "cache")]
    fn open_cache(&self) -> Result<Option<Cache>, Error> {
        let open = |file: &PathBuf| Cache::open(file, Location::Named);
        self.cache.as_ref().map(open).transpose()
    }

    #[cfg(not(feature = "cache"))]
    fn open_cache(&self) -> Result<Option<Cache>, Error> {
        Ok(None)
    }

    /// Walks and compares, as the first part of a larger job: progress is only counted, and a
    /// search that was cancelled says so.
    ///
    /// # Errors
    /// As of [`duplicates`](Search::duplicates), except after a cancellation.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn search(
        &self,
        cache: Option<&mut Cache>,
        means: &Means<'_>,
        progress: &ScanProgress,
    ) -> Result<Searched, Error> {
        let mut roots = self.paths.clone();
        let mut references = Subtrees::open(self.references.iter().map(|path| bytes(path)))?;
        references.add_to_roots(&mut roots);
        self.survey(&mut references, means)?;
        let least = self.walk.min_size.max(1);
        let walk = self.walk.clone().metadata(Metadata::Basic).min_size(least);
        let listing = walk.list(&roots, means)?;
        references.check()?;
        let references = Arc::new(references);
        let options = self.scan.clone().with(means);
        let options = options.min_size(least).references(Arc::clone(&references));
        let scan = scan(&listing, &options, cache, means.cancelled_by(), progress)?;
        let errors = listing.errors().iter().chain(&scan.errors);
        let errors = errors.chain(references.errors());
        Ok(Searched {
            errors: errors.map(PathError::from).collect(),
            roots,
            references,
            listing,
            scan,
        })
    }

    /// Finds the files in `trees`: each file by itself if the walk could keep names of it away.
    fn survey(&self, trees: &mut Subtrees, means: &Means<'_>) -> Result<(), Error> {
        let symlinks = self.walk.symlinks;
        let files = match self.walk.leaves_out() || symlinks == Symlinks::Follow {
            true => Files::All,
            false => Files::Named,
        };
        Ok(trees.survey(symlinks, files, means.workers(), means.cancelled_by())?)
    }
}

/// Result of a [search](Search::search).
#[derive(Debug)]
#[non_exhaustive]
pub struct Searched {
    /// The paths, and the references that are not among them.
    pub roots: Vec<PathBuf>,
    /// The references, open.
    pub references: Arc<Subtrees>,
    /// The files that were found.
    pub listing: Listing,
    /// The groups of equal files.
    pub scan: Scan,
    /// Paths that could not be read.
    pub errors: Vec<PathError>,
}

impl ScanOptions {
    /// Sets workers, start and reading as these means have them.
    #[must_use]
    pub(crate) fn with(self, means: &Means<'_>) -> ScanOptions {
        let workers = means.workers();
        self.workers(workers.usual())
            .start(means.start())
            .read(ReadOptions::default().waiting(workers.most()))
    }
}

impl ScanProgress {
    /// Returns the counts of a running search.
    pub fn now(&self) -> Progress {
        Progress::new(
            [self.files.load(Relaxed), self.planned.load(Relaxed)],
            [self.bytes.load(Relaxed), self.planned_bytes.load(Relaxed)],
        )
    }
}

/// Returns the path's bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn groups<'s>(listing: &'s Listing, scan: &'s Scan) -> impl Iterator<Item = EqualFiles> + 's {
    let path = move |entry| path_of(&listing.path(entry));
    let is_reference = move |name| scan.is_reference(listing, name);
    let file = move |file: scan::File<'_>| EqualFile {
        path: path(file.names[0]),
        other_names: file.names[1..].iter().map(|name| path(*name)).collect(),
        is_reference: file.names.iter().any(|name| is_reference(*name)),
        frees: file.own,
    };
    scan.groups().map(move |group| EqualFiles {
        size: group.size,
        digest: group.digest,
        wasted: group.wasted,
        files: group.files().map(file).collect(),
    })
}

/// Files with equal content, in groups.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Duplicates {
    /// Groups of equal files, those that waste most first. Empty if they went to a callback.
    pub groups: Vec<EqualFiles>,
    /// Paths that could not be read.
    pub errors: Vec<PathError>,
    /// True if the search was cancelled before all was done: only in the result
    /// [inside an error](Error::partial). Files that were not read to their end are in no group
    /// then.
    pub cancelled: bool,
    /// Files that were searched.
    pub files: u64,
    /// Bytes of disk that giving up all but one file of each group would free.
    pub wasted: u64,
}

bc_walk::says_what_is_missing!(Duplicates, cancelled);

/// A group of files with equal content; at least two.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EqualFiles {
    /// Bytes of each.
    pub size: u64,
    /// Digest of the content, by the search's algorithm.
    pub digest: Digest,
    /// Bytes of disk that giving up all but one would free.
    pub wasted: u64,
    /// References first, then in order of paths.
    pub files: Vec<EqualFile>,
}

impl EqualFiles {
    /// Returns one path of each file.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }
}

/// A file of a group.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EqualFile {
    /// Its first name.
    pub path: PathBuf,
    /// Other names of the same file, as far as they were met.
    pub other_names: Vec<PathBuf>,
    /// True if it is, or lies in, a [reference](Search::references).
    pub is_reference: bool,
    /// Bytes of disk that giving up all these names would free; none for a reference's file.
    pub frees: u64,
}

#[cfg(test)]
mod tests {
    use bc_pool::Cancel;
    use bc_testkit::TestTree;
    use bc_walk::job::ErrorKind;

    use super::*;

    /// A callback that has enough gets no more groups, and the search says that it lacks some.
    #[test]
    fn a_cancellation_ends_the_groups() {
        let t = TestTree::new();
        for text in ["1", "22", "333"] {
            t.write(format!("a{text}"), text)
                .write(format!("b{text}"), text);
        }
        let cancel = Cancel::new();
        let (search, means) = (Search::new([t.path()]), Means::new().cancel(&cancel));
        let mut calls = 0;
        let searched = search.duplicates_each(&means, |_| {
            calls += 1;
            cancel.stop();
        });
        let error = searched.unwrap_err();
        assert_eq!((error.kind(), calls), (ErrorKind::Cancelled, 1));
        assert!(error.partial::<Duplicates>().unwrap().cancelled);
    }
}
