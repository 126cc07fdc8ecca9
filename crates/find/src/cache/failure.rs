//! Reasons why a cache is not used.

/// Reason why the store is not used.
pub(crate) enum CacheFailure {
    /// Another run holds it.
    Busy,
    /// It cannot be read or written.
    Unusable(String),
    /// Its content is damaged.
    Damaged(String),
    /// It never was a cache of this user's.
    Foreign(String),
}

impl From<redb::Error> for CacheFailure {
    fn from(error: redb::Error) -> CacheFailure {
        use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match error {
            redb::Error::DatabaseAlreadyOpen => CacheFailure::Busy,
            redb::Error::Io(error)
                if !matches!(error.kind(), InvalidData | UnexpectedEof | InvalidInput) =>
            {
                CacheFailure::Unusable(error.to_string())
            }
            error => CacheFailure::Damaged(error.to_string()),
        }
    }
}
