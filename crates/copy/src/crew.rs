//! Threads that copy, and the descriptors that they begin with.

use std::os::fd::AsFd;

use bc_pool::Tables;

use crate::error::Error;
use crate::job::Job;
use crate::options::Durability;
use crate::tree::Content;

/// Runs `f` on workers with the tables of descriptors that the options choose: they have those of
/// the sources, the destinations and the journals, and what they open themselves.
pub(crate) fn run_workers<'j, 'o: 'j>(
    jobs: impl IntoIterator<Item = &'j Job<'o>>,
    workers: usize,
    f: impl Fn() + Sync,
) -> Result<(), Error> {
    let jobs: Vec<&Job<'_>> = jobs.into_iter().collect();
    let mut tables = Tables::SHARED;
    let mut named = Vec::new();
    for job in &jobs {
        // What is synced in the end is kept open for all by the worker that came there first.
        if job.options.durability != Durability::None {
            break;
        }
        tables = job.options.tables;
        named.push(job.top.fd.as_fd());
        named.extend(job.log.descriptor());
        for root in &job.tree.roots {
            match &*root.content {
                Content::Listing(listing) => named.extend(listing.descriptors()),
                Content::Alone(dir, _) => named.push(dir.as_fd()),
                Content::Nothing => {}
            }
        }
    }
    bc_pool::run_growing_in(tables, &named, workers, workers, |_, _| f())?;
    Ok(())
}
