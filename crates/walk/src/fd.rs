//! Opening the directories of a walk, and looking at the names in them.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use bc_fs::dirfd::DirOpener;
use bc_fs::shortage::Shortage;
use rustix::fs::{AtFlags, OFlags, ResolveFlags, StatxFlags, statat, statx};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{FileStat, Metadata, Symlinks};

/// Flags for a directory whose entries will be read.
pub(crate) const READ_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Permission for a path to lead through a mount point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MountCrossing {
    Cross,
    /// Answer with `EXDEV`. Only if [`Opener::notices_mounts`].
    Refuse,
}

/// Opens directories below directories of one walk; shared by its workers and its listing.
#[derive(Debug)]
pub(crate) struct Opener {
    dirs: DirOpener,
    pub(crate) shortage: Shortage,
}

impl Opener {
    /// Makes an opener.
    pub(crate) fn new() -> Opener {
        Opener {
            dirs: DirOpener::new(),
            shortage: Shortage::new(),
        }
    }

    /// Makes an opener as on a kernel that has no `openat2`.
    #[cfg(test)]
    pub(crate) fn without_openat2() -> Opener {
        Opener {
            dirs: DirOpener::without_openat2(),
            ..Opener::new()
        }
    }

    /// True if [`Mounts::Refuse`] works. If not, the caller has to compare devices.
    pub(crate) fn notices_mounts(&self) -> bool {
        self.dirs.notices_mounts()
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
        let resolve = resolve_flags(symlinks, mounts);
        self.dirs.open_below(base, path, flags, resolve)
    }
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
    match retry_on_intr(|| statx(dir, name, flags, mask)) {
        Ok(stat) => Ok(FileStat::from(&stat)),
        // Linux before 4.11, and some sandboxes.
        Err(Errno::NOSYS) => {
            retry_on_intr(|| statat(dir, name, flags)).map(|stat| FileStat::from(&stat))
        }
        Err(errno) => Err(errno),
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
    use std::os::fd::AsFd as _;
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
