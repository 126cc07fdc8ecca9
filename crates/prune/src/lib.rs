//! Acting on duplicates: names made hard links, symbolic links or clones of the file that stays,
//! removed or moved ([`prune`](fn@prune)), whole directories removed or moved ([`prune_trees`]), and
//! all of it undone ([`undo`](fn@undo)). Every content that existed before exists afterwards
//! under at least one of its names, and no name goes missing but those the
//! user asked to delete or move, wherever the process is killed. Nothing here prints or asks; a front
//! end gets events.
//!
//! ```
//! use bc_find::report::ScanReport;
//! use bc_find::scan::{ScanOptions, ScanProgress, scan};
//! use bc_pool::Cancel;
//! use bc_prune::{Action, PruneEvent, PruneOptions, RunMode, StepOutcome, prune};
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
//! # How it works
//! One group at a time: choose the file to keep and hold it open; for each target open it by its
//! directory's descriptor, compare its identity and stamp with the scan's, compare the bytes, check
//! both again, write the journal, act. A dry run goes the same way and stops before the journal.
//! Groups are processed on several threads where that is safe.
//!
//! # Invariants
//! - A digest, computed or cached, finds duplicates but never authorises a change: [`prune`](fn@prune)
//!   opens both files again, checks that they are the ones found, and compares
//!   them byte for byte.
//! - At any interruption of prune, power cuts included, every content that existed exists
//!   under at least one of its names; no name goes missing but those that were to be deleted or
//!   moved. Changes by other processes are put back, not lost. One risk remains: a process that has
//!   the file open already and writes to it between prune's last look and the moment its last name
//!   goes writes to a file without a name, as it would with `rm`.
//! - Entries that [references](bc_find::Subtrees) name are never changed, nor anything below them: by the
//!   identity of the directories above a file, asked again right before it would be changed; and
//!   where a mount gives them other identities, by the entries that are visible on both sides.
//! - Nothing is followed but the roots themselves: no symbolic link below a
//!   root leads to a file that is changed.
#![forbid(unsafe_code)]
// The examples of the registry's page run, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod act;
mod check;
mod job;
mod journal;
mod leftovers;
mod means;
mod options;
mod outcomes;
mod plan;
mod planned;
mod references;
mod run;
mod skip;
mod step;
mod undo;
mod workers;

#[cfg(test)]
mod tests;

pub use act::tree::prune_trees;
pub use job::{PruneStep, Pruned};
pub use journal::Journal;
pub use options::{Force, OnMetadataDiff, PruneOptions, RunMode};
pub use plan::{Inode, Keep, KeepError, KeepRules, Pattern, Roots};
pub use planned::{Planned, at_stake};
pub use references::{lacks_parent, lies_above, lies_below};
pub use run::prune;
pub use skip::{HALF_WAY, Lack, ORIGINAL, Skip, Unable};
pub use step::{Action, PruneEvent, PruneSummary, Step, StepKind, StepOutcome, TreeStep};
pub use undo::{
    RestoredFile, UndoEvent, UndoJob, UndoOptions, UndoOutcome, UndoSummary, Undone, undo,
};
