//! `protect --check`: what parity is still worth, by its own files and the manifest; nothing of the
//! tree is read. Parity that is found damaged is noted in the index, so that the next run protects
//! again what it was of.

use std::path::Path;

use bc_integrity::Work;
use bc_walk::job::{Error, ErrorKind};
use rustix::io::Errno;

use crate::contents::ContentTable;
use crate::file::{DirUse, ParityDir};
use crate::index::{self, IndexLine};
use crate::plan::{VolumeState, cover_all, roles, uncovered};
use crate::protect::{ProtectOptions, Surveyed, judge, surveyed};

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
    /// True if its content counts as protected: at most half of its parity is used up.
    pub serves: bool,
    /// Time when it was written, in nanoseconds since 1970.
    pub written_ns: i64,
}

impl VolumeCheck {
    fn of(state: &VolumeState) -> VolumeCheck {
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
            serves: state.is_live && !state.is_worn() && !state.is_overrun(),
            written_ns: state.written_ns,
        }
    }

    /// True if less than half of its redundancy is left.
    pub fn is_worn(&self) -> bool {
        2 * self.spare < self.parity
    }
}

/// State of a parity directory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ParityCheck {
    /// All volumes, in the order of their numbers.
    pub volumes: Vec<VolumeCheck>,
    /// Files that are no sound volumes.
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
            && !self
                .volumes
                .iter()
                .any(|volume| (volume.serves || volume.lost > 0) && volume.is_worn())
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
        let Surveyed { index, survey, .. } = surveyed(&dir, &contents, options)?;
        let (mut volumes, mut unreadable) = (survey.volumes, survey.unreadable);
        for volume in &mut volumes {
            judge(&dir, volume, now, work.cancel)?;
        }
        let order: Vec<usize> = (0..volumes.len()).collect();
        let failed = cover_all(&dir, &mut contents, &volumes, &mut roles(&volumes), &order);
        unreadable.extend(failed);
        let is_known = |volume: &VolumeState| {
            let line = index.lines.get(&volume.number);
            line.is_none_or(|line| line.damaged == volume.line.damaged)
        };
        let is_news = !volumes.iter().all(is_known);
        drop(dir);
        if is_news && let Err(error) = note_damage(&options.dir, &volumes) {
            let is_read_only = [Errno::ROFS, Errno::ACCESS, Errno::PERM]
                .map(|errno| Some(errno.raw_os_error()))
                .contains(&error.raw_os_error());
            // A directory that is only read, or written to by another run right now.
            if !is_read_only && error.kind() != ErrorKind::Busy {
                unreadable.push(error);
            }
        }
        found.volumes = volumes.iter().map(VolumeCheck::of).collect();
        found.unreadable = unreadable;
    }
    (found.unprotected, found.unprotected_bytes) = uncovered(&contents);
    Ok(found)
}

/// Notes in the index how many parity blocks are damaged.
fn note_damage(path: &Path, volumes: &[VolumeState]) -> Result<(), Error> {
    let Some(dir) = ParityDir::open(path, DirUse::Write)? else {
        return Ok(());
    };
    let index = index::read(&dir);
    let Some(description) = index.description else {
        return Ok(());
    };
    let mut lines: Vec<IndexLine> = index.lines.into_values().collect();
    lines.sort_unstable_by_key(|line| line.volume);
    for line in &mut lines {
        let judged = volumes
            .iter()
            .map(|volume| &volume.line)
            .find(|judged| judged.volume == line.volume && judged.written_at == line.written_at);
        if let Some(judged) = judged {
            (line.damaged, line.judged) = (judged.damaged, judged.judged);
        }
    }
    index::write(&dir, &description, &index.run, &lines)
}
