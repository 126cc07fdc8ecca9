//! The system calls that prune and undo make, and no others: relative to
//! directory descriptors, retried on EINTR, each one a place where the tests
//! make things go wrong.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bc_fs::InodeFlags;
use bc_fs::lease::{self, Refused};
use bc_walk::FileStat;
use rustix::fs::{
    self, AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat,
    StatxAttributes, StatxFlags, Timespec, Timestamps,
};
use rustix::io::{Errno, retry_on_intr};

use bc_fs::mount::{Traits, basic_traits};

use super::fail::point;

mod dirs;
mod full;

pub(crate) use self::dirs::{
    BTRFS, is_subvolume, link_text, open_link, open_listed, relist, remove_dir, was_subvolume,
};
pub(crate) use self::full::{FullStat, born_ns, stat_all, stat_all_now};

/// A call that failed: its name and the system's reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FailedCall {
    pub(crate) op: &'static str,
    pub(crate) errno: Errno,
}

pub(crate) type Result<T> = std::result::Result<T, FailedCall>;

fn call<T>(op: &'static str, mut f: impl FnMut() -> rustix::io::Result<T>) -> Result<T> {
    point(op)
        .and_then(|()| retry_on_intr(&mut f))
        .map_err(|errno| FailedCall { op, errno })
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Bytes of a path handed to the kernel at once; PATH_MAX is 4096 with its NUL.
const CHUNK: usize = 4000;

/// Opens the directory `path` as a place to stand on; links in it are followed.
pub(crate) fn open_root(path: &[u8]) -> Result<OwnedFd> {
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    if path.len() <= CHUNK {
        return call("open directory", || {
            fs::openat(CWD, path, DIRECTORY, Mode::empty())
        });
    }
    let start: &[u8] = if path[0] == b'/' { b"/" } else { b"." };
    let mut at = call("open directory", || {
        fs::openat(CWD, start, DIRECTORY, Mode::empty())
    })?;
    for part in path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        at = call("open directory", || {
            fs::openat(&at, part, DIRECTORY, Mode::empty())
        })?;
    }
    Ok(at)
}

/// Opens the directory above an open one.
pub(crate) fn open_parent(dir: impl AsFd) -> Result<OwnedFd> {
    call("open directory", || {
        fs::openat(&dir, c"..", DIRECTORY, Mode::empty())
    })
}

/// Opens the directory that one name of an open one leads to, links followed.
pub(crate) fn open_dir_at(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    call("open directory", || {
        fs::openat(&dir, name, DIRECTORY, Mode::empty())
    })
}

/// Opens the file that a path leads to, links followed: a directory so that it could be read,
/// anything else as a place alone, which neither waits nor has effects.
pub(crate) fn open_named(path: &[u8]) -> Result<OwnedFd> {
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
        }) if path.len() <= CHUNK => call("open", || {
            fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        }),
        opened => opened,
    }
}

/// Opens the directory `path` below `root`, or that itself if the path is empty; a symbolic link
/// anywhere in it is an error (ELOOP, or ENOTDIR from kernels before 5.6), and so is a way out of it
/// (EXDEV). A slash at its start does not make it a path from the top.
pub(crate) fn open_below(root: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    let path = relative(path);
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    let (mut at, mut rest) = open_chunk(root.as_fd(), path)?;
    while !rest.is_empty() {
        (at, rest) = open_chunk(at.as_fd(), rest)?;
    }
    Ok(at)
}

/// A path without the slashes that it begins with.
fn relative(path: &[u8]) -> &[u8] {
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    &path[slashes..]
}

