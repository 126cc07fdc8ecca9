//! What is told while a copy is under way, and what it came to.

use std::sync::atomic::AtomicU64;

use bc_walk::Skipped;

/// Something that happened to one path. Paths are those of the destination, as they are shown. A
/// directory is told of where it is made, and where it fails or lacks something.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A directory was made, or would be.
    Made(&'a [u8]),
    /// It was copied, or would be, to a name that was free.
    Copied(&'a [u8]),
    /// It was copied, or would be, in the place of something else.
    Replaced(&'a [u8]),
    /// What is there was left, and why.
    Skipped(&'a [u8], Why),
    /// It failed: source or destination, operation and reason.
    Failed(&'a bc_walk::Error),
    /// It was copied, but could not be given something of its source: path, operation and reason.
    Incomplete(&'a bc_walk::Error),
    /// How the copy goes about.
    Note(&'a str),
    /// Something that is no failure of a file, and that the user should know.
    Warning(&'a str),
}

/// Why something was left as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// An earlier run of the same copy has done it.
    Done,
    /// The name is taken.
    Exists,
    /// What is there is not older.
    NotNewer,
    /// What is there has the same content.
    Same,
    /// The manifest of this copy takes its place.
    Manifest,
}

impl Why {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Why::Done => "done by an earlier run",
            Why::Exists => "exists",
            Why::NotNewer => "not newer",
            Why::Same => "has the same content",
            Why::Manifest => "the manifest of this copy takes its place",
        }
    }
}

/// Who is told, by any thread that has the caller's table of descriptors: what workers with
/// [tables of their own](bc_pool::Tables::private) have to tell, the thread that began the copy does
/// for them.
pub type Observer<'a> = dyn Fn(Event<'_>) + Sync + 'a;

/// How far a copy is.
#[derive(Debug, Default)]
pub struct CopyProgress {
    /// Entries that are done.
    pub files: AtomicU64,
    /// Bytes that are copied.
    pub bytes: AtomicU64,
    /// All entries, once they are known.
    pub files_total: AtomicU64,
    /// All bytes.
    pub bytes_total: AtomicU64,
}

/// What a copy came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Copied {
    /// Entries that were walked: the sum of the next four.
    pub walked: u64,
    /// Copied, by this run or an earlier one of the same copy.
    pub copied: u64,
    /// Left out because of what is there.
    pub skipped: u64,
    /// Failed.
    pub failed: u64,
    /// Not begun: the destination is full, or the run was interrupted.
    pub left: u64,
    /// Of those copied, how many are regular files.
    pub files: u64,
    /// Of those copied, how many an earlier run had done.
    pub before: u64,
    /// Bytes written by this run.
    pub bytes: u64,
    /// Bytes of the files that are left or failed.
    pub bytes_left: u64,
    /// Properties that could not be given.
    pub incomplete: u64,
    /// Why the rest was not begun, where the destination refuses more.
    pub stopped: Option<String>,
    /// What filters left out.
    pub filtered: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Where the manifest is.
    pub manifest: Option<Vec<u8>>,
    /// Whether a journal is left for the same command to go on from.
    pub resumable: bool,
}
