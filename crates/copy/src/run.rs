//! Copying and restoring as jobs: with the means of a caller of the library, and failures in the
//! result.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use bc_digest::Algorithm;
use bc_fs::PathError;
use bc_integrity::{Origin, RootCheck, working};
use bc_read::Rate;
use bc_walk::job::{
    Error, ErrorKind, Guarded, Means, Progress, missing, path_of, require, unless_cancelled,
};
use bc_walk::{ExactPaths, Metadata, Symlinks, WalkOptions};

use crate::engine::copy;
use crate::event::{Copied, CopyProgress, Event, Observer};
use crate::lock;
use crate::options::{
    CopyOptions, Durability, ManifestPlace, OnConflict, Preserve, ReadBack, Target, When,
};
use crate::restore::{Loss, RestoreEvent, RestoreOptions, restore};

bc_fs::setters! {
    CopyOptions:
    rate: Option<Rate>,
    target: Target,
    on_conflict: OnConflict,
    read_back: ReadBack,
    durability: Durability,
    preserve: Preserve,
    reflink: When,
    sparse: When,
    algorithm: Option<Algorithm>,
    manifest: ManifestPlace,
    replace_manifest: bool,
    strict: bool,
    restart: bool,
    dry_run: bool,
    state: Option<PathBuf>,
    walk: WalkOptions,
}

