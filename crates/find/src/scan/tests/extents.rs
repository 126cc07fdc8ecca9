//! Files that lie in one place on disk: their wasted bytes, and that they are read once, on images
//! of file systems that share extents, where the tests run as root and the tools are there.

use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use bc_testkit::{LoopDisk, loop_disk, loop_disk_with};

use super::*;
use crate::cache::{Cache, Location};

/// Bytes of a disk that every file system fits on.
const DISK: u64 = 400 << 20;

/// Copies a file so that both share their blocks.
fn clone(mount: &LoopDisk, from: &str, to: &str) {
    let status = Command::new("cp")
        .arg("--reflink=always")
        .args([mount.path().join(from), mount.path().join(to)])
        .status();
    assert!(status.unwrap().success());
}

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Lock for the offset of the clock: one test at a time sets it.
static CLOCK: Mutex<()> = Mutex::new(());

fn later<T>(work: impl FnOnce() -> T) -> T {
    CLOCK_AHEAD_NS.store(3_600_000_000_000, Relaxed);
    let result = work();
    CLOCK_AHEAD_NS.store(0, Relaxed);
    result
}

/// Runs `check` on each file system that can share extents.
fn on_each(check: impl Fn(&LoopDisk)) {
    for kind in ["btrfs", "xfs"] {
        match loop_disk(kind, DISK) {
            Ok(mounted) => check(&mounted),
            Err(why) => bc_testkit::left_out(&format!("{kind}: {why}")),
        }
    }
}

fn sync(mount: &LoopDisk) {
    for entry in fs::read_dir(mount.path()).unwrap() {
        fs::File::open(entry.unwrap().path())
            .unwrap()
            .sync_all()
            .unwrap();
    }
}

fn algorithms() -> [ScanOptions; 2] {
    // Large files are read in stages with the first, at once with the second.
    [Algorithm::Xxh128, Algorithm::Sha256].map(|algorithm| ScanOptions {
        algorithm,
        ..ScanOptions::default()
    })
}

#[test]
fn what_lies_in_one_place_is_read_once() {
    let _clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    on_each(|mount| {
        let len = 3_000_000;
        fs::write(mount.path().join("a"), noise(len, 1)).unwrap();
        sync(mount);
        clone(mount, "a", "b");
        clone(mount, "a", "c");
        // Of the same size and with the same ends, but another in the middle.
        let mut other = noise(len, 1);
        other[1_500_000] ^= 1;
        fs::write(mount.path().join("d"), &other).unwrap();
        sync(mount);
        clone(mount, "d", "e");
        // Shares all but the part written since, which need not be on the disk yet.
        clone(mount, "a", "f");
        let file = fs::File::options()
            .write(true)
            .open(mount.path().join("f"))
            .unwrap();
        file.write_all_at(b"changed", 2_000_000).unwrap();
        drop(file);

        let groups = [vec!["a", "b", "c"], vec!["d", "e"]];
        for options in algorithms() {
            assert_eq!(found(mount.path(), &options), groups, "young");
            let young = search(&list(mount.path()), &options).stats.bytes_read;
            let old = later(|| {
                assert_eq!(found(mount.path(), &options), groups, "old");
                search(&list(mount.path()), &options).stats.bytes_read
            });
            let saved = young - old;
            assert!(saved >= 2 * len as u64, "{young} {old}");
        }
    });
}

/// Small files are read once too where nearly all have an equal and are therefore read whole at
/// once.
#[test]
fn many_small_ones_are_read_once() {
    let _clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    on_each(|mount| {
        let many = 1200;
        for index in 0..many {
            let name = format!("one.{index}");
            fs::write(mount.path().join(&name), noise(10_000, index)).unwrap();
        }
        sync(mount);
        let status = Command::new("sh")
            .args(["-c", "mkdir two && cp --reflink=always one.* two"])
            .current_dir(mount.path())
            .status();
        assert!(status.unwrap().success());
        let listing = list(mount.path());
        let options = ScanOptions {
            workers: 2,
            ..ScanOptions::default()
        };
        let scan = later(|| search(&listing, &options));
        assert_eq!(scan.groups().len(), many as usize);
        assert_eq!(scan.wasted(), 0);
        let all = u64::from(many) * 2 * 10_000;
        assert!(
            scan.stats.bytes_read < all * 3 / 4,
            "{}",
            scan.stats.bytes_read
        );
    });
}

