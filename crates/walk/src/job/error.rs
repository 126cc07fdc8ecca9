//! Errors of a job as a whole, and of single paths.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bc_fs::PathError;

use super::path_of;

/// Failure of a job as a whole, or a result that is not whole. A failure of a single file is not
/// one: it is a [`PathError`] in the result.
///
/// The display form is `path: operation: reason`, as far as there are a path and an operation, with
/// control characters and bytes that are not UTF-8 escaped, fit for a terminal.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    path: Option<PathBuf>,
    message: String,
    operation: Option<String>,
    /// The system's error, for callers that look for one among the causes.
    system: Option<Arc<AssertUnwindSafe<io::Error>>>,
    first: Option<Box<PathError>>,
    partial: Option<Arc<dyn Partial>>,
    setting: Option<Setting>,
}

/// Partial result of a job that was cancelled; like any error it may cross threads and panics.
pub trait Partial: Any + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Returns the result as a value whose type is found out when it is asked for.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + Send + Sync + UnwindSafe + RefUnwindSafe> Partial for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Kind of failure of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense.
    Usage,
    /// A path that was named does not exist.
    NotFound,
    /// The system refuses something that the whole job needs.
    Io,
    /// A file is not a manifest or checksum file, or is cut short, altered, or of an unknown kind.
    Manifest,
    /// Going on could do harm, or would give a wrong answer: an unmounted disk, a copy into itself, a
    /// file that would be replaced.
    Refused,
    /// Another run of the same job is at work.
    Busy,
    /// It was cancelled before all was done: see [`Error::partial`].
    Cancelled,
    /// A result lacks something: see the result's `complete`.
    Incomplete,
    /// A worker panicked: a defect.
    Panic,
}

/// A setting that helps where a job was refused. Messages describe the problem in words that hold
/// for every program; this is the remedy, which each program names in its own way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Setting that leaves out the check that the tree is the recorded one, or that a disk is
    /// mounted: `root_check`, and `force` of a search for what is unique.
    Force,
    /// Setting that leaves digests out of the comparison, which compares everything else then:
    /// the `ignore` of its rules.
    IgnoreDigest,
    /// Setting that replaces the existing file with the name of the output: `overwrite`, and
    /// `replace_manifest` of a copy.
    Overwrite,
    /// Setting that writes the manifest to another place: `manifest` of a copy.
    Manifest,
    /// Setting that leaves out a path below a source by a pattern: `exclude` of its walk.
    Exclude,
    /// Setting that has sources go though their copies lack metadata: `allow_lossy` of a move.
    AllowLossy,
    /// Setting that takes over the parity of a tree or manifest that was renamed: `adopt`.
    Adopt,
}

/// Errors as engines make them. Internal to bit-crafts.
#[doc(hidden)]
impl Error {
    /// Makes an error without a path.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            path: None,
            message: message.into(),
            operation: None,
            system: None,
            first: None,
            partial: None,
            setting: None,
        }
    }

    /// Makes the error of a request that makes no sense.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// Makes an error about a path; of the kind [`Usage`](ErrorKind::Usage), whatever failed first,
    /// if that has a NUL byte, as no file's can.
    pub fn at(kind: ErrorKind, path: &Path, message: impl Into<String>) -> Error {
        let error = match path.as_os_str().as_bytes().contains(&0) {
            true => Error::usage("has a NUL byte, as no path can"),
            false => Error::new(kind, message),
        };
        Error {
            path: Some(path.to_owned()),
            ..error
        }
    }

    /// Returns the error of an operation on a path that the system refused.
    pub fn io(path: &Path, operation: &str, error: &io::Error) -> Error {
        let message = format!("{operation}: {error}");
        Error::at(ErrorKind::Io, path, message).of_system(operation, error.raw_os_error())
    }

    /// Adds the operation that the system refused, and its error number if it has one. `ENOENT`
    /// makes it an error of the kind [`NotFound`](ErrorKind::NotFound).
    #[must_use]
    pub fn of_system(mut self, operation: &str, errno: Option<i32>) -> Error {
        self.operation = Some(operation.to_owned());
        let system = errno.map(io::Error::from_raw_os_error);
        self.system = system.map(|error| Arc::new(AssertUnwindSafe(error)));
        if errno.map(kind_of) == Some(io::ErrorKind::NotFound) {
            self.kind = ErrorKind::NotFound;
        }
        self
    }

    /// Sets the setting of the job that avoids this error, if one does.
    #[must_use]
    pub fn unless(self, setting: Option<Setting>) -> Error {
        Error { setting, ..self }
    }

    /// Replaces the kind of the error.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }

    /// Returns the error of a cancelled job whose partial result would be of no use.
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "cancelled before all was done")
    }

    /// Returns the error of a cancelled job, with its partial result.
    pub(crate) fn cancelled_with(partial: impl Partial) -> Error {
        Error {
            partial: Some(Arc::new(partial)),
            ..Error::cancelled()
        }
    }

    /// Returns the error of a result that lacks something; `first` is the first thing missing.
    pub fn incomplete(message: String, first: Option<PathError>) -> Error {
        Error {
            first: first.map(Box::new),
            ..Error::new(ErrorKind::Incomplete, message)
        }
    }
}

