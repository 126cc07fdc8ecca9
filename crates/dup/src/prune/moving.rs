//! The move action's part of a run: what lies at the destination already,
//! which names of a file move together, and the journal's note of each copy.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_fs::mount::Answer;
use bc_walk::{FileStat, Identity};

use super::guard::Held;
use super::journal;
use super::leftover::{self, Mark};
use super::options::{Options, Owners};
use super::plan::split;
use super::relocate::{self, Arrived, How, Loss, Means, Move};
use super::run::{Run, State};
use super::standing::{self, Acceptable};
use super::step::{Action, Skip, StepKind};
use super::sys;

/// The copies that earlier runs were killed over.
pub(super) struct Unfinished {
    /// By the path that a journal has: which file each is, and of which.
    copies: HashMap<Vec<u8>, (Mark, Mark)>,
    /// Of files with several names: where one arrived, and which file that is.
    linked: HashMap<Mark, (Vec<u8>, Mark)>,
    /// The directory that files are moved to, as given and as journals have it.
    given: Vec<u8>,
    real: Option<Vec<u8>>,
}

impl Unfinished {
    /// The copy of `target` that is at `to`.
    fn at(&self, to: &[u8], target: &Held) -> Option<Mark> {
        let below = to.strip_prefix(self.given.as_slice())?;
        let path = journal::join(self.real.as_ref()?, below);
        let (copy, original) = self.copies.get(&path)?;
        original.proves(&target.mark()).then_some(*copy)
    }
}

/// What a run knows of copies that stand already.
#[derive(Default)]
pub(super) struct Copies {
    /// Those that earlier runs were killed over, once that was asked.
    unfinished: Option<Unfinished>,
    /// Those that were found to have their temporary names too, after the file
    /// that each was made of.
    pub(super) traces: HashSet<(Mark, Identity)>,
    /// The files that this run has placed, and what they were before: a copy is
    /// another one.
    placed: HashMap<Identity, Identity>,
}

/// What may have the name `to` already, as a copy of `target`.
fn acceptable<'a>(
    options: &'a Options,
    copies: &'a Copies,
    keeper: &'a Held,
    target: &Held,
    to: &[u8],
) -> Acceptable<'a> {
    let unfinished = copies.unfinished.as_ref();
    Acceptable {
        known: unfinished.and_then(|known| known.at(to, target)),
        traces: &copies.traces,
        keeper,
        references: &options.references,
        placed: &copies.placed,
        force: options.force,
        loss: match options.metadata {
            Owners::Refuse => Loss::Refuse,
            Owners::Ignore => Loss::Accept,
        },
    }
}

