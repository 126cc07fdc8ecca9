//! `protect --check`: what parity is still worth, by its own files and the manifest; nothing of the
//! tree is read.

use bc_integrity::Work;
use bc_walk::job::Error;

use crate::contents::{ContentId, RecordedContents};
use crate::file::{DirUse, ParityDir};
use crate::plan::{ContentPiece, Coverage, VolumeState};
use crate::protect::{ProtectOptions, Survey, survey};

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
    /// Blocks that may still be lost.
    pub spare: u64,
    /// Time when it was written, in nanoseconds since 1970.
    pub written_ns: i64,
}

impl VolumeCheck {
    fn of(state: &VolumeState) -> VolumeCheck {
        VolumeCheck {
            id: state.id,
            bytes: state.bytes,
            blocks: state.data as u64,
            parity: state.parity as u64,
            damaged: state.lost as u64,
            stale: state.stale as u64,
            spare: state.spare() as u64,
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
    /// Contents that no volume has, or not all of.
    pub unprotected: u64,
    /// Bytes of these.
    pub unprotected_bytes: u64,
}

impl ParityCheck {
    /// True if every content has parity, and each volume at least half of its redundancy.
    pub fn is_good(&self) -> bool {
        self.unreadable.is_empty()
            && self.unprotected == 0
            && !self.volumes.iter().any(VolumeCheck::is_worn)
    }
}

/// Judges the volumes of a parity directory, and all of their blocks, by the manifest.
///
/// # Errors
/// As of [`protect`](crate::protect()).
pub fn check(options: &ProtectOptions<'_>, work: &Work<'_>) -> Result<ParityCheck, Error> {
    let contents = RecordedContents::of(options.manifest)?;
    let dir = ParityDir::open(&options.dir, DirUse::Read)?;
    let now = options.now_ns.div_euclid(1_000_000_000);
    let mut found = Survey::default();
    if let Some(dir) = &dir {
        found = survey(dir, &contents, now)?;
        for state in &mut found.volumes {
            if work.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let good = dir.read(state.id)?.judge();
            state.lost = good.iter().filter(|good| !**good).count();
        }
    }
    let coverage = Coverage::of(&found.volumes);
    let missing = |content: ContentId| {
        coverage.missing(ContentPiece {
            content,
            from: 0,
            len: contents.get(content).size,
        })
    };
    let missing: Vec<ContentPiece> = (0..contents.len() as u32).filter_map(missing).collect();
    Ok(ParityCheck {
        volumes: found.volumes.iter().map(VolumeCheck::of).collect(),
        unreadable: found.unreadable,
        unprotected: missing.len() as u64,
        unprotected_bytes: missing.iter().map(|piece| piece.len).sum(),
    })
}
