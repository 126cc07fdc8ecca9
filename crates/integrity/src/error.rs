//! What stops a command altogether. Trouble with single files never does: it
//! is a class in the report.

use std::fmt;

/// Why the work could not be done.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<Vec<u8>>,
    message: String,
    io: Option<std::io::ErrorKind>,
}

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file other than those of the tree could not be read or written.
    Io,
    /// A manifest is truncated, altered, malformed, of an unknown schema or
    /// algorithm. Some of it can be read all the same with
    /// [`Trust::Forced`](crate::input::Trust::Forced).
    Manifest,
    /// Going on would mistake an unmounted disk for a mass deletion.
    Refused,
    /// What was asked for makes no sense.
    Usage,
    /// The run was cancelled.
    Cancelled,
    /// A bug: a worker panicked.
    Panic,
}

impl Error {
    /// An error without a path.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            path: None,
            message: message.into(),
            io: None,
        }
    }

    /// An error about `path`.
    pub(crate) fn at(kind: ErrorKind, path: &[u8], message: impl Into<String>) -> Error {
        Error {
            kind,
            path: Some(path.to_vec()),
            message: message.into(),
            io: None,
        }
    }

    /// A failed operation on `path`.
    pub(crate) fn io(path: &[u8], operation: &str, error: &std::io::Error) -> Error {
        Error {
            io: Some(error.kind()),
            ..Error::at(ErrorKind::Io, path, format!("{operation}: {error}"))
        }
    }

    /// The same about `path`, if it is not about another.
    pub(crate) fn about(mut self, path: &[u8]) -> Error {
        self.path.get_or_insert_with(|| path.to_vec());
        self
    }

    /// A failed write of a result, whose path only the caller knows; or what else a sink gave up
    /// for, if it says so by an error of this type.
    pub(crate) fn output(error: &std::io::Error) -> Error {
        let own = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>());
        if let Some(own) = own {
            return own.clone();
        }
        Error {
            io: Some(error.kind()),
            ..Error::new(ErrorKind::Io, format!("write: {error}"))
        }
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The kind of the system's error behind it, if there is one: a broken pipe
    /// is none for a filter.
    pub fn io_kind(&self) -> Option<std::io::ErrorKind> {
        self.io
    }

    /// The file it is about, as raw bytes.
    pub fn path(&self) -> Option<&[u8]> {
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
            write!(f, "{}: ", bc_fs::escape(path))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<bc_pool::WorkerPanic> for Error {
    fn from(panic: bc_pool::WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}
