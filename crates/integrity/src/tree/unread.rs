//! Paths that the walk could not read: those known only by name, entries with an error, and
//! directories below which nothing is known.

use std::collections::BTreeMap;

use bc_manifest::Failure;
use bc_manifest::integrity::{ROOT, path_order};
use bc_walk::EntryId;

use super::Tree;
use crate::unread::{UnreadDir, UnreadDirs};

/// Parts of a tree that could not be read.
#[derive(Default)]
pub(super) struct Unread {
    /// Entries whose directory could not be read, with the reasons.
    pub(super) failures: BTreeMap<EntryId, Failure>,
    /// Paths that the walk met and could not even stat, in path order.
    pub(super) unlisted: Vec<Unlisted>,
    /// Paths that may be directories and could not be read: everything below is unknown.
    dirs: UnreadDirs,
}

/// A path that is known only by name.
pub(crate) struct Unlisted {
    pub(crate) path: Vec<u8>,
    pub(crate) failure: Failure,
    /// Number of the entry that it comes before.
    pub(super) before: u32,
}

impl Unread {
    /// True if everything could be listed, and every directory be read.
    pub(super) fn is_empty(&self) -> bool {
        self.unlisted.is_empty() && self.failures.is_empty()
    }
}

impl Tree {
    /// Collects the walk's errors, which have paths below the printed `root`, for the listing.
    pub(super) fn find_unread(&self, root: &[u8]) -> Unread {
        let mut unread = Unread::default();
        for error in self.listing.errors() {
            let relative = relative(error.path(), root);
            let (at, path) = self.first_from(relative);
            let failure = failure(error);
            unread.dirs.add(relative, &failure);
            if path == relative {
                unread.failures.entry(at).or_insert(failure);
            } else if unread
                .unlisted
                .last()
                .is_none_or(|last| last.path != relative)
            {
                unread.unlisted.push(Unlisted {
                    path: relative.to_vec(),
                    failure,
                    before: at.0,
                });
            }
        }
        unread.unlisted.sort_by(|a, b| path_order(&a.path, &b.path));
        unread.unlisted.dedup_by(|a, b| a.path == b.path);
        unread
    }

    /// Returns the directory above a path that is not in the listing, if that could not be read.
    pub(crate) fn why_unseen(&self, path: &[u8]) -> Option<UnreadDir<'_>> {
        self.unread.dirs.above(path)
    }
}

/// Converts an error to the form that a manifest keeps.
pub(crate) fn failure(error: &bc_walk::Error) -> Failure {
    Failure {
        op: error.op().to_string(),
        errno: error.errno(),
        message: error.message(),
    }
}

/// Returns a printed path relative to the printed root.
fn relative<'a>(path: &'a [u8], root: &[u8]) -> &'a [u8] {
    match path.strip_prefix(root) {
        Some(rest) => match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => ROOT,
            rest => rest,
        },
        None => path,
    }
}
