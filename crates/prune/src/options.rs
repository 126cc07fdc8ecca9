//! Options of a run: its action and its limits.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use bc_find::Subtrees;
use bc_read::Rate;
use bc_walk::Identity;

use crate::plan::KeepRules;
use crate::step::Action;

/// Dry run or real run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunMode {
    /// Makes every proof and reports every step, and changes nothing.
    DryRun,
    /// Steps are done.
    Execute,
}

/// Treatment of files whose owner, mode, ACL or extended attributes differ.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnMetadataDiff {
    /// Skip the file: hardlink and symlink would lose them, a move to another
    /// file system may.
    #[default]
    Refuse,
    /// Go on.
    Ignore,
}

/// Treatment of file systems with unreliable inode numbers, or where links take space.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Force {
    /// Refuse steps that give up a file: delete, symlink; and hard links of files that lie in a
    /// lower layer, or may.
    #[default]
    No,
    /// Go on.
    Yes,
}

/// Action of a run, and its limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PruneOptions {
    /// Action on duplicates.
    pub action: Action,
    /// Rules for choosing the file that stays.
    pub rules: KeepRules,
    /// Dry run or real run.
    pub mode: RunMode,
    /// Treatment of different metadata.
    pub on_metadata_diff: OnMetadataDiff,
    /// Treatment of unstable inode numbers, and of links that take space.
    pub force: Force,
    /// Names that a kept file may get at most; the file system's limit if `None`.
    pub max_links: Option<u64>,
    /// Journals of earlier runs. An existing target of a move is accepted if one of them records it
    /// as a copy of this file that its run was killed over; it may lack metadata that its file
    /// system did not take, and undo may remove it. They are read only if there is an existing
    /// target.
    pub earlier: Vec<PathBuf>,
    /// Directories that stay, whatever goes around them: those that a rule or an answer keeps of one
    /// group, and which may lie in a copy that goes of another.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub kept_dirs: HashSet<Identity>,
    /// Where the journal is, or will be: a directory that it lies in is not removed.
    pub journal: Option<PathBuf>,
    /// Trees that are never changed, whatever the groups say. Groups need not mark their files:
    /// these are marked as the run meets them.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub references: Arc<Subtrees>,
    /// Threads that act at the same time at most, in groups that have no file in common; 1 at
    /// least. The thread of the caller is not one of them: it reports. Where files are moved, where
    /// there are references, and for a few groups there is one.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub workers: usize,
    /// Limit of bytes a second for comparing and copying files, if there is one.
    pub rate: Option<Rate>,
    /// Threads at most where these wait, if that is more; 0: no more.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub waiting: usize,
    /// Seconds by which the user's time is ahead of UTC, for the dates in a trash.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub utc_offset: i32,
}

bc_fs::setters! {
    PruneOptions:
    action: Action,
    rules: KeepRules,
    mode: RunMode,
    on_metadata_diff: OnMetadataDiff,
    force: Force,
    max_links: Option<u64>,
    earlier: Vec<PathBuf>,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    kept_dirs: HashSet<Identity>,
    journal: Option<PathBuf>,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    references: Arc<Subtrees>,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    workers: usize,
    rate: Option<Rate>,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    waiting: usize,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    utc_offset: i32,
}

impl PruneOptions {
    /// A dry run of `action` with default rules.
    pub fn new(action: Action) -> PruneOptions {
        PruneOptions {
            action,
            rules: KeepRules::default(),
            mode: RunMode::DryRun,
            on_metadata_diff: OnMetadataDiff::default(),
            force: Force::default(),
            max_links: None,
            earlier: Vec::new(),
            kept_dirs: HashSet::new(),
            journal: None,
            references: Arc::default(),
            workers: 1,
            rate: None,
            waiting: 0,
            utc_offset: 0,
        }
    }
}
