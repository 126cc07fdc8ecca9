//! Undo of moves: by renaming, or by a copy that is given the recorded metadata, or by removing a
//! copy whose original never went.

use bc_edit::content;
use bc_edit::metadata::FileMetadata;
use bc_fs::Escaped;
use bc_fs::meta::clipped;
use bc_walk::{FileKind, FileStat};

use super::names::Another;
use super::next::Destination;
use super::{Undo, UndoOutcome, UndoneStep, is_taken_away, may_be, reference};
use crate::act::moving::aside::take_back;
use crate::act::moving::existing_target::Arrived;
use crate::act::moving::relocate::{Move, MoveMeans, MoveMethod};
use crate::act::trash::place;
use crate::check::compare::check_distinct;
use crate::check::compare::compare_while;
use crate::check::dir::{self, Dir};
use crate::check::meta::{carried_back, entitled, not_in};
use crate::check::open_file::OpenFile;
use crate::journal::{JournalStep, RecordedCopy, Steps};
use crate::options::{OnMetadataDiff, RunMode};
use crate::skip::Skip;

impl Undo<'_> {
    /// Whether an earlier run had moved the step's file to where the step found it, and it is back
    /// where that run had: an earlier undo was here.
    pub(super) fn is_back(
        &self,
        steps: &Steps,
        at: usize,
        entry: &JournalStep,
        path: &[u8],
    ) -> bool {
        let (mut at, mut path) = (at, path.to_vec());
        let is_there = |path: &[u8]| match self.find(path, &entry.target) {
            Ok(found) => found.stat.is_some() || self.foresees(path, entry),
            Err(why) => why != Skip::Gone,
        };
        while let Some((before, earlier)) = steps.moved_to(&path, at) {
            let Some(from) = earlier.target.path().filter(|_| !is_there(&path)) else {
                return false;
            };
            if self
                .held(&earlier, &from)
                .is_some_and(|held| self.is_recorded(entry, &held).is_ok())
            {
                return true;
            }
            (at, path) = (before, from);
        }
        false
    }

    /// Finds what the name leads to that the step's file was moved to.
    pub(super) fn find_destination(&self, step: &mut UndoneStep<'_>) -> Result<Destination, Skip> {
        let to = step.entry.destination().ok_or(Skip::Gone)?;
        let found = match self.find(&to, &step.entry.target) {
            Ok(found) => found,
            // The run was killed before the directory was made, or it went since.
            Err(Skip::Gone) => return Ok(Destination::Free),
            Err(why) => return Err(why),
        };
        let made = |copy: &RecordedCopy| found.may_be(&copy.mark);
        let leads = match &found.stat {
            None => Destination::Free,
            Some(_) if step.copy.is_some_and(made) => Destination::Copy,
            Some(_) => Destination::Other,
        };
        step.destination = Some(found);
        Ok(leads)
    }

    /// Proves that the file which was moved, or stands for it, may come back; returns true if it is
    /// the moved file itself.
    pub(super) fn prove_moved(&self, step: &mut UndoneStep<'_>) -> Result<bool, Skip> {
        let entry = step.entry;
        let before = entry.target.mark();
        // Nothing comes out of a trash instead of it: another file, or what cannot be read, is let be.
        let found = || step.destination.as_ref()?.mark(&before);
        let is_there = || found().is_some_and(|now| is_taken_away(&now, &before));
        if entry.is_trash() && !is_there() {
            return Ok(false);
        }
        let held = step.moved()?;
        held.watch()?;
        self.is_recorded(entry, held)?;
        Ok(entry.is_trash() || may_be(&held.mark(), &before))
    }

    /// Returns true if the file in its place has the metadata that undo would give it.
    pub(super) fn is_in_place(&self, step: &mut UndoneStep<'_>) -> Result<bool, Skip> {
        let (entry, copy) = (step.entry, step.copy);
        let wanted = self.wanted(entry, copy, step.moved()?)?;
        let here = step.found.stat.as_ref();
        Ok(here.is_some_and(|here| is_restored(entry, &wanted, here)))
    }

    /// Proves that the file in its place and the one that it was moved to are two, and equal.
    pub(super) fn prove_pair(&self, step: &mut UndoneStep<'_>) -> Result<(), Skip> {
        step.there()?;
        step.moved()?;
        let (Some(original), Some(copy)) = (&mut step.there, &mut step.moved) else {
            return Err(Skip::Gone);
        };
        if copy.stat.kind() != FileKind::File || copy.stat.id == original.stat.id {
            return Err(Skip::DestinationExists(None));
        }
        check_distinct(original, copy)?;
        copy.watch()?;
        original.watch()?;
        let size = step.entry.target.stamp().size;
        let pace = self.pace.watching(original);
        let unwritten = || copy.check_lease();
        match compare_while(&original.file, &copy.file, size, pace, unwritten) {
            Ok(found) if Some(found) == step.entry.digest() => Ok(()),
            Err(Skip::Cancelled) => Err(Skip::Cancelled),
            // Another process works with one of them: both stay.
            _ => Err(Skip::DestinationExists(Some("its copy differs"))),
        }
    }

    /// Returns the part of the moved file that the one in its place does not have.
    pub(super) fn loss(&self, step: &mut UndoneStep<'_>) -> Result<Option<String>, Skip> {
        let has = step.there()?.metadata()?;
        let (entry, copy) = (step.entry, step.copy);
        let back = self.carried(entry, copy, step.moved()?)?;
        let lost = back.stays(&has);
        step.carried = Some(back);
        Ok(lost)
    }

    /// Gives a moved file its name back.
    pub(super) fn bring_back(
        &mut self,
        step: &mut UndoneStep<'_>,
        how: MoveMethod,
    ) -> Result<UndoOutcome, Skip> {
        let (entry, path, copy) = (step.entry, step.path, step.copy);
        step.moved()?;
        let (Some(held), found) = (&step.moved, &step.found) else {
            return Err(Skip::Gone);
        };
        held.check()?;
        let back = self.carried(entry, copy, held)?;
        let stays = |made: &FileMetadata| back.stays(made);
        let with = match self.another(entry) {
            Some(Another::There(other, _)) => {
                let id = other.stat.as_ref().map(|stat| stat.id);
                id.zip(other.dir).map(|(id, dir)| Arrived {
                    id,
                    dir: Dir::new(dir),
                    name: other.name,
                })
            }
            Some(Another::Foreseen(_)) | None => None,
        };
        let placed = Move {
            target: held,
            to_dir: found.dir()?,
            name: &found.name,
            to: path,
            how,
            metadata: back.metadata.clone(),
            lost: back.lost.clone(),
            on_metadata_diff: OnMetadataDiff::Ignore,
            with: with.as_ref(),
            stays: Some(&stays),
            acceptable: None,
        }
        .go(
            MoveMeans {
                temps: &self.temps,
                blocked: &mut self.blocked,
                pace: self.pace,
                record: &mut |_, _, _| Ok(()),
            },
            || Ok(()),
        )?;
        self.forget_trashed(entry, path);
        let mut lost = placed.lost;
        match placed.stays {
            // Another process removed it meanwhile, as undo would have.
            None | Some(Skip::Gone) => {}
            Some(why) => lost.push(format!(
                "what was done to {} meanwhile, which stays: {why}",
                Escaped(&held.path)
            )),
        }
        if placed.copied {
            return Ok(self.done(entry, placed.id, path, found.dir()?, lost));
        }
        self.came_back(entry, path);
        Ok(UndoOutcome::Restored { lost })
    }

    /// Removes what a trash says of the file or directory that is in its place, if this step had put it
    /// there and it is out of it again.
    pub(super) fn forget_trashed(&self, entry: &JournalStep, path: &[u8]) {
        if self.mode == RunMode::DryRun || !entry.is_trash() {
            return;
        }
        if let Some(to) = entry.destination()
            && let Ok((files, name)) = dir::open_parent(&reference(&to, &entry.target))
        {
            place::forget(&files, &name, path);
        }
    }

    /// Returns the metadata with which a moved file comes back where it cannot be renamed.
    pub(super) fn carried(
        &self,
        entry: &JournalStep,
        copy: Option<&RecordedCopy>,
        held: &OpenFile,
    ) -> Result<CarriedBack, Skip> {
        let wanted = self.wanted(entry, copy, held)?;
        let own = held.metadata()?;
        let (metadata, lost) = entitled(wanted.clone(), &held.stat, Some(&own));
        Ok(CarriedBack {
            counts: copy
                .is_some_and(|copy| is_copy(copy, held))
                .then_some(wanted),
            own,
            metadata,
            lost,
        })
    }

    /// Returns the metadata that the file is to have in its place: that of the moved file now, with
    /// the earlier values where the move lost them; for a file that is not the moved one, the moved
    /// one's earlier metadata.
    fn wanted(
        &self,
        entry: &JournalStep,
        copy: Option<&RecordedCopy>,
        there: &OpenFile,
    ) -> Result<FileMetadata, Skip> {
        let before = entry.target.metadata().ok_or(Skip::Changed)?;
        match copy {
            Some(copy) if is_copy(copy, there) => {
                let now = there.metadata()?;
                Ok(carried_back(&now, copy.made.as_ref(), &before))
            }
            _ => Ok(before),
        }
    }

    /// Removes the copy at the destination: the file is in its place.
    pub(super) fn remove_copy(&mut self, step: &mut UndoneStep<'_>) -> Result<UndoOutcome, Skip> {
        let (entry, path) = (step.entry, step.path);
        let (Some(original), Some(copy), Some(CarriedBack { own, .. })) =
            (&step.there, &step.moved, &step.carried)
        else {
            return Err(Skip::Gone);
        };
        let _claim = self.blocked.claim(&copy.dir, self.pace.cancel)?;
        let (id, dir) = (original.stat.id, &original.dir);
        let is_spare = || {
            // It may be all there is from now on.
            content::sync(&original.file)?;
            content::sync_dir(dir)?;
            original.check()
        };
        take_back(copy, own, original, is_spare, &self.temps)?;
        Ok(self.done(entry, id, path, dir, Vec::new()))
    }
}

