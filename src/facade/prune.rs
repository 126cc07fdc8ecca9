//! `prune`: duplicates given up.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bc_find::Subtrees;
use bc_find::groups::FileGroup;
use bc_find::report::ScanReport;
use bc_find::scan::{ScanOptions, ScanProgress};
use bc_fs::PathError;
use bc_fs::place::Way;
use bc_prune::{
    Action, Journal, Keep, OnMetadataDiff, PruneEvent, PruneOptions, Roots, RunMode, Skip, Step,
    StepKind, StepOutcome, lies_above, lies_below,
};

use super::duplicates::{Searched, Wanted, now};
use super::error::{Error, ErrorKind, path_of};
use super::filter::{Filter, filters};
use super::outcome::{missing, unless_cancelled};
use super::references::bytes;
use super::run::{Run, runs};
use super::walk::{refuse_missing, roots};

/// Finds files with equal content below these paths, keeps one of each, and does this with the others.
///
/// No content is ever lost: before a file is given up, it is compared byte for byte with the one that
/// stays, and both are held while that is done. The [journal](PruneJob::journal) has all that
/// [`undo`](crate::undo) needs to make separate files of them again; without one nothing is done but
/// in a [dry run](PruneJob::dry_run).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # for name in ["a.jpg", "b.jpg"] { std::fs::write(photos.join(name), "same")?; }
/// # let journal = dir.path().join("pruned.jsonl");
/// use bit_crafts::PruneAction;
///
/// let planned = bit_crafts::prune([&photos], PruneAction::Hardlink).dry_run().run()?;
/// for step in &planned.steps {
///     println!("{} would become {}", step.path.display(), step.kept.display());
/// }
/// let pruned = bit_crafts::prune([&photos], PruneAction::Hardlink).journal(&journal).run()?;
/// assert_eq!(pruned.complete()?.changed, 1);
/// assert_eq!(bit_crafts::undo(&journal).run()?.complete()?.restored, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prune<'a, P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    action: PruneAction,
) -> PruneJob<'a> {
    PruneJob {
        paths: roots(paths),
        references: Vec::new(),
        action,
        keep: Vec::new(),
        roots: Roots::Any,
        on_metadata_diff: OnMetadataDiff::Refuse,
        journal: None,
        dry_run: false,
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Action on a duplicate.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PruneAction {
    /// Its name becomes another name of the kept file.
    Hardlink,
    /// It shares the kept file's blocks, where the file system can. It stays a file of its own.
    Reflink,
    /// Its name becomes a relative symbolic link to the kept file.
    Symlink,
    /// Its name is removed.
    Delete,
    /// It goes below this directory, under its own path.
    Move(PathBuf),
}

impl From<&PruneAction> for Action {
    fn from(action: &PruneAction) -> Action {
        match action {
            PruneAction::Hardlink => Action::Hardlink,
            PruneAction::Reflink => Action::Reflink,
            PruneAction::Symlink => Action::Symlink,
            PruneAction::Delete => Action::Delete,
            PruneAction::Move(directory) => Action::Move(bytes(directory)),
        }
    }
}

/// Options of a [`prune`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct PruneJob<'a> {
    paths: Vec<PathBuf>,
    references: Vec<PathBuf>,
    action: PruneAction,
    keep: Vec<Keep>,
    roots: Roots,
    on_metadata_diff: OnMetadataDiff,
    journal: Option<PathBuf>,
    dry_run: bool,
    filter: Filter,
    run: Run<'a>,
}

runs!(PruneJob);
filters!(PruneJob);

