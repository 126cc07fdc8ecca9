//! Sets of a listing's entries, a bit for each entry that there is. They have path order without a
//! comparison: the time of a sort is spent on one core while all others wait.

use bc_walk::EntryId;

/// Some entries of a listing.
#[derive(Debug)]
pub(crate) struct EntrySet {
    bits: Vec<u64>,
    count: usize,
}

impl EntrySet {
    /// Makes the empty set of a listing of `len`.
    pub(crate) fn new(len: usize) -> EntrySet {
        EntrySet {
            bits: vec![0; len.div_ceil(64)],
            count: 0,
        }
    }

    /// Makes the set of different entries of a listing of `len`.
    pub(crate) fn of(entries: impl Iterator<Item = EntryId>, len: usize) -> EntrySet {
        let mut set = EntrySet::new(len);
        entries.for_each(|entry| set.insert(entry));
        set
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

    /// Returns the place of each entry in path order, in the memory of the set and half as much.
    pub(crate) fn into_ranks(self) -> EntryRanks {
        let mut count = 0;
        let before = self.bits.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        EntryRanks {
            before: before.collect(),
            bits: self.bits,
        }
    }
}

/// Places of the entries of a set in path order.
#[derive(Debug)]
pub(crate) struct EntryRanks {
    bits: Vec<u64>,
    /// Number of entries before those of each word.
    before: Vec<u32>,
}

impl EntryRanks {
    /// Returns the number of entries of the set that come before this one, which need not be in it.
    ///
    /// # Panics
    /// Beyond the listing.
    pub(crate) fn of(&self, EntryId(entry): EntryId) -> u32 {
        let word = entry as usize / 64;
        let below = self.bits[word] & ((1 << (entry % 64)) - 1);
        self.before[word] + below.count_ones()
    }
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
            let set = || EntrySet::of(entries.iter().copied().map(EntryId), len);
            let ranks = set().into_ranks();
            for (rank, entry) in (0..).zip(&expected) {
                prop_assert_eq!(ranks.of(*entry), rank);
            }
            prop_assert_eq!(set().into_sorted(), expected);
        }
    }
}
