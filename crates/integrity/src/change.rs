//! What a comparison says about one path.

use bc_manifest::Failure;
use bc_manifest::integrity::Kind;

use crate::field::Field;
pub use crate::value::Value;

/// The one class each path of either side falls into.
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

    /// `ok`, `added`, …
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
/// use bc_integrity::change::Class;
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

/// What the inode's change time says about content that differs behind an
/// unchanged mtime.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ctime {
    /// Unchanged: nothing was written through the file system. Bitrot.
    Same,
    /// Changed: somebody wrote and put the time back, or restored a copy.
    Other,
    /// Not recorded.
    Unknown,
    /// Says nothing: the file system's ctime repeats the mtime or is not known to be
    /// real, or the tree is a copy.
    Mute,
}

/// What failed, where a path could not be looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedAt {
    /// Where: the path itself, or the directory above it that could not be read. Relative to the
    /// root.
    pub path: Vec<u8>,
    /// The operation and the system's reason.
    pub failure: Failure,
}

/// One path's class with the reasons for it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The class.
    pub class: Class,
    /// Relative to the root. Of what was moved the old path.
    pub path: Vec<u8>,
    /// The new path of what was moved, damaged or not.
    pub to: Option<Vec<u8>>,
    /// The path that the old side has the file under, where it has another file under `path`: of
    /// what is damaged under a name that was taken over.
    pub was_at: Option<Vec<u8>>,
    /// The kind: of the new side where there is one.
    pub kind: Kind,
    /// Differing fields; of added and removed paths every field recorded.
    pub differences: Vec<Difference>,
    /// Why it is unreadable; of an added path why it could not be read; of one known to be damaged
    /// when that was found; of a modified one why it may be damaged; of a replaced one why it could
    /// not be read.
    pub reason: Option<String>,
    /// The failure behind that reason, if there is one.
    pub failed: Option<FailedAt>,
    /// For damage.
    pub ctime: Option<Ctime>,
    /// Of an unreadable path: the old side alone lacks something, which an update puts right.
    pub readable_now: bool,
    /// An update does so in this run.
    pub recorded_now: bool,
    /// Of a modified path: it is the recorded file, damaged, or a new one that was given the inode
    /// number of that; which is not known.
    pub unproven: bool,
}

impl Change {
    /// A change without details.
    pub fn new(class: Class, path: &[u8], kind: Kind) -> Change {
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
            readable_now: false,
            recorded_now: false,
            unproven: false,
        }
    }

    /// The path on the new side.
    pub fn now_at(&self) -> &[u8] {
        self.to.as_deref().unwrap_or(&self.path)
    }

    /// The path on the old side of the content that was expected.
    pub fn recorded_at(&self) -> &[u8] {
        self.was_at.as_deref().unwrap_or(&self.path)
    }

    /// What failed here, or at the directory `path` above, if anything did.
    pub(crate) fn fail(&mut self, path: &[u8], failure: Option<&Failure>) {
        self.failed = failure.map(|failure| FailedAt {
            path: path.to_vec(),
            failure: failure.clone(),
        });
    }
}
