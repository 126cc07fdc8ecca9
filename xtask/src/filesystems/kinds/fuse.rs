//! FUSE: views of an ext4, images and disks.

use super::{Fill, KIND, Kind};

/// A view of a directory of an ext4.
const VIEW: Kind = Kind {
    kernel: &["ext4", "fuse"],
    base: true,
    ..KIND
};

/// An image or a disk behind a program, which writes to it for a while after the unmount: another
/// one that was started meanwhile would find, and leave, it damaged.
const DISK: Kind = Kind {
    kernel: &["fuse"],
    unmount: "umount \"$M\"
        while ls -l /proc/[0-9]*/fd 2>/dev/null | grep -qF -- \"-> $IMAGE\"; do sleep 0.02; done",
    ..KIND
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "bindfs",
        what: "a directory, passed on",
        tools: &[("bindfs", "bindfs"), ("mkfs.ext4", "e2fsprogs")],
        prepare: "mkdir \"$BASE/real\"",
        mount: "bindfs \"$BASE/real\" \"$M\"",
        ..VIEW
    },
    Kind {
        name: "mergerfs",
        what: "two branches of one disk, files on either",
        tools: &[("mergerfs", "mergerfs"), ("mkfs.ext4", "e2fsprogs")],
        prepare: "mkdir \"$BASE/one\" \"$BASE/two\"",
        mount: "mergerfs -o category.create=rand,minfreespace=1M \"$BASE/one:$BASE/two\" \"$M\"",
        ..VIEW
    },
    Kind {
        name: "gocryptfs",
        what: "encrypted by a program",
        tools: &[("gocryptfs", "gocryptfs"), ("mkfs.ext4", "e2fsprogs")],
        prepare: "mkdir \"$BASE/cipher\"; echo secret >\"$W/pass\"
            gocryptfs -init -q -scryptn 10 -passfile \"$W/pass\" \"$BASE/cipher\"",
        mount: "gocryptfs -q -passfile \"$W/pass\" \"$BASE/cipher\" \"$M\"",
        ..VIEW
    },
    Kind {
        name: "unionfs-fuse",
        what: "an empty layer over a full one",
        tools: &[("unionfs", "unionfs-fuse"), ("mkfs.ext4", "e2fsprogs")],
        prepare: "mkdir \"$BASE/upper\" \"$BASE/lower\"",
        mount: "unionfs -o cow,allow_other \"$BASE/upper=RW:$BASE/lower=RO\" \"$M\"",
        fill: Fill::Base("lower"),
        filled: "cp -a \"$M/tree/sizes/two\" \"$M/tree/upper\"",
        layered: true,
        ..VIEW
    },
    Kind {
        name: "fuse-overlayfs",
        what: "an empty layer over a full one",
        tools: &[
            ("fuse-overlayfs", "fuse-overlayfs"),
            ("mkfs.ext4", "e2fsprogs"),
        ],
        prepare: "mkdir \"$BASE/upper\" \"$BASE/lower\" \"$BASE/work\"",
        mount: "fuse-overlayfs -o lowerdir=\"$BASE/lower\",upperdir=\"$BASE/upper\",workdir=\"$BASE/work\" \"$M\"",
        fill: Fill::Base("lower"),
        filled: "cp -a \"$M/tree/sizes/two\" \"$M/tree/upper\"",
        layered: true,
        ..VIEW
    },
    Kind {
        name: "squashfuse",
        what: "an image",
        tools: &[
            ("squashfuse", "squashfuse"),
            ("mksquashfs", "squashfs-tools"),
        ],
        mount: "squashfuse \"$IMAGE\" \"$M\"",
        fill: Fill::Image("mksquashfs \"$SOURCE\" \"$IMAGE\" -quiet -no-progress -noappend"),
        ..DISK
    },
    Kind {
        name: "fuseiso",
        what: "an image with Rock Ridge names",
        tools: &[("fuseiso", "fuseiso"), ("genisoimage", "genisoimage")],
        // Its threads are not safe from each other: any two readers (xargs -P8 b3sum) end it.
        mount: "fuseiso -c utf8 \"$IMAGE\" \"$M\" -s",
        fill: Fill::Image(
            "genisoimage -quiet -R -D -input-charset iso8859-1 -o \"$IMAGE\" \"$SOURCE\"",
        ),
        ..DISK
    },
    Kind {
        name: "ntfs-3g",
        what: "a disk",
        tools: &[("ntfs-3g", "ntfs-3g"), ("mkntfs", "ntfs-3g")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkntfs -F -Q -q \"$IMAGE\"",
        mount: "ntfs-3g \"$IMAGE\" \"$M\"",
        ..DISK
    },
    Kind {
        name: "lowntfs-3g",
        what: "a disk, through FUSE's other interface",
        tools: &[("lowntfs-3g", "ntfs-3g"), ("mkntfs", "ntfs-3g")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkntfs -F -Q -q \"$IMAGE\"",
        mount: "lowntfs-3g \"$IMAGE\" \"$M\"",
        ..DISK
    },
    Kind {
        name: "exfat-fuse",
        what: "a stick",
        tools: &[
            ("mount.exfat-fuse", "exfat-fuse"),
            ("mkfs.exfat", "exfatprogs"),
        ],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.exfat \"$IMAGE\"",
        // It wants a block device, which is to be let go as soon as the server ends.
        mount: "device=$(losetup -f --show \"$IMAGE\"); mount.exfat-fuse \"$device\" \"$M\"
            losetup -d \"$device\"",
        ..DISK
    },
    Kind {
        name: "fusefat",
        what: "a stick",
        tools: &[("fusefat", "fusefat"), ("mkfs.vfat", "dosfstools")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.vfat -F 32 \"$IMAGE\"",
        mount: "fusefat -o rw+ \"$IMAGE\" \"$M\"",
        ..DISK
    },
    Kind {
        name: "fuse2fs",
        what: "an ext4 without a journal",
        tools: &[("fuse2fs", "fuse2fs"), ("mkfs.ext4", "e2fsprogs")],
        prepare: "truncate -s 512M \"$IMAGE\"; mkfs.ext4 -q -O ^has_journal \"$IMAGE\"",
        mount: "fuse2fs -o fakeroot \"$IMAGE\" \"$M\"",
        ..DISK
    },
];
