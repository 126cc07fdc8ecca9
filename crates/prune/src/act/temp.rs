//! Temporary names, the swap that puts something new in a name's place without the name ever missing
//! and without losing what another process may have put there in the meantime, and the removal of a
//! name: delete takes it away while a distinct, verified file with the same content is held open and
//! still has its own.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bc_edit::content;
use bc_edit::entry;
use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;
use bc_edit::swap::{self, NotDone, Swap};
use bc_fs::call::{self, FailedCall};
use bc_fs::dirfd;
use bc_fs::path::sibling;
use bc_walk::Identity;
use rustix::io::Errno;

use crate::check::open_file::{OpenFile, identity_at};
use crate::options::RunMode;
use crate::skip::Skip;

/// Gives temporary names: `.bc-dup.PID.START.N.tmp`. The process's start time distinguishes its
/// names from those of a dead process with the same number.
///
/// Clones give them in turn, and none twice.
#[derive(Clone)]
pub(crate) struct Temps {
    prefix: Arc<str>,
    next: Arc<AtomicU64>,
}

impl Default for Temps {
    fn default() -> Temps {
        Temps {
            prefix: prune_names::own_prefix().into(),
            next: Arc::default(),
        }
    }
}

impl Temps {
    /// A free name for something that may hold the only copy of a content for
    /// a moment; made by `make`, which fails with EEXIST where it is taken.
    pub(crate) fn name(
        &self,
        make: impl FnMut(&CStr) -> call::Result<()>,
    ) -> call::Result<CString> {
        self.make(prune_names::NAME, make)
    }

    /// A free name for a copy that is being written.
    pub(crate) fn part(
        &self,
        make: impl FnMut(&CStr) -> call::Result<()>,
    ) -> call::Result<CString> {
        self.make(prune_names::PART, make)
    }

    /// A free name for the original of a move while its copy is `copy`.
    pub(crate) fn aside(
        &self,
        copy: Mark,
        make: impl FnMut(&CStr) -> call::Result<()>,
    ) -> call::Result<CString> {
        self.make(&format!("{copy}{}", prune_names::NAME), make)
    }

    /// A free name for the copy of `original` that is being made.
    pub(crate) fn part_of(
        &self,
        original: Mark,
        make: impl FnMut(&CStr) -> call::Result<()>,
    ) -> call::Result<CString> {
        self.make(&format!("{original}{}", prune_names::PART), make)
    }

    fn make(
        &self,
        suffix: &str,
        mut make: impl FnMut(&CStr) -> call::Result<()>,
    ) -> call::Result<CString> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = dirfd::name(format!("{}{number}{suffix}", self.prefix).as_bytes())?;
            match make(&name) {
                Ok(()) => return Ok(name),
                Err(FailedCall {
                    errno: Errno::EXIST,
                    ..
                }) => {}
                Err(failed) => return Err(failed),
            }
        }
    }
}

/// Removes a temporary name that still leads to the file that we made; one that stays is met by the
/// next run. False if another file has it.
pub(crate) fn withdraw(dir: &OwnedFd, temp: &CStr, ours: Identity) -> call::Result<bool> {
    match swap::identity(dir.as_fd(), temp.to_bytes())? {
        Some(id) if id == ours => entry::unlink(dir, temp).map(|()| true),
        found => Ok(found.is_none()),
    }
}

/// Gives a file that we made, which has a temporary name, its own one, which is free; where that is
/// refused, the file goes.
pub(crate) fn give_name(
    dir: &OwnedFd,
    temp: &CStr,
    ours: Identity,
    name: &CStr,
) -> Result<(), Skip> {
    let named = entry::rename_new(dir, temp, dir, name);
    if named.is_err() {
        let _ = withdraw(dir, temp, ours);
    }
    Ok(named?)
}

/// [Withdraws](withdraw) a temporary name beside the target. Returns `why`, or the report that it
/// could not be removed.
pub(crate) fn discard(target: &OpenFile, temp: &CStr, ours: Identity, why: Skip) -> Skip {
    match withdraw(&target.dir, temp, ours) {
        Ok(true) => why,
        Ok(false) => displaced(target, temp),
        Err(failed) => left(target, temp, failed.errno),
    }
}

/// Returns the report that a temporary name could not be removed.
pub(crate) fn left(target: &OpenFile, temp: &CStr, errno: Errno) -> Skip {
    Skip::Left {
        path: sibling(&target.path, temp.to_bytes()),
        errno: errno.raw_os_error(),
    }
}

/// Puts `temp`, which leads to `ours`, in the place of `target`'s name, and removes the replaced
/// file if it is still the one that was verified and `proof` holds. Otherwise everything is put
/// back, and the file of ours goes.
pub(crate) fn replace(
    target: &OpenFile,
    temp: &CStr,
    ours: Identity,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    match put_over(target, temp, ours, || Ok(()), proof) {
        Ok(removed) => removed,
        Err(why @ NotDone::Displaced { .. }) => Err(not_done(target, temp, why)),
        Err(why) => Err(discard(target, temp, ours, not_done(target, temp, why))),
    }
}

