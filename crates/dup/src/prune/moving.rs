//! The move action's part of a run: what lies at the destination already,
//! which names of a file move together, and the journal's note of each copy.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_walk::{FileStat, Identity};

use super::guard::{self, Held};
use super::journal::{self, Journal};
use super::plan::split;
use super::relocate::{Arrived, How, Loss, Means, Move};
use super::run::{Options, Owners, Run, State};
use super::step::{Action, Skip};
use super::sys;

impl Run<'_> {
    /// The same where a file is to be moved to, if that is there.
    pub(super) fn sweep_destination(&mut self, to: &[u8]) {
        if let Ok(dir) = sys::open_root(split(to).0)
            && let Ok(stat) = sys::stat(&dir)
        {
            self.sweep(&dir, &FileStat::from(&stat).id, to);
        }
    }

    /// Whether what is at the destination `to` of a move is the copy that an
    /// earlier run made of the very content and was killed over.
    pub(super) fn is_unfinished(&mut self, to: &[u8], target: &Held) -> Result<bool, Skip> {
        let (earlier, cancel) = (&self.options.earlier, self.cancel);
        let known = self
            .unfinished
            .get_or_insert_with(|| journal::unfinished(earlier, cancel));
        let Some(path) = real_destination(&self.destination, &self.options.action, to) else {
            return Ok(false);
        };
        let Some(id) = known.get(&path).copied() else {
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
}

/// Where `to` is, as journals record it.
pub(super) fn real_destination(
    real: &Option<Vec<u8>>,
    action: &Action,
    to: &[u8],
) -> Option<Vec<u8>> {
    match action {
        Action::Move(dir) => Some(journal::join(
            real.as_ref()?,
            to.strip_prefix(dir.as_slice())?,
        )),
        _ => None,
    }
}

/// Writes down which file a copy is.
pub(super) fn record<'a>(
    mut journal: Option<(&'a mut Journal, u64)>,
) -> impl FnMut(Identity) -> Result<(), Skip> + 'a {
    move |id| match &mut journal {
        Some((journal, step)) => journal.copied(*step, id),
        None => Ok(()),
    }
}

/// Moves `target` to `place`; what it lost.
#[allow(clippy::too_many_arguments)] // Each is one fact about one move.
pub(super) fn move_to(
    place: (OwnedFd, CString),
    target: &Held,
    to: &[u8],
    options: &Options,
    ours: Option<Identity>,
    state: &mut State,
    means: Means<'_>,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Vec<String>, Skip> {
    let (to_dir, name) = place;
    let source = target.stat.id;
    let arrived = state.arrived.take().filter(|(id, _)| *id == source);
    let names = FileStat::from(&sys::stat(&target.file)?).nlink;
    let placed = Move {
        target,
        to_dir: &to_dir,
        name: &name,
        to,
        how: How::Rename,
        metadata: target.metadata()?,
        lost: Vec::new(),
        loss: match options.metadata {
            Owners::Refuse => Loss::Refuse,
            Owners::Ignore => Loss::Accept,
        },
        with: arrived.map(|(_, arrived)| arrived),
        ours,
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
