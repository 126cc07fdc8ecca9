//! Files that changed their names among themselves: each name has the file of another of them, and
//! its own file is under another of them. Where size and mtime are equal each looks damaged alone.

/// A name with its old and new key, of a content or of an inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Renamed<K> {
    pub(crate) was: K,
    pub(crate) is: K,
    /// Number of the name.
    pub(crate) name: u64,
}

/// Returns, for each name that is part of a ring, itself and the name that has its old key now. In
/// order of names. Takes time and memory in proportion to their number, but for sorting.
///
/// Names are edges from their old keys to their new ones; rings are cycles. Where several names had
/// the same key, the choice of the one that closes a ring is arbitrary and the same on every run.
pub(crate) fn rings<K: Copy + Ord>(all: &[Renamed<K>]) -> Vec<(u64, u64)> {
    let mut keys: Vec<K> = all.iter().flat_map(|one| [one.was, one.is]).collect();
    keys.sort_unstable();
    keys.dedup();
    let node = |key: &K| keys.partition_point(|known| known < key);
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); keys.len()];
    for (edge, one) in all.iter().enumerate().rev() {
        out[node(&one.was)].push(edge);
    }
    let mut found = Vec::new();
    // The way so far, and where in it each node is.
    let mut way: Vec<usize> = Vec::new();
    let mut place: Vec<Option<usize>> = vec![None; keys.len()];
    for start in 0..keys.len() {
        let mut at = start;
        loop {
            if let Some(first) = place[at] {
                let ring = way.split_off(first);
                for (nth, &edge) in ring.iter().enumerate() {
                    place[node(&all[edge].was)] = None;
                    let before = ring[(nth + ring.len() - 1) % ring.len()];
                    found.push((all[edge].name, all[before].name));
                }
            }
            place[at] = Some(way.len());
            if let Some(edge) = out[at].pop() {
                way.push(edge);
                at = node(&all[edge].is);
                continue;
            }
            // Nothing leads on from here: no ring goes through the edge that led here.
            place[at] = None;
            match way.pop() {
                Some(edge) => {
                    at = node(&all[edge].was);
                    place[at] = None;
                }
                None => break,
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[(char, char)]) -> Vec<(u64, u64)> {
        let named = (0..).zip(all);
        let all: Vec<Renamed<char>> = named
            .map(|(name, &(was, is))| Renamed { was, is, name })
            .collect();
        rings(&all)
    }

    #[test]
    fn only_what_is_found_on_both_sides() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[('a', 'b')]), []);
        assert_eq!(found(&[('a', 'b'), ('b', 'c')]), []);
        assert_eq!(found(&[('a', 'b'), ('b', 'a')]), [(0, 1), (1, 0)]);
        assert_eq!(
            found(&[('a', 'b'), ('b', 'c'), ('c', 'a')]),
            [(0, 2), (1, 0), (2, 1)]
        );
        // One more that has what another had, and ways that lead into a ring and out of it.
        assert_eq!(
            found(&[('x', 'a'), ('a', 'b'), ('b', 'a'), ('b', 'y'), ('a', 'z')]),
            [(1, 2), (2, 1)]
        );
        // Two rings through one content.
        let two = [('a', 'b'), ('b', 'a'), ('a', 'c'), ('c', 'a')];
        assert_eq!(found(&two).len(), 4);
    }

    #[test]
    fn every_ring_is_closed() {
        // All graphs of four edges over three nodes.
        for code in 0..9_u32.pow(4) {
            let all: Vec<(char, char)> = (0..4)
                .map(|nth| (code / 9_u32.pow(nth)) % 9)
                .map(|pair| {
                    (
                        ['a', 'b', 'c'][pair as usize / 3],
                        ['a', 'b', 'c'][pair as usize % 3],
                    )
                })
                .collect();
            let found = found(&all);
            for (name, target) in &found {
                assert_eq!(all[*name as usize].0, all[*target as usize].1, "{all:?}");
            }
            let mut targets: Vec<u64> = found.iter().map(|pair| pair.1).collect();
            targets.sort_unstable();
            let names: Vec<u64> = found.iter().map(|pair| pair.0).collect();
            assert_eq!(names, targets, "{all:?}");
        }
    }
}