/// Opens as much of the way as the kernel takes at once; returns the rest of it too.
fn open_chunk<'p>(at: BorrowedFd<'_>, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8])> {
    let take = if path.len() <= CHUNK {
        path.len()
    } else {
        // A component has at most 255 bytes, so there is a slash.
        path[..CHUNK]
            .iter()
            .rposition(|byte| *byte == b'/')
            .unwrap_or(CHUNK)
    };
    let (chunk, rest) = path.split_at(take);
    let rest = relative(rest);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = call("open directory", || {
        fs::openat2(at, chunk, DIRECTORY, Mode::empty(), resolve)
    });
    match found {
        // Older kernels do not know the call, some filters answer EPERM.
        Err(FailedCall {
            errno: Errno::NOSYS | Errno::PERM,
            ..
        }) => Ok((open_parts(at, chunk)?, rest)),
        found => Ok((found?, rest)),
    }
}

/// Opens the path one component after the other.
fn open_parts(at: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    let open = |at: BorrowedFd<'_>, part: &[u8]| {
        call("open directory", || {
            fs::openat(at, part, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
        })
    };
    let mut held = open(at, b".")?;
    for part in path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        if part == b".." {
            return Err(FailedCall {
                op: "open directory",
                errno: Errno::XDEV,
            });
        }
        held = open(held.as_fd(), part)?;
    }
    Ok(held)
}

/// Access to a file's content.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Opens a file without following a link, waiting for anything or changing
/// its access time.
pub(crate) fn open_file(dir: impl AsFd, name: &CStr, access: Access) -> Result<OwnedFd> {
    let common = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = match access {
        Access::Read => common | OFlags::RDONLY,
        Access::Write => common | OFlags::RDWR,
    };
    call("open", || {
        match fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
            // O_NOATIME is for the owner only.
            Err(Errno::PERM) => fs::openat(&dir, name, flags, Mode::empty()),
            opened => opened,
        }
    })
}

/// Creates a file for us alone; EEXIST if there is anything of that name.
pub(crate) fn create(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    call("create", || {
        fs::openat(&dir, name, flags, Mode::from_raw_mode(0o600))
    })
}

pub(crate) fn stat(file: impl AsFd) -> Result<FileStat> {
    raw_stat(file).map(|stat| FileStat::from(&stat))
}

/// Returns everything that `fstat` reports.
pub(crate) fn raw_stat(file: impl AsFd) -> Result<Stat> {
    call("stat", || fs::fstat(&file))
}

/// Returns the state of the name itself, not of a link's target.
pub(crate) fn stat_at(dir: impl AsFd, name: &CStr) -> Result<FileStat> {
    let stat = call("stat", || fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
    Ok(FileStat::from(&stat))
}

/// Returns the state of the name itself, or of `at` if the name is empty; from the server, where
/// the kernel's cache may be outdated.
pub(crate) fn stat_now(at: impl AsFd, name: &CStr) -> Result<FileStat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let found = call("stat", || {
        fs::statx(&at, name, flags, StatxFlags::BASIC_STATS)
    });
    match found {
        Ok(found) => Ok(FileStat::from(&found)),
        // Some filters do not know the call.
        Err(FailedCall {
            errno: Errno::NOSYS | Errno::PERM,
            ..
        }) => match name.is_empty() {
            true => stat(at),
            false => stat_at(at, name),
        },
        Err(failed) => Err(failed),
    }
}

/// Takes a read lease, as [`lease::take`].
pub(crate) fn take_lease(file: impl AsFd) -> std::result::Result<(), Refused> {
    point("lease").map_err(|errno| Refused::Unavailable(errno.raw_os_error()))?;
    lease::take(file)
}

/// See [`lease::is_held`].
pub(crate) fn holds_lease(file: impl AsFd) -> Result<bool> {
    call("lease", || Ok(lease::is_held(&file)))
}

/// Returns the state of the file that the name leads to, through links.
pub(crate) fn stat_through(dir: impl AsFd, name: &CStr) -> Result<FileStat> {
    let stat = call("stat", || fs::statat(&dir, name, AtFlags::empty()))?;
    Ok(FileStat::from(&stat))
}

