//! `FIDEDUPERANGE`: asks the file system to let two files share their blocks.
//! The kernel compares the ranges under its own lock and shares only equal
//! ones, so this call cannot lose data.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use bc_fs::call::{self, call};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `struct file_dedupe_range_info` of `linux/fs.h`.
#[repr(C)]
struct Destination {
    fd: i64,
    offset: u64,
    bytes_deduped: u64,
    status: i32,
    reserved: u32,
}

/// `struct file_dedupe_range` of `linux/fs.h`, without its open-ended tail.
#[repr(C)]
struct Head {
    offset: u64,
    length: u64,
    count: u16,
    reserved1: u16,
    reserved2: u32,
}

/// The header and one destination, as the kernel lays them out.
#[repr(C)]
struct DedupeRequest {
    head: Head,
    destination: Destination,
}

/// The size in the number is that of the header alone.
const FIDEDUPERANGE: Opcode = opcode::read_write::<Head>(0x94, 54);

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
) -> call::Result<Deduped> {
    call("dedupe", || {
        let deduped = ask(source.as_fd(), target.as_fd(), offset, length);
        deduped.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })
}

fn ask(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    offset: u64,
    length: u64,
) -> io::Result<Deduped> {
    let mut request = DedupeRequest {
        head: Head {
            offset,
            length,
            count: 1,
            reserved1: 0,
            reserved2: 0,
        },
        destination: Destination {
            fd: i64::from(target.as_fd().as_raw_fd()),
            offset,
            bytes_deduped: 0,
            status: 0,
            reserved: 0,
        },
    };
    // SAFETY: the opcode takes a pointer to a `file_dedupe_range` followed by
    // `dest_count` (here 1) `file_dedupe_range_info`, which `Request` is, and
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
        errno => Err(io::Error::from_raw_os_error(-errno)),
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
        assert_eq!(size_of::<Head>(), 24);
        assert_eq!(size_of::<DedupeRequest>(), 56);
    }

    #[test]
    fn pipe_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(dedupe_range(&reader, &writer, 0, 4096).is_err());
    }
}
