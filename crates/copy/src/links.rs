//! Hard links among the copied files: the first name is copied, the others become names of its
//! copy.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use bc_integrity::meta_of;
use bc_walk::{Error, FileKind, FileStat, Identity};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::data::single::medium;
use crate::data::small::{SMALL, small};
use crate::decide::{Decision, EntryWanted};
use crate::job::Job;
use crate::place::{EntryPlace, Existing};
use crate::plan::SkippedEntry;
use crate::results::{EntryOutcome, EntryState, Proof};
use crate::resume::record::Placed;
use crate::sources::{RootItem, SourceContent, USUAL};
use crate::stage::{self, put};
use crate::worker::{BATCH, Worker};

/// Files with several names.
#[derive(Default)]
pub(crate) struct HardLinks {
    /// Entry that each file is copied as; missing where there is no copy.
    firsts: HashMap<Identity, RootItem>,
    /// Further names, in order.
    further: Vec<(RootItem, Identity)>,
}

impl HardLinks {
    /// Finds files with several names, unless links are not preserved.
    pub(crate) fn find(job: &Job<'_>) -> HardLinks {
        let mut links = HardLinks::default();
        if !job.plan.options.preserve.links {
            return links;
        }
        for item in job.plan.tree.items() {
            let stat = match job.plan.tree.entry(item) {
                Some((listing, id)) => listing.meta(id),
                None => Some(job.plan.tree.root(item).1.source.stat.meta()),
            };
            let several = stat.filter(|stat| stat.nlink > 1);
            let Some(stat) = several.filter(|_| job.plan.tree.kind(item) != FileKind::Dir) else {
                continue;
            };
            match links.firsts.get(&stat.id) {
                None => drop(links.firsts.insert(stat.id, item)),
                Some(_) => links.further.push((item, stat.id)),
            }
        }
        links
    }

    /// True if an entry is another name of one that comes before it.
    pub(crate) fn is_further(&self, item: RootItem) -> bool {
        let found = self.further.binary_search_by_key(&item, |(item, _)| *item);
        found.is_ok()
    }

    /// Returns the entry of which this one is another name.
    pub(crate) fn first_of(&self, item: RootItem) -> Option<RootItem> {
        let at = self.further.binary_search_by_key(&item, |(item, _)| *item);
        self.firsts.get(&self.further[at.ok()?].1).copied()
    }

    /// Makes the further names, once the first ones are there.
    pub(crate) fn make(&self, worker: &mut Worker<'_>) {
        worker.commit();
        let job = worker.job;
        let mut firsts = self.firsts.clone();
        let mut linked_items = Vec::new();
        let mut origins = HashMap::new();
        let mut states = States::default();
        for (nth, (item, id)) in self.further.iter().copied().enumerate() {
            if job.is_over() {
                break;
            }
            if nth % BATCH == 0 {
                let end = self.further.len().min(nth + BATCH);
                record(worker, &self.further[nth..end]);
            }
            if job.outcomes.results.state(item) != EntryState::Left {
                continue;
            }
            let first = firsts.get(&id).copied().unwrap_or(item);
            let is_there = matches!(
                job.outcomes.results.state(first),
                EntryState::Copied | EntryState::Before
            );
            let linked = match is_there && first != item {
                true => {
                    states.before(worker, first);
                    worker.link(item, first)
                }
                false => Ok(false),
            };
            match linked {
                Ok(true) => {
                    linked_items.extend([first, item]);
                    origins.insert(item, first);
                    states.after(worker, first, item);
                }
                // This one is copied, and the next ones are linked to it.
                Ok(false) => {
                    alone(worker, item);
                    worker.commit();
                    firsts.insert(id, item);
                }
                Err(error) => worker.failed(item, &error),
            }
        }
        states.record(worker);
        look_again(worker, linked_items, &origins);
    }
}

/// The states of files that were given further names: each name changes the time of change, which
/// is recorded again unless another process has changed the file meanwhile. Without a manifest the
/// state is unknown, and the next run reads the file.
#[derive(Default)]
struct States(HashMap<RootItem, (Existing, bool)>);

impl States {
    /// Looks at a file that is to get a further name.
    fn before(&mut self, worker: &mut Worker<'_>, first: RootItem) {
        let job = worker.job;
        if !job.means.log.is_kept() || job.plan.tree.kind(first) != FileKind::File {
            return;
        }
        let Some(left) = job.outcomes.results.meta(first) else {
            return;
        };
        let found = worker
            .place(first)
            .and_then(|place| worker.existing(&place));
        if let Ok(Some(now)) = found {
            let meta = meta_of(&now.stat);
            let known = match self.0.get(&first) {
                Some((state, is_ours)) => *is_ours && meta_of(&state.stat) == meta,
                None => left == meta,
            };
            self.0.insert(first, (now, known));
        }
    }

    /// Notes that the file has another name, that of `item`.
    fn after(&mut self, worker: &Worker<'_>, first: RootItem, item: RootItem) {
        if let (Some((state, is_ours)), Some(meta)) = (
            self.0.get_mut(&first),
            worker.job.outcomes.results.meta(item),
        ) {
            let stamp = &mut state.stat.stamp;
            *is_ours &= (meta.ino, meta.size, meta.mtime_ns)
                == (state.stat.id.ino, stamp.size, stamp.mtime_ns);
            (stamp.ctime_ns, state.stat.nlink) = (meta.ctime_ns, meta.nlink);
        }
    }

    fn record(&self, worker: &mut Worker<'_>) {
        let mut target = Vec::new();
        for (first, (state, is_ours)) in &self.0 {
            if *is_ours {
                worker.job.plan.tree.write_target(*first, &mut target);
                worker.placed(&target, &Placed::of(state));
            }
        }
    }
}

