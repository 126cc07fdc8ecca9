//! A failure that concerns one path, as users and programs are told of it: the path, the operation
//! and the reason.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::Escaped;

/// A path where an operation failed, with the reason. The job continues with the others.
///
/// The display form is `path: operation: reason`, with control characters and bytes that are not
/// UTF-8 escaped, fit for a terminal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathError {
    path: PathBuf,
    operation: String,
    errno: Option<i32>,
    reason: String,
}

impl PathError {
    /// Makes the error of an operation that failed, named in a word or two: `open`, `stat`.
    pub fn new(
        path: impl Into<PathBuf>,
        operation: impl Into<String>,
        error: impl Into<io::Error>,
    ) -> PathError {
        let error = error.into();
        let errno = error.raw_os_error();
        PathError::with_reason(path, operation, errno, error.to_string())
    }

    /// Makes an error of its parts. There is no number where a rule of ours was broken.
    pub fn with_reason(
        path: impl Into<PathBuf>,
        operation: impl Into<String>,
        errno: Option<i32>,
        reason: impl Into<String>,
    ) -> PathError {
        PathError {
            path: path.into(),
            operation: operation.into(),
            errno,
            reason: reason.into(),
        }
    }

    /// Returns the error with another path, as the same one is called elsewhere.
    #[must_use]
    pub fn with_path(self, path: impl Into<PathBuf>) -> PathError {
        let path = path.into();
        PathError { path, ..self }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the operation that failed: `open`, `stat`, `read`, `read directory` …
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the system's error number, if the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.errno
    }

    /// Returns the error number as the standard library's kind: `AlreadyExists` for a copy to a
    /// name that is taken, `PermissionDenied`, `NotFound`, `StorageFull` …
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let kind = |errno| io::Error::from_raw_os_error(errno).kind();
        self.errno.map(kind)
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = Escaped(self.path.as_os_str().as_encoded_bytes());
        write!(f, "{path}: {}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for PathError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_path_operation_and_reason() {
        let error = PathError::new("a\nb", "open", io::Error::from_raw_os_error(13));
        assert_eq!(
            error.to_string(),
            "a\\nb: open: Permission denied (os error 13)"
        );
        assert_eq!(error.raw_os_error(), Some(13));
        assert_eq!(error.io_kind(), Some(io::ErrorKind::PermissionDenied));
        let refused = PathError::with_reason("a", "lock", None, "another run is at work");
        assert_eq!(refused.to_string(), "a: lock: another run is at work");
        assert_eq!((refused.raw_os_error(), refused.io_kind()), (None, None));
    }
}
