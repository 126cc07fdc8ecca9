//! Undo of whole directories: made again, filled by the steps before, and given their metadata last,
//! as everything in them is back. However far a killed undo came, the next one ends in the same
//! state: a directory is judged by its own state, not by the process that made it.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use bc_edit::InodeFlags;
use bc_edit::content;
use bc_edit::entry;
use bc_edit::made;
use bc_edit::metadata::{FileMetadata, PresentAcl};
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_fs::Escaped;
use bc_fs::dirfd;
use bc_fs::meta::{self, clipped};
use bc_fs::path::split;
use bc_fs::volume;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::io::Errno;

use super::leftovers::link_text;
use super::{NamedEntry, Undo, UndoOutcome, find, is_taken_away};
use crate::act::moving::copy::given;
use crate::act::temp::{self, give_name};
use crate::act::tree::rename_dir;
use crate::check::meta::{give_link_metadata, give_metadata, give_times, lacking, read_metadata};
use crate::check::open_file::OpenFile;
use crate::journal::{Index, JournalStep, TreeAction};
use crate::leftovers;
use crate::options::RunMode;
use crate::skip::Skip;

/// Directories that undo made or filled, or would.
#[derive(Default)]
pub(super) struct Trees {
    /// Directories that it made, and which they are.
    pub(super) made: HashMap<Vec<u8>, Identity>,
    /// Directories in which it gave names back, which moved their times.
    pub(super) filled: HashSet<Vec<u8>>,
    /// Paths that are as the journal recorded them; reported only of journals about directories.
    pub(super) settled: HashSet<Vec<u8>>,
}

impl Trees {
    /// Records that a step's name is as it was, by this undo or an earlier one.
    pub(super) fn settle(&mut self, path: &[u8], index: &Index) {
        if !index.emptied.is_empty() {
            self.settled.insert(path.to_vec());
        }
    }

    /// Records that a name was given back.
    pub(super) fn filled(&mut self, path: &[u8]) {
        self.filled.insert(split(path).0.to_vec());
    }
}

