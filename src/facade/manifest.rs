//! `manifest`: a tree written down.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use bc_digest::{Algorithm, CpuFeatures};
use bc_fs::atomic::{AtomicFile, Uncommitted};
use bc_hash::HashProgress;
use bc_integrity::{
    CreateOptions, Created, Job, Origin, Reading, TreeOptions, Work, XattrPolicy, create,
};
use bc_walk::{Entries, Metadata, OwnFile};

use super::error::{Error, PathError, path_of};
use super::filter::{Filter, filters};
use super::outcome::says_what_is_missing;
use super::run::{Progress, Run, runs};

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
        filter: Filter::default(),
        run: Run::default(),
    }
}

/// What [`manifest`] is to do.
#[derive(Debug)]
#[must_use = "nothing is done before `write`"]
pub struct ManifestJob<'a> {
    root: PathBuf,
    algorithm: Algorithm,
    xattrs: XattrPolicy,
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

    /// Writes it to this file, which appears whole, or stays as it was. In the tree that is recorded
    /// the file is left out.
    ///
    /// # Errors
    /// If the root cannot be read at all, a pattern is wrong or the file cannot be written; if the job
    /// was cancelled. Single files that could not be read are in the result, and in the manifest.
    pub fn write(self, file: impl AsRef<Path>) -> Result<WrittenManifest, Error> {
        let path = file.as_ref();
        let failed = |operation: &'static str| {
            move |error: std::io::Error| Error::io(path, operation, &error)
        };
        let own: Vec<OwnFile> = OwnFile::at(path).into_iter().collect();
        let target = AtomicFile::create(path).map_err(failed("create"))?;
        target.only_owner_writes();
        let mut leave_out = own;
        leave_out.push(OwnFile::of(target.file()).map_err(failed("stat"))?);
        let (_, written) = self.record(BufWriter::new(target.file()), leave_out)?;
        let uncommitted = |failed: Uncommitted| Error::io(path, failed.operation, &failed.error);
        target.commit().map_err(uncommitted)?;
        Ok(written)
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
        // Patterns and sizes are checked there.
        let walk = self.filter.to_walk(Metadata::Full)?;
        let what = CreateOptions {
            root: self.root.as_os_str(),
            tree: TreeOptions {
                hidden: walk.hidden,
                symlinks: walk.symlinks,
                file_systems: walk.file_systems,
                max_depth: walk.max_depth,
                include: self.filter.include.clone(),
                exclude: self.filter.exclude.clone(),
                min_size: walk.min_size,
                max_size: walk.max_size,
                ignore_files: walk.ignore_files,
                entries: Entries::All,
                xattrs: self.xattrs,
            },
            algorithm: self.algorithm,
            created_at: since_1970(),
            origin: Origin::of_this_machine(),
            shard: None,
            leave_out,
        };
        let mut errors = Vec::new();
        let mut on_failure = |path: &[u8], failure: &bc_manifest::Failure| {
            let path = below(&self.root, path);
            errors.push(PathError::of_failure(path, failure));
        };
        let mut tell = self.run.tell.take();
        let made = working(&self.run, &mut tell, |work| {
            Ok(create(&what, work, out, &mut on_failure)?)
        });
        let (out, created): (W, Created) = made?;
        let trailer = &created.trailer;
        let written = WrittenManifest {
            entries: trailer.entries,
            files: trailer.files,
            bytes: trailer.bytes,
            errors,
            // Half a manifest is none, so that is an error.
            cancelled: false,
        };
        Ok((out, written))
    }
}

/// A path below `root`, as it is named there.
pub(crate) fn below(root: &Path, path: &[u8]) -> PathBuf {
    match path {
        b"." => root.to_owned(),
        _ => root.join(path_of(path)),
    }
}

/// Runs `work` with the means to work through a tree.
pub(crate) fn working<T>(
    run: &Run<'_>,
    tell: &mut Option<Box<dyn FnMut(Progress) + Send + '_>>,
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
    let shows_bytes = tell.is_some();
    let reading = |job: Job| {
        totals[0].store(job.files, Relaxed);
        totals[1].store(job.bytes.unwrap_or(0), Relaxed);
        Ok(Reading {
            workers: run.workers(),
            start: run.start(),
            read: bc_read::ReadOptions::default(),
        })
    };
    let means = Work {
        walk_workers: run.walkers(),
        reading: &reading,
        cpu: CpuFeatures::detect(),
        cancel: &run.cancel,
        shows_bytes,
        progress: &progress,
        observer: None,
    };
    Run::watched(tell, now, || work(&means))
}

/// The present in nanoseconds since 1970.
pub(crate) fn since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

/// What was recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WrittenManifest {
    /// Entries: files, directories, links and special files.
    pub entries: u64,
    /// Files with a digest.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be read. The manifest says so too.
    pub errors: Vec<PathError>,
    /// Never: a manifest that was cancelled is an error.
    pub(crate) cancelled: bool,
}

says_what_is_missing!(WrittenManifest);
