//! The end of a move between file systems: sources whose copies are proven are set aside, looked at
//! once more, and removed; all others stay, with the reason.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Digest;
use bc_edit::{entry, journal};
use bc_fs::call::{FailedCall, call};
use bc_fs::caller::{FixedName, check_name};
use bc_fs::dirfd::{self, Access};
use bc_fs::lease::{self, Refused};
use bc_fs::path::split;
use bc_walk::{Error, FileKind, FileStat, OwnFile, Stamp};
use rustix::io::Errno;

use super::plan::{
    CopyNow, RemovalFact, RemovalFacts, RemovalOrder, RemovalStep, SourceNow, Stays, Writers, next,
};
use crate::decide::{digest_of, open_there};
use crate::destination::{dir_and_name, place_of};
use crate::event::Event;
use crate::job::Job;
use crate::lock;
use crate::meta::{stat, stat_at};
use crate::place::{EntryPlace, Existing, Over};
use crate::results::{EntryState, Proof, Rows};
use crate::resume::aside::give_back;
use crate::resume::record::{self, AsideRecord, KeptSource, private_name};
use crate::sources::{RootItem, SourceContent, list, shown_below};
use crate::stage::complete::PIECE;
use crate::worker::{BATCH, Worker, run_in_batches};

/// Counts of a removal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Removed {
    /// Entries that the source has no more.
    pub(super) gone: u64,
    /// Entries that stay at the source, and that another run may remove.
    pub(super) retried: u64,
    /// Entries that stay as asked, because something else has their names at the destination.
    pub(super) left_there: u64,
    /// Directories that hold what was left out, and nothing else.
    pub(super) left_out: u64,
    /// True unless the removals could not be forced to the disk.
    pub(super) is_synced: bool,
}

/// One name of a source that is to be removed.
struct SourceName {
    item: RootItem,
    dir: Rc<OwnedFd>,
    name: CString,
    /// Absolute path of the directory.
    dir_path: Vec<u8>,
    private: String,
    place: EntryPlace,
}

/// State that a name led to, and has to lead to in the end.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Seen {
    id: bc_walk::Identity,
    stamp: Stamp,
}

impl Seen {
    fn of(stat: &FileStat) -> Seen {
        Seen {
            id: stat.id,
            stamp: stat.stamp,
        }
    }
}

/// An open source, and whether a lease on it tells of writers.
struct HeldSource {
    file: OwnedFd,
    stat: FileStat,
    leased: bool,
}

/// Why a source was not removed: a decision, or a call that the system refused.
enum NotRemoved {
    Stays(Stays),
    Refused(FailedCall),
}

impl From<FailedCall> for NotRemoved {
    fn from(failed: FailedCall) -> NotRemoved {
        NotRemoved::Refused(failed)
    }
}

impl From<Stays> for NotRemoved {
    fn from(why: Stays) -> NotRemoved {
        NotRemoved::Stays(why)
    }
}

/// Removal of the sources of a job.
struct Removal<'r, 'j> {
    job: &'r Job<'j>,
    rows: &'r Rows,
    order: RemovalOrder,
    /// Absolute path of each source.
    roots: Vec<Vec<u8>>,
    gone: AtomicU64,
    retried: AtomicU64,
    left_there: AtomicU64,
    left_out: AtomicU64,
    /// Sources that have their names at the destination, too.
    linked: HashSet<RootItem>,
    /// Reasons for which entries stay, to be reported in order.
    reasons: Mutex<Vec<(RootItem, Error)>>,
    /// Targets of entries that stay at the source.
    staying: Mutex<BTreeSet<Vec<u8>>>,
    /// A directory that lost entries on each file system.
    changed: Mutex<HashMap<u64, Result<OwnedFd, FailedCall>>>,
}

