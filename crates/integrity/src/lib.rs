//! The engine behind `bc integrity`: records a tree as a manifest, verifies it, compares manifests, and
//! updates them. It takes options and returns results and events; it never prints.
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
//! - [`VerifyOptions`] compare a tree with its manifest, [`DiffOptions`] compare two manifests, and
//!   [`UpdateOptions`] update a manifest in place. Each reports [`Change`]s in path order and returns a
//!   [`Verification`].
//! - [`AcceptOptions`] record single entries as they are now, once a person has judged them correct.
//! - The command `bc` uses more functions below them: runs that resume, reports as text and JSON, and the
//!   formats of sha256sum, hashdeep and mtree.
//!
//! Flow: `tree` walks; [`bc_hash::hash_in_order`] reads all files through one plan and returns digests in
//! path order, window by window, while reading continues; `tree::loader` joins stat, digest, link target
//! and attributes of each entry; `input` opens the old manifest and streams it; `sides` is the merge-join
//! of both, under every comparison: if nothing is read, `sides::runs` finds the parts of the manifest that
//! match the walk, and only the rest is examined; for entries that the new side lacks, `absence` determines
//! why; `judge` compares two entries of one path, considering the `reliability` of times and numbers;
//! `compare` reports in order and finds moves.
//!
//! # Invariants
//! - Every path of either side falls into exactly one [`Class`];
//!   [`ComparisonSummary::reconciles`] holds for every run.
//! - A manifest is never loaded completely (unless it comes from a pipe). Memory use is that of the
//!   listing, about 90 bytes per entry of the tree; the digest and stat of each file read ahead; and 36
//!   bytes for each file that only one side has, to find moves (their changes wait in a file).
//! - Results do not depend on threads, readers or kernels.
//! - Nothing is reported or written before the manifest's SHA-256 is found correct and its lines valid and
//!   in order, nor before a suspicious root has proved to be the right one.
//! - A known digest is only replaced by one that was computed from content that visibly changed, unless
//!   damage is accepted explicitly. An unreadable file keeps its entry.
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
