//! Opening directories relative to a descriptor, at any depth, without following links.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use bc_fs::shortage::Shortage;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statat, statx,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{FileStat, Metadata, Symlinks};

/// Longest path that the kernel takes in one call, without the closing NUL (`PATH_MAX` in
/// `linux/limits.h` is 4096).
const MAX_PATH: usize = 4095;

/// Flags for a directory whose entries will be read.
pub(crate) const READ_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Flags for a directory that paths will be relative to.
pub(crate) const PATH_DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Permission for a path to lead through a mount point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MountCrossing {
    Cross,
    /// Answer with `EXDEV`. Only if [`Opener::notices_mounts`].
    Refuse,
}

/// Opens directories below a directory; remembers whether `openat2` works here.
#[derive(Debug)]
pub(crate) struct Opener {
    /// True unless `openat2` is missing (before Linux 5.6) or forbidden by a seccomp filter.
    openat2: AtomicBool,
    pub(crate) shortage: Shortage,
}

impl Opener {
    /// Makes an opener.
    pub(crate) fn new() -> Opener {
        Opener {
            openat2: AtomicBool::new(true),
            shortage: Shortage::new(),
        }
    }

    /// Makes an opener as on a kernel that has no `openat2`.
    #[cfg(test)]
    pub(crate) fn without_openat2() -> Opener {
        Opener {
            openat2: AtomicBool::new(false),
            ..Opener::new()
        }
    }

    /// True if [`Mounts::Refuse`] works. If not, the caller has to compare devices.
    pub(crate) fn notices_mounts(&self) -> bool {
        self.openat2.load(Ordering::Relaxed)
    }

    /// Opens the directory `path` (components separated by single slashes, no `..`; empty:
    /// the base itself) below `base`. With [`Symlinks::Skip`], no component may be a link.
    pub(crate) fn open_below(
        &self,
        base: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        symlinks: Symlinks,
        mounts: MountCrossing,
    ) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return retry(|| openat(base, c".", flags, Mode::empty()));
        }
        in_chunks(base, path, flags, |base, chunk, flags| {
            if self.openat2.load(Ordering::Relaxed) {
                let resolve = resolve_flags(symlinks, mounts);
                match retry(|| openat2(base, chunk, flags, Mode::empty(), resolve)) {
                    Err(Errno::NOSYS) => self.openat2.store(false, Ordering::Relaxed),
                    // From a seccomp filter, or from the file system and meant so.
                    Err(Errno::PERM) => {
                        let opened = open_stepwise(base, chunk, flags, symlinks);
                        if opened.is_ok() {
                            self.openat2.store(false, Ordering::Relaxed);
                        }
                        return opened;
                    }
                    result => return result,
                }
            }
            open_stepwise(base, chunk, flags, symlinks)
        })
    }
}

/// Opens a directory the way `open` does, links followed, but at any length.
pub(crate) fn open_following(path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    open_following_from(CWD, path, flags)
}

/// Opens a path that begins at a directory, links followed.
pub(crate) fn open_following_from(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    in_chunks(base, path, flags, |base, chunk, flags| {
        retry(|| openat(base, chunk, flags, Mode::empty()))
    })
}

