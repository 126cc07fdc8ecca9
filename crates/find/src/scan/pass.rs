//! One pass over some candidates: every worker pumps files through two
//! batches of hashers, one for digests of whole files, one for fast hashes.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Batch, Digest};
use bc_pool::{Waiting, WorkerHandle, WorkerPanic};
use bc_read::{Consumer, Feed, Opened, ReadStats, VerifyWhen, Want};
use bc_walk::{EntryId, Error};

use super::Context;
use super::space::{self, Asker, Follow, Follower};
use super::table::{EntrySet, word};

/// Bytes of the start that the fast hash covers, in files up to [`MIDDLE`]. Of the files that share
/// their size with others, 10 of 71,972 in a source tree (linux 6.12) and 116 of 43,046 in a
/// `/usr/share` start like another for 2 KiB and continue differently; for 4 KiB, 1 and 73; for 1
/// KiB, 193 and 157. To read small files whole instead, up to 8 KiB, cost 3 % more CPU time in the
/// first; it made no difference in trees where 7 %, 13 % and 34 % of the files had an equal.
pub(crate) const START: u32 = 2048;

/// Size up to which the fast hash covers the start alone: reading whole the few files that it
/// cannot distinguish costs less than reading the ends of all.
pub(crate) const MIDDLE: u64 = 128 << 10;

/// Bytes of each end that the fast hash of a larger file is of. Large files of one size often begin
/// alike: images of disks, raw photographs, databases.
const END: u32 = 4096;

/// Part of a candidate that is read, and the use of its digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// The start, both ends, or all of a small file, as a fast hash.
    Partial,
    /// Everything, as the digest of the report.
    Whole,
}

impl Part {
    /// Files of at most `limit` bytes whole, the ends of larger ones.
    pub(crate) fn up_to(limit: u64, size: u64) -> Part {
        if size <= limit {
            Part::Whole
        } else {
            Part::Partial
        }
    }
}

/// Amount that is read of candidates, and the checks of what was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Files of at most so many bytes are read whole, and verified at the end.
    pub(crate) limit: u64,
    /// Time of the check that the ends are those of the file that was listed.
    pub(crate) ends: VerifyWhen,
    /// True if the fast hash of files that are read whole is taken as well, where it covers their
    /// start alone.
    pub(crate) both: bool,
}

/// The fast hash of a file that is read whole.
#[derive(Clone, Copy, Debug)]
enum FileHead {
    /// It covers so many bytes, none of which are here yet.
    Of(usize),
    Known(u64),
    /// It is not wanted, or would cover more than the first piece.
    Unknown,
}

/// Result of a pass.
#[derive(Debug, Default)]
pub(crate) struct PassResult {
    pub(crate) read: ReadStats,
    pub(crate) failures: Vec<(EntryId, Error)>,
    /// Files of which the digest of the whole was taken.
    pub(crate) whole: u64,
    /// Files that were not read because others lie in the same place.
    followers: Vec<Follower>,
}

impl PassResult {
    pub(crate) fn merge(&mut self, other: PassResult) {
        self.read.merge(other.read);
        self.failures.extend(other.failures);
        self.whole += other.whole;
        self.followers.extend(other.followers);
    }
}

impl Context<'_> {
    /// Reads `candidates`, as much of each as `how` says. Of those that lie in one place on disk one
    /// is read whole.
    pub(crate) fn read(
        &self,
        candidates: impl Iterator<Item = u32>,
        how: How,
    ) -> Result<PassResult, WorkerPanic> {
        self.read_entries(self.set_of(candidates), how)
    }

    /// Reads the candidates that these entries open, as [`read`](Self::read) does.
    pub(crate) fn read_entries(
        &self,
        entries: EntrySet,
        how: How,
    ) -> Result<PassResult, WorkerPanic> {
        let mut done = self.read_some(entries, how, Follow::Yes)?;
        let followers = std::mem::take(&mut done.followers);
        let left = space::resolve(self, followers)?;
        done.merge(self.read_each(left.into_iter(), how.limit)?);
        Ok(done)
    }

    /// Reads `candidates` up to `limit` bytes whole, even those in one place on disk.
    pub(crate) fn read_each(
        &self,
        candidates: impl Iterator<Item = u32>,
        limit: u64,
    ) -> Result<PassResult, WorkerPanic> {
        let how = How {
            limit,
            ends: VerifyWhen::AtEnd,
            both: false,
        };
        self.read_some(self.set_of(candidates), how, Follow::No)
    }

    fn read_some(
        &self,
        entries: EntrySet,
        how: How,
        follow: Follow,
    ) -> Result<PassResult, WorkerPanic> {
        let plan = self.plan(entries);
        if plan.is_empty() {
            return Ok(PassResult::default());
        }
        let sizes = plan.entries().iter().map(|entry| self.listing.size(*entry));
        let bytes = sizes
            .map(|size| to_read(how.limit, size.unwrap_or(0)))
            .sum();
        self.progress.planned_bytes.fetch_add(bytes, Relaxed);
        let done = self.run(&plan, bytes, |handle| {
            let mut worker = PassWorker {
                context: self,
                handle,
                how,
                heads: Vec::new(),
                follow,
                asker: Asker::new(self),
                whole: Batch::new(&[self.options.algorithm], self.options.cpu),
                fast: Batch::new(&[Algorithm::Xxh3], self.options.cpu),
                slots: Vec::new(),
                done: PassResult::default(),
                files: 0,
                bytes: 0,
                ahead: Vec::new(),
            };
            let options = &self.options.read;
            let stats = bc_read::pump(self.listing, &plan, options, self.cancel, &mut worker);
            worker.done.read = stats;
            worker.publish();
            worker.done
        })?;
        Ok(done
            .into_iter()
            .fold(PassResult::default(), |mut all, one| {
                all.merge(one);
                all
            }))
    }
}

