//! The first pass: everything in a directory is in the one that stays, and nothing else is in it.

use std::collections::HashSet;
use std::os::fd::AsFd;

use bc_edit::names::{self, lasts};
use bc_find::groups::{FileRef, TreeEntry, TreeKind};
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::split;
use bc_fs::volume;
use bc_walk::Identity;
use rustix::io::Errno;

use super::held::{check_names, expected, open_dir, open_link};
use super::{DoneDirs, TreePair};
use crate::check::abilities;
use crate::check::open_file::{self, OpenFile};
use crate::check::precheck::{Ready, Refusal};
use crate::means::{GroupState, PruneRun};
use crate::options::RunMode;
use crate::skip::Skip;
use crate::step::{StepKind, StepOutcome};

impl PruneRun<'_> {
    /// Proves that the target may go; returns the bytes that a dry run would free. Changes nothing.
    pub(super) fn prove(
        &mut self,
        pair: &TreePair<'_>,
        done: &DoneDirs,
        state: &mut GroupState<'_>,
    ) -> Result<u64, Skip> {
        pair.check_shape()?;
        pair.check_name()?;
        self.prove_dirs(pair, done)?;
        for at in pair.target.of(TreeKind::Link) {
            let (twin, link) = pair.both(at);
            self.prove_link(&twin, &link)
                .map_err(|why| why.of(&link.path))?;
        }
        let mut freed = 0;
        for at in pair.target.of(TreeKind::File) {
            if self.means.cancel.is_cancelled() {
                return Err(Skip::Cancelled);
            }
            let (twin, file) = pair.both(at);
            let proven = self.prove_file(&twin, &file, state);
            freed += proven.map_err(|why| why.of(&file.path))?;
        }
        // Once more: entries that came in the meantime were compared with nothing.
        self.prove_dirs(pair, done)?;
        Ok(freed)
    }

    fn prove_dirs(&mut self, pair: &TreePair<'_>, done: &DoneDirs) -> Result<(), Skip> {
        let names = expected(pair.target);
        let dev = pair.target.dir.id.dev;
        for at in pair.dirs() {
            let (twin, dir) = pair.both(at);
            if done.journal.contains(&dir.id) {
                return Err(Skip::Holds("the journal"));
            }
            let held = open_dir(&dir).map_err(|why| why.of(&dir.path))?;
            if held.stat.id.dev != dev || meta::is_mount_root(&held.file) == Some(true) {
                return Err(Skip::Holds("a mount point").of(&dir.path));
            }
            if volume::is_subvolume(&held.file, &held.dir)? {
                return Err(Skip::Subvolume.of(&dir.path));
            }
            self.places
                .check_dir(&held.file)
                .map_err(|why| why.of(&dir.path))?;
            self.changeable(&held).map_err(|why| why.of(&dir.path))?;
            open_dir(&twin).map_err(|why| Skip::of_kept_file(why).of(&twin.path))?;
            let expected = names.get(&at).map_or(&[][..], Vec::as_slice);
            check_names(&held, expected)?;
        }
        Ok(())
    }

    /// Proves that names in the directory can be removed, and its own.
    fn changeable(&mut self, dir: &OpenFile) -> Result<(), Skip> {
        for at in [dir.dir.as_fd(), dir.file.as_fd()] {
            match dirfd::may_change(at) {
                Err(failed) if matches!(failed.errno, Errno::ROFS | Errno::ACCESS) => {
                    return Err(failed.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        drop(
            self.means
                .shared
                .blocked
                .claim(&dir.file, self.means.cancel)?,
        );
        let above = self
            .means
            .shared
            .blocked
            .claim(&dir.dir, self.means.cancel)?;
        above.check_removable(&self.abilities.caller, abilities::owner(dir))
    }

    /// Proves that both links lead to the same file, as far as their texts go.
    pub(super) fn prove_link(
        &mut self,
        twin: &FileRef,
        link: &FileRef,
    ) -> Result<(OpenFile, OpenFile, Vec<u8>), Skip> {
        let (held, text) = open_link(link)?;
        let (kept, kept_text) = open_link(twin).map_err(Skip::of_kept_file)?;
        if text != kept_text {
            return Err(Skip::ContentDiffers);
        }
        if held.stat.id == kept.stat.id {
            return Err(Skip::Holds("a link of the directory that stays"));
        }
        self.places.check(&held)?;
        Ok((kept, held, text))
    }

    fn prove_file(
        &mut self,
        twin: &FileRef,
        file: &FileRef,
        state: &mut GroupState<'_>,
    ) -> Result<u64, Skip> {
        // Its directory is renamed, or it goes: permission for a deletion is enough.
        let mut kind = StepKind::Delete;
        state.pending = 1;
        let mut kept_file = open_twin(twin, state)?;
        let ready = match self.options.mode {
            RunMode::DryRun => self.precheck(&mut kept_file, file, state, &mut kind),
            // It is proven again right before it goes, and then taken note of.
            RunMode::Execute => {
                let mut scratch = GroupState {
                    stamps: std::mem::take(&mut state.stamps),
                    pending: 1,
                    ..GroupState::default()
                };
                let ready = self.precheck(&mut kept_file, file, &mut scratch, &mut kind);
                state.stamps = scratch.stamps;
                ready
            }
        };
        let mut ready = ready.map_err(refused)?;
        self.places.check(&ready.held)?;
        match self.options.mode {
            RunMode::DryRun => self.freed_by(&mut kept_file, &mut ready, &mut kind, state),
            RunMode::Execute => Ok(0),
        }
    }

    fn freed_by(
        &mut self,
        kept_file: &mut OpenFile,
        ready: &mut Ready,
        kind: &mut StepKind,
        state: &mut GroupState<'_>,
    ) -> Result<u64, Skip> {
        match self.perform(kept_file, ready, kind, state)? {
            StepOutcome::Would { freed } => Ok(freed),
            StepOutcome::Done { .. } | StepOutcome::Skipped(_) => Ok(0),
        }
    }
}

/// Opens the file that stays, in the state that it was found in or that this run left it in.
pub(super) fn open_twin(twin: &FileRef, state: &GroupState<'_>) -> Result<OpenFile, Skip> {
    let opened = match state.stamps.get(&twin.id) {
        None => open_file::open(twin, twin.stamp),
        Some(stamp) => open_file::open_again(twin, *stamp),
    };
    opened.map_err(Skip::of_kept_file)
}

pub(super) fn refused(refusal: Refusal) -> Skip {
    match refusal {
        Refusal::Skip(Skip::MountPoint) => Skip::Holds("a mount point"),
        Refusal::Skip(Skip::AlreadyLinked) => Skip::Holds("a file of the directory that stays"),
        Refusal::Skip(skip) | Refusal::Keep(_, skip) => skip,
    }
}

impl TreePair<'_> {
    /// Proves that its name is one that can be removed.
    fn check_name(&self) -> Result<(), Skip> {
        match split(&self.target.dir.path).1 {
            b"" | b"." | b".." => Err(Skip::System {
                op: "rmdir",
                errno: Errno::INVAL.raw_os_error(),
            }),
            _ => Ok(()),
        }
    }

    /// Proves that both have the same names of the same kinds, no temporary of a run among them,
    /// and no file in common.
    fn check_shape(&self) -> Result<(), Skip> {
        let (kept_file, target) = (&self.kept_file.entries, &self.target.entries);
        let alike = |(twin, entry): (&TreeEntry, &TreeEntry)| {
            (twin.parent, &twin.name, twin.kind) == (entry.parent, &entry.name, entry.kind)
        };
        let alike = kept_file.len() == target.len() && kept_file.iter().zip(target).all(alike);
        if !alike || self.kept_file.dir.id == self.target.dir.id {
            return Err(Skip::Changed);
        }
        let kept: HashSet<Identity> = kept_file.iter().map(|entry| entry.id).collect();
        let holds = |what, is_it: &dyn Fn(&TreeEntry) -> bool| match target.iter().position(is_it) {
            Some(nth) => {
                let path = self.target.at(Some(nth as u32)).path;
                Err(Skip::Holds(what).of(&path))
            }
            None => Ok(()),
        };
        holds("a temporary of a run", &|entry| is_stage(&entry.name))?;
        // In either, as both have the same names.
        let both = || self.kept_file.entries.iter().chain(&self.target.entries);
        let fleeting =
            |entry: &TreeEntry| entry.kind == TreeKind::File && !lasts(&entry.name, entry.nlink);
        if both().any(fleeting) {
            return Err(Skip::Holds("a file that is deleted already"));
        }
        holds("a file of the directory that stays", &|entry| {
            kept.contains(&entry.id)
        })
    }
}

/// Returns true if the name is one that runs give to unfinished files, of this version or another.
fn is_stage(name: &[u8]) -> bool {
    name.starts_with(names::OURS) && name != names::COPY_MANIFEST.as_bytes()
}
