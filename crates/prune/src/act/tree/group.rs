//! One group: the directory that stays, the ones that go, and the way they go.

use std::collections::{HashMap, HashSet};

use bc_find::groups::{FileGroup, FileRef, TreeCopy, TreeGroup, TreeKind};
use bc_fs::dirfd::{deepest_existing, visit_ancestors};
use bc_fs::meta;
use bc_fs::path::split;
use bc_walk::{Identity, Stamp};
use rustix::io::Errno;

use super::held::open_dir;
use super::{RemovalWay, TreePair};
use crate::check::compare::mounts_differ;
use crate::check::freed::Ledger;
use crate::journal::Journal;
use crate::means::{GroupState, PruneRun};
use crate::options::{PruneOptions, RunMode};
use crate::skip::Skip;
use crate::step::{self, Action, StepOutcome};

/// Directories that were processed so far.
#[derive(Default)]
pub(super) struct DoneDirs {
    /// Directories that stay, and those in them.
    kept: HashSet<Identity>,
    /// The ones among them that groups named.
    kept_roots: HashSet<Identity>,
    /// Directories that went, or of which a part did, and those in them.
    gone: HashSet<Identity>,
    /// The directories in which the journal lies.
    pub(super) journal: HashSet<Identity>,
    /// States that our own changes left files in.
    stamps: HashMap<Identity, Stamp>,
}

impl DoneDirs {
    pub(super) fn new(journal: Option<&Journal>, options: &PruneOptions) -> DoneDirs {
        let mut done = DoneDirs::default();
        let paths = journal.map(|journal| journal.path().to_owned());
        for path in paths.into_iter().chain(options.journal.clone()) {
            let path = path.as_os_str().as_encoded_bytes();
            let Ok((dir, _)) = deepest_existing(split(path).0) else {
                continue;
            };
            let _ = visit_ancestors(&dir, |id, _| {
                done.journal.insert(id);
                false
            });
        }
        done
    }

    /// Returns true if nothing of it may go, as it stays for another group.
    fn keeps(&self, copy: &TreeCopy) -> bool {
        self.kept.contains(&copy.dir.id) || copy.dirs().any(|id| self.kept_roots.contains(&id))
    }

    fn is_gone(&self, copy: &TreeCopy) -> bool {
        copy.dirs().any(|id| self.gone.contains(&id))
    }
}

