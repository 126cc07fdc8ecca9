//! One worker's means: sources and directories that it holds open, and what waits for its name.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bc_digest::Digest;
use bc_read::Opener;
use bc_walk::{Error, FileStat, Stamp};
use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::beneath::DestDir;
use crate::event::Event;
use crate::job::{Job, readable};
use crate::meta::{Lost, Wanted, XattrReader, fstat};
use crate::options::Durability;
use crate::record;
use crate::results::{Outcome, State, meta_of};
use crate::stage::{self, Over};
use crate::tree::{Item, parts};

/// Directories of the destination that a worker holds open.
const KEPT: usize = 8;

/// Files that wait for their names with [`Durability::Batch`], and bytes of them.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: u64 = 1 << 30;
/// Changes of the directory among them: each is held open.
const BATCH_DIRS: usize = 256;

/// Kernels keep times in steps of up to 10 ms, some file systems of up to 2 s.
const STEP_NS: i64 = 100_000_000;
const COARSE_NS: i64 = 2_100_000_000;

/// Whether a write from now on gives a file another time than it has.
fn is_settled(stamp: &Stamp) -> bool {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let now = (now.tv_sec as i64).saturating_mul(1_000_000_000) + now.tv_nsec as i64;
    [stamp.mtime_ns, stamp.ctime_ns].iter().all(|&time| {
        let step = if time % 1_000_000_000 == 0 {
            COARSE_NS
        } else {
            STEP_NS
        };
        time < now.saturating_sub(step)
    })
}

/// A worker.
pub(crate) struct Worker<'a> {
    pub(crate) job: &'a Job<'a>,
    opener: Option<(usize, Opener<'a>)>,
    dirs: Vec<(Vec<u8>, Rc<DestDir>)>,
    pub(crate) xattrs: XattrReader,
    pub(crate) lost: Vec<Lost>,
    pub(crate) buffer: Vec<u8>,
    waiting: Vec<Waiting>,
    waiting_bytes: u64,
    waiting_dirs: usize,
    piece: Vec<u8>,
}

/// An open source.
pub(crate) struct Open {
    pub(crate) file: OwnedFd,
    pub(crate) stat: FileStat,
    pub(crate) raw: Stat,
    /// Whether a later write would give it another time.
    pub(crate) settled: bool,
}

/// Where an entry goes.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) item: Item,
    /// Below the top.
    pub(crate) target: Vec<u8>,
    pub(crate) dir: Rc<DestDir>,
    pub(crate) over: Over,
    /// Whether a later write to the source would give it another time.
    pub(crate) settled: bool,
}

impl Place {
    pub(crate) fn name(&self) -> &[u8] {
        parts(&self.target).1
    }
}

