//! Layers that the kernel puts over other file systems.

use super::{Fill, KIND, Kind};

const OVERLAY: Kind = Kind {
    kernel: &["ext4", "overlay"],
    tools: &[("mkfs.ext4", "e2fsprogs")],
    base: true,
    fill: Fill::Base("lower"),
    // Files written later lie in the upper layer, and repeat those in the lower one.
    filled: "cp -a \"$M/tree/sizes/two\" \"$M/tree/upper\"",
    layered: true,
    ..KIND
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "overlay",
        what: "both layers on one file system",
        prepare: "mkdir -p \"$BASE/lower\" \"$BASE/upper\" \"$BASE/work\"",
        mount: "mount -t overlay -o lowerdir=\"$BASE/lower\",upperdir=\"$BASE/upper\",workdir=\"$BASE/work\" overlay \"$M\"",
        ..OVERLAY
    },
    Kind {
        name: "overlay-two",
        what: "the layers on two file systems",
        prepare: "mkdir -p \"$BASE/lower\" \"$W/second\"; truncate -s 512M \"$SECOND\"
            mkfs.ext4 -q \"$SECOND\"; mount -o loop \"$SECOND\" \"$W/second\"
            mkdir \"$W/second/upper\" \"$W/second/work\"; umount \"$W/second\"",
        mount: "mount -o loop \"$SECOND\" \"$W/second\"
            mount -t overlay -o lowerdir=\"$BASE/lower\",upperdir=\"$W/second/upper\",workdir=\"$W/second/work\" overlay \"$M\"",
        unmount: "umount \"$M\"; umount \"$W/second\"",
        ..OVERLAY
    },
    Kind {
        name: "overlay-readonly",
        what: "two lower layers and no upper one",
        prepare: "mkdir -p \"$BASE/lower\" \"$BASE/other\"; echo other >\"$BASE/other/other\"",
        mount: "mount -t overlay -o lowerdir=\"$BASE/lower:$BASE/other\" overlay \"$M\"",
        filled: "",
        layered: false,
        ..OVERLAY
    },
    Kind {
        name: "loop",
        what: "an XFS in an image that lies on an ext4 in an image",
        kernel: &["ext4", "xfs"],
        tools: &[("mkfs.ext4", "e2fsprogs"), ("mkfs.xfs", "xfsprogs")],
        base: true,
        prepare: "truncate -s 400M \"$BASE/inner\"; mkfs.xfs -q \"$BASE/inner\"",
        mount: "mount -o loop \"$BASE/inner\" \"$M\"",
        ..KIND
    },
    Kind {
        name: "bind",
        what: "a directory of an ext4, mounted again",
        kernel: &["ext4"],
        tools: &[("mkfs.ext4", "e2fsprogs")],
        base: true,
        prepare: "mkdir \"$BASE/real\"",
        mount: "mount --bind \"$BASE/real\" \"$M\"",
        ..KIND
    },
    Kind {
        name: "bind-readonly",
        what: "a directory of an ext4, mounted again for reading only",
        kernel: &["ext4"],
        tools: &[("mkfs.ext4", "e2fsprogs")],
        base: true,
        prepare: "mkdir \"$BASE/real\"",
        mount: "mount --bind \"$BASE/real\" \"$M\"; mount -o remount,bind,ro \"$M\"",
        fill: Fill::Base("real"),
        ..KIND
    },
];
