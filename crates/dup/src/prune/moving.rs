//! The move action's part of a run: what lies at the destination already,
//! which names of a file move together, and the journal's note of each copy.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_walk::{FileStat, Identity};

use super::guard::{self, Held};
use super::journal;
use super::plan::split;
use super::relocate::{self, Arrived, How, Loss, Means, Move};
use super::run::{Owners, Run, State};
use super::step::{Action, Skip, StepKind};
use super::sys;

/// The copies that earlier runs were killed over.
pub(super) struct Unfinished {
    /// By the path that a journal has.
    copies: HashMap<Vec<u8>, Identity>,
    /// The directory that files are moved to, as given and as journals have it.
    given: Vec<u8>,
    real: Option<Vec<u8>>,
}

impl Unfinished {
    fn at(&self, to: &[u8]) -> Option<Identity> {
        let below = to.strip_prefix(self.given.as_slice())?;
        let path = journal::join(self.real.as_ref()?, below);
        self.copies.get(&path).copied()
    }
}

impl Run<'_> {
    /// Removes leftovers from where a file is to be moved to, if that is there:
    /// the way there follows links as little as the move itself.
    pub(super) fn sweep_destination(&mut self, to: &[u8]) {
        let Action::Move(given) = &self.options.action else {
            return;
        };
        let below = split(to.get(given.len()..).unwrap_or_default()).0;
        let below = below.strip_prefix(b"/").unwrap_or(below);
        if let Ok(dir) = sys::open_root(given).and_then(|root| sys::open_below(root, below))
            && let Ok(stat) = sys::stat(&dir)
        {
            self.sweep(&dir, &FileStat::from(&stat).id, to);
        }
    }

    /// Whether what is at the destination `to` of a move is the copy that an
    /// earlier run made of the very content and was killed over.
    pub(super) fn is_unfinished(&mut self, to: &[u8], target: &Held) -> Result<bool, Skip> {
        let (options, cancel) = (self.options, self.cancel);
        let Action::Move(given) = &options.action else {
            return Ok(false);
        };
        let known = self.unfinished.get_or_insert_with(|| Unfinished {
            copies: journal::unfinished(&options.earlier, cancel),
            given: given.clone(),
            // It exists: something in it is in the way.
            real: sys::open_root(given)
                .ok()
                .and_then(|dir| sys::real_path(&dir)),
        });
        let Some(id) = known.at(to) else {
            return Ok(false);
        };
        let (parent, name) = split(to);
        let (dir, name) = (sys::open_root(parent)?, sys::name(name)?);
        let found = Held::find(&dir, &name, to)?;
        if found.stat.id != id || id == target.stat.id {
            return Ok(false);
        }
        let size = target.stat.stamp.size;
        match guard::compare(&target.file, &found.file, size, self.cancel) {
            Ok(_) => Ok(true),
            Err(Skip::ContentDiffers | Skip::Changed) => Ok(false),
            Err(why) => Err(why),
        }
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
        target: &Held,
        to: &[u8],
        number: Option<u64>,
        state: &mut State<'_>,
        proof: impl Fn() -> Result<(), Skip>,
    ) -> Result<Vec<String>, Skip> {
        let (to_dir, name) = place.ok_or(Skip::Changed)?;
        let source = target.stat.id;
        let arrived = state.arrived.as_ref().filter(|(id, _)| *id == source);
        let names = FileStat::from(&sys::stat(&target.file)?).nlink;
        let mut journal = self.journal.as_deref_mut().zip(number);
        let means = Means {
            temps: &mut self.temps,
            blocked: &mut self.blocked,
            cancel: self.cancel,
            record: &mut |id| match &mut journal {
                Some((journal, step)) => journal.copied(*step, id),
                None => Ok(()),
            },
        };
        let placed = Move {
            target,
            to_dir: &to_dir,
            name: &name,
            to,
            how: How::Rename,
            metadata: target.metadata()?,
            lost: Vec::new(),
            loss: match self.options.metadata {
                Owners::Refuse => Loss::Refuse,
                Owners::Ignore => Loss::Accept,
            },
            with: arrived.map(|(_, arrived)| arrived),
            ours: self.unfinished.as_ref().and_then(|known| known.at(to)),
        }
        .go(means, proof)?;
        let mut lost = placed.lost;
        if placed.copied {
            let stay = names.saturating_sub(state.pending);
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
