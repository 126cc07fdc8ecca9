//! Which of the paths that one manifest alone has are moves.

use super::Packed;
use super::packed::{Record, Side};

/// Pairs removed and added paths of the same digest, both in path order. What finds no partner
/// there goes with the path that has its content in the other manifest; only what has none is
/// removed or added.
pub(super) fn moves(
    (old, removed): (&Side, Vec<Record>),
    (new, added): (&Side, Vec<Record>),
    changes: &mut Vec<Packed>,
) {
    let mut left = removed;
    if !added.is_empty() {
        let contents = Contents::of(old);
        let mut queues = Queues::of(&contents, &left);
        for to in added {
            let places = || new.places(new.records(to)).map(|place| new.digest(place));
            let partner = places().find_map(|digest| queues.take(&contents, digest));
            let from = partner.or_else(|| places().find_map(|digest| contents.first(digest)));
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
    let contents = Contents::of(new);
    for from in left {
        let mut digests = old.digests(old.records(from));
        changes.push(match digests.find_map(|digest| contents.first(digest)) {
            Some(to) => Packed::Moved { from, to },
            None => Packed::Removed(from),
        });
    }
}

/// Where each content of a manifest is.
struct Contents<'a> {
    side: &'a Side,
    /// Digests by their place, with the path that has it; in order of digests and paths.
    all: Vec<(usize, Record)>,
}

impl Contents<'_> {
    fn of(side: &Side) -> Contents<'_> {
        let mut all = Vec::new();
        for records in side.paths() {
            let path = records.start;
            all.extend(side.places(records).map(|place| (place, path)));
        }
        all.sort_unstable_by(|a, b| (side.digest(a.0), a.1).cmp(&(side.digest(b.0), b.1)));
        Contents { side, all }
    }

    fn is(&self, at: usize, digest: &[u8]) -> bool {
        self.all
            .get(at)
            .is_some_and(|(place, _)| self.side.digest(*place) == digest)
    }

    /// Where those with this digest begin, if there are any.
    fn begin(&self, digest: &[u8]) -> Option<usize> {
        let before = |one: &(usize, Record)| self.side.digest(one.0) < digest;
        let at = self.all.partition_point(before);
        self.is(at, digest).then_some(at)
    }

    /// The first path with this digest.
    fn first(&self, digest: &[u8]) -> Option<Record> {
        Some(self.all[self.begin(digest)?].1)
    }
}

/// Removed paths that wait for a partner, in path order for each content.
struct Queues {
    /// For the first of each content: how many of it were passed.
    passed: Vec<usize>,
    /// By record: is it one that waits?
    waits: Vec<bool>,
}

impl Queues {
    fn of(contents: &Contents<'_>, removed: &[Record]) -> Queues {
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

    /// The next that waits with this content.
    fn take(&mut self, contents: &Contents<'_>, digest: &[u8]) -> Option<Record> {
        let begin = contents.begin(digest)?;
        loop {
            let at = begin + self.passed[begin];
            if !contents.is(at, digest) {
                return None;
            }
            self.passed[begin] += 1;
            let record = contents.all[at].1;
            // Under another of its digests it may have been taken already.
            if self.waits.get(record) == Some(&true) {
                self.waits[record] = false;
                return Some(record);
            }
        }
    }

    /// Was it taken?
    fn is_gone(&self, record: Record) -> bool {
        !self.waits[record]
    }
}
