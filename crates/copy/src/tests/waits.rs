//! Copies to a place whose calls wait.

use std::time::Duration;

use bc_testkit::{Behaviour, DiskRequest, RequestKind, STALLING, fuse_disk, left_out};

use super::{Ground, done, seen};

/// Checks that a directory that takes its time keeps none in another place from being made, however
/// few they are.
#[test]
fn directories_are_made_beside_one_that_waits() {
    let disk = match fuse_disk(Behaviour {
        latency: Duration::from_millis(5),
        records: true,
        ..Behaviour::default()
    }) {
        Ok(disk) => disk,
        Err(reason) => return left_out(&reason),
    };
    let ground = Ground::new();
    let make = |path: String| std::fs::create_dir_all(ground.at("from").join(path)).unwrap();
    (0..20).for_each(|number| make(format!("a/{number:02}")));
    make(format!("a/{STALLING}"));
    (0..10).for_each(|number| make(format!("b/{number}")));
    let mut options = ground.options(&["from"], "to");
    options.destination = disk.path().join("to").into();
    (options.workers, options.waiting) = (1, 128);
    disk.hold(RequestKind::Change);
    let is_made = |request: &DiskRequest| {
        let is_below = request
            .path
            .parent()
            .is_some_and(|dir| dir.ends_with("to/b"));
        is_below && request.kind == RequestKind::Change
    };
    let made = std::thread::scope(|scope| {
        let copying = scope.spawn(|| done(&options));
        let made = disk.wait_held() && disk.wait_for(|record| record.iter().any(is_made));
        disk.release();
        copying.join().unwrap();
        made
    });
    assert!(made);
    assert_eq!(seen(&disk.shown().join("to")), seen(&ground.at("from")));
}
