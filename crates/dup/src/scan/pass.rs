//! Reads candidates and keeps what they digest to.

use std::sync::atomic::Ordering;

use bc_digest::{Algorithm, Batch, Digest, Hasher};
use bc_pool::{Cancel, WorkerPanic};
use bc_read::{Consumer, Feed, Opened, Plan, Want};
use bc_walk::{EntryId, Error, ErrorKind, Listing};

use super::candidates::{Candidates, Index, meta};
use super::{Learnt, Memory, Options, Progress, Scan, Scope};

/// Longest digest of an algorithm that decides.
const MOST: usize = 32;

/// What is known of a candidate's content. Nothing known is equal to nothing,
/// not even to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Not read, or not readable.
    None,
    /// The first read saw its ends.
    Ends([u8; 16]),
    /// All of it was read.
    Whole([u8; MOST]),
}

impl Key {
    pub(super) fn new(scope: Scope, digest: &Digest) -> Key {
        let bytes = digest.as_bytes();
        match scope {
            Scope::Ends => {
                let mut key = [0; 16];
                key.copy_from_slice(&bytes[..16]);
                Key::Ends(key)
            }
            Scope::Whole => {
                let mut key = [0; MOST];
                key[..bytes.len()].copy_from_slice(bytes);
                Key::Whole(key)
            }
        }
    }

    /// For sorting equal keys together; None has no place.
    pub(super) fn order(&self) -> Option<(u8, &[u8])> {
        match self {
            Key::None => None,
            Key::Ends(bytes) => Some((0, bytes)),
            Key::Whole(bytes) => Some((1, bytes)),
        }
    }
}

/// The state of a search between its passes.
pub(super) struct Pass<'a> {
    pub(super) listing: &'a Listing,
    pub(super) candidates: &'a Candidates,
    pub(super) options: &'a Options,
    pub(super) cancel: &'a Cancel,
    pub(super) progress: &'a Progress,
    memory: Option<&'a dyn Memory>,
    /// Candidate of each entry of the listing; `u32::MAX` for the others.
    index: Vec<u32>,
    pub(super) keys: Vec<Key>,
    pub(super) blocks: Vec<u64>,
    learnt: Vec<Learnt>,
    errors: Vec<Error>,
    fast: u64,
    full: u64,
    remembered: u64,
    read: bc_read::Stats,
}

