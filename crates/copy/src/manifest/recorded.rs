//! What the manifest of an earlier copy says of the files that are copied again: what still fits at
//! both ends is done, and is not read.

use std::collections::BinaryHeap;

use bc_digest::Digest;
use bc_manifest::integrity::{Entry, Header, Meta, Scope, path_order};
use bc_walk::{FileKind, FileStat};
use serde_json::Value;

use super::earlier::{Lying, Whole, look};
use super::{Head, Plan, below};
use crate::options::CopyOptions;
use crate::results::{Rows, State};
use crate::tree::{Item, Tree};

/// Of a header: when the copy began that found what its entries say, in nanoseconds since 1970 by
/// the clock that stamps files. Of an entry: the same where another copy found it, or null where none
/// has compared it with a source.
const FIELD: &str = "copied_since";

/// What is recorded of a tree.
pub(crate) struct Recorded {
    rows: Vec<Option<Row>>,
    digests: Vec<u8>,
    stride: usize,
    /// Whether there is more in the manifest than the entries of the tree.
    has_others: bool,
    /// What the manifest is about, if there is one: `None` in it is everything.
    scope: Option<Option<Scope>>,
    root: Option<Vec<u8>>,
}

/// Of an entry at the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    meta: Meta,
    /// The source was read after that, in nanoseconds since 1970; `None`: it was not.
    pub(crate) since_ns: Option<i64>,
}

impl Row {
    /// Whether it tells of what is there now.
    pub(crate) fn fits(&self, now: &FileStat) -> bool {
        let Meta {
            ino,
            size,
            mtime_ns,
            ..
        } = self.meta;
        (now.id.ino, now.stamp.size, now.stamp.mtime_ns) == (ino, size, mtime_ns)
    }

    /// The same of a directory, whose size and time are its file system's.
    pub(crate) fn fits_dir(&self, now: &FileStat) -> bool {
        self.meta.ino == now.id.ino && self.meta.mode == now.mode
    }

    /// Whether that is what is to be recorded. What has changed of a directory's times is not its
    /// content, and that of the root has changed with its manifest.
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

impl Recorded {
    /// Nothing, where there is no manifest that is carried on.
    pub(crate) fn none() -> Recorded {
        Recorded {
            rows: Vec::new(),
            digests: Vec::new(),
            stride: 0,
            has_others: true,
            scope: None,
            root: None,
        }
    }

    /// What the manifest says that lies where this copy's goes. One that is not whole says nothing:
    /// the end of the copy tells of it.
    pub(crate) fn read(options: &CopyOptions, plan: &Plan, tree: &Tree) -> Recorded {
        let stride = options.algorithm.map_or(0, |one| one.digest_len());
        let Lying::Manifest(mut earlier) = look(options, plan, Whole::Later) else {
            return Recorded::none();
        };
        let since = earlier.since();
        let mut found = Recorded {
            rows: vec![None; tree.len() as usize],
            digests: vec![0; tree.len() as usize * stride],
            stride,
            has_others: false,
            scope: Some(earlier.scope.clone()),
            root: earlier.header().root.clone(),
        };
        let mut heads = BinaryHeap::new();
        let push = |heads: &mut BinaryHeap<Head>, item: Item, end: u32| {
            if item.0 < end {
                let mut path = Vec::new();
                tree.write_target(item, &mut path);
                heads.push(Head::of_item(below(plan, path), item, end));
            }
        };
        for root in 0..tree.roots.len() {
            let items = tree.items_of(root);
            push(&mut heads, Item(items.start), items.end);
        }
        let mut entry = earlier.take();
        while let (Some(head), Ok(Some(known))) = (heads.peek(), &entry) {
            let order = path_order(&known.path, &head.path);
            if order.is_eq() {
                found.put(head.item(), known, since);
            }
            found.has_others |= order.is_lt();
            if order.is_le() {
                entry = earlier.take();
            }
            if order.is_ge()
                && let Some(head) = heads.pop()
                && let Some((item, end)) = head.item_and_end()
            {
                push(&mut heads, Item(item.0 + 1), end);
            }
        }
        found.has_others |= !matches!(entry, Ok(None));
        while let Ok(Some(_)) = entry {
            entry = earlier.take();
        }
        // Its end proves that it is whole.
        entry.map_or_else(|_| Recorded::none(), |_| found)
    }

    fn put(&mut self, item: Option<Item>, known: &Entry, since: Option<i64>) {
        let own = match known.extra.get(FIELD) {
            None => since,
            Some(value) => value.as_i64(),
        };
        let (Some(item), Some(meta), None) = (item, known.meta, &known.error) else {
            return;
        };
        let at = item.0 as usize;
        let since_ns = own;
        self.rows[at] = Some(Row { meta, since_ns });
        if let Some(digest) = known.digest
            && digest.as_bytes().len() == self.stride
        {
            self.digests[at * self.stride..][..self.stride].copy_from_slice(digest.as_bytes());
        }
    }

    /// What the manifest is about, if there is one.
    pub(super) fn scope(&self) -> Option<&Option<Scope>> {
        self.scope.as_ref()
    }

    /// What is recorded of an entry, with the digest of a file.
    pub(crate) fn of(&self, item: Item) -> Option<(Row, Option<Digest>)> {
        let at = item.0 as usize;
        let row = (*self.rows.get(at)?)?;
        let digest = &self.digests[at * self.stride..][..self.stride];
        let is_set = digest.iter().any(|byte| *byte != 0);
        Some((row, is_set.then(|| Digest::from_slice(digest)).flatten()))
    }

    /// Whether the manifest that is there says all that this copy's would.
    pub(super) fn is_all(&self, header: &Header, tree: &Tree, rows: &Rows) -> bool {
        let scope = self.scope().and_then(Option::as_ref).map(Scope::to_json);
        let is_about = scope.unwrap_or_default() == header.scope && self.root == header.root;
        if self.has_others || !is_about {
            return false;
        }
        (0..tree.len()).map(Item).all(|item| {
            let is_before = rows.state(item) == State::Before && rows.failure(item).is_none();
            is_before
                && self.of(item).is_some_and(|(row, digest)| {
                    let says = rows.meta(item).is_some_and(|meta| row.says(&meta));
                    says && digest == rows.digest(item)
                })
        })
    }
}

/// When the copy of a manifest began, if it is one of a copy that says so.
pub(super) fn since(header: &Header) -> Option<i64> {
    header.extra.get(FIELD).and_then(Value::as_i64)
}

/// Has a header say when the copy began.
pub(super) fn set_since(header: &mut Header, since_ns: i64) {
    header.extra.insert(FIELD.to_owned(), since_ns.into());
}

/// An entry that is carried on was found by an earlier copy, which began `since`.
pub(super) fn carry(mut entry: Entry, since: Option<i64>) -> Entry {
    if entry.digest.is_some() && !entry.extra.contains_key(FIELD) {
        let since = since.map_or(Value::Null, Value::from);
        entry.extra.insert(FIELD.to_owned(), since);
    }
    entry
}

/// An entry of what was left as it was, without a look at the source's content.
pub(super) fn uncompared(entry: &mut Entry) {
    entry.extra.insert(FIELD.to_owned(), Value::Null);
}
