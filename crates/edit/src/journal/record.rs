//! The text of a journal: records, each with its length and a checksum.
//!
//! ```text
//! head:    magic (16 bytes)  key (16)  nonce (16)
//! record:  length (u32)  CRC-32C (u32)  kind (u8)  body
//! ```
//!
//! Numbers are little-endian. The length is that of kind and body; the checksum covers the length,
//! the kind and the body, and begins with the nonce, which each journal has of its own: blocks of
//! an earlier file that a file system shows after a power cut are no record of this one.

use std::fs::File;
use std::io;

use bc_fs::call::call;
use bc_fs::dirfd;
use rustix::io::pread;

use super::owner::Key;

/// First bytes of every journal; the number at the end is the version of this layout.
pub(super) const MAGIC: [u8; 16] = *b"bc journal v1\r\n\0";

/// Bytes before the first record.
pub(super) const HEAD: u64 = 48;

/// Bytes of a record before its kind.
const FRAME: usize = 8;

/// Bytes of the longest record, its frame left out.
pub const LONGEST: usize = 1 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Appends a record to a piece that [`Journal::append`](super::Journal::append) takes; `body`
/// writes its content.
///
/// # Panics
/// If the body is longer than [`LONGEST`], which is a defect of the caller.
pub fn push(piece: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let begun = piece.len();
    piece.extend_from_slice(&[0; FRAME]);
    piece.push(kind);
    body(piece);
    let length = piece.len() - begun - FRAME;
    assert!(length <= LONGEST, "a record of {length} bytes");
    piece[begun..begun + 4].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Checksum of a journal's nonce, from which the checksums of its records start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Seed(u32);

impl Seed {
    pub(super) fn new(nonce: &[u8; 16]) -> Seed {
        Seed(crc32c::crc32c(nonce))
    }

    fn sum(self, length: &[u8], rest: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, length), rest)
    }

    /// Gives each record of a piece its checksum.
    pub(super) fn seal(self, piece: &mut [u8]) {
        let mut rest = piece;
        while let Some((frame, after)) = rest.split_first_chunk_mut::<FRAME>() {
            let length = length_in(frame).min(after.len());
            let (payload, next) = after.split_at_mut(length);
            let sum = self.sum(&frame[..4], payload);
            frame[4..].copy_from_slice(&sum.to_le_bytes());
            rest = next;
        }
    }

    /// Returns the record that `bytes` begin with, kind and body, if it is whole.
    fn whole(self, bytes: &[u8]) -> Option<&[u8]> {
        let (frame, after) = bytes.split_first_chunk::<FRAME>()?;
        let length = length_in(frame);
        let payload = after.get(..length).filter(|payload| !payload.is_empty())?;
        let sum = self.sum(&frame[..4], payload).to_le_bytes();
        (length <= LONGEST && frame[4..] == sum).then_some(payload)
    }
}

fn length_in(frame: &[u8; FRAME]) -> usize {
    let [a, b, c, d, ..] = *frame;
    u32::from_le_bytes([a, b, c, d]) as usize
}

/// Returns the first bytes of a journal.
pub(super) fn head(key: &Key, nonce: &[u8; 16]) -> Vec<u8> {
    [MAGIC, *key.bytes(), *nonce].concat()
}

/// One record of a journal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    /// Offset of its first byte in the file, as [`View::record_at`] takes it.
    pub at: u64,
    /// Kind, as its writer numbers them.
    pub kind: u8,
    /// Content, without the frame.
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    fn new(at: u64, payload: &'a [u8]) -> Option<Record<'a>> {
        let (&kind, body) = payload.split_first()?;
        Some(Record { at, kind, body })
    }
}

/// The records of a journal in the order in which they were written, up to the first that is not
/// whole: torn by a kill or a power cut, or damaged. Nothing behind that one is believed, since
/// its length cannot be.
#[derive(Debug)]
pub struct Records<'a> {
    pub(super) file: &'a File,
    pub(super) seed: Seed,
    /// Offset in the file of the next record.
    pub(super) at: u64,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's bytes, and how many of them are used up.
    start: u64,
    used: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(file: &'a File, seed: Seed) -> Records<'a> {
        Records {
            file,
            seed,
            at: HEAD,
            buffer: Vec::new(),
            start: HEAD,
            used: 0,
        }
    }

    /// Returns the next record; `None` at the end, and where the next one is not whole.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn next_record(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.seed.whole(&self.buffer[self.used..]).is_none() {
            self.fill()?;
        }
        let Some(payload) = self.seed.whole(&self.buffer[self.used..]) else {
            return Ok(None);
        };
        let at = self.at;
        self.used += FRAME + payload.len();
        self.at += (FRAME + payload.len()) as u64;
        Ok(Record::new(at, payload))
    }

    /// Returns the offset where the last record returned ends: the bytes behind it are to be
    /// [cut off](super::Journal::cut) before anything is appended.
    pub fn end(&self) -> u64 {
        self.at
    }

    /// Fills the buffer until it contains the whole next record, if the file does.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.start += self.used as u64;
        self.used = 0;
        loop {
            let wanted = match self.buffer.first_chunk::<FRAME>() {
                Some(frame) => FRAME + length_in(frame),
                None => FRAME,
            };
            if wanted > FRAME + LONGEST || self.buffer.len() >= wanted.max(FRAME + 1) {
                return Ok(());
            }
            let held = self.buffer.len();
            self.buffer.resize(held.max(wanted) + CHUNK, 0);
            let at = self.start + held as u64;
            let read = call("read", || pread(self.file, &mut self.buffer[held..], at));
            self.buffer.truncate(held + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Ok(());
            }
        }
    }
}

/// Looks single records up while others are appended.
#[derive(Debug)]
pub struct View {
    pub(super) file: File,
    pub(super) seed: Seed,
}

impl View {
    /// Reads the record that begins at offset `at` and is no longer than `most` bytes, its frame
    /// left out; `None` if there is no whole one. Its bytes are put into `buffer`.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn record_at<'b>(
        &self,
        at: u64,
        most: usize,
        buffer: &'b mut Vec<u8>,
    ) -> io::Result<Option<Record<'b>>> {
        buffer.resize(FRAME + most, 0);
        let held = dirfd::read_at(&self.file, buffer, at)?;
        let payload = self.seed.whole(&buffer[..held]);
        Ok(payload.and_then(|payload| Record::new(at, payload)))
    }
}
