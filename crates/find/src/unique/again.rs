//! A last look at everything that an answer rests on: files that were written or added during the
//! search were not searched.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bc_fs::meta;
use bc_fs::mount::{Inodes, Mounts};
use bc_pool::WorkerPanic;
use bc_walk::{DirFdCache, DirId, EntryId, Error, ErrorKind, FileKind, Listing};

use super::Unique;
use super::contents::Presence;

/// Files that a worker takes at once: mostly those of a few directories, each opened once.
const PIECE: usize = 256;

impl Unique {
    /// Compares the result with the trees as they are now, `again` being a new walk of the same
    /// roots with the same options but for the metadata, which it need not have. Changed and new
    /// entries are reported in [`errors`](Unique::errors), and a content whose file or reference
    /// copy changed is no longer known to be elsewhere. An unchanged file that is nowhere else is
    /// not looked at: that would not show where else it is.
    ///
    /// # Errors
    /// If one of the `workers` panicked.
    pub fn look_again(&mut self, again: &Listing, workers: usize) -> Result<(), WorkerPanic> {
        let mut seen = LastLook::default();
        seen.compare(&self.listing, self.own_entries, again);
        let known: HashSet<&[u8]> = self.listing.errors().iter().map(Error::path).collect();
        let new = again.errors().iter();
        let new = new.filter(|error| !known.contains(error.path()));
        seen.errors.extend(new.cloned());
        for entry in changed_files(&self.listing, &self.rests_on(&seen), workers)? {
            seen.note(&self.listing, entry);
        }
        let reference_copies: HashMap<EntryId, EntryId> = self.relied.iter().copied().collect();
        for (row, names) in self.contents.rows_mut() {
            if row.presence == Presence::Another {
                // The others may rest on each of them.
                for name in names {
                    if seen.gone.contains(name) {
                        seen.note(&self.listing, *name);
                    }
                }
            }
            let mut rests_on = names.iter().chain(reference_copies.get(&names[0]));
            if rests_on.any(|name| seen.changed.contains(name)) {
                row.presence = Presence::Unread;
            }
        }
        // What the paths lead to is held open: it may be another disk by now.
        self.errors.extend(self.own.check().err());
        self.unseen = again.skipped().clone();
        self.errors.extend(seen.errors);
        Ok(())
    }

    /// Returns the files that the answer rests on, in path order: files of the trees that are
    /// reported as elsewhere or empty and are still where they were, and the reference copies.
    fn rests_on(&self, seen: &LastLook) -> Vec<EntryId> {
        let mut asked = vec![true; self.listing.len()];
        asked[self.own_entries..].fill(false);
        for content in self.contents() {
            if matches!(content.presence, Presence::Nowhere | Presence::Unread) {
                for name in content.names {
                    asked[name.0 as usize] = false;
                }
            }
        }
        for entry in seen.changed.iter().chain(&seen.gone) {
            asked[entry.0 as usize] = false;
        }
        for (_, reference_copy) in &self.relied {
            asked[reference_copy.0 as usize] = true;
        }
        let is_asked = |entry: &EntryId| {
            asked[entry.0 as usize] && self.listing.kind(*entry) == FileKind::File
        };
        self.listing.ids().filter(is_asked).collect()
    }
}

/// Result of the last look.
#[derive(Default)]
struct LastLook {
    errors: Vec<Error>,
    /// Files that are not as they were read.
    changed: HashSet<EntryId>,
    /// Entries of the trees that have no name any more: nothing there can be lost.
    gone: HashSet<EntryId>,
    mounts: Mounts,
    /// The two directories that were compared last, and whether they are two.
    judged: Option<((DirId, DirId), bool)>,
}

