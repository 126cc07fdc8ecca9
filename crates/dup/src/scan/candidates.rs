//! Who is read at all: files that share their size with another file.

use std::collections::HashMap;
use std::ops::Range;

use bc_walk::{EntryId, Identity, Kind, Listing, Meta};

use super::{HardLinks, Options, Stats};

/// Index of a candidate.
pub(super) type Index = usize;

/// Physical files in classes of one size, each class in path order.
pub(super) struct Candidates {
    /// First name of each file.
    entries: Vec<EntryId>,
    /// Where each class begins, and the end.
    bounds: Vec<u32>,
    /// Further names of those files that have them, by first name.
    names: HashMap<EntryId, Vec<EntryId>>,
}

impl Candidates {
    pub(super) fn by_size(listing: &Listing, options: &Options, stats: &mut Stats) -> Candidates {
        let mut sized: Vec<(u64, EntryId)> = listing
            .ids()
            .filter(|id| listing.kind(*id) == Kind::File)
            .map(|id| (meta(listing, id).stamp.size, id))
            .filter(|(size, _)| *size >= options.min_size)
            .collect();
        sized.sort_unstable();
        let mut all = Candidates {
            entries: Vec::new(),
            bounds: vec![0],
            names: HashMap::new(),
        };
        for class in sized.chunk_by(|a, b| a.0 == b.0) {
            let from = all.entries.len();
            all.add_files(listing, class);
            let files = all.entries.len() - from;
            stats.files += files as u64;
            stats.bytes += class[0].0 * files as u64;
            let several_names = all.entries[from..]
                .iter()
                .any(|id| all.names.contains_key(id));
            let linked = options.hard_links == HardLinks::Duplicates && several_names;
            if files > 1 || linked {
                all.bounds.push(all.entries.len() as u32);
            } else {
                if several_names {
                    all.names.remove(&all.entries[from]);
                }
                all.entries.truncate(from);
            }
        }
        stats.size_candidates = all.entries.len() as u64;
        all.entries.shrink_to_fit();
        all
    }

    /// Adds the files of one size; names of one inode become one file.
    fn add_files(&mut self, listing: &Listing, class: &[(u64, EntryId)]) {
        let mut inodes: HashMap<Identity, EntryId> = HashMap::new();
        for &(_, id) in class {
            let meta = meta(listing, id);
            if meta.nlink > 1 && class.len() > 1 {
                if let Some(first) = inodes.get(&meta.id) {
                    self.names.entry(*first).or_default().push(id);
                    continue;
                }
                inodes.insert(meta.id, id);
            }
            self.entries.push(id);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, index: Index) -> EntryId {
        self.entries[index]
    }

    pub(super) fn entries(&self) -> &[EntryId] {
        &self.entries
    }

    /// The classes of one size.
    pub(super) fn classes(&self) -> impl ExactSizeIterator<Item = Range<Index>> {
        self.bounds
            .windows(2)
            .map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// All names of a candidate in path order.
    pub(super) fn names(&self, index: Index) -> Vec<EntryId> {
        let first = self.entries[index];
        let more = self.names.get(&first).map_or(&[][..], Vec::as_slice);
        std::iter::once(first).chain(more.iter().copied()).collect()
    }
}

/// What the walk found out about an entry.
pub(super) fn meta(listing: &Listing, id: EntryId) -> Meta {
    listing.meta(id).expect("the walk has to collect metadata")
}
