//! Directories below the destination, opened so that nothing leads out of it: no link is followed
//! on the way, whoever puts one there meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) use bc_fs::metadata::own_path;
use bc_walk::{FileStat, Identity};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};

/// As a place to start from, never to read.
pub(crate) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Bytes of a path that one call may be given: `PATH_MAX` is 4,096.
const PIECE: usize = 3800;

/// A directory of the destination.
#[derive(Debug)]
pub(crate) struct DestDir {
    /// Open as a place.
    pub(crate) fd: OwnedFd,
    /// Which it is.
    pub(crate) id: Identity,
    /// Whether new files in it inherit an access control list.
    pub(crate) gives_acl: bool,
}

impl DestDir {
    /// The directory at `path`, relative to `top`; `top` itself for an empty path.
    pub(crate) fn open(top: BorrowedFd<'_>, path: &[u8]) -> Result<DestDir, Errno> {
        DestDir::of(open(top, path)?)
    }

    pub(crate) fn of(fd: OwnedFd) -> Result<DestDir, Errno> {
        let id = FileStat::from(&retry_on_intr(|| rustix::fs::fstat(&fd))?).id;
        let own = own_path(&fd);
        let mut list = [0; 4];
        // ERANGE, too, says that there is one; without /proc there may be.
        let found = rustix::fs::getxattr(own, c"system.posix_acl_default", &mut list[..]);
        let gives_acl = !matches!(found, Err(Errno::NODATA | Errno::NOTSUP));
        Ok(DestDir { fd, id, gives_acl })
    }

    /// Permission bits with which a directory is made here that is to have those of `mode` when it
    /// is filled. Until then nobody else gets in by a list that it inherits and is not to have: its
    /// mask is what these say of the group.
    pub(crate) fn mode_of_new_dir(&self, mode: u32) -> Mode {
        let bits = match self.gives_acl {
            true => 0o700,
            false => mode & 0o777 | 0o700,
        };
        Mode::from_raw_mode(bits as _)
    }
}

/// Opens the directory at `path` below `top` as a place.
pub(crate) fn open(top: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    if path.is_empty() {
        return retry_on_intr(|| rustix::fs::openat(top, c".", PLACE, Mode::empty()));
    }
    let mut from: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > PIECE {
        let slash = rest[..PIECE].iter().rposition(|byte| *byte == b'/');
        let at = slash.ok_or(Errno::NAMETOOLONG)?;
        let next = step(from.as_ref().map_or(top, |fd| fd.as_fd()), &rest[..at])?;
        from = Some(next);
        rest = &rest[at + 1..];
    }
    step(from.as_ref().map_or(top, |fd| fd.as_fd()), rest)
}

fn step(from: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    loop {
        match rustix::fs::openat2(from, path, PLACE, Mode::empty(), resolve) {
            // EAGAIN: something was renamed meanwhile, and the kernel cannot tell what that means.
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Before Linux 5.6, and where filters refuse the call.
            Err(Errno::NOSYS | Errno::PERM) => return by_components(from, path),
            opened => return opened,
        }
    }
}

fn by_components(from: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut at: Option<OwnedFd> = None;
    for name in path.split(|byte| *byte == b'/') {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let here = at.as_ref().map_or(from, |fd| fd.as_fd());
        let flags = PLACE | OFlags::NOFOLLOW;
        let next = retry_on_intr(|| rustix::fs::openat(here, name, flags, Mode::empty()))?;
        at = Some(next);
    }
    at.ok_or(Errno::NOENT)
}

/// Opens what the user named as a place to start from: links are followed.
pub(crate) fn open_named(path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    retry_on_intr(|| rustix::fs::openat(CWD, path, PLACE, Mode::empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_either_way() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        let top = open_named(dir.path().as_os_str().as_encoded_bytes()).unwrap();
        for walk in [step, by_components] {
            assert!(walk(top.as_fd(), b"a/b").is_ok());
            for path in [&b"link"[..], b"link/b", b"a/../a", b"..", b"none"] {
                // The kernel allows what comes back below; nobody asks for it here.
                let inside = path == b"a/../a";
                assert!(inside || walk(top.as_fd(), path).is_err(), "{path:?}");
            }
        }
    }

    #[test]
    fn any_depth() {
        let dir = tempfile::tempdir().unwrap();
        let top = open_named(dir.path().as_os_str().as_encoded_bytes()).unwrap();
        let name = "d".repeat(200);
        let mut path = Vec::new();
        let mut at = top.try_clone().unwrap();
        for _ in 0..45 {
            rustix::fs::mkdirat(&at, &name, Mode::from_raw_mode(0o700)).unwrap();
            at = open(at.as_fd(), name.as_bytes()).unwrap();
            path.extend_from_slice(name.as_bytes());
            path.push(b'/');
        }
        path.pop();
        let found = DestDir::open(top.as_fd(), &path).unwrap();
        let id = FileStat::from(&rustix::fs::fstat(&at).unwrap()).id;
        assert_eq!(found.id, id);
    }
}
