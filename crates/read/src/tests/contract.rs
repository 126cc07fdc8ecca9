//! Cancellation, panics and the other promises that are not about bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bc_pool::{Cancel, LastRun, Metering, Waiting};
use bc_walk::{EntryId, Error, ErrorKind, Metadata};

use super::{Recorder, each_backend, files, list, options, read_all};
use crate::pump::run_metered;
use crate::{Consumer, Feed, Opened, Plan, ReadOptions, open_checked, pump};

/// True if this process has any file below `dir` open.
fn holds_open(dir: &std::path::Path) -> bool {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .any(|target| target.starts_with(dir) && target != dir)
}

#[test]
fn after_a_cancellation_nothing_is_finished_and_nothing_stays_open() {
    let (tree, paths, contents) = files(&[50_000; 300]);
    let listing = list(&paths, Metadata::Basic);
    each_backend(|backend| {
        let cancel = Cancel::new();
        let mut pieces = 0;
        let mut recorder = Recorder::new(4).with_hook(|_| {
            pieces += 1;
            if pieces == 10 {
                cancel.cancel(2);
            }
        });
        let plan = Plan::all(&listing, 1);
        let stats = pump(&listing, &plan, &options(backend), &cancel, &mut recorder);
        assert!(recorder.done.len() < 20, "{}", recorder.done.len());
        assert_eq!(stats.files, recorder.done.len() as u64);
        for (entry, result) in &recorder.done {
            assert!(result.as_ref().unwrap().1 == contents[entry.0 as usize]);
        }
        assert!(!holds_open(tree.path()));
    });
    each_backend(|backend| {
        let cancel = Cancel::new();
        cancel.cancel(15);
        let mut recorder = Recorder::new(1);
        let plan = Plan::all(&listing, 1);
        pump(&listing, &plan, &options(backend), &cancel, &mut recorder);
        assert!(recorder.done.is_empty() && recorder.open.is_empty());
    });
}

#[test]
fn a_panic_drains_what_is_in_flight() {
    let (tree, paths, _) = files(&[50_000; 200]);
    let listing = list(&paths, Metadata::Basic);
    each_backend(|backend| {
        let mut pieces = 0;
        let mut recorder = Recorder::new(3).with_hook(|_| {
            pieces += 1;
            assert!(pieces < 5, "as planned");
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            read_all(&listing, &options(backend), &mut recorder);
        }));
        assert!(outcome.is_err());
        assert!(!holds_open(tree.path()));
    });
}

#[test]
fn a_consumer_that_consumes_nothing_is_caught() {
    struct Lazy;
    impl Consumer for Lazy {
        fn width(&self) -> usize {
            0
        }
        fn begin(&mut self, _: usize, _: &Opened) {}
        fn advance(&mut self, _: &[Feed<'_>], _: &mut Vec<usize>) {}
        fn finish(&mut self, _: usize, _: Result<Opened, Error>, _: EntryId) {}
    }
    let (_tree, paths, _) = files(&[1]);
    let listing = list(&paths, Metadata::None);
    let outcome = catch_unwind(|| {
        let plan = Plan::all(&listing, 1);
        pump(
            &listing,
            &plan,
            &ReadOptions::default(),
            &Cancel::new(),
            &mut Lazy,
        );
    });
    assert!(outcome.is_err());
}

#[test]
fn a_large_file_keeps_its_lane_while_small_ones_pass() {
    let mut lengths = vec![900; 200];
    lengths[0] = 1 << 20;
    let (_tree, paths, contents) = files(&lengths);
    let listing = list(&paths, Metadata::Basic);
    each_backend(|backend| {
        let options = ReadOptions {
            slot_size: 4096,
            ..options(backend)
        };
        let mut recorder = Recorder::new(8);
        read_all(&listing, &options, &mut recorder);
        assert!(recorder.contents(&listing) == contents);
        assert_eq!(recorder.widest, 8);
        // Had the others waited for it, it would have been among the first.
        let position = recorder.order.iter().position(|entry| entry.0 == 0);
        assert!(position.unwrap() >= 100, "ended as number {position:?}");
    });
}

#[test]
fn an_empty_plan_ends_at_once() {
    let (_tree, paths, _) = files(&[3]);
    let listing = list(&paths, Metadata::None);
    each_backend(|backend| {
        let plan = Plan::new(Vec::new(), 4);
        let mut recorder = Recorder::new(4);
        let stats = pump(
            &listing,
            &plan,
            &options(backend),
            &Cancel::new(),
            &mut recorder,
        );
        assert_eq!((stats.files, stats.errors, stats.reads), (0, 0, 0));
    });
}

#[test]
fn entries_may_come_in_any_order() {
    let (_tree, paths, contents) = files(&[10, 20_000, 30, 0, 50]);
    let listing = list(&paths, Metadata::Basic);
    each_backend(|backend| {
        let order: Vec<EntryId> = [3, 1, 4, 0].map(EntryId).to_vec();
        let plan = Plan::new(order.clone(), 2);
        let mut recorder = Recorder::new(2);
        pump(
            &listing,
            &plan,
            &options(backend),
            &Cancel::new(),
            &mut recorder,
        );
        assert_eq!(recorder.done.len(), 4);
        for entry in order {
            let (_, bytes) = recorder.done[&entry].as_ref().unwrap();
            assert!(*bytes == contents[entry.0 as usize]);
        }
    });
}

#[test]
fn a_single_file_can_be_opened_by_itself() {
    let (_tree, paths, contents) = files(&[12, 34]);
    let listing = list(&paths, Metadata::Basic);
    let (file, stat) = open_checked(&listing, EntryId(1)).unwrap();
    assert_eq!(stat.stamp.size, 34);
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut read).unwrap();
    assert_eq!(read, contents[1]);
    std::fs::rename(&paths[0], &paths[1]).unwrap();
    let error = open_checked(&listing, EntryId(1)).unwrap_err();
    assert_eq!((error.op(), error.kind()), ("open", ErrorKind::Changed));
    let error = open_checked(&listing, EntryId(0)).unwrap_err();
    assert_eq!((error.op(), error.errno()), ("open", Some(2)));
}

/// Returns the final number of workers, where they have waited for this part of the time.
fn workers(waiting: usize, files: u32, waited: fn(Duration) -> Duration) -> usize {
    let plan = Plan::new((0..files).map(EntryId).collect(), 2);
    let options = ReadOptions::default().waiting(waiting);
    let metering = Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(move |busy| busy - waited(busy))),
    };
    let last = LastRun::default();
    let ran = run_metered(
        &plan,
        &options,
        &[],
        [2, 2],
        &last,
        &metering,
        |mut worker| {
            worker.waiting(Waiting::Begins);
            for _ in 0..10 {
                std::thread::sleep(Duration::from_micros(1));
                worker.waiting(Waiting::GoesOn);
            }
        },
    );
    ran.unwrap().len()
}

#[test]
fn who_waits_is_joined_by_others() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    assert_eq!(workers(8, 1000, |busy| busy), 8);
    assert_eq!(workers(5, 1000, |busy| busy), 5);
    assert_eq!(workers(8, 1000, |_| Duration::ZERO), 2, "nobody has waited");
    assert_eq!(workers(0, 1000, |busy| busy), 2, "as many as were named");
    assert_eq!(workers(8, 1, |busy| busy), 2, "nothing is left for another");
}
