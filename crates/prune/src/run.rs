//! The run: groups in, steps out.

use std::cell::RefCell;
use std::rc::Rc;

use bc_find::groups::{FileGroup, FileRef};
use bc_fs::shortage::is_shortage;
use bc_pool::Cancel;
use rustix::io::Errno;

use crate::act::hardlink;
use crate::act::reflink;
use crate::act::symlink;
use crate::act::temp;
use crate::act::trash::place::ReservedName;
use crate::check::abilities;
use crate::check::compare::check_distinct;
use crate::check::dir::CheckedAt;
use crate::check::freed::Ledger;
use crate::check::open_file::{self, OpenFile};
use crate::check::precheck::{Ready, Refusal};
use crate::journal::{About, Journal};
use crate::leftovers::claim;
use crate::means::{GroupState, PruneRun, Shared};
use crate::options::{PruneOptions, RunMode};
use crate::outcomes::Events;
use crate::plan::{self, Acted, CopyProof, GroupPlan, TargetName};
use crate::skip::Skip;
use crate::step::{self, Action, PruneEvent, PruneSummary, StepKind, StepOutcome};
use crate::workers;

/// Acts on each group, on several threads where the options allow and it is safe. Steps are written
/// to `journal` before they are done; a front end should always give one when it executes.
///
/// The observer is called by the thread of the caller, in the order of the groups; groups that have a
/// file of one before them, or a name that a killed run left, come last.
///
/// Returns early, between two steps, when cancelled.
///
/// # Panics
/// If one of its threads, or the observer, does.
pub fn prune(
    groups: impl IntoIterator<Item = FileGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(PruneEvent),
) -> PruneSummary {
    let events = RefCell::new(Events::new(observer));
    let mut report = |event: PruneEvent| events.borrow_mut().report(event);
    let (journal, shared) = (journal.map(|journal| &*journal), Shared::default());
    let mut run = PruneRun::new(options, journal, cancel, shared, &mut report);
    if workers::may_share(options) {
        let mut report = |event: PruneEvent| events.borrow_mut().report(event);
        workers::prune(groups.into_iter(), &mut run, &mut report);
    } else {
        groups.into_iter().for_each(|group| run.files(group));
    }
    run.finish()
}

