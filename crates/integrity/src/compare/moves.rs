//! Pairs removed with added files that are one file moved: of the same content,
//! or of the same inode, size and mtime with other content, which is damage.
//! Other files may have the names as well: names are swapped, and taken over as logs do when they
//! rotate.
//!
//! Many to many: of equal digests the pairs with the same base name come first, the rest in path
//! order; unpaired files stay removed or added.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use bc_digest::{Algorithm, Digest, hash};
use bc_fs::known::Judgement;
use bc_manifest::time::is_beyond;

use crate::entry_ref::EntryRef;

/// One side of a possible move. 40 bytes, whatever the length of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The first 16 bytes of the digest; a short one is followed by the size,
    /// since it alone says little.
    key: [u8; 16],
    /// Hash of the base name: only prefers one pair to another.
    name: u32,
    /// Key of its mtime, which a file takes along to another name.
    time: u32,
    /// Hash of inode, size and mtime, which identifies the file whatever its content; 0 where the
    /// number does not stand for a file for good.
    file: Word,
    /// Number of its record in the report, times four, plus 2 for a name that both sides have, plus
    /// 1 on the added side.
    record: Word,
}

/// A number of 64 bits in halves, the higher one first, so that it need not begin at a multiple of
/// eight bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Word([u32; 2]);

impl From<u64> for Word {
    fn from(number: u64) -> Word {
        Word([(number >> 32) as u32, number as u32])
    }
}

impl From<Word> for u64 {
    fn from(Word([high, low]): Word) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }
}

/// Keys of a file, whatever its content, and of a content.
pub(crate) type FileAndContent = (Word, [u8; 16]);

/// Keys of a content, and of the mtime of the file that has it.
pub(crate) type ContentAndTime = ([u8; 16], u32);

/// Returns the keys of the content and mtime of a file.
pub(crate) fn content_and_time(file: &EntryRef<'_>) -> Option<ContentAndTime> {
    Some((key(file.digest?, file.size)?, time_key(file)))
}

fn time_key(file: &EntryRef<'_>) -> u32 {
    hash_of(file.mtime_ns) as u32
}

/// Returns a key for a content of that size, unless it is empty. Where the size is not known, as in
/// lists of other tools, the digest suffices if it is not short.
pub(crate) fn key(digest: &[u8], size: Option<u64>) -> Option<[u8; 16]> {
    let is_empty = size.map_or_else(|| is_of_nothing(digest), |size| size == 0);
    if is_empty || digest.is_empty() {
        return None;
    }
    let mut key = [0; 16];
    let kept = digest.len().min(key.len());
    key[..kept].copy_from_slice(&digest[..kept]);
    if kept <= 8 {
        key[8..].copy_from_slice(&size?.to_le_bytes());
    }
    Some(key)
}

/// True for the digest of no bytes, by any algorithm.
fn is_of_nothing(digest: &[u8]) -> bool {
    static ALL: LazyLock<HashSet<Digest>> =
        LazyLock::new(|| Algorithm::ALL.iter().map(|of| hash(*of, b"")).collect());
    Digest::from_slice(digest).is_some_and(|digest| ALL.contains(&digest))
}

/// Reliability of inode numbers: they identify files for good, or move to others, as where a file
/// system numbers its files again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Numbers {
    Stable,
    Moving,
}

/// Side on which a candidate was found.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Side {
    Removed,
    Added,
}

impl Candidate {
    /// Makes the candidate of a file; files of no bytes all look alike and are never candidates.
    pub(crate) fn new(
        side: Side,
        path: &[u8],
        file: &EntryRef<'_>,
        numbers: Numbers,
        record: u64,
    ) -> Option<Candidate> {
        let key = key(file.digest?, file.size)?;
        let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        Some(Candidate {
            key,
            name: hash_of(base) as u32,
            time: time_key(file),
            file: Word::from(match numbers {
                Numbers::Stable
                    if file.ino.is_some()
                        && file.size.is_some()
                        && file.mtime_ns.is_some_and(|time| !is_beyond(time)) =>
                {
                    hash_of((file.ino, file.size, file.mtime_ns))
                }
                Numbers::Stable | Numbers::Moving => 0,
            }),
            record: Word::from(record * 4 + u64::from(side == Side::Added)),
        })
    }