/// Records names before they are given.
fn record(worker: &Worker<'_>, names: &[(RootItem, Identity)]) {
    let target = |(item, _): &(RootItem, Identity)| {
        let mut target = Vec::with_capacity(USUAL);
        worker.job.plan.tree.write_target(*item, &mut target);
        target
    };
    if worker.job.means.log.is_kept() {
        let targets: Vec<Vec<u8>> = names.iter().map(target).collect();
        worker.record_begun(targets.iter().map(Vec::as_slice));
    }
}

/// Updates the outcomes of entries whose number of names was changed by each further name. What is
/// proven of the first name holds for the others that were its names when they were walked.
fn look_again(
    worker: &mut Worker<'_>,
    mut items: Vec<RootItem>,
    origins: &HashMap<RootItem, RootItem>,
) {
    let job = worker.job;
    if !job.has_manifest() {
        return;
    }
    items.sort_unstable();
    items.dedup();
    for item in items {
        let (state, digest) = (
            job.outcomes.results.state(item),
            job.outcomes.results.digest(item),
        );
        let mut proof = job.outcomes.results.proof(item);
        let is_there = matches!(state, EntryState::Copied | EntryState::Before);
        if let (Proof::None, true, Some(first)) = (proof, is_there, origins.get(&item))
            && let Some((listing, id)) = job.plan.tree.entry(*first)
            && let Some(walked) = listing.stat(id)
            && job.is_as_walked(item, &walked)
        {
            proof = job.outcomes.results.proof(*first);
        }
        let Ok(place) = worker.place(item) else {
            continue;
        };
        job.ask_anew(&place.dir, place.name());
        let found = job.outcome(item, state, &place.dir, place.name(), digest);
        job.outcomes
            .results
            .put(found.map(|found| EntryOutcome { proof, ..found }));
    }
}

fn alone(worker: &mut Worker<'_>, item: RootItem) {
    let tree = &worker.job.plan.tree;
    let (kind, size) = (tree.kind(item), tree.size(item));
    let alone = std::slice::from_mut(worker);
    match kind {
        FileKind::File if size <= SMALL => small(alone, &[item]),
        FileKind::File => medium(alone, item),
        _ => alone[0].special(&[item]),
    }
}

impl Worker<'_> {
    /// Gives a copy of `first` the name of another of its source's names. Returns `Ok(false)` where
    /// that cannot be, and the file is to be copied.
    pub(crate) fn link(&mut self, item: RootItem, first: RootItem) -> Result<bool, Error> {
        let job = self.job;
        let (place, origin) = (self.place(item)?, self.place(first)?);
        let Some(found) = self.there(&origin)? else {
            return Ok(false);
        };
        if !self.leads_there(item)? {
            return Ok(false);
        }
        let place = match self.decide_link(place, first, Some(found.id))? {
            Some(Decision::Settled(outcome)) => {
                job.done(vec![outcome]);
                return Ok(true);
            }
            Some(Decision::Copy(place)) => place,
            None => return Ok(false),
        };
        let stage = job.plan.id.stage(&place.dir, &place.target, None);
        let link = || put::link(&origin.dir, origin.name(), found.id, &place.dir, &stage);
        let linked = match link() {
            // Left by a killed run.
            Err(Errno::EXIST) => {
                stage::remove(place.dir.fd.as_fd(), &stage);
                link()
            }
            linked => linked,
        };
        // Too many names, no links here, or another program has taken the first name.
        if !matches!(linked, Ok(true)) {
            return Ok(false);
        }
        job.publish(&place, &stage)?;
        self.reported(&place, job.outcomes.results.digest(first))?;
        Ok(true)
    }

    /// True if the name of a source leads to the file that it was walked as: another program may have
    /// saved another one there since, of which the first name's copy is none.
    fn leads_there(&mut self, item: RootItem) -> Result<bool, Error> {
        let job = self.job;
        let opened;
        let entry = job.plan.tree.entry(item);
        let (dir, name): (BorrowedFd<'_>, &CStr) =
            match (&*job.plan.tree.root(item).1.content, entry) {
                // It is open, and is copied as what was opened.
                (SourceContent::Alone(..), _) | (_, None) => return Ok(true),
                (_, Some((listing, id))) => {
                    opened = self.source_dir(item)?;
                    (opened.as_fd(), listing.name(id))
                }
            };
        let walked = entry.and_then(|(listing, id)| listing.stat(id));
        // A link that was followed leads there, too.
        let mut ways = [AtFlags::SYMLINK_NOFOLLOW, AtFlags::empty()].into_iter();
        Ok(ways.any(|flags| {
            let found = statat(dir, name, flags).map(|found| FileStat::from(&found).id);
            walked.as_ref().is_some_and(|walked| found == Ok(walked.id))
        }))
    }

    /// Like [`decide`](Worker::decide), for a further name of the copy of `first`. `copy`: identity
    /// of that copy, if it is there. Returns `None` where the name is to be copied by itself.
    pub(crate) fn decide_link(
        &mut self,
        place: EntryPlace,
        first: RootItem,
        copy: Option<Identity>,
    ) -> Result<Option<Decision>, Error> {
        let wanted = EntryWanted::FurtherName { first, copy };
        let entry = self.job.plan.tree.entry(place.item);
        let walked = entry.and_then(|(list, id)| list.stat(id));
        let Some(walked) = walked.filter(|walked| walked.kind() == FileKind::File) else {
            return Ok(match self.existing(&place)? {
                None => Some(Decision::Copy(place)),
                Some(there) if copy == Some(there.stat.id) => {
                    Some(self.skip(&place, &there, SkippedEntry::done(None), &wanted))
                }
                Some(_) => None,
            });
        };
        self.decide_entry(place, &wanted, &walked).map(Some)
    }
}
