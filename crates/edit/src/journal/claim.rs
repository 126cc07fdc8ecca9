//! A place that is held for a journal before there is anything to record.

use std::fs::File;
use std::io;

use bc_fs::place::Place;

use super::file::{FoundJournal, create, look};
use super::{Journal, Key};
use crate::entry;
use crate::locked::Locked;

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
            FoundJournal::Nothing => create(&place)?,
            FoundJournal::Stub(file) => file,
            FoundJournal::Busy => return Err(io::ErrorKind::WouldBlock.into()),
            FoundJournal::File(_) | FoundJournal::Foreign(_) => {
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
