//! Why a copy as a whole could not be done.

use std::fmt;

use bc_pool::WorkerPanic;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What is asked for makes no sense, or would harm what is there.
    Usage,
    /// The system refuses what all of it needs.
    System,
    /// Another run of the same copy is at work.
    Busy,
    /// A worker panicked: a defect.
    Panic,
}

/// Why a copy as a whole could not be done. What fails of single files is told as events.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    failed: Option<bc_walk::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
            failed: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// About a path, an operation on it and the system's reason.
    pub(crate) fn system(
        path: &[u8],
        operation: &'static str,
        reason: impl Into<std::io::Error>,
    ) -> Error {
        let failed = bc_walk::Error::new(path, operation, reason);
        Error {
            kind: ErrorKind::System,
            message: failed.to_string(),
            failed: Some(failed),
        }
    }

    /// The path, the operation and the system's reason, where it is about one.
    pub fn failure(&self) -> Option<&bc_walk::Error> {
        self.failed.as_ref()
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<WorkerPanic> for Error {
    fn from(panic: WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}
