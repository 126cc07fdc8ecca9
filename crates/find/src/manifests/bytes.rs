//! The bytes of a file from the first on, independent of the file offset that other readers share.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use bc_pool::Cancel;

/// Reads them; no offset is moved.
pub(super) struct Bytes<'f> {
    file: &'f File,
    offset: u64,
    cancel: Cancel,
}

impl<'f> Bytes<'f> {
    pub(super) fn new(file: &'f File, cancel: &Cancel) -> Bytes<'f> {
        Bytes {
            file,
            offset: 0,
            cancel: cancel.clone(),
        }
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
