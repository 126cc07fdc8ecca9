//! Journals: records of what a long run has done so far, in a file that is only appended to, for
//! the run that resumes it after an interruption.
//!
//! - [`push`] makes records, [`Journal::append`] writes many of them at once, [`Records`] reads
//!   them back up to the first that is not whole.
//! - [`Journal::open`] determines whose file is at the place of a journal: only a regular file with
//!   one name, of this user, that no other user may write, that begins with this user's [`Key`] and
//!   that no living run holds is a journal to resume from. [`check`] and [`Locked`] are that
//!   judgement for files of other formats.
//!
//! Invariants:
//! - The records given to one call of [`Journal::append`] are in the file as a whole or, after an
//!   error, not at all; a killed process loses those not yet given to it. A power cut loses those
//!   not [synced](View::sync); bytes that a file system makes up at the end of the file then are no
//!   record, since each has a checksum.
//! - A file that is not a journal of this user's is neither changed nor renamed nor removed.

mod owner;
mod record;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use bc_fs::place::Place;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::locked::Locked;
use crate::{content, entry};

pub use owner::{FLAGS, Key, NotOurs, check, random};
pub use record::{LONGEST, Record, Records, View, push};

use record::{HEAD, MAGIC, Seed};

/// Greatest number of journals that are kept as backups (set aside) beside each other.
const MOST_ASIDE: u32 = 1000;

/// Result of looking for a journal at a place.
#[derive(Debug)]
pub enum FoundJournal {
    /// No file, or the empty one of a run that was killed before it wrote a byte.
    Nothing,
    /// A journal of this user's, held.
    Journal(Journal),
    /// A journal that a living run is writing.
    Busy,
    /// Another file, with the reason why it is not taken for a journal of this user's.
    Foreign(String),
}

/// A journal, held against all other runs.
#[derive(Debug)]
pub struct Journal {
    place: Place,
    file: Arc<Locked>,
    seed: Seed,
    length: u64,
}

