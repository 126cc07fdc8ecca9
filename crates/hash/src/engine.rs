//! Workers that pump files through a batch of hashers into sinks.

use std::sync::atomic::{AtomicU64, Ordering};

use bc_digest::{Algorithm, Batch, Digest, Kernels};
use bc_pool::{Cancel, WorkerPanic};
use bc_read::{Consumer, Feed, Opened, Plan, Stats};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Identity, Listing};

use crate::large;
use crate::links::{Claim, Links};
use crate::results::{Collector, Hashes};

/// What to compute and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Digests wanted of each file, in this order; each file is read once.
    pub algorithms: Vec<Algorithm>,
    /// Instruction sets to use.
    pub kernels: Kernels,
    /// How files are read.
    pub read: bc_read::Options,
    /// Threads, at least 1; with 1 the caller's thread does everything.
    pub workers: usize,
}

impl Options {
    /// These algorithms on one thread with the best kernels and default reading.
    pub fn new(algorithms: Vec<Algorithm>) -> Options {
        Options {
            algorithms,
            kernels: Kernels::detect(),
            read: bc_read::Options::default(),
            workers: 1,
        }
    }
}

/// Counters that a progress display may read while the engine runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files finished, well or not.
    pub files: AtomicU64,
    /// Bytes read, those of unfinished large files too.
    pub bytes: AtomicU64,
}

/// Receives each file once, on the worker that read it.
pub trait Sink: Send {
    /// `Ok`: what the read descriptor was and one digest per algorithm.
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>);
}

/// What the reading of a whole plan amounted to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Counts of all workers together.
    pub read: Stats,
    /// Workers that took part.
    pub workers: usize,
}

impl Totals {
    /// Adds another plan's counts.
    pub fn merge(&mut self, other: Totals) {
        self.read.merge(other.read);
        self.workers = self.workers.max(other.workers);
    }
}

/// Hashes the entries of `plan`; `sink(worker)` makes each worker's sink.
/// Gives the sinks back. After a cancellation the entries not
/// yet finished are missing from all sinks.
///
/// # Errors
/// A worker that panicked.
pub fn hash_with<S: Sink>(
    listing: &Listing,
    plan: &Plan,
    options: &Options,
    cancel: &Cancel,
    progress: &Progress,
    sink: impl Fn(usize) -> S + Sync,
) -> Result<(Vec<S>, Totals), WorkerPanic> {
    let large = large::pick(listing, plan.entries(), options);
    let links = Links::new(listing);
    let mut totals = Totals::default();
    let mut sinks = Vec::new();
    let rest;
    let mut plan = plan;
    if !large.is_empty() {
        let mut first = sink(0);
        for file in &large {
            if cancel.is_cancelled() {
                break;
            }
            let claim = links.claim(&file.opened());
            if let Claim::Known(digests) = claim {
                totals.read.files += 1;
                progress.files.fetch_add(1, Ordering::Relaxed);
                first.file(file.entry, Ok((&file.opened().stat, &digests)));
                continue;
            }
            let hashed = large::hash(listing, file, options, cancel, progress);
            if let Claim::ReadFirst(id) = claim {
                // What it came to in another state says nothing of the one that was claimed.
                let same = |stat: &FileStat| stat.stamp == file.opened().stat.stamp;
                let hashed = hashed.as_ref().ok().filter(|(stat, _)| same(stat));
                let digests = hashed.map(|(_, digests)| digests.as_slice());
                // Nobody waits: these are read one after the other.
                links.finished(id, digests);
            }
            match hashed {
                Ok((stat, digests)) => {
                    totals.read.files += 1;
                    totals.read.bytes += stat.stamp.size;
                    first.file(file.entry, Ok((&stat, &digests)));
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => {}
                Err(error) => {
                    totals.read.errors += 1;
                    first.file(file.entry, Err(error));
                }
            }
        }
        totals.workers = options.workers;
        sinks.push(first);
        let taken = |entry: &EntryId| large.iter().any(|file| file.entry == *entry);
        let others = plan
            .entries()
            .iter()
            .copied()
            .filter(|entry| !taken(entry))
            .collect();
        rest = Plan::new(others, options.workers);
        plan = &rest;
    }
    if plan.is_empty() {
        return Ok((sinks, totals));
    }
    let workers = options.workers.clamp(1, plan.len());
    let done = bc_pool::run(workers, |worker| {
        let mut consumer = Lanes::new(listing, options, &links, progress, sink(worker));
        let stats = bc_read::pump(listing, plan, &options.read, cancel, &mut consumer);
        consumer.publish();
        (consumer.sink, stats)
    })?;
    totals.workers = totals.workers.max(done.len());
    for (sink, stats) in done {
        totals.read.merge(stats);
        sinks.push(sink);
    }
    Ok((sinks, totals))
}

/// Hashes every file of `listing`.
///
/// # Errors
/// A worker that panicked.
pub fn hash_listing(
    listing: &Listing,
    options: &Options,
    cancel: &Cancel,
    progress: &Progress,
) -> Result<Hashes, WorkerPanic> {
    let mut entries: Vec<EntryId> = listing.ids().collect();
    bc_read::order::for_disk(listing, &mut entries);
    let plan = Plan::new(entries, options.workers);
    hash_plan(listing, &plan, options, cancel, progress)
}

/// Hashes the entries of `plan`.
///
/// # Errors
/// A worker that panicked.
pub fn hash_plan(
    listing: &Listing,
    plan: &Plan,
    options: &Options,
    cancel: &Cancel,
    progress: &Progress,
) -> Result<Hashes, WorkerPanic> {
    let collector = |_| Collector::new(&options.algorithms);
    let (collected, totals) = hash_with(listing, plan, options, cancel, progress, collector)?;
    Ok(Hashes::merge(
        listing.len(),
        &options.algorithms,
        collected,
        totals,
    ))
}

/// Files whose counts are published together, to keep the shared counters
/// out of the per-file path.
const PUBLISH_EVERY: u64 = 64;
/// Bytes of large files that are published together.
const PUBLISH_BYTES: u64 = 8 << 20;

/// A pump's consumer that hashes: slot numbers are message numbers.
struct Lanes<'a, S> {
    batch: Batch,
    digests: Vec<Digest>,
    sink: S,
    progress: &'a Progress,
    files: u64,
    bytes: u64,
    /// Bytes of the file in each slot that are counted already.
    ahead: Vec<u64>,
    listing: &'a Listing,
    links: &'a Links<'a>,
    /// Files being read that are the first of several names.
    firsts: Vec<(EntryId, Identity)>,
}

