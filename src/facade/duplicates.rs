//! `duplicates`: files with equal content.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest};
use bc_find::scan::{Equality, HardLinks, Scan, ScanOptions, ScanProgress, scan};
use bc_find::{Cache, Location, Subtrees};
use bc_fs::PathError;
use bc_walk::{Identity, Listing, Metadata};

use super::error::{Error, path_of};
use super::filter::{Filter, filters};
use super::outcome::{says_what_is_missing, unless_cancelled};
use super::references::{bytes, survey};
use super::run::{Progress, Run, runs};
use super::walk::{list, refuse_nothing, roots};

/// Finds files with equal content below these paths. Empty files do not count, and several names of
/// one file (hard links) are one file.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for (name, text) in [("a", "same"), ("b", "same"), ("c", "else")] {
/// #     std::fs::write(dir.path().join(name), text)?;
/// # }
/// # let dir = dir.path();
/// let found = bit_crafts::duplicates([dir]).run()?;
/// for group in &found.groups {
///     let spare = group.paths().skip(1); // all but one
///     println!("{:?} could go", spare.collect::<Vec<_>>());
/// }
/// assert_eq!(found.groups[0].files.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn duplicates<'a, P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> DuplicatesJob<'a> {
    DuplicatesJob {
        paths: roots(paths),
        references: Vec::new(),
        cache: None,
        options: ScanOptions::default(),
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`duplicates`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct DuplicatesJob<'a> {
    paths: Vec<PathBuf>,
    references: Vec<PathBuf>,
    cache: Option<PathBuf>,
    options: ScanOptions,
    filter: Filter,
    run: Run<'a>,
}

runs!(DuplicatesJob);
filters!(DuplicatesJob);

impl DuplicatesJob<'_> {
    /// Compares by this digest: XXH128, XXH3, BLAKE3 or SHA-256. XXH128 is the default.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.options.algorithm = algorithm;
        self
    }

    /// Compares files with equal digests byte for byte as well.
    pub fn verify_bytes(mut self) -> Self {
        self.options.equality = Equality::Bytes;
        self
    }

    /// Adds files and directories that take part too, are listed first in each group, and of which
    /// nothing is to go. A group of them alone is not listed.
    pub fn references<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.references.extend(roots(paths));
        self
    }

    /// Counts several names of one file as duplicates of each other.
    pub fn match_hard_links(mut self) -> Self {
        self.options.hard_links = HardLinks::Duplicates;
        self
    }

    /// Keeps digests in this file for the next search. It is made if it is not there.
    pub fn cache(mut self, file: impl Into<PathBuf>) -> Self {
        self.cache = Some(file.into());
        self
    }

    /// Runs the job.
    ///
    /// # Errors
    /// If the algorithm is none of those, a path is not there or a pattern is wrong, a reference cannot
    /// be opened or the cache is a file of another sort; if it was cancelled; if a worker panicked.
    pub fn run(mut self) -> Result<FoundDuplicates, Error> {
        Run::begin()?;
        let progress = ScanProgress::default();
        let mut report = self.run.report.take();
        let found = Run::watched(&mut report, || now(&progress), || self.search(&progress));
        Run::came_to(&self.run.cancel, found)
    }

    fn search(&self, progress: &ScanProgress) -> Result<FoundDuplicates, Error> {
        let open = |file: &PathBuf| Cache::open(file, Location::Named);
        let mut cache = self.cache.as_ref().map(open).transpose()?;
        let what = Wanted {
            paths: &self.paths,
            references: &self.references,
            options: &self.options,
            filter: &self.filter,
            run: &self.run,
        };
        let Searched {
            listing,
            scan,
            errors,
            ..
        } = what.search(cache.as_mut(), progress)?;
        let cancelled = listing.is_cancelled() || scan.is_cancelled();
        let found = FoundDuplicates {
            groups: groups(&listing, &scan),
            errors,
            cancelled,
            files: scan.stats.files,
            wasted: scan.wasted(),
        };
        unless_cancelled(found, cancelled)
    }
}

