//! One worker's loop: fill slots, advance the consumer, retire what is done.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use bc_pool::Cancel;
use bc_walk::{EntryId, Error, Listing};
use rustix::io::Errno;

use crate::buffer::Pool;
use crate::latency::Latency;
use crate::open::{Cached, Opener, verify};
use crate::plan::Plan;
use crate::progress::{Progress, Step};
use crate::queue::Queue;
use crate::slot::{Active, Plain, Slot};
use crate::types::{Choice, Consumer, Feed, Opened, Options, Stats, Want};
use crate::uring::Done;

/// Buffers for files in flight are sized by need: 68 % of the files of a source
/// tree (linux 6.12) are below 8 KiB, 82 % below 16 KiB, 97 % below 64 KiB.
const SMALL: usize = 16 << 10;
const MEDIUM: usize = 64 << 10;
/// What the pieces of large files in all lanes should add up to: the L2 cache.
const LIVE: usize = 1 << 20;
/// Chunks get no smaller than this: 16 lanes of 32 KiB cost 25 % more time in
/// reading than 16 of 64 KiB, and those 8 % more than 16 of 128 KiB, which
/// leave no L2 cache for anything else (Zen, 1 MiB L2).
const CHUNK: usize = 64 << 10;
/// Slots at most; more than a ring's queue holds.
const SLOTS: usize = 4096;

/// Reads entries of `plan` until it is exhausted, and feeds them to `consumer`.
/// One call per worker thread; all of them share the plan.
///
/// After a cancellation the entries still in slots are dropped without
/// [`finish`](Consumer::finish), within the time of one chunk.
///
/// # Panics
/// If the consumer returns from [`advance`](Consumer::advance) with nothing
/// consumed: the run would never end.
pub fn pump<C: Consumer>(
    listing: &Listing,
    plan: &Plan,
    options: &Options,
    cancel: &Cancel,
    consumer: &mut C,
) -> Stats {
    let mut pump = Pump::new(listing, plan, options, consumer);
    pump.run(cancel);
    pump.stats()
}

struct Pump<'a, C> {
    listing: &'a Listing,
    plan: &'a Plan,
    options: &'a Options,
    consumer: &'a mut C,
    opener: Opener<'a>,
    batch: std::slice::Iter<'a, EntryId>,
    slots: Vec<Slot>,
    /// Last in, first out.
    free: Vec<usize>,
    /// Filled and not consumed, oldest first.
    ready: Vec<usize>,
    /// Waiting for a buffer, oldest first.
    starved: VecDeque<usize>,
    pool: Pool,
    queue: Queue<'a>,
    latency: Latency,
    chunk: usize,
    stats: Stats,
}

/// What became of an attempt to start a file.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Start {
    /// Filled, failed, or short of a buffer: without waiting in any case.
    Done,
    /// In flight.
    Flying,
    /// The plan is exhausted.
    NoMore,
}

