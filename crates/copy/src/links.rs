//! Hard links among the copied files: the first name is copied, the others become names of its
//! copy. Where one of the others is there already, as the copy that it is to be, all become names
//! of that one. A link that cannot be made is reported as other metadata is.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use bc_integrity::meta_of;
use bc_manifest::integrity::Meta;
use bc_walk::{Error, FileKind, FileStat, Identity};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::data::single::medium;
use crate::data::small::{SMALL, small};
use crate::decide::{Decision, EntryWanted};
use crate::job::Job;
use crate::meta::LostMeta;
use crate::place::{DestDir, EntryPlace, Existing, Over};
use crate::plan::{Compared, SkippedEntry};
use crate::results::{EntryOutcome, EntryState, Proof};
use crate::resume::record::Placed;
use crate::sources::{RootItem, SourceContent, USUAL};
use crate::stage::complete::incomplete;
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
        let mut origins = Origins::default();
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
            let dev = match worker.place(item) {
                Ok(place) => place.dir.id.dev,
                Err(error) => {
                    worker.failed(item, &error);
                    continue;
                }
            };
            let own = origins.others.get(&(id, dev)).or(self.firsts.get(&id));
            let first = own.copied().unwrap_or(item);
            let of_first = job.outcomes.results.state(first);
            let done = match of_first {
                _ if origins.apart.contains(&first) => worker.link(item, first),
                EntryState::Copied | EntryState::Before => {
                    states.before(worker, first);
                    worker.link(item, first)
                }
                EntryState::Skipped => worker.link_to_existing(item, first),
                EntryState::Failed | EntryState::Left => Ok(NamedAs::Alone(None)),
            };
            match done {
                Ok(NamedAs::Linked) => {
                    origins.linked.entry(first).or_default().push(item);
                    states.after(worker, first, item);
                }
                Ok(NamedAs::Settled) => {
                    origins.linked.entry(first).or_default().push(item);
                    if job.outcomes.results.state(first) == EntryState::Copied
                        && worker.join(first, item, &mut origins)
                    {
                        origins.others.insert((id, dev), item);
                    }
                }
                Ok(NamedAs::Alone(Some(_))) if job.plan.options.strict => {
                    worker.failed(item, &incomplete(worker.shown(item)));
                }
                // This one is copied, and the next ones are linked to it if it is there.
                Ok(NamedAs::Alone(why)) => {
                    alone(worker, item);
                    worker.commit();
                    let state = job.outcomes.results.state(item);
                    let is_copied = state == EntryState::Copied;
                    let has_none = matches!(of_first, EntryState::Failed | EntryState::Left);
                    if is_copied || (has_none && state != EntryState::Failed) {
                        origins.others.insert((id, dev), item);
                    }
                    worker.not_linked(item, why.filter(|_| is_copied));
                }
                Err(error) => worker.failed(item, &error),
            }
        }
        states.record(worker);
        look_again(worker, &origins);
    }
}

/// Files at the destination that have got further names, or can get some.
#[derive(Default)]
struct Origins {
    /// Entries copied beside the first one of their source, which could not be linked to it, or
    /// taken in its place, by the file system that they are on.
    others: HashMap<(Identity, u64), RootItem>,
    /// Names that the copy of each entry was given, or that were there for it.
    linked: HashMap<RootItem, Vec<RootItem>>,
    /// Copies that are there, and count as failed since they could not be joined to another name.
    apart: HashSet<RootItem>,
}