    /// Marks a candidate whose name another file had before or has now: no move, but it may be
    /// damaged.
    pub(crate) fn of_a_kept_name(self) -> Candidate {
        Candidate {
            record: Word::from(self.number() | 2),
            ..self
        }
    }

    /// Returns the keys of file and content, if the inode number identifies the file.
    pub(crate) fn file_and_content(&self) -> Option<FileAndContent> {
        (self.file != Word::from(0)).then_some((self.file, self.key))
    }

    fn number(&self) -> u64 {
        self.record.into()
    }

    fn has_a_kept_name(&self) -> bool {
        self.number() & 2 != 0
    }

    fn side(&self) -> Side {
        if self.number().is_multiple_of(2) {
            Side::Removed
        } else {
            Side::Added
        }
    }

    pub(crate) fn record(&self) -> u64 {
        self.number() / 4
    }

    /// Returns the keys of its content and mtime, if the path has them no longer.
    pub(crate) fn lost_content(&self) -> Option<ContentAndTime> {
        let is_lost = self.side() == Side::Removed && !self.has_a_kept_name();
        is_lost.then_some((self.key, self.time))
    }
}

/// Records of a removed and an added file that are one file moved. 16 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MovedPair {
    /// Number of the removed file's record, times eight, plus 4 if the two are not proven to be one
    /// file, plus 2 for a name that was kept, plus 1 for damage.
    removed: u64,
    added: u64,
}

impl MovedPair {
    pub(crate) fn removed(&self) -> u64 {
        self.removed / 8
    }

    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// True if the contents differ.
    pub(crate) fn is_damaged(&self) -> bool {
        self.removed & 1 != 0
    }

    /// True if another file has the old name now, or had the new one.
    pub(crate) fn has_a_kept_name(&self) -> bool {
        self.removed & 2 != 0
    }

    /// True if the contents differ, and the two may be different files.
    pub(crate) fn is_unproven(&self) -> bool {
        self.removed & 4 != 0
    }

    fn of(removed: &Candidate, added: &Candidate) -> MovedPair {
        let pair = MovedPair {
            removed: removed.record() * 8,
            added: added.record(),
        };
        match removed.has_a_kept_name() || added.has_a_kept_name() {
            true => pair.with(2),
            false => pair,
        }
    }

    fn with(self, mark: u64) -> MovedPair {
        MovedPair {
            removed: self.removed | mark,
            ..self
        }
    }
}

