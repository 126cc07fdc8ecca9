//! The second pass: a proven directory goes by one rename, or its names go one by one, and then the
//! directories, from the innermost out.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_find::groups::FileRef;
use bc_find::groups::TreeKind;

use super::TreePair;
use super::held::{open_dir, open_link};
use super::prove::{open_twin, refused};
use crate::act::moving::destination;
use crate::act::temp::remove;
use crate::check::open_file::{OpenFile, identity_at};
use crate::journal::{Journal, TreeAction};
use crate::means::{GroupState, PruneRun};
use crate::skip::Skip;
use crate::step::{Action, StepKind, StepOutcome};

/// A change of a directory, or of a link in one, for the journal.
pub(super) struct TreeChange<'a> {
    action: TreeAction,
    held: &'a OpenFile,
    kept: &'a OpenFile,
    /// New path of what is moved.
    to: Option<&'a [u8]>,
    /// Text of a link.
    text: Option<&'a [u8]>,
}

impl<'a> TreeChange<'a> {
    fn new(action: TreeAction, held: &'a OpenFile, kept: &'a OpenFile) -> TreeChange<'a> {
        TreeChange {
            action,
            held,
            kept,
            to: None,
            text: None,
        }
    }
}

/// Files removed so far.
#[derive(Default)]
struct Progress {
    files: u64,
    freed: u64,
    /// True once any name was removed.
    any: bool,
}

impl PruneRun<'_> {
    /// Removes a proven directory with all that is in it.
    pub(super) fn empty_tree(
        &mut self,
        pair: &TreePair<'_>,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        let mut progress = Progress::default();
        let emptied = self.empty(pair, state, &mut progress);
        let Progress { files, freed, any } = progress;
        match emptied {
            Ok(()) => Ok(StepOutcome::done(freed)),
            Err(why) if any => Err(Skip::Stopped {
                why: Box::new(why),
                gone: files,
                freed,
            }),
            Err(why) => Err(why),
        }
    }

    fn empty(
        &mut self,
        pair: &TreePair<'_>,
        state: &mut GroupState<'_>,
        progress: &mut Progress,
    ) -> Result<(), Skip> {
        for at in pair.dirs() {
            let (twin, dir) = pair.both(at);
            self.record_dir(&twin, &dir)
                .map_err(|why| why.of(&dir.path))?;
        }
        for at in pair.target.of(TreeKind::File) {
            if self.means.cancel.is_cancelled() {
                return Err(Skip::Cancelled);
            }
            let (twin, file) = pair.both(at);
            state.pending = pair.names_from(at, &file);
            let freed = self
                .remove_file(&twin, &file, state)
                .map_err(|why| why.of(&file.path))?;
            progress.files += 1;
            progress.freed += freed;
            progress.any = true;
        }
        for at in pair.target.of(TreeKind::Link) {
            let (twin, link) = pair.both(at);
            self.remove_link(&twin, &link)
                .map_err(|why| why.of(&link.path))?;
            progress.any = true;
        }
        // A server may keep a directory that is open.
        self.means.parents.let_go();
        for at in pair.dirs().rev() {
            let (twin, dir) = pair.both(at);
            self.remove_dir(&twin, &dir)
                .map_err(|why| why.of(&dir.path))?;
            progress.any = true;
        }
        Ok(())
    }

    /// Records a directory's state before the first name in it goes, which changes its times.
    fn record_dir(&mut self, twin: &FileRef, dir: &FileRef) -> Result<(), Skip> {
        let held = open_dir(dir)?;
        let kept = open_dir(twin).map_err(Skip::of_kept_file)?;
        let change = TreeChange::new(TreeAction::Empty, &held, &kept);
        self.journalled(change, || Ok(()))
    }

    /// Does what the journal recorded before, and records how it went.
    pub(super) fn journalled(
        &mut self,
        change: TreeChange<'_>,
        act: impl FnOnce() -> Result<(), Skip>,
    ) -> Result<(), Skip> {
        let TreeChange {
            action,
            held,
            kept,
            to,
            text,
        } = change;
        let begin = |journal: &Journal| journal.begin_tree(action, held, kept, to, text);
        let number = self.journal.map(begin).transpose()?;
        let acted = act();
        self.end(number, &acted, held);
        acted
    }

    fn remove_file(
        &mut self,
        twin: &FileRef,
        file: &FileRef,
        state: &mut GroupState<'_>,
    ) -> Result<u64, Skip> {
        let mut kind = StepKind::Delete;
        let mut kept_file = open_twin(twin, state)?;
        let mut ready = self
            .precheck(&mut kept_file, file, state, &mut kind)
            .map_err(refused)?;
        match self.perform(&mut kept_file, &mut ready, &mut kind, state)? {
            StepOutcome::Done { freed, .. } | StepOutcome::Would { freed } => Ok(freed),
            StepOutcome::Skipped(why) => Err(why),
        }
    }

    fn remove_link(&mut self, twin: &FileRef, link: &FileRef) -> Result<(), Skip> {
        let (kept, held, text) = self.prove_link(twin, link)?;
        let _claim = self
            .means
            .shared
            .blocked
            .claim(&held.dir, self.means.cancel)?;
        let change = TreeChange {
            text: Some(&text),
            ..TreeChange::new(TreeAction::RemoveLink, &held, &kept)
        };
        let stays = || match open_link(twin)? {
            (_, found) if found == text => Ok(()),
            _ => Err(Skip::KeptFileChanged),
        };
        let temps = self.means.shared.temps.clone();
        self.journalled(change, || remove(&held, &temps, stays))
    }

    /// Removes an empty directory, if it is the one that was proven.
    fn remove_dir(&mut self, twin: &FileRef, dir: &FileRef) -> Result<(), Skip> {
        let held = open_dir(dir)?;
        let kept = open_dir(twin).map_err(Skip::of_kept_file)?;
        let change = TreeChange::new(TreeAction::RemoveDirectory, &held, &kept);
        self.journalled(change, || {
            held.check_name()?;
            Ok(entry::remove_dir(&held.dir, &held.name)?)
        })
    }

    /// Moves the whole target to `to` by one rename; EXDEV where that is on another file system.
    pub(super) fn rename_tree(
        &mut self,
        pair: &TreePair<'_>,
        to: &[u8],
    ) -> Result<StepOutcome, Skip> {
        let Action::Move(root) = &self.options.action else {
            return Err(Skip::Changed);
        };
        self.places.check_destination()?;
        let dir = &pair.target.dir;
        let held = hold(dir)?;
        let kept = hold(&pair.kept_file.dir).map_err(Skip::of_kept_file)?;
        let (to_dir, name) = destination::open_parent(root, to, &dir.path)?;
        let change = TreeChange {
            to: Some(to),
            ..TreeChange::new(TreeAction::MoveDirectory, &held, &kept)
        };
        self.journalled(change, || rename_dir(&held, &to_dir, &name, to))?;
        self.copies.taken.insert(to.to_vec());
        Ok(StepOutcome::done(0))
    }
}

