//! `copy`: a tree copied, with its proof.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bc_copy::{
    CopyOptions, CopyProgress, Durability, Event, ManifestPlace, OnConflict, ReadBack, Target, Why,
};
use bc_digest::Algorithm;
use bc_fs::PathError;
use bc_integrity::Origin;
use bc_walk::{ExactPaths, Metadata, Symlinks};

use super::error::{Error, ErrorKind, path_of};
use super::filter::{Filter, filters};
use super::manifest::since_1970;
use super::outcome::{missing, unless_cancelled};
use super::run::{Progress, Run, runs};

/// Copies a file or a tree: as `cp -a`, into `destination` if that is a directory.
///
/// Each file has a temporary name until it is complete and has its metadata, and no existing target
/// is ever replaced unless asked for. At the end there is a manifest of the copy. The parent
/// directory of `destination` has to exist.
///
/// A process that is killed leaves temporary files behind, `.bc-copy.` and more before `.part`. The
/// next copy from the same source to the same destination, of any [paths](CopyJob::paths), resumes
/// with them if it has the same [journal](CopyJob::journal_in): it finishes what it is asked for,
/// removes the other temporary files, and records in its manifest the files that the first had
/// finished.
///
/// With a [filter](CopyJob::filter), its `include` patterns and sizes choose among regular files. Directories
/// (empty ones, too), links and special files are copied unless a pattern excludes them or a
/// directory above them. The files can be listed one by one instead, with
/// [`paths`](CopyJob::paths).
///
/// Two copies to one destination at a time lose no file, and nothing of each other's manifests: a
/// name that the other one has taken is a conflict. A copy from the same source that is already
/// running is detected if both have a [journal](CopyJob::journal_in), and is an error of the kind
/// [`Busy`](crate::ErrorKind::Busy).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # std::fs::write(photos.join("a.jpg"), "picture")?;
/// # let backup = dir.path().join("backup");
/// use bit_crafts::{OnConflict, ReadBack};
///
/// let copied = bit_crafts::copy(&photos, &backup)
///     .on_conflict(OnConflict::Update)
///     .read_back(ReadBack::Read)
///     .run()?
///     .complete()?;
/// assert_eq!((copied.files, copied.copied), (1, 2)); // a file, and the directory counts too
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy<'a>(source: impl AsRef<Path>, destination: impl AsRef<Path>) -> CopyJob<'a> {
    CopyJob {
        options: CopyOptions::new([source], destination),
        paths: None,
        each: Each(None),
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`copy`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct CopyJob<'a> {
    options: CopyOptions,
    paths: Option<Vec<PathBuf>>,
    each: Each<'a>,
    filter: Filter,
    run: Run<'a>,
}

runs!(CopyJob);
filters!(CopyJob);

/// Callback that hears of each entry, if there is one.
struct Each<'a>(Option<Listener<'a>>);

type Listener<'a> = Box<dyn FnMut(CopyStep<'_>) + Send + 'a>;

impl fmt::Debug for Each<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}

impl<'a> CopyJob<'a> {
    /// Calls `callback` with the outcome of each file, link and special file, as it happens and in
    /// no particular order; failures are in [`CopyReport::errors`]. It is called by the threads
    /// that copy, one at a time, so that all wait for one that is slow; it may begin a copy of its
    /// own. After a panic in it, it is not called again, and the copy ends with an error of the
    /// kind [`Panic`](crate::ErrorKind::Panic).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
    /// # std::fs::create_dir(&card)?;
    /// # std::fs::write(card.join("a.jpg"), "picture")?;
    /// use bit_crafts::CopyOutcome;
    ///
    /// let mut new = Vec::new();
    /// bit_crafts::copy(&card, &archive)
    ///     .each(|step| {
    ///         if step.outcome == CopyOutcome::Copied {
    ///             new.push(step.path.to_owned());
    ///         }
    ///     })
    ///     .run()?
    ///     .complete()?;
    /// assert_eq!(new, [archive.join("a.jpg")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn each(mut self, callback: impl FnMut(CopyStep<'_>) + Send + 'a) -> Self {
        self.each = Each(Some(Box::new(callback)));
        self
    }
}

