//! Entries of directories: links, renames and removals, each relative to the descriptor of a
//! directory.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use bc_fs::call::{FailedCall, Result, call};
use bc_fs::dirfd::{self, own_path};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Gives a file one more name; `EXIST` if that is taken.
///
/// # Errors
/// Those of `linkat`.
pub fn link(
    from_dir: impl AsFd,
    from: impl Arg + Copy,
    to_dir: impl AsFd,
    to: impl Arg + Copy,
) -> Result<()> {
    call("link", || {
        fs::linkat(&from_dir, from, &to_dir, to, AtFlags::empty())
    })
}

/// Gives an open file that has no name its first one; `EXIST` if that is taken.
///
/// # Errors
/// Those of `linkat`.
pub fn link_unnamed(file: impl AsFd, dir: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    match call("link", || {
        fs::linkat(&file, c"", &dir, name, AtFlags::EMPTY_PATH)
    }) {
        // Without the right to it, before Linux 6.10.
        Err(FailedCall {
            errno: Errno::NOENT,
            ..
        }) => {
            let way = own_path(&file);
            let follow = AtFlags::SYMLINK_FOLLOW;
            call("link", || fs::linkat(CWD, way.as_str(), &dir, name, follow))
        }
        linked => linked,
    }
}

/// Makes a symbolic link with this text.
///
/// # Errors
/// Those of `symlinkat`.
pub fn symlink(text: &[u8], dir: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    call("symlink", || fs::symlinkat(text, &dir, name))
}

/// Makes a FIFO, a socket or a device, for its owner alone.
///
/// # Errors
/// Those of `mknodat`.
pub fn make_node(dir: impl AsFd, name: impl Arg + Copy, kind: FileType, device: u64) -> Result<()> {
    let mode = Mode::from_raw_mode(0o600);
    call("mknod", || fs::mknodat(&dir, name, kind, mode, device as _))
}

/// Makes a directory with these permission bits, less those of the umask.
///
/// # Errors
/// Those of `mkdirat`.
pub fn make_dir(dir: impl AsFd, name: impl Arg + Copy, mode: u32) -> Result<()> {
    call("create directory", || {
        fs::mkdirat(&dir, name, Mode::from_raw_mode(mode as _))
    })
}

/// Makes a directory at a path that a user named, and those above it that are missing; links on the
/// way are followed.
///
/// # Errors
/// Those of `mkdirat`, and of opening the directories above; `EXIST` if another file has the name.
pub fn make_dirs(path: &Path, mode: u32) -> Result<()> {
    let opened = dirfd::open_root(path.as_os_str().as_bytes());
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return opened.map(drop);
    };
    match opened {
        Err(failed) if failed.errno == Errno::NOENT => make_dirs(parent, mode)?,
        // Another file has the name, or one of those above it.
        Err(failed) if failed.errno == Errno::NOTDIR => {}
        opened => return opened.map(drop),
    }
    let above = dirfd::open_root(parent.as_os_str().as_bytes())?;
    match make_dir(above, name, mode) {
        // Another process was quicker.
        Err(failed) if failed.errno == Errno::EXIST => {
            dirfd::open_root(path.as_os_str().as_bytes()).map_err(|_| failed)?;
            Ok(())
        }
        made => made,
    }
}

/// Swaps two names of a directory in one step.
///
/// # Errors
/// Those of `renameat2`: `INVAL`, `NOSYS` or `OPNOTSUPP` where the file system cannot.
pub fn exchange(dir: impl AsFd, one: impl Arg + Copy, other: impl Arg + Copy) -> Result<()> {
    call("exchange", || {
        fs::renameat_with(&dir, one, &dir, other, RenameFlags::EXCHANGE)
    })
}

/// True for the answers of file systems, and of filters of calls, that cannot do what the flags of
/// a rename ask for.
pub(crate) fn lacks_flag(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Renames over the file that has the new name, whichever it is.
///
/// # Errors
/// Those of `renameat`.
pub fn rename(dir: impl AsFd, from: impl Arg + Copy, to: impl Arg + Copy) -> Result<()> {
    call("rename", || fs::renameat(&dir, from, &dir, to))
}

/// Held by the thread that looks at a name and takes it by two calls, so that no other one of this
/// process comes between.
static LAST_RESORT: Mutex<()> = Mutex::new(());

/// Renames; `EXIST` if the new name is taken. Where the file system does not promise that (NFS,
/// some of FUSE), the name is given by a link, which never replaces anything either; where it has
/// no links or shows each as a file of its own (sshfs), and for directories, the name is looked at
/// first, and another process that takes it before the rename loses.
///
/// # Errors
/// Those of `renameat2`, `linkat` and `unlinkat`.
pub fn rename_new(
    from_dir: impl AsFd,
    from: impl Arg + Copy,
    to_dir: impl AsFd,
    to: impl Arg + Copy,
) -> Result<()> {
    rename_or_link(from_dir, from, to_dir, to, || Ok(()))
}

/// Renames as [`rename_new`] does. Where that takes a link, `announce` is called before the file has
/// both names: killed between the two calls, it keeps them. If `announce` fails, nothing is changed.
///
/// # Errors
/// Those of `rename_new`, and of `announce`.
pub fn rename_or_link(
    from_dir: impl AsFd,
    from: impl Arg + Copy,
    to_dir: impl AsFd,
    to: impl Arg + Copy,
    announce: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (from_dir, to_dir) = (from_dir.as_fd(), to_dir.as_fd());
    let renamed = call("rename", || {
        fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE)
    });
    match renamed {
        Err(failed) if lacks_flag(failed.errno) => announce()?,
        renamed => return renamed,
    }
    match link(from_dir, from, to_dir, to) {
        Err(FailedCall {
            errno: Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK | Errno::ACCESS,
            ..
        }) => {}
        Err(failed) => return Err(failed),
        Ok(()) if is_one_file(from_dir, from, to_dir, to) => return unlink(from_dir, from),
        // Whoever looks at the file by its new name would take it for another one.
        Ok(()) => unlink(to_dir, to)?,
    }
    let _alone = LAST_RESORT.lock();
    let there = call("stat", || fs::statat(to_dir, to, AtFlags::SYMLINK_NOFOLLOW));
    match there {
        Err(FailedCall {
            errno: Errno::NOENT,
            ..
        }) => call("rename", || fs::renameat(from_dir, from, to_dir, to)),
        Ok(_) => Err(FailedCall {
            op: "rename",
            errno: Errno::EXIST,
        }),
        Err(failed) => Err(failed),
    }
}

/// True if two names lead to one file, or if that cannot be seen.
fn is_one_file(
    from_dir: BorrowedFd<'_>,
    from: impl Arg + Copy,
    to_dir: BorrowedFd<'_>,
    to: impl Arg + Copy,
) -> bool {
    let one = fs::statat(from_dir, from, AtFlags::SYMLINK_NOFOLLOW);
    let other = fs::statat(to_dir, to, AtFlags::SYMLINK_NOFOLLOW);
    match (one, other) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => true,
    }
}

/// Removes a name of a file that is no directory.
///
/// # Errors
/// Those of `unlinkat`.
pub fn unlink(dir: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    call("unlink", || fs::unlinkat(&dir, name, AtFlags::empty()))
}

/// Removes an empty directory.
///
/// # Errors
/// Those of `unlinkat`.
pub fn remove_dir(dir: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    call("rmdir", || fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))
}
