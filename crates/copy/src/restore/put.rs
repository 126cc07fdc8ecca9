//! Replacement: the repaired file takes its name, and the existing one keeps another.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bc_digest::Digest;
use bc_edit::entry;
use bc_edit::swap::{NotDone, Swap};
use bc_integrity::second_ending;
use bc_walk::{FileStat, Identity};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::meta::fstat;
use crate::stage;

/// Bytes of the longest name that file systems have.
const NAME_MAX: usize = 255;

/// Second names that are tried.
const TRIES: u32 = 1000;

/// The existing file with a name.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub(super) stat: FileStat,
    /// Digest of its content, unless it cannot be read.
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

/// Treatment of the replaced file's content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keep {
    /// It gets a second name.
    Second,
    /// It is not kept: that is not wanted, or it has another name already.
    Nothing,
}

/// Reason for which a name was not given.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NotPut {
    /// The existing file has changed.
    Changed,
    /// The system refuses: the operation and the reason.
    System(&'static str, Errno),
    /// The existing file could not get another name, since the file system has neither links nor
    /// exchanges.
    CannotKeep,
    /// The replaced file has the name of the stage, and could not be put back.
    Stuck(Errno),
    /// Like `Stuck`, but the name has been given to another file once more, which keeps it.
    Displaced,
}

impl From<NotDone<NotPut>> for NotPut {
    fn from(not: NotDone<NotPut>) -> NotPut {
        match not {
            NotDone::Failed(failed) => NotPut::System("rename", failed.errno),
            NotDone::Refused(why) => why,
            // The program that saved the replaced file has saved again: the last version stays.
            NotDone::Displaced { failed: None, .. } => NotPut::Displaced,
            NotDone::Displaced {
                failed: Some(failed),
                ..
            } => NotPut::Stuck(failed.errno),
        }
    }
}

/// Stage that is open as a place, so that no other file is given its number.
struct Held {
    _open: OwnedFd,
    id: Identity,
}

impl Held {
    fn new(dir: BorrowedFd<'_>, stage: &str) -> Result<Held, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = retry_on_intr(|| rustix::fs::openat(dir, stage, flags, Mode::empty()))?;
        let id = FileStat::from(&fstat(&open)?).id;
        Ok(Held { _open: open, id })
    }

    /// Removes it by the name of a stage, which is left where it leads to another file by now.
    fn remove(&self, dir: BorrowedFd<'_>, stage: &str) -> Result<(), NotPut> {
        match look(dir, stage.as_bytes()) {
            Ok(now) if now.id == self.id => {
                stage::remove(dir, stage);
                Ok(())
            }
            Ok(_) => Err(NotPut::Displaced),
            // There is nothing to remove, or the next run does.
            Err(_) => Ok(()),
        }
    }
}

/// Second name of a damaged file.
struct Second {
    name: Vec<u8>,
    /// True if this call has made it: another run may rely on a name that it has made itself.
    made: bool,
}

/// Gives a stage a name that is free; if it is not, the stage is removed.
pub(super) fn put_new(dir: BorrowedFd<'_>, from: &str, name: &[u8]) -> Result<(), NotPut> {
    let put = entry::rename_new(dir, from, dir, name);
    put.map_err(|failed| {
        stage::remove(dir, from);
        match failed.errno {
            Errno::EXIST => NotPut::Changed,
            errno => NotPut::System("rename", errno),
        }
    })
}

