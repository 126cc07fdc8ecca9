//! Files that are written to while they are read: the content of a finished one is of one state.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bc_testkit::TestTree;
use bc_walk::{ErrorKind, Metadata};

use super::{CLOCK_AHEAD_NS, NO_LEASE, Recorder, age, files, list, options, read_all};
use crate::steady::{Readings, SteadyVerdict, is_fresh};
use crate::{Changed, Choice, ReadOptions, uring_available};

/// Set when dropped, so that a test that fails ends too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Overwrites whole files in place again and again, with one byte each time, while `f` runs: each
/// time through a descriptor of its own, or all times through one.
fn while_rewritten(paths: &[PathBuf], reopen: bool, f: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let open = |path: &PathBuf| OpenOptions::new().write(true).open(path).unwrap();
            let kept: Vec<_> = paths
                .iter()
                .map(|path| (!reopen).then(|| open(path)))
                .collect();
            for byte in (b'A'..=b'Z').cycle() {
                for (path, kept) in paths.iter().zip(&kept) {
                    if stop.load(Relaxed) {
                        return;
                    }
                    let opened = kept.is_none().then(|| open(path));
                    let file = kept.as_ref().or(opened.as_ref()).unwrap();
                    let len = file.metadata().unwrap().len() as usize;
                    file.write_all_at(&vec![byte; len], 0).unwrap();
                }
            }
        });
        let _stop = Stop(&stop);
        f();
    });
}

fn is_one_state(content: &[u8]) -> bool {
    content.iter().all(|byte| *byte == content[0])
}

#[test]
fn what_is_read_is_one_state() {
    let lengths = [[60_000; 6].as_slice(), &[1 << 20; 2], &[20 << 20]].concat();
    let tree = TestTree::new();
    let paths: Vec<_> = (0..lengths.len())
        .map(|at| tree.join(format!("{at}")))
        .collect();
    for (path, len) in paths.iter().zip(&lengths) {
        std::fs::write(path, vec![b'.'; *len]).unwrap();
    }
    let listing = list(&paths, Metadata::Basic);
    let mut backends = vec![Choice::Sync, Choice::Auto];
    backends.extend(uring_available().is_ok().then_some(Choice::Uring));
    for reopen in [true, false] {
        while_rewritten(&paths, reopen, || {
            for (run, backend) in backends.iter().cycle().take(6).enumerate() {
                NO_LEASE.set(run >= 3);
                let mut recorder = Recorder::new(1 + run % 3);
                read_all(&listing, &options(*backend), &mut recorder);
                assert_eq!(recorder.done.len(), lengths.len());
                for (entry, result) in &recorder.done {
                    match result {
                        Ok((_, content)) => {
                            assert_eq!(content.len(), lengths[entry.0 as usize]);
                            assert!(is_one_state(content), "{entry:?} {backend:?}, run {run}");
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Changed),
                    }
                }
            }
        });
    }
}

/// Checks files with and without leases, and also where a writer has files open that he does not
/// write to.
#[test]
fn files_written_just_now_are_read() {
    let (_tree, paths, contents) = files(&[1, 4096, 100_000, 300_000, 0]);
    let listing = list(&paths, Metadata::Basic);
    for (no_lease, held_open) in [(false, false), (true, false), (false, true)] {
        NO_LEASE.set(no_lease);
        let open = |path| OpenOptions::new().append(true).open(path).unwrap();
        let _held: Vec<_> = paths.iter().filter(|_| held_open).map(open).collect();
        for width in [1, 4] {
            let mut recorder = Recorder::new(width);
            let stats = read_all(&listing, &options(Choice::Auto), &mut recorder);
            assert!(recorder.contents(&listing) == contents);
            // Each byte counts once, however often it was read.
            assert_eq!(stats.bytes, 404_097);
            assert_eq!((stats.files, stats.errors), (5, 0));
        }
    }
}