/// Removes the sources of what was copied, or, in a dry run, reports those that would stay.
///
/// # Errors
/// If the records of the copies cannot be forced to the disk, or a worker panicked. No source is
/// removed in the first case.
pub(super) fn remove_sources(
    job: &Job<'_>,
    rows: &Rows,
    allow_lossy: bool,
) -> Result<Removed, bc_walk::job::Error> {
    let place = |root: &crate::sources::Root| place_of(&root.source.path);
    let removal = Removal {
        job,
        rows,
        order: RemovalOrder { allow_lossy },
        roots: job.plan.tree.roots.iter().map(place).collect(),
        gone: AtomicU64::new(0),
        retried: AtomicU64::new(0),
        left_there: AtomicU64::new(0),
        left_out: AtomicU64::new(0),
        linked: job.take_linked(),
        reasons: Mutex::default(),
        staying: Mutex::default(),
        changed: Mutex::default(),
    };
    if !job.plan.options.dry_run && job.means.log.is_kept() {
        // Everything is on the disk by now but for the journal itself.
        let mut piece = Vec::new();
        journal::push(&mut piece, record::DURABLE, |_| {});
        journal::push(&mut piece, record::REMOVES, |_| {});
        let appended = job.means.log.append(&mut piece);
        let synced = appended.and_then(|()| job.means.log.sync());
        synced.map_err(|error| {
            let text = format!("the journal cannot be written: {error}; no source is removed");
            bc_walk::job::Error::new(bc_walk::job::ErrorKind::Refused, text)
        })?;
    }
    let groups = groups(job, &removal.linked);
    run_in_batches(job, groups.len(), BATCH, |worker, batch| {
        removal.batch(worker, &groups[batch]);
    })?;
    removal.dirs(&mut Worker::new(job));
    let mut reasons = std::mem::take(&mut *lock(&removal.reasons));
    reasons.sort_by_key(|(item, _)| *item);
    for (_, error) in &reasons {
        (job.means.observer)(Event::Failed(error));
    }
    let is_synced = removal.sync();
    Ok(Removed {
        is_synced,
        gone: removal.gone.into_inner(),
        retried: removal.retried.into_inner(),
        left_there: removal.left_there.into_inner(),
        left_out: removal.left_out.into_inner(),
    })
}

/// Returns all entries but directories; names of one file, which go together, in one group, unless
/// they have those of the destination already.
fn groups(job: &Job<'_>, linked: &HashSet<RootItem>) -> Vec<Vec<RootItem>> {
    let mut groups: Vec<Vec<RootItem>> = Vec::new();
    let mut of_file: HashMap<bc_walk::Identity, usize> = HashMap::new();
    for item in job.plan.tree.items() {
        if job.plan.tree.kind(item) == FileKind::Dir || job.outcomes.renamed.contains(&item) {
            continue;
        }
        let several = job.plan.walked(item).filter(|stat| stat.nlink > 1);
        let several = several.filter(|_| !linked.contains(&item));
        let id = several.map(|stat| stat.id);
        match id.and_then(|id| of_file.get(&id).copied()) {
            Some(at) => groups[at].push(item),
            None => {
                of_file.extend(id.map(|id| (id, groups.len())));
                groups.push(vec![item]);
            }
        }
    }
    groups
}

impl<'r, 'j> Removal<'r, 'j> {
    /// Removes the files of some groups, once their private names are recorded.
    fn batch(&self, worker: &mut Worker<'j>, groups: &[Vec<RootItem>]) {
        let (mut piece, mut kept) = (Vec::new(), Vec::new());
        let mut ready = Vec::with_capacity(groups.len());
        for group in groups {
            // What has no copy needs no look at its source either.
            let recorded = match self.without_a_look(group) {
                RemovalStep::Stay(why) => Err(NotRemoved::Stays(why)),
                _ => self.record(group, &mut piece),
            };
            match recorded {
                Ok(()) => ready.push(group),
                Err(why) => {
                    self.stay(group, &why);
                    self.record_kept(worker, group, &mut kept);
                }
            }
        }
        let is_recorded = self.job.plan.options.dry_run
            || self.job.means.log.is_kept()
                && (piece.is_empty() || {
                    let appended = self.job.means.log.append(&mut piece);
                    let synced = appended.and_then(|()| self.job.means.log.sync());
                    self.job.has_recorded(synced)
                });
        for group in ready {
            if self.job.is_over() {
                self.record_kept(worker, group, &mut kept);
                continue;
            }
            let removed = match is_recorded {
                true => self.opened(worker, group),
                false => Err(NotRemoved::Stays(Stays::Unrecorded)),
            };
            match removed {
                Ok(()) => drop(self.gone.fetch_add(group.len() as u64, Relaxed)),
                Err(why) => {
                    self.stay(group, &why);
                    self.record_kept(worker, group, &mut kept);
                }
            }
        }
        self.job.append(&mut kept);
    }

