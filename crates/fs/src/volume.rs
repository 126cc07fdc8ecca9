//! Parts of a file system that have numbers of their own.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, AtFlags, StatxFlags};

use crate::call::{Result, call};
use crate::meta::{FileStat, stat};
use crate::mount::basic_traits;

/// `STATX_SUBVOL` of `linux/stat.h`, since Linux 6.10.
const SUBVOLUME: StatxFlags = StatxFlags::from_bits_retain(0x8000);

/// Inode number of an empty directory that replaces in a snapshot a subvolume of the original,
/// `BTRFS_EMPTY_SUBVOL_DIR_OBJECTID` of `linux/btrfs_tree.h`.
const PLACEHOLDER: u64 = 2;

/// True for a directory that begins a part of its file system which has numbers of its own, and for
/// one that stands for such a part: subvolumes of Btrfs and bcachefs. `above` is the directory that it
/// is in.
pub fn is_subvolume(dir: impl AsFd, above: impl AsFd) -> Result<bool> {
    let wanted = StatxFlags::INO | SUBVOLUME;
    let look = |at: BorrowedFd<'_>| {
        let found = call("stat", || fs::statx(at, c"", AtFlags::EMPTY_PATH, wanted));
        match found {
            Ok(found) => {
                let reported = StatxFlags::from_bits_retain(found.stx_mask).contains(SUBVOLUME);
                let part = reported.then_some(found.stx_subvol);
                Ok((FileStat::from(&found).id, part))
            }
            // Some filters do not know the call.
            Err(_) => Ok((stat(at)?.id, None)),
        }
    };
    let ((here, part), (there, part_above)) = (look(dir.as_fd())?, look(above.as_fd())?);
    if here.dev != there.dev {
        return Ok(true);
    }
    // On an overlay the numbers are those of the layers.
    let is_kind = |kinds: &[&str]| Ok(kinds.contains(&basic_traits(&dir)?.name));
    Ok(part != part_above && is_kind(&[BTRFS, BCACHEFS])?
        || here.ino == PLACEHOLDER && is_kind(&[BTRFS])?)
}

/// True for the recorded number of a directory that [was one](is_subvolume), if `dir` is on the file
/// system that it was on. The first number of a subvolume is `BTRFS_FIRST_FREE_OBJECTID`.
pub fn was_subvolume(ino: u64, dir: impl AsFd) -> bool {
    matches!(ino, PLACEHOLDER | 256) && basic_traits(dir).is_ok_and(|traits| traits.name == BTRFS)
}

/// Name in the table of file systems.
pub const BTRFS: &str = "Btrfs";
const BCACHEFS: &str = "bcachefs";
