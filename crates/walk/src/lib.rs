//! Listing of the files below some roots: in parallel, in bytewise path order, with compact entries.
//!
//! ```
//! use bc_walk::job::Means;
//! use bc_walk::{Hidden, WalkOptions};
//!
//! # let tree = tempfile::tempdir().unwrap();
//! # std::fs::create_dir(tree.path().join("b")).unwrap();
//! # for name in ["b/1", "b-2", ".c"] { std::fs::write(tree.path().join(name), name).unwrap(); }
//! # let root = tree.path();
//! let options = WalkOptions::default().hidden(Hidden::Skip);
//! let listing = options.run([root], &Means::new().threads(2))?;
//! let names: Vec<_> = listing.ids().map(|id| listing.name(id)).collect();
//! assert_eq!(names, [c"b-2", c"1"]); // as b-2 and b/1
//! assert_eq!(listing.skipped().hidden, 1);
//! assert!(listing.errors().is_empty());
//! # Ok::<(), bc_walk::job::Error>(())
//! ```
//!
//! # Invariants
//!
//! - The result does not depend on the number of workers: order, errors, counts, and the choice among
//!   several names of one directory are always the same.
//! - Names may contain any bytes, and paths may have any length and depth. Directories are opened relative
//!   to descriptors; no link below a root is ever followed unless requested.
//! - Only directories are ever opened here (and ignore files, if they are honoured), so no FIFO blocks and
//!   no device is touched.
//! - Nothing is lost silently: every failure is in [`Listing::errors`], and everything left out is counted
//!   in [`Listing::skipped`].
//! - There is no recursion, and no descriptor is kept per directory: neither depth nor breadth of a tree
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

pub use bc_fs::PathError;
pub use bc_fs::meta::{BasicStat, FileKind, FileStat, Identity, Stamp};
pub use bc_pool::Cancel;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use bc_pool::Workers;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use dir_fds::DirFdCache;
pub use error::{BadLine, Error, ErrorKind, PathAbove};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use filter::Gap;
pub use filter::{SkipReason, Skipped, SkippedPath};
pub use globs::{GlobError, Globs};
pub use identity::OwnFile;
pub use listing::{DirId, EntryId, Listing};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use open::raise_nofile_limit;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use options::FileStats;
pub use options::{
    Entries, ExactPaths, FileSystems, Hidden, IgnoreFiles, Metadata, Repeats, SkippedDetail,
    Spellings, Symlinks, WalkOptions,
};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use shard::DirectorySet;
pub use shard::{Shard, UnknownShard};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use walk::{WalkControls, is_among, list_files, walk, walk_with};
