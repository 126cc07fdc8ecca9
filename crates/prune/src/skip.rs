//! Reasons why a step was not done, in words and as a key for counts.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use bc_find::views::ViewError;
use bc_fs::call::FailedCall;
use bc_fs::shortage::ErrorNumber;
use bc_fs::{Escaped, PathError};
use rustix::io::Errno;

/// Reason why a step was not done.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Skip {
    /// The name is another name of the kept file already.
    AlreadyLinked,
    /// The blocks are shared already.
    AlreadyShared,
    /// There are no blocks that could be shared and given back, for this reason.
    NotShareable(&'static str),
    /// One of the two is stored with checksums and copied when it is written to, the other is not:
    /// they can share no blocks.
    StoredOtherwise,
    /// A link would take the space of the file, or of the kept one, if they lie in a lower layer,
    /// and the file system does not report that.
    UnknownLayer,
    /// The kept file lies in a lower layer and would have to be copied to be linked to; this file
    /// is kept as well, and the next ones are linked to it.
    KeeperBelow,
    /// This directory entry was reached before under another path.
    SameName,
    /// It is in the directory that files are moved to.
    InDestination,
    /// It is in a trash, and other names of its content are to go away.
    InTrash,
    /// It is a reference's, although it was chosen to go.
    OfReference,
    /// It lies at or below a reference by now, or the destination does.
    Protected,
    /// The kept file has as many names as it can; this file is kept as well,
    /// and the next ones are linked to it.
    NewKeeper,
    /// The name is gone.
    Gone,
    /// The file that is to be given its name back is gone, or the directory of that name: this
    /// path.
    Missing(Vec<u8>),
    /// Another file, or another state of it, than was scanned.
    Changed,
    /// The kept file has changed.
    KeptFileChanged,
    /// A link to the kept file turned out to be another file.
    LinkDiffers,
    /// Another process has it open for writing.
    OpenForWriting,
    /// Another process has the kept file open for writing.
    KeeperOpenForWriting,
    /// It is the kept file itself, seen under another mount.
    SameFile,
    /// It has no name any more, or its file system does not count names: then the file goes when it
    /// is closed.
    Deleted,
    /// Its name is that of a file that was deleted while it is open, or of one that a program of
    /// ours has not finished: it goes by itself.
    Temporary,
    /// Not a regular file any more.
    NotRegular,
    /// Something is mounted under its name, as a file that was bind-mounted is.
    MountPoint,
    /// It is seen through a bind mount, or the kept file is, and no relative link leads to that both
    /// from where it is seen and from where it is.
    BindMount,
    /// The bytes differ, whatever the digests say.
    ContentDiffers,
    /// The files differ in this, and the target's would be lost.
    MetadataDiffers(&'static str),
    /// A user who can read the one need not have the key to read the other.
    EncryptionDiffers,
    /// A copy could not be given this, and it would be lost.
    MetadataLost(String),
    /// Deleting is unsafe where the system cannot tell files apart.
    UnstableInodes,
    /// Deleting is unsafe where two devices may show one file system, and the files have one number.
    SameVolume,
    /// Something has the destination's name, and is not the copy that the move
    /// makes: because of this, where that was asked.
    DestinationExists(Option<&'static str>),
    /// There is a file of ours that could not be removed; with its path.
    Left {
        /// The temporary name, which holds nothing that is not elsewhere too.
        path: Vec<u8>,
        /// Reason why it is still there, as an error number.
        errno: i32,
    },
    /// It is unknown if it is a reference's, or the destination is: a view of another file system, or
    /// a union, shows the same names, and not all that would tell.
    ReferenceUndecided,
    /// Another process put something else under the name meanwhile; it was
    /// saved under this path.
    Displaced(Vec<u8>),
    /// The system refused the call that would have given it its name back, as disks do that are
    /// unplugged.
    NotPutBack {
        /// The temporary name that it may have.
        path: Vec<u8>,
        /// The call.
        op: &'static str,
        /// Reason of the system, as an error number.
        errno: i32,
    },
    /// It was not moved, and its copy cannot be taken back: another process changed one of the two.
    CopyStays {
        /// Path of the copy.
        path: Vec<u8>,
        /// Reason why the file was not moved.
        why: Box<Skip>,
    },
    /// The copy that a killed move made, of a file whose content may be nowhere else by now.
    LastCopy,
    /// It has the name of a copy that a killed run was making, and what it holds is not known to be
    /// in another file.
    UnknownStage,
    /// It has the name of a file that a killed run set aside, and is not known to be that run's: it
    /// may be what another process had put in the file's place.
    UnknownLeftover,
    /// Another process changed or removed the copy that was to replace it.
    CopyChanged,
    /// A leftover of a killed run may be the file of this path.
    Rest {
        /// The temporary name.
        path: Vec<u8>,
        /// Reason why it was left alone.
        why: Box<Skip>,
    },
    /// It is the original of a move that was killed, and this shows no copy of it to be in its
    /// place.
    Original,
    /// A directory is a part of its file system that is made as a whole: undo could not.
    Subvolume,
    /// Directories are moved within one file system alone.
    OtherFileSystem,
    /// The trash of its file system cannot be used, for this reason.
    NoTrash(&'static str),
    /// The file that is to be given its name back is no longer in the trash, where it had this path.
    TrashEmptied(Vec<u8>),
    /// The file system that the name was on is not mounted: another one is in its place.
    OtherVolume,
    /// A file that was to be restored has its content, but lacks this property.
    Incomplete(&'static str),
    /// A directory is not removed while it holds this.
    Holds(&'static str),
    /// A directory holds this path, which was not there when it was searched.
    HasMore(Vec<u8>),
    /// A directory stays because another one that is equal to it was removed.
    Stays,
    /// A directory holds this one, which was chosen to stay.
    HoldsChosen(Vec<u8>),
    /// The directory that was chosen to stay is not there, so none of its copies goes.
    NoneChosen,
    /// Filters left out so many entries of directories that are otherwise equal.
    Filtered(u64),
    /// Something in a directory is why that was left as it is.
    In {
        /// Path of the entry.
        path: Vec<u8>,
        /// Reason found with the entry.
        why: Box<Skip>,
    },
    /// A part of a directory went, and then something was in the way.
    Stopped {
        /// Reason for the stop.
        why: Box<Skip>,
        /// Files that went.
        gone: u64,
        /// Bytes of disk space that these freed.
        freed: u64,
    },
    /// A temporary name that another run may be using.
    InUse,
    /// Another program has locked it (`flock`), as a run does with a file whose name it is about to
    /// change.
    Locked,
    /// The run was cancelled.
    Cancelled,
    /// The file system cannot do this with any of its files.
    Unable(Unable),
    /// The journal could not be written; nothing is done without it.
    Journal {
        /// The journal.
        path: Vec<u8>,
        /// The operation.
        op: &'static str,
        /// The error number.
        errno: i32,
    },
    /// The system would refuse it.
    Denied {
        /// The operation.
        op: &'static str,
        /// The error number.
        errno: i32,
        /// Rule that forbids it.
        why: &'static str,
    },
    /// The system refused.
    System {
        /// The operation.
        op: &'static str,
        /// The error number.
        errno: i32,
    },
}

impl Skip {
    /// Failure to open a directory behind a link that leads to nothing.
    pub(super) fn lost() -> Skip {
        Skip::System {
            op: "open directory",
            errno: Errno::NOENT.raw_os_error(),
        }
    }

    /// Converts a reason about a file into the same one about the kept file.
    pub(crate) fn of_kept_file(skip: Skip) -> Skip {
        match skip {
            Skip::Changed | Skip::Gone | Skip::NotRegular => Skip::KeptFileChanged,
            Skip::OpenForWriting => Skip::KeeperOpenForWriting,
            other => other,
        }
    }

    /// Attributes the reason to this path in a directory.
    pub(crate) fn of(self, path: &[u8]) -> Skip {
        match self {
            Skip::Cancelled | Skip::In { .. } | Skip::HasMore(_) | Skip::Journal { .. } => self,
            why => Skip::In {
                path: path.to_vec(),
                why: Box::new(why),
            },
        }
    }

    /// Returns true if the step took effect all the same.
    pub(crate) fn took_effect(&self) -> bool {
        matches!(
            self,
            Skip::Left { .. }
                | Skip::Displaced(_)
                | Skip::NotPutBack { .. }
                | Skip::CopyStays { .. }
        )
    }

    /// Returns true if this makes the exit code 1. A file that is as requested already does not.
    pub fn is_error(&self) -> bool {
        !matches!(
            self,
            Skip::AlreadyLinked
                | Skip::AlreadyShared
                | Skip::NotShareable(_)
                | Skip::SameName
                | Skip::InDestination
                | Skip::InTrash
                | Skip::OfReference
                | Skip::NewKeeper
                | Skip::KeeperBelow
                | Skip::Temporary
                | Skip::InUse
                | Skip::UnknownStage
                | Skip::UnknownLeftover
                | Skip::Filtered(_)
                | Skip::Stays
                | Skip::HoldsChosen(_)
        )
    }

    /// Returns the failed system call and its `errno`, if that is the reason.
    pub fn system(&self) -> Option<(&'static str, i32)> {
        match self {
            Skip::System { op, errno }
            | Skip::Denied { op, errno, .. }
            | Skip::NotPutBack { op, errno, .. } => Some((op, *errno)),
            Skip::Left { errno, .. } => Some(("unlink", *errno)),
            Skip::Journal { errno, .. } => Some(("write journal", *errno)),
            Skip::Gone => Some(("open", Errno::NOENT.raw_os_error())),
            Skip::CopyStays { why, .. }
            | Skip::Rest { why, .. }
            | Skip::In { why, .. }
            | Skip::Stopped { why, .. } => why.system(),
            _ => None,
        }
    }

    /// Returns the reason as a failure of `path`; `step` is the operation unless the system refused
    /// one.
    pub fn failure(&self, path: &[u8], step: &str) -> PathError {
        let path = OsStr::from_bytes(path);
        match self.system() {
            Some((operation, errno)) => {
                PathError::new(path, operation, io::Error::from_raw_os_error(errno))
            }
            None => PathError::with_reason(path, step, None, self.to_string()),
        }
    }

    /// The reason in two or three words, the same for all files: a key for counts.
    pub fn reason(&self) -> &'static str {
        match self {
            Skip::AlreadyLinked => "already linked",
            Skip::AlreadyShared => "already shared",
            Skip::NotShareable(_) => "nothing to share",
            Skip::StoredOtherwise => "stored otherwise",
            Skip::UnknownLayer => "lower layer or not is unknown",
            Skip::KeeperBelow => "kept file in a lower layer",
            Skip::SameName => "same name twice",
            Skip::InDestination => "already moved",
            Skip::InTrash => "in a trash",
            Skip::OfReference => "of a reference",
            Skip::Protected => "below a reference",
            Skip::NewKeeper => "too many links",
            Skip::Gone | Skip::Missing(_) => "gone",
            Skip::TrashEmptied(_) => "trash emptied",
            Skip::NoTrash(_) => "no trash",
            Skip::Changed | Skip::Displaced(_) => "changed since the scan",
            Skip::NotPutBack { .. } => "not put back",
            Skip::KeptFileChanged | Skip::LinkDiffers => "kept file changed",
            Skip::OpenForWriting | Skip::KeeperOpenForWriting => "open for writing",
            Skip::SameFile | Skip::SameVolume => "same file under another mount",
            Skip::Deleted => "deleted already",
            Skip::Temporary => "temporary",
            Skip::NotRegular => "not a regular file",
            Skip::MountPoint => "mount point",
            Skip::BindMount => "bind mount",
            Skip::ContentDiffers => "different content",
            Skip::MetadataDiffers(_) | Skip::Incomplete(_) => "different metadata",
            Skip::EncryptionDiffers => "different encryption",
            Skip::MetadataLost(_) => "metadata not kept",
            Skip::UnstableInodes => "unstable inode numbers",
            Skip::DestinationExists(_) => "destination exists",
            Skip::Left { .. } => "temporary file left",
            Skip::ReferenceUndecided => "reference or not is unknown",
            Skip::CopyStays { .. } => "copy left",
            Skip::LastCopy => "copy of a killed move",
            Skip::UnknownStage => "temporary of unknown content",
            Skip::UnknownLeftover => "temporary of unknown origin",
            Skip::CopyChanged => "copy changed",
            Skip::Rest { why, .. } => why.reason(),
            Skip::Original => "original of a killed move",
            Skip::InUse => "temporary of another run",
            Skip::Locked => "locked",
            Skip::Holds(_) | Skip::Subvolume => "contains entries that have to stay",
            Skip::OtherFileSystem | Skip::OtherVolume => "other file system",
            Skip::HasMore(_) => "holds something new",
            Skip::Filtered(_) => "filtered",
            Skip::Stays => "stays for another group",
            Skip::HoldsChosen(_) => "contains entries that have to stay",
            Skip::NoneChosen => "kept directory gone",
            Skip::In { why, .. } => why.reason(),
            Skip::Stopped { .. } => HALF_WAY,
            Skip::Cancelled => "cancelled",
            Skip::Unable(unable) => unable.reason(),
            Skip::Journal { .. } => "journal not writable",
            Skip::System { errno, .. } | Skip::Denied { errno, .. } => {
                match Errno::from_raw_os_error(*errno) {
                    Errno::XDEV => "other file system",
                    Errno::MLINK => "too many links",
                    Errno::PERM | Errno::ACCESS => "not permitted",
                    Errno::NOSPC | Errno::DQUOT => "no space",
                    Errno::TXTBSY | Errno::BUSY => "busy",
                    Errno::ROFS => "read-only file system",
                    Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS => {
                        "not supported"
                    }
                    _ => "system error",
                }
            }
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: i32| std::io::Error::from_raw_os_error(errno);
        match self {
            Skip::AlreadyLinked => f.write_str("already a link to the kept file"),
            Skip::AlreadyShared => f.write_str("shares its blocks already"),
            Skip::NotShareable(why) => write!(f, "nothing to share: {why}"),
            Skip::StoredOtherwise => f.write_str(
                "Btrfs shares no blocks between a file with copy-on-write and checksums and one \
                 without (chattr +C, nodatacow, nodatasum)",
            ),
            Skip::UnknownLayer => {
                f.write_str("may be in a lower layer, where a link takes space; needs force; reported once for all such files")
            }
            Skip::KeeperBelow => {
                f.write_str("the kept file may lie in a lower layer; this one is kept as well")
            }
            Skip::SameName => f.write_str("the same directory entry as one before"),
            Skip::InDestination => f.write_str("in the destination already"),
            Skip::InTrash => f.write_str("in a trash"),
            Skip::OfReference => f.write_str("a reference's, which is never changed"),
            Skip::Protected => f.write_str("it, or the destination, is below a reference"),
            Skip::NewKeeper => {
                f.write_str("the kept file has too many links; this one is kept as well")
            }
            Skip::Gone => f.write_str("no longer there"),
            Skip::Missing(path) => write!(f, "{} is no longer there", Escaped(path)),
            Skip::TrashEmptied(path) => {
                write!(f, "{} is no longer in the trash, which was emptied", Escaped(path))
            }
            Skip::NoTrash(why) => write!(f, "no trash: {why}"),
            Skip::Changed => f.write_str("changed since it was scanned"),
            Skip::KeptFileChanged => f.write_str("the kept file changed"),
            Skip::LinkDiffers => f.write_str("a link to the kept file is another file"),
            Skip::OpenForWriting => f.write_str("open for writing"),
            Skip::KeeperOpenForWriting => f.write_str("the kept file is open for writing"),
            Skip::SameFile => f.write_str("the kept file is the same file under another mount"),
            Skip::Deleted => f.write_str(
                "deleted already: its link count is 0, so it goes when it is closed",
            ),
            Skip::Temporary => f.write_str(
                "the name of a temporary file, which the file system or the program that made it removes",
            ),
            Skip::NotRegular => f.write_str("not a regular file"),
            Skip::MountPoint => f.write_str("a mount point: something else is mounted there"),
            Skip::BindMount => f.write_str(
                "seen through a bind mount: no relative link leads to the kept file both from here and without the mount",
            ),
            Skip::ContentDiffers => f.write_str("content differs from the kept file's"),
            Skip::MetadataDiffers(what) => write!(f, "{what} differs from the kept file's"),
            Skip::EncryptionDiffers => {
                f.write_str("encrypted otherwise than the kept file, or only one of them is")
            }
            Skip::MetadataLost(what) => write!(f, "the copy cannot be given its {what}"),
            Skip::UnstableInodes => {
                f.write_str("the file system has no stable inode numbers; needs force; said once for all files like it")
            }
            Skip::SameVolume => f.write_str(
                "perhaps the kept file itself: both have one inode number, and their file systems one UUID, as an image on two loop devices or a copy of a whole disk has; needs force",
            ),
            Skip::DestinationExists(None) => f.write_str("the destination exists"),
            Skip::DestinationExists(Some(what)) => write!(f, "the destination exists; {what}"),
            Skip::Left { path, errno } => write!(
                f,
                "temporary {} could not be removed: {}",
                Escaped(path),
                system(*errno)
            ),
            Skip::ReferenceUndecided => f.write_str(
                "whether a reference has it, or the destination, is not known: a view of another \
                 file system, or a union, may show it there as well",
            ),
            Skip::Displaced(path) => write!(
                f,
                "changed by another process; the previous entry is now {}",
                Escaped(path)
            ),
            Skip::NotPutBack { path, op, errno } => write!(
                f,
                "{op}: {}; it may be called {} now",
                system(*errno),
                Escaped(path)
            ),
            Skip::CopyStays { path, why } => {
                write!(f, "{why}; a copy of it is now {}", Escaped(path))
            }
            Skip::LastCopy => f.write_str(
                "the copy that a killed move made, kept because nothing else is known to have its content",
            ),
            Skip::UnknownStage => f.write_str(
                "kept because its content is not known to be in another file; remove it if you do not need it",
            ),
            Skip::UnknownLeftover => f.write_str(
                "kept because another process may have put it in the place of a file; if you need it, rename it, otherwise remove it",
            ),
            Skip::CopyChanged => {
                f.write_str("its copy was changed or removed in the meantime")
            }
            Skip::Rest { path, why } => {
                write!(f, "{why}; a killed run may have left it as {}", Escaped(path))
            }
            Skip::Original => f.write_str(ORIGINAL),
            Skip::Subvolume => f.write_str("it is a subvolume, or stands for one in a snapshot"),
            Skip::OtherFileSystem => f.write_str(
                "directories are not moved to another file system: copy it there with 'bc copy', and \
                 have the duplicate deleted then",
            ),
            Skip::OtherVolume => f.write_str("another file system is there"),
            Skip::Incomplete(what) => write!(
                f,
                "a file with its content is there, without its recorded {what}"
            ),
            Skip::Holds(what) => write!(f, "it holds {what}"),
            Skip::HasMore(path) => write!(
                f,
                "{} was not there when it was searched",
                Escaped(path)
            ),
            Skip::Stays => f.write_str("it stays: a copy of it, or of what it is in, was removed"),
            Skip::HoldsChosen(path) => write!(f, "it holds {}, which is to be kept", Escaped(path)),
            Skip::NoneChosen => f.write_str("what was chosen to be kept is no longer there"),
            Skip::Filtered(1) => {
                f.write_str("filters left out an entry, so it is not known to be equal as a whole")
            }
            Skip::Filtered(count) => write!(
                f,
                "filters left out {count} entries, so it is not known to be equal as a whole"
            ),
            Skip::In { path, why } => write!(f, "{}: {why}", Escaped(path)),
            Skip::Stopped { why, gone, .. } => write!(
                f,
                "{why}; stopped after {gone} of its files; 'bc dup undo' fills it again"
            ),
            Skip::InUse => f.write_str("may be in use by another run"),
            Skip::Locked => f.write_str("locked by another run or program"),
            Skip::Cancelled => f.write_str("cancelled"),
            Skip::Unable(unable) => unable.fmt(f),
            Skip::Journal { path, op, errno } => {
                write!(f, "journal {}: {op}: {}", Escaped(path), system(*errno))
            }
            Skip::System { op, errno } => write!(f, "{op}: {}", system(*errno)),
            Skip::Denied { op, errno, why } => write!(f, "{op}: {}; {why}", system(*errno)),
        }
    }
}

/// The [reason](Skip::reason) of directories of which a part went.
pub const HALF_WAY: &str = "stopped half-way";

/// Text about the original of a move whose run was killed.
pub const ORIGINAL: &str = "the original of a move that was killed, kept because its copy is not \
     proven to be in its place; the same prune finishes the move if it is, an undo of that run's \
     journal gives the name back";

// Internal to bit-crafts.
#[doc(hidden)]
impl From<ViewError> for Skip {
    fn from(error: ViewError) -> Skip {
        match error {
            ViewError::Failed(failed) => failed.into(),
            ViewError::Unlisted => Skip::Protected,
            ViewError::Cancelled => Skip::Cancelled,
        }
    }
}

/// Internal to bit-crafts.
#[doc(hidden)]
impl ErrorNumber for Skip {
    fn error_number(&self) -> Option<i32> {
        match self {
            Skip::System { errno, .. } => Some(*errno),
            Skip::In { why, .. } => why.error_number(),
            _ => None,
        }
    }
}

// Internal to bit-crafts.
#[doc(hidden)]
impl From<FailedCall> for Skip {
    fn from(failed: FailedCall) -> Skip {
        match (failed.op, failed.errno) {
            (
                "open" | "stat" | "open directory" | "rename" | "exchange" | "unlink",
                Errno::NOENT,
            ) => Skip::Gone,
            ("open", Errno::LOOP) => Skip::NotRegular,
            (op, errno) => Skip::System {
                op,
                errno: errno.raw_os_error(),
            },
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// No other process has a part in it.
    #[test]
    fn a_name_that_is_not_put_back_has_the_reason_of_the_system() {
        let skip = Skip::NotPutBack {
            path: b"d/.temporary".to_vec(),
            op: "rename",
            errno: Errno::IO.raw_os_error(),
        };
        assert_eq!(skip.system(), Some(("rename", Errno::IO.raw_os_error())));
        assert!(skip.is_error() && skip.took_effect());
        let text = skip.to_string();
        assert!(text.starts_with("rename: ") && text.ends_with("d/.temporary now"));
    }
}