struct PassWorker<'a> {
    context: &'a Context<'a>,
    handle: WorkerHandle<'a>,
    how: How,
    follow: Follow,
    asker: Asker<'a>,
    whole: Batch,
    fast: Batch,
    /// Purpose that each slot's file is read for.
    slots: Vec<Part>,
    /// Heads of the files in the slots that are read whole, where both digests are wanted.
    heads: Vec<FileHead>,
    done: PassResult,
    /// Files and bytes that are not yet in the shared counters, which are updated rarely.
    files: u64,
    bytes: u64,
    /// Bytes of the file in each slot that are counted already.
    ahead: Vec<u64>,
}

/// Bytes of large files that are published together.
const PUBLISH_BYTES: u64 = 8 << 20;

impl PassWorker<'_> {
    /// Counts the pieces of unfinished files that were just used up, so that
    /// a display moves while one huge file is read.
    fn count_pieces(&mut self, feeds: &[Feed<'_>], consumed: &[usize]) {
        for feed in feeds
            .iter()
            .filter(|f| !f.end && consumed.contains(&f.slot))
        {
            self.ahead[feed.slot] += feed.data.len() as u64;
            self.bytes += feed.data.len() as u64;
        }
        if self.bytes >= PUBLISH_BYTES {
            self.publish();
        }
    }

    fn part(&self, entry: EntryId) -> Part {
        Part::up_to(
            self.how.limit,
            self.context.listing.size(entry).unwrap_or(0),
        )
    }

    fn batch(&mut self, part: Part) -> &mut Batch {
        match part {
            Part::Partial => &mut self.fast,
            Part::Whole => &mut self.whole,
        }
    }

    fn advance_lanes(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        // As many as there are lanes at most; feeds past them wait.
        const MOST: usize = 16;
        const NONE: bc_digest::Chunk<'static> = bc_digest::Chunk {
            message: 0,
            data: &[],
            end: false,
        };
        let mut mapped = [NONE; MOST];
        for part in [Part::Partial, Part::Whole] {
            let mut count = 0;
            let of_part = feeds.iter().filter(|feed| self.slots[feed.slot] == part);
            for (to, feed) in mapped.iter_mut().zip(of_part) {
                *to = message(feed);
                count += 1;
            }
            if count > 0 {
                self.batch(part).advance(&mapped[..count], consumed);
            }
        }
    }

    fn count_file(&mut self) {
        self.files += 1;
        if self.files == 64 {
            self.publish();
        }
    }

    /// Takes the fast hashes of files of which the first piece is here.
    fn see_heads(&mut self, feeds: &[Feed<'_>]) {
        for feed in feeds {
            let head = &mut self.heads[feed.slot];
            if let FileHead::Of(len) = *head {
                let hash = |start| word(bc_digest::hash(Algorithm::Xxh3, start).as_bytes());
                *head = feed
                    .data
                    .get(..len)
                    .map_or(FileHead::Unknown, |start| FileHead::Known(hash(start)));
            }
        }
    }

    fn publish(&mut self) {
        let progress = self.context.progress;
        progress
            .files
            .fetch_add(std::mem::take(&mut self.files), Relaxed);
        progress
            .bytes
            .fetch_add(std::mem::take(&mut self.bytes), Relaxed);
    }
}

