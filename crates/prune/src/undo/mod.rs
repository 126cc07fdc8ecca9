//! undo: makes the files of a journal separate again, last step first, as far as the present files
//! allow it. It changes a name only while the name is exactly what the step left, and only by the
//! same swap as prune.

mod foresee;
mod job;
mod leftovers;
mod moved;
mod names;
mod next;
mod trees;
mod volumes;

pub use self::job::{
    RestoredFile, UndoEvent, UndoJob, UndoOptions, UndoOutcome, UndoSummary, Undone,
};

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_edit::content;
use bc_edit::metadata::{FileMetadata, PresentAcl};
use bc_edit::names::prune::Mark;
use bc_find::groups::FileRef;
use bc_fs::Escaped;
use bc_fs::PathError;
use bc_fs::call::FailedCall;
use bc_fs::caller::Caller;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::{sibling, split};
use bc_pool::Cancel;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::fs::{Mode as Permissions, OFlags};
use rustix::io::Errno;

use self::foresee::{Overlay, RestoredLater};
use self::leftovers::Leftovers;
use self::moved::CarriedBack;
use self::names::{ContentProof, SpareName, StrayNames, of_kept};
use self::next::{NameState, Reversal, UndoDecision, UndoFact, UndoFacts, UndoNeed, next};
use self::trees::Trees;
use self::volumes::Volumes;
use crate::act::moving::copy::digest;
use crate::act::temp::{Temps, discard, give_name, put_in_place, replace};
use crate::check::dir;
use crate::check::meta::{entitled, give_metadata, lacking};
use crate::check::open_file::{self, OpenFile};
use crate::check::pace::ReadPace;
use crate::job::StepCounts;
use crate::journal::{Index, JournalStep, Recorded, RecordedCopy, Steps, TreeAction};
use crate::leftovers::claim::{self, Blocked};
use crate::options::RunMode;
use crate::skip::Skip;
use crate::step::StepKind;

