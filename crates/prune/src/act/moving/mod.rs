//! The move action's part of a run: existing targets at the destination, names of a file that move
//! together, and the journal's note of each copy.

pub(crate) mod aside;
pub(crate) mod copy;
pub(crate) mod destination;
pub(crate) mod existing_target;
pub(crate) mod relocate;

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_fs::meta;
use bc_fs::mount::Answer;

use self::existing_target::Arrived;
use self::relocate::{Move, MoveMeans, MoveMethod};
use crate::check::compare::mounts_differ;
use crate::check::dir::Dir;
use crate::check::open_file::OpenFile;
use crate::means::{GroupState, PruneRun};
use crate::options::RunMode;
use crate::skip::Skip;

impl PruneRun<'_> {
    /// Proves that nothing is in the way of moving `target` to `to`, or that the existing target is
    /// its copy.
    pub(crate) fn check_destination(
        &mut self,
        to: &[u8],
        kept_file: &OpenFile,
        target: &OpenFile,
    ) -> Result<(), Skip> {
        if self.copies.taken.contains(to) {
            return Err(existing_target::exists("another file was moved there"));
        }
        if rustix::fs::lstat(to).is_err() {
            return match self.options.mode {
                RunMode::DryRun => {
                    let at = self.foresee_destination(to)?;
                    self.foresee_owner(&at, target)
                }
                // It will be tried.
                RunMode::Execute => Ok(()),
            };
        }
        let Some((dir, name)) = self.look_up(to) else {
            return Err(Skip::DestinationExists(None));
        };
        self.copies.read_journals(self.options, self.means.cancel);
        let metadata = target.metadata()?;
        let existing = self
            .copies
            .acceptable(self.options, kept_file, target, to)
            .find(&dir, &name, to, target, &metadata, self.pace())?;
        if let Some(errno) = existing.unwatched {
            self.outcomes.unwatched(to, errno);
        }
        Ok(())
    }

    /// Moves `target` to `place`, as the journal's step `number`; returns the metadata that it
    /// lost.
    pub(crate) fn relocate(
        &mut self,
        place: Option<(OwnedFd, CString)>,
        kept_file: &OpenFile,
        target: &OpenFile,
        to: &[u8],
        number: Option<u64>,
        state: &mut GroupState<'_>,
    ) -> Result<Vec<String>, Skip> {
        let (to_dir, name) = place.ok_or(Skip::Changed)?;
        let source = target.stat.id;
        // No file is renamed from one mount to another, of one file system neither.
        let there = meta::stat_all(&to_dir)?;
        let elsewhere = there.stat.id.dev != source.dev || mounts_differ(there.mount, target.mount);
        if elsewhere && state.arrived.as_ref().is_none_or(|(id, _)| *id != source) {
            self.copies.read_journals(self.options, self.means.cancel);
            let earlier = self.copies.earlier_copy(target, &to_dir);
            state.arrived = earlier.map(|arrived| (source, arrived));
        }
        let arrived = state.arrived.as_ref().filter(|(id, _)| *id == source);
        // Renamed, each name of a file of a lower layer would be copied up on its own.
        let how = match arrived.is_some() && self.abilities.traits(target).copy_up == Answer::Yes {
            true => MoveMethod::Copy,
            false => MoveMethod::Rename,
        };
        let pace = self.pace();
        let acceptable = self.copies.acceptable(self.options, kept_file, target, to);
        let journal = self.journal.zip(number);
        let means = MoveMeans {
            temps: &self.means.shared.temps,
            blocked: &mut self.means.shared.blocked,
            pace,
            record: &mut |id, origin, made| match journal {
                Some((journal, step)) => journal.copied(step, id, origin, made),
                None => Ok(()),
            },
        };
        let placed = Move {
            target,
            to_dir: &to_dir,
            name: &name,
            to,
            how,
            metadata: target.metadata()?,
            lost: Vec::new(),
            on_metadata_diff: acceptable.on_metadata_diff,
            with: arrived.map(|(_, arrived)| arrived),
            stays: None,
            acceptable: Some(acceptable),
        }
        .go(means, || kept_file.outlives(target))
        .map_err(|why| self.foreseen(to, why))?;
        self.copies.placed.insert(placed.id, source);
        if let Some(why) = placed.stays {
            let (path, why) = (to.to_vec(), Box::new(why));
            return Err(Skip::CopyStays { path, why });
        }
        let mut lost = placed.lost;
        if placed.copied || placed.id != source {
            let stay = target.links.saturating_sub(state.pending);
            if stay > 0 {
                lost.push(format!(
                    "hard links: {stay} other name{} of the file did not move",
                    if stay == 1 { "" } else { "s" }
                ));
            }
            if state.pending > 1 {
                let id = placed.id;
                let dir = Dir::new(to_dir);
                state.arrived = Some((source, Arrived { dir, name, id }));
            }
        }
        Ok(lost)
    }
}
