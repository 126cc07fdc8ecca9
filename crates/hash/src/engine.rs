//! Workers that pump files through a batch of hashers into sinks.

use bc_pool::{Cancel, Effort};
use bc_read::{Plan, run_readers};
use bc_walk::job::Error;
use bc_walk::{EntryId, Listing};

use crate::lanes::Lanes;
use crate::large::Alone;
use crate::links::Links;
use crate::options::{DigestSink, HashOptions, HashProgress, Totals};
use crate::results::{Collector, Hashes, Results};

/// Hashes the entries of `plan`; `sink(worker)` makes each worker's sink.
/// Gives the sinks back. After a cancellation the entries not
/// yet finished are missing from all sinks.
///
/// # Errors
/// No algorithm, an entry that is not of this listing, or a worker that panicked.
pub fn hash_with<S: DigestSink>(
    listing: &Listing,
    plan: &Plan,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
    sink: impl Fn(usize) -> S + Sync,
) -> Result<(Vec<S>, Totals), Error> {
    if plan.is_empty() {
        return Ok((Vec::new(), Totals::default()));
    }
    options.check()?;
    if let Some(entry) = plan.entries().iter().find(|e| !listing.contains(**e)) {
        let text = format!(
            "entry {} is not of this listing, which has {}",
            entry.0,
            listing.len()
        );
        return Err(Error::usage(text));
    }
    let most = options.workers.clamp(1, plan.len());
    let workers = options.start.workers(most, effort(listing, plan));
    let links = Links::new(listing);
    // The journal is opened by whichever worker begins it, and is all workers' from then on.
    #[cfg_attr(
        not(feature = "resume"),
        expect(unused_mut, reason = "nothing is recorded")
    )]
    let mut read = options.read.clone();
    #[cfg(feature = "resume")]
    if options.resume.is_some() {
        read.tables = bc_pool::Tables::SHARED;
    }
    let named: Vec<_> = listing.descriptors().collect();
    let done = run_readers(listing, plan, &read, &named, workers, most, |handle| {
        let alone = Alone::new(listing, options, cancel);
        let number = handle.number();
        let sink = sink(number);
        let mut consumer = Lanes::new(alone, plan, handle, &links, progress, sink);
        let mut stats = bc_read::pump(listing, plan, &options.read, cancel, &mut consumer);
        consumer.counter.publish();
        consumer.hand_over();
        stats.merge(consumer.alone.done);
        let (threads, taken) = (consumer.alone.threads, consumer.records.taken);
        let workers = threads.max(number + 1);
        (consumer.sink, stats, workers, taken)
    })?;
    let mut totals = Totals::default();
    let mut sinks = Vec::with_capacity(done.len());
    for (sink, stats, workers, taken) in done {
        totals.read.merge(stats);
        totals.taken.merge(taken);
        totals.workers = totals.workers.max(workers);
        sinks.push(sink);
    }
    Ok((sinks, totals))
}

/// Returns the effort known before the work begins: all of it if the listing has sizes, else none.
fn effort(listing: &Listing, plan: &Plan) -> Effort {
    let mut bytes = 0_u64;
    for entry in plan.entries() {
        match listing.size(*entry) {
            Some(size) => bytes = bytes.saturating_add(size),
            None => return Effort::default(),
        }
    }
    Effort::of(plan.len() as u64, bytes)
}

/// Hashes every file of `listing`.
///
/// # Errors
/// No algorithm, or a worker that panicked.
pub fn hash_listing(
    listing: &Listing,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Hashes, Error> {
    hash_entries(listing, listing.ids().collect(), options, cancel, progress)
}

/// Hashes these entries of `listing`, which are files; the others have no result.
///
/// # Errors
/// As [`hash_listing`].
pub fn hash_entries(
    listing: &Listing,
    entries: Vec<EntryId>,
    options: &HashOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Hashes, Error> {
    options.check()?;
    let plan = bc_read::order::plan(listing, entries, options.workers, cancel);
    let results = Results::new(listing.len(), &options.algorithms);
    let collector = |_| Collector::new(&results);
    let (collected, totals) = hash_with(listing, &plan, options, cancel, progress, collector)?;
    let errors: Vec<_> = collected
        .into_iter()
        .flat_map(Collector::into_errors)
        .collect();
    Ok(Hashes::new(results, errors, totals))
}
