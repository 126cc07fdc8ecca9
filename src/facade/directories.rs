//! `directories`: whole directories that are copies of others.

use std::path::{Path, PathBuf};

use bc_find::dirs::{DirNames, Directories, DirsOptions, find};
use bc_find::scan::{ScanOptions, ScanProgress, scan};
use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_walk::{DirId, Entries, Listing, Metadata, Repeats};

use super::duplicates::now;
use super::error::{Error, path_of};
use super::filter::{Filter, filters};
use super::outcome::says_what_is_missing;
use super::run::{Run, runs};
use super::walk::{list, refuse_nothing, roots};

/// Finds directories below these that have the same files at the same paths as others, and
/// directories whose contents are all in another one.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for name in ["a", "b"] {
/// #     std::fs::create_dir(dir.path().join(name))?;
/// #     std::fs::write(dir.path().join(name).join("x"), "same")?;
/// # }
/// # let disk = dir.path();
/// let found = bit_crafts::directories([disk]).run()?;
/// assert_eq!(found.groups[0].paths, [disk.join("a"), disk.join("b")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn directories<'a, P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> DirectoriesJob<'a> {
    DirectoriesJob {
        paths: roots(paths),
        names: DirNames::Compare,
        min_files: 1,
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`directories`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct DirectoriesJob<'a> {
    paths: Vec<PathBuf>,
    names: DirNames,
    min_files: u64,
    filter: Filter,
    run: Run<'a>,
}

runs!(DirectoriesJob);
filters!(DirectoriesJob);

impl DirectoriesJob<'_> {
    /// Compares contents alone, regardless of the files' names.
    pub fn ignore_names(mut self) -> Self {
        self.names = DirNames::Ignore;
        self
    }

    /// Leaves out directories with fewer files below them.
    pub fn min_files(mut self, count: u64) -> Self {
        self.min_files = count;
        self
    }

    /// Runs the job.
    ///
    /// # Errors
    /// If a path is not there or a pattern is wrong; if it was cancelled, as half an answer is none;
    /// if a worker panicked.
    pub fn run(mut self) -> Result<FoundDirectories, Error> {
        Run::begin()?;
        let progress = ScanProgress::default();
        let mut report = self.run.report.take();
        Run::watched(&mut report, || now(&progress), || self.search(&progress))
    }

    fn search(self, progress: &ScanProgress) -> Result<FoundDirectories, Error> {
        let mut walk = self.filter.to_walk(Metadata::Basic)?;
        walk.entries = Entries::All;
        walk.repeats = Repeats::List;
        refuse_nothing(&self.paths)?;
        let listing = list(&self.paths, &walk, &self.run)?;
        // An empty file is a part of its directory.
        let options = ScanOptions::default()
            .min_size(walk.min_size)
            .workers(self.run.workers())
            .read(self.run.reading())
            .start(self.run.start());
        let cancel = &self.run.cancel;
        let scan = scan(&listing, &options, None, cancel, progress)?;
        let mut wanted = DirsOptions::new();
        wanted.names = self.names;
        wanted.min_files = self.min_files;
        wanted.algorithm = options.algorithm;
        let found = find(&listing, &scan, &wanted, cancel, &HashProgress::default())?;
        let errors = listing.errors().iter().chain(&scan.errors);
        let errors = errors.chain(&found.errors).map(PathError::from).collect();
        match listing.is_cancelled() || scan.is_cancelled() || found.cancelled {
            true => Err(Error::cancelled()),
            false => Ok(FoundDirectories::new(&listing, &found, errors)),
        }
    }
}

/// Directories that are in more than one place.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FoundDirectories {
    /// Equal directories, those that waste most first. Directories whose equality follows from that
    /// of larger ones are left out.
    pub groups: Vec<EqualDirectories>,
    /// Directories whose contents are all in another one, largest first.
    pub contained: Vec<Within>,
    /// Directories that cannot be compared, nor can those above them, and why.
    pub obstacles: Vec<(PathBuf, &'static str)>,
    /// Paths that could not be read.
    pub errors: Vec<PathError>,
}

says_what_is_missing!(FoundDirectories);

impl FoundDirectories {
    fn new(listing: &Listing, found: &Directories, errors: Vec<PathError>) -> FoundDirectories {
        let path = |dir: DirId| path_of(&listing.dir_path(dir));
        let groups = found.groups.iter().map(|group| EqualDirectories {
            paths: group.dirs.iter().map(|dir| path(*dir)).collect(),
            files: group.files,
            bytes: group.bytes,
            filtered: group.filtered,
            wasted: group.wasted,
        });
        let contained = found.contained.iter().map(|one| Within {
            path: path(one.dir),
            within: path(one.within),
            files: one.files,
            bytes: one.bytes,
            filtered: one.filtered,
        });
        let obstacles = found.obstacles.iter();
        FoundDirectories {
            groups: groups.collect(),
            contained: contained.collect(),
            obstacles: obstacles
                .map(|(dir, why)| (path(*dir), why.text()))
                .collect(),
            errors,
        }
    }
}

/// Directories with equal contents; at least two.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EqualDirectories {
    /// Paths of the directories, in order.
    pub paths: Vec<PathBuf>,
    /// Files below each.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries below all of them that the filter left out: they were not compared.
    pub filtered: u64,
    /// Bytes of disk that are freed if all but the first go.
    pub wasted: u64,
}

/// A directory whose contents are all in another one.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Within {
    /// The directory.
    pub path: PathBuf,
    /// The smallest one that has all of it, under whichever names.
    pub within: PathBuf,
    /// Files below the directory.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries below it that the filter left out: they were not looked for.
    pub filtered: u64,
}
