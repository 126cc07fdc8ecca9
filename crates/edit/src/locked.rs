//! Locks on files (`flock`) that end when their owner is done, whoever else has the descriptor.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;

use bc_fs::call::point;
use rustix::fs::FlockOperation;
use rustix::io::{Errno, retry_on_intr};

/// Takes a lock of `flock`.
///
/// # Errors
/// Those of `flock`: `WOULDBLOCK` where another process holds it.
pub fn flock(file: impl AsFd, how: FlockOperation) -> Result<(), Errno> {
    point("lock").and_then(|()| retry_on_intr(|| rustix::fs::flock(&file, how)))
}

/// A file that is held until this is dropped.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks a file against all other processes, or, `shared`, against writers only; never waits.
    ///
    /// # Errors
    /// `WouldBlock` where another process holds it; others where there are no locks, with the file
    /// given back, for [`unheld`](Self::unheld), to callers that can do without.
    pub fn new(file: File, shared: bool) -> Result<Locked, (io::Error, File)> {
        let how = match shared {
            false => FlockOperation::NonBlockingLockExclusive,
            true => FlockOperation::NonBlockingLockShared,
        };
        match flock(&file, how) {
            Ok(()) => Ok(Locked(file)),
            Err(Errno::WOULDBLOCK) => Err((io::ErrorKind::WouldBlock.into(), file)),
            Err(errno) => Err((errno.into(), file)),
        }
    }

    /// Wraps a file on a file system without locks: no other process is held off.
    pub fn unheld(file: File) -> Locked {
        Locked(file)
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough while a process that was forked meanwhile has the descriptor,
        // until it runs its own program.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}
