//! In which order a spinning disk is best read, and whether it is one.

use bc_walk::{EntryId, Listing};
use rustix::fs::{major, minor};

/// Sorts entries by inode number: on most file systems close to the order on
/// the disk, which saves a spinning disk most of its seeks, and no worse for
/// cold reads from any other. Uses the walk's `d_ino`, so it needs no metadata.
pub fn by_inode(listing: &Listing, entries: &mut [EntryId]) {
    entries.sort_by_cached_key(|&entry| listing.inode_hint(entry));
}

/// Whether the block device `dev` (as `st_dev`) says that it spins. `false`
/// where it is not known: network and memory file systems, btrfs and overlays,
/// which have device numbers of their own. Partitions answer for their disk.
pub fn is_rotational(dev: u64) -> bool {
    rotational_below("/sys", dev)
}

fn rotational_below(sysfs: &str, dev: u64) -> bool {
    let device = format!("{sysfs}/dev/block/{}:{}", major(dev), minor(dev));
    ["queue/rotational", "../queue/rotational"]
        .into_iter()
        .find_map(|file| std::fs::read(format!("{device}/{file}")).ok())
        .is_some_and(|text| text.first() == Some(&b'1'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn partitions_answer_for_their_disk() {
        let sysfs = tempfile::tempdir().unwrap();
        let root = sysfs.path();
        for (disk, numbers, answer) in [
            ("sda", ["8:0", "8:1"], "1\n"),
            ("sdb", ["8:16", "8:17"], "0\n"),
        ] {
            let partition = root.join(format!("devices/{disk}/{disk}1"));
            fs::create_dir_all(&partition).unwrap();
            fs::create_dir_all(root.join(format!("devices/{disk}/queue"))).unwrap();
            fs::write(
                root.join(format!("devices/{disk}/queue/rotational")),
                answer,
            )
            .unwrap();
            fs::create_dir_all(root.join("dev/block")).unwrap();
            symlink(
                format!("../../devices/{disk}"),
                root.join("dev/block").join(numbers[0]),
            )
            .unwrap();
            symlink(
                format!("../../devices/{disk}/{disk}1"),
                root.join("dev/block").join(numbers[1]),
            )
            .unwrap();
        }
        let sysfs = root.to_str().unwrap();
        assert!(rotational_below(sysfs, makedev(8, 0)));
        assert!(rotational_below(sysfs, makedev(8, 1)));
        assert!(!rotational_below(sysfs, makedev(8, 16)));
        assert!(!rotational_below(sysfs, makedev(8, 17)));
        assert!(!rotational_below(sysfs, makedev(0, 5)));
    }

    #[test]
    fn unknown_devices_do_not_spin() {
        assert!(!is_rotational(makedev(0, 0xfffff)));
    }
}
