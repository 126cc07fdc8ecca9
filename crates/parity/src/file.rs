//! Files of a parity directory: volumes and the index, found, read, judged and written.
//!
//! What lies there may have been put there by anybody: volumes are regular files, opened by the
//! directory's descriptor and through no link, and their headers are checked by `format`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_edit::atomic::{AtomicFile, Uncommitted};
use bc_edit::{Locked, content, entry, journal};
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, raw_stat, stat};
use bc_walk::job::{Error, ErrorKind};
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::format::{
    BadVolume, HEAD, MAGIC, SHORT, STORED_BLOCK, VolumeHead, VolumeHeader, VolumeLayout,
};
use crate::format::{placed_digest, read_header};

/// Ending of the names of volumes.
const ENDING: &str = ".bcp";

/// Name of the index.
pub(crate) const INDEX: &str = "index.jsonl";

/// Use that is made of a parity directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DirUse {
    /// It is read; others may read it, too.
    Read,
    /// Volumes are written and removed, by this run alone; the directory is made where it is missing.
    Write,
}

/// A parity directory, held open and locked.
pub(crate) struct ParityDir {
    path: PathBuf,
    /// Open for reading; the lock is on it.
    held: Locked,
}

impl ParityDir {
    /// Opens a directory; `None` if there is none and it is only read.
    ///
    /// # Errors
    /// If it cannot be opened or made, or another run writes to it.
    pub(crate) fn open(path: &Path, used: DirUse) -> Result<Option<ParityDir>, Error> {
        let failed = |call: FailedCall| Error::io(path, call.op, &call.into());
        if used == DirUse::Write {
            entry::make_dirs(path, 0o700).map_err(failed)?;
        }
        let place = match dirfd::open_root(path.as_os_str().as_encoded_bytes()) {
            Err(call) if call.errno == Errno::NOENT && used == DirUse::Read => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let dir = File::from(dirfd::relist(place).map_err(failed)?);
        let held = match Locked::new(dir, used == DirUse::Read) {
            Ok(held) => held,
            Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => {
                let text = "another run is at work in this parity directory";
                return Err(Error::at(ErrorKind::Busy, path, text));
            }
            // No locks on this file system.
            Err((_, dir)) => Locked::unheld(dir),
        };
        let path = path.to_owned();
        Ok(Some(ParityDir { path, held }))
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// Returns the path of a volume.
    pub(crate) fn volume_path(&self, id: u64) -> PathBuf {
        self.path.join(volume_name(id))
    }

    /// Refuses a directory that others may have written to: contents whose digest can be forged
    /// could be theirs.
    ///
    /// # Errors
    /// If it belongs to another user, or others may write to it.
    pub(crate) fn refuse_others(&self) -> Result<(), Error> {
        let stat =
            raw_stat(self.fd()).map_err(|call| Error::io(&self.path, call.op, &call.into()))?;
        let own = rustix::process::geteuid().as_raw();
        if stat.st_uid == own && stat.st_mode & 0o022 == 0 {
            return Ok(());
        }
        let text = "belongs to another user, or others may write to it, and digests of this \
                    algorithm can be forged: content from here would not be proven";
        Err(Error::at(ErrorKind::Refused, &self.path, text))
    }

    /// Returns the numbers of the volumes, in order.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub(crate) fn volumes(&self) -> Result<Vec<u64>, Error> {
        let failed = |errno: Errno| Error::io(&self.path, "read directory", &errno.into());
        let listed = dirfd::relist(self.fd()).map_err(|call| failed(call.errno))?;
        let mut volumes = Vec::new();
        for entry in Dir::new(listed).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            volumes.extend(entry.file_name().to_str().ok().and_then(volume_of));
        }
        volumes.sort_unstable();
        Ok(volumes)
    }

    /// Opens a volume and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, is no regular file, or its header is not sound.
    pub(crate) fn read(&self, id: u64) -> Result<ParityFile, Error> {
        let path = self.volume_path(id);
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        let name = dirfd::name(volume_name(id).as_bytes()).map_err(failed)?;
        let file = dirfd::open_file(self.fd(), &name, Access::Read).map_err(failed)?;
        let stat = stat(&file).map_err(failed)?;
        if stat.kind() != FileKind::File {
            return Err(bad(&path, BadVolume("is no regular file")));
        }
        let read = ParityFile::read(file, stat.stamp.size);
        let read = read.map_err(|error| Error::io(&path, "read", &error))?;
        let read = read.map_err(|why| bad(&path, why))?;
        match read.header.id == id {
            true => Ok(read),
            false => Err(bad(&path, BadVolume("it is another volume by its header"))),
        }
    }

