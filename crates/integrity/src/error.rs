//! Errors that stop a command altogether. Failures of single files never do: they are a class in
//! the report.

use std::fmt;

use crate::Setting;

/// Error that stops a command.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<Vec<u8>>,
    message: String,
    failed: Option<Failed>,
    setting: Option<Setting>,
}

/// Operation that the system refused.
#[derive(Clone, Debug)]
struct Failed {
    operation: String,
    kind: std::io::ErrorKind,
    errno: Option<i32>,
    reason: String,
}

/// Kind of failure of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file other than those of the tree could not be read or written.
    Io,
    /// A manifest is truncated, altered, malformed, of an unknown schema or
    /// algorithm. Some of it can be read all the same with
    /// [`Trust::Forced`](crate::input::Trust::Forced).
    Manifest,
    /// The run would mistake an unmounted disk for a mass deletion.
    Refused,
    /// The request makes no sense.
    Usage,
    /// The run was cancelled.
    Cancelled,
    /// A bug: a worker panicked.
    Panic,
}

impl Error {
    /// Makes an error without a path.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            path: None,
            message: message.into(),
            failed: None,
            setting: None,
        }
    }

    /// Makes an error about `path`.
    pub(crate) fn at(kind: ErrorKind, path: &[u8], message: impl Into<String>) -> Error {
        Error {
            kind,
            path: Some(path.to_vec()),
            message: message.into(),
            failed: None,
            setting: None,
        }
    }

    /// Makes the error of a failed operation on `path`.
    pub(crate) fn io(path: &[u8], operation: &str, error: &std::io::Error) -> Error {
        Error {
            failed: Some(Failed::new(operation, error)),
            ..Error::at(ErrorKind::Io, path, format!("{operation}: {error}"))
        }
    }

    /// Makes the error of a root that cannot be walked.
    pub(crate) fn of_root(error: &bc_walk::Error) -> Error {
        let (operation, reason) = (error.op(), error.message());
        let system = error.errno().map(std::io::Error::from_raw_os_error);
        Error {
            failed: system.map(|system| Failed::new(operation, &system)),
            ..Error::at(
                ErrorKind::Refused,
                error.path(),
                format!("{operation}: {reason}"),
            )
        }
    }

    /// Adds `path` to the error, unless it has one.
    pub(crate) fn about(mut self, path: &[u8]) -> Error {
        self.path.get_or_insert_with(|| path.to_vec());
        self
    }

    /// Makes the error of a failed write of a result, whose path only the caller knows; an error of
    /// this type that a sink returned is kept.
    pub fn output(error: &std::io::Error) -> Error {
        let own = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>());
        if let Some(own) = own {
            return own.clone();
        }
        Error {
            failed: Some(Failed::new("write", error)),
            ..Error::new(ErrorKind::Io, format!("write: {error}"))
        }
    }

    /// Makes the error of a manifest that could not be written, as [`output`](Error::output) does.
    pub fn writing(error: bc_manifest::Error) -> Error {
        match error.io_error() {
            Some(error) => Error::output(error),
            None => Error::new(ErrorKind::Io, format!("write: {error}")),
        }
    }

    /// Adds the setting that avoids this error.
    pub(crate) fn unless(self, setting: Setting) -> Error {
        Error {
            setting: Some(setting),
            ..self
        }
    }

    /// Returns the setting that lets the job proceed in spite of this error, if there is one.
    pub fn setting(&self) -> Option<Setting> {
        self.setting
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the kind of the system's error behind it, if there is one: a broken pipe is no error
    /// for a filter.
    pub fn io_kind(&self) -> Option<std::io::ErrorKind> {
        self.failed.as_ref().map(|failed| failed.kind)
    }

    /// Returns the operation that the system refused, if there is one: `open`, `write`.
    pub fn operation(&self) -> Option<&str> {
        self.failed.as_ref().map(|failed| failed.operation.as_str())
    }

    /// Returns the system's error number behind it, if there is one.
    pub fn errno(&self) -> Option<i32> {
        self.failed.as_ref()?.errno
    }

    /// Returns the message without the path and without the operation.
    pub fn reason(&self) -> &str {
        let reason = self.failed.as_ref().map(|failed| failed.reason.as_str());
        reason.unwrap_or(&self.message)
    }

    /// Returns the path of the file that it is about, as raw bytes.
    pub fn path(&self) -> Option<&[u8]> {
        self.path.as_deref()
    }

    /// Returns the message without the path.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Failed {
    fn new(operation: &str, error: &std::io::Error) -> Failed {
        Failed {
            operation: operation.to_owned(),
            kind: error.kind(),
            errno: error.raw_os_error(),
            reason: error.to_string(),
        }
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

impl From<bc_walk::job::Error> for Error {
    fn from(error: bc_walk::job::Error) -> Error {
        let kind = match error.kind() {
            bc_walk::job::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Usage,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_pool::WorkerPanic> for Error {
    fn from(panic: bc_pool::WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}
