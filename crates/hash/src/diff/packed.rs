//! The records of one manifest, packed and in order of paths.

use std::ops::Range;

use bc_digest::Algorithm;

use crate::FileDigests;
use crate::packed::{Packed, number};

/// A record, as its index in the order of paths. A path with several records is represented by the
/// first.
pub(super) type PackedRecord = usize;

/// All records of a manifest.
#[derive(Debug)]
pub(super) struct Side {
    packed: Packed,
    /// Offset of each record, in order of paths, those of one path as they came.
    starts: Vec<usize>,
    /// True, by number of algorithm, if there is any digest of it.
    algorithms: Vec<bool>,
    /// Paths of records without a digest, in order.
    unread: Vec<Vec<u8>>,
}

impl Side {
    pub(super) fn of(items: impl Iterator<Item = FileDigests>) -> Side {
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

    pub(super) fn path(&self, record: PackedRecord) -> &[u8] {
        self.path_at(self.starts[record])
    }

    /// True if a record without a digest names the path, or a directory above it.
    pub(super) fn is_unread(&self, path: &[u8]) -> bool {
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
    pub(super) fn paths(&self) -> impl Iterator<Item = Range<PackedRecord>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let begin = start;
            let path = self.path_at(*self.starts.get(begin)?);
            let of_path = |start: &&usize| self.path_at(**start) == path;
            start += self.starts[begin..].iter().take_while(of_path).count();
            Some(begin..start)
        })
    }

    /// Returns the records of the path whose first record is `first`.
    pub(super) fn records(&self, first: PackedRecord) -> Range<PackedRecord> {
        let path = self.path(first);
        let of_path = |start: &&usize| self.path_at(**start) == path;
        let count = self.starts[first..].iter().take_while(of_path).count();
        first..first + count
    }

    /// Returns the offsets of the digests of some records.
    pub(super) fn places(&self, records: Range<PackedRecord>) -> impl Iterator<Item = usize> {
        let starts = self.starts[records].iter();
        starts.flat_map(|start| self.packed.places(*start))
    }

    /// Returns the digest at a place, with its algorithm: two are equal if these bytes are.
    pub(super) fn digest(&self, place: usize) -> &[u8] {
        self.packed.digest(place)
    }

    pub(super) fn digests(&self, records: Range<PackedRecord>) -> impl Iterator<Item = &[u8]> {
        self.places(records).map(|place| self.digest(place))
    }

    /// Returns whether `digest` is one of these records'; `None` if they have none of its
    /// algorithm.
    pub(super) fn confirms(&self, records: Range<PackedRecord>, digest: &[u8]) -> Option<bool> {
        let of_algorithm = self.digests(records).filter(|own| own[0] == digest[0]);
        of_algorithm.fold(None, |same, own| Some(same == Some(true) || own == digest))
    }

    /// True if both have an algorithm in common.
    pub(super) fn has_algorithm_of(&self, other: &Side) -> bool {
        let mut both = self.algorithms.iter().zip(&other.algorithms);
        both.any(|(own, others)| *own && *others)
    }
}
