//! reflink on real file systems that can: images mounted through a loop
//! device, where this is root and the tools are there.

use super::*;
use bc_testkit::loop_disk;
use std::os::unix::fs::MetadataExt;

/// Bytes of a disk that every file system fits on.
const DISK: u64 = 400 << 20;

#[test]
fn btrfs() {
    shares_blocks_on("btrfs");
}

#[test]
fn xfs() {
    shares_blocks_on("xfs");
}

fn shares_blocks_on(kind: &str) {
    let mounted = match loop_disk(kind, DISK) {
        Ok(mounted) => mounted,
        Err(why) => {
            bc_testkit::left_out(&format!("reflink on {kind}: {why}"));
            return;
        }
    };
    // Longer than one call of btrfs shares, and not a whole block at the end.
    let content: Vec<u8> = (0..(40u32 << 20) / 4 + 25)
        .flat_map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    for name in ["one", "two", "three"] {
        let path = mounted.path().join(name);
        fs::write(&path, &content).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
    }
    let mtime = mounted.path().join("two").metadata().unwrap().mtime_nsec();
    let before = snapshot(mounted.path());
    let options = options(Action::Reflink);
    let (summary, lines) = run_groups(groups(mounted.path()), &options, None);
    assert!(summary.is_clean(), "{kind}: {lines:?}");
    assert_eq!(summary.changed, 2, "{kind}: {lines:?}");
    assert!(
        summary.freed >= 2 * (content.len() as u64 - 4096),
        "{kind}: {summary:?}"
    );
    assert_eq!(snapshot(mounted.path()), before);
    assert_eq!(
        mounted.path().join("two").metadata().unwrap().mtime_nsec(),
        mtime
    );
    let extents = |name: &str| {
        let file = fs::File::open(mounted.path().join(name)).unwrap();
        bc_read::extents::extents(&file, bc_read::extents::Dirty::Leave).unwrap()
    };
    assert_eq!(extents("one"), extents("two"));
    assert!(extents("one").iter().all(|extent| extent.shared));

    let (second, lines) = run_groups(groups(mounted.path()), &options, None);
    assert_eq!((second.changed, second.errors), (0, 0), "{kind}: {lines:?}");
    assert_eq!(second.skipped["already shared"], 2);

    // Files that are holes from end to end have nothing that could be shared, ever.
    for name in ["hole", "hollow"] {
        let file = fs::File::create(mounted.path().join(name)).unwrap();
        file.set_len(1 << 20).unwrap();
    }
    let mut all = groups(mounted.path());
    all.retain(|group| group.files[0].stamp.size == 1 << 20);
    let (third, lines) = run_groups(all, &options, None);
    assert_eq!((third.changed, third.errors), (0, 0), "{kind}: {lines:?}");
    assert_eq!(third.skipped["nothing to share"], 1, "{kind}: {lines:?}");

    // What is written to a part that was shared already shows in the time of the file.
    let (one, two) = (mounted.path().join("one"), mounted.path().join("two"));
    fs::write(&two, &content).unwrap();
    let copied = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let opened = fs::File::options().write(true).open(&two).unwrap();
    opened.set_modified(copied).unwrap();
    opened.sync_all().unwrap();
    drop(opened);
    let written = two.clone();
    let write = move || {
        let file = fs::File::options().write(true).open(written).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"!", 7).unwrap();
    };
    faults::arm(Point::new("dedupe", 2), faults::Fault::Run(Box::new(write)));
    let pair = FileGroup {
        files: vec![
            file_ref(mounted.path(), &one),
            file_ref(mounted.path(), &two),
        ],
    };
    let (_, lines) = run_groups(vec![pair], &options, None);
    assert!(faults::disarm().reached, "{kind}: {lines:?}");
    let now = two.metadata().unwrap().modified().unwrap();
    assert!(now > copied, "{kind}: {lines:?}");

    // Shared files are separate files: changing one changes no other.
    fs::write(mounted.path().join("two"), "new").unwrap();
    assert_eq!(fs::read(mounted.path().join("one")).unwrap(), content);
}

/// Where a block of the one is damaged, so is the other.
#[test]
fn a_file_that_shares_its_blocks_is_no_further_copy() {
    let mounted = match loop_disk("xfs", DISK) {
        Ok(mounted) => mounted,
        Err(why) => return bc_testkit::left_out(&format!("clones on xfs: {why}")),
    };
    let path = |name: &str| mounted.path().join(name);
    let sync = |name: &str| fs::File::open(path(name)).unwrap().sync_all().unwrap();
    for name in ["one", "three"] {
        fs::write(path(name), content()).unwrap();
        sync(name);
    }
    let cloned = fs::File::create(path("two")).unwrap();
    bc_edit::content::clone(fs::File::open(path("one")).unwrap(), &cloned).unwrap();
    drop(cloned);
    sync("two");
    let pruned = |copies: usize| {
        let mut options = options(Action::Delete);
        options.rules = KeepRules::new(vec!["path:one".parse().unwrap()], Roots::Any);
        options.rules.copies = copies;
        run_groups(groups(mounted.path()), &options, None)
    };
    let left = || ["one", "two", "three"].map(|name| path(name).exists());
    // Two copies are too few for three.
    fs::write(path("four"), content()).unwrap();
    let (summary, lines) = pruned(4);
    assert_eq!((summary.changed, summary.errors), (0, 0), "{lines:?}");
    fs::remove_file(path("four")).unwrap();
    let (summary, lines) = pruned(2);
    assert_eq!((summary.changed, summary.errors), (1, 0), "{lines:?}");
    assert_eq!(left(), [true, false, true], "{lines:?}");
}

#[test]
fn where_it_is_not_supported_nothing_happens() {
    let tree = sample();
    let before = snapshot(tree.path());
    let inodes: Vec<u64> = before.keys().map(inode).collect();
    let (summary, lines) = run(&tree, &options(Action::Reflink));
    // On a file system that can, it simply works.
    assert!(summary.changed == 3 || summary.errors == 3, "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
    assert_eq!(before.keys().map(inode).collect::<Vec<_>>(), inodes);
}
