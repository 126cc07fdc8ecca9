//! Threads that copy, and the state of each: sources and directories that it holds open, file
//! systems of sources that it has met, and files that wait for their names.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_edit::metadata::FileMetadata;
use bc_fs::caller::Caller;
use bc_fs::dirfd::{OpenDirs, own_path};
use bc_fs::known::MountSession;
use bc_fs::mount::{Shows, traits_or_unknown};
use bc_fs::path::split;
use bc_fs::volume::{uuid_at, volume_at};
use bc_pool::{Cursor, Growth, Tables, WorkerBatches, WorkerHandle, Workers};
use bc_read::Opener;
use bc_walk::{DirFdCache, Error, ErrorKind, FileStat, Identity};
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::job::{Job, descriptors};
use crate::lock;
use crate::meta::{Attributed, LostMeta, SourceXattrs, fstat};
use crate::options::Durability;
use crate::place::{DestDir, EntryPlace, Open, Over, is_settled};
use crate::resume::record::{self, Placed};
use crate::resume::stamp::{Ends, KIND, Lasting, Met, Proving, Stamp, of_text};
use crate::sources::{RootItem, SourceContent, USUAL};
use crate::stage::CompleteStage;
use crate::stage::publish::{Queue, UNNAMED_EACH};

/// Small files, or directories, that a worker takes at once.
pub(crate) const BATCH: usize = 128;

/// Batches of one worker at least, so that all end at about the same time.
const SHARES: usize = 2;

/// Files below which a further worker is not worth its start.
pub(crate) const FILES_EACH: usize = 64;

/// Files that are worth another worker where those there are wait.
const WORTH_A_WORKER: usize = 2;

/// Directories of the destination that a worker holds open for those that come next.
const KEPT: usize = 8;

/// Descriptors of one step: directories on both sides, and a file or directory on each.
const NEEDED: u32 = 4;

/// Directories that a worker opens before files in them get their names, for which they are held
/// open.
const WAITING: usize = 256;

/// Directories that a worker that joins others may hold open.
const OPEN_EACH: u64 = 64;