/// Undoes the steps of the journal at `path`, the last one first. Cancelled while it reads, it has
/// done nothing; later, it stops between two steps or within one that leaves nothing behind. A
/// journal whose run was killed before its first line was complete has no steps.
///
/// # Errors
/// If the journal cannot be read, is not one, was written by another version,
/// belongs to another user or may be written by others, holds a step that
/// prune does not make or a path outside of the directories of its run, or is
/// being written; then nothing was changed.
pub fn undo(
    path: impl AsRef<Path>,
    options: impl Into<UndoOptions>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(UndoEvent<'_>),
) -> Result<UndoSummary, PathError> {
    let counts = StepCounts::default();
    undo_counted(path.as_ref(), &options.into(), cancel, &counts, observer)
}

/// Undoes as [`undo`] does, and counts the steps that are dealt with.
fn undo_counted(
    path: &Path,
    options: &UndoOptions,
    cancel: &Cancel,
    counts: &StepCounts,
    observer: &mut dyn FnMut(UndoEvent<'_>),
) -> Result<UndoSummary, PathError> {
    let mut summary = UndoSummary::default();
    let mode = options.mode;
    let rate = options.rate.as_ref();
    let Some(steps) = Steps::read(path, mode, cancel)? else {
        return Ok(summary);
    };
    summary.damaged.clone_from(&steps.index.damaged);
    let mut undo = Undo::of(&steps.index, mode, ReadPace::new(cancel, rate));
    let is_continued = steps.index.started_ns.len() > 1;
    let all = steps.index.places.len();
    counts.planned.store(all as u64, Relaxed);
    for (at, place) in steps.index.places.iter().enumerate().rev() {
        counts.done.store((all - 1 - at) as u64, Relaxed);
        if cancel.is_cancelled() {
            break;
        }
        let never = steps.never_was(at);
        if never && !steps.index.linked {
            continue;
        }
        let (entry, copy) = steps
            .entry(at)
            .map_err(|error| PathError::new(path, "read", error))?;
        let Some(path) = entry.target.path() else {
            continue;
        };
        undo.run = place.run;
        let action = entry.tree_action();
        if never {
            undo.remember(&entry, &path, ContentProof::Unproven);
            continue;
        }
        let is_there = undo.volumes.check(undo.run, &entry, &path);
        let outcome = is_there.and_then(|()| match action {
            // Leftovers in a directory are looked at for the sake of the files in it, whose steps
            // show which leftover may be the last of its content.
            Some(action) => undo.tree(action, &entry, &path),
            None if undo.is_back(&steps, at, &entry, &path) => Ok(UndoOutcome::Unneeded),
            None => {
                for name in undo.leftovers.look(&entry, mode) {
                    undo.would_go(&name);
                }
                undo.put_back(&entry, place.took_effect, copy, &path)
            }
        });
        let outcome = outcome.unwrap_or_else(UndoOutcome::Failed);
        if action.is_none() {
            let failed = matches!(outcome, UndoOutcome::Failed(_));
            undo.remove_stages(&entry, &path, failed);
        }
        if !matches!(outcome, UndoOutcome::Failed(_)) {
            if action.is_none() {
                undo.remove_equal(&entry, &path);
            }
            undo.trees.settle(&path, &steps.index);
        }
        match &outcome {
            UndoOutcome::Restored { lost } | UndoOutcome::Would { lost } => {
                summary.restored += 1;
                summary.incomplete += u64::from(!lost.is_empty());
                undo.trees.filled(&path);
                if mode == RunMode::DryRun {
                    let metadata = || entry.target.metadata();
                    let later = RestoredLater {
                        content: entry.digest(),
                        metadata: is_continued.then(metadata).flatten(),
                    };
                    undo.overlay.restores(&path, later);
                }
            }
            // The metadata of a directory is a part of its making.
            UndoOutcome::Unneeded if action == Some(TreeAction::Empty) => continue,
            UndoOutcome::Unneeded => summary.unneeded += 1,
            UndoOutcome::Failed(_) => summary.failed += 1,
        }
        observer(UndoEvent {
            path: &path,
            action: &entry.action,
            outcome: &outcome,
        });
    }
    if !cancel.is_cancelled() {
        counts.done.store(all as u64, Relaxed);
    }
    for (path, why) in undo.leftovers.staying() {
        summary.failed += u64::from(why.is_error());
        observer(UndoEvent {
            path: &path,
            action: "move",
            outcome: &UndoOutcome::Failed(why),
        });
    }
    summary.leftovers = undo.leftovers.removed();
    Ok(summary)
}

struct Undo<'a> {
    mode: RunMode,
    pace: ReadPace<'a>,
    temps: Temps,
    blocked: Blocked,
    leftovers: Leftovers,
    /// What a dry run would have changed by then.
    overlay: Overlay,
    caller: Caller,
    /// Number of the journal's run that made the current step.
    run: u64,
    /// Whole directories that undo made or filled.
    trees: Trees,
    /// Restored files that had several names: by their original, the identity that each has now and
    /// a name.
    restored: HashMap<Original, (Identity, Vec<u8>)>,
    /// Files that this undo gave back.
    made: HashSet<Identity>,
    /// Places of names that no step took.
    names: StrayNames,
    /// The file systems of the steps, and those that are there.
    volumes: Volumes,
}

/// A file before its step. The inode number alone does not identify it: a journal may be continued,
/// and a number that one run gave up is given to other files by the next.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
struct Original {
    run: u64,
    id: Identity,
    digest: Option<Digest>,
}

/// State of a name, with a link not followed.
struct NamedEntry {
    /// `None` if a dry run would have made its directory by then.
    dir: Option<OwnedFd>,
    name: CString,
    stat: Option<FileStat>,
}

/// A step with a file that is being undone, and what was found and opened for that.
struct UndoneStep<'e> {
    entry: &'e JournalStep,
    /// Copy that a move made or found.
    copy: Option<&'e RecordedCopy>,
    path: &'e [u8],
    /// The name that the step changed.
    found: NamedEntry,
    /// File that has it.
    there: Option<OpenFile>,
    /// Reason why nothing is lost with that.
    spare: Option<SpareName>,
    /// Temporary name of the step's file, and its state.
    aside: Option<(CString, FileStat)>,
    /// The name that a file was moved to.
    destination: Option<NamedEntry>,
    /// File that has that.
    moved: Option<OpenFile>,
    /// Metadata with which that comes back.
    carried: Option<CarriedBack>,
}

impl UndoneStep<'_> {
    /// Returns the file that has the step's name; held from the first call on.
    fn there(&mut self) -> Result<&mut OpenFile, Skip> {
        held_once(&mut self.there, &self.found, self.path)
    }

    /// Returns the file that has the name to which the step's was moved.
    fn moved(&mut self) -> Result<&mut OpenFile, Skip> {
        let to = self.entry.destination().ok_or(Skip::Gone)?;
        let named = self.destination.as_ref().ok_or(Skip::Gone)?;
        held_once(&mut self.moved, named, &to)
    }
}

