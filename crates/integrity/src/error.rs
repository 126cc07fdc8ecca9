//! Errors of the jobs that have more than one user here. Failures of single files are none: they
//! are a class in the report.

use std::io;

use bc_fs::PathError;
use bc_walk::job::{Error, ErrorKind};

/// Makes the error of a failed write of a result, whose path only the caller knows: one that names
/// it, and an error of a job that a sink returned, are kept.
pub fn write_failed(error: &io::Error) -> Error {
    let inner = error.get_ref();
    if let Some(own) = inner.and_then(|inner| inner.downcast_ref::<Error>()) {
        return own.clone();
    }
    match inner.and_then(|inner| inner.downcast_ref::<PathError>()) {
        Some(named) => Error::from(named.clone()).of_kind(ErrorKind::Io),
        None => Error::new(ErrorKind::Io, format!("write: {error}"))
            .of_system("write", system_number(error)),
    }
}

/// Returns the system's number of an error, which may be wrapped, as by the name of an output.
fn system_number(error: &io::Error) -> Option<i32> {
    let inner = error.get_ref().map(|inner| inner as &dyn std::error::Error);
    let mut causes = std::iter::successors(inner, |error| error.source());
    let of_cause = || causes.find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    error.raw_os_error().or_else(of_cause)
}

/// Makes the error of a manifest that could not be written, as [`write_failed`] does.
pub fn manifest_write_failed(error: bc_manifest::Error) -> Error {
    match error.io_error() {
        Some(error) => write_failed(error),
        None => Error::new(ErrorKind::Io, format!("write: {error}")),
    }
}
