//! Moving as a job: with the means of a caller of the library, and failures in the result.

use bc_fs::PathError;
use bc_walk::job::{Error, Means, missing, unless_cancelled};

use super::{MoveOptions, Moved, move_files};
use crate::event::{CopyProgress, Event};
use crate::run::heard;

bc_fs::setters! {
    MoveOptions:
    allow_lossy: bool,
}

impl MoveOptions {
    /// Moves with these means: renames within a file system; across two it copies, reads the copies
    /// back, forces them to the disk, and only then removes the sources.
    ///
    /// No source is removed whose copy is not proven, or that was changed meanwhile; it is among the
    /// errors then. Removals need a journal, and so the copy's
    /// [directory of journals](crate::CopyOptions::state): without one nothing is moved to another
    /// file system, nor where [paths](crate::CopyOptions::paths) or filters choose. A move that was
    /// interrupted goes on by the same call with the same directory; sources that it has moved by
    /// then need not be there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (inbox, archive) = (dir.path().join("inbox"), dir.path().join("archive"));
    /// # std::fs::create_dir(&inbox)?;
    /// # std::fs::create_dir(&archive)?;
    /// # std::fs::write(inbox.join("a.jpg"), "picture")?;
    /// use bc_copy::{CopyOptions, MoveOptions};
    /// use bc_walk::job::Means;
    ///
    /// let photos = MoveOptions::new(CopyOptions::new([inbox.join("a.jpg")], &archive));
    /// let moved = photos.run(&Means::new())?.complete()?;
    /// assert_eq!((moved.counts.moved, moved.counts.renamed), (1, 1));
    /// assert!(archive.join("a.jpg").exists() && !inbox.join("a.jpg").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Before anything is changed, if no source is there, or the directory that the destination is
    /// to be in; if source and destination make no sense together; if there is no journal where one
    /// is needed, or metadata would be lost that copies do not take over; if another run of the same
    /// move is at work. If what was copied cannot be forced to the disk: no source is removed then.
    /// If it was cancelled, which leaves every file complete under at least one of its names. If a
    /// worker panicked. Failures of single files are in the result.
    pub fn run(&self, means: &Means<'_>) -> Result<MoveReport, Error> {
        self.run_each(means, |_| ())
    }

    /// Moves with these means, as [`run`](MoveOptions::run) does, and calls `each` with what becomes
    /// of each source, as [a copy](crate::CopyOptions::run_each) does. What is renamed is
    /// [copied](Event::Copied) too: a directory that is renamed with everything in it is one. That a
    /// file was copied does not mean that its source is gone: one that stays is among the errors.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_each(
        &self,
        means: &Means<'_>,
        each: impl FnMut(Event<'_>) + Send,
    ) -> Result<MoveReport, Error> {
        let options = MoveOptions {
            copy: self.copy.prepared(means)?,
            ..*self
        };
        if options.copy.lists_nothing() {
            return Ok(MoveReport::default());
        }
        let (progress, cancel) = (CopyProgress::default(), means.cancelled_by());
        let (heard, moved) = heard(each, |hear| {
            means.run(
                || progress.now(),
                || {
                    let moved = move_files(&options, cancel, &progress, hear)?;
                    // Sources that it had not come to are not counted.
                    Ok((moved, cancel.is_cancelled()))
                },
            )
        });
        let (counts, cancelled) = moved?;
        let report = MoveReport {
            counts,
            errors: heard.errors,
            lacking: heard.lacking,
            warnings: heard.warnings,
            cancelled,
        };
        unless_cancelled(report, cancelled)
    }
}

/// Result of a [move](MoveOptions::run).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct MoveReport {
    /// Counts.
    pub counts: Moved,
    /// Failures to copy a file, and sources that stay although they were to go, each with the reason.
    pub errors: Vec<PathError>,
    /// Entries that were copied without some metadata of their source, such as the owner.
    pub lacking: Vec<PathError>,
    /// Warnings about the move as a whole.
    pub warnings: Vec<String>,
    /// True if the move was cancelled before all was done: only in the result
    /// [inside an error](Error::partial).
    pub cancelled: bool,
}

