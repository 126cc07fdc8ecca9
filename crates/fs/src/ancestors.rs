//! The way from a directory up to the root, and down a path as far as that exists.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::call::FailedCall;
use crate::dirfd;
use crate::meta::{self, Identity};

/// Number of ancestors that no directory has which was opened by a path of a system call or two; a
/// way up that takes more goes in circles.
const DEEPEST: usize = 1 << 20;

/// A directory that is its own parent this many times is the root. Once is not enough: one that
/// is mounted on a directory directly within itself looks the same.
const ROOT: usize = 64;

/// Shows `found` the identity of an open directory and of each one above it, each open, until it
/// says that this will do, which is then the result.
///
/// # Errors
/// If the system refuses a look, or there is no end of directories.
pub fn visit_ancestors(
    dir: &OwnedFd,
    mut found: impl FnMut(Identity, &OwnedFd) -> bool,
) -> Result<bool, FailedCall> {
    let identity = |dir: &dyn AsFd| meta::stat(dir.as_fd()).map(|stat| stat.id);
    let top = identity(&dirfd::open_root(b"/")?)?;
    let mut id = identity(&dir)?;
    if found(id, dir) {
        return Ok(true);
    }
    let mut at = dirfd::open_parent(dir)?;
    let mut same = 0;
    for _ in 0..DEEPEST {
        let above = identity(&at)?;
        if found(above, &at) {
            return Ok(true);
        }
        same = if above == id { same + 1 } else { 0 };
        if same > 0 && id == top || same == ROOT {
            return Ok(false);
        }
        id = above;
        at = dirfd::open_parent(&at)?;
    }
    Err(FailedCall {
        op: "open directory",
        errno: Errno::LOOP,
    })
}

/// Opens as much of a path as there is, and says how many names are missing behind. They will be
/// made as plain directories, so that a `..` among them takes back the name before.
///
/// # Errors
/// If a directory on the way is there and cannot be opened.
pub fn deepest_existing(path: &[u8]) -> Result<(OwnedFd, usize), FailedCall> {
    let start: &[u8] = if path.first() == Some(&b'/') {
        b"/"
    } else {
        b"."
    };
    let mut at = dirfd::open_root(start)?;
    let mut missing = 0_usize;
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if missing > 0 => missing -= 1,
            b".." => at = dirfd::open_parent(&at)?,
            _ if missing > 0 => missing += 1,
            _ => match dirfd::open_dir_at(&at, part) {
                Ok(opened) => at = opened,
                Err(failed) if failed.errno == Errno::NOENT => missing = 1,
                Err(failed) => return Err(failed),
            },
        }
    }
    Ok((at, missing))
}

/// True if a link on the way to a directory leads to nothing: nothing is made behind it.
pub fn is_lost(dir: &[u8]) -> bool {
    let ends = (1..=dir.len()).filter(|end| dir.get(*end).is_none_or(|byte| *byte == b'/'));
    let mut prefixes = ends.map(|end| &dir[..end]);
    prefixes.any(|path| rustix::fs::lstat(path).is_ok() && rustix::fs::stat(path).is_err())
}