#[test]
fn waste_is_what_lies_apart_whatever_a_cache_remembers() {
    on_each(|mount| {
        let content = noise(500_000, 3);
        fs::write(mount.path().join("a"), &content).unwrap();
        fs::write(mount.path().join("c"), &content).unwrap();
        sync(mount);
        clone(mount, "a", "b");
        clone(mount, "c", "d");
        let one = 500_000_u64.next_multiple_of(4096);
        let directory = TestTree::new();
        let place = directory.join("cache");
        let wasted = |cached: bool| {
            let listing = list(mount.path());
            let mut cache = Cache::open(&place, Location::Named).unwrap();
            cache.pretend_later(3_600_000_000_000);
            cache.pretend_disk();
            let cache = cached.then_some(&mut cache);
            let (cancel, progress) = (Cancel::new(), ScanProgress::default());
            let scan = scan(&listing, &ScanOptions::default(), cache, &cancel, &progress).unwrap();
            (scan.wasted(), scan.stats.remembered)
        };
        assert_eq!(wasted(false), (one, 0));
        assert_eq!(wasted(true), (one, 0));
        assert_eq!(wasted(true), (one, 4));
        // Nothing of this shows in their times.
        for name in ["c", "d"] {
            let [from, to] = ["a", name].map(|name| {
                let mut options = fs::File::options();
                let file = options.read(true).write(true);
                file.open(mount.path().join(name)).unwrap()
            });
            let shared = bc_edit::content::dedupe_range(&from, &to, 0, 500_000).unwrap();
            assert_eq!(shared, bc_edit::content::Deduped::Bytes(500_000));
        }
        assert_eq!(wasted(true), (0, 4));
        assert_eq!(wasted(false), (0, 0));
    });
}

/// Two parts of one compressed extent: `FIEMAP` reports no difference.
#[test]
fn parts_of_a_compressed_extent_are_not_one_content() {
    let _clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mount = match loop_disk_with("btrfs", DISK, "loop,compress=zstd") {
        Ok(mount) => mount,
        Err(why) => return bc_testkit::left_out(&why),
    };
    let half = |byte: u8| [vec![b'x'; 8192], vec![byte; 57_344]].concat();
    fs::write(mount.path().join("all"), [half(b'1'), half(b'2')].concat()).unwrap();
    sync(&mount);
    for (name, from) in [("one", 0), ("two", 65_536)] {
        let part = format!(
            "reflink {} {from} 0 65536",
            mount.path().join("all").display()
        );
        let status = Command::new("xfs_io")
            .args(["-f", "-c", &part])
            .arg(mount.path().join(name))
            .stdout(std::process::Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return bc_testkit::left_out("not installed: xfs_io");
        }
    }
    sync(&mount);
    let extents = |name| {
        let file = fs::File::open(mount.path().join(name)).unwrap();
        bc_read::extents::extents(&file, bc_read::extents::Dirty::WriteOut).unwrap()
    };
    assert_eq!(extents("one"), extents("two"));
    assert!(
        extents("one")
            .iter()
            .all(bc_read::extents::Extent::is_encoded)
    );
    assert_eq!(fs::read(mount.path().join("two")).unwrap(), half(b'2'));
    for options in algorithms() {
        later(|| assert!(found(mount.path(), &options).is_empty()));
    }
}

/// Extents that only one file of a group shares, it shares with files outside, which keep them.
#[test]
fn what_others_share_is_not_wasted() {
    on_each(|mount| {
        fs::create_dir(mount.path().join("group")).unwrap();
        let content = noise(200_000, 4);
        fs::write(mount.path().join("group/a"), &content).unwrap();
        fs::write(mount.path().join("group/b"), &content).unwrap();
        clone(mount, "group/a", "other.a");
        let root = mount.path().join("group");
        let one = 200_000_u64.next_multiple_of(4096);
        assert_eq!(search(&list(&root), &ScanOptions::default()).wasted(), one);
        clone(mount, "group/b", "other.b");
        assert_eq!(search(&list(&root), &ScanOptions::default()).wasted(), 0);
    });
}
