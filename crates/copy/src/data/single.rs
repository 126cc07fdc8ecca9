//! Files that are copied one by one: larger ones, those with holes, and those whose blocks are
//! shared.
//!
//! Large files whose digest cannot be taken in parts: the digest of all bytes up to the end of each
//! block is recorded of their stages, so that a resumed run proves the stage by hashing it again,
//! and has the state of the digest at that point by the same reading.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_fs::dirfd::read_at;
use bc_walk::Error;

use crate::data::receiver::{FilePlaces, Receiver, SourceReading, begin, receive, stages};
use crate::data::{
    self, BLOCK, ByteSink, DataError, Digesting, HUGE, Layout, PART, ReadProgress, layout,
    read_hash_write,
};
use crate::decide::digest_of;
use crate::options::When;
use crate::place::Open;
use crate::resume::known::Blocks;
use crate::resume::record;
use crate::sources::RootItem;
use crate::stage::StageContent;
use crate::worker::Worker;

/// Copies a file that was not small when it was walked.
pub(crate) fn medium(workers: &mut [Worker<'_>], item: RootItem) {
    if let Some((places, open)) = begin(workers, item) {
        single(workers, places, open);
    }
    workers.iter_mut().for_each(Worker::settle);
}

/// Copies one open file.
pub(crate) fn single(workers: &mut [Worker<'_>], places: FilePlaces, open: Open) {
    let algorithm = workers[0].job.plan.options.algorithm;
    for (nth, place) in &places {
        workers[*nth].make_room(open.stat.stamp.size);
        workers[*nth].record_begun([&place.target[..]]);
    }
    // A file hashed in parts that has become so large meanwhile cannot be resumed.
    let is_long = open.stat.stamp.size >= HUGE && algorithm != Some(Algorithm::Blake3);
    let receivers = stages(workers, places, is_long.then_some(&open.stat));
    let mut buffer = std::mem::take(&mut workers[0].scratch);
    receive(workers, receivers, &open, |receivers, reading| {
        reading.bytes(receivers, &mut buffer)
    });
    workers[0].scratch = buffer;
}

impl SourceReading<'_> {
    /// Copies the bytes of one state, by the cheapest means there is.
    fn bytes(&self, receivers: &mut [Receiver<'_>], buffer: &mut Vec<u8>) -> Result<(), Error> {
        for receiver in &mut *receivers {
            receiver.prepare(self.open, self.again);
            if receiver.is_clone && receiver.failed.is_none() {
                self.of_clone(receiver, buffer)?;
            }
        }
        let mut written = Vec::with_capacity(receivers.len());
        for receiver in receivers.iter_mut().filter(|one| one.is_written()) {
            if let Some(begun) = self.there(receiver, buffer)? {
                written.push((receiver, begun));
            }
        }
        let Some((first, _)) = written.first() else {
            return Ok(());
        };
        let layout = layout(first.job.plan.options.sparse, self.open, self.stat);
        if let [(only, begun)] = &mut written[..]
            && self.by_kernel(only, begun.at, &layout)?
        {
            return Ok(());
        }
        self.by_reading(&mut written, &layout, buffer)
    }

    /// Hashes a stage that shares the blocks of its source: the stage is read, not the source.
    fn of_clone(&self, receiver: &mut Receiver<'_>, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let (job, size) = (receiver.job, self.stat.stamp.size);
        match job.plan.options.algorithm {
            Some(_) => receiver.reported(size, self.go_on),
            // Nothing is read or written.
            None => drop(job.means.progress.bytes.fetch_add(size, Relaxed)),
        }
        let file = &receiver.stage.file;
        // Its previous content may have been longer.
        let ended = data::end_at(file, size);
        let digest = ended.and_then(|()| match receiver.job.plan.options.algorithm {
            None => Ok(None),
            Some(algorithm) => match digest_of(file, algorithm, buffer, self.go_on) {
                Ok(Some(digest)) => Ok(Some(digest)),
                Ok(None) => Err(DataError::Cancelled),
                Err(errno) => Err(DataError::Target("read", errno)),
            },
        });
        receiver.digest = self.taken(receiver, digest)?.flatten();
        Ok(())
    }

    /// Returns the result at one destination; a failure there is kept as its own, and a failure of
    /// the source is one for all.
    fn taken<T>(
        &self,
        receiver: &mut Receiver<'_>,
        result: Result<T, DataError>,
    ) -> Result<Option<T>, Error> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error @ DataError::Target(..)) => {
                receiver.failed = Some(receiver.data_error(error));
                Ok(None)
            }
            Err(error) => Err(receiver.data_error(error)),
        }
    }

    /// Returns how much of a file its stage has already, from an earlier run; `None` where it has
    /// failed.
    fn there(
        &self,
        receiver: &mut Receiver<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<StagePart>, Error> {
        if self.again || receiver.stage.before == StageContent::New || !receiver.is_kept {
            return Ok(Some(StagePart::default()));
        }
        let job = receiver.job;
        let (file, size) = (&receiver.stage.file, self.stat.stamp.size);
        let reported = |count| {
            receiver.reported(count, self.go_on);
            (self.go_on)()
        };
        let found = match job.plan.options.algorithm {
            // Nothing is recorded of bytes that were not hashed.
            None => data::common(self.open.file.as_fd(), file, size, buffer, &reported)
                .map(|at| (at, None)),
            Some(algorithm) => {
                let known = job.plan.known.blocks.get(&receiver.stage.name);
                proven(file, known, algorithm, size, buffer, &reported)
                    .map(|(at, hasher)| (at, Some(hasher)))
            }
        };
        // Unproven bytes are removed: they may be where a hole is to be.
        let found = found.and_then(|(at, hasher)| {
            data::end_at(file, at)?;
            Ok(StagePart { at, hasher })
        });
        self.taken(receiver, found)
    }

    /// Makes the kernel copy the bytes, where they are not hashed. Returns `Ok(false)` where it
    /// cannot.
    fn by_kernel(
        &self,
        receiver: &mut Receiver<'_>,
        there: u64,
        layout: &Layout,
    ) -> Result<bool, Error> {
        let (job, pair) = (receiver.job, receiver.pair(self.open));
        let is_seen = job.plan.options.algorithm.is_some() || layout.zeros_are_holes;
        // Some file systems share blocks, and holes, in such a call.
        let may_share =
            job.plan.options.reflink != When::Never && job.plan.options.sparse != When::Never;
        // A call that copies much at once cannot keep to a limit.
        let is_limited = job.plan.options.rate.is_some();
        if is_seen || !may_share || is_limited || job.site.refusals.range.has(pair) {
            return Ok(false);
        }
        let reported = |count| {
            receiver.reported(count, self.go_on);
            (self.go_on)()
        };
        let (from, to) = (self.open.file.as_fd(), &receiver.stage.file);
        let copied = data::copy_ranges(from, to, there, layout, &reported);
        match self.taken(receiver, copied)? {
            Some(false) => {
                job.site.refusals.range.add(pair);
                Ok(false)
            }
            Some(true) => {
                job.outcomes.written.fetch_add(layout.size - there, Relaxed);
                Ok(true)
            }
            None => Ok(true),
        }
    }

    /// Reads the bytes once, for all destinations.
    fn by_reading(
        &self,
        written: &mut [(&mut Receiver<'_>, StagePart)],
        layout: &Layout,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let algorithm = written[0].0.job.plan.options.algorithm;
        let mut outputs = Vec::with_capacity(written.len());
        for (receiver, begun) in written.iter() {
            outputs.push(ByteSink::new(&receiver.stage.file, begun.at));
        }
        // Reading begins where the destination that has least resumes.
        let least = written.iter().min_by_key(|(_, begun)| begun.at);
        let digesting = match least.and_then(|(_, begun)| begun.hasher.clone()) {
            Some(hasher) => Digesting::from(hasher),
            None => Digesting::new(algorithm, layout.size),
        };
        let mut piece = Vec::new();
        let mut is_one = true;
        let mut reported = |step: ReadProgress<'_>| {
            for ((receiver, begun), output) in written.iter().zip(step.outputs) {
                is_one &= begun.agrees(&step);
                if output.has_got(step.end) {
                    receiver.reported(step.count, self.go_on);
                    receiver.job.outcomes.written.fetch_add(step.count, Relaxed);
                    self.record(receiver, &step, &mut piece);
                }
            }
            is_one && (self.go_on)()
        };
        let from = self.open.file.as_fd();
        let read = read_hash_write(from, &mut outputs, layout, digesting, buffer, &mut reported);
        let errors: Vec<_> = outputs.into_iter().map(|output| output.error).collect();
        for ((receiver, _), error) in written.iter_mut().zip(errors) {
            if let Some(error) = error {
                self.taken::<()>(receiver, Err(error))?;
            }
        }
        let read = match is_one {
            true => read,
            false => Err(DataError::Changed),
        };
        let digest = read.map_err(|error| written[0].0.data_error(error))?;
        for (receiver, _) in written {
            receiver.digest = digest;
        }
        Ok(())
    }

    /// Records the complete blocks of a stage, so that a later run can prove them.
    fn record(&self, receiver: &Receiver<'_>, step: &ReadProgress<'_>, piece: &mut Vec<u8>) {
        let is_of_use = receiver.is_kept && self.open.settled && !self.again;
        if let Some(block) = block_before(step.end).filter(|_| is_of_use)
            && let Some(digest) = step.digesting.so_far()
        {
            let parts = pieces(&digest);
            record::push_block(piece, &receiver.stage.name, block, &parts);
            receiver.job.append(piece);
        }
    }
}

/// Part of a file that a stage has before the source is read.
#[derive(Default)]
struct StagePart {
    /// Its bytes.
    at: u64,
    /// The state of their digest.
    hasher: Option<Hasher>,
}

impl StagePart {
    /// True if the bytes read again for another destination match those that this one has.
    fn agrees(&self, step: &ReadProgress<'_>) -> bool {
        let own = self.hasher.as_ref().filter(|_| step.end == self.at);
        own.is_none_or(|own| step.digesting.so_far() == Some(own.finalize()))
    }
}

/// A digest as a record of a block holds it: in pieces of 32 bytes, the last one filled with zeros.
pub(crate) fn pieces(digest: &Digest) -> Vec<[u8; 32]> {
    let piece = |bytes: &[u8]| {
        let mut piece = [0; 32];
        piece[..bytes.len()].copy_from_slice(bytes);
        piece
    };
    digest.as_bytes().chunks(32).map(piece).collect()
}

/// Returns the number of the block that ends there, if one does.
pub(crate) fn block_before(end: u64) -> Option<u64> {
    (end > 0 && end.is_multiple_of(BLOCK)).then(|| end / BLOCK - 1)
}

/// Returns the number of leading bytes of a stage, of a file of `size` bytes, that match the
/// records, and the state of their digest.
pub(crate) fn proven(
    stage: &File,
    known: Option<&Blocks>,
    algorithm: Algorithm,
    size: u64,
    buffer: &mut Vec<u8>,
    reported: &dyn Fn(u64) -> bool,
) -> Result<(u64, Hasher), DataError> {
    buffer.resize(buffer.len().max(PART), 0);
    let mut proven = (0, Hasher::new(algorithm));
    let Some(known) = known else {
        return Ok(proven);
    };
    for (block, expected) in (0..size / BLOCK).map_while(|block| Some((block, known.get(&block)?)))
    {
        let mut hasher = proven.1.clone();
        let begin = block * BLOCK;
        for at in (begin..begin + BLOCK).step_by(PART) {
            let part = &mut buffer[..PART];
            if read_at(stage, part, at).unwrap_or(0) < PART {
                return Ok(proven);
            }
            hasher.update(part);
        }
        if pieces(&hasher.finalize()) != *expected {
            break;
        }
        proven = (begin + BLOCK, hasher);
        if !reported(BLOCK) {
            return Err(DataError::Cancelled);
        }
    }
    Ok(proven)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use bc_digest::hash;

    use super::*;

    /// For each kind of algorithm: a block that is dirty, missing or not recorded ends the proven
    /// part.
    #[test]
    fn what_is_recorded_is_proven_and_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..2 * BLOCK + 9)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let path = dir.path().join("stage");
        for algorithm in [Algorithm::Xxh128, Algorithm::Sha1, Algorithm::Sha512] {
            std::fs::write(&path, &content).unwrap();
            let stage = File::options().read(true).write(true).open(&path).unwrap();
            let end = |block: u64| ((block + 1) * BLOCK) as usize;
            let record = |block| (block, pieces(&hash(algorithm, &content[..end(block)])));
            let mut known: Blocks = [record(0), record(1)].into();
            let size = content.len() as u64;
            let found = |known: Option<&Blocks>| {
                let buffer = &mut Vec::new();
                let found = proven(&stage, known, algorithm, size, buffer, &|_| true);
                let (at, hasher) = found.unwrap();
                assert_eq!(hasher.finalize(), hash(algorithm, &content[..at as usize]));
                at
            };
            assert_eq!((found(None), found(Some(&known))), (0, 2 * BLOCK));
            stage
                .write_all_at(&[!content[BLOCK as usize]], BLOCK)
                .unwrap();
            assert_eq!(found(Some(&known)), BLOCK);
            stage.set_len(BLOCK - 1).unwrap();
            assert_eq!(found(Some(&known)), 0);
            std::fs::write(&path, &content).unwrap();
            known.remove(&0);
            assert_eq!(found(Some(&known)), 0);
        }
    }

    #[test]
    fn blocks_end_at_their_multiples() {
        let ends = [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK].map(block_before);
        assert_eq!(ends, [None, None, Some(0), None, Some(2)]);
    }
}
