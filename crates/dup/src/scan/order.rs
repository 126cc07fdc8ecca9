//! Many entries in path order without comparing any: what a sort spends on
//! them, one core spends while all others wait.

use bc_walk::EntryId;

/// Puts different entries of a listing of `len` in path order.
pub(crate) fn by_path(entries: impl Iterator<Item = EntryId>, len: usize) -> Vec<EntryId> {
    let mut bits = vec![0_u64; len.div_ceil(64)];
    let mut count = 0;
    for EntryId(entry) in entries {
        bits[entry as usize / 64] |= 1 << (entry % 64);
        count += 1;
    }
    let mut sorted = Vec::with_capacity(count);
    for (start, mut word) in (0..).step_by(64).zip(bits) {
        while word != 0 {
            sorted.push(EntryId(start + word.trailing_zeros()));
            word &= word - 1;
        }
    }
    sorted
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
