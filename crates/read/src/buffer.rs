//! Page-aligned read buffers, mapped on first use, reused until the pump ends.
#![allow(unsafe_code)] // mmap, and slices of what it returned

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Alignment and granularity of buffers.
const PAGE: usize = 4096;

/// One anonymous mapping: page aligned, zero, and without physical memory
/// until touched, which a calloc of that alignment would not be.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a Buffer owns its mapping exclusively, as a Box<[u8]> would.
unsafe impl Send for Buffer {}
// SAFETY: shared access only hands out `&[u8]`.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` bytes, rounded up to whole pages, at least one.
    pub(crate) fn new(len: usize) -> Result<Buffer, Errno> {
        let len = len
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or(Errno::NOMEM)?;
        // SAFETY: a fresh private anonymous mapping at an address of the
        // kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Buffer { start, len })
    }

    /// Where it starts, for the kernel to write to while the ring owns it.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised (zero or written)
        // bytes as long as self lives, and nobody writes through `&self`: a
        // buffer the kernel writes to is owned by the ring until its completion.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, is unmapped once, and no slice of it
        // can outlive self.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The buffers of one worker, in classes of ascending size, each limited in
/// number and mapped when first needed. Last in, first out: a buffer just given
/// back is the one still in the cache.
#[derive(Debug)]
pub(crate) struct Pool {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    size: usize,
    /// How many more may be made.
    left: usize,
    free: Vec<Buffer>,
}

impl Pool {
    /// A pool of classes `(number, bytes)` in ascending order of bytes, at
    /// least one.
    pub(crate) fn new(classes: &[(usize, usize)]) -> Pool {
        let classes: Vec<Class> = classes
            .iter()
            .map(|&(left, size)| Class {
                size: size.max(1).next_multiple_of(PAGE),
                left,
                free: Vec::with_capacity(left),
            })
            .collect();
        debug_assert!(!classes.is_empty() && classes.is_sorted_by(|a, b| a.size < b.size));
        Pool { classes }
    }

    /// Bytes of a buffer of the largest class.
    pub(crate) fn largest(&self) -> usize {
        self.classes.last().map_or(PAGE, |class| class.size)
    }

    /// The smallest buffer left that holds `size` bytes, or else one of the
    /// largest class. `None`: those are all taken.
    pub(crate) fn take(&mut self, size: u64) -> Result<Option<Buffer>, Errno> {
        let last = self.classes.len() - 1;
        for (at, class) in self.classes.iter_mut().enumerate() {
            if at < last && size > class.size as u64 {
                continue;
            }
            if let Some(buffer) = class.free.pop() {
                return Ok(Some(buffer));
            }
            if class.left > 0 {
                let buffer = Buffer::new(class.size)?;
                class.left -= 1;
                return Ok(Some(buffer));
            }
        }
        Ok(None)
    }

    /// Gives a buffer back.
    pub(crate) fn put(&mut self, buffer: Buffer) {
        if let Some(class) = self
            .classes
            .iter_mut()
            .find(|class| class.size == buffer.len())
        {
            class.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zero_and_writable_to_the_last_byte() {
        for len in [0, 1, PAGE, PAGE + 1, 128 << 10] {
            let mut buffer = Buffer::new(len).unwrap();
            assert!(buffer.len() >= len.max(1) && buffer.len().is_multiple_of(PAGE));
            assert_eq!(buffer.as_ptr().align_offset(PAGE), 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(0xa5);
            assert_eq!(buffer.last(), Some(&0xa5));
        }
        assert!(Buffer::new(usize::MAX - 1).is_err());
    }

    #[test]
    fn the_pool_is_bounded_and_hands_the_hottest_buffer_out_first() {
        let mut pool = Pool::new(&[(2, PAGE), (1, 4 * PAGE)]);
        assert_eq!(pool.largest(), 4 * PAGE);
        let first = pool.take(0).unwrap().unwrap();
        let second = pool.take(PAGE as u64).unwrap().unwrap();
        assert_eq!((first.len(), second.len()), (PAGE, PAGE));
        let big = pool.take(PAGE as u64 + 1).unwrap().unwrap();
        assert_eq!(big.len(), 4 * PAGE);
        assert!(pool.take(u64::MAX).unwrap().is_none());
        assert!(pool.take(1).unwrap().is_none());
        let address = second.as_ptr();
        pool.put(big);
        pool.put(second);
        assert_eq!(pool.take(7).unwrap().unwrap().as_ptr(), address);
        // Small ones exhausted: a big one serves a small file too.
        assert_eq!(pool.take(7).unwrap().unwrap().len(), 4 * PAGE);
    }
}
