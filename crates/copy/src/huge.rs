//! Huge files: blocks of one file are copied by all workers at once, and what is recorded of each
//! is what it hashes to, so that a run that goes on proves what is there by reading only that.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

use bc_digest::blake3_tree::{Subtree, root, subtree};
use bc_digest::{Algorithm, Digest};
use bc_walk::{Error, FileStat};
use rustix::fs::FallocateFlags;

use crate::data::{self, DataError, Layout, PART};
use crate::decide::read_full;
use crate::job::Job;
use crate::journal::Blocks;
use crate::place::{Open, Place};
use crate::record;
use crate::single::layout;
use crate::small::renamed;
use crate::stage::{Before, Stage};
use crate::tree::Item;
use crate::worker::Worker;

/// Files from this size on are huge.
pub(crate) const HUGE: u64 = 64 << 20;

/// Bytes of a block: what is lost of it when the process is killed.
const BLOCK: u64 = 8 * PART as u64;

/// Whether files of this job can be copied in blocks.
pub(crate) fn is_possible(job: &Job<'_>) -> bool {
    job.options.algorithm == Some(Algorithm::Blake3)
}

/// Values of a block's parts, by its number.
type Values = Vec<(u64, Vec<[u8; 32]>)>;

/// What the workers of one file share.
struct Shared<'a> {
    job: &'a Job<'a>,
    from: BorrowedFd<'a>,
    stage: &'a Stage,
    layout: &'a Layout,
    /// Whether the stage shares the blocks of its source already.
    is_clone: bool,
    /// Whether what is done is worth a record.
    recorded: bool,
    known: Option<&'a Blocks>,
    next: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<DataError>>,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Worker<'_> {
    /// Copies a huge file with all workers.
    pub(crate) fn huge(&mut self, item: Item) {
        if self.job.is_over() {
            return;
        }
        if let Err(error) = self.try_huge(item) {
            self.failed(item, &error);
        }
        self.settle();
    }

    fn try_huge(&mut self, item: Item) -> Result<(), Error> {
        let Some((mut place, open)) = self.begin(item)? else {
            return Ok(());
        };
        let stage = self.stage(&place, Some(&open.stat))?;
        self.record_stage(&place, &stage);
        let copied = self
            .fill_blocks(&place, &open, &stage)
            .and_then(|(stat, digest)| {
                self.read_back(&place, &stage, Some(digest))?;
                let wanted = self.wanted(&mut place, &open, &stat)?;
                Ok((stat, digest, wanted))
            });
        match copied {
            Ok((stat, digest, wanted)) => self.finish(place, stage, stat, &wanted, Some(digest)),
            // A later run goes on from it.
            Err(error) if self.job.is_over() && self.job.log.is_kept() => Err(error),
            Err(error) => {
                stage.remove(&place.dir);
                Err(error)
            }
        }
    }

    /// So that it is found again when its source has changed.
    fn record_stage(&self, place: &Place, stage: &Stage) {
        if place.target.len() <= record::LONGEST_PATH {
            let mut piece = Vec::new();
            record::push_stage(&mut piece, &stage.name, &place.target);
            self.job.append(&mut piece);
        }
    }

    fn fill_blocks(
        &mut self,
        place: &Place,
        open: &Open,
        stage: &Stage,
    ) -> Result<(FileStat, Digest), Error> {
        let job = self.job;
        let is_clone = self.is_shared(place, open, stage)?;
        let mut first = true;
        let mut copy = |stat: &FileStat, go_on: &(dyn Fn() -> bool + Sync)| {
            let layout = layout(job.options.sparse, open, stat);
            let known = job.known.blocks.get(&stage.name);
            // Of a second reading nothing is known.
            let again = !std::mem::take(&mut first);
            if again && !is_clone {
                // What the first one wrote may be where a hole is now.
                let emptied = data::end_at(&stage.file, 0);
                emptied.map_err(|error| self.data_error(place, error))?;
            }
            let known = known.filter(|_| !again);
            let shared = Shared {
                job,
                from: open.file.as_fd(),
                stage,
                layout: &layout,
                is_clone,
                recorded: open.settled && job.log.is_kept(),
                known,
                next: AtomicU64::new(0),
                stop: AtomicBool::new(false),
                failure: Mutex::new(None),
                go_on,
            };
            blocks(&shared).map_err(|error| self.data_error(place, error))
        };
        let copied = if bc_read::is_fresh(&open.stat.stamp) {
            bc_read::read_fresh(&open.file, job.cancel, copy)
        } else {
            copy(&open.stat, &|| !job.is_over()).and_then(|digest| {
                bc_read::unchanged(&open.file, &open.stat)?;
                Ok((open.stat.clone(), digest))
            })
        };
        copied.map_err(|error| match error.path() {
            b"" => renamed(&error, job.tree.source_path(place.item)),
            _ => error,
        })
    }
}

