//! Dry run of undo: refusals, and metadata that could not be given back, are found by the same
//! looks, and nothing is changed.

use std::os::fd::OwnedFd;

use bc_fs::Escaped;
use bc_walk::FileKind;
use rustix::io::Errno;

use super::moved::is_copy;
use super::remake::keeper;
use super::{Found, Undo, UndoOutcome, find, may_be, parted};
use crate::prune::journal::{Copy, Entry, Recorded};
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
        let mut found = find(path, recorded)?;
        if let (None, Some(name)) = (&found.stat, self.stand_ins.get(path)) {
            found.stat = Some(sys::stat_at(&found.dir, name)?);
            found.name.clone_from(name);
        }
        Ok(found)
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
        entry: &Entry,
        dir: Option<&OwnedFd>,
        there: Option<&OpenFile>,
    ) -> Result<UndoOutcome, Skip> {
        let mut lost = Vec::new();
        // As another name of a file that exists, or would by then, it has that file's metadata.
        if !self.has_name(entry) {
            let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
            let is_file = |held: &&OpenFile| held.stat.kind() == FileKind::File;
            let path = entry.keeper.path().unwrap_or_default();
            let foreseen = || self.foresees(&path, entry);
            let kept;
            let source = match there.filter(is_file) {
                Some(held) => Some(held),
                None if foreseen() => None,
                None => {
                    kept = keeper(entry)?;
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
        lost.extend(self.foresee_names(entry));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns the outcome of a file in a directory that would be made.
    pub(super) fn would_fill(
        &mut self,
        entry: &Entry,
        copy: Option<Copy>,
    ) -> Result<UndoOutcome, Skip> {
        match entry.action.as_str() {
            "delete" => self.would_make(entry, None, None),
            "move" => {
                let from = entry.destination().ok_or(Skip::Gone)?;
                let moved = self.find(&from, &entry.target)?;
                if moved.stat.is_none() {
                    return match self.foresees(&from, entry) {
                        true => Ok(UndoOutcome::Would { lost: Vec::new() }),
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
        entry: &Entry,
        copy: Option<&Copy>,
        held: &OpenFile,
        dir: Option<&OwnedFd>,
    ) -> Result<UndoOutcome, Skip> {
        if may_be(&held.mark(), &entry.target.mark()) {
            return Ok(UndoOutcome::Would { lost: Vec::new() });
        }
        let wanted = self.wanted(entry, copy, held)?;
        let own = held.metadata()?;
        let (metadata, mut lost) = wanted.clone().entitled(&held.stat, Some(&own));
        let made = match self.has_name(entry) {
            true => metadata,
            false => {
                let (made, refused) = self.would_give(&metadata, dir);
                lost.extend(refused);
                made
            }
        };
        let ours = copy.is_some_and(|copy| is_copy(copy, held));
        if let Some(what) = own.not_in(&made, ours.then_some(&wanted)) {
            let path = Escaped(&held.path);
            lost.push(format!("the {what} of {path}, which stays"));
        }
        lost.extend(self.foresee_names(entry));
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

    /// Returns true if another name of the step's file exists, or would by then.
    fn has_name(&mut self, entry: &Entry) -> bool {
        let original = self.original(entry);
        self.foreseen_names.contains_key(&original) || self.other_name(entry).is_some()
    }

    /// Records a name that would come back; returns the message about the other names.
    fn foresee_names(&mut self, entry: &Entry) -> Option<String> {
        let stands = self.other_name(entry).and_then(|(id, path)| {
            let stat = self.find(&path, &entry.target).ok()?.stat?;
            (stat.id == id).then_some(stat.nlink)
        });
        let original = self.original(entry);
        let made = self.foreseen_names.entry(original).or_default();
        *made += 1;
        parted(entry, stands.unwrap_or(0) + *made)
    }

    /// Returns true if a later step would have been undone by then that gave this name the content
    /// of the step's file.
    pub(super) fn foresees(&self, path: &[u8], entry: &Entry) -> bool {
        let found = self.foreseen.get(path);
        found.is_some_and(|digest| *digest == entry.digest())
    }
}
