//! Which journals are believed: a journal tells what to give whose metadata
//! to, so only one that nobody else could have written is read or continued.
//! Everything is asked of the open file, never of its name.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bc_fs::journal;

use super::JournalError;
use crate::prune::options::RunMode;

pub(super) use bc_fs::journal::{FLAGS, Locked};

/// Opens a journal for reading.
pub(super) fn open(path: &Path) -> Result<File, JournalError> {
    let file = File::options()
        .read(true)
        .custom_flags(FLAGS.bits() as i32)
        .open(path)
        .map_err(|error| JournalError::new(path, "open", error))?;
    check(&file, path)?;
    Ok(file)
}

/// Refuses what is no regular file, belongs to somebody else or may be written
/// by others.
pub(super) fn check(file: &File, path: &Path) -> Result<(), JournalError> {
    journal::check(file)
        .map_err(|error| JournalError::new(path, "stat", error))?
        .map_err(|why| JournalError::refused(path, "open", why.to_string()))
}

/// Holds the journal: against everybody to act on it, against writers to look.
/// Where there are no locks, nobody is held off.
pub(super) fn lock(file: File, path: &Path, mode: RunMode) -> Result<Locked, JournalError> {
    let shared = mode == RunMode::DryRun;
    Locked::new(file, shared).or_else(|(error, file)| match error.kind() {
        io::ErrorKind::WouldBlock => {
            let busy = "another run is at work with it";
            Err(JournalError::refused(path, "lock", busy))
        }
        _ => Ok(Locked::unheld(file)),
    })
}
