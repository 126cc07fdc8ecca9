//! Jobs as callers of the library run them: their means, their errors, and results that say if
//! anything is missing.

mod error;
mod guarded;
mod means;

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use error::Partial;
pub use error::{Error, ErrorKind, Setting};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use guarded::Guarded;
pub use means::{Means, Progress};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bc_fs::PathError;

use crate::{Listing, WalkControls, WalkOptions, walk_with};

impl WalkOptions {
    /// Lists the files at and below these paths, in bytewise order of their paths, with these means.
    /// Progress counts entries as they are found.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # for name in ["a.rs", "b.o"] { std::fs::write(dir.path().join(name), name)?; }
    /// # let dir = dir.path();
    /// use bc_walk::job::Means;
    /// use bc_walk::{Globs, WalkOptions};
    ///
    /// let options = WalkOptions::default().exclude(Globs::new(&["*.o"])?);
    /// let listing = options.run([dir], &Means::new())?;
    /// assert_eq!(listing.paths().collect::<Vec<_>>(), [dir.join("a.rs")]);
    /// assert!(listing.errors().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no path, one is not there, or no file can have the sizes and times that are asked for; if
    /// it was cancelled; if a worker panicked. Of a single file never: see [`Listing::errors`].
    pub fn run<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        means: &Means<'_>,
    ) -> Result<Listing, Error> {
        let paths = owned(paths);
        let found = AtomicU64::new(0);
        let now = || Progress {
            files: found.load(Relaxed),
            ..Progress::default()
        };
        means.run(now, || {
            let listing = self.list_counted(&paths, means, Some(&found))?;
            found.store(listing.len() as u64, Relaxed);
            let cancelled = listing.is_cancelled();
            unless_cancelled(listing, cancelled)
        })
    }

    /// Lists as [`run`](WalkOptions::run) does, as the first part of a larger job: progress is not
    /// reported, and a listing that was cancelled [says so](Listing::is_cancelled).
    ///
    /// # Errors
    /// As of `run`, except after a cancellation.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn list(&self, paths: &[PathBuf], means: &Means<'_>) -> Result<Listing, Error> {
        self.list_counted(paths, means, None)
    }

    fn list_counted(
        &self,
        paths: &[PathBuf],
        means: &Means<'_>,
        found: Option<&AtomicU64>,
    ) -> Result<Listing, Error> {
        self.check()?;
        if paths.is_empty() {
            // An empty answer would look like a result.
            return Err(Error::usage("no path to look through"));
        }
        require(paths)?;
        let mut controls = WalkControls::from(means.cancelled_by());
        if let Some(found) = found.filter(|_| means.reports()) {
            controls = controls.counting(found);
        }
        Ok(walk_with(paths, self, || means.workers(), controls)?)
    }

    /// Checks that a file can have the sizes that are asked for.
    ///
    /// # Errors
    /// Of the kind [`Usage`](ErrorKind::Usage), if none can.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        match self.max_size {
            Some(most) if most < self.min_size => Err(Error::usage(format!(
                "files of at least {} and at most {most} bytes: none can be both",
                self.min_size
            ))),
            _ => match (self.newer, self.older) {
                (Some(newer), Some(older)) if newer >= older => Err(Error::usage(format!(
                    "files modified after {newer} and before {older} nanoseconds since 1970: none can be both"
                ))),
                _ => Ok(()),
            },
        }
    }
}

impl Listing {
    /// Returns the paths of all entries, in their order. They are stored compactly: each is put
    /// together when it is asked for.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = PathBuf> + '_ {
        self.ids().map(|entry| path_of(&self.path(entry)))
    }
}

/// Collects the paths that the caller named.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn owned<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Vec<PathBuf> {
    let paths = paths.into_iter();
    paths.map(|path| path.as_ref().to_owned()).collect()
}

/// Refuses paths that do not exist: an empty answer would look like a result.
///
/// # Errors
/// For the first path that is not there.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn require<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Error> {
    for path in paths {
        std::fs::metadata(path).map_err(|error| Error::io(path, "stat", &error))?;
    }
    Ok(())
}

/// Returns these bytes as a path.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Returns the result of a job, unless that was cancelled: then it returns an error that contains
/// the result, so that no caller takes half of it for the whole by accident.
///
/// # Errors
/// If it was cancelled.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn unless_cancelled<T: Partial>(result: T, cancelled: bool) -> Result<T, Error> {
    match cancelled {
        false => Ok(result),
        true => Err(Error::cancelled_with(result)),
    }
}

/// Returns an error that says why a result is not whole, if it is not.
///
/// Internal to bit-crafts.
#[doc(hidden)]
pub fn missing(errors: &[PathError], cancelled: bool) -> Option<Error> {
    let first = errors.first().cloned();
    let message = match (&first, errors.len()) {
        (None, _) if cancelled => "cancelled before all was done".to_owned(),
        (None, _) => return None,
        (Some(first), 1) => format!("not all could be looked at: {first}"),
        (Some(first), count) => {
            format!(
                "not all could be looked at: {first}, and {} more",
                count - 1
            )
        }
    };
    Some(Error::incomplete(message, first))
}

/// Gives a result with `errors` the methods that say if it is whole. A field that makes it
/// incomplete besides them is named after it: `cancelled`, where such a result comes out of an
/// error.
///
/// Internal to bit-crafts.
#[doc(hidden)]
#[macro_export]
macro_rules! says_what_is_missing {
    ($result:ident $(, $cancelled:ident)?) => {
        impl $result {
            /// Returns true if nothing is missing: everything could be read.
            pub fn is_complete(&self) -> bool {
                self.errors.is_empty() $(&& !self.$cancelled)?
            }

            /// Returns the result if nothing is missing.
            ///
            /// # Errors
            /// Of the kind [`Incomplete`](bc_walk::job::ErrorKind::Incomplete), with the first thing
            /// that is missing.
            pub fn complete(self) -> Result<Self, $crate::job::Error> {
                let cancelled = [false $(, self.$cancelled)?].contains(&true);
                match $crate::job::missing(&self.errors, cancelled) {
                    None => Ok(self),
                    Some(error) => Err(error),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::TestTree;

    /// Not only at the end: what is found of a directory with many entries counts at once, too.
    #[test]
    fn entries_are_counted_as_they_are_found() {
        let tree = TestTree::new();
        for n in 0..5000 {
            tree.write(format!("wide/{n}"), "");
        }
        tree.write("a/b/c", "").write("a/d", "");
        let found = AtomicU64::new(0);
        let means = Means::new().progress(|_| ());
        let paths = [tree.path().to_owned()];
        let options = WalkOptions::default();
        let listing = options.list_counted(&paths, &means, Some(&found)).unwrap();
        assert_eq!(listing.len(), 5002);
        assert_eq!(found.into_inner(), 5002);
    }
}
