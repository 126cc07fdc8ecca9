//! What this run has given names. Some destinations take two names of a source for one: where case
//! does not count, or where a directory is mounted a second time. There a later entry would take
//! the place of an earlier one, of which was said that it was copied.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bc_fs::Escaped;
use bc_walk::{Error, FileStat, Identity};
use rustix::fs::AtFlags;
use rustix::io::{Errno, retry_on_intr};

use crate::event::Event;
use crate::job::Job;
use crate::options::OnConflict;
use crate::place::Place;
use crate::stage::{self, Over};
use crate::tree::Item;

/// The entries that have their names.
pub(crate) struct Named {
    /// Whether anything may be taken over at all: else no name is given twice.
    is_kept: bool,
    hashes: RandomState,
    maps: Mutex<Maps>,
    /// Held by whoever looks whether a name is free and takes it by two calls.
    pub(crate) alone: Mutex<()>,
}

/// The first two of the entries whose paths differ in case alone: one of them is another one.
type Firsts = [Option<Item>; 2];

#[derive(Default)]
struct Maps {
    /// By what their names lead to.
    files: HashMap<Identity, Item>,
    /// By their paths without regard to case, as hashes: where case does not count a file need not
    /// have the same number under both names.
    paths: HashMap<u64, Firsts>,
}

impl Named {
    pub(crate) fn new(on_conflict: OnConflict, goes_on: bool) -> Named {
        let is_kept = goes_on || !matches!(on_conflict, OnConflict::Fail | OnConflict::Skip);
        Named {
            is_kept,
            hashes: RandomState::new(),
            maps: Mutex::default(),
            alone: Mutex::default(),
        }
    }

    /// Takes down that a name keeps what it leads to.
    pub(crate) fn keep(&self, place: &Place, there: &FileStat) {
        if self.is_kept {
            // Of a file with several names that are not this run's each may be taken over alone.
            let id = (there.nlink == 1).then_some(there.id);
            self.add(&mut self.lock(), place, id);
        }
    }

    fn add(&self, maps: &mut Maps, place: &Place, id: Option<Identity>) {
        maps.files.extend(id.map(|id| (id, place.item)));
        let firsts = maps.paths.entry(self.hash(&place.target)).or_default();
        match firsts {
            [Some(first), second @ None] if *first != place.item => *second = Some(place.item),
            [first @ None, _] => *first = Some(place.item),
            _ => {}
        }
    }

    fn hash(&self, path: &[u8]) -> u64 {
        self.hashes.hash_one(folded(path))
    }

    fn lock(&self) -> MutexGuard<'_, Maps> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Job<'_> {
    /// Gives a stage, or a link to what has another name, its name; the caller removes it
    /// otherwise.
    pub(crate) fn publish(&self, place: &Place, stage: &str) -> Result<(), Error> {
        let (dir, name, alone) = (place.dir.fd.as_fd(), place.name(), &self.named.alone);
        let refused = |op, errno| self.refused(&place.target, op, errno);
        let give = || {
            let given = stage::publish(dir, stage, name, place.over, Some(alone));
            given.map_err(|errno| refused("rename", errno))
        };
        if !self.named.is_kept {
            return give();
        }
        let id = id_of(place, stage.as_bytes()).map_err(|errno| refused("stat", errno))?;
        let mut maps = self.named.lock();
        if place.over == Over::Nothing {
            // Before it has its name, so that nobody meets it there and does not know it.
            self.named.add(&mut maps, place, Some(id));
            drop(maps);
            return give().map_err(|error| self.or_taken(place, stage, error));
        }
        // Nobody else gives a name between this look and the renaming.
        match self.other_there(&maps, place, stage) {
            Ok(None) => {}
            Ok(Some(first)) => {
                drop(maps);
                return Err(self.taken_by(place, first));
            }
            Err(errno) => return Err(refused("stat", errno)),
        }
        give()?;
        self.named.add(&mut maps, place, Some(id));
        Ok(())
    }

    /// The failure of a name that was taken since it was found free: perhaps by another entry.
    fn or_taken(&self, place: &Place, stage: &str, error: Error) -> Error {
        let is_taken = error.errno() == Some(Errno::EXIST.raw_os_error());
        let maps = self.named.lock();
        let first = is_taken.then(|| self.other_there(&maps, place, stage));
        drop(maps);
        match first {
            Some(Ok(Some(first))) => self.taken_by(place, first),
            _ => error,
        }
    }

    /// The other entry that has become what has the name of a place.
    fn other_there(&self, maps: &Maps, place: &Place, stage: &str) -> Result<Option<Item>, Errno> {
        let there = match id_of(place, place.name()) {
            Err(Errno::NOENT) => return Ok(None),
            there => there?,
        };
        let is_other = |item: &&Item| **item != place.item;
        let same = maps.files.get(&there).filter(is_other);
        let alike = || {
            let paths = maps.paths.get(&self.named.hash(&place.target));
            let others = paths.into_iter().flatten().flatten();
            let mut others = others.filter(is_other);
            // The stage tells whether case counts here.
            let other = others.next()?;
            let is_one = id_of(place, stage.to_uppercase().as_bytes()).is_ok();
            is_one.then_some(other)
        };
        Ok(same.or_else(alike).copied())
    }

    /// The failure of a name that leads to what another entry has become.
    fn taken_by(&self, place: &Place, first: Item) -> Error {
        let mut target = Vec::new();
        self.tree.write_target(first, &mut target);
        let (first, second) = (self.shown(&target), self.shown(&place.target));
        let text = format!(
            "{}: is the same as {} at the destination: what was copied there stays",
            Escaped(&second),
            Escaped(&first)
        );
        (self.observer)(Event::Warning(&text));
        let text = "another source has the same name at the destination";
        Error::with_message(second, "rename", text)
    }
}

/// What a name in the directory of a place leads to.
fn id_of(place: &Place, name: &[u8]) -> Result<Identity, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let stat = retry_on_intr(|| rustix::fs::statat(&place.dir.fd, name, flags))?;
    Ok(FileStat::from(&stat).id)
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