    /// Refuses a volume that another user may have written: as [`refuse_others`](Self::refuse_others).
    ///
    /// # Errors
    /// If it is another user's, others may write to it, or it has names elsewhere.
    pub(crate) fn refuse_volume_of_others(&self, file: &ParityFile) -> Result<(), Error> {
        let path = self.volume_path(file.header.id);
        let failed = |error: io::Error| Error::io(&path, "stat", &error);
        let copy = file.file.try_clone().map_err(failed)?;
        let checked = journal::check(&File::from(copy)).map_err(failed)?;
        let nlink = stat(&file.file)
            .map_err(|call| Error::io(&path, call.op, &call.into()))?
            .nlink;
        match checked {
            Err(why) => Err(Error::at(ErrorKind::Refused, &path, why.to_string())),
            Ok(()) if nlink > 1 => {
                Err(Error::at(ErrorKind::Refused, &path, "has other names, too"))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Removes a volume.
    ///
    /// # Errors
    /// Those of `unlinkat`.
    pub(crate) fn remove(&self, id: u64) -> Result<(), Error> {
        let name = volume_name(id);
        entry::unlink(self.fd(), &*name)
            .map_err(|call| Error::io(&self.volume_path(id), call.op, &call.into()))
    }

    /// Makes removals durable.
    ///
    /// # Errors
    /// Those of `fsync`.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        content::sync_dir(self.fd()).map_err(|call| Error::io(&self.path, call.op, &call.into()))
    }

    /// Starts a file of this name, which appears whole or not at all.
    ///
    /// # Errors
    /// Those of creating it.
    pub(crate) fn create(&self, name: &str) -> Result<AtomicFile, Error> {
        let path = self.path.join(name);
        let file = AtomicFile::create(&path).map_err(|error| Error::io(&path, "create", &error))?;
        file.only_owner_writes();
        Ok(file)
    }

    /// Gives a file its name.
    ///
    /// # Errors
    /// Those of storing and naming it: a volume replaces nothing.
    pub(crate) fn commit(&self, name: &str, file: AtomicFile) -> Result<(), Error> {
        let committed = match name {
            INDEX => file.commit(),
            _ => file.commit_new(),
        };
        committed.map_err(|Uncommitted { operation, error }| {
            Error::io(&self.path.join(name), operation, &error)
        })
    }
}

fn bad(path: &Path, why: BadVolume) -> Error {
    Error::at(ErrorKind::Manifest, path, why.0)
}

/// Returns the name of a volume.
pub(crate) fn volume_name(id: u64) -> String {
    format!("{id:06}{ENDING}")
}

fn volume_of(name: &str) -> Option<u64> {
    let id = name.strip_suffix(ENDING)?.parse().ok()?;
    (volume_name(id) == name && id > 0).then_some(id)
}

/// Returns the parity directory of a manifest: its path without the extensions, and `.parity`.
pub fn default_dir(manifest: &Path) -> PathBuf {
    let name = manifest.file_name().unwrap_or_default().as_encoded_bytes();
    // A dot at the beginning starts no extension.
    let dot = name.iter().skip(1).position(|byte| *byte == b'.');
    let stem = &name[..dot.map_or(name.len(), |dot| dot + 1)];
    manifest.with_file_name(OsString::from_vec([stem, b".parity"].concat()))
}

/// Refuses algorithms whose digests identify no content: under 128 bits.
///
/// # Errors
/// For such algorithms.
pub(crate) fn check_algorithm(algorithm: Algorithm, manifest: &Path) -> Result<(), Error> {
    match algorithm.digest_len() {
        ..16 => {
            let text = format!(
                "its digests ({}) are shorter than 128 bits: too short to prove content by",
                algorithm.name()
            );
            Err(Error::at(ErrorKind::Usage, manifest, text))
        }
        _ => Ok(()),
    }
}

/// True for algorithms of which two contents with one digest can be made.
pub(crate) fn is_forgeable(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::Md5 | Algorithm::Sha1 | Algorithm::Xxh128
    )
}

/// A volume, open, with its header.
pub(crate) struct ParityFile {
    file: OwnedFd,
    len: u64,
    layout: VolumeLayout,
    /// Its header.
    pub header: VolumeHeader,
}

impl ParityFile {
    fn read(file: OwnedFd, len: u64) -> io::Result<Result<ParityFile, BadVolume>> {
        let read_at = |to: &mut [u8], offset| Ok(dirfd::read_at(&file, to, offset)?);
        let mut why = BadVolume("has no head of a volume that is whole");
        let mut seen: Vec<VolumeHead> = Vec::new();
        let ends = [Some(0), len.checked_sub(HEAD as u64)];
        for offset in ends.into_iter().flatten() {
            let mut bytes = [0; HEAD];
            read_at(&mut bytes, offset)?;
            match VolumeHead::from_bytes(&bytes) {
                Some(Ok(head)) if !seen.contains(&head) => seen.push(head),
                Some(Err(bad)) => why = bad,
                _ => {}
            }
        }
        for head in &seen {
            match read_header(head, len, read_at)? {
                Ok(header) => return Ok(Ok(ParityFile::of(file, len, head, header))),
                Err(bad) => why = bad,
            }
        }
        // Both ends are damaged, or say nothing that holds: the copy in the middle is looked for.
        for head in heads_in(len, read_at)? {
            if seen.contains(&head) {
                continue;
            }
            match read_header(&head, len, read_at)? {
                Ok(header) => return Ok(Ok(ParityFile::of(file, len, &head, header))),
                Err(bad) => why = bad,
            }
            seen.push(head);
        }
        Ok(Err(why))
    }