impl PruneRun<'_> {
    /// Acts on a group, unless the run was cancelled.
    pub(super) fn files(&mut self, mut group: FileGroup) {
        if self.means.cancel.is_cancelled() {
            return;
        }
        self.outcomes.summary.groups += 1;
        for _ in 0..self.places.sort_out(&mut group) {
            self.outcomes.summary.skip(&Skip::InDestination);
        }
        group.files.retain(|file| {
            let in_trash = self.places.is_in_trash(&file.path);
            let fleeting = in_trash.then_some(Skip::InTrash);
            let fleeting = fleeting.or_else(|| plan::fleeting(file));
            if let Some(skip) = &fleeting {
                self.outcomes.summary.skip(skip);
            }
            fleeting.is_none()
        });
        let rules = &self.options.rules;
        let is_spared = |file: &&FileRef| file.protected && !rules.may_stay(file);
        for _ in group.files.iter().filter(is_spared) {
            self.outcomes.summary.skip(&Skip::OfReference);
        }
        if group.files.len() > 1 {
            self.group(&group);
        }
    }

    /// Settles leftovers and ends the journal and the account.
    pub(super) fn finish(mut self) -> PruneSummary {
        self.settle_leftovers();
        if let Some(journal) = &mut self.journal
            && let Err(skip) = journal.complete()
        {
            self.outcomes.unrecorded(skip);
        }
        self.outcomes.finish()
    }

    fn group(&mut self, group: &FileGroup) {
        let mut plan = GroupPlan::new(group, &self.options.rules);
        let Some(mut kept_file) = plan.choose(|file| self.open_kept(file)) else {
            return;
        };
        let mut state = GroupState {
            ledger: Ledger::new(plan.files()),
            is_fresh: true,
            ..GroupState::default()
        };
        let copies = &mut state.copies;
        for file in plan.reserve(|file| self.prove_copy(&mut kept_file, file, copies)) {
            let step = self.step(self.kind_of(file), file, &kept_file);
            let outcome = StepOutcome::Skipped(Skip::AlreadyShared);
            self.outcomes.report(step, outcome);
        }
        if !state.copies.is_empty() {
            kept_file.release();
        }
        while !self.means.cancel.is_cancelled()
            && let Some(target) = plan.next()
        {
            let changed = self.outcomes.summary.changed;
            (state.other, state.pending) = (target.other, target.pending);
            let promoted = match target.is_leftover {
                true => {
                    self.left_over(&mut kept_file, target.file, &mut state);
                    None
                }
                false => self.target(&mut kept_file, &target, &mut state),
            };
            let acted = match promoted {
                Some(_) => Acted::TakesOver,
                None if self.outcomes.summary.changed == changed => Acted::Stays,
                None => Acted::Changed,
            };
            if plan.acted(&target, acted)
                && let Some(held) = promoted
            {
                kept_file = held;
            }
        }
    }

    /// Opens a file that is to stay, if it can be relied on.
    fn open_kept(&mut self, file: &FileRef) -> Option<OpenFile> {
        if self.means.cancel.is_cancelled() {
            return None;
        }
        let opened = self.with_descriptors(2, |run| {
            let (dir, _, name) = run.means.parents.of(file)?;
            open_file::open_in(&dir, &name, file, file.stamp)
        });
        opened
            .map_err(|skip| self.outcomes.unusable(&file.path, skip))
            .ok()
    }

    /// Proves that a file is one more copy, with the same bytes as the kept file and apart from it and
    /// the other copies. It stays locked among these: other runs take none of its names as long.
    fn prove_copy(
        &mut self,
        kept_file: &mut OpenFile,
        file: &FileRef,
        copies: &mut Vec<OpenFile>,
    ) -> CopyProof {
        if self.means.cancel.is_cancelled() {
            return CopyProof::Unproven;
        }
        // By a descriptor of the directory that no step claims it by.
        let opened = self.with_descriptors(2, |_| open_file::open(file, file.stamp));
        let proven = opened.and_then(|mut held| {
            let others = || std::iter::once(&*kept_file).chain(&*copies);
            others().try_for_each(|other| check_distinct(other, &held))?;
            if others().any(|other| reflink::share_all(other, &held)) {
                return Ok(None);
            }
            self.prove_content(kept_file, &mut held, &StepKind::Delete)?;
            Ok(Some(held))
        });
        match proven {
            Ok(Some(mut held)) => {
                held.release();
                copies.push(held);
                CopyProof::Copy
            }
            Ok(None) => CopyProof::Shared,
            Err(skip) => {
                self.outcomes.unusable(&file.path, skip);
                CopyProof::Unproven
            }
        }
    }

    /// Returns the change that the run's action is to this name.
    fn kind_of(&self, file: &FileRef) -> StepKind {
        match &self.options.action {
            Action::Hardlink => StepKind::Hardlink,
            Action::Reflink => StepKind::Reflink,
            Action::Symlink => StepKind::Symlink(Vec::new()),
            Action::Delete => StepKind::Delete,
            Action::Move(dir) => StepKind::Move(step::path_below(dir, &file.path)),
            Action::Trash(_) => StepKind::Trash(Vec::new()),
        }
    }

    /// Processes one target; returns it where it has to be the kept file from here on.
    fn target(
        &mut self,
        kept_file: &mut OpenFile,
        target: &TargetName<'_>,
        state: &mut GroupState<'_>,
    ) -> Option<OpenFile> {
        let file = target.file;
        let mut step = self.step(self.kind_of(file), file, kept_file);
        state.catch_up(kept_file);
        let mut proven = self.precheck(kept_file, file, state, &mut step.kind);
        if let Err(Refusal::Skip(skip)) = &proven
            && is_shortage(skip)
        {
            // The file has its descriptor: not waited for, what has been compared is compared again.
            self.means.parents.let_go();
            proven = self.precheck(kept_file, file, state, &mut step.kind);
        }
        let mut promoted = None;
        let outcome = match proven {
            Err(Refusal::Skip(skip)) => StepOutcome::Skipped(skip),
            Err(Refusal::Keep(held, why)) => {
                promoted = Some(*held);
                StepOutcome::Skipped(why)
            }
            Ok(mut ready) => match self.perform(kept_file, &mut ready, &mut step.kind, state) {
                Ok(outcome) => outcome,
                // EMLINK: nothing was changed, the target serves as the next kept file.
                Err(Skip::System { errno, .. })
                    if errno == Errno::MLINK.raw_os_error() && step.kind == StepKind::Hardlink =>
                {
                    promoted = ready.held.check().ok().map(|()| ready.held);
                    StepOutcome::Skipped(Skip::NewKeeper)
                }
                Err(skip) => {
                    let learnt = self
                        .abilities
                        .learn(kept_file, &ready.held, &step.kind, skip);
                    StepOutcome::Skipped(learnt)
                }
            },
        };
        if let Some(promoted) = &mut promoted {
            state.catch_up(kept_file);
            promoted.release();
        }
        // Where events are reported only after the file is closed, that ends it soon enough.
        if !target.is_last || !self.outcomes.tells_later {
            kept_file.release();
        }
        self.outcomes.report(step, outcome);
        promoted
    }

    /// Does it, or says that it would be done.
    pub(super) fn perform(
        &mut self,
        kept_file: &mut OpenFile,
        ready: &mut Ready,
        kind: &mut StepKind,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        if ready.held.stat.nlink > 1 {
            let found = (ready.id.dev, ready.held.stat.stamp);
            *state.linked.entry(found).or_default() += 1;
        }
        match self.options.mode {
            RunMode::DryRun => self.foresee(kept_file, ready, kind, state),
            RunMode::Execute => self.execute(kept_file, ready, kind, state),
        }
    }

    /// Records the effects that the step would have had.
    fn foresee(
        &mut self,
        kept_file: &mut OpenFile,
        ready: &Ready,
        kind: &StepKind,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        self.places.check(&ready.held)?;
        self.places.check_destination()?;
        if !matches!(kind, StepKind::Reflink) {
            state.links.insert(ready.id, ready.links_left);
        }
        if *kind == StepKind::Hardlink {
            kept_file.links += 1;
        }
        if let StepKind::Move(to) = kind {
            self.copies.taken.insert(to.clone());
        }
        let freed = self.book(ready, kind, state);
        Ok(StepOutcome::Would { freed })
    }

    fn execute(
        &mut self,
        kept_file: &mut OpenFile,
        ready: &mut Ready,
        kind: &mut StepKind,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        kept_file.settle()?;
        // Again: a large file took long to compare.
        state.check_copies()?;
        self.places.check(&ready.held)?;
        self.places.check_destination()?;
        let _claim = self.claim(kind, kept_file, &ready.held)?;
        let place = self.open_destination(kind, &ready.held)?;
        let reserved = match kind {
            StepKind::Trash(to) => {
                let reserved = self.reserve_in_trash(&ready.held)?;
                to.clone_from(&reserved.path);
                Some(reserved)
            }
            _ => None,
        };
        let kind = &*kind;
        if *kind == StepKind::Hardlink && ready.taken.copies_up(&state.ledger) {
            // First, so that the journal knows it by the number that it has from here on.
            hardlink::copy_up(kept_file, &ready.held, &self.means.shared.temps)?;
            state
                .ledger
                .book_copy(&ready.taken, &mut self.outcomes.summary);
            state.ledger.copied_up(kept_file.stat.id);
        }
        let destination = match kind {
            StepKind::Move(to) | StepKind::Trash(to) => Some(to.as_slice()),
            _ => None,
        };
        let action = self.options.action.name();
        let target = &ready.held;
        let other = state.other.filter(|_| target.links > 1);
        let other = other.and_then(|other| {
            let found = self.with_descriptors(1, |run| run.means.parents.of(other));
            Some((found.ok()?, other))
        });
        let begin = |journal: &Journal| {
            // Much may have been waited for since.
            let is_new = ready.proven.is_fresh(CheckedAt::now());
            let about = About {
                known: ready.metadata.as_ref().filter(|_| is_new),
                digest: &ready.digest,
                destination,
                other: other
                    .as_ref()
                    .map(|((dir, _, name), other)| (dir, name.as_c_str(), other.path.as_slice())),
            };
            journal.begin(action, target, kept_file, about)
        };
        let number = match self.journal.map(begin).transpose() {
            Ok(number) => number,
            Err(why) => {
                reserved.iter().for_each(ReservedName::withdraw);
                return Err(why);
            }
        };
        if !matches!(kind, StepKind::Hardlink | StepKind::Reflink) {
            kept_file.wait_for_tick();
        }
        let mut lost = Vec::new();
        let acted = match kind {
            StepKind::Hardlink => hardlink::act(kept_file, target, &self.means.shared.temps),
            StepKind::Symlink(text) => {
                symlink::act(kept_file, target, text, &self.means.shared.temps)
            }
            StepKind::Reflink => reflink::act(kept_file, target, self.means.cancel),
            StepKind::Move(to) => self
                .relocate(place, kept_file, target, to, number, state)
                .map(|found| lost = found),
            StepKind::Trash(_) => match &reserved {
                Some(reserved) => reserved.take(target, || kept_file.outlives(target)),
                None => Err(Skip::Changed),
            },
            StepKind::Delete | StepKind::Leftover => {
                temp::delete(kept_file, target, &self.means.shared.temps)
            }
        };
        reserved.iter().for_each(|reserved| reserved.end(&acted));
        self.end(number, &acted, target);
        state.update(kept_file, ready, kind, acted.is_ok());
        if acted.is_ok() && reserved.is_none() {
            self.copies.taken.extend(destination.map(<[u8]>::to_vec));
        }
        acted?;
        let freed = self.book(ready, kind, state);
        Ok(StepOutcome::Done { freed, lost })
    }

    /// Records how a step went.
    pub(super) fn end(&mut self, number: Option<u64>, acted: &Result<(), Skip>, target: &OpenFile) {
        if let Err(Skip::Left { errno, .. }) = acted
            && let Errno::PERM | Errno::ACCESS = Errno::from_raw_os_error(*errno)
        {
            self.means.shared.blocked.block(&target.dir);
        }
        if let (Some(number), Some(journal)) = (number, &mut self.journal)
            && let Err(skip) = journal.end(number, acted)
        {
            // The step's own line is there, so undo looks at the file itself.
            self.outcomes.unrecorded(skip);
        }
    }

    fn book(&mut self, ready: &Ready, kind: &StepKind, state: &mut GroupState<'_>) -> u64 {
        let (id, links_left) = (ready.id, ready.links_left);
        let (mode, summary) = (self.options.mode, &mut self.outcomes.summary);
        let ledger = &mut state.ledger;
        ledger.book(id, links_left, &ready.taken, kind, mode, summary)
    }

    /// Claims the target's directory for a temporary name; a move does so for
    /// both directories once it knows that it has to copy.
    fn claim(
        &mut self,
        kind: &StepKind,
        kept_file: &OpenFile,
        target: &OpenFile,
    ) -> Result<Option<Rc<claim::Claim>>, Skip> {
        let has_no_temporary = matches!(
            kind,
            StepKind::Reflink | StepKind::Move(_) | StepKind::Trash(_)
        );
        if has_no_temporary {
            return Ok(None);
        }
        let claim = self.with_descriptors(1, |run| {
            target
                .dir
                .claim(&run.means.shared.blocked, run.means.cancel)
        })?;
        if matches!(kind, StepKind::Hardlink) {
            // Its temporary name is one of the kept file.
            let caller = &self.abilities.caller;
            claim.check_removable(caller, abilities::owner(kept_file))?;
            claim.check_removable(caller, abilities::owner(target))?;
        }
        Ok(Some(claim))
    }
}

