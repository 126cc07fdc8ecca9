//! Creation of a repaired file: a stage from a copy, compared with the record on the way, or
//! another name of a file repaired before.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Digest, Hasher, hash};
use bc_edit::content::{truncate, write_all_at};
use bc_edit::metadata::FileMetadata;
use bc_fs::call::FailedCall;
use bc_fs::dirfd::own_path;
use bc_fs::meta::Attributed;
use bc_fs::path::split;
use bc_parity::RebuiltContent;
use bc_walk::{Error, ErrorKind, FileStat, Identity};
use rustix::io::Errno;

use super::needs::Need;
use super::sources::{Candidate, CandidateBytes};
use super::{PresentMeta, Restore};
use crate::data::{ByteSink, DataError, Digesting, HUGE, Layout, ReadProgress, read_hash_write};
use crate::meta::{Giving, LostMeta, SourceXattrs};
use crate::place::DestDir;
use crate::sources::shown_below;
use crate::stage::put::{self, Keep, NotPut, Replacement, put_new};
use crate::stage::{self, CompleteStage, FileOrder, NoStage, Stage, StageUse};

/// Bytes of a computed content that are copied at a time.
const COMPUTED: usize = 1 << 20;

/// State of one worker.
pub(super) struct RepairWorker<'r, 'a> {
    pub(super) restore: &'r Restore<'a>,
    /// The first of the needs that are being repaired and not settled: it gets their events.
    pub(super) at: usize,
    pub(super) buffer: Vec<u8>,
    pub(super) xattrs: SourceXattrs,
    pub(super) lost: Vec<LostMeta>,
}

/// The existing file with a name.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub(super) stat: FileStat,
    /// Digest of its content, unless it cannot be read.
    pub(super) digest: Option<Digest>,
}

impl Present {
    fn is(&self, now: &FileStat) -> bool {
        let (was, is) = (&self.stat, now);
        // The ctime moves with each name that is given or taken.
        was.id == is.id
            && was.stamp.size == is.stamp.size
            && was.stamp.mtime_ns == is.stamp.mtime_ns
    }
}

/// A name that is still to be repaired.
pub(super) struct UnrepairedName {
    pub(super) need: usize,
    /// The existing file with the name.
    pub(super) present: Option<Present>,
}

/// File that names are linked to.
pub(super) struct LinkSource<'s> {
    pub(super) dir: &'s DestDir,
    /// Path below the root.
    pub(super) path: &'s [u8],
    pub(super) id: Identity,
}

/// Reason for which a source did not repair a name.
pub(super) enum NotRepaired {
    /// It will not do: a file has not the wanted content, or is on another file system.
    Unsuitable,
    /// The file system makes no more links to the file, or none at all.
    Unlinkable(Errno),
    Cancelled,
    Failed(Error),
}

impl From<Error> for NotRepaired {
    fn from(error: Error) -> NotRepaired {
        NotRepaired::Failed(error)
    }
}

/// State of the repair of the names of one file.
pub(super) struct GroupProgress {
    /// True if a file is forced to the disk before it has any of the names, since it replaces
    /// another one: that may be the better one after a power cut.
    pub(super) is_durable: bool,
    /// Files that have a second name already.
    kept: Vec<Identity>,
    /// Device of a file system that makes no links.
    pub(super) no_links_on: Option<u64>,
}

impl GroupProgress {
    /// Returns the state before the repair of these names.
    pub(super) fn of(names: &[UnrepairedName]) -> GroupProgress {
        GroupProgress {
            is_durable: names.iter().any(|name| name.present.is_some()),
            kept: Vec::new(),
            no_links_on: None,
        }
    }
}

