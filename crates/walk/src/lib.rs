//! Lists the files below some roots: in parallel, in bytewise path order, with compact
//! entries.
//!
//! ```
//! use bc_pool::Cancel;
//! use bc_walk::{Hidden, WalkOptions, walk};
//!
//! # let tree = tempfile::tempdir().unwrap();
//! # std::fs::create_dir(tree.path().join("b")).unwrap();
//! # for name in ["b/1", "b-2", ".c"] { std::fs::write(tree.path().join(name), name).unwrap(); }
//! # let root = tree.path().as_os_str().to_owned();
//! let options = WalkOptions::default().hidden(Hidden::Skip);
//! let listing = walk(&[root], &options, 2, &Cancel::new())?;
//! let names: Vec<_> = listing.ids().map(|id| listing.name(id)).collect();
//! assert_eq!(names, [c"b-2", c"1"]); // as b-2 and b/1
//! assert_eq!(listing.skipped().hidden, 1);
//! assert!(listing.errors().is_empty());
//! # Ok::<(), bc_pool::WorkerPanic>(())
//! ```
//!
//! # Invariants
//!
//! - The result does not depend on the number of workers: order, errors, counts and the
//!   choice between several names of one directory are the same for one and for many.
//! - Names are raw bytes of any value, paths have any length and depth. Directories are
//!   opened relative to descriptors; below a root no link is ever followed unasked.
//! - Nothing but directories is ever opened here (and ignore files, when they are honoured),
//!   so no FIFO blocks and no device is touched.
//! - Nothing is lost silently: every failure is in [`Listing::errors`], everything left out
//!   is counted in [`Listing::skipped`].
//! - No recursion and no descriptor kept per directory: neither depth nor breadth of a tree
//!   exhausts the stack or the descriptors.

#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod absent;
mod columns;
mod dir;
mod dir_fds;
mod error;
mod filter;
mod globs;
mod identity;
mod ignores;
pub mod job;
mod listing;
mod merge;
mod named;
mod open;
mod options;
mod roots;
mod shard;
mod tree;
mod tuning;
mod walk;
mod wild;

pub use bc_fs::meta::{BasicStat, FileKind, FileStat, Identity, Stamp};
pub use bc_pool::Workers;
pub use dir_fds::DirFdCache;
pub use error::{BadLine, Error, ErrorKind, PathAbove};
pub use filter::{Gap, SkipReason, Skipped, SkippedPath};
pub use globs::{GlobError, Globs};
pub use identity::OwnFile;
pub use listing::{DirId, EntryId, Listing};
pub use open::raise_nofile_limit;
pub use options::{
    Entries, ExactPaths, FileStats, FileSystems, Hidden, IgnoreFiles, Metadata, Repeats,
    SkippedDetail, Spellings, Symlinks, WalkOptions,
};
pub use shard::{DirectorySet, Shard, UnknownShard};
pub use walk::{WalkControls, is_among, list_files, walk, walk_with};
