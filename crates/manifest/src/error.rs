//! The error type of this crate: the problem of a manifest, and its line.

use std::fmt;
use std::io;

/// Reason why a manifest was refused or could not be read.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    line: u64,
    message: String,
    source: Option<io::Error>,
}

/// The class of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing failed.
    Io,
    /// Not a manifest of this format: no valid header line.
    NotAManifest,
    /// The header names a schema that this version does not know.
    FutureSchema,
    /// A line is malformed.
    Malformed,
    /// A path is repeated or not in its place.
    Unsorted,
    /// A path is absolute, or contains `..`, or has empty components.
    UnsafePath,
    /// The last line is missing: the file was cut off.
    Truncated,
    /// The counts or the digest in the trailer contradict the lines before it.
    Altered,
    /// Data after the trailer.
    TrailingData,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, line: u64, message: impl Into<String>) -> Error {
        Error {
            kind,
            line,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn io(line: u64, source: io::Error) -> Error {
        Error {
            kind: ErrorKind::Io,
            line,
            message: String::new(),
            source: Some(source),
        }
    }

    /// Returns the kind of problem.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the line concerned, from 1; 0 if none in particular.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the system's error behind it, for [`ErrorKind::Io`].
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.source {
            Some(source) => write!(f, "{source}"),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
