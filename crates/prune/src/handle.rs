//! An open file that may be locked.

use std::cell::Cell;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::options::RunMode;
use super::skip::Skip;

/// An open file; a lock on it ends with it.
pub(crate) struct Handle {
    fd: OwnedFd,
    is_locked: Cell<bool>,
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Handle {
        Handle {
            fd,
            is_locked: Cell::new(false),
        }
    }
}

impl Handle {
    /// Locks the file against other runs. Two that put their own in the place of one name at a time
    /// would each find the other's under its temporary name, and leave that.
    ///
    /// # Errors
    /// [`Skip::Locked`]. Where there are no such locks, the call succeeds without one.
    pub(super) fn lock(&self, mode: RunMode) -> Result<(), Skip> {
        let how = match mode {
            RunMode::DryRun => FlockOperation::NonBlockingLockShared,
            RunMode::Execute => FlockOperation::NonBlockingLockExclusive,
        };
        match bc_edit::flock(&self.fd, how) {
            Ok(()) => {
                self.is_locked.set(true);
                Ok(())
            }
            Err(Errno::WOULDBLOCK) => Err(Skip::Locked),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Closing is not enough while a process that was forked meanwhile has the descriptor.
        if self.is_locked.get() {
            let _ = flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

impl Deref for Handle {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
