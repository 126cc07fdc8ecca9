//! A file on its way to one or more destinations: it is opened and read once, by the worker of the
//! first, and each destination decides, receives and fails for itself.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_edit::content;
use bc_walk::{Error, ErrorKind, FileStat};
use rustix::io::Errno;

use crate::data::{self, DataError};
use crate::decide::Decision;
use crate::job::{DevicePair, Job};
use crate::options::When;
use crate::place::{EntryPlace, Open};
use crate::resume::record;
use crate::sources::RootItem;
use crate::stage::{Stage, StageContent, StageUse};
use crate::worker::Worker;

/// Places of a file, by the numbers of the workers whose destinations take it.
pub(crate) type FilePlaces = Vec<(usize, EntryPlace)>;

/// One destination's share of a file's copy.
pub(crate) struct Receiver<'a> {
    /// The number of its worker.
    nth: usize,
    pub(crate) job: &'a Job<'a>,
    pub(crate) place: EntryPlace,
    pub(crate) stage: Stage,
    /// True if a later run may resume from the stage.
    pub(crate) is_kept: bool,
    /// True if the stage shares the blocks of its source.
    pub(crate) is_clone: bool,
    pub(crate) digest: Option<Digest>,
    pub(crate) failed: Option<Error>,
}

/// Decides about a file at each destination and opens it; `None` where there is nothing to do.
pub(crate) fn begin(workers: &mut [Worker<'_>], item: RootItem) -> Option<(FilePlaces, Open)> {
    let job = workers[0].job;
    let tree = &job.plan.tree;
    let walked = tree.stat(item);
    let Some(walked) = walked else {
        let error = Error::of_kind(tree.source_path(item), "stat", ErrorKind::Changed);
        let all: Vec<usize> = (0..workers.len()).collect();
        source_failed(workers, &all, item, &error);
        return None;
    };
    let mut places = FilePlaces::with_capacity(workers.len());
    for (nth, worker) in workers.iter_mut().enumerate() {
        if worker.job.is_left_out(item) || worker.job.is_over() {
            continue;
        }
        let place = worker.place(item);
        match place.and_then(|place| worker.decide(place, &walked)) {
            Ok(Decision::Copy(place)) => places.push((nth, place)),
            Ok(Decision::Settled(outcome)) => worker.job.done(vec![outcome]),
            Err(error) => worker.failed(item, &error),
        }
    }
    if places.is_empty() {
        return None;
    }
    match workers[0].open(item) {
        Ok(open) => {
            for (_, place) in &mut places {
                place.settled = open.settled;
            }
            Some((places, open))
        }
        Err(error) => {
            source_failed(workers, &numbers(&places), item, &error);
            None
        }
    }
}

/// Returns the numbers of the places' workers.
pub(crate) fn numbers(places: &FilePlaces) -> Vec<usize> {
    places.iter().map(|(nth, _)| *nth).collect()
}

/// Records the failure of a source for all these destinations, and reports it once.
pub(crate) fn source_failed(workers: &[Worker<'_>], nths: &[usize], item: RootItem, error: &Error) {
    // Cancelled entries have no outcome.
    if error.kind() == ErrorKind::Cancelled {
        return;
    }
    let mut is_reported = false;
    for nth in nths {
        let job = workers[*nth].job;
        if job.puts_off(item, error) {
            continue;
        }
        match std::mem::replace(&mut is_reported, true) {
            false => job.fail(item, error),
            true => job.fail_unreported(item, error),
        }
    }
}

/// Creates the stages of a file. `version`: the state of its source that they belong to, if a later
/// run may resume from them.
pub(crate) fn stages<'a>(
    workers: &mut [Worker<'a>],
    places: FilePlaces,
    version: Option<&FileStat>,
) -> Vec<Receiver<'a>> {
    let mut receivers = Vec::with_capacity(places.len());
    for (nth, place) in places {
        let worker = &mut workers[nth];
        let job = worker.job;
        let version = version.filter(|_| job.means.log.is_kept());
        match worker.stage(&place, version.map_or(StageUse::Fresh, StageUse::Kept)) {
            Ok(stage) => {
                let receiver = Receiver {
                    nth,
                    job,
                    place,
                    stage,
                    is_kept: version.is_some(),
                    is_clone: false,
                    digest: None,
                    failed: None,
                };
                receiver.record_stage();
                receivers.push(receiver);
            }
            Err(error) => worker.failed(place.item, &error),
        }
    }
    receivers
}

/// One reading of a source.
pub(crate) struct SourceReading<'a> {
    pub(crate) open: &'a Open,
    /// The state that is read.
    pub(crate) stat: &'a FileStat,
    /// True if it is not the first reading: nothing written before counts.
    pub(crate) again: bool,
    pub(crate) go_on: &'a (dyn Fn() -> bool + Sync),
}

