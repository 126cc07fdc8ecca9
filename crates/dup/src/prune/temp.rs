//! Temporary names, and the swap that puts something new in a name's place
//! without the name ever missing and without losing what another process may
//! have put there in the meantime.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bc_walk::Identity;
use rustix::io::Errno;

use super::leftover::{self, Mark};
use super::open_file::{OpenFile, identity_at};
use super::skip::Skip;
use super::sys::{self, FailedCall};
use crate::path::sibling;

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
            prefix: leftover::own_prefix().into(),
            next: Arc::default(),
        }
    }
}

impl Temps {
    /// A free name for something that may hold the only copy of a content for
    /// a moment; made by `make`, which fails with EEXIST where it is taken.
    pub(crate) fn name(&self, make: impl FnMut(&CStr) -> sys::Result<()>) -> sys::Result<CString> {
        self.make(leftover::NAME, make)
    }

    /// A free name for a copy that is being written.
    pub(crate) fn part(&self, make: impl FnMut(&CStr) -> sys::Result<()>) -> sys::Result<CString> {
        self.make(leftover::PART, make)
    }

    /// A free name for the original of a move while its copy is `copy`.
    pub(crate) fn aside(
        &self,
        copy: Mark,
        make: impl FnMut(&CStr) -> sys::Result<()>,
    ) -> sys::Result<CString> {
        self.make(&format!("{copy}{}", leftover::NAME), make)
    }

    /// A free name for the copy of `original` that is being made.
    pub(crate) fn part_of(
        &self,
        original: Mark,
        make: impl FnMut(&CStr) -> sys::Result<()>,
    ) -> sys::Result<CString> {
        self.make(&format!("{original}{}", leftover::PART), make)
    }

    /// A free name for an empty file that shows where its directory is seen. No name is given
    /// twice, so that no process has looked for it before and been answered that it does not exist.
    pub(crate) fn probe(&self, make: impl FnMut(&CStr) -> sys::Result<()>) -> sys::Result<CString> {
        self.make(leftover::PROBE, make)
    }

    fn make(
        &self,
        suffix: &str,
        mut make: impl FnMut(&CStr) -> sys::Result<()>,
    ) -> sys::Result<CString> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = sys::name(format!("{}{number}{suffix}", self.prefix).as_bytes())?;
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

/// Removes a temporary name, provided that it still leads to the file that we made. Returns `why`,
/// or the report that it could not be removed.
pub(crate) fn discard(target: &OpenFile, temp: &CStr, ours: Identity, why: Skip) -> Skip {
    match identity_at(&target.dir, temp) {
        Ok(Some(id)) if id == ours => {}
        Ok(None) => return why,
        Ok(Some(_)) => return Skip::Displaced(sibling(&target.path, temp.to_bytes())),
        Err(_) => return left(target, temp, Errno::IO),
    }
    match sys::unlink(&target.dir, temp) {
        Ok(()) => why,
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
/// back.
///
/// The two names are swapped first and looked at afterwards, because a look
/// beforehand proves nothing about the moment of the rename.
pub(crate) fn replace(
    target: &OpenFile,
    temp: &CStr,
    ours: Identity,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    match sys::exchange(&target.dir, temp, &target.name) {
        Ok(()) => {}
        Err(FailedCall {
            errno: Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP,
            ..
        }) => return replace_by_rename(target, temp, ours, proof),
        Err(failed) => return Err(discard(target, temp, ours, failed.into())),
    }
    let proven = target.check_content_at(temp).and_then(|()| proof());
    match proven {
        Ok(()) => sys::unlink(&target.dir, temp).map_err(|failed| left(target, temp, failed.errno)),
        Err(why) => Err(match sys::exchange(&target.dir, temp, &target.name) {
            Ok(()) => discard(target, temp, ours, why),
            Err(_) => Skip::Displaced(sibling(&target.path, temp.to_bytes())),
        }),
    }
}

/// For file systems that cannot swap names: a last look, then the rename.
/// Between the two another process's change of the name could be lost.
fn replace_by_rename(
    target: &OpenFile,
    temp: &CStr,
    ours: Identity,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let proven = target
        .check_content()
        .and_then(|()| proof())
        .and_then(|()| target.check_name())
        .and_then(|()| Ok(sys::rename(&target.dir, temp, &target.name)?));
    proven.map_err(|why| discard(target, temp, ours, why))
}

/// Removes the name of a verified file while `proof` holds: moves it to a temporary name, looks at
/// the moved file, and removes that or puts it back.
pub(crate) fn remove(
    target: &OpenFile,
    temps: &Temps,
    proof: impl Fn() -> Result<(), Skip>,
) -> Result<(), Skip> {
    let dir: &OwnedFd = &target.dir;
    let temp = temps.name(|temp| sys::rename_new(dir, &target.name, dir, temp))?;
    match target.check_content_at(&temp).and_then(|()| proof()) {
        Ok(()) => {
            let why = match sys::unlink(dir, &temp) {
                Ok(()) => return Ok(()),
                Err(failed) => Skip::from(failed),
            };
            Err(restore(target, &temp, why))
        }
        Err(why) => Err(restore(target, &temp, why)),
    }
}

pub(crate) fn restore(target: &OpenFile, temp: &CStr, why: Skip) -> Skip {
    match sys::rename_new(&target.dir, temp, &target.dir, &target.name) {
        Ok(()) => why,
        Err(_) => Skip::Displaced(sibling(&target.path, temp.to_bytes())),
    }
}