    /// Records that the sources of a group have kept their names, if all have: should another state
    /// of them be found by the next run, they were edited, and their copies are out of date. Without
    /// a record they may be other files, and the copies all that is left of those that were moved.
    fn record_kept(&self, worker: &mut Worker<'j>, group: &[RootItem], piece: &mut Vec<u8>) {
        // A name that something else has at the destination says nothing of its own copy.
        let is_copied = |item: &RootItem| self.is_copied(*item);
        if self.job.plan.options.dry_run || !group.iter().all(is_copied) {
            return;
        }
        let names = group.iter().map(|item| self.name(worker, *item));
        let Ok(names) = names.collect::<Result<Vec<SourceName>, _>>() else {
            return;
        };
        let is_there = |name: &SourceName| {
            let now = Existing::at(&name.dir, name.name.to_bytes()).ok()?;
            let then = self.job.plan.walked(name.item)?;
            KeptSource::of(&now).filter(|_| now.stat.id == then.id)
        };
        let sources: Option<Vec<KeptSource>> = names.iter().map(is_there).collect();
        for (name, source) in names.iter().zip(sources.unwrap_or_default()) {
            record::push_kept(piece, &name.private, source);
        }
    }

    /// Opens the directories of a group, and removes it. Those of one group alone are open at a time:
    /// descriptors are few.
    fn opened(&self, worker: &mut Worker<'j>, group: &[RootItem]) -> Result<(), NotRemoved> {
        let names = group.iter().map(|item| self.name(worker, *item));
        let names: Vec<SourceName> = names.collect::<Result<_, _>>()?;
        match self.linked.contains(&group[0]) {
            true => self.linked_name(&names[0])?,
            false => self.group(worker, &names)?,
        }
        for name in &names {
            self.has_lost(&name.dir);
        }
        Ok(())
    }

    /// Keeps a directory that lost an entry open, unless there is one of its file system already.
    fn has_lost(&self, dir: &OwnedFd) {
        if self.job.plan.options.dry_run {
            return;
        }
        let dev = stat(dir).map_or(0, |stat| stat.id.dev);
        let mut changed = lock(&self.changed);
        // Where it can be written to and not read, the next one may do.
        if !matches!(changed.get(&dev), Some(Ok(_))) {
            changed.insert(dev, dirfd::relist(dir));
        }
    }

    /// Forces the removals to the disks: should they be lost with the power once the journal is gone,
    /// the sources would be back, and their names taken.
    fn sync(&self) -> bool {
        let changed = lock(&self.changed);
        let mut synced = changed.values().map(|dir| {
            let dir = dir.as_ref().map_err(|failed| *failed)?;
            call("syncfs", || rustix::fs::syncfs(dir))
        });
        match synced.find_map(Result::err) {
            None => true,
            Some(failed) => {
                let text = format!(
                    "the removal of the sources may not be on the disk: {failed}; the same command \
                     ends it"
                );
                (self.job.means.observer)(Event::Warning(&text));
                false
            }
        }
    }

    fn without_a_look(&self, group: &[RootItem]) -> RemovalStep {
        next(&self.order, &self.facts(group))
    }

    fn facts(&self, group: &[RootItem]) -> RemovalFacts {
        // The worst of all names counts.
        let is_lossy = group.iter().any(|item| self.job.is_lossy(*item));
        let mut state = EntryState::Copied;
        for item in group {
            let own = self.rows.state(*item);
            if !matches!(own, EntryState::Copied | EntryState::Before) {
                state = own;
            }
        }
        let proof = |item: &RootItem| self.rows.proof(*item) == Proof::New;
        RemovalFacts {
            state,
            is_lossy,
            names: group.len() as u64,
            is_file: self.job.plan.tree.kind(group[0]) == FileKind::File,
            is_of_walked: group.iter().all(proof),
            source: None,
            writers: None,
            copy: None,
        }
    }

    /// True if a run of this move has made the copy of an entry.
    fn is_copied(&self, item: RootItem) -> bool {
        let state = self.rows.state(item);
        matches!(state, EntryState::Copied | EntryState::Before)
    }

    /// Reports the entries of a group that stay.
    fn stay(&self, group: &[RootItem], why: &NotRemoved) {
        for item in group {
            self.stay_one(*item, why);
        }
    }