/// Copies all blocks and gives the digest of the whole.
fn blocks(shared: &Shared<'_>) -> Result<Digest, DataError> {
    let size = shared.layout.size;
    let done = bc_pool::run(shared.job.options.workers, |_| work(shared));
    let failure = shared
        .failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(failure) = failure {
        return Err(failure);
    }
    let Ok(done) = done else {
        return Err(DataError::Cancelled);
    };
    data::end_at(&shared.stage.file, size)?;
    let mut all: Values = done.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(block, _)| *block);
    let parts = all.into_iter().flat_map(|(_, parts)| parts);
    let parts: Vec<Subtree> = parts.map(Subtree::from_bytes).collect();
    // Fewer would be another file's digest.
    if parts.len() as u64 != size.div_ceil(PART as u64) || parts.len() < 2 {
        return Err(DataError::Changed);
    }
    Ok(root(&parts))
}

fn work(shared: &Shared<'_>) -> Values {
    let mut values = Values::new();
    let mut buffer = vec![0; PART];
    let mut piece = Vec::new();
    while !shared.stop.load(Relaxed) {
        let block = shared.next.fetch_add(1, Relaxed);
        if block * BLOCK >= shared.layout.size {
            break;
        }
        match one(shared, block, &mut buffer, &mut piece) {
            Ok(parts) => values.push((block, parts)),
            Err(error) => {
                shared.stop.store(true, Relaxed);
                let mut failure = shared
                    .failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
            }
        }
    }
    values
}

/// Copies one block, unless it is proven to be there.
fn one(
    shared: &Shared<'_>,
    block: u64,
    buffer: &mut [u8],
    piece: &mut Vec<u8>,
) -> Result<Vec<[u8; 32]>, DataError> {
    let job = shared.job;
    let begin = block * BLOCK;
    let end = (begin + BLOCK).min(shared.layout.size);
    let known = shared.known.and_then(|known| known.get(&block));
    if let Some(parts) = known.filter(|_| !shared.is_clone)
        && is_proven(shared, begin..end, parts, buffer)
    {
        job.progress.bytes.fetch_add(end - begin, Relaxed);
        return Ok(parts.clone());
    }
    let solid;
    let layout = match clear(shared, begin..end) {
        true => shared.layout,
        false => {
            solid = Layout::solid(shared.layout.size);
            &solid
        }
    };
    let mut parts = Vec::with_capacity(8);
    let mut at = begin;
    while at < end {
        if !(shared.go_on)() || job.cancel.is_cancelled() {
            return Err(DataError::Cancelled);
        }
        let part = &mut buffer[..(end - at).min(PART as u64) as usize];
        match shared.is_clone {
            // What is there is proven, not what it was made of.
            true => data::read_part(shared.stage.file.as_fd(), part, at)?,
            false => data::read_part(shared.from, part, at)?,
        }
        parts.push(subtree(at, part).to_bytes());
        if !shared.is_clone {
            layout.write(&shared.stage.file, part, at)?;
        }
        at += part.len() as u64;
        job.progress.bytes.fetch_add(part.len() as u64, Relaxed);
    }
    if !shared.is_clone {
        job.written.fetch_add(end - begin, Relaxed);
    }
    if shared.recorded && !shared.is_clone {
        record::push_block(piece, &shared.stage.name, block, &parts);
        job.append(piece);
    }
    Ok(parts)
}

/// Whether a block of the stage still is what was recorded of it.
fn is_proven(
    shared: &Shared<'_>,
    range: std::ops::Range<u64>,
    parts: &[[u8; 32]],
    buffer: &mut [u8],
) -> bool {
    let mut at = range.start;
    for expected in parts {
        let length = (range.end - at).min(PART as u64) as usize;
        let part = &mut buffer[..length];
        let whole = read_full(&shared.stage.file, part, at).is_ok_and(|count| count == length);
        if length == 0 || !whole || subtree(at, part).to_bytes() != *expected {
            return false;
        }
        at += length as u64;
    }
    at == range.end
}

/// Whether holes may be left in a block: nothing is in it.
fn clear(shared: &Shared<'_>, range: std::ops::Range<u64>) -> bool {
    if shared.stage.before == Before::New || !shared.layout.has_holes() {
        return true;
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = range.end - range.start;
    rustix::fs::fallocate(&shared.stage.file, flags, range.start, length).is_ok()
}
