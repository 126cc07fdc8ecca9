//! The records of one manifest, packed and in order of paths.

use std::ops::Range;

use bc_digest::Algorithm;

use crate::FileDigests;

/// A record, by its place in the order of paths. Of a path with several records the first stands
/// for it.
pub(super) type Record = usize;

/// All records of a manifest.
#[derive(Debug)]
pub(super) struct Side {
    /// For each record the length of its path and of its digests, 4 bytes each, and these: a
    /// digest is the number of its algorithm, its length, and its bytes.
    packed: Vec<u8>,
    /// Where each record begins, in order of paths, those of one path as they came.
    starts: Vec<usize>,
    /// By number: is there any digest of the algorithm?
    algorithms: Vec<bool>,
    /// Paths of records without a digest, in order.
    unread: Vec<Vec<u8>>,
}

/// Bytes before the path.
const HEAD: usize = 8;

impl Side {
    pub(super) fn of(items: impl Iterator<Item = FileDigests>) -> Side {
        let mut side = Side {
            packed: Vec::new(),
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
        let start = self.packed.len();
        self.starts.push(start);
        self.packed
            .extend_from_slice(&(item.path.len() as u32).to_le_bytes());
        self.packed.extend_from_slice(&[0; 4]);
        self.packed.extend_from_slice(&item.path);
        let before = self.packed.len();
        for (algorithm, digest) in &item.digests {
            let number = number(*algorithm);
            self.algorithms[usize::from(number)] = true;
            let bytes = digest.as_bytes();
            // At most 64.
            self.packed.extend_from_slice(&[number, bytes.len() as u8]);
            self.packed.extend_from_slice(bytes);
        }
        let len = (self.packed.len() - before) as u32;
        self.packed[start + 4..start + HEAD].copy_from_slice(&len.to_le_bytes());
    }

    fn length(&self, at: usize) -> usize {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.packed[at..at + 4]);
        u32::from_le_bytes(bytes) as usize
    }

    fn path_at(&self, start: usize) -> &[u8] {
        &self.packed[start + HEAD..][..self.length(start)]
    }

    pub(super) fn path(&self, record: Record) -> &[u8] {
        self.path_at(self.starts[record])
    }

    /// Does a record without a digest name the path, or what it lies below?
    pub(super) fn is_unread(&self, path: &[u8]) -> bool {
        // Nearly always there is none at all.
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

    /// The records of each path, in order of paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = Range<Record>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let begin = start;
            let path = self.path_at(*self.starts.get(begin)?);
            let of_path = |start: &&usize| self.path_at(**start) == path;
            start += self.starts[begin..].iter().take_while(of_path).count();
            Some(begin..start)
        })
    }

    /// The records of the path that `first` is the first of.
    pub(super) fn records(&self, first: Record) -> Range<Record> {
        let path = self.path(first);
        let of_path = |start: &&usize| self.path_at(**start) == path;
        let count = self.starts[first..].iter().take_while(of_path).count();
        first..first + count
    }

    /// The digests of some records, each with its algorithm, and where in the memory they are.
    pub(super) fn places(&self, records: Range<Record>) -> impl Iterator<Item = usize> {
        self.starts[records].iter().flat_map(move |&start| {
            let mut at = start + HEAD + self.length(start);
            let end = at + self.length(start + 4);
            std::iter::from_fn(move || {
                let place = (at < end).then_some(at)?;
                at += self.digest(place).len();
                Some(place)
            })
        })
    }

    /// The digest at a place, with its algorithm: two are equal if these bytes are.
    pub(super) fn digest(&self, place: usize) -> &[u8] {
        let len = self.packed[place + 1];
        &self.packed[place..][..2 + usize::from(len)]
    }

    pub(super) fn digests(&self, records: Range<Record>) -> impl Iterator<Item = &[u8]> {
        self.places(records).map(|place| self.digest(place))
    }

    /// Is `digest` one of these records'? `None` if they have none of its algorithm.
    pub(super) fn confirms(&self, records: Range<Record>, digest: &[u8]) -> Option<bool> {
        let of_algorithm = self.digests(records).filter(|own| own[0] == digest[0]);
        of_algorithm.fold(None, |same, own| Some(same == Some(true) || own == digest))
    }

    /// Have they an algorithm in common?
    pub(super) fn has_algorithm_of(&self, other: &Side) -> bool {
        let mut both = self.algorithms.iter().zip(&other.algorithms);
        both.any(|(own, others)| *own && *others)
    }
}

fn number(algorithm: Algorithm) -> u8 {
    let at = Algorithm::ALL.iter().position(|known| *known == algorithm);
    // There are a few dozen.
    at.unwrap_or_default() as u8
}
