//! Check of a journal's owner and mode: a journal decides which metadata is given to which file, so
//! only one that no other user could have written is read or continued. Everything is asked of the
//! open file, never of its name.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bc_edit::journal;
use bc_fs::PathError;

use super::refused;
use crate::options::RunMode;

pub(super) use bc_edit::Locked;
pub(super) use bc_edit::journal::FLAGS;

/// Opens a journal for reading.
pub(super) fn open(path: &Path) -> Result<File, PathError> {
    let file = File::options()
        .read(true)
        .custom_flags(FLAGS.bits() as i32)
        .open(path)
        .map_err(|error| PathError::new(path, "open", error))?;
    check(&file, path)?;
    Ok(file)
}

/// Refuses a file that is not a regular one, belongs to another user or may be written by others.
pub(super) fn check(file: &File, path: &Path) -> Result<(), PathError> {
    journal::check(file)
        .map_err(|error| PathError::new(path, "stat", error))?
        .map_err(|why| refused(path, "open", why.to_string()))
}

/// Locks the journal: exclusively to act on it, against writers to look. Where there are no locks,
/// it is opened without.
pub(super) fn lock(file: File, path: &Path, mode: RunMode) -> Result<Locked, PathError> {
    let shared = mode == RunMode::DryRun;
    Locked::new(file, shared).or_else(|(error, file)| match error.kind() {
        io::ErrorKind::WouldBlock => {
            let busy = "another run is at work with it";
            Err(refused(path, "lock", busy))
        }
        _ => Ok(Locked::unheld(file)),
    })
}
