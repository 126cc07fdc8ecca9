//! A few large files: where there are fewer files left than threads, several of them work on one
//! file, reading ahead of the hasher or hashing parts of a tree.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use bc_digest::{Algorithm, Digest, Hasher, blake3_tree};
use bc_pool::Cancel;
use bc_read::{Changed, HUGE, Plan, ReadStats};
use bc_walk::{DirFdCache, EntryId, Error, ErrorKind, FileStat, Listing};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::options::{HashOptions, HashProgress};

/// Bytes of a BLAKE3 subtree hashed as one piece; a power of two. It stays in the second-level cache
/// of the core that reads and hashes it: 1 MiB, all of that cache on an AMD EPYC (Zen 5), takes 1 to
/// 2 % longer, on an Intel Xeon (2 MiB) 1 %; 2 MiB take half as long again.
///
/// Files are read, not mapped. A file that is cut short while it is mapped kills the process, unless
/// a handler catches the signal for all of it. Nor is a mapping faster everywhere: 1 GiB, cached, two
/// threads, read and mapped: 0.12 s and 0.17 s on the EPYC, where `b3sum` takes 0.18 s; 0.18 s and
/// 0.17 s (`b3sum`) on the Xeon.
const SUBTREE: usize = 512 << 10;

/// Pieces for each thread below which some would wait for the last ones too long.
const PIECES: u64 = 4;

/// Threads that one stream can use: with more readers than these, they wait for the hasher, or for
/// memory.
const READERS: usize = 4;

/// A file that may deserve several threads, and the other work that there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Its bytes.
    pub(crate) size: u64,
    /// Files that no worker has begun, and that may be as large.
    pub(crate) left: usize,
    /// Huge files that others are reading.
    pub(crate) others: usize,
}

impl Work {
    /// Returns the number of threads that the file is worth, which would have nothing else to do; 1
    /// for its place among the lanes.
    pub(crate) fn threads(&self, options: &HashOptions) -> usize {
        let files = self.left + self.others + 1;
        let threads = if self.takes_all(options) {
            options.workers / (self.others + 1)
        } else if is_tree(options) {
            options.workers / files
        } else {
            (options.workers / files).min(READERS)
        };
        // Together no more memory than the lanes of all workers may take.
        let lanes = options.workers * options.read.slots * options.read.slot_size;
        let each = if is_tree(options) {
            SUBTREE
        } else {
            bc_read::STREAM_MEMORY
        };
        threads.min(lanes / files / each).max(1)
    }

    /// True if the large files that are left are best hashed one after the other, by all threads
    /// each: there are fewer than threads, and each can be cut into enough pieces.
    pub(crate) fn takes_all(&self, options: &HashOptions) -> bool {
        is_tree(options)
            && self.left + self.others + 1 < options.workers
            && self.size / SUBTREE as u64 >= PIECES * options.workers as u64
    }
}

/// True if parts of a file can be hashed separately.
fn is_tree(options: &HashOptions) -> bool {
    options.algorithms == [Algorithm::Blake3]
}

/// Greatest number of files left at which their sizes are looked up when a large one is met.
const FEW: usize = 64;

/// Returns the number of files left that are as large as may be worth several threads, as far as
/// that can be known; counted up to `enough`.
pub(crate) fn left(listing: &Listing, plan: &Plan, enough: usize) -> usize {
    let left = plan.left();
    if left > FEW.max(enough) {
        return left;
    }
    sizes(listing, plan.left_entries().into_iter())
        .filter(|(_, size)| *size >= HUGE)
        .take(enough)
        .count()
}

/// Number of files up to which sizes are looked up.
const LOOKED_AT: usize = 512;

/// Returns the bytes of these entries together if the listing has few, for a display of progress:
/// nothing else needs them, and they cost a call for each.
pub fn bytes_if_few(listing: &Listing, entries: impl IntoIterator<Item = EntryId>) -> Option<u64> {
    let sizes = || sizes(listing, entries.into_iter()).map(|(_, size)| size);
    (listing.len() <= LOOKED_AT).then(|| sizes().sum())
}

/// Returns the sizes of those entries that can be looked up; the others are the pump's to report.
fn sizes(
    listing: &Listing,
    entries: impl Iterator<Item = EntryId>,
) -> impl Iterator<Item = (EntryId, u64)> {
    let mut dirs = DirFdCache::new(listing);
    entries.filter_map(move |entry| {
        if let Some(size) = listing.size(entry) {
            return Some((entry, size));
        }
        let dir = dirs.open(listing.dir(entry)).ok()?;
        let flags = if listing.follow(entry) {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        let stat = statat(dir, listing.name(entry), flags).ok()?;
        Some((entry, u64::try_from(stat.st_size).unwrap_or(0)))
    })
}

/// Context for hashing files outside the lanes, and the counts of those that were.
pub(crate) struct Alone<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) options: &'a HashOptions,
    pub(crate) cancel: &'a Cancel,
    pub(crate) done: ReadStats,
    /// Greatest number of threads that worked on one file.
    pub(crate) threads: usize,
}

impl<'a> Alone<'a> {
    pub(crate) fn new(
        listing: &'a Listing,
        options: &'a HashOptions,
        cancel: &'a Cancel,
    ) -> Alone<'a> {
        Alone {
            listing,
            options,
            cancel,
            done: ReadStats::default(),
            threads: 1,
        }
    }
}

