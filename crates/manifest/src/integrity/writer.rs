//! Writes an integrity manifest as a stream.

use std::cmp::Ordering;
use std::io::Write;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::entry::{Entry, check_path, path_order};
use super::header::{Header, Trailer};
use crate::algorithm::digest_len;
use crate::error::{Error, ErrorKind};

/// Bytes collected before they are digested and written.
const CHUNK: usize = 64 << 10;

/// Writes header, entries and trailer; refuses entries that [`Reader`](super::Reader) would refuse.
///
/// Nothing is complete before [`finish`](Writer::finish): dropping a writer leaves a manifest
/// that is recognised as truncated.
pub struct Writer<W> {
    output: W,
    buffer: Vec<u8>,
    sha256: Sha256,
    counts: Trailer,
    last: Vec<u8>,
    digest_len: Option<usize>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// If a field in `extra` has the name of a known one, or writing fails.
    pub fn new(output: W, header: &Header) -> Result<Self, Error> {
        let mut buffer = Vec::with_capacity(CHUNK + 4096);
        header
            .check()
            .map_err(|why| Error::new(ErrorKind::Malformed, 1, why))?;
        header.write_line(&mut buffer);
        let mut writer = Writer {
            output,
            buffer,
            sha256: Sha256::new(),
            counts: Trailer::default(),
            last: Vec::new(),
            digest_len: digest_len(&header.algorithm),
        };
        writer.flush_buffer()?;
        Ok(writer)
    }

    /// Writes one entry; they must come sorted by [`path_order`].
    ///
    /// # Errors
    /// If the entry is not in its place, breaks a rule of the format, or writing fails.
    pub fn write(&mut self, entry: &Entry) -> Result<(), Error> {
        self.count(entry)?;
        entry.write_line(&mut self.buffer);
        self.flush_if_full()
    }

    /// Writes an entry by the line that it was read from, without its end: that stays as it is, byte
    /// for byte, whatever wrote it.
    ///
    /// # Errors
    /// As of [`write`](Writer::write).
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn write_as_read(&mut self, entry: &Entry, line: &[u8]) -> Result<(), Error> {
        self.count(entry)?;
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.flush_if_full()
    }

    /// Checks that this entry can be the next, and counts it.
    fn count(&mut self, entry: &Entry) -> Result<(), Error> {
        let line = self.counts.entries + 2;
        check_path(&entry.path).map_err(|why| Error::new(ErrorKind::UnsafePath, line, why))?;
        entry
            .check()
            .map_err(|why| Error::new(ErrorKind::Malformed, line, why))?;
        if let (Some(digest), Some(len)) = (&entry.digest, self.digest_len)
            && digest.as_bytes().len() != len
        {
            return Err(Error::new(
                ErrorKind::Malformed,
                line,
                "wrong length of digest",
            ));
        }
        if self.counts.entries > 0 && path_order(&self.last, &entry.path) != Ordering::Less {
            return Err(Error::new(
                ErrorKind::Unsorted,
                line,
                "path repeated or out of order",
            ));
        }
        self.last.clone_from(&entry.path);
        self.counts.count(entry);
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), Error> {
        match self.buffer.len() >= CHUNK {
            true => self.flush_buffer(),
            false => Ok(()),
        }
    }

    /// Writes the trailer and flushes; returns the output and the trailer.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<(W, Trailer), Error> {
        self.finish_with(&Map::new())
    }

    /// Finishes with more keys in the trailer, which must be none of its own.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_with(mut self, extra: &Map<String, Value>) -> Result<(W, Trailer), Error> {
        self.flush_buffer()?;
        self.counts.sha256 = self.sha256.finalize().into();
        self.counts.write_line(&mut self.buffer, extra);
        let written = self
            .output
            .write_all(&self.buffer)
            .and_then(|()| self.output.flush());
        written.map_err(|e| Error::io(0, e))?;
        Ok((self.output, self.counts))
    }

    /// Returns the counts so far; the digest is zero until the end.
    pub fn counts(&self) -> &Trailer {
        &self.counts
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        self.sha256.update(&self.buffer);
        self.output
            .write_all(&self.buffer)
            .map_err(|e| Error::io(0, e))?;
        self.buffer.clear();
        Ok(())
    }
}