impl PruneRun<'_> {
    pub(super) fn tree_group(&mut self, mut group: TreeGroup, done: &mut DoneDirs) {
        group.copies.retain(|copy| !done.is_gone(copy));
        self.protect_trees(&mut group.copies);
        let Some(order) = self.order_trees(&group.copies, done) else {
            return;
        };
        let copies: Vec<&TreeCopy> = order.iter().map(|at| &group.copies[*at]).collect();
        let (kept_file, rest) = (copies[0], &copies[1..]);
        let files = copies.iter().flat_map(|copy| {
            let files = copy.of(TreeKind::File);
            files.map(|at| copy.at(at))
        });
        let files: Vec<FileRef> = files.collect();
        let mut state = GroupState {
            ledger: Ledger::new(files.iter().collect()),
            stamps: std::mem::take(&mut done.stamps),
            ..GroupState::default()
        };
        for target in rest {
            let rules = &self.options.rules;
            let acts = !target.dir.protected
                && (rules.allow(&kept_file.dir, &target.dir) || !rules.may_stay(&kept_file.dir));
            if !acts || self.means.cancel.is_cancelled() {
                continue;
            }
            let pair = TreePair { kept_file, target };
            let outcome = match group.filtered {
                0 => self
                    .may_go(&pair, done)
                    .and_then(|()| self.tree(&pair, done, &mut state)),
                filtered => Err(Skip::Filtered(filtered)),
            };
            if outcome.is_ok() || matches!(outcome, Err(Skip::Stopped { .. })) {
                done.kept.extend(kept_file.dirs());
                done.kept_roots.insert(kept_file.dir.id);
                done.gone.extend(target.dirs());
            }
            let outcome = outcome.unwrap_or_else(StepOutcome::Skipped);
            self.outcomes.report_tree(pair.step(self.options), outcome);
        }
        done.stamps = state.stamps;
    }

    /// Proves that nothing of the target has to stay for another group, and that what stays instead
    /// was not left to chance where somebody chose.
    fn may_go(&self, pair: &TreePair<'_>, done: &DoneDirs) -> Result<(), Skip> {
        if !self.options.rules.may_stay(&pair.kept_file.dir) {
            return Err(Skip::NoneChosen);
        }
        if done.keeps(pair.target) {
            return Err(Skip::Stays);
        }
        let mut dirs = pair.dirs().map(|at| pair.target.at(at));
        match dirs.find(|dir| self.options.kept_dirs.contains(&dir.id)) {
            Some(dir) => Err(Skip::HoldsChosen(dir.path)),
            None => Ok(()),
        }
    }

    /// Marks those that lie at or below a reference by now, and leaves out those in the destination.
    fn protect_trees(&mut self, copies: &mut Vec<TreeCopy>) {
        let places = &mut self.places;
        let mut moved = 0;
        copies.retain(|copy| {
            let in_trash = places.is_in_trash(&copy.dir.path);
            if in_trash {
                self.outcomes.summary.skip(&Skip::InTrash);
            }
            !in_trash
        });
        copies.retain_mut(|copy| {
            let place = open_dir(&copy.dir).and_then(|dir| places.check_dir(&dir.file));
            copy.dir.protected |= place == Err(Skip::Protected);
            let is_moved = place == Err(Skip::InDestination);
            moved += usize::from(is_moved);
            !is_moved
        });
        for _ in 0..moved {
            self.outcomes.summary.skip(&Skip::InDestination);
        }
    }

    /// The copies in the order of the rules: first the one that stays. What stays for other groups
    /// stays for this one, too, if no reference does and no rule that was given decides otherwise.
    fn order_trees(&self, copies: &[TreeCopy], done: &DoneDirs) -> Option<Vec<usize>> {
        let dirs = copies.iter().map(|copy| copy.dir.clone());
        let inodes = self.options.rules.order(&FileGroup {
            files: dirs.collect(),
        });
        let mut order: Vec<usize> = inodes.iter().map(|inode| inode.names[0]).collect();
        order.sort_by(|a, b| {
            let (one, other) = (&copies[*a], &copies[*b]);
            let by_choice = self.options.rules.compare_by_choice(&one.dir, &other.dir);
            (other.dir.protected.cmp(&one.dir.protected))
                .then(by_choice)
                .then_with(|| done.keeps(other).cmp(&done.keeps(one)))
        });
        (order.len() > 1).then_some(order)
    }

    /// Proves it, then does it or says that it would be done.
    fn tree(
        &mut self,
        pair: &TreePair<'_>,
        done: &DoneDirs,
        state: &mut GroupState<'_>,
    ) -> Result<StepOutcome, Skip> {
        let way = self.way(pair)?;
        let freed = self.prove(pair, done, state)?;
        match (self.options.mode, &way) {
            (RunMode::DryRun, _) => {
                if let RemovalWay::Rename(to) = &way {
                    self.copies.taken.insert(to.clone());
                }
                let freed = if way == RemovalWay::Delete { freed } else { 0 };
                Ok(StepOutcome::Would { freed })
            }
            (RunMode::Execute, RemovalWay::Rename(to)) => match self.rename_tree(pair, to) {
                Err(Skip::System { errno, .. }) if errno == Errno::XDEV.raw_os_error() => {
                    Err(Skip::OtherFileSystem)
                }
                outcome => outcome,
            },
            (RunMode::Execute, RemovalWay::Trash) => self.trash_tree(pair),
            (RunMode::Execute, RemovalWay::Delete) => self.empty_tree(pair, state),
        }
    }

    /// How the directory goes, as far as that can be seen beforehand: a move that is refused leaves no
    /// new directories.
    fn way(&mut self, pair: &TreePair<'_>) -> Result<RemovalWay, Skip> {
        let dir = match &self.options.action {
            Action::Move(dir) => dir,
            Action::Trash(_) => return self.way_to_trash(pair),
            _ => return Ok(RemovalWay::Delete),
        };
        let to = step::path_below(dir, &pair.target.dir.path);
        if self.copies.taken.contains(&to) || rustix::fs::lstat(to.as_slice()).is_ok() {
            return Err(Skip::DestinationExists(None));
        }
        let existing = self.foresee_destination(&to)?;
        let target = pair.target.dir.id;
        if visit_ancestors(&existing, |id, _| id == target)? {
            return Err(Skip::Holds("the directory that it is to be moved to"));
        }
        let there = meta::stat_all(&existing)?;
        let held = open_dir(&pair.target.dir)?;
        match there.stat.id.dev == target.dev && !mounts_differ(there.mount, held.mount) {
            true => Ok(RemovalWay::Rename(to)),
            false => Err(Skip::OtherFileSystem),
        }
    }

    fn way_to_trash(&mut self, pair: &TreePair<'_>) -> Result<RemovalWay, Skip> {
        let held = open_dir(&pair.target.dir)?;
        let trash = self.trash_for(&held)?;
        match visit_ancestors(trash.above(), |id, _| id == held.stat.id)? {
            true => Err(Skip::Holds("the trash of its file system")),
            false => Ok(RemovalWay::Trash),
        }
    }
}
