//! Directories below the destination, opened so that nothing leads out of it: no link is followed
//! on the way, even if another process puts one there meanwhile.

use std::os::fd::{BorrowedFd, OwnedFd};

use bc_fs::dirfd::{self, own_path};
use bc_walk::{FileStat, Identity};
use rustix::io::{Errno, retry_on_intr};

/// A directory of the destination.
#[derive(Debug)]
pub(crate) struct DestDir {
    /// Directory opened with `O_PATH`.
    pub(crate) fd: OwnedFd,
    /// Device and inode number.
    pub(crate) id: Identity,
    /// True if new files in it inherit an access control list.
    pub(crate) gives_acl: bool,
}

impl DestDir {
    /// Opens the directory at `path`, relative to `top`; `top` itself for an empty path.
    pub(crate) fn open(top: BorrowedFd<'_>, path: &[u8]) -> Result<DestDir, Errno> {
        DestDir::of(dirfd::open_below(top, path)?)
    }

    pub(crate) fn of(fd: OwnedFd) -> Result<DestDir, Errno> {
        let id = FileStat::from(&retry_on_intr(|| rustix::fs::fstat(&fd))?).id;
        let own = own_path(&fd);
        let mut list = [0; 4];
        // ERANGE, too, says that there is one; without /proc there may be.
        let found = rustix::fs::getxattr(own, c"system.posix_acl_default", &mut list[..]);
        let gives_acl = !matches!(found, Err(Errno::NODATA | Errno::NOTSUP));
        Ok(DestDir { fd, id, gives_acl })
    }

    /// Returns the permission bits with which to make a directory here that gets those of `mode`
    /// once it is filled. Until then no inherited list that it is not to keep may let other users
    /// in: the group bits returned here are that list's mask.
    pub(crate) fn mode_of_new_dir(&self, mode: u32) -> u32 {
        match self.gives_acl {
            true => 0o700,
            false => mode & 0o777 | 0o700,
        }
    }
}
