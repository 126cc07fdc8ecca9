//! Temporary names of runs that were killed: distinguished from those of living runs, and removed
//! only where that cannot lose a content. A name authorises nothing: whoever has it may have been
//! given it by hand.
//!
//! A regular file that was set aside may have its last name there, so it goes only through the same
//! proofs as a duplicate that is deleted. A copy that was being made goes if it is empty, if its
//! directory has another name of it, or if it is the beginning of a file that is there
//! ([`RemovableStage`]). A symbolic link goes only if it leads to the kept file of a group, or is
//! one that a step of the journal made: any other may have been set aside for another process, which
//! had just put it there, and its text is nowhere else. What stays is reported. The names are in
//! [`bc_edit::names::prune`].
//!
//! A living run holds a lock on the directory ([`claim`]); where locks cannot be relied on,
//! everything stays but probes, empty files by which earlier versions asked where a directory is
//! seen: a run that finds its own gone has no answer and does nothing.

pub(crate) mod claim;
pub(crate) mod sweep;

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_edit::names::prune::{Mark, Suffix, is_ours, is_seen, parse};
use bc_fs::call;
use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::path::split;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::fs::{Dir, Mode, OFlags};

use crate::act::temp::{self, Temps};
use crate::check::compare::check_distinct;
use crate::check::compare::is_beginning;
use crate::check::open_file::{OpenFile, identity_at};
use crate::check::pace::ReadPace;
use crate::options::RunMode;
use crate::skip::Skip;

/// Entries that finished runs left in a directory.
#[derive(Default)]
pub(crate) struct LeftFiles {
    /// Names that may be the last ones of regular files.
    pub(crate) set_aside: Vec<CString>,
    /// Names of copies that were being made.
    pub(crate) stages: Vec<CString>,
    /// Names of symbolic links, directories and special files.
    pub(crate) others: Vec<CString>,
}

impl LeftFiles {
    /// Lists them. If their runs are over is known by [`claim::alone`].
    pub(crate) fn of(dir: &OwnedFd) -> LeftFiles {
        let mut left = LeftFiles::default();
        for (name, suffix, stat) in of_others(dir) {
            match (suffix, stat.kind()) {
                (Suffix::Probe, _) => {}
                (Suffix::Part, FileKind::File) => left.stages.push(name),
                (Suffix::Name, FileKind::File) => left.set_aside.push(name),
                _ => left.others.push(name),
            }
        }
        left
    }

    /// Returns the copies among them that a killed run had given their names: which file each was
    /// made of, and which file it is.
    pub(crate) fn traces(&self, dir: &OwnedFd) -> impl Iterator<Item = (Mark, Identity)> {
        self.stages.iter().filter_map(move |name| {
            let stat = meta::stat_at(dir, name).ok()?;
            Some((parse(name.to_bytes())?.mark?, stat.id))
        })
    }
}

/// Returns the symbolic links in `dir` under names of finished runs.
pub(crate) fn links(dir: &OwnedFd) -> Vec<CString> {
    let found = of_others(dir).into_iter();
    found
        .filter(|(_, suffix, stat)| *suffix == Suffix::Name && stat.kind() == FileKind::Symlink)
        .map(|(name, ..)| name)
        .collect()
}

/// A regular file of this number in `dir`, under a name that is not of ours.
pub(crate) fn with_number(dir: &OwnedFd, ino: u64) -> Option<CString> {
    let name = |entry: rustix::fs::DirEntry| entry.file_name().to_owned();
    let mut names = entries(dir).into_iter().flatten().map(name);
    names.find(|name| {
        !is_ours(name.to_bytes())
            && meta::stat_at(dir, name)
                .is_ok_and(|stat| stat.id.ino == ino && stat.kind() == FileKind::File)
    })
}

/// Returns the entries of a directory; `None` where it cannot be listed.
pub(crate) fn entries(dir: &OwnedFd) -> Option<impl Iterator<Item = rustix::fs::DirEntry>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = rustix::fs::openat(dir, c".", flags, Mode::empty()).ok()?;
    Some(Dir::new(listing).ok()?.filter_map(Result::ok))
}

fn of_others(dir: &OwnedFd) -> Vec<(CString, Suffix, FileStat)> {
    let mut found: Vec<_> = entries(dir)
        .into_iter()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_bytes();
            is_ours(name) && !is_seen(name)
        })
        .map(|entry| entry.file_name().to_owned())
        .filter_map(|name| {
            let suffix = parse(name.to_bytes())?.suffix;
            let stat = meta::stat_at(dir, &name).ok()?;
            Some((name, suffix, stat))
        })
        .collect();
    found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    found
}

/// Removes probes, which are empty; with `remove` `false` only lists them. Returns each name with
/// the result.
pub(crate) fn clear_probes(dir: &OwnedFd, remove: bool) -> Vec<(CString, call::Result<()>)> {
    let found = of_others(dir).into_iter();
    let probes = found.filter(|(_, suffix, stat)| {
        *suffix == Suffix::Probe && stat.kind() == FileKind::File && stat.stamp.size == 0
    });
    probes
        .map(|(name, ..)| {
            let done = match remove {
                true => entry::unlink(dir, &name),
                false => Ok(()),
            };
            (name, done)
        })
        .collect()
}

/// Leftovers of which the whole run shows if they go.
#[derive(Default)]
pub(crate) struct UnsettledLeftovers {
    pub(crate) found: Vec<UnsettledLeftover>,
    /// Kept files of groups with targets in directories that hold links of killed runs.
    pub(crate) kept: HashSet<Identity>,
    /// Files under temporary names that were removed as duplicates, or refused with a reason.
    pub(crate) handled: HashSet<Identity>,
}

