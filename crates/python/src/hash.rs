//! Digests of files, and files verified against a checksum file.

use bit_crafts::{
    Checked, CheckedFile, ChecksumFile, Digest, FileVerdict, HashOptions, Hashed, HashedFile,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::items::{Item, Items, ResultClass};
use crate::job::{Call, Job, Outcome};
use crate::options::{Algorithms, Filter, Named};
use crate::paths::{PathArg, PathsArg, path_object};

/// Starts `hash`.
#[pyfunction]
pub(crate) fn hash(
    paths: PathsArg,
    algorithms: Algorithms,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let options = HashOptions::new(algorithms.0);
    Job::start(&call, move |means, each| match each.is_wanted() {
        true => options.run_each(paths.0, &filter.0, means, |file| each.give(file)),
        false => options.run(paths.0, &filter.0, means),
    })
}

/// Starts `check`.
#[pyfunction]
pub(crate) fn check(
    file: PathArg,
    algorithm: Option<Named>,
    base: Option<PathArg>,
    call: Call,
) -> PyResult<Job> {
    let mut job = ChecksumFile::new(file.0);
    if let Some(Named(algorithm)) = algorithm {
        job = job.algorithm(algorithm);
    }
    if let Some(PathArg(base)) = base {
        job = job.base(base);
    }
    Job::start(&call, move |means, _| job.run(means))
}

/// Returns the digest's bytes.
pub(crate) fn digest_object<'py>(py: Python<'py>, digest: &Digest) -> Bound<'py, PyBytes> {
    PyBytes::new(py, digest.as_bytes())
}

impl Item for HashedFile {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("HashedFile");
        let digests = self.digests.iter().map(|digest| digest_object(py, digest));
        let digests = PyTuple::new(py, digests.collect::<Vec<_>>())?;
        CLASS.tuple(py, (path_object(py, &self.path)?, self.size, digests))
    }
}

impl Outcome for Hashed {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Hashed");
        let (files, errors) = (Items::new(self.files), Items::new(self.errors));
        CLASS.make(py, (errors, self.cancelled, files, self.bytes))
    }
}

impl Item for CheckedFile {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("CheckedFile");
        let (verdict, error) = match &self.verdict {
            FileVerdict::Ok => ("ok", None),
            FileVerdict::Unread(error) => ("unread", Some(error.object(py)?)),
            _ => ("mismatch", None),
        };
        CLASS.tuple(py, (path_object(py, &self.path)?, verdict, error))
    }
}

impl Outcome for Checked {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Checked");
        let (files, errors) = (Items::new(self.files), Items::new(self.errors));
        let lines = (self.improper_lines, self.is_cut_short);
        CLASS.make(py, (errors, self.cancelled, files, lines.0, lines.1))
    }
}
