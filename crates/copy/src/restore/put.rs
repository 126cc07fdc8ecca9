//! What is healed takes its name; what has the name keeps another one.

use std::os::fd::{AsFd, BorrowedFd};

use bc_digest::Digest;
use bc_integrity::second_ending;
use bc_walk::{FileStat, Identity};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::stage::{self, Over};

/// Bytes of the longest name that file systems have.
const NAME_MAX: usize = 255;

/// Second names that are tried.
const TRIES: u32 = 1000;

/// What has a name.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub(super) stat: FileStat,
    /// What it holds, unless it cannot be read.
    pub(super) digest: Option<Digest>,
}

impl Present {
    fn is(&self, now: &FileStat) -> bool {
        let (was, is) = (&self.stat, now);
        // The ctime moves with each name that is given or taken.
        was.id == is.id
            && was.stamp.size == is.stamp.size
            && was.stamp.mtime_ns == is.stamp.mtime_ns
    }
}

/// Whether what had the name gets another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keep {
    /// Yes.
    Second,
    /// No: it is not wanted, or it has one already.
    Nothing,
}

/// Why a name was not given.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NotPut {
    /// What is there is not what was there.
    Changed,
    /// The system refuses: the operation and the reason.
    System(&'static str, Errno),
    /// What is there could not get another name, since the file system knows neither links nor
    /// exchanges.
    CannotKeep,
    /// What was there has the name of the stage, and could not be put back.
    Stuck(Errno),
}

/// Gives a stage a name that is free; else the stage is removed.
pub(super) fn put_new(dir: BorrowedFd<'_>, from: &str, name: &[u8]) -> Result<(), NotPut> {
    let put = stage::publish(dir, from, name, Over::Nothing, None);
    put.map_err(|errno| {
        stage::remove(dir, from);
        match errno {
            Errno::EXIST => NotPut::Changed,
            errno => NotPut::System("rename", errno),
        }
    })
}

/// Gives a stage the name of `present`, and that another one if it is to be kept: which is
/// returned. Whatever has the name instead of `present` keeps it, and the stage is removed, unless
/// it is [stuck](NotPut::Stuck).
pub(super) fn put_over(
    dir: BorrowedFd<'_>,
    from: &str,
    name: &[u8],
    present: &Present,
    keep: Keep,
) -> Result<Option<Vec<u8>>, NotPut> {
    let linked = match keep {
        Keep::Nothing => Ok(None),
        Keep::Second => link_second(dir, name, present),
    };
    let second = linked.inspect_err(|_| stage::remove(dir, from))?;
    let put = match exchange(dir, from, name) {
        Ok(()) => after_exchange(dir, from, name, present, (keep, second.as_deref())),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match keep == Keep::Second && second.is_none() {
                true => Err(NotPut::CannotKeep),
                false => rename_over(dir, from, name, present).map(|()| None),
            }
        }
        Err(errno) => Err(NotPut::System("rename", errno)),
    };
    match put {
        Ok(moved) => Ok(second.or(moved)),
        Err(NotPut::Stuck(errno)) => Err(NotPut::Stuck(errno)),
        Err(error) => {
            stage::remove(dir, from);
            if let Some(second) = second {
                remove_second(dir, &second);
            }
            Err(error)
        }
    }
}

/// Makes a second name of what has the first; `None` where there are no links, or none for this
/// user.
fn link_second(
    dir: BorrowedFd<'_>,
    name: &[u8],
    present: &Present,
) -> Result<Option<Vec<u8>>, NotPut> {
    for second in seconds(name, present.digest) {
        let link = || rustix::fs::linkat(dir, name, dir, &second[..], AtFlags::empty());
        match retry_on_intr(link) {
            Ok(()) if is_at(dir, &second, present.stat.id) => return Ok(Some(second)),
            Ok(()) => {
                remove_second(dir, &second);
                return Err(NotPut::Changed);
            }
            // A run that was interrupted had come so far.
            Err(Errno::EXIST) if is_at(dir, &second, present.stat.id) => return Ok(Some(second)),
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Err(NotPut::Changed),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::INVAL) => {
                return Ok(None);
            }
            Err(errno) => return Err(NotPut::System("link", errno)),
        }
    }
    Err(NotPut::System("link", Errno::EXIST))
}

