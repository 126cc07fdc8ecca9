//! The search: by size, by a fast hash of an end or both, by a digest of everything, each step only
//! among files that the one before left equal.

mod candidates;
mod groups;
mod pass;
mod prefix_stages;
mod recall;
mod sample;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod verify;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bc_digest::{Algorithm, CpuFeatures};
use bc_pool::{Cancel, Effort, Start, WorkerHandle, WorkerPanic};
use bc_read::{Opened, Plan};
use bc_walk::job::Error;
use bc_walk::{ErrorKind, Listing, Metadata};
use candidates::Candidates;
use groups::CandidateGroups;
use pass::{How, Part, PassResult};
use recall::Recalled;
use sample::Sample;
use space::Extents;
use table::{Both, EntrySet, Prefixes, Table};

use crate::cache::Cache;
use crate::subtrees::{Marks, Subtrees};
use crate::writers;

pub use groups::{File, Group, Scan};

/// Treatment of several names of one inode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HardLinks {
    /// They are one file with several names, which wastes nothing.
    #[default]
    OneFile,
    /// They are reported like any other equal files.
    Duplicates,
}

/// Proof that equality requires.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Equality {
    /// Equal digests.
    #[default]
    Digest,
    /// Every byte compared as well.
    Bytes,
}

/// Roots that a group has to span.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Span {
    /// Any.
    #[default]
    Any,
    /// At least two.
    AcrossRoots,
}

/// Options of a search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScanOptions {
    /// The digest: `Xxh128`, `Xxh3`, `Blake3` or `Sha256`.
    pub algorithm: Algorithm,
    /// Smaller files take no part, bytes.
    pub min_size: u64,
    /// Treatment of hard links.
    pub hard_links: HardLinks,
    /// Trees that must never be changed. Their files are listed first, and a group needs at least
    /// one other file.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub references: Arc<Subtrees>,
    /// Groups that count.
    pub span: Span,
    /// Proof that equality requires.
    pub equality: Equality,
    /// Options for reading files.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub read: bc_read::ReadOptions,
    /// Instruction sets to hash with.
    pub cpu: CpuFeatures,
    /// Threads, at least 1; with 1 the caller's thread does everything.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub workers: usize,
    /// Number of workers that each part of the search starts: all, or as many as its work
    /// justifies.
    ///
    /// Internal to bit-crafts.
    #[doc(hidden)]
    pub start: Start,
}

bc_fs::setters! {
    ScanOptions:
    algorithm: Algorithm,
    min_size: u64,
    hard_links: HardLinks,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    references: Arc<Subtrees>,
    span: Span,
    equality: Equality,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    read: bc_read::ReadOptions,
    cpu: CpuFeatures,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    workers: usize,
    /// Internal to bit-crafts.
    #[doc(hidden)]
    start: Start,
}

/// The digests that a search can use.
pub const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Xxh128,
    Algorithm::Xxh3,
    Algorithm::Blake3,
    Algorithm::Sha256,
];

impl Default for ScanOptions {
    /// Xxh128, files that are not empty, on one thread.
    fn default() -> ScanOptions {
        ScanOptions {
            algorithm: Algorithm::Xxh128,
            min_size: 1,
            hard_links: HardLinks::default(),
            references: Arc::default(),
            span: Span::default(),
            equality: Equality::default(),
            read: bc_read::ReadOptions::default(),
            cpu: CpuFeatures::detect(),
            workers: 1,
            start: Start::Together,
        }
    }
}

/// Counters for a progress display.
#[derive(Debug, Default)]
pub struct ScanProgress {
    /// Reads finished: a file read twice counts twice.
    pub files: AtomicU64,
    /// Bytes read.
    pub bytes: AtomicU64,
    /// Reads planned so far; grows when the second pass is known.
    pub planned: AtomicU64,
    /// Bytes of the reads planned so far; shrinks when files drop out before they are read.
    pub planned_bytes: AtomicU64,
    /// Set once files that agree in their samples are read whole.
    pub whole: AtomicBool,
}

