//! Order of reading for a spinning disk, and detection of such disks.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bc_pool::Cancel;
use bc_walk::{EntryId, Listing};
use rustix::fs::{fstat, major, minor};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::extents::first_place;
use crate::open::{Cached, Opener};
use crate::plan::Plan;

/// Number of files below which they are read in path order: looking would cost more than seeking.
const WORTH_LOOKING: usize = 256;
/// Files looked at, spread evenly: one in sixteen that has to be fetched is found with a
/// probability of 64 %, and where that few are missing the order matters little.
const SAMPLE: usize = 16;
/// Wait for a first byte that an arm makes. The fastest disks turn once in 4 ms (15,000 a minute), so
/// that they wait 2 ms on average for the turn alone; flash and virtual disks on it answer in 0.1 ms.
const ARM: Duration = Duration::from_millis(1);
/// Samples that have to agree on that: the most that are fetched out of order are three. Where fewer
/// have to be fetched most files are cached, and to ask for the places of all would not pay.
const AGREE: u32 = 2;

/// Order in which files are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadOrder {
    /// That of their paths: data that are cached are read faster directory by directory.
    Paths,
    /// That of their inode numbers, of a disk that calls itself spinning and has no arm.
    Inodes,
    /// That of their places on a disk that has to seek: they are best [handed out in
    /// turn](Plan::in_turn).
    Places,
}

/// Makes a plan to read `entries`, which are in path order, by so many workers, in the order that
/// [`for_disk`] finds; by their places they are handed out one by one.
pub fn plan(listing: &Listing, entries: Vec<EntryId>, workers: usize, cancel: &Cancel) -> Plan {
    let mut entries = entries;
    match for_disk(listing, &mut entries, cancel) {
        ReadOrder::Places => Plan::in_turn(entries, workers),
        ReadOrder::Paths | ReadOrder::Inodes => Plan::new(entries, workers),
    }
}

/// Puts `entries`, which are in path order, into the order of a spinning disk if some of a few
/// samples have to be fetched from such a disk; returns the order that they are in.
///
/// Virtual disks often call themselves spinning. One that answers in 0.1 ms reads a tree 1.3 times
/// faster by inode numbers, which cost nothing, than if each file is asked for its place beforehand;
/// by paths it takes 2.2 times as long as by inode numbers (ext4, 776 files, cold). So the time of
/// the samples decides whether to ask.
///
/// Where a sample cannot be opened, or not be read, that is left to the reader proper to find.
pub fn for_disk(listing: &Listing, entries: &mut [EntryId], cancel: &Cancel) -> ReadOrder {
    for_disk_with(listing, entries, cancel, is_rotational, ARM)
}

fn for_disk_with(
    listing: &Listing,
    entries: &mut [EntryId],
    cancel: &Cancel,
    is_rotational: impl Fn(u64) -> bool,
    arm: Duration,
) -> ReadOrder {
    if entries.len() < WORTH_LOOKING {
        return ReadOrder::Paths;
    }
    let mut opener = Opener::new(listing, cancel);
    let mut last = None;
    let (mut slow, mut quick) = (0, 0);
    for &entry in entries.iter().step_by(entries.len() / SAMPLE) {
        let Ok(place) = opener.place(entry) else {
            continue;
        };
        let Ok(stat) = fstat(&*place.dir) else {
            continue;
        };
        let spins = match last {
            Some((dev, spins)) if dev == stat.st_dev => spins,
            _ => is_rotational(stat.st_dev),
        };
        last = Some((stat.st_dev, spins));
        if !spins {
            continue;
        }
        match time_to_fetch(&mut opener, &place.dir, entry) {
            Ok(Some(wait)) if wait >= arm => slow += 1,
            Ok(Some(_)) => quick += 1,
            Ok(None) => {}
            // Nor will it report that of another file.
            Err(Silent) => last = Some((stat.st_dev, false)),
        }
        if slow == AGREE || quick == AGREE || cancel.is_cancelled() {
            break;
        }
    }
    if slow == 0 && quick == 0 {
        return ReadOrder::Paths;
    }
    if slow < AGREE {
        sort_by_inode(listing, entries);
        return ReadOrder::Inodes;
    }
    sort_by_place(listing, entries, cancel);
    ReadOrder::Places
}

