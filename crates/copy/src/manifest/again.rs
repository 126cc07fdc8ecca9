//! Records of an earlier copy's manifest about entries that are copied again.

use bc_manifest::integrity::{Entry, path_order};

use super::ManifestPlan;
use super::earlier::{ExistingManifest, Whole, look};
use super::heads::{heads, push};
use crate::options::CopyOptions;
use crate::recorded::{Row, TreeRecords};
use crate::tree::{RootItem, SourceTree};

/// Reads the manifest in the place where this copy's goes. One that is not whole yields nothing:
/// the end of the copy reports it.
pub(crate) fn read(options: &CopyOptions, plan: &ManifestPlan, tree: &SourceTree) -> TreeRecords {
    let stride = options.algorithm.map_or(0, |one| one.digest_len());
    let ExistingManifest::Manifest(mut earlier) = look(options, plan, Whole::Later) else {
        return TreeRecords::none();
    };
    let header = earlier.header();
    let (scope, root) = (earlier.scope.clone(), header.root.clone());
    let mut found = TreeRecords::new(tree.len(), stride, scope, root);
    let mut heads = heads(tree, plan, &[], &[]);
    let mut entry = earlier.take();
    while let (Some(head), Ok(Some(known))) = (heads.peek(), &entry) {
        let order = path_order(&known.path, &head.path);
        if order.is_eq() {
            put(&mut found, head.item(), known);
        }
        found.has_others |= order.is_lt();
        if order.is_le() {
            entry = earlier.take();
        }
        if order.is_ge()
            && let Some(head) = heads.pop()
            && let Some((item, end)) = head.item_and_end()
        {
            push(tree, plan, &mut heads, RootItem(item.0 + 1), end);
        }
    }
    found.has_others |= !matches!(entry, Ok(None));
    while let Ok(Some(_)) = entry {
        entry = earlier.take();
    }
    // Its end proves that it is whole.
    entry.map_or_else(|_| TreeRecords::none(), |_| found)
}

fn put(found: &mut TreeRecords, item: Option<RootItem>, known: &Entry) {
    if let (Some(item), Some(meta), None) = (item, known.meta, &known.error) {
        // An entry that an update has found changed is not done.
        let stamp = known.copy_stamp.filter(|_| known.found.is_none());
        found.put(item, Row::new(meta, stamp), known.digest);
    }
}
