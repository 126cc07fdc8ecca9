//! Order of reading for a spinning disk, and detection of such disks.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

use bc_pool::Cancel;
use bc_walk::{EntryId, Listing};
use rustix::fs::{fstat, major, minor};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::extents::first_place;
use crate::open::{Cached, Opener};
use crate::plan::Plan;

/// Number of files below which they are read in path order: looking would cost more than seeking.
const WORTH_LOOKING: usize = 256;
/// Files looked at, spread evenly: one in sixteen that has to be fetched is found with a
/// probability of 64 %, and where that few are missing the order matters little.
const SAMPLE: usize = 16;

/// Makes a plan to read `entries`, which are in path order, by so many workers: in that order, or as
/// they lie on a spinning disk, and then handed out one by one.
pub fn plan(listing: &Listing, entries: Vec<EntryId>, workers: usize, cancel: &Cancel) -> Plan {
    let mut entries = entries;
    match for_disk(listing, &mut entries, cancel) {
        true => Plan::in_turn(entries, workers),
        false => Plan::new(entries, workers),
    }
}

/// Puts `entries` into the order of a spinning disk if one of a few samples has to
/// be fetched from such a disk; returns whether it did. Data that are cached are read faster
/// directory by directory, and virtual disks often call themselves spinning.
///
/// The samples are opened, as far as the kernel can do so without asking the disk, and a byte of
/// those is read if it is cached. Failures are left to the reader proper to find.
pub fn for_disk(listing: &Listing, entries: &mut [EntryId], cancel: &Cancel) -> bool {
    for_disk_with(listing, entries, cancel, is_rotational)
}

fn for_disk_with(
    listing: &Listing,
    entries: &mut [EntryId],
    cancel: &Cancel,
    is_rotational: impl Fn(u64) -> bool,
) -> bool {
    if entries.len() < WORTH_LOOKING {
        return false;
    }
    let mut opener = Opener::new(listing, cancel);
    let mut last = None;
    let seeks = entries
        .iter()
        .step_by(entries.len() / SAMPLE)
        .any(|&entry| {
            let Ok(place) = opener.place(entry) else {
                return false;
            };
            let Ok(stat) = fstat(&*place.dir) else {
                return false;
            };
            let spins = match last {
                Some((dev, spins)) if dev == stat.st_dev => spins,
                _ => is_rotational(stat.st_dev),
            };
            last = Some((stat.st_dev, spins));
            spins
                && match opener.open_cached(&place.dir, entry) {
                    Ok(Cached::Open(file)) => match must_be_fetched(&file) {
                        Some(answer) => answer,
                        // Nor will it say so of another file.
                        None => {
                            last = Some((stat.st_dev, false));
                            false
                        }
                    },
                    Ok(Cached::Miss) => true,
                    Err(_) => false,
                }
        });
    if seeks {
        by_place(listing, entries, cancel);
    }
    seeks
}

/// True if a spinning disk has to seek to read this open file of the device `dev` (as `st_dev`), as
/// far as that can be derived from its first byte.
pub fn seeks(file: impl AsFd, dev: u64) -> bool {
    must_be_fetched(file) == Some(true) && is_rotational(dev)
}

/// Returns whether the first byte is not in the page cache; `None` where the file system never
/// reports that.
fn must_be_fetched(file: impl AsFd) -> Option<bool> {
    let mut byte = [0];
    let mut room = [IoSliceMut::new(&mut byte)];
    match preadv2(file, &mut room, 0, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => None,
        answer => Some(answer == Err(Errno::AGAIN)),
    }
}

