//! A run on several threads. Groups that have no file in common are processed at the same time,
//! each by one thread, in the same steps as a run on one thread: two threads are to each other what
//! two runs are, and every proof that holds against another run holds between them. The steps are
//! reported on the caller's thread, in the order of the groups.
//!
//! Some work stays with one thread. Moves and references ask questions of places that the whole run
//! has in common. Leftovers of killed runs come at the end: a thread that removes them must be
//! alone in its directory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use bc_edit::names::prune as prune_names;
use bc_find::groups::FileGroup;
use bc_pool::{Cancel, Growth, Waiting, WorkerHandle, Workers, affordable_workers};
use bc_walk::Identity;

use crate::journal::Journal;
use crate::means::{PruneRun, Shared};
use crate::options::PruneOptions;
use crate::step::{Action, PruneEvent, PruneSummary};

/// Groups that one thread takes at a time, once it knows that they do not take long. To hand over and report so many pairs of small files
/// takes a hundredth of the time that it takes to link them (20 µs each).
const GROUPS: usize = 64;

/// Groups that a thread takes first, and where they take long.
const FEW_GROUPS: usize = 2;

/// Bytes of files after which a thread takes no more groups and reports.
const BYTES: u64 = 16 << 20;

/// Groups that may be processed before the first of them is reported: more would fill the memory
/// while one thread compares two very large files.
const AHEAD: usize = 256 * GROUPS;

/// Descriptors that a thread has as a rule: the directories that it came to last with the locks on
/// them, and the two files with theirs. Where there are none left it lets go of the directories.
const DESCRIPTORS: u64 = 16;

/// State that the threads of a run share.
struct RunThreads<'a> {
    options: &'a PruneOptions,
    journal: Option<&'a Journal>,
    cancel: &'a Cancel,
    shared: &'a Shared,
    workers: Workers,
    batches: Mutex<WaitingBatches>,
    /// Number of groups in those.
    left: AtomicUsize,
    /// True if a thread panicked: nothing more is done.
    is_lost: AtomicBool,
}

/// Groups in their order, and the number of the first.
struct Batch {
    number: usize,
    groups: Vec<FileGroup>,
}

/// Batches that no thread has taken.
struct WaitingBatches {
    /// Rest of one that was not taken whole.
    rest: Option<Batch>,
    received: Receiver<Batch>,
}

/// Events of the groups of a batch.
struct BatchReport {
    number: usize,
    groups: usize,
    events: Vec<PruneEvent>,
}

/// A batch that is done; `None` from a thread that panicked.
type Report = Option<BatchReport>;

/// Returns true if groups may be processed at the same time.
pub(super) fn may_share(options: &PruneOptions) -> bool {
    let is_moved = matches!(options.action, Action::Move(_) | Action::Trash(_));
    !is_moved && options.references.is_empty()
}

/// Deals with `groups` as [`super::prune`] says: on as many threads as `options` allow and there are batches for, and with
/// `run` at the end, for which some have to wait.
///
/// # Panics
/// If a thread did.
pub(super) fn prune(
    groups: impl Iterator<Item = FileGroup>,
    run: &mut PruneRun<'_>,
    report: &mut dyn FnMut(PruneEvent),
) {
    let mut batches = GroupBatches::new(groups, run.means.cancel);
    let first: Vec<Batch> = batches.by_ref().take(2).collect();
    let options = run.options;
    // Of each file that stays beside a kept one two are held: the file's and its directory's.
    let held = 2 * options.rules.further() as u64;
    let affordable = affordable_workers(DESCRIPTORS.saturating_add(held)).max(1);
    let workers = Workers::up_to(options.workers, options.waiting).within(affordable, affordable);
    let is_shared = first.len() > 1 && workers.most() > 1;
    let mut all = first.into_iter().chain(batches.by_ref());
    if is_shared {
        let (sender, receiver) = channel();
        let common = RunThreads {
            options: run.options,
            journal: run.journal,
            cancel: run.means.cancel,
            shared: &run.means.shared,
            workers,
            batches: Mutex::new(WaitingBatches {
                rest: None,
                received: receiver,
            }),
            left: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
        };
        if let Some(done) = common.work(&mut all, sender, report) {
            run.outcomes.summary.add(&done);
        }
    }
    // All of them, on one thread or where the system refuses another.
    for group in all.flat_map(|batch| batch.groups) {
        run.files(group);
    }
    for group in batches.late {
        run.files(group);
    }
}

