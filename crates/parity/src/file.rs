//! A parity directory and the volumes in it: found, opened, judged, written, removed.
//!
//! What lies there may have been put there by anybody. Everything is opened by the directory's
//! descriptor and through no link, only regular files are used, and `format` checks their headers.
//! A directory with other files is nobody's parity directory, and nothing is written to it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bc_digest::Algorithm;
use bc_edit::atomic::{AtomicFile, Uncommitted};
use bc_edit::{Locked, content, entry, journal, names};
use bc_fs::call::FailedCall;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta::{FileKind, FileStat, Identity, raw_stat, stat, stat_at};
use bc_fs::place::Place;
use bc_pool::Cancel;
use bc_read::Rate;
use bc_walk::job::{Error, ErrorKind};
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::format::{
    BadVolume, DirId, HEAD, MAGIC, MOST_FILE, NEWER, SHORT, STORED_BLOCK, VolumeHead, VolumeHeader,
    VolumeLayout,
};
use crate::format::{placed_digest, read_header};

/// Ending of the names of volumes.
const ENDING: &str = ".bcp";

/// Greatest number of a volume: other names are not ours.
const MOST_NUMBER: u64 = 999_999_999;

/// Name of the copy of the manifest.
pub(crate) const MANIFEST_COPY: &str = "manifest.jsonl.zst";

/// Name of the index.
pub(crate) const INDEX: &str = "index.jsonl";

/// Beginning of each index.
const INDEX_BEGINS: &[u8] = b"{\"parity\":";

/// Name of the file that is locked.
const LOCK: &str = "lock";

/// Directory that a file system has in its root.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// Heads that are tried in a file at most: it may have any number of them, none of which holds.
const MOST_HEADS: usize = 16;

/// Use that is made of a parity directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DirUse {
    /// Its list and its index are looked at: no other run is kept out.
    Look,
    /// It is read; others may read it, too.
    Read,
    /// Volumes are written and removed, by this run alone. A directory that is missing, or has no
    /// parity, is an error: its disk may not be mounted.
    Write,
    /// As `Write`, and the first parity of a directory; it is made where it is missing, but none above
    /// it.
    Create,
}

/// Reason for which an empty directory is none of parity.
pub(crate) const NO_PARITY: &str = "has no parity yet, or is not mounted";

/// A parity directory, held open.
pub(crate) struct ParityDir {
    path: PathBuf,
    dir: OwnedFd,
    /// File of the lock; none if it is only read, or there are no locks.
    lock: Option<Locked>,
    /// True if it is only read, and another run was writing to it.
    is_written: bool,
    /// True if there is an index, or a file that could be one.
    has_index: bool,
    has_manifest_copy: bool,
    volumes: Vec<u64>,
}

impl ParityDir {
    /// Opens a directory; `None` if there is none and it is only read.
    ///
    /// # Errors
    /// If it cannot be opened or made, has files but none of a parity directory, or none where it is to
    /// be written to and not made; if another run writes to it.
    pub(crate) fn open(path: &Path, used: DirUse) -> Result<Option<ParityDir>, Error> {
        let failed = |call: FailedCall| Error::io(path, call.op, &call.into());
        let bytes = path.as_os_str().as_encoded_bytes();
        let place = match (dirfd::open_root(bytes), used) {
            (Err(call), DirUse::Look | DirUse::Read) if call.errno == Errno::NOENT => {
                return Ok(None);
            }
            (Err(call), DirUse::Create) if call.errno == Errno::NOENT => {
                make_last(path).map_err(failed)?;
                dirfd::open_root(bytes)
            }
            (opened, _) => opened,
        };
        let dir = dirfd::relist(place.map_err(failed)?).map_err(failed)?;
        let mut dir = ParityDir {
            path: path.to_owned(),
            dir,
            lock: None,
            is_written: false,
            has_index: false,
            has_manifest_copy: false,
            volumes: Vec::new(),
        };
        // Before anything is made in it.
        dir.list()?;
        if used == DirUse::Write && dir.is_empty() {
            return Err(Error::at(ErrorKind::Refused, path, NO_PARITY));
        }
        match used {
            DirUse::Look => return Ok(Some(dir)),
            DirUse::Read => dir.lock_for_reading(),
            DirUse::Write | DirUse::Create => dir.lock = dir.locked()?,
        }
        // What is there now stays, but for this run.
        dir.list()?;
        Ok(Some(dir))
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if another run was writing to it when it was listed: volumes may come and go.
    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Refuses a directory that another run is writing to.
    ///
    /// # Errors
    /// If one is.
    pub(crate) fn refuse_writer(&self) -> Result<(), Error> {
        match self.is_written {
            true => Err(self.busy()),
            false => Ok(()),
        }
    }

    fn busy(&self) -> Error {
        let text = "another run is at work in this parity directory";
        Error::at(ErrorKind::Busy, &self.path, text)
    }

    /// Lists a directory again that another run was writing to, and keeps it out if it is done.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub(crate) fn list_again(&mut self) -> Result<(), Error> {
        self.lock_for_reading();
        self.list()
    }

