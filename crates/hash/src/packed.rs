//! Paths with the digests that their contents have or should have: one by one, and lines of lists in
//! one array, so that a list of millions takes its paths and digests, and little more.

use bc_digest::{Algorithm, Digest};

/// Bytes before the path.
const HEAD: usize = 8;

/// Records one after the other. Each has the length of its path and of its digests, 4 bytes each, and
/// these: a digest is the number of its algorithm, its length, and its bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    /// Adds a record; returns where it begins.
    pub(crate) fn push(&mut self, path: &[u8], digests: &[(Algorithm, Digest)]) -> usize {
        let start = self.0.len();
        self.0.extend_from_slice(&(path.len() as u32).to_le_bytes());
        self.0.extend_from_slice(&[0; 4]);
        self.0.extend_from_slice(path);
        let before = self.0.len();
        for (algorithm, digest) in digests {
            let bytes = digest.as_bytes();
            // At most 64.
            let head = [number(*algorithm), bytes.len() as u8];
            self.0.extend_from_slice(&head);
            self.0.extend_from_slice(bytes);
        }
        let len = (self.0.len() - before) as u32;
        self.0[start + 4..start + HEAD].copy_from_slice(&len.to_le_bytes());
        start
    }

    /// Assigns the first digest of the record that begins at `start` another algorithm.
    fn set_algorithm(&mut self, start: usize, algorithm: Algorithm) {
        let at = start + HEAD + self.length(start);
        self.0[at] = number(algorithm);
    }

    fn length(&self, at: usize) -> usize {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(bytes) as usize
    }

    /// Returns the path of the record that begins at `start`.
    pub(crate) fn path(&self, start: usize) -> &[u8] {
        &self.0[start + HEAD..][..self.length(start)]
    }

    /// Returns the offsets of that record's digests.
    pub(crate) fn places(&self, start: usize) -> impl Iterator<Item = usize> + use<'_> {
        let mut at = start + HEAD + self.length(start);
        let end = at + self.length(start + 4);
        std::iter::from_fn(move || {
            let place = (at < end).then_some(at)?;
            at += self.digest(place).len();
            Some(place)
        })
    }

    /// Returns the digest at a place, with its algorithm: two are equal if these bytes are.
    pub(crate) fn digest(&self, place: usize) -> &[u8] {
        let len = self.0[place + 1];
        &self.0[place..][..2 + usize::from(len)]
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.0.capacity()
    }
}

/// Returns the number of an algorithm.
pub(crate) fn number(algorithm: Algorithm) -> u8 {
    let at = Algorithm::ALL.iter().position(|known| *known == algorithm);
    // There are a few dozen.
    at.unwrap_or_default() as u8
}

/// Paths and the digests that their contents should have, in the order of a list.
#[derive(Clone, Debug, Default)]
pub struct ExpectedDigests {
    packed: Packed,
    starts: Vec<usize>,
}

impl ExpectedDigests {
    /// Adds a line.
    pub fn push(&mut self, path: &[u8], digests: &[(Algorithm, Digest)]) {
        let start = self.packed.push(path, digests);
        self.starts.push(start);
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the path of a line, by its number from 0.
    ///
    /// # Panics
    /// This and all others: if there is no such line.
    pub fn path(&self, line: usize) -> &[u8] {
        self.packed.path(self.starts[line])
    }

    /// Returns the digests of a line.
    pub fn digests(&self, line: usize) -> impl Iterator<Item = (Algorithm, Digest)> {
        self.raw(line).map(|raw| {
            let algorithm = Algorithm::ALL[usize::from(raw[0])];
            let digest = Digest::from_slice(&raw[2..]);
            (algorithm, digest.expect("a digest was put there"))
        })
    }

    /// Returns the digests of a line, each with its algorithm's number and its length before it.
    fn raw(&self, line: usize) -> impl Iterator<Item = &[u8]> {
        let places = self.packed.places(self.starts[line]);
        places.map(|place| self.packed.digest(place))
    }

    /// Assigns the first digest of a line another algorithm.
    pub(crate) fn set_algorithm(&mut self, line: usize, algorithm: Algorithm) {
        self.packed.set_algorithm(self.starts[line], algorithm);
    }

    /// Returns the bytes of memory that the lines take.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> u64 {
        (self.packed.memory() + self.starts.capacity() * size_of::<usize>()) as u64
    }
}

/// A path and the digests that its content has, or should have.
#[derive(Clone, Debug)]
pub struct FileDigests {
    /// Path as recorded, as raw bytes.
    pub path: Vec<u8>,
    /// At least one where it is to be [checked](crate::check::check), and then all of them must
    /// match; none, where manifests are compared, of a file that could not be read.
    pub digests: Vec<(Algorithm, Digest)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_digest::hash;

    #[test]
    fn lines_come_out_as_they_went_in() {
        let digest = |algorithm| (algorithm, hash(algorithm, b"x"));
        let all: Vec<_> = Algorithm::ALL.iter().map(|a| digest(*a)).collect();
        let mut lines = ExpectedDigests::default();
        lines.push(b"", &all[..1]);
        lines.push(b"all", &all);
        lines.push(b"none", &[]);
        let paths: Vec<_> = (0..lines.len()).map(|line| lines.path(line)).collect();
        assert_eq!(paths, [&b""[..], b"all", b"none"]);
        assert!(lines.digests(1).eq(all.iter().copied()));
        assert_eq!(lines.digests(2).count(), 0);
        lines.set_algorithm(1, Algorithm::Blake3);
        let (algorithm, digest) = lines.digests(1).next().unwrap();
        assert_eq!((algorithm, digest), (Algorithm::Blake3, all[0].1));
        assert!(lines.digests(1).skip(1).eq(all[1..].iter().copied()));
    }

    #[test]
    fn a_line_takes_little_more_than_it_says() {
        let mut lines = ExpectedDigests::default();
        let digest = hash(Algorithm::Sha256, b"");
        for number in 0..10_000 {
            let path = format!("a/directory/a-name-of-usual-length-{number:05}");
            lines.push(path.as_bytes(), &[(Algorithm::Sha256, digest)]);
        }
        let said = 10_000 * (45 + 32);
        let taken = lines.memory();
        // Arrays grow to twice what they hold at most.
        assert!(taken < 2 * (said + 10_000 * 18), "{taken}");
    }
}
