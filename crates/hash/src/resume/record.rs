//! The records of a hashing run's journal.
//!
//! First the job. Then, for each run that wrote to the journal: its session, and among its files
//! the devices that they are on, each before the first of its files.

use bc_digest::Digest;
use bc_edit::journal::push;
use bc_walk::FileStat;

use super::boot::Boot;
use super::job::JobInputs;

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
