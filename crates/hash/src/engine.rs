//! Workers that pump files through a batch of hashers into sinks.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use bc_digest::{Algorithm, Batch, CpuFeatures, Digest};
use bc_pool::dispatch::{Effort, Recruiter, Start, Team};
use bc_pool::{Cancel, WorkerPanic};
use bc_read::{Consumer, Feed, Opened, Plan, ReadStats};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Identity, Listing};

use crate::large;
use crate::links::{Claim, Links};
use crate::results::{Collector, Hashes, Results};

/// What to compute and how.
#[derive(Clone, Debug)]
pub struct HashOptions {
    /// Digests wanted of each file, in this order; each file is read once.
    pub algorithms: Vec<Algorithm>,
    /// Instruction sets to use.
    pub cpu: CpuFeatures,
    /// How files are read.
    pub read: bc_read::ReadOptions,
    /// Threads, at least 1; with 1 the caller's thread does everything.
    pub workers: usize,
    /// Whether all of them start at once, or as many as the files turn out to be worth.
    pub start: Start,
}

impl HashOptions {
    /// These algorithms on one thread with the best kernels and default reading.
    pub fn new(algorithms: Vec<Algorithm>) -> HashOptions {
        HashOptions {
            algorithms,
            cpu: CpuFeatures::detect(),
            read: bc_read::ReadOptions::default(),
            workers: 1,
            start: Start::Together,
        }
    }
}

/// Counters that a progress display may read while the engine runs.
#[derive(Debug, Default)]
pub struct HashProgress {
    /// Files finished, well or not.
    pub files: AtomicU64,
    /// Bytes read, those of unfinished large files too.
    pub bytes: AtomicU64,
}

/// Receives each file once, on the worker that read it.
pub trait DigestSink: Send {
    /// `Ok`: what the read descriptor was and one digest per algorithm.
    fn file(&mut self, entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>);
}

/// What the reading of a whole plan amounted to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Counts of all workers together.
    pub read: ReadStats,
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
pub fn hash_with<S: DigestSink>(
    listing: &Listing,
    plan: &Plan,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    sink: impl Fn(usize) -> S + Sync,
) -> Result<(Vec<S>, Totals), WorkerPanic> {
    if plan.is_empty() {
        return Ok((Vec::new(), Totals::default()));
    }
    let most = options.workers.clamp(1, plan.len());
    let workers = options.start.workers(most, effort(listing, plan));
    let team = Team::new(options.start, workers, most);
    let links = Links::new(listing);
    plan.set_workers(workers);
    let done = bc_pool::run_growing(workers, most, |worker, spawner| {
        let recruiter = Recruiter::new(&team, spawner);
        let alone = Alone::new(listing, options, cancel);
        let sink = sink(worker);
        let mut consumer = Lanes::new(alone, plan, (&team, recruiter), &links, progress, sink);
        let mut stats = bc_read::pump(listing, plan, &options.read, cancel, &mut consumer);
        consumer.publish();
        stats.merge(consumer.alone.done);
        (consumer.sink, stats, consumer.alone.threads)
    })?;
    let mut totals = Totals {
        workers: done.len(),
        ..Totals::default()
    };
    let mut sinks = Vec::with_capacity(done.len());
    for (sink, stats, threads) in done {
        totals.read.merge(stats);
        totals.workers = totals.workers.max(threads);
        sinks.push(sink);
    }
    Ok((sinks, totals))
}

/// What is known of the work before it begins: all of it if the listing has sizes, else nothing.
fn effort(listing: &Listing, plan: &Plan) -> Effort {
    let mut bytes = 0_u64;
    for entry in plan.entries() {
        match listing.size(*entry) {
            Some(size) => bytes = bytes.saturating_add(size),
            None => return Effort::default(),
        }
    }
    Effort::of(plan.len() as u64, bytes)
}

