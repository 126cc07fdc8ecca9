//! Errors of jobs and of single paths as exceptions, whose classes are in `bit_crafts/_errors.py`.

use bit_crafts::{Error, ErrorKind, PathError, Setting};
use pyo3::prelude::*;

use crate::items::Item;
use crate::paths::path_object;

const MODULE: &str = "bit_crafts._errors";

/// Makes the exception of a request that makes no sense.
pub(crate) fn usage(py: Python<'_>, message: &str) -> PyErr {
    exception(py, &Error::usage(message), None).unwrap_or_else(|error| error)
}

/// Makes the exception of a job's error; `partial` is its result as far as it came.
pub(crate) fn exception(
    py: Python<'_>,
    error: &Error,
    partial: Option<Bound<'_, PyAny>>,
) -> PyResult<PyErr> {
    let path = error.path().map(|path| path_object(py, path)).transpose()?;
    let made = py.import(MODULE)?.call_method1(
        "of_job",
        (
            kind(error.kind()),
            error.reason(),
            path,
            error.operation(),
            error.raw_os_error(),
            error.setting().and_then(setting),
            partial,
        ),
    )?;
    Ok(PyErr::from_value(made))
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Usage => "usage",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Io => "io",
        ErrorKind::Manifest => "manifest",
        ErrorKind::Busy => "busy",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Incomplete => "incomplete",
        ErrorKind::Panic => "panic",
        _ => "refused",
    }
}

/// Returns the argument of the functions here that is this setting.
fn setting(setting: Setting) -> Option<&'static str> {
    match setting {
        Setting::Force => Some("force"),
        Setting::IgnoreDigest => Some("ignore"),
        Setting::Overwrite => Some("overwrite"),
        Setting::Manifest => Some("manifest"),
        Setting::Exclude => Some("exclude"),
        Setting::AllowLossy => Some("allow_lossy"),
        _ => None,
    }
}

impl Item for PathError {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let path = path_object(py, self.path())?;
        let parts = (path, self.operation(), self.raw_os_error(), self.reason());
        py.import(MODULE)?.call_method1("of_path", parts)
    }
}
