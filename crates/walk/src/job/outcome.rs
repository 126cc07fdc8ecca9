//! Methods of results that say if anything is missing.

use bc_fs::PathError;

use super::error::{Error, Partial};

/// Returns the result of a job, unless that was cancelled: then it returns an error that contains
/// the result, so that no caller takes half of it for the whole by accident.
///
/// # Errors
/// If it was cancelled.
pub fn unless_cancelled<T: Partial>(result: T, cancelled: bool) -> Result<T, Error> {
    match cancelled {
        false => Ok(result),
        true => Err(Error::cancelled_with(result)),
    }
}

/// Returns an error that says why a result is not whole, if it is not.
pub fn missing(errors: &[PathError], cancelled: bool) -> Option<Error> {
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

/// Gives a result with `errors` the methods that say if it is whole. A field that makes it
/// incomplete besides them is named after it: `cancelled`, where such a result comes out of an
/// error.
#[doc(hidden)]
#[macro_export]
macro_rules! says_what_is_missing {
    ($result:ident $(, $cancelled:ident)?) => {
        impl $result {
            /// Returns true if nothing is missing: everything could be read.
            pub fn is_complete(&self) -> bool {
                self.errors.is_empty() $(&& !self.$cancelled)?
            }

            /// Returns the result if nothing is missing.
            ///
            /// # Errors
            /// Of the kind [`Incomplete`](bc_walk::job::ErrorKind::Incomplete), with the first thing
            /// that is missing.
            pub fn complete(self) -> Result<Self, $crate::job::Error> {
                let cancelled = [false $(, self.$cancelled)?].contains(&true);
                match $crate::job::missing(&self.errors, cancelled) {
                    None => Ok(self),
                    Some(error) => Err(error),
                }
            }
        }
    };
}
