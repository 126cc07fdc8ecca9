//! Filters of a walk and their reasons: each filter has its decision and its counter here, for
//! entries of directories and for roots that are files alike.

use bc_fs::mount::Traits;

use crate::ignores::Ignores;
use crate::{
    BasicStat, Entries, FileKind, FileSystems, Hidden, Identity, Metadata, OwnFile, Stamp,
    WalkOptions,
};

/// Makes the reasons and their counters of one table.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident: $counter:ident,)+) => {
        /// Counts of the entries that a walk left out, by reason, and of those that it met again.
        #[derive(Clone, Debug, Default, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct Skipped {
            $($(#[doc = $doc])+ pub $counter: u64,)+
        }

        /// Reason why an entry was left out: each has its counter in [`Skipped`].
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum SkipReason {
            $($(#[doc = $doc])+ $reason,)+
        }

        impl SkipReason {
            /// All reasons.
            pub const ALL: [SkipReason; [$(stringify!($reason)),+].len()] =
                [$(SkipReason::$reason),+];

            /// Returns the name of its counter.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SkipReason::$reason => stringify!($counter),)+
                }
            }
        }

        impl Skipped {
            /// Returns the number of entries that were left out for this reason.
            pub fn of(&self, reason: SkipReason) -> u64 {
                match reason {
                    $(SkipReason::$reason => self.$counter,)+
                }
            }

            pub(crate) fn counter(&mut self, reason: SkipReason) -> &mut u64 {
                match reason {
                    $(SkipReason::$reason => &mut self.$counter,)+
                }
            }
        }
    };
}

reasons! {
    /// Files and directories whose names start with a dot, when those are not wanted.
    Hidden: hidden,
    /// Files and directories that match an exclude pattern.
    Excluded: excluded,
    /// Files that match no include pattern.
    NotIncluded: not_included,
    /// Files below the smallest size.
    TooSmall: too_small,
    /// Files above the largest size.
    TooLarge: too_large,
    /// Files modified too long ago.
    TooOld: too_old,
    /// Files modified too recently.
    TooNew: too_new,
    /// Symbolic links that were not followed, and broken ones.
    Symlink: symlinks,
    /// FIFOs, sockets and devices.
    Special: special,
    /// Directories on another file system than their root.
    OtherFileSystem: other_file_system,
    /// Directories where a pseudo file system is mounted.
    PseudoFileSystem: pseudo_file_system,
    /// Files and directories that an ignore file names.
    Ignored: ignored,
    /// Directories and files met again: through another root, a bind mount or a link.
    Repeated: repeated,
    /// Files that the options exclude by identity, not by name: those that the program itself
    /// writes to.
    LeftOut: left_out,
    /// Directories not entered because of the maximal depth.
    TooDeep: too_deep,
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
    /// Entries that filters left out: by name, pattern, size, time, ignore file or depth, or because the
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
        SkipReason::ALL.map(|reason| self.of(reason)).iter().sum()
    }

    /// Returns the number of entries left out by filters that the user asked for.
    pub(crate) fn filtered(&self) -> u64 {
        self.hidden
            + self.excluded
            + self.not_included
            + self.too_small
            + self.too_large
            + self.too_old
            + self.too_new
            + self.ignored
            + self.left_out
            + self.too_deep
    }

    /// Adds the counts of another walk.
    pub fn add(&mut self, other: &Skipped) {
        for reason in SkipReason::ALL {
            *self.counter(reason) += other.of(reason);
        }
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
    /// [`filter_stamp`](Self::filter_stamp). `ino` is its number if its directory lists that.
    #[inline]
    pub(crate) fn filters_by_stat(&self, ino: Option<u64>) -> bool {
        let may_be = |own: &OwnFile| ino.is_none_or(|ino| own.id().ino == ino);
        self.min_size > 0
            || self.max_size.is_some()
            || self.newer.is_some()
            || self.older.is_some()
            || self.leave_out.iter().any(may_be)
    }

    /// Returns what is asked of a file: the metadata that are wanted, and those that filters need.
    pub(crate) fn stat_level(&self) -> Metadata {
        match self.newer.is_some() || self.older.is_some() {
            true => self.metadata.max(Metadata::Basic),
            false => self.metadata,
        }
    }

    /// Filters by identity; the path of the file and its state are asked for where its number may be
    /// another file's.
    pub(crate) fn filter_identity(
        &self,
        id: Identity,
        kernel_path: impl Fn() -> Option<Vec<u8>>,
        state: impl Fn() -> Option<BasicStat>,
    ) -> Option<SkipReason> {
        let is_own = |own: &OwnFile| own.is(id, &kernel_path, &state);
        let is_left_out = self.leave_out.iter().any(is_own);
        is_left_out.then_some(SkipReason::LeftOut)
    }

    /// Filters by a file's size and its time of modification.
    pub(crate) fn filter_stamp(&self, stamp: &Stamp) -> Option<SkipReason> {
        let modified = stamp.mtime_ns;
        if stamp.size < self.min_size {
            return Some(SkipReason::TooSmall);
        }
        if self.max_size.is_some_and(|most| stamp.size > most) {
            return Some(SkipReason::TooLarge);
        }
        if self.newer.is_some_and(|bound| modified <= bound) {
            return Some(SkipReason::TooOld);
        }
        let is_too_new = self.older.is_some_and(|bound| modified >= bound);
        is_too_new.then_some(SkipReason::TooNew)
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