/// Hashes every file of `listing`.
///
/// # Errors
/// A worker that panicked.
pub fn hash_listing(
    listing: &Listing,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
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
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Hashes, WorkerPanic> {
    let results = Results::new(listing.len(), &options.algorithms);
    let collector = |_| Collector::new(&results);
    let (collected, totals) = hash_with(listing, plan, options, cancel, progress, collector)?;
    let errors: Vec<_> = collected
        .into_iter()
        .flat_map(Collector::into_errors)
        .collect();
    Ok(Hashes::new(results, errors, totals))
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
    progress: &'a HashProgress,
    files: u64,
    bytes: u64,
    /// Bytes of the file in each slot that are counted already.
    ahead: Vec<u64>,
    plan: &'a Plan,
    recruiter: Recruiter<'a>,
    team: &'a Team,
    alone: Alone<'a>,
    links: &'a Links<'a>,
    /// Files being read that are the first of several names.
    firsts: Vec<(EntryId, Identity)>,
}

/// What it takes to hash a file outside the lanes, and what came of those that were.
pub(crate) struct Alone<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) options: &'a HashOptions,
    pub(crate) cancel: &'a Cancel,
    done: ReadStats,
    /// The most that worked on one file.
    threads: usize,
}

impl<'a> Alone<'a> {
    fn new(listing: &'a Listing, options: &'a HashOptions, cancel: &'a Cancel) -> Alone<'a> {
        Alone {
            listing,
            options,
            cancel,
            done: ReadStats::default(),
            threads: 1,
        }
    }
}

impl<S: DigestSink> Lanes<'_, S> {
    /// Has a file that was opened once more read and hashed by several threads, the caller's
    /// being one.
    fn hash_alone(&mut self, opened: &Opened, file: &OwnedFd, stat: FileStat, threads: usize) {
        let entry = opened.entry;
        self.alone.threads = self.alone.threads.max(threads);
        match large::hash(file, stat, entry, &self.alone, threads, self.progress) {
            Ok((stat, digests)) => {
                self.alone.done.files += 1;
                self.alone.done.bytes += stat.stamp.size;
                self.digests.clear();
                self.digests.extend(digests);
                self.sink.file(entry, Ok((&stat, &self.digests)));
                // What it came to in another state says nothing of the one that was claimed.
                let claimed = stat.stamp == opened.stat.stamp;
                self.pass_on(entry, Ok(&stat), claimed);
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => {}
            Err(error) => {
                self.alone.done.errors += 1;
                self.pass_on(entry, Err(&error), false);
                self.sink.file(entry, Err(error));
            }
        }
    }
}

impl<'a, S> Lanes<'a, S> {
    fn new(
        alone: Alone<'a>,
        plan: &'a Plan,
        (team, recruiter): (&'a Team, Recruiter<'a>),
        links: &'a Links<'a>,
        progress: &'a HashProgress,
        sink: S,
    ) -> Lanes<'a, S> {
        let options = alone.options;
        Lanes {
            batch: Batch::new(&options.algorithms, options.cpu),
            digests: Vec::with_capacity(options.algorithms.len()),
            sink,
            progress,
            files: 0,
            bytes: 0,
            ahead: Vec::new(),
            plan,
            recruiter,
            team,
            alone,
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

    #[inline]
    fn recruit(&mut self, bytes: u64) {
        let plan = self.plan;
        if self.recruiter.begin(bytes, || plan.left()) {
            plan.more_workers(self.team.workers());
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

impl<S: DigestSink> Lanes<'_, S> {
    /// Gives what came of a file to the names that waited for it, and if it is what was claimed,
    /// to those that are met later.
    fn pass_on(&mut self, entry: EntryId, result: Result<&FileStat, &Error>, claimed: bool) {
        let Some(at) = self.firsts.iter().position(|(first, _)| *first == entry) else {
            return;
        };
        let (_, id) = self.firsts.swap_remove(at);
        let digests = (claimed && result.is_ok()).then_some(self.digests.as_slice());
        for name in self.links.finished(id, digests) {
            self.files += 1;
            let result = match result {
                Ok(stat) => Ok((stat, self.digests.as_slice())),
                Err(error) => {
                    let path = self.alone.listing.path(name);
                    Err(Error::of_kind(path, error.op(), error.kind()))
                }
            };
            self.sink.file(name, result);
        }
    }
}

impl<S: DigestSink> Consumer for Lanes<'_, S> {
    fn width(&self) -> usize {
        self.batch.width()
    }

    fn reserve(&mut self, slots: usize) {
        self.batch.reserve(slots);
        self.ahead.resize(slots, 0);
    }

    fn take_over(&mut self, opened: &Opened) -> bool {
        let options = self.alone.options;
        let size = opened.stat.stamp.size;
        if options.workers < 2 {
            return false;
        }
        let work = large::Work {
            size,
            left: large::left(self.alone.listing, self.plan, options.workers),
            // This one is counted already.
            others: self.plan.huge().saturating_sub(1),
        };
        let threads = work.threads(options);
        if threads < 2 {
            return false;
        }
        // Another one by now, or no descriptor left: the pump reads what it has open.
        let again = bc_read::open_checked(self.alone.listing, opened.entry).ok();
        let Some((file, stat)) = again.filter(|(_, stat)| stat.id == opened.stat.id) else {
            return false;
        };
        if !work.takes_all(options) {
            self.recruit(work.size);
        }
        self.hash_alone(opened, &file, stat, threads);
        true
    }

    fn knows(&mut self, opened: &Opened, _file: BorrowedFd<'_>) -> bool {
        if opened.stat.nlink < 2 {
            return false;
        }
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

    fn begin(&mut self, slot: usize, opened: &Opened) {
        // Of a file that was not finished and begins again.
        let void = std::mem::take(&mut self.ahead[slot]);
        if void > 0 {
            self.publish();
            self.progress.bytes.fetch_sub(void, Ordering::Relaxed);
        }
        self.batch.begin(slot);
        self.recruit(opened.stat.stamp.size);
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        // A fixed array: this runs once per small file. Feeds past it wait.
        const MOST: usize = 64;
        const NONE: bc_digest::Chunk<'static> = bc_digest::Chunk {
            message: 0,
            data: &[],
            end: false,
        };
        let mut mapped = [NONE; MOST];
        let count = feeds.len().min(MOST);
        for (to, from) in mapped.iter_mut().zip(feeds) {
            *to = bc_digest::Chunk {
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
                self.pass_on(entry, Ok(&opened.stat), true);
            }
            Err(error) => {
                // What was read of it stays counted.
                self.ahead[slot] = 0;
                self.pass_on(entry, Err(&error), false);
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

    impl DigestSink for Count {
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
        let walk = bc_walk::WalkOptions::default();
        let listing = bc_walk::walk(&[dir.path().into()], &walk, 1, &cancel).unwrap();
        let progress = HashProgress::default();
        let options = HashOptions::new(vec![Algorithm::Xxh128]);
        let plan = Plan::all(&listing, 1);
        let team = Team::new(Start::Together, 1, 1);
        let links = Links::new(&listing);
        let inner = bc_pool::run_growing(1, 1, |_, spawner| {
            let mut consumer = Watched {
                inner: Lanes::new(
                    Alone::new(&listing, &options, &cancel),
                    &plan,
                    (&team, Recruiter::new(&team, spawner)),
                    &links,
                    &progress,
                    Count(0),
                ),
                seen: Vec::new(),
            };
            bc_read::pump(&listing, &plan, &options.read, &cancel, &mut consumer);
            consumer.inner.publish();
            (consumer.inner.sink.0, consumer.seen)
        });
        let (files, mut seen) = inner.unwrap().remove(0);
        assert_eq!(files, 1);
        seen.dedup();
        assert!(seen.len() > 4, "{seen:?}");
        assert!(seen.is_sorted());
        assert_eq!(progress.bytes.load(Ordering::Relaxed), 64 << 20);
        assert_eq!(progress.files.load(Ordering::Relaxed), 1);
    }

    /// Notes the shared counter after each piece.
    struct Watched<'a, C> {
        inner: Lanes<'a, C>,
        seen: Vec<u64>,
    }

    impl<S: DigestSink> Consumer for Watched<'_, S> {
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
