//! Entries settled by a job's workers, and reported to its observer when their turn has come.

use std::sync::TryLockError;
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::path::split;
use bc_walk::{Error, FileKind};

use super::{MOST_TOLD, Turn};
use crate::event::{EntryReport, Event};
use crate::job::Job;
use crate::lock;
use crate::meta::LostMeta;
use crate::sources::{RootItem, WalkedDir};

impl Job<'_> {
    /// Settles an entry with its report.
    pub(crate) fn report(&self, item: RootItem, report: EntryReport) {
        let reports = &self.outcomes.reports;
        reports.settle(item, report);
        if reports.awaited.load(Relaxed) == item.0 {
            self.report_settled();
        }
    }

    /// Settles entries that have no reports of their own.
    pub(crate) fn settle(&self, items: impl IntoIterator<Item = RootItem>) {
        for item in items {
            self.outcomes.reports.settle(item, EntryReport::Quiet);
        }
        self.report_settled();
    }

    /// Settles an entry that has failed, with the error to report.
    pub(crate) fn report_failure(&self, item: RootItem, error: &Error) {
        self.outcomes.reports.change_problems(|problems| {
            let failed = problems.failed.entry(item).or_default();
            failed.push(error.clone());
        });
        self.report(item, EntryReport::Quiet);
    }

    /// Counts metadata that the copy of an entry could not be given. Each kind is reported of the
    /// first entries alone.
    pub(crate) fn lost(&self, item: RootItem, lost: &mut Vec<LostMeta>) {
        if !lost.is_empty() {
            self.lacks(item);
        }
        let reports = &self.outcomes.reports;
        let is_late = reports.marks[item.0 as usize].load(Relaxed) != 0;
        for lost in lost.drain(..) {
            self.outcomes.incomplete.fetch_add(1, Relaxed);
            reports.change_problems(|problems| {
                let kind = (lost.op, lost.errno.raw_os_error());
                let lacking = problems.lacking.entry(kind).or_default();
                lacking.waiting.insert(reports.rank(item, is_late));
                if lacking.reported + lacking.waiting.len() > MOST_TOLD {
                    lacking.waiting.pop_last();
                }
            });
        }
    }

    /// Reports the entries whose turn has come. Where another thread is at it, or that is not for
    /// this one to do, they wait for the next that comes round.
    fn report_settled(&self) {
        let reports = &self.outcomes.reports;
        if !reports.streams || !self.means.relay.is_open() {
            return;
        }
        let mut turn = match reports.turn.try_lock() {
            Ok(turn) => turn,
            // The observer has panicked.
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.report_next(&mut turn, false);
    }

    /// Reports all that is not reported yet, once no worker is left.
    pub(crate) fn report_rest(&self) {
        let reports = &self.outcomes.reports;
        self.report_next(&mut lock(&reports.turn), true);
        let late = lock(&reports.problems).entries();
        let mut paths = ShownPaths::default();
        for range in &reports.ranges {
            for item in late.range(RootItem(range.start)..RootItem(range.end)) {
                self.report_one(*item, EntryReport::Quiet, true, &mut paths);
            }
        }
    }

    fn report_next(&self, turn: &mut Turn, is_end: bool) {
        let reports = &self.outcomes.reports;
        let mut paths = ShownPaths::default();
        while let Some((item, report)) = reports.next(turn, is_end) {
            self.report_one(item, report, false, &mut paths);
        }
        reports.awaited.store(turn.item, Relaxed);
    }

    /// Reports an entry. `is_late`: with the problems that came after it was reported.
    fn report_one(
        &self,
        item: RootItem,
        report: EntryReport,
        is_late: bool,
        paths: &mut ShownPaths,
    ) {
        let (lost, failed) = self.outcomes.reports.take_problems(item, is_late);
        let observer = self.means.observer;
        if report != EntryReport::Quiet || !lost.is_empty() {
            let shown = paths.find(self, item);
            for LostMeta { op, errno } in lost {
                observer(Event::Incomplete(&Error::new(shown, op, errno)));
            }
            report.event(shown).into_iter().for_each(observer);
        }
        for error in &failed {
            observer(Event::Failed(error));
        }
    }
}

/// Paths of entries as they are shown, put together from those of their directories.
#[derive(Default)]
struct ShownPaths {
    path: Vec<u8>,
    /// The directory that the entry before is in, and the length of its path.
    dir: Option<(WalkedDir, usize)>,
}

impl ShownPaths {
    fn find(&mut self, job: &Job<'_>, item: RootItem) -> &[u8] {
        let tree = &job.plan.tree;
        let root = tree.root(item).0;
        let entry = tree
            .entry(item)
            .filter(|_| tree.kind(item) != FileKind::Dir);
        let walked = entry.map(|(listing, id)| WalkedDir {
            root,
            id: listing.dir(id),
        });
        match (entry, self.dir) {
            (Some((listing, id)), Some((known, len))) if walked == Some(known) => {
                self.path.truncate(len);
                self.path.extend_from_slice(listing.name(id).to_bytes());
            }
            _ => {
                let mut target = Vec::new();
                tree.write_target(item, &mut target);
                self.path = job.shown(&target);
                let len = self.path.len() - split(&target).1.len();
                self.dir = walked.map(|walked| (walked, len));
            }
        }
        &self.path
    }
}