/// Paths and options of a search.
pub(crate) struct Wanted<'w, 'a> {
    pub(crate) paths: &'w [PathBuf],
    pub(crate) references: &'w [PathBuf],
    pub(crate) options: &'w ScanOptions,
    pub(crate) filter: &'w Filter,
    pub(crate) run: &'w Run<'a>,
}

/// Result of a search.
pub(crate) struct Searched {
    /// The paths, and the references that are not among them.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) references: Arc<Subtrees>,
    pub(crate) listing: Listing,
    pub(crate) scan: Scan,
    pub(crate) errors: Vec<PathError>,
}

impl Wanted<'_, '_> {
    /// Walks and compares.
    pub(crate) fn search(
        &self,
        cache: Option<&mut Cache>,
        progress: &ScanProgress,
    ) -> Result<Searched, Error> {
        let mut roots = self.paths.to_vec();
        let mut references = Subtrees::open(self.references.iter().map(|path| bytes(path)))?;
        add_references(&references, self.references, &mut roots);
        survey(&mut references, self.filter, self.run)?;
        let mut walk = self.filter.to_walk(Metadata::Basic)?;
        walk.min_size = walk.min_size.max(1);
        refuse_nothing(&roots)?;
        let listing = list(&roots, &walk, self.run)?;
        references.check()?;
        let references = Arc::new(references);
        let options = self
            .options
            .clone()
            .min_size(walk.min_size)
            .references(Arc::clone(&references))
            .workers(self.run.workers())
            .read(self.run.reading())
            .start(self.run.start());
        let scan = scan(&listing, &options, cache, &self.run.cancel, progress)?;
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
}

/// Returns the counts of a running search; totals are `None` until they are known.
pub(crate) fn now(progress: &ScanProgress) -> Progress {
    let known = |count: u64| Some(count).filter(|count| *count > 0);
    Progress {
        files: progress.files.load(Relaxed),
        bytes: progress.bytes.load(Relaxed),
        files_total: known(progress.planned.load(Relaxed)),
        bytes_total: known(progress.planned_bytes.load(Relaxed)),
    }
}

/// Adds the references to the paths to search, except those already there under any name.
fn add_references(references: &Subtrees, named: &[PathBuf], paths: &mut Vec<PathBuf>) {
    let identity = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        let (dev, ino) = (meta.dev(), meta.ino());
        Some(Identity { dev, ino })
    };
    let mut known: Vec<_> = paths.iter().filter_map(identity).collect();
    for (path, id) in named.iter().zip(references.identities()) {
        if !known.contains(&id) {
            known.push(id);
            paths.push(path.clone());
        }
    }
}

fn groups(listing: &Listing, scan: &Scan) -> Vec<EqualFiles> {
    let path = |entry| path_of(&listing.path(entry));
    let file = |file: bc_find::scan::File<'_>| EqualFile {
        path: path(file.names[0]),
        other_names: file.names[1..].iter().map(|name| path(*name)).collect(),
        is_reference: file
            .names
            .iter()
            .any(|name| scan.is_reference(listing, *name)),
        frees: file.own,
    };
    let group = |group: bc_find::scan::Group<'_>| EqualFiles {
        size: group.size,
        digest: group.digest,
        wasted: group.wasted,
        files: group.files().map(file).collect(),
    };
    scan.groups().map(group).collect()
}

/// Files with equal content, in groups.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FoundDuplicates {
    /// Groups of equal files, those that waste most first.
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

says_what_is_missing!(FoundDuplicates, cancelled);

/// A group of files with equal content; at least two.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EqualFiles {
    /// Bytes of each.
    pub size: u64,
    /// Digest of the content, by the job's algorithm.
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
    /// True if it is, or lies in, a [reference](DuplicatesJob::references).
    pub is_reference: bool,
    /// Bytes of disk that giving up all these names would free; none for a reference's file.
    pub frees: u64,
}