impl<'a, S> Lanes<'a, S> {
    fn new(
        listing: &'a Listing,
        options: &Options,
        links: &'a Links<'a>,
        progress: &'a Progress,
        sink: S,
    ) -> Lanes<'a, S> {
        Lanes {
            batch: Batch::new(&options.algorithms, options.kernels),
            digests: Vec::with_capacity(options.algorithms.len()),
            sink,
            progress,
            files: 0,
            bytes: 0,
            ahead: Vec::new(),
            listing,
            links,
            firsts: Vec::new(),
        }
    }

    /// Counts the pieces of unfinished files that were just used up.
    fn count_pieces(&mut self, feeds: &[Feed<'_>], consumed: &[usize]) {
        for feed in feeds
            .iter()
            .filter(|f| !f.end && consumed.contains(&f.slot))
        {
            self.ahead[feed.slot] += feed.data.len() as u64;
            self.bytes += feed.data.len() as u64;
        }
        if self.bytes >= PUBLISH_BYTES {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.progress
            .files
            .fetch_add(std::mem::take(&mut self.files), Ordering::Relaxed);
        self.progress
            .bytes
            .fetch_add(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl<S: Sink> Lanes<'_, S> {
    /// Gives what came of a file to the names that waited for it.
    fn pass_on(&mut self, entry: EntryId, result: Result<&FileStat, &Error>) {
        let Some(at) = self.firsts.iter().position(|(first, _)| *first == entry) else {
            return;
        };
        let (_, id) = self.firsts.swap_remove(at);
        let digests = result.is_ok().then_some(self.digests.as_slice());
        for name in self.links.finished(id, digests) {
            self.files += 1;
            let result = match result {
                Ok(stat) => Ok((stat, self.digests.as_slice())),
                Err(error) => {
                    let path = self.listing.path(name);
                    Err(Error::of_kind(path, error.op(), error.kind()))
                }
            };
            self.sink.file(name, result);
        }
    }
}

impl<S: Sink> Consumer for Lanes<'_, S> {
    fn width(&self) -> usize {
        self.batch.width()
    }

    fn reserve(&mut self, slots: usize) {
        self.batch.reserve(slots);
        self.ahead.resize(slots, 0);
    }

    fn knows(&mut self, opened: &Opened) -> bool {
        match self.links.claim(opened) {
            Claim::Read => return false,
            Claim::ReadFirst(id) => {
                let claimed = (opened.entry, id);
                if !self.firsts.contains(&claimed) {
                    self.firsts.push(claimed);
                }
                return false;
            }
            Claim::Wait => {}
            Claim::Known(digests) => {
                self.files += 1;
                self.sink.file(opened.entry, Ok((&opened.stat, &digests)));
            }
        }
        true
    }

    fn begin(&mut self, slot: usize, _opened: &Opened) {
        // Of a file that was not finished and begins again.
        let void = std::mem::take(&mut self.ahead[slot]);
        if void > 0 {
            self.publish();
            self.progress.bytes.fetch_sub(void, Ordering::Relaxed);
        }
        self.batch.begin(slot);
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        // A fixed array: this runs once per small file. Feeds past it wait.
        const MOST: usize = 64;
        const NONE: bc_digest::Feed<'static> = bc_digest::Feed {
            message: 0,
            data: &[],
            end: false,
        };
        let mut mapped = [NONE; MOST];
        let count = feeds.len().min(MOST);
        for (to, from) in mapped.iter_mut().zip(feeds) {
            *to = bc_digest::Feed {
                message: from.slot,
                data: from.data,
                end: from.end,
            };
        }
        let before = consumed.len();
        self.batch.advance(&mapped[..count], consumed);
        self.count_pieces(&feeds[..count], &consumed[before..]);
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        self.files += 1;
        match result {
            Ok(opened) => {
                // A file that grew was counted beyond its size.
                let ahead = std::mem::take(&mut self.ahead[slot]);
                self.bytes += opened.stat.stamp.size.saturating_sub(ahead);
                self.digests.clear();
                self.digests.extend(self.batch.digests(slot));
                self.sink.file(entry, Ok((&opened.stat, &self.digests)));
                self.pass_on(entry, Ok(&opened.stat));
            }
            Err(error) => {
                // What was read of it stays counted.
                self.ahead[slot] = 0;
                self.pass_on(entry, Err(&error));
                self.sink.file(entry, Err(error));
            }
        }
        if self.files >= PUBLISH_EVERY {
            self.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(u64);

    impl Sink for Count {
        fn file(&mut self, _entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
            self.0 += u64::from(result.is_ok());
        }
    }

    /// A display would otherwise stand still for as long as one huge file takes.
    #[test]
    fn bytes_count_while_a_large_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("large")).unwrap();
        file.set_len(64 << 20).unwrap();
        // Open for writing it would be read twice.
        drop(file);
        let cancel = Cancel::new();
        let walk = bc_walk::Options::default();
        let listing = bc_walk::walk(&[dir.path().into()], &walk, 1, &cancel).unwrap();
        let progress = Progress::default();
        let options = Options::new(vec![Algorithm::Xxh128]);
        let mut seen = Vec::new();
        let links = Links::new(&listing);
        let watched = Watched {
            inner: Lanes::new(&listing, &options, &links, &progress, Count(0)),
            seen: &mut seen,
        };
        let mut consumer = watched;
        let plan = Plan::all(&listing, 1);
        bc_read::pump(&listing, &plan, &options.read, &cancel, &mut consumer);
        consumer.inner.publish();
        assert_eq!(consumer.inner.sink.0, 1);
        seen.dedup();
        assert!(seen.len() > 4, "{seen:?}");
        assert!(seen.is_sorted());
        assert_eq!(progress.bytes.load(Ordering::Relaxed), 64 << 20);
        assert_eq!(progress.files.load(Ordering::Relaxed), 1);
    }

    /// Notes the shared counter after each piece.
    struct Watched<'a, C> {
        inner: Lanes<'a, C>,
        seen: &'a mut Vec<u64>,
    }

    impl<S: Sink> Consumer for Watched<'_, S> {
        fn width(&self) -> usize {
            self.inner.width()
        }

        fn reserve(&mut self, slots: usize) {
            self.inner.reserve(slots);
        }

        fn begin(&mut self, slot: usize, opened: &Opened) {
            self.inner.begin(slot, opened);
        }

        fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
            self.inner.advance(feeds, consumed);
            self.seen
                .push(self.inner.progress.bytes.load(Ordering::Relaxed));
        }

        fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
            self.inner.finish(slot, result, entry);
        }
    }
}
