//! The engine behind `bc integrity`: record a tree as a manifest, verify it,
//! compare manifests, bring one up to date. Options in, results and events
//! out; it never prints.
//!
//! ```
//! use bc_digest::Algorithm;
//! use bc_integrity::{Class, Conclusion, CreateOptions, ManifestFile, VerifyOptions};
//! use bc_walk::job::Means;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let (root, file) = (dir.path().join("tree"), dir.path().join("tree.jsonl"));
//! # std::fs::create_dir(&root).unwrap();
//! std::fs::write(root.join("a"), "content")?;
//! let means = Means::new();
//! CreateOptions::new(&root, Algorithm::Sha256).run_to(&file, &means)?.complete()?;
//!
//! std::fs::write(root.join("b"), "more")?;
//! let manifest = ManifestFile::open(&file)?;
//! let verified = VerifyOptions::new(&root, &manifest).run(&means)?;
//! let added = verified.changes.iter().find(|change| change.class == Class::Added);
//! assert_eq!(added.unwrap().path, b"b");
//! assert_eq!(verified.summary.conclusion(), Conclusion::Different);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! - [`CreateOptions`] write the manifest of a tree to a file or any writer.
//! - [`VerifyOptions`] compare a tree with its manifest, [`DiffOptions`] two manifests,
//!   [`UpdateOptions`] refresh a manifest in place. Each gives [`Change`]s in path order
//!   and returns a [`Verification`].
//! - [`AcceptOptions`] record single entries as they are now, after a person judged them right.
//! - The command `bc` has more below them: runs that resume, reports as text and JSON, and the
//!   formats of sha256sum, hashdeep and mtree.
//!
//! Flow: `tree` walks; [`bc_hash::hash_in_order`] reads all files through one plan and hands digests
//! back in path order, window by window, while reading continues; `tree::loader` joins stat, digest, link
//! target and attributes of each entry; `input` opens the old manifest and streams it; `sides` is
//! the merge-join of both, under every comparison: where nothing is read, `sides::runs` finds the
//! parts of the manifest that are as the walk has found them, and only the rest is looked at; of
//! what the new side lacks, `absence` says why; `judge` judges two entries of one path, with what
//! `reliability` knows of times and numbers; `compare` reports in order and finds moves.
//!
//! # Invariants
//! - Every path of either side falls into exactly one [`Class`];
//!   [`ComparisonSummary::reconciles`] holds for every run.
//! - A manifest is never loaded whole (unless it comes from a pipe). Memory is
//!   the listing, some 90 bytes an entry of the tree; digest and stat of each
//!   file read ahead; and 36 bytes for each file that only one side has, for
//!   moves to be found (their changes wait in a file).
//! - Results do not depend on threads, readers or kernels.
//! - Nothing is reported or written before the manifest's SHA-256 was found
//!   right and its lines sound and in order, and nothing before a suspicious root
//!   proved to be the right one.
//! - A digest once known is only replaced by another one that was computed
//!   from content that visibly changed, unless damage is accepted explicitly.
//!   An unreadable file keeps its entry.
//! - Field values that either side does not know are not compared.

#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod absence;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod change;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod compare;
mod create;
mod diff;
mod entry_ref;
mod error;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod fields;
mod foreign;
mod input;
mod job;
mod judge;
mod last_read;
mod options;
mod place;
mod reliability;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub mod report;
mod sides;
mod tree;
mod update;
mod verify;
mod write;

pub use change::{Change, Class, Ctime, Difference};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use compare::known_damage::{is_second, second_ending};
pub use compare::summary::{ComparisonSummary, Conclusion, FileTotals};
pub use compare::{Detail, Renames};
pub use create::{CreateOptions, Overwrite};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use create::{Created, OnFailure, create, create_recorded, record_unnamed};
pub use diff::DiffOptions;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use diff::{Diffed, diff};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use entry_ref::{kind_of, meta_of};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use error::{manifest_write_failed, write_failed};
pub use fields::{CompareMode, CompareRules, Field, Fields, UnknownField, Value};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use foreign::{Exported, Foreign, ImportOptions, export, import};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use input::lines::LineInput;
pub use input::{ManifestFile, Trust};
pub use job::Verification;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use job::working;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use last_read::{LastRead, ReadTimes};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use options::{Job, Reading, WalkObserver, Work};
pub use options::{MissingMounts, RootCheck, TreeOptions, XattrPolicy};
pub use place::Origin;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use update::accept::accept_reported;
pub use update::accept::{AcceptOptions, Acceptance};
pub use update::limit::{ChangeLimit, MassChange, UnknownChangeLimit};
pub use update::reread::{Reread, UnknownReread};
pub use update::sample::{Sample, UnknownSample};
pub use update::{Damaged, UpdateOptions};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use update::{Updated, update, update_reported};
pub use verify::VerifyOptions;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use verify::{Verified, verify};
pub use write::WrittenManifest;
