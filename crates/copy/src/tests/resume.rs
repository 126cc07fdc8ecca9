//! Runs that go on where another was interrupted.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

use bc_pool::Cancel;

use super::{Ground, done, run, seen};
use crate::{CopyProgress, Event, OnConflict, copy};

/// So that times prove what they say.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(250));
}

#[test]
fn the_same_command_goes_on_and_its_destination_stays() {
    let ground = Ground::new();
    for number in 0..300 {
        ground.write(
            &format!("from/{}/{number}", number % 7),
            format!("{number}").as_bytes(),
        );
    }
    settle();
    let options = ground.options(&["from"], "to");
    let (cancel, count) = (Cancel::new(), AtomicU32::new(0));
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) && count.fetch_add(1, Ordering::Relaxed) == 100 {
            cancel.cancel(2);
        }
    };
    let first = copy(&options, &cancel, &CopyProgress::default(), &observer).unwrap();
    assert!(first.left > 0 && first.resumable, "{first:?}");
    assert_eq!(first.walked, first.copied + first.left);
    let inodes = |path: &str| {
        std::fs::metadata(ground.at(path))
            .map(|meta| meta.ino())
            .ok()
    };
    let before = (0..300)
        .filter(|n| inodes(&format!("to/{}/{n}", n % 7)).is_some())
        .count();
    let second = done(&options);
    assert_eq!(second.before, before as u64, "{second:?}");
    // Not into it, now that it exists.
    assert!(!ground.at("to/from").exists());
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("to")));
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    // It is over: the rule holds again.
    done(&options);
    assert!(ground.at("to/from").exists());
}

#[test]
fn a_huge_file_goes_on_from_its_blocks() {
    let ground = Ground::new();
    let content: Vec<u8> = (0..70 << 20)
        .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    ground.write("from/huge", &content);
    settle();
    let options = ground.options(&["from"], "to");
    let (cancel, progress) = (Cancel::new(), CopyProgress::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.bytes.load(Ordering::Relaxed) < 30 << 20 && !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            cancel.cancel(2);
        });
        let first = copy(&options, &cancel, &progress, &|_| {}).unwrap();
        cancel.cancel(2);
        assert!(first.left > 0, "{first:?}");
        assert!(!ground.at("to/huge").exists());
    });
    let second = done(&options);
    assert!(second.bytes < 50 << 20, "{second:?}");
    assert!(std::fs::read(ground.at("to/huge")).unwrap() == content);
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}

#[test]
fn what_changed_meanwhile_is_copied_anew_and_what_was_in_the_way_stays() {
    let ground = Ground::new();
    ground.write("from/a", b"first");
    ground.write("from/b", b"second");
    ground.write("to/b", b"mine");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = crate::Target::Exactly;
    let (first, told) = run(&options);
    let first = first.unwrap();
    assert_eq!((first.failed, first.resumable), (1, true), "{told:?}");
    std::fs::write(ground.at("from/a"), b"edited").unwrap();
    let (second, told) = run(&options);
    assert_eq!(second.unwrap().failed, 1, "{told:?}");
    assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"edited");
    assert_eq!(std::fs::read(ground.at("to/b")).unwrap(), b"mine");
    options.on_conflict = OnConflict::Replace;
    assert_eq!(done(&options).before, 1);
    assert_eq!(std::fs::read(ground.at("to/b")).unwrap(), b"second");
    assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"edited");
}

#[test]
fn a_living_run_of_the_same_copy_is_not_disturbed() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    let options = ground.options(&["from"], "to");
    let inner = AtomicU32::new(0);
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) {
            let (second, _) = run(&options);
            assert_eq!(second.unwrap_err().kind(), crate::ErrorKind::Busy);
            inner.fetch_add(1, Ordering::Relaxed);
        }
    };
    copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &observer,
    )
    .unwrap();
    assert!(inner.load(Ordering::Relaxed) > 0);
}
