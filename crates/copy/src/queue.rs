//! Complete files that wait for their names: recorded first, then renamed, and forced to the disk
//! before and after that where a power cut must not undo it.

use std::fs::File;
use std::os::fd::AsFd;

use bc_digest::Digest;
use bc_walk::{Error, FileStat};
use rustix::io::{Errno, retry_on_intr};

use crate::event::Event;
use crate::existing::Existing;
use crate::job::Job;
use crate::options::Durability;
use crate::place::Place;
use crate::record::{self, Placed};
use crate::results::{EntryOutcome, Proof, State, meta_of};
use crate::stage::{self, Stage};
use crate::unnamed;

/// Files that wait for their names with [`Durability::Batch`], and bytes of them: a killed run's
/// waiting files are written again.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: u64 = 64 << 20;

/// A stage that is complete and waits for its name.
struct WaitingStage {
    place: Place,
    /// Name of the stage; it is closed.
    stage: String,
    /// A stage without a name: it is open.
    unnamed: Option<File>,
    source: FileStat,
    staged: FileStat,
    digest: Option<Digest>,
}

/// Complete files of one worker.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Vec<WaitingStage>,
    bytes: u64,
    piece: Vec<u8>,
}

impl Queue {
    /// Queues a complete stage; `staged` is its `stat`.
    pub(crate) fn add(
        &mut self,
        job: &Job<'_>,
        place: Place,
        stage: Stage,
        staged: FileStat,
        source: FileStat,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        if job.plan.options.durability == Durability::File
            && let Err(errno) = retry_on_intr(|| rustix::fs::fsync(&stage.file))
        {
            stage.remove(&place.dir);
            return Err(job.refused(&place.target, "fsync", errno));
        }
        let (name, unnamed) = match stage.is_unnamed() {
            true => (stage.name, Some(stage.file)),
            false => {
                let closed = stage.close(&place.dir);
                let closed = closed.map_err(|errno| job.refused(&place.target, "close", errno));
                (closed?, None)
            }
        };
        self.bytes += source.stamp.size;
        self.waiting.push(WaitingStage {
            place,
            unnamed,
            stage: name,
            source,
            staged,
            digest,
        });
        if self.waiting.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES {
            self.commit(job);
        }
        Ok(())
    }

    /// Gives the waiting files their names unless there is room for so many bytes more beside them.
    pub(crate) fn make_room(&mut self, job: &Job<'_>, bytes: u64) {
        if self.bytes.saturating_add(bytes) > BATCH_BYTES {
            self.commit(job);
        }
    }

    /// Gives all waiting files their names, once they are recorded.
    pub(crate) fn commit(&mut self, job: &Job<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let batch = job.plan.options.durability == Durability::Batch;
        // No other thread's records may come between the barriers.
        let _alone = batch.then(|| job.barrier());
        if batch && let Err(errno) = job.sync_all() {
            for waiting in waiting {
                let error = job.refused(&waiting.place.target, "syncfs", errno);
                stage::remove(waiting.place.dir.fd.as_fd(), &waiting.stage);
                job.fail(waiting.place.item, &error);
            }
            return;
        }
        let is_recorded = self.record(job, &waiting);
        let mut outcomes = Vec::with_capacity(waiting.len());
        for mut waiting in waiting {
            let piece = is_recorded.then_some(&mut self.piece);
            match publish(job, &mut waiting, piece) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => job.fail(waiting.place.item, &error),
            }
        }
        if let Err(errno) = self.second_barrier(job, batch) {
            // They have their names, and may lose them again.
            let mut target = Vec::new();
            for outcome in outcomes {
                job.plan.tree.write_target(outcome.item, &mut target);
                job.fail(outcome.item, &job.refused(&target, "syncfs", errno));
            }
            return;
        }
        job.done(outcomes);
    }

    /// Adds the state of a file that has its name to the next record.
    pub(crate) fn placed(&mut self, target: &[u8], state: &Placed) {
        if target.len() <= record::LONGEST_PATH {
            record::push_placed(&mut self.piece, target, state);
        }
    }

    /// Writes the records that are not yet written.
    pub(crate) fn flush(&mut self, job: &Job<'_>) {
        if self.piece.is_empty() {
            return;
        }
        // Records between the barriers of others would be taken for data that these have forced to
        // the disk.
        let _alone = (job.plan.options.durability == Durability::Batch).then(|| job.barrier());
        self.push_durable(job);
        job.append(&mut self.piece);
    }

    /// Marks records as durable where each file was forced to the disk before, and its name too.
    fn push_durable(&mut self, job: &Job<'_>) {
        if job.plan.options.durability == Durability::File && !self.piece.is_empty() {
            bc_edit::journal::push(&mut self.piece, record::DURABLE, |_| {});
        }
    }

    /// Records files before they get their names; returns false if there is no journal.
    fn record(&mut self, job: &Job<'_>, waiting: &[WaitingStage]) -> bool {
        if !job.means.log.is_kept() {
            return false;
        }
        for waiting in waiting {
            let target = &waiting.place.target;
            if target.len() > record::LONGEST_PATH {
                continue;
            }
            let (source, settled) = (&waiting.source, waiting.place.settled);
            let done = record::done_of(target, source, settled, &waiting.staged, waiting.digest);
            record::push_done(&mut self.piece, &done);
            if !waiting.place.is_whole {
                record::push_lacking(&mut self.piece, target);
            }
        }
        self.push_durable(job);
        job.append(&mut self.piece);
        true
    }

    /// Forces names that were given to the disk, if that is to be done of each batch.
    fn second_barrier(&mut self, job: &Job<'_>, batch: bool) -> Result<(), Errno> {
        if batch {
            job.sync_all()?;
            bc_edit::journal::push(&mut self.piece, record::DURABLE, |_| {});
            job.append(&mut self.piece);
            let _ = job.means.log.sync();
        }
        Ok(())
    }
}

