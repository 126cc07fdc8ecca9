//! A source that is open, and the place of its copy.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use bc_fs::known::{COARSEST_STEP_NS, file_clock, is_stamp_racy};
use bc_walk::{FileStat, Stamp};
use rustix::fs::Stat;

use crate::beneath::DestDir;
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

/// True if a write from now on gives a file another time than it has.
pub(crate) fn is_settled(stamp: &Stamp) -> bool {
    is_settled_at(stamp, file_clock())
}

/// True if a write since `now`, by the clock that stamps files, gives it another time.
pub(crate) fn is_settled_at(stamp: &Stamp, now: i64) -> bool {
    !is_stamp_racy(stamp, now, COARSEST_STEP_NS)
}
