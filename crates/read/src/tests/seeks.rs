//! The arm of a disk: how far it travels while a tree is read in the order of the disk.

use bc_testkit::{Behaviour, DiskArm, FuseDisk, fuse_disk};
use std::os::unix::fs::MetadataExt;

use super::*;
use crate::order::sort_by_place;

/// Makes files whose order by name is not that by inode number, in which they lie; returns the way
/// from the first to the last.
fn scattered(disk: &FuseDisk) -> u64 {
    const FILES: usize = 101;
    let numbers = (0..FILES).map(|nth| {
        let path = disk.shown().join(format!("{:03}", nth * 37 % FILES));
        std::fs::write(&path, bytes(2000, nth)).unwrap();
        path.metadata().unwrap().ino()
    });
    let numbers: Vec<u64> = numbers.collect();
    numbers.iter().max().unwrap() - numbers.iter().min().unwrap()
}

/// Reads a plan with so many workers; returns the way of the arm from the first file on.
fn travel(disk: &FuseDisk, listing: &Listing, plan: &Plan, workers: usize) -> u64 {
    let first = disk
        .path()
        .join(listing.name(plan.entries()[0]).to_str().unwrap());
    // A file that was open keeps its pages only until it is opened again.
    std::fs::read(first).unwrap();
    disk.take_counts();
    let done: usize = std::thread::scope(|scope| {
        let read = || {
            let mut recorder = Recorder::new(1);
            pump(
                listing,
                plan,
                &options(Choice::Sync),
                &Cancel::new(),
                &mut recorder,
            );
            recorder.done.len()
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(read)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    assert_eq!(done, plan.len());
    disk.take_counts().travel
}

#[test]
fn a_disk_that_seeks_is_read_as_it_lies() {
    let disk = fuse_disk(Behaviour {
        arm: Some(DiskArm::default()),
        ..Behaviour::default()
    });
    let disk = match disk {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let span = scattered(&disk);
    let listing = walk(disk.path(), Metadata::None);
    let mut entries: Vec<EntryId> = listing.ids().collect();
    sort_by_place(&listing, &mut entries, &Cancel::new());
    let in_turn = |workers| {
        travel(
            &disk,
            &listing,
            &Plan::in_turn(entries.clone(), workers),
            workers,
        )
    };
    // From the end of the first file back to its beginning, and on.
    let alone = in_turn(1);
    assert!(alone <= span + 1, "{alone} instead of {span}");
    // A worker that comes late to its file costs the way there and back, which is what the other has
    // done meanwhile.
    let two = in_turn(2);
    assert!(two <= 3 * span + 4, "{two} instead of {span}");
    let by_path = travel(&disk, &listing, &Plan::all(&listing, 1), 1);
    assert!(by_path > 3 * span, "{by_path} instead of {span}");
}