impl CopyOptions {
    /// Copies these paths below the source and nothing else, each to the same path below the
    /// destination, which is the copy [itself](Target::Exactly). They are no patterns, and need not
    /// be UTF-8. Directories on the way are made as the source has them; a directory that is named
    /// comes with all its contents. Files that the [walk](CopyOptions::walk), which is set before
    /// this, leaves out are left out even so.
    ///
    /// A path that is not there when the source is read, or leads through a link, is one of the
    /// errors, once, and is counted as failed; the manifest says nothing of it. That goes for all of
    /// them, too: then the destination is made, with nothing in it but its manifest. An empty list
    /// copies nothing, and makes nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
    /// # std::fs::create_dir_all(card.join("100"))?;
    /// # for name in ["100/a.jpg", "100/b.jpg"] { std::fs::write(card.join(name), name)?; }
    /// use bc_copy::CopyOptions;
    /// use bc_walk::job::Means;
    ///
    /// CopyOptions::new([&card], &archive).paths(["100/b.jpg"])?.run(&Means::new())?.complete()?;
    /// assert!(archive.join("100/b.jpg").exists() && !archive.join("100/a.jpg").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one source, a directory; if a path does not lie below it.
    pub fn paths<P: AsRef<Path>>(
        mut self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<CopyOptions, Error> {
        let [source] = &self.sources[..] else {
            return Err(Error::usage("a list of paths is one of a single source"));
        };
        let source = Path::new(source);
        if !std::fs::symlink_metadata(source).is_ok_and(|meta| meta.is_dir()) {
            let text = "is no directory, so there are no paths below it";
            return Err(Error::at(ErrorKind::Usage, source, text));
        }
        // Without dots and doubled slashes.
        let plain = |path: P| {
            let (path, mut plain) = (path.as_ref(), PathBuf::new());
            for part in path.components() {
                match part {
                    Component::CurDir => {}
                    Component::Normal(name) => plain.push(name),
                    _ => {
                        plain.clear();
                        break;
                    }
                }
            }
            let bytes = plain.as_os_str().as_encoded_bytes();
            match bytes.is_empty() || bytes.contains(&0) {
                false => Ok(plain.into_os_string().into_encoded_bytes()),
                true => {
                    let text = "is no path below the source";
                    Err(Error::at(ErrorKind::Usage, path, text))
                }
            }
        };
        let paths = paths
            .into_iter()
            .map(plain)
            .collect::<Result<Vec<_>, _>>()?;
        self.walk.only = Some(Arc::new(ExactPaths::new(paths)));
        self.target = Target::Exactly;
        Ok(self)
    }

    /// Copies with these means. The manifest has the present and this machine.
    ///
    /// Each file has a temporary name until it is complete and has its metadata, and no existing
    /// target is ever replaced unless asked for. The parent directory of the destination has to
    /// exist. With filters, patterns of files to include and sizes choose among regular files;
    /// directories (empty ones, too), links and special files are copied unless a pattern excludes
    /// them or a directory above them.
    ///
    /// A process that is killed leaves temporary files behind, `.bc-copy.` and more before `.part`.
    /// The next copy from the same sources to the same destination, of any
    /// [paths](CopyOptions::paths), resumes with them if it has the same
    /// [directory of journals](CopyOptions::state): one of the program's own, such as
    /// `$XDG_STATE_HOME/name-of-the-program`, serves for all copies. It is made for this user alone,
    /// and contains a key, by which journals are known to be this user's, and below `copy` a file
    /// for each copy that is under way or was interrupted. A journal that no copy has resumed for a
    /// week is removed, with its temporary files, by the next copy that has the same directory.
    ///
    /// Two copies to one destination at a time lose no file, and nothing of each other's manifests:
    /// a name that the other one has taken is a conflict. A copy from the same source that is already
    /// running is detected if both have a journal, and is an error of the kind
    /// [`Busy`](ErrorKind::Busy).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # std::fs::write(photos.join("a.jpg"), "picture")?;
    /// # let backup = dir.path().join("backup");
    /// use bc_copy::{CopyOptions, OnConflict, ReadBack};
    /// use bc_walk::job::Means;
    ///
    /// let copied = CopyOptions::new([&photos], &backup)
    ///     .on_conflict(OnConflict::Update)
    ///     .read_back(ReadBack::Read)
    ///     .run(&Means::new())?
    ///     .complete()?;
    /// // A file, and the directory counts too.
    /// assert_eq!((copied.counts.files, copied.counts.copied), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a source is not there, or the directory that the destination is to be in; if source and
    /// destination make no sense together; if the manifest would replace something; if another run
    /// of the same copy is at work that has its journal in the same directory; if it was cancelled,
    /// which leaves what is copied where it is; if a worker panicked. Failures of single files are
    /// in the result; a destination in which nothing can be made is a failure of each path.
    pub fn run(&self, means: &Means<'_>) -> Result<CopyReport, Error> {
        self.run_each(means, |_| ())
    }

    /// Copies with these means, as [`run`](CopyOptions::run) does, and calls `each` with what becomes
    /// of each file, link and special file, in the bytewise order of their paths, each once all
    /// before it are done: with [`Event::Copied`], [`Event::Replaced`] or [`Event::Skipped`];
    /// failures are in the result. It is called by the threads that copy, one at a time while the
    /// others go on; it may begin a copy of its own.
    /// After a panic in it, it is not called again; the copy is made to its end, so that nothing is
    /// left half done, and then the panic goes on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
    /// # std::fs::create_dir(&card)?;
    /// # std::fs::write(card.join("a.jpg"), "picture")?;
    /// use bc_copy::{CopyOptions, Event};
    /// use bc_walk::job::Means;
    ///
    /// let mut new = Vec::new();
    /// let copy = CopyOptions::new([&card], &archive);
    /// let copied = copy.run_each(&Means::new(), |event| {
    ///     if let Event::Copied(path) = event {
    ///         new.push(path.to_owned());
    ///     }
    /// });
    /// copied?.complete()?;
    /// assert_eq!(new, [archive.join("a.jpg").as_os_str().as_encoded_bytes()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(Event<'_>) + Send,
    ) -> Result<CopyReport, Error> {
        for source in &self.sources {
            let source = Path::new(source);
            let looked = std::fs::symlink_metadata(source);
            looked.map_err(|error| Error::io(source, "stat", &error))?;
        }
        let options = self.prepared(means)?;
        if options.lists_nothing() {
            return Ok(CopyReport::default());
        }
        let (progress, cancel) = (CopyProgress::default(), means.cancelled_by());
        let (heard, copied) = heard(each, |hear| {
            means.run(
                || progress.now(),
                || copy(&options, cancel, &progress, hear),
            )
        });
        let counts = copied?;
        // While it walked there was nothing to be left yet.
        let nothing = counts.copied + counts.skipped == 0;
        let is_cut = counts.left > 0 || counts.is_cut || nothing;
        let cancelled = cancel.is_cancelled() && is_cut;
        let report = CopyReport {
            counts,
            errors: heard.errors,
            lacking: heard.lacking,
            warnings: heard.warnings,
            cancelled,
        };
        unless_cancelled(report, cancelled)
    }

