//! `restore`: what a tree has lost, from its copies.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bc_copy::{Loss, RestoreEvent, RestoreOptions};
use bc_integrity::{ManifestFile, RootCheck};

use super::error::{Error, PathError, path_of};
use super::manifest::{below, working};
use super::outcome::{missing, unless_cancelled};
use super::run::{Run, runs};
use super::walk::{refuse_missing, roots};

/// Heals a tree: what its [manifest](crate::manifest) knows and is damaged or gone is copied from
/// whatever of the [other trees](RestoreJob::from) holds it, at the same path or under another name.
///
/// The tree is verified first. A copy is compared with the manifest before it takes its place, and
/// what was damaged stays beside it as `NAME.damaged-DIGEST`. Nothing is removed; what was moved or
/// edited is left as it is.
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
/// assert_eq!(planned.healed.len(), 1);
/// let restored = bit_crafts::restore(&photos, &file).from([&backup]).run()?.complete()?;
/// assert_eq!(restored.healed[0].path, photos.join("a.jpg"));
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

/// What [`restore`] is to do.
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
    /// Trees, or single files, that may hold what is wanted; they may hold the tree itself, or lie in
    /// it. Without any there are only other names of the same files.
    pub fn from<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.from.extend(roots(paths));
        self
    }

    /// Heals this, and what else is named so; without this what is damaged or removed. What was edited
    /// is healed only if that is named.
    pub fn only(mut self, loss: Loss) -> Self {
        self.only.push(loss);
        self
    }

    /// Keeps nothing of what is damaged. Without this it stays beside what it was healed with, under a
    /// name that goes on with `.damaged-` and what it hashes to; [`verify`](crate::verify()) tells of it as
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

    /// Writes nothing, and tells what would be done.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Takes a root that is empty, has none of the files that the manifest lists, or is on another
    /// device where nothing matches, at its word. Without this it is an error of the kind
    /// [`Refused`](crate::ErrorKind::Refused), and nothing is written: the disk may not be mounted,
    /// or the root may be another one.
    pub fn force(mut self) -> Self {
        self.root_check = RootCheck::Forced;
        self
    }

    /// Does it. What fails is in the result.
    ///
    /// # Errors
    /// If the root, the manifest or one of the other trees is not there; if the manifest cannot be
    /// read, is cut short or altered; if the root looks like a disk that is not mounted, or has none of
    /// the files; if it was
    /// cancelled; if a worker panicked.
    pub fn run(mut self) -> Result<RestoreReport, Error> {
        Run::begin()?;
        let mut tell = self.run.tell.take();
        let healed = self.heal(&mut tell);
        Run::came_to(&self.run.cancel, healed)
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

/// What came of healing a tree.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// What is as recorded again, or would be.
    pub healed: Vec<HealedPath>,
    /// What is not, since no copy holds it.
    pub missing: Vec<MissingPath>,
    /// What failed, or changed meanwhile.
    pub errors: Vec<PathError>,
    /// What was healed, but could not be given something that is recorded of it, such as its owner.
    pub lacking: Vec<PathError>,
    /// What else one should know.
    pub warnings: Vec<String>,
    /// Paths that differ in another way, and were left as they are.
    pub others: u64,
    /// Paths not begun.
    pub left: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Whether nothing was written, only told.
    pub dry_run: bool,
    /// Whether it was cancelled before all was done: only in what an error
    /// [has of it](Error::partial).
    pub cancelled: bool,
}

impl RestoreReport {
    fn hear(&mut self, root: &Path, event: RestoreEvent<'_>) {
        match event {
            RestoreEvent::Mended(mended) => self.healed.push(HealedPath {
                path: below(root, mended.path),
                loss: mended.loss,
                from: mended.from.map(path_of),
                linked_to: mended.linked.map(|path| below(root, path)),
                kept_as: mended.kept.map(|path| below(root, path)),
            }),
            RestoreEvent::Missing { path, loss, why } => self.missing.push(MissingPath {
                path: below(root, path),
                loss,
                reason: why.to_owned(),
            }),
            RestoreEvent::Failed { error, .. } => self.errors.push(PathError::from(error)),
            RestoreEvent::Unread { path, failure } => {
                let error = PathError::of_failure(path_of(path), failure);
                self.errors.push(error);
            }
            RestoreEvent::Incomplete(error) => self.lacking.push(PathError::from(error)),
            RestoreEvent::Warning(text) => self.warnings.push(text.to_owned()),
            _ => {}
        }
    }

    /// Whether all that was to be healed is, or would be.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.missing.is_empty() && self.left == 0 && !self.cancelled
    }

    /// The report, if all that was to be healed is, or would be.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first of what is not.
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
    /// What had become of it.
    pub loss: Loss,
    /// The copy that its content is from. Directories and links have none.
    pub from: Option<PathBuf>,
    /// The name that it was made another name of.
    pub linked_to: Option<PathBuf>,
    /// The name that what was there has now.
    pub kept_as: Option<PathBuf>,
}

/// A path that no copy holds.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MissingPath {
    /// The path, below the root as that was named.
    pub path: PathBuf,
    /// What has become of it.
    pub loss: Loss,
    /// Why nothing holds it, in words.
    pub reason: String,
}
