//! `diff`: two records of a tree, without the tree.

use std::path::{Path, PathBuf};

use bc_integrity::change::Change;
use bc_integrity::fields::{CompareRules, Field};
use bc_integrity::{DiffOptions, ManifestFile};

use super::error::Error;
use super::run::{Run, runs};
use super::verify::{PathChange, Verification};
use super::walk::refuse_missing;

/// Compares two [manifests](crate::manifest) of a tree, or of two trees that should be alike; neither
/// has to be there.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # let (old, new) = (dir.path().join("may.jsonl"), dir.path().join("june.jsonl"));
/// bit_crafts::manifest(&photos).write(&old)?.complete()?;
/// std::fs::write(photos.join("a.jpg"), "picture")?;
/// bit_crafts::manifest(&photos).write(&new)?.complete()?;
/// let differences = bit_crafts::diff(&old, &new).run()?;
/// for change in &differences.changes {
///     println!("{}: {}", change.class.name(), change.path.display());
/// }
/// assert_eq!(differences.summary.count(bit_crafts::Class::Added), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn diff<'a>(old: impl AsRef<Path>, new: impl AsRef<Path>) -> DiffJob<'a> {
    DiffJob {
        old: old.as_ref().to_owned(),
        new: new.as_ref().to_owned(),
        rules: CompareRules::default(),
        run: Run::default(),
    }
}

/// Options of a [`diff`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct DiffJob<'a> {
    old: PathBuf,
    new: PathBuf,
    rules: CompareRules,
    run: Run<'a>,
}

runs!(DiffJob: cancel);

impl DiffJob<'_> {
    /// Leaves a field out of the comparison, besides those that a restored copy never has
    /// again (ctime, inode numbers …).
    pub fn ignore(mut self, field: Field) -> Self {
        self.rules.ignore = self.rules.ignore.with(field);
        self
    }

    /// Runs the job. Old is the earlier record, new the later one.
    ///
    /// # Errors
    /// If a manifest is not there, cannot be read, is cut short or altered; if their digests are of two
    /// algorithms; if it was cancelled.
    pub fn run(self) -> Result<Verification, Error> {
        Run::begin()?;
        let cancel = &self.run.cancel;
        Run::came_to(cancel, self.compare())
    }

    fn compare(&self) -> Result<Verification, Error> {
        let cancel = &self.run.cancel;
        refuse_missing([&self.old, &self.new])?;
        let old = ManifestFile::open_until(&self.old, cancel)?;
        let new = ManifestFile::open_until(&self.new, cancel)?;
        let what = DiffOptions::new(&old, &new).rules(self.rules);
        let mut changes = Vec::new();
        let diffed = bc_integrity::diff(&what, &mut |change: &Change| {
            changes.push(PathChange::from(change));
            Ok(())
        })?;
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        Ok(Verification {
            changes,
            summary: diffed.summary,
            warnings: diffed.problems,
        })
    }
}