/// Checks that a process that opens the file for writing between two pieces gets it, and that the
/// file begins again.
#[test]
fn a_writer_that_waits_is_let_in() {
    let (_tree, paths, contents) = files(&[20_000]);
    let listing = list(&paths, Metadata::Basic);
    for changed in [Changed::Refuse, Changed::Allow] {
        let options = ReadOptions {
            slot_size: 4096,
            changed,
            ..options(Choice::Sync)
        };
        let (wanted, wants) = std::sync::mpsc::channel();
        let mut recorder = Recorder::new(1).with_hook(|_| {
            // Not to be waited for here: it is this thread that has to let go.
            let path = paths[0].clone();
            wanted
                .send(std::thread::spawn(move || {
                    let file = OpenOptions::new().write(true).open(path).unwrap();
                    file.write_all_at(&[7; 20_000], 0).unwrap();
                }))
                .unwrap();
        });
        read_all(&listing, &options, &mut recorder);
        let outcome = recorder.done.remove(&bc_walk::EntryId(0)).unwrap();
        drop(recorder);
        drop(wanted);
        wants.into_iter().for_each(|writer| writer.join().unwrap());
        if changed == Changed::Refuse
            && let Ok((_, content)) = outcome
        {
            assert!(content == contents[0] || content == [7; 20_000]);
        }
    }
}

#[test]
fn old_files_take_no_lease() {
    let (_tree, paths, contents) = files(&[5000]);
    let listing = list(&paths, Metadata::Basic);
    age(&paths[0]);
    let writer = OpenOptions::new().append(true).open(&paths[0]).unwrap();
    let mut recorder = Recorder::new(1);
    let stats = read_all(&listing, &options(Choice::Sync), &mut recorder);
    assert!(recorder.contents(&listing) == contents);
    assert_eq!(stats.reads, 1);
    drop(writer);
}

#[test]
fn freshness_goes_by_both_times_and_their_grain() {
    let now = crate::steady::now_ns();
    let stamp = |mtime: i64, ctime: i64| bc_walk::Stamp {
        size: 1,
        mtime_ns: mtime,
        ctime_ns: ctime,
    };
    const S: i64 = 1_000_000_000;
    assert!(
        is_fresh(&stamp(now - 60 * S, now)),
        "a write sets both, a touch can set one back"
    );
    assert!(is_fresh(&stamp(now, now - 60 * S)));
    assert!(is_fresh(&stamp(now + 3600 * S, now - 60 * S)), "the future");
    assert!(!is_fresh(&stamp(now - 60 * S + 1, now - 60 * S + 1)));
    let whole = (now / S - 3) * S;
    assert!(
        is_fresh(&stamp(whole, whole)),
        "a coarse time is older than it looks"
    );
    assert!(!is_fresh(&stamp(whole + 1, whole + 1)));
    CLOCK_AHEAD_NS.set(10 * S);
    assert!(!is_fresh(&stamp(now + 1, now + 1)));
}

#[test]
fn two_readings_agree_only_if_nothing_began_meanwhile() {
    let at = |time| bc_walk::Stamp {
        size: 1,
        mtime_ns: time,
        ctime_ns: time,
    };
    let mut readings = Readings::default();
    assert_eq!(readings.end(at(1), Some('a'), at(1)), SteadyVerdict::Again);
    assert_eq!(readings.end(at(1), Some('a'), at(1)), SteadyVerdict::Agrees);
    let mut readings = Readings::default();
    assert_eq!(readings.end(at(1), Some('a'), at(2)), SteadyVerdict::Again);
    assert_eq!(
        readings.end(at(2), Some('a'), at(2)),
        SteadyVerdict::Again,
        "it was written to"
    );
    assert_eq!(readings.end(at(2), Some('a'), at(2)), SteadyVerdict::Agrees);
    let mut readings = Readings::default();
    assert_eq!(readings.end(at(1), Some('a'), at(1)), SteadyVerdict::Again);
    assert_eq!(readings.end(at(1), Some('b'), at(1)), SteadyVerdict::Again);
    assert_eq!(readings.end(at(1), None, at(1)), SteadyVerdict::Restless);
}