fn held_once<'h>(
    held: &'h mut Option<OpenFile>,
    named: &NamedEntry,
    path: &[u8],
) -> Result<&'h mut OpenFile, Skip> {
    Ok(match held {
        Some(held) => held,
        None => held.insert(named.hold(path)?),
    })
}

/// A recorded path is the kernel's own: no link is expected anywhere in it.
fn reference(path: &[u8], recorded: &Recorded) -> FileRef {
    FileRef {
        path: path.to_vec(),
        root_len: 1,
        root: 0,
        id: recorded.id(),
        stamp: recorded.stamp(),
        nlink: 0,
        protected: false,
    }
}

fn find(path: &[u8], recorded: &Recorded) -> Result<NamedEntry, Skip> {
    let (dir, name) = dir::open_parent(&reference(path, recorded))?;
    let stat = match meta::stat_at(&dir, &name) {
        Ok(stat) => Some(stat),
        Err(FailedCall {
            errno: Errno::NOENT,
            ..
        }) => None,
        Err(failed) => return Err(failed.into()),
    };
    let dir = Some(dir);
    Ok(NamedEntry { dir, name, stat })
}

/// Returns true if this may be the file that a journal recorded: its device may have another number
/// since it was mounted again. A number alone is given again once it is free.
fn may_be(now: &Mark, before: &Mark) -> bool {
    now.id == before.id || now.proves_mounted(before)
}

/// Returns true if this is what a journal recorded, at the place to which that was renamed: by the
/// number alone where no time of birth is known, as its device may have another one since it was
/// mounted again.
fn is_taken_away(now: &Mark, before: &Mark) -> bool {
    match now.born_ns.is_some() && before.born_ns.is_some() {
        true => now.proves_mounted(before),
        false => now.id.ino == before.id.ino,
    }
}

impl NamedEntry {
    /// Returns its directory.
    fn dir(&self) -> Result<&OwnedFd, Skip> {
        self.dir.as_ref().ok_or(Skip::Gone)
    }

