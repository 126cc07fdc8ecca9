//! Files that were written to a moment ago: read under a lease, or more than once.

use bc_fs::lease;
use bc_walk::{Error, ErrorKind};
use rustix::io::Errno;

use super::Pump;
use crate::close::close;
use crate::progress::{Progress, Step};
use crate::slot::{Active, Slot, is_made_up};
use crate::steady::{Readings, Verdict, look, take_lease};
use crate::twice::{Twice, Watch};
use crate::types::{Changed, Consumer};

impl<C: Consumer> Pump<'_, C> {
    /// Sees to it that writers of a file that was opened just now will be noticed.
    pub(super) fn watch(&mut self, active: &mut Active) {
        let stamp = &active.opened.stat.stamp;
        // Of an empty file nothing can be torn.
        if self.options.changed == Changed::Allow
            || !self.clock.is_fresh(stamp)
            || stamp.size == 0
        {
            return;
        }
        active.watch = match take_lease(active.file()) {
            Ok(()) => Watch::Lease,
            // What is made up on the way may be another content each time, and is never torn.
            Err(_) if is_made_up(active.file()) => Watch::Off,
            Err(_) => Watch::Due,
        };
    }

    /// As [`stepped`](Pump::stepped), for a file that is watched.
    pub(super) fn stepped_fresh(&mut self, slot: usize, step: Step) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        let last = matches!(step, Step::Last | Step::LastIfSame);
        if let Watch::Lease = active.watch {
            let same = || active.unchanged(self.listing, self.options.sizes).is_ok();
            let good = (step != Step::LastIfSame || same()) && lease::is_held(active.file());
            if !good {
                // Whoever waits may write; the reading begins again.
                lease::give_up(active.file());
                active.watch = Watch::Due;
                return true;
            }
            if last && let Some(file) = active.take_file() {
                // Its lease goes with it, however long the consumer takes.
                close(file);
            }
        } else if last {
            match self.judge(slot) {
                Ok(Verdict::Agrees) => {}
                Ok(Verdict::Again) => return self.restart(slot),
                Ok(Verdict::Restless) => {
                    self.restless(slot);
                    return false;
                }
                Err(errno) => {
                    self.fail(slot, "stat", errno);
                    return false;
                }
            }
        }
        if step == Step::More {
            return true;
        }
        if let Slot::Active(active) = &mut self.slots[slot] {
            active.end = last;
        }
        self.ready.push(slot);
        false
    }

    /// The first reading of a file without a lease: for nothing but its sum. Returns whether the
    /// slot's file can be read again, for the consumer.
    pub(super) fn read_before(&mut self, slot: usize) -> bool {
        match self.first_sum(slot) {
            Ok(true) => self.restart(slot),
            // Cancelled: what is in the slots is dropped.
            Ok(false) => false,
            Err((op, errno)) => {
                self.fail(slot, op, errno);
                false
            }
        }
    }

    fn first_sum(&mut self, slot: usize) -> Result<bool, (&'static str, Errno)> {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return Ok(false);
        };
        let stat = |errno| ("stat", errno);
        let before = look(active.file()).map_err(stat)?.stamp;
        let size = before.size;
        let progress = Progress::new(
            active.want,
            size,
            self.options.sizes,
            self.options.changed,
        );
        self.stats.bytes -= active.bytes;
        active.rewind(progress);
        let sum = active.sum(self.chunk, self.cancel);
        let Some(sum) = sum.map_err(|errno| ("read", errno))? else {
            return Ok(false);
        };
        active.bytes = 0;
        let mut readings = Readings::new(before);
        let after = look(active.file()).map_err(stat)?;
        readings.end(Some(sum), after.stamp);
        active.opened.stat = after;
        active.watch = Watch::Twice(Box::new(Twice {
            readings,
            sum: xxhash_rust::xxh3::Xxh3::new(),
        }));
        Ok(true)
    }

    /// Begins the next reading, for the consumer.
    fn restart(&mut self, slot: usize) -> bool {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return false;
        };
        let size = active.opened.stat.stamp.size;
        self.stats.bytes -= active.bytes;
        active.rewind(Progress::new(
            active.want,
            size,
            self.options.sizes,
            self.options.changed,
        ));
        self.consumer.begin(slot, &active.opened);
        true
    }

    /// What to make of the reading that has just come to its end.
    fn judge(&mut self, slot: usize) -> Result<Verdict, Errno> {
        let Slot::Active(active) = &mut self.slots[slot] else {
            return Ok(Verdict::Restless);
        };
        let after = look(active.file())?;
        let enough = active.enough(self.options.sizes);
        let Watch::Twice(twice) = &mut active.watch else {
            return Ok(Verdict::Restless);
        };
        let sum = enough.then(|| twice.sum.digest128());
        let verdict = twice.readings.end(sum, after.stamp);
        active.opened.stat = after;
        Ok(verdict)
    }

    fn restless(&mut self, slot: usize) {
        if let Slot::Active(active) = &self.slots[slot] {
            let path = self.listing.path(active.opened.entry);
            let changed = Error::of_kind(path, "read", ErrorKind::Changed);
            self.finish(slot, Some(changed));
        }
    }
}
