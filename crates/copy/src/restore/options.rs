//! What is to be healed, from where, and what is told of it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use bc_integrity::{ManifestFile, RootCheck};
use bc_pool::WorkerPanic;
use bc_walk::OwnFile;

use crate::error::Error;

/// What may have become of a recorded file.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Loss {
    /// Its content differs behind the same size and time, or the medium cannot give it.
    Damaged,
    /// It is gone.
    Removed,
    /// It was edited, as far as size and time tell.
    Modified,
}

impl Loss {
    /// All of them.
    pub const ALL: [Loss; 3] = [Loss::Damaged, Loss::Removed, Loss::Modified];

    /// `damaged`, `removed` or `modified`.
    pub const fn name(self) -> &'static str {
        match self {
            Loss::Damaged => "damaged",
            Loss::Removed => "removed",
            Loss::Modified => "modified",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreOptions<'a> {
    /// The tree to heal.
    pub root: &'a OsStr,
    /// Its manifest, which must be sound.
    pub manifest: &'a ManifestFile,
    /// Trees, or single files, that may hold what is wanted. They may hold the tree itself, or lie
    /// in it.
    pub from: Vec<OsString>,
    /// What is healed; of what is moved, nothing is.
    pub only: Vec<Loss>,
    /// Whether what is damaged is not kept under a second name.
    pub discard_damaged: bool,
    /// Whether owner, mode, attributes and links are taken from the manifest even if others may
    /// have written it.
    pub trust_metadata: bool,
    /// Whether nothing is written, only told.
    pub dry_run: bool,
    /// Where it is kept which stages a run has made, so that the next one can remove what is left
    /// of one that was killed; `None`: nowhere, and it stays.
    pub state: Option<PathBuf>,
    /// What to do where the root, or a disk below it, looks unmounted, or the root has nothing at
    /// all of what is recorded.
    pub root_check: RootCheck,
    /// Files of which nothing is said: those that the caller writes to.
    pub leave_out: &'a [OwnFile],
}

impl<'a> RestoreOptions<'a> {
    /// Heals what is damaged or removed in `root`, as `manifest` has it; from nowhere yet.
    pub fn new<P: AsRef<Path> + ?Sized>(
        root: &'a P,
        manifest: &'a ManifestFile,
    ) -> RestoreOptions<'a> {
        RestoreOptions {
            root: root.as_ref().as_os_str(),
            manifest,
            from: Vec::new(),
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
pub struct Mended<'a> {
    /// Below the root.
    pub path: &'a [u8],
    /// What had become of it.
    pub loss: Loss,
    /// The copy that its content is from, as it is shown. Directories and links have none.
    pub from: Option<&'a [u8]>,
    /// The name, below the root, that it was made another name of.
    pub linked: Option<&'a [u8]>,
    /// The name, below the root, that what was there has now.
    pub kept: Option<&'a [u8]>,
}

/// Something that happened. Paths are those of the manifest, below the root.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RestoreEvent<'a> {
    /// A part of the work begins: its name, and what there is to do; 0 where that is not known.
    Begins {
        /// `restore` or `search`.
        what: &'static str,
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A path is as recorded again, or would be.
    Mended(&'a Mended<'a>),
    /// A path is not, since nothing holds what is wanted.
    Missing {
        /// The path.
        path: &'a [u8],
        /// What has become of it.
        loss: Loss,
        /// Why nothing does, in words.
        why: &'static str,
    },
    /// A path is not, since something failed, or changed meanwhile.
    Failed {
        /// The path.
        path: &'a [u8],
        /// What has become of it.
        loss: Loss,
        /// What failed.
        error: &'a bc_walk::Error,
    },
    /// What could not be looked at: whether it, or what is below it, is lost, is not known.
    Unread {
        /// The path.
        path: &'a [u8],
        /// What failed.
        failure: &'a bc_manifest::Failure,
    },
    /// A path could not be given something that is recorded of it.
    Incomplete(&'a bc_walk::Error),
    /// Something that is no failure of a path, and that the user should know.
    Warning(&'a str),
}

/// Who is told, by any thread.
pub type RestoreObserver<'a> = dyn Fn(RestoreEvent<'_>) + Sync + 'a;

/// What it came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Restored {
    /// Paths that were to be healed: the sum of the next four.
    pub wanted: u64,
    /// As recorded again, or would be.
    pub mended: u64,
    /// What no copy holds.
    pub missing: u64,
    /// What failed, or changed meanwhile.
    pub failed: u64,
    /// Not begun: the run was interrupted, or the tree takes no more.
    pub left: u64,
    /// Paths that differ in another way, and were left as they are.
    pub others: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes of the files that are left or failed.
    pub bytes_left: u64,
    /// Why the rest was not begun, where the tree takes no more.
    pub stopped: Option<String>,
    /// Properties that could not be given.
    pub incomplete: u64,
    /// What was read to verify the tree.
    pub verified: bc_hash::Totals,
}

/// Why nothing could be healed at all.
#[derive(Debug)]
pub enum RestoreError {
    /// The tree could not be verified: a guard, or the manifest.
    Verify(bc_integrity::Error),
    /// Something else that all of it needs.
    Restore(Error),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Verify(error) => error.fmt(f),
            RestoreError::Restore(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<bc_integrity::Error> for RestoreError {
    fn from(error: bc_integrity::Error) -> RestoreError {
        RestoreError::Verify(error)
    }
}

impl From<Error> for RestoreError {
    fn from(error: Error) -> RestoreError {
        RestoreError::Restore(error)
    }
}

impl From<bc_hash::Error> for RestoreError {
    fn from(error: bc_hash::Error) -> RestoreError {
        RestoreError::Verify(bc_integrity::Error::from(error))
    }
}

impl From<WorkerPanic> for RestoreError {
    fn from(panic: WorkerPanic) -> RestoreError {
        RestoreError::Restore(Error::from(panic))
    }
}
