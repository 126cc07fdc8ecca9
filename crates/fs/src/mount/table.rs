//! The table. A row lists what the file system promises when mounted the usual way; the comment
//! above each row names the source. Numbers are from `linux/magic.h` where not said otherwise.
//! Paths are those of the Linux sources.

use super::Answer::{No, Unknown, Yes};
use super::Decompression::{ByEach, InTurn};
use super::{CtimeTrust, Decompression, Inodes, Links, Shows, Traits};

const SECOND: u64 = 1_000_000_000;

/// Traits of file systems that are not in the table.
pub(super) const UNKNOWN: Traits = Traits {
    name: "this file system",
    pseudo: false,
    sizes: Yes,
    plain: Unknown,
    inodes: Inodes::Unknown,
    inodes_below: u64::MAX,
    ctime: CtimeTrust::Unknown,
    mtime_step_ns: 2 * SECOND,
    reflinks: Unknown,
    disk: None,
    links: Links::Unknown,
    symlinks: Unknown,
    inline: Unknown,
    blocks: Unknown,
    shows: Shows::Others,
    copy_up: Unknown,
    frees_later: false,
    network: Unknown,
    asks_at_open: Unknown,
    decompression: Decompression::None,
    in_memory: false,
    immutable: false,
    read_only: false,
};

/// A disk's file system as POSIX wants it.
const DISK: Traits = Traits {
    plain: Yes,
    inodes: Inodes::Stable,
    ctime: CtimeTrust::Real,
    mtime_step_ns: 1,
    reflinks: No,
    links: Links::Many,
    symlinks: Yes,
    inline: No,
    blocks: Yes,
    shows: Shows::Own,
    copy_up: No,
    network: No,
    asks_at_open: No,
    ..UNKNOWN
};

/// An image that was written once: its times are its maker's, and another image
/// may be mounted from the same device.
const IMAGE: Traits = Traits {
    ctime: CtimeTrust::MadeUp,
    mtime_step_ns: SECOND,
    inline: Unknown,
    ..DISK
};

/// A file system of another machine, which wants to know who has its files open.
const NETWORK: Traits = Traits {
    reflinks: Unknown,
    network: Yes,
    asks_at_open: Yes,
    ..UNKNOWN
};

/// Made up by the kernel.
const PSEUDO: Traits = Traits {
    name: "a pseudo file system",
    pseudo: true,
    sizes: No,
    reflinks: No,
    links: Links::One,
    symlinks: No,
    network: No,
    ..UNKNOWN
};

const FUSE: Traits = Traits {
    name: "a FUSE file system",
    // Its server may not know them.
    sizes: No,
    // fuse_send_open() in fs/fuse/file.c; and names are remembered for a second only.
    asks_at_open: Yes,
    ..UNKNOWN
};

const FUSE_MAGIC: u32 = 0x6573_5546;
const XFS_MAGIC: u32 = 0x5846_5342;
const BTRFS_MAGIC: u32 = 0x9123_683e;

pub(super) fn is_fuse(magic: u32) -> bool {
    magic == FUSE_MAGIC
}

pub(super) fn is_btrfs(magic: u32) -> bool {
    magic == BTRFS_MAGIC
}

pub(super) fn is_xfs(magic: u32) -> bool {
    magic == XFS_MAGIC
}

const fn named(name: &'static str, traits: Traits) -> Traits {
    Traits { name, ..traits }
}

