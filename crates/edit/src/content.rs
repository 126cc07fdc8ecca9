//! Contents of files: created, written, cut, cloned, deduplicated, stored.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bc_fs::call::{FailedCall, Result, call};
use bc_fs::dirfd;
use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
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

/// `struct file_dedupe_range_info` of `linux/fs.h`.
#[repr(C)]
struct DedupeDestination {
    fd: i64,
    offset: u64,
    bytes_deduped: u64,
    status: i32,
    reserved: u32,
}

/// `struct file_dedupe_range` of `linux/fs.h`, without its open-ended tail.
#[repr(C)]
struct DedupeHead {
    offset: u64,
    length: u64,
    count: u16,
    reserved1: u16,
    reserved2: u32,
}

/// The header and one destination, as the kernel lays them out.
#[repr(C)]
struct DedupeRequest {
    head: DedupeHead,
    destination: DedupeDestination,
}

/// The size in the number is that of the header alone.
const FIDEDUPERANGE: Opcode = opcode::read_write::<DedupeHead>(0x94, 54);

/// `FILE_DEDUPE_RANGE_DIFFERS` of `linux/fs.h`.
const DIFFERS: i32 = 1;

/// Result of one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deduped {
    /// Number of bytes from the start of the range that now share their blocks; may be less than
    /// asked for, and then the caller asks for the rest.
    Bytes(u64),
    /// The ranges hold different bytes; nothing was changed.
    Differs,
}

/// Shares `length` bytes at `offset` of `source` with the same range of
/// `target`. `target` has to be open for writing, or belong to the caller.
///
/// # Errors
/// As `ioctl_fideduperange(2)`: `EOPNOTSUPP` or `EINVAL` where the file system
/// cannot, `EXDEV` across file systems, `EPERM` where the target may not be
/// changed, `ETXTBSY` for a swap file.
pub fn dedupe_range(
    source: impl AsFd,
    target: impl AsFd,
    offset: u64,
    length: u64,
) -> Result<Deduped> {
    call("dedupe", || {
        let deduped = ask_to_dedupe(source.as_fd(), target.as_fd(), offset, length);
        deduped.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })
}

#[allow(unsafe_code, reason = "rustix has no call for it")]
fn ask_to_dedupe(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    offset: u64,
    length: u64,
) -> std::io::Result<Deduped> {
    let mut request = DedupeRequest {
        head: DedupeHead {
            offset,
            length,
            count: 1,
            reserved1: 0,
            reserved2: 0,
        },
        destination: DedupeDestination {
            fd: i64::from(target.as_fd().as_raw_fd()),
            offset,
            bytes_deduped: 0,
            status: 0,
            reserved: 0,
        },
    };
    // SAFETY: the opcode takes a pointer to a `file_dedupe_range` followed by
    // `dest_count` (here 1) `file_dedupe_range_info`, which `DedupeRequest` is, and
    // writes only inside it. Both descriptors are borrowed for the whole call.
    unsafe {
        ioctl(
            source.as_fd(),
            Updater::<FIDEDUPERANGE, DedupeRequest>::new(&mut request),
        )?;
    }
    match request.destination.status {
        DIFFERS => Ok(Deduped::Differs),
        0 => Ok(Deduped::Bytes(request.destination.bytes_deduped)),
        errno => Err(std::io::Error::from_raw_os_error(-errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_the_kernels() {
        // FIDEDUPERANGE as linux/fs.h defines it on x86-64 and most others.
        #[cfg(target_arch = "x86_64")]
        assert_eq!(FIDEDUPERANGE, 0xC018_9436);
        assert_eq!(size_of::<DedupeHead>(), 24);
        assert_eq!(size_of::<DedupeRequest>(), 56);
    }

    #[test]
    fn pipe_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(dedupe_range(&reader, &writer, 0, 4096).is_err());
    }
}