impl PruneRun<'_> {
    /// Puts the whole target in the trash of its file system.
    pub(super) fn trash_tree(&mut self, pair: &TreePair<'_>) -> Result<StepOutcome, Skip> {
        let held = hold(&pair.target.dir)?;
        let kept = hold(&pair.kept_file.dir).map_err(Skip::of_kept_file)?;
        let reserved = self.reserve_in_trash(&held)?;
        let change = TreeChange {
            to: Some(&reserved.path),
            ..TreeChange::new(TreeAction::TrashDirectory, &held, &kept)
        };
        let acted = self.journalled(change, || {
            rename_dir(&held, reserved.dir(), &reserved.name, &reserved.path)
        });
        reserved.end(&acted);
        acted.map(|()| StepOutcome::done(0))
    }
}

impl TreePair<'_> {
    /// Returns the number of names of this file in the target from this one on.
    fn names_from(&self, at: Option<u32>, file: &FileRef) -> u64 {
        if file.nlink == 1 {
            return 1;
        }
        let rest = &self.target.entries[at.map_or(0, |nth| nth as usize)..];
        rest.iter().filter(|entry| entry.id == file.id).count() as u64
    }
}

/// The proof that a directory to be renamed is still the one that was proven.
fn hold(dir: &FileRef) -> Result<OpenFile, Skip> {
    let held = open_dir(dir)?;
    held.check_name()?;
    Ok(held)
}

/// Renames the directory that is held, and no other: another one that had its name by then is put
/// back.
pub(crate) fn rename_dir(
    held: &OpenFile,
    to_dir: &OwnedFd,
    name: &CString,
    to: &[u8],
) -> Result<(), Skip> {
    entry::rename_new(&held.dir, &held.name, to_dir, name)?;
    match identity_at(to_dir, name) {
        Ok(Some(id)) if held.is(id) => Ok(()),
        _ => match entry::rename_new(to_dir, name, &held.dir, &held.name) {
            Ok(()) => Err(Skip::Changed),
            Err(_) => Err(Skip::Displaced(to.to_vec())),
        },
    }
}
