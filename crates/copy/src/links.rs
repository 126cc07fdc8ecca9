//! Files with several names among what is copied: the first is copied, the others become names of
//! its copy.

use std::collections::HashMap;

use bc_walk::{FileKind, Identity};

use crate::job::Job;
use crate::results::{Outcome, Proof, State};
use crate::single::medium;
use crate::small::{SMALL, small};
use crate::tree::Item;
use crate::worker::{BATCH, USUAL, Worker};

/// The names.
#[derive(Default)]
pub(crate) struct Links {
    /// Where a copy of each file is, as far as there is one.
    firsts: HashMap<Identity, Item>,
    /// Further names, in order.
    further: Vec<(Item, Identity)>,
}

impl Links {
    /// Finds them, unless they are not wanted.
    pub(crate) fn find(job: &Job<'_>) -> Links {
        let mut links = Links::default();
        if !job.options.preserve.links {
            return links;
        }
        for item in (0..job.tree.len()).map(Item) {
            let stat = match job.tree.entry(item) {
                Some((listing, id)) => listing.meta(id),
                None => Some(job.tree.root(item).1.source.stat.meta()),
            };
            let several = stat.filter(|stat| stat.nlink > 1);
            let Some(stat) = several.filter(|_| job.tree.kind(item) != FileKind::Dir) else {
                continue;
            };
            match links.firsts.get(&stat.id) {
                None => drop(links.firsts.insert(stat.id, item)),
                Some(_) => links.further.push((item, stat.id)),
            }
        }
        links
    }

    /// Whether an entry is another name of one that comes before it.
    pub(crate) fn is_further(&self, item: Item) -> bool {
        let found = self.further.binary_search_by_key(&item, |(item, _)| *item);
        found.is_ok()
    }

    /// Makes the further names, once the first ones are there.
    pub(crate) fn make(&self, worker: &mut Worker<'_>) {
        worker.commit();
        let job = worker.job;
        let mut firsts = self.firsts.clone();
        let mut linked_items = Vec::new();
        let mut origins = HashMap::new();
        for (nth, (item, id)) in self.further.iter().copied().enumerate() {
            if job.is_over() {
                break;
            }
            if nth % BATCH == 0 {
                let end = self.further.len().min(nth + BATCH);
                record(worker, &self.further[nth..end]);
            }
            if job.results.state(item) != State::Left {
                continue;
            }
            let first = firsts.get(&id).copied().unwrap_or(item);
            let is_there = matches!(job.results.state(first), State::Copied | State::Before);
            let linked = match is_there && first != item {
                true => worker.link(item, first),
                false => Ok(false),
            };
            match linked {
                Ok(true) => {
                    linked_items.extend([first, item]);
                    origins.insert(item, first);
                }
                // This one is copied, and is what the next ones are linked to.
                Ok(false) => {
                    alone(worker, item);
                    worker.commit();
                    firsts.insert(id, item);
                }
                Err(error) => worker.failed(item, &error),
            }
        }
        look_again(worker, linked_items, &origins);
    }
}

/// Records names before they are given.
fn record(worker: &Worker<'_>, names: &[(Item, Identity)]) {
    let target = |(item, _): &(Item, Identity)| {
        let mut target = Vec::with_capacity(USUAL);
        worker.job.tree.write_target(*item, &mut target);
        target
    };
    if worker.job.log.is_kept() {
        let targets: Vec<Vec<u8>> = names.iter().map(target).collect();
        worker.record_begun(targets.iter().map(Vec::as_slice));
    }
}

/// Each further name has changed what is to be said of the others: how many there are. What is proven
/// of the first is of the others that were its names when they were walked.
fn look_again(worker: &mut Worker<'_>, mut items: Vec<Item>, origins: &HashMap<Item, Item>) {
    let job = worker.job;
    if !job.has_manifest() {
        return;
    }
    items.sort_unstable();
    items.dedup();
    for item in items {
        let (state, digest) = (job.results.state(item), job.results.digest(item));
        let mut proof = job.results.proof(item);
        let is_there = matches!(state, State::Copied | State::Before);
        if let (Proof::None, true, Some(first)) = (proof, is_there, origins.get(&item))
            && let Some((listing, id)) = job.tree.entry(*first)
            && let Some(walked) = listing.stat(id)
            && job.is_as_walked(item, &walked)
        {
            proof = job.results.proof(*first);
        }
        let Ok(place) = worker.place(item) else {
            continue;
        };
        job.ask_anew(&place.dir, place.name());
        let found = job.outcome(item, state, &place.dir, place.name(), digest);
        job.results
            .put(found.map(|found| Outcome { proof, ..found }));
    }
}

fn alone(worker: &mut Worker<'_>, item: Item) {
    let tree = &worker.job.tree;
    let (kind, size) = (tree.kind(item), tree.size(item));
    let alone = std::slice::from_mut(worker);
    match kind {
        FileKind::File if size <= SMALL => small(alone, &[item]),
        FileKind::File => medium(alone, item),
        _ => alone[0].special(&[item]),
    }
}