/// A worker.
pub(crate) struct Worker<'a> {
    pub(crate) job: &'a Job<'a>,
    opener: Option<(usize, Opener<'a>)>,
    /// Directories of one source.
    sources: Option<(usize, DirFdCache<'a>)>,
    dirs: OpenDirs<Vec<u8>, Rc<DestDir>>,
    /// Directories of the destination opened since the waiting files got their names, and the
    /// greatest number allowed.
    opened: usize,
    most_opened: usize,
    pub(crate) xattrs: SourceXattrs,
    pub(crate) lost: Vec<LostMeta>,
    /// Content of a batch's small files.
    pub(crate) buffer: Vec<u8>,
    /// Buffer for one larger file, which may come in the middle of a batch.
    pub(crate) scratch: Vec<u8>,
    queue: Queue,
    /// File systems of sources.
    pub(crate) met: Met,
    /// User and groups of this process, once a dry run has asked for them.
    pub(crate) caller: Option<Caller>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(job: &'a Job<'a>) -> Worker<'a> {
        Worker::holding(job, affordable(most_waiting(job)))
    }

    fn holding(job: &'a Job<'a>, most_opened: usize) -> Worker<'a> {
        Worker {
            job,
            opener: None,
            sources: None,
            dirs: OpenDirs::new(KEPT.min(most_opened)),
            opened: 0,
            most_opened,
            xattrs: SourceXattrs::new(),
            lost: Vec::new(),
            buffer: Vec::new(),
            scratch: Vec::new(),
            queue: Queue::default(),
            met: Met::new(),
            caller: None,
        }
    }

    /// Makes one of several workers of a thread, each for another destination, which share the
    /// descriptors that the thread may hold open.
    pub(crate) fn one_of(job: &'a Job<'a>, several: usize) -> Worker<'a> {
        let most_opened = affordable(most_waiting(job).saturating_mul(several));
        Worker::holding(job, most_opened)
    }

    /// Opens a source that is a regular file, and checks that it is the one that was walked.
    pub(crate) fn open(&mut self, item: RootItem) -> Result<Open, Error> {
        let job = self.job;
        let (root, _) = job.plan.tree.root(item);
        let Some((listing, id)) = job.plan.tree.entry(item) else {
            let path = job.plan.tree.source_path(item);
            return Err(Error::new(path, "open", Errno::INVAL));
        };
        let mut opener = match self.opener.take() {
            Some((of, opener)) if of == root => opener,
            _ => Opener::new(listing, job.means.cancel),
        };
        // All workers may wait for what all of them hold.
        let opened = opener.open_for_copy(id, || self.let_go());
        self.opener = Some((root, opener));
        let (file, raw) = opened?;
        let stat = FileStat::from(&raw);
        let settled = is_settled(&stat.stamp);
        Ok(Open {
            file,
            stat,
            raw,
            settled,
        })
    }

    /// Returns the metadata for a copy of an open source that was read in the state `read`;
    /// `settled` becomes false where a later write may leave the source with the time that it has.
    pub(crate) fn wanted(
        &mut self,
        item: RootItem,
        settled: &mut bool,
        open: &Open,
        read: &FileStat,
    ) -> Result<FileMetadata, Error> {
        let tree = &self.job.plan.tree;
        let failed = |op| move |errno| Error::new(tree.source_path(item), op, errno);
        let mut raw = open.raw;
        if read.stamp != open.stat.stamp {
            // It was written to after it was opened.
            *settled = false;
            raw = fstat(&open.file).map_err(failed("stat"))?;
            if FileStat::from(&raw).stamp != read.stamp {
                let kind = ErrorKind::Changed;
                return Err(Error::of_kind(tree.source_path(item), "read", kind));
            }
        }
        let source = Attributed::Open(open.file.as_fd());
        let wanted = self.metadata(item, &raw, source);
        wanted.map_err(failed("getxattr"))
    }

    /// Returns the metadata of a source with this `stat`, as far as copies are to have it. What a
    /// move may not read is lacking.
    pub(crate) fn metadata(
        &mut self,
        item: RootItem,
        stat: &Stat,
        source: Attributed<'_, BorrowedFd<'_>>,
    ) -> Result<FileMetadata, Errno> {
        let preserve = self.job.plan.options.preserve;
        let wanted = self.xattrs.metadata(stat, source, preserve)?;
        if preserve.xattrs && self.xattrs.is_partial() {
            self.job.lacks(item);
        }
        Ok(wanted)
    }

    /// Opens the directory that an entry of a listing is in, at its source.
    pub(crate) fn source_dir(&mut self, item: RootItem) -> Result<Rc<OwnedFd>, Error> {
        let (root, _) = self.job.plan.tree.root(item);
        let Some((listing, id)) = self.job.plan.tree.entry(item) else {
            let path = self.job.plan.tree.source_path(item);
            return Err(Error::new(path, "open", Errno::INVAL));
        };
        let opened = match &mut self.sources {
            Some((known, sources)) if *known == root => {
                sources.open_waiting(listing.dir(id), self.job.means.cancel)
            }
            other => {
                let (_, sources) = other.insert((root, DirFdCache::new(listing)));
                sources.open_waiting(listing.dir(id), self.job.means.cancel)
            }
        };
        opened.map_err(|error| match error.errno() {
            // It is this entry that fails, and each other one in there has an error of its own.
            Some(errno) => {
                let errno = Errno::from_raw_os_error(errno);
                Error::new(
                    self.job.plan.tree.source_path(item),
                    "open directory",
                    errno,
                )
            }
            None => error,
        })
    }

    /// Opens a directory of the destination, by its path below the top. The caller adds the path to
    /// an error.
    pub(crate) fn try_dir(&mut self, path: &[u8]) -> Result<Rc<DestDir>, Errno> {
        if let Some(dir) = self.dirs.find(|kept| kept == path) {
            return Ok(Rc::clone(dir));
        }
        let job = self.job;
        let opened = self.open_waiting(|| DestDir::open(job.plan.top.fd.as_fd(), path));
        let dir = Rc::new(opened?);
        let is_synced = self.job.plan.options.durability != Durability::None;
        if is_synced && dir.id.dev != self.job.plan.top.id.dev {
            self.job.also_sync(dir.id.dev, &dir.fd);
        }
        self.opened += 1;
        self.dirs.keep(path.to_vec(), None, Rc::clone(&dir));
        Ok(dir)
    }

    /// Calls `open`. Where descriptors are short, those held here are closed, and the release of
    /// others is awaited.
    pub(crate) fn open_waiting<T>(
        &mut self,
        open: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.job.open_waiting(open, || self.let_go())
    }

    /// Calls `f`, which may be called again: where it failed for want of descriptors, those held
    /// here are closed, and the release of others is awaited.
    pub(crate) fn with_descriptors<T>(
        &mut self,
        mut f: impl FnMut(&mut Worker<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let job = self.job;
        let mut wait = job.means.shortage.wait(NEEDED);
        loop {
            let done = f(self);
            if !wait.again(&done, || job.means.cancel.is_cancelled(), || self.let_go()) {
                return done;
            }
        }
    }

    /// Closes descriptors that can be opened again.
    pub(crate) fn let_go(&mut self) {
        self.commit();
        self.dirs.clear();
        self.sources = None;
        self.opener = None;
    }

    /// True if so many directories are open that files in them should get their names first.
    pub(crate) fn is_full(&self) -> bool {
        self.opened >= self.most_opened
    }

    /// Returns the place of an entry, as far as it is known before the entry is looked at.
    pub(crate) fn place(&mut self, item: RootItem) -> Result<EntryPlace, Error> {
        let mut target = Vec::with_capacity(USUAL);
        self.job.plan.tree.write_target(item, &mut target);
        // It is the file that cannot be copied because of its directory.
        let dir = self.try_dir(split(&target).0);
        let dir = dir.map_err(|errno| self.job.no_directory(&target, errno))?;
        Ok(EntryPlace {
            item,
            target,
            dir,
            over: Over::Nothing,
            settled: false,
            is_whole: true,
        })
    }

    /// Records files that get a stage now: should this run be killed and its source be gone when
    /// another run resumes, the stage is found by that record.
    pub(crate) fn record_begun<'p>(&self, targets: impl IntoIterator<Item = &'p [u8]>) {
        let mut piece = Vec::new();
        if self.job.means.log.is_kept() {
            targets
                .into_iter()
                .for_each(|target| record::push_begun(&mut piece, target));
        }
        self.job.append(&mut piece);
    }

    /// Queues a complete stage for its name.
    pub(crate) fn wait(
        &mut self,
        place: EntryPlace,
        stage: CompleteStage,
        source: FileStat,
        digest: Option<Digest>,
    ) {
        self.queue.add(self.job, place, stage, source, digest);
        if self.is_full() {
            self.commit();
        }
    }

    /// Commits waiting files if they and so many further bytes are more than may be lost at once.
    pub(crate) fn make_room(&mut self, bytes: u64) {
        self.queue.make_room(self.job, bytes);
    }

    /// Ends a batch: waiting files get their names, unless more are to be waited for.
    pub(crate) fn settle(&mut self) {
        if self.job.plan.options.durability != Durability::Batch {
            self.commit();
        }
    }

    /// Records the state of a file that has its name.
    pub(crate) fn placed(&mut self, target: &[u8], state: &Placed) {
        self.queue.placed(target, state);
    }

    /// Ends the work: all waiting files get their names, and missing records are written.
    pub(crate) fn end(&mut self) {
        self.commit();
        self.queue.flush(self.job);
    }

    /// Gives all waiting files their names.
    pub(crate) fn commit(&mut self) {
        self.queue.commit(self.job);
        self.opened = 0;
    }
}

