//! Descriptors that workers with tables of their own hold open.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::Barrier;

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::{Errno, fcntl_getfd};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::Tables;
use crate::run;
use crate::run::run_in;

fn private() -> Tables {
    // SAFETY: workers of these tests use what they are given by name, and what they have opened.
    unsafe { Tables::private() }
}

/// Returns the numbers in the calling thread's table, but for the one by which it is read.
fn held() -> Vec<RawFd> {
    let dir = File::open("/proc/thread-self/fd").unwrap();
    let mut buffer = Vec::with_capacity(4096);
    let mut entries = rustix::fs::RawDir::new(&dir, buffer.spare_capacity_mut());
    let mut held = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
        held.extend(
            name.parse::<RawFd>()
                .ok()
                .filter(|fd| *fd != dir.as_raw_fd()),
        );
    }
    held.sort_unstable();
    held
}

/// Returns the targets of the calling thread's descriptors.
fn leads_to() -> Vec<PathBuf> {
    let links = std::fs::read_dir("/proc/thread-self/fd").unwrap();
    let names = links.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    names.collect()
}

/// Returns the standard streams that are open here.
fn streams() -> Vec<RawFd> {
    held().into_iter().filter(|fd| *fd < 3).collect()
}

/// True if this system gives threads tables of their own.
fn is_able() -> bool {
    let file = File::open("/dev/null").unwrap();
    let seen = run_in(private(), &[], 2, 2, |_, _| fcntl_getfd(&file)).unwrap();
    let able = seen.get(1) == Some(&Err(Errno::BADF));
    if !able {
        bc_testkit::left_out("no private tables here");
    }
    able
}

#[test]
fn a_worker_holds_what_is_named_and_nothing_else() {
    if !is_able() {
        return;
    }
    let files: Vec<File> = (0..9).map(|_| File::open("/dev/null").unwrap()).collect();
    for named in [&[][..], &[4], &[0], &[8], &[1, 2, 6], &[7, 3, 7]] {
        let keep: Vec<BorrowedFd<'_>> = named.iter().map(|at: &usize| files[*at].as_fd()).collect();
        let mut expected = streams();
        expected.extend(keep.iter().map(AsRawFd::as_raw_fd));
        expected.sort_unstable();
        expected.dedup();
        let before = files.iter().map(AsRawFd::as_raw_fd);
        let all = run_in(private(), &keep, 3, 3, |_, _| held()).unwrap();
        assert!(
            before.clone().all(|fd| all[0].contains(&fd)),
            "the caller's own"
        );
        for of_worker in &all[1..] {
            assert_eq!(*of_worker, expected, "{named:?}");
        }
        // And no other thread has lost any.
        assert!(files.iter().all(|file| fcntl_getfd(file).is_ok()));
    }
}

/// Checks that a worker that joins later starts without the descriptors of the worker that called
/// for it.
#[test]
fn who_joins_later_holds_nothing_of_the_worker_that_called() {
    if !is_able() {
        return;
    }
    let named = File::open("/dev/null").unwrap();
    let all = run_in(private(), &[named.as_fd()], 2, 3, |worker, spawn| {
        let own: Vec<File> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        if worker == 1 {
            assert!(spawn());
        }
        let found = held();
        drop(own);
        found.len()
    })
    .unwrap();
    assert_eq!(all[1..], [streams().len() + 51; 2]);
}

#[test]
fn workers_keep_no_pipe_no_lock_and_no_deleted_file() {
    if !is_able() {
        return;
    }
    let path = std::env::temp_dir().join(format!("bc-pool-tables-{}", std::process::id()));
    let locked = File::create(&path).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    fcntl_lock(&locked, FlockOperation::LockExclusive).unwrap();
    let other = File::open(&path).unwrap();
    let deleted = path.with_extension("deleted");
    let gone = File::create(&deleted).unwrap();
    std::fs::remove_file(&deleted).unwrap();
    let gone_name = format!("/proc/self/fd/{}", gone.as_raw_fd());
    let gone_name = std::fs::read_link(gone_name).unwrap();
    assert!(leads_to().contains(&gone_name));
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mine = std::sync::Mutex::new(Some((writer, locked, gone)));
    let (begun, done) = (Barrier::new(3), Barrier::new(3));
    run_in(private(), &[], 3, 3, |worker, _| {
        begun.wait();
        if worker == 0 {
            drop(mine.lock().unwrap().take());
            let mut rest = Vec::new();
            // Would wait for ever while a worker had the other end.
            assert_eq!(
                std::io::Read::read_to_end(&mut &reader, &mut rest).unwrap(),
                0
            );
            flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        }
        // Descriptors of others, which were here before, are not ours to judge: a standard stream,
        // say.
        let names = leads_to();
        assert!(!names.contains(&gone_name), "{names:?}");
        done.wait();
    })
    .unwrap();
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn by_default_tables_are_shared() {
    let file = File::open("/dev/null").unwrap();
    assert_eq!(Tables::default(), Tables::SHARED);
    let seen = run(3, |_| fcntl_getfd(&file).is_ok()).unwrap();
    assert!(seen.iter().all(|seen| *seen));
}

/// Simulates a kernel or a filter that knows no such call: nothing is closed, and the run
/// continues.
#[test]
fn where_it_is_refused_tables_stay_shared() {
    for errno in [libc::ENOSYS, libc::EPERM, libc::EINVAL] {
        std::thread::scope(|scope| {
            let tested = scope.spawn(|| {
                let call = BTreeMap::from([(libc::SYS_close_range, Vec::new())]);
                let filter = SeccompFilter::new(
                    call,
                    SeccompAction::Allow,
                    SeccompAction::Errno(errno as u32),
                    std::env::consts::ARCH.try_into().unwrap(),
                );
                let program: BpfProgram = filter.unwrap().try_into().unwrap();
                apply_filter(&program).unwrap();
                let file = File::open("/dev/null").unwrap();
                let seen = run_in(private(), &[], 3, 3, |_, _| fcntl_getfd(&file));
                seen.unwrap().into_iter().all(|seen| seen.is_ok())
            });
            assert!(tested.join().unwrap());
        });
    }
}

/// Checks that the error of a run does not depend on tables.
#[test]
fn a_panic_is_reported() {
    let ran = run_in(private(), &[], 2, 2, |worker, _| {
        assert!(worker == 0, "of a test");
    });
    assert_eq!(ran.unwrap_err().message, "of a test");
}