    fn stay_one(&self, item: RootItem, why: &NotRemoved) {
        let mut target = Vec::new();
        self.job.plan.tree.write_target(item, &mut target);
        lock(&self.staying).insert(target);
        // Those are counted as what they are.
        let has_failed = matches!(self.rows.state(item), EntryState::Failed | EntryState::Left);
        if has_failed {
            return;
        }
        let path = self.job.plan.tree.source_path(item);
        let error = match why {
            NotRemoved::Stays(why) => {
                // The copy of one whose other name is taken is known by the journal alone.
                let is_half = *why == Stays::LeftThere && self.is_copied(item);
                let is_retried = why.is_retried() || is_half;
                self.retried.fetch_add(u64::from(is_retried), Relaxed);
                let is_left = *why == Stays::LeftThere && !is_half;
                self.left_there.fetch_add(u64::from(is_left), Relaxed);
                let text = match why {
                    Stays::NotCopied => Some("stays: another of its names was not copied"),
                    Stays::LeftThere if is_half => Some(
                        "stays: what has another of its names at the destination was left as it is",
                    ),
                    why => why.text(),
                };
                match text {
                    Some(text) => Error::with_message(path, "remove", text),
                    None => return,
                }
            }
            NotRemoved::Refused(failed) => {
                self.retried.fetch_add(1, Relaxed);
                Error::new(path, failed.op, *failed)
            }
        };
        lock(&self.reasons).push((item, error));
    }

    /// Adds the records of the private names of a group.
    fn record(&self, group: &[RootItem], piece: &mut Vec<u8>) -> Result<(), NotRemoved> {
        for item in group {
            let (_, aside) = self.aside(*item)?;
            if !record::push_aside(piece, &aside) {
                return Err(NotRemoved::Stays(Stays::Unrecorded));
            }
        }
        Ok(())
    }

    /// Returns the name of a source, and the record of its private one.
    fn aside(&self, item: RootItem) -> Result<(&'r CStr, AsideRecord), NotRemoved> {
        let tree = &self.job.plan.tree;
        let root = &self.roots[tree.root(item).0];
        let (name, path) = tree.named_below(item, root).ok_or(Stays::NotCopied)?;
        let record = AsideRecord {
            dir: match split(&path).0 {
                b"" => b"/".to_vec(),
                dir => dir.to_vec(),
            },
            name: name.to_bytes().to_vec(),
            private: private_name(&self.job.plan.id.0, &path),
        };
        Ok((name, record))
    }