/// Returns the number of workers up to which a copy grows where they wait: each may hold a good number
/// of directories open, and the files of a batch that have no names.
fn most_waiting(job: &Job<'_>) -> usize {
    let options = &job.plan.options;
    let workers = Workers::up_to(options.workers, options.waiting);
    let each = needed_by_each(job.site.unnamed.load(Relaxed));
    most_waiting_of(workers, options.durability, descriptors() / each)
}

fn needed_by_each(is_unnamed: bool) -> u64 {
    match is_unnamed {
        true => UNNAMED_EACH,
        false => 2 * OPEN_EACH,
    }
}

fn most_waiting_of(workers: Workers, durability: Durability, affordable: u64) -> usize {
    // A `syncfs` for each worker's batch is no wait that others shorten.
    if durability == Durability::Batch {
        return workers.usual();
    }
    let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
    workers.most().min(affordable).max(workers.usual())
}

/// Returns the number of directories that each worker may hold open beside [`KEPT`]: half of the
/// available descriptors.
fn affordable(workers: usize) -> usize {
    affordable_of(descriptors(), workers)
}

fn affordable_of(descriptors: u64, workers: usize) -> usize {
    let each = descriptors / 2 / workers.max(1) as u64;
    each.clamp(2, WAITING as u64) as usize
}

/// Descriptors that a worker holds at least: directories at both ends, the steps to them, a file.
const EACH: u64 = 8;

