//! Counts and reports of the outcomes of paths.

use std::sync::MutexGuard;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use bc_integrity::Verified;
use bc_walk::{Error, ErrorKind};
use rustix::io::Errno;

use super::dirs::Volume;
use super::needs::Need;
use super::options::{Repaired, RestoreEvent, Restored};
use super::{Reach, Restore};
use crate::lock;
use crate::meta::LostMeta;
use crate::sources::shown_below;

impl Restore<'_> {
    /// True if nothing more is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.means.cancel.is_cancelled()
    }

    /// True for a path whose file system takes no more, so that nothing is begun there.
    pub(super) fn is_left(&self, need: usize) -> bool {
        let full = self.full();
        !full.is_empty() && {
            let volume = self.means.dirs.volume(self, &self.plan.needs[need].path);
            full.iter().any(|(known, _)| Some(*known) == volume)
        }
    }

    fn full(&self) -> MutexGuard<'_, Vec<(Volume, Errno)>> {
        lock(&self.outcomes.full)
    }

    /// Returns a path below the root, as it is shown.
    pub(super) fn shown(&self, path: &[u8]) -> Vec<u8> {
        shown_below(&self.plan.top.path, path)
    }

    pub(super) fn is_settled(&self, need: usize) -> bool {
        self.outcomes.settled[need].load(Relaxed)
    }

    pub(super) fn settle(&self, need: usize, count: &AtomicU64) {
        self.outcomes.settled[need].store(true, Relaxed);
        self.means.progress.files.fetch_add(1, Relaxed);
        count.fetch_add(1, Relaxed);
    }

    pub(super) fn repaired(&self, need: usize, repaired: &Repaired<'_>) {
        self.settle(need, &self.outcomes.repaired);
        (self.means.observer)(RestoreEvent::Repaired(repaired));
    }

    pub(super) fn failed(&self, number: usize, error: &Error) {
        let errno = error.errno().map(Errno::from_raw_os_error);
        let is_full = matches!(errno, Some(Errno::NOSPC | Errno::DQUOT | Errno::ROFS));
        if let Some(errno) = errno.filter(|_| is_full && !self.plan.dry_run)
            && let Some(volume) = self.means.dirs.volume(self, &self.plan.needs[number].path)
        {
            // All else would fail there, too.
            self.full().push((volume, errno));
        }
        self.settle(number, &self.outcomes.failed);
        let Need {
            path, loss, entry, ..
        } = &self.plan.needs[number];
        let bytes = entry.size().unwrap_or(0);
        self.outcomes.bytes_failed.fetch_add(bytes, Relaxed);
        (self.means.observer)(RestoreEvent::Failed {
            path,
            loss: *loss,
            error,
        });
    }

    pub(super) fn missing(&self, number: usize, why: &'static str) {
        self.settle(number, &self.outcomes.missing);
        let Need { path, loss, .. } = &self.plan.needs[number];
        (self.means.observer)(RestoreEvent::Missing {
            path,
            loss: *loss,
            why,
        });
    }

    /// Reports a copy, or a part of it, that cannot be read: another one may do.
    pub(super) fn unreadable(&self, error: &Error) {
        if error.kind() != ErrorKind::Cancelled {
            (self.means.observer)(RestoreEvent::Warning(&error.to_string()));
        }
    }

    pub(super) fn incomplete(&self, path: &[u8], what: &'static str, errno: Errno) {
        self.not_given(&Error::new(self.shown(path), what, errno));
    }

    /// Tells why a path was not given what it is to have.
    pub(super) fn not_given(&self, error: &Error) {
        self.outcomes.incomplete.fetch_add(1, Relaxed);
        (self.means.observer)(RestoreEvent::Incomplete(error));
    }

    /// Reports metadata that a path could not be given.
    pub(super) fn lost(&self, path: &[u8], lost: &mut Vec<LostMeta>) {
        for lost in lost.drain(..) {
            self.incomplete(path, lost.op, lost.errno);
        }
    }

    /// Gives directories their final metadata, and reports what is missing.
    pub(super) fn end(&self) {
        self.means.dirs.finish(self);
        self.means.stages.end();
        if self.is_over() {
            return;
        }
        let unsettled = (0..self.plan.needs.len()).filter(|number| !self.is_settled(*number));
        for number in unsettled.filter(|number| !self.is_left(*number)) {
            let digest = self.plan.needs[number].digest();
            self.missing(
                number,
                match digest.map(Reach::of) {
                    Some(Reach::Anywhere) => "no copy holds it",
                    Some(Reach::SamePath) => {
                        "no copy holds it at the same path, and its digest is too short to know it by elsewhere"
                    }
                    Some(Reach::Nowhere) => "its digest is too short to know its content by",
                    None => "no digest is recorded",
                },
            );
        }
    }

    pub(super) fn restored(&self, others: u64, verified: Verified) -> Restored {
        let count = |count: &AtomicU64| count.load(Relaxed);
        let wanted = self.plan.needs.len() as u64;
        let left = (0..self.plan.needs.len()).filter(|number| !self.is_settled(*number));
        let left: u64 = left
            .filter_map(|number| self.plan.needs[number].entry.size())
            .sum();
        let settled = count(&self.outcomes.repaired)
            + count(&self.outcomes.missing)
            + count(&self.outcomes.failed);
        Restored {
            wanted,
            repaired: count(&self.outcomes.repaired),
            missing: count(&self.outcomes.missing),
            failed: count(&self.outcomes.failed),
            left: wanted - settled,
            others,
            bytes: count(&self.outcomes.written),
            bytes_left: left + count(&self.outcomes.bytes_failed),
            stopped: self.full().first().map(|(_, errno)| errno.to_string()),
            incomplete: count(&self.outcomes.incomplete),
            verified: verified.totals,
        }
    }
}
