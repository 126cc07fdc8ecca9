//! The engine behind `bc copy` and `bc integrity restore`: copies trees with all their metadata, can be
//! interrupted at any point and resumed, and ends by writing a manifest to verify the copy with.
//!
//! ```
//! use bc_copy::{CopyOptions, MANIFEST_NAME};
//! use bc_walk::job::Means;
//!
//! # let dir = tempfile::tempdir()?;
//! # let (from, to) = (dir.path().join("from"), dir.path().join("to"));
//! # std::fs::create_dir(&from)?;
//! # std::fs::write(from.join("a"), "content")?;
//! let done = CopyOptions::new([from], &to).run(&Means::new())?.complete()?;
//! assert_eq!((done.counts.walked, done.counts.copied), (2, 2));
//! assert_eq!(std::fs::read(to.join("a"))?, b"content");
//! assert!(to.join(MANIFEST_NAME).exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Flow: `destination` finds the targets of all sources, `resume` an earlier run of the same copy; each of
//! the `sources` is walked; `dirs` makes directories; workers copy small files in batches (`data/small`)
//! and larger ones one by one (`data/single`); huge ones are copied by all of them block by block
//! (`data/huge`). Each of several destinations has a job, and each job a worker in every thread; a file is
//! read once, for all destinations that take it (`data/receiver`). `plan` decides about a name that already
//! exists, based on facts that `decide` looks up; a `stage` is created and filled, and gets its name when
//! it is complete (`stage/publish`); `special` creates everything except regular files, `links` further
//! names; directories get their times last; `engine` counts, and `manifest` records the results.
//!
//! [`RestoreOptions`] repair a tree from copies, according to its manifest, with the same stages, which are
//! completed and named by the same functions. Files that bc-integrity's `verify` finds damaged or missing
//! are copied from any source that has them, compared with the recorded digest in the process, and only
//! then replace the existing file.
//!
//! [`MoveOptions`] rename where possible, copy the rest with the same engine, and remove a source only once
//! its copy is proven.
//!
//! # Invariants
//! - No incomplete file ever has its final name: a copy is a stage until it is complete, checked
//!   and has its metadata.
//! - Each destination decides, fails and continues independently of the others.
//! - Nothing is ever removed or replaced unless requested, and only a move removes sources; a name that
//!   appears in the meantime is not taken over.
//! - No link below the destination is followed.
//! - A file's record is in the journal before the file gets its name, and its state afterwards. The record
//!   counts while the name leads to a file in that state, in the mount in which it was recorded, or flushed
//!   to the disk; otherwise the bytes must be those that were recorded. Everything else belongs to the
//!   user.
//! - The observer is called only by threads that use the process's table of descriptors: in a worker's
//!   table, the same numbers are other files, or none.
//! - One failure never stops the rest: each is reported once, and the entries copied, skipped,
//!   failed and left are all that were walked.

#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod data;
mod decide;
mod destination;
mod dirs;
mod dry;
mod engine;
mod error;
mod event;
mod job;
mod links;
mod manifest;
mod meta;
mod r#move;
mod options;
mod place;
mod plan;
mod report;
mod restore;
mod results;
mod resume;
mod run;
mod sources;
mod special;
mod stage;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a state. A thread that panicked while it held the lock has not left it in two halves.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use engine::{copy, fan_out};
pub use event::{Copied, Event, Why};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use event::{CopyProgress, Observer};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use r#move::move_files;
pub use r#move::{MoveOptions, MoveReport, Moved};
pub use options::{
    CopyOptions, Durability, MANIFEST_NAME, ManifestPlace, OnConflict, Preserve, ReadBack, Target,
    When,
};
pub use restore::{Loss, ParityPlace, RestoreOptions};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use restore::{Repaired, RestoreEvent, RestoreObserver, Restored, restore};
pub use run::{CopyReport, MissingPath, RepairedPath, RestoreOutcome, RestoreReport};
