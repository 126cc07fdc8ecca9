//! The run: groups in, steps out.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;

use bc_pool::Cancel;
use bc_walk::{Identity, Stamp};
use rustix::io::Errno;

use super::claim::{self, Blocked};
use super::freed::Ledger;
use super::guard::{self, Held};
use super::journal::Journal;
use super::moving::Copies;
use super::options::{Mode, Options};
use super::plan::{FileRef, Group};
use super::probe::Questions;
use super::protect::Places;
use super::prove::{Ready, Refusal};
use super::relocate::{self, Arrived};
use super::step::{Action, Outcome, Skip, Step, StepKind, Summary};
use super::temp::Temps;
use super::unable::Abilities;
use super::{delete, hardlink, leftover, reflink, symlink};

/// What the run tells as it goes. Exhaustive: no front end should overlook one.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A step and what became of it. What a file system cannot do with any of its
    /// files ([`Skip::Unable`], [`Skip::UnstableInodes`]) is told for the first of them only.
    Step(&'a Step, &'a Outcome),
    /// A file that should have been kept cannot be relied on; another one of
    /// its group is kept, or the group is left alone.
    Unusable(&'a [u8], &'a Skip),
    /// The system gives no read lease on this file, for the reason of this error number: somebody
    /// who writes to it through a descriptor that was open before goes unnoticed. Told for the
    /// first such file of a run only.
    Unwatched(&'a [u8], i32),
    /// Whether the directory of this path shows one of a reference, or the one that files are
    /// moved to is another one that is searched, is found out only by making a file there, which
    /// a dry run does not. Told for the first such path only.
    Unasked(&'a [u8]),
    /// The file of this path was made to find that out, and could not be removed for the reason
    /// of this error number. No other is made on its device, and no file there is changed whose
    /// place is in question.
    Stuck(&'a [u8], i32),
    /// The journal could not be completed; what was done is done.
    Journal(&'a Skip),
}

/// Acts on each group. Steps are written to `journal` before they are done;
/// a front end should always give one when it executes.
///
/// Returns early, between two steps, when cancelled.
pub fn prune(
    groups: impl IntoIterator<Item = Group>,
    options: &Options,
    journal: Option<&mut Journal>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(Event<'_>),
) -> Summary {
    let mut run = Run {
        options,
        journal,
        cancel,
        observer,
        summary: Summary::default(),
        temps: Temps::new(),
        blocked: Blocked::default(),
        swept: HashSet::new(),
        abilities: Abilities::default(),
        told_unwatched: false,
        questions: Questions::default(),
        copies: Copies::default(),
        taken: HashSet::new(),
        copied_up: 0,
        places: Places::new(&options.references, &options.action, cancel),
    };
    for mut group in groups {
        if cancel.is_cancelled() {
            break;
        }
        run.summary.groups += 1;
        let mut moved = run.places.sort_out(&mut group);
        if run.find_destination() {
            moved += run.places.sort_out(&mut group);
        }
        for _ in 0..moved {
            run.summary.skip(&Skip::InDestination);
        }
        if group.files.len() > 1 {
            run.group(&group);
        }
    }
    if let Some(journal) = &mut run.journal
        && let Err(skip) = journal.sync()
    {
        (run.observer)(Event::Journal(&skip));
        run.summary.skip(&skip);
    }
    let freed = run.summary.freed;
    run.summary.freed = freed.saturating_sub(run.copied_up);
    run.summary.used = run.copied_up.saturating_sub(freed);
    run.summary
}

pub(super) struct Run<'a> {
    pub(super) options: &'a Options,
    pub(super) journal: Option<&'a mut Journal>,
    pub(super) cancel: &'a Cancel,
    observer: &'a mut dyn FnMut(Event<'_>),
    pub(super) summary: Summary,
    pub(super) temps: Temps,
    pub(super) blocked: Blocked,
    pub(super) copies: Copies,
    /// Paths that files were moved to, or would be.
    pub(super) taken: HashSet<Vec<u8>>,
    /// Bytes that it took to copy files into an upper layer.
    pub(super) copied_up: u64,
    /// Directories that were searched for leftovers.
    pub(super) swept: HashSet<Identity>,
    /// Of the file systems met.
    pub(super) abilities: Abilities,
    /// Whether [`Event::Unwatched`] was told.
    told_unwatched: bool,
    /// What only the file system could tell.
    pub(super) questions: Questions,
    pub(super) places: Places<'a>,
}

/// What this run did to the files of one group.
#[derive(Default)]
pub(super) struct State<'g> {
    /// States that our own changes left files in.
    pub(super) stamps: HashMap<Identity, Stamp>,
    /// Names left of files that a dry run would have taken names from.
    pub(super) links: HashMap<Identity, u64>,
    /// Directory entries that were acted on.
    pub(super) entries: HashSet<(Identity, CString)>,
    /// How many names of the file at hand are still to be dealt with, with the
    /// one that is being dealt with.
    pub(super) pending: u64,
    /// The file whose name arrived last on another file system, and where.
    pub(super) arrived: Option<(Identity, Arrived)>,
    /// What space it gave back.
    pub(super) ledger: Ledger<'g>,
    /// How files were found whose other names may be among the targets that follow, as files with
    /// numbers of their own, and how many names were dealt with.
    linked: HashMap<(u64, Stamp), u64>,
}

impl State<'_> {
    /// Whether the file may be another name of one that was dealt with, where names are numbered
    /// differently. What was done to that moved the change time of this one.
    pub(super) fn may_be_other_name(&self, file: &FileRef) -> bool {
        self.linked.contains_key(&(file.id.dev, file.stamp))
    }

    /// How many names a dry run would have taken from a file that was found like this one.
    pub(super) fn names_taken(&self, held: &Held) -> u64 {
        let found = self.linked.get(&(held.stat.id.dev, held.stat.stamp));
        found.copied().unwrap_or_default()
    }
}

