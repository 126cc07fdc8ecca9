//! A copy without copying: each entry is looked at as the run would look at it, and reported with
//! the same words. What the system would refuse is found as far as looks can tell: sources are
//! opened, directories asked whether they take names, and the space is reckoned up.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use bc_fs::caller::{Caller, FileOwner, check_name};
use bc_fs::path::split;
use bc_walk::{Error, FileKind, FileStat};
use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use crate::decide::Decision;
use crate::destination::warn_of_space;
use crate::event::EntryReport;
use crate::job::Job;
use crate::links::HardLinks;
use crate::meta::{LostMeta, stat, stat_at};
use crate::options::When;
use crate::place::{DestDir, EntryPlace, Over};
use crate::plan::makes_dir;
use crate::results::{EntryOutcome, EntryState};
use crate::sources::RootItem;
use crate::worker::Worker;

/// Entry that would be made.
struct ForeseenEntry {
    over: Over,
    /// Directory that it would be made in, unless that would be made first.
    dir: Option<Rc<DestDir>>,
    /// True if its source would be read.
    is_read: bool,
}

impl ForeseenEntry {
    fn of(place: EntryPlace, is_read: bool) -> ForeseenEntry {
        let EntryPlace { over, dir, .. } = place;
        ForeseenEntry {
            over,
            dir: Some(dir),
            is_read,
        }
    }
}

/// Reports what would become of each entry, and warns where there is no room for them. `sharing`:
/// number of destinations on the same file system.
pub(crate) fn run(job: &Job<'_>, sharing: u64) {
    let mut worker = Worker::new(job);
    let mut target = Vec::new();
    let mut bytes = 0_u64;
    let links = HardLinks::find(job);
    for item in job.plan.tree.items() {
        if job.is_over() {
            return;
        }
        if job.outcomes.renamed.contains(&item) {
            continue;
        }
        if job.is_manifest(item) {
            job.leave_manifest(item);
            continue;
        }
        job.plan.tree.write_target(item, &mut target);
        let foreseen = one(&mut worker, item, &target, &links);
        let foreseen = foreseen.and_then(|foreseen| match foreseen {
            Some(made) => {
                let room = worker.may_make(item, &target, &made);
                room.map(|room| Some((made, room)))
            }
            None => Ok(None),
        });
        match foreseen {
            Ok(Some((made, room))) => {
                bytes = bytes.saturating_add(room);
                job.would_be(item, &made.over);
            }
            Ok(None) => {}
            Err(error) => worker.failed(item, &error),
        }
    }
    let bytes = bytes.saturating_mul(sharing);
    warn_of_space(&job.plan.top, bytes, job.means.observer);
}

/// Bytes that the copy of a file takes; holes take none.
fn room_for(job: &Job<'_>, source: &FileStat) -> u64 {
    let size = source.stamp.size;
    match job.plan.options.sparse == When::Never {
        true => size,
        false => size.min(source.blocks * 512),
    }
}

impl Worker<'_> {
    /// Looks whether an entry could be made, and returns the bytes that it would take.
    fn may_make(
        &mut self,
        item: RootItem,
        target: &[u8],
        made: &ForeseenEntry,
    ) -> Result<u64, Error> {
        let job = self.job;
        let room = match made.is_read {
            true => room_for(job, &self.open(item)?.stat),
            false => 0,
        };
        if job.plan.options.moves && (made.is_read || job.plan.tree.kind(item) != FileKind::File) {
            self.foresee_owner(item, target);
        }
        let Some(dir) = &made.dir else {
            return Ok(room);
        };
        if let Err(errno) = takes_names(dir) {
            return Err(match job.plan.tree.kind(item) {
                FileKind::Dir => job.not_made(target, errno),
                _ => job.refused(target, "create", errno),
            });
        }
        if made.over != Over::Nothing {
            let taken = check_name(&dir.fd, split(target).1);
            taken.map_err(|fixed| job.refused(target, "rename", fixed.errno()))?;
        }
        Ok(room)
    }

    /// Reports that the copy of a source which is to go could not be given its owner.
    fn foresee_owner(&mut self, item: RootItem, target: &[u8]) {
        let job = self.job;
        let source = job.plan.walked(item).filter(|_| {
            let is_copied = !job.has_link(item);
            job.plan.options.preserve.owner && is_copied
        });
        let Some(source) = source else {
            return;
        };
        let caller = self.caller.take().unwrap_or_else(Caller::own);
        let owner = FileOwner {
            uid: source.uid,
            gid: source.gid,
        };
        // Its group may be that of the closest directory which is there.
        let given = caller.may_give(None, owner).or_else(|errno| {
            let mut below = split(target).0;
            let above = loop {
                match self.try_dir(below) {
                    Err(_) if !below.is_empty() => below = split(below).0,
                    found => break found,
                }
            };
            let above = above.map_err(|_| errno)?;
            // On one file system a source keeps its owner: it gets a second name.
            let is_file = job.plan.tree.kind(item) == FileKind::File;
            let mut may_link = || self.may_link(&caller, item, &above);
            if is_file && may_link().is_ok_and(|may| may) {
                return Ok(());
            }
            let above = stat(&above.fd).map_err(|_| errno)?;
            caller.may_give(Some(&above), owner)
        });
        self.caller = Some(caller);
        if let Err(errno) = given {
            job.lost(item, &mut vec![LostMeta { op: "chown", errno }]);
        }
    }

    /// The same of a link or node, which is reported then.
    pub(crate) fn foresee_special(&mut self, place: EntryPlace) -> Result<(), Error> {
        let (item, target) = (place.item, place.target.clone());
        let made = ForeseenEntry::of(place, false);
        self.may_make(item, &target, &made)?;
        self.job.would_be(item, &made.over);
        Ok(())
    }
}