impl PruneJob<'_> {
    /// Records the steps in this file, each before it is done. The file is made, or is a journal
    /// already, to which they are added.
    pub fn journal(mut self, file: impl Into<PathBuf>) -> Self {
        self.journal = Some(file.into());
        self
    }

    /// Changes nothing: all files are compared, and the result lists what would be done.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Adds files and directories that take part and are never changed; their files are the ones to
    /// keep.
    pub fn references<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.references.extend(roots(paths));
        self
    }

    /// Adds a rule for which file of a group stays: `"newest".parse()?`,
    /// `"path:originals".parse()?`. The first rule that decides is used; after all of them, and
    /// without any, the file with most names stays, then the first by path.
    pub fn keep(mut self, rule: Keep) -> Self {
        self.keep.push(rule);
        self
    }

    /// Gives up only files that lie below another of the paths than the kept file.
    pub fn across_roots(mut self) -> Self {
        self.roots = Roots::Across;
        self
    }

    /// Goes on where owner, mode or attributes of the two differ. Without this such a file is left,
    /// where it would lose its own.
    pub fn ignore_metadata(mut self) -> Self {
        self.on_metadata_diff = OnMetadataDiff::Ignore;
        self
    }

    /// Runs the job. Failures of single files are in the result.
    ///
    /// # Errors
    /// If there is neither a journal nor a dry run, a path is not there or a pattern is wrong; if a
    /// reference or the journal cannot be opened; if files would be moved into a reference; if it was
    /// cancelled, which leaves what is done as it is; if a worker panicked.
    pub fn run(mut self) -> Result<Pruned, Error> {
        Run::begin()?;
        let progress = ScanProgress::default();
        let mut tell = self.run.report.take();
        let pruned = Run::watched(&mut tell, || now(&progress), || self.prune(&progress));
        Run::came_to(&self.run.cancel, pruned)
    }

    fn prune(&self, progress: &ScanProgress) -> Result<Pruned, Error> {
        if self.journal.is_none() && !self.dry_run {
            return Err(Error::usage(
                "nothing is given up without a journal to undo it by: name one, or ask for a dry run",
            ));
        }
        refuse_missing(self.paths.iter().chain(&self.references))?;
        for path in &self.paths {
            if Way::of(path).is_ok_and(|way| way.foreign().is_some()) {
                let why =
                    "another user's symbolic link is on the way, who would choose what is changed";
                return Err(Error::at(ErrorKind::Refused, path, why));
            }
        }
        let scan = ScanOptions::default();
        let what = Wanted {
            paths: &self.paths,
            references: &self.references,
            options: &scan,
            filter: &self.filter,
            run: &self.run,
        };
        let found = what.search(None, progress)?;
        if found.listing.is_cancelled() || found.scan.is_cancelled() {
            return Err(Error::cancelled());
        }
        let options = self.options(&found.references)?;
        let groups = groups(&found, &scan);
        let mut pruned = Pruned {
            errors: found.errors,
            journal: None,
            dry_run: self.dry_run,
            ..Pruned::default()
        };
        self.act(groups, &options, &mut pruned)?;
        let cancelled = pruned.cancelled;
        unless_cancelled(pruned, cancelled)
    }

    fn options(&self, references: &Arc<Subtrees>) -> Result<PruneOptions, Error> {
        let mut options = PruneOptions::new(Action::from(&self.action));
        if let PruneAction::Move(directory) = &self.action {
            let name = bytes(directory);
            let refused = |why| Err(Error::at(ErrorKind::Refused, directory, why));
            if lies_below(&name, references, &self.run.cancel)? {
                return refused("lies below a reference, where nothing is changed");
            }
            if lies_above(&name, references)? {
                return refused("a reference lies below it, where no file is ever the kept one");
            }
        }
        options.mode = match self.dry_run {
            true => RunMode::DryRun,
            false => RunMode::Execute,
        };
        options.workers = self.run.workers();
        options.rules.keep.clone_from(&self.keep);
        options.rules.roots = self.roots;
        options.on_metadata_diff = self.on_metadata_diff;
        options.earlier = self.journal.iter().cloned().collect();
        options.journal.clone_from(&self.journal);
        options.references = Arc::clone(references);
        Ok(options)
    }

    fn act(
        &self,
        groups: Vec<FileGroup>,
        options: &PruneOptions,
        pruned: &mut Pruned,
    ) -> Result<(), Error> {
        let cancel = &self.run.cancel;
        let mut journal = match &self.journal {
            Some(path) if !self.dry_run && !groups.is_empty() => {
                Some(Journal::create(path, &options.action, &groups, cancel)?)
            }
            _ => None,
        };
        pruned.journal = journal.as_ref().map(|journal| journal.path().to_owned());
        let all = groups.len() as u64;
        let mut hear = |event: PruneEvent| pruned.hear(&event);
        let summary = bc_prune::prune(groups, options, journal.as_mut(), cancel, &mut hear);
        if summary.groups > 0 {
            let unmatched = options.rules.keep.iter().filter_map(Keep::unmatched);
            let warnings =
                unmatched.map(|text| format!("keep {text}: none of the duplicates matches"));
            pruned.warnings.extend(warnings);
        }
        pruned.groups = summary.groups;
        pruned.changed = summary.changed;
        pruned.freed = summary.freed;
        pruned.cancelled |= cancel.is_cancelled() && summary.groups < all;
        Ok(())
    }
}

