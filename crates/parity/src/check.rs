//! `protect --check`: what parity is still worth, by its own files and the manifest; nothing of the
//! tree is read. Parity that is found damaged is noted in the index, so that the next run protects
//! again what it was of.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use bc_integrity::{Job, Work};
use bc_walk::job::{Error, ErrorKind};
use rustix::io::Errno;

use crate::contents::ContentTable;
use crate::file::{DirUse, ParityDir, spent};
use crate::format::STORED_BLOCK;
use crate::index::{self, IndexLine, IndexRun, ParityDescription, trailer};
use crate::manifest_copy;
use crate::plan::{VolumeRole, VolumeState, cover_all, live_pieces, roles, uncovered};
use crate::protect::{ProtectOptions, judge, surveyed};

/// State of one volume.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct VolumeCheck {
    /// Its number.
    pub id: u64,
    /// Bytes of its contents.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Parity blocks.
    pub parity: u64,
    /// Parity blocks that are damaged or missing.
    pub damaged: u64,
    /// Data blocks with content that the manifest no longer lists.
    pub stale: u64,
    /// Data blocks with content that no file has, as the manifest says.
    pub lost: u64,
    /// Blocks that may still be lost.
    pub spare: u64,
    /// True if its content counts as protected: at most half of its parity is used up, and no other
    /// volume has all of it.
    pub serves: bool,
    /// True if it does not serve, volumes that do have all of its content that the manifest lists, and
    /// none of that is damaged or unreadable.
    pub is_replaced: bool,
    /// Time when it was written, in nanoseconds since 1970.
    pub written_ns: i64,
}

impl VolumeCheck {
    fn of(state: &VolumeState, role: VolumeRole, is_replaced: bool) -> VolumeCheck {
        let line = &state.line;
        VolumeCheck {
            id: state.number,
            bytes: line.bytes,
            blocks: line.blocks,
            parity: line.parity,
            damaged: line.damaged,
            stale: line.stale,
            lost: state.suspect as u64,
            spare: state.spare(),
            serves: role == VolumeRole::Serves,
            is_replaced,
            written_ns: state.written_ns,
        }
    }

    /// True if less than half of its redundancy is left.
    pub fn is_worn(&self) -> bool {
        2 * self.spare < self.parity
    }

    /// True if it serves, or has content that no file has, and is worn.
    pub fn is_failing(&self) -> bool {
        (self.serves || self.lost > 0) && self.is_worn()
    }
}

/// State of a parity directory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ParityCheck {
    /// All volumes, in the order of their numbers.
    pub volumes: Vec<VolumeCheck>,
    /// Files that are no sound volumes, and the copy of the manifest if it is gone or damaged.
    pub unreadable: Vec<Error>,
    /// Contents that no volume has that serves, or not all of.
    pub unprotected: u64,
    /// Bytes of these.
    pub unprotected_bytes: u64,
    /// Files without a digest in the manifest, which have no parity.
    pub without_digest: u64,
}

impl ParityCheck {
    /// True if every content has parity, and each volume that serves, or has content that no file has, at
    /// least half of its redundancy.
    pub fn is_good(&self) -> bool {
        self.unreadable.is_empty()
            && self.unprotected == 0
            && self.without_digest == 0
            && !self.volumes.iter().any(VolumeCheck::is_failing)
    }
}

