//! Bytes of a file, read once: hashed while the cache has them, and written to all outputs from the
//! same buffer.

use std::os::fd::BorrowedFd;

use bc_digest::blake3_tree::{self, Subtree};
use bc_digest::{Algorithm, Digest, Hasher, hash};

use crate::data::{DataError, Layout, PART, end_at, read_part};

/// One of the destinations of a file's bytes.
pub(crate) struct ByteSink<'a> {
    file: &'a std::fs::File,
    /// Offset before which all bytes are there already: whole parts, or all.
    from: u64,
    /// Reason for which it takes no more.
    pub(crate) error: Option<DataError>,
}

impl<'a> ByteSink<'a> {
    pub(crate) fn new(file: &'a std::fs::File, from: u64) -> ByteSink<'a> {
        ByteSink {
            file,
            from,
            error: None,
        }
    }

    /// True if the part that ends at `end` was written to it.
    pub(crate) fn has_got(&self, end: u64) -> bool {
        self.error.is_none() && end > self.from
    }

    fn take(&mut self, layout: &Layout, part: &[u8], at: u64) {
        if self.error.is_none() && at >= self.from {
            self.error = layout.write(self.file, part, at).err();
        }
    }

    fn end(&mut self, size: u64) {
        if self.error.is_none() {
            self.error = end_at(self.file, size).err();
        }
    }
}

/// The digest of a file that comes part by part.
pub(crate) enum Digesting {
    None,
    /// Any algorithm.
    Stream(Box<Hasher>),
    /// Subtrees of BLAKE3.
    Tree(Vec<Subtree>),
    /// BLAKE3 of one part.
    Whole(Option<Digest>),
}

impl Digesting {
    pub(crate) fn new(algorithm: Option<Algorithm>, size: u64) -> Digesting {
        match algorithm {
            None => Digesting::None,
            Some(Algorithm::Blake3) if size > PART as u64 => Digesting::Tree(Vec::new()),
            Some(Algorithm::Blake3) => Digesting::Whole(None),
            Some(algorithm) => Digesting::Stream(Box::new(Hasher::new(algorithm))),
        }
    }

    fn add(&mut self, at: u64, bytes: &[u8]) {
        match self {
            Digesting::None => {}
            Digesting::Stream(hasher) => hasher.update(bytes),
            Digesting::Tree(parts) => parts.push(blake3_tree::subtree(at, bytes)),
            Digesting::Whole(digest) => *digest = Some(hash(Algorithm::Blake3, bytes)),
        }
    }

    /// Continues a digest of the bytes before.
    pub(crate) fn from(hasher: Hasher) -> Digesting {
        Digesting::Stream(Box::new(hasher))
    }

    /// Returns the digest of the bytes so far, where it can be had before the end.
    pub(crate) fn so_far(&self) -> Option<Digest> {
        match self {
            Digesting::Stream(hasher) => Some(hasher.finalize()),
            _ => None,
        }
    }

    fn end(self) -> Option<Digest> {
        match self {
            Digesting::None => None,
            Digesting::Stream(hasher) => Some(hasher.finalize()),
            Digesting::Tree(parts) => Some(blake3_tree::root(&parts)),
            Digesting::Whole(digest) => {
                Some(digest.unwrap_or_else(|| hash(Algorithm::Blake3, b"")))
            }
        }
    }
}

/// Progress of reading, hashing and writing a file.
pub(crate) struct ReadProgress<'a> {
    /// Bytes of the last part, and the offset of its end.
    pub(crate) count: u64,
    pub(crate) end: u64,
    /// The digest of all up to there.
    pub(crate) digesting: &'a Digesting,
    /// Outputs of the file.
    pub(crate) outputs: &'a [ByteSink<'a>],
}

/// Callback for each step, which returns whether to continue.
pub(crate) type Steps<'a> = dyn FnMut(ReadProgress<'_>) -> bool + 'a;

/// Reads all bytes that any output lacks once, hashes them, and writes them to each output from the
/// same buffer. An output that takes no more is left behind. `digesting` has the bytes before.
pub(crate) fn read_hash_write(
    from: BorrowedFd<'_>,
    outputs: &mut [ByteSink<'_>],
    layout: &Layout,
    mut digesting: Digesting,
    buffer: &mut Vec<u8>,
    reported: &mut Steps<'_>,
) -> Result<Option<Digest>, DataError> {
    buffer.resize(buffer.len().max(PART), 0);
    let mut at = outputs.iter().map(|output| output.from).min().unwrap_or(0);
    while at < layout.size && outputs.iter().any(|output| output.error.is_none()) {
        let length = (layout.size - at).min(PART as u64) as usize;
        let part = &mut buffer[..length];
        read_part(from, part, at)?;
        digesting.add(at, part);
        for output in &mut *outputs {
            output.take(layout, part, at);
        }
        at += length as u64;
        let step = ReadProgress {
            count: length as u64,
            end: at,
            digesting: &digesting,
            outputs,
        };
        if !reported(step) {
            return Err(DataError::Cancelled);
        }
    }
    for output in &mut *outputs {
        output.end(layout.size);
    }
    // Without an output that has it all, not all was read.
    let is_whole = outputs.iter().any(|output| output.error.is_none());
    Ok(is_whole.then(|| digesting.end()).flatten())
}
