//! File systems of the kernel, each in an image of its own.

use super::{Fill, KIND, Kind, Tool};

const MKE2FS: &[Tool] = &[("mkfs.ext4", "e2fsprogs")];
const MKXFS: &[Tool] = &[("mkfs.xfs", "xfsprogs")];
const MKBTRFS: &[Tool] = &[("mkfs.btrfs", "btrfs-progs"), ("btrfs", "btrfs-progs")];
const LOOP: &str = "mount -o loop \"$IMAGE\" \"$M\"";
const LOOP_RO: &str = "mount -o loop,ro \"$IMAGE\" \"$M\"";

const EXT4: Kind = Kind {
    kernel: &["ext4"],
    tools: MKE2FS,
    mount: LOOP,
    ..KIND
};
const XFS: Kind = Kind {
    kernel: &["xfs"],
    tools: MKXFS,
    mount: LOOP,
    ..KIND
};
const BTRFS: Kind = Kind {
    kernel: &["btrfs"],
    tools: MKBTRFS,
    prepare: "truncate -s 1G \"$IMAGE\"; mkfs.btrfs -q \"$IMAGE\"",
    mount: LOOP,
    ..KIND
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "ext4",
        what: "as mkfs.ext4 makes it",
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.ext4 -q \"$IMAGE\"",
        quick: true,
        ..EXT4
    },
    Kind {
        name: "ext4-inline",
        what: "small files in their inodes",
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.ext4 -q -O inline_data -I 512 \"$IMAGE\"",
        ..EXT4
    },
    Kind {
        name: "ext4-1k",
        what: "blocks of 1 KiB",
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.ext4 -q -b 1024 \"$IMAGE\"",
        ..EXT4
    },
    Kind {
        name: "ext4-encrypted",
        what: "the tree's directory with an encryption policy",
        tools: &[("mkfs.ext4", "e2fsprogs"), ("xfs_io", "xfsprogs")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.ext4 -q -O encrypt \"$IMAGE\"
            head -c 64 /dev/urandom >\"$W/key\"",
        // Adding a key prints its identifier, which is made from the key.
        mount: "mount -o loop \"$IMAGE\" \"$M\"
            xfs_io -c add_enckey \"$M\" <\"$W/key\" >\"$W/added\"
            grep -q identifier \"$W/added\"",
        ready: "mkdir \"$M/tree\"
            xfs_io -c \"set_encpolicy -v 2 $(sed -n 's/.*identifier //p' \"$W/added\")\" \"$M/tree\"",
        ..EXT4
    },
    Kind {
        name: "xfs",
        what: "with reflinks",
        prepare: "truncate -s 1G \"$IMAGE\"; mkfs.xfs -q -m reflink=1 \"$IMAGE\"",
        ..XFS
    },
    Kind {
        name: "xfs-plain",
        what: "without reflinks",
        prepare: "truncate -s 1G \"$IMAGE\"; mkfs.xfs -q -m reflink=0 \"$IMAGE\"",
        quick: true,
        ..XFS
    },
    Kind {
        name: "btrfs",
        what: "as mkfs.btrfs makes it",
        ..BTRFS
    },
    Kind {
        name: "btrfs-zstd",
        what: "compressed",
        mount: "mount -o loop,compress=zstd \"$IMAGE\" \"$M\"",
        ..BTRFS
    },
    Kind {
        name: "btrfs-subvolumes",
        what: "two subvolumes whose files have equal inode numbers",
        ready: "mkdir \"$M/tree\"; btrfs -q subvolume create \"$M/tree/one\"
            btrfs -q subvolume create \"$M/tree/two\"",
        // Laid in the same order, the same names have the same numbers in both.
        filled: "for v in one two; do cp -a \"$M/tree/sizes\" \"$M/tree/$v/\"; done",
        ..BTRFS
    },
    Kind {
        name: "btrfs-snapshots",
        what: "two snapshots beside the subvolume",
        ready: "mkdir \"$M/tree\"; btrfs -q subvolume create \"$M/tree/now\"",
        filled: "cp -a \"$M/tree/sizes\" \"$M/tree/links\" \"$M/tree/now/\"; sync -f \"$M\"
            btrfs -q subvolume snapshot \"$M/tree/now\" \"$M/tree/monday\"
            btrfs -q subvolume snapshot \"$M/tree/now\" \"$M/tree/tuesday\"",
        ..BTRFS
    },
    Kind {
        name: "btrfs-readonly",
        what: "mounted read-only",
        prepare: "",
        mount: LOOP_RO,
        fill: Fill::Image(
            "truncate -s 1G \"$IMAGE\"; mkfs.btrfs -q --rootdir \"$SOURCE\" \"$IMAGE\"",
        ),
        ..BTRFS
    },
    Kind {
        name: "tmpfs",
        what: "in memory",
        kernel: &["tmpfs"],
        mount: "mount -t tmpfs -o size=512M tmpfs \"$M\"",
        lasting: false,
        quick: true,
        ..KIND
    },
    Kind {
        name: "squashfs",
        what: "an image, mounted by the kernel",
        kernel: &["squashfs"],
        tools: &[("mksquashfs", "squashfs-tools")],
        mount: LOOP_RO,
        fill: Fill::Image("mksquashfs \"$SOURCE\" \"$IMAGE\" -quiet -no-progress -noappend"),
        ..KIND
    },
    Kind {
        name: "erofs",
        what: "an image, mounted by the kernel",
        kernel: &["erofs"],
        tools: &[("mkfs.erofs", "erofs-utils")],
        mount: "mount -t erofs -o loop,ro \"$IMAGE\" \"$M\"",
        fill: Fill::Image("mkfs.erofs --quiet \"$IMAGE\" \"$SOURCE\""),
        ..KIND
    },
    Kind {
        name: "iso9660",
        what: "an image with Rock Ridge names, mounted by the kernel",
        kernel: &["iso9660"],
        tools: &[("genisoimage", "genisoimage")],
        mount: LOOP_RO,
        fill: Fill::Image("genisoimage -quiet -R -D -input-charset iso8859-1 -o \"$IMAGE\" \"$SOURCE\""),
        ..KIND
    },
    Kind {
        name: "vfat",
        what: "a stick",
        kernel: &["vfat"],
        tools: &[("mkfs.vfat", "dosfstools")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.vfat \"$IMAGE\"",
        mount: LOOP,
        ..KIND
    },
    Kind {
        name: "exfat",
        what: "a stick",
        kernel: &["exfat"],
        tools: &[("mkfs.exfat", "exfatprogs")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.exfat \"$IMAGE\"",
        mount: LOOP,
        ..KIND
    },
    Kind {
        name: "ntfs3",
        what: "a disk, mounted by the kernel",
        kernel: &["ntfs3"],
        tools: &[("mkntfs", "ntfs-3g")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkntfs -F -Q -q \"$IMAGE\"",
        mount: "mount -t ntfs3 -o loop \"$IMAGE\" \"$M\"",
        ..KIND
    },
];
