//! Results for each candidate, in arrays that the workers write without locks: each candidate is
//! one worker's at a time, and everything is read only after the workers are done. And sets of
//! entries, a bit for each that there is: they have path order without a comparison, as the time of a
//! sort is spent on one core while all others wait.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use bc_digest::Digest;
use bc_walk::EntryId;

use super::candidates::Candidates;
use super::lock;

/// Bits of [`Known`]: results that exist for a candidate.
const FAST: u8 = 1;
const WHOLE: u8 = 2;
const FAILED: u8 = 4;
const SPACE: u8 = 8;

/// Digests of the prefixes of large files: of all bytes up to the end of each stage so far, the
/// last of which may be the whole. Kept in the cache, so that a file that was given up early need
/// not be read again to be distinguished from the same others.
pub(crate) type Prefixes = HashMap<u32, Vec<Digest>>;

/// The bits of one candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known(u8);

impl Known {
    /// The hash of its ends.
    pub(crate) fn fast(self) -> bool {
        self.0 & FAST != 0
    }

    /// The digest of all its bytes.
    pub(crate) fn whole(self) -> bool {
        self.0 & WHOLE != 0
    }

    pub(crate) fn failed(self) -> bool {
        self.0 & FAILED != 0
    }
}

/// Index of a candidate in the arrays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TableRow(u32);

impl TableRow {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The arrays. Their rows are in path order, which is the order files are read
/// in: a worker finds and writes row after row, and seldom one beside another
/// worker's. In order of candidates these writes took an eighth of the time
/// spent outside the kernel.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    candidates: &'a Candidates,
    /// Entries that open a candidate.
    opens: EntryRanks,
    /// The candidate of each row.
    by_row: Vec<u32>,
    known: Vec<AtomicU8>,
    /// Words of whole digests, `width` a candidate. Until the whole is known, the first is the
    /// fast hash: few files have both, and 8 bytes for each would be a tenth of all that is kept.
    whole: Vec<AtomicU64>,
    width: usize,
    digest_len: usize,
    fast: Fast,
    /// Allocated blocks of 512 bytes; once that was determined, only those that no other file uses.
    blocks: Vec<AtomicU32>,
}

/// Storage of the fast hashes of files whose whole digest is known as well.
#[derive(Debug)]
enum Fast {
    /// All in an array of their own: a cache keeps both of every file.
    Beside(Vec<AtomicU64>),
    /// Only the sample's, by row.
    Few(Mutex<HashMap<u32, u64>>),
}

/// Storage of both digests of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Both {
    Kept,
    /// The fast hash goes when the whole digest comes, unless it is set after that.
    OfSome,
}

