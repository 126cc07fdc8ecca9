//! Compares two manifests: both are packed, put in order of paths, and run through side by side; paths
//! that only one has are paired by their content. Everything is in a few arrays.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use bc_digest::Algorithm;

use crate::FileDigests;
use crate::packed::{Packed, number};

/// One difference. Sorted by path; a move by the path it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffEntry<'a> {
    /// Only in the new manifest, its content too: the old one has it under no name.
    Added(&'a [u8]),
    /// Only in the old manifest, its content too: the new one has it under no name.
    Removed(&'a [u8]),
    /// In both with different digests.
    Modified(&'a [u8]),
    /// Same content under another name. Of the paths that only one manifest has, as many as can be
    /// are pairs; one that is left over, since the numbers of copies differ, is reported with the
    /// first path that has its content in the other manifest.
    Moved {
        /// Path in the old manifest.
        from: &'a [u8],
        /// Path in the new manifest.
        to: &'a [u8],
    },
}

impl<'a> DiffEntry<'a> {
    /// Returns the order: by path; then the first of several changes of one path, which a copied
    /// and modified file has.
    fn key(self) -> (&'a [u8], &'a [u8]) {
        match self {
            DiffEntry::Added(path) | DiffEntry::Removed(path) | DiffEntry::Modified(path) => {
                (path, b"")
            }
            DiffEntry::Moved { from, to } => (from, to),
        }
    }
}

/// A path that both manifests list without an algorithm in common, or the first of the old one
/// if no two digests could be compared at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomparable {
    /// The first such path.
    pub path: Vec<u8>,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        write!(f, "{path}: the two manifests have no algorithm in common")
    }
}

impl std::error::Error for Incomparable {}

/// The differences and how many paths are the same.
#[derive(Debug)]
pub struct Differences {
    old: Side,
    new: Side,
    changes: Vec<PackedChange>,
    same: u64,
}

/// A change, by its records in the old and the new manifest.
#[derive(Clone, Copy, Debug)]
enum PackedChange {
    Added(PackedRecord),
    Removed(PackedRecord),
    Modified(PackedRecord),
    Moved {
        from: PackedRecord,
        to: PackedRecord,
    },
}

impl Differences {
    /// Returns the changes, sorted by path.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = DiffEntry<'_>> {
        self.changes.iter().map(|change| self.change(*change))
    }

    /// Returns the number of paths with equal digests.
    pub fn same(&self) -> u64 {
        self.same
    }

    fn change(&self, change: PackedChange) -> DiffEntry<'_> {
        match change {
            PackedChange::Added(record) => DiffEntry::Added(self.new.path(record)),
            PackedChange::Removed(record) => DiffEntry::Removed(self.old.path(record)),
            PackedChange::Modified(record) => DiffEntry::Modified(self.old.path(record)),
            PackedChange::Moved { from, to } => DiffEntry::Moved {
                from: self.old.path(from),
                to: self.new.path(to),
            },
        }
    }

    fn sort(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_unstable_by(|a, b| self.change(*a).key().cmp(&self.change(*b).key()));
        self.changes = changes;
    }
}

/// Returns the bytes of memory that comparing a line takes at most: arrays grow by doubling.
pub fn line_memory(file: &FileDigests) -> u64 {
    let digests = file
        .digests
        .iter()
        .map(|(_, digest)| 2 + digest.as_bytes().len());
    (LINE + 2 * (file.path.len() + digests.sum::<usize>())) as u64
}

/// Bytes for each line beside its path and digests: where it begins, its place in the order, and a
/// change.
const LINE: usize = 128;

/// Compares two manifests. Several records of one path (as several algorithms give) count as one. A
/// path with a record without a digest is not reported, nor are paths below it, should it be a
/// directory: it existed, and could not be read.
///
/// # Errors
/// A path that both list without an algorithm in common; two manifests without one.
pub fn diff_digests(
    old: impl Iterator<Item = FileDigests>,
    new: impl Iterator<Item = FileDigests>,
) -> Result<Differences, Incomparable> {
    let (old, new) = (Side::of(old), Side::of(new));
    let (changes, same) = changes(&old, &new)?;
    let mut differences = Differences {
        old,
        new,
        changes,
        same,
    };
    differences.sort();
    Ok(differences)
}

/// Returns the changes, and the number of paths that are the same.
fn changes(old: &Side, new: &Side) -> Result<(Vec<PackedChange>, u64), Incomparable> {
    if let (Some(first), Some(_)) = (old.paths().next(), new.paths().next())
        && !old.has_algorithm_of(new)
    {
        let path = old.path(first.start).to_vec();
        return Err(Incomparable { path });
    }
    let (mut changes, mut same) = (Vec::new(), 0);
    // Paths that only one side has.
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (old.paths().peekable(), new.paths().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(was), Some(is)) => old.path(was.start).cmp(new.path(is.start)),
        };
        let was = before.next_if(|_| order.is_le());
        let is = after.next_if(|_| order.is_ge());
        match (was, is) {
            (Some(was), Some(is)) => {
                let path = was.start;
                match compare(old, was, new, is) {
                    None => {
                        let path = old.path(path).to_vec();
                        return Err(Incomparable { path });
                    }
                    Some(true) => same += 1,
                    Some(false) => changes.push(PackedChange::Modified(path)),
                }
            }
            (Some(was), None) if new.is_unread(old.path(was.start)) => {}
            (None, Some(is)) if old.is_unread(new.path(is.start)) => {}
            (Some(was), None) => removed.push(was.start),
            (None, Some(is)) => added.push(is.start),
            (None, None) => {}
        }
    }
    moves(old, removed, new, added, &mut changes);
    Ok((changes, same))
}

