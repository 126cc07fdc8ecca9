//! Threads that copy, and the descriptors that they begin with.

use std::os::fd::AsFd;

use bc_fs::mount::Shows;
use bc_pool::Tables;
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::job::Job;
use crate::options::Durability;
use crate::tree::SourceContent;

/// Descriptors of a run that are no worker's: journals, sources and destinations.
const OTHERS: u64 = 24;

/// Descriptors that a worker holds at least: directories at both ends, the steps to them, a file.
const EACH: u64 = 8;

/// Returns the limit on the process's descriptors, less those that the run itself needs; `u64::MAX`
/// if there is none.
pub(crate) fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile).current;
    limit.unwrap_or(u64::MAX).saturating_sub(OTHERS)
}

/// Runs `f` on workers, as far as there are descriptors for them, with the tables of descriptors
/// that the options choose: these contain the sources, the destinations and the journals, and files
/// that the workers open themselves. The observer, which may have others open, is not called by
/// them then.
pub(crate) fn run_workers<'j, 'o: 'j>(
    jobs: impl IntoIterator<Item = &'j Job<'o>>,
    workers: usize,
    f: impl Fn() + Sync,
) -> Result<(), Error> {
    let jobs: Vec<&Job<'_>> = jobs.into_iter().collect();
    let mut tables = Tables::SHARED;
    let mut named = Vec::new();
    for job in &jobs {
        // Descriptors that are synced in the end are kept open for all by the worker that came
        // there first.
        if job.plan.options.durability != Durability::None || reports_at_close(job) {
            tables = Tables::SHARED;
            break;
        }
        tables = job.plan.options.tables;
        named.push(job.plan.top.fd.as_fd());
        named.extend(job.means.log.descriptor());
        for root in &job.plan.tree.roots {
            match &*root.content {
                SourceContent::Listing(listing) => named.extend(listing.descriptors()),
                SourceContent::Alone(dir, _) => named.push(dir.as_fd()),
                SourceContent::Nothing => {}
            }
        }
    }
    let workers = workers.min(usize::try_from(descriptors() / EACH).unwrap_or(usize::MAX));
    let run = || bc_pool::run_growing_in(tables, &named, workers, workers, |_, _| f());
    match jobs.first() {
        // One relay serves all of them.
        Some(job) if tables != Tables::SHARED => job.means.relay.apart(run)?,
        _ => run()?,
    };
    Ok(())
}

/// True if the destination's file system may report at a close that something could not be stored.
/// It reports so once, to the first close: a thread that begins with a table of its own closes
/// descriptors that it has no use for, perhaps of a stage of the thread that started it, whose own
/// close then reports nothing.
fn reports_at_close(job: &Job<'_>) -> bool {
    job.site.top_traits.shows != Shows::Own
}
