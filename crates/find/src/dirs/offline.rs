//! Directories whose files are all on offline disks, according to manifests.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use bc_walk::{DirId, EntryId, FileKind, Listing};

use super::Directories;
use super::tree::{DirItem, DirTree};
use crate::unique::Offline;

/// A directory all of whose files are in manifests; these are not asked about links and empty
/// directories.
#[derive(Clone, Debug)]
pub struct OfflineDir {
    /// The directory.
    pub dir: DirId,
    /// Files below it; empty ones hold nothing that could be missing.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries that filters left out.
    pub filtered: u64,
    /// The numbers of the manifests that know one of them.
    pub manifests: Vec<usize>,
}

/// Sums over a directory and everything below it.
#[derive(Clone, Default)]
struct KnownSums {
    files: u64,
    bytes: u64,
    filtered: u64,
    manifests: BTreeSet<usize>,
    /// True if manifests contain all of its files and nothing in it is incomparable.
    whole: bool,
}

/// Returns the largest directories with at least `min_files` files all of which manifests contain:
/// those with most bytes first. A directory that cannot be compared is never among them.
pub fn offline_dirs(
    listing: &Listing,
    found: &Directories,
    offline: &Offline,
    min_files: u64,
) -> Vec<OfflineDir> {
    let mut tree = DirTree::new(listing);
    for (dir, obstacle) in &found.obstacles {
        tree.obstruct(*dir, *obstacle);
    }
    let mut answers: HashMap<EntryId, usize> = HashMap::new();
    for content in &offline.contents {
        let names = content.names.iter();
        answers.extend(names.map(|name| (*name, content.answer.manifest)));
    }
    let known = of_all(&tree, &answers);
    let is_whole = |dir: DirId| known[dir.0 as usize].whole;
    let least = min_files.max(1);
    let dirs = tree.dirs().filter(|dir| {
        let above = tree.above(*dir);
        let is_reported = above.is_some_and(is_whole);
        is_whole(*dir) && known[dir.0 as usize].files >= least && !is_reported
    });
    let mut reported: Vec<OfflineDir> = dirs
        .map(|dir| {
            let known = &known[dir.0 as usize];
            OfflineDir {
                dir,
                files: known.files,
                bytes: known.bytes,
                filtered: known.filtered,
                manifests: known.manifests.iter().copied().collect(),
            }
        })
        .collect();
    reported.sort_by_cached_key(|one| {
        let sizes = [one.bytes, one.files].map(Reverse);
        (sizes, listing.dir_path(one.dir))
    });
    reported
}

fn of_all(tree: &DirTree<'_>, answers: &HashMap<EntryId, usize>) -> Vec<KnownSums> {
    let listing = tree.listing;
    let mut all = vec![KnownSums::default(); listing.dirs()];
    for (dir, gap) in listing.gaps() {
        all[dir.0 as usize].filtered = gap.filtered;
    }
    for &dir in tree.order().iter().rev() {
        let mut known = std::mem::take(&mut all[dir.0 as usize]);
        known.whole = tree.obstacle(dir).is_none();
        for &entry in tree.entries(dir) {
            match (listing.kind(entry), tree.item(entry)) {
                (_, DirItem::Dir(inner)) => known.add(&all[inner.0 as usize]),
                (FileKind::File, _) => {
                    let size = listing.size(entry).unwrap_or(0);
                    let answer = answers.get(&entry);
                    known.files += 1;
                    known.bytes = known.bytes.saturating_add(size);
                    known.manifests.extend(answer);
                    known.whole &= size == 0 || answer.is_some();
                }
                (FileKind::Symlink, _) | (_, DirItem::Closed) => {}
                _ => known.whole = false,
            }
        }
        // A directory of empty files alone is in no manifest for that.
        known.whole &= known.files == 0 || !known.manifests.is_empty();
        all[dir.0 as usize] = known;
    }
    all
}

impl KnownSums {
    fn add(&mut self, inner: &KnownSums) {
        self.files += inner.files;
        self.bytes = self.bytes.saturating_add(inner.bytes);
        self.filtered += inner.filtered;
        self.manifests.extend(&inner.manifests);
        self.whole &= inner.whole;
    }
}
