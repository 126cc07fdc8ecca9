//! File systems that never report what of a file is resident.

use rustix::io::Errno;

use crate::residency::Residency;
use crate::slot::{Active, PlainRead};

/// File systems that cannot report what is resident (`RWF_NOWAIT`): FUSE, tmpfs, overlays, images.
/// Each is asked once, not with every file. They are learned instead of looked up because the
/// kernel's version decides as well.
#[derive(Debug)]
pub(crate) struct Silent {
    devs: Vec<u64>,
    residency: Residency,
}

impl Silent {
    /// Starts with the devices learned up to now.
    pub(crate) fn new(residency: &Residency) -> Silent {
        Silent {
            devs: residency.silent().clone(),
            residency: residency.clone(),
        }
    }

    /// Reads the bytes asked for as far as they are resident.
    pub(crate) fn read(&mut self, active: &mut Active) -> Result<PlainRead, Errno> {
        let dev = active.opened.stat.id.dev;
        if self.devs.contains(&dev) {
            return Ok(PlainRead::Unknown);
        }
        let plain = active.read_cached()?;
        if matches!(plain, PlainRead::Unsupported) {
            self.devs.push(dev);
            let mut all = self.residency.silent();
            if !all.contains(&dev) {
                all.push(dev);
            }
            return Ok(PlainRead::Unknown);
        }
        Ok(plain)
    }
}