impl<'r, 'a> RepairWorker<'r, 'a> {
    pub(super) fn new(restore: &'r Restore<'a>) -> RepairWorker<'r, 'a> {
        RepairWorker {
            restore,
            at: 0,
            buffer: Vec::new(),
            xattrs: SourceXattrs::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn need(&self, name: &UnrepairedName) -> &'r Need {
        &self.restore.plan.needs[name.need]
    }

    /// Reports a copy that cannot be read: another one may do.
    pub(super) fn unreadable(&self, error: &Error) {
        self.restore.unreadable(Some(self.at), error);
    }

    pub(super) fn link(
        &mut self,
        name: &UnrepairedName,
        source: &LinkSource<'_>,
        group: &mut GroupProgress,
    ) -> Result<Option<Vec<u8>>, NotRepaired> {
        let restore = self.restore;
        let path = &self.need(name).path;
        let (dir, stage) = restore.stage_of(path)?;
        let first = split(source.path).1;
        match put::link(&source.dir.fd, first, source.id, &dir, &stage) {
            Ok(true) => Ok(self.put(&dir, &stage, name, group)?),
            // Another program has taken the name that was linked.
            Ok(false) => {
                Err(Error::of_kind(restore.shown(path), "link", ErrorKind::Changed).into())
            }
            Err(Errno::XDEV) => Err(NotRepaired::Unsuitable),
            // A directory that takes no name at all says nothing of the others.
            Err(errno @ Errno::PERM) if restore.means.dirs.may_put(restore, path).is_ok() => {
                Err(NotRepaired::Unlinkable(errno))
            }
            Err(errno @ (Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
                Err(NotRepaired::Unlinkable(errno))
            }
            Err(errno) => Err(Error::new(restore.shown(path), "link", errno).into()),
        }
    }

    /// Gives a stage its name, or removes it; returns the second name of the replaced file.
    pub(super) fn put(
        &mut self,
        dir: &DestDir,
        stage: &str,
        name: &UnrepairedName,
        group: &mut GroupProgress,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (restore, need) = (self.restore, self.need(name));
        let (above, last) = split(&need.path);
        let dir = dir.fd.as_fd();
        let put = match &name.present {
            None => put_new(dir, stage, last).map(|()| None),
            Some(present) => {
                let id = present.stat.id;
                restore.touched().insert(id);
                let keep = match restore.plan.discards || group.kept.contains(&id) {
                    true => Keep::Nothing,
                    false => Keep::Second(present.digest),
                };
                if restore.plan.discards {
                    restore.means.stages.given_up(&need.path, present);
                }
                let replacement = Replacement {
                    dir,
                    stage,
                    name: last,
                    is_chosen: &|now, _| present.is(&now.stat),
                    keep,
                };
                replacement.put().inspect(|_| group.kept.push(id))
            }
        };
        if put == Err(NotPut::Gone) || put.is_err() && name.present.is_none() {
            stage::remove(dir, stage);
        }
        let said =
            |op, text: &'static str| Error::with_message(restore.shown(&need.path), op, text);
        // Nothing is removed then: the replaced file has the name of the stage.
        let at_stage = || shown_below(&restore.shown(above), stage.as_bytes());
        match put {
            Ok(second) => Ok(second.map(|second| shown_below(above, &second))),
            Err(why) => Err(match why {
                NotPut::Changed | NotPut::Gone => {
                    said("restore", "changed since it was verified: left as it is")
                }
                NotPut::CannotKeep => said(
                    "link",
                    "what is damaged cannot be kept here, for the file system has neither links \
                     nor exchanges, and it was not to be discarded",
                ),
                NotPut::Displaced => {
                    let text = "another program has given the name of what is restored to other \
                                files twice meanwhile: the last one has it, and this is the one \
                                before";
                    Error::with_message(at_stage(), "rename back", text)
                }
                NotPut::Stuck(errno) => Error::new(at_stage(), "rename back", errno),
                NotPut::System(op, errno) => Error::new(restore.shown(&need.path), op, errno),
            }),
        }
    }

    /// Makes a stage of a candidate, if it has the wanted content.
    pub(super) fn stage(
        &mut self,
        name: &UnrepairedName,
        candidate: Option<&Candidate<'_>>,
        group: &GroupProgress,
    ) -> Result<(DestDir, CompleteStage), NotRepaired> {
        let restore = self.restore;
        self.at = name.need;
        let need = self.need(name);
        let failed = |op, errno: Errno| Error::new(restore.shown(&need.path), op, errno);
        let (dir, stage) = restore.stage_of(&need.path)?;
        let stage = stage::open(&dir, stage, StageUse::Fresh).map_err(|error| match error {
            NoStage::System(errno) => failed("create", errno),
            NoStage::Foreign(_) => failed("create", Errno::EXIST),
        })?;
        restore.means.stages.made(&need.path, &stage.file);
        let (wanted, giving) = match self.fill(name, &dir, &stage, candidate) {
            Ok(metadata) => metadata,
            Err(stop) => {
                stage.remove(&dir);
                return Err(stop);
            }
        };
        let order = FileOrder {
            dir: &dir,
            wanted: &wanted,
            giving: &giving,
            is_durable: group.is_durable,
        };
        let complete = stage.complete(&order, &mut self.lost);
        restore.lost(name.need, &mut self.lost);
        let stage = complete.map_err(|call| failed(call.op, call.errno))?;
        Ok((dir, stage))
    }

    /// Fills a stage with the wanted content, and returns the metadata that it gets.
    fn fill(
        &mut self,
        name: &UnrepairedName,
        dir: &DestDir,
        stage: &Stage,
        candidate: Option<&Candidate<'_>>,
    ) -> Result<(FileMetadata, Giving), NotRepaired> {
        let restore = self.restore;
        let need = self.need(name);
        let unread = |errno: Errno| Error::new(restore.shown(&need.path), "getxattr", errno);
        let digest = match candidate {
            Some(candidate) => self.bytes(need, stage, candidate)?,
            None => hash(restore.plan.algorithm, b""),
        };
        if need.digest() != Some(digest) {
            return Err(NotRepaired::Unsuitable);
        }
        let present = match &name.present {
            None => None,
            Some(present) => {
                let last = split(&need.path).1;
                let path = [own_path(&dir.fd).as_bytes(), b"/", last].concat();
                Some(PresentMeta {
                    stat: &present.stat,
                    xattrs: self.xattrs.at(&path).map_err(unread)?,
                })
            }
        };
        // Never more than the copy permits: it may be a secret that no record says so of.
        let new_mode = candidate.map_or(0o666, |from| 0o666 & from.stat.mode);
        let (mut wanted, giving) = restore.recorded(Some(&need.entry), present, new_mode);
        let from = candidate.and_then(Candidate::file);
        if let Some(from) = from.filter(|_| !giving.preserve.xattrs) {
            // The group's bits are the mask of a list that is not recorded.
            let list = self.xattrs.list_of(Attributed::Open(from));
            wanted = wanted.without_acl(list.map_err(unread)?.as_deref());
        }
        Ok((wanted, giving))
    }

    /// Copies, and returns the digest of the bytes written.
    pub(super) fn bytes(
        &mut self,
        need: &Need,
        stage: &Stage,
        candidate: &Candidate<'_>,
    ) -> Result<Digest, NotRepaired> {
        let restore = self.restore;
        let size = candidate.stat.stamp.size;
        let file = match &candidate.bytes {
            CandidateBytes::File(file) => file.as_fd(),
            CandidateBytes::Computed(content) => return self.computed_bytes(need, stage, content),
        };
        let layout = Layout::of(file, candidate.stat.blocks, size);
        let mut count = 0;
        // Work that does not take long is finished.
        let mut reported = |step: ReadProgress<'_>| {
            count += step.count;
            restore.means.progress.bytes.fetch_add(step.count, Relaxed);
            restore.outcomes.written.fetch_add(step.count, Relaxed);
            if let Some(rate) = &restore.means.rate {
                rate.spend(step.count, restore.means.cancel);
            }
            size < HUGE || !restore.means.cancel.is_cancelled()
        };
        let digesting = Digesting::new(Some(restore.plan.algorithm), layout.size);
        let mut outputs = [ByteSink::new(&stage.file, 0)];
        let buffer = &mut self.buffer;
        let read = read_hash_write(
            file,
            &mut outputs,
            &layout,
            digesting,
            buffer,
            &mut reported,
        );
        let [output] = outputs;
        let read = output.error.map_or(read, Err);
        if !matches!(&read, Ok(digest) if *digest == need.digest()) {
            // Another copy is tried: what does not count was not in the total either.
            restore.means.progress.bytes.fetch_sub(count, Relaxed);
        }
        match read {
            Ok(digest) => digest.ok_or(NotRepaired::Unsuitable),
            Err(DataError::Source(op, errno)) => {
                self.unreadable(&Error::new(&candidate.shown[..], op, errno));
                Err(NotRepaired::Unsuitable)
            }
            Err(DataError::Changed) => Err(NotRepaired::Unsuitable),
            Err(DataError::Cancelled) => Err(NotRepaired::Cancelled),
            Err(DataError::Target(op, errno)) => {
                Err(Error::new(restore.shown(&need.path), op, errno).into())
            }
        }
    }

    /// Copies a content that parity gives, and returns the digest of its bytes. Blocks of zeros become
    /// holes.
    fn computed_bytes(
        &mut self,
        need: &Need,
        stage: &Stage,
        content: &RebuiltContent<'_>,
    ) -> Result<Digest, NotRepaired> {
        let restore = self.restore;
        let failed = |call: FailedCall| Error::new(restore.shown(&need.path), call.op, call.errno);
        truncate(&stage.file, content.size()).map_err(failed)?;
        let mut hasher = Hasher::new(restore.plan.algorithm);
        self.buffer.resize(self.buffer.len().max(COMPUTED), 0);
        let mut at = 0;
        while at < content.size() {
            if content.size() >= HUGE && restore.means.cancel.is_cancelled() {
                return Err(NotRepaired::Cancelled);
            }
            let count = (content.size() - at).min(COMPUTED as u64);
            let bytes = &mut self.buffer[..count as usize];
            if let Err(error) = content.read_at(bytes, at) {
                let path = error.path().unwrap_or(content.volume());
                let errno = error
                    .raw_os_error()
                    .map_or(Errno::IO, Errno::from_raw_os_error);
                let path = path.as_os_str().as_encoded_bytes();
                return Err(Error::new(path, "read", errno).into());
            }
            hasher.update(bytes);
            if bytes.iter().any(|byte| *byte != 0) {
                write_all_at(&stage.file, bytes, at).map_err(failed)?;
            }
            restore.means.progress.bytes.fetch_add(count, Relaxed);
            restore.outcomes.written.fetch_add(count, Relaxed);
            if let Some(rate) = &restore.means.rate {
                rate.spend(count, restore.means.cancel);
            }
            at += count;
        }
        Ok(hasher.finalize())
    }
}
