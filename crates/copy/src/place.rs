//! A source that is open, and the place of its copy.

use std::os::fd::OwnedFd;
use std::rc::Rc;

pub(crate) use bc_edit::made::file_clock as coarse_now;
use bc_walk::{FileStat, Stamp};
use rustix::fs::Stat;

use crate::beneath::DestDir;
use crate::existing::Existing;
use crate::stage::Over;
use crate::tree::{RootItem, parts};

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
pub(crate) struct Place {
    pub(crate) item: RootItem,
    /// Path below the top.
    pub(crate) target: Vec<u8>,
    pub(crate) dir: Rc<DestDir>,
    pub(crate) over: Over,
    /// The file that is taken over, where that was decided of it: in another state it is not.
    pub(crate) chosen: Option<Box<Existing>>,
    /// Whether a later write to the source would give it another time.
    pub(crate) settled: bool,
    /// True if its copy was given all metadata of its source.
    pub(crate) is_whole: bool,
}

impl Place {
    pub(crate) fn name(&self) -> &[u8] {
        parts(&self.target).1
    }
}

/// Kernels keep times in steps of up to 10 ms, some file systems of up to 2 s.
pub(crate) const STEP_NS: i64 = 100_000_000;
const COARSE_NS: i64 = 2_100_000_000;

/// True if a write from now on gives a file another time than it has.
pub(crate) fn is_settled(stamp: &Stamp) -> bool {
    is_settled_at(stamp, coarse_now())
}

/// True if a write since `now`, by the clock that stamps files, gives it another time.
pub(crate) fn is_settled_at(stamp: &Stamp, now: i64) -> bool {
    [stamp.mtime_ns, stamp.ctime_ns].iter().all(|&time| {
        let step = if time % 1_000_000_000 == 0 {
            COARSE_NS
        } else {
            STEP_NS
        };
        time < now.saturating_sub(step)
    })
}