/// Figures of a search.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ScanStats {
    /// Files of at least the smallest size, hard links counted once.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that share their size with another.
    pub size_candidates: u64,
    /// Files read in the first pass, their ends or whole.
    pub fast_hashed: u64,
    /// Files read again, whole.
    pub full_hashed: u64,
    /// Files whose digest came from the cache.
    pub remembered: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Wall time of grouping by size, of the first and of the second read.
    pub times: [Duration; 3],
    /// Backend that read the files.
    pub backend: bc_read::Backend,
}

/// Bytes of memory that a search takes for the listing and the state of its files, at most.
pub fn scan_memory(listing: &Listing) -> u64 {
    // As candidates, if all share their size.
    const STATE: usize = 40;
    listing.memory() + (listing.len() * STATE) as u64
}

/// Refuses a listing of files of which nothing is known: it would be searched in vain.
pub(crate) fn require_metadata(listing: &Listing) -> Result<(), Error> {
    match listing.is_empty() || listing.file_metadata() >= Metadata::Basic {
        true => Ok(()),
        false => Err(Error::usage(
            "the listing has no metadata of its files: walk with Metadata::Basic",
        )),
    }
}

/// Finds the duplicates among the files of `listing`, which must have been
/// walked with [`Metadata::Basic`] or more.
///
/// With a cache, files that it knows in their present state are not opened. After a cancellation
/// the result is incomplete, and [says so](Scan::is_cancelled): a file that was not read to its end
/// is in no group.
///
/// # Errors
/// A listing without metadata, an algorithm that is not in [`ALGORITHMS`], a worker that panicked.
/// Files that cannot be read are in [`Scan::errors`].
pub fn scan(
    listing: &Listing,
    options: &ScanOptions,
    cache: Option<&mut Cache>,
    cancel: &Cancel,
    progress: &ScanProgress,
) -> Result<Scan, Error> {
    require_metadata(listing)?;
    if !ALGORITHMS.contains(&options.algorithm) {
        let names = ALGORITHMS.map(Algorithm::name).join(", ");
        let text = format!("{} is none of {names}", options.algorithm);
        return Err(Error::usage(text));
    }
    let references = options.references.mark(listing);
    Ok(scan_beside(
        listing, references, options, cache, cancel, progress,
    )?)
}

/// Finds the duplicates with the entries of references known, whatever the options say of those.
pub(crate) fn scan_beside(
    listing: &Listing,
    references: Marks,
    options: &ScanOptions,
    mut cache: Option<&mut Cache>,
    cancel: &Cancel,
    progress: &ScanProgress,
) -> Result<Scan, WorkerPanic> {
    let begun = Instant::now();
    let mut stats = ScanStats::default();
    let candidates = Candidates::find(listing, &references, options, &mut stats);
    let both = match cache {
        Some(_) => Both::Kept,
        None => Both::OfSome,
    };
    let context = Context::new(
        listing,
        &candidates,
        references,
        both,
        options,
        cancel,
        progress,
    );
    // Writes by these may not show in any time: their files are neither remembered nor recalled.
    let written = match cache.as_ref().is_some_and(|cache| cache.is_usable()) {
        true => {
            let all = (0..candidates.len() as u32).map(|one| candidates.entry(one));
            writers::unseen_writers(listing, all, options.workers, cancel)?
        }
        false => Vec::new(),
    };
    let recalled = cache
        .as_mut()
        .map(|cache| Recalled::of(cache, &context, written));
    stats.remembered = recalled.as_ref().map_or(0, |recalled| recalled.whole);
    let sized = Instant::now();

    // Digests that are to be remembered have to be verified, all of them.
    let ends = match cache {
        Some(_) => bc_read::VerifyWhen::AtEnd,
        None => bc_read::VerifyWhen::Later,
    };
    let (mut done, repeated) = first_reads(&context, ends)?;
    stats.fast_hashed = done.read.files.saturating_sub(repeated);
    let first = Instant::now();
    let so_far = groups::equal_so_far(&context)?;
    let second = full_reads(&context, &so_far)?;
    stats.full_hashed = second.whole + repeated;
    done.merge(second);
    let mut found = groups::equal(&context, &so_far);
    drop(so_far);
    if options.equality == Equality::Bytes {
        done.merge(verify::compare(&context, &mut found)?);
    }
    space::settle(&context, &found)?;
    stats.bytes_read = done.read.bytes;
    stats.backend = done.read.backend;
    stats.times = [sized - begun, first - sized, first.elapsed()];
    done.failures.sort_by_key(|(entry, _)| *entry);
    if let (Some(cache), Some(recalled)) = (cache, recalled) {
        recalled.remember(cache, &context);
    }
    let finish = groups::finish(&context, &found, done.failures, stats);
    let Context { references, .. } = context;
    Ok(finish(candidates, references))
}

