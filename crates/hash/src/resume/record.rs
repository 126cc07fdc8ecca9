//! The records of a hashing run's journal.
//!
//! First the job. Then, for each run that wrote to the journal: its session, and among its files
//! the devices that they are on, each before the first of its files.
//!
//! A session records the boot of the system. Bytes that a run read may have been in memory alone,
//! written by another process and not yet on the disk: after a power cut the disk may have the
//! file's new times, and its old bytes. So files read in another boot, or through another mount,
//! count only if they had been changed last before that boot, since their bytes came from the disk.

use bc_digest::Digest;
use bc_edit::journal::push;
use bc_fs::known::boot_id;
use bc_walk::FileStat;
use rustix::time::{ClockId, clock_gettime};

use super::options::JobInputs;

/// Kind of the first record: the time when the first run began, and its job.
pub(super) const JOB: u8 = 0;
/// Kind of the record at the beginning of a run.
pub(super) const SESSION: u8 = 1;
/// A device and how it is mounted.
pub(super) const DEVICE: u8 = 2;
/// A file and its digests.
pub(super) const FILE: u8 = 3;

/// Bytes of identity and stamp.
pub(super) const STATE: usize = 40;

pub(super) fn push_job(piece: &mut Vec<u8>, created_at: i64, job: &JobInputs) {
    push(piece, JOB, |body| {
        body.extend_from_slice(&created_at.to_le_bytes());
        job.encode(body);
    });
}

pub(super) fn job(body: &[u8]) -> Option<(i64, JobInputs)> {
    let (created_at, job) = body.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*created_at), JobInputs::decode(job)?))
}

pub(super) fn push_session(piece: &mut Vec<u8>, boot: &Boot) {
    push(piece, SESSION, |body| {
        body.extend_from_slice(&boot.id);
        body.extend_from_slice(&boot.began_ns.to_le_bytes());
    });
}

pub(super) fn session(body: &[u8]) -> Option<Boot> {
    let (id, rest) = body.split_first_chunk::<16>()?;
    let began_ns = i64::from_le_bytes(rest.try_into().ok()?);
    Some(Boot { id: *id, began_ns })
}

/// Appends the mount of a device; a mount number of 0 is unknown.
pub(super) fn push_device(piece: &mut Vec<u8>, dev: u64, mount: u64) {
    push(piece, DEVICE, |body| {
        body.extend_from_slice(&dev.to_le_bytes());
        body.extend_from_slice(&mount.to_le_bytes());
    });
}

pub(super) fn device(body: &[u8]) -> Option<(u64, u64)> {
    let (dev, rest) = body.split_first_chunk::<8>()?;
    let mount = u64::from_le_bytes(rest.try_into().ok()?);
    Some((u64::from_le_bytes(*dev), mount))
}

/// Returns the identity and state of a file as in records.
pub(super) fn state(stat: &FileStat) -> [u8; STATE] {
    let words = [
        stat.id.dev,
        stat.id.ino,
        stat.stamp.size,
        stat.stamp.mtime_ns as u64,
        stat.stamp.ctime_ns as u64,
    ];
    let mut state = [0; STATE];
    for (to, word) in state.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    state
}

pub(super) fn push_file(piece: &mut Vec<u8>, stat: &FileStat, digests: &[Digest]) {
    push(piece, FILE, |body| {
        body.extend_from_slice(&state(stat));
        for digest in digests {
            body.extend_from_slice(digest.as_bytes());
        }
    });
}

/// A start of the system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Boot {
    /// Id from the kernel; zeros where it has none.
    pub(super) id: [u8; 16],
    /// Time of the boot, in nanoseconds since 1970, by the clock as it was when this was asked.
    pub(super) began_ns: i64,
}

impl Boot {
    /// Returns the present boot.
    pub(super) fn this() -> Boot {
        let ns = |clock| {
            let time = clock_gettime(clock);
            let ns = time.tv_sec.saturating_mul(1_000_000_000);
            ns.saturating_add(time.tv_nsec)
        };
        Boot {
            id: boot_id(),
            began_ns: ns(ClockId::Realtime).saturating_sub(ns(ClockId::Boottime)),
        }
    }
}

#[cfg(test)]
mod boot_tests {
    use super::*;

    #[test]
    fn this_boot_is_itself_and_began_before_now() {
        let (one, other) = (Boot::this(), Boot::this());
        let apart = one.began_ns.abs_diff(other.began_ns);
        assert!(apart < 60_000_000_000, "{one:?} {other:?}");
        assert_eq!(one.id, other.id);
    }
}