    /// Returns its descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// True if no other run writes to it.
    pub(crate) fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// True if there is an index, or a file that could be one.
    pub(crate) fn has_index(&self) -> bool {
        self.has_index
    }

    /// True if there are neither volumes nor an index.
    pub(crate) fn is_empty(&self) -> bool {
        self.volumes.is_empty() && !self.has_index
    }

    /// True if there was a file of the name of the manifest's copy when it was listed.
    pub(crate) fn has_manifest_copy(&self) -> bool {
        self.has_manifest_copy
    }

    /// Returns the numbers of the volumes, in order.
    pub(crate) fn volumes(&self) -> &[u64] {
        &self.volumes
    }

    /// Returns the path of a volume.
    pub(crate) fn volume_path(&self, number: u64) -> PathBuf {
        self.path.join(volume_name(number))
    }

    /// Makes the error of a call on the directory.
    pub(crate) fn failed(&self, call: FailedCall) -> Error {
        Error::io(&self.path, call.op, &call.into())
    }

    /// Lists it. Refuses a directory of other files: an index is replaced in this one.
    fn list(&mut self) -> Result<(), Error> {
        let failed = |errno: Errno| Error::io(&self.path, "read directory", &errno.into());
        let listed = dirfd::relist(&self.dir).map_err(|call| failed(call.errno))?;
        let (mut volumes, mut has_index) = (Vec::new(), false);
        let (mut has_manifest_copy, mut has_others) = (false, false);
        for entry in Dir::new(listed).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if let Some(number) = volume_of(name) {
                volumes.push(number);
            } else if name == INDEX.as_bytes() {
                has_index = true;
            } else if name == MANIFEST_COPY.as_bytes() {
                has_manifest_copy = true;
            } else if ![&b"."[..], b"..", LOCK.as_bytes(), LOST_AND_FOUND].contains(&name)
                && !names::is_temporary(name)
            {
                has_others = true;
            }
        }
        volumes.sort_unstable();
        let is_ours = !volumes.is_empty() || has_index && self.begins_like_index();
        if !is_ours && (has_others || has_index) {
            let text = "has other files in it and no parity: name a directory for parity alone";
            return Err(Error::at(ErrorKind::Refused, &self.path, text));
        }
        (self.volumes, self.has_index) = (volumes, has_index);
        self.has_manifest_copy = has_manifest_copy;
        Ok(())
    }

    /// True if the file with the index's name begins like one.
    pub(crate) fn begins_like_index(&self) -> bool {
        let mut beginning = [0; INDEX_BEGINS.len()];
        let read = self
            .open_regular(INDEX)
            .map(|(file, _)| dirfd::read_at(&file, &mut beginning, 0));
        matches!(read, Ok(Ok(_))) && beginning == INDEX_BEGINS
    }

    /// Locks the directory against all others; `None` where there are no locks.
    fn locked(&self) -> Result<Option<Locked>, Error> {
        let path = self.path.join(LOCK);
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        let file = match content::create(&self.dir, LOCK, 0o600) {
            Err(call) if call.errno == Errno::EXIST => {
                let name = dirfd::name(LOCK.as_bytes()).map_err(failed)?;
                dirfd::open_file(&self.dir, &name, Access::Write)
            }
            created => created,
        };
        let file = file.map_err(failed)?;
        if stat(&file).map_err(failed)?.kind() != FileKind::File {
            return Err(bad(&path, BadVolume("is no regular file")));
        }
        match Locked::new(File::from(file), false) {
            Ok(locked) => Ok(Some(locked)),
            Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => Err(self.busy()),
            Err(_) => Ok(None),
        }
    }

    /// Keeps writers out, where that can be.
    fn lock_for_reading(&mut self) {
        self.is_written = false;
        let name = dirfd::name(LOCK.as_bytes());
        let file = name.and_then(|name| dirfd::open_file(&self.dir, &name, Access::Read));
        let Ok(file) = file else {
            return;
        };
        match Locked::new(File::from(file), true) {
            Ok(lock) => self.lock = Some(lock),
            Err((error, _)) => self.is_written = error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Refuses a directory that others may have written to, where content from it could be theirs:
    /// `why` says what does not prove it.
    ///
    /// # Errors
    /// If it belongs to another user, or others may write to it.
    pub(crate) fn refuse_others(&self, why: &str) -> Result<(), Error> {
        let stat =
            raw_stat(self.fd()).map_err(|call| Error::io(&self.path, call.op, &call.into()))?;
        let own = rustix::process::geteuid().as_raw();
        if stat.st_uid == own && stat.st_mode & 0o022 == 0 {
            return Ok(());
        }
        let text = format!(
            "belongs to another user, or others may write to it, and {why}: content from here would not be \
             proven"
        );
        Err(Error::at(ErrorKind::Refused, &self.path, text))
    }

    /// Opens a volume and reads its header.
    ///
    /// # Errors
    /// Of the kind [`Manifest`](ErrorKind::Manifest) if it is no regular file or its header is not
    /// sound; others if the system refuses it.
    pub(crate) fn read(&self, number: u64) -> Result<ParityFile, Error> {
        let read = self.read_named(number)?;
        match read.header.id.number == number {
            true => Ok(read),
            false => {
                let why = BadVolume("it is another volume by its header");
                Err(bad(&read.path, why))
            }
        }
    }

    /// Opens the volume that has the name of this number, be it another one by its header: its blocks are
    /// as good under any name.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub(crate) fn read_named(&self, number: u64) -> Result<ParityFile, Error> {
        let (file, stat) = self.open_regular(&volume_name(number))?;
        ParityFile::read(file, stat, self.volume_path(number))
    }

    /// Opens a regular file in it for reading.
    ///
    /// # Errors
    /// If the system refuses it; of the kind [`Manifest`](ErrorKind::Manifest) if it is of another kind.
    pub(crate) fn open_regular(&self, name: &str) -> Result<(OwnedFd, FileStat), Error> {
        let path = self.path.join(name);
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        let no_file = || bad(&path, BadVolume("is no regular file"));
        let name = dirfd::name(name.as_bytes()).map_err(failed)?;
        // Other kinds are not even opened.
        if stat_at(self.fd(), &name).map_err(failed)?.kind() != FileKind::File {
            return Err(no_file());
        }
        let file = dirfd::open_file(self.fd(), &name, Access::Read).map_err(failed)?;
        let stat = stat(&file).map_err(failed)?;
        match stat.kind() == FileKind::File {
            true => Ok((file, stat)),
            false => Err(no_file()),
        }
    }

    /// Refuses a volume that another user may have written: as [`refuse_others`](Self::refuse_others).
    ///
    /// # Errors
    /// If it is another user's, or others may write to it.
    pub(crate) fn refuse_volume_of_others(&self, file: &ParityFile) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io(&file.path, "stat", &error);
        let copy = file.file.try_clone().map_err(failed)?;
        let checked = journal::check(&File::from(copy)).map_err(failed)?;
        checked.map_err(|why| Error::at(ErrorKind::Refused, &file.path, why.to_string()))
    }

    /// Removes a volume, if its name still leads to the file that was judged, and the path of the
    /// directory to this one.
    ///
    /// # Errors
    /// If it does not; those of `unlinkat`.
    pub(crate) fn remove(&self, number: u64, judged: Identity) -> Result<(), Error> {
        let path = self.volume_path(number);
        let failed = |call: FailedCall| Error::io(&path, call.op, &call.into());
        let name = dirfd::name(volume_name(number).as_bytes()).map_err(failed)?;
        let is_it = stat_at(self.fd(), &name).map_err(failed)?.id == judged;
        if !is_it || !self.is_in_its_place() {
            let text = "is another file than before, and stays";
            return Err(Error::at(ErrorKind::Refused, &path, text));
        }
        entry::unlink(self.fd(), &*name).map_err(failed)
    }

    /// True if its path still leads to it.
    fn is_in_its_place(&self) -> bool {
        let there = dirfd::open_root(self.path.as_os_str().as_encoded_bytes()).and_then(stat);
        match (there, stat(&self.dir)) {
            (Ok(there), Ok(open)) => there.id == open.id,
            _ => false,
        }
    }

    /// Makes removals and new names durable.
    ///
    /// # Errors
    /// Those of `fsync`.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        content::sync_dir(self.fd()).map_err(|call| self.failed(call))
    }

    /// Renames a file that has the name of one of ours, and is none: it may be the user's.
    ///
    /// # Errors
    /// Those of `renameat2`.
    pub(crate) fn set_aside(&self, name: &str) -> Result<(), Error> {
        for attempt in 1_u32.. {
            let aside = format!("{name}.other-{attempt}");
            match entry::rename_new(self.fd(), name, self.fd(), &*aside) {
                Err(call) if call.errno == Errno::EXIST => {}
                renamed => return renamed.map_err(|call| self.failed(call)),
            }
        }
        Ok(())
    }

    /// Starts a file of this name, which appears whole or not at all, and which no other user reads: it
    /// gives away what is in others.
    ///
    /// # Errors
    /// Those of creating it.
    pub(crate) fn create(&self, name: &str) -> Result<AtomicFile, Error> {
        let path = self.path.join(name);
        let failed = |error: io::Error| Error::io(&path, "create", &error);
        let place = Place::within(self.fd(), name).map_err(failed)?;
        let file = AtomicFile::create_at(place).map_err(failed)?;
        file.only_owner_reads();
        Ok(file)
    }

    /// Gives a file its name, once it is durable; the name is durable after that.
    ///
    /// # Errors
    /// Those of storing and naming it: a volume replaces nothing.
    pub(crate) fn commit(&self, name: &str, file: AtomicFile) -> Result<(), Error> {
        let committed = match name {
            INDEX | MANIFEST_COPY => file.commit(),
            _ => file.commit_new(),
        };
        committed.map_err(|Uncommitted { operation, error }| {
            Error::io(&self.path.join(name), operation, &error)
        })
    }
}

