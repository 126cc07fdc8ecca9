//! Directories that could not be read: entries not listed below them may exist all the same.

use std::collections::BTreeMap;

use bc_manifest::Failure;
use bc_manifest::integrity::{Kind, ROOT};

use crate::attributes;
use crate::entry_ref::EntryRef;
use crate::judge::describe;

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
