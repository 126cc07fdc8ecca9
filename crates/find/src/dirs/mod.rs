//! Directories that are copies of each other, contained in another one, or similar, found from the
//! groups of a search.
//!
//! A directory's content is the set of its entries at all depths: each file, symbolic link and
//! empty directory with its path from there, its kind, and its bytes or target. Modes, owners and
//! times do not count. A file that is in no group of the search has a content of its own, unless it
//! has several names; nothing of it has to be read for that.
//!
//! # Invariants
//! - Unknown contents are not compared: where a file or a directory could not be read or changed,
//!   where a mount, a FIFO, a socket or a device is, or a followed link to entries that are listed
//!   elsewhere, neither that directory nor one above it is equal to, contained in or similar to
//!   another. [`Directories::obstacles`](crate::dirs::Directories::obstacles) names them.
//! - Reported directories are checked afterwards: they are as they were when listed.
//! - The result depends neither on threads nor on how a search was made.
//! - Time and memory grow with the number of entries, but for the search for contained and similar
//!   ones, which [`Limits`](crate::dirs::Limits) bounds for each directory. Nothing here is recursive.

mod contained;
mod digest;
mod equal;
mod every;
mod find;
mod job;
mod json;
mod offline;
mod overlap;
mod similar;
#[cfg(test)]
mod tests;
mod tree;
mod trees;

use std::collections::HashSet;

use bc_digest::{Algorithm, Digest};
use bc_hash::HashOptions;
use bc_walk::{DirId, EntryId, Error, Listing};

use crate::scan::Span;

pub use contained::Contained;
pub use digest::algorithm as digest_algorithm;
pub use every::{DirDigests, HashedDir};
pub use find::find;
pub use job::{EqualDirectories, FoundDirectories, Within};
pub use json::DirsReport;
pub use offline::{OfflineDir, offline_dirs};
pub use similar::Similar;

/// Treatment of names in comparisons of directories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DirNames {
    /// Equal directories have the same files at the same paths.
    #[default]
    Compare,
    /// They have the same contents, each as often, wherever and under whichever names.
    Ignore,
}

/// Bounds of the searches for contained and similar directories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// A content that is in more places leads nowhere.
    pub places: usize,
    /// Number of other directories that are tried for each.
    pub candidates: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            places: 1000,
            candidates: 50,
        }
    }
}

/// Options of the search for directories.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirsOptions {
    /// Treatment of names.
    pub names: DirNames,
    /// Least share that similar directories have in common, in percent of the larger one's bytes: 1
    /// to 100. `None`: similar directories are not searched for.
    pub similar: Option<u8>,
    /// True to search for directories that are wholly in another one.
    pub contained: bool,
    /// Directories with fewer files below them are left out.
    pub min_files: u64,
    /// Roots that a group has to span, as in the search.
    pub span: Span,
    /// The algorithm of the search.
    pub algorithm: Algorithm,
    /// Bounds of the searches.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub limits: Limits,
    /// Options for reading the files whose digests directories' digests are made from; `None`: no
    /// digests.
    pub digests: Option<HashOptions>,
}

bc_fs::setters! {
    DirsOptions:
    names: DirNames,
    similar: Option<u8>,
    contained: bool,
    min_files: u64,
    span: Span,
    algorithm: Algorithm,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    limits: Limits,
    digests: Option<HashOptions>,
}

impl DirsOptions {
    /// Equal and contained directories, with names and without digests, after a search with the
    /// default options.
    pub fn new() -> DirsOptions {
        DirsOptions {
            names: DirNames::default(),
            similar: None,
            contained: true,
            min_files: 1,
            span: Span::default(),
            algorithm: Algorithm::Xxh128,
            limits: Limits::default(),
            digests: None,
        }
    }
}

impl Default for DirsOptions {
    fn default() -> DirsOptions {
        DirsOptions::new()
    }
}

/// Reason why a directory, and with it each one above it, cannot be compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Obstacle {
    /// It, or something in it, could not be read, or changed while it was.
    Unreadable,
    /// It was changed after it had been listed.
    Changed,
    /// Something is mounted in it.
    Mount,
    /// There is a FIFO, a socket or a device in it.
    Special,
    /// A file in it was deleted already, and goes when it is closed, or is one that is not finished.
    Temporary,
    /// A link that was followed leads to an entry that is listed elsewhere.
    Elsewhere,
}

impl Obstacle {
    /// Returns a few words that fit after the directory's path and a colon.
    pub fn text(self) -> &'static str {
        match self {
            Obstacle::Unreadable => "not all of it could be read",
            Obstacle::Changed => "changed meanwhile",
            Obstacle::Mount => "something is mounted in it",
            Obstacle::Special => "it has a FIFO, a socket or a device",
            Obstacle::Temporary => "it has a temporary file, or one that is deleted already",
            Obstacle::Elsewhere => "it has a link to what is listed elsewhere",
        }
    }

    /// Returns true for a failure, which the user could not expect.
    pub fn is_failure(self) -> bool {
        matches!(self, Obstacle::Unreadable | Obstacle::Changed)
    }
}

/// Directories with equal contents.
#[derive(Clone, Debug)]
pub struct DirGroup {
    /// Directories of references first, then in order of paths.
    pub dirs: Vec<DirId>,
    /// Files below each of them.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries in all of them that filters left out.
    pub filtered: u64,
    /// Bytes of disk that are freed if all but the first go.
    pub wasted: u64,
    /// The digest of the content, if it was asked for.
    pub digest: Option<Digest>,
}

/// Result of the search for directories.
#[derive(Debug, Default)]
pub struct Directories {
    /// Equal directories: those that free most first, then by size, files and paths. Groups that
    /// follow from the equality of larger ones are left out.
    pub groups: Vec<DirGroup>,
    /// The groups of the search, by number, that those of directories do not cover.
    pub files: Vec<u32>,
    /// Directories that are wholly in another one: largest first.
    pub contained: Vec<Contained>,
    /// Directories with much in common: most shared bytes first.
    pub similar: Vec<Similar>,
    /// Directories that cannot be compared for a reason of their own, in order of paths. Nor can
    /// those above them.
    pub obstacles: Vec<(DirId, Obstacle)>,
    /// Names of files that are roots and were also met in a directory: reported there.
    pub repeated: HashSet<EntryId>,
    /// Number of all directories that cannot be compared.
    pub not_comparable: u64,
    /// Directories of which it was not tried, or not wholly, whether they are contained in or
    /// similar to another one, as their contents are in too many places.
    pub too_common: u64,
    /// Directories for which that search ended after as many others as are tried.
    pub ended: u64,
    /// Errors of this search, without those of the walk and of the search for files.
    pub errors: Vec<Error>,
    /// True if this or the search was cancelled: then something may be missing.
    pub cancelled: bool,
}

/// Returns the bytes of memory that the search and its results take for the listing and the state
/// of its entries, at most.
pub fn dirs_memory(listing: &Listing) -> u64 {
    // Numbers of contents, the order by directories, and the places of contents.
    const STATE: usize = 20;
    crate::scan::scan_memory(listing) + (listing.len() * STATE) as u64
}