/// Metadata with which a moved file comes back as a copy.
pub(super) struct CarriedBack {
    /// Metadata of the moved file.
    own: FileMetadata,
    /// Metadata that the copy gets.
    pub(super) metadata: FileMetadata,
    /// Parts that it is not entitled to.
    pub(super) lost: Vec<String>,
    /// All that counts of the metadata of the run's own copy: what the file system there did not
    /// take need not stay.
    counts: Option<FileMetadata>,
}

impl CarriedBack {
    /// Returns the part of the moved file that would be lost if only a file that was `made` with
    /// this metadata were left.
    pub(super) fn stays(&self, made: &FileMetadata) -> Option<String> {
        not_in(&self.own, made, self.counts.as_ref())
    }
}

/// Returns true if a file is the copy that the move made.
pub(super) fn is_copy(copy: &RecordedCopy, held: &OpenFile) -> bool {
    may_be(&held.mark(), &copy.mark)
}

/// Returns true if a file has the metadata that undo would give the step's file: its content is
/// compared afterwards.
fn is_restored(entry: &JournalStep, wanted: &FileMetadata, here: &FileStat) -> bool {
    let now = (here.uid, here.gid, here.mode & 0o7777, here.stamp.mtime_ns);
    let is = |metadata: &FileMetadata| {
        let FileMetadata {
            uid,
            gid,
            mode,
            mtime_ns,
            ..
        } = *metadata;
        now == (uid, gid, mode, clipped(mtime_ns))
    };
    here.stamp.size == entry.target.stamp().size
        && (is(wanted) || entry.target.metadata().is_some_and(|before| is(&before)))
}
