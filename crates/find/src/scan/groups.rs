//! Grouping by digests, and the result of a search.

use std::ops::Range;

use bc_digest::Digest;
use bc_pool::{Cursor, WorkerPanic};
use bc_read::space::Shares;
use bc_walk::{DirId, EntryId, Error, Listing};

use super::candidates::Candidates;
use super::table::TableRow;
use super::{Context, HardLinks, ScanStats, Span};
use crate::jagged::Jagged;
use crate::subtrees::Marks;

/// Groups of candidates.
pub(crate) type CandidateGroups = Jagged<u32>;

/// Returns true if these equal files make a group that is to be reported.
pub(crate) fn worth(context: &Context<'_>, group: &[u32]) -> bool {
    let options = context.options;
    let names = || group.iter().flat_map(|one| context.candidates.names(*one));
    let root = |entry: &EntryId| context.listing.root(*entry);
    let enough = match options.hard_links {
        HardLinks::OneFile => group.len() > 1,
        HardLinks::Duplicates => names().nth(1).is_some(),
    };
    if !enough {
        return false;
    }
    let spans = || {
        let first = names().map(root).next();
        names().any(|name| Some(root(name)) != first)
    };
    let references = &context.references;
    let all_reference = || names().all(|name| references.contains(context.listing, *name));
    (options.span == Span::Any || spans()) && (references.is_empty() || !all_reference())
}

/// Size groups that are worth a thread: some 100 µs.
pub(crate) const GROUPS: usize = 1024;

/// Returns the groups of files that are equal by the first reads, in any order of groups.
pub(crate) fn equal_so_far(context: &Context<'_>) -> Result<CandidateGroups, WorkerPanic> {
    let count = context.candidates.group_count();
    let workers = context.options.workers.min(count / GROUPS).max(1);
    let cursor = Cursor::new(count, workers);
    let parts = bc_pool::run(workers, |_| {
        let mut splitter = Splitter::new(context);
        while let Some(batch) = cursor.next() {
            batch.for_each(|group| splitter.split_so_far(context.candidates.group(group)));
        }
        splitter.found
    })?;
    Ok(parts
        .into_iter()
        .reduce(|mut all, part| {
            part.lists().for_each(|group| all.push(group));
            all
        })
        .unwrap_or_default())
}

/// Files that are equal by their whole digests. No digest, no group.
pub(crate) fn equal(context: &Context<'_>, so_far: &CandidateGroups) -> CandidateGroups {
    let table = &context.table;
    let mut splitter = Splitter::new(context);
    for group in so_far.lists() {
        let whole = |one: &u32| table.has_whole(*one) && !table.failed(*one);
        let members = group.iter().copied().filter(whole);
        splitter.split(members, |one| table.whole(one));
    }
    splitter.found
}

/// Tells files of one size apart.
struct Splitter<'a> {
    context: &'a Context<'a>,
    found: CandidateGroups,
    /// Kept from one group to the next for their memory.
    rows: Vec<(u32, TableRow)>,
    heads: Vec<(u64, u32)>,
    alike: Vec<u32>,
}

impl<'a> Splitter<'a> {
    fn new(context: &'a Context<'a>) -> Splitter<'a> {
        Splitter {
            context,
            found: CandidateGroups::default(),
            rows: Vec::new(),
            heads: Vec::new(),
            alike: Vec::new(),
        }
    }

    /// Adds the groups within a size group, by whole digests or else by fast hashes.
    fn split_so_far(&mut self, group: Range<u32>) {
        let table = &self.context.table;
        self.rows.clear();
        // To find a row is a wait for memory: once for each.
        let rows = group.map(|one| (one, table.row(one)));
        self.rows
            .extend(rows.filter(|(_, row)| !table.knows(*row).failed()));
        self.heads.clear();
        if self.rows.iter().all(|(_, row)| table.knows(*row).whole()) {
            let heads = self
                .rows
                .iter()
                .map(|(one, row)| (table.whole_in(*row)[0], *one));
            self.heads.extend(heads);
            self.split_heads(|one| table.whole(one));
        } else {
            // Nothing is known of files that a cancelled run did not come to.
            let known = self.rows.iter().filter(|(_, row)| table.knows(*row).fast());
            self.heads
                .extend(known.map(|(one, row)| (table.fast_in(*row), *one)));
            self.split_heads(|one| [table.fast(one), 0, 0, 0]);
        }
    }

    /// Adds the groups among `members` that have the same key.
    fn split(&mut self, members: impl Iterator<Item = u32>, key: impl Fn(u32) -> [u64; 4]) {
        self.heads.clear();
        // The keys are far apart in memory: fetched once, not at each comparison.
        self.heads.extend(members.map(|one| (key(one)[0], one)));
        self.split_heads(key);
    }

    /// Adds such groups among the heads, which have the first words of their keys.
    fn split_heads(&mut self, key: impl Fn(u32) -> [u64; 4]) {
        self.heads.sort_unstable();
        let least = match self.context.options.hard_links {
            HardLinks::OneFile => 2,
            HardLinks::Duplicates => 1,
        };
        let runs = self.heads.chunk_by(|a, b| a.0 == b.0);
        for run in runs.filter(|run| run.len() >= least) {
            self.alike.clear();
            self.alike.extend(run.iter().map(|(_, one)| *one));
            // As good as always equal to the end.
            self.alike.sort_by_key(|one| key(*one));
            for group in self.alike.chunk_by(|a, b| key(*a) == key(*b)) {
                if worth(self.context, group) {
                    self.found.push(group);
                }
            }
        }
    }
}