#[rustfmt::skip]
const BY_MAGIC: &[(u32, Traits)] = &[
    // EXT4_LINK_MAX in fs/ext4/ext4.h; ext2 and ext3, and inodes of 128 bytes, keep whole
    // seconds; inline_data and casefold are features (Documentation/filesystems/ext4).
    (0x0000_ef53, Traits { mtime_step_ns: SECOND, links: Links::UpTo(65_000), inline: Unknown,
        ..named("ext4", DISK) }),
    // XFS_MAXLINK in fs/xfs/libxfs/xfs_format.h; reflink=1 is mkfs.xfs(8)'s default, not a must;
    // xfs_inodegc_worker() in fs/xfs/xfs_icache.c.
    (XFS_MAGIC, Traits { reflinks: Unknown, links: Links::UpTo(0x7fff_ffff), frees_later: true,
        ..named("XFS", DISK) }),
    // BTRFS_LINK_MAX in include/uapi/linux/btrfs_tree.h; btrfs(5): a device number for each
    // subvolume, files below max_inline in the metadata tree.
    (BTRFS_MAGIC, Traits { plain: No, reflinks: Yes, links: Links::UpTo(65_535), inline: Yes,
        ..named("Btrfs", DISK) }),
    // fs/bcachefs: subvolumes, inline data, case folding by directory.
    (0xca45_1a4e, Traits { plain: No, reflinks: Yes, inline: Yes,
        ..named("bcachefs", DISK) }),
    // mm/shmem.c: numbers are given in order at each mount, ctime is the clock's.
    (0x0102_1994, Traits { in_memory: true, ..named("tmpfs", DISK) }),
    // fs/ramfs/inode.c, as tmpfs.
    (0x8584_58f6, Traits { in_memory: true, ..named("ramfs", DISK) }),
    // Documentation/filesystems/f2fs.rst: inline_data by default, casefold a feature.
    (0xf2f5_2010, Traits { inline: Yes, ..named("F2FS", DISK) }),
    // Documentation/filesystems/ocfs2.rst: a cluster's shared disk with refcount trees.
    (0x7461_636f, Traits { plain: Unknown, reflinks: Yes, inline: Unknown, network: Unknown,
        ..named("OCFS2", DISK) }),
    // OpenZFS, include/sys/fs/zfs.h (ZFS_SUPER_MAGIC): objects keep their numbers; snapshots
    // have device numbers of their own.
    (0x2fc1_2fc1, Traits { plain: No, reflinks: Unknown, inline: Unknown,
        ..named("ZFS", DISK) }),
    // JFS_SUPER_MAGIC and JFS_LINK_MAX in fs/jfs.
    (0x3153_464a, Traits { plain: Unknown, ..named("JFS", DISK) }),
    // Documentation/filesystems/nilfs2.rst.
    (0x0000_3434, Traits { plain: Unknown, ..named("NILFS2", DISK) }),
    // Documentation/filesystems/ubifs.rst; c->vfs_sb->s_time_gran in fs/ubifs.
    (0x2405_1905, Traits { plain: Unknown, mtime_step_ns: SECOND, inline: Unknown,
        ..named("UBIFS", DISK) }),
    // NTFS3_SUPER_MAGIC and NTFS_LINK_MAX in fs/ntfs3: numbers are those of the MFT; steps of
    // 100 ns; small files resident in the MFT.
    (0x7366_746e, Traits { plain: Unknown, mtime_step_ns: 100, links: Links::UpTo(4_000),
        inline: Yes, ..named("NTFS", DISK) }),
    // fs/fat/inode.c: numbers by iunique(), ctime is set to mtime, fat_truncate_mtime(): 2 s.
    (0x0000_4d44, Traits { plain: Unknown, inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp,
        mtime_step_ns: 2 * SECOND, links: Links::One, symlinks: No, ..named("FAT", DISK) }),
    // fs/exfat/inode.c and exfat_raw.h (EXFAT_SUPER_MAGIC): numbers by iunique(), ctime is set
    // to mtime, steps of 10 ms.
    (0x2011_bab0, Traits { plain: Unknown, inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp,
        mtime_step_ns: 10_000_000, links: Links::One, symlinks: No, ..named("exFAT", DISK) }),
    // fs/hfsplus/inode.c: catalogue numbers; whole seconds; folding is mkfs.hfsplus's choice.
    (0x0000_482b, Traits { plain: Unknown, mtime_step_ns: SECOND,
        ..named("HFS+", DISK) }),
    // fs/squashfs/inode.c: one time for all three; file.c: blocks of 128 KiB by default, and the
    // ends of files share some.
    (0x7371_7368, Traits { inline: Yes, decompression: InTurn,
        ..named("SquashFS", IMAGE) }),
    // fs/erofs/inode.c: one time for all three; zdata.c, where its maker had it compress.
    (0xe0f5_e1e2, Traits { mtime_step_ns: 1, inline: Yes, decompression: ByEach,
        ..named("EROFS", IMAGE) }),
    // fs/isofs/inode.c, rock.c: numbers are places in the image.
    (0x0000_9660, named("ISO 9660", IMAGE)),
    // fs/udf/inode.c: numbers are places on the disc, which may be exchanged.
    (0x1501_3346, Traits { plain: Unknown, mtime_step_ns: 1_000, ..named("UDF", IMAGE) }),
    // fs/cramfs/inode.c: no times at all; each page is compressed.
    (0x28cd_3d45, Traits { plain: Unknown, decompression: InTurn, ..named("cramfs", IMAGE) }),
    // Documentation/filesystems/overlayfs.rst, "Inode properties" and "Non-directories". Other
    // layers' times are other file systems'.
    (0x794c_7630, Traits { plain: No, inodes: Inodes::Unknown, mtime_step_ns: 2 * SECOND,
        reflinks: Unknown, inline: Unknown, shows: Shows::Layers, copy_up: Yes,
        ..named("overlay", DISK) }),
    // fs/ecryptfs: names and numbers of the directory underneath.
    (0x0000_f15f, Traits { plain: No, network: No, reflinks: No, ..named("eCryptfs", UNKNOWN) }),
    (FUSE_MAGIC, FUSE),
    // RFC 8881, 5.8: fileid and change are the server's.
    (0x0000_6969, Traits { links: Links::Many, symlinks: Yes, ..named("NFS", NETWORK) }),
    // Documentation/admin-guide/cifs/usage.rst: noserverino makes numbers up.
    (0xff53_4d42, named("SMB", NETWORK)),
    (0xfe53_4d42, named("SMB", NETWORK)),
    (0x0000_517b, named("SMB", NETWORK)),
    // Documentation/filesystems/9p.rst.
    (0x0102_1997, named("9P", NETWORK)),
    // Documentation/filesystems/ceph.rst; fs/ceph/super.h.
    (0x00c3_6400, Traits { links: Links::Many, symlinks: Yes, ..named("Ceph", NETWORK) }),
    // Documentation/filesystems/afs.rst: OpenAFS's and the kernel's.
    (0x5346_414f, named("AFS", NETWORK)),
    (0x6b41_4653, named("AFS", NETWORK)),
    // Documentation/filesystems/coda.rst.
    (0x7375_7245, named("Coda", NETWORK)),
    // include/linux/ncp_fs.h up to Linux 4.16.
    (0x0000_564c, named("NCP", NETWORK)),
    // fs/vboxsf/super.c.
    (0x786f_4256, named("VirtualBox shared folders", NETWORK)),
    // open-vm-tools, HGFS_SUPER_MAGIC.
    (0xbacb_acbc, named("VMware shared folders", NETWORK)),
    // BeeGFS, Lustre, GPFS: from their own sources, as coreutils' src/stat.c lists them.
    (0x1983_0326, named("BeeGFS", NETWORK)),
    (0x0bd0_0bd0, named("Lustre", NETWORK)),
    (0x4750_4653, named("GPFS", NETWORK)),
    // Documentation/filesystems: what the kernel makes up.
    (0x0000_9fa0, named("proc", PSEUDO)),
    (0x6265_6572, named("sysfs", PSEUDO)),
    (0x0027_e0eb, named("cgroup", PSEUDO)),
    (0x6367_7270, named("cgroup", PSEUDO)),
    (0x0000_1cd1, named("devpts", PSEUDO)),
    (0x7472_6163, named("tracefs", PSEUDO)),
    (0x6462_6720, named("debugfs", PSEUDO)),
    (0x7363_6673, named("securityfs", PSEUDO)),
    (0xcafe_4a11, named("bpf", PSEUDO)),
    (0xf97c_ff8c, named("selinuxfs", PSEUDO)),
    (0x4341_5d53, named("smackfs", PSEUDO)),
    (0x6165_676c, named("pstore", PSEUDO)),
    (0xde5e_81e4, named("efivarfs", PSEUDO)),
    (0x0765_5821, named("resctrl", PSEUDO)),
    (0x5049_5045, named("pipefs", PSEUDO)),
    (0x534f_434b, named("sockfs", PSEUDO)),
    (0x6e73_6673, named("nsfs", PSEUDO)),
    (0x5049_4446, named("pidfs", PSEUDO)),
    (0x0904_1934, named("anon_inodefs", PSEUDO)),
    (0x4249_4e4d, named("binfmt_misc", PSEUDO)),
    (0x1980_0202, named("mqueue", PSEUDO)),   // ipc/mqueue.c
    (0x6265_6570, named("configfs", PSEUDO)), // fs/configfs/mount.c
    (0x6573_5543, named("fusectl", PSEUDO)),  // fs/fuse/control.c
    (0xabba_1974, named("xenfs", PSEUDO)),
    (0x5a3c_69f0, named("apparmorfs", PSEUDO)),
];

