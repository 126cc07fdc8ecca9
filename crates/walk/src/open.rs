//! Opening the directories of a walk, and looking at the names in them.
//!
//! A directory is opened from the nearest one above it that is still open. [`AncestorFds`] holds
//! those, which for a walk from the top down are the beginnings of one path: no key is made or
//! compared for each, as [`OpenDirs`](bc_fs::dirfd::OpenDirs) does for directories in any
//! order. Where descriptors are short all workers let go of theirs ([`KeptDirs`]).

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bc_fs::dirfd::DirOpener;
use bc_fs::shortage::Shortage;
use bc_pool::Cancel;
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

    /// True if [`MountCrossing::Refuse`] works. If not, the caller has to compare devices.
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
///
/// That is for file systems that have to ask for a field. On ext4 and tmpfs a warm walk with statx of
/// 20,693 and of 60,000 files takes as long whatever the mask is: 0.96 to 1.05 of the time for type,
/// size and inode alone, and neither `AT_STATX_DONT_SYNC` (0.96 to 1.03) nor the order of inode numbers
/// (0.97 to 1.02) makes a difference. `io_uring` hands each statx to a thread of the kernel: 2.8 to 4.7
/// times as long, 128 at a time.
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

/// Descriptors of the directory opened last and of its ancestors: the next one is usually below one
/// of them, so that opening it takes a step or two and not the whole path.
///
/// Some of the directories on the way are kept as well if it takes many steps. A walk that returns
/// from the depth finds the nearest of them close by, so that `n` directories that are each other's
/// parents are opened with some `n · log n` steps in either direction.
pub(crate) struct AncestorFds<F> {
    path: Vec<u8>,
    /// The directories' paths are beginnings of it, of these lengths.
    dirs: Vec<(usize, F)>,
}

/// Number of descriptors that are kept: a few levels up, the next directory is usually somewhere
/// else.
const KEPT: usize = 8;

/// Names that are looked up in one call without keeping anything on the way. No tree that people
/// make is as deep.
pub(crate) const STRIDE: usize = 32;

/// Purpose of opening a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// A step towards another directory.
    Way,
    /// The directory that is wanted.
    End,
}

impl<F> Default for AncestorFds<F> {
    fn default() -> AncestorFds<F> {
        AncestorFds {
            path: Vec::new(),
            dirs: Vec::new(),
        }
    }
}

impl<F: AsFd + Clone + From<OwnedFd>> AncestorFds<F> {
    /// Lets go of all descriptors; returns whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let any = !self.dirs.is_empty();
        self.dirs.clear();
        any
    }

    /// Opens the directory `path`. `open` is given the directory to start from, if it is not the
    /// one that all paths begin at, and the path from there, which is empty where that is the end
    /// already. Only the directories opened on the [`Way`](Reach::Way) are kept: the end is the
    /// caller's to [`push`](AncestorFds::push).
    pub(crate) fn open(
        &mut self,
        path: &[u8],
        mut open: impl FnMut(Option<&F>, &[u8], Reach) -> Result<OwnedFd, Errno>,
    ) -> Result<F, Errno> {
        let (mut from, mut start) = match self.nearest(path) {
            Some((fd, covered)) => (Some(fd), covered),
            None => (None, 0),
        };
        while let Some(len) = halfway(&path[start..]) {
            let way = start..start + len;
            let fd = F::from(open(from.as_ref(), &path[way.clone()], Reach::Way)?);
            self.push(&path[..way.end], &fd);
            start = way.end + slashes(&path[way.end..]);
            from = Some(fd);
        }
        open(from.as_ref(), &path[start..], Reach::End).map(F::from)
    }

    /// Returns the nearest kept directory on the way to `path`, or that one itself, and the length
    /// of the path that it covers with the slashes that follow. Directories that are not on the way
    /// are dropped.
    fn nearest(&mut self, path: &[u8]) -> Option<(F, usize)> {
        while let Some((len, fd)) = self.dirs.last() {
            let above = &self.path[..*len];
            if path.starts_with(above) {
                let after = slashes(&path[*len..]);
                if after > 0 || path.len() == *len || above.ends_with(b"/") {
                    return Some((fd.clone(), len + after));
                }
            }
            self.dirs.pop();
        }
        None
    }

    /// Keeps the directory that was opened last.
    pub(crate) fn push(&mut self, path: &[u8], fd: &F) {
        if self.dirs.len() == KEPT {
            self.dirs.remove(0);
        }
        self.path.clear();
        self.path.extend_from_slice(path);
        self.dirs.push((path.len(), fd.clone()));
    }
}

