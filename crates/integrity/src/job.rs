//! Verifying, comparing and updating as jobs: with the means of a caller of the library, and all
//! changes in the result.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_fs::PathError;
use bc_hash::HashProgress;
use bc_read::ReadOptions;
use bc_walk::job::{Error, Guarded, Means, Progress};

use crate::change::Change;
use crate::compare::Sink;
use crate::compare::summary::{ComparisonSummary, Conclusion};
use crate::diff::{ComparedEntries, DiffOptions, diff_counted};
use crate::options::{Job, Reading, Work};
use crate::place::Origin;
use crate::update::accept::{AcceptOptions, Acceptance, accept_reported};
use crate::update::limit::MassChange;
use crate::{UpdateOptions, VerifyOptions, update, verify};

/// Differences between a tree and its record, or between two records.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// Entries that are not as recorded, in order of paths. Empty if they went to a callback.
    pub changes: Vec<Change>,
    /// Counts of all classes.
    pub summary: ComparisonSummary,
    /// Warnings about the run as a whole.
    pub warnings: Vec<String>,
    /// True if an update had anything to write: a change, or files that were read again.
    pub is_written: bool,
    /// Refusal of an update that found more changes than
    /// [`max_changed`](UpdateOptions::max_changed) allows.
    pub refused: Option<MassChange>,
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

    /// Returns true if everything could be read, and an update was not
    /// [refused](Verification::refused): the manifest says what the tree has.
    pub fn is_complete(&self) -> bool {
        self.summary.unread() == 0 && self.refused.is_none()
    }

    /// Returns the result if it is complete.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](bc_walk::job::ErrorKind::Incomplete), with the changes for which an
    /// update was refused, or the number of entries that could not be read.
    pub fn complete(self) -> Result<Verification, Error> {
        let text = match (self.refused, self.summary.unread()) {
            (None, 0) => return Ok(self),
            (Some(refused), _) => format!("{refused}: the manifest was left as it is"),
            (None, count) => format!("{count} entries could not be read"),
        };
        Err(Error::incomplete(text, None))
    }
}

impl VerifyOptions<'_> {
    /// Verifies with these means; all changes are in the result.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # std::fs::write(photos.join("a.jpg"), "picture")?;
    /// # let file = dir.path().join("photos.jsonl");
    /// use bc_integrity::{Class, CreateOptions, ManifestFile, VerifyOptions};
    /// use bc_walk::job::Means;
    ///
    /// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &Means::new())?;
    /// std::fs::rename(photos.join("a.jpg"), photos.join("b.jpg"))?;
    /// let manifest = ManifestFile::open(&file)?;
    /// let verified = VerifyOptions::new(&photos, &manifest).run(&Means::new())?;
    /// for change in &verified.changes {
    ///     println!("{}: {}", change.class.name(), bc_fs::escape(&change.path));
    /// }
    /// assert_eq!(verified.summary.count(Class::Moved), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the root is not there, or looks like a disk that is not mounted; if the manifest cannot be
    /// read, is cut short or altered; if it was cancelled.
    pub fn run(&self, means: &Means<'_>) -> Result<Verification, Error> {
        collected(|each| self.run_each(means, each))
    }

    /// Verifies as [`run`](VerifyOptions::run) does, and calls `each` with every change, in order of
    /// paths, as they are found; the list in the result is empty. It is called by the caller's own
    /// thread, while others read. After a panic in it, it is not called again; the job is done to
    /// its end, and then the panic goes on out of this function.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # std::fs::write(photos.join("a.jpg"), "picture")?;
    /// # std::fs::write(photos.join("b.jpg"), "another")?;
    /// # let file = dir.path().join("photos.jsonl");
    /// use bc_integrity::{Class, CreateOptions, ManifestFile, VerifyOptions};
    /// use bc_walk::job::Means;
    ///
    /// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &Means::new())?;
    /// std::fs::remove_file(photos.join("a.jpg"))?;
    /// let manifest = ManifestFile::open(&file)?;
    /// let mut gone = 0;
    /// VerifyOptions::new(&photos, &manifest).run_each(&Means::new(), |change| {
    ///     gone += u64::from(change.class == Class::Removed);
    /// })?;
    /// assert_eq!(gone, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(Change),
    ) -> Result<Verification, Error> {
        let manifest = self.manifest.clone().cancelled_by(means.cancelled_by());
        let what = VerifyOptions {
            manifest: &manifest,
            ..*self
        };
        let verified = passed_on(each, |sink| {
            working(means, |work| verify(&what, work, sink))
        })?;
        Ok(Verification {
            changes: Vec::new(),
            summary: verified.summary,
            warnings: in_words(&verified.problems),
            is_written: false,
            refused: None,
        })
    }
}

