//! A copy of the manifest in the parity directory: without a manifest nothing says what the files were,
//! and it may lie on the same old disk as they do.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use bc_integrity::ManifestFile;
use bc_manifest::compress::Compressor;
use bc_walk::job::Error;

use crate::file::{DirUse, MANIFEST_COPY, ParityDir};

/// Brings the copy up to date with a manifest that was found sound. It is read and compared each time: a
/// copy that has rotted is written again. A file of its name in a directory that was found without parity
/// may be the user's, and is renamed.
///
/// # Errors
/// If the manifest cannot be read, or the copy not written.
pub(crate) fn keep(dir: &ParityDir, manifest: &ManifestFile) -> Result<(), Error> {
    let path = dir.path().join(MANIFEST_COPY);
    let unreadable = |error: io::Error| manifest.unreadable(&error);
    // Other kinds of files are not even opened.
    let is_file = dir.open_regular(MANIFEST_COPY).is_ok();
    if is_file && is_equal(&path, &mut manifest.lines()?).map_err(unreadable)? {
        return Ok(());
    }
    if dir.volumes().is_empty() && !dir.has_index() && dir.has_manifest_copy() {
        dir.set_aside(MANIFEST_COPY)?;
    }
    let failed = |error: io::Error| Error::io(&path, "write", &error);
    let file = dir.create(MANIFEST_COPY)?;
    let mut packed = Compressor::new(file.file()).map_err(failed)?;
    let mut lines = manifest.lines()?;
    loop {
        let bytes = lines.fill_buf().map_err(unreadable)?;
        let count = bytes.len();
        if count == 0 {
            break;
        }
        packed.write_all(bytes).map_err(failed)?;
        lines.consume(count);
    }
    packed.finish().map_err(failed)?;
    dir.commit(MANIFEST_COPY, file)
}

/// True if the copy has the same bytes. One that cannot be read has not.
fn is_equal(path: &Path, lines: &mut dyn BufRead) -> io::Result<bool> {
    let copy = ManifestFile::open(path);
    let Ok(mut copy) = copy
        .as_ref()
        .map_err(drop)
        .and_then(|copy| copy.lines().map_err(drop))
    else {
        return Ok(false);
    };
    loop {
        let wanted = lines.fill_buf()?;
        let Ok(there) = copy.fill_buf() else {
            return Ok(false);
        };
        let count = wanted.len().min(there.len());
        if count == 0 || wanted[..count] != there[..count] {
            return Ok(wanted.is_empty() && there.is_empty());
        }
        lines.consume(count);
        copy.consume(count);
    }
}

/// Returns the copy of a manifest in its parity directory, if there is one that is sound to its end.
pub fn manifest_copy(dir: &Path) -> Option<PathBuf> {
    let dir = ParityDir::open(dir, DirUse::Look).ok()??;
    checked(&dir).ok()
}

/// Returns the error of a copy that is not there, or not sound to its end.
pub(crate) fn damage(dir: &ParityDir) -> Option<Error> {
    checked(dir).err()
}

fn checked(dir: &ParityDir) -> Result<PathBuf, Error> {
    dir.open_regular(MANIFEST_COPY)?;
    let path = dir.path().join(MANIFEST_COPY);
    let copy = ManifestFile::open(&path)?;
    copy.check().map(|()| path)
}
