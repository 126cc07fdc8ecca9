//! Records of an earlier run's journal.
//!
//! In memory there are 16 bytes for each file: a hash of its identity and stamp, and the offset of
//! its record. The record itself is read again when the file is met, and has to be of that file in
//! that very state.

use std::io;

use bc_digest::Digest;
use bc_edit::journal::{Journal, Record, View};
use bc_fs::known::MountSession;
use bc_pool::Cancel;
use bc_walk::FileStat;

use super::options::JobInputs;
use super::record::{self, Boot, DEVICE, FILE, JOB, SESSION, STATE};

/// Records between two looks for a cancellation.
const STEP: u64 = 4096;

/// Content of a journal that was read through.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) known: JournalFiles,
    /// Time when its first run began, and the job of that run.
    pub(super) created_at: i64,
    pub(super) job: JobInputs,
    /// Offset of the end of its last whole record.
    pub(super) end: u64,
}

/// The files of a journal.
#[derive(Debug)]
pub(super) struct JournalFiles {
    view: View,
    /// Bytes of the digests of a file, and of each of them.
    lengths: Vec<usize>,
    stride: usize,
    /// Hash of the state, and the place of the record; sorted.
    places: Vec<(u64, u64)>,
    runs: Vec<JournalledRun>,
    boot: Boot,
}

/// A run that wrote to the journal.
#[derive(Debug)]
struct JournalledRun {
    /// Offset of its first record.
    at: u64,
    boot: Boot,
    /// Devices and how they were mounted.
    mounts: Vec<(u64, u64)>,
}

/// Returns the job of the run that began a journal, if its first record is whole.
pub(super) fn job_of(journal: &Journal) -> Option<JobInputs> {
    let mut records = journal.records();
    let first = records.next_record().ok()?;
    let first = first.filter(|record| record.kind == JOB)?;
    Some(record::job(first.body)?.1)
}

/// Reads a journal through. `None` if its first record is not a job, or after a cancellation.
pub(super) fn load(
    journal: &Journal,
    lengths: Vec<usize>,
    boot: Boot,
    cancel: &Cancel,
) -> io::Result<Option<Loaded>> {
    let mut known = JournalFiles {
        view: journal.view()?,
        stride: lengths.iter().sum(),
        lengths,
        places: Vec::new(),
        runs: Vec::new(),
        boot,
    };
    let mut records = journal.records();
    let first = records.next_record()?.filter(|record| record.kind == JOB);
    let Some((created_at, job)) = first.and_then(|first| record::job(first.body)) else {
        return Ok(None);
    };
    let mut count = 0_u64;
    while let Some(record) = records.next_record()? {
        known.add(&record);
        count += 1;
        if count.is_multiple_of(STEP) && cancel.is_cancelled() {
            return Ok(None);
        }
    }
    let end = records.end();
    known.places.sort_unstable();
    Ok(Some(Loaded {
        known,
        created_at,
        job,
        end,
    }))
}

impl JournalFiles {
    fn add(&mut self, record: &Record<'_>) {
        match record.kind {
            SESSION => {
                if let Some(boot) = record::session(record.body) {
                    let (at, mounts) = (record.at, Vec::new());
                    self.runs.push(JournalledRun { at, boot, mounts });
                }
            }
            DEVICE => {
                if let (Some(run), Some(device)) =
                    (self.runs.last_mut(), record::device(record.body))
                {
                    run.mounts.push(device);
                }
            }
            FILE if record.body.len() == STATE + self.stride => {
                let hash = hash(&record.body[..STATE]);
                self.places.push((hash, record.at));
            }
            _ => {}
        }
    }

    /// Returns the number of files with a record; one that was read in several states counts as
    /// often.
    pub(super) fn files(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns its size in memory, in bytes.
    pub(super) fn memory(&self) -> u64 {
        (self.places.capacity() * size_of::<(u64, u64)>()) as u64
    }

    /// Puts the digests of a file into `digests`, if one of its records is of this state and may
    /// be believed: `mount` is how its device is mounted now.
    pub(super) fn find(
        &self,
        stat: &FileStat,
        mount: u64,
        buffer: &mut Vec<u8>,
        digests: &mut Vec<Digest>,
    ) -> bool {
        let state = record::state(stat);
        let hash = hash(&state);
        let end = self.places.partition_point(|place| place.0 <= hash);
        let same = self.places[..end].iter().rev();
        let same = same.take_while(|place| place.0 == hash);
        for &(_, at) in same {
            // A record that cannot be read is one that is not there.
            let Ok(Some(record)) = self.view.record_at(at, 1 + STATE + self.stride, buffer) else {
                continue;
            };
            let is_it = record.kind == FILE && record.body.len() == STATE + self.stride;
            if !is_it || record.body[..STATE] != state || !self.holds(at, stat, mount) {
                continue;
            }
            let mut rest = &record.body[STATE..];
            digests.clear();
            for &length in &self.lengths {
                let (digest, others) = rest.split_at(length);
                digests.push(Digest::new(digest));
                rest = others;
            }
            return true;
        }
        false
    }

    /// True if bytes that were in memory when the record at `at` was written still are, or were on
    /// the disk.
    fn holds(&self, at: u64, stat: &FileStat, mount: u64) -> bool {
        let nth = self.runs.partition_point(|run| run.at <= at);
        let Some(run) = nth.checked_sub(1).map(|nth| &self.runs[nth]) else {
            return false;
        };
        let mounts = run.mounts.iter().rev();
        let then = mounts
            .filter(|device| device.0 == stat.id.dev)
            .map(|device| MountSession {
                boot: run.boot.id,
                mount: device.1,
            });
        let now = MountSession {
            boot: self.boot.id,
            mount,
        };
        let is_same_mount = then.take(1).any(|then| then.is(&now));
        let changed = stat.stamp.mtime_ns.max(stat.stamp.ctime_ns);
        is_same_mount || changed < bc_read::at_rest_before(run.boot.began_ns)
    }
}

/// Computes FNV-1a over words, stirred: a hash that finds records, and proves nothing.
fn hash(state: &[u8]) -> u64 {
    let words = state.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}
