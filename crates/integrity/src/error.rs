//! What stops a command altogether. Trouble with single files never does: it
//! is a class in the report.

use std::fmt;

use crate::setting::Setting;

/// Why the work could not be done.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<Vec<u8>>,
    message: String,
    failed: Option<Failed>,
    setting: Option<Setting>,
}

/// What the system refused.
#[derive(Clone, Debug)]
struct Failed {
    operation: String,
    kind: std::io::ErrorKind,
    errno: Option<i32>,
    reason: String,
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
            failed: None,
            setting: None,
        }
    }

    /// An error about `path`.
    pub(crate) fn at(kind: ErrorKind, path: &[u8], message: impl Into<String>) -> Error {
        Error {
            kind,
            path: Some(path.to_vec()),
            message: message.into(),
            failed: None,
            setting: None,
        }
    }

    /// A failed operation on `path`.
    pub(crate) fn io(path: &[u8], operation: &str, error: &std::io::Error) -> Error {
        Error {
            failed: Some(Failed::new(operation, error)),
            ..Error::at(ErrorKind::Io, path, format!("{operation}: {error}"))
        }
    }

    /// A root that cannot be walked.
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
            failed: Some(Failed::new("write", error)),
            ..Error::new(ErrorKind::Io, format!("write: {error}"))
        }
    }

    /// The same error, against which this setting helps.
    pub(crate) fn unless(self, setting: Setting) -> Error {
        Error {
            setting: Some(setting),
            ..self
        }
    }

    /// The setting with which the job goes on in spite of it, if there is one.
    pub fn setting(&self) -> Option<Setting> {
        self.setting
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The kind of the system's error behind it, if there is one: a broken pipe
    /// is none for a filter.
    pub fn io_kind(&self) -> Option<std::io::ErrorKind> {
        self.failed.as_ref().map(|failed| failed.kind)
    }

    /// The operation that the system refused, if that is what happened: `open`, `write`.
    pub fn operation(&self) -> Option<&str> {
        self.failed.as_ref().map(|failed| failed.operation.as_str())
    }

    /// The system's error number behind it, if there is one.
    pub fn errno(&self) -> Option<i32> {
        self.failed.as_ref()?.errno
    }

    /// The message without the path and without the operation.
    pub fn reason(&self) -> &str {
        let reason = self.failed.as_ref().map(|failed| failed.reason.as_str());
        reason.unwrap_or(&self.message)
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

impl From<bc_hash::Error> for Error {
    fn from(error: bc_hash::Error) -> Error {
        let kind = match error.kind() {
            bc_hash::ErrorKind::Panic => ErrorKind::Panic,
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
