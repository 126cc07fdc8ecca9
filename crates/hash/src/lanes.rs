//! One worker's consumer: hashes the files from the pump, where slot numbers are message numbers.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use bc_digest::{Batch, Chunk, Digest};
use bc_fs::mount::Mounts;
use bc_pool::{Waiting, WorkerHandle};
use bc_read::{Consumer, Counter, Feed, Opened, Plan};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Identity};

use crate::large::{self, Alone};
use crate::links::{Links, NameTreatment};
use crate::options::{DigestSink, HashProgress};
#[cfg(feature = "resume")]
use crate::resume::WorkerRecords;
#[cfg(not(feature = "resume"))]
use crate::unrecorded::WorkerRecords;

/// Feeds pieces to a batch whose messages have the numbers of their slots; those that are used up
/// go to `consumed`.
pub(crate) fn advance_batch<'f, 'd: 'f>(
    batch: &mut Batch,
    feeds: impl IntoIterator<Item = &'f Feed<'d>>,
    consumed: &mut Vec<usize>,
) {
    // A fixed array: this runs once per small file. Feeds past it wait.
    const MOST: usize = 64;
    const NONE: Chunk<'static> = Chunk {
        message: 0,
        data: &[],
        end: false,
    };
    let mut chunks = [NONE; MOST];
    let mut count = 0;
    for (chunk, feed) in chunks.iter_mut().zip(feeds) {
        *chunk = Chunk {
            message: feed.slot,
            data: feed.data,
            end: feed.end,
        };
        count += 1;
    }
    batch.advance(&chunks[..count], consumed);
}

/// Bytes of a file that takes so long to read that the files read before it are better recorded.
const LONG: u64 = 64 << 20;

/// A pump's consumer that hashes.
pub(crate) struct Lanes<'a, S> {
    batch: Batch,
    digests: Vec<Digest>,
    pub(crate) sink: S,
    pub(crate) counter: Counter<'a>,
    progress: &'a HashProgress,
    plan: &'a Plan,
    handle: WorkerHandle<'a>,
    pub(crate) alone: Alone<'a>,
    links: &'a Links<'a>,
    /// Properties of devices that hold files of several names, as far as this worker knows them.
    mounts: Mounts,
    pub(crate) records: WorkerRecords<'a>,
    /// Files being read that are the first of several names.
    firsts: Vec<(EntryId, Identity)>,
}