/// Runs `f` on workers, as far as there are descriptors for them, and on more where these wait and
/// there is so much `left`, with the tables of descriptors that the options choose: these contain the sources, the destinations and the journals, and files
/// that the workers open themselves. The observer, which may have others open, is not called by
/// them then.
pub(crate) fn run_workers<'j, 'o: 'j>(
    jobs: impl IntoIterator<Item = &'j Job<'o>>,
    workers: usize,
    left: &(dyn Fn() -> usize + Sync),
    f: impl Fn(&mut WorkerHandle<'_>) + Sync,
) -> Result<(), bc_walk::job::Error> {
    let mut waiting = usize::MAX;
    let jobs: Vec<&Job<'_>> = jobs.into_iter().collect();
    let mut tables = Tables::SHARED;
    let mut named = Vec::new();
    for job in &jobs {
        waiting = waiting.min(most_waiting(job));
    }
    for job in &jobs {
        // Descriptors that are synced in the end are kept open for all by the worker that came
        // there first.
        if job.plan.options.durability != Durability::None || reports_at_close(job) {
            tables = Tables::SHARED;
            break;
        }
        tables = job.plan.options.tables;
        named.push(job.plan.top.fd.as_fd());
        named.extend(job.means.log.descriptor());
        for root in &job.plan.tree.roots {
            match &*root.content {
                SourceContent::Listing(listing) => named.extend(listing.descriptors()),
                SourceContent::Alone(dir, _) => named.push(dir.as_fd()),
                SourceContent::Nothing => {}
            }
        }
    }
    let workers = workers.min(usize::try_from(descriptors() / EACH).unwrap_or(usize::MAX));
    let run = || {
        let growth = Growth::new(Workers::up_to(workers, waiting / jobs.len().max(1)));
        let growth = growth.left(left, WORTH_A_WORKER).tables(tables, &named);
        growth.run(|mut handle| f(&mut handle))
    };
    match jobs.first() {
        // One relay serves all of them.
        Some(job) if tables != Tables::SHARED => job.means.relay.apart(run)?,
        _ => run()?,
    };
    Ok(())
}

/// Returns the number of workers that so many directories are worth.
fn workers_for(job: &Job<'_>, entries: usize) -> usize {
    let most = entries.div_ceil(FILES_EACH);
    job.plan.options.workers.min(most).max(1)
}

/// Makes a cursor whose batches of at most so many entries are enough for so many workers to take
/// several each.
pub(crate) fn shared_out(entries: usize, workers: usize, batch: usize) -> Cursor {
    let batch = match workers {
        0 | 1 => batch,
        _ => entries.div_ceil(SHARES * workers).clamp(1, batch),
    };
    Cursor::with_batch(entries, workers, batch, batch)
}

/// Calls `f` with a worker and the numbers of each batch of so many entries, on as many workers as
/// these are worth.
pub(crate) fn run_in_batches<'a>(
    job: &'a Job<'a>,
    entries: usize,
    batch: usize,
    f: impl Fn(&mut Worker<'a>, Range<usize>) + Sync,
) -> Result<(), bc_walk::job::Error> {
    let workers = workers_for(job, entries);
    let cursor = shared_out(entries, workers, batch);
    run_workers([job], workers, &|| cursor.remaining(), |handle| {
        let mut worker = Worker::new(job);
        let mut batches = WorkerBatches::new(handle);
        while let Some(batch) = batches.next(&cursor) {
            f(&mut worker, batch);
        }
    })
}

/// True if the destination's file system may report at a close that something could not be stored.
/// It reports so once, to the first close: a thread that begins with a table of its own closes
/// descriptors that it has no use for, perhaps of a stage of the thread that started it, whose own
/// close then reports nothing.
fn reports_at_close(job: &Job<'_>) -> bool {
    job.site.top_traits.shows != Shows::Own
}

