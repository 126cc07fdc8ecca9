//! The shared list of entries to read, handed out in shrinking batches, and how
//! many long ones each worker may have in hand.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bc_pool::Cursor;
use bc_walk::{EntryId, Listing};

use crate::open::DeviceWaits;

/// Bytes begun of a batch after which it is cut again, as there is more in it than in others: a
/// source tree's 256 files have 4 MiB.
const HEAVY: u64 = 8 << 20;

/// Pieces per worker that given back entries are cut into.
const PIECES: usize = 4;

/// Entries to read and their order, shared by all workers of a run.
///
/// Batches shrink towards the end, so that no worker is left with a long tail
/// while the others have nothing to do. A worker whose batch turns out to hold
/// long files gives back the rest of it.
#[derive(Debug)]
pub struct Plan {
    order: Vec<EntryId>,
    cursor: Cursor,
    /// Number of workers that the cursor's batches are made for, and the number that there are.
    planned: usize,
    workers: AtomicUsize,
    /// Number of workers above which others have joined because these wait.
    usual: AtomicUsize,
    /// Sum of the numbers of long files that workers have [shown](Hand::show) to be reading.
    long: AtomicUsize,
    /// Long files being read that may be worth several threads.
    huge: AtomicUsize,
    /// Entries in `returned`: looked at with each batch, written when any are given back.
    returned_len: AtomicUsize,
    returned: Mutex<Vec<Range<usize>>>,
    /// Devices of the entries that wait for something else than a disk.
    device_waits: DeviceWaits,
}

impl Plan {
    /// Makes a plan for these entries in this order. Each entry should occur once. Path order
    /// (ascending ids) lets consecutive entries share directory descriptors; very large files are
    /// best put first.
    pub fn new(order: Vec<EntryId>, workers: usize) -> Plan {
        let cursor = Cursor::new(order.len(), workers);
        Plan {
            order,
            cursor,
            planned: workers.max(1),
            workers: AtomicUsize::new(workers.max(1)),
            usual: AtomicUsize::new(usize::MAX),
            long: AtomicUsize::new(0),
            huge: AtomicUsize::new(0),
            returned_len: AtomicUsize::new(0),
            returned: Mutex::default(),
            device_waits: DeviceWaits::default(),
        }
    }

    /// Makes a plan whose entries are handed out one by one, as neighbours on a disk that has to seek:
    /// batches would have its arm go from one worker's part to that of another, and back.
    pub fn in_turn(order: Vec<EntryId>, workers: usize) -> Plan {
        let cursor = Cursor::with_batch(order.len(), workers, 1, 1);
        Plan {
            cursor,
            ..Plan::new(order, workers)
        }
    }

    /// Returns all entries of a listing in path order.
    pub fn all(listing: &Listing, workers: usize) -> Plan {
        Plan::new(listing.ids().collect(), workers)
    }

    /// Returns the number of entries in the plan, handed out or not.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if the plan contains no entries.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns all entries of the plan in its order, handed out or not.
    pub fn entries(&self) -> &[EntryId] {
        &self.order
    }

    /// Sets the number of workers that share the rest.
    pub(crate) fn set_workers(&self, workers: usize) {
        self.workers.store(workers.max(1), Ordering::Relaxed);
    }

    /// Sets the number of workers of a run that does not wait.
    pub(crate) fn set_usual(&self, usual: usize) {
        self.usual.store(usual, Ordering::Relaxed);
    }

    /// True if more workers than usual share the rest, because they wait.
    fn has_more_than_usual(&self) -> bool {
        self.workers.load(Ordering::Relaxed) > self.usual.load(Ordering::Relaxed)
    }

    /// Returns the number of entries that no worker has taken.
    pub fn left(&self) -> usize {
        self.cursor.remaining() + self.returned_len.load(Ordering::Relaxed)
    }

    /// Returns the entries that no worker has taken at this moment.
    pub fn left_entries(&self) -> Vec<EntryId> {
        let returned = self.returned();
        let next = self.order.len() - self.cursor.remaining();
        let ranges = returned
            .iter()
            .cloned()
            .chain(std::iter::once(next..self.order.len()));
        ranges
            .flat_map(|range| &self.order[range])
            .copied()
            .collect()
    }

    /// Returns the devices that wait for something else than a disk, as far as a worker has found them.
    pub(crate) fn device_waits(&self) -> &DeviceWaits {
        &self.device_waits
    }

    /// Returns the number of long files that are being read; somewhat more while many are left.
    pub(crate) fn long(&self) -> usize {
        self.long.load(Ordering::Relaxed)
    }

    /// Returns the number of files of [`HUGE`] bytes and more that are being read.
    pub fn huge(&self) -> usize {
        self.huge.load(Ordering::Relaxed)
    }

