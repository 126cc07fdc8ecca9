//! A stage on its way to completeness: made, read back from wherever the kernel has it or from the
//! medium, past all caches in memory, and given its metadata.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_edit::metadata::FileMetadata;
use bc_fs::dirfd::read_at;
use bc_walk::{Error, ErrorKind, FileStat};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::decide::digest_of;
use crate::event::Event;
use crate::options::{Durability, ReadBack};
use crate::place::{DestDir, EntryPlace};
use crate::sources::RootItem;
use crate::stage::{self, FileOrder, NoStage, Stage, StageUse};
use crate::worker::Worker;

/// Alignment of direct reads, in the file and in memory: no block is larger.
const ALIGNED: usize = 4096;

/// Bytes that are read at once.
pub(crate) const PIECE: usize = 512 << 10;

impl Worker<'_> {
    /// Reads a stage back, if that is wanted, and compares it with the bytes read from the source.
    pub(crate) fn read_back(
        &mut self,
        place: &EntryPlace,
        stage: &Stage,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        let job = self.job;
        let (Some(algorithm), Some(digest)) = (job.plan.options.algorithm, digest) else {
            return Ok(());
        };
        let written = || stage.file.metadata().map_or(0, |meta| meta.len());
        let unpaid = Cell::new(job.plan.options.rate.as_ref().map_or(0, |_| written()));
        // Called before each piece.
        let go_on = || {
            let piece = unpaid.get().min(PIECE as u64);
            unpaid.set(unpaid.get() - piece);
            job.pay(piece);
            !job.means.cancel.is_cancelled()
        };
        let found = match job.plan.options.read_back {
            // A move reads all of it back when it is on the disk.
            _ if job.plan.options.moves => return Ok(()),
            ReadBack::None => return Ok(()),
            // The buffer of a batch holds bytes that are still to be written.
            ReadBack::Read => digest_of(&stage.file, algorithm, &mut Vec::new(), &go_on),
            ReadBack::Media => self.digest_of_medium(place, stage, algorithm, &go_on),
        };
        match found {
            Ok(Some(found)) if found == digest => Ok(()),
            Ok(Some(_)) => {
                let text = "differs from what was written";
                Err(Error::with_message(
                    job.shown(&place.target),
                    "read back",
                    text,
                ))
            }
            Ok(None) => {
                let kind = bc_walk::ErrorKind::Cancelled;
                Err(Error::of_kind(job.shown(&place.target), "read back", kind))
            }
            Err(errno) => Err(job.refused(&place.target, "read back", errno)),
        }
    }

    fn digest_of_medium(
        &self,
        place: &EntryPlace,
        stage: &Stage,
        algorithm: Algorithm,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>, Errno> {
        retry_on_intr(|| rustix::fs::fdatasync(&stage.file))?;
        let name = stage.name.as_bytes();
        self.digest_past_cache(&place.dir, name, &stage.file, algorithm, go_on)
    }

    /// Returns the digest of a file of the destination as the options have it read back, to be
    /// compared with what was written to it.
    pub(crate) fn digest_back(
        &self,
        place: &EntryPlace,
        file: impl AsFd,
        algorithm: Algorithm,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>, Errno> {
        match self.job.plan.options.read_back {
            ReadBack::Media => {
                self.digest_past_cache(&place.dir, place.name(), file, algorithm, go_on)
            }
            ReadBack::None | ReadBack::Read => digest_of(file, algorithm, &mut Vec::new(), go_on),
        }
    }

    /// Returns the digest of an open file, which has this name, from the medium.
    fn digest_past_cache(
        &self,
        dir: &DestDir,
        name: &[u8],
        file: impl AsFd,
        algorithm: Algorithm,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| rustix::fs::openat(&dir.fd, name, flags, Mode::empty()));
        let direct = opened
            .map(File::from)
            .and_then(|file| direct(&file, algorithm, go_on));
        match direct {
            // The file system knows no such reads.
            Err(Errno::INVAL | Errno::NOTSUP) => {
                if !self.job.outcomes.reported_direct.swap(true, Relaxed) {
                    let text = "the destination has no direct reads: what was written is read \
                                back from memory, not from the medium";
                    (self.job.means.observer)(Event::Warning(text));
                }
                digest_of(file, algorithm, &mut Vec::new(), go_on)
            }
            digest => digest,
        }
    }
}

