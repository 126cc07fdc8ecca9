//! `verify`: a tree against its record.

use std::path::{Path, PathBuf};

use bc_integrity::change::{Change, Class};
use bc_integrity::fields::{CompareMode, CompareRules, Field};
use bc_integrity::{ComparisonSummary, Conclusion, ManifestFile, RootCheck, VerifyOptions};

use super::error::{Error, path_of};
use super::manifest::working;
use super::run::{Run, runs};
use super::walk::refuse_missing;

/// Compares a tree with its [manifest](crate::manifest): reports the entries that were added,
/// removed, moved, edited or damaged, that is, have other content although no program wrote to
/// them.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # std::fs::write(photos.join("a.jpg"), "picture")?;
/// # let file = dir.path().join("photos.jsonl");
/// # let _ = bit_crafts::manifest(&photos).write(&file)?;
/// std::fs::rename(photos.join("a.jpg"), photos.join("b.jpg"))?;
/// let verified = bit_crafts::verify(&photos, &file).run()?;
/// for change in &verified.changes {
///     println!("{}: {}", change.class.name(), change.path.display());
/// }
/// assert_eq!(verified.summary.count(bit_crafts::Class::Moved), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify<'a>(root: impl AsRef<Path>, manifest: impl AsRef<Path>) -> VerifyJob<'a> {
    VerifyJob {
        root: root.as_ref().to_owned(),
        manifest: manifest.as_ref().to_owned(),
        rules: CompareRules::default(),
        root_check: RootCheck::Careful,
        run: Run::default(),
    }
}

/// Options of a [`verify`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct VerifyJob<'a> {
    root: PathBuf,
    manifest: PathBuf,
    rules: CompareRules,
    root_check: RootCheck,
    run: Run<'a>,
}

runs!(VerifyJob);

impl VerifyJob<'_> {
    /// Sets how much is compared; the default is content and metadata.
    pub fn mode(mut self, mode: CompareMode) -> Self {
        self.rules.mode = mode;
        self
    }

    /// Leaves a field out of the comparison, besides those that a restored copy never has
    /// again (ctime, inode numbers …).
    pub fn ignore(mut self, field: Field) -> Self {
        self.rules.ignore = self.rules.ignore.with(field);
        self
    }

    /// Takes a root that is empty, or on another device where nothing matches, at its word. Without
    /// this it is an error of the kind [`Refused`](crate::ErrorKind::Refused): the disk may not be
    /// mounted.
    pub fn force(mut self) -> Self {
        self.root_check = RootCheck::Forced;
        self
    }

    /// Runs the job. Algorithm and filter are the manifest's.
    ///
    /// # Errors
    /// If root or manifest is not there; if the manifest cannot be read, is cut short or altered; if the
    /// root looks like a disk that is not mounted; if it was cancelled.
    pub fn run(mut self) -> Result<Verification, Error> {
        Run::begin()?;
        refuse_missing([&self.root, &self.manifest])?;
        let manifest = ManifestFile::open_until(&self.manifest, &self.run.cancel)?;
        let what = VerifyOptions::new(&self.root, &manifest)
            .rules(self.rules)
            .root_check(self.root_check);
        let mut changes = Vec::new();
        let mut sink = |change: &Change| {
            changes.push(PathChange::from(change));
            Ok(())
        };
        let mut report = self.run.report.take();
        let verified = working(&self.run, &mut report, |work| {
            Ok(bc_integrity::verify(&what, work, &mut sink)?)
        })?;
        Ok(Verification {
            changes,
            summary: verified.summary,
            warnings: verified.problems,
        })
    }
}

/// Differences between a tree and its record.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// Entries that are not as recorded, in order of paths.
    pub changes: Vec<PathChange>,
    /// Counts of all classes.
    pub summary: ComparisonSummary,
    /// Warnings about the run as a whole.
    pub warnings: Vec<String>,
}

impl Verification {
    /// Returns true if everything is as recorded, and could be read.
    pub fn is_same(&self) -> bool {
        self.summary.conclusion() == Conclusion::Same
    }

    /// Returns true if a file has other content although no program wrote to it.
    pub fn is_damaged(&self) -> bool {
        self.summary.conclusion() == Conclusion::Damaged
    }

    /// Returns true if everything could be read.
    pub fn is_complete(&self) -> bool {
        self.summary.unread() == 0
    }

    /// Returns the result if everything could be read.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](crate::ErrorKind::Incomplete), with the number of entries that
    /// could not.
    pub fn complete(self) -> Result<Verification, Error> {
        match self.summary.unread() {
            0 => Ok(self),
            count => {
                let text = format!("{count} entries could not be read");
                Err(Error::incomplete(text, None))
            }
        }
    }
}

/// A path that is not as it was recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PathChange {
    /// Class of the change.
    pub class: Class,
    /// Path below the root: the old one, if it was moved.
    pub path: PathBuf,
    /// The new path, if it was moved.
    pub moved_to: Option<PathBuf>,
    /// The fields that differ.
    pub fields: Vec<Field>,
    /// Reason why it could not be read, or evidence that a change was not made by a program. There
    /// is none where class and fields say all: for a file that is [`Damaged`](Class::Damaged), that
    /// its content is another one and its times are not.
    pub reason: Option<String>,
}

impl From<&Change> for PathChange {
    fn from(change: &Change) -> PathChange {
        PathChange {
            class: change.class,
            path: path_of(&change.path),
            moved_to: change.to.as_deref().map(path_of),
            fields: change.differences.iter().map(|one| one.field).collect(),
            reason: change.reason.clone(),
        }
    }
}
