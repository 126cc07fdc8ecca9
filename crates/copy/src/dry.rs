//! A copy without copying: each entry is looked at as the run would look at it, and reported with
//! the same words.

use bc_walk::{Error, FileKind};
use rustix::io::Errno;

use crate::decide::Decision;
use crate::job::Job;
use crate::links::HardLinks;
use crate::meta::stat_at;
use crate::place::Over;
use crate::plan::makes_dir;
use crate::report::EntryReport;
use crate::results::{EntryOutcome, EntryState};
use crate::sources::RootItem;
use crate::worker::Worker;

/// Reports what would become of each entry.
pub(crate) fn run(job: &Job<'_>) {
    let mut worker = Worker::new(job);
    let mut target = Vec::new();
    let links = HardLinks::find(job);
    for item in job.plan.tree.items() {
        if job.is_over() {
            return;
        }
        if job.is_manifest(item) {
            job.leave_manifest(item);
            continue;
        }
        job.plan.tree.write_target(item, &mut target);
        match one(&mut worker, item, &target, &links) {
            Ok(Some(over)) => job.would_be(item, &over),
            Ok(None) => {}
            Err(error) => worker.failed(item, &error),
        }
    }
}

impl Job<'_> {
    /// Reports what would become of an entry.
    pub(crate) fn would_be(&self, item: RootItem, over: &Over) {
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

/// Returns how an entry would be copied; `None` where it is settled otherwise.
fn one(
    worker: &mut Worker<'_>,
    item: RootItem,
    target: &[u8],
    links: &HardLinks,
) -> Result<Option<Over>, Error> {
    let job = worker.job;
    let place = match worker.place(item) {
        Ok(place) => place,
        // The directory would be made first.
        Err(error) if error.errno() == Some(Errno::NOENT.raw_os_error()) => {
            return Ok(Some(Over::Nothing));
        }
        Err(error) => return Err(error),
    };
    let kind = job.plan.tree.kind(item);
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
        return Ok(is_made.then_some(Over::Nothing));
    }
    let first = links.first_of(item);
    if let Some((first, state)) = first.map(|first| (first, job.outcomes.results.state(first)))
        && matches!(state, EntryState::Copied | EntryState::Before)
    {
        let found = match state {
            EntryState::Before => worker
                .place(first)
                .and_then(|origin| worker.there(&origin))?,
            // It would be another file.
            _ => None,
        };
        let id = found.map(|found| found.id);
        if let Some(decision) = worker.decide_link(place.clone(), first, id)? {
            return Ok(settled(job, decision));
        }
    }
    if kind != FileKind::File {
        return worker.try_special(item).map(|()| None);
    }
    let walked = job.plan.tree.stat(item);
    match walked {
        Some(walked) => Ok(settled(job, worker.decide(place, &walked)?)),
        None => Ok(Some(Over::Nothing)),
    }
}

fn settled(job: &Job<'_>, decision: Decision) -> Option<Over> {
    match decision {
        Decision::Copy(place) => Some(place.over),
        Decision::Settled(outcome) => {
            job.done(vec![outcome]);
            None
        }
    }
}