fn groups(found: &Searched, options: &ScanOptions) -> Vec<FileGroup> {
    let roots: Vec<Vec<u8>> = found.roots.iter().map(|path| bytes(path)).collect();
    let report = ScanReport {
        listing: &found.listing,
        scan: &found.scan,
        algorithm: options.algorithm,
        roots: &roots,
        // These two are for reports.
        reference_roots: &[],
        started_at: "",
    };
    report.groups().collect()
}

/// Result of a [`prune`] job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// Step for each file that was to be given up, with its outcome.
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
    fn hear(&mut self, event: &PruneEvent) {
        match event {
            PruneEvent::Step(step, outcome) => {
                self.cancelled |= matches!(outcome, StepOutcome::Skipped(Skip::Cancelled));
                let step = PruneStep::new(step, outcome);
                if let PruneOutcome::Failed(error) = &step.outcome {
                    self.errors.push(error.clone());
                }
                self.steps.push(step);
            }
            PruneEvent::Unusable(path, skip) => self.errors.push(failure(path, "keep", skip)),
            PruneEvent::Journal(skip) => {
                let path = self.journal.clone().unwrap_or_default();
                self.errors.push(failure(&bytes(&path), "write", skip));
            }
            PruneEvent::WritersUndetected(..) => self.warnings.push(event.to_string()),
            PruneEvent::Tree(..) => {}
        }
    }

    /// Returns true if everything could be read, and every step is done, or would be. Files that
    /// were left for a [reason of their own](PruneOutcome::Skipped) do not count.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && !self.cancelled
    }

    /// Returns the result if nothing failed.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first failure.
    pub fn complete(self) -> Result<Pruned, Error> {
        match missing(&self.errors, self.cancelled) {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }
}

fn errno_error(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

/// Returns the reason for a skipped step as a failure of its path; `step` is the operation unless
/// the system refused one.
pub(crate) fn failure(path: &[u8], step: &str, skip: &Skip) -> PathError {
    match skip.system() {
        Some((operation, errno)) => {
            let reason = errno_error(errno).to_string();
            PathError::with_reason(path_of(path), operation, Some(errno), reason)
        }
        None => PathError::with_reason(path_of(path), step, None, skip.to_string()),
    }
}

/// Step for one file, and its outcome.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PruneStep {
    /// The file that was to be given up.
    pub path: PathBuf,
    /// The file that stays.
    pub kept: PathBuf,
    /// New path of the file, or the one it would have, if it was to be moved.
    pub moved_to: Option<PathBuf>,
    /// Bytes of its content.
    pub size: u64,
    /// Outcome of the step.
    pub outcome: PruneOutcome,
}

/// Outcome of a step.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PruneOutcome {
    /// It was done.
    Done {
        /// Bytes of disk that this freed.
        freed: u64,
        /// Metadata that a moved file has lost, each with the reason: an owner, an attribute.
        lost: Vec<String>,
    },
    /// A dry run: it would be done.
    Would {
        /// Bytes of disk that this would free.
        freed: u64,
    },
    /// It was left for this reason, which is no failure: it is as asked for already, say.
    Skipped(String),
    /// It was left, since this failed.
    Failed(PathError),
}

impl PruneStep {
    fn new(step: &Step, outcome: &StepOutcome) -> PruneStep {
        PruneStep {
            path: path_of(&step.target),
            kept: path_of(&step.kept_file),
            moved_to: match &step.kind {
                StepKind::Move(to) => Some(path_of(to)),
                _ => None,
            },
            size: step.size,
            outcome: match outcome {
                StepOutcome::Done { freed, lost } => PruneOutcome::Done {
                    freed: *freed,
                    lost: lost.clone(),
                },
                StepOutcome::Would { freed } => PruneOutcome::Would { freed: *freed },
                StepOutcome::Skipped(skip) if skip.is_error() => {
                    PruneOutcome::Failed(failure(&step.target, step.kind.name(), skip))
                }
                StepOutcome::Skipped(skip) => PruneOutcome::Skipped(skip.to_string()),
            },
        }
    }
}
