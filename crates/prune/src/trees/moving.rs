//! Moves of whole directories, by one rename.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_edit::entry;

use super::TreePair;
use super::remove::hold;
use crate::journal::TreeAction;
use crate::open_file::{OpenFile, identity_at};
use crate::relocate;
use crate::skip::Skip;
use crate::state::Run;
use crate::step::{Action, StepOutcome};

impl Run<'_> {
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
        let (to_dir, name) = relocate::open_parent(root, to, &dir.path)?;
        let action = TreeAction::MoveDirectory;
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin_tree(action, &held, &kept, Some(to), None)?),
            None => None,
        };
        let acted = rename(&held, &to_dir, &name, to);
        self.end(number, &acted, &held);
        acted?;
        self.taken.insert(to.to_vec());
        Ok(StepOutcome::done(0))
    }
}

/// Renames the directory that is held, and no other: another one that had its name by then is put
/// back.
fn rename(held: &OpenFile, to_dir: &OwnedFd, name: &CString, to: &[u8]) -> Result<(), Skip> {
    entry::rename_new(&held.dir, &held.name, to_dir, name)?;
    match identity_at(to_dir, name) {
        Ok(Some(id)) if id == held.stat.id => Ok(()),
        _ => match entry::rename_new(to_dir, name, &held.dir, &held.name) {
            Ok(()) => Err(Skip::Changed),
            Err(_) => Err(Skip::Displaced(to.to_vec())),
        },
    }
}
