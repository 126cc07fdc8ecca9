//! What is known of where files lie on disk: which of them share extents with others, and which
//! have the same map.

use std::collections::HashMap;
use std::sync::Mutex;

use bc_fs::mount::{Answer, Traits};

use super::lock;
use crate::space::{Map, Space};

/// What was found out so far, by all workers.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// Of candidates that share extents with other files.
    pub(super) shared: Mutex<HashMap<u32, Space>>,
    /// The first candidate that was seen with a map.
    pub(super) maps: Mutex<HashMap<Map, u32>>,
    /// Devices that tell of no file where it lies.
    pub(super) silent: Mutex<Vec<u64>>,
}

impl Extents {
    /// Whether no candidate is known to share anything.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.shared).is_empty()
    }

    /// Whether files of a device may take less than is allocated to them.
    pub(super) fn may_share(&self, dev: u64, traits: &Traits) -> bool {
        (traits.reflinks != Answer::No || traits.copy_up == Answer::Yes)
            && !lock(&self.silent).contains(&dev)
    }

    /// What each of these candidates takes, if it shares any of it.
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

/// A file, and the one that has the same content if that is what it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) candidate: u32,
    pub(crate) leader: u32,
}

/// Whether a file may be taken for equal to another without being read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follow {
    Yes,
    No,
}
