//! A source that is open, and where its copy goes.

use std::os::fd::OwnedFd;
use std::rc::Rc;

pub(crate) use bc_fs::made::file_clock as coarse_now;
use bc_walk::{FileStat, Stamp};
use rustix::fs::Stat;

use crate::beneath::DestDir;
use crate::existing::Existing;
use crate::stage::Over;
use crate::tree::{Item, parts};

/// An open source.
pub(crate) struct Open {
    pub(crate) file: OwnedFd,
    pub(crate) stat: FileStat,
    pub(crate) raw: Stat,
    /// Whether a later write would give it another time.
    pub(crate) settled: bool,
}

/// Where an entry goes.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) item: Item,
    /// Below the top.
    pub(crate) target: Vec<u8>,
    pub(crate) dir: Rc<DestDir>,
    pub(crate) over: Over,
    /// The file that is taken over, where that was decided of it: in another state it is not.
    pub(crate) chosen: Option<Box<Existing>>,
    /// Whether a later write to the source would give it another time.
    pub(crate) settled: bool,
    /// Whether its copy was given all that its source has.
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

/// Whether a write from now on gives a file another time than it has.
pub(crate) fn is_settled(stamp: &Stamp) -> bool {
    is_settled_at(stamp, coarse_now())
}

/// The same of a write since then, by the clock that stamps files.
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