    /// Checks everything that needs no look at a file, and fills in the rest.
    pub(crate) fn prepared(&self, means: &Means<'_>) -> Result<CopyOptions, Error> {
        if self.walk.symlinks == Symlinks::Follow {
            return Err(Error::usage("links are copied as links, and not followed"));
        }
        self.walk.check()?;
        let (mut options, origin) = (self.clone(), Origin::of_this_machine());
        options.walk.metadata = Metadata::Full;
        options.workers = means.workers().usual();
        // A budget may not allow for it.
        if options.most_memory.is_none() {
            options.waiting = means.workers().most();
        }
        options.walk_workers = means.workers();
        options.now = bc_fs::known::now_ns();
        (options.host, options.machine) = (origin.host, origin.machine);
        Ok(options)
    }
}

impl CopyOptions {
    /// True if there is a list of [paths](CopyOptions::paths), and nothing on it.
    pub(crate) fn lists_nothing(&self) -> bool {
        let only = self.walk.only.as_ref();
        only.is_some_and(|only| only.iter().len() == 0)
    }
}

impl CopyProgress {
    pub(crate) fn now(&self) -> Progress {
        Progress::new(
            [self.files.load(Relaxed), self.files_total.load(Relaxed)],
            [self.bytes.load(Relaxed), self.bytes_total.load(Relaxed)],
        )
    }
}

/// Result of a [copy](CopyOptions::run).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyReport {
    /// Counts, and the path of the manifest. There is none after a dry run, nor where the copy ended
    /// early: when it was cancelled, or the destination took no more.
    pub counts: Copied,
    /// Failures. Where a directory cannot be made, it is here, and so is each path that was to be
    /// in it, with the same reason.
    pub errors: Vec<PathError>,
    /// Entries that were copied without some metadata of their source, such as the owner.
    pub lacking: Vec<PathError>,
    /// Warnings about the copy as a whole.
    pub warnings: Vec<String>,
    /// True if the copy was cancelled before all was done: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
}

/// Events of a copy or a move that stay in its report.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) errors: Vec<PathError>,
    pub(crate) lacking: Vec<PathError>,
    pub(crate) warnings: Vec<String>,
}

impl Heard {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Failed(error) => self.errors.push(PathError::from(error)),
            Event::Incomplete(error) => self.lacking.push(PathError::from(error)),
            Event::Warning(text) => self.warnings.push(text.to_owned()),
            _ => {}
        }
    }
}

