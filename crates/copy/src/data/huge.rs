//! Huge files: all workers copy blocks of one file at once, and the hash values of each block are
//! recorded, so that a resumed run proves the blocks that are there by reading only those.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock};

use bc_digest::blake3_tree::{Subtree, root, subtree};
use bc_digest::{Algorithm, Digest};
use bc_edit::content;
use bc_fs::dirfd::read_at;
use bc_pool::Cancel;
use bc_walk::Error;
use rustix::fs::FallocateFlags;

use crate::data::receiver::{Receiver, SourceReading, begin, receive, stages};
use crate::data::{self, BLOCK, DataError, Layout, PART, layout};
use crate::job::Job;
use crate::lock;
use crate::options::CopyOptions;
use crate::resume::known::Blocks;
use crate::resume::record;
use crate::sources::RootItem;
use crate::stage::{Stage, StageContent};
use crate::worker::Worker;

/// True if files can be copied in blocks: only BLAKE3 digests can be joined from those of parts.
pub(crate) fn is_possible(options: &CopyOptions) -> bool {
    options.algorithm == Some(Algorithm::Blake3)
}

/// Values of a block's parts, by its number.
type PartValues = Vec<(u64, Vec<[u8; 32]>)>;

/// One of the destinations of a file.
struct Lane<'a> {
    job: &'a Job<'a>,
    stage: &'a Stage,
    /// Blocks of the stage that an earlier run has recorded.
    known: Option<&'a Blocks>,
    /// True if blocks that are done are worth a record.
    is_recorded: bool,
    /// Reason for which it takes no more.
    failure: OnceLock<DataError>,
}

/// State shared by the workers of one file.
struct HugeShared<'a> {
    from: BorrowedFd<'a>,
    lanes: Vec<Lane<'a>>,
    layout: &'a Layout,
    /// True if the bytes read are the stage of the one lane, which shares the blocks of its source
    /// already.
    is_clone: bool,
    next: AtomicU64,
    stop: AtomicBool,
    /// Failure of the whole file.
    failure: Mutex<Option<DataError>>,
    cancel: &'a Cancel,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

/// Copies a huge file with all workers.
pub(crate) fn huge(workers: &mut [Worker<'_>], item: RootItem) {
    if let Some((places, open)) = begin(workers, item) {
        let receivers = stages(workers, places, Some(&open.stat));
        receive(workers, receivers, &open, |receivers, reading| {
            reading.in_blocks(receivers)
        });
    }
    workers.iter_mut().for_each(Worker::settle);
}

impl SourceReading<'_> {
    /// Copies the blocks of one state with all workers.
    fn in_blocks(&self, receivers: &mut [Receiver<'_>]) -> Result<(), Error> {
        let Some(first) = receivers.first() else {
            return Ok(());
        };
        let layout = layout(first.job.plan.options.sparse, self.open, self.stat);
        let mut written = Vec::with_capacity(receivers.len());
        for receiver in receivers {
            receiver.prepare(self.open, self.again);
            if receiver.is_written() {
                written.push(receiver);
            } else if receiver.failed.is_none() {
                // The content that is there is proven, not its origin.
                self.blocks(&mut [receiver], &layout, true)?;
            }
        }
        self.blocks(&mut written, &layout, false)
    }

    /// Copies all blocks, and gives each receiver the digest of the whole.
    fn blocks(
        &self,
        receivers: &mut [&mut Receiver<'_>],
        layout: &Layout,
        is_clone: bool,
    ) -> Result<(), Error> {
        let Some(first) = receivers.first() else {
            return Ok(());
        };
        let job = first.job;
        let lanes: Vec<Lane<'_>> = receivers.iter().map(|one| self.lane(one)).collect();
        let shared = HugeShared {
            from: match is_clone {
                true => lanes[0].stage.file.as_fd(),
                false => self.open.file.as_fd(),
            },
            lanes,
            layout,
            is_clone,
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            cancel: job.means.cancel,
            go_on: self.go_on,
        };
        let digest = all(&shared, job.plan.options.workers);
        let lanes = shared.lanes.into_iter();
        let failures: Vec<_> = lanes.map(|lane| lane.failure.into_inner()).collect();
        for (receiver, failure) in receivers.iter_mut().zip(failures) {
            receiver.failed = failure.map(|error| receiver.data_error(error));
        }
        let Some(good) = receivers.iter().find(|one| one.failed.is_none()) else {
            return Ok(());
        };
        let digest = digest.map_err(|error| good.data_error(error))?;
        for receiver in receivers {
            receiver.digest = Some(digest);
        }
        Ok(())
    }

    fn lane<'a>(&self, receiver: &'a Receiver<'_>) -> Lane<'a> {
        let (job, stage) = (receiver.job, &receiver.stage);
        let known = job.plan.known.blocks.get(&stage.name);
        let is_first = !self.again && receiver.is_kept;
        Lane {
            job,
            stage,
            known: known.filter(|_| is_first && !receiver.is_clone),
            is_recorded: is_first && self.open.settled && !receiver.is_clone,
            failure: OnceLock::new(),
        }
    }
}

/// Copies all blocks and returns the digest of the whole.
fn all(shared: &HugeShared<'_>, workers: usize) -> Result<Digest, DataError> {
    let size = shared.layout.size;
    let done = bc_pool::run(workers, |_| work(shared));
    let failure = lock(&shared.failure).take();
    if let Some(failure) = failure {
        return Err(failure);
    }
    let Ok(done) = done else {
        return Err(DataError::Cancelled);
    };
    for lane in shared.living() {
        lane.take(data::end_at(&lane.stage.file, size));
    }
    let mut all: PartValues = done.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(block, _)| *block);
    let parts = all.into_iter().flat_map(|(_, parts)| parts);
    let parts: Vec<Subtree> = parts.map(Subtree::from_bytes).collect();
    // Fewer would be another file's digest.
    if parts.len() as u64 != size.div_ceil(PART as u64) || parts.len() < 2 {
        return Err(DataError::Changed);
    }
    Ok(root(&parts))
}

fn work(shared: &HugeShared<'_>) -> PartValues {
    let mut values = PartValues::new();
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
                let mut failure = lock(&shared.failure);
                failure.get_or_insert(error);
            }
        }
    }
    values
}