impl Run<'_> {
    /// Removes leftovers from where a file is to be moved to, if that is there.
    pub(super) fn sweep_destination(&mut self, to: &[u8]) {
        if let Some((dir, _)) = self.look_up(to)
            && let Ok(stat) = sys::stat(&dir)
        {
            self.sweep(&dir, &FileStat::from(&stat).id, to);
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
        let root = sys::open_root(given).ok()?;
        let dir = sys::open_below(root, below).ok()?;
        Some((dir, sys::name(name).ok()?))
    }

    /// What has this number in the directory of `to`, under a name that is not a
    /// temporary one. The device's number may be another one since it was mounted
    /// again.
    pub(super) fn copies_at(&self, to: &[u8], copy: Identity) -> Option<Held> {
        let (dir, _) = self.look_up(to)?;
        let name = leftover::with_number(&dir, copy.ino)?;
        let above = &to[..to.len() - split(to).1.len()];
        Held::find(&dir, &name, &[above, name.as_bytes()].concat()).ok()
    }

    /// Proves that nothing is in the way of moving `target` to `to`, or that what
    /// is there is its copy.
    pub(super) fn check_destination(
        &mut self,
        to: &[u8],
        keeper: &Held,
        target: &Held,
    ) -> Result<(), Skip> {
        if self.taken.contains(to) {
            return Err(standing::exists("another file was moved there"));
        }
        if rustix::fs::lstat(to).is_err() {
            return Ok(());
        }
        let Some((dir, name)) = self.look_up(to) else {
            return Err(Skip::DestinationExists(None));
        };
        self.read_journals();
        let metadata = target.metadata()?;
        let standing = acceptable(self.options, &self.copies, keeper, target, to).find(
            (&dir, &name),
            to,
            target,
            &metadata,
            self.cancel,
        )?;
        if let Some(errno) = standing.unwatched {
            self.unwatched(to, errno);
        }
        Ok(())
    }

    /// Asks the journals of earlier runs what they were killed over, once.
    fn read_journals(&mut self) {
        let (options, cancel) = (self.options, self.cancel);
        let Action::Move(given) = &options.action else {
            return;
        };
        self.copies.unfinished.get_or_insert_with(|| {
            let (copies, linked) = journal::earlier_copies(&options.earlier, cancel);
            Unfinished {
                copies,
                linked,
                given: given.clone(),
                real: sys::open_root(given)
                    .ok()
                    .and_then(|dir| sys::real_path(&dir)),
            }
        });
    }

    /// The copy that an earlier run made of `target` under another one of its names
    /// before it was killed, if that has all that the file has.
    fn earlier_copy(&self, target: &Held, to_dir: &OwnedFd) -> Option<Arrived> {
        let mark = target.mark();
        mark.born_ns?;
        let traced = self.copies.traces.iter().find(|(of, _)| *of == mark);
        let traced = traced.and_then(|(_, copy)| {
            let name = leftover::with_number(to_dir, copy.ino)?;
            Held::find(to_dir, &name, b"").ok()
        });
        let recorded = || {
            let (path, copy) = self.copies.unfinished.as_ref()?.linked.get(&mark)?;
            let (parent, name) = split(path);
            let root = sys::open_root(b"/").ok()?;
            let dir = sys::open_below(root, parent.strip_prefix(b"/")?).ok()?;
            let held = Held::find(&dir, &sys::name(name).ok()?, path).ok()?;
            copy.proves(&held.mark()).then_some(held)
        };
        let held = traced.or_else(recorded)?;
        let (own, there) = (target.metadata().ok()?, held.metadata().ok()?);
        let same = own.difference(&there).is_none() && own.mtime_ns == there.mtime_ns;
        let (dir, name, id) = (held.dir, held.name, held.stat.id);
        same.then_some(Arrived { dir, name, id })
    }

    /// Where a move goes, with the directories on the way made.
    pub(super) fn open_destination(
        &self,
        kind: &StepKind,
        target: &Held,
    ) -> Result<Option<(OwnedFd, CString)>, Skip> {
        match (kind, &self.options.action) {
            (StepKind::Move(to), Action::Move(dir)) => {
                relocate::open_parent(dir, to, &target.path).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Moves `target` to `place`, as the journal's step `number`; what it lost.
    pub(super) fn relocate(
        &mut self,
        place: Option<(OwnedFd, CString)>,
        keeper: &Held,
        target: &Held,
        to: &[u8],
        number: Option<u64>,
        state: &mut State<'_>,
    ) -> Result<Vec<String>, Skip> {
        let (to_dir, name) = place.ok_or(Skip::Changed)?;
        let source = target.stat.id;
        let elsewhere = FileStat::from(&sys::stat(&to_dir)?).id.dev != source.dev;
        if elsewhere && state.arrived.as_ref().is_none_or(|(id, _)| *id != source) {
            self.read_journals();
            let earlier = self.earlier_copy(target, &to_dir);
            state.arrived = earlier.map(|arrived| (source, arrived));
        }
        let arrived = state.arrived.as_ref().filter(|(id, _)| *id == source);
        // Renamed, each name of a file of a lower layer would be copied up on its own.
        let how = match arrived.is_some() && self.traits(target).copy_up == Answer::Yes {
            true => How::Copy,
            false => How::Rename,
        };
        let acceptable = acceptable(self.options, &self.copies, keeper, target, to);
        let mut journal = self.journal.as_deref_mut().zip(number);
        let means = Means {
            temps: &mut self.temps,
            blocked: &mut self.blocked,
            cancel: self.cancel,
            record: &mut |id, origin, made| match &mut journal {
                Some((journal, step)) => journal.copied(*step, id, origin, made),
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
            loss: acceptable.loss,
            with: arrived.map(|(_, arrived)| arrived),
            stays: None,
            acceptable: Some(acceptable),
        }
        .go(means, || keeper.outlives(target))?;
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
                let dir = to_dir;
                state.arrived = Some((source, Arrived { dir, name, id }));
            }
        }
        Ok(lost)
    }
}
