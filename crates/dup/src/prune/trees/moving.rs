//! Moves of whole directories: by one rename, or to another file system as copies of what is in them.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use bc_fs::{Escaped, InodeFlags};

use super::Pair;
use super::remove::hold;
use crate::prune::copy::given;
use crate::prune::journal::TreeAction;
use crate::prune::meta::Metadata;
use crate::prune::open_file::{OpenFile, identity_at};
use crate::prune::relocate;
use crate::prune::skip::Skip;
use crate::prune::standing;
use crate::prune::state::Run;
use crate::prune::step::{Action, StepKind, StepOutcome};
use crate::prune::sys;

impl Run<'_> {
    /// Moves the whole target to `to` by one rename; EXDEV where that is on another file system.
    pub(super) fn rename_tree(&mut self, pair: &Pair<'_>, to: &[u8]) -> Result<StepOutcome, Skip> {
        let Action::Move(root) = &self.options.action else {
            return Err(Skip::Changed);
        };
        self.keep_destination_off(&StepKind::Move(to.to_vec()))?;
        let dir = &pair.target.dir;
        let (to_dir, name) = relocate::open_parent(root, to, &dir.path)?;
        let held = hold(dir)?;
        let kept = hold(&pair.keeper.dir).map_err(Skip::of_keeper)?;
        let action = TreeAction::MoveDirectory;
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin_tree(action, (&held, &kept), Some(to), None)?),
            None => None,
        };
        let acted = rename(&held, (&to_dir, &name), to);
        self.end(number, &acted, &held);
        acted?;
        self.taken.insert(to.to_vec());
        Ok(StepOutcome::done(0))
    }

    /// Makes the directory that a directory's content is copied to.
    pub(super) fn make_copy_of_dir(&mut self, to: &[u8], held: &OpenFile) -> Result<(), Skip> {
        let Action::Move(root) = &self.options.action else {
            return Err(Skip::Changed);
        };
        self.keep_destination_off(&StepKind::Move(to.to_vec()))?;
        let (parent, name) = relocate::open_parent(root, to, &held.path)?;
        // What is in there can be put there; its own mode it gets when all of it is.
        match sys::make_dir(&parent, &name, 0o700) {
            Err(failed) if failed.errno == rustix::io::Errno::EXIST => {
                Err(standing::exists("a directory was made there"))
            }
            made => Ok(made?),
        }
    }

    /// Makes the link that replaces a moved one.
    pub(super) fn copy_link(
        &mut self,
        to: &[u8],
        held: &OpenFile,
        text: &[u8],
    ) -> Result<(), Skip> {
        let Action::Move(root) = &self.options.action else {
            return Err(Skip::Changed);
        };
        let (parent, name) = relocate::open_parent(root, to, &held.path)?;
        let made = sys::make_link(text, &parent, &name)?.ok_or(Skip::CopyChanged)?;
        // As far as the system lets them be had: a link holds nothing but its text.
        let _ = held.metadata()?.apply_to_link(&made);
        Ok(sys::sync_dir(&parent)?)
    }

    /// Gives directories that were copied what they had, from the innermost out; what of it they could
    /// not be given.
    pub(super) fn finish_copy(&mut self, pair: &Pair<'_>, to: &[u8]) -> Vec<String> {
        let mut lost = Vec::new();
        for at in pair.dirs().rev() {
            let dir = pair.target.at(at);
            let Some(had) = self.dir_metadata.remove(&dir.id) else {
                continue;
            };
            let to = pair.below(to, &dir);
            match self.finish_dir(&to, &dir.path, &had) {
                Ok(refused) => lost.extend(refused),
                Err(why) => lost.push(format!("what {} had: {why}", Escaped(&to))),
            }
        }
        lost
    }

    fn finish_dir(
        &self,
        to: &[u8],
        from: &[u8],
        (metadata, flags): &(Metadata, InodeFlags),
    ) -> Result<Vec<String>, Skip> {
        let Action::Move(root) = &self.options.action else {
            return Ok(Vec::new());
        };
        let (parent, name) = relocate::open_parent(root, to, from)?;
        let opened = sys::open_listed(&parent, &name)?;
        let mut refused = given(Some(flags), &opened)?;
        refused.extend(metadata.apply(&opened)?);
        let _ = sys::sync_dir(&opened);
        Ok(refused)
    }
}

/// Renames the directory that is held, and no other: what had its name by then is put back.
fn rename(held: &OpenFile, (to_dir, name): (&OwnedFd, &CString), to: &[u8]) -> Result<(), Skip> {
    sys::rename_new(&held.dir, &held.name, to_dir, name)?;
    match identity_at(to_dir, name) {
        Ok(Some(id)) if id == held.stat.id => Ok(()),
        _ => match sys::rename_new(to_dir, name, &held.dir, &held.name) {
            Ok(()) => Err(Skip::Changed),
            Err(_) => Err(Skip::Displaced(to.to_vec())),
        },
    }
}
