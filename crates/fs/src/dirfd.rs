//! Directories and files opened by the descriptor of a directory above them, so that no other
//! process can exchange a part of the way between a look and the use; and directories held open for
//! the files that come next ([`OpenDirs`]).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::call::{FailedCall, Result, call};
use crate::meta::{Identity, stat, stat_through};

/// Flags of a directory that is a place to stand on: it cannot be read, and need not be readable.
pub const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Longest path that the kernel takes in one call, without the closing NUL (`PATH_MAX` in
/// `linux/limits.h` is 4096).
const MAX_PATH: usize = 4095;

/// Opens the directory `path` as a place to stand on; links in it are followed.
///
/// # Errors
/// Those of `openat`.
pub fn open_root(path: &[u8]) -> Result<OwnedFd> {
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    call("open directory", || open_through(CWD, path, PLACE))
}

/// Opens the directory above an open one.
///
/// # Errors
/// Those of `openat`.
pub fn open_parent(dir: impl AsFd) -> Result<OwnedFd> {
    call("open directory", || {
        fs::openat(&dir, c"..", PLACE, Mode::empty())
    })
}

/// Opens the directory that one name of an open one leads to, links followed.
///
/// # Errors
/// Those of `openat`.
pub fn open_dir_at(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    call("open directory", || {
        fs::openat(&dir, name, PLACE, Mode::empty())
    })
}

/// Opens the file that a path leads to, links followed: a directory so that it could be read,
/// anything else as a place alone, which neither waits nor has effects.
///
/// # Errors
/// Those of `openat`.
pub fn open_named(path: &[u8]) -> Result<OwnedFd> {
    let read = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let directory = open_root(path).and_then(|at| {
        call("open directory", || {
            fs::openat(&at, c".", read, Mode::empty())
        })
    });
    match directory {
        Err(FailedCall {
            errno: Errno::NOTDIR,
            ..
        }) if path.len() <= MAX_PATH => call("open", || {
            fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        }),
        opened => opened,
    }
}

/// Opens a directory by its path from `base`, however long the path; links are followed.
///
/// # Errors
/// Those of `openat`.
pub fn open_through(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> std::result::Result<OwnedFd, Errno> {
    in_chunks(base, path, flags, |base, chunk, flags| {
        retry_on_intr(|| fs::openat(base, chunk, flags, Mode::empty()))
    })
}

/// Opens the directory `path` below `root`, or that itself if the path is empty; a symbolic link
/// anywhere in it is an error (ELOOP, or ENOTDIR from kernels before 5.6), and so is a way out of it
/// (EXDEV). A slash at its start does not make it a path from the top.
///
/// # Errors
/// Those of `openat2`.
pub fn open_below(root: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = &path[slashes(path)..];
    call("open directory", || {
        DirOpener::new().open_below(root.as_fd(), path, PLACE, resolve)
    })
}

/// Opens directories below directories; remembers whether `openat2` works here.
#[derive(Debug)]
pub struct DirOpener {
    /// True unless `openat2` is missing (before Linux 5.6) or forbidden by a seccomp filter.
    openat2: AtomicBool,
}

impl Default for DirOpener {
    fn default() -> DirOpener {
        DirOpener::new()
    }
}

impl DirOpener {
    /// Makes an opener that has not met a refusal.
    pub const fn new() -> DirOpener {
        DirOpener {
            openat2: AtomicBool::new(true),
        }
    }

    /// Makes an opener as on a kernel that has no `openat2`.
    pub const fn without_openat2() -> DirOpener {
        DirOpener {
            openat2: AtomicBool::new(false),
        }
    }

    /// True if `NO_XDEV` works. If not, the caller has to compare devices.
    pub fn notices_mounts(&self) -> bool {
        self.openat2.load(Ordering::Relaxed)
    }

    /// Opens the directory `path`, at any depth, below `base`, or that itself if the path is empty;
    /// it begins with no slash. `resolve` is what the way may not lead through. Without `openat2`
    /// its `NO_SYMLINKS` is kept by opening one component after the other, and `BENEATH` by
    /// refusing dots; mounts are not noticed.
    ///
    /// A walk does without `BENEATH`: for that the kernel goes up from each directory to the base
    /// under the lock of all mounts, and names that were listed lead nowhere else.
    ///
    /// # Errors
    /// Those of `openat2`.
    pub fn open_below(
        &self,
        base: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> std::result::Result<OwnedFd, Errno> {
        if path.is_empty() {
            return retry_on_intr(|| fs::openat(base, c".", flags, Mode::empty()));
        }
        in_chunks(base, path, flags, |base, chunk, flags| {
            if self.openat2.load(Ordering::Relaxed) {
                match openat2(base, chunk, flags, resolve) {
                    Err(Errno::NOSYS) => self.openat2.store(false, Ordering::Relaxed),
                    // From a seccomp filter, or from the file system and meant so.
                    Err(Errno::PERM) => {
                        let opened = open_stepwise(base, chunk, flags, resolve);
                        if opened.is_ok() {
                            self.openat2.store(false, Ordering::Relaxed);
                        }
                        return opened;
                    }
                    result => return result,
                }
            }
            open_stepwise(base, chunk, flags, resolve)
        })
    }
}

fn openat2(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> std::result::Result<OwnedFd, Errno> {
    loop {
        match fs::openat2(base, path, flags, Mode::empty(), resolve) {
            Err(Errno::INTR) => {}
            // Something was renamed meanwhile, and the kernel cannot decide on the effect.
            Err(Errno::AGAIN) if resolve.contains(ResolveFlags::BENEATH) => {}
            opened => return opened,
        }
    }
}

/// Calls `open` once for a path that fits, else for one part after the other.
fn in_chunks(
    base: BorrowedFd<'_>,
    mut path: &[u8],
    flags: OFlags,
    open: impl Fn(BorrowedFd<'_>, &[u8], OFlags) -> std::result::Result<OwnedFd, Errno>,
) -> std::result::Result<OwnedFd, Errno> {
    let mut reached: Option<OwnedFd> = None;
    while path.len() > MAX_PATH {
        // A single component of that length exists nowhere.
        let cut = path[..=MAX_PATH]
            .iter()
            .rposition(|&byte| byte == b'/')
            .filter(|&cut| cut > 0)
            .ok_or(Errno::NAMETOOLONG)?;
        let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
        reached = Some(open(from, &path[..cut], PLACE)?);
        path = &path[cut..];
        path = &path[slashes(path)..];
    }
    let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
    let path = if path.is_empty() { b"." } else { path };
    open(from, path, flags)
}

fn slashes(path: &[u8]) -> usize {
    path.iter().take_while(|&&byte| byte == b'/').count()
}

/// Opens one component after the other, so that a link in the middle is noticed.
fn open_stepwise(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> std::result::Result<OwnedFd, Errno> {
    if !resolve.contains(ResolveFlags::NO_SYMLINKS) {
        return retry_on_intr(|| fs::openat(base, path, flags, Mode::empty()));
    }
    let mut reached: Option<OwnedFd> = None;
    let mut components = path
        .split(|&byte| byte == b'/')
        .filter(|component| !component.is_empty())
        .peekable();
    while let Some(component) = components.next() {
        if component == b".." && resolve.contains(ResolveFlags::BENEATH) {
            return Err(Errno::XDEV);
        }
        let flags = match components.peek() {
            Some(_) => PLACE,
            None => flags,
        };
        let from = reached.as_ref().map_or(base, |fd| fd.as_fd());
        let flags = flags | OFlags::NOFOLLOW;
        let opened = retry_on_intr(|| fs::openat(from, component, flags, Mode::empty()))?;
        reached = Some(opened);
    }
    reached.ok_or(Errno::NOENT)
}

/// Number of ancestors that no directory has which was opened by a path of a system call or two; a
/// way up that takes more goes in circles.
const MOST_ANCESTORS: usize = 1 << 20;

/// A directory that is its own parent this many times is the root. Once is not enough: one that
/// is mounted on a directory directly within itself looks the same.
const OWN_PARENTS: usize = 64;

/// Shows `found` the identity of an open directory and of each one above it, each open, until it
/// says that this will do, which is then the result.
///
/// # Errors
/// If the system refuses a look, or there is no end of directories.
pub fn visit_ancestors(
    dir: &OwnedFd,
    mut found: impl FnMut(Identity, &OwnedFd) -> bool,
) -> Result<bool> {
    let identity = |dir: &dyn AsFd| stat(dir.as_fd()).map(|stat| stat.id);
    let top = identity(&open_root(b"/")?)?;
    let mut id = identity(&dir)?;
    if found(id, dir) {
        return Ok(true);
    }
    let mut at = open_parent(dir)?;
    let mut same = 0;
    for _ in 0..MOST_ANCESTORS {
        let above = identity(&at)?;
        if found(above, &at) {
            return Ok(true);
        }
        same = if above == id { same + 1 } else { 0 };
        if same > 0 && id == top || same == OWN_PARENTS {
            return Ok(false);
        }
        id = above;
        at = open_parent(&at)?;
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
pub fn deepest_existing(path: &[u8]) -> Result<(OwnedFd, usize)> {
    let start: &[u8] = if path.first() == Some(&b'/') {
        b"/"
    } else {
        b"."
    };
    let mut at = open_root(start)?;
    let mut missing = 0_usize;
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if missing > 0 => missing -= 1,
            b".." => at = open_parent(&at)?,
            _ if missing > 0 => missing += 1,
            _ => match open_dir_at(&at, part) {
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
    prefixes.any(|path| fs::lstat(path).is_ok() && fs::stat(path).is_err())
}

/// Access to a file's content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// Opens a file without following a link, waiting for anything or changing
/// its access time.
///
/// # Errors
/// Those of `openat`.
pub fn open_file(dir: impl AsFd, name: &CStr, access: Access) -> Result<OwnedFd> {
    let common = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = match access {
        Access::Read => common | OFlags::RDONLY,
        Access::Write => common | OFlags::RDWR,
    };
    call("open", || open_without_atime(dir.as_fd(), name, flags))
}

fn open_without_atime(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    match fs::openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        // O_NOATIME is for the owner only.
        Err(Errno::PERM) => fs::openat(dir, name, flags, Mode::empty()),
        opened => opened,
    }
}

/// Opens a directory to be listed: no link, and without a change of its access time where that can be.
///
/// # Errors
/// Those of `openat`.
pub fn open_listed(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    call("open directory", || {
        open_without_atime(dir.as_fd(), name, flags)
    })
}

/// Opens the directory once more, to be listed from its beginning.
///
/// # Errors
/// Those of `openat`.
pub fn relist(dir: impl AsFd) -> Result<OwnedFd> {
    open_listed(dir, c".")
}

/// Opens a symbolic link itself.
///
/// # Errors
/// Those of `openat`.
pub fn open_link(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    call("open", || fs::openat(&dir, name, flags, Mode::empty()))
}

/// Returns the text of a symbolic link that was opened itself.
///
/// # Errors
/// Those of `readlinkat`.
pub fn link_text(link: impl AsFd) -> Result<Vec<u8>> {
    let text = call("readlink", || fs::readlinkat(&link, c"", Vec::new()))?;
    Ok(text.into_bytes())
}

/// Checks that names of the directory may be changed by this process and through this mount: EROFS,
/// EACCES.
///
/// # Errors
/// Those of `faccessat`.
pub fn may_change(dir: impl AsFd) -> Result<()> {
    let access = fs::Access::WRITE_OK | fs::Access::EXEC_OK;
    call("write directory", || {
        fs::accessat(&dir, c".", access, AtFlags::EACCESS)
    })
}

/// Checks that the file of this name may be read and written to by this process: EACCES, EROFS.
///
/// # Errors
/// Those of `faccessat`.
pub fn may_read_and_write(dir: impl AsFd, name: &CStr) -> Result<()> {
    let access = fs::Access::READ_OK | fs::Access::WRITE_OK;
    call("access", || {
        fs::accessat(&dir, name, access, AtFlags::EACCESS)
    })
}

/// Fills as much of `buffer` as there is from `offset`.
///
/// # Errors
/// Those of `pread`.
pub fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let whole = buffer.len();
    read_at_least(file, buffer, offset, whole)
}

/// Reads as [`read_at`] does until `enough` bytes are there. Where that is all that a file should
/// have from `offset` on and the buffer has room for more, a call that brings just that has met the
/// end.
///
/// # Errors
/// Those of `pread`.
pub(crate) fn read_at_least(
    file: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
    enough: usize,
) -> Result<usize> {
    let mut filled = 0;
    while filled < enough {
        let read = call("read", || {
            rustix::io::pread(&file, &mut buffer[filled..], offset + filled as u64)
        })?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    Ok(filled)
}

/// Returns a name as the C string that calls take.
///
/// # Errors
/// `INVAL` for a name with a NUL in it.
pub fn name(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| FailedCall {
        op: "open",
        errno: Errno::INVAL,
    })
}

/// Directory of a thread's own descriptors, as [`own_path`] names them.
pub const OWN_DESCRIPTORS: &str = "/proc/thread-self/fd/";

/// Returns the path of an open file through `/proc`, for calls that take a path only: that of this
/// thread, which may have a table of descriptors of its own.
pub fn own_path(fd: impl AsFd) -> String {
    format!("{OWN_DESCRIPTORS}{}", fd.as_fd().as_raw_fd())
}

/// Returns the path that the kernel knows the open file or directory by; `None` without /proc or
/// when it has been removed.
pub fn real_path(file: impl AsFd) -> Option<Vec<u8>> {
    let path = fs::readlinkat(CWD, own_path(&file), Vec::new())
        .ok()?
        .into_bytes();
    // A directory may be called like that.
    let there = || -> Result<bool> { Ok(stat_through(CWD, &name(&path)?)?.id == stat(&file)?.id) };
    let leads =
        path.first() == Some(&b'/') && (!path.ends_with(b" (deleted)") || there().unwrap_or(false));
    leads.then_some(path)
}

/// The directories that were used last, so many at most, by a key: a path, or a number in a list.
/// One from which others were opened is closed after them. A job comes back to a directory for every
/// file in it, and opening the way to it each time is a good part of the calls of a small file.
///
/// Where descriptors are short its owner [clears](OpenDirs::clear) it.
#[derive(Debug)]
pub struct OpenDirs<K, D> {
    most: usize,
    /// Used last comes last. A directory comes after those that it was opened from.
    kept: Vec<Kept<K, D>>,
}

#[derive(Debug)]
struct Kept<K, D> {
    key: K,
    /// Directory that it was opened from, if that was one of these.
    above: Option<K>,
    dir: D,
}

impl<K: PartialEq, D> OpenDirs<K, D> {
    /// Holds none yet, and never more than `most`, which is at least one.
    pub const fn new(most: usize) -> OpenDirs<K, D> {
        OpenDirs {
            most,
            kept: Vec::new(),
        }
    }

    /// Finds the directory whose key `is` the wanted one, and makes it and those above it the last
    /// to be closed.
    pub fn find(&mut self, is: impl Fn(&K) -> bool) -> Option<&D> {
        let mut at = self.kept.iter().rposition(|kept| is(&kept.key))?;
        let mut end = self.kept.len();
        loop {
            self.kept[at..end].rotate_left(1);
            end -= 1;
            if at == end && end + 1 == self.kept.len() {
                // All is in order already, and has been since it was put there.
                break;
            }
            let Some(above) = &self.kept[end].above else {
                break;
            };
            match self.kept[..end].iter().rposition(|kept| kept.key == *above) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.kept.last().map(|kept| &kept.dir)
    }

    /// Holds a directory that was just opened, from the one with the key `above` if that is one of
    /// these. The one that was not used for the longest time is closed where there is no room.
    pub fn keep(&mut self, key: K, above: Option<K>, dir: D) {
        if self.kept.len() >= self.most.max(1) {
            self.kept.remove(0);
        }
        self.kept.push(Kept { key, above, dir });
    }

    /// Closes those that are not `good` any more.
    pub fn retain(&mut self, mut good: impl FnMut(&D) -> bool) {
        self.kept.retain(|kept| good(&kept.dir));
    }

    /// Closes all, as far as nobody else uses them; returns true if there were any.
    pub fn clear(&mut self) -> bool {
        let any = !self.kept.is_empty();
        self.kept.clear();
        any
    }

    /// Returns the keys of those that are held, those used last at the end.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.kept.iter().map(|kept| &kept.key)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    use super::*;

    fn top(dir: &tempfile::TempDir) -> OwnedFd {
        open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap()
    }

    #[test]
    fn no_link_is_followed_either_way() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        let top = top(&dir);
        let in_one = |path| open_below(&top, path).is_ok();
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let in_parts = |path| {
            let opener = DirOpener::without_openat2();
            opener.open_below(top.as_fd(), path, PLACE, resolve).is_ok()
        };
        for opens in [&in_one as &dyn Fn(&'static [u8]) -> bool, &in_parts] {
            assert!(opens(b"a/b") && opens(b"a//b"));
            for path in [&b"link"[..], b"link/b", b"..", b"none"] {
                assert!(!opens(path), "{path:?}");
            }
        }
        // The kernel allows paths that come back below.
        assert!(in_one(b"a/../a") && !in_parts(b"a/../a"));
        assert!(in_one(b"") && in_one(b"/a"));
    }

    #[test]
    fn any_depth() {
        let dir = tempfile::tempdir().unwrap();
        let top = top(&dir);
        let name = "d".repeat(200);
        let mut path = Vec::new();
        let mut at = open_below(&top, b"").unwrap();
        for _ in 0..45 {
            mkdirat(&at, &name, Mode::from_raw_mode(0o700)).unwrap();
            at = open_below(&at, name.as_bytes()).unwrap();
            path.extend_from_slice(name.as_bytes());
            path.push(b'/');
        }
        path.pop();
        let found = open_below(&top, &path).unwrap();
        assert_eq!(stat(&found).unwrap().id, stat(&at).unwrap().id);
    }

    fn keys(dirs: &OpenDirs<u32, char>) -> Vec<u32> {
        dirs.keys().copied().collect()
    }

    #[test]
    fn those_used_last_stay() {
        let mut dirs = OpenDirs::new(3);
        for (key, dir) in [(1, 'a'), (2, 'b'), (3, 'c')] {
            dirs.keep(key, None, dir);
        }
        assert_eq!(dirs.find(|key| *key == 1), Some(&'a'));
        assert_eq!(dirs.find(|key| *key == 7), None);
        dirs.keep(4, None, 'd');
        assert_eq!(keys(&dirs), [3, 1, 4]);
        dirs.retain(|dir| *dir != 'a');
        assert_eq!(keys(&dirs), [3, 4]);
        assert!(dirs.clear() && !dirs.clear());
        // There is always room for the one in use.
        let mut none = OpenDirs::new(0);
        none.keep(1, None, 'a');
        none.keep(2, None, 'b');
        assert_eq!(none.find(|key| *key == 2), Some(&'b'));
        assert_eq!(keys(&none), [2]);
    }

    #[test]
    fn those_above_are_closed_later() {
        let mut dirs = OpenDirs::new(4);
        dirs.keep(1, None, 'a');
        dirs.keep(2, Some(1), 'b');
        dirs.keep(3, Some(2), 'c');
        dirs.keep(9, None, 'x');
        assert_eq!(dirs.find(|key| *key == 3), Some(&'c'));
        assert_eq!(keys(&dirs), [9, 1, 2, 3]);
        dirs.keep(4, Some(2), 'd');
        assert_eq!(dirs.find(|key| *key == 2), Some(&'b'));
        assert_eq!(keys(&dirs), [3, 4, 1, 2]);
    }
}
