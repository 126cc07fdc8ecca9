//! `undo`: duplicates made separate files again.

use std::path::{Path, PathBuf};

use bc_fs::PathError;
use bc_prune::{RunMode, UndoEvent, UndoOutcome as Outcome};

use super::error::{Error, path_of};
use super::outcome::{missing, unless_cancelled};
use super::prune::failure;
use super::run::{Run, runs};
use super::walk::refuse_missing;

/// Takes back the steps of [`prune`](crate::prune), by the journal that it wrote: the last step
/// first, each only if the file is still as the step left it.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # for name in ["a.jpg", "b.jpg"] { std::fs::write(photos.join(name), "same")?; }
/// # let journal = dir.path().join("pruned.jsonl");
/// # let prune = bit_crafts::prune([&photos], bit_crafts::PruneAction::Delete).journal(&journal);
/// # prune.run()?.complete()?;
/// assert!(!photos.join("b.jpg").exists());
/// let undone = bit_crafts::undo(&journal).run()?.complete()?;
/// assert_eq!(undone.restored, 1);
/// assert!(photos.join("b.jpg").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn undo<'a>(journal: impl AsRef<Path>) -> UndoJob<'a> {
    UndoJob {
        journal: journal.as_ref().to_owned(),
        dry_run: false,
        run: Run::default(),
    }
}

/// Options of an [`undo`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct UndoJob<'a> {
    journal: PathBuf,
    dry_run: bool,
    run: Run<'a>,
}

runs!(UndoJob: cancel);

impl UndoJob<'_> {
    /// Changes nothing, and lists what would be done.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Runs the job. Failures of single files are in the result.
    ///
    /// # Errors
    /// If the journal is not there, is none, belongs to another user or may be written by others; if it
    /// was cancelled, which leaves what is done as it is.
    pub fn run(self) -> Result<Undone, Error> {
        Run::begin()?;
        Run::came_to(&self.run.cancel, self.take_back())
    }

    fn take_back(&self) -> Result<Undone, Error> {
        refuse_missing([&self.journal])?;
        let cancel = &self.run.cancel;
        let mode = match self.dry_run {
            true => RunMode::DryRun,
            false => RunMode::Execute,
        };
        let mut undone = Undone::default();
        let mut hear = |event: UndoEvent<'_>| undone.hear(&event);
        let summary = bc_prune::undo(&self.journal, mode, cancel, &mut hear)?;
        undone.restored = summary.restored;
        undone.unneeded = summary.unneeded;
        undone.damaged_lines = summary.damaged;
        undone.dry_run = self.dry_run;
        undone.cancelled = cancel.is_cancelled();
        let cancelled = undone.cancelled;
        unless_cancelled(undone, cancelled)
    }
}

/// Result of an [`undo`] job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Undone {
    /// Names that are files of their own again, or would be, as absolute paths.
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
    fn hear(&mut self, event: &UndoEvent<'_>) {
        let lost = match event.outcome {
            Outcome::Restored { lost } | Outcome::Would { lost } => lost.clone(),
            Outcome::Unneeded => return,
            Outcome::Failed(skip) => {
                self.errors.push(failure(event.path, event.action, skip));
                return;
            }
        };
        self.files.push(RestoredFile {
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
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first step that was not.
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
