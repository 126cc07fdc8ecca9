//! `restore`: the lost files of a tree, from its copies.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bc_copy::{Loss, RestoreEvent, RestoreOptions};
use bc_fs::PathError;
use bc_integrity::{ManifestFile, RootCheck};

use super::error::{Error, path_of};
use super::manifest::{below, working};
use super::outcome::{missing, unless_cancelled};
use super::run::{Run, runs};
use super::walk::{refuse_missing, roots};

/// Restores a tree: files of its [manifest](crate::manifest) that are damaged or gone are copied
/// from any of the [other trees](RestoreJob::from) that has their content, at the same path or
/// under another name.
///
/// The tree is verified first. A copy is compared with the manifest before it replaces anything,
/// and the damaged file stays beside it as `NAME.damaged-DIGEST`. Nothing is removed; files that
/// were moved or edited are left as they are.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (photos, backup) = (dir.path().join("photos"), dir.path().join("backup"));
/// # std::fs::create_dir(&photos)?;
/// # std::fs::write(photos.join("a.jpg"), "picture")?;
/// # std::fs::write(photos.join("b.jpg"), "other picture")?;
/// # bit_crafts::copy(&photos, &backup).run()?.complete()?;
/// # let file = dir.path().join("photos.jsonl");
/// # bit_crafts::manifest(&photos).write(&file)?.complete()?;
/// std::fs::remove_file(photos.join("a.jpg"))?;
/// let planned = bit_crafts::restore(&photos, &file).from([&backup]).dry_run().run()?;
/// assert_eq!(planned.repaired.len(), 1);
/// let restored = bit_crafts::restore(&photos, &file).from([&backup]).run()?.complete()?;
/// assert_eq!(restored.repaired[0].path, photos.join("a.jpg"));
/// let verified = bit_crafts::verify(&photos, &file).run()?;
/// assert_eq!(verified.summary.count(bit_crafts::Class::Removed), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn restore<'a>(root: impl AsRef<Path>, manifest: impl AsRef<Path>) -> RestoreJob<'a> {
    RestoreJob {
        root: root.as_ref().to_owned(),
        manifest: manifest.as_ref().to_owned(),
        from: Vec::new(),
        only: Vec::new(),
        discard_damaged: false,
        trust_metadata: false,
        dry_run: false,
        root_check: RootCheck::Careful,
        run: Run::default(),
    }
}

/// Options of a [`restore`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct RestoreJob<'a> {
    root: PathBuf,
    manifest: PathBuf,
    from: Vec<PathBuf>,
    only: Vec<Loss>,
    discard_damaged: bool,
    trust_metadata: bool,
    dry_run: bool,
    root_check: RootCheck,
    run: Run<'a>,
}

runs!(RestoreJob);

impl RestoreJob<'_> {
    /// Adds trees, or single files, that may have the content; they may contain the tree itself, or
    /// lie in it. Without any, only other names of the same files are tried.
    pub fn from<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.from.extend(roots(paths));
        self
    }

    /// Restores this kind of loss, and others that are named so; without this, damaged and removed
    /// entries. Edited ones are restored only if that is named.
    pub fn only(mut self, loss: Loss) -> Self {
        self.only.push(loss);
        self
    }

    /// Keeps no copy of damaged files. Without this each stays beside its replacement, under its
    /// name with `.damaged-` and its digest appended; [`verify`](crate::verify()) reports it as
    /// [added](crate::Class::Added) until it is looked at and removed.
    pub fn discard_damaged(mut self) -> Self {
        self.discard_damaged = true;
        self
    }

    /// Takes owner, mode and attributes from the manifest even if others may have written it.
    pub fn trust_metadata(mut self) -> Self {
        self.trust_metadata = true;
        self
    }

    /// Writes nothing, and lists what would be done.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Accepts a root that is empty, has none of the files that the manifest lists, or is on
    /// another device where nothing matches. Without this it is an error of the kind
    /// [`Refused`](crate::ErrorKind::Refused), and nothing is written: the disk may not be mounted,
    /// or the root may be another one.
    pub fn force(mut self) -> Self {
        self.root_check = RootCheck::Forced;
        self
    }

    /// Runs the job. Failures of single files are in the result.
    ///
    /// # Errors
    /// If the root, the manifest or one of the other trees is not there; if the manifest cannot be
    /// read, is cut short or altered; if the root looks like a disk that is not mounted, or has none of
    /// the files; if it was
    /// cancelled; if a worker panicked.
    pub fn run(mut self) -> Result<RestoreReport, Error> {
        Run::begin()?;
        let mut tell = self.run.report.take();
        let repaired = self.heal(&mut tell);
        Run::came_to(&self.run.cancel, repaired)
    }

    fn heal(&self, tell: &mut Option<super::run::Tell<'_>>) -> Result<RestoreReport, Error> {
        refuse_missing([&self.root, &self.manifest].into_iter().chain(&self.from))?;
        let manifest = ManifestFile::open_until(&self.manifest, &self.run.cancel)?;
        let mut options = RestoreOptions::new(&self.root, &manifest);
        options.from = self.from.iter().map(|path| path.clone().into()).collect();
        if !self.only.is_empty() {
            options.only.clone_from(&self.only);
        }
        options.discard_damaged = self.discard_damaged;
        options.trust_metadata = self.trust_metadata;
        options.dry_run = self.dry_run;
        options.root_check = self.root_check;
        let report = Mutex::new(RestoreReport::default());
        let root = &self.root;
        let hear = |event: RestoreEvent<'_>| {
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.hear(root, event);
        };
        let restored = working(&self.run, tell, |work| {
            Ok(bc_copy::restore(&options, work, &hear)?)
        })?;
        let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.left = restored.left;
        report.others = restored.others;
        report.bytes = restored.bytes;
        report.dry_run = self.dry_run;
        report.cancelled = self.run.cancel.is_cancelled() && restored.left > 0;
        let cancelled = report.cancelled;
        unless_cancelled(report, cancelled)
    }
}

