//! Whole digests of large files, in stages: a group of which the first
//! mebibyte differs is not read to its end.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::{Algorithm, Digest, Hasher};
use bc_pool::{Waiting, WorkerHandle, WorkerPanic};
use bc_read::{Consumer, Feed, Opened, Want};
use bc_walk::{EntryId, Error};

use super::pass::PassResult;
use super::space::{self, Follow, Follower};
use super::{Context, lock};

/// Files above this are read in stages.
pub(crate) const LARGE: u64 = 1 << 20;

/// Ends of the stages; each reads from the end of the one before, so nothing is read twice. Eight
/// times more each time: at most an eighth of the bytes already equal is wasted on a file that
/// turns out different at once.
const ENDS: [u64; 5] = [1 << 20, 8 << 20, 64 << 20, 512 << 20, u64::MAX];

/// Files whose hashers are kept at the same time, give or take a size group:
/// some 600 bytes each.
const AT_ONCE: usize = 1024;

/// Takes the whole digests of `groups` (candidates of one size and one fast
/// hash each), all larger than [`LARGE`]. Files that differ from all others of
/// their group on the way keep no digest.
pub(crate) fn read(context: &Context<'_>, groups: &[Vec<u32>]) -> Result<PassResult, WorkerPanic> {
    let mut done = PassResult::default();
    let mut rest = groups;
    while !rest.is_empty() {
        let mut count = 0;
        let until = rest
            .iter()
            .position(|group| {
                count += group.len();
                count >= AT_ONCE
            })
            .map_or(rest.len(), |at| at + 1);
        let (now, later) = rest.split_at(until);
        done.merge(all_stages(context, now)?);
        rest = later;
        if context.cancel.is_cancelled() {
            break;
        }
    }
    Ok(done)
}

/// Takes files out of the groups that lie in the same place as others of them. A file that is left
/// alone in its group is to be read `at_once`. Returns the files that were taken.
pub(crate) fn set_followers_aside(
    context: &Context<'_>,
    groups: &mut Vec<Vec<u32>>,
    at_once: &mut Vec<u32>,
) -> Result<Vec<Follower>, WorkerPanic> {
    let table = &context.table;
    let members = groups.iter().flatten().copied();
    let unknown: Vec<u32> = members.filter(|one| !table.has_whole(*one)).collect();
    let followers = space::survey(context, &unknown, Follow::Yes)?;
    if followers.is_empty() {
        return Ok(followers);
    }
    let following: HashSet<u32> = followers.iter().map(|one| one.candidate).collect();
    let leading: HashSet<u32> = followers.iter().map(|one| one.leader).collect();
    groups.retain_mut(|group| {
        group.retain(|one| !following.contains(one));
        let alone = group.len() < 2 && group.iter().all(|one| leading.contains(one));
        if alone {
            at_once.extend(group.iter().filter(|one| !table.has_whole(**one)));
        }
        !alone
    });
    Ok(followers)
}

/// Gives the files that were set aside their digests, and reads what the stages left undone: files
/// that differ from all others but those that follow them, and followers whose place proves
/// nothing.
pub(crate) fn read_left(
    context: &Context<'_>,
    followers: Vec<Follower>,
) -> Result<PassResult, WorkerPanic> {
    let table = &context.table;
    let mut leaders: Vec<u32> = followers.iter().map(|follower| follower.leader).collect();
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|one| !table.has_whole(*one) && !table.failed(*one));
    let mut done = context.read_each(leaders.into_iter(), u64::MAX)?;
    let left = space::resolve(context, followers)?;
    done.merge(context.read_each(left.into_iter(), u64::MAX)?);
    Ok(done)
}

fn all_stages(context: &Context<'_>, groups: &[Vec<u32>]) -> Result<PassResult, WorkerPanic> {
    let mut done = PassResult::default();
    let mut groups = groups.to_vec();
    let mut live: Vec<u32> = groups.iter().flatten().copied().collect();
    live.sort_unstable();
    let hashers: Vec<Mutex<Option<Hasher>>> = live.iter().map(|_| Mutex::new(None)).collect();
    let mut start = 0;
    let planned = &context.progress.planned_bytes;
    let sizes = |files: &[u32]| files.iter().map(|file| context.size(*file)).sum::<u64>();
    planned.fetch_add(sizes(&live), Relaxed);
    for (stage, end) in ENDS.into_iter().enumerate() {
        if groups.is_empty() || context.cancel.is_cancelled() {
            break;
        }
        let unknown = recall(context, &groups, stage);
        let part = |file: u32| context.size(file).min(end) - context.size(file).min(start);
        let all: u64 = groups.iter().flatten().map(|file| part(*file)).sum();
        let unread: u64 = unknown.iter().map(|file| part(*file)).sum();
        planned.fetch_sub(all - unread, Relaxed);
        let plan = context.plan(context.set_of(unknown.into_iter()));
        let results = context.run(&plan, unread, |handle| {
            let mut worker = PrefixWorker {
                context,
                handle,
                live: &live,
                hashers: &hashers,
                range: start..end,
                slots: Vec::new(),
                done: PassResult::default(),
                learnt: Vec::new(),
            };
            let options = &context.options.read;
            let stats = bc_read::pump(context.listing, &plan, options, context.cancel, &mut worker);
            worker.done.read = stats;
            (worker.done, worker.learnt)
        })?;
        let mut prefixes = lock(&context.prefixes);
        for (result, learnt) in results {
            done.merge(result);
            for (candidate, digest) in learnt {
                let known = prefixes.entry(candidate).or_default();
                if known.len() == stage {
                    known.push(digest);
                }
            }
        }
        drop(prefixes);
        start = end;
        let beyond = |groups: &[Vec<u32>]| -> u64 {
            let files = groups.iter().flatten();
            files
                .map(|file| context.size(*file).saturating_sub(end))
                .sum()
        };
        let before = beyond(&groups);
        groups = split(context, &groups, end);
        planned.fetch_sub(before - beyond(&groups), Relaxed);
        // Hashers of files that are out or done are not needed any more.
        let mut wanted: Vec<u32> = groups.iter().flatten().copied().collect();
        wanted.sort_unstable();
        for (candidate, hasher) in live.iter().zip(&hashers) {
            if wanted.binary_search(candidate).is_err() {
                *lock(hasher) = None;
            }
        }
    }
    Ok(done)
}

