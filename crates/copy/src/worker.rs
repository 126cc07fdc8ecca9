//! One worker's means: sources and directories that it holds open, and what waits for its name.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bc_digest::Digest;
use bc_read::Opener;
use bc_walk::shortage::Shortage;
use bc_walk::{DirFdCache, Error, ErrorKind, FileStat};
use rustix::io::Errno;

use crate::beneath::DestDir;
use crate::crew::descriptors;
use crate::job::Job;
use crate::meta::{Lost, Wanted, XattrReader, fstat};
use crate::options::Durability;
use crate::place::{Open, Place, is_settled};
use crate::queue::Queue;
use crate::record::{self, Placed};
use crate::stage::{Over, Stage};
use crate::stamp::Met;
use crate::tree::{Item, parts};

/// Small files, or directories, that a worker takes at once.
pub(crate) const BATCH: usize = 128;

/// Files below which a further worker is not worth its start.
pub(crate) const FILES_EACH: usize = 64;

/// Bytes of a path, as a rule.
pub(crate) const USUAL: usize = 128;

/// Directories of the destination that a worker holds open for those that come next.
const KEPT: usize = 8;

/// Directories that a worker opens before what is in them gets its name, which they are held open
/// for.
const WAITING: usize = 256;

/// A worker.
pub(crate) struct Worker<'a> {
    pub(crate) job: &'a Job<'a>,
    opener: Option<(usize, Opener<'a>)>,
    /// Directories of one source.
    sources: Option<(usize, DirFdCache<'a>)>,
    dirs: Vec<(Vec<u8>, Rc<DestDir>)>,
    /// Directories of the destination that were opened since what waited got its name, and how many
    /// there may be.
    opened: usize,
    most_opened: usize,
    /// Of descriptors.
    shortage: Rc<Shortage>,
    pub(crate) xattrs: XattrReader,
    pub(crate) lost: Vec<Lost>,
    /// What the small files of a batch hold.
    pub(crate) buffer: Vec<u8>,
    /// For one larger file, which may come in the middle of a batch.
    pub(crate) scratch: Vec<u8>,
    queue: Queue,
    /// File systems of sources.
    pub(crate) met: Met,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(job: &'a Job<'a>) -> Worker<'a> {
        Worker {
            job,
            opener: None,
            sources: None,
            dirs: Vec::new(),
            opened: 0,
            most_opened: affordable(job.options.workers),
            shortage: Rc::new(Shortage::new(job.cancel)),
            xattrs: XattrReader::new(),
            lost: Vec::new(),
            buffer: Vec::new(),
            scratch: Vec::new(),
            queue: Queue::default(),
            met: Met::new(),
        }
    }

    /// One of several, each for another destination, between which a thread divides what it may
    /// hold open.
    pub(crate) fn one_of(job: &'a Job<'a>, several: usize) -> Worker<'a> {
        let most_opened = affordable(job.options.workers.saturating_mul(several));
        Worker {
            most_opened,
            ..Worker::new(job)
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
        let (file, raw) = match &mut self.opener {
            Some((_, opener)) => opener.open_for_copy(id)?,
            None => Opener::new(listing).open_for_copy(id)?,
        };
        let stat = FileStat::from(&raw);
        let settled = is_settled(&stat.stamp);
        Ok(Open {
            file,
            stat,
            raw,
            settled,
        })
    }

    /// What a copy of an open source is to be given that was read in the state `read`; `settled`
    /// becomes false where a later write may leave it with the time that it has.
    pub(crate) fn wanted(
        &mut self,
        item: Item,
        settled: &mut bool,
        open: &Open,
        read: &FileStat,
    ) -> Result<Wanted, Error> {
        let tree = &self.job.tree;
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
        let file = open.file.as_fd();
        let preserve = self.job.options.preserve;
        if !preserve.xattrs {
            let wanted = Wanted::new(&raw, Vec::new());
            if !preserve.mode {
                return Ok(wanted);
            }
            let list = self.xattrs.acl_of(file).map_err(failed("getxattr"))?;
            return Ok(wanted.without_acl(list));
        }
        let xattrs = self.xattrs.of_file(file).map_err(failed("getxattr"))?;
        Ok(Wanted::new(&raw, xattrs))
    }

    /// The directory that an entry of a listing is in, at its source.
    pub(crate) fn source_dir(&mut self, item: Item) -> Result<Rc<OwnedFd>, Error> {
        let (root, _) = self.job.tree.root(item);
        let Some((listing, id)) = self.job.tree.entry(item) else {
            let path = self.job.tree.source_path(item);
            return Err(Error::new(path, "open", Errno::INVAL));
        };
        match &mut self.sources {
            Some((known, sources)) if *known == root => sources.open_waiting(listing.dir(id)),
            other => {
                let (_, sources) = other.insert((root, DirFdCache::new(listing)));
                sources.open_waiting(listing.dir(id))
            }
        }
    }

    /// A directory of the destination, by its path below the top. The path of an error is the
    /// caller's to choose.
    pub(crate) fn try_dir(&mut self, path: &[u8]) -> Result<Rc<DestDir>, Errno> {
        if let Some(at) = self.dirs.iter().rposition(|(kept, _)| kept == path) {
            let dir = Rc::clone(&self.dirs[at].1);
            // Used last, it is given up last.
            self.dirs[at..].rotate_left(1);
            return Ok(dir);
        }
        let job = self.job;
        let opened = self.open_waiting(|| DestDir::open(job.top.fd.as_fd(), path));
        let dir = Rc::new(opened?);
        let is_synced = self.job.options.durability != Durability::None;
        if is_synced && dir.id.dev != self.job.top.id.dev {
            self.job.also_sync(&dir);
        }
        self.opened += 1;
        if self.dirs.len() == KEPT.min(self.most_opened) {
            self.dirs.remove(0);
        }
        self.dirs.push((path.to_vec(), Rc::clone(&dir)));
        Ok(dir)
    }

    /// Calls `open`. Where descriptors are short, those that are held here are given up, and those of
    /// others are waited for.
    pub(crate) fn open_waiting<T>(
        &mut self,
        open: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let shortage = Rc::clone(&self.shortage);
        let errno = |errno: &Errno| Some(errno.raw_os_error());
        shortage.wait(errno, open, || self.let_go())
    }

    /// Closes what can be opened again.
    pub(crate) fn let_go(&mut self) {
        self.commit();
        self.dirs.clear();
        self.sources = None;
        self.opener = None;
    }

    /// Whether so many directories are open that what is in them should get its name first.
    pub(crate) fn is_full(&self) -> bool {
        self.opened >= self.most_opened
    }

    /// Where an entry goes, as far as that is known before it is looked at.
    pub(crate) fn place(&mut self, item: Item) -> Result<Place, Error> {
        let mut target = Vec::with_capacity(USUAL);
        self.job.tree.write_target(item, &mut target);
        // It is the file that cannot be copied because of its directory.
        let dir = self.try_dir(parts(&target).0);
        let dir = dir.map_err(|errno| self.job.no_directory(&target, errno))?;
        Ok(Place {
            item,
            target,
            dir,
            over: Over::Nothing,
            chosen: None,
            settled: false,
            is_whole: true,
        })
    }

    /// Records what gets a stage now: should this run be killed and its source be gone when
    /// another one goes on, the stage is found by that.
    pub(crate) fn record_begun<'p>(&self, targets: impl IntoIterator<Item = &'p [u8]>) {
        let mut piece = Vec::new();
        if self.job.log.is_kept() {
            let short = |target: &&[u8]| target.len() <= record::LONGEST_PATH;
            for target in targets.into_iter().filter(short) {
                bc_fs::journal::push(&mut piece, record::BEGUN, |out| {
                    out.extend_from_slice(target);
                });
            }
        }
        self.job.append(&mut piece);
    }

    /// Has a complete stage wait for its name; with it, what it is.
    pub(crate) fn wait(
        &mut self,
        place: Place,
        stage: (Stage, FileStat),
        source: FileStat,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        self.queue.add(self.job, place, stage, source, digest)?;
        if self.is_full() {
            self.commit();
        }
        Ok(())
    }

    /// What waits and so many bytes that are to come are no more than may be lost at once.
    pub(crate) fn make_room(&mut self, bytes: u64) {
        self.queue.make_room(self.job, bytes);
    }

    /// The end of a batch: what waits gets its name, unless more is to be waited for.
    pub(crate) fn settle(&mut self) {
        if self.job.options.durability != Durability::Batch {
            self.commit();
        }
    }

    /// Has the state of a file that has its name recorded.
    pub(crate) fn placed(&mut self, target: &[u8], state: &Placed) {
        self.queue.placed(target, state);
    }

    /// The end of its work: everything that waits gets its name, and what is not recorded yet is.
    pub(crate) fn end(&mut self) {
        self.commit();
        self.queue.flush(self.job);
    }

    /// Gives everything that waits its name.
    pub(crate) fn commit(&mut self) {
        self.queue.commit(self.job);
        self.opened = 0;
    }
}

/// Directories that each of so many workers may hold open beside [`KEPT`]: half of what descriptors
/// there are.
fn affordable(workers: usize) -> usize {
    affordable_of(descriptors(), workers)
}

fn affordable_of(descriptors: u64, workers: usize) -> usize {
    let each = descriptors / 2 / workers.max(1) as u64;
    each.clamp(2, WAITING as u64) as usize
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
}
