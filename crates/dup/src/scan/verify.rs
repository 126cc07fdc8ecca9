//! `--verify-bytes`: the members of every set compared byte for byte, so that
//! no digest has to be trusted.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use bc_pool::{Cancel, Cursor, WorkerPanic};
use bc_walk::{EntryId, Error, ErrorKind, Listing};
use rustix::io::{Errno, pread, retry_on_intr};

use super::candidates::{Candidates, Index, meta};
use super::pass::{Key, Keys, runs};
use super::{Options, Scan};

/// Bytes compared at a time.
const CHUNK: usize = 256 << 10;

/// Splits every set of equal digests into sets of equal bytes; what cannot be
/// read loses its key.
pub(super) fn compare(
    listing: &Listing,
    candidates: &Candidates,
    keys: &mut Keys,
    options: &Options,
    cancel: &Cancel,
    found: &mut Scan,
) -> Result<(), WorkerPanic> {
    let sets: Vec<Vec<Index>> = candidates
        .classes()
        .flat_map(|class| runs(&keys.keys, class.collect()))
        .collect();
    let cursor = Cursor::with_batch(sets.len(), options.workers, 1, 16);
    let verdicts = Mutex::new(Vec::new());
    bc_pool::run(options.workers.clamp(1, sets.len().max(1)), |_| {
        let mut buffers = (vec![0; CHUNK], vec![0; CHUNK]);
        while let Some(batch) = cursor.next() {
            for set in &sets[batch] {
                if cancel.is_cancelled() {
                    return;
                }
                let result = one(listing, candidates, set, &mut buffers);
                if let Ok(mut all) = verdicts.lock() {
                    all.push(result);
                }
            }
        }
    })?;
    for Verdict { apart, failed } in verdicts.into_inner().unwrap_or_default() {
        for (number, index) in apart {
            // Equal digests of different bytes: a collision, kept apart by its number.
            if let Key::Whole(key) = &mut keys.keys[index] {
                for (byte, mark) in key.iter_mut().rev().zip((number as u64).to_le_bytes()) {
                    *byte ^= mark;
                }
            }
        }
        for (index, error) in failed {
            keys.keys[index] = Key::None;
            found.errors.push(error);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Verdict {
    /// Members that differ from the first, with the number of their own set.
    apart: Vec<(usize, Index)>,
    failed: Vec<(Index, Error)>,
}

/// Compares the members of one set, each with one of every kind of content found so far.
fn one(
    listing: &Listing,
    candidates: &Candidates,
    set: &[Index],
    buffers: &mut (Vec<u8>, Vec<u8>),
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut kinds: Vec<(EntryId, OwnedFd)> = Vec::new();
    for &index in set {
        let entry = candidates.entry(index);
        match sort_in(listing, entry, &mut kinds, buffers) {
            Ok(0) => {}
            Ok(number) => verdict.apart.push((number, index)),
            Err(error) => verdict.failed.push((index, error)),
        }
    }
    verdict
}

/// Number of the kind of content that `entry` has; a new one is added.
fn sort_in(
    listing: &Listing,
    entry: EntryId,
    kinds: &mut Vec<(EntryId, OwnedFd)>,
    buffers: &mut (Vec<u8>, Vec<u8>),
) -> Result<usize, Error> {
    let (file, stat) = bc_read::open_checked(listing, entry)?;
    if stat.stamp != meta(listing, entry).stamp {
        return Err(Error::of_kind(
            listing.path(entry),
            "read",
            ErrorKind::Changed,
        ));
    }
    for (number, (_, other)) in kinds.iter().enumerate() {
        let same = equal(&file, other, buffers)
            .map_err(|errno| Error::new(listing.path(entry), "read", errno))?;
        if same {
            return Ok(number);
        }
    }
    kinds.push((entry, file));
    Ok(kinds.len() - 1)
}

/// Do two files of one size hold the same bytes?
fn equal(a: &OwnedFd, b: &OwnedFd, buffers: &mut (Vec<u8>, Vec<u8>)) -> Result<bool, Errno> {
    let mut offset = 0;
    loop {
        let n = fill(a, &mut buffers.0, offset)?;
        let m = fill(b, &mut buffers.1, offset)?;
        if n != m || buffers.0[..n] != buffers.1[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
        offset += n as u64;
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match retry_on_intr(|| pread(file, &mut buffer[filled..], offset + filled as u64))? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}
