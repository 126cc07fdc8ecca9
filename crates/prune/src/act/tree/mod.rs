//! Whole directories that are copies of each other. One of each group stays; another one goes once
//! everything in it is proven to be in that one, name by name or, where it is moved, by one rename.
//! Versions before moved to other file systems as well, by a copy of each name; undo takes that
//! back.
//!
//! # Invariants
//! - Before the first name of a directory goes, every file in it was compared byte for byte with its
//!   twin, every link and every directory was found in the directory that stays, and nothing else was
//!   in it. Then each file is proven once more, right before its own name goes.
//! - The directory that stays lies in no directory that the run removes, and nothing is removed
//!   from it.
//! - Directories are removed by `rmdir` alone, which fails unless they are empty.
//! - Before the first name of a directory goes, the journal has the owner, mode, times and attributes of
//!   each directory in it.

mod group;
mod held;
mod prove;
mod remove;

use bc_find::groups::{FileRef, TreeCopy, TreeGroup, TreeKind};
use bc_pool::Cancel;

pub(crate) use self::remove::rename_dir;

use self::group::DoneDirs;
use crate::journal::Journal;
use crate::means::{PruneRun, Shared};
use crate::options::PruneOptions;
use crate::outcomes::Events;
use crate::step::{self, Action, PruneEvent, PruneSummary, StepKind, TreeStep};

/// Acts on each group: removes, moves or puts in the trash all of its directories but one. Steps are written to
/// `journal` before they are done; a front end should always give one when it executes.
///
/// Returns early, between two steps, when cancelled.
///
/// # Panics
/// If the action is none of [`Action::Delete`], [`Action::Move`] and [`Action::Trash`], or the rules ask for more than
/// one copy: one directory of each group stays.
pub fn prune_trees(
    groups: impl IntoIterator<Item = TreeGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(PruneEvent),
) -> PruneSummary {
    assert!(
        matches!(
            options.action,
            Action::Delete | Action::Move(_) | Action::Trash(_)
        ),
        "directories are deleted, moved or put in the trash"
    );
    assert_eq!(
        options.rules.further(),
        0,
        "of equal directories one stays, not several"
    );
    let mut events = Events::new(observer);
    let mut report = |event: PruneEvent| events.report(event);
    let (journal, shared) = (journal.map(|journal| &*journal), Shared::default());
    let mut run = PruneRun::new(options, journal, cancel, shared, &mut report);
    let mut done = DoneDirs::new(run.journal, options);
    for group in groups {
        if cancel.is_cancelled() {
            break;
        }
        run.outcomes.summary.groups += 1;
        run.tree_group(group, &mut done);
    }
    run.finish()
}

/// Way to remove or move a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
enum RemovalWay {
    /// Name by name.
    Delete,
    /// By one rename to this path, which is on the same file system.
    Rename(Vec<u8>),
    /// By one rename to the trash.
    Trash,
}

/// A directory that is to go, and the one that stays in its place.
struct TreePair<'p> {
    kept_file: &'p TreeCopy,
    target: &'p TreeCopy,
}

impl TreePair<'_> {
    fn step(&self, options: &PruneOptions) -> TreeStep {
        let (files, bytes) = self.target.amount();
        TreeStep {
            kind: match &options.action {
                Action::Move(dir) => StepKind::Move(step::path_below(dir, &self.target.dir.path)),
                Action::Trash(_) => StepKind::Trash(Vec::new()),
                _ => StepKind::Delete,
            },
            target: self.target.dir.path.clone(),
            kept_file: self.kept_file.dir.path.clone(),
            reference: self.kept_file.dir.protected,
            files,
            bytes,
        }
    }

    /// An entry of the target behind its twin; or both directories themselves.
    fn both(&self, at: Option<u32>) -> (FileRef, FileRef) {
        (self.kept_file.at(at), self.target.at(at))
    }

    /// Returns the directory, and then each one in it, before its own entries.
    fn dirs(&self) -> impl DoubleEndedIterator<Item = Option<u32>> {
        [None].into_iter().chain(self.target.of(TreeKind::Dir))
    }
}