impl Error {
    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the path that it is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        let of_first = || self.first.as_ref().map(|first| first.path());
        self.path.as_deref().or_else(of_first)
    }

    /// Returns the operation that failed, if one did: `open`, `stat`, `write` …
    pub fn operation(&self) -> Option<&str> {
        let of_first = || self.first.as_ref().map(|first| first.operation());
        self.operation.as_deref().or_else(of_first)
    }

    /// Returns the system's error number, if the system refused.
    /// [`std::io::Error::from_raw_os_error`] makes an error of it.
    pub fn raw_os_error(&self) -> Option<i32> {
        let of_first = || self.first.as_ref().and_then(|first| first.raw_os_error());
        let system = self.system.as_ref();
        let own = system.and_then(|error| error.raw_os_error());
        own.or_else(of_first)
    }

    /// Returns the system's error number as the standard library's kind, if there is a number.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.raw_os_error().map(kind_of)
    }

    /// Returns the setting with which the job proceeds in spite of this error, if there is one.
    /// [`Setting`] says for each which option of which job that is.
    pub fn setting(&self) -> Option<Setting> {
        self.setting
    }

    /// Returns the message without the path.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the message without the path and without the operation.
    pub fn reason(&self) -> &str {
        let operation = self.operation.as_deref();
        let reason = operation.and_then(|operation| self.message.strip_prefix(operation));
        let reason = reason.and_then(|reason| reason.strip_prefix(": "));
        reason.unwrap_or(&self.message)
    }

    /// Returns the partial result of a job that was [cancelled](ErrorKind::Cancelled): of the type
    /// that its `run` returns, as far as the job came. Searches whose partial result would answer
    /// nothing, and manifests, have none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use bc_walk::job::{ErrorKind, Means};
    /// use bc_walk::{Listing, WalkOptions};
    ///
    /// let cancel = bc_pool::Cancel::new();
    /// cancel.stop();
    /// let means = Means::new().cancel(&cancel);
    /// let error = WalkOptions::default().run([dir.path()], &means).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// let until_then: &Listing = error.partial().unwrap();
    /// assert!(until_then.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partial<T: Any>(&self) -> Option<&T> {
        // The type inside the `Arc` is compared, not the `Arc` itself.
        Partial::as_any(&**self.partial.as_ref()?).downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", bc_fs::Escaped(path.as_os_str().as_bytes()))?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.kind)
    }
}

/// Its source is the first path that a result lacks, or else the system's error.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match (&self.first, &self.system) {
            (Some(first), _) => Some(&**first),
            (None, Some(system)) => Some(&system.0),
            (None, None) => None,
        }
    }
}

/// The error is the inner one of the other, for callers whose functions return those.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = error.io_kind().unwrap_or(match error.kind {
            ErrorKind::Usage => io::ErrorKind::InvalidInput,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Manifest => io::ErrorKind::InvalidData,
            // A cancelled job is no `Interrupted` one, which callers try again.
            _ => io::ErrorKind::Other,
        });
        io::Error::new(kind, error)
    }
}

fn kind_of(errno: i32) -> io::ErrorKind {
    io::Error::from_raw_os_error(errno).kind()
}

// The engines convert by `?`; callers of the front page never meet these types: it is internal to bit-crafts.
#[doc(hidden)]
impl From<bc_pool::WorkerPanic> for Error {
    fn from(panic: bc_pool::WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Error {
        let message = format!("{}: {}", error.operation(), error.reason());
        let kind = match error.raw_os_error() {
            Some(_) => ErrorKind::Io,
            None => ErrorKind::Refused,
        };
        Error::at(kind, error.path(), message).of_system(error.operation(), error.raw_os_error())
    }
}

// Internal to bit-crafts.
#[doc(hidden)]
impl From<&crate::Error> for Error {
    fn from(error: &crate::Error) -> Error {
        let message = format!("{}: {}", error.op(), error.message());
        let found = Error::at(ErrorKind::Io, &path_of(error.path()), message);
        found.of_system(error.op(), error.errno())
    }
}

// Internal to bit-crafts.
#[doc(hidden)]
impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Error {
        Error::from(&error)
    }
}

impl From<crate::GlobError> for Error {
    fn from(error: crate::GlobError) -> Error {
        Error::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_message_without_the_operation() {
        let refused = io::Error::from_raw_os_error(13);
        let error = Error::io(Path::new("a"), "open", &refused);
        assert_eq!(error.reason(), "Permission denied (os error 13)");
        assert_eq!(error.message(), "open: Permission denied (os error 13)");
        assert_eq!(Error::usage("open: what?").reason(), "open: what?");
    }

    #[test]
    fn the_systems_error_is_among_the_causes() {
        let refused = Error::io(Path::new("a"), "open", &io::Error::from_raw_os_error(13));
        let cause = std::error::Error::source(&refused).unwrap();
        let cause: &io::Error = cause.downcast_ref().unwrap();
        assert_eq!(cause.raw_os_error(), Some(13));
        assert!(std::error::Error::source(&Error::usage("no")).is_none());
    }

    #[test]
    fn an_error_of_io_has_a_kind_and_the_error_inside() {
        let kind = |error| io::Error::from(error).kind();
        let refused = Error::io(Path::new("a"), "open", &io::Error::from_raw_os_error(13));
        assert_eq!(kind(refused.clone()), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(Error::usage("no")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Error::cancelled()), io::ErrorKind::Other);
        let text = refused.to_string();
        let outer = io::Error::from(refused);
        let inner = outer
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>());
        assert_eq!(inner.unwrap().raw_os_error(), Some(13));
        assert_eq!(outer.to_string(), text);
    }

    #[test]
    fn a_path_that_none_can_have_is_the_callers_mistake() {
        let path = Path::new("a\0b");
        let error = std::fs::metadata(path).unwrap_err();
        let error = Error::io(path, "stat", &error);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.to_string(), "a\\x00b: has a NUL byte, as no path can");
        // Whichever call is the first to refuse it.
        let error = Error::io(path, "open", &io::Error::from_raw_os_error(22));
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}
