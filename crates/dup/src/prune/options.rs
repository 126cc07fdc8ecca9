//! What a run is asked to do, and how far it may go.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use bc_walk::Identity;

use super::keep::KeepRules;
use super::step::Action;
use crate::subtrees::Subtrees;

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunMode {
    /// Nothing is: every proof is made and every step told, none is done.
    DryRun,
    /// Steps are done.
    Execute,
}

/// What to do where owner, mode, ACL or extended attributes differ.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnMetadataDiff {
    /// Skip the file: hardlink and symlink would lose them, a move to another
    /// file system may.
    #[default]
    Refuse,
    /// Go on.
    Ignore,
}

/// What to do where inode numbers cannot be trusted, or where links take space.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Force {
    /// Refuse what gives up a file: delete, symlink; and hard links of files that lie in a lower
    /// layer, or may.
    #[default]
    No,
    /// Go on.
    Yes,
}

/// What to do, and how far to go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PruneOptions {
    /// What becomes of duplicates.
    pub action: Action,
    /// Which file stays.
    pub rules: KeepRules,
    /// Whether to do it.
    pub mode: RunMode,
    /// Where metadata differ.
    pub on_metadata_diff: OnMetadataDiff,
    /// Where inode numbers are unstable, and where links take space.
    pub force: Force,
    /// Names that a kept file may get at most; what the file system allows if
    /// `None`.
    pub max_links: Option<u64>,
    /// Journals of earlier runs. What is in the way of a move is taken up if one
    /// of them says that it is a copy of this file that its run was killed over;
    /// it may lack what its file system did not take, and undo may remove it.
    /// They are read only if something is in the way.
    pub earlier: Vec<PathBuf>,
    /// Directories that stay, whatever goes around them: those that a rule or an answer keeps of one
    /// group, and which may lie in a copy that goes of another.
    pub kept_dirs: HashSet<Identity>,
    /// Where the journal is, or will be: a directory that it lies in is not removed.
    pub journal: Option<PathBuf>,
    /// What is never changed, whatever the groups say of it. Groups need not
    /// know: files in there are marked as the run comes to them.
    pub references: Arc<Subtrees>,
    /// Threads that act at the same time at most, in groups that have no file in common; 1 at least.
    /// The thread of the caller is not one of them: it tells. Where files are moved, where there are
    /// references, and for a few groups there is one.
    pub workers: usize,
}

setters! {
    PruneOptions:
    action: Action,
    rules: KeepRules,
    mode: RunMode,
    on_metadata_diff: OnMetadataDiff,
    force: Force,
    max_links: Option<u64>,
    earlier: Vec<PathBuf>,
    kept_dirs: HashSet<Identity>,
    journal: Option<PathBuf>,
    references: Arc<Subtrees>,
    workers: usize,
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
        }
    }
}
