//! Abilities that a file system lacks for a step, reported once for all of its files.

use std::fmt;

/// A file system and the ability that it lacks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Unable {
    /// Its device number.
    pub dev: u64,
    /// Name of the file system for messages.
    pub system: &'static str,
    /// Missing ability.
    pub lack: Lack,
}

/// Ability that a file system lacks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Lack {
    /// Shared blocks.
    Reflinks,
    /// An answer to whether it has them, other than by trying.
    KnownReflinks,
    /// More than one name for a file.
    Links,
    /// The file's inode number for all of its names.
    LinkNumbers,
    /// An answer to whether it gives names that, other than by trying.
    KnownLinks,
    /// An answer to whether two of its files are one, other than by trying.
    KnownFiles,
    /// Symbolic links.
    Symlinks,
    /// Symbolic links that lead out of their directory.
    SymlinksUp,
    /// An answer to whether it has them, other than by trying.
    KnownSymlinks,
    /// Being writable, here.
    Writing,
}

impl Unable {
    /// A key for counts.
    pub(crate) fn reason(self) -> &'static str {
        match self.lack {
            Lack::Reflinks | Lack::Links | Lack::LinkNumbers => "not supported by the file system",
            Lack::Symlinks | Lack::SymlinksUp => "not supported by the file system",
            Lack::KnownReflinks | Lack::KnownLinks | Lack::KnownFiles | Lack::KnownSymlinks => {
                "not known before it is tried"
            }
            Lack::Writing => "read-only file system",
        }
    }
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = self.system;
        match self.lack {
            Lack::Reflinks => write!(f, "{system} cannot share blocks"),
            Lack::KnownReflinks => {
                write!(
                    f,
                    "whether {system} can share blocks shows when it is tried"
                )
            }
            Lack::Links => write!(f, "{system} has no hard links"),
            Lack::LinkNumbers => {
                write!(f, "{system} numbers the names of one file differently")
            }
            Lack::KnownLinks => {
                write!(
                    f,
                    "whether hard links work on {system} shows when it is tried"
                )
            }
            Lack::KnownFiles => write!(
                f,
                "whether this is another name of the kept file shows on {system} when it is tried"
            ),
            Lack::Symlinks => write!(f, "{system} has no symbolic links"),
            Lack::SymlinksUp => write!(
                f,
                "{system} follows no symbolic links out of their directory"
            ),
            Lack::KnownSymlinks => write!(
                f,
                "whether symbolic links work on {system} shows when it is tried"
            ),
            Lack::Writing => write!(f, "{system} is mounted read-only"),
        }?;
        f.write_str("; said once for all files there")
    }
}
