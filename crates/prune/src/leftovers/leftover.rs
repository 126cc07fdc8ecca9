//! Temporary names of runs that were killed: distinguished from those of living runs, and removed
//! only where that cannot lose a content.
//!
//! A regular file that was set aside may have its last name there, so it goes only through the same
//! proofs as a duplicate that is deleted; a symbolic link holds nothing and goes at once. The names
//! are in [`bc_edit::names::prune`].
//!
//! A living run holds a lock on the directory ([`claim`]); where locks cannot be relied on,
//! everything stays but probes, empty files by which earlier versions asked where a directory is
//! seen: a run that finds its own gone has no answer and does nothing.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use bc_edit::entry;
use bc_edit::names::prune::{Mark, Suffix, is_ours, is_seen, parse};
use bc_fs::call;
use bc_fs::meta;
use bc_walk::{FileKind, FileStat, Identity};
use rustix::fs::{Dir, Mode, OFlags};

use crate::leftovers::claim;

/// Copies in `dir` that a killed run had given their names: which file each was
/// made of, and which file it is.
pub(crate) fn traces(dir: &OwnedFd) -> Vec<(Mark, Identity)> {
    let parts = of_others(dir, |suffix, stat| {
        suffix == Suffix::Part && stat.kind() == FileKind::File
    });
    let of = |name: &CString| {
        let stat = meta::stat_at(dir, name).ok()?;
        Some((parse(name.to_bytes())?.mark?, stat.id))
    };
    parts.iter().filter_map(of).collect()
}

/// Returns the names in `dir` that hold nothing by themselves: runs' symbolic links, copies in the
/// making, and probes. If their runs are over is known by [`claim::alone`], but for probes.
pub(crate) fn disposable(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| match (suffix, stat.kind()) {
        (Suffix::Name, FileKind::Symlink) | (Suffix::Part, FileKind::File) => true,
        (Suffix::Probe, FileKind::File) => stat.stamp.size == 0,
        _ => false,
    })
}

/// Returns the symbolic links in `dir` that finished runs had set aside.
pub(crate) fn links(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| {
        suffix == Suffix::Name && stat.kind() == FileKind::Symlink
    })
}

pub(crate) fn is_probe(name: &CStr) -> bool {
    parse(name.to_bytes()).is_some_and(|name| name.suffix == Suffix::Probe)
}

/// Names in `dir` that may be the last ones of their files.
pub(crate) fn files(dir: &OwnedFd) -> Vec<CString> {
    of_others(dir, |suffix, stat| {
        suffix == Suffix::Name && stat.kind() == FileKind::File
    })
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

fn of_others(dir: &OwnedFd, wanted: impl Fn(Suffix, &FileStat) -> bool) -> Vec<CString> {
    let mut found: Vec<CString> = entries(dir)
        .into_iter()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_bytes();
            is_ours(name) && !is_seen(name)
        })
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| {
            let Some(parsed) = parse(name.to_bytes()) else {
                return false;
            };
            meta::stat_at(dir, name).is_ok_and(|stat| wanted(parsed.suffix, &stat))
        })
        .collect();
    found.sort();
    found
}

/// Removes probes, and names that are [`disposable`] while no run is at work in `dir`; with
/// `remove` `false` only lists them. Names that are `protected` stay. Returns each name with the
/// result.
pub(crate) fn clear(
    dir: &OwnedFd,
    remove: bool,
    mut protected: impl FnMut(&CStr, Identity) -> bool,
) -> Vec<(CString, call::Result<()>)> {
    let cleared = |name: CString| {
        let done = match remove {
            true => entry::unlink(dir, &name),
            false => Ok(()),
        };
        (name, done)
    };
    let found = disposable(dir).into_iter();
    let (probes, rest): (Vec<_>, Vec<_>) = found.partition(|name| is_probe(name));
    let mut done: Vec<_> = probes.into_iter().map(cleared).collect();
    if rest.is_empty() {
        return done;
    }
    let Some(_claim) = claim::alone(dir) else {
        return done;
    };
    // Listed again: now no run can make one.
    let rest = disposable(dir).into_iter().filter(|name| {
        !is_probe(name) && meta::stat_at(dir, name).is_ok_and(|stat| !protected(name, stat.id))
    });
    done.extend(rest.map(cleared));
    done
}
