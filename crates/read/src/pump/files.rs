//! One file's way through a slot: open, verify, read, finish. Each step is a
//! plain call or goes through the ring. For want of descriptors it is put off.

use std::os::fd::{AsFd, OwnedFd};

use bc_fs::shortage::{ErrorNumber, is_shortage};
use bc_pool::Waiting;
use bc_walk::{EntryId, Error};
use rustix::io::Errno;

use super::Pump;
use super::cursor::{ReadCursor, Step};
use super::slot::{Active, PlainRead, Slot};
use crate::buffer::{Buffer, Pool};
use crate::open::{Cached, Waits, verify};
use crate::plan::Length;
use crate::queue::FirstTry;
use crate::steady::Watch;
use crate::types::{Opened, VerifyWhen, Want};
use crate::uring::Completion;
use crate::waits::Call;

/// Small files from one look at the clocks to the next, where opens are fast.
const SMALL_FILES: u32 = 8;

/// Result of an attempt to start a file.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Started {
    /// Filled, failed, or short of a buffer: without waiting in any case.
    Done,
    /// Waiting for the ring.
    InFlight,
    /// Put off for lack of descriptors.
    Deferred,
    /// The plan is exhausted.
    NoMore,
}

impl Pump<'_> {
    /// Starts the next entry of the plan in a free slot.
    pub(super) fn start(&mut self, slot: usize) -> Started {
        let (entry, want) = if let Some(deferred) = self.deferred.pop() {
            deferred
        } else if let Some(again) = self.next_again() {
            again
        } else if self.is_ending && self.hand.may_leave() {
            self.free.push(slot);
            return Started::NoMore;
        } else if let Some(entry) = self.next_entry() {
            (entry, self.consumer.want(entry))
        } else {
            self.free.push(slot);
            return Started::NoMore;
        };
        let opened = self.open(slot, entry, want);
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => return Started::InFlight,
            Err(_) if self.defers(&opened) => {
                self.free.push(slot);
                self.deferred.push((entry, want));
                return Started::Deferred;
            }
            Err(error) => {
                self.finish_unopened(slot, entry, error);
                return Started::Done;
            }
        };
        self.opened(slot, entry, want, file)
    }

    /// Begins a file that was opened for `slot`: verifies it and begins to read.
    pub(super) fn opened(
        &mut self,
        slot: usize,
        entry: EntryId,
        want: Want,
        file: OwnedFd,
    ) -> Started {
        let when = self.consumer.verify(entry);
        let listed = self.unverified(when, entry);
        let verified = listed.is_none();
        let stat = match listed.map_or_else(|| verify(self.listing, entry, &file), Ok) {
            Ok(stat) => stat,
            Err(error) => {
                self.finish_unopened(slot, entry, error);
                return Started::Done;
            }
        };
        self.wait.found();
        let size = stat.stamp.size;
        let cursor = ReadCursor::new(want, size, self.options.sizes, self.options.changed);
        let opened = Opened { entry, stat };
        if self.consumer.knows(&opened, file.as_fd()) {
            self.stats.files += 1;
            return self.free_unread(slot, file);
        }
        if cursor.left() > self.options.slot_size as u64 {
            self.small = 0;
        }
        let length = Length::of(cursor.left());
        if length == Length::Huge && verified && self.take_over(&opened, cursor.left()) {
            return self.free_unread(slot, file);
        }
        self.hand.begin(cursor.left(), length);
        self.consumer.begin(slot, &opened);
        let mut active = Active::new(opened, verified, want, cursor, file);
        active.length = length;
        active.plain = self.is_plain(self.opener.waits(entry));
        active.confirm = !verified && when == VerifyWhen::AtEnd;
        if verified {
            self.watch(&mut active);
        }
        match self.pool.take(cursor.left()) {
            Ok(Some(buffer)) => {
                active.buffer = Some(buffer);
                match self.direct(active.plain) {
                    Some(way) => self.read_at_once(slot, active, way),
                    None => {
                        self.slots[slot] = Slot::Active(active);
                        self.read(slot)
                    }
                }
            }
            Ok(None) => {
                self.slots[slot] = Slot::Starved(active);
                self.starved.push_back(slot);
                Started::Done
            }
            Err(errno) => {
                self.slots[slot] = Slot::Active(active);
                self.fail(slot, "read", errno);
                Started::Done
            }
        }
    }

    /// Lets go of a file that the consumer has taken care of.
    fn free_unread(&mut self, slot: usize, file: OwnedFd) -> Started {
        // Nothing was written to it.
        let _ = bc_fs::call::close(file);
        self.short = false;
        self.slots[slot] = Slot::Free;
        self.free.push(slot);
        Started::Done
    }

    /// Offers a huge file to the consumer, to be read in a way of its own: where this worker has no
    /// other in hand, which would have to wait for it, and no writer waits for one of its files.
    fn take_over(&mut self, opened: &Opened, bytes: u64) -> bool {
        // The pump knows the readings so far of a file that was put off.
        if self.hand.huge() > 0 || self.is_known(opened.entry) || self.holds_lease() {
            return false;
        }
        self.hand.begin(bytes, Length::Huge);
        let taken = self.consumer.take_over(opened);
        self.hand.end(Length::Huge);
        taken
    }

    /// Returns the way to read a file that need not be put into its slot: the consumer takes one at
    /// a time, nothing else waits for it, and the file before was resident, or plain calls are its
    /// way.
    fn direct(&self, plain: bool) -> Option<FirstTry> {
        let one = self.consumer.width() <= 1 || self.slots.len() == 1;
        if !one || !self.ready.is_empty() || self.queue.in_flight() > 0 {
            return None;
        }
        if plain {
            Some(FirstTry::Plain)
        } else {
            self.queue.direct()
        }
    }

    /// Reads a file that was just opened for `slot`. If one call is all it takes, the consumer sees
    /// it at once and it is done: most files of most trees, at the least cost. Other files go
    /// through a slot.
    fn read_at_once(&mut self, slot: usize, mut active: Active, way: FirstTry) -> Started {
        if active.cursor.nothing() {
            self.slots[slot] = Slot::Active(active);
            return self.read(slot);
        }
        active.ask(self.chunk);
        let plain = match way {
            FirstTry::Cached => self.silent.read(&mut active),
            FirstTry::Plain | FirstTry::Ring => active.read().map(PlainRead::Read),
        };
        let Ok(PlainRead::Read(n)) = plain else {
            // Asked again, by the book.
            self.slots[slot] = Slot::Active(active);
            return self.read(slot);
        };
        if !active.plain {
            self.queue.hit();
        }
        self.stats.reads += 1;
        self.stats.bytes += n as u64;
        match active.took(n) {
            Step::Last | Step::LastIfSame if active.confirm => {
                if let Err(error) = active.confirm(self.listing, self.options.sizes) {
                    self.finish_active(slot, active, Some(error));
                    return Started::Done;
                }
            }
            Step::Last if matches!(active.watch, Watch::Off) => {}
            Step::LastIfSame if !active.verified && active.cursor.exact() => {}
            step => {
                self.slots[slot] = Slot::Active(active);
                return match self.make_ready(slot, step) {
                    true => self.read(slot),
                    false => Started::Done,
                };
            }
        }
        active.end = true;
        self.consumer
            .advance(&[active.feed(slot)], &mut self.consumed);
        assert!(
            self.consumed.pop().is_some(),
            "a consumer must consume something"
        );
        self.finish_active(slot, active, None);
        Started::Done
    }

    /// Reads into the slot's buffer until it has something for the consumer,
    /// or leaves that to the ring.
    pub(super) fn read(&mut self, slot: usize) -> Started {
        loop {
            let Slot::Active(active) = &mut self.slots[slot] else {
                return Started::Done;
            };
            if active.cursor.nothing() {
                if active.confirm {
                    self.make_ready(slot, Step::Last);
                } else {
                    active.end = true;
                    self.ready.push(slot);
                }
                return Started::Done;
            }
            active.ask(self.chunk);
            let way = match active.plain {
                true => FirstTry::Plain,
                false => self.queue.way(Call::Read),
            };
            let plain = match way {
                FirstTry::Cached => self.silent.read(active),
                FirstTry::Plain => active.read().map(PlainRead::Read),
                FirstTry::Ring if self.queue.is_plain() => Ok(PlainRead::Miss),
                FirstTry::Ring => self.silent.leave(active),
            };
            match plain {
                // It proves nothing about other file systems.
                Ok(PlainRead::Read(_)) if active.plain => {}
                Ok(PlainRead::Read(_)) => self.queue.hit(),
                Ok(PlainRead::Miss) if way == FirstTry::Cached => self.queue.miss(Call::Read),
                Ok(PlainRead::Miss) => self.queue.passed(Call::Read),
                Ok(PlainRead::Unknown | PlainRead::Unsupported) | Err(_) => {}
            }
            let read = match plain {
                Ok(PlainRead::Read(n)) => Ok(n),
                // No ring reads it (see `Silent`): workers join where it waits.
                Ok(PlainRead::Unknown | PlainRead::Unsupported) => {
                    if self.queue.chooses() {
                        self.opener
                            .note_silent(active.opened.entry, active.opened.stat.id.dev);
                    }
                    active.read()
                }
                Ok(PlainRead::Miss) => {
                    match self.queue.ring() {
                        None => active.read(),
                        Some(ring) => {
                            // A ring reads what has no positions all the same.
                            if !active.verified {
                                if let Err(error) =
                                    verify(self.listing, active.opened.entry, active.file())
                                {
                                    self.finish(slot, Some(error));
                                    return Started::Done;
                                }
                                active.verified = true;
                            }
                            self.silent.note_reporting(active.opened.stat.id.dev);
                            let (file, buffer) = active.lend();
                            let (filled, asked, pos) =
                                (active.filled, active.asked, active.cursor.pos());
                            self.stats.queued += 1;
                            if let Err(errno) = ring.read(slot, file, buffer, filled, asked, pos) {
                                self.abandon(errno);
                            }
                            return Started::InFlight;
                        }
                    }
                }
                Err(errno) => Err(errno),
            };
            if !self.has_read(slot, read) {
                return Started::Done;
            }
        }
    }

    /// Takes note of a read; returns whether another one has to follow.
    fn has_read(&mut self, slot: usize, read: Result<usize, Errno>) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        self.stats.reads += 1;
        let n = match read {
            Ok(n) => n,
            // A file that was opened and not verified may be of any kind.
            Err(errno) if !active.verified => {
                return match verify(self.listing, active.opened.entry, active.file()) {
                    Ok(_) if errno == Errno::SPIPE => {
                        active.verified = true;
                        true
                    }
                    Ok(_) => {
                        self.fail(slot, "read", errno);
                        false
                    }
                    Err(error) => {
                        self.finish(slot, Some(error));
                        false
                    }
                };
            }
            Err(errno) => {
                self.fail(slot, "read", errno);
                return false;
            }
        };
        self.stats.bytes += n as u64;
        let step = active.took(n);
        if active.is_endless() {
            self.fail(slot, "read", Errno::FBIG);
            return false;
        }
        self.make_ready(slot, step)
    }

    /// Acts on the result of a read of the slot's file; returns whether another one has to follow.
    fn make_ready(&mut self, slot: usize, step: Step) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        if !matches!(active.watch, Watch::Off) && !self.is_steady(slot, step) {
            return false;
        }
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        let (listing, trust) = (self.listing, self.options.sizes);
        let checked = match step {
            Step::More => return true,
            Step::Full => Ok(()),
            Step::Last | Step::LastIfSame if active.confirm => active.confirm(listing, trust),
            Step::Last => Ok(()),
            Step::LastIfSame if !active.verified && active.cursor.exact() => Ok(()),
            // Shown by more than its stamp.
            Step::LastIfSame if !matches!(active.watch, Watch::Off) => Ok(()),
            Step::LastIfSame => active.unchanged(listing, trust),
        };
        if let Err(error) = checked {
            self.finish(slot, Some(error));
            return false;
        }
        active.end = step != Step::Full;
        self.ready.push(slot);
        false
    }

    /// Submits the pending requests and takes those that the ring has completed.
    pub(super) fn complete(&mut self, wait: usize) {
        if let Err(errno) = self.queue.submit(wait) {
            self.abandon(errno);
            return;
        }
        while let Some((slot, done)) = self.queue.reap() {
            match done {
                Completion::Open(result) => self.completed_open(slot, result),
                Completion::Read {
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
                    if self.has_read(slot, read) {
                        self.read(slot);
                    }
                }
            }
        }
    }

    /// Gives up a ring that failed for good: fails the calls in flight and continues without it.
    pub(super) fn abandon(&mut self, errno: Errno) {
        // The buffers in flight are lost.
        self.pool = Pool::new(&[(self.slots.len(), self.options.slot_size)]);
        for slot in self.queue.abandon(errno) {
            match &self.slots[slot] {
                Slot::Opening { entry, .. } => {
                    let error = self.opener.error(*entry, "open", errno);
                    self.hand.opened();
                    self.finish_unopened(slot, *entry, error);
                }
                _ => self.fail(slot, "read", errno),
            }
        }
    }

    /// Finishes an entry that did not get as far as `begin`.
    pub(super) fn finish_unopened(&mut self, slot: usize, entry: EntryId, error: Error) {
        self.slots[slot] = Slot::Free;
        self.free.push(slot);
        self.stats.errors += 1;
        self.consumer.finish(slot, Err(error), entry);
    }

    pub(super) fn fail(&mut self, slot: usize, op: &'static str, errno: Errno) {
        if let Slot::Active(active) | Slot::Starved(active) = &self.slots[slot] {
            let error = self.opener.error(active.opened.entry, op, errno);
            self.finish(slot, Some(error));
        }
    }

    /// Closes the file, frees the slot and calls the consumer.
    pub(super) fn finish(&mut self, slot: usize, error: Option<Error>) {
        let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
        if let Slot::Active(active) | Slot::Starved(active) = state {
            self.finish_active(slot, active, error);
        }
    }

    /// Finishes a file that has left its slot.
    fn finish_active(&mut self, slot: usize, active: Active, error: Option<Error>) {
        self.free_slot(slot, active.length, active.buffer, active.file);
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

    /// Frees the slot, and its file's buffer and descriptor: it is no longer in hand, done or put
    /// off.
    #[inline]
    pub(super) fn free_slot(
        &mut self,
        slot: usize,
        length: Length,
        buffer: Option<Buffer>,
        file: Option<OwnedFd>,
    ) {
        if let Some(buffer) = buffer {
            self.pool.put(buffer);
        }
        if let Some(file) = file {
            // Nothing was written to it.
            let _ = bc_fs::call::close(file);
        }
        self.hand.end(length);
        self.short = false;
        self.free.push(slot);
    }
}

