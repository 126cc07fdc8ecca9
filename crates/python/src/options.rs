//! Options as Python has them: words, and the choice among a walk's files.

use std::os::unix::ffi::OsStringExt;
use std::str::FromStr;

use bit_crafts::{Algorithm, FileSystems, Globs, Hidden, IgnoreFiles, Symlinks, WalkOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::usage;
use crate::paths::PathsArg;

/// An algorithm by its name.
#[derive(Clone, Copy)]
pub(crate) struct Named(pub(crate) Algorithm);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Named> {
        let name: String = object.extract()?;
        parsed(object.py(), &name).map(Named)
    }
}

/// One algorithm, or several.
pub(crate) struct Algorithms(pub(crate) Vec<Algorithm>);

impl<'py> FromPyObject<'_, 'py> for Algorithms {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Algorithms> {
        if object.is_instance_of::<PyString>() {
            return Ok(Algorithms(vec![object.extract::<Named>()?.0]));
        }
        let names = object.try_iter()?;
        let names = names.map(|name| Ok(name?.extract::<Named>()?.0));
        names.collect::<PyResult<_>>().map(Algorithms)
    }
}

/// One word, or several, as an argument.
pub(crate) struct WordsArg(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for WordsArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<WordsArg> {
        // Its letters are no words.
        if object.is_instance_of::<PyString>() {
            return Ok(WordsArg(vec![object.extract()?]));
        }
        let words = object.try_iter()?.map(|word| word?.extract());
        words.collect::<PyResult<_>>().map(WordsArg)
    }
}

/// Puts the name of an argument before what is wrong with its type.
pub(crate) fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(format!("{name}: {}", error.value(py))),
        false => error,
    }
}

/// Parses a word.
pub(crate) fn parsed<T: FromStr<Err: ToString>>(py: Python<'_>, text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|error: T::Err| usage(py, &error.to_string()))
}

/// Finds a word among those of an option.
pub(crate) fn choice<T: Copy>(
    py: Python<'_>,
    option: &str,
    word: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> PyResult<T> {
    if let Some(found) = all.iter().find(|one| name(**one) == word) {
        return Ok(*found);
    }
    let known: Vec<_> = all.iter().map(|one| name(*one)).collect();
    let text = format!("{option}: unknown {word:?}; known are {}", known.join(", "));
    Err(usage(py, &text))
}

/// Returns the one of two that `is_second` says.
pub(crate) fn either<T>(is_second: bool, [first, second]: [T; 2]) -> T {
    match is_second {
        true => second,
        false => first,
    }
}

/// Choice among the files of a walk, by the keyword arguments that many functions share.
#[derive(Default)]
pub(crate) struct Filter(pub(crate) WalkOptions);

impl<'py> FromPyObject<'_, 'py> for Filter {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Filter> {
        let mut filter = Filter::default();
        for (name, value) in object.cast::<PyDict>()?.iter() {
            filter.set(&name.extract::<String>()?, &value)?;
        }
        Ok(filter)
    }
}

impl Filter {
    /// Sets what this keyword argument is for.
    pub(crate) fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.knows(name, value) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let text = format!("unexpected keyword argument '{name}'");
                Err(PyTypeError::new_err(text))
            }
            Err(error) => Err(of_argument(value.py(), name, error)),
        }
    }

    /// Returns false if there is no such argument, or sets what it is for.
    fn knows(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let walk = &mut self.0;
        match name {
            "include" => walk.include = globs(value)?,
            "exclude" => walk.exclude = globs(value)?,
            "hidden" => walk.hidden = either(value.extract()?, [Hidden::Skip, Hidden::Include]),
            "follow_symlinks" => {
                walk.symlinks = either(value.extract()?, [Symlinks::Skip, Symlinks::Follow]);
            }
            "one_file_system" => {
                let is_one = value.extract()?;
                walk.file_systems = either(is_one, [FileSystems::Cross, FileSystems::One]);
            }
            "ignore_files" => {
                let honoured = value.extract()?;
                walk.ignore_files = either(honoured, [IgnoreFiles::Off, IgnoreFiles::Honour]);
            }
            "max_depth" => walk.max_depth = value.extract()?,
            "min_size" => walk.min_size = value.extract()?,
            "max_size" => walk.max_size = value.extract()?,
            "newer" => walk.newer = value.extract()?,
            "older" => walk.older = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn globs(patterns: &Bound<'_, PyAny>) -> PyResult<Globs> {
    let py = patterns.py();
    if patterns.is_none() {
        return Ok(Globs::default());
    }
    let patterns = patterns.extract::<PathsArg>()?.0.into_iter();
    let patterns: Vec<_> = patterns
        .map(|text| text.into_os_string().into_vec())
        .collect();
    Globs::new(&patterns).map_err(|error| usage(py, &error.to_string()))
}
