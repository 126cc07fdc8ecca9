//! Leftovers of killed runs under temporary names: files that a search found among others, and
//! names in the directories that a run visits.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::content;
use bc_edit::entry;
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_find::groups::FileRef;
use bc_fs::meta;
use bc_fs::path::sibling;
use bc_walk::{FileKind, Identity};

use crate::act::moving::aside::give_up;
use crate::act::moving::existing_target::Arrived;
use crate::act::temp;
use crate::check::compare::compare;
use crate::check::meta::not_in;
use crate::check::open_file::{self, OpenFile};
use crate::leftovers::{self, LeftFiles, RemovableStage, StageSources, UnsettledLeftover, claim};
use crate::means::{GroupState, PruneRun};
use crate::options::{OnMetadataDiff, RunMode};
use crate::skip::Skip;
use crate::step::{self, Action, Step, StepKind, StepOutcome};

impl PruneRun<'_> {
    /// A regular file that a killed run left under a temporary name: removed
    /// like a duplicate that is deleted.
    pub(crate) fn left_over(
        &mut self,
        kept_file: &mut OpenFile,
        file: &FileRef,
        state: &mut GroupState<'_>,
    ) {
        self.means.shared.unsettled().handled.insert(file.id);
        let step = self.step(StepKind::Leftover, file, kept_file);
        state.catch_up(kept_file);
        self.means.parents.let_go();
        kept_file.dir.unlock();
        let removed = self.remove_left_over(kept_file, file, state);
        kept_file.release();
        match removed {
            Ok(outcome) => self.outcomes.report(step, outcome),
            // It went when its directory was searched for leftovers.
            Err(Skip::Gone) => {}
            Err(skip) => self.outcomes.report(step, StepOutcome::Skipped(skip)),
        }
    }

    fn remove_left_over(
        &mut self,
        kept_file: &mut OpenFile,
        file: &FileRef,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        let stamp = state.stamps.get(&file.id).copied().unwrap_or(file.stamp);
        let stamp = if file.id == kept_file.stat.id {
            kept_file.stat.stamp
        } else {
            stamp
        };
        let mut held = open_file::open(file, stamp)?;
        self.places.check(&held)?;
        kept_file.check().map_err(Skip::of_kept_file)?;
        state.check_copies()?;
        let same = held.stat.id == kept_file.stat.id;
        let mut freed = 0;
        if !same {
            self.distinct(kept_file, &held)?;
            self.watch(kept_file).map_err(Skip::of_kept_file)?;
            self.watch(&mut held)?;
            self.compare(kept_file, &held)?;
            if held.stat.nlink == 1 {
                freed = self.abilities.space(&held).own;
            }
        }
        if prune_names::is_seen(file.name()) {
            return Err(Skip::InUse);
        }
        // Of an original it is not enough that its content is the kept file's.
        let copy = match prune_names::aside_for(file.name()) {
            Some(copy) if !same => Some(self.find_copy(kept_file, &held, copy)?),
            _ => None,
        };
        let _claim = claim::alone(&held.dir).ok_or(Skip::InUse)?;
        if self.options.mode == RunMode::DryRun {
            if let Some(copy) = &copy {
                self.sweep_beside(copy, kept_file, &held, &state.copies);
            }
            return Ok(StepOutcome::Would { freed });
        }
        kept_file.settle()?;
        if same {
            temp::delete_extra_link(kept_file, &held)?;
        } else {
            kept_file.wait_for_tick();
            match copy {
                None => temp::delete(kept_file, &held, &self.means.shared.temps)?,
                Some(copy) => {
                    let own = held.metadata()?;
                    let id = copy.mark();
                    let proof = || kept_file.outlives(&held).and_then(|()| copy.check());
                    let last = || copy.check();
                    give_up(&held, &own, id, &self.means.shared.temps, proof, last)?;
                    self.sweep_beside(&copy, kept_file, &held, &state.copies);
                    let (dir, name, id) = (copy.dir, copy.name, copy.stat.id);
                    state.arrived = Some((held.stat.id, Arrived { dir, name, id }));
                }
            }
        }
        // One name less moved the ctime.
        let _ = kept_file.refresh();
        if !same && held.refresh().is_ok() {
            state.stamps.insert(file.id, held.stat.stamp);
        }
        Ok(StepOutcome::done(freed))
    }

    /// Finds the copy that a killed run made of `original` before it set that aside, at the
    /// destination of the same move: with all that the original has.
    ///
    /// # Errors
    /// [`Skip::Original`] if it is not proven to be there.
    fn find_copy(
        &self,
        kept_file: &OpenFile,
        original: &OpenFile,
        copy: Mark,
    ) -> Result<OpenFile, Skip> {
        let Action::Move(given) = &self.options.action else {
            return Err(Skip::Original);
        };
        let to = step::path_below(given, &original.path);
        let mut found = self.copies_at(&to, copy.id).ok_or(Skip::Original)?;
        if !copy.proves_mounted(&found.mark()) {
            return Err(Skip::Original);
        }
        if found.stat.id == kept_file.stat.id || found.stat.id == original.stat.id {
            return Err(Skip::Original);
        }
        self.distinct(original, &found)?;
        let lost = not_in(&original.metadata()?, &found.metadata()?, None);
        if lost.is_some() && self.options.on_metadata_diff == OnMetadataDiff::Refuse {
            return Err(Skip::Original);
        }
        found.watch()?;
        let size = original.stat.stamp.size;
        let same = compare(
            &original.file,
            &found.file,
            size,
            self.pace().watching(&found),
        );
        match same.and_then(|_| found.check()) {
            Err(Skip::Cancelled) => return Err(Skip::Cancelled),
            Err(_) => return Err(Skip::Original),
            Ok(()) => {}
        }
        if self.options.mode == RunMode::Execute {
            content::sync(&found.file)?;
            content::sync_dir(&found.dir)?;
        }
        Ok(found)
    }

    /// Removes leftovers beside the copy that a killed move made of `original`, or reports that it
    /// would.
    fn sweep_beside(
        &mut self,
        copy: &OpenFile,
        kept_file: &OpenFile,
        original: &OpenFile,
        copies: &[OpenFile],
    ) {
        if let Ok(stat) = meta::stat(&copy.dir) {
            let sources = StageSources {
                kept_file,
                copies,
                dir: &original.dir,
            };
            self.sweep(&copy.dir, &stat.id, &copy.path, sources);
        }
    }

    /// Removes dead runs' unfinished copies from a directory, and finds other leftovers, which are
    /// [settled](PruneRun::settle_leftovers) at the end of the run. Returns true if it removed any.
    pub(crate) fn sweep(
        &mut self,
        dir: &OwnedFd,
        id: &Identity,
        beside: &[u8],
        sources: StageSources<'_>,
    ) -> bool {
        let before = self.outcomes.summary.leftovers;
        if self.means.swept.insert(*id) {
            let shared = self.means.shared.clone();
            shared.sweep(*id, || self.search(dir, *id, beside, sources));
            if shared.unsettled().has_links(*id) {
                self.means.with_links.insert(*id);
            }
        }
        if self.means.with_links.contains(id) {
            let kept = sources.kept_file.stat.id;
            self.means.shared.unsettled().kept.insert(kept);
        }
        self.outcomes.summary.leftovers > before
    }

    fn search(&mut self, dir: &OwnedFd, id: Identity, beside: &[u8], sources: StageSources<'_>) {
        if self.places.protect(dir) {
            return;
        }
        // The names that prove it go now.
        let left = LeftFiles::of(dir);
        self.copies.traces.extend(left.traces(dir));
        let remove = self.options.mode == RunMode::Execute;
        let mut swept: Vec<(CString, Result<(), Skip>)> = Vec::new();
        for (name, removed) in leftovers::clear_probes(dir, remove) {
            swept.push((name, removed.map_err(Skip::from)));
        }
        let mut unclaimed = Vec::new();
        if !left.stages.is_empty() {
            match claim::alone(dir) {
                // Listed again: now no run can make one.
                Some(_claim) => {
                    for name in LeftFiles::of(dir).stages {
                        let stat = meta::stat_at(dir, &name);
                        if stat.is_ok_and(|stat| !self.stays(dir, &name, stat.id)) {
                            let path = sibling(beside, name.as_bytes());
                            let removed = self.remove_stage(dir, &name, &path, sources);
                            swept.push((name, removed));
                        }
                    }
                }
                None => unclaimed = left.stages,
            }
        }
        for (name, removed) in swept {
            self.report_leftover(sibling(beside, name.as_bytes()), removed);
        }
        // Marked originals are reported wherever a search finds them.
        let is_plain = |name: &CString| prune_names::aside_for(name.as_bytes()).is_none();
        let files = left.set_aside.into_iter().filter(is_plain);
        for name in files.chain(left.others).chain(unclaimed) {
            if let Ok(stat) = meta::stat_at(dir, &name)
                && !self.stays(dir, &name, stat.id)
            {
                let leads_to = match stat.kind() {
                    FileKind::Symlink => meta::stat_through(dir, &name).ok().map(|to| to.id),
                    _ => None,
                };
                let leftover = UnsettledLeftover {
                    dir: id,
                    path: sibling(beside, name.as_bytes()),
                    name,
                    stat,
                    leads_to,
                };
                self.means.shared.unsettled().found.push(leftover);
            }
        }
    }

    /// Removes links of dead runs that lead to a kept file of this run, and reports what stays. To
    /// be called when all groups are done: the group of a link, or of a file that was set aside, may
    /// be the last.
    pub(crate) fn settle_leftovers(&mut self) {
        let unsettled = std::mem::take(&mut *self.means.shared.unsettled());
        if self.means.cancel.is_cancelled() {
            return;
        }
        self.means.parents.let_go();
        for leftover in unsettled.found {
            let Some(dir) = leftover.open_dir() else {
                continue;
            };
            let claim = claim::alone(&dir);
            let Ok(now) = meta::stat_at(&dir, &leftover.name) else {
                continue;
            };
            if now.id != leftover.stat.id || unsettled.handled.contains(&now.id) {
                continue;
            }
            let is_ours = leftover
                .leads_to
                .is_some_and(|to| unsettled.kept.contains(&to));
            let settled = match is_ours && now.stamp == leftover.stat.stamp {
                // Where a run is at work it may be that run's.
                _ if claim.is_none() => Err(Skip::InUse),
                true => match self.options.mode {
                    RunMode::Execute => entry::unlink(&dir, &leftover.name).map_err(Skip::from),
                    RunMode::DryRun => Ok(()),
                },
                false => Err(leftover.why_left()),
            };
            self.report_leftover(leftover.path, settled);
        }
    }

    fn report_leftover(&mut self, target: Vec<u8>, removed: Result<(), Skip>) {
        let step = Step {
            kind: StepKind::Leftover,
            target,
            kept_file: Vec::new(),
            reference: false,
            size: 0,
        };
        let outcome = match (removed, self.options.mode) {
            (Ok(()), RunMode::Execute) => StepOutcome::done(0),
            (Ok(()), RunMode::DryRun) => StepOutcome::Would { freed: 0 },
            (Err(skip), _) => StepOutcome::Skipped(skip),
        };
        self.outcomes.report(step, outcome);
    }

    /// Returns true if a leftover of this name and identity may be a reference's, or is one's.
    fn stays(&mut self, dir: &OwnedFd, name: &CStr, id: Identity) -> bool {
        self.options.references.has_file(id) || self.places.is_elsewhere(dir, name)
    }

    /// Removes a copy that a killed run was making, if what it holds is elsewhere; in a dry run only
    /// proves that.
    fn remove_stage(
        &self,
        dir: &OwnedFd,
        name: &CString,
        path: &[u8],
        sources: StageSources<'_>,
    ) -> Result<(), Skip> {
        let original = sources.original_of(name);
        let files: Vec<&OpenFile> = [sources.kept_file].into_iter().chain(&original).collect();
        let stage = RemovableStage::prove(dir, name, path, &files, self.pace())?;
        let stage = stage.ok_or(Skip::UnknownStage)?;
        match self.options.mode {
            RunMode::DryRun => Ok(()),
            RunMode::Execute => {
                let held: Vec<&OpenFile> = [sources.kept_file]
                    .into_iter()
                    .chain(sources.copies)
                    .collect();
                stage.remove(&held, &self.means.shared.temps)
            }
        }
    }
}
