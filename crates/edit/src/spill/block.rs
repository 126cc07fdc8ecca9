//! A file mapped into memory, of which the mapping is all that is used.
#![allow(unsafe_code)] // mmap, mremap, munmap

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use rustix::fs::ftruncate;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mremap, munmap};

use super::SpillFailure;
use super::directory::{Directory, reserve};

/// A mapping and its file. Nothing happens when it is dropped: it is a name for both, which
/// [`free`](Block::free) ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    /// Bytes of the mapping and the file: whole pages.
    len: usize,
    file: RawFd,
}

impl Block {
    /// Makes a block of at least `len` bytes of zeros, which is not 0, in a file of its own.
    pub(super) fn new(directory: &Directory, len: usize) -> Result<Block, SpillFailure> {
        let len = whole_pages(len)?;
        let file = directory.file()?;
        reserve(file.as_fd(), 0, len)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing, and no
        // other process can change the file, which has no name.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let start = start.map_err(SpillFailure::at("map"))?;
        Ok(Block {
            start: NonNull::new(start.cast()).ok_or(SpillFailure::at("map")(Errno::NOMEM))?,
            len,
            file: file.into_raw_fd(),
        })
    }

    /// Restores a block from its parts.
    pub(super) fn from_parts(start: NonNull<u8>, len: usize, file: RawFd) -> Block {
        Block { start, len, file }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn file(&self) -> RawFd {
        self.file
    }

    /// Gives it another length, which is not 0, and perhaps another place. After a failure it is
    /// unchanged.
    ///
    /// # Safety
    /// The block has not been freed, and nothing refers to its content: it may move.
    pub(super) unsafe fn resize(&mut self, len: usize) -> Result<(), SpillFailure> {
        let len = whole_pages(len)?;
        if len > self.len {
            // SAFETY: the block holds the descriptor until it is freed.
            let file = unsafe { BorrowedFd::borrow_raw(self.file) };
            reserve(file, self.len, len)?;
        }
        let old = self.start.as_ptr().cast::<c_void>();
        // SAFETY: old place and length are those of our mapping, to which nothing refers.
        let moved = unsafe { mremap(old, self.len, len, MremapFlags::MAYMOVE) };
        let moved = moved.map_err(SpillFailure::at("map"))?;
        if len < self.len {
            // SAFETY: as above. What fails here only keeps room on the disk.
            let file = unsafe { BorrowedFd::borrow_raw(self.file) };
            let _ = ftruncate(file, len as u64);
        }
        self.start = NonNull::new(moved.cast()).unwrap_or(self.start);
        self.len = len;
        Ok(())
    }

    /// Frees mapping and file.
    ///
    /// # Safety
    /// Called once only, while nothing refers to its content.
    pub(super) unsafe fn free(self) {
        // SAFETY: the mapping is ours and nothing refers to it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        // SAFETY: the descriptor is ours, and this is the only time that it is closed.
        drop(unsafe { OwnedFd::from_raw_fd(self.file) });
    }
}

fn whole_pages(len: usize) -> Result<usize, SpillFailure> {
    len.checked_next_multiple_of(rustix::param::page_size())
        .ok_or(SpillFailure::at("map")(Errno::NOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<'b>(block: &Block) -> &'b mut [u8] {
        // SAFETY: of a block that the test has not freed, one slice at a time.
        unsafe { std::slice::from_raw_parts_mut(block.start().as_ptr(), block.len()) }
    }

    #[test]
    fn a_block_keeps_its_bytes_when_it_grows_and_shrinks() {
        let here = tempfile::tempdir().unwrap();
        let page = rustix::param::page_size();
        let Ok(directory) = Directory::first_of(&[here.path().into(), "/var/tmp".into()]) else {
            // All that there is here is memory.
            return;
        };
        let mut block = Block::new(&directory, 3 * page + 1).unwrap();
        assert_eq!(block.len(), 4 * page);
        assert!(bytes(&block).iter().all(|byte| *byte == 0));
        bytes(&block).fill(7);
        for (pages, kept) in [(100, 4), (2, 2), (300, 2)] {
            // SAFETY: no slice of it is left.
            unsafe { block.resize(pages * page) }.unwrap();
            let (old, new) = bytes(&block).split_at(kept * page);
            assert_eq!((old.len(), new.len()), (kept * page, (pages - kept) * page));
            assert!(old.iter().all(|byte| *byte == 7));
            assert!(new.iter().all(|byte| *byte == 0));
        }
        // SAFETY: it is not used any more.
        unsafe { block.free() };
    }
}
