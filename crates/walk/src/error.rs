//! Errors that concern one path: the path, the operation, and the system's reason.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use bc_fs::PathError;
use bc_fs::shortage::ErrorNumber;
use rustix::io::Errno;

/// A failure that concerns one path; everything else continues.
///
/// The display form is `path: operation: reason`, with control characters and bytes that are
/// not UTF-8 escaped, fit for a terminal.
#[derive(Clone, Eq, PartialEq)]
pub struct Error {
    path: Vec<u8>,
    op: &'static str,
    kind: ErrorKind,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused, with this error number.
    System(i32),
    /// The file changed while it was used, or is not the one that was listed.
    Changed,
    /// Not a regular file (and not a directory where one would do).
    NotRegular,
    /// Work was cancelled before this path was done.
    Cancelled,
    /// Refused by a rule of ours, named by the message.
    Refused(&'static str),
    /// Lines of a file of patterns that mean nothing, and are left out.
    BadLine(BadLine),
    /// A path above it is no directory.
    Above(PathAbove),
}

/// A path above another one, and why nothing is below it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PathAbove {
    /// Number of bytes that it is of the whole path.
    pub len: usize,
    /// What it is.
    pub what: &'static str,
}

impl PathAbove {
    /// Makes it of the first bytes of a path.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn new(len: usize, what: &'static str) -> PathAbove {
        PathAbove { len, what }
    }
}

/// The first line of a file of patterns that cannot be understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u32,
    /// Number of others after it.
    pub others: u32,
    /// Description of the mistake.
    pub why: &'static str,
}

/// Errors as walks and readers make them. Internal to bit-crafts.
#[doc(hidden)]
impl Error {
    /// Makes the error of a failed system call. `op` names the operation in a word or two: `open`,
    /// `stat`. A reason without an error number of the system's counts as `EIO`.
    pub fn new(path: impl Into<Vec<u8>>, op: &'static str, reason: impl Into<io::Error>) -> Error {
        let errno = reason.into().raw_os_error();
        let errno = errno.unwrap_or(Errno::IO.raw_os_error());
        Error::of_kind(path, op, ErrorKind::System(errno))
    }

    /// Makes an error without an error number; the kind is [`ErrorKind::Refused`].
    pub fn with_message(
        path: impl Into<Vec<u8>>,
        op: &'static str,
        message: &'static str,
    ) -> Error {
        Error::of_kind(path, op, ErrorKind::Refused(message))
    }

    /// Makes an error of the given kind.
    pub fn of_kind(path: impl Into<Vec<u8>>, op: &'static str, kind: ErrorKind) -> Error {
        Error {
            path: path.into(),
            op,
            kind,
        }
    }
}

impl Error {
    /// Returns the path as it would be printed in a listing, raw bytes.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the operation that failed: `open`, `stat`, `read`, `read directory` …
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Returns the system's error number, if a system call failed.
    pub fn errno(&self) -> Option<i32> {
        match self.kind {
            ErrorKind::System(errno) => Some(errno),
            _ => None,
        }
    }

    /// Returns the kind of this failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the reason alone, as `Permission denied (os error 13)`.
    pub fn message(&self) -> String {
        match self.kind {
            ErrorKind::System(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
            ErrorKind::Changed => "changed while reading".to_owned(),
            ErrorKind::NotRegular => "not a regular file".to_owned(),
            ErrorKind::Cancelled => "cancelled".to_owned(),
            ErrorKind::Refused(message) => message.to_owned(),
            ErrorKind::BadLine(BadLine { line, others, why }) => {
                let more = match others {
                    0 => String::new(),
                    1 => "; so is another line".to_owned(),
                    _ => format!("; so are {others} other lines"),
                };
                format!("line {line} is left out: {why}{more}")
            }
            ErrorKind::Above(PathAbove { len, what }) => {
                let above = self.path.get(..len).unwrap_or(&self.path);
                format!("{} {what}", bc_fs::Escaped(above))
            }
        }
    }
}

/// Internal to bit-crafts.
#[doc(hidden)]
impl ErrorNumber for Error {
    fn error_number(&self) -> Option<i32> {
        self.errno()
    }
}

// As of `job::Error`: internal to bit-crafts.
#[doc(hidden)]
impl From<&Error> for PathError {
    fn from(error: &Error) -> PathError {
        let path = OsStr::from_bytes(&error.path);
        PathError::with_reason(path, error.op, error.errno(), error.message())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = bc_fs::Escaped(&self.path);
        write!(f, "{path}: {}: {}", self.op, self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_path_operation_reason() {
        let error = Error::new("a/b", "open", Errno::ACCESS);
        assert_eq!(
            error.to_string(),
            "a/b: open: Permission denied (os error 13)"
        );
        assert_eq!(error.errno(), Some(13));
        assert_eq!(error.kind(), ErrorKind::System(13));
    }

    #[test]
    fn hostile_names_are_escaped() {
        let error = Error::with_message(b"x\x1b[2J\n\xff\\\xc3\xa9", "read", "too odd");
        assert_eq!(error.to_string(), "x\\x1b[2J\\n\\xff\\\\é: read: too odd");
        assert_eq!(error.errno(), None);
        let error = Error::new("gpj.\u{202e}exe", "open", Errno::ACCESS);
        assert!(error.to_string().starts_with("gpj.\\u{202e}exe: open: "));
    }
}
