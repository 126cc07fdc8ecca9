//! What results say of themselves: whether anything is missing.

use super::error::{Error, PathError};

/// Why a result is not whole, if it is not.
pub(crate) fn missing(errors: &[PathError], cancelled: bool) -> Option<Error> {
    let first = errors.first().cloned();
    let message = match (&first, errors.len()) {
        (None, _) if cancelled => "cancelled before all was done".to_owned(),
        (None, _) => return None,
        (Some(first), 1) => format!("not all could be looked at: {first}"),
        (Some(first), count) => {
            format!(
                "not all could be looked at: {first}, and {} more",
                count - 1
            )
        }
    };
    Some(Error::incomplete(message, first))
}

/// Gives a result with `errors` and `cancelled` the methods that tell whether it is whole.
macro_rules! says_what_is_missing {
    ($result:ident) => {
        impl $result {
            /// Whether nothing is missing: all could be read, and the job was not cancelled.
            pub fn is_complete(&self) -> bool {
                self.errors.is_empty() && !self.cancelled
            }

            /// The result, if nothing is missing.
            ///
            /// # Errors
            /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the first of what
            /// is missing.
            pub fn complete(self) -> Result<Self, crate::facade::error::Error> {
                match crate::facade::outcome::missing(&self.errors, self.cancelled) {
                    None => Ok(self),
                    Some(error) => Err(error),
                }
            }
        }
    };
}

pub(crate) use says_what_is_missing;
