//! Paths between Python and here: `str`, `bytes` and `os.PathLike` come in, `str` goes out, and no
//! byte is lost either way.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

/// A path as an argument.
pub(crate) struct PathArg(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for PathArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<PathArg> {
        if let Some(path) = plain(&object)? {
            return Ok(PathArg(path));
        }
        // It says what it wants, if this is none.
        let path = object
            .py()
            .import("os")?
            .call_method1("fspath", (object,))?;
        match plain(&path)? {
            Some(path) => Ok(PathArg(path)),
            None => Err(PyTypeError::new_err("__fspath__ returned no path")),
        }
    }
}

/// Returns the path that a `str` or `bytes` is.
fn plain(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(OsString::from_vec(bytes.as_bytes().to_vec()).into()));
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Some(object.extract::<OsString>()?.into()));
    }
    Ok(None)
}

/// One path, or any number of them, as an argument.
#[derive(Default)]
pub(crate) struct PathsArg(pub(crate) Vec<PathBuf>);

impl<'py> FromPyObject<'_, 'py> for PathsArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<PathsArg> {
        let is_one = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.hasattr("__fspath__")?;
        if is_one {
            return Ok(PathsArg(vec![object.extract::<PathArg>()?.0]));
        }
        let Ok(paths) = object.try_iter() else {
            let class = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "expected str, bytes, os.PathLike or an iterable of these, not {class}"
            )));
        };
        let paths = paths.map(|path| Ok(path?.extract::<PathArg>()?.0));
        paths.collect::<PyResult<_>>().map(PathsArg)
    }
}

/// Returns the path as a `str`, from which `os.fsencode` makes the same bytes again.
pub(crate) fn path_object<'py>(
    py: Python<'py>,
    path: impl AsRef<Path>,
) -> PyResult<Bound<'py, PyAny>> {
    bytes_object(py, path.as_ref().as_os_str().as_bytes())
}

/// Returns the path of these bytes as a `str`.
pub(crate) fn bytes_object<'py>(py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if is_utf8(py)? {
        return Ok(OsStr::from_bytes(path).into_pyobject(py)?.into_any());
    }
    // What is UTF-8 all the same would not be encoded by this interpreter as it was decoded here.
    py.import("os")?.call_method1("fsdecode", (path,))
}

/// Returns true if the interpreter has names of files in UTF-8; an ASCII locale is the exception.
fn is_utf8(py: Python<'_>) -> PyResult<bool> {
    static IS_UTF8: PyOnceLock<bool> = PyOnceLock::new();
    let ask = || {
        let name = py.import("sys")?.call_method0("getfilesystemencoding")?;
        Ok::<_, PyErr>(name.extract::<String>()? == "utf-8")
    };
    IS_UTF8.get_or_try_init(py, ask).copied()
}