impl Undo<'_> {
    /// Undoes a step with a directory, or with a link in one.
    pub(super) fn tree(
        &mut self,
        action: TreeAction,
        entry: &JournalStep,
        path: &[u8],
    ) -> Result<UndoOutcome, Skip> {
        let found = self.find(path, &entry.target).map_err(|why| match why {
            Skip::Gone => Skip::Missing(split(path).0.to_vec()),
            why => why,
        })?;
        match action {
            TreeAction::RemoveDirectory => self.make_dir(entry, path, found),
            TreeAction::RemoveLink => self.make_link(entry, path, found),
            TreeAction::MoveDirectory | TreeAction::TrashDirectory => {
                self.rename_back(entry, path, found)
            }
            TreeAction::Empty => self.finish(entry, path, found),
        }
    }

    /// Returns the properties that a link would not be given.
    fn would_own(&self, metadata: &FileMetadata) -> Vec<String> {
        let refused = rustix::io::Errno::PERM;
        match self.caller.may_give(None, metadata.owner()).is_ok() {
            true => Vec::new(),
            false => vec![not_given(refused)],
        }
    }

    fn make_dir(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        found: NamedEntry,
    ) -> Result<UndoOutcome, Skip> {
        match &found.stat {
            Some(stat) if stat.kind() == FileKind::Dir => return Ok(UndoOutcome::Unneeded),
            Some(_) => return Err(Skip::Changed),
            None => {}
        }
        let mut lost = Vec::new();
        let is_subvolume = |dir| volume::was_subvolume(entry.target.id().ino, dir);
        if found.dir.as_ref().is_some_and(is_subvolume) {
            lost.push("being a subvolume: it is a plain directory".to_owned());
        }
        if self.would(&found.dir)? {
            self.overlay.make_dir(path);
            return Ok(UndoOutcome::Would { lost });
        }
        let dir = found.dir()?;
        // For us alone until all of it is there.
        entry::make_dir(dir, &found.name, 0o700)?;
        let made = dirfd::open_listed(dir, &found.name).and_then(|made| {
            // A refusal is reported when the other flags are given.
            let _ = entry.target.flags().of_empty().give(&made);
            meta::stat(&made)
        });
        let _ = content::sync_dir(dir);
        // Otherwise it is looked at as that of a killed undo is.
        if let Ok(made) = made {
            self.trees.made.insert(path.to_vec(), made.id);
        }
        Ok(UndoOutcome::Restored { lost })
    }

    fn make_link(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        found: NamedEntry,
    ) -> Result<UndoOutcome, Skip> {
        let text = entry.text().ok_or(Skip::Changed)?;
        match &found.stat {
            Some(stat) if stat.kind() == FileKind::Symlink => {
                let there = dirfd::link_text(dirfd::open_link(found.dir()?, &found.name)?)?;
                if there != text {
                    return Err(Skip::Changed);
                }
                self.leftovers.clear_links(entry, &text, self.mode);
                // Killed before it went, or before the copy made of it had gone.
                if self.mode == RunMode::Execute {
                    self.take_back_link(entry, &text, &found);
                }
                return Ok(UndoOutcome::Unneeded);
            }
            Some(_) => return Err(Skip::Changed),
            None => {}
        }
        if self.would(&found.dir)? {
            let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
            let lost = self.would_own(&metadata);
            self.leftovers.clear_links(entry, &text, self.mode);
            return Ok(UndoOutcome::Would { lost });
        }
        let lost = self.place_link(entry, &text, &found)?;
        let _ = content::sync_dir(found.dir()?);
        self.trees.filled(path);
        self.leftovers.clear_links(entry, &text, self.mode);
        self.take_back_link(entry, &text, &found);
        Ok(UndoOutcome::Restored { lost })
    }

    /// Makes the link under a temporary name, and gives it its own name only with its owner and
    /// times: a link in its place does not show that these are still missing.
    fn place_link(
        &mut self,
        entry: &JournalStep,
        text: &[u8],
        found: &NamedEntry,
    ) -> Result<Vec<String>, Skip> {
        let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
        let dir = found.dir()?;
        let _claim = self.blocked.claim(dir, self.pace.cancel)?;
        let mut held = None;
        let temp = self.temps.name(|temp| {
            held = made::make_link(text, dir, temp)?;
            Ok(())
        })?;
        // Its name was given to another file.
        let held = held.ok_or(Skip::Changed)?;
        let mut lost = Vec::new();
        if let Err(errno) = give_link_metadata(&metadata, &held) {
            lost.push(not_given(errno));
        }
        let made = meta::stat(&held)?.id;
        give_name(dir, &temp, made, &found.name)?;
        Ok(lost)
    }

    /// Removes the link that was made where this one was moved to, if it is still that, while the
    /// one that is `back` has its text: set aside first, so that one that another process puts there
    /// meanwhile gets its name again.
    fn take_back_link(&self, entry: &JournalStep, text: &[u8], back: &NamedEntry) {
        let Some(to) = entry.destination() else {
            return;
        };
        let is_link = |held: &OpenFile| {
            let found = dirfd::link_text(&held.file);
            held.stat.kind() == FileKind::Symlink && found.is_ok_and(|found| found == text)
        };
        let held = find(&to, &entry.target).and_then(|there| there.hold(&to));
        let Some(made) = held.ok().filter(is_link) else {
            return;
        };
        let Ok(_claim) = self.blocked.claim(&made.dir, self.pace.cancel) else {
            return;
        };
        let stands = || match link_text(back.dir()?, &back.name).as_deref() == Some(text) {
            // An undo that was killed may have left it in memory.
            true => Ok(content::sync_dir(back.dir()?)?),
            false => Err(Skip::Changed),
        };
        // One that stays keeps the directory that it is in.
        let _ = temp::remove(&made, &self.temps, stands);
    }

    fn rename_back(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        found: NamedEntry,
    ) -> Result<UndoOutcome, Skip> {
        if found.stat.is_some() {
            return match found.may_be(&entry.target.mark()) {
                true => {
                    self.forget_trashed(entry, path);
                    Ok(UndoOutcome::Unneeded)
                }
                false => Err(Skip::Changed),
            };
        }
        let to = entry.destination().ok_or(Skip::Changed)?;
        let gone = || match entry.is_trash() {
            true => Skip::TrashEmptied(to.clone()),
            false => Skip::Missing(to.clone()),
        };
        let there = match self.find(&to, &entry.target) {
            Err(Skip::Gone) if entry.is_trash() => return Err(gone()),
            found => found?,
        };
        match &there.stat {
            Some(stat) if stat.kind() == FileKind::Dir => {}
            Some(_) if !entry.is_trash() => return Err(Skip::Changed),
            Some(_) | None => return Err(gone()),
        }
        let from = there.dir()?;
        let held = OpenFile::link(
            dirfd::open_listed(from, &there.name)?,
            from,
            &there.name,
            &to,
        )?;
        if !is_taken_away(&held.mark(), &entry.target.mark()) {
            return Err(match entry.is_trash() {
                true => gone(),
                false => Skip::Changed,
            });
        }
        if self.would(found.dir.iter().chain([from, &held.file]))? {
            self.would_lose(&held)?;
            self.overlay.rename_dir(&to, path);
            return Ok(UndoOutcome::Would { lost: Vec::new() });
        }
        rename_dir(&held, found.dir()?, &found.name, path)?;
        let _ = content::sync_dir(found.dir()?);
        self.forget_trashed(entry, path);
        Ok(UndoOutcome::Restored { lost: Vec::new() })
    }
}

