//! `manifest`: a tree written down.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::Algorithm;
use bc_edit::atomic::Uncommitted;
use bc_edit::output::{OutputFile, takes_at_once};
use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_integrity::{
    CreateOptions, Created, Job, ManifestFile, Origin, Reading, Setting, TreeOptions, Work,
    XattrPolicy, create,
};
use bc_manifest::integrity::Header;
use bc_walk::{Metadata, OwnFile, is_among};

use super::error::{Error, ErrorKind, of_failure, path_of};
use super::filter::{Filter, filters};
use super::outcome::says_what_is_missing;
use super::run::{Progress, Run, runs};
use super::walk::refuse_missing;

/// Records a tree: content and metadata of everything in it, for [`verify`](crate::verify) to compare
/// with one day.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # std::fs::write(photos.join("a.jpg"), "picture")?;
/// # let file = dir.path().join("photos.jsonl");
/// let written = bit_crafts::manifest(&photos).write(&file)?.complete()?;
/// assert_eq!(written.files, 1);
/// assert!(bit_crafts::verify(&photos, &file).run()?.is_same());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn manifest<'a>(root: impl AsRef<Path>) -> ManifestJob<'a> {
    ManifestJob {
        root: root.as_ref().to_owned(),
        algorithm: Algorithm::Blake3,
        xattrs: XattrPolicy::Skip,
        overwrites: false,
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// Options of a [`manifest`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `write`"]
pub struct ManifestJob<'a> {
    root: PathBuf,
    algorithm: Algorithm,
    xattrs: XattrPolicy,
    overwrites: bool,
    filter: Filter,
    run: Run<'a>,
}

runs!(ManifestJob);
filters!(ManifestJob);

impl ManifestJob<'_> {
    /// Records digests by this algorithm; BLAKE3 is the default.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Records extended attributes too: access control lists and capabilities among them.
    pub fn xattrs(mut self) -> Self {
        self.xattrs = XattrPolicy::Record;
        self
    }

    /// Replaces any existing file at the manifest's place, except a file of the tree that is
    /// recorded and is no manifest.
    ///
    /// Not a way to keep a manifest up to date: all files get the digests that they have now, also
    /// those that were damaged since, and no later run would report it. [`update`](crate::update)
    /// is for that.
    pub fn overwrite(mut self) -> Self {
        self.overwrites = true;
        self
    }

    /// Writes the manifest to this file, which appears whole, or stays as it was. The file itself
    /// is left out of the record.
    ///
    /// An existing file that is not empty is [refused](crate::ErrorKind::Refused): an earlier
    /// manifest of the tree is the only record of what the files were.
    /// [`overwrite`](ManifestJob::overwrite) replaces it, [`update`](crate::update) brings it up to
    /// date. A device, FIFO or descriptor of this process is never replaced: it is written to, as
    /// [`write_to`](ManifestJob::write_to) does.
    ///
    /// # Errors
    /// If the root is not there or cannot be read at all, a pattern is wrong or the file is there or
    /// cannot be written; if the job was cancelled. Single files that could not be read are in the
    /// result, and in the manifest.
    pub fn write(self, file: impl AsRef<Path>) -> Result<WrittenManifest, Error> {
        let path = file.as_ref();
        let (overwrites, root) = (self.overwrites, self.root.clone());
        if !overwrites {
            refuse_existing(path, &root)?;
        }
        let failed = |failed: Uncommitted| Error::io(path, failed.operation, &failed.error);
        let is_stream = takes_at_once(path);
        let own: Vec<OwnFile> = match is_stream {
            true => Vec::new(),
            false => OwnFile::at(path).into_iter().collect(),
        };
        if overwrites && let Some(own) = own.first() {
            self.refuse_recorded(path, own)?;
        }
        let is_cancelled = || self.run.cancel.is_cancelled();
        let target = OutputFile::create(path, is_cancelled).map_err(failed)?;
        let mut leave_out = own;
        if let Some(new) = target.pending() {
            new.only_owner_writes();
            let own = OwnFile::of(new.file());
            leave_out.push(own.map_err(|error| Error::io(path, "stat", &error))?);
        }
        let mut out = BufWriter::new(target.file());
        let (flushed, written) = self.record(&mut out, leave_out)?;
        flushed
            .flush()
            .map_err(|error| Error::io(path, "write", &error))?;
        drop(out);
        if !overwrites && !is_stream {
            // The file there now may be another than at the start.
            refuse_existing(path, &root)?;
        }
        let committed = target.end(|target| match overwrites {
            true => target.commit(),
            // An empty file may be replaced, which no link does.
            false if path.exists() => target.commit(),
            false => target.commit_new(),
        });
        match committed {
            // Another program has written one meanwhile.
            Err(not) if not.error.kind() == std::io::ErrorKind::AlreadyExists => {
                refuse_existing(path, &root)?;
                Err(failed(not))
            }
            committed => committed.map_err(failed),
        }?;
        Ok(written)
    }

    /// Refuses to replace a file of the tree that is no manifest: it is a part of the record.
    fn refuse_recorded(&self, path: &Path, own: &OwnFile) -> Result<(), Error> {
        let is_list = |path: &Path| {
            let is_empty = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
            is_empty || ManifestFile::open(path).is_ok_and(|file| file.header().is_ok())
        };
        if is_list(path) {
            return Ok(());
        }
        let roots = [self.root.as_os_str()];
        let symlinks = self.filter.options.symlinks;
        let among = is_among(&roots, own, symlinks, self.run.walkers(), &self.run.cancel);
        match among.unwrap_or(true) {
            true => {
                let text = "is a file of the tree that is recorded, and no manifest: name another";
                Err(Error::at(ErrorKind::Refused, path, text))
            }
            false => Ok(()),
        }
    }

    /// Writes it to `out`, which is given back. After an error it holds half a manifest, which nothing
    /// takes for a whole one.
    ///
    /// # Errors
    /// As of [`write`](ManifestJob::write).
    pub fn write_to<W: Write>(self, out: W) -> Result<(W, WrittenManifest), Error> {
        self.record(out, Vec::new())
    }

    fn record<W: Write>(
        mut self,
        out: W,
        leave_out: Vec<OwnFile>,
    ) -> Result<(W, WrittenManifest), Error> {
        Run::begin()?;
        refuse_missing([&self.root])?;
        // Patterns and sizes are checked there.
        let walk = self.filter.to_walk(Metadata::Full)?;
        let mut what = CreateOptions::new(&self.root, self.algorithm);
        what.tree = TreeOptions::of_walk(&walk);
        what.tree.include.clone_from(&self.filter.include);
        what.tree.exclude.clone_from(&self.filter.exclude);
        what.tree.xattrs = self.xattrs;
        what.created_at = since_1970();
        what.origin = Origin::of_this_machine();
        what.leave_out = leave_out;
        let mut errors = Vec::new();
        let mut on_failure = |path: &[u8], failure: &bc_manifest::Failure| {
            let path = below(&self.root, path);
            errors.push(of_failure(path, failure));
        };
        let mut report = self.run.report.take();
        let made = working(&self.run, &mut report, |work| {
            Ok(create(&what, work, out, &mut on_failure)?)
        });
        let (out, created): (W, Created) = made?;
        let trailer = &created.trailer;
        let written = WrittenManifest {
            entries: trailer.entries,
            files: trailer.files,
            bytes: trailer.bytes,
            errors,
        };
        Ok((out, written))
    }
}

