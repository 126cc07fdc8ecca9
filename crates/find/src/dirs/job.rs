//! The search for directories as a job.

use std::path::PathBuf;

use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_walk::job::{Error, Means, path_of};
use bc_walk::{DirId, Entries, Listing, Metadata, Repeats};

use super::{Directories, DirsOptions, find};
use crate::Search;
use crate::scan::{ScanProgress, scan};

impl Search {
    /// Finds directories that have the same files at the same paths as others, and directories whose
    /// contents are all in another one. References and cache play no part.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # for name in ["a", "b"] {
    /// #     std::fs::create_dir(dir.path().join(name))?;
    /// #     std::fs::write(dir.path().join(name).join("x"), "same")?;
    /// # }
    /// # let disk = dir.path();
    /// use bc_find::Search;
    /// use bc_find::dirs::DirsOptions;
    /// use bc_walk::job::Means;
    ///
    /// let found = Search::new([disk]).directories(&DirsOptions::new(), &Means::new())?;
    /// assert_eq!(found.groups[0].paths, [disk.join("a"), disk.join("b")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a path is not there; if it was cancelled, as half an answer is none; if a worker panicked.
    pub fn directories(
        &self,
        options: &DirsOptions,
        means: &Means<'_>,
    ) -> Result<FoundDirectories, Error> {
        let progress = ScanProgress::default();
        let walk = self.walk.clone().metadata(Metadata::Basic);
        let walk = walk.entries(Entries::All).repeats(Repeats::List);
        means.run(
            || progress.now(),
            || {
                let (listing, cancel) = (walk.list(&self.paths, means)?, means.cancelled_by());
                // An empty file is a part of its directory.
                let scanning = self.scan.clone().with(means).min_size(walk.min_size);
                let scan = scan(&listing, &scanning, None, cancel, &progress)?;
                let options = options.clone().algorithm(scanning.algorithm);
                let found = find(&listing, &scan, &options, cancel, &HashProgress::default())?;
                let errors = listing.errors().iter().chain(&scan.errors);
                let errors = errors.chain(&found.errors).map(PathError::from).collect();
                match listing.is_cancelled() || scan.is_cancelled() || found.cancelled {
                    true => Err(Error::cancelled()),
                    false => Ok(FoundDirectories::new(&listing, &found, errors)),
                }
            },
        )
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

bc_walk::says_what_is_missing!(FoundDirectories);

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
