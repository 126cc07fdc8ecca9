//! Read buffers, cut from anonymous mappings on first use, reused until the pump ends.
#![allow(unsafe_code)] // mmap, and slices of what it returned

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Granularity of buffers.
const PAGE: usize = 4096;
/// Buffers are cut from mappings of about this size: a mapping for each cost ten small files 5 %.
const CHUNK: usize = 256 << 10;
/// Bytes between one buffer and the next: an odd number of cache lines. The lanes' buffers would
/// otherwise all begin in the same set of the first-level cache, which has fewer ways (8 to 12)
/// than there are lanes; that costs 2 to 3 % of the time of a tree.
const STAGGER: usize = 5 * 64;

/// One anonymous mapping: zero, and without physical memory until touched,
/// which a calloc of that alignment would not be.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a Mapping is an address and a length, and has no access to what is there.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(len: usize) -> Result<Mapping, Errno> {
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
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, is unmapped once, and the last buffer
        // in it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A part of a mapping that nothing else refers to.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// Keeps it mapped.
    _mapping: Arc<Mapping>,
}

// SAFETY: a Buffer owns its part of the mapping exclusively, as a Box<[u8]> would.
unsafe impl Send for Buffer {}
// SAFETY: shared access only hands out `&[u8]`.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Makes a buffer of `len` bytes in a mapping of its own, rounded up to whole pages, at least
    /// one.
    pub(crate) fn new(len: usize) -> Result<Buffer, Errno> {
        let len = len
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or(Errno::NOMEM)?;
        Chunk::new(len, 1)?.cut(len).ok_or(Errno::NOMEM)
    }

    /// Returns its address, for the kernel to write to while the ring owns it.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// Rest of a mapping that buffers of one size are cut from.
#[derive(Debug)]
struct Chunk {
    mapping: Arc<Mapping>,
    /// Offset of the next buffer.
    next: usize,
}

impl Chunk {
    /// Maps room for up to `most` buffers of `size` bytes, at least one.
    fn new(size: usize, most: usize) -> Result<Chunk, Errno> {
        let count = (CHUNK / size).clamp(1, most.max(1));
        let len = size
            .checked_add(STAGGER)
            .and_then(|stride| stride.checked_mul(count))
            .and_then(|len| len.checked_next_multiple_of(PAGE))
            .ok_or(Errno::NOMEM)?;
        let mapping = Arc::new(Mapping::new(len)?);
        Ok(Chunk { mapping, next: 0 })
    }

    /// Cuts off the next buffer of `size` bytes, if there is room for it.
    fn cut(&mut self, size: usize) -> Option<Buffer> {
        let end = self.next.checked_add(size)?;
        if end > self.mapping.len {
            return None;
        }
        // SAFETY: the offset is inside the mapping, as its end is.
        let start = unsafe { self.mapping.start.add(self.next) };
        self.next = end + STAGGER;
        Some(Buffer {
            start,
            len: size,
            _mapping: Arc::clone(&self.mapping),
        })
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised (zero or written) bytes as long as the
        // mapping lives, which self holds; buffers do not overlap, and nothing is written through
        // `&self`: a buffer the kernel writes to is owned by the ring until its completion.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// The buffers of one worker, in classes of ascending size, each limited in
/// number and mapped when first needed. Last in, first out: a buffer just given
/// back is the one still in the cache.
#[derive(Debug)]
pub(crate) struct Pool {
    classes: Vec<BufferClass>,
}

#[derive(Debug)]
struct BufferClass {
    size: usize,
    /// Number of buffers that may still be made.
    left: usize,
    free: Vec<Buffer>,
    chunk: Option<Chunk>,
}

impl BufferClass {
    fn make(&mut self) -> Result<Buffer, Errno> {
        loop {
            if let Some(buffer) = self.chunk.as_mut().and_then(|chunk| chunk.cut(self.size)) {
                self.left -= 1;
                return Ok(buffer);
            }
            self.chunk = Some(Chunk::new(self.size, self.left)?);
        }
    }
}

impl Pool {
    /// Makes a pool of classes `(number, bytes)` in ascending order of bytes, at least one.
    pub(crate) fn new(classes: &[(usize, usize)]) -> Pool {
        let classes: Vec<BufferClass> = classes
            .iter()
            .map(|&(left, size)| BufferClass {
                size: size.max(1).next_multiple_of(PAGE),
                left,
                free: Vec::with_capacity(left),
                chunk: None,
            })
            .collect();
        debug_assert!(!classes.is_empty() && classes.is_sorted_by(|a, b| a.size < b.size));
        Pool { classes }
    }

    /// Returns the bytes of a buffer of the largest class.
    pub(crate) fn largest(&self) -> usize {
        self.classes.last().map_or(PAGE, |class| class.size)
    }

    /// Takes the smallest buffer left that holds `size` bytes, or else one of the largest class.
    /// `None`: those are all taken.
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
                return class.make().map(Some);
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
    fn buffers_are_apart_zero_and_writable_to_the_last_byte() {
        for size in [1, PAGE, 16 << 10, 128 << 10, 2 * CHUNK] {
            let mut pool = Pool::new(&[(40, size)]);
            let mut buffers: Vec<Buffer> = std::iter::from_fn(|| pool.take(1).unwrap()).collect();
            assert_eq!(buffers.len(), 40);
            for (at, buffer) in buffers.iter_mut().enumerate() {
                assert!(buffer.len() >= size && buffer.len().is_multiple_of(PAGE));
                assert_eq!(buffer.as_ptr().align_offset(64), 0);
                assert!(buffer.iter().all(|&byte| byte == 0));
                buffer.fill(at as u8);
            }
            for (at, buffer) in buffers.iter().enumerate() {
                assert!(buffer.iter().all(|&byte| byte == at as u8));
            }
            // A buffer outlives its pool: the ring may hold it longer.
            drop(pool);
            let last = buffers.pop().unwrap();
            drop(buffers);
            assert_eq!(last.last(), Some(&39));
        }
        assert!(Buffer::new(usize::MAX - 1).is_err());
        assert_eq!(Buffer::new(0).unwrap().len(), PAGE);
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
