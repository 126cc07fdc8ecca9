//! Filters of a walk and their reasons: each filter has its decision and its counter here, for
//! entries of directories and for roots that are files alike.

use bc_fs::mount::Traits;

use crate::ignores::Ignores;
use crate::{BasicStat, Entries, FileKind, FileSystems, Hidden, Identity, OwnFile, WalkOptions};

/// Counts of the entries that a walk left out, by reason, and of those that it met again.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Skipped {
    /// Files and directories whose names start with a dot, when those are not wanted.
    pub hidden: u64,
    /// Files and directories that match an exclude pattern.
    pub excluded: u64,
    /// Files that match no include pattern.
    pub not_included: u64,
    /// Files below the smallest size.
    pub too_small: u64,
    /// Files above the largest size.
    pub too_large: u64,
    /// Symbolic links that were not followed, and broken ones.
    pub symlinks: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// Directories on another file system than their root.
    pub other_file_system: u64,
    /// Directories where a pseudo file system is mounted.
    pub pseudo_file_system: u64,
    /// Files and directories that an ignore file names.
    pub ignored: u64,
    /// Directories and files met again: through another root, a bind mount or a link.
    pub repeated: u64,
    /// Files that the options exclude by identity, not by name: those that the program itself
    /// writes to.
    pub left_out: u64,
    /// Directories not entered because of the maximal depth.
    pub too_deep: u64,
}

/// Reason why an entry was left out: each has its counter in [`Skipped`].
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum SkipReason {
    /// See [`Skipped::hidden`].
    Hidden,
    /// See [`Skipped::excluded`].
    Excluded,
    /// See [`Skipped::not_included`].
    NotIncluded,
    /// See [`Skipped::too_small`].
    TooSmall,
    /// See [`Skipped::too_large`].
    TooLarge,
    /// See [`Skipped::symlinks`].
    Symlink,
    /// See [`Skipped::special`].
    Special,
    /// See [`Skipped::other_file_system`].
    OtherFileSystem,
    /// See [`Skipped::pseudo_file_system`].
    PseudoFileSystem,
    /// See [`Skipped::ignored`].
    Ignored,
    /// See [`Skipped::repeated`].
    Repeated,
    /// See [`Skipped::left_out`].
    LeftOut,
    /// See [`Skipped::too_deep`].
    TooDeep,
}

/// One path that was left out.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SkippedPath {
    /// The path as it would have been listed.
    pub path: Vec<u8>,
    /// Reason why it was left out.
    pub reason: SkipReason,
}

/// Entries that are missing in the listing of one directory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Gap {
    /// Entries that filters left out: by name, pattern, size, ignore file or depth, or because the
    /// options leave them out. A directory counts as one.
    pub filtered: u64,
    /// True if reading it, or asking for one of its entries, failed.
    pub failed: bool,
}

impl Skipped {
    /// Counts an entry that is left out, if there is a reason; returns whether there is.
    #[inline]
    pub(crate) fn count(&mut self, reason: Option<SkipReason>) -> bool {
        if let Some(reason) = reason {
            *self.counter(reason) += 1;
        }
        reason.is_some()
    }

    /// Returns the sum of all counters, repeated entries included.
    pub fn total(&self) -> u64 {
        let not_asked_for = self.symlinks
            + self.special
            + self.other_file_system
            + self.pseudo_file_system
            + self.repeated;
        self.filtered() + not_asked_for
    }

    /// Returns the number of entries left out by filters that the user asked for.
    pub(crate) fn filtered(&self) -> u64 {
        self.hidden
            + self.excluded
            + self.not_included
            + self.too_small
            + self.too_large
            + self.ignored
            + self.left_out
            + self.too_deep
    }

    pub(crate) fn counter(&mut self, reason: SkipReason) -> &mut u64 {
        match reason {
            SkipReason::Hidden => &mut self.hidden,
            SkipReason::Excluded => &mut self.excluded,
            SkipReason::NotIncluded => &mut self.not_included,
            SkipReason::TooSmall => &mut self.too_small,
            SkipReason::TooLarge => &mut self.too_large,
            SkipReason::Symlink => &mut self.symlinks,
            SkipReason::Special => &mut self.special,
            SkipReason::OtherFileSystem => &mut self.other_file_system,
            SkipReason::PseudoFileSystem => &mut self.pseudo_file_system,
            SkipReason::Ignored => &mut self.ignored,
            SkipReason::Repeated => &mut self.repeated,
            SkipReason::LeftOut => &mut self.left_out,
            SkipReason::TooDeep => &mut self.too_deep,
        }
    }

    /// Adds the counts of another walk.
    pub fn add(&mut self, other: &Skipped) {
        self.hidden += other.hidden;
        self.excluded += other.excluded;
        self.not_included += other.not_included;
        self.too_small += other.too_small;
        self.too_large += other.too_large;
        self.symlinks += other.symlinks;
        self.special += other.special;
        self.other_file_system += other.other_file_system;
        self.pseudo_file_system += other.pseudo_file_system;
        self.ignored += other.ignored;
        self.repeated += other.repeated;
        self.left_out += other.left_out;
        self.too_deep += other.too_deep;
    }
}

