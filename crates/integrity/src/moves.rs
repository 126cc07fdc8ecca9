//! Pairs removed with added files of the same content.
//!
//! Many to many: of equal digests the pairs with the same base name come
//! first, the rest in path order; what is left over stays removed or added.

/// One side of a possible move. 32 bytes, whatever the length of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The first 16 bytes of the digest; a short one is followed by the size,
    /// since it alone says little.
    key: [u8; 16],
    /// Hash of the base name: only prefers one pair to another.
    name: u64,
    /// Which record of the report it is, twice, and 1 more on the added side.
    record: u64,
}

/// Where a candidate was found.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Side {
    Removed,
    Added,
}

impl Candidate {
    /// Files of no bytes all look alike: they are never candidates.
    pub(crate) fn new(
        side: Side,
        path: &[u8],
        digest: &[u8],
        size: u64,
        record: u64,
    ) -> Option<Candidate> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        if size == 0 || digest.is_empty() {
            return None;
        }
        let mut key = [0; 16];
        let kept = digest.len().min(key.len());
        key[..kept].copy_from_slice(&digest[..kept]);
        if kept <= 8 {
            key[8..].copy_from_slice(&size.to_le_bytes());
        }
        let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        // Fixed keys: the same pairs on every run.
        let mut hasher = DefaultHasher::new();
        base.hash(&mut hasher);
        Some(Candidate {
            key,
            name: hasher.finish(),
            record: record * 2 + u64::from(side == Side::Added),
        })
    }

    fn side(&self) -> Side {
        if self.record.is_multiple_of(2) {
            Side::Removed
        } else {
            Side::Added
        }
    }

    fn record(&self) -> u64 {
        self.record / 2
    }
}

/// Records of a removed and an added file that are one file moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pair {
    pub(crate) removed: u64,
    pub(crate) added: u64,
}

/// The pairs, in order of the removed side's record.
pub(crate) fn pair(mut candidates: Vec<Candidate>) -> Vec<Pair> {
    candidates.sort_unstable_by_key(|c| (c.key, c.name, c.side(), c.record));
    let mut pairs = Vec::new();
    let mut rest = [Vec::new(), Vec::new()];
    for same in candidates.chunk_by(|a, b| a.key == b.key) {
        rest.iter_mut().for_each(Vec::clear);
        for named in same.chunk_by(|a, b| a.name == b.name) {
            let (removed, added) =
                named.split_at(named.partition_point(|c| c.side() == Side::Removed));
            let both = removed.len().min(added.len());
            pairs.extend(zip(&removed[..both], &added[..both]));
            rest[0].extend_from_slice(&removed[both..]);
            rest[1].extend_from_slice(&added[both..]);
        }
        rest.iter_mut()
            .for_each(|side| side.sort_unstable_by_key(|c| c.record));
        pairs.extend(zip(&rest[0], &rest[1]));
    }
    pairs.sort_unstable_by_key(|pair| pair.removed);
    pairs
}

fn zip<'a>(removed: &'a [Candidate], added: &'a [Candidate]) -> impl Iterator<Item = Pair> + 'a {
    let pair = |(r, a): (&Candidate, &Candidate)| Pair {
        removed: r.record(),
        added: a.record(),
    };
    removed.iter().zip(added).map(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Added, Removed};

    fn pairs(files: &[(Side, &str, &[u8], u64)]) -> Vec<(u64, u64)> {
        let candidates =
            files
                .iter()
                .zip(0..)
                .filter_map(|(&(side, path, digest, size), record)| {
                    Candidate::new(side, path.as_bytes(), digest, size, record)
                });
        pair(candidates.collect())
            .into_iter()
            .map(|p| (p.removed, p.added))
            .collect()
    }

    #[test]
    fn same_base_name_wins_over_order() {
        let files = [
            (Removed, "a/one", &b"d"[..], 5),
            (Removed, "a/two", b"d", 5),
            (Added, "b/two", b"d", 5),
            (Added, "b/one", b"d", 5),
        ];
        assert_eq!(pairs(&files), [(0, 3), (1, 2)]);
    }

    #[test]
    fn many_to_many_pairs_as_many_as_there_are() {
        let files = [
            (Removed, "a", &b"d"[..], 5),
            (Added, "b", b"d", 5),
            (Removed, "c", b"d", 5),
            (Removed, "e", b"d", 5),
            (Added, "f", b"d", 5),
        ];
        assert_eq!(pairs(&files), [(0, 1), (2, 4)]);
    }

    #[test]
    fn empty_files_and_other_content_are_no_moves() {
        assert!(pairs(&[(Removed, "a", b"d", 0), (Added, "b", b"d", 0)]).is_empty());
        assert!(pairs(&[(Removed, "a", b"d", 5), (Added, "b", b"x", 5)]).is_empty());
        assert!(pairs(&[(Removed, "a", b"12345678", 5), (Added, "b", b"12345678", 6)]).is_empty());
        assert!(pairs(&[(Removed, "a", b"", 5), (Added, "b", b"", 5)]).is_empty());
    }
}
