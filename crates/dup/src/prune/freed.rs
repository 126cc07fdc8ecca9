//! What a step gives back: the space of a file whose last name goes, less what others use, what
//! stays in a lower layer, and what is copied out of one.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bc_fs::mount::{Answer, Mounts, Traits, is_in_upper_layer};
use bc_walk::{FileStat, Identity};

use super::guard::{self, Held};
use super::plan::FileRef;
use super::prove::Ready;
use super::run::{Mode, Run};
use super::step::{Skip, StepKind};
use super::sys::{self, Access};
use crate::space::{Shares, Space};

/// The account of one group.
#[derive(Default)]
pub(super) struct Ledger<'g> {
    /// One name of each file of the group.
    files: Vec<&'g FileRef>,
    /// What they share, once that matters, and which is which there.
    shares: Option<(HashMap<Identity, usize>, Shares)>,
    /// Files that share the keeper's blocks since this run, or would.
    reflinked: HashSet<Identity>,
    /// Kept files that were copied into the upper layer to be linked.
    copied_up: HashSet<Identity>,
}

impl<'g> Ledger<'g> {
    /// Of a group with these files.
    pub(super) fn new(files: Vec<&'g FileRef>) -> Ledger<'g> {
        Ledger {
            files,
            ..Ledger::default()
        }
    }

    /// Whether the file was dealt with under another name.
    pub(super) fn is_reflinked(&self, id: Identity) -> bool {
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
}

/// What a file that was found takes, if it is still that file.
fn space_of(file: &FileRef, mounts: &mut Mounts) -> Option<Space> {
    let (dir, name) = guard::open_parent(file).ok()?;
    let opened = sys::open_file(&dir, &name, Access::Read).ok()?;
    let stat = FileStat::from(&sys::stat(&opened).ok()?);
    let traits = mounts.of(stat.id.dev, || Some(&opened));
    (stat.id == file.id).then(|| Space::of(&opened, &stat, &traits))
}

/// What is known of a target's space right before the step.
#[derive(Default)]
pub(super) struct Stock {
    space: Space,
    /// Bytes that linking the kept file takes, because that is copied.
    copied: u64,
}

/// How often, and for how long, to wait for blocks of removed files to be given back.
const WAITS: (u32, Duration) = (5, Duration::from_millis(2));

impl Run<'_> {
    fn traits(&mut self, held: &Held) -> Traits {
        let (dev, file) = (held.stat.id.dev, &held.file);
        self.abilities.mounts.of(dev, || Some(file))
    }

    pub(super) fn space(&mut self, held: &Held) -> Space {
        let traits = self.traits(held);
        Space::of(&held.file, &held.stat, &traits)
    }

    /// Refuses a reflink that could share nothing, or would copy what it is to spare.
    pub(super) fn shareable(&mut self, keeper: &Held, held: &Held) -> Result<(), Skip> {
        let traits = self.traits(held);
        if traits.copy_up == Answer::Yes && !is_in_upper_layer(&held.file) {
            return Err(Skip::NotShareable("its content stays in a lower layer"));
        }
        if traits.inline != Answer::No && (self.space(held).inline || self.space(keeper).inline) {
            return Err(Skip::NotShareable(
                "content that small lies in the metadata",
            ));
        }
        Ok(())
    }

    /// Finds out what a step on `held` would give back, before it is done.
    pub(super) fn take_stock(
        &mut self,
        keeper: &Held,
        held: &Held,
        kind: &StepKind,
        ledger: &mut Ledger<'_>,
    ) -> Stock {
        if matches!(kind, StepKind::Move(_)) {
            return Stock::default();
        }
        let traits = self.traits(held);
        let up = traits.copy_up == Answer::Yes && *kind == StepKind::Hardlink;
        let copied =
            up && !ledger.copied_up.contains(&keeper.stat.id) && !is_in_upper_layer(&keeper.file);
        let mut stock = Stock {
            space: Space::of(&held.file, &held.stat, &traits),
            copied: if copied { keeper.stat.blocks * 512 } else { 0 },
        };
        let dry = self.options.mode == Mode::DryRun;
        if stock.space.shared.is_none() || !dry && !traits.frees_later {
            return stock;
        }
        // A dry run has to foresee what others leave; a real one finds it so, sooner or later.
        let (ids, shares) = ledger.shares(&mut self.abilities.mounts);
        let last = ids.get(&held.stat.id);
        if !dry && last.is_some_and(|file| shares.goes_with(*file) > 0) {
            for _ in 0..WAITS.0 {
                // Has the kernel begin.
                let _ = sys::traits(&held.file);
                std::thread::sleep(WAITS.1);
                stock.space = Space::of(&held.file, &held.stat, &traits);
                if stock.space.shared.is_none() {
                    break;
                }
            }
        }
        stock
    }

    /// Books a step that was done, or that a dry run would do; gives the bytes that it frees.
    pub(super) fn book(
        &mut self,
        ready: &Ready,
        kind: &StepKind,
        keeper: &Held,
        ledger: &mut Ledger<'_>,
    ) -> u64 {
        let id = ready.held.stat.id;
        let stock = &ready.stock;
        if stock.copied > 0 && ledger.copied_up.insert(keeper.stat.id) {
            self.copied_up += stock.copied;
        }
        let freed = match kind {
            StepKind::Move(_) => return 0,
            StepKind::Reflink => {
                ledger.reflinked.insert(id);
                stock.space.content()
            }
            _ if ready.links_left > 0 => return 0,
            _ if stock.space.untold => {
                self.summary.untold += 1;
                return 0;
            }
            _ => stock.space.own,
        };
        let others = ledger.shares.as_mut().map_or(0, |(ids, shares)| {
            ids.get(&id).map_or(0, |file| shares.take(*file))
        });
        match self.options.mode {
            Mode::DryRun => freed + others,
            Mode::Execute => freed,
        }
    }
}
