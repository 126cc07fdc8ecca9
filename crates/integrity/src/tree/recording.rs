//! Entries of the tree as manifests record them, with their devices: by index of first appearance,
//! in path order, the root's first and not written at all, since nearly all entries are on it.

use bc_manifest::integrity::{Entry, Meta};

use super::loader::LoadedEntry;
use crate::entry_ref::EntryRef;

/// Numbers the devices of a manifest that is being written.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// Numbers of devices by index; `None` for one that only an old manifest knows.
    now: Vec<Option<u64>>,
    /// Index by index in the old manifest, as far as it is known.
    old: Vec<Option<u32>>,
    /// Number of first devices that have the same numbers for all readers of one tree.
    shared: usize,
}

impl Devices {
    /// Begins with the root's device as the first, if it is known.
    pub(crate) fn new(root: Option<u64>) -> Devices {
        Devices {
            now: root.map(Some).into_iter().collect(),
            old: Vec::new(),
            shared: 0,
        }
    }

    /// Numbers these devices, which all readers of parts of one tree know in the same order, before
    /// any entry is seen.
    pub(crate) fn share(&mut self, devices: impl Iterator<Item = u64>) {
        for dev in devices {
            self.number(dev);
        }
        self.shared = self.now.len();
    }

    /// Returns the number of first devices that are shared by all parts.
    pub(crate) fn shared(&self) -> u64 {
        self.shared as u64
    }

    /// Returns the numbers of all devices met, by index.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.now.iter().map(|dev| dev.unwrap_or(0)).collect()
    }

    /// Returns the index of a device that is there, as an entry has it: `None` for the first.
    pub(crate) fn index(&mut self, dev: u64) -> Option<u32> {
        some(self.number(dev))
    }

    /// Notes that `dev` was recorded as `old` in the manifest before.
    pub(crate) fn was(&mut self, old: Option<u32>, dev: u64) {
        let index = self.number(dev);
        self.slot(old).get_or_insert(index);
    }

    /// Returns the index of a device that an entry of the manifest before has, which is kept.
    pub(crate) fn kept(&mut self, old: Option<u32>) -> Option<u32> {
        if let Some(index) = *self.slot(old) {
            return some(index);
        }
        let index = self.push(None);
        *self.slot(old) = Some(index);
        some(index)
    }

    fn number(&mut self, dev: u64) -> u32 {
        // Neighbours are on one device, and there are few.
        match self.now.iter().position(|known| *known == Some(dev)) {
            Some(index) => index as u32,
            None => self.push(Some(dev)),
        }
    }

    fn slot(&mut self, old: Option<u32>) -> &mut Option<u32> {
        /// A manifest may contain any number; no system mounts more.
        const MOST: u32 = 1 << 20;
        let at = old.unwrap_or(0).min(MOST) as usize;
        if self.old.len() <= at {
            self.old.resize(at + 1, None);
        }
        &mut self.old[at]
    }

    fn push(&mut self, dev: Option<u64>) -> u32 {
        self.now.push(dev);
        (self.now.len() - 1) as u32
    }
}

/// Returns the index to write: the root's is not written.
fn some(index: u32) -> Option<u32> {
    (index > 0).then_some(index)
}

/// Returns the line of a manifest for an entry of the tree.
pub(crate) fn to_entry(present: &LoadedEntry<'_>, devices: &mut Devices) -> Entry {
    let view = &present.view;
    let mut entry = Entry::new(present.path.to_vec(), view.kind);
    entry.meta = meta(view);
    entry.dev = view.device.and_then(|dev| devices.index(dev));
    entry.mount = present.mount.cloned().map(Box::new);
    entry.rdev = view.rdev;
    entry.digest = view.digest.and_then(bc_digest::Digest::from_slice);
    entry.target = view.target.map(<[u8]>::to_vec);
    entry.xattrs = view.xattrs.cloned();
    entry.error = view.error.cloned();
    entry
}

fn meta(view: &EntryRef<'_>) -> Option<Meta> {
    Some(Meta {
        size: view.size?,
        mode: view.mode?,
        uid: view.uid?,
        gid: view.gid?,
        mtime_ns: view.mtime_ns?,
        ctime_ns: view.ctime_ns?,
        ino: view.ino?,
        nlink: view.nlink?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_first_appearance() {
        let mut devices = Devices::default();
        let found = [7, 7, 9, 7, 8].map(|dev| devices.index(dev));
        assert_eq!(found, [None, None, Some(1), None, Some(2)]);
        // Without the root among the entries another one comes first.
        let mut devices = Devices::new(Some(5));
        assert_eq!([7, 5].map(|dev| devices.index(dev)), [Some(1), None]);
    }

    #[test]
    fn kept_entries_stay_together() {
        let mut devices = Devices::default();
        devices.was(None, 66);
        assert_eq!([None, Some(0)].map(|old| devices.kept(old)), [None, None]);
        let kept = [3, 3, 1].map(|old| devices.kept(Some(old)));
        assert_eq!(kept, [Some(1), Some(1), Some(2)]);
        assert_eq!(devices.index(67), Some(3));
        assert_eq!(devices.kept(Some(u32::MAX)), Some(4));
    }
}
