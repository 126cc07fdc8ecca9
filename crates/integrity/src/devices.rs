//! Devices as manifests record them: by index of first appearance, in path order.

/// Numbers the devices of a manifest that is being written.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// Numbers of devices by index; `None` for one that only an old manifest knows.
    now: Vec<Option<u64>>,
    /// Index by index in the old manifest, as far as it is known.
    old: Vec<Option<u32>>,
}

impl Devices {
    /// The index of a device that is there.
    pub(crate) fn index(&mut self, dev: u64) -> u32 {
        // Neighbours are on one device, and there are few.
        match self.now.iter().position(|known| *known == Some(dev)) {
            Some(index) => index as u32,
            None => self.push(Some(dev)),
        }
    }

    /// `dev` was recorded as `old` in the manifest before.
    pub(crate) fn was(&mut self, old: u32, dev: u64) {
        let index = self.index(dev);
        self.slot(old).get_or_insert(index);
    }

    /// The index of a device that an entry of the manifest before has, which is kept.
    pub(crate) fn kept(&mut self, old: u32) -> u32 {
        if let Some(index) = *self.slot(old) {
            return index;
        }
        let index = self.push(None);
        *self.slot(old) = Some(index);
        index
    }

    fn slot(&mut self, old: u32) -> &mut Option<u32> {
        /// A manifest may say anything; nobody mounts more.
        const MOST: u32 = 1 << 20;
        let at = old.min(MOST) as usize;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_first_appearance() {
        let mut devices = Devices::default();
        assert_eq!(
            [7, 7, 9, 7, 8].map(|dev| devices.index(dev)),
            [0, 0, 1, 0, 2]
        );
    }

    #[test]
    fn kept_entries_stay_together() {
        let mut devices = Devices::default();
        devices.was(0, 66);
        assert_eq!(devices.kept(0), 0);
        assert_eq!([3, 3, 1].map(|old| devices.kept(old)), [1, 1, 2]);
        assert_eq!(devices.index(67), 3);
        assert_eq!(devices.kept(u32::MAX), 4);
    }
}
