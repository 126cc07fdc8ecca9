//! Duplicates given up, and steps taken back.

use bit_crafts::{
    Action, Keep, KeepRules, OnMetadataDiff, PruneOptions, PruneStep, Pruned, RestoredFile,
    RunMode, StepKind, StepOutcome, UndoJob, Undone,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::usage;
use crate::find::searched;
use crate::items::{Item, Items, ResultClass};
use crate::job::{Call, Job, Outcome};
use crate::options::{Filter, either};
use crate::paths::{PathArg, PathsArg, bytes_object, path_object};

/// Starts `prune`.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "it has those of the Python function"
)]
pub(crate) fn prune(
    py: Python<'_>,
    paths: PathsArg,
    action: &str,
    into: Option<PathArg>,
    keep: PathsArg,
    references: PathsArg,
    journal: Option<PathArg>,
    dry_run: bool,
    ignore_metadata: bool,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let action = match (action, into) {
        ("move", Some(PathArg(into))) => Action::Move(into.into_os_string().into_encoded_bytes()),
        ("move", None) => return Err(usage(py, "action \"move\" needs a directory: into")),
        ("trash", home) => {
            Action::Trash(home.map(|PathArg(path)| path.into_os_string().into_encoded_bytes()))
        }
        (_, Some(_)) => return Err(usage(py, "into: only for the actions move and trash")),
        (word, None) => Action::parse(word.as_bytes()).ok_or_else(|| {
            let text = format!(
                "action: unknown {word:?}; known are hardlink, reflink, symlink, delete, move, trash"
            );
            usage(py, &text)
        })?,
    };
    let keep = keep.0.into_iter().map(|rule| {
        let rule = Keep::parse(rule.as_os_str().as_encoded_bytes());
        rule.map_err(|error| usage(py, &error.to_string()))
    });
    let mut options = PruneOptions::new(action)
        .mode(either(dry_run, [RunMode::Execute, RunMode::DryRun]))
        .journal(journal.map(|file| file.0));
    options.rules = KeepRules::new(keep.collect::<PyResult<_>>()?, options.rules.roots);
    options.on_metadata_diff = either(
        ignore_metadata,
        [OnMetadataDiff::Refuse, OnMetadataDiff::Ignore],
    );
    let search = searched(paths, references, filter);
    Job::start(&call, move |means, each| match each.is_wanted() {
        true => options.run_each(&search, means, |step| each.give(step)),
        false => options.run(&search, means),
    })
}

/// Starts `undo`.
#[pyfunction]
pub(crate) fn undo(journal: PathArg, dry_run: bool, call: Call) -> PyResult<Job> {
    let mode = either(dry_run, [RunMode::Execute, RunMode::DryRun]);
    let job = UndoJob::new(journal.0).mode(mode);
    Job::start(&call, move |means, _| job.run(means))
}

impl Item for PruneStep {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("PruneStep");
        let to = match &self.step.kind {
            StepKind::Move(path) | StepKind::Trash(path) => Some(path),
            _ => None,
        };
        let to = to.filter(|path| !path.is_empty());
        let (outcome, freed, lost, reason) = match &self.outcome {
            StepOutcome::Done { freed, lost } => ("done", *freed, &lost[..], None),
            StepOutcome::Would { freed } => ("planned", *freed, &[][..], None),
            StepOutcome::Skipped(skip) => ("skipped", 0, &[][..], Some(skip.to_string())),
        };
        CLASS.tuple(
            py,
            (
                self.step.kind.name(),
                bytes_object(py, &self.step.target)?,
                bytes_object(py, &self.step.kept_file)?,
                to.map(|path| bytes_object(py, path)).transpose()?,
                self.step.size,
                outcome,
                freed,
                PyTuple::new(py, lost)?,
                reason,
            ),
        )
    }
}

impl Outcome for Pruned {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Pruned");
        let journal = self.journal.map(|path| path_object(py, path)).transpose()?;
        CLASS.make(
            py,
            (
                Items::new(self.errors),
                self.cancelled,
                Items::new(self.steps),
                self.groups,
                self.changed,
                self.freed,
                PyTuple::new(py, &self.warnings)?,
                journal,
                self.dry_run,
            ),
        )
    }
}

impl Item for RestoredFile {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("RestoredFile");
        let lost = PyTuple::new(py, &self.lost)?;
        CLASS.tuple(py, (path_object(py, &self.path)?, lost))
    }
}

impl Outcome for Undone {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Undone");
        CLASS.make(
            py,
            (
                Items::new(self.errors),
                self.cancelled,
                Items::new(self.files),
                self.restored,
                self.unneeded,
                PyTuple::new(py, &self.damaged_lines)?,
                self.dry_run,
            ),
        )
    }
}
