//! File systems that cannot say what is resident (`RWF_NOWAIT`): FUSE, tmpfs,
//! overlays, images. Each is asked once, not with every file.

use rustix::io::Errno;

use crate::slot::{Active, Plain};

/// The devices that could not say, of one worker. They are learned instead of
/// looked up because the kernel's version decides as well.
#[derive(Debug, Default)]
pub(crate) struct Silent {
    devs: Vec<u64>,
}

impl Silent {
    /// Reads what was asked for as far as it is resident.
    pub(crate) fn read(&mut self, active: &mut Active) -> Result<Plain, Errno> {
        let dev = active.opened.stat.id.dev;
        if self.devs.contains(&dev) {
            return Ok(Plain::Unknown);
        }
        let plain = active.read_cached()?;
        if matches!(plain, Plain::Unsupported) {
            self.devs.push(dev);
            return Ok(Plain::Unknown);
        }
        Ok(plain)
    }
}
