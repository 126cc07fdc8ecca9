//! Directories that are listed and removed, and links that are held themselves.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bc_walk::FileStat;
use rustix::fs::{self, AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{Result, call, stat, traits};

/// Removes an empty directory.
pub(crate) fn remove_dir(dir: impl AsFd, name: &CStr) -> Result<()> {
    call("rmdir", || fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))
}

/// Opens a directory to be listed: no link, and without a change of its access time where that can be.
pub(crate) fn open_listed(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    call("open directory", || {
        match fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
            // O_NOATIME is for the owner only.
            Err(Errno::PERM) => fs::openat(&dir, name, flags, Mode::empty()),
            opened => opened,
        }
    })
}

/// Opens the directory once more, to be listed from its beginning.
pub(crate) fn relist(dir: impl AsFd) -> Result<OwnedFd> {
    open_listed(dir, c".")
}

/// `STATX_SUBVOL` of `linux/stat.h`, since Linux 6.10.
const SUBVOLUME: StatxFlags = StatxFlags::from_bits_retain(0x8000);

/// Inode number of an empty directory that replaces in a snapshot a subvolume of the original,
/// `BTRFS_EMPTY_SUBVOL_DIR_OBJECTID` of `linux/btrfs_tree.h`.
const PLACEHOLDER: u64 = 2;

/// True for a directory that begins a part of its file system which has numbers of its own, and for
/// one that stands for such a part: subvolumes of Btrfs and bcachefs. `above` is the directory that it
/// is in.
pub(crate) fn is_subvolume(dir: impl AsFd, above: impl AsFd) -> Result<bool> {
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
    let is_kind = |kinds: &[&str]| Ok(kinds.contains(&traits(&dir)?.name));
    Ok(part != part_above && is_kind(&[BTRFS, BCACHEFS])?
        || here.ino == PLACEHOLDER && is_kind(&[BTRFS])?)
}

/// True for the recorded number of a directory that [was one](is_subvolume), if `dir` is on the file
/// system that it was on. The first number of a subvolume is `BTRFS_FIRST_FREE_OBJECTID`.
pub(crate) fn was_subvolume(ino: u64, dir: impl AsFd) -> bool {
    matches!(ino, PLACEHOLDER | 256) && traits(dir).is_ok_and(|traits| traits.name == BTRFS)
}

/// Name in the table of file systems.
pub(crate) const BTRFS: &str = "Btrfs";
const BCACHEFS: &str = "bcachefs";

/// Opens a symbolic link itself.
pub(crate) fn open_link(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    call("open", || fs::openat(&dir, name, flags, Mode::empty()))
}

/// The text of a symbolic link that was opened itself.
pub(crate) fn link_text(link: impl AsFd) -> Result<Vec<u8>> {
    let text = call("readlink", || fs::readlinkat(&link, c"", Vec::new()))?;
    Ok(text.into_bytes())
}