/// True if a path has more names than are looked up at once.
pub(crate) fn is_long(path: &[u8]) -> bool {
    halfway(path).is_some()
}

/// Returns the length of the first half of the names of a path that has more than [`STRIDE`].
fn halfway(path: &[u8]) -> Option<usize> {
    // Each name has a slash.
    if path.len() < 2 * STRIDE {
        return None;
    }
    let slashes = || (0..path.len()).filter(|&at| path[at] == b'/');
    let count = slashes().count();
    (count >= STRIDE)
        .then(|| slashes().nth(count / 2))
        .flatten()
}

fn slashes(path: &[u8]) -> usize {
    path.iter().take_while(|&&byte| byte == b'/').count()
}

/// Ancestors that several workers may have open.
pub(crate) type Ancestors = AncestorFds<Arc<OwnedFd>>;

/// Directories kept open by all workers of a walk. A worker that waits for work keeps its
/// directories, and those of a few workers are more than a small limit on descriptors allows.
#[derive(Debug, Default)]
pub(crate) struct KeptDirs {
    workers: Mutex<Vec<Weak<Slot>>>,
}

/// Directories kept by one worker, except while it opens a directory. On a cache line of its own,
/// as every directory is two visits.
#[derive(Default)]
#[repr(align(64))]
struct Slot(Mutex<Ancestors>);

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Slot {
    fn take(&self) -> Ancestors {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeptDirs {
    /// Returns a slot for the directories that a worker keeps, as long as it lives.
    pub(crate) fn join(&self) -> OwnDirs<'_> {
        let slot = Arc::new(Slot::default());
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(&slot));
        OwnDirs { all: self, slot }
    }

    fn clear(&self) {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.iter().filter_map(Weak::upgrade) {
            // Closed after the lock.
            drop(worker.take());
        }
    }
}

/// Directories kept open by one worker: its part of [`KeptDirs`].
pub(crate) struct OwnDirs<'k> {
    all: &'k KeptDirs,
    slot: Arc<Slot>,
}