/// Returns true if a directory is the root of a mount; `None` from kernels that do not report it
/// (before Linux 5.8).
pub(crate) fn is_mount_root(dir: impl AsFd) -> Option<bool> {
    let flags = AtFlags::EMPTY_PATH;
    let found = call("stat", || fs::statx(&dir, c"", flags, StatxFlags::empty()));
    let found = found.ok()?;
    let reported = found
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    reported.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// True if two mounts are known to be two.
pub(crate) fn differ(one: Option<u64>, other: Option<u64>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

/// See [`InodeFlags::of`].
pub(crate) fn inode_flags(file: impl AsFd) -> Result<InodeFlags> {
    call("get flags", || InodeFlags::of(&file))
}

/// See [`InodeFlags::give`].
pub(crate) fn give_flags(
    flags: &InodeFlags,
    file: impl AsFd,
) -> Result<Vec<(&'static str, Errno)>> {
    call("set flags", || flags.give(&file))
}

/// Returns the traits of the file system.
pub(crate) fn traits(file: impl AsFd) -> Result<Traits> {
    call("statfs", || basic_traits(&file))
}

/// Checks that names of the directory may be changed by this process and through this mount: EROFS,
/// EACCES.
pub(crate) fn may_change(dir: impl AsFd) -> Result<()> {
    let access = fs::Access::WRITE_OK | fs::Access::EXEC_OK;
    call("write directory", || {
        fs::accessat(&dir, c".", access, AtFlags::EACCESS)
    })
}

/// Takes a lock of flock(2).
pub(crate) fn lock(file: impl AsFd, how: FlockOperation) -> std::result::Result<(), Errno> {
    point("lock").and_then(|()| retry_on_intr(|| fs::flock(&file, how)))
}

/// Checks that the file of this name may be read and written to by this process: EACCES, EROFS.
pub(crate) fn may_read_and_write(dir: impl AsFd, name: &CStr) -> Result<()> {
    let access = fs::Access::READ_OK | fs::Access::WRITE_OK;
    call("access", || {
        fs::accessat(&dir, name, access, AtFlags::EACCESS)
    })
}

pub(crate) fn link(from_dir: impl AsFd, from: &CStr, to_dir: impl AsFd, to: &CStr) -> Result<()> {
    call("link", || {
        fs::linkat(&from_dir, from, &to_dir, to, AtFlags::empty())
    })
}

/// Gives a file one more name in its directory.
pub(crate) fn name_too(dir: impl AsFd, from: &CStr, to: &CStr) -> Result<()> {
    call("name", || {
        fs::linkat(&dir, from, &dir, to, AtFlags::empty())
    })
}

pub(crate) fn symlink(text: &[u8], dir: impl AsFd, name: &CStr) -> Result<()> {
    call("symlink", || fs::symlinkat(text, &dir, name))
}

/// Makes a symbolic link and holds it with `O_PATH`: `None` if its name was given to another file
/// before that, which is left as it is.
pub(crate) fn make_link(text: &[u8], dir: impl AsFd, name: &CStr) -> Result<Option<OwnedFd>> {
    let since = bc_fs::made::file_clock();
    symlink(text, &dir, name)?;
    let link = bc_fs::made::Thing::Link(text);
    call("open", || bc_fs::made::hold(&dir, name, link, since))
}

/// Swaps two names of a directory in one step.
pub(crate) fn exchange(dir: impl AsFd, one: &CStr, other: &CStr) -> Result<()> {
    call("exchange", || {
        fs::renameat_with(&dir, one, &dir, other, RenameFlags::EXCHANGE)
    })
}

/// Renames over the file that has the new name, whichever it is.
pub(crate) fn rename(dir: impl AsFd, from: &CStr, to: &CStr) -> Result<()> {
    call("rename", || fs::renameat(&dir, from, &dir, to))
}

/// Renames; EEXIST if the new name is taken. Where the file system cannot
/// promise that, looks first.
pub(crate) fn rename_new(
    from_dir: impl AsFd,
    from: &CStr,
    to_dir: impl AsFd,
    to: &CStr,
) -> Result<()> {
    let renamed = call("rename", || {
        fs::renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE)
    });
    match renamed {
        Err(FailedCall {
            errno: Errno::INVAL | Errno::NOSYS,
            ..
        }) => match stat_at(&to_dir, to) {
            Err(FailedCall {
                errno: Errno::NOENT,
                ..
            }) => call("rename", || fs::renameat(&from_dir, from, &to_dir, to)),
            Ok(_) => Err(FailedCall {
                op: "rename",
                errno: Errno::EXIST,
            }),
            Err(failed) => Err(failed),
        },
        renamed => renamed,
    }
}

pub(crate) fn unlink(dir: impl AsFd, name: &CStr) -> Result<()> {
    call("unlink", || fs::unlinkat(&dir, name, AtFlags::empty()))
}

/// Gives a directory back the times it had: both, as some FUSE servers take no single one.
pub(crate) fn set_times(dir: impl AsFd, before: &Stat) -> Result<()> {
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(before.st_atime, before.st_atime_nsec as _),
        last_modification: time(before.st_mtime, before.st_mtime_nsec as _),
    };
    call("utimens", || {
        fs::utimensat(&dir, c".", &times, AtFlags::empty())
    })
}

