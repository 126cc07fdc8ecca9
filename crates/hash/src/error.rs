//! Reasons why files could not be hashed at all. Failures of single files never are one: they are
//! in the results.

use std::fmt;

use bc_pool::WorkerPanic;

/// Error that prevented hashing at all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No algorithm to hash with.
    NoAlgorithm,
    /// An entry to be hashed is not of the listing.
    ForeignEntry,
    /// A worker panicked: a defect.
    Panic,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
        }
    }

    /// Returns the kind of error.
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
