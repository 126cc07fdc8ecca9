//! Lines of digests, packed: 21 bytes each beside path and digest, in two arrays.

use bc_digest::Digest;
use bc_manifest::integrity::path_order;

/// One line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PackedLine<'a> {
    pub(super) path: &'a [u8],
    pub(super) digest: &'a [u8],
    /// Size in bytes, if the file contains it.
    pub(super) size: Option<u64>,
}

/// Lines, as far as they fit in the memory that they may take.
#[derive(Default)]
pub(super) struct Lines {
    /// Bytes that they may take; `None` for any number.
    most: Option<u64>,
    /// Bytes that all lines take, also those that did not fit.
    needed: u64,
    /// For each line the length of its path in 4 bytes, that of its digest in one, with [`SIZED`]
    /// if it has a size, which is in 8 bytes; then path and digest.
    packed: Vec<u8>,
    /// Offset at which each line begins.
    starts: Vec<u64>,
}

const SIZED: u8 = 0x80;

/// Bytes before the path.
const HEAD: usize = 13;

/// Bytes of a line beside path and digest, in both arrays.
const LINE: usize = HEAD + size_of::<u64>();

impl Lines {
    /// Makes an empty list that may take `most` bytes.
    pub(super) fn within(most: Option<u64>) -> Lines {
        Lines {
            most,
            ..Lines::default()
        }
    }

    /// Returns the bytes that the lines need, if they may not take as many: then there are none.
    pub(super) fn needed_beyond(&self) -> Option<u64> {
        self.most
            .filter(|most| self.needed > *most)
            .map(|_| self.needed)
    }

    /// Adds a line. Paths are shorter than 4 GiB: lines are.
    pub(super) fn push(&mut self, path: &[u8], digest: &Digest, size: Option<u64>) {
        let digest = digest.as_bytes();
        self.needed += (2 * (LINE + path.len() + digest.len())) as u64;
        if self.needed_beyond().is_some() {
            (self.packed, self.starts) = Default::default();
            return;
        }
        self.starts.push(self.packed.len() as u64);
        self.packed
            .extend_from_slice(&(path.len() as u32).to_le_bytes());
        // At most 64.
        let sized = if size.is_some() { SIZED } else { 0 };
        self.packed.push(digest.len() as u8 | sized);
        self.packed
            .extend_from_slice(&size.unwrap_or(0).to_le_bytes());
        self.packed.extend_from_slice(path);
        self.packed.extend_from_slice(digest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.needed == 0
    }

    fn at(packed: &[u8], start: u64) -> PackedLine<'_> {
        let line = &packed[start as usize..];
        let (mut len, mut size) = ([0; 4], [0; 8]);
        len.copy_from_slice(&line[..4]);
        size.copy_from_slice(&line[5..HEAD]);
        let (path, rest) = line[HEAD..].split_at(u32::from_le_bytes(len) as usize);
        PackedLine {
            path,
            digest: &rest[..usize::from(line[4] & !SIZED)],
            size: (line[4] & SIZED != 0).then(|| u64::from_le_bytes(size)),
        }
    }

    /// Sorts the lines by path, each line once.
    pub(super) fn sort(&mut self) {
        let packed = &self.packed;
        let line = |start: &u64| Lines::at(packed, *start);
        self.starts.sort_unstable_by(|a, b| {
            let (a, b) = (line(a), line(b));
            let rest = || (a.digest, a.size).cmp(&(b.digest, b.size));
            path_order(a.path, b.path).then_with(rest)
        });
        self.starts.dedup_by(|a, b| line(a) == line(b));
    }

    /// Returns a path that two lines have, once they are in order.
    pub(super) fn path_of_two(&self) -> Option<&[u8]> {
        let mut neighbours = self.iter().zip(self.iter().skip(1));
        let twice = neighbours.find(|(line, next)| line.path == next.path);
        twice.map(|(line, _)| line.path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = PackedLine<'_>> {
        let line = |start: &u64| Lines::at(&self.packed, *start);
        self.starts.iter().map(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_and_each_once() {
        let digest = |byte| Digest::from_slice(&[byte; 32]).unwrap();
        let all = [
            (&b"b"[..], digest(1), None),
            (b"a/\xff", digest(2), Some(0)),
            (b"b", digest(1), None),
            (b".", digest(3), Some(u64::MAX)),
            (b"a", Digest::from_slice(&[4; 64]).unwrap(), Some(7)),
        ];
        let mut lines = Lines::default();
        assert!(lines.is_empty());
        for (path, digest, size) in &all {
            lines.push(path, digest, *size);
        }
        lines.sort();
        let found: Vec<PackedLine<'_>> = lines.iter().collect();
        let expected = [3, 4, 1, 0].map(|at: usize| PackedLine {
            path: all[at].0,
            digest: all[at].1.as_bytes(),
            size: all[at].2,
        });
        assert_eq!(found, expected);
        assert_eq!(lines.path_of_two(), None);
        lines.push(b"a", &digest(4), None);
        lines.sort();
        assert_eq!(lines.path_of_two(), Some(&b"a"[..]));
    }
}