impl Consumer for PassWorker<'_> {
    fn width(&self) -> usize {
        self.whole.width()
    }

    fn reserve(&mut self, slots: usize) {
        self.whole.reserve(slots);
        self.fast.reserve(slots);
        self.slots.resize(slots, Part::Partial);
        self.heads.resize(slots, FileHead::Unknown);
        self.ahead.resize(slots, 0);
    }

    fn want(&mut self, entry: EntryId) -> Want {
        match self.part(entry) {
            Part::Partial => ends(self.context.listing.size(entry).unwrap_or(0)),
            Part::Whole => Want::Whole,
        }
    }

    fn verify(&self, entry: EntryId) -> VerifyWhen {
        match self.part(entry) {
            Part::Partial => self.how.ends,
            Part::Whole => VerifyWhen::AtEnd,
        }
    }

    fn knows(&mut self, opened: &Opened, file: BorrowedFd<'_>) -> bool {
        let size = opened.stat.stamp.size;
        // Where only the smallest are read whole, most of them have no equal.
        let few = self.how.limit <= u64::from(START);
        if few || self.part(opened.entry) == Part::Partial {
            return false;
        }
        let table = &self.context.table;
        let row = table.opened_by(opened.entry);
        let candidate = table.candidate(row);
        // One that was put off is asked for again.
        if table.has_own_blocks(candidate) {
            return false;
        }
        let Some(follower) = self.asker.ask(file, &opened.stat, candidate, self.follow) else {
            return false;
        };
        self.done.followers.push(follower);
        let planned = &self.context.progress.planned_bytes;
        planned.fetch_sub(to_read(self.how.limit, size), Relaxed);
        self.count_file();
        true
    }

    fn waiting(&mut self, progress: Waiting) {
        self.handle.waiting(progress);
    }

    fn ends(&mut self) -> bool {
        self.handle.ends()
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        // Of another size than listed it is read for nothing: `finish` refuses it.
        let part = self.part(opened.entry);
        self.slots[slot] = part;
        // Of a file that was not finished and begins again.
        let void = std::mem::take(&mut self.ahead[slot]);
        if void > 0 {
            self.publish();
            self.context.progress.bytes.fetch_sub(void, Relaxed);
        }
        let size = opened.stat.stamp.size;
        self.heads[slot] = match part {
            Part::Whole if self.how.both && size <= MIDDLE => {
                FileHead::Of(size.min(START.into()) as usize)
            }
            _ => FileHead::Unknown,
        };
        match part {
            Part::Partial => {
                self.handle.count(1);
                self.fast.begin(slot);
            }
            Part::Whole => {
                self.handle.begin(size);
                self.whole.begin(slot);
            }
        }
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        let before = consumed.len();
        if self.how.both {
            self.see_heads(feeds);
        }
        if let [feed] = feeds {
            // Hashes that take one file at a time, as most searches use: once per small file.
            self.batch(self.slots[feed.slot])
                .advance(&[message(feed)], consumed);
        } else {
            self.advance_lanes(feeds, consumed);
        }
        self.count_pieces(feeds, &consumed[before..]);
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        let context = self.context;
        let row = context.table.opened_by(entry);
        let ahead = std::mem::take(&mut self.ahead[slot]);
        let result = result.and_then(|opened| {
            // The pump has looked, if not at files that it verified before it read them.
            if self.slots[slot] == Part::Whole || self.how.ends != VerifyWhen::Later {
                context.unchanged(&opened)?;
            }
            Ok(opened)
        });
        match result {
            Err(error) => {
                context.table.fail(row);
                self.done.failures.push((entry, error));
            }
            Ok(opened) => {
                context.table.set_blocks(row, opened.stat.blocks);
                let read = to_read(self.how.limit, opened.stat.stamp.size);
                self.bytes += read.saturating_sub(ahead);
                match self.slots[slot] {
                    Part::Partial => {
                        let hash = first(self.fast.digests(slot));
                        context
                            .table
                            .set_fast(row, hash.map_or(0, |hash| word(hash.as_bytes())));
                    }
                    Part::Whole => {
                        if let Some(digest) = first(self.whole.digests(slot)) {
                            context.table.set_whole(row, &digest);
                        }
                        if let FileHead::Known(hash) = self.heads[slot] {
                            context.table.set_fast(row, hash);
                        }
                        self.done.whole += 1;
                    }
                }
            }
        }
        self.count_file();
    }
}

fn message<'d>(feed: &Feed<'d>) -> bc_digest::Chunk<'d> {
    bc_digest::Chunk {
        message: feed.slot,
        data: feed.data,
        end: feed.end,
    }
}

/// Returns the part of a file of this size that the fast hash covers.
fn ends(size: u64) -> Want {
    if size <= u64::from(START) {
        Want::Whole
    } else if size <= MIDDLE {
        Want::Range {
            offset: 0,
            len: u64::from(START),
        }
    } else {
        Want::Ends { len: END }
    }
}

/// Bytes that a file of this size costs.
fn to_read(limit: u64, size: u64) -> u64 {
    match (Part::up_to(limit, size), ends(size)) {
        (Part::Whole, _) | (_, Want::Whole) => size,
        (Part::Partial, Want::Range { len, .. }) => len,
        (Part::Partial, Want::Ends { len }) => 2 * u64::from(len),
    }
}

fn first(mut digests: impl Iterator<Item = Digest>) -> Option<Digest> {
    digests.next()
}
