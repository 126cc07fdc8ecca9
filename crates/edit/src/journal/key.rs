//! The key by which a user knows the journals of his own runs.
//!
//! A file that belongs to the user need not have been written by his run: it may come out of an
//! archive. 128 random bits, which are kept where only he writes, are in each of his journals.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use bc_fs::place::Place;
use rustix::fs::{Mode, OFlags};

use super::owner;
use crate::atomic::AtomicFile;
use crate::entry;

/// The name of its file.
const NAME: &str = "journal.key";

/// A user's key.
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
            .map_err(|failed| named(directory, "mkdir", &failed.into()))?;
        let path = directory.join(NAME);
        match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read.map_err(|error| named(&path, "read", &error)),
        }
        match make(&path) {
            // Another run was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read(&path).map_err(|error| named(&path, "read", &error))
            }
            made => made.map_err(|error| named(&path, "create", &error)),
        }
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

fn named(path: &Path, operation: &str, error: &io::Error) -> io::Error {
    let path = bc_fs::escape(path.as_os_str().as_encoded_bytes());
    io::Error::new(error.kind(), format!("{path}: {operation}: {error}"))
}

fn read(path: &Path) -> io::Result<Key> {
    let place = Place::find(path)?;
    let mut file = File::from(place.open(place.name(), OFlags::RDONLY | owner::FLAGS)?);
    if let Err(why) = owner::check(&file)? {
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

fn make(path: &Path) -> io::Result<Key> {
    let key = Key(random()?);
    let new = AtomicFile::create(path)?;
    rustix::fs::fchmod(new.file(), Mode::from_raw_mode(0o600))?;
    new.file().write_all(&key.0)?;
    new.commit_new().map_err(|not| not.error)?;
    Ok(key)
}

/// Returns 128 random bits that cannot be guessed.
pub(super) fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
