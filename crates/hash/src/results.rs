//! Digests of a whole listing in flat arrays, filled from per-worker
//! collections after the barrier.

use std::collections::BTreeMap;

use bc_digest::{Algorithm, Digest};
use bc_walk::{EntryId, Error, FileStat, Listing};

use crate::engine::{Sink, Totals};

/// One worker's results in the order they came.
pub(crate) struct Collector {
    done: Vec<(EntryId, u64)>,
    digests: Vec<u8>,
    errors: Vec<(EntryId, Error)>,
    stride: usize,
}

impl Collector {
    pub(crate) fn new(algorithms: &[Algorithm]) -> Collector {
        let stride = algorithms.iter().map(|a| a.digest_len()).sum();
        Collector {
            done: Vec::new(),
            digests: Vec::new(),
            errors: Vec::new(),
            stride,
        }
    }
}

impl Sink for Collector {
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
        match result {
            Ok((stat, digests)) => {
                self.done.push((entry, stat.stamp.size));
                for digest in digests {
                    self.digests.extend_from_slice(digest.as_bytes());
                }
                debug_assert_eq!(self.digests.len(), self.done.len() * self.stride);
            }
            Err(error) => self.errors.push((entry, error)),
        }
    }
}

/// What is known about one entry.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// Size read, and one digest per algorithm.
    Hashed {
        /// Bytes of the file when it was read.
        size: u64,
        /// Raw digests, one after the other, in the order of the algorithms.
        digests: &'a [u8],
    },
    /// Why there is no digest.
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

/// Bytes of memory that hashing a listing takes for the listing and its results.
pub fn memory(listing: &Listing, algorithms: &[Algorithm]) -> u64 {
    let digests: usize = algorithms.iter().map(|a| a.digest_len()).sum();
    // Sizes and digests, by worker and then by entry, and both for a moment.
    let one = size_of::<(EntryId, u64)>() + size_of::<u64>() + 2 * digests;
    listing.memory() + (listing.len() * one) as u64
}

impl Hashes {
    pub(crate) fn merge(
        entries: usize,
        algorithms: &[Algorithm],
        collected: Vec<Collector>,
        totals: Totals,
    ) -> Hashes {
        let lengths: Vec<usize> = algorithms.iter().map(|a| a.digest_len()).collect();
        let stride = lengths.iter().sum();
        let mut all = Hashes {
            sizes: vec![NONE; entries],
            digests: vec![0; entries * stride],
            errors: BTreeMap::new(),
            lengths,
            stride,
            totals,
        };
        for part in collected {
            for (&(entry, size), digest) in part.done.iter().zip(part.digests.chunks_exact(stride))
            {
                let at = entry.0 as usize;
                all.sizes[at] = size;
                all.digests[at * stride..][..stride].copy_from_slice(digest);
            }
            all.errors.extend(part.errors);
        }
        all
    }

    /// What is known about `entry`.
    ///
    /// # Panics
    /// If the entry is not of the listing that was hashed.
    pub fn outcome(&self, entry: EntryId) -> Outcome<'_> {
        let at = entry.0 as usize;
        if self.sizes[at] != NONE {
            let digests = &self.digests[at * self.stride..][..self.stride];
            return Outcome::Hashed {
                size: self.sizes[at],
                digests,
            };
        }
        self.errors
            .get(&entry)
            .map_or(Outcome::NotDone, Outcome::Failed)
    }

    /// The digests of `entry` in the order of the algorithms; None without any.
    pub fn digests(&self, entry: EntryId) -> Option<impl Iterator<Item = Digest>> {
        let Outcome::Hashed { digests, .. } = self.outcome(entry) else {
            return None;
        };
        let mut at = 0;
        Some(self.lengths.iter().map(move |length| {
            at += length;
            Digest::new(&digests[at - length..at])
        }))
    }

    /// Failures in path order.
    pub fn errors(&self) -> impl Iterator<Item = (EntryId, &Error)> {
        self.errors.iter().map(|(entry, error)| (*entry, error))
    }

    /// What was read.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
}
