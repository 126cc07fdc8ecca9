//! Ownership of files that direct a run: only a file that no other user can have written is
//! believed, and only while no other process writes it. The open file is examined, never its name. A
//! journal has the user's [`Key`] as well.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_fs::place::Place;
use rustix::fs::{Mode, OFlags};

use crate::atomic::AtomicFile;
use crate::entry;
use crate::metadata::Subject;

/// Flags for opening a file that may be no journal at all: a FIFO or a terminal must not hold the
/// run up; they are refused afterwards.
pub const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Reason why a file is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotOurs {
    /// A directory, a device, a pipe.
    NotRegular,
    /// Owned by another user.
    Owner {
        /// Its owner.
        theirs: u32,
        /// The user of this process, who would act on it.
        own: u32,
    },
    /// Writable by others, with the mode.
    Writable(u32),
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOurs::NotRegular => write!(f, "not a regular file"),
            NotOurs::Owner { theirs, own } => {
                write!(
                    f,
                    "belongs to user {theirs}, not to user {own} who would act on it"
                )
            }
            NotOurs::Writable(mode) => {
                write!(f, "others may write it (mode {mode:o}); chmod go-w")
            }
        }
    }
}

/// Refuses a file that is not regular, belongs to another user or may be written by others. (The
/// group's bits are the mask of an access control list.)
///
/// # Errors
/// Errors of `fstat`.
pub fn check(file: &File) -> io::Result<Result<(), NotOurs>> {
    let meta = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    let mode = meta.mode() & 0o7777;
    Ok(if !meta.is_file() {
        Err(NotOurs::NotRegular)
    } else if meta.uid() != own {
        let theirs = meta.uid();
        Err(NotOurs::Owner { theirs, own })
    } else if mode & 0o022 != 0 {
        Err(NotOurs::Writable(mode))
    } else {
        Ok(())
    })
}

/// Name of the file of a user's key.
const KEY_NAME: &str = "journal.key";

/// The key by which a user knows the journals of his own runs: 128 random bits, which are kept where
/// only he writes, are in each of them. A file that belongs to the user need not have been written by
/// his run: it may come out of an archive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key([u8; 16]);

impl Key {
    /// Returns the key that is kept in `directory`, which is made, as is the key, where there is
    /// none yet.
    ///
    /// # Errors
    /// Errors of making and reading them, with the file and the operation; `PermissionDenied` for a
    /// key that others may have written; `InvalidData` for one that is cut off.
    pub fn kept_in(directory: impl AsRef<Path>) -> io::Result<Key> {
        Key::kept_at(directory.as_ref())
    }

    fn kept_at(directory: &Path) -> io::Result<Key> {
        entry::make_dirs(directory, 0o700)
            .map_err(|failed| with_path(directory, "mkdir", &failed.into()))?;
        let path = directory.join(KEY_NAME);
        match read_key(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read.map_err(|error| with_path(&path, "read", &error)),
        }
        match make_key(&path) {
            // Another run was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read_key(&path).map_err(|error| with_path(&path, "read", &error))
            }
            made => made.map_err(|error| with_path(&path, "create", &error)),
        }
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

fn with_path(path: &Path, operation: &str, error: &io::Error) -> io::Error {
    let path = bc_fs::escape(path.as_os_str().as_encoded_bytes());
    io::Error::new(error.kind(), format!("{path}: {operation}: {error}"))
}

fn read_key(path: &Path) -> io::Result<Key> {
    let place = Place::find(path)?;
    let mut file = File::from(place.open(place.name(), OFlags::RDONLY | FLAGS)?);
    if let Err(why) = check(&file)? {
        let text = why.to_string();
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut key = [0; 16];
    match file.read_exact(&mut key) {
        Ok(()) => Ok(Key(key)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let text = "shorter than a key: remove it, and journals so far are no longer known";
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
        Err(error) => Err(error),
    }
}

fn make_key(path: &Path) -> io::Result<Key> {
    let key = Key(random()?);
    let new = AtomicFile::create(path)?;
    Subject::open(new.file().as_fd()).chmod(Mode::from_raw_mode(0o600))?;
    new.file().write_all(&key.0)?;
    new.commit_new().map_err(|not| not.error)?;
    Ok(key)
}

/// Returns 128 random bits that cannot be guessed.
///
/// # Errors
/// Those of opening and reading `/dev/urandom`.
pub fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
