//! Files of references that are reference copies: they will still exist when all of the trees is
//! gone.

use bc_edit::names::{is_stage, lasts};
use bc_pool::Cancel;
use bc_walk::{EntryId, Listing};

use crate::aliases::Aliases;
use crate::subtrees::Subtrees;

/// State for distinguishing reference copies from the trees' own files.
pub(super) struct ReferenceCopies<'a> {
    listing: &'a Listing,
    own_entries: usize,
    trees: &'a Subtrees,
    aliases: Aliases<'a>,
    /// Files that may be written to unseen, in order.
    written: &'a [EntryId],
    refused: u64,
    /// The ones among them that would have been reference copies of the content in question.
    met_written: Vec<EntryId>,
    /// The only reference copies of their contents, were they not open for writing.
    missed_written: Vec<EntryId>,
}

impl<'a> ReferenceCopies<'a> {
    pub(super) fn new(
        listing: &'a Listing,
        own_entries: usize,
        trees: &'a Subtrees,
        written: &'a [EntryId],
        cancel: &'a Cancel,
    ) -> ReferenceCopies<'a> {
        ReferenceCopies {
            listing,
            own_entries,
            trees,
            aliases: Aliases::new(trees, cancel),
            written,
            refused: 0,
            met_written: Vec::new(),
            missed_written: Vec::new(),
        }
    }

    /// Returns the number of files of references that are no reference copies.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Ends the search for reference copies of a content: keeps the candidates that were open for
    /// writing as missed if there was no other.
    pub(super) fn settle_written(&mut self, is_found: bool) {
        match is_found {
            true => self.met_written.clear(),
            false => self.missed_written.append(&mut self.met_written),
        }
    }

    /// Returns files that would have been the only reference copies, were they not open for
    /// writing.
    pub(super) fn missed_written(self) -> Vec<EntryId> {
        self.missed_written
    }

    /// Returns the root under which a file with these names is a reference copy; `None` if it is
    /// not: as soon as one of its names is one of the trees', all are.
    pub(super) fn reference_copy(&mut self, names: &[EntryId]) -> Option<usize> {
        let is_own = |name: &EntryId| (name.0 as usize) < self.own_entries;
        if names.iter().any(is_own) {
            return None;
        }
        // Of a file with several names each has to be outside, and one has to last.
        let outside = names.iter().all(|name| self.is_outside(*name));
        if !outside || !names.iter().any(|name| self.lasts(*name)) {
            self.refused += 1;
            return None;
        }
        let is_written = |name: &&EntryId| self.written.binary_search(name).is_ok();
        if let Some(name) = names.iter().find(is_written) {
            self.met_written.push(*name);
            return None;
        }
        names.first().map(|name| self.listing.root(*name))
    }

    /// Returns true if the file keeps this name until it is removed explicitly.
    fn lasts(&self, entry: EntryId) -> bool {
        let name = self.listing.name(entry).to_bytes();
        let links = self.listing.meta(entry).map_or(0, |meta| meta.nlink);
        lasts(name, links) && !is_stage(name)
    }

    fn is_outside(&mut self, entry: EntryId) -> bool {
        let listing = self.listing;
        let Some(dir) = listing.dir_identity(listing.dir(entry)) else {
            return false;
        };
        let Some(id) = listing.identity(entry) else {
            return false;
        };
        if self.trees.has_dir(dir) || self.trees.has_file(id) {
            return false;
        }
        !self.may_be_seen(entry, dir.dev)
    }

    /// Returns true if it may be one of the trees' files under another number.
    fn may_be_seen(&mut self, entry: EntryId, dev: u64) -> bool {
        let listing = self.listing;
        let Some(meta) = listing.meta(entry) else {
            return true;
        };
        let dir = || listing.open_dir(listing.dir(entry)).ok();
        let name = listing.name(entry);
        self.aliases.may_be_own(meta.id, meta.stamp, name, dev, dir)
    }

    /// Returns true if these names of equal files are those of two files at least that last: not of
    /// one, and not of one that a view shows under another number.
    pub(super) fn are_several(&mut self, names: &[EntryId]) -> bool {
        let listing = self.listing;
        let lasting = names.iter().filter(|name| self.lasts(**name));
        let names: Vec<EntryId> = lasting.copied().collect();
        let Some((&first, rest)) = names.split_first() else {
            return false;
        };
        rest.iter().any(|name| {
            if listing.identity(*name) == listing.identity(first) {
                return false;
            }
            !self.may_be_one(first, *name)
        })
    }

    /// Returns true if two names may be one file's: on a file system that shows others' files, the
    /// same name in the same state is.
    fn may_be_one(&mut self, one: EntryId, other: EntryId) -> bool {
        let listing = self.listing;
        let state = |entry| Some((listing.name(entry), listing.meta(entry)?.stamp));
        if state(one) != state(other) {
            return false;
        }
        let shown = [one, other].map(|entry| {
            let dir = listing.dir(entry);
            let dev = listing.dir_identity(dir).map(|id| id.dev);
            let open = || listing.open_dir(dir).ok();
            dev.is_none_or(|dev| self.aliases.involve(dev, open))
        });
        shown.contains(&true)
    }
}