/// Makes the last directory of a path.
fn make_last(path: &Path) -> bc_fs::call::Result<()> {
    let name = path.file_name().unwrap_or_default();
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let above = dirfd::open_root(above.as_os_str().as_bytes())?;
    match entry::make_dir(&above, name, 0o700) {
        Err(call) if call.errno == Errno::EXIST => Ok(()),
        Ok(()) => content::sync_dir(&above),
        made => made,
    }
}

/// Makes the error of a file that is no volume.
pub(crate) fn bad(path: &Path, why: BadVolume) -> Error {
    let kind = match why == NEWER {
        true => ErrorKind::Usage,
        false => ErrorKind::Manifest,
    };
    Error::at(kind, path, why.0)
}

/// Returns the name of a volume.
pub(crate) fn volume_name(number: u64) -> String {
    format!("{number:06}{ENDING}")
}

/// Returns the number that comes after this one.
///
/// # Errors
/// If there is none.
pub(crate) fn number_after(last: u64, dir: &Path) -> Result<u64, Error> {
    match last < MOST_NUMBER {
        true => Ok(last + 1),
        false => Err(Error::at(
            ErrorKind::Refused,
            dir,
            "has no numbers left for volumes",
        )),
    }
}

fn volume_of(name: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(name).ok()?;
    let number = name.strip_suffix(ENDING)?.parse().ok()?;
    let is_ours = 0 < number && number <= MOST_NUMBER;
    (is_ours && volume_name(number) == name).then_some(number)
}

