//! Copies of trees, and trees restored from their copies.

use std::path::PathBuf;

use bit_crafts::{
    CopyOptions, CopyReport, Durability, Error, Event, Loss, ManifestFile, ManifestPlace,
    MissingPath, MoveOptions, MoveReport, OnConflict, Preserve, ReadBack, RepairedPath,
    RestoreOptions, RestoreReport, RootCheck, Target, When,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::usage;
use crate::items::{Item, Items, ResultClass};
use crate::job::{Call, Each, Job, Outcome};
use crate::options::{Filter, Named, WordsArg, choice, either, of_argument};
use crate::paths::{PathArg, PathsArg, bytes_object, path_object};

/// Starts `copy`.
#[pyfunction]
pub(crate) fn copy(
    sources: PathsArg,
    destination: PathArg,
    options: &Bound<'_, PyDict>,
    call: Call,
) -> PyResult<Job> {
    let (options, paths) = options_of(sources, destination, options)?;
    Job::start(&call, move |means, each| {
        let options = of_paths(options, paths)?;
        match each.is_wanted() {
            true => options.run_each(means, |event| hand_over(event, each)),
            false => options.run(means),
        }
    })
}

/// Starts `move`.
#[pyfunction]
#[pyo3(name = "move")]
pub(crate) fn move_files(
    sources: PathsArg,
    destination: PathArg,
    allow_lossy: bool,
    options: &Bound<'_, PyDict>,
    call: Call,
) -> PyResult<Job> {
    let given = options;
    let (options, paths) = options_of(sources, destination, options)?;
    let (durability, read_back) = (options.durability, options.read_back);
    let (forces, reads) = (given.contains("durability")?, given.contains("read_back")?);
    Job::start(&call, move |means, each| {
        let mut options = MoveOptions::new(of_paths(options, paths)?).allow_lossy(allow_lossy);
        // Making them has set both to what a move needs.
        if forces {
            options.copy.durability = durability;
        }
        if reads {
            options.copy.read_back = read_back;
        }
        match each.is_wanted() {
            true => options.run_each(means, |event| hand_over(event, each)),
            false => options.run(means),
        }
    })
}

/// Returns the options for these paths below the source alone, if any are given.
fn of_paths(options: CopyOptions, paths: Option<Vec<PathBuf>>) -> Result<CopyOptions, Error> {
    match paths {
        Some(paths) => options.paths(paths),
        None => Ok(options),
    }
}

/// Starts `restore`.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "it has those of the Python function"
)]
pub(crate) fn restore(
    py: Python<'_>,
    root: PathArg,
    manifest: PathArg,
    copies: PathsArg,
    only: Option<WordsArg>,
    discard_damaged: bool,
    trust_metadata: bool,
    dry_run: bool,
    state: Option<PathArg>,
    force: bool,
    call: Call,
) -> PyResult<Job> {
    let only = only.map(|WordsArg(words)| {
        let words = words.iter();
        let losses = words.map(|word| choice(py, "only", word, &Loss::ALL, Loss::name));
        losses.collect::<PyResult<Vec<_>>>()
    });
    let only = only.transpose()?;
    let check = either(force, [RootCheck::Careful, RootCheck::Forced]);
    Job::start(&call, move |means, _| {
        let manifest = ManifestFile::open_until(&manifest.0, means.cancelled_by())?;
        let mut options = RestoreOptions::new(&root.0, &manifest)
            .from(&copies.0)
            .discard_damaged(discard_damaged)
            .trust_metadata(trust_metadata)
            .dry_run(dry_run)
            .state(state.map(|directory| directory.0))
            .root_check(check);
        if let Some(only) = only {
            options.only = only;
        }
        options.run(means)
    })
}

/// Returns the options, and the paths below the source that alone are copied.
fn options_of(
    sources: PathsArg,
    destination: PathArg,
    given: &Bound<'_, PyDict>,
) -> PyResult<(CopyOptions, Option<Vec<PathBuf>>)> {
    let py = given.py();
    let mut options = CopyOptions::new(sources.0, destination.0);
    let mut filter = Filter::default();
    let mut paths = None;
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let mut set = || -> PyResult<bool> {
            let word = || value.extract::<String>();
            match &*name {
                "exactly" => {
                    options.target = either(value.extract()?, [Target::Cp, Target::Exactly])
                }
                "on_conflict" => {
                    let all = OnConflict::ALL;
                    options.on_conflict = choice(py, &name, &word()?, &all, OnConflict::name)?;
                }
                "read_back" => {
                    options.read_back =
                        choice(py, &name, &word()?, &ReadBack::ALL, ReadBack::name)?;
                }
                "durability" => {
                    let all = Durability::ALL;
                    options.durability = choice(py, &name, &word()?, &all, Durability::name)?;
                }
                "preserve" => {
                    let list = Preserve::parse(&value.extract::<WordsArg>()?.0.join(","));
                    options.preserve =
                        list.map_err(|text| usage(py, &format!("preserve: {text}")))?;
                }
                "reflink" => options.reflink = choice(py, &name, &word()?, &When::ALL, When::name)?,
                "sparse" => options.sparse = choice(py, &name, &word()?, &When::ALL, When::name)?,
                "algorithm" => {
                    options.algorithm = value.extract::<Option<Named>>()?.map(|one| one.0)
                }
                "manifest" => {
                    options.manifest = match value.extract::<bool>() {
                        Ok(true) => ManifestPlace::Destination,
                        Ok(false) => ManifestPlace::None,
                        Err(_) => ManifestPlace::File(value.extract::<PathArg>()?.0),
                    };
                }
                "replace_manifest" => options.replace_manifest = value.extract()?,
                "strict" => options.strict = value.extract()?,
                "restart" => options.restart = value.extract()?,
                "dry_run" => options.dry_run = value.extract()?,
                "state" => options.state = value.extract::<Option<PathArg>>()?.map(|one| one.0),
                "paths" => paths = value.extract::<Option<PathsArg>>()?.map(|list| list.0),
                _ => return Ok(false),
            }
            Ok(true)
        };
        if !set().map_err(|error| of_argument(py, &name, error))? {
            filter.set(&name, &value)?;
        }
    }
    Ok((options.walk(filter.0), paths))
}

