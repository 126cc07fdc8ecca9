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

/// Point before the call of an operation: with the feature `faults` what tests have [armed](arm)
/// happens here, in other builds nothing.
///
/// # Errors
/// Those that are armed.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn point(_op: &'static str) -> std::result::Result<(), Errno> {
    Ok(())
}

#[cfg(feature = "faults")]
pub use armed::{Hook, arm, point};

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;

    use super::Errno;

    /// Function that is called before each operation, with its name.
    pub type Hook = fn(&'static str) -> Result<(), Errno>;

    static HOOK: OnceLock<Hook> = OnceLock::new();

    /// Calls `hook` before each operation of this process from here on; the first one stays.
    pub fn arm(hook: Hook) {
        HOOK.get_or_init(|| hook);
    }

    /// Point before the call of an operation.
    ///
    /// # Errors
    /// Those of the hook.
    pub fn point(op: &'static str) -> Result<(), Errno> {
        HOOK.get().map_or(Ok(()), |hook| hook(op))
    }
}
