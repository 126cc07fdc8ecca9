//! Questions that only one kind of file system answers: how an XFS was made, which Btrfs it is, the
//! layer of an overlay that a file is in.

#![allow(unsafe_code, reason = "rustix has no calls for them")]

use std::os::fd::{AsFd, AsRawFd};

use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};

/// `struct xfs_fsop_geom_v4` of `xfs/xfs_fs.h`: the fields used have kept their places
/// since 2018 (`struct xfs_fsop_geom` continues it).
#[repr(C)]
struct XfsGeometry {
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

const XFS_IOC_FSGEOMETRY_V4: Opcode = opcode::read::<XfsGeometry>(b'X', 124);

/// `XFS_FSOP_GEOM_FLAGS_REFLINK`.
const REFLINK: u32 = 1 << 20;

/// Features that an XFS file system was made with, shared extents for one: `xfs_info` asks the same
/// way.
pub(super) struct XfsFeatures {
    pub(super) reflinks: bool,
    /// True if it is on two devices, which count their blocks alike.
    pub(super) realtime: bool,
}

/// Returns the features; `None` where the file's descriptor has no such call (`O_PATH`).
pub(super) fn xfs_features(file: impl AsFd) -> Option<XfsFeatures> {
    // SAFETY: the request reads nothing from and writes one `xfs_fsop_geom_v4` to memory,
    // whose size is part of the request's number, so the kernel agrees on it or refuses.
    let geometry = unsafe { ioctl(file, Getter::<XFS_IOC_FSGEOMETRY_V4, XfsGeometry>::new()) };
    geometry.ok().map(|found| XfsFeatures {
        reflinks: found.flags & REFLINK != 0,
        realtime: found.realtime_blocks > 0,
    })
}

/// `struct btrfs_ioctl_fs_info_args` of `linux/btrfs.h`, as far as it has been since the first.
#[repr(C)]
struct BtrfsInfo {
    max_id: u64,
    devices: u64,
    fsid: [u8; 16],
    /// Further fields, requested by flags, of which none are set.
    rest: [u64; 124],
}

const BTRFS_IOC_FS_INFO: Opcode = opcode::read::<BtrfsInfo>(0x94, 31);

/// Returns the number of a Btrfs file system, whose subvolumes have device numbers of their own; that
/// of the mounted one where two have the same. `None`
/// where the descriptor has no such call (`O_PATH`).
pub(super) fn btrfs_number(file: impl AsFd) -> Option<u128> {
    let mut info = BtrfsInfo {
        max_id: 0,
        devices: 0,
        fsid: [0; 16],
        rest: [0; 124],
    };
    // SAFETY: the request reads and writes one `btrfs_ioctl_fs_info_args`, whose size is part of
    // the request's number, so the kernel agrees on it or refuses; any bits are valid in it.
    let asked = unsafe {
        ioctl(
            file,
            Updater::<BTRFS_IOC_FS_INFO, BtrfsInfo>::new(&mut info),
        )
    };
    asked.ok().map(|()| u128::from_be_bytes(info.fsid))
}

/// `struct file_handle` of `linux/fcntl.h` with as many bytes as there can be (`MAX_HANDLE_SZ`).
#[repr(C)]
struct FileHandle {
    bytes: u32,
    kind: i32,
    data: [u8; 128],
}

/// `AT_HANDLE_FID` (Linux 6.6): a handle that names the file and need not open it.
const FID: libc::c_int = 0x200;

/// `OVL_FH_MAGIC` of `fs/overlayfs/overlayfs.h`, after three bytes that align the handle and one
/// of its version.
const MAGIC: (usize, u8) = (4, 0xfb);
/// Offset of the flags in the handle, and `OVL_FH_FLAG_PATH_UPPER` in them.
const UPPER: (usize, u8) = (6, 1 << 2);

/// Layer that contains the content of a file on an overlay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    /// In the layer that is written to: it is removed with the file.
    Upper,
    /// In a lower layer, where it stays whatever is done to the file; or it was copied up from
    /// there, and the overlay still names it by its origin.
    Lower,
    /// Not reported: by the kernel for an overlay before Linux 6.6, by a FUSE file system at all
    /// times.
    Unknown,
}

/// Returns the layer of `file`, which is on a file system that copies files up.
pub fn layer_of(file: impl AsFd) -> Layer {
    let mut handle = FileHandle {
        bytes: 128,
        kind: 0,
        data: [0; 128],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the call reads the empty path, which ends in a zero byte, and writes at most
    // `bytes` bytes after the two numbers of the handle, which is that long, and one `int`; the
    // descriptor is borrowed for the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            FID | libc::AT_EMPTY_PATH,
        )
    };
    match done == 0 && handle.data[MAGIC.0] == MAGIC.1 {
        false => Layer::Unknown,
        true if handle.data[UPPER.0] & UPPER.1 != 0 => Layer::Upper,
        true => Layer::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_of_xfs_has_the_kernels_size() {
        assert_eq!(size_of::<XfsGeometry>(), 112);
        assert_eq!(XFS_IOC_FSGEOMETRY_V4, 0x8070_587c);
    }

    #[test]
    fn the_structure_of_btrfs_has_the_kernels_size() {
        assert_eq!(size_of::<BtrfsInfo>(), 1024);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(BTRFS_IOC_FS_INFO, 0x8400_941f);
    }

    #[test]
    fn others_do_not_answer() {
        assert_eq!(
            btrfs_number(std::fs::File::open("/proc/self/status").unwrap()),
            None
        );
    }

    #[test]
    fn what_is_no_overlay_has_no_layers() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(layer_of(&file), Layer::Unknown);
    }
}
