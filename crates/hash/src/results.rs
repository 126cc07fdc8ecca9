//! Digests of a whole listing in flat arrays, which the workers fill in place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use bc_digest::{Algorithm, Digest};
use bc_walk::{EntryId, Error, FileStat, Listing};

use crate::options::{DigestSink, Totals};

/// Sizes and digests in the making. An entry has one writer, and nothing is read before all
/// workers are done: so there is one copy of them, where each worker's and then all together
/// would be two.
pub(crate) struct Results {
    sizes: Vec<AtomicU64>,
    digests: Vec<AtomicU8>,
    lengths: Vec<usize>,
    stride: usize,
}

impl Results {
    pub(crate) fn new(entries: usize, algorithms: &[Algorithm]) -> Results {
        let lengths: Vec<usize> = algorithms.iter().map(|a| a.digest_len()).collect();
        let stride: usize = lengths.iter().sum();
        Results {
            sizes: vec![NONE; entries]
                .into_iter()
                .map(AtomicU64::new)
                .collect(),
            // The same memory: pages of zeros are the kernel's until a worker writes to them.
            digests: vec![0; entries * stride]
                .into_iter()
                .map(AtomicU8::new)
                .collect(),
            lengths,
            stride,
        }
    }

    fn put(&self, entry: EntryId, size: u64, digests: &[Digest]) {
        let at = entry.0 as usize;
        let mut place = &self.digests[at * self.stride..][..self.stride];
        for digest in digests {
            let bytes = digest.as_bytes();
            let (own, others) = place.split_at(bytes.len());
            for (to, from) in own.iter().zip(bytes) {
                to.store(*from, Relaxed);
            }
            place = others;
        }
        self.sizes[at].store(size, Relaxed);
    }
}

/// One worker's way to the results.
pub(crate) struct Collector<'a> {
    results: &'a Results,
    errors: Vec<(EntryId, Error)>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(results: &'a Results) -> Collector<'a> {
        Collector {
            results,
            errors: Vec::new(),
        }
    }

    pub(crate) fn into_errors(self) -> Vec<(EntryId, Error)> {
        self.errors
    }
}

impl DigestSink for Collector<'_> {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        match result {
            Ok((stat, digests)) => self.results.put(entry, stat.stamp.size, digests),
            Err(error) => self.errors.push((entry, error)),
        }
    }
}

/// Result for one entry.
#[derive(Debug)]
pub enum EntryOutcome<'a> {
    /// Size read, and one digest per algorithm.
    Hashed {
        /// Bytes of the file when it was read.
        size: u64,
        /// Raw digests, one after the other, in the order of the algorithms.
        digests: &'a [u8],
    },
    /// Reason why there is no digest.
    Failed(&'a Error),
    /// The run was cancelled before this entry's turn.
    NotDone,
}

/// Digests of a listing.
pub struct Hashes {
    lengths: Vec<usize>,
    stride: usize,
    /// Size of each file; `NONE` where there is no digest.
    sizes: Vec<u64>,
    digests: Vec<u8>,
    errors: BTreeMap<EntryId, Error>,
    totals: Totals,
}

const NONE: u64 = u64::MAX;

/// Returns the bytes of memory that hashing a listing takes for the listing and its results.
pub fn hashing_memory(listing: &Listing, algorithms: &[Algorithm]) -> u64 {
    let digests: usize = algorithms.iter().map(|a| a.digest_len()).sum();
    // Size, digests, and its place in the order in which files are read.
    let one = size_of::<u64>() + digests + size_of::<EntryId>();
    listing.memory() + (listing.len() * one) as u64
}

impl Hashes {
    pub(crate) fn new(
        results: Results,
        errors: impl IntoIterator<Item = (EntryId, Error)>,
        totals: Totals,
    ) -> Hashes {
        let Results {
            sizes,
            digests,
            lengths,
            stride,
        } = results;
        Hashes {
            sizes: sizes.into_iter().map(AtomicU64::into_inner).collect(),
            digests: digests.into_iter().map(AtomicU8::into_inner).collect(),
            errors: errors.into_iter().collect(),
            lengths,
            stride,
            totals,
        }
    }

    /// Returns the result for `entry`; `None` if it is not of the listing that was hashed, as far
    /// as its number shows.
    pub fn get(&self, entry: EntryId) -> Option<EntryOutcome<'_>> {
        ((entry.0 as usize) < self.sizes.len()).then(|| self.outcome(entry))
    }

    /// True if the run came to every file of the listing: none is
    /// [`NotDone`](EntryOutcome::NotDone) because it was cancelled, or was not in the plan.
    pub fn is_complete(&self) -> bool {
        let without = self.sizes.iter().filter(|size| **size == NONE).count();
        without == self.errors.len()
    }

    /// Returns the result for `entry`.
    ///
    /// # Panics
    /// If the entry is not of the listing that was hashed; see [`get`](Hashes::get).
    pub fn outcome(&self, entry: EntryId) -> EntryOutcome<'_> {
        let at = entry.0 as usize;
        if self.sizes[at] != NONE {
            let digests = &self.digests[at * self.stride..][..self.stride];
            return EntryOutcome::Hashed {
                size: self.sizes[at],
                digests,
            };
        }
        self.errors
            .get(&entry)
            .map_or(EntryOutcome::NotDone, EntryOutcome::Failed)
    }

    /// Returns the digests of `entry` in the order of the algorithms; None without any.
    ///
    /// # Panics
    /// As [`outcome`](Hashes::outcome).
    pub fn digests(&self, entry: EntryId) -> Option<impl Iterator<Item = Digest>> {
        let EntryOutcome::Hashed { digests, .. } = self.outcome(entry) else {
            return None;
        };
        let mut at = 0;
        Some(self.lengths.iter().map(move |length| {
            at += length;
            Digest::new(&digests[at - length..at])
        }))
    }

    /// Returns the failures in path order.
    pub fn errors(&self) -> impl Iterator<Item = (EntryId, &Error)> {
        self.errors.iter().map(|(entry, error)| (*entry, error))
    }

    /// Returns the counts of the reading.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
}