impl UpdateOptions<'_> {
    /// Brings the manifest up to date with these means; all changes are in the result.
    ///
    /// A damaged file, that is, one with other content although no program wrote to it, keeps the
    /// digest that it had: every later verification finds it again. So does a file that cannot be
    /// read. The manifest is replaced whole, or stays as it was; nothing of the tree is changed. If
    /// another process, a copy to the tree say, has written the manifest meanwhile, that stays, and
    /// the update is [refused](bc_walk::job::ErrorKind::Refused): it can be run again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # std::fs::write(photos.join("a.jpg"), "picture")?;
    /// # let file = dir.path().join("photos.jsonl");
    /// use bc_integrity::{CreateOptions, Reread, UpdateOptions};
    /// use bc_walk::job::Means;
    ///
    /// CreateOptions::new(&photos, bc_digest::Algorithm::Blake3).run_to(&file, &Means::new())?;
    /// std::fs::write(photos.join("b.jpg"), "new")?;
    /// // A tenth of the unchanged files is read again, so that damage is found in time.
    /// let update = UpdateOptions::new(&photos, &file).reread(Reread::Fraction(0.1));
    /// assert!(update.run(&Means::new())?.complete()?.is_written);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As a verification; also if the manifest is of a part of a tree only (a shard, or what a copy
    /// of some paths among others has made), or cannot be replaced. The manifest is as it was then.
    pub fn run(&self, means: &Means<'_>) -> Result<Verification, Error> {
        collected(|each| self.run_each(means, each))
    }

    /// Updates as [`run`](UpdateOptions::run) does, and calls `each` with every change, as
    /// [a verification](VerifyOptions::run_each) does. A panic in it keeps no manifest from being
    /// written.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(Change),
    ) -> Result<Verification, Error> {
        let origin = Origin::of_this_machine();
        let mut what = *self;
        if what.now == 0 {
            what.now = bc_fs::known::now_ns();
        }
        if *what.origin == Origin::UNKNOWN {
            what.origin = &origin;
        }
        let updated = passed_on(each, |sink| {
            working(means, |work| update(&what, work, sink))
        })?;
        Ok(Verification {
            changes: Vec::new(),
            summary: updated.summary,
            warnings: in_words(&updated.problems),
            is_written: updated.written.is_some(),
            refused: updated.refused,
        })
    }
}

impl AcceptOptions<'_> {
    /// Accepts the entries with these means. The manifest is replaced whole, or stays as it was;
    /// nothing of the tree is changed. Paths that are not in both, directories and files that cannot
    /// be read are [refused](Acceptance::refused); the others are accepted all the same.
    ///
    /// # Errors
    /// If there is no path; if the manifest cannot be read, is cut short or altered, or cannot be
    /// replaced; if the root is not there, or not the recorded one; if it was cancelled.
    pub fn run(&self, means: &Means<'_>) -> Result<Acceptance, Error> {
        let mut what = self.clone();
        if what.now == 0 {
            what.now = bc_fs::known::now_ns();
        }
        working(means, |work| accept_reported(&what, work, &mut |_| Ok(())))
    }
}