/// Puts the file that a killed run had set aside as `temp` in the place of the link that has its
/// name, which is `target`, in the same way. That file stays whatever happens.
pub(crate) fn put_in_place(
    target: &OpenFile,
    temp: &CStr,
    original: Identity,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let is_in_place = || match identity_at(&target.dir, &target.name)? == Some(original) {
        true => Ok(content::sync_dir(&target.dir)?),
        false => Err(Skip::Changed),
    };
    match put_over(target, temp, original, is_in_place, proof) {
        Ok(removed) => removed,
        Err(why) => Err(not_done(target, temp, why)),
    }
}

/// Exchanges the two names; once they are, `placed` and `proof` have to hold for the target to go.
fn put_over(
    target: &OpenFile,
    temp: &CStr,
    staged: Identity,
    placed: impl FnOnce() -> Result<(), Skip>,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<Result<(), Skip>, NotDone<Skip>> {
    let swap = Swap {
        dir: target.dir.as_fd(),
        staged: temp.to_bytes(),
        ours: staged,
        name: target.name.to_bytes(),
        replaced: target.stat.id,
    };
    let settle = || {
        placed()?;
        target.check_content_at(temp).and_then(|()| proof())?;
        let removed = entry::unlink(&target.dir, temp);
        Ok(removed.map_err(|failed| left(target, temp, failed.errno)))
    };
    let look = || {
        let proven = target.check_content().and_then(|()| proof());
        proven.and_then(|()| target.check_name()).map(Ok)
    };
    swap.put_over(settle, look)
}

/// Removes the name of a verified file while `proof` holds: moves it to a temporary name, looks at
/// the moved file, and removes that or puts it back.
pub(crate) fn remove(
    target: &OpenFile,
    temps: &Temps,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let temp = temps.name(|temp| take_name(target, temp))?;
    remove_taken(target, &temp, proof)
}

/// Removes a copy that a killed run was making, in the same way: should this run be killed too, it
/// has the name of such a copy still.
pub(crate) fn remove_stage(
    target: &OpenFile,
    temps: &Temps,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let temp = temps.part(|temp| take_name(target, temp))?;
    remove_taken(target, &temp, proof)
}

fn take_name(target: &OpenFile, temp: &CStr) -> call::Result<()> {
    let dir: &OwnedFd = &target.dir;
    entry::rename_new(dir, &target.name, dir, temp)
}

fn remove_taken(
    target: &OpenFile,
    temp: &CStr,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    settle_taken(target, temp, || {
        let proven = target.check_content_at(temp).and_then(|()| proof());
        proven.and_then(|()| Ok(entry::unlink(&target.dir, temp)?))
    })
}

/// Settles the target, which has a temporary name: `settle` removes it, or else it gets its own
/// again.
pub(crate) fn settle_taken(
    target: &OpenFile,
    temp: &CStr,
    settle: impl FnOnce() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let (name, temporary) = (target.name.to_bytes(), temp.to_bytes());
    swap::settle_taken(target.dir.as_fd(), name, temporary, settle)
        .map_err(|why| not_done(target, temp, why))
}

/// Returns the reason why names were not changed.
fn not_done(target: &OpenFile, temp: &CStr, why: NotDone<Skip>) -> Skip {
    match why {
        NotDone::Failed(failed) => failed.into(),
        NotDone::Refused(why) => why,
        NotDone::Displaced {
            failed: Some(FailedCall { op, errno }),
            ..
        } => Skip::NotPutBack {
            path: sibling(&target.path, temp.to_bytes()),
            op,
            errno: errno.raw_os_error(),
        },
        NotDone::Displaced { failed: None, .. } => displaced(target, temp),
    }
}

fn displaced(target: &OpenFile, temp: &CStr) -> Skip {
    Skip::Displaced(sibling(&target.path, temp.to_bytes()))
}

/// Removes the target's name.
pub(crate) fn delete(kept_file: &OpenFile, target: &OpenFile, temps: &Temps) -> Result<(), Skip> {
    if kept_file.stat.id == target.stat.id {
        return Err(Skip::AlreadyLinked);
    }
    remove(target, temps, || kept_file.outlives(target))
}

/// Removes a leftover name that is another name of the kept file. Another run that takes away the
/// kept one at that moment would find this one: it is kept off by a lock.
pub(crate) fn delete_extra_link(kept_file: &OpenFile, target: &OpenFile) -> Result<(), Skip> {
    // Not by the leftover's descriptor: a file that was a target before has its lock already.
    kept_file.lock(RunMode::Execute)?;
    kept_file.check_name().map_err(Skip::of_kept_file)?;
    match identity_at(&target.dir, &target.name)? {
        Some(id) if id == kept_file.stat.id => Ok(entry::unlink(&target.dir, &target.name)?),
        Some(_) => Err(Skip::Changed),
        None => Err(Skip::Gone),
    }
}
