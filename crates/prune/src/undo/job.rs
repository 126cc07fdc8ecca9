//! Steps taken back as a job, and what is reported of each.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::PathError;
use bc_read::Rate;
use bc_walk::job::{Error, Guarded, Means, Progress, missing, path_of, require, unless_cancelled};

use super::undo_counted;
use crate::job::StepCounts;
use crate::options::RunMode;
use crate::skip::Skip;

/// Options of an [undo](fn@super::undo).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UndoOptions {
    /// Dry run or real run.
    pub mode: RunMode,
    /// Limit of bytes a second for comparing and copying files, if there is one.
    pub rate: Option<Rate>,
}

bc_fs::setters! {
    UndoOptions:
    rate: Option<Rate>,
}

impl From<RunMode> for UndoOptions {
    fn from(mode: RunMode) -> UndoOptions {
        UndoOptions { mode, rate: None }
    }
}

/// Takes back the steps that a [journal](crate::PruneOptions::journal) records: the last step first,
/// each only if the file is still as the step left it.
#[derive(Clone, Debug)]
#[must_use = "nothing is done before `run`"]
pub struct UndoJob {
    journal: PathBuf,
    mode: RunMode,
    rate: Option<Rate>,
}

bc_fs::setters! {
    UndoJob:
    mode: RunMode,
    rate: Option<Rate>,
}

impl UndoJob {
    /// Takes back the steps of this journal.
    pub fn new(journal: impl AsRef<Path>) -> UndoJob {
        UndoJob {
            journal: journal.as_ref().to_owned(),
            mode: RunMode::Execute,
            rate: None,
        }
    }

    /// Takes them back with these means: cancellation and progress, which counts steps.
    ///
    /// # Errors
    /// If the journal is not there, is none, belongs to another user or may be written by others; if
    /// it was cancelled, which leaves what is done as it is. Failures of single files are in the
    /// result.
    pub fn run(&self, means: &Means<'_>) -> Result<Undone, Error> {
        let mut files = Vec::new();
        let undone = self.undone(means, &mut |file| files.push(file))?;
        let cancelled = undone.cancelled;
        unless_cancelled(Undone { files, ..undone }, cancelled)
    }

    /// Takes them back as [`run`](UndoJob::run) does, and calls `each` with one name after the other, as
    /// they are restored; the list in the result is empty. It is called by the caller's own thread.
    /// After a panic in it, it is not called again; the job is done to its end, and then the panic goes
    /// on out of this function.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(RestoredFile),
    ) -> Result<Undone, Error> {
        let mut each = Guarded::new(each);
        let undone = self.undone(means, &mut |file| each.call(file));
        each.end();
        let undone = undone?;
        let cancelled = undone.cancelled;
        unless_cancelled(undone, cancelled)
    }

    /// Takes them back; a result of what was cancelled says so.
    fn undone(
        &self,
        means: &Means<'_>,
        each: &mut dyn FnMut(RestoredFile),
    ) -> Result<Undone, Error> {
        let counts = StepCounts::default();
        let now = || {
            let [done, planned] = [&counts.done, &counts.planned].map(|count| count.load(Relaxed));
            Progress::new([done, planned], [0, 0])
        };
        means.run(now, || {
            require([&self.journal])?;
            let cancel = means.cancelled_by();
            let mut undone = Undone::default();
            let mut hear = |event: UndoEvent<'_>| undone.hear(&event, each);
            let options = UndoOptions::from(self.mode).rate(self.rate.clone());
            let summary = undo_counted(&self.journal, &options, cancel, &counts, &mut hear)?;
            undone.restored = summary.restored;
            undone.unneeded = summary.unneeded;
            undone.damaged_lines = summary.damaged;
            undone.dry_run = self.mode == RunMode::DryRun;
            undone.cancelled = cancel.is_cancelled();
            Ok(undone)
        })
    }
}

/// Result of an [undo](UndoJob).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Undone {
    /// Names that are files of their own again, or would be, as absolute paths. Empty if they went to a
    /// callback.
    pub files: Vec<RestoredFile>,
    /// Number of names restored.
    pub restored: u64,
    /// Steps that needed nothing: the name is a file of its own.
    pub unneeded: u64,
    /// Failures to take back a step.
    pub errors: Vec<PathError>,
    /// Line numbers of the journal that are damaged: their steps are not taken back.
    pub damaged_lines: Vec<u64>,
    /// True if nothing was changed, only listed.
    pub dry_run: bool,
    /// True if the job was cancelled before all was done: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
}

