//! The second read, of files that are equal so far: small ones whole, large
//! ones in rounds of growing length, so that files that part early are not
//! read to their end.

use std::sync::{Mutex, PoisonError};

use bc_digest::Hasher;
use bc_pool::WorkerPanic;
use bc_read::{Consumer, Feed, Opened, Plan, Want};
use bc_walk::{EntryId, Error, ErrorKind};

use super::candidates::{Index, meta};
use super::pass::{Key, Pass};

/// Larger files are read in rounds.
const LARGE: u64 = 1 << 20;

/// Where the rounds end; the last one at the end of the file.
const ENDS: [u64; 3] = [1 << 20, 16 << 20, 256 << 20];

/// Reads what is equal so far and was not read whole.
pub(super) fn read(pass: &mut Pass<'_>) -> Result<(), WorkerPanic> {
    let open = |pass: &Pass<'_>| -> Vec<Vec<Index>> {
        pass.equal()
            .into_iter()
            .filter(|set| matches!(pass.keys[set[0]], Key::Ends(_)))
            .collect()
    };
    let (large, small): (Vec<_>, Vec<_>) = open(pass)
        .into_iter()
        .partition(|set| pass.size(set[0]) > LARGE);
    let planned = small.iter().chain(&large).map(|set| set.len() as u64).sum();
    pass.progress
        .planned
        .fetch_add(planned, std::sync::atomic::Ordering::Relaxed);
    pass.read(small.into_iter().flatten().collect(), LARGE)?;
    rounds(pass, large)
}

/// A large file between rounds.
struct Part {
    index: Index,
    state: Mutex<Hasher>,
}

fn rounds(pass: &mut Pass<'_>, sets: Vec<Vec<Index>>) -> Result<(), WorkerPanic> {
    let mut sets: Vec<Vec<Part>> = sets
        .into_iter()
        .map(|set| {
            let part = |index| Part {
                index,
                state: Mutex::new(Hasher::new(pass.options.algorithm)),
            };
            set.into_iter().map(part).collect()
        })
        .collect();
    // Until its last round a file is equal to nothing.
    for part in sets.iter().flatten() {
        pass.keys[part.index] = Key::None;
    }
    let mut from = 0;
    for to in ENDS.into_iter().chain([u64::MAX]) {
        if sets.is_empty() || pass.cancel.is_cancelled() {
            break;
        }
        let failed = round(pass, &sets, from, to)?;
        let mut next = Vec::new();
        for set in sets {
            let size = pass.size(set[0].index);
            let mut read: Vec<(Vec<u8>, Part)> = set
                .into_iter()
                .filter(|part| !failed.contains(&part.index))
                .map(|part| {
                    let digest = lock(&part.state).finalize();
                    if size <= to {
                        pass.learn(part.index, digest);
                    }
                    (digest.as_bytes().to_vec(), part)
                })
                .collect();
            if size > to {
                read.sort_by(|a, b| a.0.cmp(&b.0));
                next.extend(split(read));
            }
        }
        sets = next;
        from = to;
    }
    Ok(())
}

/// Sets of two or more parts whose digests so far are equal.
fn split(read: Vec<(Vec<u8>, Part)>) -> Vec<Vec<Part>> {
    let mut sets: Vec<(Vec<u8>, Vec<Part>)> = Vec::new();
    for (digest, part) in read {
        match sets.last_mut() {
            Some((last, set)) if *last == digest => set.push(part),
            _ => sets.push((digest, vec![part])),
        }
    }
    sets.into_iter()
        .map(|(_, set)| set)
        .filter(|set| set.len() > 1)
        .collect()
}

fn lock(state: &Mutex<Hasher>) -> std::sync::MutexGuard<'_, Hasher> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Feeds bytes `from..to` of every file to its hasher; gives back those that failed.
fn round(
    pass: &mut Pass<'_>,
    sets: &[Vec<Part>],
    from: u64,
    to: u64,
) -> Result<Vec<Index>, WorkerPanic> {
    let parts: Vec<&Part> = sets.iter().flatten().collect();
    // Members of one set side by side: the workers get through a set together.
    let order: Vec<EntryId> = parts
        .iter()
        .map(|part| pass.candidates.entry(part.index))
        .collect();
    let by_index: std::collections::HashMap<Index, &Part> =
        parts.iter().map(|part| (part.index, *part)).collect();
    let workers = pass.options.workers.clamp(1, order.len());
    let plan = Plan::new(order, workers);
    let shared = &*pass;
    let done = bc_pool::run(workers, |_| {
        let mut ranges = Ranges {
            pass: shared,
            parts: &by_index,
            from,
            to,
            slots: Vec::new(),
            errors: Vec::new(),
            done: Vec::new(),
        };
        let stats = bc_read::pump(
            shared.listing,
            &plan,
            &shared.options.read,
            shared.cancel,
            &mut ranges,
        );
        (ranges.errors, ranges.done, stats)
    })?;
    let mut missing: std::collections::HashSet<Index> = by_index.keys().copied().collect();
    drop(by_index);
    for (errors, done, stats) in done {
        pass.count(stats);
        for (index, blocks) in done {
            missing.remove(&index);
            pass.blocks[index] = blocks;
        }
        for (index, error) in errors {
            pass.fail(index, error);
        }
    }
    // Failed, or not reached before a cancellation.
    Ok(missing.into_iter().collect())
}

/// One worker's consumer of a round.
struct Ranges<'p, 'a> {
    pass: &'p Pass<'a>,
    parts: &'p std::collections::HashMap<Index, &'p Part>,
    from: u64,
    to: u64,
    slots: Vec<Option<Index>>,
    errors: Vec<(Index, Error)>,
    done: Vec<(Index, u64)>,
}

impl Consumer for Ranges<'_, '_> {
    fn width(&self) -> usize {
        1
    }

    fn reserve(&mut self, slots: usize) {
        self.slots.resize(slots, None);
    }

    fn want(&mut self, _entry: EntryId) -> Want {
        Want::Range {
            offset: self.from,
            len: self.to - self.from,
        }
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        self.slots[slot] = Some(self.pass.index(opened.entry));
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        for feed in feeds {
            if let Some(part) = self.slots[feed.slot].and_then(|index| self.parts.get(&index)) {
                lock(&part.state).update(feed.data);
                let bytes = &self.pass.progress.bytes;
                bytes.fetch_add(feed.data.len() as u64, std::sync::atomic::Ordering::Relaxed);
            }
            consumed.push(feed.slot);
        }
    }

    fn finish(&mut self, _slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        let index = self.pass.index(entry);
        match result {
            Ok(opened) if opened.stat.stamp == meta(self.pass.listing, entry).stamp => {
                self.done.push((index, opened.stat.blocks));
            }
            Ok(_) => {
                let path = self.pass.listing.path(entry);
                self.errors
                    .push((index, Error::of_kind(path, "read", ErrorKind::Changed)));
            }
            Err(error) => self.errors.push((index, error)),
        }
        self.pass
            .progress
            .files
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}
