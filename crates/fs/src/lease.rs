//! Read leases: the kernel reports whether any process has a file open for writing, and holds a new
//! writer back until the lease is given up.
//!
//! A modification time moves when a write call begins, so two looks at it can miss a write that
//! is under way between them. A read lease (`F_SETLEASE`, `F_RDLCK`; fcntl(2)) is refused while
//! the file is open for writing anywhere on this machine, and a later open for writing waits
//! until the lease is dropped, at most `/proc/sys/fs/lease-break-time` seconds, 45 as a rule.
//! So bytes that were read while a lease was granted and unbroken are of one state.
//!
//! Writers through a descriptor that was open before, or through a shared mapping made of it, hold
//! the file open for writing and make [`take`] fail with [`Refused::Writer`].

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::call::point;

/// Command of `asm-generic/fcntl.h`; libc has it for some targets only.
const F_SETSIG: c_int = 10;

/// True once this process ignores `SIGIO`, for good.
static IGNORES_SIGIO: AtomicBool = AtomicBool::new(false);

/// Ignores `SIGIO` from here on, by which the kernel reports that a lease is to be broken and which
/// would end the process: then [`take`] need not ask for another signal, which is one call less for
/// each lease. Children that the process starts ignore it too.
///
/// A program calls this once at its start, and leaves the signal alone afterwards: libraries change
/// no signals by themselves. Where the program handles `SIGIO` already, nothing is changed.
pub fn ignore_break_signal() {
    let mut now: libc::sigaction = {
        // SAFETY: a structure of integers, and of pointers that may be null.
        unsafe { std::mem::zeroed() }
    };
    // SAFETY: `now` is a `sigaction` to be written to, and no other one is given.
    let asked = unsafe { libc::sigaction(libc::SIGIO, std::ptr::null(), &raw mut now) };
    if asked != 0 || ![libc::SIG_DFL, libc::SIG_IGN].contains(&now.sa_sigaction) {
        return;
    }
    // SAFETY: no function is installed.
    let before = unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    IGNORES_SIGIO.store(before != libc::SIG_ERR, Ordering::Relaxed);
}

/// Reason why there is no lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// The file is open for writing somewhere.
    Writer,
    /// The system gives none: the file belongs to another user and `CAP_LEASE` is missing, or the
    /// file system knows no leases (NFS, FUSE); with the error number.
    Unavailable(i32),
}

/// Takes a read lease on the file that `fd` is open on. It ends with [`give_up`], or when the
/// descriptor and all its duplicates are closed.
///
/// The descriptor must have been opened for reading only, and leases belong to the open file
/// description: one opened twice has two.
///
/// A process whose lease is to be broken is notified by `SIGURG`, which is ignored unless the
/// program says otherwise, and not by `SIGIO`, which would end it unless it is
/// [ignored](ignore_break_signal).
///
/// # Errors
/// [`Refused`]; nothing is held then.
pub fn take(fd: impl AsFd) -> Result<(), Refused> {
    point("lease").map_err(|errno| Refused::Unavailable(errno.raw_os_error()))?;
    let raw = fd.as_fd().as_raw_fd();
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::EAGAIN) => Refused::Writer,
        errno => Refused::Unavailable(errno.unwrap_or(libc::EIO)),
    };
    if !IGNORES_SIGIO.load(Ordering::Relaxed) {
        fcntl(raw, F_SETSIG, libc::SIGURG).map_err(refused)?;
    }
    fcntl(raw, libc::F_SETLEASE, libc::F_RDLCK).map_err(refused)?;
    Ok(())
}

/// A file that was written to within this time may be in the hands of a writer who closes it soon.
const YOUNG: Duration = Duration::from_secs(2);

/// Longest wait for such a writer: a forked process on a busy machine may not come to its `exec`
/// within 100 ms.
const PATIENCE: Duration = Duration::from_millis(300);

/// Takes a lease as [`take`] does, on a file that changed last at `ctime_ns` (nanoseconds since
/// 1970), after its writer is done: one that has just written it may be about to close it, and a
/// process that the writer forked meanwhile holds it open until it runs another program. Waits 300
/// ms at most, and not at all for files that were written long ago and are still open.
///
/// # Errors
/// [`Refused`]; nothing is held then.
pub fn take_when_closed(fd: impl AsFd, ctime_ns: i64) -> Result<(), Refused> {
    // No process can set the time of change back.
    let written = UNIX_EPOCH + Duration::from_nanos(ctime_ns.max(0).unsigned_abs());
    let patience = match written.elapsed() {
        Ok(age) if age < YOUNG => PATIENCE,
        _ => Duration::ZERO,
    };
    let began = Instant::now();
    loop {
        match take(&fd) {
            Err(Refused::Writer) if began.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// True if the lease taken on `fd` is unbroken: no process has opened the file for writing, or
/// tried to, since it was granted.
pub fn is_held(fd: impl AsFd) -> bool {
    // A lease that is being broken reads as what it is to become, F_UNLCK.
    fcntl(fd.as_fd().as_raw_fd(), libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_RDLCK)
}

/// Gives the lease on `fd` up, if there is one: a waiting writer may continue.
pub fn give_up(fd: impl AsFd) {
    // Without a lease there is nothing to do, and closing the descriptor would do the same.
    let _ = fcntl(fd.as_fd().as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK);
}

fn fcntl(fd: RawFd, command: c_int, argument: c_int) -> io::Result<c_int> {
    // SAFETY: the commands used here take an integer or nothing and touch no memory of ours; an
    // invalid descriptor gives EBADF.
    match unsafe { libc::fcntl(fd, command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn a_writer_refuses_and_breaks_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "x").unwrap();
        let file = File::open(&path).unwrap();
        let write = || {
            OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&path)
        };
        let writer = write().unwrap();
        assert_eq!(take(&file), Err(Refused::Writer));
        drop(writer);
        match take(&file) {
            Ok(()) => {}
            // Some file systems that a temporary directory may lie on have none.
            Err(Refused::Unavailable(errno)) => {
                assert!([libc::EINVAL, libc::EACCES].contains(&errno), "{errno}");
                return;
            }
            Err(Refused::Writer) => panic!("nobody writes"),
        }
        assert!(is_held(&file));
        // Readers do not matter.
        drop(File::open(&path).unwrap());
        assert!(is_held(&file));
        // A writer that does not wait is refused, and the lease reports it.
        assert_eq!(write().unwrap_err().raw_os_error(), Some(libc::EWOULDBLOCK));
        assert!(!is_held(&file));
        give_up(&file);
        write().unwrap();
    }

    #[test]
    fn a_descriptor_for_writing_gets_none() {
        let file = tempfile::tempfile().unwrap();
        assert!(take(&file).is_err());
    }
}
