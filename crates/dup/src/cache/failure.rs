//! Why a cache is not used.

/// Why the store is not used.
pub(crate) enum Failure {
    /// Another run holds it.
    Busy,
    /// It cannot be read or written.
    Unusable(String),
    /// It is not what was written.
    Damaged(String),
    /// It never was a cache of this user's.
    Foreign(String),
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Failure {
        use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match error {
            redb::Error::DatabaseAlreadyOpen => Failure::Busy,
            redb::Error::Io(error)
                if !matches!(error.kind(), InvalidData | UnexpectedEof | InvalidInput) =>
            {
                Failure::Unusable(error.to_string())
            }
            error => Failure::Damaged(error.to_string()),
        }
    }
}
