//! Closing of files, with the errors that the file system reports only then.
#![allow(unsafe_code)] // closing a number

use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};

/// Closes a file by the bare system call: the C library's `close`, which dropping the file would
/// call, lets the thread be cancelled meanwhile, and to arrange for that takes a tenth of its time.
/// NFS, SMB and FUSE may report only here that written data could not be stored.
///
/// # Errors
/// Errors of `close`, after which the file is closed all the same. After `INTR` it is unknown
/// whether everything written was stored.
pub fn close(file: impl Into<OwnedFd>) -> Result<(), Errno> {
    let number = file.into().into_raw_fd();
    // SAFETY: the number was the file's own, which has no other owner any more.
    match unsafe { libc::syscall(libc::SYS_close, number) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Reports the error that closing the file would report, and leaves it open: a second descriptor of
/// it is closed.
///
/// # Errors
/// Errors of `dup` and `close`.
pub fn flush(file: impl AsFd) -> Result<(), Errno> {
    retry_on_intr(|| close(rustix::io::fcntl_dupfd_cloexec(&file, 0)?))
}
