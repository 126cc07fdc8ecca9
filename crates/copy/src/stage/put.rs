//! A stage takes its name: one that is free, or that of a chosen file, which is looked at once more
//! when it has lost it, so that no change in between is lost, and may keep another.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bc_digest::Digest;
use bc_edit::entry;
use bc_edit::swap::{NotDone, Swap};
use bc_fs::shortage::is_shortage;
use bc_integrity::second_ending;
use bc_walk::Identity;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::remove;
use crate::meta::{stat, stat_at};
use crate::place::{DestDir, Existing};

/// Bytes of the longest name that file systems have.
const NAME_MAX: usize = 255;

/// Second names that are tried.
const TRIES: u32 = 1000;

/// When a file is looked at that is to lose its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    Before,
    /// It has another name by then, which has changed the time of its last change.
    After,
}

/// Treatment of the replaced file's content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keep {
    /// It gets a second name, made of its digest, unless it cannot be read.
    Second(Option<Digest>),
    /// It is not kept: that is not wanted, or it has another name already.
    Nothing,
}

/// Reason for which a name was not given.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum NotPut {
    /// The name leads to another file than the chosen one, or to that in another state.
    Changed,
    /// The name leads to no file any more.
    Gone,
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
    _open: Option<OwnedFd>,
    id: Identity,
}