/// Copies one block to the lanes that are not proven to have it.
fn one(
    shared: &HugeShared<'_>,
    block: u64,
    buffer: &mut [u8],
    piece: &mut Vec<u8>,
) -> Result<Vec<[u8; 32]>, DataError> {
    let begin = block * BLOCK;
    let end = (begin + BLOCK).min(shared.layout.size);
    let (there, lacking) = shared.look(block, begin..end, buffer);
    if let (Some(parts), true) = (there, lacking.is_empty()) {
        return Ok(parts.clone());
    }
    let solid = Layout::solid(shared.layout.size);
    let layout = |lane: &Lane<'_>| match clear(lane.stage, shared.layout, begin..end) {
        true => shared.layout,
        false => &solid,
    };
    let layouts: Vec<&Layout> = lacking.iter().map(|lane| layout(lane)).collect();
    let mut parts = Vec::with_capacity(8);
    let mut at = begin;
    while at < end {
        let is_wanted = lacking.iter().any(|lane| lane.failure.get().is_none());
        if !is_wanted || !(shared.go_on)() || shared.cancel.is_cancelled() {
            return Err(DataError::Cancelled);
        }
        let part = &mut buffer[..(end - at).min(PART as u64) as usize];
        data::read_part(shared.from, part, at)?;
        parts.push(subtree(at, part).to_bytes());
        for (lane, layout) in lacking.iter().zip(&layouts) {
            if !shared.is_clone && lane.failure.get().is_none() {
                lane.take(layout.write(&lane.stage.file, part, at));
            }
            lane.job
                .means
                .progress
                .bytes
                .fetch_add(part.len() as u64, Relaxed);
            lane.job.pay_while(part.len() as u64, shared.go_on);
        }
        at += part.len() as u64;
    }
    // Where it was proven already, it was so of this very source.
    if there.is_some_and(|there| *there != parts) {
        return Err(DataError::Changed);
    }
    for lane in lacking.iter().filter(|_| !shared.is_clone) {
        lane.done(block, end - begin, &parts, piece);
    }
    Ok(parts)
}

impl HugeShared<'_> {
    /// Returns the lanes that take more.
    fn living(&self) -> impl Iterator<Item = &Lane<'_>> {
        self.lanes
            .iter()
            .filter(|lane| lane.failure.get().is_none())
    }

    /// Returns the hash values of a block, if a lane is proven to have it already, and the lanes
    /// that lack it.
    fn look(
        &self,
        block: u64,
        range: Range<u64>,
        buffer: &mut [u8],
    ) -> (Option<&Vec<[u8; 32]>>, Vec<&Lane<'_>>) {
        let mut there: Option<&Vec<[u8; 32]>> = None;
        let mut lacking = Vec::with_capacity(self.lanes.len());
        for lane in self.living() {
            let known = lane.known.and_then(|known| known.get(&block));
            let known = known.filter(|parts| there.is_none_or(|there| there == *parts));
            let proven = known.filter(|parts| is_proven(lane.stage, range.clone(), parts, buffer));
            match proven {
                Some(parts) => {
                    let count = range.end - range.start;
                    lane.job.means.progress.bytes.fetch_add(count, Relaxed);
                    lane.job.pay_while(count, self.go_on);
                    there = Some(parts);
                }
                None => lacking.push(lane),
            }
        }
        (there, lacking)
    }
}

impl Lane<'_> {
    /// Records that the lane takes no more.
    fn take(&self, result: Result<(), DataError>) {
        if let Err(error) = result {
            let _ = self.failure.set(error);
        }
    }

    /// Records that a block was written to the lane.
    fn done(&self, block: u64, count: u64, parts: &[[u8; 32]], piece: &mut Vec<u8>) {
        if self.failure.get().is_some() {
            return;
        }
        self.job.outcomes.written.fetch_add(count, Relaxed);
        if self.is_recorded {
            record::push_block(piece, &self.stage.name, block, parts);
            self.job.append(piece);
        }
    }
}

/// True if a block of the stage still has the recorded hash values.
fn is_proven(stage: &Stage, range: Range<u64>, parts: &[[u8; 32]], buffer: &mut [u8]) -> bool {
    let mut at = range.start;
    for expected in parts {
        let length = (range.end - at).min(PART as u64) as usize;
        let part = &mut buffer[..length];
        let whole = read_at(&stage.file, part, at).is_ok_and(|count| count == length);
        if length == 0 || !whole || subtree(at, part).to_bytes() != *expected {
            return false;
        }
        at += length as u64;
    }
    at == range.end
}

/// Returns true if holes may be left in a block: it is empty, or it could be emptied.
fn clear(stage: &Stage, layout: &Layout, range: Range<u64>) -> bool {
    if stage.before == StageContent::New || !layout.has_holes() {
        return true;
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = range.end - range.start;
    content::allocate(&stage.file, flags, range.start, length).is_ok()
}
