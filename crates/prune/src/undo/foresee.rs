//! Dry run of undo: refusals, and metadata that could not be given back, are found by the same
//! looks, and nothing is changed. What the run would rename, remove and make is recorded, so that
//! each name is looked at as it would be by then; in a real run nothing is recorded, and each name
//! is its own.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_fs::Escaped;
use bc_fs::call::FailedCall;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::{Links, basic_traits};
use bc_fs::path::split;
use bc_walk::{FileKind, Identity};
use rustix::io::Errno;

use super::leftovers::StageMeans;
use super::moved::is_copy;
use super::names::Another;
use super::{NamedEntry, Original, Undo, UndoOutcome, fewer_links, find, may_be};
use crate::act::moving::relocate::apart;
use crate::check::abilities;
use crate::check::compare::mounts_differ;
use crate::check::meta::{entitled, foresee, not_in, takes_attribute};
use crate::check::open_file::OpenFile;
use crate::journal::{JournalStep, Recorded, RecordedCopy};
use crate::options::RunMode;
use crate::skip::Skip;
use crate::step::StepKind;

impl Undo<'_> {
    /// Returns the outcome of a name that comes back without these properties.
    pub(super) fn back(&self, lost: Vec<String>) -> UndoOutcome {
        match self.mode {
            RunMode::Execute => UndoOutcome::Restored { lost },
            RunMode::DryRun => UndoOutcome::Would { lost },
        }
    }

    /// Returns the file that a name leads to, or would by then.
    pub(super) fn find(&self, path: &[u8], recorded: &Recorded) -> Result<NamedEntry, Skip> {
        if let Some(now) = self.now(path) {
            return find(now, recorded);
        }
        let mut found = find(path, recorded)?;
        found.stat = None;
        Ok(found)
    }

    /// Returns the name that now leads to what `path` would lead to by then; `None` if that is
    /// nothing. In a real run each name is its own.
    pub(super) fn now<'p>(&'p self, path: &'p [u8]) -> Option<&'p [u8]> {
        self.overlay.now(path)
    }

    /// Records in a dry run that what `from` leads to would have the name `path` as well.
    pub(super) fn would_lead(&mut self, path: &[u8], from: &[u8]) {
        if self.mode == RunMode::DryRun {
            self.overlay.lead(path, from);
        }
    }

    /// Records in a dry run that a name would go.
    pub(super) fn would_go(&mut self, path: &[u8]) {
        if self.mode == RunMode::DryRun {
            self.overlay.go(path);
        }
    }

    /// Proves in a dry run that names in these directories could be changed; `false` in a real one.
    pub(super) fn would(&self, dirs: &[&OwnedFd]) -> Result<bool, Skip> {
        if self.mode == RunMode::Execute {
            return Ok(false);
        }
        for dir in dirs {
            match dirfd::may_change(dir) {
                Err(failed) if matches!(failed.errno, Errno::ROFS | Errno::ACCESS) => {
                    return Err(failed.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Returns a dry run's outcome of a file that would be [made](Undo::make): in this directory,
    /// if that is there.
    pub(super) fn would_make(
        &mut self,
        entry: &JournalStep,
        dir: Option<&OwnedFd>,
        there: Option<&OpenFile>,
    ) -> Result<UndoOutcome, Skip> {
        let mut lost = Vec::new();
        // As another name of a file that exists, or would by then, it has that file's metadata.
        let link = self.would_link(entry, dir);
        if !matches!(link, Ok(Some(_))) {
            let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
            let is_file = |held: &&OpenFile| held.stat.kind() == FileKind::File;
            let path = entry.kept_file.path().unwrap_or_default();
            // What it would lead to by then is to be seen elsewhere, or is still to be made.
            let stands = self.overlay.stands_elsewhere(&path);
            let foreseen = || self.foresees(&path, entry) && !stands;
            let kept;
            let source = match there.filter(is_file) {
                Some(held) => Some(held),
                None if foreseen() => None,
                None => {
                    kept = self.kept_file(entry)?;
                    Some(&kept)
                }
            };
            let (metadata, left_out) = match source {
                Some(held) => {
                    self.prove_source(entry, held)?;
                    entitled(metadata, &held.stat, None)
                }
                None => (metadata, Vec::new()),
            };
            lost = self.would_give(&metadata, dir).1;
            lost.extend(left_out);
        }
        if let Some(dir) = dir {
            self.would(&[dir])?;
        }
        lost.extend(self.would_have(entry, &link));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns the other name of the step's file that one in this directory would be linked to, or
    /// why it could not be; `None` if there is no other name.
    fn would_link(
        &mut self,
        entry: &JournalStep,
        dir: Option<&OwnedFd>,
    ) -> Result<Option<Another>, Skip> {
        let another = self.another(entry);
        let refused = |errno: Errno| FailedCall { op: "link", errno };
        let made_in = match &another {
            Some(Another::Foreseen(path)) => find(path, &entry.target).ok().map(|it| it.dir),
            Some(Another::There(..)) | None => None,
        };
        let there = match &another {
            Some(Another::There(found, _)) => Some(&found.dir),
            Some(Another::Foreseen(_)) | None => made_in.as_ref(),
        };
        if let (Some(there), Some(dir)) = (there, dir) {
            let [there, here] = [meta::stat_all(there)?, meta::stat_all(dir)?];
            if there.stat.id.dev != here.stat.id.dev || mounts_differ(there.mount, here.mount) {
                return Err(refused(Errno::XDEV).into());
            }
        }
        if let Some(Another::There(found, path)) = &another {
            let held = OpenFile::find(&found.dir, &found.name, path)?;
            let names = NamedLater::There(held.stat.id);
            let names = self.overlay.names_by_then(names, held.stat.nlink);
            if matches!(basic_traits(&held.file)?.links, Links::UpTo(most) if names >= most) {
                return Err(refused(Errno::MLINK).into());
            }
            if !abilities::is_linkable(&self.caller, &held) {
                return Err(refused(Errno::PERM).into());
            }
        }
        Ok(another)
    }

    /// Returns the outcome of a file in a directory that would be made.
    pub(super) fn would_fill(
        &mut self,
        entry: &JournalStep,
        copy: Option<RecordedCopy>,
    ) -> Result<UndoOutcome, Skip> {
        match entry.kind() {
            Some(StepKind::Delete) => self.would_make(entry, None, None),
            Some(StepKind::Move(from)) => {
                let moved = self.find(&from, &entry.target)?;
                if moved.stat.is_none() {
                    return match self.foresees(&from, entry) {
                        true => self.would_bring_made(entry, &from, None),
                        false => Err(Skip::Missing(from)),
                    };
                }
                let held = moved.hold(&from)?;
                self.is_recorded(entry, &held)?;
                self.would_bring(entry, copy.as_ref(), &held, None)
            }
            // It is in a directory that would get its name back.
            _ => Ok(UndoOutcome::Would { lost: Vec::new() }),
        }
    }

    /// Returns a dry run's outcome of a file that would come back from a name that it would have
    /// been given before: as a copy, since it is not the moved one.
    pub(super) fn would_bring_made(
        &mut self,
        entry: &JournalStep,
        from: &[u8],
        dir: Option<&OwnedFd>,
    ) -> Result<UndoOutcome, Skip> {
        let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
        let link = self.would_link(entry, dir);
        let mut lost: Vec<String> = link.as_ref().err().map(apart).into_iter().collect();
        if !matches!(link, Ok(Some(_))) {
            lost.extend(self.would_give(&metadata, dir).1);
        }
        self.would_go(from);
        lost.extend(self.would_have(entry, &link));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns a dry run's outcome of a moved file that would [come back](Undo::bring_back).
    pub(super) fn would_bring(
        &mut self,
        entry: &JournalStep,
        copy: Option<&RecordedCopy>,
        held: &OpenFile,
        dir: Option<&OwnedFd>,
    ) -> Result<UndoOutcome, Skip> {
        let from = entry.destination().ok_or(Skip::Gone)?;
        if may_be(&held.mark(), &entry.target.mark()) {
            let path = entry.target.path().ok_or(Skip::Gone)?;
            self.would_lead(&path, &from);
            self.would_go(&from);
            self.came_back(entry, &path);
            return Ok(UndoOutcome::Would { lost: Vec::new() });
        }
        let wanted = self.wanted(entry, copy, held)?;
        let own = held.metadata()?;
        let (metadata, mut lost) = entitled(wanted.clone(), &held.stat, Some(&own));
        let link = self.would_link(entry, dir);
        lost.extend(link.as_ref().err().map(apart));
        let made = match &link {
            Ok(Some(_)) => metadata,
            Ok(None) | Err(_) => {
                let (made, refused) = self.would_give(&metadata, dir);
                lost.extend(refused);
                made
            }
        };
        let ours = copy.is_some_and(|copy| is_copy(copy, held));
        match not_in(&own, &made, ours.then_some(&wanted)) {
            Some(what) => {
                let path = Escaped(&held.path);
                lost.push(format!("the {what} of {path}, which stays"));
            }
            None => self.would_go(&from),
        }
        lost.extend(self.would_have(entry, &link));
        Ok(UndoOutcome::Would { lost })
    }

    /// Returns the metadata that a new file or directory in `dir` would have, and the parts that it
    /// would be refused.
    pub(super) fn would_give(
        &self,
        metadata: &FileMetadata,
        dir: Option<&OwnedFd>,
    ) -> (FileMetadata, Vec<String>) {
        let takes = |name: &[u8]| dir.is_none_or(|dir| takes_attribute(dir, name));
        foresee(metadata, &self.caller, takes)
    }

    /// Records a name that would come back: as one more of the file that it [would be linked
    /// to](Undo::would_link), as the first one of a file that would be made, or, where it could not
    /// be linked, as the only one of another. Returns the message about the other names.
    fn would_have(
        &mut self,
        entry: &JournalStep,
        link: &Result<Option<Another>, Skip>,
    ) -> Option<String> {
        let path = entry.target.path()?;
        let names = match link {
            Ok(Some(Another::There(found, other))) => {
                let stat = found.stat.as_ref()?;
                self.would_lead(&path, other);
                self.names_by_then(stat.id, stat.nlink)
            }
            Ok(Some(Another::Foreseen(_)) | None) => {
                let file = NamedLater::New(self.original(entry));
                self.overlay.make(&path, file);
                self.overlay.names_by_then(file, 0)
            }
            Err(_) => {
                self.overlay.make(&path, NamedLater::Alone);
                1
            }
        };
        fewer_links(entry, names)
    }

    /// Returns the number of names that a file of so many has by then.
    pub(super) fn names_by_then(&self, id: Identity, now: u64) -> u64 {
        self.overlay.names_by_then(NamedLater::There(id), now)
    }

    /// Removes what killed runs left of the step's file, or records that it would go.
    pub(super) fn remove_equal(&mut self, entry: &JournalStep, path: &[u8]) {
        if self.leftovers.is_empty() {
            return;
        }
        let mut kept = match self.overlay.is_made(path) {
            true => None,
            false => match self.held(entry, path) {
                Some(held) => Some(held),
                None => return,
            },
        };
        let removed =
            self.leftovers
                .remove_equal(entry, kept.as_mut(), self.mode, &self.temps, self.cancel);
        for name in removed {
            self.would_go(&name);
        }
    }

    /// Removes copies that killed runs were making of the step's file, or of what was made of it; or
    /// records that they would go.
    pub(super) fn remove_stages(&mut self, entry: &JournalStep, path: &[u8], failed: bool) {
        if self.leftovers.has_no_stage() {
            return;
        }
        let moved = entry.destination().and_then(|to| self.held(entry, &to));
        let sources = [self.held(entry, path), self.kept_file(entry).ok(), moved];
        let sources: Vec<&OpenFile> = sources.iter().flatten().collect();
        let means = StageMeans {
            mode: self.mode,
            temps: &self.temps,
            cancel: self.cancel,
        };
        for name in self
            .leftovers
            .remove_stages(entry, &sources, failed, &means)
        {
            self.would_go(&name);
        }
    }

    /// Returns true if a later step would have been undone by then that gave this name the content
    /// of the step's file.
    pub(super) fn foresees(&self, path: &[u8], entry: &JournalStep) -> bool {
        let found = self.overlay.content(path);
        found.is_some_and(|digest| *digest == entry.digest())
    }
}

/// File that a dry run would give names.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(super) enum NamedLater {
    There(Identity),
    /// It would be made, and get the other names of this original.
    New(Original),
    /// It would be made for one name: the others cannot be linked to that.
    Alone,
}

/// What a dry run would have changed by then.
#[derive(Default)]
pub(super) struct Overlay {
    /// Files that would be restored, with the content: they may be the kept files of steps before.
    contents: HashMap<Vec<u8>, Option<Digest>>,
    /// Names that would lead elsewhere: with those that now lead there, or `None` if they would lead
    /// to nothing.
    stand_ins: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Names that would lead to files that are still to be made.
    made: HashMap<Vec<u8>, NamedLater>,
    /// The first names of those files.
    first: HashMap<Original, Vec<u8>>,
    /// Number of names that a file would have more, or less, than now.
    more: HashMap<NamedLater, i64>,
}

impl Overlay {
    /// Returns the name that now leads to what `path` would lead to by then; `None` if that is
    /// nothing.
    pub(super) fn now<'p>(&'p self, path: &'p [u8]) -> Option<&'p [u8]> {
        match self.stand_ins.get(path) {
            Some(now) => now.as_deref(),
            None => Some(path),
        }
    }

    /// Returns true if what the name would lead to is to be seen under another one.
    pub(super) fn stands_elsewhere(&self, path: &[u8]) -> bool {
        matches!(self.stand_ins.get(path), Some(Some(_)))
    }

    /// Returns true if the name would lead to a file that is still to be made.
    pub(super) fn is_made(&self, path: &[u8]) -> bool {
        self.made.contains_key(path)
    }

    /// Returns the first name of a file that would be made for this original and its other names.
    pub(super) fn first(&self, original: &Original) -> Option<&Vec<u8>> {
        self.first.get(original)
    }

    /// Returns the content of the file that would be restored under this name.
    pub(super) fn content(&self, path: &[u8]) -> Option<&Option<Digest>> {
        self.contents.get(path)
    }

    pub(super) fn restores(&mut self, path: &[u8], content: Option<Digest>) {
        self.contents.insert(path.to_vec(), content);
    }

    /// Returns the number of names that a file has by then, which has so many now.
    pub(super) fn names_by_then(&self, file: NamedLater, now: u64) -> u64 {
        let more = self.more.get(&file).copied().unwrap_or(0);
        now.saturating_add_signed(more)
    }

    /// Records that what `from` leads to would have the name `path` as well.
    pub(super) fn lead(&mut self, path: &[u8], from: &[u8]) {
        let file = self.leads(from);
        let now = self.now(from).map(<[u8]>::to_vec);
        self.lose(path);
        match file {
            Some(file @ (NamedLater::New(_) | NamedLater::Alone)) => self.add_made(path, file),
            Some(NamedLater::There(_)) | None => drop(self.stand_ins.insert(path.to_vec(), now)),
        }
        self.count(file, 1);
    }

    /// Records that a name would go.
    pub(super) fn go(&mut self, path: &[u8]) {
        self.lose(path);
        self.contents.remove(path);
        self.stand_ins.insert(path.to_vec(), None);
    }

    /// Records that a file would be made under this name.
    pub(super) fn make(&mut self, path: &[u8], file: NamedLater) {
        self.lose(path);
        self.add_made(path, file);
        self.count(Some(file), 1);
    }

    fn add_made(&mut self, path: &[u8], file: NamedLater) {
        if self.stands_elsewhere(path) {
            self.stand_ins.remove(path);
        }
        if let NamedLater::New(original) = file {
            self.first.entry(original).or_insert_with(|| path.to_vec());
        }
        self.made.insert(path.to_vec(), file);
    }

    /// Takes the name from the file that it would lead to.
    fn lose(&mut self, path: &[u8]) {
        let file = self.leads(path);
        self.count(file, -1);
        self.made.remove(path);
    }

    fn count(&mut self, file: Option<NamedLater>, more: i64) {
        if let Some(file) = file {
            *self.more.entry(file).or_default() += more;
        }
    }

    /// Returns the regular file that the name would lead to.
    fn leads(&self, path: &[u8]) -> Option<NamedLater> {
        if let Some(made) = self.made.get(path) {
            return Some(*made);
        }
        let (dir, name) = split(self.now(path)?);
        let below = dir.strip_prefix(b"/").unwrap_or(dir);
        let dir = dirfd::open_below(dirfd::open_root(b"/").ok()?, below).ok()?;
        let stat = meta::stat_at(&dir, &dirfd::name(name).ok()?).ok()?;
        (stat.kind() == FileKind::File).then_some(NamedLater::There(stat.id))
    }
}