impl LastLook {
    /// Both are in one order, that of a walk; mostly nothing changed, and the two go side by side.
    fn compare(&mut self, was: &Listing, own: usize, again: &Listing) {
        let (mut left, mut now) = (was.ids().take(own), again.ids());
        let (mut one, mut other) = (left.next(), now.next());
        // Two directories of one path, so that their entries are compared by name.
        let mut same: Option<(DirId, DirId)> = None;
        while let (Some(entry), Some(found)) = (one, other) {
            let dirs = (was.dir(entry), again.dir(found));
            let is_same = match same == Some(dirs) {
                true => was.name(entry) == again.name(found),
                false => was.path(entry) == again.path(found),
            };
            if !is_same {
                break;
            }
            if was.name(entry) == again.name(found) {
                same = Some(dirs);
            }
            self.note_kinds(was, entry, again, found);
            (one, other) = (left.next(), now.next());
        }
        let rest = one.into_iter().chain(left);
        let mut before: HashMap<_, _> = rest.map(|entry| (was.path(entry), entry)).collect();
        for found in other.into_iter().chain(now) {
            let path = again.path(found);
            match before.remove(&path) {
                Some(entry) => self.note_kinds(was, entry, again, found),
                // The entries of a new directory are reported themselves.
                None if again.kind(found) == FileKind::Dir => {}
                None => {
                    let text = "came to be there meanwhile";
                    self.errors.push(Error::with_message(path, "search", text));
                }
            }
        }
        self.gone = before.into_values().collect();
    }

    fn note_kinds(&mut self, was: &Listing, entry: EntryId, again: &Listing, found: EntryId) {
        if was.kind(entry) != again.kind(found)
            || self.are_others(was, was.dir(entry), again, again.dir(found))
        {
            self.note(was, entry);
        }
    }

    /// True if two directories of one path are two directories.
    fn are_others(&mut self, was: &Listing, dir: DirId, again: &Listing, now: DirId) -> bool {
        let dirs = (dir, now);
        if let Some((_, are_others)) = self.judged.filter(|(known, _)| *known == dirs) {
            return are_others;
        }
        let are_others = match (was.dir_identity(dir), again.dir_identity(now)) {
            (Some(one), Some(other)) if one.dev != other.dev => true,
            (Some(one), Some(other)) if one != other => {
                let open = || again.open_dir(now).ok();
                // Elsewhere one directory may have another number when it is met again.
                self.mounts.of(other.dev, open).inodes == Inodes::Stable
            }
            _ => false,
        };
        self.judged = Some((dirs, are_others));
        are_others
    }

    fn note(&mut self, listing: &Listing, entry: EntryId) {
        let path = listing.path(entry);
        self.errors
            .push(Error::of_kind(path, "read", ErrorKind::Changed));
        self.changed.insert(entry);
    }
}

/// Returns the files that have changed since they were listed, in the same order.
fn changed_files(
    listing: &Listing,
    files: &[EntryId],
    workers: usize,
) -> Result<Vec<EntryId>, WorkerPanic> {
    let is_changed = |dirs: &mut DirFdCache<'_>, entry: EntryId| {
        let dir = dirs.open(listing.dir(entry)).ok();
        let now = dir.and_then(|at| {
            let name = listing.name(entry);
            match listing.follow(entry) {
                true => meta::stat_through(at, name).ok(),
                false => meta::stat_at(at, name).ok(),
            }
        });
        let now = now.map(|stat| stat.stamp);
        now.is_none() || now != listing.meta(entry).map(|meta| meta.stamp)
    };
    let begin = || DirFdCache::new(listing);
    let find = |dirs: &mut DirFdCache<'_>, piece: Range<usize>| -> Vec<EntryId> {
        let files = files[piece].iter().copied();
        files.filter(|entry| is_changed(dirs, *entry)).collect()
    };
    let found = bc_pool::ordered(workers, files.len(), PIECE, begin, find)?;
    let mut changed: Vec<EntryId> = found.into_iter().flatten().collect();
    changed.sort_unstable();
    Ok(changed)
}

#[cfg(test)]
mod tests;