impl Worker<'_> {
    /// Returns the stamp of a copy, if both its file systems allow one.
    pub(crate) fn stamp(
        &mut self,
        item: RootItem,
        ends: &Ends<'_>,
        lasting: Lasting,
    ) -> Option<Stamp> {
        let job = self.job;
        let session = match lasting {
            Lasting::Durable => None,
            Lasting::Mounted => Some(job.site.session.as_ref()?),
        };
        let given = job.plan.order.given;
        let from = self.proving(item, ends.source.id, ends.copy.ino)?;
        Some(of_text(KIND, session, &ends.text(from, given)))
    }

    /// True if that is the stamp of the two ends in their current state.
    pub(crate) fn is_stamp(&mut self, item: RootItem, ends: &Ends<'_>, stamp: &Stamp) -> bool {
        let job = self.job;
        let Some(from) = self.proving(item, ends.source.id, ends.copy.ino) else {
            return false;
        };
        let text = ends.text(from, job.plan.order.given);
        let session = job.site.session.as_ref();
        session.is_some_and(|session| of_text(KIND, Some(session), &text) == *stamp)
            || of_text(KIND, None, &text) == *stamp
    }

    /// Returns the name of the file system of an entry's source, if the results of `stat` prove the
    /// content there, and that of an inode with this number at the destination.
    pub(crate) fn proving(&mut self, item: RootItem, source: Identity, copy: u64) -> Option<&str> {
        let from = self.met_at(item, source.dev)?;
        let Proving { traits, name, .. } = &self.met[from].1;
        let is_proof = traits.identity_proves_content(source.ino)
            && self.job.site.top_traits.identity_proves_content(copy);
        (is_proof && !name.is_empty()).then_some(name)
    }

    /// The volume that an entry's source is on, with that device number; empty where it has no name.
    pub(crate) fn volume(&mut self, item: RootItem, dev: u64) -> &str {
        match self.met_at(item, dev) {
            Some(at) => &self.met[at].1.volume,
            None => "",
        }
    }

    fn met_at(&mut self, item: RootItem, dev: u64) -> Option<usize> {
        match self.met.iter().position(|(known, _)| *known == dev) {
            Some(at) => Some(at),
            None => self.meet(item, dev),
        }
    }

    /// Gets to know the file system that an entry's source is on, and records its volume before any
    /// file that was copied from it.
    fn meet(&mut self, item: RootItem, dev: u64) -> Option<usize> {
        let systems = &self.job.site.systems;
        let lock = || lock(&systems.0);
        let known = lock().iter().find(|(known, _)| *known == dev).cloned();
        let met = match known {
            Some(met) => met,
            None => {
                let (listing, id) = self.job.plan.tree.entry(item)?;
                let dir = listing.dir(id);
                // A file system mounted on the file itself has no directory there to be opened.
                let is_its_own = listing.dir_identity(dir).is_some_and(|id| id.dev == dev);
                let open = self.source_dir(item).ok().filter(|_| is_its_own)?;
                let uuid = uuid_at(own_path(&open), Some(dev), None);
                let name = uuid.unwrap_or_else(|| {
                    let session = MountSession::of(&open);
                    let MountSession { boot, mount } = session;
                    match session.is_known() {
                        true => format!("{:032x} {mount} {dev}", u128::from_be_bytes(boot)),
                        false => String::new(),
                    }
                });
                let traits = traits_or_unknown(&open, dev);
                let volume = volume_at(own_path(&open)).unwrap_or_default();
                let mut piece = Vec::new();
                if !volume.is_empty() && volume.len() <= record::LONGEST_PATH {
                    record::push_volume(&mut piece, dev, &volume);
                    self.job.append(&mut piece);
                }
                let proving = Proving {
                    traits,
                    name,
                    volume,
                };
                let met = (dev, proving);
                lock().push(met.clone());
                met
            }
        };
        self.met.push(met);
        Some(self.met.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_shared_out_and_never_none() {
        assert_eq!(affordable_of(u64::MAX, 1024), WAITING);
        assert_eq!(affordable_of(1000, 2), 250);
        assert_eq!(affordable_of(4072, 64), 31);
        for workers in [0, 1, 64] {
            assert_eq!(affordable_of(0, workers), 2);
        }
    }

    #[test]
    fn as_many_batches_as_workers_can_share() {
        let batches = |entries, workers| {
            let cursor = shared_out(entries, workers, BATCH);
            std::iter::from_fn(|| cursor.next()).count()
        };
        assert_eq!(batches(3000, 2), 24);
        assert_eq!(batches(3000, 64), 125);
        assert_eq!(batches(100, 64), 100);
        assert_eq!([batches(100, 1), batches(0, 1)], [1, 0]);
    }

    #[test]
    fn who_waits_for_syncs_is_not_joined() {
        let workers = Workers::up_to(2, 128);
        let most = |durability, affordable| most_waiting_of(workers, durability, affordable);
        assert_eq!(most(Durability::None, u64::MAX), 128);
        assert_eq!(most(Durability::None, 4096 / needed_by_each(false)), 32);
        assert_eq!(most(Durability::None, 4096 / needed_by_each(true)), 12);
        assert_eq!(most(Durability::None, 0), 2);
        assert_eq!(most(Durability::Batch, u64::MAX), 2);
    }
}
