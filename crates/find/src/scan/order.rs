//! Path order for many entries without comparing any: the time of a sort is spent on one core while
//! all others wait.

use bc_walk::EntryId;

/// Some entries of a listing: a bit for each that there is.
#[derive(Debug)]
pub(crate) struct Set {
    bits: Vec<u64>,
    count: usize,
}

impl Set {
    /// None of a listing of `len`.
    pub(crate) fn new(len: usize) -> Set {
        Set {
            bits: vec![0; len.div_ceil(64)],
            count: 0,
        }
    }

    /// # Panics
    /// Beyond the listing.
    pub(crate) fn insert(&mut self, EntryId(entry): EntryId) {
        let word = &mut self.bits[entry as usize / 64];
        let bit = 1 << (entry % 64);
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    /// Returns the entries in path order.
    pub(crate) fn into_sorted(self) -> Vec<EntryId> {
        let mut sorted = Vec::with_capacity(self.count);
        for (start, mut word) in (0..).step_by(64).zip(self.bits) {
            while word != 0 {
                sorted.push(EntryId(start + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        sorted
    }
}

/// Puts different entries of a listing of `len` in path order.
pub(crate) fn by_path(entries: impl Iterator<Item = EntryId>, len: usize) -> Vec<EntryId> {
    let mut set = Set::new(len);
    entries.for_each(|entry| set.insert(entry));
    set.into_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_sort_as_by_comparison(
            entries in prop::collection::hash_set(0..1000_u32, 0..300),
            spare in 0..70_usize,
        ) {
            let mut expected: Vec<EntryId> = entries.iter().copied().map(EntryId).collect();
            expected.sort_unstable();
            let len = expected.last().map_or(0, |last| last.0 as usize + 1) + spare;
            prop_assert_eq!(by_path(entries.into_iter().map(EntryId), len), expected);
        }
    }
}