/// Returns the message about a link that could not be given its owner or times.
fn not_given(errno: rustix::io::Errno) -> String {
    format!("owner or times: {}", std::io::Error::from(errno))
}

/// FileMetadata and flags that a directory is to have.
struct DirMeta {
    metadata: FileMetadata,
    flags: bc_edit::InodeFlags,
}

/// Part of that which it is to be given.
enum Share {
    All,
    Times,
    Nothing,
    /// It lacks this, but holds a name that undo does not know.
    Refused(&'static str, Vec<u8>),
}

impl Undo<'_> {
    /// Gives a directory the metadata that it had before the first name in it went: the last part
    /// of it that is undone.
    pub(super) fn finish(
        &mut self,
        entry: &JournalStep,
        path: &[u8],
        found: NamedEntry,
    ) -> Result<UndoOutcome, Skip> {
        if self.overlay.is_made_dir(path) {
            let metadata = entry.target.metadata().ok_or(Skip::Changed)?;
            let lost = self.would_give(&metadata, None).1;
            return Ok(self.with_metadata(lost));
        }
        let is_dir = |stat: &FileStat| stat.kind() == FileKind::Dir;
        let (Some(dir), Some(stat)) = (&found.dir, found.stat.filter(is_dir)) else {
            return Ok(UndoOutcome::Unneeded);
        };
        let dry = self.mode == RunMode::DryRun;
        if let Some(to) = entry.destination().filter(|_| !dry) {
            self.take_back_dir(&to, entry);
        }
        let wanted = DirMeta {
            metadata: entry.target.metadata().ok_or(Skip::Changed)?,
            flags: entry.target.flags(),
        };
        let opened = match dirfd::open_listed(dir, &found.name) {
            // It has the mode that keeps us out already.
            Err(failed) if failed.errno == Errno::ACCESS && wanted.is_had(&stat) => {
                return Ok(UndoOutcome::Unneeded);
            }
            opened => opened?,
        };
        if meta::stat(&opened)?.id != stat.id {
            return Err(Skip::Changed);
        }
        let lost = match self.share(entry, path, &opened, &stat, &wanted)? {
            Share::All | Share::Times if dry => match self.caller.owns(stat.uid) {
                true => self.would_give(&wanted.metadata, Some(&opened)).1,
                false => Vec::new(),
            },
            Share::All => wanted.give(&opened)?,
            Share::Times => match give_times(&wanted.metadata, &opened) {
                Ok(()) => Vec::new(),
                Err(errno) => vec![format!("times: {}", std::io::Error::from(errno))],
            },
            Share::Nothing => Vec::new(),
            Share::Refused(what, name) => {
                let name = Escaped(&name);
                vec![format!("{what}: it holds {name}, which undo did not make")]
            }
        };
        Ok(self.with_metadata(lost))
    }

    /// Returns the outcome of a directory that got its metadata but for these parts.
    fn with_metadata(&self, lost: Vec<String>) -> UndoOutcome {
        match lost.is_empty() {
            true => UndoOutcome::Unneeded,
            false => self.back(lost),
        }
    }