/// Takes this stage's digests of files from the cache; returns the files that it lacks.
fn recall(context: &Context<'_>, groups: &[Vec<u32>], stage: usize) -> Vec<u32> {
    let prefixes = lock(&context.prefixes);
    let members = groups.iter().flatten().copied();
    members
        .filter(|candidate| {
            let row = context.table.row(*candidate);
            context.table.forget_whole(row);
            match prefixes.get(candidate).and_then(|known| known.get(stage)) {
                Some(digest) => {
                    context.table.set_whole(row, digest);
                    false
                }
                None => true,
            }
        })
        .collect()
}

/// Splits groups by the digests of the bytes read so far, and keeps those that have more to read. A
/// file left alone is out: it has no digest of its whole.
fn split(context: &Context<'_>, groups: &[Vec<u32>], end: u64) -> Vec<Vec<u32>> {
    let table = &context.table;
    let mut next = Vec::new();
    for group in groups {
        let mut group: Vec<u32> = group
            .iter()
            .copied()
            .filter(|candidate| table.has_whole(*candidate))
            .collect();
        let Some(first) = group.first() else { continue };
        if context.size(*first) <= end {
            continue;
        }
        group.sort_by_key(|candidate| table.whole(*candidate));
        for equal in group.chunk_by(|a, b| table.whole(*a) == table.whole(*b)) {
            // The digest covers a part only.
            for candidate in equal {
                table.forget_whole(table.row(*candidate));
            }
            if super::groups::worth(context, equal) {
                next.push(equal.to_vec());
            }
        }
    }
    next
}

struct PrefixWorker<'a> {
    context: &'a Context<'a>,
    handle: WorkerHandle<'a>,
    live: &'a [u32],
    hashers: &'a [Mutex<Option<Hasher>>],
    range: std::ops::Range<u64>,
    slots: Vec<Option<Hasher>>,
    done: PassResult,
    learnt: Vec<(u32, Digest)>,
}

impl PrefixWorker<'_> {
    fn place(&self, entry: EntryId) -> Option<&Mutex<Option<Hasher>>> {
        let table = &self.context.table;
        let candidate = table.candidate(table.opened_by(entry));
        let at = self.live.binary_search(&candidate).ok()?;
        Some(&self.hashers[at])
    }
}

impl Consumer for PrefixWorker<'_> {
    fn width(&self) -> usize {
        1
    }

    fn reserve(&mut self, slots: usize) {
        self.slots.resize_with(slots, || None);
    }

    fn want(&mut self, entry: EntryId) -> Want {
        // Without a hasher the stages before came from the cache.
        let begun = self.place(entry).is_some_and(|place| lock(place).is_some());
        let start = if begun { self.range.start } else { 0 };
        Want::Range {
            offset: start,
            len: self.range.end - start,
        }
    }

    fn waiting(&mut self, progress: Waiting) {
        self.handle.waiting(progress);
    }

    fn ends(&mut self) -> bool {
        self.handle.ends()
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        self.handle.begin(self.range.end - self.range.start);
        // A copy: a file that is being written to may begin again.
        let kept = self
            .place(opened.entry)
            .and_then(|place| lock(place).clone());
        self.slots[slot] =
            Some(kept.unwrap_or_else(|| Hasher::new(self.context.options.algorithm)));
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        for feed in feeds {
            self.context
                .progress
                .bytes
                .fetch_add(feed.data.len() as u64, Relaxed);
            if let Some(hasher) = &mut self.slots[feed.slot] {
                hasher.update(feed.data);
            }
            consumed.push(feed.slot);
        }
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        let table = &self.context.table;
        let row = table.opened_by(entry);
        let result = result.and_then(|opened| {
            self.context.unchanged(&opened)?;
            Ok(opened)
        });
        match result {
            Ok(opened) => {
                let Some(hasher) = self.slots[slot].take() else {
                    return;
                };
                let digest = hasher.finalize();
                table.set_whole(row, &digest);
                table.set_blocks(row, opened.stat.blocks);
                self.learnt.push((table.candidate(row), digest));
                if opened.stat.stamp.size <= self.range.end {
                    self.done.whole += 1;
                    self.context.progress.files.fetch_add(1, Relaxed);
                }
                if let Some(place) = self.place(entry) {
                    *lock(place) = Some(hasher);
                }
            }
            Err(error) => {
                table.fail(row);
                self.done.failures.push((entry, error));
            }
        }
    }
}

/// Returns true if an algorithm hashes one file as fast as many at once, so that keeping one hasher
/// per file costs nothing.
pub(crate) fn is_streaming(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::Xxh3 | Algorithm::Xxh128 | Algorithm::Blake3
    )
}
