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
mod moving;
mod prove;
mod remove;

use bc_pool::Cancel;
use bc_walk::{Identity, Stamp};

use self::group::DoneDirs;
use super::events::Events;
use super::journal::Journal;
use super::keep::FileRef;
use super::options::PruneOptions;
use super::relocate;
use super::state::{Run, Shared};
use super::step::{Action, PruneEvent, PruneSummary, TreeStep};

/// A directory with all that is in it, as a search found it.
#[derive(Clone, Debug)]
pub struct TreeCopy {
    /// The directory itself.
    pub dir: FileRef,
    /// Entries below it, at any depth: each directory before its own entries. Copies have theirs in
    /// the same order.
    pub entries: Vec<TreeEntry>,
}

/// One name below a [`TreeCopy`].
#[derive(Clone, Debug)]
pub struct TreeEntry {
    /// Index of the directory that it is in; `None`: the copy itself.
    pub parent: Option<u32>,
    /// Its name there.
    pub name: Vec<u8>,
    /// Kind of entry.
    pub kind: TreeKind,
    /// Identity.
    pub id: Identity,
    /// State.
    pub stamp: Stamp,
    /// Number of names that it had.
    pub nlink: u64,
}

/// Kind of entry below a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TreeKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Dir,
}

/// Directories that a search found to be copies of each other.
#[derive(Clone, Debug)]
pub struct TreeGroup {
    /// All of them.
    pub copies: Vec<TreeCopy>,
    /// Entries in them that filters left out: of such a group nothing is removed.
    pub filtered: u64,
}

impl TreeCopy {
    /// The copy itself, or one of its entries, by the path that it has.
    fn at(&self, at: Option<u32>) -> FileRef {
        let Some(nth) = at else {
            return self.dir.clone();
        };
        let entry = &self.entries[nth as usize];
        let mut names: Vec<&[u8]> = vec![&entry.name];
        let mut above = entry.parent;
        while let Some(nth) = above {
            let entry = &self.entries[nth as usize];
            names.push(&entry.name);
            above = entry.parent;
        }
        let mut path = self.dir.path.clone();
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        FileRef {
            path,
            root_len: self.dir.root_len,
            root: self.dir.root,
            id: entry.id,
            stamp: entry.stamp,
            nlink: entry.nlink,
            protected: self.dir.protected,
        }
    }

    /// The entries of one kind.
    fn of(&self, kind: TreeKind) -> impl DoubleEndedIterator<Item = Option<u32>> {
        let all = 0..self.entries.len() as u32;
        let of_kind = all.filter(move |nth| self.entries[*nth as usize].kind == kind);
        of_kind.map(Some)
    }

    /// The directory, and each one in it.
    fn dirs(&self) -> impl Iterator<Item = Identity> {
        let inner = self.entries.iter();
        let inner = inner.filter(|entry| entry.kind == TreeKind::Dir);
        [self.dir.id].into_iter().chain(inner.map(|entry| entry.id))
    }

    /// Returns the number of files in it, and of their bytes.
    fn amount(&self) -> (u64, u64) {
        let files = self.entries.iter();
        let files = files.filter(|entry| entry.kind == TreeKind::File);
        files.fold((0, 0), |(count, bytes), file| {
            (count + 1, bytes + file.stamp.size)
        })
    }
}

/// Acts on each group: removes or moves all of its directories but one. Steps are written to
/// `journal` before they are done; a front end should always give one when it executes.
///
/// Returns early, between two steps, when cancelled.
///
/// # Panics
/// If the action is neither [`Action::Delete`] nor [`Action::Move`].
pub fn prune_trees(
    groups: impl IntoIterator<Item = TreeGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(PruneEvent<'_>),
) -> PruneSummary {
    assert!(
        matches!(options.action, Action::Delete | Action::Move(_)),
        "directories are deleted or moved"
    );
    let mut events = Events::new(observer);
    let mut report = |event: PruneEvent<'_>| events.report(event);
    let (journal, shared) = (journal.map(|journal| &*journal), Shared::default());
    let mut run = Run::new(options, journal, cancel, shared, &mut report);
    let mut done = DoneDirs::new(run.journal, options);
    for group in groups {
        if cancel.is_cancelled() {
            break;
        }
        run.summary.groups += 1;
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
            target: self.target.dir.path.clone(),
            kept_file: self.kept_file.dir.path.clone(),
            to: match &options.action {
                Action::Move(dir) => Some(relocate::destination(dir, &self.target.dir.path)),
                _ => None,
            },
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
