//! Files at the destination as `statx` describes them, with their birth times.

use std::os::fd::AsFd;

use bc_walk::FileStat;
use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
use rustix::io::{Errno, retry_on_intr};

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
