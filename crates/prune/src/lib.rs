//! Actions on duplicates: replacing them by hard links, symbolic links or clones of the file that stays,
//! removing or moving them ([`PruneOptions`]), and undoing all of it ([`UndoJob`]). Every content that
//! existed before exists afterwards under at least one of its names, and no name is lost except those that
//! the user asked to delete or move, no matter when the process is killed. Nothing here prints or asks; a
//! caller gets steps and their outcomes.
//!
//! ```
//! use bc_find::Search;
//! use bc_prune::{Action, PruneOptions, RunMode, StepOutcome};
//! use bc_walk::job::Means;
//!
//! # let tree = tempfile::tempdir().unwrap();
//! # for (name, text) in [("a", "same"), ("b", "same"), ("c", "else")] {
//! #     std::fs::write(tree.path().join(name), text).unwrap();
//! # }
//! # let journals = tempfile::tempdir()?;
//! # let (root, journal) = (tree.path(), journals.path().join("pruned.jsonl"));
//! let (search, means) = (Search::new([root]), Means::new());
//! // A dry run first; a real one needs a journal, too.
//! let plan = PruneOptions::new(Action::Hardlink);
//! let planned = plan.run(&search, &means)?;
//! assert!(matches!(planned.steps[0].outcome, StepOutcome::Would { .. }));
//! assert!(planned.steps[0].step.to_string().starts_with("hardlink "));
//! let plan = plan.mode(RunMode::Execute).journal(Some(journal));
//! assert_eq!(plan.run(&search, &means)?.complete()?.changed, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//! For each group: choose the file to keep and hold it open; then, for each target, open it through its
//! directory's descriptor, compare its identity and stamp with the scan's, compare the bytes, check both
//! files again, write the journal, act. A dry run does the same, but stops before the journal. Groups are
//! processed by several threads where that is safe.
//!
//! # Invariants
//! - A digest, computed or cached, finds duplicates but never authorises a change: a run
//!   opens both files again, checks that they are the ones found, and compares
//!   them byte for byte.
//! - After any interruption of prune, including power cuts, every content that existed exists under at
//!   least one of its names; no name is lost except those that were to be deleted or moved. Changes by
//!   other processes are put back, not lost. One risk remains: if a process already has the file open and
//!   writes to it between prune's last check and the removal of its last name, it writes to a file without
//!   a name, as it would with `rm`.
//! - [References](bc_find::Search::references) and everything below them are never changed. They are
//!   recognised by the identity of the directories above a file, which is checked again right before a
//!   change, and where a mount gives these other identities, by the entries that are visible on both sides.
//! - No links are followed, except the roots themselves: no symbolic link below a root leads to a file that
//!   is changed.
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

/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use act::tree::prune_trees;
pub use job::{PruneStep, Pruned};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use journal::Journal;
pub use options::{Force, OnMetadataDiff, PruneOptions, RunMode};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use plan::Inode;
pub use plan::{Keep, KeepError, KeepRules, Pattern, Roots};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use planned::{Planned, at_stake};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use references::{lacks_parent, lies_above, lies_below};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use run::prune;
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use skip::{HALF_WAY, ORIGINAL};
pub use skip::{Lack, Skip, Unable};
pub use step::{Action, Step, StepKind, StepOutcome};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use step::{PruneEvent, PruneSummary, TreeStep};
pub use undo::{RestoredFile, UndoJob, Undone};
/// Internal to bit-crafts, without a promise of stability.
#[doc(hidden)]
pub use undo::{UndoEvent, UndoOptions, UndoOutcome, UndoSummary, undo};
