//! Small files: many are read into one buffer, hashed together while the cache still has them, and
//! written from it.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Digest, hash_many};
use bc_edit::metadata::FileMetadata;
use bc_fs::dirfd::read_at;
use bc_walk::{Error, ErrorKind, FileStat};
use rustix::io::{Errno, retry_on_intr};

use crate::data::receiver::{FilePlaces, begin, numbers, renamed, source_failed};
use crate::data::single::single;
use crate::meta;
use crate::options::When;
use crate::place::{EntryPlace, Open, Over};
use crate::sources::RootItem;
use crate::stage::publish::create_unnamed;
use crate::stage::{Stage, StageUse};
use crate::worker::Worker;

/// Files up to this size are small.
pub(crate) const SMALL: u64 = 128 << 10;

/// Bytes that are read before they are written: they stay in the cache of a core.
const ROOM: usize = 1 << 20;

/// Files of a block or less: that they take fewer blocks than bytes says nothing about holes.
const BLOCK: u64 = 4096;

/// A small file that has become larger than this meanwhile is not held in memory.
const GROWN: u64 = 16 << 20;

/// Number of times that a file that changes meanwhile is read.
const ATTEMPTS: u32 = 3;

/// A file that was read.
struct Held {
    places: FilePlaces,
    read: ReadFile,
}

/// One state of a file.
struct ReadFile {
    source: FileStat,
    /// Place of its content in the buffer.
    bytes: Range<usize>,
    /// Metadata of its copies.
    wanted: FileMetadata,
    /// True if a later write would give it another time.
    settled: bool,
}