/// Outcome of giving the copy of a file a further name.
pub(crate) enum NamedAs {
    /// It has the name.
    Linked,
    /// The file that has the name keeps it: this copy perhaps, or another one with its content.
    Settled,
    /// The name is to be that of a copy of its own; with the system's reason where the link is lost.
    Alone(Option<Errno>),
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

/// True if a file of the destination is in the state in which its entry was left, but for what a
/// further name changes.
fn is_as_left(job: &Job<'_>, dir: &DestDir, left: &Meta, now: &Meta) -> bool {
    let top = &job.plan.top;
    let is_told = dir.id.dev == top.id.dev && job.site.top_traits.identity_proves_content(now.ino);
    (left.size, left.mtime_ns) == (now.size, now.mtime_ns) && (!is_told || left.ino == now.ino)
}

/// Updates the outcomes of entries whose number of names was changed by each further name. What is
/// proven of the first name holds for the others that were its names when they were walked. What
/// another program has changed meanwhile keeps the state that its digest is of.
fn look_again(worker: &mut Worker<'_>, origins: &Origins) {
    let job = worker.job;
    if !job.keeps_states() {
        return;
    }
    let linked = origins.linked.iter();
    let further = linked.flat_map(|(first, names)| names.iter().map(|name| (*name, Some(*first))));
    let firsts = origins.linked.keys().map(|first| (*first, None));
    let mut items: Vec<(RootItem, Option<RootItem>)> = firsts.chain(further).collect();
    items.sort_unstable();
    for (item, first) in items {
        let (state, digest) = (
            job.outcomes.results.state(item),
            job.outcomes.results.digest(item),
        );
        let mut proof = match job.outcomes.results.proof(item) {
            // The earlier manifest's is about the state before the file got another name.
            Proof::Kept => Proof::New,
            proof => proof,
        };
        let is_there = matches!(state, EntryState::Copied | EntryState::Before);
        if let (Proof::None, true, Some(first)) = (proof, is_there, first)
            && let Some((listing, id)) = job.plan.tree.entry(first)
            && let Some(walked) = listing.stat(id)
            && job.is_as_walked(item, &walked)
        {
            proof = job.outcomes.results.proof(first);
        }
        let Ok(place) = worker.place(item) else {
            continue;
        };
        job.ask_anew(&place.dir, place.name());
        let Ok(found) = job.outcome(item, state, &place.dir, place.name(), digest) else {
            continue;
        };
        let left = job.outcomes.results.meta(item);
        if let (Some(left), Some(now)) = (left, &found.meta)
            && is_as_left(job, &place.dir, &left, now)
        {
            job.outcomes.results.put([EntryOutcome { proof, ..found }]);
        }
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
    /// Gives a copy of `first` the name of another of its source's names.
    fn link(&mut self, item: RootItem, first: RootItem) -> Result<NamedAs, Error> {
        let job = self.job;
        let (place, origin) = (self.place(item)?, self.place(first)?);
        let Some(found) = self.there(&origin)? else {
            return Ok(NamedAs::Alone(None));
        };
        if !self.is_copy(first, &origin, &found) || !self.leads_there(item)? {
            return Ok(NamedAs::Alone(None));
        }
        // Of a move: the first one was linked to, not copied.
        let walked = job.plan.tree.stat(item);
        let is_source = walked.is_some_and(|walked| walked.id == found.id);
        let place = match self.decide_link(place, first, Some(found.id))? {
            Some(Decision::Settled(outcome)) => {
                job.done(vec![outcome]);
                if is_source {
                    job.is_linked(item);
                }
                return Ok(NamedAs::Settled);
            }
            Some(Decision::Copy(place)) => place,
            None => return Ok(NamedAs::Alone(None)),
        };
        let named = self.put_link(&origin, found.id, &place)?;
        if let NamedAs::Linked = named {
            if is_source {
                job.is_linked(item);
            }
            let (results, dir) = (&job.outcomes.results, &place.dir);
            let digest = results.digest(first);
            self.reported(&place, digest)?;
            let (then, now) = (meta_of(&found), results.meta(item));
            if now.is_some_and(|now| !is_as_left(job, dir, &then, &now)) {
                // It was written to at that moment: the digest is that of the state before.
                results.put([EntryOutcome {
                    meta: Some(then),
                    digest,
                    ..EntryOutcome::new(item, EntryState::Copied)
                }]);
            }
        }
        Ok(named)
    }

    /// True if what has the name of an entry is the copy that it was left as: another program may
    /// have saved something there since.
    fn is_copy(&mut self, item: RootItem, place: &EntryPlace, found: &FileStat) -> bool {
        let job = self.job;
        let kind = job.plan.tree.kind(item);
        match job.outcomes.results.meta(item) {
            Some(left) if is_as_left(job, &place.dir, &left, &meta_of(found)) => true,
            // Links and nodes without a manifest.
            None if kind != FileKind::File => found.kind() == kind,
            _ => self.may_be_copy(item).unwrap_or(false),
        }
    }

    /// Makes a name one of the file that has the name of `origin`, which has to be this one.
    fn put_link(
        &mut self,
        origin: &EntryPlace,
        id: Identity,
        place: &EntryPlace,
    ) -> Result<NamedAs, Error> {
        let stage = self.job.plan.id.stage(&place.dir, &place.target, None);
        let link = || put::link(&origin.dir.fd, origin.name(), id, &place.dir, &stage);
        let linked = match link() {
            // Left by a killed run.
            Err(Errno::EXIST) => {
                stage::remove(place.dir.fd.as_fd(), &stage);
                link()
            }
            linked => linked,
        };
        match linked {
            Ok(true) => {}
            // Another program has taken the first name.
            Ok(false) => return Ok(NamedAs::Alone(None)),
            // Too many names, no links here, or another file system.
            Err(errno) => return Ok(NamedAs::Alone(Some(errno))),
        }
        self.job.publish(place, &stage)?;
        Ok(NamedAs::Linked)
    }

    /// Like `link`, where the first name was left to what has it: the copy may be linked to that if
    /// it could be the copy of `first`.
    fn link_to_existing(&mut self, item: RootItem, first: RootItem) -> Result<NamedAs, Error> {
        let place = self.place(item)?;
        let is_there = self.there(&place)?.is_some();
        if self.job.is_left_out(first) || (is_there && self.leads_to_one(first, item)?) {
            // It is left or replaced as any other file.
            return Ok(NamedAs::Alone(None));
        }
        match (self.may_be_copy(first)?, is_there) {
            (true, _) => self.link(item, first),
            (false, true) => Ok(NamedAs::Alone(None)),
            (false, false) => Ok(NamedAs::Alone(Some(Errno::EXIST))),
        }
    }

    /// True if the file that has the name of an entry has all that a copy would have, whatever made
    /// it. Its bytes are compared even if a record proves it to be the copy: for a link to it a new
    /// copy is given up, or not made.
    fn may_be_copy(&mut self, item: RootItem) -> Result<bool, Error> {
        let job = self.job;
        let results = &job.outcomes.results;
        let place = self.place(item)?;
        let Some(there) = self.there(&place)? else {
            return Ok(false);
        };
        let same = self.compare_whole(&place, &there)?;
        let Compared::Same(digest) = same else {
            return Ok(false);
        };
        let known = EntryOutcome {
            meta: Some(meta_of(&there)),
            digest,
            proof: results.proof(item),
            ..EntryOutcome::new(item, results.state(item))
        };
        results.put([known]);
        Ok(true)
    }

    /// Compares the file that has the name of a place with the source: content and metadata.
    fn compare_whole(&mut self, place: &EntryPlace, there: &FileStat) -> Result<Compared, Error> {
        let Some(source) = self.job.plan.tree.stat(place.item) else {
            return Ok(Compared::Other);
        };
        let are_files = there.kind() == FileKind::File && source.kind() == FileKind::File;
        match are_files && self.is_given_all(place, there)? {
            true => self.compare(place, there, &source, false),
            false => Ok(Compared::Other),
        }
    }

    /// Makes the copy of `first`, and the names that it was given, further names of the file that
    /// another of its source's names leads to: that one was there, and this run has made the copy
    /// before it came to it. Returns false where they stay apart.
    fn join(&mut self, first: RootItem, kept: RootItem, origins: &mut Origins) -> bool {
        let mut names = vec![first];
        names.extend(origins.linked.get(&first).into_iter().flatten());
        names.retain(|name| self.job.outcomes.results.state(*name) == EntryState::Copied);
        if self.leads_to_one(first, kept).unwrap_or(false) {
            return false;
        }
        if !self.may_be_copy(kept).unwrap_or(false) {
            self.not_linked(first, Some(Errno::EXIST));
            if self.job.plan.options.strict {
                origins.apart.insert(first);
            }
            return false;
        }
        let mut joined = Vec::with_capacity(names.len());
        for item in names {
            match self.rename_to(item, kept) {
                Ok(NamedAs::Linked) => {
                    joined.push(item);
                    let results = &self.job.outcomes.results;
                    results.put([EntryOutcome {
                        meta: results.meta(kept),
                        digest: results.digest(item),
                        proof: results.proof(item),
                        ..EntryOutcome::new(item, EntryState::Copied)
                    }]);
                }
                Ok(NamedAs::Alone(why)) => self.not_linked(item, why),
                Ok(NamedAs::Settled) => {}
                // It is a whole copy, by itself.
                Err(error) => {
                    let errno = error.errno().map(Errno::from_raw_os_error);
                    self.not_linked(item, errno.or(Some(Errno::EXIST)));
                }
            }
        }
        if let Some(names) = origins.linked.get_mut(&first) {
            names.retain(|name| joined.binary_search(name).is_err());
        }
        origins.linked.entry(kept).or_default().extend(joined);
        true
    }

    /// True if the names of two entries lead to one file.
    fn leads_to_one(&mut self, one: RootItem, other: RootItem) -> Result<bool, Error> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        let (one, other) = (self.there(&one)?, self.there(&other)?);
        Ok(one.is_some_and(|one| other.is_some_and(|other| one.id == other.id)))
    }

    /// Makes the name of a copy that this run has made one of another file with its content.
    fn rename_to(&mut self, item: RootItem, kept: RootItem) -> Result<NamedAs, Error> {
        let job = self.job;
        let (mut place, origin) = (self.place(item)?, self.place(kept)?);
        let (Some(copy), Some(there)) = (self.existing(&place)?, self.there(&origin)?) else {
            return Ok(NamedAs::Settled);
        };
        // Another program may have saved something there since. What comes after this comparison is
        // another state than the one that is replaced.
        let Compared::Same(_) = self.compare_whole(&place, &copy.stat)? else {
            return Ok(NamedAs::Alone(Some(Errno::EXIST)));
        };
        let id = copy.stat.id;
        place.over = Over::This(Box::new(copy));
        // Its other names are names of this copy, too, and no other sources'.
        let other = job.outcomes.named.release(id);
        let named = self.put_link(&origin, there.id, &place);
        if let (Some(other), false) = (other, matches!(named, Ok(NamedAs::Linked))) {
            job.outcomes.named.lock().files.insert(id, other);
        }
        named
    }

    fn shown(&self, item: RootItem) -> Vec<u8> {
        let mut target = Vec::new();
        self.job.plan.tree.write_target(item, &mut target);
        self.job.shown(&target)
    }

    /// Reports that an entry is no further name of another one, though its source is.
    fn not_linked(&mut self, item: RootItem, why: Option<Errno>) {
        let Some(errno) = why else {
            return;
        };
        match self.job.plan.options.strict {
            true => self.job.fail(item, &incomplete(self.shown(item))),
            false => self
                .job
                .lost(item, &mut vec![LostMeta { op: "link", errno }]),
        }
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
