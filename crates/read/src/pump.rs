//! One worker's loop over its slots. Each of them goes round this diagram, one file each time:
//!
//! ```text
//!          start           opened            read           advance
//!  free ---------> opening -------> reading -------> ready ---------> finished
//!   ^                 |              ^   ^             |                 |
//!   |       no buffer |              |   +-------------+                 |
//!   |                 v              |      more of it                   |
//!   |              starved ----------+                                   |
//!   |                       resume                                       |
//!   +--------------------------------------------------------------------+
//!                                   finish
//! ```
//!
//! - free: there is no file. `start` takes the next entry of the plan.
//! - opening: a plain call opens it at once, or the ring does, and then the slot waits for it
//!   (`Slot::Opening`). `opened` verifies the file, and calls the consumer. For want of a
//!   descriptor the entry is deferred, and the slot is free again.
//! - starved: all buffers of its size are in use (`Slot::Starved`). `resume_starved` gives it one
//!   that has become free.
//! - reading: `read` fills its buffer by plain calls, or leaves that to the ring (`Slot::Active`).
//! - ready: its buffer has something for the consumer (`Slot::Active`, listed in `Pump::ready`).
//!   `advance` shows the oldest of these; `finish_or_read_on` deals with those it used up.
//! - finished: the consumer is called, the file is closed, and the slot is free. `finish_unopened`
//!   leads here from opening, `fail` and `finish` from all states after it. `put_off` frees the
//!   slot of a file that is to be read again after all others.
//!
//! `read_at_once` goes from opening to finished in one go, if the consumer takes one file at a time
//! and all is resident.

mod cursor;
mod files;
mod fresh;
mod slot;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use bc_fs::shortage::Wait;
use bc_pool::{Cancel, Growth, LastRun, Metering, WorkerHandle, WorkerPanic, Workers};
use bc_walk::{EntryId, Listing};

use self::files::Started;
use self::slot::{Silent, Slot};
use crate::buffer::Pool;
use crate::open::{NEEDED, Opener};
use crate::plan::{Hand, Plan};
use crate::queue::ReadQueue;
use crate::rate::Unpaid;
use crate::steady::{Clock, Unsettled, pause};
use crate::types::{Choice, Consumer, Feed, ReadOptions, ReadStats, Want};
use crate::waits::Latency;

/// Buffers for files in flight are sized by need: 68 % of the files of a source
/// tree (linux 6.12) are below 8 KiB, 82 % below 16 KiB, 97 % below 64 KiB.
const SMALL: usize = 16 << 10;
const MEDIUM: usize = 64 << 10;
/// Bytes that the pieces of large files in all lanes should add up to: the L2 cache.
const LIVE: usize = 1 << 20;
/// Bytes of the smallest chunks: 16 lanes of 32 KiB cost 25 % more time in reading than 16 of 64
/// KiB, and those 8 % more than 16 of 128 KiB, which leave no L2 cache for anything else (Zen, 1
/// MiB L2).
const CHUNK: usize = 64 << 10;
/// Slots that are filled in all workers together where their calls wait: as many as 16 workers fill
/// for 16 lanes, or 32 MiB of the largest buffers. More workers than that wait for most of the time,
/// and full lanes would not help them.
const WAITING_BUFFERS: usize = 256;
/// Bytes in these slots with which no more are filled: 64 workers had 256 buffers of up to 128 KiB each
/// after a while, of every size that there is, and now hold half as much (SHA-256 of 3,000 files of 27
/// KB: 24 MiB more than one worker instead of 44, in the same time at 0.2 and at 2 ms a request).
const WAITING_BYTES: usize = 4 << 20;
/// Slots at most; more than a ring's queue holds.
const SLOTS: usize = 4096;

/// Reads entries of `plan` until it is exhausted, and feeds them to `consumer`.
/// One call per worker thread; all of them share the plan.
///
/// After a cancellation the entries still in slots are dropped without
/// [`finish`](Consumer::finish), within the time of one chunk.
///
/// A consumer must not open for writing a file that is being read: of a file that was written to a
/// moment ago the pump may hold a lease, which it gives up only between two pieces.
///
/// # Panics
/// If the consumer returns from [`advance`](Consumer::advance) with nothing
/// consumed: the run would never end.
pub fn pump<C: Consumer>(
    listing: &Listing,
    plan: &Plan,
    options: &ReadOptions,
    cancel: &Cancel,
    consumer: &mut C,
) -> ReadStats {
    let mut pump = Pump::new(listing, plan, options, cancel, consumer);
    pump.run();
    pump.stats()
}

/// Small files that are worth another worker where those there are wait for each.
const WORTH_A_WORKER: usize = 8;

