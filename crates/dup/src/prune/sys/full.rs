//! Full state of an open file, with one system call.

use std::os::fd::AsFd;

use bc_walk::FileStat;
use rustix::fs::{self, AtFlags, Stat, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::{FailedCall, Result, call, raw_stat};
use crate::clock::nanoseconds;

/// State of a file, with the fields that its [`FileStat`] leaves out.
pub(crate) struct FullStat {
    pub(crate) stat: FileStat,
    pub(crate) atime_ns: i64,
    /// Time of birth, in nanoseconds since 1970; `None` where its file system does not keep that.
    pub(crate) born_ns: Option<u64>,
    /// Marks (`chattr`), as far as its file system reports them, and a bit for the root of a mount.
    pub(crate) marks: StatxAttributes,
    /// The number of the mount that it was opened by; `None` from kernels that do not report it
    /// (before Linux 5.8).
    pub(crate) mount: Option<u64>,
}

impl From<&Statx> for FullStat {
    fn from(found: &Statx) -> FullStat {
        FullStat {
            stat: FileStat::from(found),
            atime_ns: nanoseconds(found.stx_atime.tv_sec, u64::from(found.stx_atime.tv_nsec)),
            born_ns: birth(found),
            marks: found.stx_attributes,
            mount: StatxFlags::from_bits_retain(found.stx_mask)
                .contains(StatxFlags::MNT_ID)
                .then_some(found.stx_mnt_id),
        }
    }
}

impl From<&Stat> for FullStat {
    fn from(found: &Stat) -> FullStat {
        FullStat {
            stat: FileStat::from(found),
            atime_ns: nanoseconds(found.st_atime, found.st_atime_nsec),
            born_ns: None,
            marks: StatxAttributes::empty(),
            mount: None,
        }
    }
}

fn birth(found: &Statx) -> Option<u64> {
    let reported = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let seconds = u64::try_from(found.stx_btime.tv_sec)
        .ok()
        .filter(|_| reported)?;
    let born = seconds.checked_mul(1_000_000_000)?;
    born.checked_add(u64::from(found.stx_btime.tv_nsec))
        .filter(|born| *born > 0)
}

/// All that is known of an open file.
pub(crate) fn stat_all(file: impl AsFd) -> Result<FullStat> {
    full(file, AtFlags::empty())
}

/// Returns the same from the server, where the kernel's cache may be outdated.
pub(crate) fn stat_all_now(file: impl AsFd) -> Result<FullStat> {
    full(file, AtFlags::STATX_FORCE_SYNC)
}

fn full(file: impl AsFd, more: AtFlags) -> Result<FullStat> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = call("stat", || {
        fs::statx(&file, c"", AtFlags::EMPTY_PATH | more, wanted)
    });
    match found {
        Ok(found) => Ok(FullStat::from(&found)),
        // Some filters do not know the call.
        Err(FailedCall {
            errno: Errno::NOSYS | Errno::PERM,
            ..
        }) => raw_stat(file).map(|found| FullStat::from(&found)),
        Err(failed) => Err(failed),
    }
}

/// Returns the time of birth of an open file, in nanoseconds since 1970; `None` where its file
/// system does not keep that.
pub(crate) fn born_ns(file: impl AsFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH;
    let found = call("stat", || fs::statx(&file, c"", flags, StatxFlags::BTIME));
    birth(&found.ok()?)
}
