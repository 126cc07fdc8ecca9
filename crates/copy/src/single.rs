//! Files that are copied one by one: larger ones, those with holes, and those whose blocks are
//! shared.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_walk::{Error, ErrorKind, FileStat};
use rustix::io::Errno;

use crate::data::{self, DataError, Layout};
use crate::decide::{Decision, digest_of};
use crate::options::When;
use crate::place::{Open, Place};
use crate::small::renamed;
use crate::stage::Stage;
use crate::tree::Item;
use crate::worker::Worker;

impl Worker<'_> {
    /// Copies a file that was not small when it was walked.
    pub(crate) fn medium(&mut self, item: Item) {
        if self.job.is_over() {
            return;
        }
        if let Err(error) = self.try_medium(item) {
            self.failed(item, &error);
        }
        self.settle();
    }

    fn try_medium(&mut self, item: Item) -> Result<(), Error> {
        match self.begin(item)? {
            Some((place, open)) => self.single(place, open),
            None => Ok(()),
        }
    }

    /// Decides about a file and opens it; nothing where there is nothing to do.
    pub(crate) fn begin(&mut self, item: Item) -> Result<Option<(Place, Open)>, Error> {
        let place = self.place(item)?;
        let Some(walked) = self
            .job
            .tree
            .entry(item)
            .and_then(|(list, id)| list.stat(id))
        else {
            let path = self.job.tree.source_path(item);
            return Err(Error::of_kind(path, "stat", ErrorKind::Changed));
        };
        match self.decide(place, &walked)? {
            Decision::Copy(mut place) => {
                let open = self.open(item)?;
                place.settled = open.settled;
                Ok(Some((place, open)))
            }
            Decision::Settled(outcome) => {
                self.job.done(vec![outcome]);
                Ok(None)
            }
        }
    }

    /// Copies one open file.
    pub(crate) fn single(&mut self, mut place: Place, open: Open) -> Result<(), Error> {
        self.make_room(open.stat.stamp.size);
        self.record_begun([&place.target[..]]);
        let stage = self.stage(&place, None)?;
        let copied = self.fill(&place, &open, &stage).and_then(|(stat, digest)| {
            self.read_back(&place, &stage, digest)?;
            let wanted = self.wanted(&mut place, &open, &stat)?;
            Ok((stat, digest, wanted))
        });
        match copied {
            Ok((stat, digest, wanted)) => self.finish(place, stage, stat, &wanted, digest),
            Err(error) => {
                stage.remove(&place.dir);
                Err(error)
            }
        }
    }

    /// Fills a stage with one state of its source.
    fn fill(
        &mut self,
        place: &Place,
        open: &Open,
        stage: &Stage,
    ) -> Result<(FileStat, Option<Digest>), Error> {
        let job = self.job;
        let mut buffer = std::mem::take(&mut self.scratch);
        let path = job.tree.source_path(place.item);
        let mut copy = |stat: &FileStat, go_on: &(dyn Fn() -> bool + Sync)| {
            self.bytes(place, (open, stat), stage, &mut buffer, go_on)
        };
        let copied = if bc_read::is_fresh(&open.stat.stamp) {
            bc_read::read_fresh(&open.file, job.cancel, copy)
        } else {
            copy(&open.stat, &|| !job.cancel.is_cancelled()).and_then(|digest| {
                bc_read::unchanged(&open.file, &open.stat)?;
                Ok((open.stat.clone(), digest))
            })
        };
        self.scratch = buffer;
        copied.map_err(|error| match error.path() {
            b"" => renamed(&error, path),
            _ => error,
        })
    }

    /// Copies the bytes of one state, by the cheapest way there is.
    fn bytes(
        &self,
        place: &Place,
        (open, stat): (&Open, &FileStat),
        stage: &Stage,
        buffer: &mut Vec<u8>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Digest>, Error> {
        let job = self.job;
        let from = open.file.as_fd();
        let told = |count: u64| {
            job.progress.bytes.fetch_add(count, Relaxed);
            go_on() && !job.cancel.is_cancelled()
        };
        let failed = |error| self.data_error(place, error);
        // What an earlier reading of it left.
        data::end_at(&stage.file, 0).map_err(failed)?;
        if self.is_shared(place, open, stage)? {
            told(stat.stamp.size);
            let Some(algorithm) = job.options.algorithm else {
                return Ok(None);
            };
            let digest = digest_of(&stage.file, algorithm, buffer, &|| told(0));
            return match digest {
                Ok(Some(digest)) => Ok(Some(digest)),
                Ok(None) => Err(failed(DataError::Cancelled)),
                Err(errno) => Err(failed(DataError::Target("read", errno))),
            };
        }
        let layout = layout(job.options.sparse, open, stat);
        job.written.fetch_add(stat.stamp.size, Relaxed);
        let ranges = job.options.algorithm.is_none()
            && !layout.zeros_are_holes
            && !job.clones.no_range.load(Relaxed);
        if ranges {
            if data::copy_ranges(from, &stage.file, &layout, &told).map_err(failed)? {
                return Ok(None);
            }
            job.clones.no_range.store(true, Relaxed);
        }
        let algorithm = job.options.algorithm;
        data::read_hash_write(from, &stage.file, &layout, algorithm, buffer, &told).map_err(failed)
    }

    /// Has the stage share the blocks of its source, if that is wanted and can be.
    pub(crate) fn is_shared(
        &self,
        place: &Place,
        open: &Open,
        stage: &Stage,
    ) -> Result<bool, Error> {
        let job = self.job;
        let when = job.options.reflink;
        if when == When::Never || (when == When::Auto && job.clones.no_clone.load(Relaxed)) {
            return Ok(false);
        }
        match rustix::fs::ioctl_ficlone(&stage.file, &open.file) {
            Ok(()) => Ok(true),
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::ROFS)) => {
                Err(job.refused(&place.target, "clone", errno))
            }
            Err(errno) if when == When::Always => {
                Err(Error::new(job.shown(&place.target), "clone", errno))
            }
            Err(_) => {
                job.clones.no_clone.store(true, Relaxed);
                Ok(false)
            }
        }
    }

    /// What the failure of the bytes is, in words.
    pub(crate) fn data_error(&self, place: &Place, error: DataError) -> Error {
        let source = || self.job.tree.source_path(place.item);
        match error {
            DataError::Source(op, errno) => Error::new(source(), op, errno),
            DataError::Target(op, errno) => self.job.refused(&place.target, op, errno),
            DataError::Changed => Error::of_kind(source(), "read", ErrorKind::Changed),
            DataError::Cancelled => {
                // Whoever asked for it is told by the flag; without it the lease was broken.
                let kind = match self.job.cancel.is_cancelled() {
                    true => ErrorKind::Cancelled,
                    false => ErrorKind::Changed,
                };
                Error::of_kind(source(), "read", kind)
            }
        }
    }
}

/// Which bytes are written.
pub(crate) fn layout(sparse: When, open: &Open, stat: &FileStat) -> Layout {
    let size = stat.stamp.size;
    let mut layout = match sparse {
        When::Never => return Layout::solid(size),
        _ if open.stat.blocks * 512 < size => Layout::of(open.file.as_fd(), size),
        _ => Layout::solid(size),
    };
    layout.zeros_are_holes = sparse == When::Always;
    layout
}
