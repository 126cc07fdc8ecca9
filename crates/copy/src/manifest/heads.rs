//! The entries of a manifest in the order of their paths, from all sources.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bc_manifest::integrity::{Entry, path_order};

use super::{ManifestPlan, below, path_in};
use crate::tree::{RootItem, SourceTree};
use crate::unread::Unlisted;

/// An entry on its way into the manifest: ordered by path, the first at the top of a heap.
pub(super) struct ManifestHead {
    pub(super) path: Vec<u8>,
    pub(super) next: Next,
}

/// Source of an entry. Of two with one path, the one whose variant is listed first here comes
/// first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Next {
    /// An item of a root whose entries end before this number.
    Item(RootItem, u32),
    /// A path without an entry: its number among those that could not be looked at.
    Unlisted(usize),
    /// An entry of an earlier run that is not part of this copy, by its number.
    Beside(usize),
}

impl ManifestHead {
    pub(super) fn of_item(path: Vec<u8>, item: RootItem, end: u32) -> ManifestHead {
        let next = Next::Item(item, end);
        ManifestHead { path, next }
    }

    pub(super) fn item_and_end(&self) -> Option<(RootItem, u32)> {
        match self.next {
            Next::Item(item, end) => Some((item, end)),
            Next::Unlisted(_) | Next::Beside(_) => None,
        }
    }

    pub(super) fn item(&self) -> Option<RootItem> {
        self.item_and_end().map(|(item, _)| item)
    }
}

impl Ord for ManifestHead {
    fn cmp(&self, other: &ManifestHead) -> Ordering {
        path_order(&other.path, &self.path).then_with(|| other.next.cmp(&self.next))
    }
}

impl PartialOrd for ManifestHead {
    fn partial_cmp(&self, other: &ManifestHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ManifestHead {
    fn eq(&self, other: &ManifestHead) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ManifestHead {}

/// Collects the first entry of each kind.
pub(super) fn heads(
    tree: &SourceTree,
    plan: &ManifestPlan,
    unlisted: &[Unlisted],
    beside: &[Entry],
) -> BinaryHeap<ManifestHead> {
    let unlisted = unlisted.iter().enumerate().map(|(nth, one)| ManifestHead {
        path: below(plan, one.target.clone()),
        next: Next::Unlisted(nth),
    });
    let beside = beside.iter().enumerate().map(|(nth, entry)| ManifestHead {
        path: entry.path.clone(),
        next: Next::Beside(nth),
    });
    let mut heads: BinaryHeap<ManifestHead> = unlisted.chain(beside).collect();
    for root in 0..tree.roots.len() {
        let items = tree.items_of(root);
        push(tree, plan, &mut heads, RootItem(items.start), items.end);
    }
    heads
}

/// Adds the entry of this number, if it is one of the root whose entries end there.
pub(super) fn push(
    tree: &SourceTree,
    plan: &ManifestPlan,
    heads: &mut BinaryHeap<ManifestHead>,
    item: RootItem,
    end: u32,
) {
    if item.0 < end {
        heads.push(ManifestHead::of_item(path_in(tree, plan, item), item, end));
    }
}
