//! Duplicates found and given up, as a job.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_find::groups::FileGroup;
use bc_find::report::ScanReport;
use bc_find::scan::ScanProgress;
use bc_find::{Search, Searched, Subtrees};
use bc_fs::PathError;
use bc_fs::place::Way;
use bc_walk::job::{
    Error, ErrorKind, Guarded, Means, Progress, missing, path_of, require, unless_cancelled,
};

use crate::journal::Journal;
use crate::options::{PruneOptions, RunMode};
use crate::plan::Keep;
use crate::references::{lacks_parent, lies_above, lies_below};
use crate::run::prune;
use crate::skip::Skip;
use crate::step::{Action, PruneEvent, Step, StepOutcome};

impl PruneOptions {
    /// Finds files with equal content, keeps one of each group, and does this with the others. The
    /// search's references take part and are never changed; their files are the ones to keep.
    ///
    /// No content is ever lost: before a file is given up, it is compared byte for byte with the one
    /// that stays, and both are held while that is done. The [journal](PruneOptions::journal) has
    /// all that [`undo`](fn@crate::undo) needs to make separate files of them again; without one
    /// nothing is done but in a dry run. The file is made, or is a journal already, to which the
    /// steps are added.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # for name in ["a.jpg", "b.jpg"] { std::fs::write(photos.join(name), "same")?; }
    /// # let journal = dir.path().join("pruned.jsonl");
    /// use bc_find::Search;
    /// use bc_prune::{Action, PruneOptions, RunMode, UndoJob};
    /// use bc_walk::job::Means;
    ///
    /// let (search, means) = (Search::new([&photos]), Means::new());
    /// let link = PruneOptions::new(Action::Hardlink); // a dry run, unless it is to be executed
    /// for planned in &link.run(&search, &means)?.steps {
    ///     println!("{}", planned.step);
    /// }
    /// let link = link.mode(RunMode::Execute).journal(Some(journal.clone()));
    /// assert_eq!(link.run(&search, &means)?.complete()?.changed, 1);
    /// assert_eq!(UndoJob::new(&journal).run(&means)?.complete()?.restored, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is neither a journal nor a dry run, or a path is not there; if a reference or the
    /// journal cannot be opened; if files would be moved into a reference, or to a directory that is
    /// not there and is in none that is; if another user's symbolic link is on the way to a path; if
    /// it was cancelled, which leaves what is done as it is; if a worker panicked. Failures of single files are in the result.
    pub fn run(&self, search: &Search, means: &Means<'_>) -> Result<Pruned, Error> {
        let mut steps = Vec::new();
        let mut pruned = self.pruned(search, means, &mut |step| steps.push(step))?;
        pruned.steps = steps;
        let cancelled = pruned.cancelled;
        unless_cancelled(pruned, cancelled)
    }

    /// Does the same as [`run`](PruneOptions::run), and calls `each` with one step after the other, as
    /// they are done; the list in the result is empty. It is called by the caller's own thread. After
    /// a panic in it, it is not called again; the job is done to its end, and then the panic goes on
    /// out of this function.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        search: &Search,
        means: &Means<'_>,
        each: impl FnMut(PruneStep),
    ) -> Result<Pruned, Error> {
        let mut each = Guarded::new(each);
        let pruned = self.pruned(search, means, &mut |step| each.call(step));
        each.end();
        let pruned = pruned?;
        let cancelled = pruned.cancelled;
        unless_cancelled(pruned, cancelled)
    }

    /// Finds and prunes; a result of what was cancelled says so.
    fn pruned(
        &self,
        search: &Search,
        means: &Means<'_>,
        each: &mut dyn FnMut(PruneStep),
    ) -> Result<Pruned, Error> {
        let (progress, steps) = (ScanProgress::default(), StepCounts::default());
        means.run(
            || steps.after(progress.now()),
            || self.search_and_prune(search, means, &progress, &steps, each),
        )
    }

    fn search_and_prune(
        &self,
        search: &Search,
        means: &Means<'_>,
        progress: &ScanProgress,
        steps: &StepCounts,
        each: &mut dyn FnMut(PruneStep),
    ) -> Result<Pruned, Error> {
        if self.journal.is_none() && self.mode == RunMode::Execute {
            return Err(Error::usage(
                "nothing is given up without a journal to undo it by: name one, or ask for a dry run",
            ));
        }
        require(search.paths.iter().chain(&search.references))?;
        for path in &search.paths {
            if Way::of(path).is_ok_and(|way| way.foreign().is_some()) {
                let why =
                    "another user's symbolic link is on the way, who would choose what is changed";
                return Err(Error::at(ErrorKind::Refused, path, why));
            }
        }
        let found = search.search(None, means, progress)?;
        if found.listing.is_cancelled() || found.scan.is_cancelled() {
            return Err(Error::cancelled());
        }
        self.check_destination(&found.references, means)?;
        let mut options = self.clone();
        options.workers = means.workers().usual();
        options.waiting = means.workers().most();
        options.earlier.extend(self.journal.clone());
        options.references = Arc::clone(&found.references);
        let groups = groups(&found, search);
        let mut pruned = Pruned {
            errors: found.errors,
            dry_run: self.mode == RunMode::DryRun,
            ..Pruned::default()
        };
        options.act(groups, means, steps, &mut pruned, each)?;
        Ok(pruned)
    }

    /// Refuses to move files into a reference, where nothing is to change, or to a place where the
    /// files that they equal would count as moved already.
    fn check_destination(&self, references: &Subtrees, means: &Means<'_>) -> Result<(), Error> {
        let Action::Move(directory) = &self.action else {
            return Ok(());
        };
        let refused = |why| Err(Error::at(ErrorKind::Refused, &path_of(directory), why));
        if lies_below(directory, references, means.cancelled_by())? {
            return refused("lies below a reference, where nothing is changed");
        }
        if lies_above(directory, references)? {
            return refused("a reference lies below it, where no file is ever the kept one");
        }
        if lacks_parent(directory)? {
            return refused("the directory that it would be made in does not exist");
        }
        Ok(())
    }

    fn act(
        &self,
        groups: Vec<FileGroup>,
        means: &Means<'_>,
        steps: &StepCounts,
        pruned: &mut Pruned,
        each: &mut dyn FnMut(PruneStep),
    ) -> Result<(), Error> {
        let cancel = means.cancelled_by();
        let mut journal = match &self.journal {
            Some(path) if !pruned.dry_run && !groups.is_empty() => {
                Some(Journal::create(path, &self.action, &groups, cancel)?)
            }
            _ => None,
        };
        pruned.journal = journal.as_ref().map(|journal| journal.path().to_owned());
        let spare = |group: &FileGroup| group.files.len().saturating_sub(1) as u64;
        steps.planned.store(groups.iter().map(spare).sum(), Relaxed);
        let mut hear = |event: PruneEvent| {
            let is_step = matches!(event, PruneEvent::Step(..));
            steps.done.fetch_add(u64::from(is_step), Relaxed);
            pruned.hear(event, each);
        };
        let summary = prune(groups, self, journal.as_mut(), cancel, &mut hear);
        if summary.groups > 0 {
            let unmatched = self.rules.keep.iter().filter_map(Keep::unmatched);
            let warnings =
                unmatched.map(|text| format!("keep {text}: none of the duplicates matches"));
            pruned.warnings.extend(warnings);
        }
        pruned.groups = summary.groups;
        pruned.changed = summary.changed;
        pruned.freed = summary.freed;
        pruned.cancelled |= cancel.is_cancelled();
        Ok(())
    }
}

