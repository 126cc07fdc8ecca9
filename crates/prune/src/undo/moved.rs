//! Undo of moves: by renaming, or by a copy that is given the recorded metadata, or by removing a
//! copy whose original never went.

use bc_edit::content;
use bc_edit::metadata::FileMetadata;
use bc_fs::Escaped;
use bc_fs::meta::clipped;
use bc_walk::{FileKind, FileStat};

use super::names::{Another, ContentProof};
use super::{NamedEntry, Undo, UndoOutcome, may_be};
use crate::act::moving::aside::take_back;
use crate::act::moving::existing_target::Arrived;
use crate::act::moving::relocate::{Move, MoveMeans, MoveMethod};
use crate::check::compare::check_distinct;
use crate::check::compare::compare;
use crate::check::dir::Dir;
use crate::check::meta::{carried_back, entitled, not_in};
use crate::check::open_file::OpenFile;
use crate::journal::record::CopyOrigin;
use crate::journal::{JournalStep, RecordedCopy, Steps};
use crate::options::OnMetadataDiff;
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

    pub(super) fn move_back(
        &mut self,
        entry: &JournalStep,
        took_effect: Option<bool>,
        copy: Option<RecordedCopy>,
        path: &[u8],
        found: NamedEntry,
    ) -> Result<UndoOutcome, Skip> {
        let from = entry.destination().ok_or(Skip::Gone)?;
        let moved = match self.find(&from, &entry.target) {
            Ok(moved) => Some(moved).filter(|moved| moved.stat.is_some()),
            // The run was killed before the directory was made, or it went since.
            Err(Skip::Gone) => None,
            Err(why) => return Err(why),
        };
        if copy
            .as_ref()
            .is_some_and(|copy| copy.origin == CopyOrigin::Found)
        {
            return self.leave_copy(entry, path, found, moved, &from);
        }
        let Some(here) = &found.stat else {
            if self.foresees(&from, entry) {
                self.would(&[&found.dir])?;
                return self.would_bring_made(entry, &from, Some(&found.dir));
            }
            let moved = moved.ok_or_else(|| Skip::Missing(from.clone()))?;
            let moved = moved.hold(&from)?;
            return self.bring_back(entry, copy.as_ref(), path, found, moved);
        };
        if here.kind() != FileKind::File {
            return Err(Skip::NotRegular);
        }
        let before = entry.target.mark();
        let in_place = found.may_be(&before);
        let Some(there) = moved else {
            // Never moved, or back already. A number that became free may be another file's.
            let is_it = in_place && took_effect != Some(true)
                || found
                    .mark(&before)
                    .is_some_and(|now| now.proves_mounted(&before));
            if !is_it {
                self.is_recorded(entry, &found.hold(path)?)?;
            }
            self.remember(entry, path, ContentProof::Unproven);
            return Ok(UndoOutcome::Unneeded);
        };
        let made = |copy: &RecordedCopy| there.may_be(&copy.mark);
        if in_place && !copy.as_ref().is_some_and(made) {
            return Ok(UndoOutcome::Unneeded);
        }
        let here = here.clone();
        let there = there.hold(&from)?;
        let ours = copy.as_ref().is_some_and(|copy| is_copy(copy, &there));
        let wanted = self.wanted(entry, copy.as_ref(), &there)?;
        if in_place || is_restored(entry, &wanted, &here) {
            self.withdraw(entry, path, found, there, ours.then_some(&wanted))
        } else {
            Err(Skip::DestinationExists(None))
        }
    }

    /// Gives a moved file its name back.
    fn bring_back(
        &mut self,
        entry: &JournalStep,
        copy: Option<&RecordedCopy>,
        path: &[u8],
        found: NamedEntry,
        mut held: OpenFile,
    ) -> Result<UndoOutcome, Skip> {
        held.watch()?;
        self.is_recorded(entry, &held)?;
        if self.would(&[&found.dir, &held.dir])? {
            return self.would_bring(entry, copy, &held, Some(&found.dir));
        }
        held.check()?;
        let same = may_be(&held.mark(), &entry.target.mark());
        let wanted = self.wanted(entry, copy, &held)?;
        let own = held.metadata()?;
        let (metadata, lost) = entitled(wanted.clone(), &held.stat, Some(&own));
        // FileMetadata that the file system of the run's own copy did not take need not stay.
        let ours = copy.is_some_and(|copy| is_copy(copy, &held));
        let stays = |made: &FileMetadata| not_in(&own, made, ours.then_some(&wanted));
        let with = match self.another(entry) {
            Some(Another::There(other, _)) => other.stat.as_ref().map(|stat| Arrived {
                id: stat.id,
                dir: Dir::new(other.dir),
                name: other.name,
            }),
            Some(Another::Foreseen(_)) | None => None,
        };
        let placed = Move {
            target: &held,
            to_dir: &found.dir,
            name: &found.name,
            to: path,
            // A file that is not the moved one keeps its metadata.
            how: if same {
                MoveMethod::Rename
            } else {
                MoveMethod::Copy
            },
            metadata,
            lost,
            on_metadata_diff: OnMetadataDiff::Ignore,
            with: with.as_ref(),
            stays: Some(&stays),
            acceptable: None,
        }
        .go(
            MoveMeans {
                temps: &self.temps,
                blocked: &mut self.blocked,
                cancel: self.cancel,
                record: &mut |_, _, _| Ok(()),
            },
            || Ok(()),
        )?;
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
            return Ok(self.done(entry, placed.id, path, &found.dir, lost));
        }
        self.came_back(entry, path);
        Ok(UndoOutcome::Restored { lost })
    }

    /// Returns the metadata that the file is to have in its place: that of the moved file now, with
    /// the earlier values where the move lost them; for a file that is not the moved one, the moved
    /// one's earlier metadata.
    pub(super) fn wanted(
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

    /// Restores the file whose copy the run had found at its destination: that copy is not the
    /// run's, and stays. Even if it is gone or changed since, it is not needed: the kept file has
    /// the content.
    fn leave_copy(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        found: NamedEntry,
        moved: Option<NamedEntry>,
        from: &[u8],
    ) -> Result<UndoOutcome, Skip> {
        let source = moved
            .and_then(|moved| moved.hold(from).ok())
            .filter(|held| self.is_recorded(entry, held).is_ok());
        self.recreate(entry, path, found, source.as_ref())
    }

    /// Removes the copy at the destination while the file is in its place: the move was killed
    /// before the original went, or undo after it was restored.
    fn withdraw(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        original: NamedEntry,
        mut copy: OpenFile,
        wanted: Option<&FileMetadata>,
    ) -> Result<UndoOutcome, Skip> {
        let mut original = original.hold(path)?;
        if copy.stat.kind() != FileKind::File || copy.stat.id == original.stat.id {
            return Err(Skip::DestinationExists(None));
        }
        check_distinct(&original, &copy)?;
        copy.watch()?;
        original.watch()?;
        let size = entry.target.stamp().size;
        match compare(&original.file, &copy.file, size, self.cancel) {
            Ok(found) if Some(found) == entry.digest() => {}
            Err(Skip::Cancelled) => return Err(Skip::Cancelled),
            // Another process works with one of them: both stay.
            _ => return Err(Skip::DestinationExists(Some("its copy differs"))),
        }
        let (own, has) = (copy.metadata()?, original.metadata()?);
        if let Some(what) = not_in(&own, &has, wanted) {
            let path = Escaped(&copy.path);
            return Ok(self.back(vec![format!("the {what} of {path}, which stays")]));
        }
        if self.would(&[&copy.dir])? {
            if let Some(from) = entry.destination() {
                self.would_go(&from);
            }
            let lost = self.stands(entry, original.stat.id, path, original.stat.nlink);
            let lost = lost.into_iter().collect();
            return Ok(UndoOutcome::Would { lost });
        }
        let _claim = self.blocked.claim(&copy.dir, self.cancel)?;
        let (id, dir) = (original.stat.id, &original.dir);
        let is_spare = || {
            // It may be all there is from now on.
            content::sync(&original.file)?;
            content::sync_dir(dir)?;
            original.check()
        };
        take_back(&copy, &own, &original, is_spare, &self.temps)?;
        Ok(self.done(entry, id, path, dir, Vec::new()))
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
