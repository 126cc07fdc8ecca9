//! Taking moves back: by renaming, or by a copy that is given what the record
//! says, or by removing a copy whose original never went.

use bc_walk::{FileStat, Kind};

use super::{Found, Undo, UndoOutcome, find};
use crate::prune::guard::{self, compare};
use crate::prune::journal::{Copy, Entry};
use crate::prune::relocate::{Arrived, How, Loss, Means, Move};
use crate::prune::standing::Origin;
use crate::prune::step::Skip;
use crate::prune::temp::remove;

impl Undo<'_> {
    pub(super) fn move_back(
        &mut self,
        entry: &Entry,
        copy: Option<Copy>,
        path: &[u8],
        found: Found,
    ) -> Result<UndoOutcome, Skip> {
        let from = entry.destination().ok_or(Skip::Gone)?;
        let moved = match find(&from, &entry.target) {
            Ok(moved) => Some(moved).filter(|moved| moved.stat.is_some()),
            // The run was killed before the directory was made, or it went since.
            Err(Skip::Gone) => None,
            Err(why) => return Err(why),
        };
        if copy.is_some_and(|copy| copy.origin == Origin::Found) {
            return self.leave_copy(entry, path, found, moved, &from);
        }
        if let Some(here) = &found.stat {
            let Some(there) = moved else {
                // Never moved, or back already.
                return Ok(UndoOutcome::Unneeded);
            };
            let in_place = here.id == entry.target.id();
            let ours = there
                .stat
                .as_ref()
                .is_some_and(|stat| copy.is_some_and(|copy| copy.id == stat.id));
            return match in_place {
                true if ours => self.withdraw(entry, path, &from, found, there),
                true => Ok(UndoOutcome::Unneeded),
                false if is_restored(entry, here) => {
                    self.withdraw(entry, path, &from, found, there)
                }
                false => Err(Skip::DestinationExists(None)),
            };
        }
        let mut held = moved.ok_or(Skip::Gone)?.hold(&from)?;
        self.is_recorded(entry, &held)?;
        if let Some(outcome) = self.would() {
            return Ok(outcome);
        }
        held.refresh()?;
        let same = held.stat.id == entry.target.id();
        // The record knows what the original was like, its copy need not.
        let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
        let (metadata, lost) = metadata.entitled(&held.stat);
        let with = self
            .restored
            .get(&self.original(entry))
            .and_then(|(id, other)| {
                let other = find(other, &entry.target).ok()?;
                let found = other.stat.as_ref().is_some_and(|stat| stat.id == *id);
                found.then_some(Arrived {
                    dir: other.dir,
                    name: other.name,
                    id: *id,
                })
            });
        let placed = Move {
            target: &held,
            to_dir: &found.dir,
            name: &found.name,
            to: path,
            // A file that is not the one that was moved keeps what it has, and
            // a copy of it gets what the record says.
            how: if same { How::Rename } else { How::Copy },
            metadata,
            lost,
            loss: Loss::Accept,
            with: with.as_ref(),
            acceptable: None,
        }
        .go(
            Means {
                temps: &mut self.temps,
                blocked: &mut self.blocked,
                cancel: self.cancel,
                record: &mut |_, _| Ok(()),
            },
            || Ok(()),
        )?;
        if placed.copied {
            return Ok(self.done(entry, placed.id, path, &found.dir, placed.lost));
        }
        Ok(UndoOutcome::Restored { lost: placed.lost })
    }

    /// Gives the file back whose copy the run had found at its destination:
    /// that one is not the run's, and stays. Gone or changed since, it is not
    /// needed either: the kept file has the content.
    fn leave_copy(
        &mut self,
        entry: &Entry,
        path: &[u8],
        found: Found,
        moved: Option<Found>,
        from: &[u8],
    ) -> Result<UndoOutcome, Skip> {
        let source = moved
            .and_then(|moved| moved.hold(from).ok())
            .filter(|held| self.is_recorded(entry, held).is_ok());
        self.recreate(entry, path, found, source.as_ref())
    }

    /// Removes what is at the destination while the file is in its place: the
    /// move was killed before the original went, or undo after it was restored.
    fn withdraw(
        &mut self,
        entry: &Entry,
        path: &[u8],
        from: &[u8],
        original: Found,
        copy: Found,
    ) -> Result<UndoOutcome, Skip> {
        let original = original.hold(path)?;
        let copy = copy.hold(from)?;
        if copy.stat.kind() != Kind::File || copy.stat.id == original.stat.id {
            return Err(Skip::DestinationExists(None));
        }
        guard::check_distinct(&original, &copy)?;
        let size = entry.target.stamp().size;
        match compare(&original.file, &copy.file, size, self.cancel) {
            Ok(found) if Some(found) == entry.digest() => {}
            Err(Skip::Cancelled) => return Err(Skip::Cancelled),
            // Somebody works with one of them: both stay.
            _ => return Err(Skip::DestinationExists(None)),
        }
        if let Some(outcome) = self.would() {
            return Ok(outcome);
        }
        let _claim = self.blocked.claim(&copy.dir, self.cancel)?;
        remove(&copy, &mut self.temps, || original.check())?;
        let (id, dir) = (original.stat.id, &original.dir);
        Ok(self.done(entry, id, path, dir, Vec::new()))
    }
}

/// Whether a file is what undo makes of the step's: its content is compared
/// afterwards.
fn is_restored(entry: &Entry, here: &FileStat) -> bool {
    let stamp = entry.target.stamp();
    here.kind() == Kind::File
        && (here.stamp.size, here.stamp.mtime_ns) == (stamp.size, stamp.mtime_ns)
        && entry.target.metadata().is_some_and(|recorded| {
            let now = (here.uid, here.gid, here.mode & 0o7777);
            now == (recorded.uid, recorded.gid, recorded.mode)
        })
}
