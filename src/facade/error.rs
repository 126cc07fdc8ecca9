//! What goes wrong: with a job as a whole, and with single paths.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a job could not be done, or not wholly. Trouble with single files is no such reason: it is a
/// [`PathError`] in the result.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    path: Option<PathBuf>,
    message: String,
    first: Option<Box<PathError>>,
}

/// What sort of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense.
    Usage,
    /// The system refuses what all of the job needs.
    Io,
    /// A manifest or checksum file is none, is cut short, altered, or of an unknown sort.
    Manifest,
    /// Going on could do harm, or would give a wrong answer: an unmounted disk, a copy into itself.
    Refused,
    /// Another run of the same job is at work.
    Busy,
    /// It was cancelled.
    Cancelled,
    /// A result lacks something: see the result's `complete`.
    Incomplete,
    /// A worker panicked: a defect.
    Panic,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            path: None,
            message: message.into(),
            first: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    pub(crate) fn at(kind: ErrorKind, path: &Path, message: impl Into<String>) -> Error {
        Error {
            path: Some(path.to_owned()),
            ..Error::new(kind, message)
        }
    }

    /// An operation on a path that the system refused.
    pub(crate) fn io(path: &Path, operation: &str, error: &io::Error) -> Error {
        let message = format!("{operation}: {error}");
        Error::at(ErrorKind::Io, path, message)
    }

    /// Something is missing, and this is the first of what is.
    pub(crate) fn incomplete(message: String, first: Option<PathError>) -> Error {
        Error {
            first: first.map(Box::new),
            ..Error::new(ErrorKind::Incomplete, message)
        }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The path that it is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The message without the path.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", bc_fs::Escaped(path.as_os_str().as_bytes()))?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let first = self.first.as_deref();
        first.map(|first| first as &(dyn std::error::Error + 'static))
    }
}

impl From<bc_pool::WorkerPanic> for Error {
    fn from(panic: bc_pool::WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}

impl From<bc_hash::Error> for Error {
    fn from(error: bc_hash::Error) -> Error {
        let kind = match error.kind() {
            bc_hash::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Usage,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_dup::Error> for Error {
    fn from(error: bc_dup::Error) -> Error {
        let kind = match error.kind() {
            bc_dup::ErrorKind::Panic => ErrorKind::Panic,
            bc_dup::ErrorKind::Manifest => ErrorKind::Manifest,
            _ => ErrorKind::Usage,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_integrity::Error> for Error {
    fn from(error: bc_integrity::Error) -> Error {
        let kind = match error.kind() {
            bc_integrity::ErrorKind::Manifest => ErrorKind::Manifest,
            bc_integrity::ErrorKind::Refused => ErrorKind::Refused,
            bc_integrity::ErrorKind::Usage => ErrorKind::Usage,
            bc_integrity::ErrorKind::Cancelled => ErrorKind::Cancelled,
            bc_integrity::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Io,
        };
        Error {
            path: error.path().map(path_of),
            ..Error::new(kind, error.message())
        }
    }
}

impl From<bc_copy::Error> for Error {
    fn from(error: bc_copy::Error) -> Error {
        let kind = match error.kind() {
            bc_copy::ErrorKind::Usage => ErrorKind::Usage,
            bc_copy::ErrorKind::Busy => ErrorKind::Busy,
            bc_copy::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_walk::Error> for Error {
    fn from(error: bc_walk::Error) -> Error {
        let message = format!("{}: {}", error.op(), error.message());
        Error::at(ErrorKind::Io, &path_of(error.path()), message)
    }
}

/// A path that could not be looked at, with the operation and the reason. Everything else goes on.
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
    /// The failure that a manifest tells of a path.
    pub(crate) fn of_failure(path: PathBuf, failure: &bc_manifest::Failure) -> PathError {
        PathError {
            path,
            operation: failure.op.clone(),
            errno: failure.errno,
            reason: failure.message.clone(),
        }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The operation that failed: `open`, `stat`, `read`, `read directory` …
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The system's error number, if the system is what refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.errno
    }
}

impl From<&bc_walk::Error> for PathError {
    fn from(error: &bc_walk::Error) -> PathError {
        PathError {
            path: path_of(error.path()),
            operation: error.op().to_owned(),
            errno: error.errno(),
            reason: error.message(),
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = bc_fs::Escaped(self.path.as_os_str().as_bytes());
        write!(f, "{path}: {}: {}", self.operation, self.reason)
    }
}

impl std::error::Error for PathError {}

/// The path that these bytes are.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