/// Keys and blocks by candidate.
pub(super) struct Keys {
    pub(super) keys: Vec<Key>,
    pub(super) blocks: Vec<u64>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        listing: &'a Listing,
        candidates: &'a Candidates,
        options: &'a Options,
        memory: Option<&'a dyn Memory>,
        cancel: &'a Cancel,
        progress: &'a Progress,
    ) -> Pass<'a> {
        let mut index = vec![u32::MAX; listing.len()];
        for (i, id) in candidates.entries().iter().enumerate() {
            index[id.0 as usize] = i as u32;
        }
        Pass {
            listing,
            candidates,
            options,
            cancel,
            progress,
            memory,
            index,
            keys: vec![Key::None; candidates.len()],
            blocks: vec![0; candidates.len()],
            learnt: Vec::new(),
            errors: Vec::new(),
            fast: 0,
            full: 0,
            remembered: 0,
            read: bc_read::Stats::default(),
        }
    }

    /// Reads these candidates; `whole_up_to`: larger files are asked for their
    /// ends only.
    pub(super) fn read(
        &mut self,
        mut which: Vec<Index>,
        whole_up_to: u64,
    ) -> Result<(), WorkerPanic> {
        if self.memory.is_some() {
            self.recall(&mut which, whole_up_to);
        }
        let mut order: Vec<EntryId> = which.iter().map(|i| self.candidates.entry(*i)).collect();
        // Path order, whatever the sizes: neighbours share their directory.
        order.sort_unstable();
        let again = which.iter().any(|i| self.keys[*i] != Key::None);
        if again {
            self.full += which.len() as u64;
        } else {
            self.fast += which.len() as u64;
        }
        // What was equal so far is unknown until the whole has been read.
        for i in which {
            self.keys[i] = Key::None;
        }
        if order.is_empty() {
            return Ok(());
        }
        let workers = self.options.workers.clamp(1, order.len());
        let plan = Plan::new(order, workers);
        let done = bc_pool::run(workers, |_| {
            let mut reader = Reader::new(self, whole_up_to);
            let stats = bc_read::pump(
                self.listing,
                &plan,
                &self.options.read,
                self.cancel,
                &mut reader,
            );
            (reader.found, reader.errors, stats)
        })?;
        for (found, errors, stats) in done {
            self.read.merge(stats);
            self.errors.extend(errors);
            for one in found {
                self.keys[one.index as usize] = Key::new(one.scope, &one.digest);
                self.blocks[one.index as usize] = one.blocks;
                if self.memory.is_some() {
                    let entry = self.candidates.entry(one.index as usize);
                    self.learnt.push(Learnt {
                        entry,
                        scope: one.scope,
                        digest: one.digest,
                    });
                }
            }
        }
        Ok(())
    }

    /// Answers from memory what it knows and takes it off the list.
    fn recall(&mut self, which: &mut Vec<Index>, whole_up_to: u64) {
        let Some(memory) = self.memory else { return };
        let mut kept = 0;
        for at in 0..which.len() {
            let index = which[at];
            let entry = self.candidates.entry(index);
            let scope = scope(self.size(index), whole_up_to);
            // A whole digest answers for the ends as well, if all of the class have one;
            // mixing would call equal files different, so only the scope asked for counts.
            match memory.recall(entry, scope) {
                Some(digest) => {
                    self.keys[index] = Key::new(scope, &digest);
                    self.remembered += 1;
                }
                None => {
                    which[kept] = index;
                    kept += 1;
                }
            }
        }
        which.truncate(kept);
    }

    pub(super) fn size(&self, index: Index) -> u64 {
        meta(self.listing, self.candidates.entry(index)).stamp.size
    }

    /// Candidates that are equal to another one so far, class by class.
    pub(super) fn equal(&self) -> Vec<Vec<Index>> {
        self.candidates
            .classes()
            .flat_map(|class| runs(&self.keys, class.collect()))
            .collect()
    }

    /// Notes a failure of one file.
    pub(super) fn fail(&mut self, index: Index, error: Error) {
        self.keys[index] = Key::None;
        self.errors.push(error);
    }

    /// Notes a file that was read whole by other means.
    pub(super) fn learn(&mut self, index: Index, digest: Digest) {
        self.keys[index] = Key::new(Scope::Whole, &digest);
        self.full += 1;
        if self.memory.is_some() {
            let entry = self.candidates.entry(index);
            self.learnt.push(Learnt {
                entry,
                scope: Scope::Whole,
                digest,
            });
        }
    }

    pub(super) fn index(&self, entry: EntryId) -> Index {
        self.index[entry.0 as usize] as Index
    }

    pub(super) fn count(&mut self, stats: bc_read::Stats) {
        self.read.merge(stats);
    }

    pub(super) fn finish(self, found: &mut Scan) -> Keys {
        found.stats.fast_hashed = self.fast;
        found.stats.full_hashed = self.full;
        found.stats.remembered = self.remembered;
        found.stats.bytes_read = self.read.bytes;
        found.stats.backend = self.read.backend;
        found.errors.extend(self.errors);
        found.learnt = self.learnt;
        Keys {
            keys: self.keys,
            blocks: self.blocks,
        }
    }
}

/// Sets of two or more candidates with equal keys.
pub(super) fn runs(keys: &[Key], mut class: Vec<Index>) -> Vec<Vec<Index>> {
    class.retain(|i| keys[*i] != Key::None);
    class.sort_unstable_by(|a, b| keys[*a].order().cmp(&keys[*b].order()).then(a.cmp(b)));
    class
        .chunk_by(|a, b| keys[*a] == keys[*b])
        .filter(|run| run.len() > 1)
        .map(<[Index]>::to_vec)
        .collect()
}