/// Refuses to replace an existing file that is not empty, an earlier manifest of this tree least of
/// all.
fn refuse_existing(path: &Path, root: &Path) -> Result<(), Error> {
    // A file that cannot be looked at cannot be written to either, and that error says why.
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(());
    };
    if !meta.is_file() || meta.len() == 0 {
        return Ok(());
    }
    let header = ManifestFile::open(path).and_then(|file| file.header());
    let text = match header {
        Err(_) => "is there already, and is no manifest: `overwrite` replaces it",
        Ok(header) if is_of(&header, root) => {
            "is the manifest of this tree, and knows what was damaged since: `update` brings it up \
             to date, `verify` compares, `overwrite` begins anew"
        }
        Ok(_) => "is the manifest of another tree: `overwrite` replaces it",
    };
    let error = Error::at(ErrorKind::Refused, path, text);
    Err(error.unless(Some(Setting::Overwrite)))
}

/// Returns true if the manifest's header records this root.
fn is_of(header: &Header, root: &Path) -> bool {
    let real = std::fs::canonicalize(root).ok();
    let recorded = header.root.as_deref().map(path_of);
    real.is_some() && real == recorded
}

/// Joins `root`, as it was named, with a path below it; `.` is the root itself.
pub(crate) fn below(root: &Path, path: &[u8]) -> PathBuf {
    match path {
        b"." => root.to_owned(),
        _ => root.join(path_of(path)),
    }
}

/// Runs `work` with the means to work through a tree.
pub(crate) fn working<T>(
    run: &Run<'_>,
    report: &mut Option<Box<dyn FnMut(Progress) + Send + '_>>,
    work: impl FnOnce(&Work<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let progress = HashProgress::default();
    let totals = [AtomicU64::new(0), AtomicU64::new(0)];
    let known = |of: &AtomicU64| Some(of.load(Relaxed)).filter(|total| *total > 0);
    let now = || Progress {
        files: progress.files.load(Relaxed),
        bytes: progress.bytes.load(Relaxed),
        files_total: known(&totals[0]),
        bytes_total: known(&totals[1]),
    };
    let shows_bytes = report.is_some();
    let reading = |job: Job| {
        totals[0].store(job.files, Relaxed);
        totals[1].store(job.bytes.unwrap_or(0), Relaxed);
        let mut reading = Reading::new(run.workers());
        reading.start = run.start();
        reading.read = run.reading();
        Ok(reading)
    };
    let mut means = Work::new(run.walkers(), &reading, &run.cancel, &progress);
    means.shows_bytes = shows_bytes;
    Run::watched(report, now, || work(&means))
}

/// Returns the present in nanoseconds since 1970.
pub(crate) fn since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

/// Result of a [`manifest`] job.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WrittenManifest {
    /// Entries: files, directories, links and special files.
    pub entries: u64,
    /// Files with a digest.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Paths that could not be read. The manifest lists them too.
    pub errors: Vec<PathError>,
}

says_what_is_missing!(WrittenManifest);