/// Locks even after a panic under the lock: the state is not used, as the search ends with that.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads every candidate for the first time: a sample decides how much of it.
///
/// The check that the ends read are the listed file's may come later: `ends`. They serve only to
/// distinguish files. A file that has been written to or replaced since it was listed, and now
/// differs from all others, goes unnoticed, as it would if it had a size of its own; one that has
/// become equal does not. The digest of a file that is read whole is final, and verified at its
/// end.
///
/// Also returns the number of files that were read twice for that.
fn first_reads(
    context: &Context<'_>,
    ends: bc_read::VerifyWhen,
) -> Result<(PassResult, u64), WorkerPanic> {
    // Where a file is verified in any case, and a whole digest costs no more than a fast hash, files
    // of which all is read are done with at once.
    let least = match (context.options.algorithm, ends) {
        (_, bc_read::VerifyWhen::Later) => 0,
        (Algorithm::Xxh3 | Algorithm::Xxh128, _) => u64::from(pass::START),
        _ => 0,
    };
    // A cache with the ends of all is as good as reading them, and draws no sample.
    let table = &context.table;
    let is_known = |group: &Range<u32>| {
        group.clone().all(|one| table.has_whole(one))
            || group.clone().all(|one| table.has_fast(one))
    };
    let groups: Vec<Range<u32>> = context
        .candidates
        .groups()
        .filter(|group| !is_known(group))
        .collect();
    let count: usize = groups.iter().map(ExactSizeIterator::len).sum();
    context.progress.planned.fetch_add(count as u64, Relaxed);
    if context.listing.is_decompressed() {
        // A start costs the decompression of a block, which is as large as most files and holds
        // several of them: a sample from everywhere, and coming back, would cost it again.
        let how = How {
            limit: pass::MIDDLE,
            ends,
            both: false,
        };
        let done = read_unknown(context, groups.into_iter(), &[], how)?;
        return Ok((done, 0));
    }
    let sample = Sample::draw(groups);
    let how = How {
        limit: Sample::limit(context.options.algorithm).max(least),
        ends,
        both: true,
    };
    let mut done = read_unknown(context, sample.groups(), sample.parts(), how)?;
    let how = How {
        limit: sample.whole_up_to(context).max(least),
        both: false,
        ..how
    };
    let repeated = sample.repeated(context, how.limit);
    context.progress.planned.fetch_add(repeated, Relaxed);
    done.merge(read_unknown(context, sample.rest(), &[], how)?);
    Ok((done, repeated))
}

/// Reads the files of these size groups, and of the others' members, whose digests are unknown.
fn read_unknown(
    context: &Context<'_>,
    groups: impl Iterator<Item = Range<u32>>,
    parts: &[(Range<u32>, Vec<u32>)],
    how: How,
) -> Result<PassResult, WorkerPanic> {
    let table = &context.table;
    let mut unknown = EntrySet::new(context.listing.len());
    // To look up a size is a wait for memory: once for a group.
    let mut add = |one: u32, members: &mut dyn Iterator<Item = u32>| {
        let part = Part::up_to(how.limit, context.size(one));
        for one in members {
            let entry = context.candidates.entry(one);
            let known = table.knows(table.opened_by(entry));
            let is_known = match part {
                Part::Whole => known.whole(),
                Part::Partial => known.fast(),
            };
            if !is_known && !known.failed() {
                unknown.insert(entry);
            }
        }
    };
    for mut group in groups {
        add(group.start, &mut group);
    }
    for (group, members) in parts {
        add(group.start, &mut members.iter().copied());
    }
    context.read_entries(unknown, how)
}

