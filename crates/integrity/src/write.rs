//! A manifest written to its file, which is never replaced unasked.

use std::fs::metadata;
use std::io::{BufWriter, Write};
use std::path::Path;

use bc_edit::atomic::Uncommitted;
use bc_edit::output::{OutputFile, takes_at_once};
use bc_fs::PathError;
use bc_manifest::integrity::Header;
use bc_walk::job::{Error, ErrorKind, Means, Setting, path_of};
use bc_walk::{OwnFile, is_among};

use crate::create::{CreateOptions, Overwrite, create};
use crate::input::ManifestFile;
use crate::job::working;
use crate::place::Origin;

impl CreateOptions<'_> {
    /// Writes the manifest to this file, which appears whole, or stays as it was. The file itself
    /// is left out of the record.
    ///
    /// An existing file that is not empty is [refused](ErrorKind::Refused), unless it may be
    /// [overwritten](Overwrite::Always); an [update](crate::UpdateOptions) brings it up to date. A
    /// device, FIFO or descriptor of this process is never replaced: it is written to, as
    /// [`write_to`](CreateOptions::write_to) does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # std::fs::write(photos.join("a.jpg"), "picture")?;
    /// # let file = dir.path().join("photos.jsonl");
    /// use bc_integrity::CreateOptions;
    /// use bc_walk::job::{ErrorKind, Means};
    ///
    /// let record = CreateOptions::new(&photos, bc_digest::Algorithm::Blake3);
    /// let written = record.run_to(&file, &Means::new())?.complete()?;
    /// assert_eq!(written.files, 1);
    /// let again = record.run_to(&file, &Means::new()).unwrap_err();
    /// assert_eq!(again.kind(), ErrorKind::Refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the root is not there or cannot be read at all, a pattern is wrong or the file is there or
    /// cannot be written; if the job was cancelled. Single files that could not be read are in the
    /// result, and in the manifest.
    pub fn run_to(
        &self,
        file: impl AsRef<Path>,
        means: &Means<'_>,
    ) -> Result<WrittenManifest, Error> {
        let path = file.as_ref();
        let (overwrites, root) = (self.overwrite == Overwrite::Always, Path::new(self.root));
        if !overwrites {
            refuse_existing(path, root)?;
        }
        let failed = |failed: Uncommitted| Error::io(path, failed.operation, &failed.error);
        let is_stream = takes_at_once(path);
        let own: Vec<OwnFile> = match is_stream {
            true => Vec::new(),
            false => OwnFile::at(path).into_iter().collect(),
        };
        if overwrites && let Some(own) = own.first() {
            self.refuse_recorded(path, own, means)?;
        }
        let is_cancelled = || means.cancelled_by().is_cancelled();
        let target = OutputFile::create(path, is_cancelled).map_err(failed)?;
        let mut leave_out = own;
        if let Some(new) = target.pending() {
            new.only_owner_writes();
            let own = OwnFile::of(new.file());
            leave_out.push(own.map_err(|error| Error::io(path, "stat", &error))?);
        }
        let mut out = BufWriter::new(target.file());
        let (flushed, written) = self.record(&mut out, leave_out, means)?;
        flushed
            .flush()
            .map_err(|error| Error::io(path, "write", &error))?;
        drop(out);
        if !overwrites && !is_stream {
            // The file there now may be another than at the start.
            refuse_existing(path, root)?;
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
                refuse_existing(path, root)?;
                Err(failed(not))
            }
            committed => committed.map_err(failed),
        }?;
        Ok(written)
    }

    /// Refuses to replace a file of the tree that is no manifest: it is a part of the record.
    fn refuse_recorded(&self, path: &Path, own: &OwnFile, means: &Means<'_>) -> Result<(), Error> {
        let is_list = |path: &Path| {
            let is_empty = metadata(path).is_ok_and(|meta| meta.len() == 0);
            is_empty || ManifestFile::open(path).is_ok_and(|file| file.header().is_ok())
        };
        if is_list(path) {
            return Ok(());
        }
        let (roots, symlinks) = ([self.root], self.tree.symlinks);
        let among = is_among(&roots, own, symlinks, means.workers(), means.cancelled_by());
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
    /// As of [`run_to`](CreateOptions::run_to).
    pub fn write_to<W: Write>(
        &self,
        out: W,
        means: &Means<'_>,
    ) -> Result<(W, WrittenManifest), Error> {
        self.record(out, Vec::new(), means)
    }

    /// Records the tree; the header has the present and this machine, where the options have
    /// neither.
    fn record<W: Write>(
        &self,
        out: W,
        own: Vec<OwnFile>,
        means: &Means<'_>,
    ) -> Result<(W, WrittenManifest), Error> {
        let root = Path::new(self.root);
        metadata(root).map_err(|error| Error::io(root, "stat", &error))?;
        self.tree.to_walk()?.check()?;
        let mut what = self.clone();
        if what.created_at == 0 {
            what.created_at = bc_fs::known::now_ns();
        }
        if what.origin == Origin::UNKNOWN {
            what.origin = Origin::of_this_machine();
        }
        what.leave_out.extend(own);
        let mut errors = Vec::new();
        let mut on_failure = |path: &[u8], failure: &bc_manifest::Failure| {
            let path = match path {
                b"." => root.to_owned(),
                _ => root.join(path_of(path)),
            };
            let (operation, reason) = (&*failure.op, &*failure.message);
            let error = PathError::with_reason(path, operation, failure.errno, reason);
            errors.push(error);
        };
        let (out, created) = working(means, |work| create(&what, work, out, &mut on_failure))?;
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
    let Ok(meta) = metadata(path) else {
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

/// Result of [writing](CreateOptions::run_to) a manifest.
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

bc_walk::says_what_is_missing!(WrittenManifest);
