//! Allocator: decides which blocks are in files, and moves and frees them.
#![allow(unsafe_code)] // GlobalAlloc

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use rustix::io::Errno;

use super::block::Block;
use super::{SPILL, Spill, SpillFailure};

/// Bytes from which on a block is counted, and may be in a file. Data about files is in arrays that
/// outgrow this soon; smaller blocks are few, and a file and a mapping of its own would cost more
/// than they save.
pub const LARGE: usize = 64 << 10;

/// The system's allocator, but for large blocks beyond the budget of [`begin`](super::begin).
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

// SAFETY: every block comes from the system's allocator, with the layout asked for, or is a mapping
// of at least as many bytes, aligned to a page, which no layout asked for here exceeds; and each
// goes back where it came from, by the table of mappings. Nothing here panics or allocates large
// blocks itself.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(block) = beyond_budget(layout)
        {
            return block;
        }
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(block) = beyond_budget(layout)
        {
            return block;
        }
        // SAFETY: as the caller vouches.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if layout.size() >= LARGE
            && let Some(spill) = SPILL.get()
            && let Freed::Mapping = release(spill, start, layout.size())
        {
            return;
        }
        // SAFETY: as the caller vouches; it is no mapping, so it came from there.
        unsafe { System.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        if layout.size().max(new) >= LARGE
            && let Some(spill) = SPILL.get()
        {
            // SAFETY: as the caller vouches.
            return unsafe { change(spill, start, layout, new) };
        }
        // SAFETY: as the caller vouches; before a budget is set there are no mappings.
        unsafe { System.realloc(start, layout, new) }
    }
}

/// Allocates a block of zeros in a file, if a budget was set that has no room for it. Otherwise it
/// is counted as kept in memory.
#[cold]
fn beyond_budget(layout: Layout) -> Option<*mut u8> {
    let spill = SPILL.get()?;
    if spill.keep(layout.size()) {
        return None;
    }
    match in_file(spill, layout) {
        Ok(start) => Some(start),
        Err(failed) => {
            spill.fail(&failed);
            spill.keep_anyway(layout.size());
            None
        }
    }
}

fn in_file(spill: &Spill, layout: Layout) -> Result<*mut u8, SpillFailure> {
    let unfit = SpillFailure::at("map");
    if layout.align() > rustix::param::page_size() {
        return Err(unfit(Errno::INVAL));
    }
    // The reasons are given in its stead.
    let directory = spill.directory.as_ref().map_err(|_| unfit(Errno::NOENT))?;
    let place = Place::free().ok_or(unfit(Errno::MFILE))?;
    match Block::new(directory, layout.size()) {
        Ok(block) => {
            spill.count(block.len());
            place.put(&block);
            Ok(block.start().as_ptr())
        }
        Err(failed) => {
            place.clear();
            Err(failed)
        }
    }
}

enum Freed {
    Mapping,
    /// Still to be given back to the system's allocator.
    NotYet,
}

/// Counts a large block out, and frees it if it is a mapping.
#[cold]
fn release(spill: &Spill, start: *mut u8, size: usize) -> Freed {
    let Some((place, block)) = Place::of(start) else {
        spill.unkeep(size);
        return Freed::NotYet;
    };
    spill.uncount(block.len());
    // Before its address can be given to another.
    place.clear();
    // SAFETY: the caller that frees a block has the only reference to it, and its entry is cleared.
    unsafe { block.free() };
    Freed::Mapping
}