impl Run<'_> {
    fn group(&mut self, group: &Group) {
        let inodes = self.options.rules.order(group);
        let Some(best) = inodes.first() else { return };
        let had_reference = best.protected;
        let files = inodes.iter().map(|inode| &group.files[inode.names[0]]);
        let mut state = State {
            ledger: Ledger::new(files.collect()),
            ..State::default()
        };
        let mut keeper = None;
        let mut unusable = HashSet::new();
        for inode in &inodes {
            if had_reference && !inode.protected || self.cancel.is_cancelled() {
                break;
            }
            keeper = inode
                .names
                .iter()
                .find_map(|index| self.open_keeper(&group.files[*index]));
            if keeper.is_some() {
                break;
            }
            unusable.insert(inode.id);
        }
        let Some((mut keeper, mut keeper_ref)) = keeper else {
            return;
        };
        for inode in &inodes {
            if unusable.contains(&inode.id) {
                continue;
            }
            let rules = &self.options.rules;
            let names = inode.names.iter().map(|index| &group.files[*index]);
            let acted = names.filter(|name| rules.acts_on(inode, keeper_ref, name));
            state.pending = acted.count() as u64 + 1;
            // What killed runs left first: where it arrived the other names go as well.
            let left = |index: &&usize| leftover::is_ours(group.files[**index].name());
            let (left, rest): (Vec<&usize>, Vec<&usize>) = inode.names.iter().partition(left);
            for index in left.into_iter().chain(rest) {
                let target = &group.files[*index];
                let left_over = leftover::is_ours(target.name());
                if self.cancel.is_cancelled() {
                    return;
                }
                if !self.options.rules.acts_on(inode, keeper_ref, target) {
                    continue;
                }
                state.pending = state.pending.saturating_sub(1);
                let promoted = if left_over {
                    self.left_over(&mut keeper, target, &mut state);
                    None
                } else {
                    self.target(&mut keeper, target, &mut state)
                };
                if let Some(held) = promoted {
                    (keeper, keeper_ref) = (held, target);
                    break;
                }
            }
        }
    }

    fn open_keeper<'g>(&mut self, file: &'g FileRef) -> Option<(Held, &'g FileRef)> {
        match guard::open(file, file.stamp) {
            Ok(held) => Some((held, file)),
            Err(skip) => {
                (self.observer)(Event::Unusable(&file.path, &skip));
                self.summary.skip(&skip);
                None
            }
        }
    }

    pub(super) fn unwatched(&mut self, path: &[u8], errno: i32) {
        if !std::mem::replace(&mut self.told_unwatched, true) {
            (self.observer)(Event::Unwatched(path, errno));
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        (self.observer)(event);
    }

    pub(super) fn tell(&mut self, step: &Step, outcome: &Outcome) {
        match outcome {
            Outcome::Done { freed, .. } | Outcome::Would { freed } => {
                self.summary.freed += freed;
                let lost = matches!(outcome, Outcome::Done { lost, .. } if !lost.is_empty());
                self.summary.incomplete += u64::from(lost);
                match step.kind {
                    StepKind::Leftover => self.summary.leftovers += 1,
                    _ => self.summary.changed += 1,
                }
            }
            Outcome::Skipped(skip) => {
                self.summary.skip(skip);
                if self.abilities.is_told(skip) {
                    return;
                }
            }
        }
        (self.observer)(Event::Step(step, outcome));
    }

    pub(super) fn step(&self, kind: StepKind, target: &FileRef, keeper: &Held) -> Step {
        Step {
            kind,
            target: target.path.clone(),
            keeper: keeper.path.clone(),
            reference: keeper.protected,
            size: keeper.stat.stamp.size,
        }
    }

    /// Deals with one target; gives it back where it has to be the keeper from
    /// here on.
    fn target(&mut self, keeper: &mut Held, file: &FileRef, state: &mut State<'_>) -> Option<Held> {
        let kind = match &self.options.action {
            Action::Hardlink => StepKind::Hardlink,
            Action::Reflink => StepKind::Reflink,
            Action::Symlink => StepKind::Symlink(Vec::new()),
            Action::Delete => StepKind::Delete,
            Action::Move(dir) => StepKind::Move(relocate::destination(dir, &file.path)),
        };
        let mut step = self.step(kind, file, keeper);
        let proven = self.prove(keeper, file, state, &mut step.kind);
        let mut promoted = None;
        let outcome = match proven {
            Err(Refusal::Skip(skip)) => Outcome::Skipped(skip),
            Err(Refusal::Keep(held, why)) => {
                promoted = Some(*held);
                Outcome::Skipped(why)
            }
            Ok(mut ready) => match self.perform(keeper, &mut ready, &step.kind, state) {
                Ok(outcome) => outcome,
                // EMLINK: nothing was changed, the target serves as the next keeper.
                Err(Skip::System { errno, .. })
                    if errno == Errno::MLINK.raw_os_error() && step.kind == StepKind::Hardlink =>
                {
                    promoted = ready.held.check().ok().map(|()| ready.held);
                    Outcome::Skipped(Skip::NewKeeper)
                }
                Err(skip) => Outcome::Skipped(self.learn(keeper, &ready.held, &step.kind, skip)),
            },
        };
        keeper.release();
        if let Some(promoted) = &mut promoted {
            promoted.release();
        }
        self.tell(&step, &outcome);
        promoted
    }

    /// Does it, or says that it would be done.
    fn perform(
        &mut self,
        keeper: &mut Held,
        ready: &mut Ready,
        kind: &StepKind,
        state: &mut State<'_>,
    ) -> Result<Outcome, Skip> {
        let id = ready.id;
        if ready.held.stat.nlink > 1 {
            let found = (id.dev, ready.held.stat.stamp);
            *state.linked.entry(found).or_default() += 1;
        }
        if self.options.mode == Mode::DryRun {
            self.keep_off(&ready.held)?;
            self.keep_destination_off(kind)?;
            if !matches!(kind, StepKind::Reflink) {
                state.links.insert(id, ready.links_left);
            }
            if *kind == StepKind::Hardlink {
                keeper.links += 1;
            }
            if let StepKind::Move(to) = kind {
                self.taken.insert(to.clone());
            }
            let freed = self.book(ready, kind, &mut state.ledger);
            return Ok(Outcome::Would { freed });
        }
        keeper.settle()?;
        self.keep_off(&ready.held)?;
        self.keep_destination_off(kind)?;
        let _claim = self.claim(kind, keeper, &ready.held)?;
        let place = self.open_destination(kind, &ready.held)?;
        if *kind == StepKind::Hardlink && ready.stock.copies_up(&state.ledger) {
            // First, so that the journal knows it by the number that it has from here on.
            hardlink::copy_up(keeper, &ready.held, &mut self.temps)?;
            self.book_copy(&ready.stock, &mut state.ledger);
            state.ledger.copied_up(keeper.stat.id);
        }
        let destination = match kind {
            StepKind::Move(to) => Some(to.as_slice()),
            _ => None,
        };
        let number = match &mut self.journal {
            Some(journal) => Some(journal.begin(
                self.options.action.name(),
                &ready.held,
                keeper,
                &ready.digest,
                destination,
            )?),
            None => None,
        };
        let target = &ready.held;
        if !matches!(kind, StepKind::Hardlink | StepKind::Reflink) {
            keeper.wait_for_tick();
        }
        let mut lost = Vec::new();
        let acted = match (kind, &self.options.action) {
            (StepKind::Hardlink, _) => hardlink::act(keeper, target, &mut self.temps),
            (StepKind::Symlink(_), _) => symlink::act(keeper, target, &mut self.temps),
            (StepKind::Reflink, _) => reflink::act(keeper, target, self.cancel),
            (StepKind::Move(to), _) => self
                .relocate(place, keeper, target, to, number, state)
                .map(|found| lost = found),
            _ => delete::act(keeper, target, &mut self.temps),
        };
        if let Err(Skip::Left { errno, .. }) = acted
            && let Errno::PERM | Errno::ACCESS = Errno::from_raw_os_error(errno)
        {
            self.blocked.block(&target.dir);
        }
        if let (Some(number), Some(journal)) = (number, &mut self.journal)
            && let Err(skip) = journal.end(number, &acted)
        {
            // The step's own line is there, so undo looks at the file itself.
            (self.observer)(Event::Journal(&skip));
            self.summary.skip(&skip);
        }
        // Our changes of names moved the ctime; anything more shows up as a change.
        if keeper.refresh().is_ok() {
            state.stamps.insert(keeper.stat.id, keeper.stat.stamp);
        }
        if ready.held.refresh().is_ok() {
            state.stamps.insert(id, ready.held.stat.stamp);
            // Copied up, it has left its other names below; a server that keeps a removed name until
            // its file is closed counts that one too.
            let links = match ready.held.stat.id == id {
                true if acted.is_ok() => ready.held.stat.nlink.min(ready.links_left),
                true => ready.held.stat.nlink,
                false => ready.links_left,
            };
            state.links.insert(id, links);
        } else if acted.is_ok() && !matches!(kind, StepKind::Reflink) {
            state.links.insert(id, ready.links_left);
        }
        if acted.is_ok() {
            self.taken.extend(destination.map(<[u8]>::to_vec));
        }
        acted?;
        let freed = self.book(ready, kind, &mut state.ledger);
        Ok(Outcome::Done { freed, lost })
    }

    /// Claims the target's directory for a temporary name; a move does so for
    /// both directories once it knows that it has to copy.
    fn claim(
        &mut self,
        kind: &StepKind,
        keeper: &Held,
        target: &Held,
    ) -> Result<Option<claim::Claim>, Skip> {
        if matches!(kind, StepKind::Reflink | StepKind::Move(_)) {
            return Ok(None);
        }
        let claim = self.blocked.claim(&target.dir, self.cancel)?;
        if matches!(kind, StepKind::Hardlink) {
            // Its temporary name is one of the kept file.
            claim.check_removable(keeper.stat.uid)?;
            claim.check_removable(target.stat.uid)?;
        }
        Ok(Some(claim))
    }
}
