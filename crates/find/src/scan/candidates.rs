//! Pass one: which files have the size of another. Nothing is opened.
//!
//! Names of one (device, inode) are one physical file from here on, called a
//! candidate and numbered; all later state is in arrays by that number.

use std::cmp::Reverse;
use std::ops::Range;

use bc_walk::{EntryId, FileKind, Listing};

use super::{HardLinks, ScanOptions, ScanStats};
use crate::subtrees::Marks;

/// The candidates, grouped by size, largest size first.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Entries; those of one candidate together, the first by path first.
    names: Vec<EntryId>,
    /// Start of each candidate's names; one more at the end. Empty where each has one name, as in
    /// most trees.
    starts: Vec<u32>,
    /// Start of each size group's candidates; one more at the end.
    groups: Vec<u32>,
}

impl Candidates {
    /// Finds the files that share their size with others. Left out are sizes that only references'
    /// files have, as a group must contain another file.
    pub(crate) fn find(
        listing: &Listing,
        references: &Marks,
        options: &ScanOptions,
        stats: &mut ScanStats,
    ) -> Candidates {
        let by_size = by_size(listing, options.min_size);
        // All at once: in order of sizes each is a wait for memory, and here many wait together.
        let mut inodes: Vec<u64> = by_size
            .iter()
            .map(|file| listing.inode_hint(file.entry()))
            .collect();
        let mut inodes = &mut inodes[..];
        // Memory that turns out not to be needed of these is never touched.
        let mut found = Candidates {
            names: Vec::with_capacity(by_size.len()),
            starts: Vec::new(),
            groups: Vec::new(),
        };
        let mut group = Vec::new();
        for run in by_size.chunk_by(|a, b| a.size(listing) == b.size(listing)) {
            let size = run[0].size(listing);
            let numbers;
            (numbers, inodes) = inodes.split_at_mut(run.len());
            if run.len() < 2 {
                stats.files += 1;
                stats.bytes += size;
                continue;
            }
            let reference = |file: &BySize| references.contains(listing, file.entry());
            let counts = references.is_empty() || !run.iter().all(reference);
            group.clear();
            group.extend(run.iter().map(|file| file.entry()));
            let repeats = may_repeat(numbers);
            if repeats {
                group.sort_by_cached_key(|name| listing.identity(*name));
            }
            let same =
                |a: &EntryId, b: &EntryId| repeats && listing.identity(*a) == listing.identity(*b);
            let files = group.chunk_by(same).count();
            stats.files += files as u64;
            stats.bytes += size * files as u64;
            if !counts || files < 2 && options.hard_links == HardLinks::OneFile {
                continue;
            }
            found.groups.push(found.len() as u32);
            if repeats {
                group.chunk_by(same).for_each(|file| found.push(file));
            } else {
                group.iter().for_each(|name| found.push(&[*name]));
            }
        }
        found.groups.push(found.len() as u32);
        stats.size_candidates = found.len() as u64;
        found.names.shrink_to_fit();
        found.starts.shrink_to_fit();
        found.groups.shrink_to_fit();
        found
    }

    /// Adds a candidate with these names.
    fn push(&mut self, names: &[EntryId]) {
        if names.len() > 1 && self.starts.is_empty() {
            // So far each had one.
            self.starts.extend(0..=self.names.len() as u32);
        }
        self.names.extend_from_slice(names);
        if !self.starts.is_empty() {
            self.starts.push(self.names.len() as u32);
        }
    }

    /// Returns the number of candidates.
    pub(crate) fn len(&self) -> usize {
        match self.starts.len() {
            0 => self.names.len(),
            starts => starts - 1,
        }
    }

    /// All names of a candidate, the first by path first.
    pub(crate) fn names(&self, candidate: u32) -> &[EntryId] {
        let at = candidate as usize;
        match self.starts.get(at..at + 2) {
            Some(ends) => &self.names[ends[0] as usize..ends[1] as usize],
            None => &self.names[at..=at],
        }
    }

    /// The name by which a candidate is opened.
    pub(crate) fn entry(&self, candidate: u32) -> EntryId {
        let at = candidate as usize;
        self.names[self.starts.get(at).map_or(at, |start| *start as usize)]
    }

    /// Returns the number of size groups.
    pub(crate) fn group_count(&self) -> usize {
        self.groups.len() - 1
    }

    /// A size group, as a range of candidates.
    pub(crate) fn group(&self, at: usize) -> Range<u32> {
        self.groups[at]..self.groups[at + 1]
    }

    /// The size groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        (0..self.group_count()).map(|at| self.group(at))
    }
}

/// Returns true if one file can be among these under several names. A few are all compared with
/// each other, which takes less time than sorting them; more are sorted, in place.
fn may_repeat(inodes: &mut [u64]) -> bool {
    const FEW: usize = 32;
    if inodes.len() <= FEW {
        let repeats = |at: usize| inodes[..at].contains(&inodes[at]);
        return (1..inodes.len()).any(repeats);
    }
    inodes.sort_unstable();
    inodes.windows(2).any(|pair| pair[0] == pair[1])
}

/// A size and an entry in one number, which sorts by size, largest first, then
/// by path: in half the memory and half the time of the two beside each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct BySize(u64);

impl BySize {
    /// Size that the upper half counts down from. Larger sizes are looked up.
    const MOST: u64 = u32::MAX as u64;

    fn new(size: u64, EntryId(entry): EntryId) -> BySize {
        BySize((BySize::MOST - size.min(BySize::MOST)) << 32 | u64::from(entry))
    }

    fn entry(self) -> EntryId {
        EntryId(self.0 as u32)
    }

    fn is_large(self) -> bool {
        self.0 >> 32 == 0
    }

    fn size(self, listing: &Listing) -> u64 {
        if self.is_large() {
            listing.size(self.entry()).unwrap_or(BySize::MOST)
        } else {
            BySize::MOST - (self.0 >> 32)
        }
    }
}

/// All files of at least `min_size`, largest first, those of one size by path.
fn by_size(listing: &Listing, min_size: u64) -> Vec<BySize> {
    let mut files = Vec::with_capacity(listing.len());
    for entry in listing
        .ids()
        .filter(|id| listing.kind(*id) == FileKind::File)
    {
        let size = listing.size(entry).filter(|size| *size >= min_size);
        files.extend(size.map(|size| BySize::new(size, entry)));
    }
    files.sort_unstable();
    let large = files.partition_point(|file| file.is_large());
    files[..large].sort_by_key(|file| Reverse(file.size(listing)));
    files
}