/// Event of one file, as it is handed over.
struct CopiedPath {
    path: Vec<u8>,
    outcome: &'static str,
    reason: Option<&'static str>,
}

fn hand_over(event: Event<'_>, each: &Each) {
    let (path, outcome, reason) = match event {
        Event::Copied(path) => (path, "copied", None),
        Event::Replaced(path) => (path, "replaced", None),
        Event::Skipped(path, why) => (path, "skipped", Some(why.text())),
        _ => return,
    };
    let path = path.to_vec();
    each.give(CopiedPath {
        path,
        outcome,
        reason,
    });
}

impl Item for CopiedPath {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("CopiedPath");
        let path = bytes_object(py, &self.path)?;
        CLASS.tuple(py, (path, self.outcome, self.reason))
    }
}

impl Outcome for CopyReport {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("CopyReport");
        let is_complete = self.is_complete();
        let counts = self.counts;
        let manifest = counts.manifest.as_ref().map(|path| bytes_object(py, path));
        let fields = [
            Items::new(self.errors).into_pyobject(py)?.into_any(),
            self.cancelled.into_pyobject(py)?.to_owned().into_any(),
            Items::new(self.lacking).into_pyobject(py)?.into_any(),
            PyTuple::new(py, &self.warnings)?.into_any(),
            counts.walked.into_pyobject(py)?.into_any(),
            counts.copied.into_pyobject(py)?.into_any(),
            counts.skipped.into_pyobject(py)?.into_any(),
            counts.failed.into_pyobject(py)?.into_any(),
            counts.left.into_pyobject(py)?.into_any(),
            counts.files.into_pyobject(py)?.into_any(),
            counts.before.into_pyobject(py)?.into_any(),
            counts.bytes.into_pyobject(py)?.into_any(),
            counts.stopped.into_pyobject(py)?,
            manifest.transpose()?.into_pyobject(py)?,
            counts.resumable.into_pyobject(py)?.to_owned().into_any(),
            is_complete.into_pyobject(py)?.to_owned().into_any(),
        ];
        CLASS.make(py, PyTuple::new(py, fields)?)
    }
}

impl Outcome for MoveReport {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("MoveReport");
        let is_complete = self.is_complete();
        let counts = self.counts;
        let manifest = counts.copied.manifest.as_ref();
        let manifest = manifest.map(|path| bytes_object(py, path)).transpose()?;
        let fields = [
            Items::new(self.errors).into_pyobject(py)?.into_any(),
            self.cancelled.into_pyobject(py)?.to_owned().into_any(),
            Items::new(self.lacking).into_pyobject(py)?.into_any(),
            PyTuple::new(py, &self.warnings)?.into_any(),
            counts.walked.into_pyobject(py)?.into_any(),
            counts.moved.into_pyobject(py)?.into_any(),
            counts.kept.into_pyobject(py)?.into_any(),
            counts.failed.into_pyobject(py)?.into_any(),
            counts.left.into_pyobject(py)?.into_any(),
            counts.renamed.into_pyobject(py)?.into_any(),
            counts.before.into_pyobject(py)?.into_any(),
            counts.copied.bytes.into_pyobject(py)?.into_any(),
            counts.copied.stopped.into_pyobject(py)?,
            manifest.into_pyobject(py)?,
            counts.resumable.into_pyobject(py)?.to_owned().into_any(),
            is_complete.into_pyobject(py)?.to_owned().into_any(),
        ];
        CLASS.make(py, PyTuple::new(py, fields)?)
    }
}

impl Item for RepairedPath {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("RepairedPath");
        let path = |path: &Option<PathBuf>| {
            let path = path.as_ref().map(|path| path_object(py, path));
            path.transpose()
        };
        CLASS.tuple(
            py,
            (
                path_object(py, &self.path)?,
                self.loss.name(),
                path(&self.from)?,
                path(&self.linked_to)?,
                path(&self.kept_as)?,
            ),
        )
    }
}

impl Item for MissingPath {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("MissingPath");
        let path = path_object(py, &self.path)?;
        CLASS.tuple(py, (path, self.loss.name(), &self.reason))
    }
}

impl Outcome for RestoreReport {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("RestoreReport");
        CLASS.make(
            py,
            (
                Items::new(self.errors),
                self.cancelled,
                Items::new(self.repaired),
                Items::new(self.missing),
                Items::new(self.lacking),
                PyTuple::new(py, &self.warnings)?,
                self.others,
                self.left,
                self.bytes,
                self.dry_run,
            ),
        )
    }
}