fn exchange(dir: BorrowedFd<'_>, from: &str, name: &[u8]) -> Result<(), Errno> {
    let flags = RenameFlags::EXCHANGE;
    retry_on_intr(|| rustix::fs::renameat_with(dir, from, dir, name, flags))
}

/// What had the name has that of the stage now: it is looked at, and put back if it is not what was
/// to be replaced.
fn after_exchange(
    dir: BorrowedFd<'_>,
    from: &str,
    name: &[u8],
    present: &Present,
    (keep, second): (Keep, Option<&[u8]>),
) -> Result<Option<Vec<u8>>, NotPut> {
    let back = |why| match exchange(dir, from, name) {
        Ok(()) => Err(why),
        Err(errno) => Err(NotPut::Stuck(errno)),
    };
    match look(dir, from.as_bytes()) {
        Ok(now) if present.is(&now) => {}
        Ok(_) => return back(NotPut::Changed),
        Err(errno) => return back(NotPut::System("stat", errno)),
    }
    if keep == Keep::Nothing || second.is_some() {
        stage::remove(dir, from);
        return Ok(None);
    }
    for second in seconds(name, present.digest) {
        match stage::publish(dir, from, &second, Over::Nothing, None) {
            Ok(()) => return Ok(Some(second)),
            Err(Errno::EXIST) => {}
            Err(errno) => return back(NotPut::System("rename", errno)),
        }
    }
    back(NotPut::System("rename", Errno::EXIST))
}

/// Where there are no exchanges: between the look and the renaming another program may take the
/// name, which no call can rule out here.
fn rename_over(
    dir: BorrowedFd<'_>,
    from: &str,
    name: &[u8],
    present: &Present,
) -> Result<(), NotPut> {
    match look(dir, name) {
        Ok(now) if present.is(&now) => {}
        _ => return Err(NotPut::Changed),
    }
    stage::publish(dir, from, name, Over::Anything, None)
        .map_err(|errno| NotPut::System("rename", errno))
}

/// What has a name.
pub(super) fn look(dir: BorrowedFd<'_>, name: &[u8]) -> Result<FileStat, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = retry_on_intr(|| rustix::fs::statat(dir.as_fd(), name, flags))?;
    Ok(FileStat::from(&stat))
}

/// Whether a name leads to this very file.
pub(super) fn is_at(dir: BorrowedFd<'_>, name: &[u8], id: Identity) -> bool {
    look(dir, name).is_ok_and(|now| now.id == id)
}

/// Removes a second name that is of no use, unless it has become the only one.
fn remove_second(dir: BorrowedFd<'_>, name: &[u8]) {
    if look(dir, name).is_ok_and(|now| now.nlink > 1) {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }
}

/// Names for what is damaged, the best first.
fn seconds(name: &[u8], digest: Option<Digest>) -> impl Iterator<Item = Vec<u8>> {
    let end = second_ending(digest);
    let name = name.to_vec();
    (1..=TRIES).map(move |number| {
        let end = match number {
            1 => end.clone(),
            number => format!("{end}-{number}"),
        };
        let mut second = shortened(&name, NAME_MAX - end.len()).to_vec();
        second.extend_from_slice(end.as_bytes());
        second
    })
}

/// As much of a name as there is room for, no character cut in two.
fn shortened(name: &[u8], room: usize) -> &[u8] {
    if name.len() <= room {
        return name;
    }
    // Of a character in UTF-8 at most three bytes continue it.
    let is_start = |at: &usize| name[*at] & 0xc0 != 0x80;
    let cut = (room.saturating_sub(3)..=room).rev().find(is_start);
    &name[..cut.unwrap_or(room)]
}

#[cfg(test)]
mod tests;
