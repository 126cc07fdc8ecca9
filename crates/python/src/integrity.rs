//! Records of trees: written, verified, compared, brought up to date.

use bit_crafts::{
    AcceptOptions, Acceptance, Change, ChangeLimit, Class, CompareMode, CompareRules, Conclusion,
    CreateOptions, Damaged, DiffOptions, Fields, ManifestFile, Overwrite, Reread, RootCheck,
    Sample, TreeOptions, UpdateOptions, Verification, VerifyOptions, WrittenManifest, XattrPolicy,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::items::{Item, Items, ResultClass};
use crate::job::{Call, Job, Outcome};
use crate::options::{Filter, Named, WordsArg, choice, either, parsed};
use crate::paths::{PathArg, PathsArg, bytes_object};

/// Starts `manifest`.
#[pyfunction]
pub(crate) fn manifest(
    root: PathArg,
    file: PathArg,
    algorithm: Named,
    xattrs: bool,
    overwrite: bool,
    filter: Filter,
    call: Call,
) -> PyResult<Job> {
    let xattrs = either(xattrs, [XattrPolicy::Skip, XattrPolicy::Record]);
    let tree = TreeOptions::of_walk(&filter.0).xattrs(xattrs);
    let overwrite = either(overwrite, [Overwrite::Never, Overwrite::Always]);
    Job::start(&call, move |means, _| {
        let record = CreateOptions::new(&root.0, algorithm.0).tree(tree);
        record.overwrite(overwrite).run_to(&file.0, means)
    })
}

/// Starts `verify`.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "it has those of the Python function"
)]
pub(crate) fn verify(
    py: Python<'_>,
    root: PathArg,
    manifest: PathArg,
    mode: &str,
    ignore: WordsArg,
    sample: Option<&str>,
    force: bool,
    call: Call,
) -> PyResult<Job> {
    let rules = rules(py, mode, &ignore)?;
    let sample: Option<Sample> = sample.map(|text| parsed(py, text)).transpose()?;
    let check = either(force, [RootCheck::Careful, RootCheck::Forced]);
    Job::start(&call, move |means, each| {
        let manifest = ManifestFile::open_until(&manifest.0, means.cancelled_by())?;
        let verify = VerifyOptions::new(&root.0, &manifest).rules(rules);
        let verify = verify.root_check(check).sample(sample);
        match each.is_wanted() {
            true => verify.run_each(means, |change| each.give(change)),
            false => verify.run(means),
        }
    })
}

/// Starts `update`.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "it has those of the Python function"
)]
pub(crate) fn update(
    py: Python<'_>,
    root: PathArg,
    manifest: PathArg,
    reread: Option<&str>,
    max_changed: Option<&str>,
    accept_damaged: bool,
    force: bool,
    call: Call,
) -> PyResult<Job> {
    let reread: Option<Reread> = reread.map(|text| parsed(py, text)).transpose()?;
    let limit: Option<ChangeLimit> = max_changed.map(|text| parsed(py, text)).transpose()?;
    let damaged = either(accept_damaged, [Damaged::Keep, Damaged::Accept]);
    let check = either(force, [RootCheck::Careful, RootCheck::Forced]);
    Job::start(&call, move |means, each| {
        let update = UpdateOptions::new(&root.0, &manifest.0)
            .reread(reread.unwrap_or_default())
            .max_changed(limit);
        let update = update.damaged(damaged).root_check(check);
        match each.is_wanted() {
            true => update.run_each(means, |change| each.give(change)),
            false => update.run(means),
        }
    })
}

/// Starts `accept`.
#[pyfunction]
pub(crate) fn accept(
    root: PathArg,
    manifest: PathArg,
    paths: PathsArg,
    dry_run: bool,
    force: bool,
    call: Call,
) -> PyResult<Job> {
    let check = either(force, [RootCheck::Careful, RootCheck::Forced]);
    Job::start(&call, move |means, _| {
        let accept = AcceptOptions::new(&root.0, &manifest.0, &paths.0);
        accept.dry_run(dry_run).root_check(check).run(means)
    })
}

/// Starts `diff`.
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    old: PathArg,
    new: PathArg,
    mode: &str,
    ignore: WordsArg,
    call: Call,
) -> PyResult<Job> {
    let rules = rules(py, mode, &ignore)?;
    Job::start(&call, move |means, each| {
        let open = |path: &PathArg| ManifestFile::open_until(&path.0, means.cancelled_by());
        let (old, new) = (open(&old)?, open(&new)?);
        let diff = DiffOptions::new(&old, &new).rules(rules);
        match each.is_wanted() {
            true => diff.run_each(means, |change| each.give(change)),
            false => diff.run(means),
        }
    })
}

fn rules(py: Python<'_>, mode: &str, ignore: &WordsArg) -> PyResult<CompareRules> {
    let mode = choice(py, "mode", mode, &CompareMode::ALL, CompareMode::name)?;
    let ignore = match &ignore.0[..] {
        [] => Fields::NONE,
        names => parsed(py, &names.join(","))?,
    };
    Ok(CompareRules::new(mode, ignore))
}

impl Outcome for WrittenManifest {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("WrittenManifest");
        let errors = Items::new(self.errors);
        CLASS.make(py, (errors, false, self.entries, self.files, self.bytes))
    }
}

impl Item for Change {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Change");
        static DIFFERENCE: ResultClass = ResultClass::new("Difference");
        let path = |path: &Option<Vec<u8>>| {
            let path = path.as_ref().map(|path| bytes_object(py, path));
            path.transpose()
        };
        let differences = self.differences.iter().map(|one| {
            let (old, new) = (one.old.to_string(), one.new.to_string());
            DIFFERENCE.tuple(py, (one.field.name(), old, new))
        });
        let differences = PyTuple::new(py, differences.collect::<PyResult<Vec<_>>>()?)?;
        let error = self.failed.as_ref().map(|error| error.object(py));
        CLASS.tuple(
            py,
            (
                self.class.name(),
                bytes_object(py, &self.path)?,
                path(&self.to)?,
                path(&self.was_at)?,
                self.kind.name(),
                differences,
                self.reason.as_deref(),
                error.transpose()?,
            ),
        )
    }
}

impl Outcome for Verification {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Verification");
        let summary = self.summary;
        let counts = PyDict::new(py);
        for class in Class::ALL {
            counts.set_item(class.name(), summary.count(class))?;
        }
        let refused = self.refused.map(|mass| {
            let (changed, recorded, limit) = (mass.changed, mass.recorded, mass.limit);
            format!("{changed} of {recorded} recorded entries changed, and at most {limit} may")
        });
        CLASS.make(
            py,
            (
                Items::new(self.changes),
                counts,
                summary.unread(),
                PyTuple::new(py, &self.warnings)?,
                summary.conclusion() == Conclusion::Same,
                summary.conclusion() == Conclusion::Damaged,
                self.is_written,
                refused,
                (summary.files_read, summary.bytes_read),
            ),
        )
    }
}

impl Outcome for Acceptance {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASS: ResultClass = ResultClass::new("Accepted");
        let names = self.other_names.iter().map(|path| bytes_object(py, path));
        let other_names = PyTuple::new(py, names.collect::<PyResult<Vec<_>>>()?)?;
        let read = (self.files_read, self.bytes_read);
        let changes = Items::new(self.accepted);
        let errors = Items::new(self.refused);
        CLASS.make(
            py,
            (errors, false, changes, other_names, self.is_written, read),
        )
    }
}
