//! Directories that are listed and removed, and links that are held themselves.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{Result, call};

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

/// The same directory once more, to be listed from its beginning.
pub(crate) fn relist(dir: impl AsFd) -> Result<OwnedFd> {
    open_listed(dir, c".")
}

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