impl<'a> Table<'a> {
    /// Makes the table for these candidates among a listing's `entries`.
    pub(crate) fn new(
        candidates: &'a Candidates,
        entries: usize,
        digest_len: usize,
        both: Both,
    ) -> Table<'a> {
        let len = candidates.len();
        let opens = (0..len as u32).map(|candidate| candidates.entry(candidate));
        let width = digest_len.div_ceil(8);
        let mut table = Table {
            candidates,
            opens: EntrySet::of(opens, entries).into_ranks(),
            by_row: vec![0; len],
            known: shared(vec![0; len]),
            whole: shared(vec![0; len * width]),
            width,
            digest_len,
            fast: match both {
                Both::Kept => Fast::Beside(shared(vec![0; len])),
                Both::OfSome => Fast::Few(Mutex::default()),
            },
            blocks: shared(vec![0; len]),
        };
        for candidate in 0..len as u32 {
            let row = table.row(candidate).index();
            table.by_row[row] = candidate;
        }
        table
    }

    /// The row of the candidate that `entry` opens; of one that opens none, a wrong one.
    pub(crate) fn opened_by(&self, entry: EntryId) -> TableRow {
        TableRow(self.opens.of(entry))
    }

    pub(crate) fn row(&self, candidate: u32) -> TableRow {
        self.opened_by(self.candidates.entry(candidate))
    }

    pub(crate) fn candidate(&self, row: TableRow) -> u32 {
        self.by_row[row.index()]
    }

    /// Returns the bits of a candidate.
    pub(crate) fn knows(&self, row: TableRow) -> Known {
        Known(self.known[row.index()].load(Relaxed))
    }

    fn of(&self, candidate: u32) -> Known {
        self.knows(self.row(candidate))
    }

    /// Sets a bit. Not atomically, which is not needed: a candidate has one writer at a time.
    fn note(&self, row: TableRow, bit: u8) {
        let known = &self.known[row.index()];
        known.store(known.load(Relaxed) | bit, Relaxed);
    }

    /// Returns true if the hash of its ends is known.
    pub(crate) fn has_fast(&self, candidate: u32) -> bool {
        self.of(candidate).fast()
    }

    /// Returns true if the digest of all its bytes is known. Without, it equals nothing.
    pub(crate) fn has_whole(&self, candidate: u32) -> bool {
        self.of(candidate).whole()
    }

    /// Returns true if reading it failed; it takes no further part.
    pub(crate) fn failed(&self, candidate: u32) -> bool {
        self.of(candidate).failed()
    }

    pub(crate) fn fail(&self, row: TableRow) {
        self.known[row.index()].store(FAILED, Relaxed);
    }

    /// Forgets a digest that turned out to be of a part only.
    pub(crate) fn forget_whole(&self, row: TableRow) {
        let known = &self.known[row.index()];
        known.store(known.load(Relaxed) & !WHOLE, Relaxed);
    }

    /// The hash of its ends; only meaningful where that is known.
    pub(crate) fn fast(&self, candidate: u32) -> u64 {
        self.fast_in(self.row(candidate))
    }

    pub(crate) fn fast_in(&self, row: TableRow) -> u64 {
        match &self.fast {
            Fast::Beside(all) => all[row.index()].load(Relaxed),
            Fast::Few(some) if self.knows(row).whole() => {
                lock(some).get(&row.0).copied().unwrap_or(0)
            }
            Fast::Few(_) => self.whole[row.index() * self.width].load(Relaxed),
        }
    }

    pub(crate) fn set_fast(&self, row: TableRow, hash: u64) {
        let known = self.known[row.index()].load(Relaxed);
        match &self.fast {
            Fast::Beside(all) => all[row.index()].store(hash, Relaxed),
            Fast::Few(some) if known & WHOLE != 0 => {
                lock(some).insert(row.0, hash);
            }
            Fast::Few(_) => self.whole[row.index() * self.width].store(hash, Relaxed),
        }
        self.note(row, FAST);
    }

    /// The digest's words; only meaningful where the whole is known.
    pub(crate) fn whole(&self, candidate: u32) -> [u64; 4] {
        self.whole_in(self.row(candidate))
    }

    pub(crate) fn whole_in(&self, row: TableRow) -> [u64; 4] {
        let mut words = [0; 4];
        let at = row.index() * self.width;
        for (to, from) in words.iter_mut().zip(&self.whole[at..at + self.width]) {
            *to = from.load(Relaxed);
        }
        words
    }

    /// # Panics
    /// If the digest has another length than the table's.
    pub(crate) fn set_whole(&self, row: TableRow, digest: &Digest) {
        assert_eq!(digest.as_bytes().len(), self.digest_len);
        let at = row.index() * self.width;
        for (to, from) in self.whole[at..].iter().zip(digest.as_bytes().chunks(8)) {
            to.store(word(from), Relaxed);
        }
        if matches!(self.fast, Fast::Few(_)) {
            let known = &self.known[row.index()];
            known.store(known.load(Relaxed) & !FAST, Relaxed);
        }
        self.note(row, WHOLE);
    }

    pub(crate) fn digest(&self, candidate: u32) -> Digest {
        let mut bytes = [0; 32];
        for (to, from) in bytes.chunks_mut(8).zip(self.whole(candidate)) {
            to.copy_from_slice(&from.to_be_bytes());
        }
        Digest::new(&bytes[..self.digest_len])
    }

    pub(crate) fn blocks(&self, candidate: u32) -> u32 {
        self.blocks[self.row(candidate).index()].load(Relaxed)
    }

    /// Records the allocated blocks, unless those that no other file uses are known. Saturates at 2
    /// TiB.
    pub(crate) fn set_blocks(&self, row: TableRow, blocks: u64) {
        if self.known[row.index()].load(Relaxed) & SPACE == 0 {
            self.store_blocks(row, blocks);
        }
    }

    /// Records the blocks that no other file uses.
    pub(crate) fn set_own_blocks(&self, row: TableRow, blocks: u64) {
        self.store_blocks(row, blocks);
        self.note(row, SPACE);
    }

    fn store_blocks(&self, row: TableRow, blocks: u64) {
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        self.blocks[row.index()].store(blocks, Relaxed);
    }

    /// Returns true if the bytes that no other file uses were determined.
    pub(crate) fn has_own_blocks(&self, candidate: u32) -> bool {
        self.of(candidate).0 & SPACE != 0
    }
}

