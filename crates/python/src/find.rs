//! Searches: equal files, directories that are copies, contents that are nowhere else.

use bit_crafts::{
    ContentPlace, DirNames, DirsOptions, Duplicates, EqualDirectories, EqualFile, EqualFiles,
    Equality, FileKind, FoundDirectories, FoundUnique, HardLinks, NotFile, Search, UniqueContent,
    UniqueOptions, Within,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::hash::digest_object;
use crate::items::{Item, Items, ResultClass, tuple_of};
use crate::job::{Call, Job, Outcome};
use crate::options::{Filter, Named, either};
use crate::paths::{PathArg, PathsArg, path_object};

/// Starts `duplicates`.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "it has those of the Python function"
)]
pub(crate) fn duplicates(
    paths: PathsArg,
    references: PathsArg,
    algorithm: Option<Named>,
    compare_bytes: bool,
    count_hard_links: bool,
    cache: Option<PathArg>,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let mut search = searched(paths, references, filter);
    if let Some(Named(algorithm)) = algorithm {
        search.scan.algorithm = algorithm;
    }
    search.scan.equality = either(compare_bytes, [Equality::Digest, Equality::Bytes]);
    search.scan.hard_links = either(
        count_hard_links,
        [HardLinks::OneFile, HardLinks::Duplicates],
    );
    search.cache = cache.map(|file| file.0);
    Job::start(&call, move |means, each| match each.is_wanted() {
        true => search.duplicates_each(means, |group| each.give(group)),
        false => search.duplicates(means),
    })
}

/// Starts `directories`.
#[pyfunction]
pub(crate) fn directories(
    paths: PathsArg,
    ignore_names: bool,
    contained: bool,
    min_files: Option<u64>,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let search = searched(paths, PathsArg::default(), filter);
    let mut options = DirsOptions::new()
        .names(either(ignore_names, [DirNames::Compare, DirNames::Ignore]))
        .contained(contained);
    if let Some(least) = min_files {
        options.min_files = least;
    }
    Job::start(&call, move |means, _| search.directories(&options, means))
}

/// Starts `unique`.
#[pyfunction]
pub(crate) fn unique(
    paths: PathsArg,
    archives: PathsArg,
    trust_lists: bool,
    force: bool,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let search = searched(paths, archives, filter);
    let options = UniqueOptions::new().trust_lists(trust_lists).force(force);
    Job::start(&call, move |means, _| search.unique(&options, means))
}

/// Returns the search of these paths.
pub(crate) fn searched(paths: PathsArg, references: PathsArg, filter: Filter) -> Search {
    Search::new(paths.0).references(references.0).walk(filter.0)
}

/// Makes a tuple of paths.
fn paths_object<'py>(
    py: Python<'py>,
    paths: &[std::path::PathBuf],
) -> PyResult<Bound<'py, PyTuple>> {
    let paths = paths.iter().map(|path| path_object(py, path));
    PyTuple::new(py, paths.collect::<PyResult<Vec<_>>>()?)
}

impl Item for EqualFile {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("EqualFile");
        let path = path_object(py, &self.path)?;
        let others = paths_object(py, &self.other_names)?;
        CLASS.tuple(py, (path, others, self.is_reference, self.frees))
    }
}

impl Item for EqualFiles {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("EqualFiles");
        let digest = digest_object(py, &self.digest);
        let files = tuple_of(py, &self.files)?;
        CLASS.tuple(py, (self.size, digest, self.wasted, files))
    }
}

impl Outcome for Duplicates {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Duplicates");
        let (groups, errors) = (Items::new(self.groups), Items::new(self.errors));
        CLASS.make(
            py,
            (errors, self.cancelled, groups, self.files, self.wasted),
        )
    }
}

impl Item for EqualDirectories {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("EqualDirectories");
        let paths = paths_object(py, &self.paths)?;
        CLASS.tuple(
            py,
            (paths, self.files, self.bytes, self.filtered, self.wasted),
        )
    }
}

impl Item for Within {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Within");
        let (path, within) = (path_object(py, &self.path)?, path_object(py, &self.within)?);
        CLASS.tuple(py, (path, within, self.files, self.bytes, self.filtered))
    }
}

/// A directory that cannot be compared, and why.
struct Obstacle(std::path::PathBuf, &'static str);

impl Item for Obstacle {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Obstacle");
        CLASS.tuple(py, (path_object(py, &self.0)?, self.1))
    }
}

impl Outcome for FoundDirectories {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("FoundDirectories");
        let obstacles = self.obstacles.into_iter();
        let obstacles = obstacles.map(|(path, why)| Obstacle(path, why)).collect();
        let (errors, groups) = (Items::new(self.errors), Items::new(self.groups));
        let contained = Items::new(self.contained);
        CLASS.make(
            py,
            (errors, false, groups, contained, Items::new(obstacles)),
        )
    }
}

impl Item for UniqueContent {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("UniqueContent");
        let (place, archive) = match &self.place {
            ContentPlace::Nowhere => ("nowhere", None),
            ContentPlace::Archive(path) => ("archive", Some(path)),
            ContentPlace::Manifest(path) => ("manifest", Some(path)),
            ContentPlace::Another => ("another", None),
            _ => ("unknown", None),
        };
        let archive = archive.map(|path| path_object(py, path)).transpose()?;
        CLASS.tuple(
            py,
            (self.size, paths_object(py, &self.paths)?, place, archive),
        )
    }
}

impl Item for NotFile {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("NotFile");
        let kind = match self.kind {
            FileKind::Symlink => "symlink",
            FileKind::Fifo => "fifo",
            FileKind::Socket => "socket",
            _ => "device",
        };
        CLASS.tuple(py, (path_object(py, &self.path)?, kind))
    }
}

impl Outcome for FoundUnique {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("FoundUnique");
        let all_is_elsewhere = self.all_is_elsewhere();
        let own = paths_object(py, &self.own_archives)?;
        let covered = paths_object(py, &self.covered)?;
        let (errors, contents) = (Items::new(self.errors), Items::new(self.contents));
        let others = Items::new(self.not_files);
        CLASS.make(
            py,
            (
                errors,
                false,
                contents,
                others,
                self.unseen,
                self.not_counted,
                own,
                covered,
                all_is_elsewhere,
            ),
        )
    }
}