/// Traits of FUSE file systems, by their type in `/proc/self/mountinfo`. None of them promises
/// stable numbers: libfuse counts up (fuse.h, `use_ino`), and those that pass numbers on pass on
/// those of several file systems. Symbolic links are passed on as well, to file systems that have
/// them.
#[rustfmt::skip]
const BY_TYPE: &[(&[u8], Traits)] = &[
    // sshfs(1); the protocol has no ctime, inode numbers, link counts and blocks, whole seconds
    // (draft-ietf-secsh-filexfer-02, 5). It may follow no links upwards (`contain_symlinks`).
    (b"fuse.sshfs", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp, reflinks: No,
        blocks: No, network: Yes, ..named("sshfs", FUSE) }),
    // squashfuse(1): numbered at lookup, one time for all three; cache.c keeps a few decompressed
    // blocks, which the more readers there are the sooner one takes from another.
    (b"fuse.squashfuse", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp, reflinks: No,
        network: No, decompression: InTurn, ..named("squashfuse", FUSE) }),
    (b"fuse.squashfuse_ll", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp, reflinks: No,
        network: No, decompression: InTurn, ..named("squashfuse", FUSE) }),
    // fuseiso(1): numbered at lookup, times as on the image; compressed files (zisofs) one by one.
    (b"fuse.fuseiso", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp, reflinks: No,
        network: No, decompression: InTurn, ..named("fuseiso", FUSE) }),
    // unionfs(8): numbered at lookup, times of the branches; with `-o cow` files are copied up.
    (b"fuse.unionfs", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::Real, symlinks: Yes, copy_up: Yes,
        network: No, ..named("unionfs", FUSE) }),
    // mergerfs' documentation, "inodecalc": hashes of path or of number and device; times of
    // the branches.
    (b"fuse.mergerfs", Traits { ctime: CtimeTrust::Real, symlinks: Yes, network: No, ..named("mergerfs", FUSE) }),
    // bindfs(1): lstat(2) of the file underneath passed on, but for owner and mode.
    (b"fuse.bindfs", Traits { ctime: CtimeTrust::Real, symlinks: Yes, network: No, ..named("bindfs", FUSE) }),
    // fuse-overlayfs' main.c (rpl_stat): times of the layers.
    (b"fuse.fuse-overlayfs", Traits { ctime: CtimeTrust::Real, links: Links::Many, symlinks: Yes, copy_up: Yes,
        network: No, ..named("fuse-overlayfs", FUSE) }),
    // go-fuse passes the encrypted file's times on (gocryptfs, internal/fusefrontend).
    (b"fuse.gocryptfs", Traits { ctime: CtimeTrust::Real, reflinks: No, symlinks: Yes, network: No,
        ..named("gocryptfs", FUSE) }),
    // fuse(8): any server of a block device has this type, ntfs-3g and exfat-fuse alike.
    (b"fuseblk", Traits { mtime_step_ns: 2 * SECOND, reflinks: No, network: No,
        ..named("a FUSE file system", FUSE) }),
    // rclone mount: no ctime, no numbers, no blocks.
    (b"fuse.rclone", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::MadeUp, reflinks: No,
        blocks: No, links: Links::One, network: Yes, ..named("rclone", FUSE) }),
    // s3fs(1): no hard links, times in object headers, no blocks.
    (b"fuse.s3fs", Traits { inodes: Inodes::Moving, ctime: CtimeTrust::Unknown, reflinks: No,
        blocks: No, links: Links::One, network: Yes, ..named("s3fs", FUSE) }),
];