/// Big-endian, so that words order as the bytes do.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(whole)
}

/// Converts numbers to atomics in the same memory: pages of zeros are the kernel's until a worker
/// writes to them.
fn shared<T, A: From<T>>(numbers: Vec<T>) -> Vec<A> {
    numbers.into_iter().map(A::from).collect()
}

/// Some entries of a listing.
#[derive(Debug)]
pub(crate) struct EntrySet {
    bits: Vec<u64>,
    count: usize,
}

impl EntrySet {
    /// Makes the empty set of a listing of `len`.
    pub(crate) fn new(len: usize) -> EntrySet {
        EntrySet {
            bits: vec![0; len.div_ceil(64)],
            count: 0,
        }
    }

    /// Makes the set of different entries of a listing of `len`.
    pub(crate) fn of(entries: impl Iterator<Item = EntryId>, len: usize) -> EntrySet {
        let mut set = EntrySet::new(len);
        entries.for_each(|entry| set.insert(entry));
        set
    }

    /// # Panics
    /// Beyond the listing.
    pub(crate) fn insert(&mut self, EntryId(entry): EntryId) {
        let word = &mut self.bits[entry as usize / 64];
        let bit = 1 << (entry % 64);
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    /// Returns the entries in path order.
    pub(crate) fn into_sorted(self) -> Vec<EntryId> {
        let mut sorted = Vec::with_capacity(self.count);
        for (start, mut word) in (0..).step_by(64).zip(self.bits) {
            while word != 0 {
                sorted.push(EntryId(start + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        sorted
    }

    /// Returns the place of each entry in path order, in the memory of the set and half as much.
    pub(crate) fn into_ranks(self) -> EntryRanks {
        let mut count = 0;
        let before = self.bits.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        EntryRanks {
            before: before.collect(),
            bits: self.bits,
        }
    }
}

/// Places of the entries of a set in path order.
#[derive(Debug)]
pub(crate) struct EntryRanks {
    bits: Vec<u64>,
    /// Number of entries before those of each word.
    before: Vec<u32>,
}

impl EntryRanks {
    /// Returns the number of entries of the set that come before this one, which need not be in it.
    ///
    /// # Panics
    /// Beyond the listing.
    pub(crate) fn of(&self, EntryId(entry): EntryId) -> u32 {
        let word = entry as usize / 64;
        let below = self.bits[word] & ((1 << (entry % 64)) - 1);
        self.before[word] + below.count_ones()
    }
}

#[cfg(test)]
mod entry_set_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_sort_as_by_comparison(
            entries in prop::collection::hash_set(0..1000_u32, 0..300),
            spare in 0..70_usize,
        ) {
            let mut expected: Vec<EntryId> = entries.iter().copied().map(EntryId).collect();
            expected.sort_unstable();
            let len = expected.last().map_or(0, |last| last.0 as usize + 1) + spare;
            let set = || EntrySet::of(entries.iter().copied().map(EntryId), len);
            let ranks = set().into_ranks();
            for (rank, entry) in (0..).zip(&expected) {
                prop_assert_eq!(ranks.of(*entry), rank);
            }
            prop_assert_eq!(set().into_sorted(), expected);
        }
    }
}