    fn share(
        &self,
        entry: &JournalStep,
        path: &[u8],
        opened: &OwnedFd,
        stat: &FileStat,
        wanted: &DirMeta,
    ) -> Result<Share, Skip> {
        if let Some(made) = self.trees.made.get(path) {
            // Another directory that has its name by now is not given the original's metadata.
            return match *made == stat.id {
                true => Ok(Share::All),
                false => Err(Skip::Changed),
            };
        }
        let (before, now) = (entry.target.mark(), Mark::of(opened, stat.id));
        // The number that became free may have been given to the directory that undo made.
        let known = before.born_ns.is_some() && now.born_ns.is_some();
        let never_gone = match known {
            true => now.proves_mounted(&before),
            false => now.id == before.id,
        };
        if never_gone {
            // No step changed anything else of it.
            if self.trees.filled.contains(path) {
                return Ok(Share::Times);
            }
            if clipped(wanted.metadata.mtime_ns) == stat.stamp.mtime_ns {
                return Ok(Share::Nothing);
            }
            // All that a killed undo left of its work in it.
            let (settled, foreign) = self.names_in(opened, path, Some(self.started_ns()))?;
            return Ok(match foreign.is_none() && settled {
                true => Share::Times,
                false => Share::Nothing,
            });
        }
        let Some(what) = wanted.missing(opened, stat)? else {
            return Ok(Share::Nothing);
        };
        Ok(match self.names_in(opened, path, None)?.1 {
            None => Share::All,
            // A process that works in it moves its times.
            Some(_) if what == TIMES => Share::Nothing,
            Some(name) => Share::Refused(what, name),
        })
    }

    /// Returns true if a directory holds a name that is as the journal recorded it; and the first
    /// name that is neither that, nor another name of such a file, nor unchanged since before
    /// `since`.
    fn names_in(
        &self,
        opened: &OwnedFd,
        path: &[u8],
        since: Option<i64>,
    ) -> Result<(bool, Option<Vec<u8>>), Skip> {
        let unreadable = Skip::System {
            op: "read directory",
            errno: Errno::IO.raw_os_error(),
        };
        let mut ours: HashSet<Identity> = HashSet::new();
        let mut others = Vec::new();
        for entry in leftovers::entries(opened).ok_or(unreadable)? {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || prune_names::is_ours(name.to_bytes()) {
                continue;
            }
            let stat = meta::stat_at(opened, name)?;
            let whole = [path, b"/".as_slice(), name.to_bytes()].concat();
            match self.trees.settled.contains(&whole) {
                true => drop(ours.insert(stat.id)),
                false => others.push((whole, stat)),
            }
        }
        let foreign = others.into_iter().find(|(_, stat)| {
            let before = since.is_some_and(|since| stat.stamp.ctime_ns <= since);
            !before && !ours.contains(&stat.id)
        });
        Ok((!ours.is_empty(), foreign.map(|(name, _)| name)))
    }

    /// Returns the start of the run that made the current step.
    fn started_ns(&self) -> i64 {
        let nth = usize::try_from(self.run).unwrap_or(0).wrapping_sub(1);
        self.names.started_ns.get(nth).copied().unwrap_or(i64::MIN)
    }

    /// Removes the directory that was made where this one was moved to, if nothing is in it any more.
    fn take_back_dir(&self, to: &[u8], entry: &JournalStep) {
        let there = find(to, &entry.target);
        if let Ok(NamedEntry {
            dir: Some(dir),
            name,
            ..
        }) = there
        {
            // New entries in there are not ours to remove.
            let _ = entry::remove_dir(&dir, &name);
        }
    }
}

const TIMES: &str = "times";

impl DirMeta {
    /// Returns true if a directory has all this, as far as its `stat` shows.
    fn is_had(&self, stat: &FileStat) -> bool {
        let FileMetadata {
            uid,
            gid,
            mode,
            mtime_ns,
            ..
        } = self.metadata;
        let has = (stat.uid, stat.gid, stat.mode & 0o7777, stat.stamp.mtime_ns);
        has == (uid, gid, mode, clipped(mtime_ns))
    }

    /// Returns the part of this that a directory lacks; its times only if it has all else.
    fn missing(&self, opened: &OwnedFd, stat: &FileStat) -> Result<Option<&'static str>, Skip> {
        let has = read_metadata(opened, stat, 0)?;
        if let Some(what) = lacking(&self.metadata, &has) {
            return Ok(Some(what));
        }
        let flags = InodeFlags::of(opened)?;
        if let Some(flag) = self.flags.missing_from(&flags) {
            return Ok(Some(flag));
        }
        Ok((self.metadata.mtime_ns != has.mtime_ns).then_some(TIMES))
    }

    /// Gives all of it; returns the parts that could not be given.
    fn give(&self, opened: &OwnedFd) -> Result<Vec<String>, Skip> {
        let mut lost = give_metadata(&self.metadata, opened, PresentAcl::InUse);
        lost.extend(given(Some(&self.flags), opened)?);
        Ok(lost)
    }
}