impl<'a, C: Consumer> Pump<'a, C> {
    fn new(
        listing: &'a Listing,
        plan: &'a Plan,
        options: &'a Options,
        consumer: &'a mut C,
    ) -> Pump<'a, C> {
        let width = consumer.width().clamp(1, SLOTS);
        let slots = match options.backend {
            Choice::Sync => width,
            Choice::Auto | Choice::Uring => options.slots.clamp(width, SLOTS),
        };
        consumer.reserve(slots);
        let pool = match options.backend {
            Choice::Auto | Choice::Uring if options.slot_size > MEDIUM => Pool::new(&[
                (slots, SMALL),
                (slots / 2, MEDIUM),
                (width.max(slots / 4), options.slot_size),
            ]),
            _ => Pool::new(&[(slots, options.slot_size)]),
        };
        let chunk = (LIVE / width).max(CHUNK).min(pool.largest());
        Pump {
            listing,
            plan,
            options,
            consumer,
            opener: Opener::new(listing),
            batch: [].iter(),
            slots: std::iter::repeat_with(|| Slot::Free).take(slots).collect(),
            free: (0..slots).rev().collect(),
            ready: Vec::with_capacity(slots),
            starved: VecDeque::new(),
            pool,
            queue: Queue::new(options.backend, slots),
            latency: Latency::default(),
            chunk,
            stats: Stats::default(),
        }
    }

    fn run(&mut self, cancel: &Cancel) {
        let mut feeds = Vec::with_capacity(self.slots.len());
        let mut consumed = Vec::with_capacity(self.slots.len());
        let mut exhausted = false;
        // Whether the last file had to go through the ring: then more of them
        // are started than the consumer needs just now.
        let mut deep = false;
        while !cancel.is_cancelled() {
            let width = self.consumer.width().clamp(1, self.slots.len());
            self.relieve();
            while !exhausted && (self.ready.len() < width || deep) {
                let Some(slot) = self.free.pop() else { break };
                let start = self.start(slot);
                deep = start == Start::Flying;
                exhausted = start == Start::NoMore;
                if cancel.is_cancelled() {
                    return;
                }
            }
            if self.queue.in_flight() > 0 {
                let wait = usize::from(self.ready.len() < width);
                self.complete(wait);
                if self.ready.len() < width && (self.queue.in_flight() > 0 || !exhausted) {
                    continue;
                }
            }
            if self.ready.is_empty() {
                if exhausted && self.queue.in_flight() == 0 && self.starved.is_empty() {
                    return;
                }
                continue;
            }
            feeds = self.advance(width, feeds, &mut consumed);
            self.retire(&mut consumed);
        }
    }

    /// Shows the consumer the oldest filled slots.
    fn advance<'f>(
        &mut self,
        width: usize,
        feeds: Vec<Feed<'f>>,
        consumed: &mut Vec<usize>,
    ) -> Vec<Feed<'f>> {
        let mut feeds = recycle(feeds);
        for &slot in self.ready.iter().take(width) {
            if let Slot::Active(active) = &self.slots[slot] {
                feeds.push(active.feed(slot));
            }
        }
        self.consumer.advance(&feeds, consumed);
        assert!(!consumed.is_empty(), "a consumer must consume something");
        recycle(feeds)
    }

    /// Finishes the consumed slots that were at their end, refills the others.
    fn retire(&mut self, consumed: &mut Vec<usize>) {
        self.ready.retain(|slot| !consumed.contains(slot));
        for slot in consumed.drain(..) {
            let Slot::Active(active) = &mut self.slots[slot] else {
                continue;
            };
            if active.end {
                self.finish(slot, None);
            } else {
                active.filled = 0;
                self.fill(slot);
            }
        }
    }

    /// Gives buffers that have become free to the slots that wait for one.
    fn relieve(&mut self) {
        while let Some(&slot) = self.starved.front() {
            let Slot::Starved(active) = &self.slots[slot] else {
                self.starved.pop_front();
                continue;
            };
            match self.pool.take(active.progress.left()) {
                Ok(Some(buffer)) => {
                    self.starved.pop_front();
                    let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
                    if let Slot::Starved(mut active) = state {
                        active.buffer = Some(buffer);
                        self.slots[slot] = Slot::Active(active);
                        self.fill(slot);
                    }
                }
                Ok(None) => break,
                Err(errno) => {
                    self.starved.pop_front();
                    self.fail(slot, "read", errno);
                }
            }
        }
    }

    fn next_entry(&mut self) -> Option<EntryId> {
        loop {
            if let Some(&entry) = self.batch.next() {
                return Some(entry);
            }
            self.batch = self.plan.next()?.iter();
        }
    }

    /// Starts the next entry of the plan in a free slot.
    fn start(&mut self, slot: usize) -> Start {
        let Some(entry) = self.next_entry() else {
            self.free.push(slot);
            return Start::NoMore;
        };
        let want = self.consumer.want(entry);
        let file = match self.open(slot, entry, want) {
            Ok(Some(file)) => file,
            Ok(None) => return Start::Flying,
            Err(error) => {
                self.reject(slot, entry, error);
                return Start::Done;
            }
        };
        self.opened(slot, entry, want, file)
    }

    /// Opens an entry, or has the ring open it (`None`).
    fn open(&mut self, slot: usize, entry: EntryId, want: Want) -> Result<Option<OwnedFd>, Error> {
        let dir = self.opener.dir(entry)?;
        if self.queue.tries_cached() {
            match self.opener.open_cached(&dir, entry)? {
                Cached::Open(file) => return Ok(Some(file)),
                Cached::Miss => {}
            }
        }
        let Some(ring) = self.queue.ring() else {
            return self.opener.open(&dir, entry).map(Some);
        };
        let flags = self.opener.flags(entry);
        self.slots[slot] = Slot::Opening { entry, want };
        self.stats.queued += 1;
        if let Err(errno) = ring.open(slot, dir, self.listing.name(entry), flags) {
            self.abandon(errno);
        }
        Ok(None)
    }

    /// A file was opened for `slot`: proves what it is and begins to read.
    fn opened(&mut self, slot: usize, entry: EntryId, want: Want, file: OwnedFd) -> Start {
        let stat = match verify(self.listing, entry, &file) {
            Ok(stat) => stat,
            Err(error) => {
                self.reject(slot, entry, error);
                return Start::Done;
            }
        };
        let size = stat.stamp.size;
        let progress = Progress::new(want, size, self.options.sizes, self.options.changed);
        let opened = Opened { entry, stat };
        self.consumer.begin(slot, &opened);
        let mut active = Active::new(opened, progress, file);
        match self.pool.take(progress.left()) {
            Ok(Some(buffer)) => {
                active.buffer = Some(buffer);
                self.slots[slot] = Slot::Active(active);
                self.fill(slot)
            }
            Ok(None) => {
                self.slots[slot] = Slot::Starved(active);
                self.starved.push_back(slot);
                Start::Done
            }
            Err(errno) => {
                self.slots[slot] = Slot::Active(active);
                self.fail(slot, "read", errno);
                Start::Done
            }
        }
    }

    /// Reads into the slot's buffer until it has something for the consumer,
    /// or leaves that to the ring.
    fn fill(&mut self, slot: usize) -> Start {
        loop {
            let Slot::Active(active) = &mut self.slots[slot] else {
                return Start::Done;
            };
            if active.progress.nothing() {
                active.end = true;
                self.ready.push(slot);
                return Start::Done;
            }
            active.ask(self.chunk);
            let plain = if self.queue.tries_cached() {
                active.read_cached()
            } else {
                Ok(Plain::Miss)
            };
            let read = match plain {
                Ok(Plain::Read(n)) => Ok(n),
                Ok(Plain::Unknown) if !self.latency.queues() => {
                    self.latency.timed(|| active.read())
                }
                Ok(Plain::Miss | Plain::Unknown) => match self.queue.ring() {
                    None => active.read(),
                    Some(ring) => {
                        let (file, buffer) = active.lend();
                        let (filled, asked, pos) =
                            (active.filled, active.asked, active.progress.pos());
                        self.stats.queued += 1;
                        if let Err(errno) = ring.read(slot, file, buffer, filled, asked, pos) {
                            self.abandon(errno);
                        }
                        return Start::Flying;
                    }
                },
                Err(errno) => Err(errno),
            };
            if !self.took(slot, read) {
                return Start::Done;
            }
        }
    }

    /// Takes note of a read; returns whether another one has to follow.
    fn took(&mut self, slot: usize, read: Result<usize, Errno>) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        self.stats.reads += 1;
        let n = match read {
            Ok(n) => n,
            Err(errno) => {
                self.fail(slot, "read", errno);
                return false;
            }
        };
        self.stats.bytes += n as u64;
        match active.took(n) {
            Step::More => return true,
            Step::Full => {}
            Step::Last => active.end = true,
            Step::LastIfSame => match active.unchanged(self.listing, self.options.sizes) {
                Ok(()) => active.end = true,
                Err(error) => {
                    self.finish(slot, Some(error));
                    return false;
                }
            },
        }
        self.ready.push(slot);
        false
    }

    /// Submits what is pending and takes in what the ring has completed.
    fn complete(&mut self, wait: usize) {
        if let Err(errno) = self.queue.submit(wait) {
            self.abandon(errno);
            return;
        }
        while let Some((slot, done)) = self.queue.reap() {
            match done {
                Done::Open(result) => self.completed_open(slot, result),
                Done::Read {
                    file,
                    buffer,
                    result,
                } => {
                    let Slot::Active(active) = &mut self.slots[slot] else {
                        continue;
                    };
                    active.give_back(file, buffer);
                    let read = match result {
                        Err(Errno::AGAIN | Errno::INTR | Errno::SPIPE | Errno::OPNOTSUPP) => {
                            active.read()
                        }
                        read => read,
                    };
                    if self.took(slot, read) {
                        self.fill(slot);
                    }
                }
            }
        }
    }

    fn completed_open(&mut self, slot: usize, result: Result<OwnedFd, Errno>) {
        let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
        let Slot::Opening { entry, want } = state else {
            self.slots[slot] = state;
            return;
        };
        let file = match result {
            Ok(file) => Ok(file),
            // O_NOATIME refused, or nothing to do with the file: by plain call.
            Err(Errno::PERM | Errno::AGAIN | Errno::INTR) => {
                let dir = self.opener.dir(entry);
                dir.and_then(|dir| self.opener.open(&dir, entry))
            }
            Err(errno) => Err(self.opener.error(entry, "open", errno)),
        };
        match file {
            Ok(file) => {
                self.opened(slot, entry, want, file);
            }
            Err(error) => self.reject(slot, entry, error),
        }
    }

    /// The ring failed for good: fails what was in flight and goes on without.
    fn abandon(&mut self, errno: Errno) {
        // The buffers in flight are lost.
        self.pool = Pool::new(&[(self.slots.len(), self.options.slot_size)]);
        for slot in self.queue.abandon(errno) {
            match &self.slots[slot] {
                Slot::Opening { entry, .. } => {
                    let error = self.opener.error(*entry, "open", errno);
                    self.reject(slot, *entry, error);
                }
                _ => self.fail(slot, "read", errno),
            }
        }
    }

    /// An entry that did not get as far as `begin`.
    fn reject(&mut self, slot: usize, entry: EntryId, error: Error) {
        self.slots[slot] = Slot::Free;
        self.free.push(slot);
        self.stats.errors += 1;
        self.consumer.finish(slot, Err(error), entry);
    }

    fn fail(&mut self, slot: usize, op: &'static str, errno: Errno) {
        if let Slot::Active(active) | Slot::Starved(active) = &self.slots[slot] {
            let error = self.opener.error(active.opened.entry, op, errno);
            self.finish(slot, Some(error));
        }
    }

    /// Closes the file, frees the slot and tells the consumer.
    fn finish(&mut self, slot: usize, error: Option<Error>) {
        let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
        let (Slot::Active(active) | Slot::Starved(active)) = state else {
            return;
        };
        if let Some(buffer) = active.buffer {
            self.pool.put(buffer);
        }
        drop(active.file);
        self.free.push(slot);
        let entry = active.opened.entry;
        let result = match error {
            None => {
                self.stats.files += 1;
                Ok(active.opened)
            }
            Some(error) => {
                self.stats.errors += 1;
                Err(error)
            }
        };
        self.consumer.finish(slot, result, entry);
    }

    fn stats(self) -> Stats {
        let (backend, refused) = self.queue.outcome();
        Stats {
            backend,
            refused,
            ..self.stats
        }
    }
}

/// The same allocation for feeds of another lifetime.
fn recycle<'b>(mut feeds: Vec<Feed<'_>>) -> Vec<Feed<'b>> {
    feeds.clear();
    // An empty collect in place keeps the allocation.
    feeds.into_iter().map(|_| unreachable!()).collect()
}