/// Returns the parity directory of a manifest: its name without `.jsonl` and the ending of a
/// compression, and with `.parity`, beside it. Where the manifest is a link, beside what that leads to.
pub fn default_dir(manifest: &Path) -> PathBuf {
    let is_link = std::fs::symlink_metadata(manifest).is_ok_and(|meta| meta.is_symlink());
    let real = Some(manifest).filter(|_| is_link);
    let real = real.and_then(|manifest| manifest.canonicalize().ok());
    let manifest = real.as_deref().unwrap_or(manifest);
    let name = manifest.file_name().unwrap_or_default().as_bytes();
    let mut stem = name;
    for ending in [&b".zst"[..], b".gz", b".jsonl"] {
        let shorter = stem.strip_suffix(ending);
        stem = shorter.filter(|stem| !stem.is_empty()).unwrap_or(stem);
    }
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

/// Reason for which content by digests of some algorithms may be another user's.
pub(crate) const FORGEABLE: &str = "digests of this algorithm can be forged";

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
    /// Its path.
    pub path: PathBuf,
    /// Identity of the file.
    pub id: Identity,
    /// Its header.
    pub header: VolumeHeader,
}

/// Reader of a file in which what cannot be read is damage.
struct DamagedReader<'f> {
    file: &'f OwnedFd,
    /// The first error, in case that nothing holds.
    failed: Option<FailedCall>,
}

