//! Bytes that wait for a second look: few of them in memory, more in a file without a name in the
//! temporary directory (`TMPDIR`), where there can be one. However the process ends, the file goes
//! with it.
//!
//! ```
//! let mut spill = bc_edit::spill::Spill::keeping(100);
//! let offset = spill.push(&[7; 1000]);
//! let mut bytes = [0; 3];
//! spill.read_exact_at(&mut bytes, offset + 997)?;
//! assert_eq!((bytes, spill.len()), ([7; 3], 1000));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::content::{self, create_temporary};

/// Bytes in the order they came, each known by its offset.
#[derive(Debug)]
pub struct Spill {
    /// Bytes that are not in the file.
    bytes: Vec<u8>,
    file: Overflow,
    /// Bytes in the file.
    spilled: u64,
    kept: usize,
}

#[derive(Debug)]
enum Overflow {
    NotYet,
    To(File),
    /// There is no place for one, or none any more: all that comes stays in memory.
    Never,
}

impl Spill {
    /// Makes an empty one that keeps up to `kept` bytes in memory.
    pub fn keeping(kept: usize) -> Spill {
        Spill {
            bytes: Vec::new(),
            file: Overflow::NotYet,
            spilled: 0,
            kept,
        }
    }

    /// True if nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes, which is the offset that the next ones will have.
    pub fn len(&self) -> u64 {
        self.spilled + self.bytes.len() as u64
    }

    /// Appends bytes, and returns the offset of the first.
    pub fn push(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.len();
        // Before, so that memory for more than is kept is asked for by long pieces only.
        if !self.bytes.is_empty() && self.bytes.len().saturating_add(bytes.len()) > self.kept {
            self.spill();
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.kept {
            self.spill();
        }
        offset
    }

    /// Moves the bytes in memory to the file, if possible.
    fn spill(&mut self) {
        if matches!(self.file, Overflow::NotYet) {
            self.file = create_temporary().map_or(Overflow::Never, |fd| Overflow::To(fd.into()));
        }
        let Overflow::To(file) = &self.file else {
            return;
        };
        if content::write_all_at(file, &self.bytes, self.spilled).is_ok() {
            self.spilled += self.bytes.len() as u64;
            self.bytes.clear();
        } else {
            // A full disk: bytes written already stay readable.
            self.kept = usize::MAX;
        }
    }

    /// Fills `buffer` with the bytes from an offset on.
    ///
    /// # Errors
    /// If reading fails, or there are not so many.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reader(offset, offset.saturating_add(buffer.len() as u64))
            .read_exact(buffer)
    }

    /// Returns a reader of the bytes from one offset to another, as far as there are any.
    pub fn reader(&self, start: u64, end: u64) -> impl Read + '_ {
        SpillReader {
            spill: self,
            at: start,
            end: end.min(self.len()),
        }
    }
}

/// Reads some of the bytes, from file and memory.
struct SpillReader<'a> {
    spill: &'a Spill,
    at: u64,
    end: u64,
}

impl Read for SpillReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let buffer = &mut buffer[..most];
        let count = match (self.at.checked_sub(self.spill.spilled), &self.spill.file) {
            (None, Overflow::To(file)) => {
                let in_file = (self.spill.spilled - self.at).min(buffer.len() as u64);
                file.read_at(&mut buffer[..in_file as usize], self.at)?
            }
            (at, _) => (&self.spill.bytes[at.unwrap_or(0) as usize..]).read(buffer)?,
        };
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_to_a_file_where_there_can_be_one() {
        let mut spill = Spill::keeping(100);
        let offsets: Vec<u64> = (0..1000)
            .map(|n: u16| spill.push(&n.to_le_bytes()))
            .collect();
        match spill.file {
            Overflow::To(_) => assert!(spill.bytes.len() <= 100 && spill.spilled > 0),
            _ => assert_eq!(spill.spilled, 0),
        }
        let get = |spill: &Spill, offset| {
            let mut bytes = [0; 2];
            spill.read_exact_at(&mut bytes, offset).unwrap();
            u16::from_le_bytes(bytes)
        };
        for (n, offset) in (0..).zip(offsets) {
            assert_eq!(get(&spill, offset), n);
        }
        // A disk that is full from here on.
        spill.file = Overflow::To(File::open("/dev/null").unwrap());
        let before = spill.spilled;
        let offset = (0..1000).map(|n: u16| spill.push(&n.to_le_bytes())).last();
        assert_eq!(spill.spilled, before);
        assert_eq!(get(&spill, offset.unwrap()), 999);
    }

    #[test]
    fn all_that_was_appended_is_read_in_order() {
        for kept in [0, 1, 500, usize::MAX] {
            let mut spill = Spill::keeping(kept);
            assert!(spill.is_empty());
            let mut expected = Vec::new();
            for n in 0..300_usize {
                let bytes = vec![n as u8; n % 7];
                assert_eq!(spill.push(&bytes), expected.len() as u64);
                expected.extend(bytes);
            }
            for (start, end) in [(0, expected.len()), (5, 5), (100, 700), (0, usize::MAX)] {
                let mut found = Vec::new();
                let mut reader = spill.reader(start as u64, end as u64);
                reader.read_to_end(&mut found).unwrap();
                assert_eq!(found, expected[start..end.min(expected.len())], "{kept}");
            }
            assert!(spill.read_exact_at(&mut [0; 9], spill.len() - 8).is_err());
        }
    }
}