/// What is read of a file of this size.
pub(super) fn scope(size: u64, whole_up_to: u64) -> Scope {
    if size <= whole_up_to {
        Scope::Whole
    } else {
        Scope::Ends
    }
}

/// A digest as a worker found it.
struct One {
    index: u32,
    scope: Scope,
    blocks: u64,
    digest: Digest,
}

/// One worker's consumer.
struct Reader<'p, 'a> {
    pass: &'p Pass<'a>,
    whole_up_to: u64,
    batch: Batch,
    /// For ends, where the algorithm is not XXH128 itself.
    ends: Vec<Hasher>,
    by_ends: Vec<bool>,
    found: Vec<One>,
    errors: Vec<Error>,
}

impl<'p, 'a> Reader<'p, 'a> {
    fn new(pass: &'p Pass<'a>, whole_up_to: u64) -> Reader<'p, 'a> {
        Reader {
            pass,
            whole_up_to,
            batch: Batch::new(&[pass.options.algorithm], pass.options.kernels),
            ends: Vec::new(),
            by_ends: Vec::new(),
            found: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn scope(&self, entry: EntryId) -> Scope {
        scope(meta(self.pass.listing, entry).stamp.size, self.whole_up_to)
    }
}

impl Consumer for Reader<'_, '_> {
    fn width(&self) -> usize {
        self.batch.width()
    }

    fn reserve(&mut self, slots: usize) {
        self.batch.reserve(slots);
        self.by_ends.resize(slots, false);
        self.ends
            .resize_with(slots, || Hasher::new(Algorithm::Xxh128));
    }

    fn want(&mut self, entry: EntryId) -> Want {
        match self.scope(entry) {
            Scope::Whole => Want::Whole,
            Scope::Ends => Want::Ends {
                len: super::first::END as u32,
            },
        }
    }

    fn begin(&mut self, slot: usize, opened: &Opened) {
        self.by_ends[slot] = self.scope(opened.entry) == Scope::Ends;
        if self.by_ends[slot] {
            self.ends[slot].reset();
        } else {
            self.batch.begin(slot);
        }
    }

    fn advance(&mut self, feeds: &[Feed<'_>], consumed: &mut Vec<usize>) {
        const NONE: bc_digest::Feed<'static> = bc_digest::Feed {
            message: 0,
            data: &[],
            end: false,
        };
        let mut mapped = [NONE; 64];
        let mut count = 0;
        for feed in feeds {
            if self.by_ends[feed.slot] {
                self.ends[feed.slot].update(feed.data);
                consumed.push(feed.slot);
            } else if count < mapped.len() {
                mapped[count] = bc_digest::Feed {
                    message: feed.slot,
                    data: feed.data,
                    end: feed.end,
                };
                count += 1;
            }
        }
        if count > 0 {
            self.batch.advance(&mapped[..count], consumed);
        }
    }

    fn finish(&mut self, slot: usize, result: Result<Opened, Error>, entry: EntryId) {
        self.pass.progress.files.fetch_add(1, Ordering::Relaxed);
        let opened = match result {
            Ok(opened) => opened,
            Err(error) => return self.errors.push(error),
        };
        if opened.stat.stamp != meta(self.pass.listing, entry).stamp {
            return self.errors.push(Error::of_kind(
                self.pass.listing.path(entry),
                "read",
                ErrorKind::Changed,
            ));
        }
        let scope = self.scope(entry);
        let digest = match scope {
            Scope::Ends => self.ends[slot].finalize(),
            Scope::Whole => match self.batch.digests(slot).next() {
                Some(digest) => digest,
                None => return,
            },
        };
        self.pass
            .progress
            .bytes
            .fetch_add(opened.stat.stamp.size, Ordering::Relaxed);
        self.found.push(One {
            index: self.pass.index(entry) as u32,
            scope,
            blocks: opened.stat.blocks,
            digest,
        });
    }
}
