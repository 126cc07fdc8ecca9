//! State of a run: its own, and that of the current group.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use bc_find::groups::FileRef;
use bc_fs::shortage::Shortage;
use bc_pool::Cancel;
use bc_walk::{Identity, Stamp};

use crate::act::moving::existing_target::Arrived;
use crate::act::moving::existing_target::Copies;
use crate::act::temp::Temps;
use crate::act::trash::place::KnownTrashes;
use crate::check::abilities::Abilities;
use crate::check::dir::Parents;
use crate::check::dir::RealPlaces;
use crate::check::freed::Ledger;
use crate::check::open_file::OpenFile;
use crate::check::pace::ReadPace;
use crate::journal::Journal;
use crate::leftovers::UnsettledLeftovers;
use crate::leftovers::claim::Blocked;
use crate::options::PruneOptions;
use crate::outcomes::Outcomes;
use crate::references::WatchedPlaces;
use crate::skip::Skip;
use crate::step::{PruneEvent, Step, StepKind};

/// A run, or one thread of it.
pub(crate) struct PruneRun<'a> {
    pub(crate) options: &'a PruneOptions,
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) means: RunMeans<'a>,
    pub(crate) outcomes: Outcomes<'a>,
    /// Abilities of the file systems met.
    pub(crate) abilities: Abilities<'a>,
    pub(crate) places: WatchedPlaces<'a>,
    /// Copies at the destination.
    pub(crate) copies: Copies,
    pub(crate) trashes: KnownTrashes,
}

/// Means by which a thread of a run works.
pub(crate) struct RunMeans<'a> {
    pub(crate) cancel: &'a Cancel,
    /// State shared with the run's other threads.
    pub(crate) shared: Shared,
    /// The directories that it came to last.
    pub(crate) parents: Parents,
    /// Directories that this thread knows to have been searched for leftovers.
    pub(crate) swept: HashSet<Identity>,
    /// Those of them in which links of killed runs were found.
    pub(crate) with_links: HashSet<Identity>,
}

/// State that the threads of a run share.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) temps: Temps,
    pub(crate) blocked: Blocked,
    /// Directories that were searched for leftovers, or are being searched: other threads wait for
    /// the end of that.
    swept: Arc<Mutex<HashMap<Identity, Arc<Once>>>>,
    unsettled: Arc<Mutex<UnsettledLeftovers>>,
    /// Held while two long files are read from a disk that seeks.
    pub(crate) disk: Arc<Mutex<()>>,
    shortage: Arc<Shortage>,
    /// Real places behind bind mounts, once asked for.
    real_places: Arc<OnceLock<RealPlaces>>,
}

impl Shared {
    pub(crate) fn real_places(&self) -> &RealPlaces {
        self.real_places.get_or_init(RealPlaces::read)
    }

    /// Leftovers for the end of the run.
    pub(crate) fn unsettled(&self) -> MutexGuard<'_, UnsettledLeftovers> {
        let unsettled = self.unsettled.lock();
        unsettled.unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches the directory of this identity for leftovers, once; returns when that is done.
    pub(crate) fn sweep(&self, id: Identity, search: impl FnOnce()) {
        let once = {
            let swept = self.swept.lock();
            let mut swept = swept.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(swept.entry(id).or_insert_with(|| Arc::new(Once::new())))
        };
        once.call_once(search);
    }
}