/// Hashes one file, opened and found in the state `stat`, with several threads.
pub(crate) fn hash(
    file: &OwnedFd,
    stat: FileStat,
    entry: EntryId,
    alone: &Alone<'_>,
    threads: usize,
    progress: &HashProgress,
) -> Result<(FileStat, Vec<Digest>), Error> {
    let Alone {
        listing,
        options,
        cancel,
        ..
    } = alone;
    let path = || listing.path(entry);
    let named = |error: Error| match error.errno() {
        Some(errno) => Error::new(path(), error.op(), Errno::from_raw_os_error(errno)),
        None => Error::of_kind(path(), error.op(), error.kind()),
    };
    let refuses = options.read.changed == Changed::Refuse;
    let fresh = refuses && bc_read::is_fresh(&stat.stamp);
    let counted = AtomicU64::new(0);
    let count = |bytes: u64| {
        counted.fetch_add(bytes, Ordering::Relaxed);
        progress.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    let read = |stat: &FileStat, go_on: &(dyn Fn() -> bool + Sync)| {
        // Bytes of a reading that was of no use, and begins again.
        let void = counted.swap(0, Ordering::Relaxed);
        progress.bytes.fetch_sub(void, Ordering::Relaxed);
        let (digests, read) = digests(file, stat, options, threads, cancel, &count, go_on)?;
        if refuses {
            if read != stat.stamp.size {
                return Err(Error::of_kind(path(), "read", ErrorKind::Changed));
            }
            bc_read::unchanged(file, stat)?;
        }
        Ok(digests)
    };
    let hashed = if fresh {
        bc_read::read_fresh(file, cancel, read)
    } else {
        read(&stat, &|| true).map(|digests| (stat, digests))
    };
    let (stat, digests) = hashed.map_err(named)?;
    progress.files.fetch_add(1, Ordering::Relaxed);
    Ok((stat, digests))
}

/// Returns the digests of the bytes that `stat` promises, and their number; `counted` is called
/// with each piece. Stops with kind `Changed` once `go_on`, called after each piece, returns false.
fn digests(
    file: &OwnedFd,
    stat: &FileStat,
    options: &HashOptions,
    threads: usize,
    cancel: &Cancel,
    counted: &(dyn Fn(u64) + Sync),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<Digest>, u64), Error> {
    let size = stat.stamp.size;
    let stop = Cancel::new();
    let count = |bytes: &[u8]| {
        counted(bytes.len() as u64);
        options.read.pay_while(bytes.len() as u64, cancel, go_on);
        if cancel.is_cancelled() || !go_on() {
            stop.cancel(1);
        }
    };
    let stopped = |error: Error| match error.kind() {
        ErrorKind::Cancelled if !cancel.is_cancelled() => {
            Error::of_kind(Vec::new(), "read", ErrorKind::Changed)
        }
        _ => error,
    };
    if is_tree(options) {
        let subtree = |offset, bytes: &[u8]| {
            count(bytes);
            blake3_tree::subtree(offset, bytes)
        };
        let parts = bc_read::map_chunks(file, 0..size, SUBTREE, threads, &stop, subtree)
            .map_err(stopped)?;
        return Ok((vec![blake3_tree::root(&parts)], size));
    }
    let mut hashers: Vec<Hasher> = options.algorithms.iter().map(|a| Hasher::new(*a)).collect();
    let read = bc_read::stream(file, size, threads, &stop, |bytes| {
        for hasher in &mut hashers {
            hasher.update(bytes);
        }
        count(bytes);
    })
    .map_err(stopped)?;
    Ok((hashers.iter().map(Hasher::finalize).collect(), read))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the threads for a file of so many MiB beside others, with so many workers.
    fn threads(
        algorithm: Algorithm,
        mib: u64,
        left: usize,
        others: usize,
        workers: usize,
    ) -> usize {
        let options = HashOptions {
            workers,
            ..HashOptions::new(vec![algorithm])
        };
        let size = mib << 20;
        Work { size, left, others }.threads(&options)
    }

    #[test]
    fn threads_that_have_nothing_else_to_do_help() {
        let sha = |left, others, workers| threads(Algorithm::Sha256, 200, left, others, workers);
        assert_eq!(
            [1, 2, 3, 64].map(|workers| sha(0, 0, workers)),
            [1, 2, 3, 4]
        );
        assert_eq!(sha(5, 0, 4), 1, "six files are for the lanes of four");
        assert_eq!([sha(2, 3, 12), sha(2, 3, 11)], [2, 1]);
    }

    #[test]
    fn trees_are_hashed_one_after_the_other_while_they_are_few() {
        let tree =
            |mib, left, others, workers| threads(Algorithm::Blake3, mib, left, others, workers);
        assert_eq!(tree(1000, 2, 0, 4), 4);
        assert_eq!(tree(1000, 0, 1, 4), 2, "another is being read");
        assert_eq!(tree(1000, 3, 0, 4), 1, "one for each");
        assert_eq!(tree(20, 59, 0, 64), 1, "too small for 64 pieces at once");
        assert_eq!(tree(20, 3, 0, 64), 16);
    }

    #[test]
    fn memory_is_that_of_the_lanes() {
        let mut options = HashOptions::new(vec![Algorithm::Sha256]);
        options.workers = 4;
        (options.read.slots, options.read.slot_size) = (40, 16 << 10);
        let work = Work {
            size: 1 << 30,
            left: 0,
            others: 0,
        };
        assert_eq!(work.threads(&options), 1);
        options.read.slot_size = 64 << 10;
        assert_eq!(work.threads(&options), 4);
    }
}