impl UnsettledLeftovers {
    pub(crate) fn has_links(&self, dir: Identity) -> bool {
        let mut found = self.found.iter();
        found.any(|leftover| leftover.dir == dir && leftover.leads_to.is_some())
    }
}

/// Entry under a temporary name that its own look does not let go.
pub(crate) struct UnsettledLeftover {
    pub(crate) dir: Identity,
    pub(crate) name: CString,
    pub(crate) path: Vec<u8>,
    pub(crate) stat: FileStat,
    /// File that a symbolic link leads to.
    pub(crate) leads_to: Option<Identity>,
}

impl UnsettledLeftover {
    /// Opens its directory again, rather than keeping all of them open.
    pub(crate) fn open_dir(&self) -> Option<OwnedFd> {
        let path = match split(&self.path).0 {
            b"" => b".",
            path => path,
        };
        let dir = dirfd::open_root(path).ok()?;
        (meta::stat(&dir).ok()?.id == self.dir).then_some(dir)
    }

    /// Returns the reason to leave it where no run is at work.
    pub(crate) fn why_left(&self) -> Skip {
        match parse(self.name.as_bytes()) {
            // One was when the directory was searched: the next search shows what the copy holds.
            Some(name) if name.suffix == Suffix::Part => Skip::InUse,
            _ => Skip::UnknownLeftover,
        }
    }
}

/// A copy that a killed run was making, and that can be removed without losing anything.
pub(crate) struct RemovableStage<'s> {
    held: OpenFile,
    content: ContentElsewhere<'s>,
}

/// Proof that what a copy holds is to be found under another name.
enum ContentElsewhere<'s> {
    /// It holds nothing.
    Empty,
    /// Its directory has this name of it, too.
    OtherName(CString),
    /// All that it holds is the beginning of this file, or all of it. Even if it is a complete copy
    /// of a shorter file, or was never a run's, no byte of it is lost: each is in this file, which
    /// stays. Its length and metadata go; a run's copy had them from its source, which goes only
    /// once the copy has its own name.
    BeginningOf(&'s OpenFile),
}

impl<'s> RemovableStage<'s> {
    /// Opens the copy that has the name `name` in `dir`, at this path, and looks for what it holds:
    /// under another name in `dir`, or in one of `sources`. `None` if that is nowhere. To be called
    /// while no run is at work in the directory.
    ///
    /// # Errors
    /// If another process writes to it, or the system refuses a look.
    pub(crate) fn prove(
        dir: &OwnedFd,
        name: &CString,
        path: &[u8],
        sources: &[&'s OpenFile],
        pace: ReadPace<'_>,
    ) -> Result<Option<RemovableStage<'s>>, Skip> {
        let mut held = OpenFile::find(dir, name, path)?;
        held.watch()?;
        let size = held.stat.stamp.size;
        if size == 0 {
            let content = ContentElsewhere::Empty;
            return Ok(Some(RemovableStage { held, content }));
        }
        if held.stat.nlink > 1
            && let Some(other) = with_number(dir, held.stat.id.ino)
            && identity_at(dir, &other)? == Some(held.stat.id)
        {
            let content = ContentElsewhere::OtherName(other);
            return Ok(Some(RemovableStage { held, content }));
        }
        for source in sources {
            if check_distinct(source, &held).is_ok()
                && is_beginning(&held.file, &source.file, size, pace.watching(&held))?
                && source.check().is_ok()
            {
                let content = ContentElsewhere::BeginningOf(source);
                return Ok(Some(RemovableStage { held, content }));
            }
        }
        Ok(None)
    }

    /// Removes it, unless it or the proof has changed since. `held` are the files that the caller has
    /// open, and may have locked.
    ///
    /// # Errors
    /// With the reason why it stays.
    pub(crate) fn remove(&self, held: &[&OpenFile], temps: &Temps) -> Result<(), Skip> {
        temp::remove_stage(&self.held, temps, || match &self.content {
            ContentElsewhere::Empty => Ok(()),
            ContentElsewhere::OtherName(other) => {
                // By the descriptor that has the lock already, if one has.
                let same = held.iter().find(|file| file.stat.id == self.held.stat.id);
                same.map_or(&self.held, |file| file)
                    .lock(RunMode::Execute)?;
                match identity_at(&self.held.dir, other)? == Some(self.held.stat.id) {
                    true => Ok(()),
                    false => Err(Skip::Changed),
                }
            }
            ContentElsewhere::BeginningOf(source) => source.check(),
        })
    }
}

/// Files that copies in the making may be the beginnings of.
#[derive(Clone, Copy)]
pub(crate) struct StageSources<'s> {
    /// The kept file of the group at hand.
    pub(crate) kept_file: &'s OpenFile,
    /// The files that stay beside it.
    pub(crate) copies: &'s [OpenFile],
    /// The directory in which the originals of copies lie that their names identify.
    pub(crate) dir: &'s OwnedFd,
}

impl StageSources<'_> {
    /// Opens the file that the name of a copy says it was made of, if it may be that one.
    pub(crate) fn original_of(&self, name: &CStr) -> Option<OpenFile> {
        let mark = parse(name.to_bytes())?.mark?;
        let found = with_number(self.dir, mark.id.ino)?;
        OpenFile::find(self.dir, &found, found.as_bytes()).ok()
    }
}
