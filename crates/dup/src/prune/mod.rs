//! Acting on duplicates. Every content that existed before exists afterwards
//! under at least one of its names, and no name goes missing but those the
//! user asked to delete or move, wherever the process is killed.
//!
//! One group at a time: choose a keeper and hold it open; for each target
//! open it by its directory's descriptor, compare its identity and stamp with
//! the scan's, compare the bytes, check both again, write the journal, act.
//! A dry run goes the same way and stops before the journal.

mod copy;
mod delete;
mod fail;
mod guard;
mod hardlink;
pub(crate) mod journal;
mod leftover;
mod meta;
mod plan;
mod prove;
mod reflink;
mod relocate;
mod run;
mod step;
mod symlink;
mod sys;
mod temp;
mod unable;
mod undo;

#[cfg(test)]
mod tests;

pub use journal::{Journal, JournalError};
pub use plan::{FileRef, Group, Inode, Keep, KeepError, Pattern, Roots, Rules};
pub use run::{Event, Force, Mode, Options, Owners, prune};
pub use step::{Action, Outcome, Skip, Step, StepKind, Summary};
pub use unable::{Lack, Unable};
pub use undo::{UndoEvent, UndoOutcome, UndoSummary, undo};
