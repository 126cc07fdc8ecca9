//! Opening of files: by a call that does not wait for the disk, by one that may, or by the ring.

use std::os::fd::OwnedFd;

use bc_pool::Waiting;
use bc_walk::{EntryId, Error};
use rustix::io::Errno;

use super::Pump;
use crate::open::{Cached, Waits};
use crate::queue::FirstTry;
use crate::residency::Call;
use crate::slot::Slot;
use crate::types::{Consumer, Want};

/// Small files from one look at the clocks to the next.
const SMALL_FILES: u32 = 8;

impl<C: Consumer> Pump<'_, C> {
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
        if self.is_plain(place.waits) {
            return self.opener.open(&place.dir, entry).map(Some);
        }
        match way {
            _ if place.waits == Waits::Unsaid && self.queue.chooses() => {
                if !self.open_latency.queues() {
                    let open = || self.opener.open(&place.dir, entry);
                    return self.open_latency.timed_call(open, |_| 0).map(Some);
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

    /// Notes each file that one call reads, and has other workers join if the calls before have
    /// waited, where the ring is not their way. Where there is one decompressor they would only
    /// wait for that, and a long file keeps its disk busy by itself, or a spinning one's arm on its
    /// track.
    pub(super) fn watch_waiting(&mut self, entry: EntryId, bytes: u64) {
        let may_wait = match self.opener.waits(entry) {
            Waits::Unsaid | Waits::Processor => self.queue.chooses(),
            Waits::Disk | Waits::Decompressor => false,
        };
        if !may_wait || bytes > self.options.slot_size as u64 {
            self.small = 0;
            return;
        }
        if self.small == 0 {
            self.consumer.waiting(Waiting::Begins);
        } else if self.small.is_multiple_of(SMALL_FILES) {
            self.consumer.waiting(Waiting::GoesOn);
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
