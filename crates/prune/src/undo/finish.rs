//! Last step of a directory's undo: it gets its metadata, as everything in it is back. However far
//! a killed undo came, the next one ends in the same state: a directory is judged by its own state,
//! not by the process that made it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use bc_edit::InodeFlags;
use bc_edit::entry;
use bc_edit::metadata::{FileMetadata, PresentAcl};
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_fs::Escaped;
use bc_fs::dirfd;
use bc_fs::meta::{self, clipped};
use bc_walk::{FileKind, FileStat, Identity};
use rustix::io::Errno;

use super::{Found, Undo, UndoOutcome, find};
use crate::act::moving::copy::given;
use crate::check::meta::{give_metadata, give_times, lacking, read_metadata};
use crate::journal::JournalStep;
use crate::leftovers;
use crate::options::RunMode;
use crate::skip::Skip;

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
        found: Found,
    ) -> Result<UndoOutcome, Skip> {
        let is_dir = |stat: &FileStat| stat.kind() == FileKind::Dir;
        let Some(stat) = found.stat.filter(is_dir) else {
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
        let opened = match dirfd::open_listed(&found.dir, &found.name) {
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
        match lost.is_empty() {
            true => Ok(UndoOutcome::Unneeded),
            false => Ok(self.back(lost)),
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
        if let Ok(there) = find(to, &entry.target) {
            // New entries in there are not ours to remove.
            let _ = entry::remove_dir(&there.dir, &there.name);
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