impl DamagedReader<'_> {
    /// Fills as much of a buffer as can be read, and returns how much that is.
    fn read_at(&mut self, to: &mut [u8], offset: u64) -> usize {
        match dirfd::read_at(self.file, to, offset) {
            Ok(count) => count,
            Err(call) => {
                self.failed.get_or_insert(call);
                0
            }
        }
    }

    /// Returns whatever looks like a head, anywhere in the file.
    fn heads(&mut self, len: u64) -> Vec<VolumeHead> {
        const STEP: usize = 1 << 20;
        /// Bytes that are read at a time around what cannot be read.
        const SECTOR: usize = 4 << 10;
        let mut heads = Vec::new();
        let mut buffer = vec![0; STEP + HEAD];
        let mut at = 0;
        while at < len && heads.len() < MOST_HEADS {
            buffer.fill(0);
            if dirfd::read_at(self.file, &mut buffer, at).is_err() {
                for (number, sector) in buffer.chunks_mut(SECTOR).enumerate() {
                    self.read_at(sector, at + (number * SECTOR) as u64);
                }
            }
            for start in 0..STEP {
                if buffer[start] == MAGIC[0] && buffer[start..].starts_with(&MAGIC) {
                    let head = VolumeHead::from_bytes(&buffer[start..start + HEAD]);
                    heads.extend(head.and_then(Result::ok));
                }
            }
            at += STEP as u64;
        }
        heads.truncate(MOST_HEADS);
        heads
    }
}

impl ParityFile {
    /// Reads the header. Each of its copies serves, whatever became of the others.
    fn read(file: OwnedFd, stat: FileStat, path: PathBuf) -> Result<ParityFile, Error> {
        let len = stat.stamp.size;
        if len > MOST_FILE {
            return Err(bad(&path, BadVolume("is longer than any volume")));
        }
        let mut reader = DamagedReader {
            file: &file,
            failed: None,
        };
        let mut why = BadVolume("has no head of a volume that is whole");
        let mut at_ends: Vec<VolumeHead> = Vec::new();
        for offset in [Some(0), len.checked_sub(HEAD as u64)]
            .into_iter()
            .flatten()
        {
            let mut bytes = [0; HEAD];
            reader.read_at(&mut bytes, offset);
            match VolumeHead::from_bytes(&bytes) {
                Some(Ok(head)) if !at_ends.contains(&head) => at_ends.push(head),
                Some(Err(bad)) => why = bad,
                _ => {}
            }
        }
        let mut found = None;
        for head in &at_ends {
            match read_header(head, len, |to, offset| reader.read_at(to, offset)) {
                Ok(header) => {
                    found = Some((head.layout(), header));
                    break;
                }
                Err(bad) => why = bad,
            }
        }
        if found.is_none() {
            // Both ends are damaged, or say nothing that holds: the copy in the middle is looked for.
            for head in reader.heads(len) {
                if at_ends.contains(&head) {
                    continue;
                }
                match read_header(&head, len, |to, offset| reader.read_at(to, offset)) {
                    Ok(header) => {
                        found = Some((head.layout(), header));
                        break;
                    }
                    Err(bad) => why = bad,
                }
            }
        }
        match (found, reader.failed) {
            (Some((layout, header)), _) => Ok(ParityFile {
                len,
                layout,
                path,
                id: stat.id,
                header,
                file,
            }),
            (None, Some(call)) => Err(Error::io(&path, call.op, &call.into())),
            (None, None) => Err(bad(&path, why)),
        }
    }