/// Filters, each of which returns the reason to leave an entry out, if there is one. Those about
/// entries are in the order in which a directory asks them, from cheap to expensive.
impl WalkOptions {
    /// Filters by an entry's name.
    #[inline]
    pub(crate) fn filter_name(&self, name: &[u8]) -> Option<SkipReason> {
        let is_hidden = self.hidden == Hidden::Skip && name.starts_with(b".");
        is_hidden.then_some(SkipReason::Hidden)
    }

    /// True if a path has to be made for [`filter_path`](Self::filter_path).
    #[inline]
    pub(crate) fn has_patterns(&self) -> bool {
        !self.exclude.is_empty() || !self.include.is_empty() || self.only.is_some()
    }

    /// Filters by the path below the root, and by the ignore files on the way to it.
    pub(crate) fn filter_path(
        &self,
        path: &[u8],
        kind: FileKind,
        ignores: Option<&Ignores>,
    ) -> Option<SkipReason> {
        let is_excluded = match kind {
            FileKind::Dir => self.exclude.matches_directory(path),
            _ => self.exclude.matches_file(path),
        };
        if is_excluded {
            return Some(SkipReason::Excluded);
        }
        if ignores.is_some_and(|ignores| ignores.ignores(path, kind)) {
            return Some(SkipReason::Ignored);
        }
        if let Some(only) = &self.only {
            // Nothing but a directory leads on.
            let is_asked_for = match kind {
                FileKind::Dir => only.admits(path),
                _ => only.asks_for(path),
            };
            if !is_asked_for {
                return Some(SkipReason::NotIncluded);
            }
        }
        let has_to_match = kind == FileKind::File && !self.include.is_empty();
        if has_to_match && !self.include.matches_file(path) {
            return Some(SkipReason::NotIncluded);
        }
        None
    }

    /// Filters by kind.
    #[inline]
    pub(crate) fn filter_kind(&self, kind: FileKind) -> Option<SkipReason> {
        match kind {
            _ if self.entries == Entries::All => None,
            FileKind::File | FileKind::Dir => None,
            FileKind::Symlink => Some(SkipReason::Symlink),
            FileKind::Fifo | FileKind::Socket | FileKind::Block | FileKind::Char => {
                Some(SkipReason::Special)
            }
        }
    }

    /// True if a file has to be looked at for [`filter_identity`](Self::filter_identity) or
    /// [`filter_size`](Self::filter_size). `ino` is its number if its directory lists that.
    #[inline]
    pub(crate) fn filters_by_stat(&self, ino: Option<u64>) -> bool {
        let may_be = |own: &OwnFile| ino.is_none_or(|ino| own.id().ino == ino);
        self.min_size > 0 || self.max_size.is_some() || self.leave_out.iter().any(may_be)
    }

    /// Filters by identity; the way to the file and its state are asked for where its number may be
    /// another file's.
    pub(crate) fn filter_identity(
        &self,
        id: Identity,
        way: impl Fn() -> Option<Vec<u8>>,
        state: impl Fn() -> Option<BasicStat>,
    ) -> Option<SkipReason> {
        let is_own = |own: &OwnFile| own.is(id, &way, &state);
        let is_left_out = self.leave_out.iter().any(is_own);
        is_left_out.then_some(SkipReason::LeftOut)
    }

    /// Filters by a file's size in bytes.
    pub(crate) fn filter_size(&self, size: u64) -> Option<SkipReason> {
        if size < self.min_size {
            return Some(SkipReason::TooSmall);
        }
        let is_too_large = self.max_size.is_some_and(|most| size > most);
        is_too_large.then_some(SkipReason::TooLarge)
    }

    /// Filters by depth: the levels below its root of a directory that would be read.
    pub(crate) fn filter_depth(&self, depth: u32) -> Option<SkipReason> {
        let is_too_deep = self.max_depth.is_some_and(|most| depth >= most);
        is_too_deep.then_some(SkipReason::TooDeep)
    }

    /// Filters by the path of a directory, where everything in it is left out. Empty without
    /// [patterns](Self::has_patterns).
    pub(crate) fn filter_contents(&self, path: &[u8]) -> Option<SkipReason> {
        let are_excluded = !self.exclude.is_empty() && self.exclude.matches_contents(path);
        are_excluded.then_some(SkipReason::Excluded)
    }

    /// Filters by the file system of a directory, whose device is `dev`, below a root on
    /// `root_dev`.
    pub(crate) fn filter_file_system(
        &self,
        dev: u64,
        root_dev: Option<u64>,
        traits: &Traits,
    ) -> Option<SkipReason> {
        if Some(dev) == root_dev {
            return None;
        }
        if self.file_systems == FileSystems::One {
            return Some(SkipReason::OtherFileSystem);
        }
        traits.pseudo.then_some(SkipReason::PseudoFileSystem)
    }
}