/// Judges the volumes of a parity directory, and all of their blocks, by the manifest.
///
/// # Errors
/// As of [`protect`](crate::protect()).
pub fn check(options: &ProtectOptions<'_>, work: &Work<'_>) -> Result<ParityCheck, Error> {
    let mut contents = ContentTable::of(options.manifest, options.lists_memory())?;
    let mut found = ParityCheck {
        without_digest: contents.without_digest,
        ..ParityCheck::default()
    };
    let now = options.now_ns.div_euclid(1_000_000_000);
    if let Some(dir) = ParityDir::open(&options.dir, DirUse::Read)? {
        // It would find volumes gone that others have taken the place of.
        dir.refuse_writer()?;
        let surveyed = surveyed(&dir, &contents, options)?;
        let (mut volumes, mut unreadable) = (surveyed.survey.volumes, surveyed.survey.unreadable);
        let blocks: u64 = volumes.iter().map(|volume| volume.line.parity).sum();
        let job = Job::new(
            volumes.len() as u64,
            blocks * STORED_BLOCK as u64,
            contents.memory(),
        );
        let rate = (work.reading)(job).map_err(Error::usage)?.read.rate;
        for volume in &mut volumes {
            judge(&dir, volume, now, &mut |bytes| {
                work.progress.bytes.fetch_add(bytes, Relaxed);
                spent(bytes, rate.as_ref(), work.cancel)
            })?;
            work.progress.files.fetch_add(1, Relaxed);
        }
        if !volumes.is_empty() {
            unreadable.extend(manifest_copy::damage(&dir));
        }
        let mut roles = roles(&volumes);
        let order: Vec<usize> = (0..volumes.len()).collect();
        let failed = cover_all(&dir, &mut contents, &volumes, &mut roles, &order);
        unreadable.extend(failed);
        let (count, _) = uncovered(&contents);
        let index = &surveyed.index;
        let is_known = |volume: &VolumeState| match index.lines.get(&volume.number) {
            Some(line) => line.damaged == volume.line.damaged,
            None => volume.line.damaged == 0,
        };
        // What the last run found complete, and is not.
        let has_lost = count > 0 && index.run.complete_for == Some(trailer(&contents.trailer));
        let is_news = has_lost || !volumes.iter().all(is_known);
        found.volumes = volumes
            .iter()
            .zip(&roles)
            .map(|(volume, role)| {
                // What is damaged or unreadable counts as covered: it cannot be protected again.
                let is_replaced = *role != VolumeRole::Serves
                    && !volume.may_repair()
                    && dir.read(volume.number).is_ok_and(|file| {
                        let mut pieces = live_pieces(&contents, &file.header).into_iter();
                        pieces.all(|piece| contents.missing_of(piece).is_none())
                    });
                VolumeCheck::of(volume, *role, is_replaced)
            })
            .collect();
        drop(dir);
        let noted = DamageNote {
            description: &surveyed.description,
            volumes: &volumes,
            has_lost,
            now,
        };
        if is_news && let Err(error) = noted.write(&options.dir) {
            let is_read_only = [Errno::ROFS, Errno::ACCESS, Errno::PERM]
                .map(|errno| Some(errno.raw_os_error()))
                .contains(&error.raw_os_error());
            // A directory that is only read, or written to by another run right now.
            if !is_read_only && error.kind() != ErrorKind::Busy {
                unreadable.push(error);
            }
        }
        found.unreadable = unreadable;
    }
    (found.unprotected, found.unprotected_bytes) = uncovered(&contents);
    Ok(found)
}

/// Damage that is noted in the index.
struct DamageNote<'a> {
    description: &'a ParityDescription,
    volumes: &'a [VolumeState],
    /// True if some content has no parity any more.
    has_lost: bool,
    /// Now, in seconds since 1970.
    now: i64,
}

impl DamageNote<'_> {
    /// Writes how many parity blocks of each volume are damaged; all of the index if it is lost.
    fn write(&self, path: &Path) -> Result<(), Error> {
        let Some(dir) = ParityDir::open(path, DirUse::Write)? else {
            return Ok(());
        };
        let index = index::read(&dir);
        let judged = self.volumes.iter().map(|volume| &volume.line);
        let Some(description) = index.description else {
            let run = IndexRun {
                run_at: self.now,
                ..IndexRun::default()
            };
            let lines: Vec<IndexLine> = judged.cloned().collect();
            return index::write(&dir, self.description, &run, &lines);
        };
        let mut lines: Vec<IndexLine> = index.lines.into_values().collect();
        lines.sort_unstable_by_key(|line| line.volume);
        for line in &mut lines {
            let is_it = |judged: &&IndexLine| {
                (judged.volume, &judged.written_at) == (line.volume, &line.written_at)
            };
            if let Some(judged) = judged.clone().find(is_it) {
                (line.damaged, line.judged) = (judged.damaged, judged.judged);
            }
        }
        let complete_for = index.run.complete_for.filter(|_| !self.has_lost);
        let run = IndexRun {
            complete_for,
            ..index.run
        };
        index::write(&dir, &description, &run, &lines)
    }
}