/// Result of a search; some bytes a file, paths on demand.
#[derive(Debug)]
pub struct Scan {
    /// Files that could not be judged, in path order.
    pub errors: Vec<Error>,
    /// Figures.
    pub stats: ScanStats,
    hard_links: HardLinks,
    cancelled: bool,
    /// Entries of the listing that was searched.
    pub(crate) entries: usize,
    groups: Vec<GroupSummary>,
    /// Digests of the groups, one after the other.
    digests: Vec<u8>,
    members: Vec<Member>,
    candidates: Candidates,
    references: Marks,
    /// All names of files that could not be judged, in path order.
    pub(crate) failed: Vec<EntryId>,
}

#[derive(Debug)]
struct GroupSummary {
    /// End of its members in the array of all.
    end: u32,
    size: u64,
    wasted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    candidate: u32,
    /// Blocks of 512 bytes that removing its listed names would free by itself.
    own: u32,
}

/// Files with equal content.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// Bytes of each.
    pub size: u64,
    /// Digest of the content.
    pub digest: Digest,
    /// Bytes of disk that giving up all but one file can free: extents that several of them share
    /// count once; those of a reference's file or of one that has names elsewhere do not count, nor
    /// extents that files elsewhere share.
    pub wasted: u64,
    members: &'a [Member],
    scan: &'a Scan,
}

/// One physical file of a group.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its names in path order; at least one.
    pub names: &'a [EntryId],
    /// Bytes of disk that removing all these names would free; none for a reference's file.
    pub own: u64,
}

impl Scan {
    /// Largest waste first, ties by first path.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Group<'_>> {
        (0..self.groups.len()).map(|index| {
            let start = index
                .checked_sub(1)
                .map_or(0, |before| self.groups[before].end);
            let summary = &self.groups[index];
            let len = self.digests.len() / self.groups.len();
            Group {
                size: summary.size,
                digest: Digest::new(&self.digests[index * len..][..len]),
                wasted: summary.wasted,
                members: &self.members[start as usize..summary.end as usize],
                scan: self,
            }
        })
    }

    /// Returns true if the search was cancelled: then files may be missing in groups, and whole
    /// groups too.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Returns true if an entry of the listing that was searched is a reference's.
    pub(crate) fn is_reference(&self, listing: &Listing, entry: EntryId) -> bool {
        self.references.contains(listing, entry)
    }

    /// Returns true if a directory of that listing is a reference, or lies in one.
    pub fn is_reference_dir(&self, dir: DirId) -> bool {
        self.references.contains_dir(dir)
    }

    /// Files that could be given up: all of each group but one. Hard links
    /// count where they were asked for.
    pub fn duplicates(&self) -> u64 {
        let count = |group: Group<'_>| match self.hard_links {
            HardLinks::OneFile => group.members.len(),
            HardLinks::Duplicates => group.files().map(|file| file.names.len()).sum(),
        };
        self.groups().map(|group| count(group) as u64 - 1).sum()
    }

    /// Bytes of disk that would be freed.
    pub fn wasted(&self) -> u64 {
        self.groups.iter().map(|group| group.wasted).sum()
    }
}

impl<'a> Group<'a> {
    /// The files; those under reference roots first, then in path order.
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'a>> + use<'a> {
        let candidates = &self.scan.candidates;
        self.members.iter().map(|member| File {
            names: candidates.names(member.candidate),
            own: u64::from(member.own) * 512,
        })
    }
}