/// Hashes with fixed keys: the same pairs on every run.
pub(super) fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the pairs, in order of the removed side's record. `proof` decides whether two sides with
/// different contents, but equal hashes of inode, size and mtime, are one file.
pub(crate) fn pair(
    mut candidates: Vec<Candidate>,
    proof: impl FnMut(&MovedPair) -> Judgement,
) -> Vec<MovedPair> {
    let mut pairs = take_damaged(&mut candidates, proof);
    candidates.retain(|candidate| !candidate.has_a_kept_name());
    candidates.sort_unstable_by_key(|c| (c.key, c.name, c.side(), c.record));
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

/// True if both sides have a content. Different contents prove nothing: on another disk they may
/// well have the same numbers, sizes and times.
pub(crate) fn any_pair(candidates: &mut [Candidate]) -> bool {
    candidates.sort_unstable_by_key(|c| (c.key, c.side()));
    let mut same = candidates.chunk_by(|a, b| a.key == b.key);
    same.any(|same| {
        let has = |side| {
            same.iter()
                .any(|c| c.side() == side && !c.has_a_kept_name())
        };
        has(Side::Removed) && has(Side::Added)
    })
}

/// Takes candidates that look like one file with two contents out, in pairs.
fn take_damaged(
    candidates: &mut Vec<Candidate>,
    proof: impl FnMut(&MovedPair) -> Judgement,
) -> Vec<MovedPair> {
    let (pairs, mut taken) = damaged(candidates, proof);
    taken.sort_unstable();
    candidates.retain(|c| taken.binary_search(&c.record).is_err());
    pairs
}

/// Pairs candidates that look like one file with two contents, and returns the records of both.
/// If the file has its old content under any of its new names (two disks may well have the same
/// numbers), that is a move and nothing else. Each of its new names is reported: those beyond the
/// number of its old ones are pairs of the last of these.
fn damaged(
    candidates: &mut [Candidate],
    mut proof: impl FnMut(&MovedPair) -> Judgement,
) -> (Vec<MovedPair>, Vec<Word>) {
    candidates.sort_unstable_by_key(|c| (c.file, c.side(), c.record));
    let mut pairs = Vec::new();
    let mut taken = Vec::new();
    for same in candidates.chunk_by(|a, b| a.file == b.file) {
        let (removed, added) = same.split_at(same.partition_point(|c| c.side() == Side::Removed));
        let without = |of: &[Candidate], other: &[Candidate]| -> Vec<Candidate> {
            let differs = |c: &&Candidate| other.iter().all(|o| o.key != c.key);
            of.iter().filter(differs).copied().collect()
        };
        if removed.is_empty() || added.is_empty() || same[0].file == Word::from(0) {
            continue;
        }
        let (removed, added) = (without(removed, added), without(added, removed));
        let Some(last) = removed.len().checked_sub(1) else {
            continue;
        };
        for (nth, to) in added.iter().enumerate() {
            let from = &removed[nth.min(last)];
            let mut pair = MovedPair::of(from, to).with(1);
            match proof(&pair) {
                Judgement::Same => {}
                Judgement::Unproven(_) => pair = pair.with(4),
                Judgement::Other => continue,
            }
            if nth > last {
                pair = pair.with(2);
            } else {
                taken.push(from.record);
            }
            taken.push(to.record);
            pairs.push(pair);
        }
    }
    (pairs, taken)
}

fn zip<'a>(
    removed: &'a [Candidate],
    added: &'a [Candidate],
) -> impl Iterator<Item = MovedPair> + 'a {
    removed.iter().zip(added).map(|(r, a)| MovedPair::of(r, a))
}

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