/// The file system does not report what is cached.
struct Silent;

/// Fetches the first byte of a file, and returns how long that took; `None` if it is cached, or
/// cannot be read. The inode, which may have to be fetched, too, is not part of that time.
fn time_to_fetch(
    opener: &mut Opener,
    dir: &OwnedFd,
    entry: EntryId,
) -> Result<Option<Duration>, Silent> {
    let file = match opener.open_cached(dir, entry) {
        Ok(Cached::Open(file)) => Ok(file),
        Ok(Cached::Miss) => opener.open_checked(entry).map(|(file, _)| file),
        Err(error) => Err(error),
    };
    let Ok(file) = file else {
        return Ok(None);
    };
    match must_be_fetched(&file) {
        Some(true) => {}
        Some(false) => return Ok(None),
        None => return Err(Silent),
    }
    let began = Instant::now();
    let is_read = pread(&file, &mut [0], 0).is_ok();
    Ok(is_read.then(|| began.elapsed()))
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

/// Sorts entries by the walk's `d_ino`, which needs no metadata: on most file systems close to the
/// order on the disk.
fn sort_by_inode(listing: &Listing, entries: &mut [EntryId]) {
    entries.sort_by_cached_key(|&entry| listing.inode_hint(entry));
}

/// Sorts entries by the place of their first bytes on the disk, where the file system reports that,
/// else by inode number. The inodes lie in that order, too, so that files are opened in it to ask for
/// their places. What has no place is first.
pub(crate) fn sort_by_place(listing: &Listing, entries: &mut [EntryId], cancel: &Cancel) {
    sort_by_inode(listing, entries);
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
        let still = for_disk_with(&listing, &mut entries, &Cancel::new(), |_| false, ARM);
        assert_eq!((still, &entries), (ReadOrder::Paths, &path_order));
        // Something else may have the page cache emptied now and then, but not each time.
        let left_alone = (0..200).any(|_| {
            for file in fs::read_dir(tree.path()).unwrap() {
                fs::read(file.unwrap().path()).unwrap();
            }
            let mut entries = path_order.clone();
            for_disk_with(&listing, &mut entries, &Cancel::new(), |_| true, ARM) == ReadOrder::Paths
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
        let path = |entry| tree.path().join(listing.name(entry).to_str().unwrap());
        // No wait is shorter than nothing, and none as long as forever.
        for (arm, if_cold) in [
            (Duration::ZERO, ReadOrder::Places),
            (Duration::MAX, ReadOrder::Inodes),
        ] {
            for entry in listing.ids() {
                let file = fs::File::open(path(entry)).unwrap();
                file.sync_all().unwrap();
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            }
            let first = fs::File::open(tree.path().join("00000")).unwrap();
            let mut entries: Vec<EntryId> = listing.ids().collect();
            // Where the page cache is the file system (tmpfs) nothing ever has to be fetched.
            let expected = match must_be_fetched(&first) {
                Some(true) => if_cold,
                _ => ReadOrder::Paths,
            };
            let order = for_disk_with(&listing, &mut entries, &Cancel::new(), |_| true, arm);
            assert_eq!(order, expected);
            let place = |entry: &EntryId| first_place(fs::File::open(path(*entry)).unwrap());
            let places: Result<Vec<_>, _> = entries.iter().map(place).collect();
            match (order, places) {
                (ReadOrder::Paths, _) => {}
                (ReadOrder::Places, Ok(places)) => assert!(places.is_sorted(), "{places:?}"),
                _ => assert!(entries.is_sorted_by_key(|&entry| listing.inode_hint(entry))),
            }
            let mut same = entries.clone();
            same.sort_unstable();
            assert_eq!(same, listing.ids().collect::<Vec<_>>());
        }
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
