//! Disk space that a step gives back: the space of a file whose last name goes, less the parts that
//! others use, that stay in a lower layer, or that are copied out of one.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bc_find::groups::FileRef;
use bc_fs::call;
use bc_fs::dirfd::{self, Access};
use bc_fs::meta;
use bc_fs::mount::{Answer, Layer, Mounts, basic_traits, layer_of};
use bc_fs::path::split;
use bc_fs::volume;
use bc_read::space::{Shares, Space};
use bc_walk::Identity;

use crate::check::abilities::Abilities;
use crate::check::compare::is_one_mount;
use crate::check::compare::mounts_differ;
use crate::check::dir;
use crate::check::open_file::OpenFile;
use crate::options::{Force, RunMode};
use crate::skip::Skip;
use crate::step::{PruneSummary, StepKind};

/// The account of one group.
#[derive(Default)]
pub(crate) struct Ledger<'g> {
    /// One name of each file of the group.
    files: Vec<&'g FileRef>,
    /// Extents that they share, read once they matter, with the index of each file in there.
    shares: Option<(HashMap<Identity, usize>, Shares)>,
    /// Files that share the kept file's blocks since this run, or would.
    reflinked: HashSet<Identity>,
    /// Files that were copied into the upper layer, or would be.
    copied_up: HashSet<Identity>,
}

impl<'g> Ledger<'g> {
    /// Opens the account of a group with these files.
    pub(crate) fn new(files: Vec<&'g FileRef>) -> Ledger<'g> {
        Ledger {
            files,
            ..Ledger::default()
        }
    }

    /// Records that this file is a copy in the upper layer.
    pub(crate) fn copied_up(&mut self, id: Identity) {
        self.copied_up.insert(id);
    }

    /// Returns true if the file was processed under another name.
    pub(crate) fn is_reflinked(&self, id: Identity) -> bool {
        self.reflinked.contains(&id)
    }

    fn shares(&mut self, mounts: &mut Mounts) -> &mut (HashMap<Identity, usize>, Shares) {
        let files = &self.files;
        self.shares.get_or_insert_with(|| {
            let spaces: Vec<Option<Space>> =
                files.iter().map(|file| space_of(file, mounts)).collect();
            let ids = files.iter().enumerate().map(|(nth, file)| (file.id, nth));
            (ids.collect(), Shares::of(spaces.iter().map(Option::as_ref)))
        })
    }

    /// Determines the space that a step on `held` would give back, before it is done.
    pub(crate) fn measure(
        &mut self,
        abilities: &mut Abilities<'_>,
        kept_file: &OpenFile,
        held: &OpenFile,
        kind: &StepKind,
    ) -> TakenSpace {
        let traits = abilities.traits(held);
        let mut taken = match traits.copy_up {
            Answer::Yes => TakenSpace {
                copied: copied_up(kept_file, held, kind),
                unknown: layer_of(&held.file) == Layer::Unknown,
                ..TakenSpace::default()
            },
            Answer::No | Answer::Unknown => TakenSpace::default(),
        };
        if matches!(kind, StepKind::Move(_) | StepKind::Trash(_)) {
            return taken;
        }
        taken.space = Space::of(&held.file, &held.stat, &traits);
        let dry = abilities.options.mode == RunMode::DryRun;
        if taken.space.shared.is_none() || !dry && !traits.frees_later {
            return taken;
        }
        // A dry run has to foresee the files that others leave; a real one finds them, sooner or
        // later.
        let (ids, shares) = self.shares(&mut abilities.mounts);
        let last = ids.get(&held.stat.id);
        if !dry && last.is_some_and(|file| shares.goes_with(*file) > 0) {
            for nth in 0.. {
                if nth >= FEW_WAITS {
                    if abilities.patience.is_zero() {
                        break;
                    }
                    abilities.patience = abilities.patience.saturating_sub(WAIT);
                }
                // Has the kernel begin.
                let _ = basic_traits(&held.file);
                std::thread::sleep(WAIT);
                taken.space = Space::of(&held.file, &held.stat, &traits);
                if taken.space.shared.is_none() {
                    break;
                }
            }
        }
        taken
    }

    /// Books the copy that a step makes in the upper layer, once for each file.
    pub(crate) fn book_copy(&mut self, taken: &TakenSpace, summary: &mut PruneSummary) {
        if let Some((id, bytes)) = taken.copied
            && self.copied_up.insert(id)
        {
            summary.used += bytes;
        }
    }

    /// Books a step on the file `id` that was done, or that a dry run would do, and that left the
    /// file so many names; returns the bytes that it frees.
    pub(crate) fn book(
        &mut self,
        id: Identity,
        links_left: u64,
        taken: &TakenSpace,
        kind: &StepKind,
        mode: RunMode,
        summary: &mut PruneSummary,
    ) -> u64 {
        self.book_copy(taken, summary);
        summary.layers_unknown += u64::from(taken.unknown);
        let freed = match kind {
            StepKind::Move(_) | StepKind::Trash(_) => return 0,
            StepKind::Reflink => {
                self.reflinked.insert(id);
                taken.space.content()
            }
            _ if links_left > 0 => return 0,
            _ if taken.space.unreported => {
                summary.unreported += 1;
                return 0;
            }
            _ => taken.space.own,
        };
        let others = self.shares.as_mut().map_or(0, |(ids, shares)| {
            ids.get(&id).map_or(0, |file| shares.take(*file))
        });
        match mode {
            RunMode::DryRun => freed + others,
            RunMode::Execute => freed,
        }
    }
}

/// Returns the space of a file of the scan, if it is still that file.
fn space_of(file: &FileRef, mounts: &mut Mounts) -> Option<Space> {
    let (dir, name) = dir::open_parent(file).ok()?;
    let opened = dirfd::open_file(&dir, &name, Access::Read).ok()?;
    let stat = meta::stat(&opened).ok()?;
    let traits = mounts.of(stat.id.dev, || Some(&opened));
    (stat.id == file.id).then(|| Space::of(&opened, &stat, &traits))
}

/// Space of a target right before the step.
#[derive(Default)]
pub(crate) struct TakenSpace {
    space: Space,
    /// The file that is copied up by the step, and the bytes that takes.
    copied: Option<(Identity, u64)>,
    /// True if it is unknown in which layer the files lie.
    unknown: bool,
}

impl TakenSpace {
    /// Returns true if the step copies a file up that was not copied up before.
    pub(crate) fn copies_up(&self, ledger: &Ledger<'_>) -> bool {
        self.copied
            .is_some_and(|(id, _)| !ledger.copied_up.contains(&id))
    }
}

/// In a lower layer, or copied up from there.
const BELOW: &str = "it lies in a lower layer, which keeps its content, or came from one";

/// The most that a file's last block takes beyond its content.
const BLOCK: u64 = 4096;

/// Wait for blocks of removed files to be given back, which a thread of the kernel does.
const WAIT: Duration = Duration::from_millis(2);

/// Number of waits for each file. They are in vain where a file elsewhere has the same blocks.
const FEW_WAITS: u32 = 5;

impl Abilities<'_> {
    /// Refuses links and reflinks that free nothing, because the lower layer keeps the content, or
    /// would copy what they are to spare. Returns false if the kept file cannot be linked to,
    /// although `held` can be.
    pub(crate) fn check_layers(
        &mut self,
        kept_file: &OpenFile,
        held: &OpenFile,
        kind: &StepKind,
    ) -> Result<bool, Skip> {
        let forced = self.options.force == Force::Yes && *kind == StepKind::Hardlink;
        let links = matches!(kind, StepKind::Hardlink | StepKind::Reflink);
        if !links || forced || self.traits(held).copy_up != Answer::Yes {
            return Ok(true);
        }
        match layer_of(&held.file) {
            Layer::Upper => Ok(layer_of(&kept_file.file) == Layer::Upper
                || !is_one_mount(&kept_file.dir, &held.dir)),
            Layer::Unknown if *kind == StepKind::Hardlink => Err(Skip::UnknownLayer),
            Layer::Lower | Layer::Unknown => Err(Skip::NotShareable(BELOW)),
        }
    }

