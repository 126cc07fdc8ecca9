//! Classes of directories with equal contents: a number for each content of a directory.
//!
//! With their names, directories are equal if their entries are, one by one, and those are
//! compared, never only a hash of them. Without names a directory is the sum of 128-bit values of
//! its contents, whose keys are new in each run, so that no files can be chosen whose sums agree.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use bc_walk::{DirId, EntryId};

use super::DirNames;
use super::sums::Sums;
use super::tree::{DirItem, DirTree, NONE};

/// The contents of directories, by number.
pub(crate) struct Classes {
    of: Vec<u32>,
    /// First directory of each content. A directory has a higher number than those that it holds.
    pub(crate) first: Vec<DirId>,
}

impl Classes {
    pub(crate) fn new(tree: &DirTree<'_>, sums: &Sums, names: DirNames) -> Classes {
        let mut classes = Classes {
            of: vec![NONE; tree.listing.dirs()],
            first: Vec::new(),
        };
        match names {
            DirNames::Compare => classes.by_entries(tree, sums),
            DirNames::Ignore => classes.by_sums(tree, sums),
        }
        classes
    }

    /// Returns the number of a directory's content; `None` if no other can hold the same, or it
    /// cannot be compared.
    pub(crate) fn of(&self, dir: DirId) -> Option<u32> {
        let class = self.of[dir.0 as usize];
        (class != NONE).then_some(class)
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    fn begin(&mut self, dir: DirId) -> u32 {
        self.first.push(dir);
        (self.first.len() - 1) as u32
    }

    fn by_entries(&mut self, tree: &DirTree<'_>, sums: &Sums) {
        let keys = RandomState::new();
        let mut newest: HashMap<u64, u32> = HashMap::new();
        // Of each class the one before with the same hash.
        let mut before: Vec<u32> = Vec::new();
        for &dir in tree.order().iter().rev() {
            if !sums.of(dir).is_shared() {
                continue;
            }
            let hash = self.hash(tree, dir, &keys);
            let last = newest.get(&hash).copied().unwrap_or(NONE);
            let mut class = last;
            while class != NONE && !self.are_equal(tree, dir, self.first[class as usize]) {
                class = before[class as usize];
            }
            if class == NONE {
                class = self.begin(dir);
                before.push(last);
                newest.insert(hash, class);
            }
            self.of[dir.0 as usize] = class;
        }
    }

    fn hash(&self, tree: &DirTree<'_>, dir: DirId, keys: &RandomState) -> u64 {
        let mut hasher = keys.build_hasher();
        for &entry in tree.entries(dir) {
            let (kind, number) = self.value(tree, entry);
            hasher.write(tree.listing.name(entry).to_bytes_with_nul());
            hasher.write_u8(kind);
            hasher.write_u32(number);
        }
        hasher.finish()
    }

    fn are_equal(&self, tree: &DirTree<'_>, one: DirId, other: DirId) -> bool {
        let (one, other) = (tree.entries(one), tree.entries(other));
        let is_same = |(a, b): (&EntryId, &EntryId)| {
            self.value(tree, *a) == self.value(tree, *b)
                && tree.listing.name(*a) == tree.listing.name(*b)
        };
        one.len() == other.len() && one.iter().zip(other).all(is_same)
    }

    /// Returns the kind of an entry and the number of its content. A directory that filters leave
    /// unread is like an empty one.
    fn value(&self, tree: &DirTree<'_>, entry: EntryId) -> (u8, u32) {
        match tree.item(entry) {
            DirItem::File(content) => (b'f', content),
            DirItem::Link(target) => (b'l', target),
            DirItem::Dir(dir) if tree.entries(dir).is_empty() => (b'd', NONE),
            DirItem::Dir(dir) => (b'd', self.of[dir.0 as usize]),
            DirItem::Closed => (b'd', NONE),
            // Such ones are in no class.
            DirItem::Alone | DirItem::Unknown => (b'?', NONE),
        }
    }

    fn by_sums(&mut self, tree: &DirTree<'_>, sums: &Sums) {
        let keys = [RandomState::new(), RandomState::new()];
        let value = |kind: u8, number: u32| {
            let half = |keys: &RandomState| keys.hash_one((kind, number));
            u128::from(half(&keys[0])) << 64 | u128::from(half(&keys[1]))
        };
        let mut totals = vec![0_u128; tree.listing.dirs()];
        let mut known: HashMap<(u128, u64), u32> = HashMap::new();
        for &dir in tree.order().iter().rev() {
            let sum = sums.of(dir);
            if !sum.is_shared() {
                continue;
            }
            let mut total = 0_u128;
            for &entry in tree.entries(dir) {
                let one = match tree.item(entry) {
                    DirItem::Dir(dir) if !tree.entries(dir).is_empty() => totals[dir.0 as usize],
                    _ => {
                        let (kind, number) = self.value(tree, entry);
                        value(kind, number)
                    }
                };
                total = total.wrapping_add(one);
            }
            totals[dir.0 as usize] = total;
            let class = match known.get(&(total, sum.files)) {
                Some(class) => *class,
                None => self.begin(dir),
            };
            known.insert((total, sum.files), class);
            self.of[dir.0 as usize] = class;
        }
    }
}