impl MoveReport {
    /// Returns true if everything was moved.
    pub fn is_complete(&self) -> bool {
        let counts = &self.counts;
        self.errors.is_empty() && !self.cancelled && counts.failed + counts.kept + counts.left == 0
    }

    /// Returns the report if everything was moved.
    ///
    /// # Errors
    /// Of the kind [`Incomplete`](bc_walk::job::ErrorKind::Incomplete), with the first thing that was
    /// not.
    pub fn complete(self) -> Result<MoveReport, Error> {
        if let Some(error) = missing(&self.errors, self.cancelled) {
            return Err(error);
        }
        if self.is_complete() {
            return Ok(self);
        }
        let counts = &self.counts;
        let why = counts.copied.stopped.as_deref();
        let why = why.unwrap_or("not everything was moved");
        let count = counts.failed + counts.kept + counts.left;
        Err(Error::incomplete(
            format!("{why}: {count} entries stay"),
            None,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bc_pool::Cancel;
    use bc_testkit::TestTree;
    use bc_walk::job::ErrorKind;

    use super::*;
    use crate::CopyOptions;

    fn photos(t: &TestTree, source: &str) -> CopyOptions {
        CopyOptions::new([t.join(source)], t.join("to")).state(Some(t.join("state")))
    }

    /// Renaming the whole directory would take what is not on the list along.
    #[test]
    fn a_list_of_paths_moves_nothing_else() {
        let t = TestTree::new();
        t.write("card/a", "a").write("card/b", "b").dir("to");
        let listed = |paths: &[&str]| {
            let listed = photos(&t, "card").paths(paths).unwrap();
            MoveOptions::new(listed).run(&Means::new()).unwrap()
        };
        assert_eq!(listed(&[]), MoveReport::default());
        let moved = listed(&["a"]);
        assert!(moved.errors.is_empty(), "{moved:?}");
        assert_eq!(t.read("to/a"), b"a");
        assert!(!t.exists("card/a") && t.exists("card/b") && !t.exists("to/b"));
    }

    #[test]
    fn each_source_is_heard_of_and_one_that_stays_is_missing() {
        let t = TestTree::new();
        t.write("card/a", "new").write("to/card/a", "taken");
        t.write("other/b", "b");
        let sources = [t.join("card"), t.join("other")];
        let copy = CopyOptions::new(sources, t.join("to")).state(Some(t.join("state")));
        let mut heard = Vec::new();
        let moved = MoveOptions::new(copy).run_each(&Means::new(), |event| {
            if let Event::Copied(path) = event {
                heard.push(bc_walk::job::path_of(path));
            }
        });
        let moved = moved.unwrap();
        assert_eq!(heard, [t.join("to/other")]);
        assert_eq!((moved.counts.renamed, moved.counts.failed), (1, 1));
        assert_eq!(moved.errors[0].path(), t.join("to/card/a"));
        assert_eq!(moved.complete().unwrap_err().kind(), ErrorKind::Incomplete);
        assert_eq!(t.read("card/a"), b"new");
    }

    #[test]
    fn nothing_there_and_a_cancellation_are_errors() {
        let t = TestTree::new();
        t.write("card/a", "a").dir("to");
        let none = MoveOptions::new(photos(&t, "none")).run(&Means::new());
        let none = none.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
        assert_eq!(none.path(), Some(Path::new(&t.join("none"))));
        let cancel = Cancel::new();
        cancel.stop();
        let stopped = MoveOptions::new(photos(&t, "card")).run(&Means::new().cancel(&cancel));
        let stopped = stopped.unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Cancelled, "{stopped}");
        assert!(stopped.partial::<MoveReport>().unwrap().cancelled);
        assert!(t.exists("card/a") && !t.exists("to/card"));
    }
}
