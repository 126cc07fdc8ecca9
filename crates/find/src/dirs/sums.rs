//! Totals of each directory, and flags for the ones that can be compared.

use bc_walk::{DirId, EntryId};

use super::tree::{DirItem, DirTree};

/// Totals of everything below a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirTotals {
    pub(crate) files: u64,
    /// Their sizes together.
    pub(crate) bytes: u64,
    /// Sizes of the files whose content no other file has.
    pub(crate) alone: u64,
    /// Entries that filters left out.
    pub(crate) filtered: u64,
    /// All of it is known.
    pub(crate) is_known: bool,
    /// There is a file whose content no other has.
    pub(crate) has_alone: bool,
}

/// Totals by directory.
pub(crate) struct Sums(Vec<DirTotals>);

impl Sums {
    pub(crate) fn new(tree: &DirTree<'_>) -> Sums {
        let mut sums = vec![DirTotals::default(); tree.listing.dirs()];
        for (dir, gap) in tree.listing.gaps() {
            sums[dir.0 as usize].filtered = gap.filtered;
        }
        for &dir in tree.order().iter().rev() {
            let mut sum = sums[dir.0 as usize];
            sum.is_known = tree.obstacle(dir).is_none();
            for &entry in tree.entries(dir) {
                match tree.item(entry) {
                    DirItem::File(_) => sum.add_file(size(tree, entry)),
                    DirItem::Alone => {
                        let size = size(tree, entry);
                        sum.add_file(size);
                        sum.alone = sum.alone.saturating_add(size);
                        sum.has_alone = true;
                    }
                    DirItem::Dir(inner) => sum.add(&sums[inner.0 as usize]),
                    DirItem::Link(_) | DirItem::Closed => {}
                    DirItem::Unknown => sum.is_known = false,
                }
            }
            sums[dir.0 as usize] = sum;
        }
        Sums(sums)
    }

    pub(crate) fn of(&self, dir: DirId) -> &DirTotals {
        &self.0[dir.0 as usize]
    }
}

fn size(tree: &DirTree<'_>, entry: EntryId) -> u64 {
    tree.listing.size(entry).unwrap_or(0)
}

impl DirTotals {
    /// Returns true if it can be equal to another directory, or contained in one.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_known && !self.has_alone
    }

    fn add_file(&mut self, size: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    fn add(&mut self, inner: &DirTotals) {
        self.files += inner.files;
        self.bytes = self.bytes.saturating_add(inner.bytes);
        self.alone = self.alone.saturating_add(inner.alone);
        self.filtered += inner.filtered;
        self.is_known &= inner.is_known;
        self.has_alone |= inner.has_alone;
    }
}
