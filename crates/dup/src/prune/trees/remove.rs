//! The second pass: the names of a proven directory go one by one, and then the directories, from the
//! innermost out.

use super::held::{open_dir, open_link};
use super::prove::{open_twin, refused};
use super::{Pair, TreeKind, Way};
use crate::prune::journal::TreeAction;
use crate::prune::keep::FileRef;
use crate::prune::open_file::OpenFile;
use crate::prune::skip::Skip;
use crate::prune::state::{Run, State};
use crate::prune::step::StepOutcome;
use crate::prune::sys;
use crate::prune::temp::remove;

/// What went so far.
#[derive(Default)]
struct Progress {
    files: u64,
    freed: u64,
    lost: Vec<String>,
    /// Whether any name did.
    any: bool,
}

impl Run<'_> {
    /// Removes a proven directory with all that is in it, with copies elsewhere if that is its way.
    pub(super) fn empty_tree(
        &mut self,
        pair: &Pair<'_>,
        way: &Way,
        state: &mut State<'_>,
    ) -> Result<StepOutcome, Skip> {
        let mut progress = Progress::default();
        let emptied = self.empty(pair, way, state, &mut progress);
        let Progress {
            files,
            freed,
            mut lost,
            any,
        } = progress;
        match emptied {
            Ok(()) => {
                if let Way::Copy(to) = way {
                    lost.extend(self.finish_copy(pair, to));
                    self.taken.insert(to.clone());
                }
                Ok(StepOutcome::Done { freed, lost })
            }
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
        pair: &Pair<'_>,
        way: &Way,
        state: &mut State<'_>,
        progress: &mut Progress,
    ) -> Result<(), Skip> {
        for at in pair.dirs() {
            let (twin, dir) = pair.both(at);
            self.record_dir(pair, way, (&twin, &dir))
                .map_err(|why| why.of(&dir.path))?;
        }
        for at in pair.target.of(TreeKind::File) {
            if self.cancel.is_cancelled() {
                return Err(Skip::Cancelled);
            }
            let (twin, file) = pair.both(at);
            state.pending = pair.names_from(at, &file);
            let done = self.remove_file(pair, (&twin, &file), way, state);
            let (freed, lost) = done.map_err(|why| why.of(&file.path))?;
            progress.files += 1;
            progress.freed += freed;
            progress.lost.extend(lost);
            progress.any = true;
        }
        for at in pair.target.of(TreeKind::Link) {
            let (twin, link) = pair.both(at);
            self.remove_link(pair, (&twin, &link), way)
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

    /// Records what a directory is before the first name in it goes, which changes its times. One that
    /// is copied is made where it goes to.
    fn record_dir(
        &mut self,
        pair: &Pair<'_>,
        way: &Way,
        (twin, dir): (&FileRef, &FileRef),
    ) -> Result<(), Skip> {
        let held = open_dir(dir)?;
        let kept = open_dir(twin).map_err(Skip::of_keeper)?;
        let to = match way {
            Way::Copy(to) => Some(pair.below(to, dir)),
            Way::Delete | Way::Rename(_) => None,
        };
        let action = TreeAction::Empty;
        let number = match &mut self.journal {
            Some(journal) => {
                Some(journal.begin_tree(action, (&held, &kept), to.as_deref(), None)?)
            }
            None => None,
        };
        let made = match &to {
            Some(to) => {
                let had = (held.metadata()?, *held.flags()?);
                self.dir_metadata.insert(dir.id, had);
                self.make_copy_of_dir(to, &held)
            }
            None => Ok(()),
        };
        self.end(number, &made, &held);
        made
    }

    fn remove_file(
        &mut self,
        pair: &Pair<'_>,
        (twin, file): (&FileRef, &FileRef),
        way: &Way,
        state: &mut State<'_>,
    ) -> Result<(u64, Vec<String>), Skip> {
        let mut kind = way.kind(pair, file);
        let mut keeper = open_twin(twin, state)?;
        let mut ready = self
            .precheck(&mut keeper, file, state, &mut kind)
            .map_err(refused)?;
        match self.perform(&mut keeper, &mut ready, &kind, state)? {
            StepOutcome::Done { freed, lost } => Ok((freed, lost)),
            StepOutcome::Would { freed } => Ok((freed, Vec::new())),
            StepOutcome::Skipped(why) => Err(why),
        }
    }

    fn remove_link(
        &mut self,
        pair: &Pair<'_>,
        (twin, link): (&FileRef, &FileRef),
        way: &Way,
    ) -> Result<(), Skip> {
        let (kept, held, text) = self.prove_link(twin, link)?;
        let _claim = self.shared.blocked.claim(&held.dir, self.cancel)?;
        let to = match way {
            Way::Copy(to) => Some(pair.below(to, link)),
            Way::Delete | Way::Rename(_) => None,
        };
        let action = TreeAction::RemoveLink;
        let number = match &mut self.journal {
            Some(journal) => {
                let both = (&held, &kept);
                Some(journal.begin_tree(action, both, to.as_deref(), Some(&text))?)
            }
            None => None,
        };
        let copied = match &to {
            Some(to) => self.copy_link(to, &held, &text),
            None => Ok(()),
        };
        let stays = || match open_link(twin)? {
            (_, found) if found == text => Ok(()),
            _ => Err(Skip::KeeperChanged),
        };
        let acted = copied.and_then(|()| remove(&held, &self.shared.temps, stays));
        self.end(number, &acted, &held);
        acted
    }

    /// Removes an empty directory, if it is the one that was proven.
    fn remove_dir(&mut self, twin: &FileRef, dir: &FileRef) -> Result<(), Skip> {
        let held = open_dir(dir)?;
        let kept = open_dir(twin).map_err(Skip::of_keeper)?;
        let action = TreeAction::RemoveDirectory;
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin_tree(action, (&held, &kept), None, None)?),
            None => None,
        };
        let acted = held
            .check_name()
            .and_then(|()| Ok(sys::remove_dir(&held.dir, &held.name)?));
        self.end(number, &acted, &held);
        acted
    }
}

impl Pair<'_> {
    /// How many names of this file are in the target from this one on.
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