    /// Returns true if a link would have to lead to another file system, or to another mount of the
    /// same: the kernel lets none lead from one mount to another, bind mounts and mounted files
    /// included.
    pub(crate) fn across(&mut self, kept_file: &OpenFile, held: &OpenFile) -> call::Result<bool> {
        if mounts_differ(kept_file.mount, held.dir.facts()?.mount) {
            return Ok(true);
        }
        Ok(match self.traits(held).copy_up {
            Answer::Yes => !is_one_mount(&kept_file.dir, &held.dir),
            Answer::No | Answer::Unknown => kept_file.stat.id.dev != held.stat.id.dev,
        })
    }

    /// Refuses a reflink of a file that has no blocks of its own.
    pub(crate) fn shareable(&mut self, kept_file: &OpenFile, held: &OpenFile) -> Result<(), Skip> {
        let traits = self.traits(held);
        if traits.inline != Answer::No && (self.space(held).inline || self.space(kept_file).inline)
        {
            return Err(Skip::NotShareable(
                "content that small lies in the metadata",
            ));
        }
        // Blocks that `nodatasum` left without checksums are noticed when it is tried.
        if traits.name == volume::BTRFS {
            let is_plain = |file: &OpenFile| Ok::<_, Skip>(file.flags()?.chattr() & NO_COPY != 0);
            if is_plain(kept_file)? != is_plain(held)? {
                return Err(Skip::StoredOtherwise);
            }
        }
        Ok(())
    }
}

/// `FS_NOCOW_FL` of `linux/fs.h`: `btrfs_remap_file_range_prep` in `fs/btrfs/reflink.c` refuses to mix
/// files with checksums and without.
const NO_COPY: u32 = 0x0080_0000;

/// Returns the file that a step copies up, and the bytes which that takes at most: to link the kept
/// one, and to move one to another place of its mount. A file that is copied to be removed takes
/// none.
fn copied_up(kept_file: &OpenFile, held: &OpenFile, kind: &StepKind) -> Option<(Identity, u64)> {
    let file = match kind {
        StepKind::Hardlink => kept_file,
        StepKind::Move(to) if is_in_mount_of(held, to) => held,
        StepKind::Trash(_) => held,
        _ => return None,
    };
    let (size, blocks) = (file.stat.stamp.size, file.stat.blocks * 512);
    let bytes = match layer_of(&file.file) {
        Layer::Upper => return None,
        Layer::Lower => blocks,
        // A file system that is not known to leave out holes may not.
        Layer::Unknown => blocks.max(size.next_multiple_of(BLOCK)),
    };
    Some((file.stat.id, bytes))
}

/// Returns true if the path `to`, or what exists of it, is in the mount that `held` is in.
fn is_in_mount_of(held: &OpenFile, to: &[u8]) -> bool {
    let mut to = to;
    loop {
        let above = split(to).0;
        let Ok(dir) = dirfd::open_root(above) else {
            if above.is_empty() || above == b"/" {
                return false;
            }
            to = above.strip_suffix(b"/").unwrap_or(above);
            continue;
        };
        return is_one_mount(&dir, &held.dir);
    }
}