/// Sorts entries by the place of their first bytes on the disk, where the file system reports that,
/// else by inode number: on most file systems close to it, and where the inodes lie, too, so that
/// files are opened in that order to ask for their places. What has no place is first.
pub(crate) fn by_place(listing: &Listing, entries: &mut [EntryId], cancel: &Cancel) {
    // The walk's `d_ino`, which needs no metadata.
    entries.sort_by_cached_key(|&entry| listing.inode_hint(entry));
    let mut opener = Opener::new(listing, cancel);
    let mut places = Vec::with_capacity(entries.len());
    for &entry in &*entries {
        let place = match opener.open_checked(entry) {
            Ok((file, stat)) => match first_place(&file) {
                Ok(place) => place.map(|place| (stat.id.dev, place)),
                // Nor will it report those of other files.
                Err(_) => return,
            },
            // The reader proper finds it again.
            Err(_) => None,
        };
        if cancel.is_cancelled() {
            return;
        }
        places.push((place, entry));
    }
    // Stable: what has no place stays in the order of the inodes.
    places.sort_by_key(|(place, _)| *place);
    for (entry, (_, sorted)) in entries.iter_mut().zip(places) {
        *entry = sorted;
    }
}

/// True if the block device `dev` (as `st_dev`) reports that it spins. `false` where it is not
/// known: network and memory file systems, btrfs and overlays, which have device numbers of their
/// own. Partitions answer for their disk.
fn is_rotational(dev: u64) -> bool {
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

    /// Makes `count` files of which every path later in order has a lower inode number, as far as
    /// the file system gives them out in turn, and lists them.
    fn listing(count: usize) -> (tempfile::TempDir, Listing) {
        let tree = tempfile::tempdir().unwrap();
        for name in (0..count).rev() {
            fs::write(tree.path().join(format!("{name:05}")), b"x").unwrap();
        }
        let roots = [tree.path().as_os_str().to_owned()];
        let listing =
            bc_walk::walk(&roots, &bc_walk::WalkOptions::default(), 1, &Cancel::new()).unwrap();
        (tree, listing)
    }

    #[test]
    fn cached_files_and_still_disks_keep_the_order_of_paths() {
        let (tree, listing) = listing(WORTH_LOOKING);
        let path_order: Vec<EntryId> = listing.ids().collect();
        let mut entries = path_order.clone();
        assert!(!for_disk_with(
            &listing,
            &mut entries,
            &Cancel::new(),
            |_| false
        ));
        assert_eq!(entries, path_order);
        // Something else may have the page cache emptied now and then, but not each time.
        let left_alone = (0..200).any(|_| {
            for file in fs::read_dir(tree.path()).unwrap() {
                fs::read(file.unwrap().path()).unwrap();
            }
            let mut entries = path_order.clone();
            !for_disk_with(&listing, &mut entries, &Cancel::new(), |_| true)
                && entries == path_order
        });
        assert!(
            left_alone,
            "cached files were put in another order each time"
        );
    }

    #[test]
    fn what_a_spinning_disk_has_to_fetch_is_read_in_its_order() {
        let (tree, listing) = listing(WORTH_LOOKING);
        for entry in listing.ids() {
            let path = tree.path().join(listing.name(entry).to_str().unwrap());
            let file = fs::File::open(path).unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
        let first = fs::File::open(tree.path().join("00000")).unwrap();
        let mut entries: Vec<EntryId> = listing.ids().collect();
        // Where the page cache is the file system (tmpfs) nothing ever has to be fetched.
        let cold = must_be_fetched(&first) == Some(true);
        assert_eq!(
            for_disk_with(&listing, &mut entries, &Cancel::new(), |_| true),
            cold
        );
        if cold {
            let place = |entry: &EntryId| {
                let path = tree.path().join(listing.name(*entry).to_str().unwrap());
                first_place(fs::File::open(path).unwrap())
            };
            let places: Result<Vec<_>, _> = entries.iter().map(place).collect();
            match places {
                Ok(places) => assert!(places.is_sorted(), "{places:?}"),
                Err(_) => assert!(entries.is_sorted_by_key(|&entry| listing.inode_hint(entry))),
            }
        }
        let mut same = entries.clone();
        same.sort_unstable();
        assert_eq!(same, listing.ids().collect::<Vec<_>>());
    }

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