/// Result of a [`restore`] job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Paths that are as recorded again, or would be.
    pub repaired: Vec<HealedPath>,
    /// Paths that are not restored, since no copy has their content.
    pub missing: Vec<MissingPath>,
    /// Paths that failed, or changed meanwhile.
    pub errors: Vec<PathError>,
    /// Paths that were restored without some recorded metadata, such as the owner.
    pub lacking: Vec<PathError>,
    /// Warnings about the run as a whole.
    pub warnings: Vec<String>,
    /// Paths that differ in another way, and were left as they are.
    pub others: u64,
    /// Paths not started.
    pub left: u64,
    /// Bytes written.
    pub bytes: u64,
    /// True if nothing was written, only listed.
    pub dry_run: bool,
    /// True if the job was cancelled before all was done: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
}

impl RestoreReport {
    fn hear(&mut self, root: &Path, event: RestoreEvent<'_>) {
        match event {
            RestoreEvent::Repaired(repaired) => self.repaired.push(HealedPath {
                path: below(root, repaired.path),
                loss: repaired.loss,
                from: repaired.from.map(path_of),
                linked_to: repaired.linked.map(|path| below(root, path)),
                kept_as: repaired.kept.map(|path| below(root, path)),
            }),
            RestoreEvent::Missing { path, loss, why } => self.missing.push(MissingPath {
                path: below(root, path),
                loss,
                reason: why.to_owned(),
            }),
            RestoreEvent::Failed { error, .. } => self.errors.push(PathError::from(error)),
            RestoreEvent::Unread(error) => self.errors.push(error.clone()),
            RestoreEvent::Incomplete(error) => self.lacking.push(PathError::from(error)),
            RestoreEvent::Warning(text) => self.warnings.push(text.to_owned()),
            _ => {}
        }
    }

    /// Returns true if everything that was to be restored is, or would be.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.missing.is_empty() && self.left == 0 && !self.cancelled
    }

    /// Returns the report if everything that was to be restored is, or would be.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first path that is not.
    pub fn complete(self) -> Result<RestoreReport, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        match (self.missing.first(), self.left) {
            (None, 0) => Ok(self),
            (None, left) => Err(Error::incomplete(format!("{left} paths were left"), None)),
            (Some(first), _) => Err(Error::at(
                super::error::ErrorKind::Incomplete,
                &first.path,
                &*first.reason,
            )),
        }
    }
}

/// A path that is as recorded again, or would be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct HealedPath {
    /// The path, below the root as that was named.
    pub path: PathBuf,
    /// Kind of loss that was restored.
    pub loss: Loss,
    /// The copy that its content is from. Directories and links have none.
    pub from: Option<PathBuf>,
    /// The name that it was made another name of.
    pub linked_to: Option<PathBuf>,
    /// The name that the damaged or edited file has now.
    pub kept_as: Option<PathBuf>,
}

/// A path that no copy holds.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MissingPath {
    /// The path, below the root as that was named.
    pub path: PathBuf,
    /// Kind of loss.
    pub loss: Loss,
    /// Reason why no copy holds it, in words.
    pub reason: String,
}