    /// Returns the mark of the file, to be compared with a recorded one; `None` if there is no file
    /// of that number.
    fn mark(&self, recorded: &Mark) -> Option<Mark> {
        let id = self.stat.as_ref()?.id;
        if id.ino != recorded.id.ino {
            return None;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(self.dir.as_ref()?, &self.name, flags, Permissions::empty());
        Some(Mark {
            id,
            born_ns: held.ok().and_then(meta::born_ns),
        })
    }

    /// Returns true if it may be the recorded file.
    fn may_be(&self, recorded: &Mark) -> bool {
        let same = self
            .stat
            .as_ref()
            .is_some_and(|stat| stat.id == recorded.id);
        same || self
            .mark(recorded)
            .is_some_and(|now| may_be(&now, recorded))
    }

    /// Holds the file that the name leads to; a symbolic link itself, not its target. Later changes
    /// to it show in its change time.
    fn hold(&self, path: &[u8]) -> Result<OpenFile, Skip> {
        let expected = self.stat.as_ref().ok_or(Skip::Gone)?;
        let dir = self.dir()?;
        let held = match expected.kind() {
            FileKind::Symlink => {
                OpenFile::link(dirfd::open_link(dir, &self.name)?, dir, &self.name, path)?
            }
            _ => OpenFile::find(dir, &self.name, path)?,
        };
        if held.stat.id != expected.id {
            return Err(Skip::Changed);
        }
        open_file::wait_past(held.stat.stamp.ctime_ns);
        Ok(held)
    }
}

/// Returns true if an open file is a regular one and has the content that the step was about.
fn has_content(entry: &JournalStep, held: &OpenFile, pace: ReadPace<'_>) -> Result<bool, Skip> {
    let size = entry.target.stamp().size;
    Ok(held.stat.kind() == FileKind::File
        && held.stat.stamp.size == size
        && Some(digest(&held.file, size, pace.watching(held))?) == entry.digest())
}

/// Returns the message about a file that has so many names again, and had more.
fn fewer_links(entry: &JournalStep, names: u64) -> Option<String> {
    let apart = entry.target.nlink().saturating_sub(names);
    let (s, are) = match apart {
        0 => return None,
        1 => ("", "is no name"),
        _ => ("s", "are no names"),
    };
    Some(format!(
        "hard links: {apart} other name{s} it had {are} of the restored file"
    ))
}

impl<'a> Undo<'a> {
    /// Undoes steps of the journal with this index.
    fn of(index: &Index, mode: RunMode, pace: ReadPace<'a>) -> Undo<'a> {
        Undo {
            mode,
            pace,
            temps: Temps::default(),
            blocked: Blocked::default(),
            leftovers: Leftovers::default(),
            overlay: Overlay::default(),
            caller: Caller::own(),
            run: 0,
            trees: Trees::default(),
            restored: HashMap::new(),
            made: HashSet::new(),
            names: StrayNames::of(index),
            volumes: Volumes::of(index),
        }
    }
}

impl Undo<'_> {
    /// Undoes a step, after files that a killed run had set aside are put back.
    fn put_back(
        &mut self,
        entry: &JournalStep,
        took_effect: Option<bool>,
        copy: Option<RecordedCopy>,
        path: &[u8],
    ) -> Result<UndoOutcome, Skip> {
        let made = copy.as_ref().map(|copy| copy.id);
        let mark = copy.as_ref().map(|copy| copy.mark);
        let back = self.leftovers.put_back(entry, mark, self.mode, self.pace)?;
        let is_back = back.original.is_some();
        for (path, left) in back.original.iter().chain(&back.copy) {
            let left = sibling(path, left.as_bytes());
            self.would_lead(path, &left);
            self.would_go(&left);
        }
        if let Some((path, _)) = &back.original {
            self.came_back(entry, path);
        }
        let outcome = match self.entry(entry, took_effect, copy.as_ref(), path) {
            Ok(UndoOutcome::Unneeded) if is_back => Ok(self.back(Vec::new())),
            Err(why) if is_back => {
                Ok(self.back(vec![format!("what was moved, which stays: {why}")]))
            }
            outcome => outcome,
        };
        let rest = self.leftovers.rest(entry, made);
        let original = || match &outcome {
            Err(_) => self.leftovers.original_path(entry, self.pace),
            Ok(_) => None,
        };
        let Some(rest) = rest.or_else(original) else {
            return outcome;
        };
        self.leftovers.speak_for(rest.clone());
        let why = match outcome {
            Ok(UndoOutcome::Restored { mut lost } | UndoOutcome::Would { mut lost }) => {
                let rest = Escaped(&rest);
                lost.push(format!(
                    "what a killed run set aside as {rest}, which stays"
                ));
                return Ok(self.back(lost));
            }
            Ok(UndoOutcome::Unneeded) => Skip::Changed,
            Ok(outcome) => return Ok(outcome),
            Err(why) => why,
        };
        let why = Box::new(why);
        Err(Skip::Rest { path: rest, why })
    }

    /// Asks for what the [decision](next) needs until it is made, and acts on it.
    fn entry(
        &mut self,
        entry: &JournalStep,
        took_effect: Option<bool>,
        copy: Option<&RecordedCopy>,
        path: &[u8],
    ) -> Result<UndoOutcome, Skip> {
        let found = self.find(path, &entry.target).map_err(|why| match why {
            // The file is perhaps where it was moved to.
            Skip::Gone => Skip::Missing(split(path).0.to_vec()),
            why => why,
        })?;
        // What it leads to today would have gone by then.
        let is_made = self.overlay.is_made(path);
        let found = NamedEntry {
            stat: found.stat.filter(|_| !is_made),
            ..found
        };
        let mut facts = UndoFacts {
            // Reading the journal let no other through.
            kind: &entry.kind().ok_or(Skip::Changed)?,
            took_effect,
            copy: copy.map(|copy| copy.origin),
            name: match &found.stat {
                Some(stat) => NameState::Taken(stat.kind()),
                None if self.foresees(path, entry) => NameState::Foreseen,
                None if is_made => return Err(Skip::Changed),
                None => NameState::Free,
            },
            known: Vec::new(),
        };
        let mut step = UndoneStep {
            entry,
            copy,
            path,
            found,
            there: None,
            spare: None,
            aside: None,
            destination: None,
            moved: None,
            carried: None,
        };
        loop {
            match next(&facts) {
                UndoDecision::Need(need) => {
                    let fact = self.find_out(need, &mut step)?;
                    facts.known.push((need, fact));
                }
                UndoDecision::Refuse(why) => return Err(why),
                UndoDecision::Unneeded(content) => {
                    self.remember(entry, path, content);
                    self.forget_trashed(entry, path);
                    return Ok(UndoOutcome::Unneeded);
                }
                UndoDecision::KeepCopy(what) => {
                    let path = Escaped(&step.moved()?.path);
                    return Ok(self.back(vec![format!("the {what} of {path}, which stays")]));
                }
                UndoDecision::Reverse(reversal) => {
                    return match self.mode {
                        RunMode::DryRun => self.foresee(reversal, &mut step),
                        RunMode::Execute => self.carry_out(reversal, &mut step),
                    };
                }
            }
        }
    }

