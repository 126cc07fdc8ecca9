//! Locations of files on disk: files that share extents with others, and files that have the same
//! map.

use std::collections::HashMap;
use std::sync::Mutex;

use bc_fs::mount::{Answer, Traits};
use bc_read::space::{Map, Space};

use super::lock;

/// Results so far, of all workers.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// Space of the candidates that share extents with other files.
    pub(super) shared: Mutex<HashMap<u32, Space>>,
    /// The first candidate that was seen with a map.
    pub(super) maps: Mutex<HashMap<Map, u32>>,
    /// Devices that report the location of no file.
    pub(super) silent: Mutex<Vec<u64>>,
}

impl Extents {
    /// Returns true if no candidate is known to share anything.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.shared).is_empty()
    }

    /// Returns true if files of a device may take less than is allocated to them.
    pub(super) fn may_share(&self, dev: u64, traits: &Traits) -> bool {
        (traits.reflinks != Answer::No || traits.copy_up == Answer::Yes)
            && !lock(&self.silent).contains(&dev)
    }

    /// Calls `f` with the space of each of these candidates; `None` for those that share nothing.
    pub(crate) fn with_shared<T>(
        &self,
        candidates: &[u32],
        f: impl FnOnce(&[Option<&Space>]) -> T,
    ) -> T {
        let shared = lock(&self.shared);
        let spaces: Vec<Option<&Space>> = candidates.iter().map(|one| shared.get(one)).collect();
        f(&spaces)
    }
}

/// A file, and the one that has the same content if the file is unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) candidate: u32,
    pub(crate) leader: u32,
}

/// Permission to take a file for equal to another without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follow {
    Yes,
    No,
}
