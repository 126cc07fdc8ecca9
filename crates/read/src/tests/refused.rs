//! Systems that refuse `io_uring` and other calls: filters on a thread of the
//! test, as a container's policy would set them on a process.

use std::collections::BTreeMap;

use bc_testkit::left_out;
use bc_walk::{EntryId, Metadata};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::{Pretend, Recorder, each_backend, files, list, options, pretend, read_all};
use crate::{Backend, Choice, uring_available};

/// Makes these calls fail with `errno` on this thread from now on.
fn deny(calls: &[libc::c_long], errno: i32) {
    let rules: BTreeMap<i64, _> = calls.iter().map(|&call| (call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

/// Runs `test` on a thread where `calls` are denied.
fn without(calls: &[libc::c_long], errno: i32, test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            deny(calls, errno);
            test();
        });
        thread.join().unwrap();
    });
}

const LENGTHS: [usize; 6] = [0, 1, 5000, 20_000, 131_072, 300_000];

/// Reads with `backend` where nothing counts as resident, and expects plain
/// calls to have done it.
fn falls_back(backend: Choice, errno: Option<i32>) {
    let (_tree, paths, contents) = files(&LENGTHS);
    let listing = list(&paths, Metadata::Basic);
    pretend(Pretend::Cold);
    let mut recorder = Recorder::new(3);
    let stats = read_all(&listing, &options(backend), &mut recorder);
    assert!(recorder.contents(&listing) == contents);
    assert_eq!((stats.backend, stats.queued), (Backend::Sync, 0));
    let refused = stats.refused.expect("the reason");
    assert_eq!(refused.op(), "io_uring");
    if errno.is_some() {
        assert_eq!(refused.errno(), errno);
    }
}

#[test]
fn a_refused_ring_is_named_and_plain_calls_take_over() {
    let ring = [libc::SYS_io_uring_setup];
    without(&ring, libc::EPERM, || {
        let error = uring_available().unwrap_err();
        assert_eq!(error.op(), "io_uring");
        assert!(error.message().ends_with("(os error 1)"), "{error}");
        falls_back(Choice::Auto, None);
        falls_back(Choice::Uring, None);
    });
    without(&ring, libc::ENOSYS, || {
        assert_eq!(uring_available().unwrap_err().errno(), Some(libc::ENOSYS));
        falls_back(Choice::Auto, Some(libc::ENOSYS));
    });
    without(&ring, libc::ENOMEM, || {
        assert_eq!(uring_available().unwrap_err().errno(), Some(libc::ENOMEM));
        falls_back(Choice::Uring, Some(libc::ENOMEM));
    });
}

#[test]
fn a_ring_that_may_be_made_and_not_used_counts_as_refused() {
    for call in [libc::SYS_io_uring_enter, libc::SYS_io_uring_register] {
        without(&[call], libc::EPERM, || {
            assert!(uring_available().is_err());
            falls_back(Choice::Auto, None);
        });
    }
}

/// Checks that a ring that breaks in the middle costs the files in flight, and no more.
#[test]
fn a_ring_that_fails_later_is_given_up() {
    if let Err(error) = uring_available() {
        return left_out(&error.to_string());
    }
    without(&[], 0, || {
        let (_tree, paths, contents) = files(&[30_000; 400]);
        let listing = list(&paths, Metadata::Basic);
        let mut pieces = 0;
        let mut recorder = Recorder::new(4).with_hook(|_| {
            pieces += 1;
            if pieces == 20 {
                deny(&[libc::SYS_io_uring_enter], libc::EPERM);
            }
        });
        let stats = read_all(&listing, &options(Choice::Uring), &mut recorder);
        assert_eq!(recorder.done.len(), 400);
        assert!(recorder.open.is_empty());
        assert_eq!(stats.files + stats.errors, 400);
        assert!((1..=128).contains(&stats.errors), "{}", stats.errors);
        assert_eq!(stats.backend, Backend::Mixed);
        assert_eq!(stats.refused.unwrap().errno(), Some(libc::EPERM));
        for (entry, result) in &recorder.done {
            match result {
                Ok((_, bytes)) => assert!(*bytes == contents[entry.0 as usize]),
                Err(error) => assert_eq!(error.errno(), Some(libc::EPERM)),
            }
        }
    });
}

/// Checks reading without `openat2`, which kernels before 5.6 and some containers lack, and without
/// `preadv2`.
#[test]
fn missing_newer_calls_are_done_without() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        let (_tree, paths, contents) = files(&LENGTHS);
        let listing = list(&paths, Metadata::Basic);
        without(&[libc::SYS_openat2, libc::SYS_preadv2], errno, || {
            let mut recorder = Recorder::new(2);
            let stats = read_all(&listing, &options(Choice::Auto), &mut recorder);
            assert!(recorder.contents(&listing) == contents);
            assert_eq!(stats.backend, Backend::Sync);
        });
    }
}

/// Checks that files wait for each other with fewer descriptors than slots. The limit is the whole
/// process's, so this is a process of its own.
#[test]
fn few_descriptors_are_enough() {
    const CHILD: &str = "BC_READ_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let child = bc_testkit::own_program()
            .args(["--exact", "tests::refused::few_descriptors_are_enough"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{said}");
        return;
    }
    let (_tree, paths, contents) = files(&[5000; 300]);
    let listing = list(&paths, Metadata::Basic);
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let limit = Rlimit {
        current: Some(used + 10),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    each_backend(|backend| {
        let mut recorder = Recorder::new(20);
        read_all(&listing, &options(backend), &mut recorder);
        assert!(recorder.contents(&listing) == contents);
    });
    // Directories that are kept open must not take the last descriptors.
    let (_trees, paths): (Vec<_>, Vec<_>) = (0..20)
        .map(|_| {
            let (tree, mut paths, _) = files(&[10]);
            (tree, paths.remove(0))
        })
        .unzip();
    let listing = list(&paths, Metadata::None);
    let hoard: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let hoard: Vec<_> = hoard.into_iter().skip(3).collect();
    let mut recorder = Recorder::new(4);
    read_all(&listing, &options(Choice::Sync), &mut recorder);
    assert_eq!(recorder.contents(&listing).len(), 20);
    drop(hoard);
    // None at all: an error each, and an end.
    let (_tree, paths, _) = files(&[10; 2]);
    let [listing, unread] = [(); 2].map(|()| list(&paths, Metadata::None));
    let mut hoard = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    let mut recorder = Recorder::new(4);
    read_all(&listing, &options(Choice::Sync), &mut recorder);
    for entry in 0..2 {
        assert_eq!(recorder.error(entry).errno(), Some(libc::EMFILE));
    }
    // One, which the file's directory takes each time.
    hoard.pop();
    // Asked to end, a job waits no more: by its own flag, which is not that of the walk.
    let stopped = bc_pool::Cancel::new();
    std::thread::scope(|scope| {
        let mut opener = crate::Opener::new(&unread, &stopped);
        scope.spawn(|| stopped.stop());
        let error = opener.open_checked(EntryId(0)).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EMFILE));
    });
    let cancel = bc_pool::Cancel::new();
    let mut opener = crate::Opener::new(&listing, &cancel);
    for entry in 0..2 {
        let error = opener.open_checked(EntryId(entry)).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EMFILE));
    }
    hoard.pop();
    assert!(opener.open_checked(EntryId(0)).is_ok());
}
