//! The engine behind `bc hash`: digests of all files in a listing, and the logic for checking and comparing
//! manifests. It takes options and returns results; it never prints.
//!
//! ```
//! use bc_digest::Algorithm;
//! use bc_hash::HashOptions;
//! use bc_walk::WalkOptions;
//! use bc_walk::job::Means;
//!
//! let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("abc"), "abc")?;
//! let options = HashOptions::new(vec![Algorithm::Md5]);
//! let hashed = options.run([dir.path()], &WalkOptions::default(), &Means::new())?;
//! let digest = hashed.complete()?.files[0].digest();
//! assert_eq!(digest.to_string(), "900150983cd24fb0d6963f7d28e17f72");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! The bytes of a file take a single path: [`hash_with`] starts the workers; each calls [`bc_read::pump`],
//! which opens and reads files into slots; the pump hands filled slots to the worker's consumer, which
//! feeds them to [`bc_digest::Batch`]; and a file that was read to its end unchanged comes out of the
//! pump's `finish` with its digests, into a [`DigestSink`].
//!
//! # Features
//!
//! Both are on by default.
//!
//! - `lists`: checksum files, which bc-manifest reads, their verification and comparison.
//! - `resume`: journals, with which a run resumes an earlier one.
//!
//! # Invariants
//! - a file has digests or an error, never neither and never an empty digest
//!   (unless the run was cancelled);
//! - results do not depend on threads, reader, kernels or order.

#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "lists")]
pub mod check;
#[cfg(feature = "lists")]
mod check_file;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "lists")]
pub mod diff;
mod engine;
mod in_order;
mod job;
mod lanes;
mod large;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "lists")]
pub mod lines;
mod links;
mod options;
#[cfg(feature = "lists")]
mod packed;
mod results;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "resume")]
pub mod resume;
#[cfg(feature = "lists")]
mod trial;
#[cfg(not(feature = "resume"))]
mod unrecorded;

#[cfg(feature = "lists")]
pub use check_file::{Checked, CheckedFile, ChecksumFile, FileVerdict};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use engine::{hash_entries, hash_listing, hash_with};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use in_order::{EarlierResults, HashOutcome, HashedWindow, hash_in_order, hash_in_order_after};
pub use job::{Hashed, HashedFile};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use large::bytes_if_few;
pub use options::HashOptions;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use options::{DigestSink, HashProgress, Taken, Totals};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "lists")]
pub use packed::{ExpectedDigests, FileDigests};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use results::{EntryOutcome, Hashes, hashing_memory};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
#[cfg(feature = "lists")]
pub use trial::Trial;
