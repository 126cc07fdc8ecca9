//! Devices of the entries of all parts, numbered as one run would have numbered them.

use bc_manifest::integrity::Entry;
use bc_walk::job::Error;

use super::parts::Parts;

/// A device, as far as it can be distinguished from others in all parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Device {
    /// By its number, where one machine has made all parts.
    Number(u64),
    /// One of those that every part has come to and numbers alike.
    Shared(u32),
    /// One that no directory is on, by the part that has met it: other machines may know it under
    /// another number.
    Of(usize, u32),
}

/// The devices met so far, by index.
pub(super) struct MergedDevices<'a> {
    parts: &'a Parts<'a>,
    known: Vec<Device>,
    /// For each part the new indices by its own ones.
    indices: Vec<Vec<Option<u32>>>,
}

impl<'a> MergedDevices<'a> {
    pub(super) fn new(parts: &'a Parts<'a>) -> MergedDevices<'a> {
        let mut devices = MergedDevices {
            parts,
            known: Vec::new(),
            indices: vec![Vec::new(); parts.manifests.len()],
        };
        // The root's comes first, whichever is seen first.
        devices.known.push(devices.device(0, 0));
        devices
    }

    /// The index that an entry of a part should have.
    pub(super) fn index(&mut self, part: usize, entry: &Entry) -> Result<Option<u32>, Error> {
        let index = entry.dev.unwrap_or(0);
        let end = &self.parts.ends[part];
        if index > 0 && index as usize >= end.devices.len() {
            let path = bc_fs::escape(&entry.path);
            let text = format!("'{path}' is on device {index}, which the trailer does not name");
            return Err(self.parts.manifests[part].bad(text));
        }
        let at = index as usize;
        if let Some(Some(known)) = self.indices[part].get(at) {
            return Ok(some(*known));
        }
        let device = self.device(part, index);
        let found = self.known.iter().position(|known| *known == device);
        let found = found.unwrap_or_else(|| {
            self.known.push(device);
            self.known.len() - 1
        });
        if self.indices[part].len() <= at {
            self.indices[part].resize(at + 1, None);
        }
        self.indices[part][at] = Some(found as u32);
        Ok(some(found as u32))
    }

    fn device(&self, part: usize, index: u32) -> Device {
        let end = &self.parts.ends[part];
        let number = end.devices.get(index as usize);
        match number.filter(|_| self.parts.one_machine) {
            Some(number) => Device::Number(*number),
            None if u64::from(index) < end.shared_devices.max(1) => Device::Shared(index),
            None => Device::Of(part, index),
        }
    }
}

/// The root's is not written.
fn some(index: u32) -> Option<u32> {
    (index > 0).then_some(index)
}
