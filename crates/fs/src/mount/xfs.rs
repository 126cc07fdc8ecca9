//! Features that an XFS file system was made with, shared extents for one: `xfs_info` asks the same
//! way.

#![allow(unsafe_code)]

use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

/// `struct xfs_fsop_geom_v4` of `xfs/xfs_fs.h`: the fields used have kept their places
/// since 2018 (`struct xfs_fsop_geom` continues it).
#[repr(C)]
struct Geometry {
    numbers: [u32; 8],
    data_blocks: u64,
    realtime_blocks: u64,
    blocks: [u64; 2],
    uuid: [u8; 16],
    stripe: [u32; 2],
    version: i32,
    flags: u32,
    sector: [u32; 4],
}

const XFS_IOC_FSGEOMETRY_V4: Opcode = opcode::read::<Geometry>(b'X', 124);

/// `XFS_FSOP_GEOM_FLAGS_REFLINK`.
const REFLINK: u32 = 1 << 20;

/// Features chosen when the file system was made.
pub(super) struct MkfsFeatures {
    pub(super) reflinks: bool,
    /// True if it is on two devices, which count their blocks alike.
    pub(super) realtime: bool,
}

/// Returns the features; `None` where the file's descriptor has no such call (`O_PATH`).
pub(super) fn made(file: impl AsFd) -> Option<MkfsFeatures> {
    // SAFETY: the request reads nothing from and writes one `xfs_fsop_geom_v4` to memory,
    // whose size is part of the request's number, so the kernel agrees on it or refuses.
    let geometry = unsafe { ioctl(file, Getter::<XFS_IOC_FSGEOMETRY_V4, Geometry>::new()) };
    geometry.ok().map(|found| MkfsFeatures {
        reflinks: found.flags & REFLINK != 0,
        realtime: found.realtime_blocks > 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<Geometry>(), 112);
        assert_eq!(XFS_IOC_FSGEOMETRY_V4, 0x8070_587c);
    }
}