/// Asks whether this user may give names in a directory: not if it is on a file system that is
/// mounted read-only, nor if it is immutable.
fn takes_names(dir: &DestDir) -> Result<(), Errno> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(&dir.fd, c".", access, AtFlags::EACCESS) {
        // With another effective user it may have no answer.
        Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        asked => asked,
    }
}

impl Job<'_> {
    /// Reports what would become of an entry.
    pub(crate) fn would_be(&self, item: RootItem, over: &Over) {
        self.outcomes.would_make.store(true, Relaxed);
        let report = match self.plan.tree.kind(item) {
            FileKind::Dir => EntryReport::Made,
            _ => over.report(),
        };
        self.report(item, report);
        self.done(vec![done(item)]);
    }
}

fn done(item: RootItem) -> EntryOutcome {
    EntryOutcome::new(item, EntryState::Copied)
}

/// Returns the entry that would be made; `None` where it is settled otherwise.
fn one(
    worker: &mut Worker<'_>,
    item: RootItem,
    target: &[u8],
    links: &HardLinks,
) -> Result<Option<ForeseenEntry>, Error> {
    let job = worker.job;
    let kind = job.plan.tree.kind(item);
    let first = links.first_of(item);
    let first = first.map(|first| (first, job.outcomes.results.state(first)));
    let is_made = |(_, state): &(RootItem, EntryState)| {
        matches!(state, EntryState::Copied | EntryState::Before)
    };
    let first = first.filter(is_made);
    let place = match worker.place(item) {
        Ok(place) => place,
        // The directory would be made first.
        Err(error) if error.errno() == Some(Errno::NOENT.raw_os_error()) => {
            return Ok(Some(ForeseenEntry {
                over: Over::Nothing,
                dir: None,
                is_read: kind == FileKind::File && first.is_none(),
            }));
        }
        Err(error) => return Err(error),
    };
    if kind == FileKind::Dir {
        if target.is_empty() {
            job.done(vec![done(item)]);
            return Ok(None);
        }
        let there = stat_at(&place.dir.fd, place.name()).ok();
        let there = there.map(|there| there.kind());
        let is_made = makes_dir(there, false)
            .map_err(|what| Error::with_message(job.shown(target), "mkdir", what))?;
        if !is_made {
            job.done(vec![done(item)]);
        }
        return Ok(is_made.then(|| ForeseenEntry::of(place, false)));
    }
    if let Some((first, state)) = first {
        let found = match state {
            EntryState::Before => worker
                .place(first)
                .and_then(|origin| worker.there(&origin))?,
            // It would be another file.
            _ => None,
        };
        let id = found.map(|found| found.id);
        if let Some(decision) = worker.decide_link(place.clone(), first, id)? {
            return Ok(settled(job, decision, false));
        }
    }
    if kind != FileKind::File {
        return worker.try_special(item).map(|()| None);
    }
    let walked = job.plan.tree.stat(item);
    match walked {
        Some(walked) => Ok(settled(job, worker.decide(place, &walked)?, true)),
        None => Ok(Some(ForeseenEntry::of(place, true))),
    }
}

fn settled(job: &Job<'_>, decision: Decision, is_read: bool) -> Option<ForeseenEntry> {
    match decision {
        Decision::Copy(place) => Some(ForeseenEntry::of(place, is_read)),
        Decision::Settled(outcome) => {
            job.done(vec![outcome]);
            None
        }
    }
}