impl CopyJob<'_> {
    /// Copies these as well, each under its name into the destination, which has to be a directory.
    /// One that is not there keeps all from being copied.
    pub fn and_sources<P: AsRef<Path>>(mut self, sources: impl IntoIterator<Item = P>) -> Self {
        let sources = sources.into_iter();
        let sources = sources.map(|path| path.as_ref().as_os_str().to_owned());
        self.options.sources.extend(sources);
        self
    }

    /// Copies these paths below the source and nothing else, each to the same path below the
    /// destination, as [`exactly`](CopyJob::exactly) has it. They are no patterns, and need not be
    /// UTF-8. Directories on the way are made as the source has them; a directory that is named
    /// comes with all its contents. Files that a [`filter`](CopyJob::filter) leaves out are left
    /// out even so.
    ///
    /// A path that is not there when the source is read, or leads through a link, is one of the
    /// [`errors`](CopyReport::errors), once, and is counted as [failed](CopyReport::failed); the
    /// manifest says nothing of it. That goes for all of them, too: then the destination is made, with
    /// nothing in it but its manifest. An empty list copies nothing, and makes nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (card, archive) = (dir.path().join("card"), dir.path().join("archive"));
    /// # std::fs::create_dir_all(card.join("100"))?;
    /// # for name in ["100/a.jpg", "100/b.jpg"] { std::fs::write(card.join(name), name)?; }
    /// bit_crafts::copy(&card, &archive).paths(["100/b.jpg"]).run()?.complete()?;
    /// assert!(archive.join("100/b.jpg").exists() && !archive.join("100/a.jpg").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paths<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned());
        self.paths.get_or_insert_default().extend(paths);
        self.options.target = Target::Exactly;
        self
    }

    /// Takes the destination for the copy itself, whether or not there is a directory.
    pub fn exactly(mut self) -> Self {
        self.options.target = Target::Exactly;
        self
    }

    /// Sets how existing targets are treated; without this a file whose name is taken fails.
    pub fn on_conflict(mut self, what: OnConflict) -> Self {
        self.options.on_conflict = what;
        self
    }

    /// Reads back the written data before the file gets its name.
    pub fn read_back(mut self, how: ReadBack) -> Self {
        self.options.read_back = how;
        self
    }

    /// Sets which data are forced to the disk, and when; without this none are.
    pub fn durability(mut self, when: Durability) -> Self {
        self.options.durability = when;
        self
    }

    /// Takes digests by this algorithm; BLAKE3 is the default.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.options.algorithm = Some(algorithm);
        self
    }

    /// Sets the place of the manifest; the default is [`MANIFEST_NAME`](crate::MANIFEST_NAME) in
    /// the destination.
    ///
    /// An earlier manifest of the same destination is continued. Any other file that is not empty
    /// at a place that is [named](ManifestPlace::File), the manifest of another copy say, is
    /// [refused](crate::ErrorKind::Refused) before anything is copied, unless
    /// [`overwrite_manifest`](CopyJob::overwrite_manifest) is set.
    pub fn manifest(mut self, place: ManifestPlace) -> Self {
        self.options.manifest = place;
        self
    }

    /// Replaces any existing file at the manifest's place, except a file that is copied. A device
    /// or FIFO is written to.
    pub fn overwrite_manifest(mut self) -> Self {
        self.options.replace_manifest = true;
        self
    }

    /// Keeps a journal while it runs, by which the next copy from the same sources to the same
    /// destination resumes an interrupted one, whichever of its files it is asked for.
    ///
    /// The directory is made if it does not exist, for this user alone, and is no part of the
    /// destination: one of the program's own, such as `$XDG_STATE_HOME/name-of-the-program`, serves
    /// for all copies. It contains a key, by which journals are known to be this user's, and below
    /// `copy` a file for each copy that is under way or was interrupted; when a copy is complete
    /// its file is removed. A journal that no copy has resumed for a week is removed, with its
    /// temporary files, by the next copy that has the same directory. Removing the directory while
    /// nothing is being copied costs only the ability to resume.
    pub fn journal_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.options.state = Some(directory.into());
        self
    }

    /// Writes nothing, and counts what would be done.
    pub fn dry_run(mut self) -> Self {
        self.options.dry_run = true;
        self
    }

    /// Checks everything that needs no look at the destination, and fills in the engine's options.
    fn prepare(&mut self) -> Result<(), Error> {
        for source in &self.options.sources {
            let source = Path::new(source);
            let looked = std::fs::symlink_metadata(source);
            looked.map_err(|error| Error::io(source, "stat", &error))?;
        }
        if self.filter.options.symlinks == Symlinks::Follow {
            return Err(Error::usage("links are copied as links, and not followed"));
        }
        let wanted = self.wanted()?;
        let origin = Origin::of_this_machine();
        let options = &mut self.options;
        options.walk = self.filter.to_walk(Metadata::Full)?;
        options.walk.only = wanted.map(|wanted| Arc::new(ExactPaths::new(wanted)));
        options.workers = self.run.workers();
        options.walk_workers = self.run.walkers();
        options.now = since_1970();
        (options.host, options.machine) = (origin.host, origin.machine);
        Ok(())
    }

    /// Returns the paths that are asked for, without dots and doubled slashes.
    fn wanted(&self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let Some(paths) = &self.paths else {
            return Ok(None);
        };
        let [source] = &self.options.sources[..] else {
            return Err(Error::usage("a list of paths is one of a single source"));
        };
        let source = Path::new(source);
        let looked = std::fs::symlink_metadata(source);
        if !looked.is_ok_and(|meta| meta.is_dir()) {
            let text = "is no directory, so there are no paths below it";
            return Err(Error::at(ErrorKind::Usage, source, text));
        }
        let plain = |path: &PathBuf| {
            let mut plain = PathBuf::new();
            for part in path.components() {
                match part {
                    Component::CurDir => {}
                    Component::Normal(name) => plain.push(name),
                    _ => plain.clear(),
                }
            }
            let is_below =
                |part: Component<'_>| matches!(part, Component::CurDir | Component::Normal(_));
            match path.components().all(is_below) && !plain.as_os_str().is_empty() {
                true => Ok(plain.into_os_string().into_encoded_bytes()),
                false => {
                    let text = "is no path below the source";
                    Err(Error::at(ErrorKind::Usage, path, text))
                }
            }
        };
        paths.iter().map(plain).collect::<Result<_, _>>().map(Some)
    }

    /// Runs the job. Failures of single files are in the result.
    ///
    /// # Errors
    /// If the source is not there, or the directory that the destination is to be in; if source and
    /// destination make no sense together; if the manifest would replace something; if another run of
    /// the same copy is at work that has its journal in the same directory; if it was cancelled, which
    /// leaves what is copied where it is; if a worker panicked. A destination in which nothing can be
    /// made is a failure of each path: see [`CopyReport::errors`].
    pub fn run(mut self) -> Result<CopyReport, Error> {
        Run::begin()?;
        self.prepare()?;
        if self.paths.as_ref().is_some_and(Vec::is_empty) {
            return Ok(CopyReport::of_nothing());
        }
        let reported = Mutex::new(Told {
            each: self.each.0.take(),
            ..Told::default()
        });
        let hear = |event: Event<'_>| {
            let mut reported = reported.lock().unwrap_or_else(|poisoned| {
                // The callback has panicked: it hears nothing more.
                let mut reported = poisoned.into_inner();
                reported.each = None;
                reported
            });
            reported.hear(event);
        };
        let progress = CopyProgress::default();
        let known = |of: &AtomicU64| Some(of.load(Relaxed)).filter(|total| *total > 0);
        let now = || Progress {
            files: progress.files.load(Relaxed),
            bytes: progress.bytes.load(Relaxed),
            files_total: known(&progress.files_total),
            bytes_total: known(&progress.bytes_total),
        };
        let mut tell = self.run.report.take();
        let (options, cancel) = (&self.options, &self.run.cancel);
        let copied = Run::watched(&mut tell, now, || {
            bc_copy::copy(options, cancel, &progress, &hear)
        })?;
        let reported = reported.into_inner();
        let reported = reported.unwrap_or_else(|poisoned| poisoned.into_inner());
        // While it walked there was nothing to be left yet.
        let nothing = copied.copied + copied.skipped == 0;
        let cancelled = cancel.is_cancelled() && (copied.left > 0 || nothing);
        let report = CopyReport {
            copied: copied.copied,
            files: copied.files,
            skipped: copied.skipped,
            failed: copied.failed,
            left: copied.left,
            bytes: copied.bytes,
            manifest: copied.manifest.as_deref().map(path_of),
            errors: reported.errors,
            lacking: reported.lacking,
            warnings: reported.warnings,
            cancelled,
            stopped: copied.stopped,
            resumable: copied.resumable,
        };
        unless_cancelled(report, cancelled)
    }
}

