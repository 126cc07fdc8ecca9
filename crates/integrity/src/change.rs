//! Results of a comparison for one path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_fs::PathError;
use bc_manifest::Failure;
use bc_manifest::integrity::Kind;

use crate::fields::Field;
pub use crate::fields::Value;

/// The one class that each path of either side belongs to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Class {
    /// Nothing differs that counts.
    Ok,
    /// Only on the new side.
    Added,
    /// Only on the old side.
    Removed,
    /// Removed here and added there, with the same content; or one of several files that changed
    /// their names among themselves.
    Moved,
    /// Same content, other fields.
    Meta,
    /// Other content, and other size or mtime: an edit. Links with another
    /// target, too. With a reason where neither is recorded, so that it may be damage.
    Modified,
    /// Other content behind the same size and mtime; under another name, of the same inode too.
    Damaged,
    /// One side's content (or metadata) is not known, so nothing can be said.
    Unreadable,
    /// Another kind of file.
    Replaced,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 9] = [
        Class::Ok,
        Class::Added,
        Class::Removed,
        Class::Moved,
        Class::Meta,
        Class::Modified,
        Class::Damaged,
        Class::Unreadable,
        Class::Replaced,
    ];

    /// Returns the class in words: `ok`, `added`, …
    pub const fn name(self) -> &'static str {
        match self {
            Class::Ok => "ok",
            Class::Added => "added",
            Class::Removed => "removed",
            Class::Moved => "moved",
            Class::Meta => "meta",
            Class::Modified => "modified",
            Class::Damaged => "damaged",
            Class::Unreadable => "unreadable",
            Class::Replaced => "replaced",
        }
    }
}

/// The word that reports print: its [`name`](Class::name).
///
/// ```
/// use bc_integrity::Class;
///
/// assert_eq!(format!("{:>8}", Class::Moved), "   moved");
/// ```
impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A field with its value on both sides.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The field.
    pub field: Field,
    /// Before: in the manifest, or the older one.
    pub old: Value,
    /// Now: in the tree, or the newer manifest.
    pub new: Value,
}

/// Evidence from the inode's change time about content that differs behind an unchanged mtime.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ctime {
    /// Unchanged: nothing was written through the file system. Bitrot.
    Same,
    /// Changed: a program wrote and put the time back, or restored a copy.
    Other,
    /// Not recorded.
    Unknown,
    /// Proves nothing: the file system's ctime repeats the mtime or is not known to be real, or the
    /// tree is a copy.
    Mute,
}

/// One path's class with the reasons for it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The class.
    pub class: Class,
    /// Path relative to the root; the old path of a moved file.
    pub path: Vec<u8>,
    /// New path of a moved file, damaged or not.
    pub to: Option<Vec<u8>>,
    /// Path that the old side has the file under, where it has another file under `path`: for files
    /// that are damaged under a name that was taken over.
    pub was_at: Option<Vec<u8>>,
    /// Kind of file, on the new side where there is one.
    pub kind: Kind,
    /// Differing fields; of added and removed paths every field recorded.
    pub differences: Vec<Difference>,
    /// Reason: of an unreadable path, or of an added or replaced one that could not be read; for
    /// known damage the time when it was found; for a modified path the reason for which it may be
    /// damaged.
    pub reason: Option<String>,
    /// The failure behind that reason, if there is one: at the path itself, or at the directory above
    /// it that could not be read, relative to the root.
    pub failed: Option<PathError>,
    /// Evidence from the ctime, for damage.
    pub ctime: Option<Ctime>,
    /// For a directory that was renamed: number of entries that moved along and are not reported by
    /// themselves.
    pub entries: Option<u64>,
    /// For an unreadable path: true if only the old side lacks something, which an update records.
    pub readable_now: bool,
    /// True if an update records it in this run.
    pub recorded_now: bool,
    /// True if only the new side has the path.
    pub(crate) is_new: bool,
    /// For a modified path: true if it is not known whether it is the recorded file, damaged, or a
    /// new one that was given its inode number.
    pub unproven: bool,
}

impl Change {
    /// Returns a change without details.
    pub(crate) fn new(class: Class, path: &[u8], kind: Kind) -> Change {
        Change {
            class,
            path: path.to_vec(),
            to: None,
            was_at: None,
            kind,
            differences: Vec::new(),
            reason: None,
            failed: None,
            ctime: None,
            entries: None,
            readable_now: false,
            recorded_now: false,
            is_new: false,
            unproven: false,
        }
    }

    /// Returns the path on the new side.
    pub fn now_at(&self) -> &[u8] {
        self.to.as_deref().unwrap_or(&self.path)
    }

    /// Returns the path on the old side of the content that was expected.
    pub fn recorded_at(&self) -> &[u8] {
        self.was_at.as_deref().unwrap_or(&self.path)
    }

    /// Records a failure at this path, or at the directory `path` above, if there is one.
    pub(crate) fn fail(&mut self, path: &[u8], failure: Option<&Failure>) {
        let path = OsStr::from_bytes(path);
        self.failed = failure.map(|failure| {
            PathError::with_reason(path, &*failure.op, failure.errno, &*failure.message)
        });
    }
}
