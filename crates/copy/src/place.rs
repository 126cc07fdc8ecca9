//! The place of an entry at the destination: the directory, opened so that nothing leads out of the
//! destination, as no link is followed on the way even if another process puts one there
//! meanwhile; what has the name; and the open source.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use bc_edit::metadata::DEFAULT_ACL;
use bc_fs::dirfd::{self, own_path};
use bc_fs::known::{COARSEST_STEP_NS, file_clock, is_stamp_racy};
use bc_fs::path::split;
use bc_walk::{FileStat, Identity, Stamp};
use rustix::fs::{AtFlags, Stat, Statx, StatxFlags, statx};
use rustix::io::{Errno, retry_on_intr};

use crate::event::EntryReport;
use crate::meta::stat;
use crate::sources::RootItem;

/// An open source.
pub(crate) struct Open {
    pub(crate) file: OwnedFd,
    pub(crate) stat: FileStat,
    pub(crate) raw: Stat,
    /// True if a later write would give it another time.
    pub(crate) settled: bool,
}

/// Place of an entry at the destination.
#[derive(Clone)]
pub(crate) struct EntryPlace {
    pub(crate) item: RootItem,
    /// Path below the top.
    pub(crate) target: Vec<u8>,
    pub(crate) dir: Rc<DestDir>,
    pub(crate) over: Over,
    /// True if a later write to the source would give it another time.
    pub(crate) settled: bool,
    /// True if its copy was given all metadata of its source.
    pub(crate) is_whole: bool,
}

impl EntryPlace {
    pub(crate) fn name(&self) -> &[u8] {
        split(&self.target).1
    }
}

/// True if a write from now on gives a file another time than it has.
pub(crate) fn is_settled(stamp: &Stamp) -> bool {
    is_settled_at(stamp, file_clock())
}

/// True if a write since `now`, by the clock that stamps files, gives it another time.
pub(crate) fn is_settled_at(stamp: &Stamp, now: i64) -> bool {
    !is_stamp_racy(stamp, now, COARSEST_STEP_NS)
}

/// File that a name is taken from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Over {
    /// None: a name that is taken is kept.
    Nothing,
    /// Any but a directory.
    Anything,
    /// This one alone, in this state.
    This(Box<Existing>),
}

impl Over {
    /// Returns the report of an entry that has its name.
    pub(crate) fn report(&self) -> EntryReport {
        match self {
            Over::Nothing => EntryReport::Copied,
            Over::Anything | Over::This(_) => EntryReport::Replaced,
        }
    }
}

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
        let id = stat(&fd)?.id;
        let own = own_path(&fd);
        let mut list = [0; 4];
        // ERANGE, too, says that there is one; without /proc there may be.
        let found = rustix::fs::getxattr(own, DEFAULT_ACL, &mut list[..]);
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

/// A file that is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Existing {
    pub(crate) stat: FileStat,
    /// Time at which it was made, in nanoseconds since 1970, where the file system keeps it.
    pub(crate) born_ns: Option<i64>,
}

impl From<&Statx> for Existing {
    fn from(found: &Statx) -> Existing {
        let time = found.stx_btime;
        let is_kept = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born_ns = || time.tv_sec.saturating_mul(1_000_000_000) + i64::from(time.tv_nsec);
        Existing {
            stat: FileStat::from(found),
            born_ns: is_kept.then(born_ns),
        }
    }
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

impl Existing {
    /// Looks at a name; a link is a link.
    pub(crate) fn at(dir: impl AsFd, name: &[u8]) -> Result<Existing, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = retry_on_intr(|| statx(dir.as_fd(), name, flags, WANTED))?;
        Ok(Existing::from(&found))
    }

    /// Looks at an open file.
    pub(crate) fn of(file: impl AsFd) -> Result<Existing, Errno> {
        let found = retry_on_intr(|| statx(file.as_fd(), c"", AtFlags::EMPTY_PATH, WANTED))?;
        Ok(Existing::from(&found))
    }
}