/// Does `work`, and keeps what it reports; what becomes of files goes to `each`.
pub(crate) fn heard<T>(
    each: impl FnMut(Event<'_>) + Send,
    work: impl FnOnce(&Observer<'_>) -> T,
) -> (Heard, T) {
    let heard = Mutex::new((Heard::default(), Guarded::new(each)));
    let done = work(&|event| {
        let mut heard = lock(&heard);
        heard.0.hear(event);
        if let Event::Copied(_) | Event::Replaced(_) | Event::Skipped(..) = event {
            heard.1.call(event);
        }
    });
    let (heard, each) = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    each.end();
    (heard, done)
}

impl CopyReport {
    /// Returns true if every entry was copied, or left out because of an existing target.
    pub fn is_complete(&self) -> bool {
        let counts = &self.counts;
        self.errors.is_empty() && !self.cancelled && counts.failed == 0 && counts.left == 0
    }

    /// Returns the report if nothing is missing.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](ErrorKind::Incomplete), with the first thing that is missing.
    pub fn complete(self) -> Result<CopyReport, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        if self.is_complete() {
            return Ok(self);
        }
        let counts = &self.counts;
        let why = counts.stopped.as_deref().unwrap_or("the copy ended early");
        let text = format!("{why}: {} entries are missing", counts.left + counts.failed);
        Err(Error::incomplete(text, None))
    }
}

bc_fs::setters! {
    RestoreOptions<'a>:
    only: Vec<Loss>,
    discard_damaged: bool,
    trust_metadata: bool,
    dry_run: bool,
    state: Option<PathBuf>,
    root_check: RootCheck,
}

impl RestoreOptions<'_> {
    /// Adds trees, or single files, that may have the content; they may contain the tree itself, or
    /// lie in it. Without any, only other names of the same files are tried.
    #[must_use]
    pub fn from<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter();
        self.from
            .extend(paths.map(|path| path.as_ref().as_os_str().to_owned()));
        self
    }

    /// Restores with these means: files of the manifest that are damaged or gone are copied from any
    /// of the other trees that has their content, at the same path or under another name.
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
    /// use bc_copy::{CopyOptions, RestoreOptions};
    /// use bc_integrity::{CreateOptions, ManifestFile};
    /// use bc_walk::job::Means;
    ///
    /// let (means, file) = (Means::new(), dir.path().join("photos.jsonl"));
    /// CopyOptions::new([&photos], &backup).run(&means)?.complete()?;
    /// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &means)?.complete()?;
    /// std::fs::remove_file(photos.join("a.jpg"))?;
    /// let manifest = ManifestFile::open(&file)?;
    /// let restore = RestoreOptions::new(&photos, &manifest).from([&backup]);
    /// let planned = restore.clone().dry_run(true).run(&means)?;
    /// assert_eq!(planned.repaired.len(), 1);
    /// let restored = restore.run(&means)?.complete()?;
    /// assert_eq!(restored.repaired[0].path, photos.join("a.jpg"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the root or one of the other trees is not there; if the manifest cannot be read, is cut
    /// short or altered; if the root looks like a disk that is not mounted, or has none of the
    /// files; if it was cancelled; if a worker panicked. Failures of single files are in the result.
    pub fn run(&self, means: &Means<'_>) -> Result<RestoreReport, Error> {
        let (mut repaired, mut missing) = (Vec::new(), Vec::new());
        let mut report = self.restored(means, |outcome| match outcome {
            RestoreOutcome::Repaired(path) => repaired.push(path),
            RestoreOutcome::Missing(path) => missing.push(path),
        })?;
        (report.repaired, report.missing) = (repaired, missing);
        let cancelled = report.cancelled;
        unless_cancelled(report, cancelled)
    }

    /// Restores as [`run`](RestoreOptions::run) does, and calls `each` with what becomes of one path
    /// after the other, in order of the manifest; the lists in the result are empty, and
    /// [`unrestored`](RestoreReport::unrestored) counts the paths that are missing. It is called by the
    /// threads that restore, one at a time. After a panic in it, it is not called again; the job is done
    /// to its end, and then the panic goes on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (photos, backup) = (dir.path().join("photos"), dir.path().join("backup"));
    /// # for at in [&photos, &backup] { std::fs::create_dir(at)?; std::fs::write(at.join("a.jpg"), "picture")?; }
    /// # std::fs::write(photos.join("b.jpg"), "other")?;
    /// use bc_copy::{RestoreOptions, RestoreOutcome};
    /// use bc_integrity::{CreateOptions, ManifestFile};
    /// use bc_walk::job::Means;
    ///
    /// let (means, file) = (Means::new(), dir.path().join("photos.jsonl"));
    /// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &means)?.complete()?;
    /// std::fs::remove_file(photos.join("a.jpg"))?;
    /// let manifest = ManifestFile::open(&file)?;
    /// let mut repaired = Vec::new();
    /// let restore = RestoreOptions::new(&photos, &manifest).from([&backup]);
    /// let report = restore.run_each(&means, |outcome| match outcome {
    ///     RestoreOutcome::Repaired(path) => repaired.push(path.path),
    ///     other => println!("{other:?}"),
    /// })?;
    /// report.complete()?;
    /// assert_eq!(repaired, [photos.join("a.jpg")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(RestoreOutcome) + Send,
    ) -> Result<RestoreReport, Error> {
        let mut each = Guarded::new(each);
        let report = self.restored(means, |outcome| each.call(outcome));
        each.end();
        let report = report?;
        let cancelled = report.cancelled;
        unless_cancelled(report, cancelled)
    }

    /// Restores; a result of what was cancelled says so.
    fn restored(
        &self,
        means: &Means<'_>,
        each: impl FnMut(RestoreOutcome) + Send,
    ) -> Result<RestoreReport, Error> {
        let root = Path::new(self.root);
        let paths: Vec<_> = self.from.iter().map(PathBuf::from).collect();
        require([&root.to_owned()].into_iter().chain(&paths))?;
        let manifest = self.manifest.clone().cancelled_by(means.cancelled_by());
        let what = RestoreOptions {
            manifest: &manifest,
            ..self.clone()
        };
        let heard = Mutex::new((RestoreReport::default(), each));
        let hear = |event: RestoreEvent<'_>| {
            let (report, each) = &mut *lock(&heard);
            report.hear(root, event, each);
        };
        let restored = working(means, |work| restore(&what, work, &hear))?;
        let (mut report, _) = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.left = restored.left;
        report.others = restored.others;
        report.bytes = restored.bytes;
        report.dry_run = self.dry_run;
        report.cancelled = means.cancelled_by().is_cancelled() && restored.left > 0;
        Ok(report)
    }
}

