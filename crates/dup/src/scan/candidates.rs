//! Pass one: which files have the size of another. Nothing is opened.
//!
//! Names of one (device, inode) are one physical file from here on, called a
//! candidate and numbered; all later state is in arrays by that number.

use bc_walk::{EntryId, Kind, Listing};

use super::{HardLinks, Options, Stats, order};

/// In place of a candidate: an entry that opens none.
pub(crate) const NONE: u32 = u32::MAX;

/// The candidates, grouped by size, largest size first.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Entries; those of one candidate together, the first by path first.
    names: Vec<EntryId>,
    /// Where each candidate's names start; one more at the end.
    starts: Vec<u32>,
    /// Where each size group's candidates start; one more at the end.
    groups: Vec<u32>,
}

impl Candidates {
    pub(crate) fn find(listing: &Listing, options: &Options, stats: &mut Stats) -> Candidates {
        let files: Vec<(u64, EntryId)> = listing
            .ids()
            .filter(|id| listing.kind(*id) == Kind::File)
            .filter_map(|id| Some((listing.meta(id)?.stamp.size, id)))
            .filter(|(size, _)| *size >= options.min_size)
            .collect();
        let by_size = order::by_number(files, |file| file.0);
        // What turns out not to be needed of these is never touched.
        let mut found = Candidates {
            names: Vec::with_capacity(by_size.len()),
            starts: Vec::with_capacity(by_size.len() + 1),
            groups: Vec::new(),
        };
        let mut group = Vec::new();
        for run in by_size.chunk_by(|a, b| a.0 == b.0).rev() {
            if run.len() < 2 {
                stats.files += 1;
                stats.bytes += run[0].0;
                continue;
            }
            group.clear();
            group.extend(
                run.iter()
                    .filter_map(|(_, id)| Some((listing.identity(*id)?, *id))),
            );
            group.sort_unstable();
            let files = group.chunk_by(|a, b| a.0 == b.0).count();
            stats.files += files as u64;
            stats.bytes += run[0].0 * files as u64;
            if files < 2 && options.hard_links == HardLinks::OneFile {
                continue;
            }
            found.groups.push(found.starts.len() as u32);
            for file in group.chunk_by(|a, b| a.0 == b.0) {
                found.starts.push(found.names.len() as u32);
                found.names.extend(file.iter().map(|(_, id)| *id));
            }
        }
        found.groups.push(found.starts.len() as u32);
        stats.size_candidates = found.starts.len() as u64;
        found.starts.push(found.names.len() as u32);
        found.names.shrink_to_fit();
        found.starts.shrink_to_fit();
        found.groups.shrink_to_fit();
        found
    }

    /// How many candidates there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// All names of a candidate, the first by path first.
    pub(crate) fn names(&self, candidate: u32) -> &[EntryId] {
        let at = candidate as usize;
        &self.names[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The name by which a candidate is opened.
    pub(crate) fn entry(&self, candidate: u32) -> EntryId {
        self.names[self.starts[candidate as usize] as usize]
    }

    /// The candidate that each of a listing's `len` entries opens, or [`NONE`].
    pub(crate) fn by_entry(&self, len: usize) -> Vec<u32> {
        let mut by_entry = vec![NONE; len];
        for (candidate, start) in (0..).zip(&self.starts[..self.len()]) {
            by_entry[self.names[*start as usize].0 as usize] = candidate;
        }
        by_entry
    }

    /// The size groups, as ranges of candidates.
    pub(crate) fn groups(&self) -> impl Iterator<Item = std::ops::Range<u32>> + '_ {
        self.groups.windows(2).map(|pair| pair[0]..pair[1])
    }
}
