//! Manifests of many machines, behind `bc integrity merge` and `sql`: merges the parts of one tree, and
//! generates queries about any number of trees.
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
//! - [`merge()`] merges the manifests of several readers of one tree, and [`merge_lists()`] their lists of
//!   digests; [`check_manifest()`] checks a single manifest.
//! - [`sql`] fills in queries for DuckDB and Spark. Their texts are in the folder `sql`; `job.py` next to
//!   it makes a cluster read a tree.
//!
//! # Invariants
//! - All inputs are streamed: memory does not grow with their lengths; only an unnamed file in the
//!   temporary directory (`TMPDIR`) does.
//! - A part that is missing, occurs twice or belongs to another tree is an error; the result is always a
//!   complete tree.
//! - Outside input occurs in SQL only as a literal.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod merge;
pub mod sql;

pub use merge::{
    ListFile, MergeOptions, Merged, MergedLists, check_manifest, merge, merge_lists, shard_of,
};