/// Events collected while a copy is under way.
#[derive(Default)]
struct Told<'a> {
    each: Option<Listener<'a>>,
    errors: Vec<PathError>,
    lacking: Vec<PathError>,
    warnings: Vec<String>,
}

impl Told<'_> {
    fn hear(&mut self, event: Event<'_>) {
        if let (Some(each), Some(step)) = (&mut self.each, CopyStep::of(&event)) {
            each(step);
        }
        match event {
            Event::Failed(error) => self.errors.push(PathError::from(error)),
            Event::Incomplete(error) => self.lacking.push(PathError::from(error)),
            Event::Warning(text) => self.warnings.push(text.to_owned()),
            _ => {}
        }
    }
}

/// Outcome of one entry of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyStep<'a> {
    /// Its path at the destination.
    pub path: &'a Path,
    /// Result for this entry.
    pub outcome: CopyOutcome,
}

/// Outcomes of an entry that does not fail.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CopyOutcome {
    /// It was copied, or would be, to a name that was free.
    Copied,
    /// It was copied, or would be, and replaced an existing target.
    Replaced,
    /// An earlier run had copied it, and it is unchanged since.
    Before,
    /// The existing target was left: its name was taken.
    Exists,
    /// The existing target was left: it is not older.
    NotNewer,
    /// The existing target was left: it has the same content.
    Same,
    /// An old manifest that was not copied, as that of this copy has its name.
    Manifest,
}