impl Journal {
    /// Opens the journal at `place`, or reports why there is none.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn open(place: &Place, key: &Key) -> io::Result<FoundJournal> {
        let file = match look(place)? {
            FoundFile::File(file) => file,
            FoundFile::Nothing | FoundFile::Stub(_) => return Ok(FoundJournal::Nothing),
            FoundFile::Busy => return Ok(FoundJournal::Busy),
            FoundFile::Foreign(why) => return Ok(FoundJournal::Foreign(why)),
        };
        let foreign = |why: &str| Ok(FoundJournal::Foreign(why.to_owned()));
        let length = file.metadata()?.len();
        let mut head = [0; HEAD as usize];
        if length < HEAD {
            return foreign("not a journal");
        }
        file.read_exact_at(&mut head, 0)?;
        let (magic, rest) = head.split_at(MAGIC.len());
        let (known, nonce) = rest.split_at(16);
        if magic != MAGIC {
            return foreign(match magic.starts_with(b"bc journal v") {
                true => "a journal of another version",
                false => "not a journal",
            });
        }
        if known != key.bytes() {
            return foreign("not begun by this user on this machine: its key is not known here");
        }
        let mut seed = [0; 16];
        seed.copy_from_slice(nonce);
        Ok(FoundJournal::Journal(Journal {
            place: place.try_clone()?,
            file: Arc::new(file),
            seed: Seed::new(&seed),
            length,
        }))
    }

    /// Creates a journal at `place` with the records of `piece`, which are on the disk, as the name
    /// is, when this returns.
    ///
    /// # Errors
    /// `AlreadyExists` for any existing file but those that [`open`](Self::open) takes for nothing;
    /// `WouldBlock` where another run creates one; `PermissionDenied` where the new file would not
    /// be this user's alone, as on file systems without owners; others of creating, writing and
    /// syncing, after which the name is free again.
    pub fn create(place: Place, key: &Key, piece: &mut [u8]) -> io::Result<Journal> {
        Claim::new(place)?.begin(key, piece)
    }

    fn create_in(place: Place, file: Locked, key: &Key, piece: &mut [u8]) -> io::Result<Journal> {
        let mut journal = Journal {
            place,
            file: Arc::new(file),
            seed: Seed::new(&[0; 16]),
            length: 0,
        };
        let nonce = owner::random().inspect_err(|_| journal.unlink())?;
        journal.seed = Seed::new(&nonce);
        let head = record::head(key, &nonce);
        let begun = journal.begin(&head, piece);
        if begun.is_err() {
            journal.unlink();
        }
        begun.map(|()| journal)
    }

    fn begin(&mut self, head: &[u8], piece: &mut [u8]) -> io::Result<()> {
        self.seed.seal(piece);
        self.write(&[head, piece].concat())?;
        content::sync(&**self.file)?;
        self.flush()?;
        // Where directories cannot be read or synced there is nothing to do.
        if let Ok(directory) = self.place.open(OsStr::new("."), OFlags::DIRECTORY) {
            let _ = content::sync(directory);
        }
        Ok(())
    }

    /// Returns its records from the beginning.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.file, self.seed)
    }

    /// Returns its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Cuts off the incomplete end: everything from [`Records::end`] on.
    ///
    /// # Errors
    /// Errors of truncating the file.
    pub fn cut(&mut self, end: u64) -> io::Result<()> {
        if end < self.length {
            self.file.set_len(end)?;
            self.length = end;
        }
        Ok(())
    }

    /// Appends the records of `piece`, made by [`push`], in one write: all of them, or none after
    /// an error.
    ///
    /// # Errors
    /// Errors of writing the file.
    pub fn append(&mut self, piece: &mut [u8]) -> io::Result<()> {
        self.seed.seal(piece);
        self.write(piece)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, self.length);
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // Not half of it.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }

    /// Reports data that the file system could not store: some do so only at a close.
    ///
    /// # Errors
    /// Errors of [`flush`](bc_fs::call::flush).
    pub fn flush(&self) -> io::Result<()> {
        Ok(content::flush(&**self.file)?)
    }

    /// Returns a second descriptor, for looking records up, and for [syncing](View::sync), while
    /// others append.
    ///
    /// # Errors
    /// Too many open descriptors.
    pub fn view(&self) -> io::Result<View> {
        Ok(View {
            file: self.file.try_clone()?,
            seed: self.seed,
        })
    }

    /// Returns the open file, to know it by.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the journal's file, which stays open and locked as long as this is kept.
    pub fn handle(&self) -> Arc<Locked> {
        Arc::clone(&self.file)
    }

    /// Removes the journal: the run is done. Another file that has its name by now stays.
    pub fn remove(self) {
        self.unlink();
    }

    fn unlink(&self) {
        if self.place.means(&self.file) {
            let directory = self.place.directory();
            // A journal that cannot be removed is set aside by the next run.
            let _ = entry::unlink(directory, self.place.name());
        }
    }

    /// Creates a journal beside `place`, under a name as journals get that are
    /// [set aside](Self::set_aside).
    ///
    /// # Errors
    /// Errors of [`create`](Self::create).
    pub fn create_beside(place: &Place, key: &Key, piece: &mut [u8]) -> io::Result<Journal> {
        for attempt in 1..=MOST_ASIDE {
            let place = place.beside(&format!("-{attempt}"))?;
            if place.existing()?.is_none() {
                return Journal::create(place, key, piece);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Takes the name of another journal, which is set aside; atomically where the file system can
    /// exchange names. Returns the name that the other one has now.
    ///
    /// # Errors
    /// Errors of the renaming, and `AlreadyExists` where either is no longer the file that its name
    /// leads to.
    pub fn supersede(&mut self, other: Journal) -> io::Result<OsString> {
        if !self.place.means(&self.file) || !other.place.means(&other.file) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = self.place.directory();
        let (own, others) = (self.place.name().to_owned(), other.place.name().to_owned());
        match entry::exchange(directory, &*own, &*others) {
            Ok(()) => {
                self.place = other.place;
                Ok(own)
            }
            Err(_) => {
                let place = other.place.try_clone()?;
                let aside = other.set_aside()?;
                entry::rename_new(directory, &*own, directory, &*others)?;
                self.place = place;
                Ok(aside)
            }
        }
    }

    /// Renames the journal to a free name, and returns that name.
    ///
    /// # Errors
    /// Errors of the renaming; `AlreadyExists` where a thousand exist there already.
    pub fn set_aside(self) -> io::Result<OsString> {
        for attempt in 1..=MOST_ASIDE {
            let mut name = self.place.name().to_owned();
            name.push(format!("-{attempt}"));
            let directory = self.place.directory();
            match entry::rename_new(directory, self.place.name(), directory, &*name) {
                Ok(()) => return Ok(name),
                Err(failed) if failed.errno == Errno::EXIST => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl View {
    /// Forces the bytes appended so far to the disk.
    ///
    /// # Errors
    /// Errors of `fdatasync`, and of [`flush`](bc_fs::call::flush).
    pub fn sync(&self) -> io::Result<()> {
        rustix::fs::fdatasync(self.file.as_fd())?;
        Ok(content::flush(&self.file)?)
    }
}

/// The name of a journal, held against all other runs by an empty file, which is removed again
/// unless a journal becomes of it. An empty file left by a killed run does not count as a journal.
#[derive(Debug)]
pub struct Claim(Option<(Place, Locked)>);

impl Claim {
    /// Holds a place.
    ///
    /// # Errors
    /// `AlreadyExists` for any existing file but those that [`Journal::open`] takes for nothing;
    /// `WouldBlock` where another run holds it; `PermissionDenied` where the new file would not be
    /// this user's alone, as on file systems without owners; others of creating the file.
    pub fn new(place: Place) -> io::Result<Claim> {
        let file = match look(&place)? {
            FoundFile::Nothing => create_file(&place)?,
            FoundFile::Stub(file) => file,
            FoundFile::Busy => return Err(io::ErrorKind::WouldBlock.into()),
            FoundFile::File(_) | FoundFile::Foreign(_) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
        };
        Ok(Claim(Some((place, file))))
    }

    /// Begins the journal with the records of `piece`, as [`Journal::create`] does.
    ///
    /// # Errors
    /// Errors of writing and syncing, after which the name is free again.
    pub fn begin(mut self, key: &Key, piece: &mut [u8]) -> io::Result<Journal> {
        match self.0.take() {
            Some((place, file)) => Journal::create_in(place, file, key, piece),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the open file, to know it by.
    pub fn file(&self) -> Option<&File> {
        self.0.as_ref().map(|(_, file)| &**file)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((place, file)) = &self.0
            && place.means(file)
        {
            // A file that stays is taken for nothing.
            let _ = entry::unlink(place.directory(), place.name());
        }
    }
}

/// State of the file at the place of a journal.
enum FoundFile {
    Nothing,
    /// A file that is this user's alone, held.
    File(Locked),
    /// A file as of [`File`](FoundFile::File), but left by a run that was killed between the making of
    /// its journal and the first byte: other programs make no empty files that only their owner may
    /// read.
    Stub(Locked),
    /// Held by another process.
    Busy,
    /// A file that is not this user's alone, with the reason.
    Foreign(String),
}

/// Looks at the file where a journal is, or would be, and holds it; nothing is changed.
fn look(place: &Place) -> io::Result<FoundFile> {
    let foreign = |why: String| Ok(FoundFile::Foreign(why));
    // Before it is opened: for a device that alone can be an order.
    match place.existing() {
        Ok(None) => return Ok(FoundFile::Nothing),
        Ok(Some(stat)) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return foreign("a symbolic link".to_owned()),
            _ => return foreign(NotOurs::NotRegular.to_string()),
        },
        Err(error) => return foreign(error.to_string()),
    }
    let file = match place.open(place.name(), OFlags::RDWR | FLAGS) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundFile::Nothing),
        Err(error) => return foreign(format!("open: {error}")),
    };
    if let Err(why) = check(&file)? {
        return foreign(why.to_string());
    }
    let meta = file.metadata()?;
    if meta.nlink() != 1 {
        return foreign("has several names".to_owned());
    }
    let file = match Locked::new(file, false) {
        Ok(file) => file,
        Err((error, _)) if error.kind() == io::ErrorKind::WouldBlock => {
            return Ok(FoundFile::Busy);
        }
        Err((error, _)) => return foreign(format!("lock: {error}")),
    };
    // Between the look and the lock its writer may have ended and removed it.
    if !place.means(&file) {
        return Ok(FoundFile::Busy);
    }
    let meta = file.metadata()?;
    Ok(match meta.len() == 0 && meta.mode() & 0o7777 == 0o600 {
        true => FoundFile::Stub(file),
        false => FoundFile::File(file),
    })
}

/// Returns a new file at `place`, held.
fn create_file(place: &Place) -> io::Result<Locked> {
    let file = content::create(place.directory(), place.name(), 0o600).map(File::from)?;
    let unlink = || {
        let _ = entry::unlink(place.directory(), place.name());
    };
    let refused = match check(&file) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => {
            let text = why.to_string();
            Some(io::Error::new(io::ErrorKind::PermissionDenied, text))
        }
        Err(error) => Some(error),
    };
    if let Some(refused) = refused {
        unlink();
        return Err(refused);
    }
    Locked::new(file, false).map_err(|(error, _)| {
        // The process that holds it by now took it for the remains of a killed run, and resumes
        // with it.
        if error.kind() != io::ErrorKind::WouldBlock {
            unlink();
        }
        error
    })
}

#[cfg(test)]
mod tests;