    /// Returns the next batch, or `None` when everything has been handed out.
    pub(crate) fn next(&self) -> Option<&[EntryId]> {
        if self.returned_len.load(Ordering::Relaxed) > 0
            && let Some(piece) = self.piece()
        {
            return Some(&self.order[piece]);
        }
        if let Some(range) = self.cursor.next() {
            return Some(&self.order[range]);
        }
        // Pairs with the fence in `may_leave`: either the one that leaves has seen that nothing else is
        // left, and stays, or what it gave back is seen here.
        fence(Ordering::SeqCst);
        match self.returned_len.load(Ordering::Relaxed) {
            0 => None,
            _ => self.piece().map(|piece| &self.order[piece]),
        }
    }

    /// True if a worker with nothing in hand may end before the plan does: others come back for all
    /// that it has given back, as there are batches that they have to ask for.
    fn may_leave(&self) -> bool {
        fence(Ordering::SeqCst);
        self.cursor.remaining() > 0
    }

    /// Takes a part of the entries that were given back.
    fn piece(&self) -> Option<Range<usize>> {
        let mut returned = self.returned();
        let mut last = returned.pop()?;
        let all = self.returned_len.load(Ordering::Relaxed);
        let workers = self.workers.load(Ordering::Relaxed);
        // Where workers have joined, nearly all comes this way.
        let of = if workers > self.planned {
            self.left()
        } else {
            all
        };
        let len = (of / (PIECES * workers)).clamp(1, last.len());
        let piece = last.start..last.start + len;
        last.start = piece.end;
        if !last.is_empty() {
            returned.push(last);
        }
        self.returned_len.store(all - len, Ordering::Relaxed);
        Some(piece)
    }

    /// Takes the rest of a batch back, for the next worker that asks.
    ///
    /// # Panics
    /// If it is not a part of a batch that [`next`](Plan::next) returned.
    pub(crate) fn give_back(&self, rest: &[EntryId]) {
        if rest.is_empty() {
            return;
        }
        let bytes = rest.as_ptr().addr() - self.order.as_ptr().addr();
        let start = bytes / size_of::<EntryId>();
        let range = start..start + rest.len();
        assert!(range.end <= self.order.len(), "entries of another plan");
        let mut returned = self.returned();
        returned.push(range);
        // Under the lock, as all its writers are.
        let all = self.returned_len.load(Ordering::Relaxed) + rest.len();
        self.returned_len.store(all, Ordering::Relaxed);
    }

    fn returned(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Entries of a plan that one worker has in hand.
#[derive(Debug)]
pub(crate) struct Hand<'a> {
    plan: &'a Plan,
    batch: &'a [EntryId],
    /// Bytes of the batch in files that were begun.
    begun: u64,
    /// Files that are being opened, which may turn out long.
    opening: usize,
    /// Long files that were begun and are not done.
    long: usize,
    /// Number of these that the plan counts.
    shown: usize,
    huge: usize,
    /// Greatest number of files in hand, when the last was begun.
    room: usize,
    /// Number of long files to have in hand at once, and the number of workers and the room for
    /// which that was computed when the first was met.
    at_once: Option<(usize, [usize; 2])>,
}

impl<'a> Hand<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Hand<'a> {
        Hand {
            plan,
            batch: &[],
            begun: 0,
            opening: 0,
            long: 0,
            shown: 0,
            huge: 0,
            room: 0,
            at_once: None,
        }
    }

    /// True if others have joined the workers because these wait: the calls of one wait beside
    /// those of the others then, not beside its own.
    pub(crate) fn is_joined(&self) -> bool {
        self.plan.has_more_than_usual()
    }

    /// Returns the number of workers that share the plan by now.
    pub(crate) fn workers(&self) -> usize {
        self.plan.workers.load(Ordering::Relaxed)
    }

    /// Gives the batch back; true if the worker may end before the plan does: see
    /// [`Plan::may_leave`].
    pub(crate) fn may_leave(&mut self) -> bool {
        self.give_back();
        let may_leave = self.plan.may_leave();
        if may_leave && self.shown > self.long {
            self.plan
                .long
                .fetch_sub(self.shown - self.long, Ordering::Relaxed);
            self.shown = self.long;
        }
        may_leave
    }

    /// True if the next entry begins a new batch.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns the next entry, out of the batch or of a new one.
    pub(crate) fn next(&mut self) -> Option<EntryId> {
        if self.batch.is_empty() {
            self.batch = self.plan.next()?;
            self.begun = 0;
            self.share_with_joined();
        }
        let (first, rest) = self.batch.split_first()?;
        self.batch = rest;
        Some(*first)
    }

    /// Gives back what is more than the worker's share of a batch that was made for fewer workers than
    /// there are by now. Asked with each batch, and where it waits.
    pub(crate) fn share_with_joined(&mut self) {
        let workers = self.plan.workers.load(Ordering::Relaxed);
        if workers <= self.plan.planned {
            return;
        }
        let all = self.plan.left() + self.batch.len();
        let kept = (all / (PIECES * workers)).max(1);
        if self.batch.len() > 2 * kept {
            let (kept, rest) = self.batch.split_at(kept);
            self.plan.give_back(rest);
            self.batch = kept;
        }
    }

