//! Operations that the kernel refuses to every user, or to this process: found before a file is
//! read, in a dry run as in a real one.

use bc_fs::dirfd;
use rustix::fs::{OFlags, StatxAttributes, fcntl_getfl};

use crate::check::caller::{Caller, FIXED, FileOwner, STUCK, denied};
use crate::check::open_file::OpenFile;
use crate::skip::Skip;
use crate::step::StepKind;

/// Bits of a mode, as in inode(7).
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o0010;

const MARKED: &str = "it is append-only or immutable (chattr)";

/// Refuses steps that the kernel would refuse.
pub(crate) fn check(
    caller: &Caller,
    kept_file: &OpenFile,
    target: &OpenFile,
    kind: &StepKind,
) -> Result<(), Skip> {
    let immutable = StatxAttributes::IMMUTABLE;
    if *kind == StepKind::Reflink {
        return match target.marks.contains(immutable) {
            true => Err(denied("dedupe", MARKED)),
            false => Ok(()),
        };
    }
    let fixed = immutable | StatxAttributes::APPEND;
    let dir = target.dir.facts()?;
    if dir.marks.intersects(fixed) {
        return Err(denied("rename", FIXED));
    }
    if target.marks.intersects(fixed) {
        return Err(denied("rename", MARKED));
    }
    if !caller.may_remove(&dir.stat, owner(target)) {
        return Err(denied("rename", STUCK));
    }
    if *kind != StepKind::Hardlink {
        return Ok(());
    }
    if kept_file.marks.intersects(fixed) {
        let why = "the kept file is append-only or immutable (chattr)";
        return Err(denied("link", why));
    }
    // The temporary name is one of the kept file.
    if !caller.may_remove(&dir.stat, owner(kept_file)) {
        return Err(denied("rename", STUCK));
    }
    let why = "the kept file is another user's (fs.protected_hardlinks)";
    match may_link(caller, kept_file) {
        true => Ok(()),
        false => Err(denied("link", why)),
    }
}

/// The owner and the group of a file.
pub(crate) fn owner(file: &OpenFile) -> FileOwner {
    FileOwner {
        uid: file.stat.uid,
        gid: file.stat.gid,
    }
}

/// Returns true if the kernel would give the file another name for this process.
pub(crate) fn is_linkable(caller: &Caller, file: &OpenFile) -> bool {
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    !file.marks.intersects(fixed) && may_link(caller, file)
}

/// Returns true if the file may be given another name: with `fs.protected_hardlinks` another user's
/// only if it may be read and written to and runs with no other user's rights (`may_linkat` in the
/// kernel's `fs/namei.c`).
fn may_link(caller: &Caller, file: &OpenFile) -> bool {
    if caller.owns(file.stat.uid) || !caller.is_guarded() || opened_as_owner(file) {
        return true;
    }
    let mode = file.stat.mode;
    let in_group = SET_GID | GROUP_EXECUTES;
    mode & SET_UID == 0
        && mode & in_group != in_group
        && dirfd::may_read_and_write(&file.dir, &file.name).is_ok()
}

/// True if the kernel took the caller for the file's owner when it was opened: to others it refuses
/// `O_NOATIME`.
fn opened_as_owner(file: &OpenFile) -> bool {
    fcntl_getfl(&file.file).is_ok_and(|flags| flags.contains(OFlags::NOATIME))
}
