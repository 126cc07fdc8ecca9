//! Reading back of stages before they get their names: from wherever the kernel has them, or from
//! the medium, past all caches in memory.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_walk::Error;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::decide::{digest_of, read_full};
use crate::event::Event;
use crate::options::ReadBack;
use crate::place::Place;
use crate::stage::Stage;
use crate::worker::Worker;

/// Alignment of direct reads, in the file and in memory: no block is larger.
const ALIGNED: usize = 4096;

/// Bytes that are read at once.
const PIECE: usize = 512 << 10;

impl Worker<'_> {
    /// Reads a stage back, if that is wanted, and compares it with the bytes read from the source.
    pub(crate) fn read_back(
        &mut self,
        place: &Place,
        stage: &Stage,
        digest: Option<Digest>,
    ) -> Result<(), Error> {
        let job = self.job;
        let (Some(algorithm), Some(digest)) = (job.plan.options.algorithm, digest) else {
            return Ok(());
        };
        let go_on = || !job.means.cancel.is_cancelled();
        let found = match job.plan.options.read_back {
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
        place: &Place,
        stage: &Stage,
        algorithm: Algorithm,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>, Errno> {
        retry_on_intr(|| rustix::fs::fdatasync(&stage.file))?;
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = &place.dir.fd;
        let opened =
            retry_on_intr(|| rustix::fs::openat(dir, &stage.name[..], flags, Mode::empty()));
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
                digest_of(&stage.file, algorithm, &mut Vec::new(), go_on)
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
        if count < PIECE && read_full(file.as_fd(), &mut buffer[..ALIGNED], at)? == 0 {
            return Ok(Some(hasher.finalize()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_digest::hash;

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