impl Held {
    fn new(dir: BorrowedFd<'_>, stage: &str) -> Result<Held, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::openat(dir, stage, flags, Mode::empty())) {
            Ok(open) => {
                let id = stat(&open)?.id;
                Ok(Held {
                    _open: Some(open),
                    id,
                })
            }
            // Where there is no descriptor to spare its number has to do: a copy that was complete
            // would fail otherwise.
            Err(errno) if is_shortage(&errno) => {
                let id = stat_at(dir, stage)?.id;
                Ok(Held { _open: None, id })
            }
            Err(errno) => Err(errno),
        }
    }

    /// Removes it by the name of a stage, which is left where it leads to another file by now.
    fn remove(&self, dir: BorrowedFd<'_>, stage: &str) -> Result<(), NotPut> {
        match stat_at(dir, stage) {
            Ok(now) if now.id == self.id => {
                remove(dir, stage);
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

/// Gives a stage a name that is free.
pub(crate) fn put_new(dir: BorrowedFd<'_>, stage: &str, name: &[u8]) -> Result<(), NotPut> {
    let put = entry::rename_new(dir, stage, dir, name);
    put.map_err(|failed| match failed.errno {
        Errno::EXIST => NotPut::Changed,
        errno => NotPut::System("rename", errno),
    })
}

/// A stage that is to take the name of a chosen file.
pub(crate) struct Replacement<'a> {
    /// The directory of both.
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) stage: &'a str,
    pub(crate) name: &'a [u8],
    /// True for a file that is the chosen one, in the state in which it was chosen. Where names
    /// cannot be exchanged, as on FAT and NFS, that is asked before alone.
    pub(crate) is_chosen: &'a dyn Fn(&Existing, Look) -> bool,
    pub(crate) keep: Keep,
}

impl Replacement<'_> {
    /// Gives the stage its name, and the replaced file another one, returned, if it is to be kept.
    /// Any other file that has the name by then keeps it, and the stage is removed, unless nothing
    /// has the name, or the stage's is another file's: it is [stuck](NotPut::Stuck) or
    /// [displaced](NotPut::Displaced).
    pub(crate) fn put(&self) -> Result<Option<Vec<u8>>, NotPut> {
        let Replacement {
            dir, stage, name, ..
        } = *self;
        let replaced = match Existing::at(dir, name) {
            Ok(now) if (self.is_chosen)(&now, Look::Before) => Ok(now.stat.id),
            Ok(_) => Err(NotPut::Changed),
            Err(Errno::NOENT) => return Err(NotPut::Gone),
            Err(errno) => Err(NotPut::System("stat", errno)),
        };
        let held = Held::new(dir, stage).map_err(|errno| NotPut::System("open", errno));
        let (replaced, held) = match (replaced, held) {
            (Ok(replaced), Ok(held)) => (replaced, held),
            (Err(why), Ok(held)) => return Err(held.remove(dir, stage).err().unwrap_or(why)),
            (_, Err(why)) => {
                remove(dir, stage);
                return Err(why);
            }
        };
        let linked = match self.keep {
            Keep::Nothing => Ok(None),
            Keep::Second(digest) => self.link_second(replaced, digest),
        };
        let second = match linked {
            Ok(second) => second,
            Err(why) => return Err(held.remove(dir, stage).err().unwrap_or(why)),
        };
        let swap = Swap {
            dir,
            staged: stage.as_bytes(),
            ours: held.id,
            name,
            replaced,
        };
        let look = || match Existing::at(dir, name) {
            _ if self.keep != Keep::Nothing && second.is_none() => Err(NotPut::CannotKeep),
            Ok(now) if (self.is_chosen)(&now, Look::Before) => Ok(None),
            _ => Err(NotPut::Changed),
        };
        let settle = || self.settle(replaced, second.as_ref());
        let put = swap.put_over(settle, look).map_err(NotPut::from);
        match put {
            Ok(moved) => Ok(moved.or(second.map(|second| second.name))),
            Err(NotPut::Stuck(errno)) => Err(NotPut::Stuck(errno)),
            Err(why) => {
                let removed = held.remove(dir, stage);
                // Where the first name leads elsewhere by now the second may be all that is left of
                // it.
                if let Some(second) = second.filter(|second| second.made)
                    && is_at(dir, name, replaced)
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
        &self,
        replaced: Identity,
        digest: Option<Digest>,
    ) -> Result<Option<Second>, NotPut> {
        let Replacement { dir, name, .. } = *self;
        for second in seconds(name, digest) {
            match entry::link(dir, name, dir, &second[..]).map_err(Errno::from) {
                Ok(()) if is_at(dir, &second, replaced) => {
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
                Err(Errno::EXIST) if is_at(dir, &second, replaced) => {
                    return Ok(Some(Second {
                        name: second,
                        made: false,
                    }));
                }
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Err(NotPut::Changed),
                Err(
                    Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::INVAL,
                ) => {
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
        &self,
        replaced: Identity,
        second: Option<&Second>,
    ) -> Result<Option<Vec<u8>>, NotPut> {
        let Replacement {
            dir, stage, name, ..
        } = *self;
        match Existing::at(dir, stage.as_bytes()) {
            Ok(now) if (self.is_chosen)(&now, Look::After) => {}
            Ok(_) => return Err(NotPut::Changed),
            Err(errno) => return Err(NotPut::System("stat", errno)),
        }
        let is_kept = match second {
            // The program that made it may have removed it again.
            Some(second) => second.made || is_at(dir, &second.name, replaced),
            None => self.keep == Keep::Nothing,
        };
        if is_kept {
            remove(dir, stage);
            return Ok(None);
        }
        let digest = match self.keep {
            Keep::Second(digest) => digest,
            Keep::Nothing => None,
        };
        for second in seconds(name, digest) {
            match entry::rename_new(dir, stage, dir, &second[..]).map_err(Errno::from) {
                Ok(()) => return Ok(Some(second)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(NotPut::System("rename", errno)),
            }
        }
        Err(NotPut::System("rename", Errno::EXIST))
    }
}

/// True if a name leads to this very file.
pub(crate) fn is_at(dir: BorrowedFd<'_>, name: &[u8], id: Identity) -> bool {
    stat_at(dir, name).is_ok_and(|now| now.id == id)
}

/// Gives a file another name, that of a stage. Returns false if the name that it is to have by `id`
/// leads to another file by now.
pub(crate) fn link(
    from: impl AsFd,
    name: &[u8],
    id: Identity,
    to: &DestDir,
    stage: &str,
) -> Result<bool, Errno> {
    entry::link(from, name, &to.fd, stage)?;
    let is_it = is_at(to.fd.as_fd(), stage.as_bytes(), id);
    if !is_it {
        remove(to.fd.as_fd(), stage);
    }
    Ok(is_it)
}

/// Removes a second name that is of no use, unless it has become the only one.
fn remove_second(dir: BorrowedFd<'_>, name: &[u8]) {
    if stat_at(dir, name).is_ok_and(|now| now.nlink > 1) {
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
        named_beside(&name, &end)
    })
}

/// Returns a name with this ending, shortened to fit.
pub(crate) fn named_beside(name: &[u8], ending: &str) -> Vec<u8> {
    let mut beside = shortened(name, NAME_MAX - ending.len()).to_vec();
    beside.extend_from_slice(ending.as_bytes());
    beside
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