pub(crate) fn make_dir(dir: impl AsFd, name: &CStr, mode: u32) -> Result<()> {
    call("create directory", || {
        fs::mkdirat(&dir, name, Mode::from_raw_mode(mode))
    })
}

/// Fills as much of `buffer` as there is from `offset`.
pub(crate) fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let whole = buffer.len();
    read_at_least(file, buffer, offset, whole)
}

/// Reads as [`read_at`] does until `enough` bytes are there. Where that is all that a file should
/// have from `offset` on and the buffer has room for more, a call that brings just that has met the
/// end.
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

pub(crate) fn write_all_at(file: impl AsFd, mut data: &[u8], mut offset: u64) -> Result<()> {
    while !data.is_empty() {
        let written = call("write", || rustix::io::pwrite(&file, data, offset))?;
        data = &data[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Gives a new file the blocks of another one of its file system.
pub(crate) fn clone(from: impl AsFd, to: impl AsFd) -> Result<()> {
    call("clone", || fs::ioctl_ficlone(&to, &from))
}

pub(crate) fn set_len(file: impl AsFd, len: u64) -> Result<()> {
    call("truncate", || fs::ftruncate(&file, len))
}

pub(crate) fn sync(file: impl AsFd) -> Result<()> {
    call("fsync", || fs::fsync(&file))
}

/// Reports data that the file system could not store: some do so only at a close.
pub(crate) fn flush(file: impl AsFd) -> Result<()> {
    call("close", || bc_fs::flush(&file))
}

/// Makes the names of a directory durable.
pub(crate) fn sync_dir(dir: impl AsFd) -> Result<()> {
    let dir = call("open directory", || {
        fs::openat(
            &dir,
            c".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    })?;
    match sync(dir) {
        // Some network file systems have nothing to do there.
        Err(FailedCall {
            errno: Errno::INVAL | Errno::NOSYS,
            ..
        }) => Ok(()),
        done => done,
    }
}

/// The last component as the C string the calls want.
pub(crate) fn name(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| FailedCall {
        op: "open",
        errno: Errno::INVAL,
    })
}

/// The path that the kernel knows the open file or directory by; `None`
/// without /proc or when it has been removed.
pub(crate) fn real_path(file: impl AsFd) -> Option<Vec<u8>> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/thread-self/fd/{}", file.as_fd().as_raw_fd());
    let path = fs::readlinkat(CWD, link, Vec::new()).ok()?.into_bytes();
    // A directory may be called like that.
    let there = || -> Result<bool> { Ok(stat_through(CWD, &name(&path)?)?.id == stat(&file)?.id) };
    let leads =
        path.first() == Some(&b'/') && (!path.ends_with(b" (deleted)") || there().unwrap_or(false));
    leads.then_some(path)
}

/// Returns the name of the volume that an open directory is on; `None` where the system does not
/// report it.
pub(crate) fn volume(dir: impl AsFd) -> Option<String> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/thread-self/fd/{}", dir.as_fd().as_raw_fd());
    bc_fs::volume_at(link)
}