/// Reads to the end the files that the fast hashes left equal.
fn full_reads(context: &Context<'_>, equal: &CandidateGroups) -> Result<PassResult, WorkerPanic> {
    let table = &context.table;
    let streaming = prefix_stages::is_streaming(context.options.algorithm);
    let mut at_once = Vec::new();
    let mut in_stages = Vec::new();
    for group in equal.lists() {
        let unknown = || group.iter().copied().filter(|one| !table.has_whole(*one));
        if unknown().next().is_none() {
            continue;
        }
        if streaming && context.size(group[0]) > prefix_stages::LARGE {
            in_stages.push(group.to_vec());
        } else {
            at_once.extend(unknown());
        }
    }
    let total = at_once.len() + in_stages.iter().map(Vec::len).sum::<usize>();
    context.progress.planned.fetch_add(total as u64, Relaxed);
    context.progress.whole.store(total > 0, Relaxed);
    let followers = prefix_stages::set_followers_aside(context, &mut in_stages, &mut at_once)?;
    let how = How {
        limit: u64::MAX,
        ends: bc_read::VerifyWhen::AtEnd,
        both: false,
    };
    let mut done = context.read(at_once.into_iter(), how)?;
    done.merge(prefix_stages::read(context, &in_stages)?);
    done.merge(prefix_stages::read_left(context, followers)?);
    Ok(done)
}

/// Context of one search.
pub(crate) struct Context<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) candidates: &'a Candidates,
    pub(crate) table: Table<'a>,
    /// Digests of large files that were not read to their end.
    pub(crate) prefixes: Mutex<Prefixes>,
    /// Locations of files on disk.
    pub(crate) extents: Extents,
    /// Entries that are references'.
    pub(crate) references: Marks,
    pub(crate) options: &'a ScanOptions,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a ScanProgress,
}

impl<'a> Context<'a> {
    /// Starts a search without any results.
    pub(crate) fn new(
        listing: &'a Listing,
        candidates: &'a Candidates,
        references: Marks,
        both: Both,
        options: &'a ScanOptions,
        cancel: &'a Cancel,
        progress: &'a ScanProgress,
    ) -> Context<'a> {
        let digest_len = options.algorithm.digest_len();
        Context {
            listing,
            candidates,
            table: Table::new(candidates, listing.len(), digest_len, both),
            prefixes: Mutex::default(),
            extents: Extents::default(),
            references,
            options,
            cancel,
            progress,
        }
    }

    pub(crate) fn size(&self, candidate: u32) -> u64 {
        let entry = self.candidates.entry(candidate);
        self.listing.size(entry).unwrap_or(0)
    }

    /// Runs `f` on as many workers as reading `bytes` of the files of `plan` justifies, with the
    /// options' tables of descriptors: they have those of the listing, and those that they open
    /// themselves. Others join while they wait, which they report to their handles.
    pub(crate) fn run<T: Send>(
        &self,
        plan: &Plan,
        bytes: u64,
        f: impl Fn(WorkerHandle<'_>) -> T + Sync,
    ) -> Result<Vec<T>, WorkerPanic> {
        let most = self.options.workers.clamp(1, plan.len().max(1));
        let effort = Effort::of(plan.len() as u64, bytes);
        let workers = self.options.start.workers(most, effort);
        let named: Vec<_> = self.listing.descriptors().collect();
        let read = &self.options.read;
        bc_read::run_readers(self.listing, plan, read, &named, workers, workers, f)
    }

    /// The entries that open these candidates.
    pub(crate) fn set_of(&self, candidates: impl Iterator<Item = u32>) -> EntrySet {
        let entries = candidates.map(|candidate| self.candidates.entry(candidate));
        EntrySet::of(entries, self.listing.len())
    }

    /// Plans to read these entries in path order, or in that of a disk that has to seek for them:
    /// neighbours there or in the kernel's caches, which an order by size is not.
    pub(crate) fn plan(&self, entries: EntrySet) -> Plan {
        let (entries, workers) = (entries.into_sorted(), self.options.workers);
        bc_read::order::plan(self.listing, entries, workers, self.cancel)
    }

    /// Checks that the file that was read is in the state that was listed.
    pub(crate) fn unchanged(&self, opened: &Opened) -> Result<(), bc_walk::Error> {
        let listed = self.listing.meta(opened.entry).map(|meta| meta.stamp);
        if listed == Some(opened.stat.stamp) {
            Ok(())
        } else {
            Err(bc_walk::Error::of_kind(
                self.listing.path(opened.entry),
                "read",
                ErrorKind::Changed,
            ))
        }
    }
}