impl DiffOptions<'_> {
    /// Compares the two with these means, of which it needs only cancellation and progress, which
    /// counts entries; all changes are in the result.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let photos = dir.path().join("photos");
    /// # std::fs::create_dir(&photos)?;
    /// # let [monday, friday] = ["monday", "friday"].map(|day| dir.path().join(day));
    /// use bc_integrity::{Class, CreateOptions, DiffOptions, ManifestFile};
    /// use bc_walk::job::Means;
    ///
    /// let (record, means) = (CreateOptions::new(&photos, bc_digest::Algorithm::Blake3), Means::new());
    /// record.run_to(&monday, &means)?;
    /// std::fs::write(photos.join("a.jpg"), "picture")?;
    /// record.run_to(&friday, &means)?;
    /// let (old, new) = (ManifestFile::open(&monday)?, ManifestFile::open(&friday)?);
    /// let between = DiffOptions::new(&old, &new).run(&means)?;
    /// assert_eq!(between.summary.count(Class::Added), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a manifest cannot be read, is cut short or altered; if their digests are of two
    /// algorithms; if it was cancelled.
    pub fn run(&self, means: &Means<'_>) -> Result<Verification, Error> {
        collected(|each| self.run_each(means, each))
    }

    /// Compares as [`run`](DiffOptions::run) does, and calls `each` with every change, as
    /// [a verification](VerifyOptions::run_each) does.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(Change),
    ) -> Result<Verification, Error> {
        let cancel = means.cancelled_by();
        let (old, new) = (self.old.clone(), self.new.clone());
        let (old, new) = (old.cancelled_by(cancel), new.cancelled_by(cancel));
        let what = DiffOptions {
            old: &old,
            new: &new,
            ..*self
        };
        let diffed = passed_on(each, |sink| {
            let counts = ComparedEntries::default();
            means.run(
                || counts.now(),
                || {
                    let diffed = diff_counted(&what, &counts, sink)?;
                    match cancel.is_cancelled() {
                        true => Err(Error::cancelled()),
                        false => Ok(diffed),
                    }
                },
            )
        })?;
        Ok(Verification {
            changes: Vec::new(),
            summary: diffed.summary,
            warnings: in_words(&diffed.problems),
            is_written: false,
            refused: None,
        })
    }
}

/// Returns the result of `job` with all its changes in it.
fn collected(
    job: impl FnOnce(&mut dyn FnMut(Change)) -> Result<Verification, Error>,
) -> Result<Verification, Error> {
    let mut changes = Vec::new();
    let done = job(&mut |change| changes.push(change))?;
    Ok(Verification { changes, ..done })
}