    /// Looks for what the decision needs next.
    fn find_out(&mut self, need: UndoNeed, step: &mut UndoneStep<'_>) -> Result<UndoFact, Skip> {
        let (entry, before) = (step.entry, step.entry.target.mark());
        Ok(UndoFact::Is(match need {
            UndoNeed::Original => step.found.may_be(&before),
            UndoNeed::ProvenOriginal => {
                let now = step.found.mark(&before);
                now.is_some_and(|now| now.proves_mounted(&before))
            }
            UndoNeed::Link => self.is_link(entry, step.there()?)?,
            UndoNeed::Spare => {
                step.spare = Some(self.prove_spare(entry, step.there()?)?);
                true
            }
            UndoNeed::SetAside => {
                let dir = &step.there()?.dir;
                step.aside = self.leftovers.original(entry, dir, self.pace);
                step.aside.is_some()
            }
            UndoNeed::Content => has_content(entry, step.there()?, self.pace)?,
            UndoNeed::Metadata => {
                let before = entry.target.metadata().ok_or(Skip::Changed)?;
                let later = self.overlay.restored(step.path);
                let own = match later.filter(|_| step.found.stat.is_none()) {
                    Some(later) => match &later.metadata {
                        Some(metadata) => metadata.clone(),
                        None => return Ok(UndoFact::Lacks(Some("metadata"))),
                    },
                    None => step.there()?.metadata()?,
                };
                let times = || (before.mtime_ns != own.mtime_ns).then_some("modification time");
                return Ok(UndoFact::Lacks(lacking(&before, &own).or_else(times)));
            }
            UndoNeed::GivenBack => self.made.contains(&step.there()?.stat.id),
            UndoNeed::Foreseen => self.foresees(&entry.destination().ok_or(Skip::Gone)?, entry),
            UndoNeed::Destination => return Ok(UndoFact::Leads(self.find_destination(step)?)),
            UndoNeed::Moved => self.prove_moved(step)?,
            UndoNeed::InPlace => self.is_in_place(step)?,
            UndoNeed::Pair => self.prove_pair(step).map(|()| true)?,
            UndoNeed::Loss => return Ok(UndoFact::Loses(self.loss(step)?)),
        }))
    }

    /// Returns true if a file is the kept one, or a link to it, as the step left its name.
    fn is_link(&self, entry: &JournalStep, there: &OpenFile) -> Result<bool, Skip> {
        match entry.kind() {
            Some(StepKind::Symlink(_)) if there.stat.kind() == FileKind::Symlink => {
                match meta::stat_through(&there.dir, &there.name) {
                    Ok(to) => {
                        Ok(to.id == entry.kept_file.id() || Some(to.id) == self.kept_now(entry))
                    }
                    Err(_) if self.foresees(&entry.kept_file.path().unwrap_or_default(), entry) => {
                        Ok(true)
                    }
                    Err(failed) => Err(of_kept(entry, failed.into())),
                }
            }
            Some(StepKind::Hardlink) => {
                let shared = || there.stat.nlink > 1 && Some(there.stat.id) == self.kept_now(entry);
                Ok(may_be(&there.mark(), &entry.kept_file.mark()) || shared())
            }
            _ => Ok(false),
        }
    }

