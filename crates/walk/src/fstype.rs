//! Which file systems hold no files worth reading, and which play no tricks with numbers.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;
use rustix::io::Errno;

/// What a walk needs to know of a file system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FsType {
    /// Made up by the kernel; sizes mean nothing and reading may have effects.
    Pseudo,
    /// One device number throughout, and directory entries carry the true inode numbers.
    Plain,
    /// Device numbers may change without a mount point (subvolumes), or inode numbers of
    /// directory entries may differ from those of `stat`.
    Tricky,
}

/// From `linux/magic.h` where not said otherwise.
const PSEUDO: [u32; 25] = [
    0x0000_9fa0, // PROC_SUPER_MAGIC
    0x6265_6572, // SYSFS_MAGIC
    0x0027_e0eb, // CGROUP_SUPER_MAGIC
    0x6367_7270, // CGROUP2_SUPER_MAGIC
    0x0000_1cd1, // DEVPTS_SUPER_MAGIC
    0x7472_6163, // TRACEFS_MAGIC
    0x6462_6720, // DEBUGFS_MAGIC
    0x7363_6673, // SECURITYFS_MAGIC
    0xcafe_4a11, // BPF_FS_MAGIC
    0xf97c_ff8c, // SELINUX_MAGIC
    0x4341_5d53, // SMACK_MAGIC
    0x6165_676c, // PSTOREFS_MAGIC
    0xde5e_81e4, // EFIVARFS_MAGIC
    0x0765_5821, // RDTGROUP_SUPER_MAGIC
    0x5049_5045, // PIPEFS_MAGIC
    0x534f_434b, // SOCKFS_MAGIC
    0x6e73_6673, // NSFS_MAGIC
    0x5049_4446, // PID_FS_MAGIC
    0x0904_1934, // ANON_INODE_FS_MAGIC
    0x4249_4e4d, // BINFMTFS_MAGIC
    0x1980_0202, // MQUEUE_MAGIC, ipc/mqueue.c
    0x6265_6570, // CONFIGFS_MAGIC, fs/configfs/mount.c
    0x6573_5543, // FUSE_CTL_SUPER_MAGIC, fs/fuse/control.c
    0xabba_1974, // XENFS_SUPER_MAGIC
    0x5a3c_69f0, // AAFS_MAGIC
];

/// From `linux/magic.h`.
const PLAIN: [u32; 8] = [
    0x0000_ef53, // EXT2_SUPER_MAGIC, and ext3 and ext4
    0x5846_5342, // XFS_SUPER_MAGIC
    0x0102_1994, // TMPFS_MAGIC
    0x8584_58f6, // RAMFS_MAGIC
    0xf2f5_2010, // F2FS_SUPER_MAGIC
    0x7371_7368, // SQUASHFS_MAGIC
    0xe0f5_e1e2, // EROFS_SUPER_MAGIC_V1
    0x0000_9660, // ISOFS_SUPER_MAGIC
];

/// The type of the file system that a descriptor is on.
pub(crate) fn fs_type(fd: impl AsFd) -> Result<FsType, Errno> {
    // The kernel's magic numbers have 32 bits; `f_type` is signed or wider on some machines.
    Ok(classify(fstatfs(fd)?.f_type as u32))
}

fn classify(magic: u32) -> FsType {
    if PSEUDO.contains(&magic) {
        FsType::Pseudo
    } else if PLAIN.contains(&magic) {
        FsType::Plain
    } else {
        FsType::Tricky
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn this_system() {
        assert_eq!(fs_type(File::open("/proc").unwrap()), Ok(FsType::Pseudo));
        assert_eq!(fs_type(File::open("/sys").unwrap()), Ok(FsType::Pseudo));
        let here = fs_type(File::open(".").unwrap()).unwrap();
        assert_ne!(here, FsType::Pseudo);
    }

    #[test]
    fn unknown_is_tricky() {
        assert_eq!(classify(0x9123_683e), FsType::Tricky); // btrfs
        assert_eq!(classify(0x794c_7630), FsType::Tricky); // overlayfs
        assert_eq!(classify(0xef53), FsType::Plain);
    }

    #[test]
    fn no_magic_is_listed_twice() {
        let mut all: Vec<u32> = PSEUDO.iter().chain(&PLAIN).copied().collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
