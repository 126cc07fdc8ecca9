//! Files that appear whole or not at all: written without a name where the
//! file system can (`O_TMPFILE`), else under a temporary one beside the target;
//! then fsync, rename, fsync of the directory.
//!
//! The file is locked (`flock`) as long as its writer lives, so the next run recognises a temporary
//! name that a killed run left behind, and removes it.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_fs::Escaped;
use bc_fs::dirfd::own_path;
use bc_fs::meta::{Attributed, FileStat, NoFile, XattrReader};
use bc_fs::place::Place;
use rustix::fs::{Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

pub use crate::locked::Locked;
use crate::locked::remove_unheld;
use crate::metadata::{ACCESS_ACL, Subject};
use crate::swap::{self, NotDone, Swap};
use crate::{content, entry, names};

/// A file being written that takes its target's place on [`commit`](Self::commit).
/// Dropped before that, it vanishes and the target stays as it was.
#[derive(Debug)]
pub struct AtomicFile {
    file: Locked,
    /// Temporary name; `None` while the file has no name at all.
    temporary: Option<OsString>,
    place: Place,
    /// True if the target did not exist, so that no file is replaced.
    is_new: bool,
}

/// File that is to be replaced, open, with the state in which it was read.
#[derive(Debug)]
pub struct AsRead {
    file: File,
    content: (u64, [i64; 2]),
    ctime: [i64; 2],
}

impl AsRead {
    /// Remembers the state of a file that is read after this.
    ///
    /// # Errors
    /// Those of looking at it.
    pub fn new(file: File) -> io::Result<AsRead> {
        let meta = file.metadata()?;
        Ok(AsRead {
            file,
            content: AsRead::content(&meta),
            ctime: [meta.ctime(), meta.ctime_nsec()],
        })
    }

    /// Duplicates it: a second descriptor of the file, the same state.
    ///
    /// # Errors
    /// Where there are too many descriptors.
    pub fn try_clone(&self) -> io::Result<AsRead> {
        Ok(AsRead {
            file: self.file.try_clone()?,
            ..*self
        })
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn content(meta: &Metadata) -> (u64, [i64; 2]) {
        (meta.len(), [meta.mtime(), meta.mtime_nsec()])
    }

    /// True if nothing was written to it since, nor anything else about it changed.
    fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| {
            AsRead::content(&meta) == self.content
                && [meta.ctime(), meta.ctime_nsec()] == self.ctime
        })
    }

    /// True if nothing was written to it since. A new name may move its ctime.
    fn is_unwritten(&self) -> bool {
        let meta = self.file.metadata();
        meta.is_ok_and(|meta| AsRead::content(&meta) == self.content)
    }
}

/// A step of [`AtomicFile::commit`] that failed.
#[derive(Debug)]
pub struct Uncommitted {
    /// Name of the operation that failed, as `rename`.
    pub operation: &'static str,
    /// Reason that the system gave.
    pub error: io::Error,
}

impl fmt::Display for Uncommitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.error)
    }
}

impl std::error::Error for Uncommitted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Uncommitted {
    pub(crate) fn at<E: Into<io::Error>>(operation: &'static str) -> impl Fn(E) -> Uncommitted {
        move |error| Uncommitted {
            operation,
            error: error.into(),
        }
    }
}

impl AtomicFile {
    /// Starts writing a file that will replace `target`, or create it. A link is followed: its
    /// target is replaced, or created where the link leads to nothing yet. Mode and owner of an
    /// existing file are kept where permitted, the owner only where no other user can have put that
    /// file there.
    ///
    /// # Errors
    /// Errors of looking the target up and of creating a file in its directory: a name that is too
    /// long or ends in a slash is refused here and not at the end of the work, and so is a file
    /// that another user put into a directory where others may write ([`Place::find`]), and a
    /// target that is no regular file.
    pub fn create(target: impl AsRef<Path>) -> io::Result<AtomicFile> {
        AtomicFile::create_at(Place::find(target)?)
    }