impl RunThreads<'_> {
    /// Processes all batches, reports their events, and returns the totals. `None`, with nothing
    /// done, where the system refuses a thread.
    fn work(
        &self,
        batches: &mut impl Iterator<Item = Batch>,
        sender: Sender<Batch>,
        report: &mut dyn FnMut(PruneEvent),
    ) -> Option<PruneSummary> {
        let (reporter, reports) = channel();
        let totals = thread::scope(|scope| {
            let threads = thread::Builder::new()
                .name("bc-prune".to_owned())
                .spawn_scoped(scope, move || {
                    let left = || self.left.load(Ordering::Relaxed);
                    let growth = Growth::new(self.workers).left(&left, FEW_GROUPS);
                    growth.run(|handle| self.worker(handle, &reporter))
                })
                .ok()?;
            let _alarm = Alarm(|| self.is_lost.store(true, Ordering::Relaxed));
            self.hand_out(batches, sender, &reports, report);
            Some(threads.join())
        })?;
        let totals = match totals {
            Ok(Ok(totals)) => totals,
            Ok(Err(panic)) => std::panic::resume_unwind(Box::new(panic.message)),
            Err(payload) => std::panic::resume_unwind(payload),
        };
        let mut sum = PruneSummary::default();
        totals.iter().for_each(|one| sum.add(one));
        Some(sum)
    }

    fn worker(&self, mut handle: WorkerHandle<'_>, reporter: &Sender<Report>) -> PruneSummary {
        let _alarm = Alarm(|| {
            self.is_lost.store(true, Ordering::Relaxed);
            let _ = reporter.send(None);
        });
        let events = RefCell::new(Vec::new());
        let mut keep = |event: PruneEvent| events.borrow_mut().push(event);
        let shared = self.shared.clone();
        let mut run = PruneRun::new(self.options, self.journal, self.cancel, shared, &mut keep);
        run.outcomes.tells_later = true;
        let mut most = FEW_GROUPS;
        while let Some(batch) = self.next(most) {
            handle.waiting(Waiting::Begins);
            let Batch { number, groups } = batch;
            let count = groups.len();
            for group in groups {
                if self.cancel.is_cancelled() || self.is_lost.load(Ordering::Relaxed) {
                    break;
                }
                run.files(group);
            }
            // It may have to wait for the next.
            run.means.parents.let_go();
            // Fails only if the receiver panicked: then no thread listens.
            let _ = reporter.send(Some(BatchReport {
                number,
                groups: count,
                events: events.take(),
            }));
            handle.count(count as u64);
            handle.waiting(Waiting::GoesOn);
            if handle.ends() {
                break;
            }
            most = match handle.is_slow() {
                true => FEW_GROUPS,
                false => GROUPS,
            };
        }
        run.outcomes.summary
    }

    /// Returns the next batch, of at most so many groups.
    fn next(&self, most: usize) -> Option<Batch> {
        let batches = self.batches.lock();
        let mut batches = batches.unwrap_or_else(PoisonError::into_inner);
        let mut batch = match batches.rest.take() {
            Some(rest) => rest,
            None => batches.received.recv().ok()?,
        };
        if batch.groups.len() > most {
            batches.rest = Some(Batch {
                number: batch.number + most,
                groups: batch.groups.split_off(most),
            });
        }
        self.left.fetch_sub(batch.groups.len(), Ordering::Relaxed);
        Some(batch)
    }

    /// Hands out batches, and reports their events in order, until no worker is left.
    fn hand_out(
        &self,
        batches: &mut impl Iterator<Item = Batch>,
        sender: Sender<Batch>,
        reports: &Receiver<Report>,
        report: &mut dyn FnMut(PruneEvent),
    ) {
        let mut sender = Some(sender);
        let (mut sent, mut reported) = (0, 0);
        let mut early = BTreeMap::new();
        loop {
            while let Some(out) = &sender
                && sent < reported + AHEAD
            {
                let batch = batches.next();
                let groups = batch.as_ref().map_or(0, |batch| batch.groups.len());
                // Before it can be taken.
                self.left.fetch_add(groups, Ordering::Relaxed);
                match batch.map(|batch| out.send(batch)) {
                    Some(Ok(())) => sent += groups,
                    // Without a sender the threads end after their current batches.
                    Some(Err(_)) | None => sender = None,
                }
            }
            match reports.recv() {
                Ok(Some(done)) => early.insert(done.number, done),
                Ok(None) => {
                    sender = None;
                    continue;
                }
                Err(_) => break,
            };
            while let Some(done) = early.remove(&reported) {
                done.events.into_iter().for_each(&mut *report);
                reported += done.groups;
            }
        }
        // Batches after a lost one were done all the same.
        for done in early.into_values() {
            done.events.into_iter().for_each(&mut *report);
        }
    }
}

/// Raises the alarm if its thread panics: others would wait for it, or continue.
struct Alarm<F: FnMut()>(F);

impl<F: FnMut()> Drop for Alarm<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}

/// Groups in batches, of which no two have a file in common.
struct GroupBatches<'a, I> {
    groups: I,
    cancel: &'a Cancel,
    number: usize,
    seen: HashSet<Identity>,
    /// Groups that have to wait until all others are done.
    late: Vec<FileGroup>,
}

impl<'a, I: Iterator<Item = FileGroup>> GroupBatches<'a, I> {
    fn new(groups: I, cancel: &'a Cancel) -> GroupBatches<'a, I> {
        GroupBatches {
            groups,
            cancel,
            number: 0,
            seen: HashSet::new(),
            late: Vec::new(),
        }
    }

    /// Returns true if the group has to wait: it has a file of one before it, as groups of a report
    /// may, or a name that a killed run left.
    fn is_late(&mut self, group: &FileGroup) -> bool {
        let known = group.files.iter().any(|file| self.seen.contains(&file.id));
        self.seen.extend(group.files.iter().map(|file| file.id));
        known
            || group
                .files
                .iter()
                .any(|file| prune_names::is_ours(file.name()))
    }
}

impl<I: Iterator<Item = FileGroup>> Iterator for GroupBatches<'_, I> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let (mut groups, mut bytes) = (Vec::new(), 0_u64);
        while groups.len() < GROUPS && bytes < BYTES && !self.cancel.is_cancelled() {
            let Some(group) = self.groups.next() else {
                break;
            };
            if self.is_late(&group) {
                self.late.push(group);
                continue;
            }
            let sizes = group.files.iter().map(|file| file.stamp.size);
            bytes = sizes.fold(bytes, u64::saturating_add);
            groups.push(group);
        }
        if groups.is_empty() {
            return None;
        }
        let number = self.number;
        self.number += groups.len();
        Some(Batch { number, groups })
    }
}