/// Outcome of a path that was to be restored. Failures are in the report.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RestoreOutcome {
    /// It is as recorded again, or would be.
    Repaired(RepairedPath),
    /// It is not restored, since no copy has its content.
    Missing(MissingPath),
}

/// Result of [restoring](RestoreOptions::run).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Paths that are as recorded again, or would be. Empty if they went to a callback.
    pub repaired: Vec<RepairedPath>,
    /// Paths that are not restored, each with the reason. Empty if they went to a callback.
    pub missing: Vec<MissingPath>,
    /// Number of those.
    pub unrestored: u64,
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
    fn hear(
        &mut self,
        root: &Path,
        event: RestoreEvent<'_>,
        each: &mut impl FnMut(RestoreOutcome),
    ) {
        match event {
            RestoreEvent::Repaired(repaired) => each(RestoreOutcome::Repaired(RepairedPath {
                path: below(root, repaired.path),
                loss: repaired.loss,
                from: repaired.from.map(path_of),
                linked_to: repaired.linked.map(|path| below(root, path)),
                kept_as: repaired.kept.map(|path| below(root, path)),
            })),
            RestoreEvent::Missing { path, loss, why } => {
                self.unrestored += 1;
                each(RestoreOutcome::Missing(MissingPath {
                    path: below(root, path),
                    loss,
                    reason: why.to_owned(),
                }));
            }
            RestoreEvent::Failed { error, .. } => self.errors.push(PathError::from(error)),
            RestoreEvent::Unread(error) => self.errors.push(error.clone()),
            RestoreEvent::Incomplete(error) => self.lacking.push(PathError::from(error)),
            RestoreEvent::Unreadable(error) => self.warnings.push(error.to_string()),
            RestoreEvent::Warning { path, why, .. } => {
                let path = bc_fs::Escaped(path);
                self.warnings.push(format!("{path}: {why}"));
            }
            _ => {}
        }
    }

    /// Returns true if everything that was to be restored is, or would be.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.unrestored == 0 && self.left == 0 && !self.cancelled
    }

    /// Returns the report if everything that was to be restored is, or would be.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](ErrorKind::Incomplete), with the first path that is not.
    pub fn complete(self) -> Result<RestoreReport, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        if let Some(first) = self.missing.first() {
            let (path, reason) = (&first.path, &*first.reason);
            return Err(Error::at(ErrorKind::Incomplete, path, reason));
        }
        let text = match (self.unrestored, self.left) {
            (0, 0) => return Ok(self),
            (0, left) => format!("{left} paths were left"),
            (count, _) => format!("{count} paths were not restored"),
        };
        Err(Error::incomplete(text, None))
    }
}

/// A path that is as recorded again, or would be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RepairedPath {
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

/// Joins `root`, as it was named, with a path below it; `.` is the root itself.
fn below(root: &Path, path: &[u8]) -> PathBuf {
    match path {
        b"." => root.to_owned(),
        _ => root.join(path_of(path)),
    }
}
