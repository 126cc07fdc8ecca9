//! Options, events and results of a restore.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use bc_fs::PathError;
use bc_integrity::{ManifestFile, RootCheck};
use bc_walk::OwnFile;

/// Loss of a recorded file.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loss {
    /// Its content differs behind the same size and time, or the medium cannot give it.
    Damaged,
    /// It is gone.
    Removed,
    /// It was edited, as far as size and time show.
    Modified,
}

impl Loss {
    /// All variants.
    pub const ALL: [Loss; 3] = [Loss::Damaged, Loss::Removed, Loss::Modified];

    /// Returns `damaged`, `removed` or `modified`.
    pub const fn name(self) -> &'static str {
        match self {
            Loss::Damaged => "damaged",
            Loss::Removed => "removed",
            Loss::Modified => "modified",
        }
    }
}

/// Place of a parity directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ParityPlace {
    /// The user named it: what is wrong with it is an error.
    Named(PathBuf),
    /// It may lie here: it is opened only if something is left that no copy holds, and what is wrong
    /// with it is a warning.
    Beside(PathBuf),
}

impl ParityPlace {
    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        match self {
            ParityPlace::Named(dir) | ParityPlace::Beside(dir) => dir,
        }
    }
}

/// Options of a restore.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreOptions<'a> {
    /// The tree to repair.
    pub root: &'a OsStr,
    /// Its manifest, which must be sound.
    pub manifest: &'a ManifestFile,
    /// Trees, or single files, that may hold the lost contents. They may hold the tree itself, or
    /// lie in it.
    pub from: Vec<OsString>,
    /// Parity directory of the manifest: asked for what no copy holds.
    pub parity: Option<ParityPlace>,
    /// Files that the manifest does not list any more, and whose content is still in parity, are
    /// restored, too: those at or below these paths below the root, or all if there are none.
    pub removed: Option<Vec<PathBuf>>,
    /// True if of a file that parity cannot restore whole the rest is put beside it, under a second
    /// name.
    pub partial: bool,
    /// Bytes of memory that parity may use, if there is a limit.
    pub memory: Option<u64>,
    /// Losses that are repaired; moved files are not.
    pub only: Vec<Loss>,
    /// True if damaged files are not kept under a second name.
    pub discard_damaged: bool,
    /// True if owner, mode, attributes and links are taken from the manifest even if others may
    /// have written it.
    pub trust_metadata: bool,
    /// True if nothing is written, only reported.
    pub dry_run: bool,
    /// Directory of the journal of stages, so that the next run can remove those of a killed one;
    /// `None`: no journal, and they stay.
    pub state: Option<PathBuf>,
    /// Treatment of a root, or a disk below it, that looks unmounted, or of a root that has nothing
    /// at all of what is recorded.
    pub root_check: RootCheck,
    /// Files that are not reported: those that the caller writes to.
    pub leave_out: &'a [OwnFile],
}

impl<'a> RestoreOptions<'a> {
    /// Repairs damaged and removed files in `root`, as recorded in `manifest`; without sources yet.
    pub fn new<P: AsRef<Path> + ?Sized>(
        root: &'a P,
        manifest: &'a ManifestFile,
    ) -> RestoreOptions<'a> {
        RestoreOptions {
            root: root.as_ref().as_os_str(),
            manifest,
            from: Vec::new(),
            parity: None,
            removed: None,
            partial: false,
            memory: None,
            only: vec![Loss::Damaged, Loss::Removed],
            discard_damaged: false,
            trust_metadata: false,
            dry_run: false,
            state: None,
            root_check: RootCheck::default(),
            leave_out: &[],
        }
    }
}

/// A path that is as recorded again, or would be.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Repaired<'a> {
    /// Path below the root.
    pub path: &'a [u8],
    /// Loss that it had.
    pub loss: Loss,
    /// The copy that its content is from, as it is shown. Directories and links have none.
    pub from: Option<&'a [u8]>,
    /// The name, below the root, that it was made another name of.
    pub linked: Option<&'a [u8]>,
    /// The name, below the root, that the replaced file has now.
    pub kept: Option<&'a [u8]>,
}

/// Event of a restore. Paths are those of the manifest, below the root, and outcomes come in their
/// order.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RestoreEvent<'a> {
    /// A part of the work begins: its name and its amount.
    Begins {
        /// `restore`, `search` or `parity`.
        what: &'static str,
        /// Number of files; 0 where it is not known.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A path is as recorded again, or would be.
    Repaired(&'a Repaired<'a>),
    /// A path is not restored, since no copy has its content.
    Missing {
        /// The path.
        path: &'a [u8],
        /// Its loss.
        loss: Loss,
        /// The reason, in words.
        why: &'a str,
    },
    /// A path is not restored, since an operation failed, or the file changed meanwhile.
    Failed {
        /// The path.
        path: &'a [u8],
        /// Its loss.
        loss: Loss,
        /// The failure.
        error: &'a bc_walk::Error,
    },
    /// A path that could not be looked at: it is not known whether it, or anything below it, is
    /// lost.
    Unread(&'a PathError),
    /// A path could not be given some of its recorded metadata.
    Incomplete(&'a bc_walk::Error),
    /// A copy, or a part of it, that could not be read: another one may do.
    Unreadable(&'a bc_walk::Error),
    /// A part of a file that parity cannot restore whole was put beside it, or would be.
    Partial {
        /// The path of the file.
        path: &'a [u8],
        /// The name, below the root, that the part has.
        part: &'a [u8],
    },
    /// Warning for the user about a path: the tree, a copy, the manifest or the journal.
    Warning {
        /// The path, as it is shown.
        path: &'a [u8],
        /// Operation that it is about: `open`, `read`, `write` …
        operation: &'a str,
        /// The warning, in words.
        why: &'a str,
    },
}

/// Receiver of events, called by any thread.
pub type RestoreObserver<'a> = dyn Fn(RestoreEvent<'_>) + Sync + 'a;

/// Result of a restore.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Restored {
    /// Paths that were to be repaired: repaired, missing, failed and left ones.
    pub wanted: u64,
    /// As recorded again, or would be.
    pub repaired: u64,
    /// Paths that no copy could restore.
    pub missing: u64,
    /// Number of those missing that were left for another reason than that no copy has their
    /// content.
    pub withheld: u64,
    /// Paths that failed, or changed meanwhile.
    pub failed: u64,
    /// Not started: the run was interrupted, or the tree takes no more.
    pub left: u64,
    /// Paths that differ in another way, and were left as they are.
    pub others: u64,
    /// Paths whose metadata alone differs, apart from inode numbers and the times of directories.
    /// It was left as it is.
    pub metadata: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes of the files that are left or failed.
    pub bytes_left: u64,
    /// Reason for which the rest was not begun, where the tree takes no more.
    pub stopped: Option<String>,
    /// Metadata that could not be given.
    pub incomplete: u64,
    /// Totals of verifying the tree.
    pub verified: bc_hash::Totals,
}