/// FUSE types that show a read-only image: their servers have no calls for it, though the mount
/// does not say `ro` (`squashfuse_ll_ops` in squashfuse's ll_main.c, `isofs_oper` in fuseiso.c).
const IMAGES: &[&[u8]] = &[b"fuse.squashfuse", b"fuse.squashfuse_ll", b"fuse.fuseiso"];

pub(super) fn by_magic(magic: u32) -> Traits {
    let found = BY_MAGIC.iter().find(|(known, _)| *known == magic);
    found.map_or(UNKNOWN, |(_, traits)| *traits)
}

pub(super) fn by_type(kind: &[u8]) -> Traits {
    let found = BY_TYPE.iter().find(|(known, _)| *known == kind);
    let traits = found.map_or(FUSE, |(_, traits)| *traits);
    Traits {
        immutable: IMAGES.contains(&kind),
        ..traits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_listed_twice() {
        let mut magics: Vec<u32> = BY_MAGIC.iter().map(|(magic, _)| *magic).collect();
        magics.sort_unstable();
        assert!(magics.windows(2).all(|pair| pair[0] != pair[1]));
        let mut kinds: Vec<&[u8]> = BY_TYPE.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn what_is_unknown_is_not_trusted() {
        let mut distrusted = vec![
            by_magic(0x1234_5678),
            by_type(b"fuse.new"),
            by_type(b"fuse"),
        ];
        distrusted.extend(BY_TYPE.iter().map(|(_, traits)| *traits));
        for magic in [
            0x6969,
            0x4d44,
            0x2011_bab0,
            0x7371_7368,
            0x9660,
            0x794c_7630,
        ] {
            distrusted.push(by_magic(magic));
        }
        for traits in distrusted {
            assert!(!traits.identity_proves_content(1), "{}", traits.name);
        }
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994] {
            assert!(by_magic(magic).identity_proves_content(1));
        }
    }

    #[test]
    fn compressed_images_are_told_from_what_lies_on_a_disk_as_it_is_read() {
        for magic in [0x7371_7368, 0xe0f5_e1e2, 0x28cd_3d45] {
            let traits = by_magic(magic);
            assert_ne!(traits.decompression, Decompression::None, "{}", traits.name);
        }
        // fs/cramfs/inode.c: under one mutex for all mounts.
        assert_eq!(by_magic(0x28cd_3d45).decompression, InTurn);
        for magic in [0xef53, 0x9660, 0x9123_683e, 0x0102_1994, 0x1234_5678] {
            let traits = by_magic(magic);
            assert_eq!(traits.decompression, Decompression::None, "{}", traits.name);
        }
    }

    #[test]
    fn made_up_files_promise_nothing() {
        for (_, traits) in BY_MAGIC.iter().filter(|(_, traits)| traits.pseudo) {
            assert_eq!(traits.sizes, No);
            assert_eq!(traits.plain, Unknown);
        }
    }
}
