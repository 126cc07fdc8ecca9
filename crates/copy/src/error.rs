//! Errors that prevent a copy as a whole.

use std::fmt;

use bc_integrity::Setting;
use bc_pool::WorkerPanic;

/// Kind of failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense, or would harm existing files.
    Usage,
    /// An existing file would be replaced, or the tree that is there may not be the intended one,
    /// and the caller has not allowed the copy to proceed.
    Refused,
    /// The system refuses a call that the whole copy needs.
    System,
    /// Another run of the same copy is in progress.
    Busy,
    /// A worker panicked: a defect.
    Panic,
}

/// Failure of a copy as a whole. Failures of single files are reported as events.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<Vec<u8>>,
    message: String,
    failed: Option<Box<bc_walk::Error>>,
    setting: Option<Setting>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            path: None,
            message: message.into(),
            failed: None,
            setting: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// About a path.
    pub(crate) fn at(kind: ErrorKind, path: &[u8], message: impl Into<String>) -> Error {
        Error {
            path: Some(path.to_vec()),
            ..Error::new(kind, message)
        }
    }

    /// About a path, with which this makes no sense.
    pub(crate) fn usage_at(path: &[u8], message: impl Into<String>) -> Error {
        Error::at(ErrorKind::Usage, path, message)
    }

    /// About a path, an operation on it and the system's reason.
    pub(crate) fn system(
        path: &[u8],
        operation: &'static str,
        reason: impl Into<std::io::Error>,
    ) -> Error {
        Error::of_failure(bc_walk::Error::new(path, operation, reason))
    }

    /// A failure of a single path that all of the copy needs.
    pub(crate) fn of_failure(failed: bc_walk::Error) -> Error {
        let message = format!("{}: {}", failed.op(), failed.message());
        Error {
            failed: Some(Box::new(failed.clone())),
            ..Error::at(ErrorKind::System, failed.path(), message)
        }
    }

    /// Adds the setting that avoids this error.
    pub(crate) fn unless(self, setting: Setting) -> Error {
        Error {
            setting: Some(setting),
            ..self
        }
    }

    /// Returns the setting that lets the copy proceed in spite of this error, if there is one.
    pub fn setting(&self) -> Option<Setting> {
        self.setting
    }

    /// Returns the path, the operation and the system's reason, if the error is about a path.
    pub fn failure(&self) -> Option<&bc_walk::Error> {
        self.failed.as_deref()
    }

    /// Returns the path that the error is about, if there is one, as raw bytes.
    pub fn path(&self) -> Option<&[u8]> {
        self.path.as_deref()
    }

    /// Returns the message without the path.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", bc_fs::Escaped(path))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<WorkerPanic> for Error {
    fn from(panic: WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}