    /// Takes a step back.
    fn carry_out(
        &mut self,
        reversal: Reversal,
        step: &mut UndoneStep<'_>,
    ) -> Result<UndoOutcome, Skip> {
        let (entry, path) = (step.entry, step.path);
        match reversal {
            Reversal::GiveMetadata => {
                let there = step.there()?;
                let (metadata, left_out) = self.owed(entry, there)?;
                let mut lost = give_metadata(&metadata, &there.file, PresentAcl::InUse);
                lost.extend(left_out);
                self.remember(entry, path, ContentProof::Proven);
                Ok(self.back(lost))
            }
            Reversal::PutInPlace => {
                let (Some((temp, stat)), Some(spare)) = (step.aside.take(), step.spare) else {
                    return Err(Skip::Gone);
                };
                let there = step.there()?;
                let _claim = claim::alone(&there.dir).ok_or(Skip::InUse)?;
                let instead = self.replacement(there, &temp, spare)?;
                put_in_place(there, &temp, stat.id, || {
                    spare.check(there, instead.as_ref())
                })?;
                self.leftovers.forget(&there.dir, &temp);
                Ok(self.done(entry, stat.id, path, &there.dir, Vec::new()))
            }
            Reversal::Replace => {
                let spare = step.spare.ok_or(Skip::Gone)?;
                let there = step.there()?;
                let _claim = self.blocked.claim(&there.dir, self.pace.cancel)?;
                let (temp, id, lost) = self.make(entry, &there.dir, Some(there))?;
                let instead = self
                    .replacement(there, &temp, spare)
                    .map_err(|why| discard(there, &temp, id, why))?;
                replace(there, &temp, id, || spare.check(there, instead.as_ref()))?;
                Ok(self.done(entry, id, path, &there.dir, lost))
            }
            Reversal::Make => {
                let source = self.found_copy(entry);
                let (dir, name) = (step.found.dir()?, &step.found.name);
                let _claim = self.blocked.claim(dir, self.pace.cancel)?;
                let (temp, id, lost) = self.make(entry, dir, source.as_ref())?;
                give_name(dir, &temp, id, name)?;
                let _ = content::sync_dir(dir);
                Ok(self.done(entry, id, path, dir, lost))
            }
            Reversal::BringBack(how) => self.bring_back(step, how),
            Reversal::RemoveCopy => self.remove_copy(step),
            // In a real run nothing is foreseen.
            Reversal::BringForeseen => Err(Skip::Gone),
        }
    }

    /// Returns the metadata that a file of this undo's making is to have once more, and the parts of
    /// it that it is not entitled to.
    fn owed(
        &self,
        entry: &JournalStep,
        there: &OpenFile,
    ) -> Result<(FileMetadata, Vec<String>), Skip> {
        let before = entry.target.metadata().ok_or(Skip::Changed)?;
        Ok(entitled(before, &there.stat, Some(&there.metadata()?)))
    }

    /// Proves that an open file has the content that the step was about.
    fn is_recorded(&self, entry: &JournalStep, held: &OpenFile) -> Result<(), Skip> {
        match has_content(entry, held, self.pace)? {
            true => Ok(()),
            false => Err(Skip::Changed),
        }
    }

    /// Records the restored file, which has this name in `dir`; returns the outcome, with what is
    /// missing of it.
    fn done(
        &mut self,
        entry: &JournalStep,
        id: Identity,
        path: &[u8],
        dir: &OwnedFd,
        mut lost: Vec<String>,
    ) -> UndoOutcome {
        let name = dirfd::name(split(path).1);
        let found = name.and_then(|name| meta::stat_at(dir, &name)).ok();
        let names = found.filter(|stat| stat.id == id).map(|stat| stat.nlink);
        lost.extend(self.stands(entry, id, path, names.unwrap_or(u64::MAX)));
        UndoOutcome::Restored { lost }
    }

    /// Records a file that is in its place, or would be, and has so many names; returns the message
    /// about the others.
    fn stands(
        &mut self,
        entry: &JournalStep,
        id: Identity,
        path: &[u8],
        names: u64,
    ) -> Option<String> {
        self.made.insert(id);
        // Of files with one name each, which may be millions, none is asked for again.
        if self.names.linked {
            self.restored
                .entry(self.original(entry))
                .or_insert_with(|| (id, path.to_vec()));
        }
        fewer_links(entry, self.names_by_then(id, names))
    }

    fn original(&self, entry: &JournalStep) -> Original {
        Original {
            run: self.run,
            id: entry.target.id(),
            digest: entry.digest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"path":"/a","dev":1,"ino":2,"size":1,"mtime_ns":0,"ctime_ns":0,
        "nlink":1,"mode":420,"uid":0,"gid":0,"atime_ns":0}"#;

    #[test]
    fn paths_are_remembered_only_for_files_with_several_names() {
        let line = format!(
            r#"{{"step":1,"action":"delete","target":{FILE},"keeper":{FILE},"digest":"00"}}"#
        );
        let entry: JournalStep = serde_json::from_str(&line).unwrap();
        for linked in [false, true] {
            let mut index = Index::default();
            index.linked = linked;
            let cancel = Cancel::new();
            let pace = ReadPace::new(&cancel, None);
            let mut undo = Undo::of(&index, RunMode::Execute, pace);
            undo.stands(&entry, entry.target.id(), b"/a", 1);
            assert_eq!(undo.restored.len(), usize::from(linked));
        }
    }
}