impl<'a> CopyStep<'a> {
    fn of(event: &Event<'a>) -> Option<CopyStep<'a>> {
        let (path, outcome) = match *event {
            Event::Copied(path) => (path, CopyOutcome::Copied),
            Event::Replaced(path) => (path, CopyOutcome::Replaced),
            Event::Skipped(path, Why::Done) => (path, CopyOutcome::Before),
            Event::Skipped(path, Why::NotNewer) => (path, CopyOutcome::NotNewer),
            Event::Skipped(path, Why::Same) => (path, CopyOutcome::Same),
            Event::Skipped(path, Why::Manifest) => (path, CopyOutcome::Manifest),
            Event::Skipped(path, _) => (path, CopyOutcome::Exists),
            _ => return None,
        };
        let path = Path::new(OsStr::from_bytes(path));
        Some(CopyStep { path, outcome })
    }
}

/// Result of a [`copy`] job.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyReport {
    /// Entries copied, by this run or an interrupted one before it: files, directories, links and
    /// special files. A directory counts even if it existed.
    pub copied: u64,
    /// Number of regular files among those copied.
    pub files: u64,
    /// Entries left out because of an existing target.
    pub skipped: u64,
    /// Entries that failed: [`errors`](CopyReport::errors) has the reasons.
    pub failed: u64,
    /// Entries not started.
    pub left: u64,
    /// Bytes written by this run.
    pub bytes: u64,
    /// Path of the manifest. There is none after a dry run, nor where the copy ended early: when it
    /// was cancelled, or the destination took no more ([`stopped`](CopyReport::stopped)).
    pub manifest: Option<PathBuf>,
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
    /// Reason why the rest was not started, where the destination takes no more.
    pub stopped: Option<String>,
    /// True if there is a journal by which the same copy resumes.
    pub resumable: bool,
}

impl CopyReport {
    /// Returns the report of a copy of an empty list of paths.
    fn of_nothing() -> CopyReport {
        CopyReport {
            copied: 0,
            files: 0,
            skipped: 0,
            failed: 0,
            left: 0,
            bytes: 0,
            manifest: None,
            errors: Vec::new(),
            lacking: Vec::new(),
            warnings: Vec::new(),
            cancelled: false,
            stopped: None,
            resumable: false,
        }
    }

    /// Returns true if every entry was copied, or left out because of an existing target.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && !self.cancelled && self.failed == 0 && self.left == 0
    }

    /// Returns the report if nothing is missing.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first thing that is
    /// missing.
    pub fn complete(self) -> Result<CopyReport, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        if self.is_complete() {
            return Ok(self);
        }
        let why = self.stopped.as_deref().unwrap_or("the copy ended early");
        let text = format!("{why}: {} entries are missing", self.left + self.failed);
        Err(Error::incomplete(text, None))
    }
}