/// Does `job`, whose changes go to `each`.
fn passed_on<T>(
    each: impl FnMut(Change),
    job: impl FnOnce(&mut Sink<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut each = Guarded::new(each);
    let done = job(&mut |change: &Change| {
        each.call(change.clone());
        Ok(())
    });
    each.end();
    done
}

/// Returns the problems that were skipped in a damaged manifest, in words.
fn in_words(problems: &[PathError]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// Runs `work` with the means of a caller.
///
/// # Errors
/// If `work` fails, or it was cancelled.
pub fn working<T>(
    means: &Means<'_>,
    work: impl FnOnce(&Work<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let progress = HashProgress::default();
    let [files, bytes] = [AtomicU64::new(0), AtomicU64::new(0)];
    let now = || {
        Progress::new(
            [progress.files.load(Relaxed), files.load(Relaxed)],
            [progress.bytes.load(Relaxed), bytes.load(Relaxed)],
        )
    };
    let reading = |job: Job| {
        files.store(job.files, Relaxed);
        bytes.store(job.bytes.unwrap_or(0), Relaxed);
        let workers = means.workers();
        Ok(Reading::new(workers.usual())
            .start(means.start())
            .read(ReadOptions::default().waiting(workers.most())))
    };
    means.run(now, || {
        let cancel = means.cancelled_by();
        let with = Work::new(means.workers(), &reading, cancel, &progress);
        work(&with.shows_bytes(means.reports()))
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use bc_digest::Algorithm;
    use bc_testkit::TestTree;
    use bc_walk::job::ErrorKind;

    use super::*;
    use crate::{ChangeLimit, CreateOptions, ManifestFile};

    /// A callback hears what the list would have; its panic keeps no manifest from being written.
    #[test]
    fn changes_go_to_a_callback() {
        let t = TestTree::new();
        t.write("d/a", "a").write("d/b", "b");
        let (d, m, old, means) = (t.join("d"), t.join("m"), t.join("old"), Means::new());
        let record = CreateOptions::new(&d, Algorithm::Blake3);
        record.run_to(&m, &means).unwrap();
        std::fs::copy(&m, &old).unwrap();
        t.remove("d/a").write("d/c", "c");
        let manifest = ManifestFile::open(&m).unwrap();
        let verify = VerifyOptions::new(&d, &manifest);
        let all = verify.run(&means).unwrap();
        let mut heard = Vec::new();
        let counts = verify.run_each(&means, |change| heard.push(change));
        let counts = counts.unwrap();
        assert!(counts.changes.is_empty() && heard.len() > 2, "{heard:?}");
        assert_eq!((&heard, &counts.summary), (&all.changes, &all.summary));

        let update = UpdateOptions::new(&d, &m);
        let mut calls = 0;
        let run = AssertUnwindSafe(|| {
            update.run_each(&means, |_| {
                calls += 1;
                panic!("of a test");
            })
        });
        let panic = catch_unwind(run).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of a test");
        assert_eq!(calls, 1);
        // Who wrote it and when is in it, as in a new one.
        let header = ManifestFile::open(&m).unwrap().header().unwrap();
        assert_eq!(header.host, Origin::of_this_machine().host);
        let [old, new] = [&old, &m].map(|file| ManifestFile::open(file).unwrap());
        assert!(VerifyOptions::new(&d, &new).run(&means).unwrap().is_same());
        let mut between = Vec::new();
        let diff = DiffOptions::new(&old, &new);
        let mut last = Progress::default();
        let watched = Means::new().progress(|now| last = now);
        diff.run_each(&watched, |change| between.push(change))
            .unwrap();
        drop(watched);
        assert_eq!((last.files, last.files_total), (3, Some(3)));
        assert_eq!(between, diff.run(&means).unwrap().changes);
        assert!(between.len() > 1, "{between:?}");
    }

    /// A manifest that was left as it is does not say what the tree has.
    #[test]
    fn a_refused_update_is_not_complete() {
        let t = TestTree::new();
        t.write("d/a", "a").write("d/b", "b");
        let (d, m, means) = (t.join("d"), t.join("m"), Means::new());
        let record = CreateOptions::new(&d, Algorithm::Blake3);
        record.run_to(&m, &means).unwrap();
        t.remove("d/a");
        let update = UpdateOptions::new(&d, &m);
        let none = Some(ChangeLimit::Entries(0));
        let refused = update.max_changed(none).run(&means).unwrap();
        assert!(!refused.is_written && !refused.is_complete());
        let error = refused.complete().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete);
        let text = "1 of 3 entries were edited, removed or damaged, more than 0: the manifest was \
                    left as it is";
        assert_eq!(error.to_string(), text);
        assert!(update.run(&means).unwrap().complete().unwrap().is_written);
    }

    /// Directories have sizes, too, and nothing that is read.
    #[test]
    fn progress_ends_at_its_totals() {
        let t = TestTree::new();
        t.write("d/e/a", "content");
        let (d, m, last) = (t.join("d"), t.join("m"), Mutex::default());
        let means = Means::new().progress(|now| *last.lock().unwrap() = now);
        let whole = Progress::new([1, 1], [7, 7]);
        let record = CreateOptions::new(&d, Algorithm::Blake3);
        record.run_to(&m, &means).unwrap();
        assert_eq!(std::mem::take(&mut *last.lock().unwrap()), whole);
        let manifest = ManifestFile::open(&m).unwrap();
        VerifyOptions::new(&d, &manifest).run(&means).unwrap();
        assert_eq!(std::mem::take(&mut *last.lock().unwrap()), whole);
        // Two records have entries to compare, of which the newer one knows the number.
        DiffOptions::new(&manifest, &manifest).run(&means).unwrap();
        assert_eq!(*last.lock().unwrap(), Progress::new([3, 3], [0, 0]));
    }
}
