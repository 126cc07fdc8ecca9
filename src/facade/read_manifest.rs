//! `read_manifest`: the contents of a manifest, without the tree.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bc_digest::{Algorithm, Digest};
use bc_fs::PathError;
use bc_integrity::ManifestFile;
use bc_manifest::integrity::{Entry, Kind};
use bc_walk::FileKind;

use super::error::{Error, of_failure, path_of};
use super::walk::time;

/// Opens a [manifest](crate::manifest), compressed or not, and proves that nothing of it was lost or
/// changed.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # std::fs::write(dir.path().join("a.jpg"), "picture")?;
/// # let file = dir.path().join("m.jsonl");
/// # let _ = bit_crafts::manifest(dir.path()).write(&file)?;
/// for entry in bit_crafts::read_manifest(&file)?.entries()? {
///     let entry = entry?;
///     println!("{}: {:?}", entry.path.display(), entry.digest);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If it cannot be read, is cut short or altered, or is no manifest of that kind. Checksum files are
/// read by [`check`](crate::check).
pub fn read_manifest(file: impl AsRef<Path>) -> Result<RecordedTree, Error> {
    let file = ManifestFile::open(file)?;
    file.check()?;
    let header = file.header()?;
    Ok(RecordedTree {
        root: header.root.as_deref().map(path_of),
        host: header.host,
        created_at: header.created_at,
        algorithm: file.algorithm()?,
        file,
    })
}

/// A tree as it was recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedTree {
    /// Path of the tree when it was recorded, if the manifest has one.
    pub root: Option<PathBuf>,
    /// Name of the host that recorded it.
    pub host: Option<String>,
    /// Time of the recording, as RFC 3339 has it, in UTC.
    pub created_at: Option<String>,
    /// The algorithm of the digests.
    pub algorithm: Algorithm,
    file: ManifestFile,
}

impl RecordedTree {
    /// Returns all entries in order of their paths, read one by one as they are asked for.
    ///
    /// # Errors
    /// If the file was changed since it was opened, or cannot be read any more.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<RecordedEntry, Error>> + '_, Error> {
        let entries = self.file.entries()?;
        Ok(entries.map(|entry| Ok(RecordedEntry::from(entry?))))
    }
}

/// An entry of a tree as it was recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RecordedEntry {
    /// Path below the root; `.` is the root.
    pub path: PathBuf,
    /// Kind of the entry.
    pub kind: FileKind,
    /// Size in bytes, where it is known.
    pub size: Option<u64>,
    /// Time of the last change to its content, where it is known.
    pub modified: Option<SystemTime>,
    /// Digest of a file's content.
    pub digest: Option<Digest>,
    /// Target of a symbolic link.
    pub target: Option<PathBuf>,
    /// Reason why some of it could not be read.
    pub error: Option<PathError>,
}

impl From<Entry> for RecordedEntry {
    fn from(entry: Entry) -> RecordedEntry {
        let path = path_of(&entry.path);
        let error = entry.error.as_ref();
        RecordedEntry {
            kind: match entry.kind {
                Kind::File => FileKind::File,
                Kind::Dir => FileKind::Dir,
                Kind::Symlink => FileKind::Symlink,
                Kind::Fifo => FileKind::Fifo,
                Kind::Socket => FileKind::Socket,
                Kind::Block => FileKind::Block,
                Kind::Char => FileKind::Char,
            },
            size: entry.size(),
            modified: entry.meta.map(|meta| time(meta.mtime_ns)),
            digest: entry.digest,
            target: entry.target.as_deref().map(path_of),
            error: error.map(|failure| of_failure(path.clone(), failure)),
            path,
        }
    }
}
