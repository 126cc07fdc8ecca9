//! Outcomes that undo reports of each name, and totals.

use crate::skip::Skip;

/// Outcome of undoing one step of the journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UndoOutcome {
    /// The file is a separate one again. `lost` lists metadata that could not be given back.
    Restored {
        /// Owner, attribute … and the system's reason.
        lost: Vec<String>,
    },
    /// A dry run: it would be restored. `lost` lists metadata that could not be given back, as far
    /// as that can be known before.
    Would {
        /// Same as for a restored file.
        lost: Vec<String>,
    },
    /// There is nothing to undo: the name is a file of its own.
    Unneeded,
    /// It could not be restored; with [`Skip::UnknownStage`], no step is about this name, and it
    /// stays as it is.
    Failed(Skip),
}

/// One name that undo processed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UndoEvent<'a> {
    /// The name, absolute.
    pub path: &'a [u8],
    /// Action that prune had taken on it: `hardlink`, `delete` …
    pub action: &'a str,
    /// Outcome of undo.
    pub outcome: &'a UndoOutcome,
}

/// Totals.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct UndoSummary {
    /// Names restored, or that a dry run would restore.
    pub restored: u64,
    /// Number of those that did not get all their metadata back, or would not.
    pub incomplete: u64,
    /// Steps that needed nothing.
    pub unneeded: u64,
    /// Steps that could not be undone.
    pub failed: u64,
    /// Temporaries of killed runs that were removed.
    pub leftovers: u64,
    /// The numbers of lines of the journal that are damaged: their steps are not undone.
    pub damaged: Vec<u64>,
}
