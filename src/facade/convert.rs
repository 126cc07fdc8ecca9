//! Conversions from the engines' errors: none of them loses its path, its operation or its number.

use super::error::{Error, ErrorKind, path_of};

impl From<bc_pool::WorkerPanic> for Error {
    fn from(panic: bc_pool::WorkerPanic) -> Error {
        Error::new(ErrorKind::Panic, panic.to_string())
    }
}

impl From<bc_hash::Error> for Error {
    fn from(error: bc_hash::Error) -> Error {
        let kind = match error.kind() {
            bc_hash::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Usage,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_find::Error> for Error {
    fn from(error: bc_find::Error) -> Error {
        let kind = match error.kind() {
            bc_find::ErrorKind::Panic => ErrorKind::Panic,
            bc_find::ErrorKind::Manifest => ErrorKind::Manifest,
            _ => ErrorKind::Usage,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<bc_find::manifests::ManifestError> for Error {
    fn from(error: bc_find::manifests::ManifestError) -> Error {
        let path = path_of(error.path());
        let found = Error::at(ErrorKind::Manifest, &path, error.message());
        match error.system() {
            Some((operation, errno)) => found.of_system(operation, Some(errno)),
            None => found,
        }
    }
}

impl From<bc_find::manifests::Unanswered> for Error {
    fn from(error: bc_find::manifests::Unanswered) -> Error {
        use bc_find::manifests::Unanswered;
        match error {
            Unanswered::Manifest(error) => error.into(),
            Unanswered::Panic(panic) => panic.into(),
            other => bc_find::Error::from(other).into(),
        }
    }
}

impl From<bc_find::CacheRefused> for Error {
    fn from(error: bc_find::CacheRefused) -> Error {
        Error::at(ErrorKind::Refused, error.path(), error.reason())
    }
}

impl From<bc_fs::PathError> for Error {
    fn from(error: bc_fs::PathError) -> Error {
        let message = format!("{}: {}", error.operation(), error.reason());
        let kind = match error.raw_os_error() {
            Some(_) => ErrorKind::Io,
            None => ErrorKind::Refused,
        };
        Error::at(kind, error.path(), message).of_system(error.operation(), error.raw_os_error())
    }
}

impl From<bc_integrity::Error> for Error {
    fn from(error: bc_integrity::Error) -> Error {
        let kind = match error.kind() {
            bc_integrity::ErrorKind::Manifest => ErrorKind::Manifest,
            bc_integrity::ErrorKind::Refused => ErrorKind::Refused,
            bc_integrity::ErrorKind::Usage => ErrorKind::Usage,
            bc_integrity::ErrorKind::Cancelled => ErrorKind::Cancelled,
            bc_integrity::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Io,
        };
        let found = match error.path() {
            Some(path) => Error::at(kind, &path_of(path), error.message()),
            None => Error::new(kind, error.message()),
        };
        let found = found.unless(error.setting());
        match error.operation() {
            Some(operation) => found.of_system(operation, error.errno()),
            None => found,
        }
    }
}

impl From<bc_copy::Error> for Error {
    fn from(error: bc_copy::Error) -> Error {
        let kind = match error.kind() {
            bc_copy::ErrorKind::Usage => ErrorKind::Usage,
            bc_copy::ErrorKind::Refused => ErrorKind::Refused,
            bc_copy::ErrorKind::Busy => ErrorKind::Busy,
            bc_copy::ErrorKind::Panic => ErrorKind::Panic,
            _ => ErrorKind::Io,
        };
        if let Some(failure) = error.failure() {
            let found = Error::from(failure);
            return match found.kind() {
                ErrorKind::NotFound => found,
                _ => found.of_kind(kind),
            };
        }
        let found = match error.path() {
            Some(path) => Error::at(kind, &path_of(path), error.message()),
            None => Error::new(kind, error.message()),
        };
        found.unless(error.setting())
    }
}

impl From<bc_copy::RestoreError> for Error {
    fn from(error: bc_copy::RestoreError) -> Error {
        match error {
            bc_copy::RestoreError::Verify(error) => error.into(),
            bc_copy::RestoreError::Restore(error) => error.into(),
        }
    }
}

impl From<&bc_walk::Error> for Error {
    fn from(error: &bc_walk::Error) -> Error {
        let message = format!("{}: {}", error.op(), error.message());
        let found = Error::at(ErrorKind::Io, &path_of(error.path()), message);
        found.of_system(error.op(), error.errno())
    }
}

impl From<bc_walk::Error> for Error {
    fn from(error: bc_walk::Error) -> Error {
        Error::from(&error)
    }
}