/// Puts groups and their files in order. Gives a function that takes over the
/// candidates, which the context borrows until then.
pub(crate) fn finish(
    context: &Context<'_>,
    found: &CandidateGroups,
    failures: Vec<(EntryId, Error)>,
    stats: ScanStats,
) -> impl FnOnce(Candidates, Marks) -> Scan + use<> {
    let (listing, candidates) = (context.listing, context.candidates);
    let reference = |member: &Member| {
        let references = &context.references;
        let mut names = candidates.names(member.candidate).iter();
        !references.is_empty() && names.any(|name| references.contains(listing, *name))
    };
    // Sort keys, with the start of each group's members in `found` and their number.
    let mut order: Vec<(u64, EntryId, u32, u32)> = Vec::with_capacity(found.len());
    let mut all: Vec<Member> = Vec::with_capacity(found.items().len());
    for group in found.lists() {
        let start = all.len();
        let stays: Vec<bool> = group.iter().map(|one| stays(context, *one)).collect();
        let wasted = wasted(context, group, &stays);
        all.extend(group.iter().zip(stays).map(|(one, stays)| Member {
            candidate: *one,
            own: if stays { 0 } else { context.table.blocks(*one) },
        }));
        let members = &mut all[start..];
        members.sort_unstable_by_key(|member| {
            (!reference(member), candidates.entry(member.candidate))
        });
        let first = members
            .iter()
            .map(|member| candidates.entry(member.candidate))
            .min();
        order.push((
            wasted,
            first.unwrap_or(EntryId(0)),
            start as u32,
            members.len() as u32,
        ));
    }
    order.sort_unstable_by_key(|group| (std::cmp::Reverse(group.0), group.1));
    let mut members = Vec::with_capacity(all.len());
    let mut digests = Vec::with_capacity(order.len() * context.options.algorithm.digest_len());
    let groups = order
        .into_iter()
        .map(|(wasted, _, start, len)| {
            let group = &all[start as usize..(start + len) as usize];
            members.extend_from_slice(group);
            digests.extend_from_slice(context.table.digest(group[0].candidate).as_bytes());
            GroupSummary {
                end: members.len() as u32,
                size: context.size(group[0].candidate),
                wasted,
            }
        })
        .collect();
    let hard_links = context.options.hard_links;
    let cancelled = context.cancel.is_cancelled();
    let entries = listing.len();
    let mut failed = Vec::new();
    for (entry, _) in &failures {
        let candidate = context.table.candidate(context.table.opened_by(*entry));
        failed.extend_from_slice(candidates.names(candidate));
    }
    failed.sort_unstable();
    let errors = failures.into_iter().map(|(_, error)| error).collect();
    move |candidates, references| Scan {
        references,
        errors,
        stats,
        hard_links,
        cancelled,
        entries,
        groups,
        digests,
        members,
        candidates,
        failed,
    }
}

/// Returns true if a file stays although all its listed names but a reference's are given up:
/// because it has others, or is a reference's.
fn stays(context: &Context<'_>, candidate: u32) -> bool {
    let names = context.candidates.names(candidate);
    let nlink = context.listing.meta(names[0]).map_or(0, |meta| meta.nlink);
    let references = &context.references;
    let reference = |name: &EntryId| references.contains(context.listing, *name);
    nlink > names.len() as u64 || !references.is_empty() && names.iter().any(reference)
}

/// Bytes that are freed if all files go that can, but for the one that costs least to keep.
fn wasted(context: &Context<'_>, group: &[u32], stays: &[bool]) -> u64 {
    let own = |nth: usize| u64::from(context.table.blocks(group[nth])) * 512;
    let go = || (0..group.len()).filter(|nth| !stays[*nth]);
    if context.extents.is_empty() {
        let all: u64 = go().map(own).sum();
        let least = || go().map(own).min().unwrap_or(0);
        return all - if stays.contains(&true) { 0 } else { least() };
    }
    context.extents.with_shared(group, |spaces| {
        let mut shares = Shares::of(spaces.iter().copied());
        let all: u64 = go().map(|nth| own(nth) + shares.take(nth)).sum();
        let kept = match stays.contains(&true) {
            true => 0,
            false => go()
                .map(|nth| own(nth) + shares.held_by(nth))
                .min()
                .unwrap_or(0),
        };
        all - kept
    })
}
