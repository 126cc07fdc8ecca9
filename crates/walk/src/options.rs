//! Options of a walk, plain structs and enums.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Globs, OwnFile, Shard};

/// Names that start with a dot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Hidden {
    /// Listed like all others.
    #[default]
    Include,
    /// Skipped and counted. Roots are never skipped for their names.
    Skip,
}

/// Symbolic links below the roots. A root that is a link is always followed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Symlinks {
    /// Never followed.
    #[default]
    Skip,
    /// Followed; each directory is visited once, under its real place if the walk reaches
    /// that, so cycles end.
    Follow,
}

/// Directories on another file system than their root.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FileSystems {
    /// Entered, except for pseudo file systems such as proc.
    #[default]
    Cross,
    /// Not entered.
    One,
}

/// `.gitignore` and `.ignore` files inside the roots.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IgnoreFiles {
    /// Ordinary files.
    #[default]
    Off,
    /// Files and directories that match them are left out.
    Honour,
}

/// Metadata to find out about each entry.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metadata {
    /// Nothing but name and kind: no system call per file.
    #[default]
    None,
    /// [`BasicStat`](crate::BasicStat): identity, stamp, link count.
    Basic,
    /// [`FileStat`](crate::FileStat): everything.
    Full,
}

/// Source of the [`Metadata`] of regular files.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FileStats {
    /// The walk, as for all other entries.
    #[default]
    Walked,
    /// The caller that opens the files anyway, which saves a system call each:
    /// [`Listing::meta`](crate::Listing::meta) and [`stat`](crate::Listing::stat) are `None`,
    /// unless the walk had to look for another reason.
    Left,
}

/// Kinds of entries to list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Entries {
    /// Regular files.
    #[default]
    Files,
    /// Everything: directories, links and special files too, and each root directory as `.`.
    All,
}

/// A file that is named under several spellings (`a`, `./a`, `d/../a`), or more than once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Spellings {
    /// Listed once, as it was named first.
    #[default]
    Once,
    /// Listed under each of them. Equal spellings count as one.
    Each,
    /// Listed as often as it is named, in the order of the names and not of paths: for lists of
    /// files ([`list_files`](crate::list_files())) whose caller needs no other order. To sort
    /// 36,000 paths took 7 % of the time of hashing the files. A walk takes it for `Each`.
    AsNamed,
}

/// Treatment of names that lead to a file listed below another root, where all [`Entries`] are
/// listed: a directory that is a root itself, a file that was named as well.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Repeats {
    /// Left out and counted: each is listed once.
    #[default]
    Skip,
    /// Listed as entries, with nothing below them: the listing of each directory is complete.
    List,
}

/// Detail in which skipped entries are reported.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SkippedDetail {
    /// Their number for each reason.
    #[default]
    Counts,
    /// The path of each, too: [`Listing::skipped_paths`](crate::Listing::skipped_paths).
    Paths,
}

/// Paths below a root, and the directories on the way to them.
///
/// ```
/// use bc_walk::ExactPaths;
///
/// let paths = ExactPaths::new([b"a/*.jpg".to_vec()]);
/// assert_eq!(paths.iter().collect::<Vec<_>>(), [b"a/*.jpg"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExactPaths {
    wanted: HashSet<Vec<u8>>,
    on_the_way: HashSet<Vec<u8>>,
}

impl ExactPaths {
    /// Makes the set of these paths, with single slashes between their names, and none before or
    /// after.
    pub fn new(paths: impl IntoIterator<Item = Vec<u8>>) -> ExactPaths {
        let mut all = ExactPaths::default();
        for path in paths {
            for end in slashes(&path) {
                if !all.on_the_way.contains(&path[..end]) {
                    all.on_the_way.insert(path[..end].to_vec());
                }
            }
            all.wanted.insert(path);
        }
        all
    }

    /// True if this path is asked for, is in a directory that is, or leads to one.
    pub(crate) fn admits(&self, path: &[u8]) -> bool {
        self.leads_on(path) || self.asks_for(path)
    }

    /// True if this path is asked for, or is in a directory that is.
    pub(crate) fn asks_for(&self, path: &[u8]) -> bool {
        self.names(path) || slashes(path).any(|end| self.wanted.contains(&path[..end]))
    }

    /// Returns the paths that are asked for, each once, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.wanted.iter().map(Vec::as_slice)
    }

    /// True if exactly this path is asked for.
    pub(crate) fn names(&self, path: &[u8]) -> bool {
        self.wanted.contains(path)
    }

    /// True if this is a directory on the way to a path that is asked for.
    pub(crate) fn leads_on(&self, path: &[u8]) -> bool {
        self.on_the_way.contains(path)
    }
}