impl OwnDirs<'_> {
    /// Opens a directory by `open`, which is given the kept ones. Where descriptors are short, all
    /// workers let go of theirs, and those that others use right now are waited for until `cancel`.
    pub(crate) fn open<T>(
        &self,
        shortage: &Shortage,
        cancel: &Cancel,
        mut open: impl FnMut(&mut Ancestors) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut kept = self.slot.take();
        let mut wait = shortage.wait(1);
        let opened = loop {
            let opened = open(&mut kept);
            let let_go = || {
                kept.clear();
                self.all.clear();
            };
            if !wait.again(&opened, || cancel.is_cancelled(), let_go) {
                break opened;
            }
        };
        *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd as _;
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

    fn fd() -> Arc<OwnedFd> {
        Arc::new(fs::File::open(".").unwrap().into())
    }

    #[track_caller]
    fn check(ancestors: &mut Ancestors, path: &str, expected: Option<(&Arc<OwnedFd>, usize)>) {
        let found = ancestors.nearest(path.as_bytes());
        let found = found.map(|(fd, covered)| (fd.as_raw_fd(), covered));
        assert_eq!(
            found,
            expected.map(|(fd, covered)| (fd.as_raw_fd(), covered))
        );
    }

    #[test]
    fn only_directories_above_count() {
        let mut ancestors = Ancestors::default();
        let (a, ab) = (fd(), fd());
        check(&mut ancestors, "a", None);
        ancestors.push(b"a", &a);
        check(&mut ancestors, "a/b", Some((&a, 2)));
        ancestors.push(b"a/b", &ab);
        check(&mut ancestors, "a/b/c", Some((&ab, 4)));
        check(&mut ancestors, "a/b", Some((&ab, 3)));
        check(&mut ancestors, "a/b//c", Some((&ab, 5)));
        check(&mut ancestors, "a/bc/d", Some((&a, 2)));
        check(&mut ancestors, "a/b/c", Some((&a, 2)));
        check(&mut ancestors, "ab", None);
        check(&mut ancestors, "a/b", None);
        ancestors.push(b"a/", &a);
        check(&mut ancestors, "a/b", Some((&a, 2)));
        check(&mut ancestors, "a", None);
    }

    /// Returns the number of names that are looked up for directories of a chain, so deep, one
    /// after the other.
    fn steps(depths: impl Iterator<Item = usize>) -> usize {
        let mut ancestors = Ancestors::default();
        let (mut steps, one, chain) = (0, fd(), "d/".repeat(DEEP));
        for depth in depths {
            let path = &chain.as_bytes()[..2 * depth - 1];
            let mut ends = 0;
            let opened = ancestors.open(path, |_, rest, reach| {
                ends += usize::from(reach == Reach::End);
                steps += rest.split(|byte| *byte == b'/').count();
                Ok(one.try_clone().unwrap())
            });
            ancestors.push(path, &opened.unwrap());
            assert_eq!(ends, 1);
            assert!(ancestors.dirs.len() <= KEPT);
        }
        steps
    }

    const DEEP: usize = 10_000;

    #[test]
    fn going_down_takes_a_step_each_and_coming_up_a_few() {
        assert_eq!(steps(1..=STRIDE), STRIDE);
        assert_eq!(steps(1..=DEEP), DEEP);
        let up = steps((1..=DEEP).rev());
        assert!(up < 30 * DEEP, "{up}");
    }

    #[test]
    fn nothing_is_kept_on_a_short_way_and_slashes_lead_nowhere_else() {
        assert_eq!(halfway(b"a/b/c"), None);
        assert_eq!(halfway("directory/".repeat(STRIDE - 1).as_bytes()), None);
        for path in ["/a".repeat(100), "a//".repeat(100), "/".repeat(300)] {
            let mut from_root = false;
            let opened = Ancestors::default().open(path.as_bytes(), |from, rest, _| {
                from_root |= from.is_none();
                assert!(from.is_none() || !rest.starts_with(b"/"));
                Ok(fs::File::open(".").unwrap().into())
            });
            opened.unwrap();
            assert!(from_root);
        }
    }

    #[test]
    fn few_are_kept() {
        let mut ancestors = Ancestors::default();
        let mut path = String::from("0");
        for level in 1..50 {
            ancestors.nearest(path.as_bytes());
            ancestors.push(path.as_bytes(), &fd());
            assert!(ancestors.dirs.len() <= KEPT);
            path = format!("{path}/{level}");
            assert!(ancestors.nearest(path.as_bytes()).is_some());
        }
    }

    #[test]
    fn who_is_short_makes_those_that_wait_for_work_let_go() {
        let all = KeptDirs::default();
        let (own, idle, gone) = (all.join(), all.join(), all.join());
        let (fd, shortage) = (fd(), Shortage::new());
        for worker in [&own, &idle, &gone] {
            let keep = |kept: &mut Ancestors| -> Result<(), Errno> {
                kept.push(b"a", &fd);
                Ok(())
            };
            worker.open(&shortage, &Cancel::new(), keep).unwrap();
        }
        assert_eq!(Arc::strong_count(&fd), 4);
        drop(gone);
        assert_eq!(Arc::strong_count(&fd), 3);
        let mut tries = 0;
        let opened = own.open(&shortage, &Cancel::new(), |_| {
            tries += 1;
            match Arc::strong_count(&fd) {
                1 => Ok(()),
                _ => Err(Errno::MFILE),
            }
        });
        assert_eq!((opened, tries), (Ok(()), 2));
        assert!(shortage.is_short());
    }

    #[test]
    fn what_another_one_uses_is_waited_for() {
        let all = KeptDirs::default();
        let own = all.join();
        let (fd, shortage) = (fd(), Shortage::new());
        let mut user = Some(Arc::clone(&fd));
        let mut tries = 0;
        let opened = own.open(&shortage, &Cancel::new(), |_| {
            tries += 1;
            if tries == 5 {
                user = None;
            }
            match Arc::strong_count(&fd) {
                1 => Ok(()),
                _ => Err(Errno::NFILE),
            }
        });
        assert_eq!((opened, tries), (Ok(()), 5));
        let other = own.open(&shortage, &Cancel::new(), |_| -> Result<(), Errno> {
            Err(Errno::ACCESS)
        });
        assert_eq!(other, Err(Errno::ACCESS));
    }
}