    fn name(&self, worker: &mut Worker<'j>, item: RootItem) -> Result<SourceName, NotRemoved> {
        let job = self.job;
        let refused = |op: &'static str| {
            move |error: Error| {
                let errno = error.errno().map_or(Errno::IO, Errno::from_raw_os_error);
                NotRemoved::Refused(FailedCall { op, errno })
            }
        };
        let place = match job.plan.options.dry_run {
            // Its directory is not there yet, and nothing is looked for in it.
            true => self.top_place(worker, item)?,
            false => worker.place(item).map_err(refused("open directory"))?,
        };
        let (name, aside) = self.aside(item)?;
        let dir = match &*job.plan.tree.root(item).1.content {
            SourceContent::Alone(dir, _) => {
                let dir = dir.try_clone().map_err(|error| FailedCall {
                    op: "dup",
                    errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                })?;
                Rc::new(dir)
            }
            _ => worker.source_dir(item).map_err(refused("open directory"))?,
        };
        Ok(SourceName {
            item,
            dir,
            name: name.to_owned(),
            dir_path: aside.dir,
            private: aside.private,
            place,
        })
    }

    fn top_place(&self, worker: &mut Worker<'j>, item: RootItem) -> Result<EntryPlace, NotRemoved> {
        let failed = |errno| FailedCall {
            op: "open directory",
            errno,
        };
        Ok(EntryPlace {
            item,
            target: Vec::new(),
            dir: worker.try_dir(b"").map_err(failed)?,
            over: Over::Nothing,
            settled: false,
            is_whole: true,
        })
    }

    /// Removes a file with all its names, or gives all of them back.
    fn group(&self, worker: &mut Worker<'j>, all: &[SourceName]) -> Result<(), NotRemoved> {
        let items: Vec<RootItem> = all.iter().map(|name| name.item).collect();
        let mut facts = self.facts(&items);
        let mut held: Option<HeldSource> = None;
        let (mut copies, mut expected) = (Vec::new(), None);
        let compares = loop {
            match (next(&self.order, &facts), &mut held) {
                (RemovalStep::Stay(why), _) => return Err(NotRemoved::Stays(why)),
                (RemovalStep::Need(RemovalFact::Source), _) | (_, None) => {
                    let opened = self.open(&all[0])?;
                    facts.source = Some(self.source_now(all, opened.as_ref()));
                    held = opened;
                }
                (RemovalStep::Need(RemovalFact::Writers), Some(held)) => {
                    facts.writers = Some(watch(held));
                    // It may have been written to before it was watched.
                    facts.source = Some(self.source_now(all, Some(held)));
                }
                (RemovalStep::Need(RemovalFact::Copy), Some(held)) => {
                    if self.job.plan.options.dry_run {
                        return may_go(all);
                    }
                    let seen = self.copies(worker, all, held, &mut copies, &mut expected)?;
                    facts.copy = Some(seen);
                }
                (RemovalStep::Remove { compares }, Some(_)) => break compares,
            }
        };
        let Some(held) = held else {
            return Err(NotRemoved::Stays(Stays::Changed));
        };
        let expected = expected.filter(|_| compares);
        self.take_away(all, || {
            self.look_again(all, &held, expected)?;
            self.copies_stand(all, &copies)?;
            // A writer that finds the file now finds it by a name that it had before.
            match held.leased && !lease::is_held(&held.file) {
                true => Err(Stays::OpenForWriting.into()),
                false => Ok(()),
            }
        })
    }

    /// Removes the name of a source that has its new one, too.
    fn linked_name(&self, name: &SourceName) -> Result<(), NotRemoved> {
        if self.job.plan.options.dry_run {
            return may_go(std::slice::from_ref(name));
        }
        let look = || {
            let own = stat_at(&name.dir, &name.private[..]).map(|own| own.id);
            let copy = stat_at(&name.place.dir.fd, name.place.name()).map(|copy| copy.id);
            match own.is_ok() && own == copy {
                true => Ok(()),
                false => Err(Stays::CopyChanged.into()),
            }
        };
        self.take_away(std::slice::from_ref(name), look)
    }

    /// Sets names aside, and removes them if `look` finds nothing against it; else they are given
    /// back.
    fn take_away(
        &self,
        all: &[SourceName],
        look: impl FnOnce() -> Result<(), NotRemoved>,
    ) -> Result<(), NotRemoved> {
        let mut aside = 0;
        let looked = self.set_aside(all, &mut aside).and_then(|()| look());
        let mut left = &all[..aside];
        let removed = looked.and_then(|()| {
            while let Some((last, before)) = left.split_last() {
                entry::unlink(&last.dir, &last.private[..])?;
                left = before;
            }
            Ok(())
        });
        for name in left {
            self.give_back(name);
        }
        removed
    }

    fn open(&self, name: &SourceName) -> Result<Option<HeldSource>, NotRemoved> {
        let opened = match self.job.plan.tree.kind(name.item) {
            FileKind::File => dirfd::open_file(&name.dir, &name.name, Access::Read),
            _ => dirfd::open_link(&name.dir, &name.name),
        };
        let file = match opened {
            Ok(file) => file,
            Err(failed) if matches!(failed.errno, Errno::NOENT | Errno::LOOP | Errno::NXIO) => {
                return Ok(None);
            }
            Err(failed) => return Err(NotRemoved::Refused(failed)),
        };
        let stat = stat(&file).map_err(|errno| FailedCall { op: "stat", errno })?;
        Ok(Some(HeldSource {
            file,
            stat,
            leased: false,
        }))
    }

    /// Compares the open source, and all its names, with what was walked.
    fn source_now(&self, all: &[SourceName], held: Option<&HeldSource>) -> SourceNow {
        let (Some(held), Some(then)) = (held, self.job.plan.walked(all[0].item)) else {
            return SourceNow::Gone;
        };
        let Ok(now) = stat(&held.file) else {
            return SourceNow::Changed;
        };
        let state = |stat: &FileStat| (stat.id, stat.stamp, stat.mode, stat.uid, stat.gid);
        let leads = |name: &SourceName| {
            let there = stat_at(&name.dir, name.name.as_c_str());
            there.is_ok_and(|there| there.id == now.id)
        };
        match state(&then) == state(&now) && all.iter().all(leads) {
            true => SourceNow::AsWalked { names: now.nlink },
            false => SourceNow::Changed,
        }
    }

    /// Proves the copies of all names, and collects the states that they are in. `expected` becomes
    /// the digest of the content.
    fn copies(
        &self,
        worker: &mut Worker<'j>,
        all: &[SourceName],
        held: &HeldSource,
        copies: &mut Vec<Seen>,
        expected: &mut Option<Digest>,
    ) -> Result<CopyNow, NotRemoved> {
        let is_file = self.job.plan.tree.kind(all[0].item) == FileKind::File;
        for name in all {
            let there = match stat_at(&name.place.dir.fd, name.place.name()) {
                Ok(there) => there,
                Err(Errno::NOENT) => return Ok(CopyNow::Gone),
                Err(errno) => return Err(FailedCall { op: "stat", errno }.into()),
            };
            let seen = Seen::of(&there);
            let was = self.rows.meta(name.item);
            // Where numbers of files are made up, the bytes alone prove it.
            let traits = &self.job.site.top_traits;
            let is_numbered = !is_file || traits.identity_proves_content(seen.id.ino);
            let is_made = was.is_some_and(|was| {
                (was.ino == seen.id.ino || !is_numbered)
                    && (was.size, was.mtime_ns) == (seen.stamp.size, seen.stamp.mtime_ns)
            });
            if !is_made {
                return Ok(CopyNow::Changed);
            }
            // A further name of a copy that was read.
            let is_known = copies.contains(&seen);
            copies.push(seen);
            if is_known {
                continue;
            }
            let proven = match is_file {
                true => self.is_whole(worker, name, held, &seen, expected)?,
                false => self.is_same_thing(name, &there),
            };
            if proven != CopyNow::Proven {
                return Ok(proven);
            }
        }
        Ok(CopyNow::Proven)
    }

    /// Reads a copy back.
    fn is_whole(
        &self,
        worker: &mut Worker<'j>,
        name: &SourceName,
        held: &HeldSource,
        seen: &Seen,
        expected: &mut Option<Digest>,
    ) -> Result<CopyNow, NotRemoved> {
        let (job, failed) = (self.job, |errno| FailedCall {
            op: "read back",
            errno,
        });
        let Some(algorithm) = job.plan.options.algorithm else {
            return Ok(CopyNow::Differs);
        };
        let file = match open_there(&name.place) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::INVAL) => return Ok(CopyNow::Changed),
            Err(errno) => return Err(failed(errno).into()),
        };
        let left = Cell::new(seen.stamp.size);
        let go_on = || self.may_read_on(held, &left);
        let found = worker.digest_back(&name.place, &file, algorithm, &go_on);
        let Some(found) = found.map_err(failed)? else {
            return Err(self.stopped("read back"));
        };
        let now = stat(&file).map_err(failed)?;
        if Seen::of(&now) != *seen {
            return Ok(CopyNow::Changed);
        }
        // Of a copy that an earlier run made with another algorithm the digest is not known: it has
        // to be that of the source, which is read then.
        let written = self.rows.digest(name.item).or(*expected);
        match (written, self.rows.proof(name.item)) {
            (Some(written), _) if written != found => return Ok(CopyNow::Differs),
            (None, Proof::New) => return Ok(CopyNow::Differs),
            _ => {}
        }
        *expected = Some(found);
        Ok(CopyNow::Proven)
    }

    /// Waits for the limit of bytes a second before the next piece of what is `left` to read; false
    /// if that has to end: a process waits to write to the source, or the run is cancelled.
    fn may_read_on(&self, held: &HeldSource, left: &Cell<u64>) -> bool {
        let unbroken = || !held.leased || lease::is_held(&held.file);
        let piece = left.get().min(PIECE as u64);
        left.set(left.get() - piece);
        self.job.pay_while(piece, &unbroken);
        unbroken() && !self.job.means.cancel.is_cancelled()
    }

    /// Returns the reason for which a reading was not ended.
    fn stopped(&self, op: &'static str) -> NotRemoved {
        let errno = Errno::CANCELED;
        match self.job.means.cancel.is_cancelled() {
            true => FailedCall { op, errno }.into(),
            false => Stays::OpenForWriting.into(),
        }
    }

    /// Compares what has no content with its copy.
    fn is_same_thing(&self, name: &SourceName, there: &FileStat) -> CopyNow {
        let text = |dir: &OwnedFd, name: &[u8]| rustix::fs::readlinkat(dir, name, Vec::new());
        let Some(then) = self.job.plan.walked(name.item) else {
            return CopyNow::Changed;
        };
        let same = then.kind() == there.kind()
            && match then.kind() {
                FileKind::Symlink => {
                    let source = text(&name.dir, name.name.as_bytes());
                    let copy = text(&name.place.dir.fd, name.place.name());
                    source.is_ok() && source == copy
                }
                _ => then.rdev == there.rdev,
            };
        match same {
            true => CopyNow::Proven,
            false => CopyNow::Changed,
        }
    }

    /// Gives all names of a source their private ones; `aside` counts them.
    fn set_aside(&self, all: &[SourceName], aside: &mut usize) -> Result<(), NotRemoved> {
        for name in all {
            let (dir, private) = (&name.dir, &name.private[..]);
            let renamed = entry::rename_new(dir, name.name.as_c_str(), dir, private);
            let is_aside = || {
                // Where the new name is a link, the old one may have been left.
                let id = self.job.plan.walked(name.item).map(|then| then.id);
                stat_at(dir, private).is_ok_and(|there| Some(there.id) == id)
            };
            *aside += usize::from(renamed.is_ok() || is_aside());
            renamed?;
        }
        Ok(())
    }

    /// Looks at a source that was set aside: whatever another process has done to its names until
    /// then is done to another file, and whatever it does now finds none.
    fn look_again(
        &self,
        all: &[SourceName],
        held: &HeldSource,
        expected: Option<Digest>,
    ) -> Result<(), NotRemoved> {
        let changed = || NotRemoved::Stays(Stays::Changed);
        for name in all {
            let there = stat_at(&name.dir, &name.private[..]);
            if !there.is_ok_and(|there| there.id == held.stat.id) {
                return Err(changed());
            }
        }
        // Renaming it has changed the time of its last change.
        let state = |stat: &FileStat| {
            let Stamp { size, mtime_ns, .. } = stat.stamp;
            (stat.id, size, mtime_ns, stat.mode, stat.uid, stat.gid)
        };
        let look = || stat(&held.file).map_err(|_| changed());
        let now = look()?;
        if state(&now) != state(&held.stat) {
            return Err(changed());
        }
        if now.nlink > all.len() as u64 {
            return Err(Stays::NamesOutside.into());
        }
        if let (Some(expected), Some(algorithm)) = (expected, self.job.plan.options.algorithm) {
            let left = Cell::new(now.stamp.size);
            let go_on = || self.may_read_on(held, &left);
            let found = digest_of(&held.file, algorithm, &mut Vec::new(), &go_on);
            let found = found.map_err(|errno| FailedCall { op: "read", errno })?;
            let Some(found) = found else {
                return Err(self.stopped("read"));
            };
            if found != expected || Seen::of(&look()?) != Seen::of(&now) {
                return Err(changed());
            }
        }
        Ok(())
    }

    /// Looks at the names of the copies afresh.
    fn copies_stand(&self, all: &[SourceName], copies: &[Seen]) -> Result<(), NotRemoved> {
        for (name, copy) in all.iter().zip(copies) {
            match stat_at(&name.place.dir.fd, name.place.name()) {
                Ok(now) if Seen::of(&now) == *copy => {}
                Err(Errno::NOENT) => return Err(Stays::CopyGone.into()),
                _ => return Err(Stays::CopyChanged.into()),
            }
        }
        match all.len() == copies.len() {
            true => Ok(()),
            false => Err(Stays::CopyChanged.into()),
        }
    }

    /// Gives a source its name back.
    fn give_back(&self, name: &SourceName) {
        let (own, private) = (name.name.as_bytes(), name.private.as_bytes());
        let observer = self.job.means.observer;
        let back = give_back(name.dir.as_fd(), &name.dir_path, own, private, observer);
        if let Err(error) = back {
            // The next run tries again.
            observer(Event::Failed(&error));
        }
    }

    /// Removes directories, the deepest first.
    fn dirs(&self, worker: &mut Worker<'j>) {
        let dirs = self
            .job
            .plan
            .tree
            .items()
            .collect::<Vec<_>>()
            .into_iter()
            .rev();
        let mut holding = Vec::new();
        let is_there = |item: &RootItem| {
            self.job.plan.tree.kind(*item) == FileKind::Dir
                && !self.job.outcomes.renamed.contains(item)
        };
        for item in dirs.filter(is_there) {
            if self.job.is_over() {
                return;
            }
            match self.dir(worker, item) {
                Ok(()) => drop(self.gone.fetch_add(1, Relaxed)),
                Err(NotRemoved::Stays(Stays::LeftOut)) => holding.push(item),
                Err(why) => self.stay_one(item, &why),
            }
        }
        self.holding(&holding);
    }

    /// Looks for what has come into directories of which something was left out: it keeps them. All
    /// others stay as asked, with what was left out, and are not counted.
    fn holding(&self, dirs: &[RootItem]) {
        let (job, mut target) = (self.job, Vec::new());
        let journals: Vec<OwnFile> = job.means.log.own_file().into_iter().collect();
        for (nth, root) in job.plan.tree.roots.iter().enumerate() {
            let own = || {
                dirs.iter()
                    .filter(|item| job.plan.tree.root(**item).0 == nth)
            };
            if own().next().is_none() {
                continue;
            }
            let listed = list(job.plan.options, &root.source, &journals, job.means.cancel);
            let found = listed.map(|listing| {
                let files = listing
                    .ids()
                    .filter(|id| listing.kind(*id) != FileKind::Dir);
                let relative = |id| {
                    let mut below = Vec::new();
                    listing.write_relative(id, &mut below);
                    shown_below(&root.name, &below)
                };
                files.map(relative).collect::<BTreeSet<Vec<u8>>>()
            });
            for item in own() {
                job.plan.tree.write_target(*item, &mut target);
                // What cannot be looked for may be there.
                let is_new = found.as_ref().map_or(true, |found| holds(found, &target));
                match is_new {
                    true => self.stay_one(*item, &Stays::NotEmpty.into()),
                    false => drop(self.left_out.fetch_add(1, Relaxed)),
                }
            }
        }
    }

    fn dir(&self, worker: &mut Worker<'j>, item: RootItem) -> Result<(), NotRemoved> {
        let job = self.job;
        match self.without_a_look(&[item]) {
            RemovalStep::Stay(why) => return Err(why.into()),
            RemovalStep::Need(_) | RemovalStep::Remove { .. } => {}
        }
        let mut target = Vec::new();
        job.plan.tree.write_target(item, &mut target);
        if holds(&lock(&self.staying), &target) {
            return Err(Stays::NotEmptied.into());
        }
        let (_, root) = job.plan.tree.root(item);
        let Some((listing, id)) = job.plan.tree.entry(item) else {
            return Err(Stays::NotCopied.into());
        };
        let (dir, name) = match listing.name(id).to_bytes() {
            b"." => {
                let (dir, name) = dir_and_name(root.source.path.as_bytes());
                let name = dirfd::name(name.unwrap_or_default())?;
                (Rc::new(dirfd::open_root(dir)?), name)
            }
            _ => {
                let dir = worker.source_dir(item);
                let dir = dir.map_err(|_| NotRemoved::Stays(Stays::Changed))?;
                (dir, listing.name(id).to_owned())
            }
        };
        let is_it = |dir: &OwnedFd, name: &CStr| {
            let there = stat_at(dir, name).ok()?;
            Some(there.id == job.plan.walked(item)?.id)
        };
        match is_it(&dir, &name) {
            Some(true) => {}
            Some(false) => return Err(Stays::Changed.into()),
            None => return Err(Stays::Changed.into()),
        }
        if job.plan.options.dry_run {
            return may_lose(&dir, name.to_bytes(), "rmdir");
        }
        match entry::remove_dir(&dir, name.as_c_str()) {
            Ok(()) => {
                self.has_lost(&dir);
                Ok(())
            }
            Err(failed) if matches!(failed.errno, Errno::NOTEMPTY | Errno::EXIST) => {
                // What was left out stays as asked.
                match job.plan.options.walk.leaves_out() {
                    true => Err(Stays::LeftOut.into()),
                    false => Err(Stays::NotEmpty.into()),
                }
            }
            Err(failed) => Err(failed.into()),
        }
    }
}

