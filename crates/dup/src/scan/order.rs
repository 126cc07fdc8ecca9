//! Putting many items in order in linear time: what a comparison sort spends
//! on them, one core spends while all others wait.

use bc_walk::EntryId;

/// Bits that one pass of the sort looks at: its counters fit the first-level
/// cache, and sizes below 8 GiB take three passes.
const DIGIT: u32 = 11;

/// Sorts by a number, least first; equal ones keep their order.
pub(crate) fn by_number<T: Copy>(mut items: Vec<T>, number: impl Fn(&T) -> u64) -> Vec<T> {
    let Some(first) = items.first().map(&number) else {
        return items;
    };
    // Digits that all numbers have in common need no pass.
    let varying = items.iter().fold(0, |bits, one| bits | number(one) ^ first);
    let mut sorted = items.clone();
    for shift in (0..u64::BITS).step_by(DIGIT as usize) {
        let digit = |number: u64| (number >> shift) as usize & ((1 << DIGIT) - 1);
        if digit(varying) == 0 {
            continue;
        }
        let mut next = [0; 1 << DIGIT];
        for one in &items {
            next[digit(number(one))] += 1;
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        for one in &items {
            let place = &mut next[digit(number(one))];
            sorted[*place] = *one;
            *place += 1;
        }
        std::mem::swap(&mut items, &mut sorted);
    }
    items
}

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

    /// Numbers of all lengths, equal ones among them.
    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64_u32, 0..3_u32).prop_map(|(bits, shift, few)| match few {
            0 => bits % 4,
            _ => bits >> shift,
        })
    }

    proptest! {
        #[test]
        fn numbers_sort_as_by_comparison(numbers in prop::collection::vec(number(), 0..600)) {
            let items: Vec<(u64, u32)> = numbers.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            prop_assert_eq!(by_number(items, |item| item.0), expected);
        }

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

    #[test]
    fn numbers_at_the_edges_of_digits() {
        let edges: Vec<u64> = (0..64)
            .flat_map(|bit| {
                [
                    1 << bit,
                    (1 << bit) - 1,
                    u64::MAX << bit,
                    u64::MAX - (1 << bit),
                ]
            })
            .collect();
        let mut expected = edges.clone();
        expected.sort_unstable();
        assert_eq!(by_number(edges, |number| *number), expected);
        assert_eq!(by_number(vec![7, 7], |number| *number), [7, 7]);
        assert!(by_number(Vec::new(), |number: &u64| *number).is_empty());
    }
}
