//! Duplicate files, equal directories, and files without a duplicate: [`Search`] finds them, even on
//! offline disks represented by their manifests. Nothing here prints or asks; a caller gets data and texts.
//! Nothing is changed except the file of [`Search::cache`]: `bc-prune` acts on the results.
//!
//! ```
//! use bc_find::Search;
//! use bc_walk::job::Means;
//!
//! # let tree = tempfile::tempdir().unwrap();
//! # for (name, text) in [("a", "same"), ("b", "same"), ("c", "else")] {
//! #     std::fs::write(tree.path().join(name), text).unwrap();
//! # }
//! # let root = tree.path();
//! let found = Search::new([root]).duplicates(&Means::new())?.complete()?;
//! let paths: Vec<_> = found.groups[0].paths().collect();
//! assert_eq!(paths, [root.join("a"), root.join("b")]);
//! assert_eq!((found.groups.len(), found.wasted), (1, found.groups[0].wasted));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `cache` (default): digests that are kept from one search to the next, in a redb file.
//!
//! # Invariants
//! - Two files are duplicates only by digests of all their bytes. A file that could not be read, changed,
//!   or was not reached has no digest, and files without a digest equal no other file.
//! - The result does not depend on threads, reader, sampling or cache: these only affect how much is read.
//! - A search never changes a file, and a digest, computed or [cached](Search::cache), finds duplicates but
//!   never authorises a change.
//! - No links are followed, except the roots themselves.
//! - Memory, in addition to the listing: while the search runs, about 45 bytes per file that shares its
//!   size with another one, and 250 plus 32 per extent for each file that shares extents with other files;
//!   afterwards, 12 bytes per file and 20 per group.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod aliases;
mod cache;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod dirs;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod groups;
mod jagged;
mod job;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod manifests;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod report;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod scan;
mod subtrees;
mod traces;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod unique;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod views;
mod writers;

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "cache")]
pub use cache::{Cache, Location, panic_is_expected};
pub use dirs::{DirNames, DirsOptions, EqualDirectories, FoundDirectories, Within};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use job::Searched;
pub use job::{Duplicates, EqualFile, EqualFiles, Search};
pub use scan::{Equality, HardLinks, ScanOptions, Span};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use subtrees::{Files, Subtrees};
pub use unique::{ContentPlace, FoundUnique, NotFile, UniqueContent, UniqueOptions};
