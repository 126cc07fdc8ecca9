//! Files that were named and lie in a directory that was read as well: one name, listed twice.

use std::collections::{HashMap, HashSet};

use bc_fs::meta;
use bc_walk::{DirId, EntryId, Identity};

use super::tree::DirTree;

/// The entries of such roots.
pub(crate) fn repeated(tree: &DirTree<'_>) -> HashSet<EntryId> {
    let listing = tree.listing;
    let is_root = |entry: &EntryId| listing.dir_identity(listing.dir(*entry)).is_none();
    let roots: Vec<EntryId> = listing.ids().filter(is_root).collect();
    if roots.is_empty() {
        return HashSet::new();
    }
    let identity = |dir| Some((listing.dir_identity(dir)?, dir));
    let dirs: HashMap<Identity, DirId> = tree.dirs().filter_map(identity).collect();
    // Many roots may be in one directory.
    let mut known: HashMap<DirId, Option<DirId>> = HashMap::new();
    let mut read = |dir: DirId| {
        let opened = || meta::stat(listing.open_dir(dir).ok()?).ok();
        let find = || dirs.get(&opened()?.id).copied();
        *known.entry(dir).or_insert_with(find)
    };
    let is_repeated = |entry: &EntryId| {
        let name = listing.name(*entry);
        let there = read(listing.dir(*entry)).and_then(|dir| {
            let entries = tree.entries(dir);
            let at = entries.binary_search_by(|other| listing.name(*other).cmp(name));
            Some(entries[at.ok()?])
        });
        there.is_some_and(|other| listing.identity(other) == listing.identity(*entry))
    };
    roots.into_iter().filter(is_repeated).collect()
}