impl<'a, S: DigestSink> Lanes<'a, S> {
    pub(crate) fn new(
        alone: Alone<'a>,
        plan: &'a Plan,
        handle: WorkerHandle<'a>,
        links: &'a Links<'a>,
        progress: &'a HashProgress,
        sink: S,
    ) -> Lanes<'a, S> {
        let (options, listing) = (alone.options, alone.listing);
        Lanes {
            batch: Batch::new(&options.algorithms, options.cpu),
            digests: Vec::with_capacity(options.algorithms.len()),
            sink,
            counter: Counter::new(&progress.files, &progress.bytes),
            progress,
            plan,
            handle,
            alone,
            links,
            mounts: Mounts::default(),
            records: WorkerRecords::new(options, listing),
            firsts: Vec::new(),
        }
    }

    /// Hands over the records and results that this worker has kept to itself so far.
    pub(crate) fn hand_over(&mut self) {
        self.records.hand_over();
        self.sink.hand_over();
    }

    /// Reads and hashes a file that was opened once more by several threads, the caller's being
    /// one.
    fn hash_alone(&mut self, opened: &Opened, file: &OwnedFd, stat: FileStat, threads: usize) {
        let entry = opened.entry;
        // Nothing else is finished for as long as it takes.
        self.hand_over();
        self.alone.threads = self.alone.threads.max(threads);
        match large::hash(file, stat, entry, &self.alone, threads, self.progress) {
            Ok((stat, digests)) => {
                self.alone.done.files += 1;
                self.alone.done.bytes += stat.stamp.size;
                self.digests.clear();
                self.digests.extend(digests);
                self.records.keep(entry, &stat, &self.digests);
                self.sink.file(entry, Ok((&stat, &self.digests)));
                // The result for another state proves nothing about the claimed one.
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

    /// Skips a file that was just opened if an earlier run has read it; true if so.
    #[inline]
    fn was_read(&mut self, opened: &Opened) -> bool {
        let (entry, stat) = (opened.entry, &opened.stat);
        if !self.records.knows(entry, stat, &mut self.digests) {
            return false;
        }
        self.counter.file();
        let size = stat.stamp.size;
        self.progress.bytes.fetch_add(size, Ordering::Relaxed);
        self.sink.file(entry, Ok((stat, &self.digests)));
        self.pass_on(entry, Ok(stat), true);
        true
    }

    /// Passes the result of a file on to the names that waited for it, and if it is the claimed
    /// file, to those that are met later.
    fn pass_on(&mut self, entry: EntryId, result: Result<&FileStat, &Error>, claimed: bool) {
        let Some(at) = self.firsts.iter().position(|(first, _)| *first == entry) else {
            return;
        };
        let (_, id) = self.firsts.swap_remove(at);
        let digests = (claimed && result.is_ok()).then_some(self.digests.as_slice());
        for name in self.links.finished(id, digests) {
            self.counter.file();
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
        self.counter.reserve(slots);
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
            self.handle.begin(work.size);
        }
        self.hash_alone(opened, &file, stat, threads);
        true
    }

    fn waiting(&mut self, progress: Waiting) {
        self.handle.waiting(progress);
    }

    fn ends(&mut self) -> bool {
        self.handle.ends()
    }

    fn knows(&mut self, opened: &Opened, _file: BorrowedFd<'_>) -> bool {
        if opened.stat.nlink >= 2 {
            match self.links.claim(opened, &mut self.mounts) {
                NameTreatment::Read => {}
                NameTreatment::ReadFirst(id) => {
                    let claimed = (opened.entry, id);
                    if !self.firsts.contains(&claimed) {
                        self.firsts.push(claimed);
                    }
                }
                NameTreatment::Wait => return true,
                NameTreatment::Known(digests) => {
                    self.counter.file();
                    self.sink.file(opened.entry, Ok((&opened.stat, &digests)));
                    return true;
                }
            }
        }
        self.was_read(opened)
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        if opened.stat.stamp.size >= LONG {
            // Nothing may be finished for as long as it takes.
            self.hand_over();
        }
        self.counter.begin(slot);
        self.batch.begin(slot);
        self.handle.begin(opened.stat.stamp.size);
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        let before = consumed.len();
        advance_batch(&mut self.batch, feeds, consumed);
        self.counter.advance(feeds, &consumed[before..]);
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        let bytes = result.as_ref().ok().map(|opened| opened.stat.stamp.size);
        self.counter.finish(slot, bytes);
        match result {
            Ok(opened) => {
                self.digests.clear();
                self.digests.extend(self.batch.digests(slot));
                self.records.keep(entry, &opened.stat, &self.digests);
                self.sink.file(entry, Ok((&opened.stat, &self.digests)));
                self.pass_on(entry, Ok(&opened.stat), true);
            }
            Err(error) => {
                self.pass_on(entry, Err(&error), false);
                self.sink.file(entry, Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bc_digest::Algorithm;
    use bc_pool::Cancel;

    use super::*;
    use crate::HashOptions;

    struct Count(u64);

    impl DigestSink for Count {
        fn file(&mut self, _entry: EntryId, result: Result<(&FileStat, &[Digest]), Error>) {
            self.0 += u64::from(result.is_ok());
        }
    }

    #[derive(Default)]
    struct Calls(Vec<&'static str>);

    impl DigestSink for Calls {
        fn file(&mut self, _entry: EntryId, _result: Result<(&FileStat, &[Digest]), Error>) {
            self.0.push("file");
        }

        fn hand_over(&mut self) {
            self.0.push("hand over");
        }
    }

    /// Checks that a sink hands its results over before one huge file is read, which would delay
    /// them.
    #[test]
    fn a_sink_hands_over_before_a_large_file_and_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        let file = std::fs::File::create(dir.path().join("b")).unwrap();
        file.set_len(LONG).unwrap();
        // Open for writing it would be read twice.
        drop(file);
        let cancel = Cancel::new();
        let walk = bc_walk::WalkOptions::default();
        let listing = bc_walk::walk(&[dir.path()], &walk, 1, &cancel).unwrap();
        let options = HashOptions::new(vec![Algorithm::Xxh128]);
        let (plan, progress) = (Plan::all(&listing, 1), HashProgress::default());
        let sink = |_| Calls::default();
        let hashed = crate::hash_with(&listing, &plan, &options, &cancel, &progress, sink);
        let (sinks, _) = hashed.unwrap();
        assert_eq!(sinks[0].0, ["file", "hand over", "file", "hand over"]);
    }

    /// Checks that bytes count while one huge file is read, as a display would otherwise not move.
    #[test]
    fn bytes_count_while_a_large_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("large")).unwrap();
        file.set_len(64 << 20).unwrap();
        // Open for writing it would be read twice.
        drop(file);
        let cancel = Cancel::new();
        let walk = bc_walk::WalkOptions::default();
        let listing = bc_walk::walk(&[dir.path()], &walk, 1, &cancel).unwrap();
        let progress = HashProgress::default();
        let options = HashOptions::new(vec![Algorithm::Xxh128]);
        let plan = Plan::all(&listing, 1);
        let links = Links::new(&listing);
        let inner = bc_pool::Growth::new(1).run(|handle| {
            let mut consumer = Watched {
                inner: Lanes::new(
                    Alone::new(&listing, &options, &cancel),
                    &plan,
                    handle,
                    &links,
                    &progress,
                    Count(0),
                ),
                seen: Vec::new(),
            };
            bc_read::pump(&listing, &plan, &options.read, &cancel, &mut consumer);
            consumer.inner.counter.publish();
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
