//! The move action's part of a run: existing targets at the destination, names of a file that move
//! together, and the journal's note of each copy.

pub(crate) mod arrival;
pub(crate) mod aside;
pub(crate) mod copies;
pub(crate) mod copy;
pub(crate) mod existing_target;
pub(crate) mod relocate;

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_fs::dirfd;
use bc_fs::dirfd::{deepest_existing, is_lost};
use bc_fs::meta;
use bc_fs::mount::Answer;
use bc_fs::path::{sibling, split};
use bc_walk::Identity;
use rustix::io::Errno;

use self::relocate::{Arrived, How, Move, MoveMeans};
use crate::check::dir::Dir;
use crate::check::distinct::differ;
use crate::check::open_file::OpenFile;
use crate::check::permitted;
use crate::leftovers;
use crate::leftovers::sweep::StageSources;
use crate::means::{Run, State};
use crate::options::{OnMetadataDiff, RunMode};
use crate::skip::Skip;
use crate::step::{Action, StepKind};

impl Run<'_> {
    /// Removes leftovers from where a file is to be moved to, if that is there.
    pub(crate) fn sweep_destination(&mut self, to: &[u8], sources: StageSources<'_>) {
        if let Some((dir, _)) = self.look_up(to)
            && let Ok(stat) = meta::stat(&dir)
        {
            self.sweep(&dir, &stat.id, to, sources);
        }
    }

    /// The directory that a file is to be moved to, if it exists, and the name
    /// there: the way there follows links as little as the move itself.
    fn look_up(&self, to: &[u8]) -> Option<(OwnedFd, CString)> {
        let Action::Move(given) = &self.options.action else {
            return None;
        };
        let (below, name) = split(to.get(given.len()..).unwrap_or_default());
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let root = dirfd::open_root(given).ok()?;
        let dir = dirfd::open_below(root, below).ok()?;
        Some((dir, dirfd::name(name).ok()?))
    }

    /// Opens the file with this inode number in the directory of `to`, under a name that is not a
    /// temporary one. The device's number may be another one since it was mounted again.
    pub(crate) fn copies_at(&self, to: &[u8], copy: Identity) -> Option<OpenFile> {
        let (dir, _) = self.look_up(to)?;
        let name = leftovers::with_number(&dir, copy.ino)?;
        OpenFile::find(&dir, &name, &sibling(to, name.as_bytes())).ok()
    }

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
            .find(&dir, &name, to, target, &metadata, self.means.cancel)?;
        if let Some(errno) = existing.unwatched {
            self.outcomes.unwatched(to, errno);
        }
        Ok(())
    }

    /// Opens the directory that a move goes to, with missing directories on the way made; `None`
    /// for steps that are no moves.
    pub(crate) fn open_destination(
        &self,
        kind: &StepKind,
        target: &OpenFile,
    ) -> Result<Option<(OwnedFd, CString)>, Skip> {
        match (kind, &self.options.action) {
            (StepKind::Move(to), Action::Move(dir)) => {
                let opened = relocate::open_parent(dir, to, &target.path);
                opened.map(Some).map_err(|why| self.foreseen(to, why))
            }
            _ => Ok(None),
        }
    }

    /// Proves as far as it can be seen that the directories on the way can be made, and a name in the
    /// last of them.
    pub(crate) fn foresee_destination(&self, to: &[u8]) -> Result<OwnedFd, Skip> {
        let Action::Move(given) = &self.options.action else {
            return Err(Skip::Changed);
        };
        let (mut at, missing) = deepest_existing(given)?;
        if missing > 1 || missing > 0 && is_lost(given) {
            return Err(Skip::lost());
        }
        if missing == 0 {
            let below = split(to.get(given.len()..).unwrap_or_default()).0;
            for part in below
                .split(|byte| *byte == b'/')
                .filter(|part| !part.is_empty())
            {
                match dirfd::open_below(&at, part) {
                    Ok(next) => at = next,
                    Err(failed) if failed.errno == Errno::NOENT => break,
                    Err(failed) => return Err(failed.into()),
                }
            }
        }
        dirfd::may_change(&at)?;
        Ok(at)
    }

    /// Proves that a copy which has to be made below this directory can be given the file's owner.
    fn foresee_owner(&self, at: &OwnedFd, target: &OpenFile) -> Result<(), Skip> {
        let there = meta::stat_all(at)?;
        let is_renamed =
            there.stat.id.dev == target.stat.id.dev && !differ(there.mount, target.mount);
        if is_renamed || self.options.on_metadata_diff == OnMetadataDiff::Ignore {
            return Ok(());
        }
        let caller = &self.abilities.caller;
        caller
            .may_give(Some(&there.stat), permitted::owner(target))
            .map_err(|errno| {
                let reason = std::io::Error::from(errno);
                Skip::MetadataLost(format!("owner: {reason}"))
            })
    }

    /// Returns the reason why a move did not arrive, in the words of a dry run where that would
    /// have reported it.
    fn foreseen(&self, to: &[u8], why: Skip) -> Skip {
        match &why {
            Skip::System { errno, .. }
                if matches!(
                    Errno::from_raw_os_error(*errno),
                    Errno::ACCESS | Errno::ROFS | Errno::NOTDIR | Errno::LOOP | Errno::NOENT
                ) =>
            {
                self.foresee_destination(to).err().unwrap_or(why)
            }
            _ => why,
        }
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
        state: &mut State<'_>,
    ) -> Result<Vec<String>, Skip> {
        let (to_dir, name) = place.ok_or(Skip::Changed)?;
        let source = target.stat.id;
        // No file is renamed from one mount to another, of one file system neither.
        let there = meta::stat_all(&to_dir)?;
        let elsewhere = there.stat.id.dev != source.dev || differ(there.mount, target.mount);
        if elsewhere && state.arrived.as_ref().is_none_or(|(id, _)| *id != source) {
            self.copies.read_journals(self.options, self.means.cancel);
            let earlier = self.copies.earlier_copy(target, &to_dir);
            state.arrived = earlier.map(|arrived| (source, arrived));
        }
        let arrived = state.arrived.as_ref().filter(|(id, _)| *id == source);
        // Renamed, each name of a file of a lower layer would be copied up on its own.
        let how = match arrived.is_some() && self.abilities.traits(target).copy_up == Answer::Yes {
            true => How::Copy,
            false => How::Rename,
        };
        let acceptable = self.copies.acceptable(self.options, kept_file, target, to);
        let journal = self.journal.zip(number);
        let means = MoveMeans {
            temps: &self.means.shared.temps,
            blocked: &mut self.means.shared.blocked,
            cancel: self.means.cancel,
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