/// Returns the ends of the parent directories' paths: the offsets of the slashes.
pub(crate) fn slashes(path: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let bytes = path.iter().enumerate();
    bytes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}

/// Options of a walk. The default lists every regular file, hidden ones too, and follows no links.
///
/// ```
/// use bc_walk::{Globs, Hidden, WalkOptions};
///
/// let options = WalkOptions::default()
///     .hidden(Hidden::Skip)
///     .exclude(Globs::new(&["*.o", "target"])?);
/// # Ok::<(), bc_walk::GlobError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WalkOptions {
    /// Names that start with a dot.
    pub hidden: Hidden,
    /// Symbolic links below the roots.
    pub symlinks: Symlinks,
    /// Other file systems.
    pub file_systems: FileSystems,
    /// Levels below a root: 1 lists what is directly in it, 0 only roots that are files.
    pub max_depth: Option<u32>,
    /// Patterns; if there are any, only files that match one of these are listed.
    pub include: Globs,
    /// Patterns of files and directories to leave out, directories with everything in them. Wins
    /// over `include`.
    pub exclude: Globs,
    /// Paths to list, if given: only these, their contents, and the directories on the way there:
    /// by their bytes, where a pattern would have to be UTF-8. Other directories are not even read,
    /// and paths that do not exist are [`absent`](crate::Listing::absent).
    pub only: Option<Arc<ExactPaths>>,
    /// Smallest size in bytes of a file to list.
    pub min_size: u64,
    /// Largest size in bytes of a file to list.
    pub max_size: Option<u64>,
    /// Time that a file to list was modified after, in nanoseconds since 1970.
    pub newer: Option<i64>,
    /// Time that a file to list was modified before, in nanoseconds since 1970.
    pub older: Option<i64>,
    /// `.gitignore` and `.ignore` files.
    pub ignore_files: IgnoreFiles,
    /// Metadata to find out about each entry.
    pub metadata: Metadata,
    /// Source of the metadata of regular files.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub file_stats: FileStats,
    /// Kinds of entries to list.
    pub entries: Entries,
    /// Files to leave out, such as the one that the result is written to. Directories are left out,
    /// too, where entries of all kinds are listed, with their metadata.
    pub leave_out: Vec<OwnFile>,
    /// Treatment of files that are named more than once.
    pub spellings: Spellings,
    /// Treatment of files that are met again below another root.
    pub repeats: Repeats,
    /// Detail in which skipped entries are reported.
    pub skipped: SkippedDetail,
    /// Part of each tree to list, if not all of it. All names are read even so; entries of other
    /// parts are neither listed nor looked at, except where a directory does not list which entries
    /// are directories. Roots that are directories and are [listed](Entries::All) are so in every
    /// part; roots that are files are in the directory `.`.
    pub shard: Option<Shard>,
}

bc_fs::setters! {
    WalkOptions:
    hidden: Hidden,
    symlinks: Symlinks,
    file_systems: FileSystems,
    max_depth: Option<u32>,
    include: Globs,
    exclude: Globs,
    only: Option<Arc<ExactPaths>>,
    min_size: u64,
    max_size: Option<u64>,
    newer: Option<i64>,
    older: Option<i64>,
    ignore_files: IgnoreFiles,
    metadata: Metadata,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    file_stats: FileStats,
    entries: Entries,
    leave_out: Vec<OwnFile>,
    spellings: Spellings,
    repeats: Repeats,
    skipped: SkippedDetail,
    shard: Option<Shard>,
}

impl WalkOptions {
    /// Returns true if these options may leave out a regular file.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn leaves_out(&self) -> bool {
        !self.include.is_empty()
            || !self.exclude.is_empty()
            || self.hidden == Hidden::Skip
            || self.file_systems == FileSystems::One
            || self.ignore_files == IgnoreFiles::Honour
            || self.max_depth.is_some()
            || self.min_size > 0
            || self.max_size.is_some()
            || self.newer.is_some()
            || self.older.is_some()
            || self.only.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_what_is_below_and_are_no_patterns() {
        let paths = ExactPaths::new([b"a/*.jpg".to_vec()]);
        assert!(paths.admits(b"a/*.jpg") && paths.admits(b"a"));
        assert!(!paths.admits(b"a/b.jpg") && !paths.admits(b"a/*"));
        assert!(paths.asks_for(b"a/*.jpg") && !paths.asks_for(b"a"));
    }
}
