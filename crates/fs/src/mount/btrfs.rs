//! Identity of the Btrfs file system that a file is on: its subvolumes have device numbers of their
//! own.

#![allow(unsafe_code)]

use std::os::fd::AsFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `struct btrfs_ioctl_fs_info_args` of `linux/btrfs.h`, as far as it has been since the first.
#[repr(C)]
struct Info {
    max_id: u64,
    devices: u64,
    fsid: [u8; 16],
    /// Further fields, requested by flags, of which none are set.
    rest: [u64; 124],
}

const BTRFS_IOC_FS_INFO: Opcode = opcode::read::<Info>(0x94, 31);

/// Returns the file system's own number, that of the mounted one where two have the same. `None`
/// where the descriptor has no such call (`O_PATH`).
pub(super) fn fsid(file: impl AsFd) -> Option<u128> {
    let mut info = Info {
        max_id: 0,
        devices: 0,
        fsid: [0; 16],
        rest: [0; 124],
    };
    // SAFETY: the request reads and writes one `btrfs_ioctl_fs_info_args`, whose size is part of
    // the request's number, so the kernel agrees on it or refuses; any bits are valid in it.
    let asked = unsafe { ioctl(file, Updater::<BTRFS_IOC_FS_INFO, Info>::new(&mut info)) };
    asked.ok().map(|()| u128::from_be_bytes(info.fsid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<Info>(), 1024);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(BTRFS_IOC_FS_INFO, 0x8400_941f);
    }

    #[test]
    fn others_do_not_answer() {
        assert_eq!(
            fsid(std::fs::File::open("/proc/self/status").unwrap()),
            None
        );
    }
}
