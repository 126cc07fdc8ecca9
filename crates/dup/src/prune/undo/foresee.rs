//! Dry run of undo: refusals, and metadata that could not be given back, are found by the same
//! looks, and nothing is changed.

use std::os::fd::OwnedFd;

use bc_fs::Escaped;
use bc_walk::{FileKind, Identity};
use rustix::io::Errno;

use super::moved::is_copy;
use super::names::{Another, Named};
use super::{Found, Undo, UndoOutcome, find, may_be, parted};
use crate::prune::journal::{Copy, JournalStep, Recorded};
use crate::prune::meta::{Metadata, takes_attribute};
use crate::prune::open_file::OpenFile;
use crate::prune::options::RunMode;
use crate::prune::skip::Skip;
use crate::prune::sys;

impl Undo<'_> {
    /// Returns the outcome of a name that comes back without these properties.
    pub(super) fn back(&self, lost: Vec<String>) -> UndoOutcome {
        match self.mode {
            RunMode::Execute => UndoOutcome::Restored { lost },
            RunMode::DryRun => UndoOutcome::Would { lost },
        }
    }

    /// Returns the file that a name leads to, or would by then.
    pub(super) fn find(&self, path: &[u8], recorded: &Recorded) -> Result<Found, Skip> {
        if let Some(now) = self.now(path) {
            return find(now, recorded);
        }
        let mut found = find(path, recorded)?;
        found.stat = None;
        Ok(found)
    }

    /// Returns the name that now leads to what `path` would lead to by then; `None` if that is
    /// nothing. In a real run each name is its own.
    pub(super) fn now<'p>(&'p self, path: &'p [u8]) -> Option<&'p [u8]> {
        match self.stand_ins.get(path) {
            Some(now) => now.as_deref(),
            None => Some(path),
        }
    }

    /// Records in a dry run that what `from` leads to would have the name `path` as well.
    pub(super) fn would_lead(&mut self, path: &[u8], from: &[u8]) {
        if self.mode == RunMode::DryRun {
            let now = self.now(from).map(<[u8]>::to_vec);
            self.stand_ins.insert(path.to_vec(), now);
        }
    }

    /// Records in a dry run that a name would go.
    pub(super) fn would_go(&mut self, path: &[u8]) {
        if self.mode == RunMode::DryRun {
            self.foreseen.remove(path);
            self.stand_ins.insert(path.to_vec(), None);
        }
    }

    /// Proves in a dry run that names in these directories could be changed; `false` in a real one.
    pub(super) fn would(&self, dirs: &[&OwnedFd]) -> Result<bool, Skip> {
        if self.mode == RunMode::Execute {
            return Ok(false);
        }
        for dir in dirs {
            match sys::may_change(dir) {
                Err(failed) if matches!(failed.errno, Errno::ROFS | Errno::ACCESS) => {
                    return Err(failed.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Returns a dry run's outcome of a file that would be [made](Undo::make): in this directory,
    /// if that is there.
    pub(super) fn would_make(
        &mut self,
        entry: &JournalStep,
        dir: Option<&OwnedFd>,
        there: Option<&OpenFile>,
    ) -> Result<UndoOutcome, Skip> {
        let mut lost = Vec::new();
        // As another name of a file that exists, or would by then, it has that file's metadata.
        let another = self.another(entry);
        if another.is_none() {
            let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
            let is_file = |held: &&OpenFile| held.stat.kind() == FileKind::File;
            let path = entry.kept_file.path().unwrap_or_default();
            // What it would lead to by then is to be seen elsewhere, or is still to be made.
            let stands = matches!(self.stand_ins.get(&path), Some(Some(_)));
            let foreseen = || self.foresees(&path, entry) && !stands;
            let kept;
            let source = match there.filter(is_file) {
                Some(held) => Some(held),
                None if foreseen() => None,
                None => {
                    kept = self.kept_file(entry)?;
                    Some(&kept)
                }
            };
            let (metadata, left_out) = match source {
                Some(held) => {
                    self.prove_source(entry, held)?;
                    metadata.entitled(&held.stat, None)
                }
                None => (metadata, Vec::new()),
            };
            lost = self.would_give(&metadata, dir).1;
            lost.extend(left_out);
        }
        if let Some(dir) = dir {
            self.would(&[dir])?;
        }
        lost.extend(self.would_have(entry, another));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns the outcome of a file in a directory that would be made.
    pub(super) fn would_fill(
        &mut self,
        entry: &JournalStep,
        copy: Option<Copy>,
    ) -> Result<UndoOutcome, Skip> {
        match entry.action.as_str() {
            "delete" => self.would_make(entry, None, None),
            "move" => {
                let from = entry.destination().ok_or(Skip::Gone)?;
                let moved = self.find(&from, &entry.target)?;
                if moved.stat.is_none() {
                    return match self.foresees(&from, entry) {
                        true => {
                            self.would_go(&from);
                            Ok(UndoOutcome::Would { lost: Vec::new() })
                        }
                        false => Err(Skip::Missing(from)),
                    };
                }
                let held = moved.hold(&from)?;
                self.is_recorded(entry, &held)?;
                self.would_bring(entry, copy.as_ref(), &held, None)
            }
            // It is in a directory that would get its name back.
            _ => Ok(UndoOutcome::Would { lost: Vec::new() }),
        }
    }

    /// Returns a dry run's outcome of a moved file that would [come back](Undo::bring_back).
    pub(super) fn would_bring(
        &mut self,
        entry: &JournalStep,
        copy: Option<&Copy>,
        held: &OpenFile,
        dir: Option<&OwnedFd>,
    ) -> Result<UndoOutcome, Skip> {
        let from = entry.destination().ok_or(Skip::Gone)?;
        if may_be(&held.mark(), &entry.target.mark()) {
            let path = entry.target.path().ok_or(Skip::Gone)?;
            self.would_lead(&path, &from);
            self.would_go(&from);
            self.came_back(entry, &path);
            return Ok(UndoOutcome::Would { lost: Vec::new() });
        }
        let wanted = self.wanted(entry, copy, held)?;
        let own = held.metadata()?;
        let (metadata, mut lost) = wanted.clone().entitled(&held.stat, Some(&own));
        let another = self.another(entry);
        let made = match another {
            Some(_) => metadata,
            None => {
                let (made, refused) = self.would_give(&metadata, dir);
                lost.extend(refused);
                made
            }
        };
        let ours = copy.is_some_and(|copy| is_copy(copy, held));
        match own.not_in(&made, ours.then_some(&wanted)) {
            Some(what) => {
                let path = Escaped(&held.path);
                lost.push(format!("the {what} of {path}, which stays"));
            }
            None => self.would_go(&from),
        }
        lost.extend(self.would_have(entry, another));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns the metadata that a new file or directory in `dir` would have, and the parts that it
    /// would be refused.
    pub(super) fn would_give(
        &self,
        metadata: &Metadata,
        dir: Option<&OwnedFd>,
    ) -> (Metadata, Vec<String>) {
        let takes = |name: &[u8]| dir.is_none_or(|dir| takes_attribute(dir, name));
        metadata.foresee(&self.caller, takes)
    }

    /// Records a name that would come back, as one more of `another` or as the first one of a file
    /// that would be made; returns the message about the other names.
    fn would_have(&mut self, entry: &JournalStep, another: Option<Another>) -> Option<String> {
        let path = entry.target.path()?;
        let (file, stands) = match another {
            Some(Another::There(found, other)) => {
                self.would_lead(&path, &other);
                (Named::There(found.stat.as_ref()?.id), found.stat?.nlink)
            }
            Some(Another::Foreseen) | None => {
                self.stand_ins
                    .retain(|of, now| *of != path || now.is_none());
                (Named::New(self.original(entry)), 0)
            }
        };
        let more = self.foreseen_names.entry(file).or_default();
        *more += 1;
        parted(entry, stands + *more)
    }

    /// Returns the number of names that a file of so many has by then.
    pub(super) fn names_by_then(&self, id: Identity, now: u64) -> u64 {
        let more = self.foreseen_names.get(&Named::There(id));
        now.saturating_add(more.copied().unwrap_or(0))
    }

    /// Returns true if a later step would have been undone by then that gave this name the content
    /// of the step's file.
    pub(super) fn foresees(&self, path: &[u8], entry: &JournalStep) -> bool {
        let found = self.foreseen.get(path);
        found.is_some_and(|digest| *digest == entry.digest())
    }
}
