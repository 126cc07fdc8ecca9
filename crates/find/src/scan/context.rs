//! State that all parts of one search share: the files, the results so far, and the options.

use std::sync::Mutex;

use bc_pool::{Cancel, Effort, WorkerHandle, WorkerPanic};
use bc_read::{Opened, Plan};
use bc_walk::{Error, ErrorKind, Listing};

use super::candidates::Candidates;
use super::entry_set::EntrySet;
use super::extents::Extents;
use super::table::{Both, Prefixes, Table};
use super::{ScanOptions, ScanProgress};
use crate::subtrees::Marks;

/// Context of one search.
pub(crate) struct Context<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) candidates: &'a Candidates,
    pub(crate) table: Table<'a>,
    /// Digests of large files that were not read to their end.
    pub(crate) prefixes: Mutex<Prefixes>,
    /// Locations of files on disk.
    pub(crate) extents: Extents,
    /// Entries that are references'.
    pub(crate) references: Marks,
    pub(crate) options: &'a ScanOptions,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a ScanProgress,
}

impl<'a> Context<'a> {
    /// Starts a search without any results.
    pub(crate) fn new(
        listing: &'a Listing,
        candidates: &'a Candidates,
        references: Marks,
        both: Both,
        options: &'a ScanOptions,
        cancel: &'a Cancel,
        progress: &'a ScanProgress,
    ) -> Context<'a> {
        let digest_len = options.algorithm.digest_len();
        Context {
            listing,
            candidates,
            table: Table::new(candidates, listing.len(), digest_len, both),
            prefixes: Mutex::default(),
            extents: Extents::default(),
            references,
            options,
            cancel,
            progress,
        }
    }

    pub(crate) fn size(&self, candidate: u32) -> u64 {
        let entry = self.candidates.entry(candidate);
        self.listing.size(entry).unwrap_or(0)
    }

    /// Returns the number of workers that reading `bytes` of the files of `plan` justifies.
    pub(crate) fn workers(&self, plan: &Plan, bytes: u64) -> usize {
        let most = self.options.workers.clamp(1, plan.len().max(1));
        let effort = Effort::of(plan.len() as u64, bytes);
        let workers = self.options.start.workers(most, effort);
        plan.set_workers(workers);
        workers
    }

    /// Runs `f` on each of some workers that read `plan`, with the options' tables of descriptors:
    /// they have those of the listing, and those that they open themselves. Others join while they
    /// wait, which they report to their handles.
    pub(crate) fn run<T: Send>(
        &self,
        plan: &Plan,
        workers: usize,
        f: impl Fn(WorkerHandle<'_>) -> T + Sync,
    ) -> Result<Vec<T>, WorkerPanic> {
        let named: Vec<_> = self.listing.descriptors().collect();
        bc_read::run_readers(plan, &self.options.read, &named, workers, workers, f)
    }

    /// The entries that open these candidates.
    pub(crate) fn set_of(&self, candidates: impl Iterator<Item = u32>) -> EntrySet {
        let entries = candidates.map(|candidate| self.candidates.entry(candidate));
        EntrySet::of(entries, self.listing.len())
    }

    /// Plans to read these entries in path order, or in that of a disk that has to seek for them:
    /// neighbours there or in the kernel's caches, which an order by size is not.
    pub(crate) fn plan(&self, entries: EntrySet) -> Plan {
        let mut entries = entries.into_sorted();
        bc_read::order::for_disk(self.listing, &mut entries);
        Plan::new(entries, self.options.workers)
    }

    /// Checks that the file that was read is in the state that was listed.
    pub(crate) fn unchanged(&self, opened: &Opened) -> Result<(), Error> {
        let listed = self.listing.meta(opened.entry).map(|meta| meta.stamp);
        if listed == Some(opened.stat.stamp) {
            Ok(())
        } else {
            Err(Error::of_kind(
                self.listing.path(opened.entry),
                "read",
                ErrorKind::Changed,
            ))
        }
    }
}