impl<'a> PruneRun<'a> {
    pub(crate) fn new(
        options: &'a PruneOptions,
        journal: Option<&'a Journal>,
        cancel: &'a Cancel,
        shared: Shared,
        observer: &'a mut dyn FnMut(PruneEvent),
    ) -> PruneRun<'a> {
        PruneRun {
            options,
            journal,
            means: RunMeans {
                cancel,
                shared,
                parents: Parents::default(),
                swept: HashSet::new(),
                with_links: HashSet::new(),
            },
            outcomes: Outcomes::new(observer),
            abilities: Abilities::new(options),
            places: WatchedPlaces::new(&options.references, &options.action, cancel),
            copies: Copies::default(),
            trashes: KnownTrashes::default(),
        }
    }

    /// Calls `step`, which opens `needed` descriptors. Where they are short, the directories that are
    /// only kept are closed, and what other threads hold is waited for.
    pub(crate) fn with_descriptors<T>(
        &mut self,
        needed: u32,
        mut step: impl FnMut(&mut Self) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        let shortage = Arc::clone(&self.means.shared.shortage);
        let cancel = self.means.cancel;
        let mut wait = shortage.wait(needed);
        loop {
            let done = step(self);
            if !wait.again(
                &done,
                || cancel.is_cancelled(),
                || self.means.parents.let_go(),
            ) {
                return done;
            }
        }
    }

    /// Returns the bounds of what it reads.
    pub(crate) fn pace(&self) -> ReadPace<'a> {
        ReadPace::new(self.means.cancel, self.options.rate.as_ref())
    }

    pub(crate) fn step(&self, kind: StepKind, target: &FileRef, kept_file: &OpenFile) -> Step {
        Step {
            kind,
            target: target.path.clone(),
            kept_file: kept_file.path.clone(),
            reference: kept_file.protected,
            size: kept_file.stat.stamp.size,
        }
    }
}

/// Changes that this run made to the files of one group.
#[derive(Default)]
pub(crate) struct GroupState<'g> {
    /// States that our own changes left files in.
    pub(crate) stamps: HashMap<Identity, Stamp>,
    /// Names left of files that a dry run would have taken names from.
    pub(crate) links: HashMap<Identity, u64>,
    /// Directory entries that were acted on.
    pub(crate) entries: HashSet<(Identity, CString)>,
    /// True if the kept file was just proven to be in its recorded state.
    pub(crate) is_fresh: bool,
    /// True if our own changes of its names left the kept file in a state that was not looked at.
    pub(crate) is_stale: bool,
    /// Another name of the file at hand, which no step takes or a later one: where undo finds the file.
    pub(crate) other: Option<&'g FileRef>,
    /// Number of names of the current file that are still to be processed, including the current
    /// one.
    pub(crate) pending: u64,
    /// File whose name arrived last on another file system, and the copy there.
    pub(crate) arrived: Option<(Identity, Arrived)>,
    /// Files that stay beside the kept one, locked until the group is done.
    pub(crate) copies: Vec<OpenFile>,
    /// Account of the disk space that the group gave back.
    pub(crate) ledger: Ledger<'g>,
    /// Devices and states of files whose other names may be among the targets that follow, as files
    /// with numbers of their own, each with the number of names that were processed.
    pub(crate) linked: HashMap<(u64, Stamp), u64>,
}

impl GroupState<'_> {
    /// Proves that the copies which stay beside the kept file are as they were found.
    pub(crate) fn check_copies(&self) -> Result<(), Skip> {
        self.copies.iter().try_for_each(|copy| {
            let checked = copy.check();
            checked.map_err(|why| Skip::of_kept_file(why).of(&copy.path))
        })
    }

    /// Takes the states that the removal of leftovers left the copies in: one may have been another name
    /// of them.
    pub(crate) fn refresh_copies(&mut self) {
        for copy in &mut self.copies {
            // What has changed otherwise shows when it is checked.
            let _ = copy.refresh();
        }
    }

    /// Returns true if the file may be another name of one that was processed, where names are
    /// numbered differently. The step on that name moved the change time of this one.
    pub(crate) fn may_be_other_name(&self, file: &FileRef) -> bool {
        self.linked.contains_key(&(file.id.dev, file.stamp))
    }

    /// Returns the number of names that a dry run would have taken from a file that was found like
    /// this one.
    pub(crate) fn names_taken(&self, held: &OpenFile) -> u64 {
        let found = self.linked.get(&(held.stat.id.dev, held.stat.stamp));
        found.copied().unwrap_or_default()
    }
}
