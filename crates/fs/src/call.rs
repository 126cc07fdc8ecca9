//! System calls that report which of them failed, each one a place where tests make things go wrong.

use std::fmt;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};

/// A call that failed: its name and the system's reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FailedCall {
    /// The operation, in words for users: "open directory".
    pub op: &'static str,
    /// The system's reason.
    pub errno: Errno,
}

impl fmt::Display for FailedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, std::io::Error::from(self.errno))
    }
}

impl std::error::Error for FailedCall {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.errno)
    }
}

impl From<FailedCall> for Errno {
    fn from(failed: FailedCall) -> Errno {
        failed.errno
    }
}

impl From<FailedCall> for std::io::Error {
    fn from(failed: FailedCall) -> std::io::Error {
        failed.errno.into()
    }
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, FailedCall>;

/// Makes a call, again where a signal interrupted it.
///
/// # Errors
/// Those of `f`, with the name of the operation.
pub fn call<T>(op: &'static str, mut f: impl FnMut() -> rustix::io::Result<T>) -> Result<T> {
    point(op)
        .and_then(|()| retry_on_intr(&mut f))
        .map_err(|errno| FailedCall { op, errno })
}

/// Point before the call of an operation: with the feature `faults` what tests have armed happens
/// here, in other builds nothing.
///
/// # Errors
/// Those that are armed.
#[inline(always)]
pub fn point(op: &'static str) -> std::result::Result<(), Errno> {
    #[cfg(feature = "faults")]
    return crate::faults::point(op);
    #[cfg(not(feature = "faults"))]
    {
        let _ = op;
        Ok(())
    }
}

/// Closes a file by the bare system call: the C library's `close`, which dropping the file would
/// call, lets the thread be cancelled meanwhile, and to arrange for that takes a tenth of its time.
/// NFS, SMB and FUSE may report only here that written data could not be stored.
///
/// # Errors
/// Errors of `close`, after which the file is closed all the same. After `INTR` it is unknown
/// whether everything written was stored.
#[allow(unsafe_code, reason = "closing a number")]
pub fn close(file: impl Into<OwnedFd>) -> std::result::Result<(), Errno> {
    let number = file.into().into_raw_fd();
    // SAFETY: the number was the file's own, which has no other owner any more.
    match unsafe { libc::syscall(libc::SYS_close, number) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Reports the error that closing the file would report, and leaves it open: a second descriptor of
/// it is closed.
///
/// # Errors
/// Errors of `dup` and `close`.
pub fn flush(file: impl AsFd) -> std::result::Result<(), Errno> {
    retry_on_intr(|| close(rustix::io::fcntl_dupfd_cloexec(&file, 0)?))
}