/// Returns the digest of a file that is open for direct reads; `None` when `go_on` returns false.
fn direct(
    file: impl AsFd,
    algorithm: Algorithm,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Digest>, Errno> {
    let mut room = vec![0; PIECE + ALIGNED];
    let start = room.as_ptr().align_offset(ALIGNED).min(ALIGNED);
    let buffer = &mut room[start..start + PIECE];
    let mut hasher = Hasher::new(algorithm);
    let mut at = 0;
    while go_on() {
        // A read that gives less has come to the end: a second one would not be aligned.
        let count = retry_on_intr(|| rustix::io::pread(file.as_fd(), &mut *buffer, at))?;
        hasher.update(&buffer[..count]);
        at += count as u64;
        if count % ALIGNED != 0 {
            return Ok(Some(hasher.finalize()));
        }
        if count < PIECE && read_at(file.as_fd(), &mut buffer[..ALIGNED], at)? == 0 {
            return Ok(Some(hasher.finalize()));
        }
    }
    Ok(None)
}

impl Worker<'_> {
    /// Creates the stage of a file.
    pub(crate) fn stage(
        &mut self,
        place: &EntryPlace,
        content: StageUse<'_>,
    ) -> Result<Stage, Error> {
        let job = self.job;
        let version = match content {
            StageUse::Kept(source) => Some(source),
            StageUse::Fresh | StageUse::FreshWith(_) => None,
        };
        let name = job.plan.id.stage(&place.dir, &place.target, version);
        match stage::open(&place.dir, name, content) {
            Ok(stage) => Ok(stage),
            Err(NoStage::System(errno)) => Err(job.refused(&place.target, "create", errno)),
            Err(NoStage::Foreign(why)) => {
                let text = format!(
                    "{}: the name of its stage is taken by what is not ours: {why}: left alone",
                    bc_fs::Escaped(&job.shown(&place.target))
                );
                (job.means.observer)(crate::event::Event::Warning(&text));
                let name = job.plan.spare.stage(&place.dir, &place.target, version);
                stage::open(&place.dir, name, StageUse::Fresh)
                    .map_err(|_| job.refused(&place.target, "create", Errno::EXIST))
            }
        }
    }

    /// Gives a complete stage its metadata, and queues it for its name.
    pub(crate) fn finish(
        &mut self,
        mut place: EntryPlace,
        stage: Stage,
        source: FileStat,
        wanted: &FileMetadata,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        let job = self.job;
        let order = FileOrder {
            dir: &place.dir,
            wanted,
            giving: &job.means.giving,
            is_durable: job.plan.options.durability == Durability::File,
        };
        let complete = stage.complete(&order, &mut self.lost);
        let is_given = self.lost.is_empty();
        job.lost(place.item, &mut self.lost);
        // Of a move something may have been lost when it was read.
        place.is_whole = is_given && !(job.plan.options.moves && job.is_lossy(place.item));
        let complete =
            complete.map_err(|failed| job.refused(&place.target, failed.op, failed.errno))?;
        if job.plan.options.strict && !is_given {
            complete.remove(&place.dir);
            return Err(incomplete(job.shown(&place.target)));
        }
        self.wait(place, complete, source, digest);
        Ok(())
    }

    /// Records a failure, unless the run is cancelled: then the file stays open for the next run.
    pub(crate) fn failed(&self, item: RootItem, error: &Error) {
        if error.kind() != ErrorKind::Cancelled && !self.job.puts_off(item, error) {
            self.job.fail(item, error);
        }
    }
}

/// Returns the failure of a copy without all its metadata, where that counts.
pub(crate) fn incomplete(path: Vec<u8>) -> Error {
    Error::with_message(
        path,
        "metadata",
        "could not be given all that its source has",
    )
}

#[cfg(test)]
mod tests {
    use bc_digest::hash;

    use super::*;

    #[test]
    fn direct_reads_give_the_digest_of_any_length() {
        for length in [
            0,
            1,
            ALIGNED,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            2 * PIECE + ALIGNED,
        ] {
            let content: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            // Not in memory, as /tmp may be.
            let dir = tempfile::tempdir_in(".").unwrap();
            let path = dir.path().join("file");
            std::fs::write(&path, &content).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECT;
            let opened = rustix::fs::open(&path, flags, Mode::empty());
            let Ok(file) = opened else {
                return bc_testkit::left_out("no direct reads here");
            };
            match direct(&file, Algorithm::Blake3, &|| true) {
                Err(Errno::INVAL) => return bc_testkit::left_out("no direct reads here"),
                digest => assert_eq!(digest, Ok(Some(hash(Algorithm::Blake3, &content)))),
            }
            assert_eq!(direct(&file, Algorithm::Blake3, &|| false), Ok(None));
        }
    }
}