/// Runs `f` on workers that read `plan`, entries of `listing`, with the options' tables of descriptors, in which those are
/// `named` that they contain: on `first` workers at once, on up to `most` as the work pays for them,
/// and on up to [`ReadOptions::waiting`] where those wait. Each reports its work to its handle.
///
/// # Errors
/// [`WorkerPanic`] if any worker panicked, once all the others have returned.
pub fn run_readers<T: Send>(
    listing: &Listing,
    plan: &Plan,
    options: &ReadOptions,
    named: &[BorrowedFd<'_>],
    first: usize,
    most: usize,
    f: impl Fn(WorkerHandle<'_>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let metering = Metering::default();
    let last = options.residency.last_run(listing);
    run_metered(plan, options, named, [first, most], last, &metering, f)
}

pub(crate) fn run_metered<T: Send>(
    plan: &Plan,
    options: &ReadOptions,
    named: &[BorrowedFd<'_>],
    [first, most]: [usize; 2],
    last: &LastRun,
    metering: &Metering,
    f: impl Fn(WorkerHandle<'_>) -> T + Sync,
) -> Result<Vec<T>, WorkerPanic> {
    let bounds = Workers::up_to(most, options.waiting.min(plan.len()));
    plan.set_usual(bounds.usual());
    plan.set_workers(first);
    let (left, changed) = (|| plan.left(), |workers| plan.set_workers(workers));
    let growth = Growth::new(bounds)
        .first(first)
        .left(&left, WORTH_A_WORKER)
        .changed(&changed)
        .metering(metering)
        .after(last)
        .tables(options.tables, named);
    growth.run(f)
}

struct Pump<'a> {
    listing: &'a Listing,
    options: &'a ReadOptions,
    cancel: &'a Cancel,
    consumer: &'a mut dyn Consumer,
    opener: Opener<'a>,
    clock: Clock,
    /// Entries that this worker has taken from the plan.
    hand: Hand<'a>,
    slots: Vec<Slot>,
    /// Last in, first out.
    free: Vec<usize>,
    /// Filled and not consumed, oldest first.
    ready: Vec<usize>,
    /// Empty between calls of the consumer.
    consumed: Vec<usize>,
    /// Waiting for a buffer, oldest first.
    starved: VecDeque<usize>,
    /// Taken from the plan, and waiting for a descriptor.
    deferred: Vec<(EntryId, Want)>,
    /// Files to be read again once the plan is exhausted.
    unsettled: Vec<Unsettled>,
    /// Unsettled files whose turn has come.
    again: Vec<Unsettled>,
    /// Earlier readings of files that are open or being opened again.
    known: Vec<Unsettled>,
    /// True while descriptors are short: set by a failed open, until a file is closed.
    short: bool,
    /// The wait for a descriptor with nothing to close.
    wait: Wait<'a>,
    pool: Pool,
    queue: ReadQueue<'a>,
    /// Latency of opens where a server is asked.
    open_latency: Latency,
    /// True once the first file's file system was asked what its calls wait for.
    knows_waits: bool,
    /// Small files in a row that may have waited.
    small: u32,
    /// Files in a row that others are no help for.
    unhelped: u32,
    /// True once the worker is to end: it takes no more batches.
    is_ending: bool,
    silent: Silent,
    chunk: usize,
    stats: ReadStats,
    unpaid: Unpaid<'a>,
}

impl<'a> Pump<'a> {
    fn new(
        listing: &'a Listing,
        plan: &'a Plan,
        options: &'a ReadOptions,
        cancel: &'a Cancel,
        consumer: &'a mut dyn Consumer,
    ) -> Pump<'a> {
        let width = consumer.width().clamp(1, SLOTS);
        let slots = match options.backend {
            // Twice the width: see `plan::at_once`.
            Choice::Sync => (2 * width).min(options.slots.max(width)),
            Choice::Auto | Choice::Uring => options.slots.clamp(width, SLOTS),
        };
        // One small file must not pay for what a tree needs.
        let slots = slots.min(plan.len()).max(1);
        consumer.reserve(slots);
        // Up to twice the width are in hand at once, as far as that fits the slots' memory beside
        // the smaller buffers.
        let rest = options.slot_size.saturating_sub(SMALL + MEDIUM / 2) * slots;
        let fit = rest / options.slot_size.max(1);
        let long = (2 * width).max(slots / 4).min(fit).max(width);
        let pool = match options.backend {
            Choice::Auto | Choice::Uring if options.slot_size > MEDIUM => Pool::new(&[
                (slots, SMALL),
                (slots.div_ceil(2), MEDIUM),
                (long, options.slot_size),
            ]),
            _ => Pool::new(&[(slots, options.slot_size)]),
        };
        let chunk = (LIVE / width).max(CHUNK).min(pool.largest());
        Pump {
            listing,
            options,
            cancel,
            consumer,
            opener: Opener::sharing(listing, cancel, plan.device_waits()),
            clock: Clock::new(),
            hand: Hand::new(plan),
            slots: std::iter::repeat_with(|| Slot::Free).take(slots).collect(),
            free: (0..slots).rev().collect(),
            ready: Vec::with_capacity(slots),
            consumed: Vec::with_capacity(slots),
            starved: VecDeque::new(),
            deferred: Vec::new(),
            unsettled: Vec::new(),
            again: Vec::new(),
            known: Vec::new(),
            short: false,
            wait: listing.shortage().wait(NEEDED),
            pool,
            queue: ReadQueue::new(options.backend, slots, &options.residency),
            open_latency: Latency::default(),
            knows_waits: false,
            small: 0,
            unhelped: 0,
            is_ending: false,
            silent: Silent::new(&options.residency),
            chunk,
            stats: ReadStats::default(),
            unpaid: Unpaid::new(options.rate.as_ref()),
        }
    }

    fn run(&mut self) {
        self.run_plan();
        while !self.unsettled.is_empty() && pause(self.cancel) {
            self.again = std::mem::take(&mut self.unsettled);
            self.run_plan();
        }
    }

    fn run_plan(&mut self) {
        let cancel = self.cancel;
        let mut feeds = Vec::with_capacity(self.slots.len());
        let mut consumed = Vec::with_capacity(self.slots.len());
        let mut exhausted = false;
        // Whether the last file had to go through the ring: then more of them
        // are started than the consumer needs just now.
        let mut deep = false;
        while !cancel.is_cancelled() {
            let mut width = self.width();
            self.resume_starved();
            while !self.is_short()
                && (!self.is_filled(width) || deep || self.hand.long() >= width)
                && self.may_begin(if deep { self.slots.len() } else { width })
            {
                let Some(slot) = self.free.pop() else { break };
                let start = self.start(slot);
                deep = start == Started::InFlight;
                exhausted = start == Started::NoMore;
                if exhausted {
                    break;
                }
                if cancel.is_cancelled() {
                    return;
                }
                width = self.width();
            }
            if self.queue.in_flight() > 0 {
                self.complete(usize::from(!self.is_filled(self.enough(width))));
                if !self.is_filled(self.enough(width)) && (self.queue.in_flight() > 0 || !exhausted)
                {
                    continue;
                }
            }
            if self.ready.is_empty() {
                let waiting = !self.starved.is_empty() || !self.deferred.is_empty();
                if exhausted && !waiting && self.queue.in_flight() == 0 {
                    return;
                }
                continue;
            }
            feeds = self.advance(width, feeds, &mut consumed);
            self.finish_or_read_on(&mut consumed);
        }
    }

    /// Returns the number of slots to fill before the consumer is called.
    fn width(&self) -> usize {
        let width = self.consumer.width().clamp(1, self.slots.len());
        match self.open_latency.is_slow() {
            true => width.min((WAITING_BUFFERS / self.hand.workers()).max(1)),
            false => width,
        }
    }

    /// True if so many slots are filled, or as much as one of the workers that wait should hold.
    fn is_filled(&self, slots: usize) -> bool {
        if self.ready.len() >= slots {
            return true;
        }
        self.open_latency.is_slow()
            && self.filled_bytes() >= (WAITING_BYTES / self.hand.workers()).max(1)
    }

    fn filled_bytes(&self) -> usize {
        let filled = |slot: &usize| match &self.slots[*slot] {
            Slot::Active(active) => active.filled,
            _ => 0,
        };
        self.ready.iter().map(filled).sum()
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
    fn finish_or_read_on(&mut self, consumed: &mut Vec<usize>) {
        self.ready.retain(|slot| !consumed.contains(slot));
        for slot in consumed.drain(..) {
            let Slot::Active(active) = &mut self.slots[slot] else {
                continue;
            };
            if active.end {
                self.finish(slot, None);
            } else {
                active.filled = 0;
                self.pay();
                self.read(slot);
            }
        }
    }

    /// Waits until what was read is paid for, where there is a limit. No writer has to wait for that.
    fn pay(&mut self) {
        if let Some((rate, bytes)) = self.unpaid.take(self.stats.bytes) {
            let cancel = self.cancel;
            rate.spend_while(bytes, cancel, || {
                self.let_writers_in();
                true
            });
        }
    }

    /// Gives buffers that have become free to the slots that wait for one.
    fn resume_starved(&mut self) {
        while let Some(&slot) = self.starved.front() {
            let Slot::Starved(active) = &self.slots[slot] else {
                self.starved.pop_front();
                continue;
            };
            match self.pool.take(active.cursor.left()) {
                Ok(Some(buffer)) => {
                    self.starved.pop_front();
                    let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
                    if let Slot::Starved(mut active) = state {
                        active.buffer = Some(buffer);
                        self.slots[slot] = Slot::Active(active);
                        self.read(slot);
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
        self.pay();
        if self.hand.is_empty() {
            self.clock.read();
        }
        self.hand.next()
    }

    /// True if one more file may be begun, where there is room for `room`.
    fn may_begin(&mut self, room: usize) -> bool {
        // A file that was put off is no other worker's share.
        !self.again.is_empty() || self.hand.may_begin(room)
    }

    fn stats(self) -> ReadStats {
        let (backend, refused) = self.queue.outcome();
        ReadStats {
            backend,
            refused,
            ..self.stats
        }
    }
}

/// Reuses the allocation for feeds of another lifetime.
fn recycle<'b>(mut feeds: Vec<Feed<'_>>) -> Vec<Feed<'b>> {
    feeds.clear();
    // An empty collect in place keeps the allocation.
    feeds.into_iter().map(|_| unreachable!()).collect()
}
