//! Choice of the files that belong to a job.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_walk::{FileSystems, Globs, Hidden, IgnoreFiles, Metadata, Symlinks, WalkOptions};

use super::error::Error;

/// Choice of the files that belong to a job. By default all regular files do, hidden ones too, and
/// no symbolic link below the given paths is followed.
///
/// Patterns are those of a shell. Without `/` they match names: `*.jpg`. With `/` they match the
/// path below the root, where `*` stops at a slash and `**` does not: `/build`, `src/**/*.rs`. With a
/// slash at the end they match directories only: `target/`. Case counts: `*.[jJ][pP][gG]` matches
/// the names that cameras give, too.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # for name in ["a.jpg", "b.txt", ".c.jpg"] { std::fs::write(dir.path().join(name), name)?; }
/// # let dir = dir.path();
/// use bit_crafts::Filter;
///
/// let pictures = Filter::new().include("*.jpg").hidden(false).min_size(1);
/// let walked = bit_crafts::walk([dir]).filter(pictures).run()?;
/// assert_eq!(walked.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub(crate) include: Vec<Vec<u8>>,
    pub(crate) exclude: Vec<Vec<u8>>,
    pub(crate) options: WalkOptions,
}

impl Filter {
    /// Returns the default filter, by which all regular files belong.
    pub fn new() -> Filter {
        Filter::default()
    }

    /// Chooses only files that match this pattern, or another one that is included. A slash at its
    /// start stands for the given path, not for the root of the file system: an absolute path
    /// matches nothing.
    #[must_use]
    pub fn include(mut self, pattern: impl AsRef<OsStr>) -> Filter {
        self.include.push(pattern.as_ref().as_bytes().to_vec());
        self
    }

    /// Leaves out files that match this pattern, and all contents of a directory that does.
    #[must_use]
    pub fn exclude(mut self, pattern: impl AsRef<OsStr>) -> Filter {
        self.exclude.push(pattern.as_ref().as_bytes().to_vec());
        self
    }

    /// Includes names that start with a dot, or leaves them out.
    #[must_use]
    pub fn hidden(mut self, belong: bool) -> Filter {
        self.options.hidden = match belong {
            true => Hidden::Include,
            false => Hidden::Skip,
        };
        self
    }

    /// Chooses only files of at least so many bytes.
    #[must_use]
    pub fn min_size(mut self, bytes: u64) -> Filter {
        self.options.min_size = bytes;
        self
    }

    /// Chooses only files of at most so many bytes.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Filter {
        self.options.max_size = Some(bytes);
        self
    }

    /// Limits the depth below the given paths: 1 is an entry directly in one of them. With 0 a
    /// directory that is given has no files that belong.
    #[must_use]
    pub fn max_depth(mut self, levels: u32) -> Filter {
        self.options.max_depth = Some(levels);
        self
    }

    /// Follows symbolic links below the given paths, or skips them.
    #[must_use]
    pub fn follow_symlinks(mut self, follow: bool) -> Filter {
        self.options.symlinks = match follow {
            true => Symlinks::Follow,
            false => Symlinks::Skip,
        };
        self
    }

    /// Stays on the file systems of the given paths, or crosses into others.
    #[must_use]
    pub fn one_file_system(mut self, stay: bool) -> Filter {
        self.options.file_systems = match stay {
            true => FileSystems::One,
            false => FileSystems::Cross,
        };
        self
    }

    /// Leaves out files that `.gitignore` and `.ignore` files list, or ignores those lists.
    #[must_use]
    pub fn ignore_files(mut self, honour: bool) -> Filter {
        self.options.ignore_files = match honour {
            true => IgnoreFiles::Honour,
            false => IgnoreFiles::Off,
        };
        self
    }

    /// Returns true if this filter may leave out a file.
    pub(crate) fn leaves_out(&self) -> bool {
        let options = &self.options;
        !self.include.is_empty()
            || !self.exclude.is_empty()
            || options.hidden == Hidden::Skip
            || options.file_systems == FileSystems::One
            || options.ignore_files == IgnoreFiles::Honour
            || options.max_depth.is_some()
            || options.min_size > 0
            || options.max_size.is_some()
    }

    /// Converts the filter to options of a walk that reads this much metadata; fails for a pattern
    /// that is wrong, or sizes that no file can have.
    pub(crate) fn to_walk(&self, metadata: Metadata) -> Result<WalkOptions, Error> {
        let options = &self.options;
        if let Some(most) = options.max_size.filter(|most| *most < options.min_size) {
            return Err(Error::usage(format!(
                "files of at least {} and at most {most} bytes: none can be both",
                options.min_size
            )));
        }
        let globs = |patterns: &[Vec<u8>]| {
            Globs::new(patterns).map_err(|error| Error::usage(error.to_string()))
        };
        let mut walk = options.clone();
        walk.include = globs(&self.include)?;
        walk.exclude = globs(&self.exclude)?;
        walk.metadata = metadata;
        Ok(walk)
    }
}

/// Gives a job with a field `filter` the method that sets it.
macro_rules! filters {
    ($job:ident) => {
        impl<'a> $job<'a> {
            /// Looks only at files that belong. A second filter takes the place of the first.
            pub fn filter(mut self, filter: crate::facade::filter::Filter) -> Self {
                self.filter = filter;
                self
            }
        }
    };
}

pub(crate) use filters;