    /// Refuses a volume that was not made for the directory with this id.
    ///
    /// # Errors
    /// If it was made for another, or the id is not known.
    pub(crate) fn refuse_other_dir(&self, id: Option<DirId>) -> Result<(), Error> {
        match id == Some(self.header.id.dir) {
            true => Ok(()),
            false => {
                let why = BadVolume("is a volume of another parity directory");
                Err(bad(&self.path, why))
            }
        }
    }

    /// Returns the number of parity blocks that lie within the file, be they good or not.
    pub(crate) fn present(&self) -> usize {
        let is_within =
            |number: &usize| self.layout.parity(*number) + STORED_BLOCK as u64 <= self.len;
        (0..self.header.parity).filter(is_within).count()
    }

    /// Reads all of a parity block; false if it is damaged.
    fn is_good(&self, number: usize, buffer: &mut Vec<u8>) -> bool {
        buffer.resize(STORED_BLOCK, 0);
        // What cannot be read is lost.
        let count = dirfd::read_at(&self.file, buffer, self.layout.parity(number));
        let (digest, block) = buffer.split_at(SHORT);
        count.is_ok_and(|count| count == STORED_BLOCK)
            && *digest == placed_digest(self.header.id, number as u32, block)
    }

    /// Returns for each parity block if it is good. `read` is called with the bytes of each that was
    /// read; once it returns false, the others are not read, and count as damaged.
    pub(crate) fn judge(&self, read: &mut dyn FnMut(u64) -> bool) -> Vec<bool> {
        let (mut buffer, mut goes_on) = (Vec::new(), true);
        (0..self.header.parity)
            .map(|number| {
                let is_good = goes_on && self.is_good(number, &mut buffer);
                goes_on = goes_on && read(STORED_BLOCK as u64);
                is_good
            })
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

/// Waits until bytes that were read are paid for; false if the work was cancelled.
pub(crate) fn spent(bytes: u64, rate: Option<&Rate>, cancel: &Cancel) -> bool {
    rate.is_none_or(|rate| rate.spend(bytes, cancel)) && !cancel.is_cancelled()
}

/// True if a directory is one of parity, whosever: it has volumes, or an index.
pub fn is_parity_dir(path: &Path) -> bool {
    let dir = ParityDir::open(path, DirUse::Look);
    dir.is_ok_and(|dir| dir.is_some_and(|dir| !dir.is_empty()))
}

/// Returns why there is no parity at the place for it, where there is something else: a link that leads to
/// none, an empty directory or a file. The disk with the parity may not be mounted. A directory that has
/// other files only has the name.
pub fn why_no_parity(path: &Path) -> Option<Error> {
    let is_link = std::fs::symlink_metadata(path).ok()?.is_symlink();
    match ParityDir::open(path, DirUse::Look) {
        Ok(Some(dir)) if !dir.is_empty() => None,
        Ok(Some(_)) => Some(Error::at(ErrorKind::Refused, path, NO_PARITY)),
        Ok(None) => {
            let text = "is a link to a path that does not exist: is its disk mounted?";
            Some(Error::at(ErrorKind::NotFound, path, text))
        }
        Err(error) if error.kind() == ErrorKind::Refused && !is_link => None,
        Err(error) => Some(error),
    }
}

/// True if a directory is one of parity, or the system does not let that be seen.
pub fn may_be_parity_dir(path: &Path) -> bool {
    match ParityDir::open(path, DirUse::Look) {
        Ok(dir) => dir.is_some_and(|dir| !dir.is_empty()),
        Err(error) => {
            let unseen = [Errno::ACCESS, Errno::PERM, Errno::IO];
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            errno.is_some_and(|errno| unseen.contains(&errno))
        }
    }
}
