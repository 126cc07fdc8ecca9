//! The lines of a manifest, as stored or unpacked.

use std::io::{self, BufRead, BufReader, Read};

use super::Bytes;

/// Bytes that are read at once, while reading is sequential.
const MOST: usize = 128 << 10;

/// Bytes that are read first at a new place: few lines may be taken there.
const FIRST: usize = 4 << 10;

/// Bytes of a manifest's lines.
#[non_exhaustive]
pub enum LineInput {
    /// As stored.
    Plain(Plain),
    /// From a decoder.
    Unpacked(Box<dyn BufRead + Send>),
}

impl LineInput {
    /// Returns the offset in the manifest of the next byte, where it is not compressed.
    pub(crate) fn offset(&self) -> Option<u64> {
        match self {
            LineInput::Plain(plain) => Some(plain.start + plain.taken as u64),
            LineInput::Unpacked(_) => None,
        }
    }

    /// Continues at another offset of a manifest that is not compressed.
    pub(crate) fn go_to(&mut self, offset: u64) {
        if let LineInput::Plain(plain) = self {
            plain.go_to(offset);
        }
    }

    /// Makes later reads fail, since its lines are not where they were.
    pub(crate) fn has_changed(&mut self) {
        let changed = || io::Error::other("changed while it was read");
        *self = LineInput::Unpacked(Box::new(BufReader::new(Failing(changed))));
    }
}

/// Bytes as stored in the manifest.
pub struct Plain {
    bytes: Bytes,
    buffer: Vec<u8>,
    /// Offset of the buffer in the manifest, and the number of its bytes that are valid and taken.
    start: u64,
    len: usize,
    taken: usize,
    /// Bytes to be read next.
    step: usize,
}

impl Plain {
    pub(super) fn new(bytes: Bytes) -> Plain {
        Plain {
            bytes,
            buffer: Vec::new(),
            start: 0,
            len: 0,
            taken: 0,
            step: FIRST,
        }
    }

    fn go_to(&mut self, offset: u64) {
        let within = offset.checked_sub(self.start);
        if let Some(within) = within.filter(|within| *within <= self.len as u64) {
            self.taken = within as usize;
            return;
        }
        // From where a page begins the kernel copies more than twice as fast as from beside it.
        let page = offset & !(FIRST as u64 - 1);
        (self.start, self.len, self.step) = (page, 0, FIRST);
        self.taken = (offset - page) as usize;
    }
}

impl BufRead for Plain {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.taken >= self.len {
            self.taken -= self.len;
            self.start += self.len as u64;
            self.len = 0;
            if self.buffer.len() < self.step {
                self.buffer.resize(self.step, 0);
            }
            self.len = self
                .bytes
                .read_at(&mut self.buffer[..self.step], self.start)?;
            self.step = (self.step * 4).min(MOST);
            if self.len == 0 {
                return Ok(&[]);
            }
        }
        Ok(&self.buffer[self.taken..self.len])
    }

    fn consume(&mut self, count: usize) {
        self.taken += count;
    }
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut there = self.fill_buf()?;
        let count = there.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

/// Fails whenever it is read.
struct Failing<F>(F);

impl<F: Fn() -> io::Error> Read for Failing<F> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0())
    }
}

impl Read for LineInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            LineInput::Plain(plain) => plain.read(buffer),
            LineInput::Unpacked(lines) => lines.read(buffer),
        }
    }
}

impl BufRead for LineInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            LineInput::Plain(plain) => plain.fill_buf(),
            LineInput::Unpacked(lines) => lines.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            LineInput::Plain(plain) => plain.consume(count),
            LineInput::Unpacked(lines) => lines.consume(count),
        }
    }
}
