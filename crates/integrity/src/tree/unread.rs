//! Parts of either side that could not be read: directories, below which entries may exist all the
//! same; and of a walk, paths that are known only by name, and entries with an error.

use std::collections::BTreeMap;

use bc_manifest::Failure;
use bc_manifest::integrity::{Kind, ROOT, path_order};
use bc_walk::EntryId;

use super::Tree;
use crate::entry_ref::EntryRef;
use crate::judge::describe;
use crate::tree::attributes;

/// A directory that could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UnreadDir<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) failure: &'a Failure,
}

impl UnreadDir<'_> {
    /// Returns the reason for a path below it.
    pub(crate) fn reason(&self) -> String {
        let dir = bc_fs::escape(self.path);
        format!("in {dir}: {}", describe(self.failure))
    }
}

/// Unread directories of one side, by path, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct UnreadDirs(BTreeMap<Vec<u8>, Failure>);

impl UnreadDirs {
    /// Adds a directory. Of one path the first reason is kept.
    pub(crate) fn add(&mut self, path: &[u8], failure: &Failure) {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_vec(), failure.clone());
        }
    }

    /// Takes the next entry of a manifest, which may be such a directory.
    pub(crate) fn see(&mut self, path: &[u8], entry: &EntryRef<'_>) {
        let Some(failure) = entry.error else {
            return;
        };
        // A path that could not even be looked at may have been a directory.
        let is_dir = entry.kind == Kind::Dir || entry.mode.is_none();
        if is_dir && failure.op != attributes::OPERATION {
            self.add(path, failure);
        }
    }

    /// Returns the outermost such directory above a path.
    pub(crate) fn above(&self, path: &[u8]) -> Option<UnreadDir<'_>> {
        // Nearly always there is none at all.
        if self.0.is_empty() {
            return None;
        }
        let root = self.0.get_key_value(ROOT);
        let slashes = memchr::memchr_iter(b'/', path);
        let mut dirs = slashes.filter_map(|slash| self.0.get_key_value(&path[..slash]));
        let (path, failure) = root.or_else(|| dirs.next())?;
        Some(UnreadDir { path, failure })
    }
}

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

#[cfg(test)]
mod tests {
    use bc_manifest::integrity::Entry;

    use super::*;

    fn failure(op: &str) -> Failure {
        Failure {
            op: op.to_owned(),
            errno: None,
            message: "no".to_owned(),
        }
    }

    #[test]
    fn what_lies_below_is_known() {
        let mut unread = UnreadDirs::default();
        assert_eq!(unread.above(b"a/b"), None);
        unread.add(b"a", &failure("open"));
        unread.add(b"a/b", &failure("stat"));
        for below in ["a/b", "a/b/c", "a/c"] {
            let dir = unread.above(below.as_bytes()).unwrap();
            let found = (&dir.failure.op[..], dir.path);
            assert_eq!(found, ("open", &b"a"[..]), "{below}");
        }
        for beside in ["a", "a-b", "a-b/c", "aa/b", "b/a/c"] {
            assert_eq!(unread.above(beside.as_bytes()), None, "{beside}");
        }
        unread.add(ROOT, &failure("readdir"));
        assert_eq!(unread.above(b"b").unwrap().path, ROOT);
    }

    #[test]
    fn entries_without_a_listing() {
        let of = |kind: Kind, op: &str, has_meta: bool| {
            let mut entry = Entry::new(b"d".to_vec(), kind);
            entry.meta = has_meta.then(Default::default);
            entry.error = Some(failure(op));
            let mut unread = UnreadDirs::default();
            unread.see(&entry.path, &EntryRef::from(&entry));
            unread.above(b"d/x").is_some()
        };
        assert!(of(Kind::Dir, "open", true));
        // Not even the kind is known.
        assert!(of(Kind::File, "stat", false));
        assert!(!of(Kind::File, "open", true));
        assert!(!of(Kind::File, crate::entry_ref::IMPORTED, false));
        // Its attributes could not be read, its names could.
        assert!(!of(Kind::Dir, attributes::OPERATION, true));
    }
}
