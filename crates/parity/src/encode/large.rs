//! A large content: hashed on the way through several windows, and proven at its end, or, if it fills
//! many volumes, part by part, so that these need not all wait for its last byte. So is one whose file
//! was touched, which is read before any of it goes into a volume.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use bc_digest::{Algorithm, Digest, Hasher};
use bc_fs::PathError;
use bc_fs::meta::stat;

use super::{ContentPiece, DIFFERS, EncodeMeans, WantedFile};

/// Volumes that a content may fill while the first of them waits for its last byte: each is an open
/// file, and lost if the run ends before.
const MOST_WAITING: u64 = 32;

/// Bytes of a part that is proven by itself.
const PART: u64 = 64 << 20;

/// Bytes that are hashed at a time where they go into no volume.
const STEP: usize = 1 << 20;

/// A large content that is being read.
pub(super) struct LargeContent {
    pub(super) piece: ContentPiece,
    pub(super) file: OwnedFd,
    pub(super) path: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// Next byte of the content.
    pub(super) at: u64,
    pub(super) proof: Mutex<ContentProof>,
    /// Bytes in the window that are to be hashed.
    pub(super) parts: Vec<Range<usize>>,
}

/// Proof of a content, as its bytes come.
pub(super) struct ContentProof {
    hasher: Hasher,
    /// Digest of the whole.
    digest: Digest,
    /// Digests of the parts, if they were read before.
    parts: Vec<Digest>,
    /// Bytes that came.
    at: u64,
    /// Bytes that are proven.
    proven: u64,
    differs: bool,
}

impl ContentProof {
    fn new(means: &EncodeMeans<'_>, algorithm: Algorithm, digest: Digest) -> ContentProof {
        ContentProof {
            hasher: Hasher::with_cpu(algorithm, means.cpu),
            digest,
            parts: Vec::new(),
            at: 0,
            proven: 0,
            differs: false,
        }
    }

    /// Takes the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let rest = (PART - self.at % PART) as usize;
            let is_part = !self.parts.is_empty();
            let (now, behind) = bytes.split_at(if is_part {
                rest.min(bytes.len())
            } else {
                bytes.len()
            });
            self.hasher.update(now);
            self.at += now.len() as u64;
            bytes = behind;
            if is_part && self.at.is_multiple_of(PART) {
                self.end_part();
            }
        }
    }

    fn end_part(&mut self) {
        let hasher = std::mem::replace(&mut self.hasher, Hasher::new(Algorithm::Blake3));
        let number = ((self.at - 1) / PART) as usize;
        match self.parts.get(number) == Some(&hasher.finalize()) {
            true => self.proven = self.at,
            false => self.differs = true,
        }
    }

    /// Takes the end of the content; returns true if all of it is proven.
    pub(super) fn end(mut self) -> bool {
        if self.parts.is_empty() {
            return self.hasher.finalize() == self.digest;
        }
        if !self.at.is_multiple_of(PART) {
            self.end_part();
        }
        !self.differs
    }

    /// Returns the number of bytes that are proven before the end.
    pub(super) fn proven(&self) -> u64 {
        self.proven
    }

    /// True if a part was not as before.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }
}

impl LargeContent {
    /// Opens a content, and hashes what comes before the piece of it that is wanted.
    pub(super) fn open(
        means: &EncodeMeans<'_>,
        algorithm: Algorithm,
        wanted: &WantedFile,
    ) -> Result<LargeContent, PathError> {
        let file = means.open(&wanted.path, wanted.size, &mut super::LastDir::default())?;
        let mut proof = ContentProof::new(means, algorithm, wanted.digest);
        let mut span = LargeContent {
            piece: wanted.piece,
            file,
            path: wanted.path.clone(),
            digest: wanted.digest,
            size: wanted.size,
            at: wanted.piece.from,
            proof: Mutex::new(ContentProof::new(means, algorithm, wanted.digest)),
            parts: Vec::new(),
        };
        // One that differs would cost the volume that it was to go into.
        let stat = stat(&span.file);
        let stat = stat.map_err(|call| means.error(&wanted.path, call.op, call.errno))?;
        let is_touched = wanted
            .mtime_ns
            .is_some_and(|recorded| recorded != stat.stamp.mtime_ns);
        if is_touched || wanted.piece.len > MOST_WAITING * means.capacity {
            let mut digests = Vec::new();
            let mut part = Hasher::new(Algorithm::Blake3);
            let mut at = 0;
            span.read_beside(means, 0..wanted.size, |bytes| {
                proof.update(bytes);
                let mut bytes = bytes;
                while !bytes.is_empty() {
                    let rest = (PART - at % PART) as usize;
                    let (now, behind) = bytes.split_at(rest.min(bytes.len()));
                    part.update(now);
                    at += now.len() as u64;
                    bytes = behind;
                    if at.is_multiple_of(PART) || at == wanted.size {
                        let ended = std::mem::replace(&mut part, Hasher::new(Algorithm::Blake3));
                        digests.push(ended.finalize());
                    }
                }
            })?;
            if !means.cancel.is_cancelled() && !proof.end() {
                return Err(means.differs(&wanted.path, DIFFERS));
            }
            proof = ContentProof::new(means, Algorithm::Blake3, wanted.digest);
            proof.parts = digests;
        }
        span.read_beside(means, 0..wanted.piece.from, |bytes| proof.update(bytes))?;
        span.proof = Mutex::new(proof);
        Ok(span)
    }

    pub(super) fn end(&self) -> u64 {
        self.piece.from + self.piece.len
    }

    /// Reads bytes that go into no volume.
    pub(super) fn read_beside(
        &self,
        means: &EncodeMeans<'_>,
        bytes: Range<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), PathError> {
        let mut buffer = vec![0; STEP.min((bytes.end - bytes.start) as usize)];
        let mut at = bytes.start;
        while at < bytes.end && !means.cancel.is_cancelled() {
            let len = (bytes.end - at).min(STEP as u64) as usize;
            means.read(&self.file, &self.path, &mut buffer[..len], at)?;
            take(&buffer[..len]);
            at += len as u64;
        }
        Ok(())
    }

    /// Proves the content, once its last wanted byte was read.
    pub(super) fn prove(mut self, means: &EncodeMeans<'_>) -> Result<(), PathError> {
        let none = ContentProof::new(means, Algorithm::Blake3, Digest::new(&[0; 16]));
        let proof = std::mem::replace(&mut self.proof, Mutex::new(none));
        let mut proof = proof.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.read_beside(means, self.end()..self.size, |bytes| proof.update(bytes))?;
        match means.cancel.is_cancelled() || proof.end() {
            true => Ok(()),
            false => Err(means.differs(&self.path, DIFFERS)),
        }
    }

    /// Returns the number of bytes that are proven so far.
    ///
    /// # Errors
    /// If a part is not as it was.
    pub(super) fn proven(&self, means: &EncodeMeans<'_>) -> Result<u64, PathError> {
        let proof = self.proof.lock().unwrap_or_else(PoisonError::into_inner);
        match proof.differs() {
            true => Err(means.differs(&self.path, DIFFERS)),
            false => Ok(proof.proven()),
        }
    }
}