/// Opening: by a call that does not wait for the disk, by one that may, or by the ring.
impl Pump<'_> {
    /// Opens an entry, or has the ring open it (`None`).
    pub(super) fn open(
        &mut self,
        slot: usize,
        entry: EntryId,
        want: Want,
    ) -> Result<Option<OwnedFd>, Error> {
        let mut place = self.opener.place(entry)?;
        let way = self.queue.way(Call::Open);
        if self.queue.chooses()
            && !std::mem::replace(&mut self.knows_waits, true)
            && place.waits == Waits::Disk
        {
            place.waits = self.opener.find_waits(false);
        }
        self.watch_waiting(place.waits);
        if self.is_plain(place.waits) {
            return self.opener.open(&place.dir, entry).map(Some);
        }
        match way {
            _ if place.waits == Waits::Unsaid && self.queue.chooses() => {
                let has_ring = !self.queue.is_plain();
                if !has_ring || self.hand.is_joined() || !self.open_latency.queues() {
                    let open = || self.opener.open(&place.dir, entry);
                    return self.open_latency.timed(open).map(Some);
                }
            }
            FirstTry::Cached => match self.opener.open_cached(&place.dir, entry)? {
                Cached::Open(file) => {
                    self.queue.found();
                    return Ok(Some(file));
                }
                Cached::Miss => match self.opener.find_waits(false) {
                    Waits::Disk => self.queue.miss(Call::Open),
                    waits if self.is_plain(waits) => {
                        return self.opener.open(&place.dir, entry).map(Some);
                    }
                    waits => place.waits = waits,
                },
            },
            FirstTry::Plain => return self.opener.open(&place.dir, entry).map(Some),
            FirstTry::Ring => self.queue.passed(Call::Open),
        }
        let Some(ring) = self.queue.ring() else {
            return self.opener.open(&place.dir, entry).map(Some);
        };
        let flags = self.opener.flags(entry);
        self.slots[slot] = Slot::Opening { entry, want };
        self.hand.opening();
        self.stats.queued += 1;
        if let Err(errno) = ring.open(slot, place, self.listing.name(entry), flags) {
            self.abandon(errno);
        }
        Ok(None)
    }

    /// True if calls that wait for this are left to plain calls.
    pub(super) fn is_plain(&self, waits: Waits) -> bool {
        matches!(waits, Waits::Processor | Waits::Decompressor) && self.queue.chooses()
    }

    /// Notes each file before it is opened, and has other workers join if the calls before have
    /// waited, where the ring is not their way. Where there is one decompressor they would only
    /// wait for that, and a long file keeps its disk busy by itself, or a spinning one's arm on its
    /// track: those that have joined for an earlier place end again.
    fn watch_waiting(&mut self, waits: Waits) {
        let may_wait = match waits {
            Waits::Unsaid | Waits::Processor => self.queue.chooses(),
            Waits::Disk | Waits::Decompressor => false,
        };
        if !may_wait {
            self.small = 0;
            // What a server's files wait for shows with the first of them, or with its first read.
            self.unhelped = self.unhelped.saturating_add(1);
            if self.unhelped >= SMALL_FILES && self.hand.is_joined() {
                self.consumer.waiting(Waiting::NoHelp);
            }
            self.is_ending = self.is_ending || self.consumer.ends();
            return;
        }
        self.unhelped = 0;
        if self.small == 0 {
            self.consumer.waiting(Waiting::Begins);
        } else if self.small.is_multiple_of(SMALL_FILES) || self.open_latency.is_slow() {
            self.consumer.waiting(Waiting::GoesOn);
            self.hand.share_with_joined();
            self.is_ending = self.is_ending || self.consumer.ends();
        }
        self.small = self.small.wrapping_add(1).max(1);
    }

    /// Takes a file that the ring has opened, or its error.
    pub(super) fn completed_open(&mut self, slot: usize, result: Result<OwnedFd, Errno>) {
        let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
        let Slot::Opening { entry, want } = state else {
            self.slots[slot] = state;
            return;
        };
        self.hand.opened();
        let file = match result {
            Ok(file) => Ok(file),
            // O_NOATIME refused, or nothing to do with the file: by plain call.
            Err(Errno::PERM | Errno::AGAIN | Errno::INTR) => {
                let place = self.opener.place(entry);
                place.and_then(|place| self.opener.open(&place.dir, entry))
            }
            Err(errno) => Err(self.opener.error(entry, "open", errno)),
        };
        match file {
            Ok(file) => {
                self.opened(slot, entry, want, file);
            }
            Err(_) if self.defers(&file) => {
                self.free.push(slot);
                self.deferred.push((entry, want));
            }
            Err(error) => self.finish_unopened(slot, entry, error),
        }
    }
}

/// Shortage of descriptors: files are closed before others are opened, and failed opens are put off.
impl Pump<'_> {
    /// Returns the number of slots that should be filled before the consumer is called.
    pub(super) fn enough(&self, width: usize) -> usize {
        if self.is_short() { 1 } else { width }
    }

    /// True if files have to be closed before others can be opened.
    pub(super) fn is_short(&self) -> bool {
        self.short && self.free.len() < self.slots.len()
    }

    /// True if a failed open is worth another try once a descriptor has become free: by one of this
    /// worker's own files or kept directories, or for a second by another worker's. The slot of the
    /// failed open counts as used.
    pub(super) fn defers<T, E: ErrorNumber>(&mut self, opened: &Result<T, E>) -> bool {
        match opened {
            Err(error) if is_shortage(error) => {}
            _ => return false,
        }
        self.short = true;
        // After a cancellation what is deferred is dropped.
        if self.free.len() + 1 < self.slots.len() || self.cancel.is_cancelled() {
            return true;
        }
        let cancel = self.cancel;
        self.wait.again(
            opened,
            || cancel.is_cancelled(),
            || {
                self.opener.release();
            },
        ) || cancel.is_cancelled()
    }
}
