//! Taking moves back: by renaming, or by a copy that is given what the record
//! says, or by removing a copy whose original never went.

use bc_walk::Identity;

use super::{Found, Undo, UndoOutcome, find};
use crate::prune::journal::Entry;
use crate::prune::relocate::{Arrived, How, Loss, Means, Move};
use crate::prune::step::Skip;
use crate::prune::temp::remove;

impl Undo<'_> {
    pub(super) fn move_back(
        &mut self,
        entry: &Entry,
        copy: Option<Identity>,
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
        if let Some(here) = &found.stat {
            let there = moved.as_ref().and_then(|moved| moved.stat.as_ref());
            let in_place = here.id == entry.target.id();
            return match moved.as_ref().zip(there.map(|stat| stat.id)) {
                // Never moved, or back already.
                None => Ok(UndoOutcome::Unneeded),
                Some((_, id)) if in_place && Some(id) == copy && id != here.id => {
                    self.withdraw(entry, path, &from, found, moved)
                }
                Some(_) if in_place => Ok(UndoOutcome::Unneeded),
                Some(_) => Err(Skip::DestinationExists),
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
            .get(&entry.target.id())
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
            with,
            ours: None,
        }
        .go(
            Means {
                temps: &mut self.temps,
                blocked: &mut self.blocked,
                cancel: self.cancel,
                record: &mut |_| Ok(()),
            },
            || Ok(()),
        )?;
        if placed.copied {
            return Ok(self.done(entry, placed.id, path, &found.dir, placed.lost));
        }
        Ok(UndoOutcome::Restored { lost: placed.lost })
    }

    /// Removes the copy of a move that was killed before the original went.
    fn withdraw(
        &mut self,
        entry: &Entry,
        path: &[u8],
        from: &[u8],
        original: Found,
        copy: Option<Found>,
    ) -> Result<UndoOutcome, Skip> {
        let original = original.hold(path)?;
        let copy = copy.ok_or(Skip::Gone)?.hold(from)?;
        self.is_recorded(entry, &original)?;
        if self.is_recorded(entry, &copy).is_err() {
            // Somebody works with it: it stays, and the original is in place.
            return Ok(UndoOutcome::Unneeded);
        }
        if let Some(outcome) = self.would() {
            return Ok(outcome);
        }
        let _claim = self.blocked.claim(&copy.dir, self.cancel)?;
        remove(&copy, &mut self.temps, || original.check())?;
        Ok(UndoOutcome::Restored { lost: Vec::new() })
    }
}