/// Makes `read` fill stages with one state of their source, and queues them for their names.
pub(crate) fn receive<'a>(
    workers: &mut [Worker<'_>],
    mut receivers: Vec<Receiver<'a>>,
    open: &Open,
    read: impl FnMut(&mut [Receiver<'a>], &SourceReading<'_>) -> Result<(), Error>,
) {
    match fill(&mut receivers, open, read) {
        Ok(stat) => complete(workers, receivers, open, &stat),
        Err(error) => give_up(workers, receivers, &error),
    }
}

fn fill<'a>(
    receivers: &mut [Receiver<'a>],
    open: &Open,
    mut read: impl FnMut(&mut [Receiver<'a>], &SourceReading<'_>) -> Result<(), Error>,
) -> Result<FileStat, Error> {
    let Some(first) = receivers.first() else {
        return Ok(open.stat.clone());
    };
    let (job, item) = (first.job, first.place.item);
    let mut again = false;
    let (stat, _) = one_state(job, item, open, |stat, go_on| {
        let reading = SourceReading {
            open,
            stat,
            again: std::mem::replace(&mut again, true),
            go_on,
        };
        read(receivers, &reading)?;
        // Two readings of one state give the same.
        Ok(receivers.iter().map(|one| one.digest).collect::<Vec<_>>())
    })?;
    Ok(stat)
}

/// Checks the stages, gives them the metadata of the source, and queues them for their names.
fn complete(
    workers: &mut [Worker<'_>],
    receivers: Vec<Receiver<'_>>,
    open: &Open,
    stat: &FileStat,
) {
    let Some(item) = receivers.first().map(|one| one.place.item) else {
        return;
    };
    let mut settled = open.settled;
    let wanted = match workers[0].wanted(item, &mut settled, open, stat) {
        Ok(wanted) => wanted,
        Err(error) => return give_up(workers, receivers, &error),
    };
    for mut receiver in receivers {
        let worker = &mut workers[receiver.nth];
        receiver.place.settled = settled;
        let digest = receiver.digest;
        let checked = match receiver.failed.take() {
            Some(error) => Err(error),
            None => worker.read_back(&receiver.place, &receiver.stage, digest),
        };
        let done = match checked {
            Ok(()) => {
                let Receiver { place, stage, .. } = receiver;
                worker.finish(place, stage, stat.clone(), &wanted, digest)
            }
            Err(error) => {
                receiver.discard();
                Err(error)
            }
        };
        if let Err(error) = done {
            worker.failed(item, &error);
        }
    }
}

/// Handles a failure of the source: the stages are of no use, unless a later run resumes from them.
fn give_up(workers: &[Worker<'_>], receivers: Vec<Receiver<'_>>, error: &Error) {
    let Some(item) = receivers.first().map(|one| one.place.item) else {
        return;
    };
    let (mut ended, mut others) = (Vec::new(), Vec::new());
    for mut receiver in receivers {
        match receiver.failed.take() {
            Some(own) => ended.push((receiver.nth, own)),
            None => others.push(receiver.nth),
        }
        receiver.discard();
    }
    source_failed(workers, &others, item, error);
    for (nth, own) in ended {
        workers[nth].failed(item, &own);
    }
}

impl Receiver<'_> {
    /// Records the stage, so that it is found again when its source has changed.
    fn record_stage(&self) {
        let target = &self.place.target;
        if self.is_kept && target.len() <= record::LONGEST_PATH {
            let mut piece = Vec::new();
            record::push_stage(&mut piece, &self.stage.name, target);
            self.job.append(&mut piece);
        }
    }

    /// Removes the stage, unless the run is over and the next one resumes from it.
    fn discard(self) {
        if !(self.is_kept && self.job.is_over()) {
            self.stage.remove(&self.place.dir);
        }
    }

    /// Prepares the stage before its source is read: leftovers of an earlier reading are removed,
    /// and blocks are shared where that is wanted and possible.
    pub(crate) fn prepare(&mut self, open: &Open, again: bool) {
        if self.failed.is_some() {
            return;
        }
        // A stage that can be resumed from stays until it is known how much of it is of use.
        let is_of_use = self.is_kept || self.stage.before == StageContent::New;
        let emptied = match again || !is_of_use {
            true => data::end_at(&self.stage.file, 0).map_err(|error| self.data_error(error)),
            false => Ok(()),
        };
        match emptied.and_then(|()| self.shares(open)) {
            Ok(is_clone) => self.is_clone = is_clone,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Makes the stage share the blocks of its source, if that is wanted and possible.
    fn shares(&self, open: &Open) -> Result<bool, Error> {
        let job = self.job;
        let when = job.plan.options.reflink;
        let pair = self.pair(open);
        // A clone has the holes of its source, which may be too many or too few.
        let is_asked = when == When::Always || job.plan.options.sparse == When::Auto;
        if when == When::Never
            || !is_asked
            || (when == When::Auto && job.site.refusals.clone.has(pair))
        {
            return Ok(false);
        }
        match content::clone(&open.file, &self.stage.file).map_err(Errno::from) {
            Ok(()) => Ok(true),
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::ROFS)) => {
                Err(job.refused(&self.place.target, "clone", errno))
            }
            Err(errno) if when == When::Always => {
                Err(Error::new(job.shown(&self.place.target), "clone", errno))
            }
            Err(_) => {
                job.site.refusals.clone.add(pair);
                Ok(false)
            }
        }
    }

    /// Returns the file systems of source and destination.
    pub(crate) fn pair(&self, open: &Open) -> DevicePair {
        DevicePair {
            source: open.stat.id.dev,
            target: self.place.dir.id.dev,
        }
    }

    /// True if the bytes read from the source are to be written to it.
    pub(crate) fn is_written(&self) -> bool {
        self.failed.is_none() && !self.is_clone
    }

    /// Counts bytes that were copied to it, and waits until they are paid for, or `go_on` does not
    /// hold.
    pub(crate) fn reported(&self, count: u64, go_on: &dyn Fn() -> bool) {
        self.job.means.progress.bytes.fetch_add(count, Relaxed);
        self.job.pay_while(count, go_on);
    }

    /// Turns a failure of the bytes into an error with its path.
    pub(crate) fn data_error(&self, error: DataError) -> Error {
        let source = || self.job.plan.tree.source_path(self.place.item);
        match error {
            DataError::Source(op, errno) => Error::new(source(), op, errno),
            DataError::Target(op, errno) => self.job.refused(&self.place.target, op, errno),
            DataError::Changed => Error::of_kind(source(), "read", ErrorKind::Changed),
            DataError::Cancelled => {
                // The caller knows of a cancellation by the flag; without it the lease was broken.
                let kind = match self.job.means.cancel.is_cancelled() {
                    true => ErrorKind::Cancelled,
                    false => ErrorKind::Changed,
                };
                Error::of_kind(source(), "read", kind)
            }
        }
    }
}

/// Makes `copy` read one state of an open source.
fn one_state<T: PartialEq>(
    job: &Job<'_>,
    item: RootItem,
    open: &Open,
    mut copy: impl FnMut(&FileStat, &(dyn Fn() -> bool + Sync)) -> Result<T, Error>,
) -> Result<(FileStat, T), Error> {
    let copied = if bc_read::is_fresh(&open.stat.stamp) {
        bc_read::read_fresh(&open.file, job.means.cancel, copy)
    } else {
        copy(&open.stat, &|| !job.means.cancel.is_cancelled()).and_then(|copied| {
            bc_read::unchanged(open.file.as_fd(), &open.stat)?;
            Ok((open.stat.clone(), copied))
        })
    };
    copied.map_err(|error| match error.path() {
        b"" => renamed(&error, job.plan.tree.source_path(item)),
        _ => error,
    })
}

/// Adds the path to the error of a reading that did not know it.
pub(crate) fn renamed(error: &Error, path: Vec<u8>) -> Error {
    Error::of_kind(path, error.op(), error.kind())
}
