//! Acting on duplicates. Every content that existed before exists afterwards
//! under at least one of its names, and no name goes missing but those the
//! user asked to delete or move, wherever the process is killed.
//!
//! One group at a time: choose the file to keep and hold it open; for each target open it by its
//! directory's descriptor, compare its identity and stamp with the scan's, compare the bytes, check
//! both again, write the journal, act. A dry run goes the same way and stops before the journal.
//! Groups are processed on several threads where that is safe.

mod abilities;
mod ancestors;
mod arrival;
mod aside;
mod caller;
mod checked_at;
mod claim;
mod compare;
mod copies;
mod copy;
mod delete;
mod dir;
mod distinct;
mod events;
mod existing_target;
mod freed;
mod handle;
mod hardlink;
pub(crate) mod journal;
mod keep;
mod lack;
mod leftover;
mod meta;
mod moving;
pub(crate) mod open_file;
mod options;
mod permitted;
mod planned;
mod precheck;
mod probe;
mod protect;
mod real_places;
mod reflink;
mod relocate;
mod run;
mod skip;
mod state;
mod step;
mod sweep;
mod symlink;
mod temp;
mod trees;
mod undo;
mod unions;
pub(crate) mod views;
mod workers;

#[cfg(test)]
pub(crate) mod tests;

pub use journal::{Journal, JournalError};
pub use keep::{FileGroup, FileRef, Inode, Keep, KeepError, KeepRules, Pattern, Roots};
pub use lack::{Lack, Unable};
pub(crate) use leftover::{is_original, is_ours};
pub use options::{Force, OnMetadataDiff, PruneOptions, RunMode};
pub use planned::{Planned, at_stake};
pub use protect::{lies_above, lies_below, lies_in};
pub use run::prune;
pub use skip::{HALF_WAY, ORIGINAL, Skip};
pub use step::{Action, PruneEvent, PruneSummary, Step, StepKind, StepOutcome, TreeStep};
pub use trees::{TreeCopy, TreeEntry, TreeGroup, TreeKind, prune_trees};
pub use undo::{UndoEvent, UndoOutcome, UndoSummary, undo};
