//! Reasons why a cache is not used.

/// Reason why the store is not used.
pub(crate) enum Failure {
    /// Another run holds it.
    Busy,
    /// It cannot be read or written.
    Unusable(String),
    /// Its content is damaged.
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