    fn of(file: OwnedFd, len: u64, head: &VolumeHead, header: VolumeHeader) -> ParityFile {
        let layout = head.layout();
        ParityFile {
            file,
            len,
            layout,
            header,
        }
    }

    /// Returns the number of parity blocks that lie within the file, be they good or not.
    pub(crate) fn present(&self) -> usize {
        let is_within =
            |number: &usize| self.layout.parity(*number) + STORED_BLOCK as u64 <= self.len;
        (0..self.header.parity).filter(is_within).count()
    }

    /// Reads all of a parity block; false if it is damaged.
    ///
    /// # Errors
    /// None: what cannot be read is lost.
    pub(crate) fn is_good(&self, number: usize, buffer: &mut Vec<u8>) -> bool {
        buffer.resize(STORED_BLOCK, 0);
        let count = dirfd::read_at(&self.file, buffer, self.layout.parity(number));
        let (digest, block) = buffer.split_at(SHORT);
        count.is_ok_and(|count| count == STORED_BLOCK)
            && *digest == placed_digest(self.header.id, number as u32, block)
    }

    /// Returns for each parity block if it is good.
    pub(crate) fn judge(&self) -> Vec<bool> {
        let mut buffer = Vec::new();
        (0..self.header.parity)
            .map(|number| self.is_good(number, &mut buffer))
            .collect()
    }

    /// Reads columns of a parity block.
    ///
    /// # Errors
    /// Those of `pread`, and of a file that has become shorter.
    pub(crate) fn columns(&self, number: usize, from: usize, to: &mut [u8]) -> io::Result<()> {
        let offset = self.layout.parity(number) + (SHORT + from) as u64;
        match dirfd::read_at(&self.file, to, offset)? == to.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Returns whatever looks like a head, anywhere in the file.
fn heads_in(
    len: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<VolumeHead>> {
    const STEP: usize = 1 << 20;
    let mut heads = Vec::new();
    let mut buffer = vec![0; STEP + HEAD];
    let mut at = 0;
    while at < len {
        // What cannot be read is passed over.
        let count = read_at(&mut buffer, at).unwrap_or(0);
        let bytes = &buffer[..count];
        let starts = bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == MAGIC[0]);
        for (start, _) in starts.filter(|(start, _)| bytes[*start..].starts_with(&MAGIC)) {
            let head = bytes
                .get(start..start + HEAD)
                .and_then(VolumeHead::from_bytes);
            heads.extend(head.and_then(Result::ok));
        }
        at += STEP as u64;
    }
    Ok(heads)
}
