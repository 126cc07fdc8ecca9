//! Contents of files: created, written, cut, cloned, stored.

use std::os::fd::{AsFd, OwnedFd};

use bc_fs::call::{FailedCall, Result, call};
use bc_fs::dirfd;
use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Flags of every file that is created: for reading too, and never through a link.
const NEW: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Creates a file with these permission bits, less those of the umask; `EXIST` if there is anything
/// of that name.
///
/// # Errors
/// Those of `openat`.
pub fn create(dir: impl AsFd, name: impl Arg + Copy, mode: u32) -> Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode as _);
    call("create", || fs::openat(&dir, name, NEW, mode))
}

/// Creates a file on the file system of a directory that no name leads to: it is gone when it is
/// closed without [one](crate::entry::link_unnamed).
///
/// # Errors
/// Those of `openat`: `OPNOTSUPP`, `ISDIR`, `INVAL` or `NOENT` where the file system cannot.
pub fn create_unnamed(dir: impl AsFd, mode: u32) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode as _);
    call("create", || fs::openat(&dir, c".", flags, mode))
}

/// Creates an unnamed file in the temporary directory (`TMPDIR`), where there can be one.
pub fn create_temporary() -> Option<OwnedFd> {
    let dir = dirfd::open_root(std::env::temp_dir().as_os_str().as_encoded_bytes()).ok()?;
    create_unnamed(dir, 0o600).ok()
}

/// Writes all of `data` at `offset`.
///
/// # Errors
/// Those of `pwrite`.
pub fn write_all_at(file: impl AsFd, mut data: &[u8], mut offset: u64) -> Result<()> {
    while !data.is_empty() {
        let written = call("write", || rustix::io::pwrite(&file, data, offset))?;
        data = &data[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Cuts a file to `len` bytes, or lengthens it by a hole.
///
/// # Errors
/// Those of `ftruncate`.
pub fn truncate(file: impl AsFd, len: u64) -> Result<()> {
    call("truncate", || fs::ftruncate(&file, len))
}

/// Allocates a range, or, by its flags, makes a hole of it.
///
/// # Errors
/// Those of `fallocate`.
pub fn allocate(file: impl AsFd, flags: FallocateFlags, offset: u64, len: u64) -> Result<()> {
    call("fallocate", || fs::fallocate(&file, flags, offset, len))
}

/// Gives a new file the blocks of another one of its file system.
///
/// # Errors
/// Those of `ioctl_ficlone`.
pub fn clone(from: impl AsFd, to: impl AsFd) -> Result<()> {
    call("clone", || fs::ioctl_ficlone(&to, &from))
}

/// Copies up to `len` bytes inside the kernel, from and to these offsets, which move on.
///
/// # Errors
/// Those of `copy_file_range`.
pub fn copy_range(
    from: impl AsFd,
    from_offset: &mut u64,
    to: impl AsFd,
    to_offset: &mut u64,
    len: usize,
) -> Result<usize> {
    call("copy_file_range", || {
        fs::copy_file_range(
            &from,
            Some(&mut *from_offset),
            &to,
            Some(&mut *to_offset),
            len,
        )
    })
}

/// Makes a file's content and metadata durable.
///
/// # Errors
/// Those of `fsync`.
pub fn sync(file: impl AsFd) -> Result<()> {
    call("fsync", || fs::fsync(&file))
}

/// Reports data that the file system could not store: some do so only at a close.
///
/// # Errors
/// Those of `close`.
pub fn flush(file: impl AsFd) -> Result<()> {
    call("close", || bc_fs::call::flush(&file))
}

/// Makes the names of a directory durable.
///
/// # Errors
/// Those of opening it for reading, and of `fsync`, unless there is nothing to do, as on some
/// network file systems.
pub fn sync_dir(dir: impl AsFd) -> Result<()> {
    match sync(dirfd::relist(dir)?) {
        Err(FailedCall {
            errno: Errno::INVAL | Errno::NOSYS,
            ..
        }) => Ok(()),
        done => done,
    }
}