/// Asks whether the system would let all names of a source be taken away.
fn may_go(all: &[SourceName]) -> Result<(), NotRemoved> {
    let mut names = all.iter();
    names.try_for_each(|name| may_lose(&name.dir, name.name.to_bytes(), "rename"))
}

/// Asks the same of one name of a directory. `op`: the call that would take it.
fn may_lose(dir: &OwnedFd, name: &[u8], op: &'static str) -> Result<(), NotRemoved> {
    let asked =
        dirfd::may_change(dir).and_then(|()| check_name(dir, name).map_err(FixedName::failed));
    asked.map_err(|failed| FailedCall { op, ..failed }.into())
}

/// True if any of the targets is below a directory.
fn holds(targets: &BTreeSet<Vec<u8>>, dir: &[u8]) -> bool {
    let below = [dir, b"/"].concat();
    let first = targets.range(below.clone()..).next();
    dir.is_empty() && !targets.is_empty() || first.is_some_and(|first| first.starts_with(&below))
}

/// Asks for a lease on a source, which tells of writers from then on.
fn watch(held: &mut HeldSource) -> Writers {
    match lease::take_when_closed(&held.file, held.stat.stamp.ctime_ns) {
        Ok(()) => {
            held.leased = true;
            Writers::None
        }
        Err(Refused::Writer) => Writers::Some,
        Err(Refused::Unavailable(_)) => Writers::Unknown,
    }
}
