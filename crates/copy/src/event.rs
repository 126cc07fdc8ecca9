//! Events reported during a copy, its progress and its result.

use std::sync::atomic::AtomicU64;

use bc_walk::Skipped;

/// Event about one path. Paths are those of the destination, as they are shown. A directory is
/// reported when it is made, and when it fails or lacks something.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A directory was made, or would be.
    Made(&'a [u8]),
    /// The file was copied, or would be, to a name that was free.
    Copied(&'a [u8]),
    /// The file was copied, or would be, in the place of something else.
    Replaced(&'a [u8]),
    /// An existing file was left, with the reason.
    Skipped(&'a [u8], Why),
    /// The entry failed: source or destination, operation and reason.
    Failed(&'a bc_walk::Error),
    /// The file was copied, but could not be given some metadata of its source: path, operation and
    /// reason.
    Incomplete(&'a bc_walk::Error),
    /// Note on the method of copying.
    Note(&'a str),
    /// Warning for the user that is no failure of a file.
    Warning(&'a str),
}

/// Reason for which something was left as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// An earlier run of the same copy has done it.
    Done,
    /// The name is taken.
    Exists,
    /// The existing file is not older.
    NotNewer,
    /// The existing file has the same content.
    Same,
    /// The manifest of this copy takes its place.
    Manifest,
}

impl Why {
    /// Returns the reason in words.
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

/// Receiver of events, called by any thread that has the caller's table of descriptors: events of
/// workers with [tables of their own](bc_pool::Tables::private) are passed on by the thread that
/// began the copy.
pub type Observer<'a> = dyn Fn(Event<'_>) + Sync + 'a;

/// Progress of a copy, updated while it runs.
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

/// Result of a copy.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Copied {
    /// Entries that were walked: the sum of the next four.
    pub walked: u64,
    /// Copied, by this run or an earlier one of the same copy.
    pub copied: u64,
    /// Left out because of an existing file.
    pub skipped: u64,
    /// Failed.
    pub failed: u64,
    /// Not started: the destination is full, or the run was interrupted.
    pub left: u64,
    /// Number of regular files among those copied.
    pub files: u64,
    /// Number of copied entries that an earlier run had done.
    pub before: u64,
    /// Bytes written by this run.
    pub bytes: u64,
    /// Bytes of the files that are left or failed.
    pub bytes_left: u64,
    /// Properties that could not be given.
    pub incomplete: u64,
    /// Reason for which the rest was not begun, where the destination refuses more.
    pub stopped: Option<String>,
    /// Entries that filters left out.
    pub filtered: Skipped,
    /// Directories read.
    pub directories: u64,
    /// Path of the manifest, if one was written.
    pub manifest: Option<Vec<u8>>,
    /// True if a journal is left, so that the same command can resume.
    pub resumable: bool,
}
