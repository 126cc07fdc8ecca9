//! The shared list of entries to read, handed out in shrinking batches.

use bc_pool::Cursor;
use bc_walk::{EntryId, Listing};

/// Which entries to read, in which order, shared by all workers of a run.
///
/// Batches shrink towards the end, so that no worker is left with a long tail
/// while the others have nothing to do.
#[derive(Debug)]
pub struct Plan {
    order: Vec<EntryId>,
    cursor: Cursor,
}

impl Plan {
    /// A plan for these entries in this order. Each entry should occur once.
    /// Path order (ascending ids) lets consecutive entries share directory
    /// descriptors; very large files are best put first.
    pub fn new(order: Vec<EntryId>, workers: usize) -> Plan {
        let cursor = Cursor::new(order.len(), workers);
        Plan { order, cursor }
    }

    /// All entries of a listing in path order.
    pub fn all(listing: &Listing, workers: usize) -> Plan {
        Plan::new(listing.ids().collect(), workers)
    }

    /// Entries in the plan, handed out or not.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the plan holds no entries.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// All entries of the plan in its order, handed out or not.
    pub fn entries(&self) -> &[EntryId] {
        &self.order
    }

    /// The next batch, or `None` when everything has been handed out.
    pub fn next(&self) -> Option<&[EntryId]> {
        self.cursor.next().map(|range| &self.order[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_handed_out_once() {
        let plan = Plan::new((0..10_007).map(EntryId).collect(), 3);
        let mut seen: Vec<u32> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = Vec::new();
                        while let Some(batch) = plan.next() {
                            assert!(!batch.is_empty());
                            mine.extend(batch.iter().map(|id| id.0));
                        }
                        mine
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        seen.sort_unstable();
        assert_eq!(seen, (0..10_007).collect::<Vec<_>>());
    }

    #[test]
    fn batches_shrink_to_single_entries() {
        let plan = Plan::new((0..1000).map(EntryId).collect(), 2);
        let sizes: Vec<usize> = std::iter::from_fn(|| plan.next().map(<[_]>::len)).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]));
        assert_eq!(sizes.last(), Some(&1));
        assert!(Plan::new(Vec::new(), 2).next().is_none());
    }
}
