//! Files that were written to a moment ago: read under a lease, or more than once, and not again
//! before all others had their turn, so that all of them wait together.

use bc_fs::lease;
use bc_walk::{EntryId, Error, ErrorKind, FileStat};
use rustix::io::retry_on_intr;
use xxhash_rust::xxh3::Xxh3;

use super::Pump;
use super::cursor::Step;
use super::slot::{Active, Slot, is_made_up};
use crate::open::as_listed;
use crate::steady::{Readings, SteadyVerdict, Summed, Unsettled, Watch, take_lease};
use crate::types::{Changed, VerifyWhen, Want};

impl Pump<'_> {
    /// Arranges that writers of a file that was opened just now will be noticed.
    pub(super) fn watch(&mut self, active: &mut Active) {
        let readings = self.known(active.opened.entry);
        let stamp = &active.opened.stat.stamp;
        // An empty file cannot be torn.
        if self.options.changed == Changed::Allow || stamp.size == 0 || !self.clock.is_fresh(stamp)
        {
            return;
        }
        let readings = readings.unwrap_or_default();
        active.watch = match take_lease(active.file()) {
            Ok(()) => Watch::Lease(readings),
            // Content that the kernel makes up may differ each time, and is never torn.
            Err(_) if is_made_up(active.file()) => Watch::Off,
            Err(_) => Watch::Sum(Box::new(Summed {
                readings,
                sum: Xxh3::new(),
            })),
        };
    }

    /// Returns the listing's metadata of a file that is not to be verified yet.
    pub(super) fn unverified(&mut self, when: VerifyWhen, entry: EntryId) -> Option<FileStat> {
        let listed = match when {
            VerifyWhen::Now => None,
            VerifyWhen::Later | VerifyWhen::AtEnd => as_listed(self.listing, entry),
        }?;
        // One look at the end shows nothing of a write that began just before the listing.
        let now = when == VerifyWhen::AtEnd
            && (self.options.changed == Changed::Allow
                || self.clock.is_fresh(&listed.stamp)
                || self.is_known(entry));
        (!now).then_some(listed)
    }

    /// Returns the earlier readings of a file, if there were any.
    fn known(&mut self, entry: EntryId) -> Option<Readings<u128>> {
        let at = self.known.iter().position(|file| file.entry == entry)?;
        Some(self.known.swap_remove(at).readings)
    }

    /// True if a file was read before.
    pub(super) fn is_known(&self, entry: EntryId) -> bool {
        self.known.iter().any(|file| file.entry == entry)
    }

    /// True if a writer to one of this worker's files would have to wait for it.
    pub(super) fn holds_lease(&self) -> bool {
        let leased = |slot: &Slot| match slot {
            Slot::Active(active) | Slot::Starved(active) => active.is_leased(),
            Slot::Free | Slot::Opening { .. } => false,
        };
        self.slots.iter().any(leased)
    }

    /// Gives up the leases that writers wait for. Their files are read again.
    pub(super) fn let_writers_in(&mut self) {
        // The ring has the descriptors of the files that it reads.
        while self.queue.in_flight() > 0 && self.holds_lease() {
            self.complete(1);
        }
        for slot in &self.slots {
            if let Slot::Active(active) | Slot::Starved(active) = slot
                && active.is_leased()
                && !lease::is_held(active.file())
            {
                lease::give_up(active.file());
            }
        }
    }

    /// Returns the next of the files to be read again.
    pub(super) fn next_again(&mut self) -> Option<(EntryId, Want)> {
        let file = self.again.pop()?;
        let next = (file.entry, file.want);
        self.known.push(file);
        Some(next)
    }

    /// True if the bytes read of the slot's file, as far as that goes, are of one state of it, or
    /// may still turn out to be. If not, the slot is free again: the file is read once more later,
    /// or has had its chances.
    pub(super) fn is_steady(&mut self, slot: usize, step: Step) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        let before = active.opened.stat.stamp;
        let last = matches!(step, Step::Last | Step::LastIfSame);
        let (mut readings, sum, after) = match std::mem::replace(&mut active.watch, Watch::Off) {
            Watch::Off => return true,
            Watch::Lease(readings) => {
                let same = || active.unchanged(self.listing, self.options.sizes).is_ok();
                if (step != Step::LastIfSame || same()) && lease::is_held(active.file()) {
                    active.watch = Watch::Lease(readings);
                    if last && let Some(file) = active.file.take() {
                        // The lease ends with it: no writer waits for the consumer. Nothing was
                        // written to it.
                        let _ = bc_fs::call::close(file);
                    }
                    return true;
                }
                (readings, None, before)
            }
            Watch::Sum(summed) if !last => {
                active.watch = Watch::Sum(summed);
                return true;
            }
            Watch::Sum(summed) => {
                let after = match retry_on_intr(|| rustix::fs::fstat(active.file())) {
                    Ok(stat) => FileStat::from(&stat).stamp,
                    Err(errno) => {
                        self.fail(slot, "stat", errno);
                        return false;
                    }
                };
                let enough = active.enough(self.options.sizes);
                let sum = enough.then(|| summed.sum.digest128());
                (summed.readings, sum, after)
            }
        };
        match readings.end(before, sum, after) {
            SteadyVerdict::Agrees => return true,
            SteadyVerdict::Again => self.put_off(slot, readings),
            SteadyVerdict::Restless => {
                let path = self.listing.path(active.opened.entry);
                let changed = Error::of_kind(path, "read", ErrorKind::Changed);
                self.finish(slot, Some(changed));
            }
        }
        false
    }

    /// Lets go of the slot's file, to read it again when all others are done.
    fn put_off(&mut self, slot: usize, readings: Readings<u128>) {
        let state = std::mem::replace(&mut self.slots[slot], Slot::Free);
        let Slot::Active(active) = state else { return };
        // Its bytes do not count.
        self.stats.bytes -= active.bytes;
        self.unsettled.push(Unsettled {
            entry: active.opened.entry,
            want: active.want,
            readings,
        });
        self.free_slot(slot, active.length, active.buffer, active.file);
    }
}
