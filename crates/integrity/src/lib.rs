//! The engine behind `bc integrity`: record a tree as a manifest, verify it,
//! compare manifests, bring one up to date. Options in, results and events
//! out; it never prints.
//!
//! ```
//! use bc_digest::Algorithm;
//! use bc_integrity::{Conclusion, CreateOptions, ManifestFile, Reading, VerifyOptions, Work};
//! use bc_integrity::{create, verify};
//! use bc_integrity::report::{ChangeFormat, ChangeReport};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let root = dir.path().join("tree");
//! # std::fs::create_dir(&root).unwrap();
//! std::fs::write(root.join("a"), "content")?;
//! let (cancel, progress) = (bc_pool::Cancel::new(), bc_hash::HashProgress::default());
//! let reading = |_| Ok(Reading::new(1));
//! let work = Work::new(1.into(), &reading, &cancel, &progress);
//! let what = CreateOptions::new(&root, Algorithm::Sha256).created_at(1_700_000_000_000_000_000);
//! let (bytes, _) = create(&what, &work, Vec::new(), &mut |_, _| {})?;
//!
//! std::fs::write(root.join("b"), "more")?;
//! let manifest = ManifestFile::from_reader(b"memory", &bytes[..])?;
//! let what = VerifyOptions::new(&root, &manifest);
//! let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Text);
//! let done = verify(&what, &work, &mut |change| report.change(change))?;
//! let text = String::from_utf8(report.end(&done.summary)?)?;
//! assert!(text.ends_with("+ b\n"));
//! assert_eq!(done.summary.conclusion(), Conclusion::Different);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! - [`create()`] writes the manifest of a tree to any writer; [`create_recorded()`] resumes where
//!   an earlier run was interrupted.
//! - [`verify()`] compares a tree with its manifest, [`diff()`] two manifests,
//!   [`update()`] refreshes a manifest in place. Each gives
//!   [`Change`](change::Change)s to a [`Sink`](compare::Sink) in path order
//!   and returns a [`ComparisonSummary`]; [`report::ChangeReport`] turns changes into lines of
//!   text or JSON.
//! - [`export()`] and [`import()`] speak the formats of sha256sum, hashdeep and
//!   mtree.
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
//! - Every path of either side falls into exactly one [`Class`](change::Class);
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
pub mod change;
pub mod compare;
mod create;
mod diff;
mod entry_ref;
mod error;
pub mod fields;
mod foreign;
mod input;
mod job;
mod judge;
mod options;
mod place;
mod reliability;
pub mod report;
mod sides;
mod tree;
mod update;
mod verify;
mod write;

pub use bc_walk::job::Setting;
pub use compare::known_damage::{is_second, second_ending};
pub use compare::summary::{ComparisonSummary, Conclusion};
pub use create::{
    CreateOptions, Created, OnFailure, Overwrite, create, create_recorded, record_unnamed,
};
pub use diff::{DiffOptions, Diffed, diff};
pub use entry_ref::{kind_of, meta_of};
pub use error::{manifest_write_failed, write_failed};
pub use foreign::{Exported, Foreign, ImportOptions, export, import};
pub use input::lines::LineInput;
pub use input::{ManifestFile, Trust};
pub use job::{Verification, working};
pub use options::{
    Job, MissingMounts, Reading, RootCheck, TreeOptions, WalkObserver, Work, XattrPolicy,
};
pub use place::Origin;
pub use update::limit::{ChangeLimit, MassChange, UnknownChangeLimit};
pub use update::reread::{Reread, UnknownReread};
pub use update::{Damaged, UpdateOptions, Updated, update, update_reported};
pub use verify::{Verified, VerifyOptions, verify};
pub use write::WrittenManifest;