    /// Starts writing as [`create`](Self::create) does, at a place that was found before.
    ///
    /// # Errors
    /// Errors of [`create`](Self::create).
    pub fn create_at(place: Place) -> io::Result<AtomicFile> {
        let old = replaceable(&place)?;
        remove_abandoned(&place);
        // Opened by no other process before it has its final mode.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let mut new = match AtomicFile::nameless(place, mode) {
            Ok(new) => new,
            Err(place) => AtomicFile::named(place, mode)?,
        };
        if let Some(old) = old {
            let subject = Subject::open(new.file.as_fd());
            if new.place.keeps_owner(&old) {
                let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                let _ = subject.chown(Some(uid), Some(gid));
            }
            new.take_acl(&subject);
            // Not every file system has modes.
            let _ = subject.chmod(Mode::from_raw_mode(old.st_mode & 0o777));
            new.is_new = false;
        }
        Ok(new)
    }

    /// Returns a file without a name, which a killed run cannot leave behind. Gives the place back
    /// where the file system has no such files.
    fn nameless(place: Place, mode: u32) -> Result<AtomicFile, Place> {
        // Needed to give it a name later.
        if !Path::new("/proc/self/fd").exists() {
            return Err(place);
        }
        let Ok(fd) = content::create_unnamed(place.directory(), mode) else {
            return Err(place);
        };
        let file = File::from(fd);
        // For the moment when it has a temporary one.
        let file = Locked::new(file, false).unwrap_or_else(|(_, file)| Locked::unheld(file));
        Ok(AtomicFile {
            file,
            temporary: None,
            place,
            is_new: true,
        })
    }

    fn named(place: Place, mode: u32) -> io::Result<AtomicFile> {
        for temporary in temporaries(place.name()) {
            let file = match content::create(place.directory(), &*temporary, mode) {
                Ok(fd) => File::from(fd),
                Err(failed) if failed.errno == Errno::EXIST => continue,
                Err(failed) => return Err(failed.into()),
            };
            // Between the open and the lock another run may have taken it for
            // abandoned: then its name is gone and the next attempt is due.
            let file = match Locked::new(file, false) {
                Ok(locked) => locked,
                Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // No locks on this file system: nobody cleans up either.
                Err((_, file)) => Locked::unheld(file),
            };
            if place.names(&temporary, &file) {
                return Ok(AtomicFile {
                    file,
                    temporary: Some(temporary),
                    place,
                    is_new: true,
                });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives it the access control list of the file that it replaces, or none where that has none:
    /// the directory may have given it one that permits more than the old file's mode.
    fn take_acl(&self, new: &Subject<'_>) {
        let directory = own_path(self.place.directory());
        let old = [directory.as_bytes(), b"/", self.place.name().as_bytes()].concat();
        let old: Attributed<'_, NoFile> = Attributed::At(&old);
        let mut reader = XattrReader::new(&[]);
        // Not every file system has lists.
        let _ = match reader.value(old, ACCESS_ACL) {
            Ok(Some(list)) => new.set_xattr(ACCESS_ACL, list),
            Ok(None) | Err(_) => new.remove_inherited_acls(|_| false),
        };
    }

    /// Removes the write permission of group and others, whatever the umask says: for a file that
    /// is believed later because only its owner can have written it. Where it replaces a file, that
    /// file's mode was chosen by its user, and stays.
    pub fn only_owner_writes(&self) {
        self.deny(0o022);
    }

    /// Removes all permissions of group and others, as [`only_owner_writes`](Self::only_owner_writes)
    /// does: for a file that gives away what is in others.
    pub fn only_owner_reads(&self) {
        self.deny(0o077);
    }

    fn deny(&self, permissions: u32) {
        if let (true, Ok(meta)) = (self.is_new, self.file.metadata()) {
            let mode = Mode::from_raw_mode(meta.mode() & 0o7777 & !permissions);
            // Not every file system has modes.
            let _ = Subject::open(self.file.as_fd()).chmod(mode);
        }
    }

    /// Returns the directory and the name that the file will get.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the file to write to, and to read the written bytes from.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes the content durable and puts it in the target's place.
    ///
    /// # Errors
    /// Errors of fsync, link or rename; the target is then as it was. An error after
    /// the rename (of the directory's fsync) is reported as well.
    pub fn commit(mut self) -> Result<(), Uncommitted> {
        let temporary = self.be_ready()?;
        entry::rename(self.place.directory(), &*temporary, self.place.name())
            .map_err(Uncommitted::at("rename"))?;
        self.temporary = None;
        self.sync_directory()
    }

    /// Makes the content durable and gives it the target's name, if that is free. Only where the
    /// file system has neither links nor renames that replace nothing (FAT below FUSE, say) is a
    /// file replaced that takes the name between a look and the rename.
    ///
    /// # Errors
    /// `AlreadyExists` if it is taken; otherwise those of [`commit`](Self::commit).
    pub fn commit_new(mut self) -> Result<(), Uncommitted> {
        self.be_stored()?;
        let directory = self.place.directory();
        let linked = match &self.temporary {
            // Its temporary name goes when it is dropped.
            Some(name) => entry::link(directory, &**name, directory, self.place.name()),
            None => entry::link_unnamed(&*self.file, directory, self.place.name()),
        };
        match (linked, self.temporary.clone()) {
            // Whatever a file system without links says to one.
            (Err(failed), Some(temporary)) if failed.errno != Errno::EXIST => {
                self.rename_new(&temporary, self.place.name())?;
                self.temporary = None;
            }
            (linked, _) => linked.map_err(Uncommitted::at("link"))?,
        }
        self.sync_directory()
    }

    /// Makes the content durable and puts it in the place of `old`: of the file that had the target's
    /// name when what was to be kept of it was read. Whoever has given the name to another file since,
    /// or has written to that one, loses nothing. Only where the file system cannot exchange names
    /// (FAT, NFS) is somebody replaced who takes it between a look and the rename.
    ///
    /// # Errors
    /// `AlreadyExists` if the name leads to another file than `old`, to that in another state, or to
    /// none: what is there is as it was, and what was to be kept has to be read again; otherwise as of
    /// [`commit`](Self::commit). Where the name was given away twice in that moment the error says what
    /// the first of the two files is called now.
    pub fn commit_over(mut self, old: &AsRead) -> Result<(), Uncommitted> {
        let temporary = self.be_ready()?;
        if !self.place.means(&old.file) || !old.is_unchanged() {
            return Err(changed());
        }
        let id = |file: &File| rustix::fs::fstat(file).map(|stat| FileStat::from(&stat).id);
        let swap = Swap {
            dir: self.place.directory(),
            staged: temporary.as_bytes(),
            ours: id(&self.file).map_err(Uncommitted::at("stat"))?,
            name: self.place.name().as_bytes(),
            replaced: id(&old.file).map_err(Uncommitted::at("stat"))?,
        };
        let settle = || match self.place.names(&temporary, &old.file) && old.is_unwritten() {
            true => {
                remove(&self.place, &temporary);
                Ok(())
            }
            false => Err(()),
        };
        match swap.put_over(settle, || Ok(())) {
            Ok(()) => {}
            Err(NotDone::Refused(())) => return Err(changed()),
            Err(NotDone::Failed(failed)) if failed.errno == Errno::NOENT => return Err(changed()),
            Err(NotDone::Failed(failed)) => return Err(Uncommitted::at("rename")(failed)),
            // A file under a temporary name goes with the next run.
            Err(NotDone::Displaced { .. }) => {
                let kept = swap::keep_beside(swap.dir, swap.staged, swap.name);
                let kept = kept.as_deref().unwrap_or(swap.staged);
                let text = format!(
                    "another program wrote here at that moment: one of its files is {} now",
                    Escaped(kept)
                );
                return Err(Uncommitted::at("rename back")(io::Error::other(text)));
            }
        }
        self.temporary = None;
        self.sync_directory()
    }

    /// Makes the content durable, and has the file system say all that it has to say of it: some
    /// report only at a close what could not be stored.
    fn be_stored(&self) -> Result<(), Uncommitted> {
        content::sync(&*self.file).map_err(Uncommitted::at("sync"))?;
        content::flush(&*self.file).map_err(Uncommitted::at("close"))
    }

    /// Makes the content durable, and gives it a temporary name to be renamed from.
    fn be_ready(&mut self) -> Result<OsString, Uncommitted> {
        self.be_stored()?;
        // The existing target may be another one than at the start.
        replaceable(&self.place).map_err(Uncommitted::at("rename"))?;
        match &self.temporary {
            Some(temporary) => Ok(temporary.clone()),
            None => self.link().map_err(Uncommitted::at("link")),
        }
    }

    /// Renames the temporary, if the name is free.
    fn rename_new(&self, temporary: &OsStr, name: &OsStr) -> Result<(), Uncommitted> {
        let directory = self.place.directory();
        entry::rename_new(directory, temporary, directory, name).map_err(Uncommitted::at("rename"))
    }

    fn sync_directory(&self) -> Result<(), Uncommitted> {
        // A user who may write to a directory need not be allowed to read it, and some file systems
        // cannot sync one.
        let Ok(directory) = self.place.open(OsStr::new("."), OFlags::DIRECTORY) else {
            return Ok(());
        };
        match content::sync(&directory) {
            Err(failed) if failed.errno != Errno::INVAL => {
                Err(Uncommitted::at("sync directory")(failed))
            }
            _ => Ok(()),
        }
    }

    /// Gives the file a temporary name: a link never replaces anything, only a
    /// rename does.
    fn link(&mut self) -> io::Result<OsString> {
        for temporary in temporaries(self.place.name()) {
            match entry::link_unnamed(&*self.file, self.place.directory(), &*temporary) {
                Ok(()) => {
                    self.temporary = Some(temporary.clone());
                    return Ok(temporary);
                }
                Err(failed) if failed.errno == Errno::EXIST => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary
            && self.place.names(temporary, &self.file)
        {
            // Best effort: what stays is removed by the next run.
            remove(&self.place, temporary);
        }
    }
}

fn changed() -> Uncommitted {
    Uncommitted::at("rename")(Errno::EXIST)
}

/// Returns the state of the regular file that is there, if one is.
///
/// # Errors
/// `InvalidInput` for any other kind of file: a device that is replaced by a file is lost to the
/// whole machine. [`OutputFile`](crate::output::OutputFile) writes to it.
fn replaceable(place: &Place) -> io::Result<Option<Stat>> {
    let existing = place.existing()?;
    match &existing {
        None => Ok(None),
        Some(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(existing),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => {
                let text = "not a regular file, and only such are replaced";
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
        },
    }
}

/// Removes the files that killed writers of `target` left under temporary names, as
/// [`AtomicFile::create`] does: for callers that list the directory before they write.
pub fn remove_leftovers(target: impl AsRef<Path>) {
    if let Ok(place) = Place::find(target) {
        remove_abandoned(&place);
    }
}

/// Locks an existing file against a second writer until it is dropped.
///
/// # Errors
/// `WouldBlock` if another process holds the lock or replaces the file right now; `InvalidInput`
/// for a file that is not regular, which is not waited for; those of [`Place::find`] and of
/// opening.
pub fn lock(path: impl AsRef<Path>) -> io::Result<Locked> {
    lock_at(path.as_ref())
}

fn lock_at(path: &Path) -> io::Result<Locked> {
    let place = Place::find(path)?;
    if let Some(stat) = place.existing()?
        && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
    {
        let text = "not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let file = File::from(place.open(place.name(), OFlags::RDONLY)?);
    let file = match Locked::new(file, false) {
        Ok(locked) => locked,
        Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
        // No locks on this file system.
        Err((_, file)) => Locked::unheld(file),
    };
    if place.means(&file) {
        Ok(file)
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Returns names beside a target to try one after the other.
fn temporaries(name: &OsStr) -> impl Iterator<Item = OsString> + use<> {
    let prefix = names::output(name.as_bytes());
    (0..10_000_u32)
        .map(move |attempt| OsString::from(format!("{prefix}{}-{attempt}.tmp", std::process::id())))
}

fn remove(place: &Place, name: &OsStr) {
    let _ = entry::unlink(place.directory(), name);
}

/// Removes temporaries whose writers are gone.
fn remove_abandoned(place: &Place) {
    let prefix = names::output(place.name().as_bytes());
    let entries = place
        .open(OsStr::new("."), OFlags::DIRECTORY)
        .and_then(|directory| Ok(Dir::new(directory)?));
    let Ok(entries) = entries else { return };
    for entry in entries.flatten() {
        let name = OsString::from_vec(CString::from(entry.file_name()).into_bytes());
        let bytes = name.as_bytes();
        if !bytes.starts_with(prefix.as_bytes()) || names::temporary(bytes).is_none() {
            continue;
        }
        let regular = place
            .stat(&name)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !regular {
            continue;
        }
        let Ok(fd) = place.open(&name, OFlags::RDONLY) else {
            continue;
        };
        remove_unheld(place.directory(), &*name, File::from(fd));
    }
}

#[cfg(test)]
mod tests;
