//! Duplicate files: finding them ([`scan`]) and reporting them ([`report`]); equal directories
//! ([`dirs`]); files without a duplicate ([`unique`](mod@unique)); and offline disks, which are
//! represented by their manifests ([`manifests`]). Nothing here prints or asks; a front end gets data,
//! events and words. Nothing is changed but a [`Cache`]: `bc-prune` acts on [`groups`].
//!
//! ```
//! use bc_find::report::ScanReport;
//! use bc_find::scan::{ScanOptions, ScanProgress, scan};
//! use bc_pool::Cancel;
//! use bc_walk::{Metadata, walk};
//!
//! # let tree = tempfile::tempdir().unwrap();
//! # for (name, text) in [("a", "same"), ("b", "same"), ("c", "else")] {
//! #     std::fs::write(tree.path().join(name), text).unwrap();
//! # }
//! # let root = tree.path().as_os_str().to_owned();
//! let cancel = Cancel::new();
//! let walking = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
//! let listing = walk(&[root.clone()], &walking, 1, &cancel)?;
//! let options = ScanOptions::default();
//! let found = scan(&listing, &options, None, &cancel, &ScanProgress::default())?;
//! assert_eq!((found.groups().len(), found.duplicates()), (1, 1));
//!
//! let report = ScanReport {
//!     listing: &listing,
//!     scan: &found,
//!     algorithm: options.algorithm,
//!     roots: &[root.into_encoded_bytes()],
//!     reference_roots: &[],
//!     started_at: "2026-01-01T00:00:00Z",
//! };
//! let group = report.groups().next().unwrap();
//! assert!(group.files[0].path.ends_with(b"/a") && group.files[1].path.ends_with(b"/b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `cache` (default): digests that are kept from one search to the next, in a file of redb's.
//!
//! # Invariants
//! - Two files are duplicates only by digests of all their bytes. A file that
//!   could not be read, changed, or was not reached has no digest, and no
//!   digest equals nothing.
//! - The result does not depend on threads, reader, sampling or cache: those
//!   decide only how much is read.
//! - A search never changes a file, and a digest, computed or [cached](Cache), finds duplicates but
//!   never authorises a change.
//! - Nothing is followed but the roots themselves.
//! - Memory: some 45 bytes a file of shared size beside the listing, while the
//!   search runs, and 250 and 32 an extent for each that shares extents with
//!   other files; 12 bytes and 20 a group afterwards.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod aliases;
mod cache;
pub mod dirs;
pub mod groups;
mod jagged;
mod job;
pub mod manifests;
pub mod report;
pub mod scan;
mod subtrees;
mod traces;
pub mod unique;
pub mod views;
mod writers;

#[cfg(feature = "cache")]
pub use cache::{Cache, Location, panic_is_expected};
pub use job::{Duplicates, EqualFile, EqualFiles, Search, Searched};
pub use subtrees::{Files, Subtrees};
