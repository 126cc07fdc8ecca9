//! Entries of this copy in the manifest of an earlier copy to the same place.

use bc_digest::Digest;
use bc_manifest::integrity::{Header, Meta, Scope};
use bc_walk::{FileKind, FileStat};

use crate::results::{Rows, State};
use crate::stamp::Stamp;
use crate::tree::{RootItem, SourceTree};

/// Records of a tree.
pub(crate) struct TreeRecords {
    rows: Vec<Option<Row>>,
    digests: Vec<u8>,
    stride: usize,
    /// True if the manifest has more than the entries of the tree.
    pub(crate) has_others: bool,
    /// Scope of the manifest, if there is one: `None` in it is everything.
    scope: Option<Option<Scope>>,
    root: Option<Vec<u8>>,
}

/// Record of an entry at the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    meta: Meta,
    stamp: Option<Stamp>,
}

impl Row {
    pub(crate) fn new(meta: Meta, stamp: Option<Stamp>) -> Row {
        Row { meta, stamp }
    }

    /// Returns the stamp that proves that it still matches its source.
    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// True if it describes the file that is there now.
    pub(crate) fn fits(&self, now: &FileStat) -> bool {
        let Meta {
            ino,
            size,
            mtime_ns,
            ..
        } = self.meta;
        (now.id.ino, now.stamp.size, now.stamp.mtime_ns) == (ino, size, mtime_ns)
    }

    /// True if it describes the directory that is there now, whose size and time are its file
    /// system's.
    pub(crate) fn fits_dir(&self, now: &FileStat) -> bool {
        self.meta.ino == now.id.ino && self.meta.mode == now.mode
    }

    /// True if the record equals the one to be written. A directory's changed times are not its
    /// content, and those of the root have changed with its manifest.
    fn says(&self, meta: &Meta) -> bool {
        let is_dir = FileKind::from_mode(meta.mode) == FileKind::Dir;
        let ctime_ns = if is_dir {
            self.meta.ctime_ns
        } else {
            meta.ctime_ns
        };
        let size = if is_dir { self.meta.size } else { meta.size };
        self.meta
            == Meta {
                ctime_ns,
                size,
                ..*meta
            }
    }
}

impl TreeRecords {
    /// Returns no records, where there is no manifest that is carried on.
    pub(crate) const fn none() -> TreeRecords {
        TreeRecords {
            rows: Vec::new(),
            digests: Vec::new(),
            stride: 0,
            has_others: true,
            scope: None,
            root: None,
        }
    }

    /// Returns an empty set of records, for digests of `stride` bytes.
    pub(crate) fn new(
        entries: u32,
        stride: usize,
        scope: Option<Scope>,
        root: Option<Vec<u8>>,
    ) -> TreeRecords {
        TreeRecords {
            rows: vec![None; entries as usize],
            digests: vec![0; entries as usize * stride],
            stride,
            has_others: false,
            scope: Some(scope),
            root,
        }
    }

    /// Adds the record of an entry.
    pub(crate) fn put(&mut self, item: RootItem, row: Row, digest: Option<Digest>) {
        let at = item.0 as usize;
        self.rows[at] = Some(row);
        if let Some(digest) = digest
            && digest.as_bytes().len() == self.stride
        {
            self.digests[at * self.stride..][..self.stride].copy_from_slice(digest.as_bytes());
        }
    }

    /// Returns the scope of the manifest, if there is one.
    pub(crate) fn scope(&self) -> Option<&Option<Scope>> {
        self.scope.as_ref()
    }

    /// Returns the record of an entry, with the digest of a file.
    pub(crate) fn of(&self, item: RootItem) -> Option<(Row, Option<Digest>)> {
        let at = item.0 as usize;
        let row = (*self.rows.get(at)?)?;
        let digest = &self.digests[at * self.stride..][..self.stride];
        let is_set = digest.iter().any(|byte| *byte != 0);
        Some((row, is_set.then(|| Digest::from_slice(digest)).flatten()))
    }

    /// True if the existing manifest says all that this copy's would.
    pub(crate) fn is_all(&self, header: &Header, tree: &SourceTree, rows: &Rows) -> bool {
        let scope = self.scope().and_then(Option::as_ref).map(Scope::to_json);
        let is_about = scope.unwrap_or_default() == header.scope && self.root == header.root;
        if self.has_others || !is_about {
            return false;
        }
        (0..tree.len()).map(RootItem).all(|item| {
            let is_before = rows.state(item) == State::Before && rows.failure(item).is_none();
            is_before
                && self.of(item).is_some_and(|(row, digest)| {
                    let says = rows.meta(item).is_some_and(|meta| row.says(&meta));
                    says && digest == rows.digest(item)
                })
        })
    }
}