/// Returns whether the digests of one path are the same on both sides, as far as they are of the
/// same algorithms; `None` if none are.
fn compare(
    old: &Side,
    was: Range<PackedRecord>,
    new: &Side,
    is: Range<PackedRecord>,
) -> Option<bool> {
    let new_in_old = new.digests(is.clone());
    let new_in_old = new_in_old.filter_map(|digest| old.confirms(was.clone(), digest));
    let old_in_new = old.digests(was.clone());
    let old_in_new = old_in_new.filter_map(|digest| new.confirms(is.clone(), digest));
    new_in_old.chain(old_in_new).reduce(|all, same| all && same)
}

/// A record, as its index in the order of paths. A path with several records is represented by the
/// first.
type PackedRecord = usize;

/// All records of a manifest.
#[derive(Debug)]
struct Side {
    packed: Packed,
    /// Offset of each record, in order of paths, those of one path as they came.
    starts: Vec<usize>,
    /// True, by number of algorithm, if there is any digest of it.
    algorithms: Vec<bool>,
    /// Paths of records without a digest, in order.
    unread: Vec<Vec<u8>>,
}

impl Side {
    fn of(items: impl Iterator<Item = FileDigests>) -> Side {
        let mut side = Side {
            packed: Packed::default(),
            starts: Vec::new(),
            algorithms: vec![false; Algorithm::ALL.len()],
            unread: Vec::new(),
        };
        for item in items {
            match item.digests.is_empty() {
                false => side.push(&item),
                true => side.unread.push(item.path),
            }
        }
        side.unread.sort_unstable();
        let mut starts = std::mem::take(&mut side.starts);
        // Stable, and quick where they are in order already, as most are.
        starts.sort_by(|a, b| side.path_at(*a).cmp(side.path_at(*b)));
        side.starts = starts;
        side
    }

    fn push(&mut self, item: &FileDigests) {
        let start = self.packed.push(&item.path, &item.digests);
        self.starts.push(start);
        for (algorithm, _) in &item.digests {
            self.algorithms[usize::from(number(*algorithm))] = true;
        }
    }

    fn path_at(&self, start: usize) -> &[u8] {
        self.packed.path(start)
    }

    fn path(&self, record: PackedRecord) -> &[u8] {
        self.path_at(self.starts[record])
    }

    /// True if a record without a digest names the path, or a directory above it.
    fn is_unread(&self, path: &[u8]) -> bool {
        // There is hardly ever one.
        if self.unread.is_empty() {
            return false;
        }
        let is_unread = |path: &[u8]| {
            let found = self.unread.binary_search_by(|known| known[..].cmp(path));
            found.is_ok()
        };
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        is_unread(path) || ends.map(|(end, _)| &path[..end]).any(is_unread)
    }

    /// Returns the records of each path, in order of paths.
    fn paths(&self) -> impl Iterator<Item = Range<PackedRecord>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let records = (start < self.starts.len()).then(|| self.records(start))?;
            start = records.end;
            Some(records)
        })
    }

    /// Returns the records of the path whose first record is `first`.
    fn records(&self, first: PackedRecord) -> Range<PackedRecord> {
        let path = self.path(first);
        let of_path = |start: &&usize| self.path_at(**start) == path;
        let count = self.starts[first..].iter().take_while(of_path).count();
        first..first + count
    }

    /// Returns the offsets of the digests of some records.
    fn places(&self, records: Range<PackedRecord>) -> impl Iterator<Item = usize> {
        let starts = self.starts[records].iter();
        starts.flat_map(|start| self.packed.places(*start))
    }

    /// Returns the digest at a place, with its algorithm: two are equal if these bytes are.
    fn digest(&self, place: usize) -> &[u8] {
        self.packed.digest(place)
    }

    fn digests(&self, records: Range<PackedRecord>) -> impl Iterator<Item = &[u8]> {
        self.places(records).map(|place| self.digest(place))
    }

    /// Returns whether `digest` is one of these records'; `None` if they have none of its
    /// algorithm.
    fn confirms(&self, records: Range<PackedRecord>, digest: &[u8]) -> Option<bool> {
        let of_algorithm = self.digests(records).filter(|own| own[0] == digest[0]);
        of_algorithm.fold(None, |same, own| Some(same == Some(true) || own == digest))
    }

    /// True if both have an algorithm in common.
    fn has_algorithm_of(&self, other: &Side) -> bool {
        let mut both = self.algorithms.iter().zip(&other.algorithms);
        both.any(|(own, others)| *own && *others)
    }
}

/// Pairs removed and added paths of the same digests, both in path order. A path without a partner
/// there is paired with the path that has its content in the other manifest; only a path without
/// one is removed or added. Contents are the same if the digests of all common algorithms are: a
/// short one may be equal by chance.
fn moves(
    old: &Side,
    removed: Vec<PackedRecord>,
    new: &Side,
    added: Vec<PackedRecord>,
    changes: &mut Vec<PackedChange>,
) {
    let mut left = removed;
    if !added.is_empty() {
        let contents = DigestIndex::of(old);
        let mut queues = Queues::of(&contents, &left);
        for to in added {
            let digests = digests_of(new, to);
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
                Some(from) => PackedChange::Moved { from, to },
                None => PackedChange::Added(to),
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
        let digests = digests_of(old, from);
        let places = digests.iter();
        let to = places.filter_map(|digest| contents.first(digest, is_same));
        changes.push(match to.min() {
            Some(to) => PackedChange::Moved { from, to },
            None => PackedChange::Removed(from),
        });
    }
}

/// Returns the digests of a path, in an order that does not depend on that of its lines.
fn digests_of(side: &Side, path: PackedRecord) -> Vec<&[u8]> {
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

#[cfg(test)]
mod tests;
