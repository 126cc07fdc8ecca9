//! Locks on files (`flock`) that end when their owner is done, whoever else has the descriptor; and
//! removal of what killed runs left under temporary names. A living run holds its file by a lock, so a
//! file that is held is never touched; what a name may hold, and whether it is ours at all, is known
//! by its command alone.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;

use bc_fs::call::point;
use bc_fs::meta::FileStat;
use rustix::fs::{AtFlags, FlockOperation, fstat, statat};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

use crate::entry;

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

/// Outcome of [`remove_unheld`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sweep {
    /// Nobody held the file, and its name was removed, as far as the system let it.
    Removed,
    /// Another process holds it, or there are no locks by which that could be known.
    Held,
    /// The name is another file's by now.
    Renamed,
}

/// Removes `name` from the directory `dir`, if it still leads to `file`, and no other process holds
/// that.
pub fn remove_unheld(dir: impl AsFd, name: impl Arg + Copy, file: File) -> Sweep {
    let Ok(held) = Locked::new(file, false) else {
        return Sweep::Held;
    };
    let dir = dir.as_fd();
    let there = retry_on_intr(|| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW));
    match (fstat(&*held), there) {
        (Ok(held), Ok(there)) if FileStat::from(&held).id == FileStat::from(&there).id => {}
        _ => return Sweep::Renamed,
    }
    // A name that cannot be removed is met again by the next run.
    let _ = entry::unlink(dir, name);
    Sweep::Removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_goes_and_only_under_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = File::open(dir.path()).unwrap();
        let path = dir.path().join("left");
        let open = || File::open(&path).unwrap();
        std::fs::write(&path, "a").unwrap();
        let holder = Locked::new(open(), false).unwrap();
        assert_eq!(remove_unheld(&at, "left", open()), Sweep::Held);
        drop(holder);
        let was = open();
        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        std::fs::write(&path, "b").unwrap();
        assert_eq!(remove_unheld(&at, "left", was), Sweep::Renamed);
        assert_eq!(std::fs::read(&path).unwrap(), b"b");
        assert_eq!(remove_unheld(&at, "left", open()), Sweep::Removed);
        assert!(!path.exists());
    }
}
