//! Manifests of many machines, behind `bc integrity merge` and `sql`: the parts of one tree put
//! together, and questions about any number of trees for engines that answer them.
//! Internal to bit-crafts, without a promise of stability.
//!
//! ```
//! use bc_fleet::{MergeOptions, merge};
//! use bc_integrity::ManifestFile;
//! use bc_manifest::integrity::{Header, Writer};
//!
//! let (whole, _) = Writer::new(Vec::new(), &Header::new("sha256", "0"))?.finish()?;
//! let manifests = [ManifestFile::from_reader(b"memory", &whole[..])?];
//! let cancel = bc_pool::Cancel::new();
//! // The manifest of a whole tree is no part of one.
//! let error = merge(&MergeOptions::new(&manifests, 1, &cancel), Vec::new()).unwrap_err();
//! assert!(error.to_string().contains("is of a whole tree"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`merge()`] puts the manifests of several readers of parts of one tree together, and
//!   [`merge_lists()`] their lists of digests; [`check_manifest()`] looks at one by itself.
//! - [`sql`] fills in questions for DuckDB and Spark. The texts are in the folder `sql`, and
//!   `job.py` beside it has a tree read by a cluster.
//!
//! # Invariants
//! - All inputs are streamed: memory does not grow with their lengths, but for a file without a
//!   name in the temporary directory (`TMPDIR`).
//! - A part that is missing, doubled or of another tree is an error; the result is never a part.
//! - Nothing that comes from outside is more than a literal in SQL.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod merge;
pub mod sql;

pub use merge::{
    ListFile, MergeOptions, Merged, MergedLists, check_manifest, merge, merge_lists, shard_of,
};
