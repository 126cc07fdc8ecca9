//! What a dry run says of a step: what undo would refuse is found out, and nothing is changed.

use std::os::fd::OwnedFd;

use bc_walk::FileKind;
use rustix::io::Errno;

use super::remake::keeper;
use super::{Undo, UndoOutcome};
use crate::prune::journal::Entry;
use crate::prune::open_file::OpenFile;
use crate::prune::options::RunMode;
use crate::prune::skip::Skip;
use crate::prune::sys;

impl Undo<'_> {
    /// What a dry run says of a step for which names in these directories would be changed.
    pub(super) fn would(&self, dirs: &[&OwnedFd]) -> Result<Option<UndoOutcome>, Skip> {
        if self.mode == RunMode::Execute {
            return Ok(None);
        }
        for dir in dirs {
            match sys::may_change(dir) {
                Err(failed) if matches!(failed.errno, Errno::ROFS | Errno::ACCESS) => {
                    return Err(failed.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Some(UndoOutcome::Would))
    }

    /// What a dry run says of a file that would be [made](Undo::make).
    pub(super) fn would_make(
        &self,
        entry: &Entry,
        dir: &OwnedFd,
        there: Option<&OpenFile>,
    ) -> Result<UndoOutcome, Skip> {
        let foresees = |path: Vec<u8>| self.foresees(&path, entry);
        let is_file = |held: &&OpenFile| held.stat.kind() == FileKind::File;
        match there.filter(is_file) {
            Some(held) => self.prove_source(entry, held)?,
            None if entry.keeper.path().is_some_and(foresees) => {}
            None => self.prove_source(entry, &keeper(entry)?)?,
        }
        Ok(self.would(&[dir])?.unwrap_or(UndoOutcome::Would))
    }

    /// Whether a step after this one would have been taken back, which gave this name the content of
    /// the step's file.
    pub(super) fn foresees(&self, path: &[u8], entry: &Entry) -> bool {
        let found = self.foreseen.get(path);
        found.is_some_and(|digest| *digest == entry.digest())
    }
}
