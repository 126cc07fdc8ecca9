//! Sources and targets: a listing for each source, and the place of each of its entries.

use std::ffi::CString;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bc_walk::{EntryId, FileKind, Listing};

use crate::target::{Source, split};

/// A source and its content.
pub(crate) struct Walked {
    pub(crate) source: Source,
    pub(crate) content: Arc<SourceContent>,
}

/// A source at a destination.
pub(crate) struct Root {
    pub(crate) source: Source,
    /// Its name below the top; empty if it is the top.
    pub(crate) name: Vec<u8>,
    /// Its first entry among those of all roots.
    pub(crate) base: u32,
    /// Content of the source, shared by all destinations.
    pub(crate) content: Arc<SourceContent>,
}

/// Entries of a source, by the way in which they were found.
pub(crate) enum SourceContent {
    /// Found by a walk.
    Listing(Box<Listing>),
    /// A single link or special file, in this directory.
    Alone(OwnedFd, CString),
    /// It could not be looked at.
    Nothing,
}

impl Root {
    fn len(&self) -> u32 {
        match &*self.content {
            SourceContent::Listing(listing) => listing.len() as u32,
            SourceContent::Alone(..) => 1,
            SourceContent::Nothing => 0,
        }
    }
}

/// All sources.
pub(crate) struct SourceTree {
    pub(crate) roots: Vec<Root>,
}

/// An entry of any of the roots: in order of the roots, and in path order within one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct RootItem(pub(crate) u32);

impl SourceTree {
    /// Numbers the entries of sources that have these names at a destination.
    pub(crate) fn new(walked: &[Walked], names: &[Vec<u8>]) -> SourceTree {
        let mut roots = Vec::with_capacity(walked.len());
        let mut base = 0;
        for (walked, name) in walked.iter().zip(names) {
            let root = Root {
                source: walked.source.clone(),
                name: name.clone(),
                base,
                content: Arc::clone(&walked.content),
            };
            base += root.len();
            roots.push(root);
        }
        SourceTree { roots }
    }

    /// Returns the number of entries of all roots.
    pub(crate) fn len(&self) -> u32 {
        self.roots.last().map_or(0, |last| last.base + last.len())
    }

    /// Returns the entries of a root.
    pub(crate) fn items_of(&self, root: usize) -> Range<u32> {
        let root = &self.roots[root];
        root.base..root.base + root.len()
    }

    /// Returns the root of an entry, and its number.
    pub(crate) fn root(&self, item: RootItem) -> (usize, &Root) {
        let at = self.roots.partition_point(|root| root.base <= item.0) - 1;
        // Roots without entries have the number of the next.
        (at, &self.roots[at])
    }

    /// Returns the listing that has an entry, unless the source is a single one.
    pub(crate) fn entry(&self, item: RootItem) -> Option<(&Listing, EntryId)> {
        let root = self.root(item).1;
        match &*root.content {
            SourceContent::Listing(listing) => Some((listing, EntryId(item.0 - root.base))),
            _ => None,
        }
    }

    /// True if no part of the sources was missed.
    pub(crate) fn is_all_read(&self) -> bool {
        self.roots.iter().all(|root| match &*root.content {
            SourceContent::Listing(listing) => listing.errors().is_empty(),
            SourceContent::Alone(..) => true,
            SourceContent::Nothing => false,
        })
    }

    pub(crate) fn kind(&self, item: RootItem) -> FileKind {
        match self.entry(item) {
            Some((listing, id)) => listing.kind(id),
            None => self.root(item).1.source.stat.kind(),
        }
    }

    /// Returns the size of a file in bytes, as the walk found it.
    pub(crate) fn size(&self, item: RootItem) -> u64 {
        let size = self.entry(item).and_then(|(listing, id)| listing.size(id));
        size.unwrap_or(0)
    }

    /// Replaces `path` by the target of an entry, below the top: empty for the top itself.
    pub(crate) fn write_target(&self, item: RootItem, path: &mut Vec<u8>) {
        path.clear();
        let root = self.root(item).1;
        path.extend_from_slice(&root.name);
        let Some((listing, id)) = self.entry(item) else {
            return;
        };
        let is_root_itself = root.source.stat.kind() != FileKind::Dir;
        if is_root_itself || listing.name(id).to_bytes() == b"." {
            return;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        listing.write_relative(id, path);
    }

    /// True if the target of an entry may end in that name.
    pub(crate) fn may_be_called(&self, item: RootItem, name: &[u8]) -> bool {
        let root = self.root(item).1;
        let own = self
            .entry(item)
            .is_some_and(|(listing, id)| listing.name(id).to_bytes() == name);
        own || root.name == name
    }

    /// Returns the path of an entry's source, as it is shown.
    pub(crate) fn source_path(&self, item: RootItem) -> Vec<u8> {
        match self.entry(item) {
            Some((listing, id)) => listing.path(id),
            None => self.root(item).1.source.path.as_bytes().to_vec(),
        }
    }
}

/// Splits a target into its directory and its name.
pub(crate) fn parts(path: &[u8]) -> (&[u8], &[u8]) {
    let (dir, name) = split(path);
    (dir, name.unwrap_or_default())
}
