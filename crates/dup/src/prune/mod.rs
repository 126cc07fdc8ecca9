//! Acting on duplicates. Every content that existed before exists afterwards
//! under at least one of its names, and no name goes missing but those the
//! user asked to delete or move, wherever the process is killed.
//!
//! One group at a time: choose a keeper and hold it open; for each target
//! open it by its directory's descriptor, compare its identity and stamp with
//! the scan's, compare the bytes, check both again, write the journal, act.
//! A dry run goes the same way and stops before the journal.

mod arrival;
mod aside;
mod claim;
mod copy;
mod delete;
mod distinct;
mod fail;
mod freed;

mod guard;
mod hardlink;
pub(crate) mod journal;
mod leftover;
mod meta;
mod moving;
mod options;
mod plan;
mod probe;
mod protect;
mod prove;
mod reflink;
mod relocate;
mod run;
mod stake;
mod standing;
mod step;
mod sweep;
mod symlink;
pub(crate) mod sys;
mod temp;
mod unable;
mod undo;
mod unions;
mod views;

#[cfg(test)]
pub(crate) mod tests;

pub use journal::{Journal, JournalError};
pub use leftover::is_original;
pub use options::{Force, Mode, Options, Owners};
pub(crate) use plan::split;
pub use plan::{FileRef, Group, Inode, Keep, KeepError, Pattern, Roots, Rules};
pub use protect::{lies_above, lies_below};
pub use run::{Event, prune};
pub use stake::{Stake, at_stake};
pub use step::{Action, ORIGINAL, Outcome, Skip, Step, StepKind, Summary};
pub use unable::{Lack, Unable};
pub use undo::{UndoEvent, UndoOutcome, UndoSummary, undo};
