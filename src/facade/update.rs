//! `update`: a record brought up to date.

use std::path::{Path, PathBuf};

use bc_integrity::change::Change;
use bc_integrity::{
    ComparisonSummary, Conclusion, Damaged, Origin, Reread, RootCheck, UpdateOptions,
};

use super::error::Error;
use super::manifest::{since_1970, working};
use super::run::{Run, runs};
use super::verify::PathChange;
use super::walk::refuse_missing;

/// Brings the [manifest](crate::manifest) of a tree up to date, reading only files that look
/// changed.
///
/// A damaged file, that is, one with other content although no program wrote to it, keeps the
/// digest that it had: every later [`verify`](crate::verify) finds it again. So does a file that
/// cannot be read. The manifest is replaced whole, or stays as it was; nothing of the tree is
/// changed. If another process, a [`copy`](crate::copy()) to the tree say, has written the manifest
/// meanwhile, that stays, and the update is [refused](crate::ErrorKind::Refused): it can be run
/// again.
///
/// [`verify`](crate::verify) reports the changes that an update would write.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let photos = dir.path().join("photos");
/// # std::fs::create_dir(&photos)?;
/// # let file = dir.path().join("photos.jsonl");
/// # bit_crafts::manifest(&photos).write(&file)?.complete()?;
/// std::fs::write(photos.join("new.jpg"), "picture")?;
/// let updated = bit_crafts::update(&photos, &file).run()?;
/// assert!(updated.is_written && !updated.is_damaged());
/// assert!(bit_crafts::verify(&photos, &file).run()?.is_same());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn update<'a>(root: impl AsRef<Path>, manifest: impl AsRef<Path>) -> UpdateJob<'a> {
    UpdateJob {
        root: root.as_ref().to_owned(),
        manifest: manifest.as_ref().to_owned(),
        reread: Reread::None,
        damaged: Damaged::Keep,
        root_check: RootCheck::Careful,
        run: Run::default(),
    }
}

/// Options of an [`update`] job.
#[derive(Debug)]
#[must_use = "nothing is done before `run`"]
pub struct UpdateJob<'a> {
    root: PathBuf,
    manifest: PathBuf,
    reread: Reread,
    damaged: Damaged,
    root_check: RootCheck,
    run: Run<'a>,
}

runs!(UpdateJob);

impl UpdateJob<'_> {
    /// Reads so much of the files that look unchanged all the same, those read longest ago first:
    /// damage shows in no other way.
    pub fn reread(mut self, how_much: Reread) -> Self {
        self.reread = how_much;
        self
    }

    /// Accepts the present content of damaged files as the right one.
    pub fn accept_damaged(mut self) -> Self {
        self.damaged = Damaged::Accept;
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
    /// If root or manifest is not there; if the manifest cannot be read, is cut short or altered, is
    /// of a part of a tree only (a shard, or what a [copy](crate::copy) of some paths among others has
    /// made), or cannot be replaced; if the root looks like a disk that is not mounted; if it was
    /// cancelled. The manifest is as it was then.
    pub fn run(mut self) -> Result<UpdatedManifest, Error> {
        Run::begin()?;
        refuse_missing([&self.root, &self.manifest])?;
        let origin = Origin::of_this_machine();
        let what = UpdateOptions::new(&self.root, &self.manifest, since_1970(), &origin)
            .reread(self.reread)
            .damaged(self.damaged)
            .root_check(self.root_check);
        let mut changes = Vec::new();
        let mut sink = |change: &Change| {
            changes.push(PathChange::from(change));
            Ok(())
        };
        let mut report = self.run.report.take();
        let updated = working(&self.run, &mut report, |work| {
            Ok(bc_integrity::update(&what, work, &mut sink)?)
        })?;
        Ok(UpdatedManifest {
            changes,
            summary: updated.summary,
            is_written: updated.written.is_some(),
            warnings: updated.problems,
        })
    }
}

/// Result of an [`update`] job.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UpdatedManifest {
    /// Entries that are not as recorded, in order of paths.
    pub changes: Vec<PathChange>,
    /// Counts of all classes.
    pub summary: ComparisonSummary,
    /// True if there was anything to write: a change, or files that were read again.
    pub is_written: bool,
    /// Warnings about the run as a whole.
    pub warnings: Vec<String>,
}

impl UpdatedManifest {
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
    pub fn complete(self) -> Result<UpdatedManifest, Error> {
        match self.summary.unread() {
            0 => Ok(self),
            count => {
                let text = format!("{count} entries could not be read");
                Err(Error::incomplete(text, None))
            }
        }
    }
}
