//! Duplicate files: finding them ([`scan`]), reporting them ([`report`]), equal directories
//! ([`dirs`]) and freeing the space ([`prune`]); files without a duplicate
//! ([`unique`](mod@unique)); and offline disks, which are represented by their manifests
//! ([`manifests`]). Nothing here prints or asks; a front end gets data, events and words.
//!
//! ```
//! use bc_dup::prune::{Action, PruneEvent, PruneOptions, RunMode, StepOutcome, prune};
//! use bc_dup::report::ScanReport;
//! use bc_dup::scan::{ScanOptions, ScanProgress, scan};
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
//! // A dry run first; a real one should have a journal, too.
//! let mut plan = PruneOptions::new(Action::Hardlink);
//! let mut steps = Vec::new();
//! prune(report.groups(), &plan, None, &cancel, &mut |event| {
//!     if let PruneEvent::Step(step, StepOutcome::Would { .. }) = event {
//!         steps.push(step.to_string());
//!     }
//! });
//! assert!(steps[0].starts_with("hardlink ") && steps.len() == 1);
//! plan.mode = RunMode::Execute;
//! let totals = prune(report.groups(), &plan, None, &cancel, &mut |_| ());
//! assert_eq!((totals.changed, totals.errors), (1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - Two files are duplicates only by digests of all their bytes. A file that
//!   could not be read, changed, or was not reached has no digest, and no
//!   digest equals nothing.
//! - The result does not depend on threads, reader, sampling or cache: those
//!   decide only how much is read.
//! - A search never changes a file. A digest, computed or [cached](Cache),
//!   finds duplicates but never authorises a change: [`prune`](prune::prune)
//!   opens both files again, checks that they are the ones found, and compares
//!   them byte for byte.
//! - Whatever happens while prune runs, power cuts included, every content that existed exists
//!   under at least one of its names; no name goes missing but those that were to be deleted or
//!   moved. Changes by other processes are put back, not lost. One risk remains: a process that has
//!   the file open already and writes to it between prune's last look and the moment its last name
//!   goes writes to a file without a name, as it would with `rm`.
//! - Entries that [references](Subtrees) name are never changed, nor anything below them: by the
//!   identity of the directories above a file, asked again right before it would be changed; and
//!   where a mount gives them other identities, by the entries that are visible on both sides.
//! - Nothing is followed but the roots themselves: no symbolic link below a
//!   root leads to a file that is changed.
//! - Memory: some 45 bytes a file of shared size beside the listing, while the
//!   search runs, and 250 and 32 an extent for each that shares extents with
//!   other files; 12 bytes and 20 a group afterwards.
#![forbid(unsafe_code)]

mod aliases;
mod cache;
mod clock;
pub mod dirs;
mod error;
mod json;
mod lasting;
pub mod manifests;
mod path;
pub mod prune;
pub mod report;
pub mod scan;
mod space;
mod subtrees;
mod traces;
pub mod unique;
mod writers;

pub use cache::{Cache, CacheRefused, Location, panic_is_expected};
pub use error::{Error, ErrorKind};
pub use subtrees::{Files, Subtrees};

/// The examples of the registry's page run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
