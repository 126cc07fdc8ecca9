//! State of a run: its own, and that of the current group.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use bc_find::groups::FileRef;
use bc_fs::shortage::Shortage;
use bc_pool::Cancel;
use bc_walk::{Identity, Stamp};

use super::abilities::Abilities;
use super::claim::Blocked;
use super::copies::Copies;
use super::dir::Parents;
use super::freed::Ledger;
use super::journal::Journal;
use super::open_file::OpenFile;
use super::options::PruneOptions;
use super::outcomes::Outcomes;
use super::protect::WatchedPlaces;
use super::real_places::RealPlaces;
use super::relocate::Arrived;
use super::skip::Skip;
use super::step::{PruneEvent, Step, StepKind};
use super::temp::Temps;

/// A run, or one thread of it.
pub(super) struct Run<'a> {
    pub(super) options: &'a PruneOptions,
    pub(super) journal: Option<&'a Journal>,
    pub(super) means: Means<'a>,
    pub(super) outcomes: Outcomes<'a>,
    /// Abilities of the file systems met.
    pub(super) abilities: Abilities<'a>,
    pub(super) places: WatchedPlaces<'a>,
    /// Copies at the destination.
    pub(super) copies: Copies,
}

/// Means by which a thread of a run works.
pub(super) struct Means<'a> {
    pub(super) cancel: &'a Cancel,
    /// State shared with the run's other threads.
    pub(super) shared: Shared,
    /// The directories that it came to last.
    pub(super) parents: Parents,
    /// Directories that this thread knows to have been searched for leftovers.
    pub(super) swept: HashSet<Identity>,
}

/// State that the threads of a run share.
#[derive(Clone, Default)]
pub(super) struct Shared {
    pub(super) temps: Temps,
    pub(super) blocked: Blocked,
    /// Directories that were searched for leftovers, or are being searched: other threads wait for
    /// the end of that.
    swept: Arc<Mutex<HashMap<Identity, Arc<Once>>>>,
    /// Held while two long files are read from a disk that seeks.
    pub(super) disk: Arc<Mutex<()>>,
    shortage: Arc<Shortage>,
    /// Real places behind bind mounts, once asked for.
    real_places: Arc<OnceLock<RealPlaces>>,
}

impl Shared {
    pub(super) fn real_places(&self) -> &RealPlaces {
        self.real_places.get_or_init(RealPlaces::read)
    }

    /// Searches the directory of this identity for leftovers, once; returns when that is done.
    pub(super) fn sweep(&self, id: Identity, search: impl FnOnce()) {
        let once = {
            let swept = self.swept.lock();
            let mut swept = swept.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(swept.entry(id).or_insert_with(|| Arc::new(Once::new())))
        };
        once.call_once(search);
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(
        options: &'a PruneOptions,
        journal: Option<&'a Journal>,
        cancel: &'a Cancel,
        shared: Shared,
        observer: &'a mut dyn FnMut(PruneEvent),
    ) -> Run<'a> {
        Run {
            options,
            journal,
            means: Means {
                cancel,
                shared,
                parents: Parents::default(),
                swept: HashSet::new(),
            },
            outcomes: Outcomes::new(observer),
            abilities: Abilities::new(options),
            places: WatchedPlaces::new(&options.references, &options.action, cancel),
            copies: Copies::default(),
        }
    }

    /// Calls `step`, which opens `needed` descriptors. Where they are short, the directories that are
    /// only kept are closed, and what other threads hold is waited for.
    pub(super) fn with_descriptors<T>(
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

    pub(super) fn step(&self, kind: StepKind, target: &FileRef, kept_file: &OpenFile) -> Step {
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
pub(super) struct State<'g> {
    /// States that our own changes left files in.
    pub(super) stamps: HashMap<Identity, Stamp>,
    /// Names left of files that a dry run would have taken names from.
    pub(super) links: HashMap<Identity, u64>,
    /// Directory entries that were acted on.
    pub(super) entries: HashSet<(Identity, CString)>,
    /// True if the kept file was just proven to be in its recorded state.
    pub(super) is_fresh: bool,
    /// True if our own changes of its names left the kept file in a state that was not looked at.
    pub(super) is_stale: bool,
    /// Another name of the file at hand, which no step takes or a later one: where undo finds the file.
    pub(super) other: Option<&'g FileRef>,
    /// Number of names of the current file that are still to be processed, including the current
    /// one.
    pub(super) pending: u64,
    /// File whose name arrived last on another file system, and the copy there.
    pub(super) arrived: Option<(Identity, Arrived)>,
    /// Account of the disk space that the group gave back.
    pub(super) ledger: Ledger<'g>,
    /// Devices and states of files whose other names may be among the targets that follow, as files
    /// with numbers of their own, each with the number of names that were processed.
    pub(super) linked: HashMap<(u64, Stamp), u64>,
}

impl State<'_> {
    /// Returns true if the file may be another name of one that was processed, where names are
    /// numbered differently. The step on that name moved the change time of this one.
    pub(super) fn may_be_other_name(&self, file: &FileRef) -> bool {
        self.linked.contains_key(&(file.id.dev, file.stamp))
    }

    /// Returns the number of names that a dry run would have taken from a file that was found like
    /// this one.
    pub(super) fn names_taken(&self, held: &OpenFile) -> u64 {
        let found = self.linked.get(&(held.stat.id.dev, held.stat.stamp));
        found.copied().unwrap_or_default()
    }
}