/// Copies files that were small when they were walked.
pub(crate) fn small(workers: &mut [Worker<'_>], items: &[RootItem]) {
    let mut held = Vec::with_capacity(items.len());
    let mut used = 0;
    for worker in &mut *workers {
        worker.make_room(items.len() as u64 * SMALL);
    }
    for &item in items {
        if workers.iter().all(|worker| worker.job.is_over()) {
            break;
        }
        held.extend(read(workers, item, &mut used));
        let is_full = workers.iter().any(Worker::is_full);
        if used >= ROOM || is_full {
            write(workers, &mut held);
            used = 0;
        }
        if is_full {
            workers.iter_mut().for_each(Worker::commit);
        }
    }
    write(workers, &mut held);
    workers.iter_mut().for_each(Worker::settle);
}

/// Reads a file behind the used part of the buffer; `None` where it was dealt with otherwise.
fn read(workers: &mut [Worker<'_>], item: RootItem, used: &mut usize) -> Option<Held> {
    let (places, open) = begin(workers, item)?;
    let reader = &mut workers[0];
    if !reader.is_plain(&open.stat) {
        single(workers, places, open);
        return None;
    }
    match reader.take(item, &open, *used) {
        Ok(read) => {
            *used = read.bytes.end;
            let mut places = places;
            places
                .iter_mut()
                .for_each(|(_, place)| place.settled = read.settled);
            Some(Held { places, read })
        }
        Err(error) => {
            source_failed(workers, &numbers(&places), item, &error);
            None
        }
    }
}

/// Hashes the files that were read, and writes each to its destinations.
fn write(workers: &mut [Worker<'_>], held: &mut Vec<Held>) {
    let buffer = std::mem::take(&mut workers[0].buffer);
    let messages: Vec<&[u8]> = held
        .iter()
        .map(|one| &buffer[one.read.bytes.clone()])
        .collect();
    let digests: Vec<Option<Digest>> = match workers[0].job.plan.options.algorithm {
        Some(algorithm) => hash_many(algorithm, &messages)
            .into_iter()
            .map(Some)
            .collect(),
        None => vec![None; messages.len()],
    };
    for (nth, worker) in workers.iter().enumerate() {
        let places = held.iter().flat_map(|one| &one.places);
        let own = places.filter(|(number, _)| *number == nth);
        worker.record_begun(own.map(|(_, place)| &place.target[..]));
    }
    for (one, digest) in held.drain(..).zip(digests) {
        let Held { places, read } = one;
        for (nth, place) in places {
            let (worker, item) = (&mut workers[nth], place.item);
            if worker.job.is_over() {
                continue;
            }
            let bytes = &buffer[read.bytes.clone()];
            let written = worker.write_one(place, &read.source, &read.wanted, bytes, digest);
            if let Err(error) = written {
                worker.failed(item, &error);
            }
        }
    }
    workers[0].buffer = buffer;
}

impl Worker<'_> {
    /// Reads one state of a file and the metadata of its copies.
    fn take(&mut self, item: RootItem, open: &Open, from: usize) -> Result<ReadFile, Error> {
        let (source, bytes) = self.read_into(item, open, from)?;
        let mut settled = open.settled;
        let wanted = self.wanted(item, &mut settled, open, &source)?;
        Ok(ReadFile {
            source,
            bytes,
            wanted,
            settled,
        })
    }

    /// True if a file is still small, and without holes.
    fn is_plain(&self, stat: &FileStat) -> bool {
        let size = stat.stamp.size;
        let options = self.job.plan.options;
        let holes = size > BLOCK && stat.blocks * 512 < size && options.sparse != When::Never;
        size <= SMALL && !holes && options.sparse != When::Always && options.reflink != When::Always
    }

    /// Reads one state of a file.
    fn read_into(
        &mut self,
        item: RootItem,
        open: &Open,
        from: usize,
    ) -> Result<(FileStat, Range<usize>), Error> {
        let job = self.job;
        let path = || job.plan.tree.source_path(item);
        let stamp = open.stat.stamp;
        if bc_read::is_fresh(&stamp) {
            let read = |stat: &FileStat, _: &(dyn Fn() -> bool + Sync)| {
                if stat.stamp.size > GROWN {
                    return Err(Error::of_kind(path(), "read", ErrorKind::Changed));
                }
                let mut bytes = vec![0; stat.stamp.size as usize + 1];
                let count = read_at(&open.file, &mut bytes, 0)
                    .map_err(|errno| Error::new(path(), "read", errno))?;
                bytes.truncate(count);
                match count as u64 == stat.stamp.size {
                    true => Ok(bytes),
                    false => Err(Error::of_kind(path(), "read", ErrorKind::Changed)),
                }
            };
            let read = bc_read::read_fresh(&open.file, job.means.cancel, read);
            let (stat, bytes) = read.map_err(|error| renamed(&error, path()))?;
            let end = from + bytes.len();
            grow(&mut self.buffer, end);
            self.buffer[from..end].copy_from_slice(&bytes);
            return Ok((stat, from..end));
        }
        let mut stat = open.stat.clone();
        if let Some(bytes) = self
            .read_at_once(open, from)
            .map_err(|errno| Error::new(path(), "read", errno))?
        {
            return Ok((stat, bytes));
        }
        for _ in 0..ATTEMPTS {
            let size = stat.stamp.size as usize;
            // One byte more shows that it has not grown.
            grow(&mut self.buffer, from + size + 1);
            let room = &mut self.buffer[from..=from + size];
            let count = read_at(&open.file, room, 0);
            let count = count.map_err(|errno| Error::new(path(), "read", errno))?;
            let now = meta::stat(&open.file).map_err(|errno| Error::new(path(), "stat", errno))?;
            if count == size && now.stamp == stat.stamp {
                return Ok((stat, from..from + size));
            }
            if now.stamp.size > SMALL {
                break;
            }
            stat = now;
        }
        Err(Error::of_kind(path(), "read", ErrorKind::Changed))
    }

    /// Reads a file in one call, which proves its end by returning less than was asked for, if the
    /// file is as long as it was.
    fn read_at_once(&mut self, open: &Open, from: usize) -> Result<Option<Range<usize>>, Errno> {
        let size = open.stat.stamp.size as usize;
        grow(&mut self.buffer, from + size + 1);
        let room = &mut self.buffer[from..=from + size];
        let count = retry_on_intr(|| rustix::io::pread(&open.file, &mut *room, 0))?;
        Ok((count == size).then_some(from..from + size))
    }

    fn write_one(
        &mut self,
        place: EntryPlace,
        source: &FileStat,
        wanted: &FileMetadata,
        bytes: &[u8],
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        let job = self.job;
        let mode = job
            .means
            .giving
            .mode_from_the_start(wanted, place.dir.gives_acl);
        let without_name = mode
            .filter(|_| place.over == Over::Nothing && wanted.xattrs.is_empty())
            .and_then(|mode| Some(Stage::unnamed(create_unnamed(job, &place.dir, mode)?, mode)));
        let stage = match without_name {
            Some(stage) => stage,
            None => self.stage(&place, mode.map_or(StageUse::Fresh, StageUse::FreshWith))?,
        };
        let written = stage.file.write_all_at(bytes, 0);
        let written = written.map_err(|error| job.refused_io(&place.target, "write", error));
        let written = written.and_then(|()| self.read_back(&place, &stage, digest));
        if let Err(error) = written {
            stage.remove(&place.dir);
            return Err(error);
        }
        job.outcomes.written.fetch_add(bytes.len() as u64, Relaxed);
        job.means
            .progress
            .bytes
            .fetch_add(bytes.len() as u64, Relaxed);
        job.pay(bytes.len() as u64);
        self.finish(place, stage, source.clone(), wanted, digest)
    }
}

fn grow(buffer: &mut Vec<u8>, end: usize) {
    if buffer.len() < end {
        buffer.resize(end.next_power_of_two(), 0);
    }
}