/// Calls `open` once for a path that fits, else for one part after the other.
fn in_chunks(
    base: BorrowedFd<'_>,
    mut path: &[u8],
    flags: OFlags,
    open: impl Fn(BorrowedFd<'_>, &[u8], OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let mut reached: Option<OwnedFd> = None;
    while path.len() > MAX_PATH {
        // A single component of that length exists nowhere.
        let cut = path[..=MAX_PATH]
            .iter()
            .rposition(|&byte| byte == b'/')
            .filter(|&cut| cut > 0)
            .ok_or(Errno::NAMETOOLONG)?;
        let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
        reached = Some(open(from, &path[..cut], PATH_DIR)?);
        let rest = &path[cut..];
        let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
        path = &rest[slashes..];
    }
    let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
    let path = if path.is_empty() { b"." } else { path };
    open(from, path, flags)
}

/// Opens one component after the other, so that a link in the middle is noticed.
fn open_stepwise(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    if symlinks == Symlinks::Follow {
        return retry(|| openat(base, path, flags, Mode::empty()));
    }
    let mut reached: Option<OwnedFd> = None;
    let mut components = path.split(|&byte| byte == b'/').peekable();
    while let Some(component) = components.next() {
        let flags = match components.peek() {
            Some(_) => PATH_DIR,
            None => flags,
        };
        let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
        reached = Some(retry(|| {
            openat(from, component, flags | OFlags::NOFOLLOW, Mode::empty())
        })?);
    }
    reached.ok_or(Errno::NOENT)
}

fn resolve_flags(symlinks: Symlinks, mounts: MountCrossing) -> ResolveFlags {
    let mut resolve = ResolveFlags::NO_MAGICLINKS;
    if symlinks == Symlinks::Skip {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    if mounts == MountCrossing::Refuse {
        resolve |= ResolveFlags::NO_XDEV;
    }
    resolve
}

/// Stats a name in a directory, with only the fields that the level needs; type, size and
/// identity always.
pub(crate) fn stat_at(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
    level: Metadata,
) -> Result<FileStat, Errno> {
    let mut flags = AtFlags::NO_AUTOMOUNT;
    if symlinks == Symlinks::Skip {
        flags |= AtFlags::SYMLINK_NOFOLLOW;
    }
    let mask = match level {
        Metadata::None => StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::INO,
        Metadata::Basic => {
            StatxFlags::TYPE
                | StatxFlags::SIZE
                | StatxFlags::INO
                | StatxFlags::MTIME
                | StatxFlags::CTIME
                | StatxFlags::NLINK
        }
        Metadata::Full => StatxFlags::BASIC_STATS
            .difference(StatxFlags::ATIME)
            .difference(StatxFlags::BLOCKS),
    };
    match retry(|| statx(dir, name, flags, mask)) {
        Ok(stat) => Ok(FileStat::from(&stat)),
        // Linux before 4.11, and some sandboxes.
        Err(Errno::NOSYS) => retry(|| statat(dir, name, flags)).map(|stat| FileStat::from(&stat)),
        Err(errno) => Err(errno),
    }
}

/// Repeats a call that was interrupted: opening on a network file system may be interrupted by a
/// signal.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Raises the number of files that this process may open to the hard limit, and returns the limit
/// in force now; `u64::MAX` for no limit.
///
/// A program calls this once at its start: libraries change no limits by themselves.
pub fn raise_nofile_limit() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(_) => now.current,
    };
    limit.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn everywhere(check: impl Fn(&Opener, BorrowedFd<'_>)) {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("a/b/c")).unwrap();
        fs::write(tree.path().join("a/file"), "").unwrap();
        symlink("a", tree.path().join("link")).unwrap();
        symlink("b", tree.path().join("a/inner")).unwrap();
        let base = fs::File::open(tree.path()).unwrap();
        for opener in [Opener::new(), Opener::without_openat2()] {
            check(&opener, base.as_fd());
        }
    }

    #[test]
    fn links_are_refused_everywhere_in_the_path() {
        everywhere(|opener, base| {
            let open = |path: &[u8], symlinks| {
                opener.open_below(base, path, READ_DIR, symlinks, MountCrossing::Cross)
            };
            for path in [&b""[..], b"a", b"a/b", b"a/b/c"] {
                open(path, Symlinks::Skip).unwrap();
                open(path, Symlinks::Follow).unwrap();
            }
            for path in [&b"link"[..], b"link/b", b"a/inner", b"a/inner/c"] {
                let errno = open(path, Symlinks::Skip).unwrap_err();
                assert!(matches!(errno, Errno::LOOP | Errno::NOTDIR), "{errno}");
                open(path, Symlinks::Follow).unwrap();
            }
            assert_eq!(open(b"a/file", Symlinks::Skip).unwrap_err(), Errno::NOTDIR);
            assert_eq!(open(b"a/no/x", Symlinks::Skip).unwrap_err(), Errno::NOENT);
            let long = [b'x'; 5000];
            assert_eq!(open(&long, Symlinks::Skip).unwrap_err(), Errno::NAMETOOLONG);
        });
    }

    #[test]
    fn missing_openat2_is_remembered() {
        let opener = Opener::without_openat2();
        assert!(!opener.notices_mounts());
        assert!(Opener::new().notices_mounts());
    }

    #[test]
    fn limit_is_raised_to_the_hard_one() {
        let limit = raise_nofile_limit();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current.unwrap_or(u64::MAX), limit);
        assert_eq!(now.current, now.maximum);
    }
}
