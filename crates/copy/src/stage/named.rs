//! Files that this run has given names. Some destinations treat two names of a source as one: where
//! case does not count, or where a directory is mounted a second time. There a later entry would
//! replace an earlier one that was reported as copied.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};

use bc_walk::{FileStat, Identity};

use crate::lock;
use crate::options::OnConflict;
use crate::place::EntryPlace;
use crate::sources::RootItem;

/// The entries that have their names.
pub(crate) struct NamedEntries {
    /// True if files may be replaced at all: else no name is given twice.
    pub(crate) is_kept: bool,
    hashes: RandomState,
    maps: Mutex<Maps>,
}

/// First two of the entries whose paths differ in case alone, so that one differs from any entry.
type Firsts = [Option<RootItem>; 2];

#[derive(Default)]
pub(crate) struct Maps {
    /// Entries by the files that their names lead to.
    pub(crate) files: HashMap<Identity, RootItem>,
    /// Entries by hashes of their paths without regard to case: where case does not count a file
    /// need not have the same number under both names.
    paths: HashMap<u64, Firsts>,
}

impl NamedEntries {
    pub(crate) fn new(on_conflict: OnConflict, goes_on: bool) -> NamedEntries {
        let is_kept = goes_on || !matches!(on_conflict, OnConflict::Fail | OnConflict::Skip);
        NamedEntries {
            is_kept,
            hashes: RandomState::new(),
            maps: Mutex::default(),
        }
    }

    /// Records that a name keeps the file that it leads to.
    pub(crate) fn keep(&self, place: &EntryPlace, there: &FileStat) {
        if self.is_kept {
            // Each name of a file with several names that are not this run's may be replaced alone.
            let id = (there.nlink == 1).then_some(there.id);
            self.add(&mut self.lock(), place, id);
        }
    }

    pub(crate) fn add(&self, maps: &mut Maps, place: &EntryPlace, id: Option<Identity>) {
        maps.files.extend(id.map(|id| (id, place.item)));
        let firsts = maps.paths.entry(self.hash(&place.target)).or_default();
        match firsts {
            [Some(first), second @ None] if *first != place.item => *second = Some(place.item),
            [first @ None, _] => *first = Some(place.item),
            _ => {}
        }
    }

    /// Forgets a name that was not given after all.
    pub(crate) fn forget(&self, place: &EntryPlace, id: Identity) {
        let mut maps = self.lock();
        if maps.files.get(&id) == Some(&place.item) {
            maps.files.remove(&id);
        }
        if let Some(firsts) = maps.paths.get_mut(&self.hash(&place.target)) {
            for first in firsts
                .iter_mut()
                .filter(|first| **first == Some(place.item))
            {
                *first = None;
            }
        }
    }

    /// Forgets for which entry a file has its name, and returns that entry: the names of the file are
    /// to be given to another one.
    pub(crate) fn release(&self, id: Identity) -> Option<RootItem> {
        self.lock().files.remove(&id)
    }

    /// Returns the entries whose paths differ from that of a place in case alone, or are it.
    pub(crate) fn alike(&self, maps: &Maps, place: &EntryPlace) -> impl Iterator<Item = RootItem> {
        let found = maps.paths.get(&self.hash(&place.target));
        found.copied().unwrap_or_default().into_iter().flatten()
    }

    fn hash(&self, path: &[u8]) -> u64 {
        self.hashes.hash_one(folded(path))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Maps> {
        lock(&self.maps)
    }
}

/// A path without regard to case.
fn folded(path: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        let upper = chunk.valid().chars().flat_map(char::to_uppercase);
        let lower: String = upper.flat_map(char::to_lowercase).collect();
        folded.extend_from_slice(lower.as_bytes());
        folded.extend_from_slice(chunk.invalid());
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn case_counts_for_nothing() {
        for (one, other) in [
            (&b"a/FILE"[..], &b"A/file"[..]),
            ("\u{c9}t\u{e9}".as_bytes(), "\u{e9}T\u{c9}".as_bytes()),
            ("\u{3c2}".as_bytes(), "\u{3a3}".as_bytes()),
            (b"\xffA\xfe", b"\xffa\xfe"),
        ] {
            assert_eq!(folded(one), folded(other));
        }
        assert_ne!(folded(b"\xff"), folded(b"\xfe"));
        assert_ne!(folded(b"a b"), folded(b"ab"));
    }
}