impl GroupState<'_> {
    /// Takes the state that a step left the kept file in, before the next.
    pub(super) fn catch_up(&mut self, kept_file: &mut OpenFile) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        // Our changes of names moved the ctime; anything more shows up as a change.
        if kept_file.refresh().is_ok() {
            self.stamps.insert(kept_file.stat.id, kept_file.stat.stamp);
        }
    }

    /// Takes the states that a step left both files in.
    fn update(&mut self, kept_file: &mut OpenFile, ready: &mut Ready, kind: &StepKind, done: bool) {
        self.is_stale = true;
        if matches!(
            kind,
            StepKind::Reflink | StepKind::Move(_) | StepKind::Trash(_)
        ) {
            self.catch_up(kept_file);
        }
        let (id, held) = (ready.id, &mut ready.held);
        // A file that has no other name is not asked for again.
        let is_gone =
            done && *kind == StepKind::Hardlink && held.stat.nlink == 1 && self.pending <= 1;
        if !is_gone && held.refresh().is_ok() {
            self.stamps.insert(id, held.stat.stamp);
            // Copied up, it has left its other names below; a server that keeps a removed name until
            // its file is closed counts that one too.
            let links = match held.stat.id == id {
                true if done => held.stat.nlink.min(ready.links_left),
                true => held.stat.nlink,
                false => ready.links_left,
            };
            self.links.insert(id, links);
        } else if done && !matches!(kind, StepKind::Reflink) {
            self.links.insert(id, ready.links_left);
        }
    }
}
