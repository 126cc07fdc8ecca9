//! State shared by the workers of a walk: its roots, and the directories to watch for.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bc_fs::mount::Traits;
use bc_pool::Cancel;

use crate::columns::{AttributeClass, Classes};
use crate::fd::Opener;
use crate::ignores::Ignores;
use crate::kept::KeptDirs;
use crate::listing::PathPrefix;
use crate::places::{Places, join};
use crate::{Identity, WalkOptions};

/// A directory from which a walk begins and within which neither device nor mount changes: a
/// root, a mount point or the target of a followed link.
#[derive(Debug)]
pub(crate) struct WalkRoot {
    pub(crate) prefix: u32,
    /// Path below the prefix, without a closing slash; empty for a root.
    pub(crate) path: Vec<u8>,
    pub(crate) ticket: u32,
    pub(crate) depth: u32,
    pub(crate) id: Identity,
    pub(crate) traits: Traits,
    /// Way to it, where numbers do not distinguish directories.
    pub(crate) way: Option<Vec<u8>>,
    pub(crate) ignores: Option<Arc<Ignores>>,
}

impl WalkRoot {
    /// Returns the way to an entry below, where numbers are ambiguous: no link and no mount comes
    /// between.
    pub(crate) fn way_to(&self, below: &[&[u8]]) -> Option<Vec<u8>> {
        self.way.as_ref().map(|way| join(way, below))
    }
}

/// A directory to read.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) walk_root: u32,
    /// The walk root's descriptor; `None`: this is the walk root, not opened yet.
    pub(crate) fd: Option<Arc<OwnedFd>>,
    /// Path below the walk root, without a closing slash; empty for the walk root itself.
    pub(crate) path: Vec<u8>,
    pub(crate) ticket: u32,
    pub(crate) depth: u32,
    /// Inode number, from its parent's entry for it.
    pub(crate) ino: u64,
    pub(crate) ignores: Option<Arc<Ignores>>,
}

/// Names of roots that are files, by the directory they are in.
pub(crate) type Listed = Places<HashSet<Vec<u8>>>;

/// Shared state that does not change while workers run.
pub(crate) struct Context<'w> {
    pub(crate) options: &'w WalkOptions,
    pub(crate) cancel: &'w Cancel,
    pub(crate) opener: &'w Opener,
    pub(crate) kept: &'w KeptDirs,
    pub(crate) prefixes: &'w [PathPrefix],
    pub(crate) walk_roots: &'w [WalkRoot],
    /// All walk roots: a worker that meets one on the way down leaves it to that walk root. Two
    /// walks can only overlap from one's walk root downwards, so nothing else need be remembered.
    pub(crate) walk_root_places: &'w Places<()>,
    /// The roots, if there are several and directories are listed: a worker that meets one on the
    /// way does not list it again.
    pub(crate) inner_roots: &'w Places<()>,
    pub(crate) listed: &'w Listed,
    /// Inode numbers of directories whose identity matters; all others need no `fstat`.
    pub(crate) watched: &'w HashSet<u64>,
    pub(crate) shared: &'w SharedTree,
}

/// Shared state that grows while workers run.
#[derive(Debug, Default)]
pub(crate) struct SharedTree {
    tickets: AtomicU64,
    classes: Mutex<Classes>,
}

impl SharedTree {
    /// Takes numbers for `count` directories, the first of which is returned.
    ///
    /// # Panics
    ///
    /// Beyond 2^32 directories, which take more memory than this is made for.
    pub(crate) fn take_tickets(&self, count: usize) -> u32 {
        let first = self.tickets.fetch_add(count as u64, Ordering::Relaxed);
        assert!(
            first + count as u64 <= u64::from(u32::MAX),
            "more than 4294967295 directories"
        );
        first as u32
    }

    pub(crate) fn tickets(&self) -> usize {
        self.tickets.load(Ordering::Relaxed) as usize
    }

    /// Returns the number under which columns know a class.
    pub(crate) fn class_number(&self, class: AttributeClass) -> u32 {
        self.classes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .number(class)
    }

    /// Returns all classes, by number.
    pub(crate) fn into_classes(self) -> Vec<AttributeClass> {
        self.classes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_all()
    }
}
