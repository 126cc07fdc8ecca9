//! The second pass: the names of a proven directory go one by one, and then the directories, from the
//! innermost out.

use bc_edit::entry;
use bc_find::groups::FileRef;
use bc_find::groups::TreeKind;

use super::TreePair;
use super::held::{open_dir, open_link};
use super::prove::{open_twin, refused};
use crate::journal::TreeAction;
use crate::open_file::OpenFile;
use crate::skip::Skip;
use crate::state::{Run, State};
use crate::step::{StepKind, StepOutcome};
use crate::temp::remove;

/// Files removed so far.
#[derive(Default)]
struct Progress {
    files: u64,
    freed: u64,
    /// True once any name was removed.
    any: bool,
}

impl Run<'_> {
    /// Removes a proven directory with all that is in it.
    pub(super) fn empty_tree(
        &mut self,
        pair: &TreePair<'_>,
        state: &mut State<'_>,
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
        state: &mut State<'_>,
        progress: &mut Progress,
    ) -> Result<(), Skip> {
        for at in pair.dirs() {
            let (twin, dir) = pair.both(at);
            self.record_dir(&twin, &dir)
                .map_err(|why| why.of(&dir.path))?;
        }
        for at in pair.target.of(TreeKind::File) {
            if self.cancel.is_cancelled() {
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
        self.parents.let_go();
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
        let number = match &mut self.journal {
            Some(journal) => {
                Some(journal.begin_tree(TreeAction::Empty, &held, &kept, None, None)?)
            }
            None => None,
        };
        self.end(number, &Ok(()), &held);
        Ok(())
    }

    fn remove_file(
        &mut self,
        twin: &FileRef,
        file: &FileRef,
        state: &mut State<'_>,
    ) -> Result<u64, Skip> {
        let mut kind = StepKind::Delete;
        let mut kept_file = open_twin(twin, state)?;
        let mut ready = self
            .precheck(&mut kept_file, file, state, &mut kind)
            .map_err(refused)?;
        match self.perform(&mut kept_file, &mut ready, &kind, state)? {
            StepOutcome::Done { freed, .. } | StepOutcome::Would { freed } => Ok(freed),
            StepOutcome::Skipped(why) => Err(why),
        }
    }

    fn remove_link(&mut self, twin: &FileRef, link: &FileRef) -> Result<(), Skip> {
        let (kept, held, text) = self.prove_link(twin, link)?;
        let _claim = self.shared.blocked.claim(&held.dir, self.cancel)?;
        let action = TreeAction::RemoveLink;
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin_tree(action, &held, &kept, None, Some(&text))?),
            None => None,
        };
        let stays = || match open_link(twin)? {
            (_, found) if found == text => Ok(()),
            _ => Err(Skip::KeptFileChanged),
        };
        let acted = remove(&held, &self.shared.temps, stays);
        self.end(number, &acted, &held);
        acted
    }

    /// Removes an empty directory, if it is the one that was proven.
    fn remove_dir(&mut self, twin: &FileRef, dir: &FileRef) -> Result<(), Skip> {
        let held = open_dir(dir)?;
        let kept = open_dir(twin).map_err(Skip::of_kept_file)?;
        let action = TreeAction::RemoveDirectory;
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin_tree(action, &held, &kept, None, None)?),
            None => None,
        };
        let acted = held
            .check_name()
            .and_then(|()| Ok(entry::remove_dir(&held.dir, &held.name)?));
        self.end(number, &acted, &held);
        acted
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
pub(super) fn hold(dir: &FileRef) -> Result<OpenFile, Skip> {
    let held = open_dir(dir)?;
    held.check_name()?;
    Ok(held)
}
