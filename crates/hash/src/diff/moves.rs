//! Moves among the paths that only one manifest has.

use super::packed::{PackedRecord, Side};
use super::{Packed, compare};

/// Pairs removed and added paths of the same digests, both in path order. A path without a partner
/// there is paired with the path that has its content in the other manifest; only a path without
/// one is removed or added. Contents are the same if the digests of all common algorithms are: a
/// short one may be equal by chance.
pub(super) fn moves(
    old: &Side,
    removed: Vec<PackedRecord>,
    new: &Side,
    added: Vec<PackedRecord>,
    changes: &mut Vec<Packed>,
) {
    let mut left = removed;
    if !added.is_empty() {
        let contents = DigestIndex::of(old);
        let mut queues = Queues::of(&contents, &left);
        for to in added {
            let digests = of(new, to);
            let is_same = |from| is_same(old, from, new, to);
            let partner = digests
                .iter()
                .find_map(|digest| queues.take(&contents, digest, is_same));
            let from = partner.or_else(|| {
                let places = digests.iter();
                places
                    .filter_map(|digest| contents.first(digest, is_same))
                    .min()
            });
            changes.push(match from {
                Some(from) => Packed::Moved { from, to },
                None => Packed::Added(to),
            });
        }
        left.retain(|record| !queues.is_gone(*record));
    }
    if left.is_empty() {
        return;
    }
    let contents = DigestIndex::of(new);
    for from in left {
        let is_same = |to| is_same(old, from, new, to);
        let digests = of(old, from);
        let places = digests.iter();
        let to = places.filter_map(|digest| contents.first(digest, is_same));
        changes.push(match to.min() {
            Some(to) => Packed::Moved { from, to },
            None => Packed::Removed(from),
        });
    }
}

/// Returns the digests of a path, in an order that does not depend on that of its lines.
fn of(side: &Side, path: PackedRecord) -> Vec<&[u8]> {
    let mut digests: Vec<&[u8]> = side.digests(side.records(path)).collect();
    digests.sort_unstable();
    digests
}

/// True if two paths have the same content.
fn is_same(old: &Side, from: PackedRecord, new: &Side, to: PackedRecord) -> bool {
    compare(old, old.records(from), new, new.records(to)) == Some(true)
}

/// Index of a manifest's contents by digest.
struct DigestIndex<'a> {
    side: &'a Side,
    /// Digests by their place, with the path that has it; in order of digests and paths.
    all: Vec<(usize, PackedRecord)>,
}

impl DigestIndex<'_> {
    fn of(side: &Side) -> DigestIndex<'_> {
        let mut all = Vec::new();
        for records in side.paths() {
            let path = records.start;
            all.extend(side.places(records).map(|place| (place, path)));
        }
        all.sort_unstable_by(|a, b| (side.digest(a.0), a.1).cmp(&(side.digest(b.0), b.1)));
        DigestIndex { side, all }
    }

    fn is(&self, at: usize, digest: &[u8]) -> bool {
        self.all
            .get(at)
            .is_some_and(|(place, _)| self.side.digest(*place) == digest)
    }

    /// Returns the index of the first place with this digest, if there is one.
    fn begin(&self, digest: &[u8]) -> Option<usize> {
        let before = |one: &(usize, PackedRecord)| self.side.digest(one.0) < digest;
        let at = self.all.partition_point(before);
        self.is(at, digest).then_some(at)
    }

    /// Returns the paths with this digest, from the place `at` on.
    fn from(&self, at: usize, digest: &[u8]) -> impl Iterator<Item = PackedRecord> {
        let same = (at..).take_while(move |at| self.is(*at, digest));
        same.map(|at| self.all[at].1)
    }

    /// Returns the first path with this digest that is the right one.
    fn first(
        &self,
        digest: &[u8],
        is_right: impl Fn(PackedRecord) -> bool,
    ) -> Option<PackedRecord> {
        let mut paths = self.from(self.begin(digest)?, digest);
        paths.find(|record| is_right(*record))
    }
}

/// Removed paths that wait for a partner, in path order for each content.
struct Queues {
    /// Number of records passed, at the index of the first record of each content.
    passed: Vec<usize>,
    /// True, by record, for one that waits for a partner.
    waits: Vec<bool>,
}

impl Queues {
    fn of(contents: &DigestIndex<'_>, removed: &[PackedRecord]) -> Queues {
        let records = removed.last().map_or(0, |last| last + 1);
        let mut waits = vec![false; records];
        for record in removed {
            waits[*record] = true;
        }
        Queues {
            passed: vec![0; contents.all.len()],
            waits,
        }
    }

    /// Takes the next record that waits with this content, and is the right one.
    fn take(
        &mut self,
        contents: &DigestIndex<'_>,
        digest: &[u8],
        is_right: impl Fn(PackedRecord) -> bool,
    ) -> Option<PackedRecord> {
        let begin = contents.begin(digest)?;
        let waits = |record: &PackedRecord| self.waits.get(*record) == Some(&true);
        // Under another of its digests it may have been taken already.
        let gone = contents.from(begin + self.passed[begin], digest);
        let gone = gone.take_while(|record| !waits(record)).count();
        self.passed[begin] += gone;
        let mut left = contents.from(begin + self.passed[begin], digest);
        let record = left.find(|record| waits(record) && is_right(*record))?;
        self.waits[record] = false;
        Some(record)
    }

    /// True if the record was taken.
    fn is_gone(&self, record: PackedRecord) -> bool {
        !self.waits[record]
    }
}