    /// True if the worker may begin one more file, where it has room for `room`: not if it has its
    /// share of long ones, for the file that it takes then may be long too and another worker's
    /// share.
    pub(crate) fn may_begin(&mut self, room: usize) -> bool {
        self.room = room;
        let held = self.long + self.opening;
        if held + self.shown > 0 {
            self.show();
        }
        if held == 0 {
            return true;
        }
        let workers = self.plan.workers.load(Ordering::Relaxed);
        let all = self.plan.left() + self.batch.len() + self.plan.long() + self.opening;
        let case = [workers, room];
        let planned = match self.at_once {
            Some((planned, before)) if before == case => planned,
            _ => {
                let planned = at_once(all, workers, room);
                self.at_once = Some((planned, case));
                planned
            }
        };
        if held < planned.min(share(all, workers)) {
            return true;
        }
        self.give_back();
        false
    }

    /// Shows the plan how many long files are in hand: exactly once few entries are left, and before
    /// that only what is more than ever. As long as there are twice as many for each worker as it has
    /// room for, its share is larger than what it takes, whatever the others have; and a count that
    /// all of them write for each file would be all that sixty-four workers wait for.
    fn show(&mut self) {
        let workers = self.plan.workers.load(Ordering::Relaxed);
        let shown = match self.plan.left() < 2 * workers * self.room.max(1) {
            true => self.long,
            false => self.long.max(self.shown),
        };
        if shown > self.shown {
            self.plan
                .long
                .fetch_add(shown - self.shown, Ordering::Relaxed);
        } else if shown < self.shown {
            self.plan
                .long
                .fetch_sub(self.shown - shown, Ordering::Relaxed);
        }
        self.shown = shown;
    }

    /// Notes that a file is being opened, by the ring.
    pub(crate) fn opening(&mut self) {
        self.opening += 1;
    }

    /// Notes that a file is open, or cannot be opened.
    pub(crate) fn opened(&mut self) {
        self.opening -= 1;
    }

    /// Counts a file that is begun, of which so many bytes are to be read.
    pub(crate) fn begin(&mut self, bytes: u64, length: Length) {
        if length != Length::Short {
            self.long += 1;
            self.show();
        }
        if length == Length::Huge {
            self.huge += 1;
            self.plan.huge.fetch_add(1, Ordering::Relaxed);
        }
        self.begun = self.begun.saturating_add(bytes);
        if self.begun >= HEAVY {
            self.give_back();
        }
    }

    /// Notes that a file is done.
    pub(crate) fn end(&mut self, length: Length) {
        if length != Length::Short {
            self.long -= 1;
            self.show();
        }
        if length == Length::Huge {
            self.huge -= 1;
            self.plan.huge.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of long files in hand.
    pub(crate) fn long(&self) -> usize {
        self.long
    }

    /// Returns the number of huge files in hand.
    pub(crate) fn huge(&self) -> usize {
        self.huge
    }

    fn give_back(&mut self) {
        self.plan.give_back(std::mem::take(&mut self.batch));
    }
}

/// Size from which on files are counted between workers, while few are left. That is a shared write
/// for each, which the many small ones must not pay: 92 % of a source tree's.
const LONG: u64 = 32 << 10;

/// Size from which on a file may be worth several threads: below, starting them takes as long as
/// reading it (2 MiB are some 200 µs).
pub const HUGE: u64 = 2 << 20;

/// Class of a file's length, by which files are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Length {
    Short,
    Long,
    /// Long, and more than that.
    Huge,
}

impl Length {
    pub(crate) fn of(bytes: u64) -> Length {
        match bytes {
            HUGE.. => Length::Huge,
            LONG.. => Length::Long,
            _ => Length::Short,
        }
    }
}

/// Returns how many of `all` long files, begun or not, one of `workers` may have in hand: never
/// more than its share, or others would have nothing to do.
fn share(all: usize, workers: usize) -> usize {
    all.div_ceil(workers.max(1)).max(1)
}

/// Number of rounds from which on an idle part of the last one does not matter.
const MANY: usize = 64;

/// Returns how many files of its share a worker is to have in hand together that hashes `width`
/// together: all, and if that is twice the width or more, a part of them, so that the last round is
/// as full as the others.
///
/// So it is up to twice the width less one, which take turns. With 25 files for 16 lanes and four
/// that wait, 20 and then 5 take 2.25 times as long as 16 do, 13 and 12 take twice as long, and 25
/// in turns 1.56 times.
fn at_once(all: usize, workers: usize, width: usize) -> usize {
    let (mine, width) = (share(all, workers), width.max(1));
    if mine < 2 * width {
        return if width == 1 { 1 } else { mine };
    }
    let most = mine / width;
    if most > MANY {
        return mine.div_ceil(most);
    }
    let least = mine.div_ceil(2 * width - 1).min(most);
    let places = |rounds: usize| rounds * share(all, workers * rounds) * workers;
    let rounds = (least..=most).rev().min_by_key(|&rounds| places(rounds));
    rounds.map_or(width, |rounds| mine.div_ceil(rounds))
}

#[cfg(test)]
mod tests;