/// Gives a stage the name of `present`, which gets another one, returned, if it is to be kept. Any
/// other file that has the name by then keeps it, and the stage is removed, unless it is
/// [stuck](NotPut::Stuck).
pub(super) fn put_over(
    dir: BorrowedFd<'_>,
    from: &str,
    name: &[u8],
    present: &Present,
    keep: Keep,
) -> Result<Option<Vec<u8>>, NotPut> {
    let held = Held::new(dir, from).map_err(|errno| {
        stage::remove(dir, from);
        NotPut::System("open", errno)
    })?;
    let linked = match keep {
        Keep::Nothing => Ok(None),
        Keep::Second => link_second(dir, name, present),
    };
    let second = match linked {
        Ok(second) => second,
        Err(why) => return Err(held.remove(dir, from).err().unwrap_or(why)),
    };
    let swap = Swap {
        dir,
        staged: from.as_bytes(),
        ours: held.id,
        name,
        replaced: present.stat.id,
    };
    let settle = || settle(dir, from, name, present, keep, second.as_ref());
    let look = || match look(dir, name) {
        _ if keep == Keep::Second && second.is_none() => Err(NotPut::CannotKeep),
        Ok(now) if present.is(&now) => Ok(None),
        _ => Err(NotPut::Changed),
    };
    let put = swap.put_over(settle, look).map_err(NotPut::from);
    match put {
        Ok(moved) => Ok(moved.or(second.map(|second| second.name))),
        Err(NotPut::Stuck(errno)) => Err(NotPut::Stuck(errno)),
        Err(why) => {
            let removed = held.remove(dir, from);
            // Where the first name leads elsewhere by now the second may be all that is left of it.
            if let Some(second) = second.filter(|second| second.made)
                && is_at(dir, name, present.stat.id)
            {
                remove_second(dir, &second.name);
            }
            Err(removed.err().unwrap_or(why))
        }
    }
}

/// Makes a second name of the existing file; `None` where there are no links, or none for this
/// user.
fn link_second(
    dir: BorrowedFd<'_>,
    name: &[u8],
    present: &Present,
) -> Result<Option<Second>, NotPut> {
    for second in seconds(name, present.digest) {
        match entry::link(dir, name, dir, &second[..]).map_err(Errno::from) {
            Ok(()) if is_at(dir, &second, present.stat.id) => {
                return Ok(Some(Second {
                    name: second,
                    made: true,
                }));
            }
            Ok(()) => {
                remove_second(dir, &second);
                return Err(NotPut::Changed);
            }
            // A run that was interrupted had come so far, or another one is about to.
            Err(Errno::EXIST) if is_at(dir, &second, present.stat.id) => {
                return Ok(Some(Second {
                    name: second,
                    made: false,
                }));
            }
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

/// Checks the replaced file, which has the stage's name now, and gives it its second name or removes
/// it. Returns the second name if it was given here.
fn settle(
    dir: BorrowedFd<'_>,
    from: &str,
    name: &[u8],
    present: &Present,
    keep: Keep,
    second: Option<&Second>,
) -> Result<Option<Vec<u8>>, NotPut> {
    match look(dir, from.as_bytes()) {
        Ok(now) if present.is(&now) => {}
        Ok(_) => return Err(NotPut::Changed),
        Err(errno) => return Err(NotPut::System("stat", errno)),
    }
    let is_kept = match second {
        // The program that made it may have removed it again.
        Some(second) => second.made || is_at(dir, &second.name, present.stat.id),
        None => keep == Keep::Nothing,
    };
    if is_kept {
        stage::remove(dir, from);
        return Ok(None);
    }
    for second in seconds(name, present.digest) {
        match entry::rename_new(dir, from, dir, &second[..]).map_err(Errno::from) {
            Ok(()) => return Ok(Some(second)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(NotPut::System("rename", errno)),
        }
    }
    Err(NotPut::System("rename", Errno::EXIST))
}

/// Returns the `stat` of the file with a name.
pub(super) fn look(dir: BorrowedFd<'_>, name: &[u8]) -> Result<FileStat, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = retry_on_intr(|| rustix::fs::statat(dir.as_fd(), name, flags))?;
    Ok(FileStat::from(&stat))
}

/// True if a name leads to this very file.
pub(super) fn is_at(dir: BorrowedFd<'_>, name: &[u8], id: Identity) -> bool {
    look(dir, name).is_ok_and(|now| now.id == id)
}

/// Removes a second name that is of no use, unless it has become the only one.
fn remove_second(dir: BorrowedFd<'_>, name: &[u8]) {
    if look(dir, name).is_ok_and(|now| now.nlink > 1) {
        let _ = entry::unlink(dir, name);
    }
}

/// Returns names for a damaged file, the best first.
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

/// Returns as much of a name as there is room for, no character cut in two.
fn shortened(name: &[u8], room: usize) -> &[u8] {
    if name.len() <= room {
        return name;
    }
    // At most three bytes continue a character in UTF-8.
    let is_start = |at: &usize| name[*at] & 0xc0 != 0x80;
    let cut = (room.saturating_sub(3)..=room).rev().find(is_start);
    &name[..cut.unwrap_or(room)]
}

#[cfg(test)]
mod tests;