fn groups(found: &Searched, search: &Search) -> Vec<FileGroup> {
    let roots = found.roots.iter();
    let roots: Vec<Vec<u8>> = roots
        .map(|path| path.as_os_str().as_encoded_bytes().to_vec())
        .collect();
    let report = ScanReport {
        listing: &found.listing,
        scan: &found.scan,
        algorithm: search.scan.algorithm,
        roots: &roots,
        // These two are for reports.
        reference_roots: &[],
        started_at: "",
    };
    report.groups().collect()
}

/// Steps that are done, and that may have to be, once they are known.
#[derive(Debug, Default)]
pub(crate) struct StepCounts {
    pub(crate) done: AtomicU64,
    pub(crate) planned: AtomicU64,
}

impl StepCounts {
    /// Adds the steps to the progress of the search, as further files.
    fn after(&self, mut search: Progress) -> Progress {
        search.files += self.done.load(Relaxed);
        let planned = self.planned.load(Relaxed);
        search.files_total = search.files_total.map(|total| total + planned);
        search
    }
}

/// Result of [pruning](PruneOptions::run).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// Step for each file that was to be given up, with its outcome. Empty if they went to a callback.
    pub steps: Vec<PruneStep>,
    /// Groups of equal files that were looked at.
    pub groups: u64,
    /// Steps done, or that would be.
    pub changed: u64,
    /// Bytes of disk that this freed, or would free.
    pub freed: u64,
    /// Failures to read or to change a file.
    pub errors: Vec<PathError>,
    /// Warnings about the run as a whole.
    pub warnings: Vec<String>,
    /// The journal, if anything was to be done.
    pub journal: Option<PathBuf>,
    /// True if nothing was changed, only listed.
    pub dry_run: bool,
    /// True if the job was cancelled before all was done: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
}

impl Pruned {
    fn hear(&mut self, event: PruneEvent, each: &mut dyn FnMut(PruneStep)) {
        self.errors.extend(event.failure());
        match event {
            PruneEvent::Step(step, outcome) => {
                self.cancelled |= matches!(outcome, StepOutcome::Skipped(Skip::Cancelled));
                each(PruneStep { step, outcome });
            }
            PruneEvent::Journal(skip) => {
                let path = self.journal.clone().unwrap_or_default();
                let path = path.as_os_str().as_encoded_bytes();
                self.errors.push(skip.failure(path, "write"));
            }
            PruneEvent::WritersUndetected(..) => {
                self.warnings.push(event.to_string());
            }
            PruneEvent::Unusable(..) | PruneEvent::Tree(..) => {}
        }
    }

    /// Returns true if everything could be read, and every step is done, or would be. Files that
    /// were left for a [reason of their own](StepOutcome::Skipped) do not count.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && !self.cancelled
    }

    /// Returns the result if nothing failed.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](ErrorKind::Incomplete), with the first failure.
    pub fn complete(self) -> Result<Pruned, Error> {
        match missing(&self.errors, self.cancelled) {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }
}

/// Step for one file, and its outcome.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PruneStep {
    /// The step: the file that was to be given up, the one that stays, and what was to be done.
    pub step: Step,
    /// Its outcome. One that was skipped for an [error](Skip::is_error) is among the errors too.
    pub outcome: StepOutcome,
}
