//! Ownership of files that direct a run: only a file that no other user can have written is
//! believed, and only while no other process writes it. The open file is examined, never its name.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

/// Flags for opening a file that may be no journal at all: a FIFO or a terminal must not hold the
/// run up; they are refused afterwards.
pub const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Reason why a file is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotOurs {
    /// A directory, a device, a pipe.
    NotRegular,
    /// Owned by another user.
    Owner {
        /// Its owner.
        theirs: u32,
        /// The user of this process, who would act on it.
        own: u32,
    },
    /// Writable by others, with the mode.
    Writable(u32),
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOurs::NotRegular => write!(f, "not a regular file"),
            NotOurs::Owner { theirs, own } => {
                write!(
                    f,
                    "belongs to user {theirs}, not to user {own} who would act on it"
                )
            }
            NotOurs::Writable(mode) => {
                write!(f, "others may write it (mode {mode:o}); chmod go-w")
            }
        }
    }
}

/// Refuses a file that is not regular, belongs to another user or may be written by others. (The
/// group's bits are the mask of an access control list.)
///
/// # Errors
/// Errors of `fstat`.
pub fn check(file: &File) -> io::Result<Result<(), NotOurs>> {
    let meta = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    let mode = meta.mode() & 0o7777;
    Ok(if !meta.is_file() {
        Err(NotOurs::NotRegular)
    } else if meta.uid() != own {
        let theirs = meta.uid();
        Err(NotOurs::Owner { theirs, own })
    } else if mode & 0o022 != 0 {
        Err(NotOurs::Writable(mode))
    } else {
        Ok(())
    })
}