/// Gives a stage its name. `piece`: buffer for the record of the state that it has then.
fn publish(
    job: &Job<'_>,
    waiting: &mut WaitingStage,
    piece: Option<&mut Vec<u8>>,
) -> Result<EntryOutcome, Error> {
    let unnamed = waiting.unnamed.take();
    let waiting = &*waiting;
    let Place {
        item,
        target,
        dir,
        over,
        ..
    } = &waiting.place;
    let fd = dir.fd.as_fd();
    let name = waiting.place.name();
    if let Some(file) = unnamed {
        let now = unnamed::publish(job, &waiting.place, file)?;
        (job.means.observer)(Event::Copied(&job.shown(target)));
        push_state(piece, waiting, &now);
        return Ok(EntryOutcome {
            item: *item,
            state: State::Copied,
            meta: job.has_manifest().then(|| meta_of(&now.stat)),
            digest: waiting.digest,
            proof: proof(job, waiting),
        });
    }
    job.publish(&waiting.place, &waiting.stage)?;
    if job.plan.options.durability == Durability::File {
        let synced = job.readable(fd).and_then(rustix::fs::fsync);
        synced.map_err(|errno| job.refused(target, "fsync directory", errno))?;
    }
    let shown = job.shown(target);
    (job.means.observer)(over.event(&shown));
    let now = match job.has_manifest() {
        true => Some(
            job.look(dir, name)
                .map_err(|errno| Error::new(shown, "stat", errno))?,
        ),
        // A file without a recorded state is read by a resumed run.
        false => piece.as_ref().and_then(|_| job.look(dir, name).ok()),
    };
    if let Some(now) = &now {
        push_state(piece, waiting, now);
    }
    Ok(EntryOutcome {
        item: *item,
        state: State::Copied,
        meta: now
            .filter(|_| job.has_manifest())
            .map(|now| meta_of(&now.stat)),
        digest: waiting.digest,
        proof: proof(job, waiting),
    })
}

/// Records the state of what has its name, unless that was changed since.
fn push_state(piece: Option<&mut Vec<u8>>, waiting: &WaitingStage, now: &Existing) {
    let state = |stat: &FileStat| (stat.id.ino, stat.stamp.size, stat.stamp.mtime_ns);
    let target = &waiting.place.target;
    if let Some(piece) = piece
        && state(&now.stat) == state(&waiting.staged)
        && target.len() <= record::LONGEST_PATH
    {
        record::push_placed(piece, target, &Placed::of(now));
    }
}

fn proof(job: &Job<'_>, waiting: &WaitingStage) -> Proof {
    let place = &waiting.place;
    let is_proven = place.settled
        && place.is_whole
        && place.dir.id.dev == job.plan.top.id.dev
        && job.is_as_walked(place.item, &waiting.source);
    if is_proven { Proof::New } else { Proof::None }
}
