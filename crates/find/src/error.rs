//! Reasons why a search could not be made at all. Failures with single files are never among them:
//! they are in the results.

use std::fmt;

use bc_pool::WorkerPanic;
use bc_walk::{Listing, Metadata};

/// Reason why a search could not be made at all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The listing has no metadata of its files, so that nothing could be found in it.
    NoMetadata,
    /// The algorithm is not one that this search can use.
    Algorithm,
    /// The listing is not the one that was searched.
    ForeignListing,
    /// A manifest cannot be believed.
    Manifest,
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

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Refuses a listing of files of which nothing is known: it would be searched in vain.
pub(crate) fn require_metadata(listing: &Listing) -> Result<(), Error> {
    if listing.is_empty() || listing.file_metadata() >= Metadata::Basic {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NoMetadata,
        "the listing has no metadata of its files: walk with Metadata::Basic",
    ))
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

impl From<bc_hash::Error> for Error {
    fn from(error: bc_hash::Error) -> Error {
        let kind = match error.kind() {
            bc_hash::ErrorKind::Panic => ErrorKind::Panic,
            bc_hash::ErrorKind::ForeignEntry => ErrorKind::ForeignListing,
            _ => ErrorKind::Algorithm,
        };
        Error::new(kind, error.to_string())
    }
}
