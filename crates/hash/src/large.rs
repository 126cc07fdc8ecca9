//! A few large files: instead of one worker a file, all workers on one file
//! after the other, reading ahead of the hasher or hashing parts of a tree.

use std::sync::atomic::Ordering;

use bc_digest::{Algorithm, Digest, Hasher, blake3_tree};
use bc_pool::Cancel;
use bc_read::{Changed, Opened};
use bc_walk::{EntryId, Error, ErrorKind, FileStat, Listing};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::engine::{Options, Progress};

/// Up to this many files are looked at one by one before the workers start:
/// with more, there is work for every worker anyway.
pub(crate) const FEW: usize = 64;

/// From this size on a file is worth several threads: below, starting them
/// takes as long as reading the file (2 MiB are some 200 µs).
const LARGE: u64 = 2 << 20;

/// Bytes of a BLAKE3 subtree hashed as one piece; a power of two.
const SUBTREE: usize = 1 << 20;

/// A file that deserves all workers, opened and found regular.
pub(crate) struct Large {
    pub(crate) entry: EntryId,
    file: std::os::fd::OwnedFd,
    stat: FileStat,
}

impl Large {
    pub(crate) fn opened(&self) -> Opened {
        Opened {
            entry: self.entry,
            stat: self.stat.clone(),
        }
    }
}

/// Up to this many files are looked at for their sizes. More deserve several
/// workers whatever their sizes; 100 of them do if they are large.
const LOOKED_AT: usize = 512;

/// Bytes of all files together if there are few of them, for the decision how
/// many workers they deserve: one 10 GB file is worth more than one.
pub fn bytes_if_few(listing: &Listing) -> Option<u64> {
    (listing.len() <= LOOKED_AT).then(|| sizes(listing, listing.ids()).map(|(_, size)| size).sum())
}

/// Sizes of those entries that can be looked up; the others are the pump's to report.
fn sizes(
    listing: &Listing,
    entries: impl Iterator<Item = EntryId>,
) -> impl Iterator<Item = (EntryId, u64)> {
    let mut last = None;
    entries.filter_map(move |entry| {
        let dir = listing.dir(entry);
        if !matches!(&last, Some((open, _)) if *open == dir) {
            last = Some((dir, listing.open_dir(dir).ok()?));
        }
        let (_, fd) = last.as_ref()?;
        let flags = if listing.follow(entry) {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        let stat = statat(fd, listing.name(entry), flags).ok()?;
        Some((entry, u64::try_from(stat.st_size).unwrap_or(0)))
    })
}

/// The large ones among a few entries, unless there are enough of them to
/// keep every worker busy with one each.
pub(crate) fn pick(listing: &Listing, entries: &[EntryId], options: &Options) -> Vec<Large> {
    if options.workers < 2 || entries.len() > FEW {
        return Vec::new();
    }
    let large: Vec<EntryId> = sizes(listing, entries.iter().copied())
        .filter(|(_, size)| *size >= LARGE)
        .map(|(entry, _)| entry)
        .collect();
    if large.len() >= options.workers {
        return Vec::new();
    }
    let open = |entry| {
        let (file, stat) = bc_read::open_checked(listing, entry).ok()?;
        Some(Large { entry, file, stat })
    };
    large.into_iter().filter_map(open).collect()
}

/// Hashes one of them.
pub(crate) fn hash(
    listing: &Listing,
    large: &Large,
    options: &Options,
    cancel: &Cancel,
    progress: &Progress,
) -> Result<(FileStat, Vec<Digest>), Error> {
    let path = || listing.path(large.entry);
    let named = |error: Error| match error.errno() {
        Some(errno) => Error::new(path(), error.op(), Errno::from_raw_os_error(errno)),
        None => Error::of_kind(path(), error.op(), error.kind()),
    };
    let refuses = options.read.changed == Changed::Refuse;
    let fresh = refuses && bc_read::is_fresh(&large.stat.stamp);
    let read = |stat: &FileStat, go_on: &(dyn Fn() -> bool + Sync)| {
        let (digests, read) = digests(large, stat, options, cancel, progress, go_on)?;
        if refuses {
            if read != stat.stamp.size {
                return Err(Error::of_kind(path(), "read", ErrorKind::Changed));
            }
            bc_read::unchanged(&large.file, stat)?;
        }
        Ok(digests)
    };
    let hashed = if fresh {
        bc_read::read_fresh(&large.file, cancel, read)
    } else {
        read(&large.stat, &|| true).map(|digests| (large.stat.clone(), digests))
    };
    let (stat, digests) = hashed.map_err(named)?;
    progress.files.fetch_add(1, Ordering::Relaxed);
    Ok((stat, digests))
}

/// Digests of the bytes that `stat` promises, and how many there were. Stops with kind `Changed`
/// when `go_on`, asked after each piece, says so.
fn digests(
    large: &Large,
    stat: &FileStat,
    options: &Options,
    cancel: &Cancel,
    progress: &Progress,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<Digest>, u64), Error> {
    let size = stat.stamp.size;
    let stop = Cancel::new();
    let count = |bytes: &[u8]| {
        let count = bytes.len() as u64;
        progress.bytes.fetch_add(count, Ordering::Relaxed);
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
    let workers = options.workers;
    if options.algorithms == [Algorithm::Blake3] {
        let subtree = |offset, bytes: &[u8]| {
            count(bytes);
            blake3_tree::subtree(offset, bytes)
        };
        let parts = bc_read::map_chunks(&large.file, 0..size, SUBTREE, workers, &stop, subtree)
            .map_err(stopped)?;
        return Ok((vec![blake3_tree::root(&parts)], size));
    }
    let mut hashers: Vec<Hasher> = options.algorithms.iter().map(|a| Hasher::new(*a)).collect();
    let read = bc_read::stream(&large.file, size, workers, &stop, |bytes| {
        for hasher in &mut hashers {
            hasher.update(bytes);
        }
        count(bytes);
    })
    .map_err(stopped)?;
    Ok((hashers.iter().map(Hasher::finalize).collect(), read))
}
