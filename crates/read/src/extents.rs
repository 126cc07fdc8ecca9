//! `FIEMAP`: places of a file's blocks on its disk, and which of them other files share.

#![allow(unsafe_code)]

mod btrfs;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of `linux/fiemap.h`, without its open-ended tail.
#[repr(C)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

/// Extents asked for at a time: 7 KiB of stack.
const AT_ONCE: usize = 128;

#[repr(C)]
struct Request {
    head: Head,
    extents: [Raw; AT_ONCE],
}

/// The size in the number is that of the header alone.
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<Head>(b'f', 11);

/// `FIEMAP_FLAG_SYNC`.
const SYNC: u32 = 0x0001;

/// `FIEMAP_EXTENT_*` of `linux/fiemap.h`.
const LAST: u32 = 0x0001;
const UNKNOWN: u32 = 0x0002;
const DELALLOC: u32 = 0x0004;
const ENCODED: u32 = 0x0008;
const INLINE: u32 = 0x0200;
const MERGED: u32 = 0x1000;
const SHARED: u32 = 0x2000;

/// Treatment of content that is not on the disk yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dirty {
    /// Return the extents of the rest.
    Leave,
    /// Write it first, and wait for that.
    WriteOut,
}

/// One run of a file's bytes on its device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device; `None` where it has no place of its own yet
    /// (not written out, or kept inside the inode).
    pub physical: Option<u64>,
    /// Bytes of the file.
    pub length: u64,
    /// True if another file uses the same blocks.
    pub shared: bool,
    flags: u32,
}

impl Extent {
    /// True if the bytes are stored in the metadata, and take no block.
    pub(crate) fn is_inline(&self) -> bool {
        self.flags & INLINE != 0
    }

    /// True if the blocks hold the bytes in another form, compressed say: they may be fewer, and
    /// this run may be any part of their content.
    pub fn is_encoded(&self) -> bool {
        self.flags & ENCODED != 0
    }

    /// True if the blocks at its place hold its bytes as they are, from the first on.
    pub(crate) fn is_plain(&self) -> bool {
        self.flags & !(MERGED | SHARED) == 0 && self.physical.is_some()
    }
}

/// Returns the number of bytes of a Btrfs disk that each extent of the file with this inode number
/// takes, by its place: for encoded ones this differs from [`Extent::length`].
///
/// # Errors
/// `EPERM` for any user but root; `ENOTTY` on other file systems.
pub(crate) fn lengths_on_disk(file: impl AsFd, ino: u64) -> io::Result<BTreeMap<u64, u64>> {
    Ok(btrfs::on_disk(file, ino)?)
}

/// Returns the file's extents in order.
///
/// # Errors
/// Errors of `ioctl(FS_IOC_FIEMAP)`: `EOPNOTSUPP` where the file system cannot report extents.
pub fn extents(file: impl AsFd, dirty: Dirty) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut flags = match dirty {
        Dirty::Leave => 0,
        Dirty::WriteOut => SYNC,
    };
    loop {
        let request = mapped(file.as_fd(), start, std::mem::take(&mut flags))?;
        let mapped = request.found();
        found.extend(mapped.iter().map(Raw::extent));
        match mapped.last() {
            Some(last) if last.flags & LAST == 0 && last.length > 0 => {
                start = last.logical + last.length;
            }
            _ => return Ok(found),
        }
    }
}

/// Returns the place of the file's first bytes on its device; `None` where they have none.
///
/// # Errors
/// As of [`extents`].
pub(crate) fn first_place(file: impl AsFd) -> io::Result<Option<u64>> {
    let request = mapped(file.as_fd(), 0, 0)?;
    let mut extents = request.found().iter().map(Raw::extent);
    Ok(extents.find_map(|extent| extent.physical))
}

impl Raw {
    fn extent(&self) -> Extent {
        Extent {
            logical: self.logical,
            physical: (self.flags & (UNKNOWN | DELALLOC | INLINE) == 0).then_some(self.physical),
            length: self.length,
            shared: self.flags & SHARED != 0,
            flags: self.flags & !LAST,
        }
    }
}

impl Request {
    fn found(&self) -> &[Raw] {
        &self.extents[..(self.head.mapped as usize).min(AT_ONCE)]
    }
}

/// Asks for the extents from `start` on.
fn mapped(file: BorrowedFd<'_>, start: u64, flags: u32) -> io::Result<Request> {
    let mut request = Request {
        head: Head {
            start,
            length: u64::MAX - start,
            flags,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
        },
        extents: [Raw {
            logical: 0,
            physical: 0,
            length: 0,
            reserved64: [0; 2],
            flags: 0,
            reserved: [0; 3],
        }; AT_ONCE],
    };
    // SAFETY: the opcode takes a pointer to a `fiemap` followed by room for `fm_extent_count`
    // extents, which `Request` is, and writes only there.
    unsafe {
        ioctl(file, Updater::<FS_IOC_FIEMAP, Request>::new(&mut request))?;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn number_is_the_kernels() {
        #[cfg(target_arch = "x86_64")]
        assert_eq!(FS_IOC_FIEMAP, 0xC020_660B);
        assert_eq!(size_of::<Head>(), 32);
        assert_eq!(size_of::<Raw>(), 56);
    }

    #[test]
    fn extents_cover_the_written_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        file.sync_all().unwrap();
        match extents(&file, Dirty::Leave) {
            Ok(found) => {
                let length: u64 = found.iter().map(|extent| extent.length).sum();
                assert!(length >= 10_000, "{found:?}");
                assert_eq!(found[0].logical, 0);
                assert_eq!(first_place(&file).unwrap(), found[0].physical);
            }
            // tmpfs and others have none.
            Err(error) => {
                use rustix::io::Errno;
                let none = [Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS];
                let errno = Errno::from_io_error(&error);
                assert!(errno.is_some_and(|errno| none.contains(&errno)), "{error}");
            }
        }
    }
}
