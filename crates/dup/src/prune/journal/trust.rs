//! Which journals are believed: a journal tells what to give whose metadata
//! to, so only one that nobody else could have written is read or continued.
//! Everything is asked of the open file, never of its name.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::JournalError;
use crate::prune::options::RunMode;

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

/// A FIFO or a device must not hold the run up; they are refused afterwards.
pub(super) const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Refuses what is no regular file, belongs to somebody else or may be written
/// by others. (The group's bits are the mask of an access control list.)
pub(super) fn check(file: &File, path: &Path) -> Result<(), JournalError> {
    let refuse = |why: &str| Err(JournalError::refused(path, "open", why));
    let meta = file
        .metadata()
        .map_err(|error| JournalError::new(path, "stat", error))?;
    if !meta.is_file() {
        return refuse("not a regular file");
    }
    let own = rustix::process::geteuid().as_raw();
    if meta.uid() != own {
        let owner = meta.uid();
        return refuse(&format!(
            "belongs to user {owner}, not to user {own} who would act on it"
        ));
    }
    if meta.mode() & 0o022 != 0 {
        let mode = meta.mode() & 0o7777;
        return refuse(&format!("others may write it (mode {mode:o}); chmod go-w"));
    }
    Ok(())
}

/// A journal that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Locked(File);

impl std::ops::Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough while a process that was forked meanwhile has
        // the descriptor, until it runs its own program.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Holds the journal: against everybody to act on it, against writers to look.
/// Where there are no locks, nobody is held off.
pub(super) fn lock(file: File, path: &Path, mode: RunMode) -> Result<Locked, JournalError> {
    let how = match mode {
        RunMode::Execute => FlockOperation::NonBlockingLockExclusive,
        RunMode::DryRun => FlockOperation::NonBlockingLockShared,
    };
    match rustix::fs::flock(&file, how) {
        Err(Errno::WOULDBLOCK) => {
            let busy = "another run is at work with it";
            Err(JournalError::refused(path, "lock", busy))
        }
        _ => Ok(Locked(file)),
    }
}