impl Undone {
    fn hear(&mut self, event: &UndoEvent<'_>, each: &mut dyn FnMut(RestoredFile)) {
        let lost = match event.outcome {
            UndoOutcome::Restored { lost } | UndoOutcome::Would { lost } => lost.clone(),
            UndoOutcome::Unneeded
            | UndoOutcome::Failed(Skip::UnknownStage | Skip::UnknownLeftover) => return,
            UndoOutcome::Failed(skip) => {
                self.errors.push(skip.failure(event.path, event.action));
                return;
            }
        };
        each(RestoredFile {
            path: path_of(event.path),
            lost,
        });
    }

    /// Returns true if every step was taken back, or would be.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.damaged_lines.is_empty() && !self.cancelled
    }

    /// Returns the result if every step was taken back, or would be.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](bc_walk::job::ErrorKind::Incomplete), with the first step that was not.
    pub fn complete(self) -> Result<Undone, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        match self.damaged_lines.first() {
            None => Ok(self),
            Some(line) => {
                let text = format!("line {line} of the journal is damaged");
                Err(Error::incomplete(text, None))
            }
        }
    }
}

/// A name that is a file of its own again, or would be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RestoredFile {
    /// The name, absolute.
    pub path: PathBuf,
    /// Metadata that could not be restored, each with the reason: an owner, an attribute.
    pub lost: Vec<String>,
}

/// Outcome of undoing one step of the journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UndoOutcome {
    /// The file is a separate one again. `lost` lists metadata that could not be given back.
    Restored {
        /// Owner, attribute … and the system's reason.
        lost: Vec<String>,
    },
    /// A dry run: it would be restored. `lost` lists metadata that could not be given back, as far
    /// as that can be known before.
    Would {
        /// Same as for a restored file.
        lost: Vec<String>,
    },
    /// There is nothing to undo: the name is a file of its own.
    Unneeded,
    /// It could not be restored; with [`Skip::UnknownStage`] and [`Skip::UnknownLeftover`], no step
    /// is about this name, and it stays as it is.
    Failed(Skip),
}

/// One name that undo processed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UndoEvent<'a> {
    /// The name, absolute.
    pub path: &'a [u8],
    /// Action that prune had taken on it: `hardlink`, `delete` …
    pub action: &'a str,
    /// Outcome of undo.
    pub outcome: &'a UndoOutcome,
}

/// Totals.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct UndoSummary {
    /// Names restored, or that a dry run would restore.
    pub restored: u64,
    /// Number of those that did not get all their metadata back, or would not.
    pub incomplete: u64,
    /// Steps that needed nothing.
    pub unneeded: u64,
    /// Steps that could not be undone.
    pub failed: u64,
    /// Temporaries of killed runs that were removed.
    pub leftovers: u64,
    /// The numbers of lines of the journal that are damaged: their steps are not undone.
    pub damaged: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use bc_find::Search;
    use bc_testkit::TestTree;

    use super::*;
    use crate::{Action, PruneOptions};

    /// A callback hears what the list would have, and progress ends at its total.
    #[test]
    fn restored_names_go_to_a_callback() {
        let t = TestTree::new();
        for name in ["a", "b", "c", "d"] {
            t.write(format!("d/{name}"), "same");
        }
        let journal = t.join("journal");
        let link = PruneOptions::new(Action::Hardlink).mode(RunMode::Execute);
        let link = link.journal(Some(journal.clone()));
        link.run(&Search::new([t.join("d")]), &Means::new())
            .unwrap();
        let undo = UndoJob::new(&journal);
        let dry = undo
            .clone()
            .mode(RunMode::DryRun)
            .run(&Means::new())
            .unwrap();
        assert_eq!(dry.files.len(), 3);
        let (mut last, mut heard) = (Progress::default(), Vec::new());
        let means = Means::new().progress(|now| last = now);
        let undone = undo.run_each(&means, |file| heard.push(file)).unwrap();
        drop(means);
        assert!(undone.files.is_empty() && undone.restored == 3 && undone.is_complete());
        assert_eq!(heard, dry.files);
        assert_eq!((last.files, last.files_total), (3, Some(3)));
    }
}
