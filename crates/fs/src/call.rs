//! System calls that report which of them failed, each one a place where tests make things go wrong.

use std::fmt;

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

impl std::error::Error for FailedCall {}

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
