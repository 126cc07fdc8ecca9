//! What is known of each candidate, in arrays that the workers write without
//! locks: each candidate is one worker's at a time, and everything is read
//! only after the workers are done.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use bc_digest::Digest;

/// What is known of a candidate: bits.
const FAST: u8 = 1;
const WHOLE: u8 = 2;
const FAILED: u8 = 4;

/// The arrays.
#[derive(Debug)]
pub(crate) struct Table {
    known: Vec<AtomicU8>,
    fast: Vec<AtomicU64>,
    /// Words of whole digests, `width` a candidate.
    whole: Vec<AtomicU64>,
    width: usize,
    digest_len: usize,
    /// Allocated blocks of 512 bytes, or what of them no other file shares.
    blocks: Vec<AtomicU32>,
}

impl Table {
    pub(crate) fn new(len: usize, digest_len: usize) -> Table {
        let width = digest_len.div_ceil(8);
        Table {
            known: zeroed(len),
            fast: zeroed(len),
            whole: zeroed(len * width),
            width,
            digest_len,
            blocks: zeroed(len),
        }
    }

    fn has(&self, candidate: u32, bit: u8) -> bool {
        self.known[candidate as usize].load(Relaxed) & bit != 0
    }

    fn note(&self, candidate: u32, bit: u8) {
        self.known[candidate as usize].fetch_or(bit, Relaxed);
    }

    /// Whether the hash of its ends is known.
    pub(crate) fn has_fast(&self, candidate: u32) -> bool {
        self.has(candidate, FAST)
    }

    /// Whether the digest of all its bytes is known. Without, it equals nothing.
    pub(crate) fn has_whole(&self, candidate: u32) -> bool {
        self.has(candidate, WHOLE)
    }

    /// Whether reading it failed; it takes no further part.
    pub(crate) fn failed(&self, candidate: u32) -> bool {
        self.has(candidate, FAILED)
    }

    pub(crate) fn fail(&self, candidate: u32) {
        self.known[candidate as usize].store(FAILED, Relaxed);
    }

    /// Forgets a digest that turned out to be of a part only.
    pub(crate) fn forget_whole(&self, candidate: u32) {
        self.known[candidate as usize].fetch_and(!WHOLE, Relaxed);
    }

    pub(crate) fn fast(&self, candidate: u32) -> u64 {
        self.fast[candidate as usize].load(Relaxed)
    }

    pub(crate) fn set_fast(&self, candidate: u32, hash: u64) {
        self.fast[candidate as usize].store(hash, Relaxed);
        self.note(candidate, FAST);
    }

    /// The digest's words; only meaningful where the whole is known.
    pub(crate) fn whole(&self, candidate: u32) -> [u64; 4] {
        let mut words = [0; 4];
        let at = candidate as usize * self.width;
        for (to, from) in words.iter_mut().zip(&self.whole[at..at + self.width]) {
            *to = from.load(Relaxed);
        }
        words
    }

    /// # Panics
    /// If the digest has another length than the table's.
    pub(crate) fn set_whole(&self, candidate: u32, digest: &Digest) {
        assert_eq!(digest.as_bytes().len(), self.digest_len);
        let at = candidate as usize * self.width;
        for (to, from) in self.whole[at..].iter().zip(digest.as_bytes().chunks(8)) {
            to.store(word(from), Relaxed);
        }
        self.note(candidate, WHOLE);
    }

    pub(crate) fn digest(&self, candidate: u32) -> Digest {
        let mut bytes = [0; 32];
        for (to, from) in bytes.chunks_mut(8).zip(self.whole(candidate)) {
            to.copy_from_slice(&from.to_be_bytes());
        }
        Digest::new(&bytes[..self.digest_len])
    }

    pub(crate) fn blocks(&self, candidate: u32) -> u32 {
        self.blocks[candidate as usize].load(Relaxed)
    }

    /// Saturates at 2 TiB.
    pub(crate) fn set_blocks(&self, candidate: u32, blocks: u64) {
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        self.blocks[candidate as usize].store(blocks, Relaxed);
    }
}

/// Big-endian, so that words order as the bytes do.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(whole)
}

fn zeroed<T: Default>(len: usize) -> Vec<T> {
    std::iter::repeat_with(T::default).take(len).collect()
}
