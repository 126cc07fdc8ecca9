//! Errors of a copy as a whole, about paths as bytes. Failures of single files are reported as
//! events.

use bc_walk::job::{Error, ErrorKind, path_of};

/// Makes an error about a path.
pub(crate) fn error_at(kind: ErrorKind, path: &[u8], message: impl Into<String>) -> Error {
    Error::at(kind, &path_of(path), message)
}

/// Makes the error of a request that makes no sense with this path.
pub(crate) fn usage_at(path: &[u8], message: impl Into<String>) -> Error {
    error_at(ErrorKind::Usage, path, message)
}

/// Makes the error of an operation on a path that the system refused, and that all of the copy
/// needs.
pub(crate) fn system_error(
    path: &[u8],
    operation: &'static str,
    reason: impl Into<std::io::Error>,
) -> Error {
    let reason = reason.into();
    match reason.raw_os_error() {
        Some(_) => Error::from(bc_walk::Error::new(path, operation, reason)),
        // A refusal of ours, which says why.
        None => error_at(ErrorKind::Refused, path, format!("{operation}: {reason}")),
    }
}
