//! Locks on directories that runs work in. A run holds a shared lock (`flock`) on every directory
//! in which it has temporary names, as long as it has any and until it continues with others; a run
//! that gets the exclusive one knows that all temporary names there are left over. Links cannot
//! carry a lock of their own, directories can: the kernel drops it with the process, and it holds
//! across PID namespaces and users.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bc_fs::call::{self, FailedCall, point};
use bc_fs::caller::{Caller, FIXED, FileOwner, FixedName};
use bc_fs::meta;
use bc_fs::mount::{Answer, Shows, basic_traits};
use bc_pool::Cancel;
use bc_walk::{FileStat, Identity};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::check::denied::denied;
use crate::skip::Skip;

/// A lock on a directory, given up when dropped.
pub(crate) struct Claim {
    dir: OwnedFd,
    stat: FileStat,
}

impl Claim {
    /// Proves that the caller can remove a name of a file of this owner and group from the directory.
    pub(crate) fn check_removable(&self, caller: &Caller, owner: FileOwner) -> Result<(), Skip> {
        match caller.may_remove(&self.stat, owner) {
            true => Ok(()),
            false => Err(denied("rename", FixedName::InStickyDir.reason())),
        }
    }
}

fn not_permitted() -> Skip {
    Skip::System {
        op: "rename",
        errno: Errno::PERM.raw_os_error(),
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing is not enough while a process that was forked meanwhile has
        // the descriptor, until it runs its own program.
        let _ = flock(&self.dir, FlockOperation::Unlock);
    }
}

/// Longest wait for another process's exclusive lock: a run that removes leftovers holds it for
/// moments.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Directories that are not worked in again: a name that is made there cannot
/// be removed, or another program keeps them locked. Clones know them together.
#[derive(Clone, Default)]
pub(crate) struct Blocked(Arc<Mutex<HashSet<Identity>>>);

impl Blocked {
    /// Claims `dir` for temporary names.
    ///
    /// Refused where names can be added and not taken away again (`chattr +a`),
    /// which would leave one behind each time.
    pub(crate) fn claim(&self, dir: &OwnedFd, cancel: &Cancel) -> Result<Claim, Skip> {
        let opened = open(dir)?;
        let stat = meta::stat(&opened)?;
        let id = stat.id;
        if self.has(id) {
            return Err(not_permitted());
        }
        if only_grows(&opened) {
            return Err(denied("rename", FixedName::InMarkedDir.reason()));
        }
        let mut waited = Duration::ZERO;
        loop {
            match bc_edit::flock(&opened, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) if waited < PATIENCE => {
                    if cancel.is_cancelled() {
                        return Err(Skip::Cancelled);
                    }
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(Errno::WOULDBLOCK) => {
                    self.add(id);
                    return Err(Skip::System {
                        op: "lock directory",
                        errno: Errno::WOULDBLOCK.raw_os_error(),
                    });
                }
                // Where there are no locks, no process removes anything either.
                _ => return Ok(Claim { dir: opened, stat }),
            }
        }
    }

    /// Returns an error if the claimed directory was blocked since and may not be worked in any
    /// more.
    pub(crate) fn renew(&self, claim: &Claim) -> Result<(), Skip> {
        match self.has(claim.stat.id) {
            true => Err(not_permitted()),
            false => Ok(()),
        }
    }

    /// Blocks `dir` for further names: one that was made there could not be removed.
    pub(crate) fn block(&self, dir: &OwnedFd) {
        if let Ok(stat) = meta::stat(dir) {
            self.add(stat.id);
        }
    }

    fn has(&self, id: Identity) -> bool {
        self.lock().contains(&id)
    }

    fn add(&self, id: Identity) {
        self.lock().insert(id);
    }

    /// Nothing is done under the lock that could panic halfway.
    fn lock(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims `dir` for removing leftovers; `None` if a run is at work there, or if that is unknown:
/// network file systems lock directories for this machine alone, if at all.
pub(crate) fn alone(dir: &OwnedFd) -> Option<Claim> {
    if is_remote(dir) {
        return None;
    }
    let opened = open(dir).ok()?;
    bc_edit::flock(&opened, FlockOperation::NonBlockingLockExclusive).ok()?;
    let stat = meta::stat(&opened).ok()?;
    Some(Claim { dir: opened, stat })
}

fn open(dir: &OwnedFd) -> call::Result<OwnedFd> {
    let op = "open directory";
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    point(op)
        .and_then(|()| retry_on_intr(|| rustix::fs::openat(dir, c".", flags, Mode::empty())))
        .map_err(|errno| FailedCall { op, errno })
}

/// Returns true if the directory is marked append-only or immutable, as far as the file system
/// reports that.
fn only_grows(dir: &OwnedFd) -> bool {
    rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|stat| stat.stx_attributes.intersects(FIXED))
}

/// Returns true if other machines may work on the file system too, without a lock taken here
/// keeping them off. On file systems that show others' files that is unknown, and assumed.
fn is_remote(dir: &OwnedFd) -> bool {
    basic_traits(dir).map_or(true, |traits| {
        traits.network != Answer::No || traits.shows == Shows::Others
    })
}