/// Returns the names that have the contents of names which lost them, and those that have theirs in
/// turn: files that were renamed one after the other, the first of them to a name that is not part
/// of it. `lost` are the keys of contents that their names have no longer.
pub(crate) fn chained<K: Copy + Eq + Hash>(
    all: &[Renamed<K>],
    lost: impl IntoIterator<Item = K>,
) -> HashSet<u64> {
    let mut found = HashSet::new();
    if all.is_empty() {
        return found;
    }
    let mut by_content: HashMap<K, Vec<&Renamed<K>>> = HashMap::new();
    for one in all {
        by_content.entry(one.is).or_default().push(one);
    }
    let mut lost: Vec<K> = lost.into_iter().collect();
    while let Some(key) = lost.pop() {
        for one in by_content.remove(&key).into_iter().flatten() {
            found.insert(one.name);
            lost.push(one.was);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use Side::{Added, Removed};

    use super::*;

    fn pairs(files: &[(Side, &str, &[u8], u64)]) -> Vec<(u64, u64)> {
        let of = |(nth, file): (u64, &(Side, &str, &[u8], u64))| {
            let &(side, path, digest, size) = file;
            // Each a file of its own.
            candidate(side, path, digest, (nth, size, 0), nth)
        };
        let all: Vec<Candidate> = (0..).zip(files).filter_map(of).collect();
        let any = any_pair(&mut all.clone());
        let found = pair(all, |_| Judgement::Same);
        assert_eq!(any, !found.is_empty());
        assert!(found.iter().all(|pair| !pair.is_damaged()));
        found.iter().map(|p| (p.removed(), p.added())).collect()
    }

    fn candidate(
        side: Side,
        path: &str,
        digest: &[u8],
        (ino, size, mtime): (u64, u64, i64),
        record: u64,
    ) -> Option<Candidate> {
        let view = EntryRef {
            digest: Some(digest),
            ino: Some(ino),
            size: Some(size),
            mtime_ns: Some(mtime),
            ..EntryRef::new(bc_manifest::integrity::Kind::File)
        };
        Candidate::new(side, path.as_bytes(), &view, Numbers::Stable, record)
    }

    /// Inode, size, mtime.
    type File = (u64, u64, i64);

    /// Returns the pairs of these: removed, added, damaged.
    fn files(files: &[(Side, &[u8], File)]) -> Vec<(u64, u64, bool)> {
        let of = |(nth, &(side, digest, file))| candidate(side, "p", digest, file, nth);
        let all: Vec<Candidate> = (0..).zip(files).filter_map(of).collect();
        let any = any_pair(&mut all.clone());
        let found = pair(all.clone(), |_| Judgement::Same);
        let by_content = found.iter().any(|pair| !pair.is_damaged());
        assert!(any || !by_content);
        // Another file is a pair with nothing but its own content.
        let apart = pair(all, |_| Judgement::Other);
        assert!(apart.iter().all(|pair| !pair.is_damaged()));
        found
            .iter()
            .map(|p| (p.removed(), p.added(), p.is_damaged()))
            .collect()
    }

    #[test]
    fn one_file_with_two_contents_is_damaged() {
        let file = (5, 9, 7);
        let (old, new): (&[u8], &[u8]) = (b"old", b"new");
        let pair = |other| files(&[(Removed, old, file), (Added, new, other)]);
        assert_eq!(pair(file), [(0, 1, true)]);
        for other in [(6, 9, 7), (5, 8, 7), (5, 9, 6)] {
            assert_eq!(pair(other), [], "{other:?}");
        }
        // Undamaged elsewhere, as on a second disk with the same numbers.
        let clones = [
            (Removed, old, file),
            (Removed, new, file),
            (Added, new, file),
            (Added, old, file),
        ];
        assert_eq!(files(&clones), [(0, 3, false), (1, 2, false)]);
        // A copy of what it was does not hide that it is damaged.
        let copied = [
            (Removed, old, file),
            (Added, old, (6, 9, 7)),
            (Added, new, file),
        ];
        assert_eq!(files(&copied), [(0, 2, true)]);
        // Hard links.
        let linked = [
            (Removed, old, file),
            (Removed, old, file),
            (Added, new, file),
            (Added, new, file),
            (Added, new, file),
        ];
        assert_eq!(files(&linked), [(0, 2, true), (1, 3, true), (1, 4, true)]);
    }

    #[test]
    fn numbers_that_move_tell_nothing() {
        let of = |side, digest: &'static [u8], numbers, record| {
            let view = EntryRef {
                digest: Some(digest),
                ino: Some(5),
                size: Some(9),
                mtime_ns: Some(7),
                ..EntryRef::new(bc_manifest::integrity::Kind::File)
            };
            Candidate::new(side, b"p", &view, numbers, record).unwrap()
        };
        let (stable, moving) = (Numbers::Stable, Numbers::Moving);
        for (was, is, pairs) in [
            (stable, stable, 1),
            (stable, moving, 0),
            (moving, moving, 0),
        ] {
            let both = vec![of(Removed, b"old", was, 0), of(Added, b"new", is, 1)];
            assert_eq!(
                pair(both, |_| Judgement::Same).len(),
                pairs,
                "{was:?} {is:?}"
            );
            // Equal content is a move all the same.
            let both = vec![of(Removed, b"old", was, 0), of(Added, b"old", is, 1)];
            assert_eq!(pair(both, |_| Judgement::Same).len(), 1, "{was:?} {is:?}");
        }
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

    #[test]
    fn chains_begin_where_a_name_is_gone() {
        let name = |name, was, is| Renamed { was, is, name };
        // 1 went from its name to that of 2, and so on; 9 is a copy, and 7 comes from nowhere.
        let all = [
            name(10, 2, 1),
            name(11, 3, 2),
            name(12, 4, 3),
            name(13, 5, 9),
            name(14, 6, 7),
            name(15, 8, 1),
        ];
        let mut found: Vec<u64> = chained(&all, [1]).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [10, 11, 12, 15]);
        assert!(chained(&all, []).is_empty());
        // Two that go round end.
        assert_eq!(chained(&[name(1, 2, 3), name(2, 3, 2)], [3]).len(), 2);
    }
}