/// Does `realloc` where old or new size is large.
///
/// # Safety
/// As for [`GlobalAlloc::realloc`].
#[cold]
unsafe fn change(spill: &Spill, start: *mut u8, layout: Layout, new: usize) -> *mut u8 {
    let old = layout.size();
    // SAFETY: the size is not 0, as the caller vouches, and nor does it overflow.
    let wanted = unsafe { Layout::from_size_align_unchecked(new, layout.align()) };
    let mapped = match old >= LARGE {
        true => Place::of(start),
        false => None,
    };
    if let Some((place, mut block)) = mapped {
        let before = block.len();
        if new >= LARGE {
            // Its address may be another block's as soon as it moves.
            place.withhold();
            // SAFETY: the block is the caller's, which gives it up.
            let resized = unsafe { block.resize(new) };
            place.put(&block);
            match resized {
                Ok(()) => {
                    spill.count(block.len());
                    spill.uncount(before);
                    return block.start().as_ptr();
                }
                Err(failed) => {
                    spill.fail(&failed);
                    spill.keep_anyway(new);
                }
            }
        }
        // SAFETY: its size is not 0.
        let other = unsafe { System.alloc(wanted) };
        // SAFETY: both are at least so long and do not overlap; the old block is the caller's.
        return unsafe { moved(spill, start, layout, other, new) };
    }
    let counted = if old >= LARGE { old } else { 0 };
    if new > old {
        if !spill.keep(new - counted) {
            match in_file(spill, wanted) {
                // SAFETY: both are at least `old` bytes long and do not overlap; the old block is
                // the caller's, who gives it up.
                Ok(other) => return unsafe { moved(spill, start, layout, other, new) },
                Err(failed) => {
                    spill.fail(&failed);
                    spill.keep_anyway(new - counted);
                }
            }
        }
    } else {
        spill.unkeep(old - if new >= LARGE { new } else { 0 });
    }
    // SAFETY: as the caller vouches; it is no mapping, so it came from there.
    unsafe { System.realloc(start, layout, new) }
}

/// Copies a block to another one of `new` bytes, if that could be allocated, and frees it.
///
/// # Safety
/// `start` is a block of this allocator with this layout that nothing refers to, `other` is null
/// or a block of `new` bytes.
unsafe fn moved(
    spill: &Spill,
    start: *mut u8,
    layout: Layout,
    other: *mut u8,
    new: usize,
) -> *mut u8 {
    if other.is_null() {
        return other;
    }
    // SAFETY: both blocks have so many bytes and are different ones.
    unsafe { std::ptr::copy_nonoverlapping(start, other, layout.size().min(new)) };
    if layout.size() >= LARGE
        && let Freed::Mapping = release(spill, start, layout.size())
    {
        return other;
    }
    // SAFETY: it is no mapping, so it came from there.
    unsafe { System.dealloc(start, layout) };
    other
}

/// Entry of the table of mappings.
struct Place {
    /// Address of the mapping. Null: free. [`TAKEN`]: taken by a thread that has no mapping yet.
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    file: AtomicI32,
}

/// Mark of a taken entry: not the address of any mapping.
const TAKEN: *mut u8 = std::ptr::without_provenance_mut(1);

/// Entries for more large arrays than exist at any time: some ten for each of 64 workers.
static PLACES: [Place; 1024] = [const { Place::new() }; 1024];

/// Number of entries, from the first on, that were used at some time.
static USED: AtomicUsize = AtomicUsize::new(0);

impl Place {
    const fn new() -> Place {
        Place {
            start: AtomicPtr::new(std::ptr::null_mut()),
            len: AtomicUsize::new(0),
            file: AtomicI32::new(-1),
        }
    }

    /// Takes a free entry; `None` if all are taken.
    fn free() -> Option<&'static Place> {
        let order = Ordering::Relaxed;
        let take = |place: &Place| {
            let (free, taken) = (std::ptr::null_mut(), TAKEN);
            place.start.compare_exchange(free, taken, order, order)
        };
        let at = PLACES.iter().position(|place| take(place).is_ok())?;
        USED.fetch_max(at + 1, Ordering::Release);
        Some(&PLACES[at])
    }

    /// Returns the entry of the mapping that begins there, and its block. Only the block's owner
    /// asks, and the thread that gave the block to the owner has published this as well.
    fn of(start: *mut u8) -> Option<(&'static Place, Block)> {
        let used = &PLACES[..USED.load(Ordering::Acquire)];
        let place = used
            .iter()
            .find(|place| place.start.load(Ordering::Acquire) == start)?;
        let len = place.len.load(Ordering::Relaxed);
        let file = place.file.load(Ordering::Relaxed);
        Some((place, Block::from_parts(NonNull::new(start)?, len, file)))
    }

    fn put(&self, block: &Block) {
        self.len.store(block.len(), Ordering::Relaxed);
        self.file.store(block.file(), Ordering::Relaxed);
        self.start.store(block.start().as_ptr(), Ordering::Release);
    }

    /// Keeps the entry taken, but without a mapping.
    fn withhold(&self) {
        self.start.store(TAKEN, Ordering::Release);
    }

    fn clear(&self) {
        self.start.store(std::ptr::null_mut(), Ordering::Release);
    }
}
