//! Dry run of undo: refusals, and metadata that could not be given back, are found by the same
//! looks, and nothing is changed. What the run would rename, remove and make is recorded, so that
//! each name is looked at as it would be by then; in a real run nothing is recorded, and each name
//! is its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_fs::Escaped;
use bc_fs::call::FailedCall;
use bc_fs::caller::{FIXED, FixedName};
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::{Links, basic_traits};
use bc_fs::path::{sibling, split};
use bc_walk::{FileKind, Identity};
use rustix::fs::StatxAttributes;
use rustix::io::Errno;

use super::leftovers::StageMeans;
use super::moved::CarriedBack;
use super::names::{Another, ContentProof};
use super::next::Reversal;
use super::{NamedEntry, Original, Undo, UndoOutcome, UndoneStep, fewer_links, find};
use crate::act::moving::relocate::{MoveMethod, apart};
use crate::check::abilities;
use crate::check::compare::mounts_differ;
use crate::check::denied::denied;
use crate::check::meta::{foresee, takes_attribute};
use crate::check::open_file::OpenFile;
use crate::journal::{JournalStep, Recorded};
use crate::leftovers::claim;
use crate::options::RunMode;
use crate::skip::Skip;

impl Undo<'_> {
    /// Returns the outcome of a name that comes back without these properties.
    pub(super) fn back(&self, lost: Vec<String>) -> UndoOutcome {
        match self.mode {
            RunMode::Execute => UndoOutcome::Restored { lost },
            RunMode::DryRun => UndoOutcome::Would { lost },
        }
    }

    /// Returns the file that a name leads to, or would by then. In a real run each name is its own.
    pub(super) fn find(&self, path: &[u8], recorded: &Recorded) -> Result<NamedEntry, Skip> {
        let now = self.overlay.now(path);
        if self.overlay.lies_in_made(now.as_deref().unwrap_or(path)) {
            return Ok(NamedEntry {
                dir: None,
                name: dirfd::name(split(path).1)?,
                stat: None,
            });
        }
        match now {
            Some(now) => find(&now, recorded),
            None => Ok(NamedEntry {
                stat: None,
                ..find(path, recorded)?
            }),
        }
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
    pub(super) fn would<'d>(
        &self,
        dirs: impl IntoIterator<Item = &'d OwnedFd>,
    ) -> Result<bool, Skip> {
        if self.mode == RunMode::Execute {
            return Ok(false);
        }
        for dir in dirs {
            match dirfd::may_change(dir) {
                Err(failed) if matches!(failed.errno, Errno::ROFS | Errno::ACCESS) => {
                    return Err(failed.into());
                }
                // Or a filter of calls.
                Err(failed) if failed.errno == Errno::PERM => {
                    check_marks(dir, StatxAttributes::IMMUTABLE)?;
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Proves in a dry run that a file could be put in this directory under a temporary name, and have
    /// its own one then.
    fn would_stage(&self, dir: Option<&OwnedFd>) -> Result<(), Skip> {
        self.would(dir)?;
        dir.map_or(Ok(()), |dir| check_marks(dir, FIXED))
    }

    /// Proves in a dry run that the file could lose its name.
    pub(super) fn would_lose(&self, held: &OpenFile) -> Result<(), Skip> {
        abilities::check_removable(&self.caller, held)
    }

    /// Records what [carrying it out](Undo::carry_out) would change; returns the outcome that this
    /// would have.
    pub(super) fn foresee(
        &mut self,
        reversal: Reversal,
        step: &mut UndoneStep<'_>,
    ) -> Result<UndoOutcome, Skip> {
        let (entry, path) = (step.entry, step.path);
        let lost = match reversal {
            Reversal::GiveMetadata => {
                let (metadata, left_out) = match step.found.stat {
                    Some(_) => self.owed(entry, step.there()?)?,
                    None => (entry.target.metadata().ok_or(Skip::Changed)?, Vec::new()),
                };
                let mut lost = self.would_give(&metadata, step.found.dir.as_ref()).1;
                lost.extend(left_out);
                self.remember(entry, path, ContentProof::Proven);
                lost
            }
            Reversal::PutInPlace => {
                let (Some((temp, stat)), Some(spare)) = (step.aside.take(), step.spare) else {
                    return Err(Skip::Gone);
                };
                let there = step.there()?;
                let dir: &OwnedFd = &there.dir;
                claim::alone(dir).ok_or(Skip::InUse)?;
                self.replacement(there, &temp, spare)?;
                self.would([dir])?;
                self.would_lose(there)?;
                let aside = sibling(path, temp.as_bytes());
                self.would_lead(path, &aside);
                self.would_go(&aside);
                self.leftovers.forget(dir, &temp);
                let lost = self.stands(entry, stat.id, path, stat.nlink);
                lost.into_iter().collect()
            }
            Reversal::Replace => {
                let (dir, there) = (step.found.dir.as_ref(), step.there.as_ref());
                there.map_or(Ok(()), |there| self.would_lose(there))?;
                self.would_make(entry, dir, there)?
            }
            Reversal::Make => {
                let source = self.found_copy(entry);
                self.would_make(entry, step.found.dir.as_ref(), source.as_ref())?
            }
            Reversal::BringBack(how) => {
                step.moved()?;
                let held = step.moved.as_ref().ok_or(Skip::Gone)?;
                let dir = step.found.dir.as_ref();
                self.would(dir.into_iter().chain([&**held.dir]))?;
                self.would_lose(held)?;
                if how == MoveMethod::Rename {
                    self.would_lead(path, &held.path);
                    self.would_go(&held.path);
                    self.came_back(entry, path);
                    return Ok(self.back(Vec::new()));
                }
                let back = self.carried(entry, step.copy, held)?;
                self.would_copy_back(entry, dir, Some(back), &held.path)?
            }
            Reversal::BringForeseen => {
                let dir = step.found.dir.as_ref();
                self.would(dir)?;
                let from = entry.destination().ok_or(Skip::Gone)?;
                self.would_copy_back(entry, dir, None, &from)?
            }
            Reversal::RemoveCopy => {
                let (Some(original), Some(copy)) = (&step.there, &step.moved) else {
                    return Err(Skip::Gone);
                };
                self.would([&**copy.dir])?;
                self.would_lose(copy)?;
                self.would_go(&copy.path);
                let lost = self.stands(entry, original.stat.id, path, original.stat.nlink);
                lost.into_iter().collect()
            }
        };
        Ok(self.back(lost))
    }

    /// Foresees a file that would be [made](Undo::make): in this directory, if that is there.
    /// Returns the properties that it would lack.
    fn would_make(
        &mut self,
        entry: &JournalStep,
        dir: Option<&OwnedFd>,
        there: Option<&OpenFile>,
    ) -> Result<Vec<String>, Skip> {
        let mut lost = Vec::new();
        // As another name of a file that exists, or would by then, it has that file's metadata.
        let link = self.would_link(entry, dir);
        if !matches!(link, Ok(Some(_))) {
            let planned = self.planned_copy(entry, there)?;
            lost = self.would_give(&planned.metadata, dir).1;
            lost.extend(planned.left_out);
        }
        self.would_stage(dir)?;
        lost.extend(self.would_have(entry, &link));
        Ok(lost)
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
            Some(Another::Foreseen(path)) => self.find(path, &entry.target).ok(),
            Some(Another::There(..)) | None => None,
        };
        let beside = match &another {
            Some(Another::There(found, _)) => Some(found),
            Some(Another::Foreseen(_)) | None => made_in.as_ref(),
        };
        if let (Some(there), Some(dir)) = (beside.and_then(|found| found.dir.as_ref()), dir) {
            let [there, here] = [meta::stat_all(there)?, meta::stat_all(dir)?];
            if there.stat.id.dev != here.stat.id.dev || mounts_differ(there.mount, here.mount) {
                return Err(refused(Errno::XDEV).into());
            }
        }
        if let Some(Another::There(found, path)) = &another {
            let held = OpenFile::find(found.dir()?, &found.name, path)?;
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

    /// Foresees a file that would [come back](Undo::bring_back) from this name as a copy; `back` is
    /// `None` if that name would only have been given back by then. Returns the properties that it
    /// would lack.
    fn would_copy_back(
        &mut self,
        entry: &JournalStep,
        dir: Option<&OwnedFd>,
        back: Option<CarriedBack>,
        from: &[u8],
    ) -> Result<Vec<String>, Skip> {
        self.would_stage(dir)?;
        let (metadata, mut lost) = match &back {
            Some(back) => (back.metadata.clone(), back.lost.clone()),
            None => (entry.target.metadata().ok_or(Skip::Changed)?, Vec::new()),
        };
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
        match back.and_then(|back| back.stays(&made)) {
            Some(what) => lost.push(format!("the {what} of {}, which stays", Escaped(from))),
            None => self.would_go(from),
        }
        lost.extend(self.would_have(entry, &link));
        Ok(lost)
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
                .remove_equal(entry, kept.as_mut(), self.mode, &self.temps, self.pace);
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
            pace: self.pace,
        };
        for name in self
            .leftovers
            .remove_stages(entry, &sources, failed, &means)
        {
            self.would_go(&name);
        }
    }

    /// Returns true if the kept file of the step is one that would be made by then.
    pub(super) fn foresees_kept(&self, entry: &JournalStep) -> bool {
        let path = entry.kept_file.path().unwrap_or_default();
        // What its name would lead to is to be seen elsewhere.
        self.foresees(&path, entry) && !self.overlay.stands_elsewhere(&path)
    }

    /// Returns true if a later step would have been undone by then that gave this name the content
    /// of the step's file.
    pub(super) fn foresees(&self, path: &[u8], entry: &JournalStep) -> bool {
        let found = self.overlay.restored(path);
        found.is_some_and(|restored| restored.content == entry.digest())
    }
}

/// Refuses a directory that has one of these marks.
fn check_marks(dir: &OwnedFd, marks: StatxAttributes) -> Result<(), Skip> {
    match meta::stat_all(dir)?.marks.intersects(marks) {
        true => Err(denied("rename", FixedName::InMarkedDir.reason())),
        false => Ok(()),
    }
}

/// File that would be restored.
pub(super) struct RestoredLater {
    pub(super) content: Option<Digest>,
    /// Metadata that it would get; recorded only for a journal of several runs, of which a later one
    /// may have acted on the same name.
    pub(super) metadata: Option<FileMetadata>,
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

/// Changes that a dry run would have made by then. Names are those of today: below a directory that
/// would be renamed, the ones that they have before that.
#[derive(Default)]
pub(super) struct Overlay {
    /// Files that would be restored, with the content: they may be the kept files of steps before.
    contents: HashMap<Vec<u8>, RestoredLater>,
    /// Names that would lead elsewhere: with those that now lead there, or `None` if they would lead
    /// to nothing.
    stand_ins: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Names that would lead to files that are still to be made.
    made: HashMap<Vec<u8>, NamedLater>,
    /// The first names of those files.
    first: HashMap<Original, Vec<u8>>,
    /// Number of names that a file would have more, or less, than now.
    more: HashMap<NamedLater, i64>,
    /// Directories that would be made.
    made_dirs: HashSet<Vec<u8>>,
    /// Directories that would be renamed, with the names that they have today.
    renamed_dirs: HashMap<Vec<u8>, Vec<u8>>,
}

impl Overlay {
    /// Returns the name by which today what is below a directory that would be renamed is found.
    fn today<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let mut at = path;
        while !self.renamed_dirs.is_empty() && at.len() > 1 {
            if let Some(now) = self.renamed_dirs.get(at) {
                return Cow::Owned([now, &path[at.len()..]].concat());
            }
            at = split(at).0;
        }
        Cow::Borrowed(path)
    }

    /// Returns the name that now leads to what `path` would lead to by then; `None` if that is
    /// nothing.
    pub(super) fn now<'p>(&'p self, path: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        let path = self.today(path);
        match self.stand_ins.get(&*path) {
            Some(now) => now.as_deref().map(Cow::Borrowed),
            None => Some(path),
        }
    }

    /// Returns true if what the name would lead to is to be seen under another one.
    pub(super) fn stands_elsewhere(&self, path: &[u8]) -> bool {
        matches!(self.stand_ins.get(&*self.today(path)), Some(Some(_)))
    }

    /// Returns true if the name would lead to a file that is still to be made.
    pub(super) fn is_made(&self, path: &[u8]) -> bool {
        self.made.contains_key(&*self.today(path))
    }

    /// Returns the first name of a file that would be made for this original and its other names.
    pub(super) fn first(&self, original: &Original) -> Option<&Vec<u8>> {
        self.first.get(original)
    }

    /// Returns the file that would be restored under this name.
    pub(super) fn restored(&self, path: &[u8]) -> Option<&RestoredLater> {
        self.contents.get(&*self.today(path))
    }

    pub(super) fn restores(&mut self, path: &[u8], file: RestoredLater) {
        self.contents.insert(self.today(path).into_owned(), file);
    }

    /// Returns the number of names that a file has by then, which has so many now.
    pub(super) fn names_by_then(&self, file: NamedLater, now: u64) -> u64 {
        let more = self.more.get(&file).copied().unwrap_or(0);
        now.saturating_add_signed(more)
    }

    /// Records that what `from` leads to would have the name `path` as well.
    pub(super) fn lead(&mut self, path: &[u8], from: &[u8]) {
        let file = self.leads(from);
        let now = self.now(from).map(Cow::into_owned);
        let path = self.lose(path);
        match file {
            Some(file @ (NamedLater::New(_) | NamedLater::Alone)) => self.add_made(path, file),
            Some(NamedLater::There(_)) | None => drop(self.stand_ins.insert(path, now)),
        }
        self.count(file, 1);
    }

    /// Records that a name would go.
    pub(super) fn go(&mut self, path: &[u8]) {
        let path = self.lose(path);
        self.contents.remove(&path);
        self.stand_ins.insert(path, None);
    }

    /// Records that a file would be made under this name.
    pub(super) fn make(&mut self, path: &[u8], file: NamedLater) {
        let path = self.lose(path);
        self.add_made(path, file);
        self.count(Some(file), 1);
    }

    /// Records that a directory would be made.
    pub(super) fn make_dir(&mut self, path: &[u8]) {
        self.made_dirs.insert(self.today(path).into_owned());
    }

    /// Records that a directory would be renamed.
    pub(super) fn rename_dir(&mut self, from: &[u8], path: &[u8]) {
        let from = self.today(from).into_owned();
        self.renamed_dirs.insert(path.to_vec(), from);
    }

    /// Returns true if this is a directory that would be made.
    pub(super) fn is_made_dir(&self, path: &[u8]) -> bool {
        self.made_dirs.contains(&*self.today(path))
    }

    /// Returns true if the path lies in a directory that would be made.
    pub(super) fn lies_in_made(&self, path: &[u8]) -> bool {
        let path = self.today(path);
        let mut at = split(&path).0;
        while !self.made_dirs.is_empty() && at.len() > 1 {
            if self.made_dirs.contains(at) {
                return true;
            }
            at = split(at).0;
        }
        false
    }

    fn add_made(&mut self, path: Vec<u8>, file: NamedLater) {
        if matches!(self.stand_ins.get(&path), Some(Some(_))) {
            self.stand_ins.remove(&path);
        }
        if let NamedLater::New(original) = file {
            self.first.entry(original).or_insert_with(|| path.clone());
        }
        self.made.insert(path, file);
    }

    /// Takes the name from the file that it would lead to; returns it as it is today.
    fn lose(&mut self, path: &[u8]) -> Vec<u8> {
        let file = self.leads(path);
        self.count(file, -1);
        let path = self.today(path).into_owned();
        self.made.remove(&path);
        path
    }

    fn count(&mut self, file: Option<NamedLater>, more: i64) {
        if let Some(file) = file {
            *self.more.entry(file).or_default() += more;
        }
    }

    /// Returns the regular file that the name would lead to.
    fn leads(&self, path: &[u8]) -> Option<NamedLater> {
        if let Some(made) = self.made.get(&*self.today(path)) {
            return Some(*made);
        }
        let now = self.now(path)?;
        let (dir, name) = split(&now);
        let below = dir.strip_prefix(b"/").unwrap_or(dir);
        let dir = dirfd::open_below(dirfd::open_root(b"/").ok()?, below).ok()?;
        let stat = meta::stat_at(&dir, &dirfd::name(name).ok()?).ok()?;
        (stat.kind() == FileKind::File).then_some(NamedLater::There(stat.id))
    }
}