/// A stage that is complete and waits for its name.
struct Waiting {
    place: Place,
    stage: String,
    source: FileStat,
    staged: Option<FileStat>,
    digest: Option<Digest>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(job: &'a Job<'a>) -> Worker<'a> {
        Worker {
            job,
            opener: None,
            dirs: Vec::new(),
            xattrs: XattrReader::new(),
            lost: Vec::new(),
            buffer: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            waiting_dirs: 0,
            piece: Vec::new(),
        }
    }

    /// Opens a source that is a regular file, and shows that it is the one that was walked.
    pub(crate) fn open(&mut self, item: Item) -> Result<Open, Error> {
        let job = self.job;
        let (root, _) = job.tree.root(item);
        let Some((listing, id)) = job.tree.entry(item) else {
            let path = job.tree.source_path(item);
            return Err(Error::new(path, "open", Errno::INVAL));
        };
        if self.opener.as_ref().is_none_or(|(of, _)| *of != root) {
            self.opener = Some((root, Opener::new(listing)));
        }
        let opener = self.opener.as_mut().map(|(_, opener)| opener);
        let (file, _) = match opener {
            Some(opener) => opener.open_checked(id)?,
            None => bc_read::open_checked(listing, id)?,
        };
        // Once more: of times of access, and of others than 64 bits hold, the first look says nothing.
        let raw = fstat(&file).map_err(|errno| Error::new(listing.path(id), "stat", errno))?;
        let stat = FileStat::from(&raw);
        let settled = is_settled(&stat.stamp);
        Ok(Open {
            file,
            stat,
            raw,
            settled,
        })
    }

    /// What a copy of an open source is to be given.
    pub(crate) fn wanted(&mut self, item: Item, open: &Open) -> Result<Wanted, Error> {
        let xattrs = match self.job.options.preserve.xattrs {
            false => Vec::new(),
            true => self.xattrs.of_file(open.file.as_fd()).map_err(|errno| {
                let path = self.job.tree.source_path(item);
                Error::new(path, "getxattr", errno)
            })?,
        };
        Ok(Wanted::new(&open.raw, xattrs))
    }

    /// A directory of the destination.
    pub(crate) fn dir(&mut self, path: &[u8]) -> Result<Rc<DestDir>, Error> {
        if let Some(at) = self.dirs.iter().position(|(kept, _)| kept == path) {
            // Neighbours share one: the last is the next.
            let found = self.dirs.remove(at);
            let dir = Rc::clone(&found.1);
            self.dirs.push(found);
            return Ok(dir);
        }
        let opened = DestDir::open(self.job.top.fd.as_fd(), path);
        let dir = opened.map_err(|errno| Error::new(self.job.shown(path), "open", errno))?;
        if self.dirs.len() == KEPT {
            self.dirs.remove(0);
        }
        let dir = Rc::new(dir);
        self.dirs.push((path.to_vec(), Rc::clone(&dir)));
        Ok(dir)
    }

    /// Where an entry goes, as far as that is known before it is looked at.
    pub(crate) fn place(&mut self, item: Item) -> Result<Place, Error> {
        let mut target = Vec::new();
        self.job.tree.write_target(item, &mut target);
        // It is the file that cannot be copied because of its directory.
        let dir = self.dir(parts(&target).0).map_err(|error| {
            Error::of_kind(self.job.shown(&target), "open directory", error.kind())
        })?;
        Ok(Place {
            item,
            target,
            dir,
            over: Over::Nothing,
            settled: false,
        })
    }

    /// Has a complete stage wait for its name.
    pub(crate) fn wait(
        &mut self,
        place: Place,
        stage: stage::Stage,
        source: FileStat,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        let job = self.job;
        let name = stage.name.clone();
        let staged = match job.log.is_kept() {
            false => Ok(None),
            true => fstat(&stage.file).map(|stat| Some(FileStat::from(&stat))),
        };
        let synced = match job.options.durability {
            Durability::File => stage.file.sync_all(),
            _ => Ok(()),
        };
        let failed = match (&staged, synced) {
            (Err(errno), _) => Some(job.refused(&place.target, "stat", *errno)),
            (_, Err(error)) => Some(job.refused_io(&place.target, "fsync", error)),
            _ => None,
        };
        if let Some(error) = failed {
            stage.remove(&place.dir);
            return Err(error);
        }
        let other = self
            .waiting
            .last()
            .is_none_or(|last| !Rc::ptr_eq(&last.place.dir, &place.dir));
        self.waiting_dirs += usize::from(other);
        self.waiting_bytes += source.stamp.size;
        self.waiting.push(Waiting {
            place,
            stage: name,
            source,
            staged: staged.unwrap_or(None),
            digest,
        });
        let full = self.waiting.len() >= BATCH_FILES
            || self.waiting_bytes >= BATCH_BYTES
            || self.waiting_dirs >= BATCH_DIRS;
        if full {
            self.commit();
        }
        Ok(())
    }

    /// The end of a batch: what waits gets its name, unless more is to be waited for.
    pub(crate) fn settle(&mut self) {
        if self.job.options.durability != Durability::Batch {
            self.commit();
        }
    }

    /// Gives everything that waits its name, once it is recorded.
    pub(crate) fn commit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let job = self.job;
        let waiting = std::mem::take(&mut self.waiting);
        (self.waiting_bytes, self.waiting_dirs) = (0, 0);
        let batch = job.options.durability == Durability::Batch;
        // Between the barriers nobody else's records may come.
        let _alone = batch.then(|| job.barrier());
        if batch && let Err(errno) = job.sync_all() {
            for waiting in waiting {
                let error = job.refused(&waiting.place.target, "syncfs", errno);
                stage::remove(waiting.place.dir.fd.as_fd(), &waiting.stage);
                job.fail(waiting.place.item, &error);
            }
            return;
        }
        self.record(&waiting);
        let mut outcomes = Vec::with_capacity(waiting.len());
        for waiting in waiting {
            match self.publish(&waiting) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => job.fail(waiting.place.item, &error),
            }
        }
        if batch {
            self.second_barrier();
        }
        job.done(outcomes);
    }

    /// Records files before they get their names.
    fn record(&mut self, waiting: &[Waiting]) {
        let staged = |waiting: &Waiting| waiting.staged.clone();
        for (waiting, staged) in waiting.iter().filter_map(|one| Some((one, staged(one)?))) {
            let target = &waiting.place.target;
            let (source, settled) = (&waiting.source, waiting.place.settled);
            let done = record::done_of(target, source, settled, &staged, waiting.digest);
            record::push_done(&mut self.piece, &done);
        }
        self.job.append(&mut self.piece);
    }

    fn second_barrier(&mut self) {
        let job = self.job;
        match job.sync_all() {
            Ok(()) => {
                bc_fs::journal::push(&mut self.piece, record::DURABLE, |_| {});
                job.append(&mut self.piece);
                let _ = job.log.sync();
            }
            Err(errno) => {
                let error = job.refused(b"", "syncfs", errno);
                (job.observer)(Event::Incomplete(&error));
            }
        }
    }

    fn publish(&mut self, waiting: &Waiting) -> Result<Outcome, Error> {
        let job = self.job;
        let Place {
            item,
            target,
            dir,
            over,
            ..
        } = &waiting.place;
        let fd = dir.fd.as_fd();
        let name = waiting.place.name();
        if let Err(errno) = stage::publish(fd, &waiting.stage, name, *over) {
            stage::remove(fd, &waiting.stage);
            return Err(job.refused(target, "rename", errno));
        }
        if job.options.durability == Durability::File {
            let synced = readable(fd).and_then(rustix::fs::fsync);
            synced.map_err(|errno| job.refused(target, "fsync directory", errno))?;
        }
        let shown = job.shown(target);
        (job.observer)(match over {
            Over::Nothing => Event::Copied(&shown),
            Over::Anything => Event::Replaced(&shown),
        });
        self.outcome(*item, State::Copied, dir, name, waiting.digest)
            .map_err(|errno| Error::new(shown, "stat", errno))
    }

    /// What has become of an entry that has its name.
    pub(crate) fn outcome(
        &self,
        item: Item,
        state: State,
        dir: &DestDir,
        name: &[u8],
        digest: Option<Digest>,
    ) -> Result<Outcome, Errno> {
        let meta = match self.job.has_manifest() {
            false => None,
            true => {
                let stat = rustix::fs::statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
                Some(meta_of(&FileStat::from(&stat)))
            }
        };
        Ok(Outcome {
            item,
            state,
            meta,
            digest,
        })
    }
}
