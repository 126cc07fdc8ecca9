//! The directories of a listing as a tree, with their entries, their obstacles and their totals.

use std::collections::{HashMap, HashSet};

use bc_edit::names::lasts;
use bc_fs::{dirfd, meta};
use bc_walk::{DirId, EntryId, FileKind, Identity, Listing};

use super::Obstacle;
use crate::jagged::Jagged;

/// Kind and content of a directory's entry.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum DirItem {
    /// A file whose content others have as well, by the number of that content.
    File(u32),
    /// A file whose content no other has.
    Alone,
    /// A symbolic link, by the number of its target.
    Link(u32),
    /// A directory that is known.
    Dir(DirId),
    /// A directory that the user's filters leave unread: like an empty one.
    Closed,
    /// An entry that cannot be compared.
    Unknown,
}

/// Placeholder for a number that does not exist.
pub(crate) const NONE: u32 = u32::MAX;
/// Placeholder for a directory's number: filters leave it unread.
const CLOSED: u32 = u32::MAX - 1;

/// All directories that were read.
pub(crate) struct DirTree<'a> {
    pub(crate) listing: &'a Listing,
    /// Entries of each directory, in order of their names.
    entries: Jagged<EntryId>,
    /// By entry: the number of its directory, content or target, depending on its kind.
    values: Vec<u32>,
    /// Directories as entries of others.
    met: Vec<EntryId>,
    /// Symbolic links that were not followed.
    links: Vec<EntryId>,
    /// By directory: the entry that was looked at before the directory was read.
    named_by: Vec<u32>,
    /// By directory: its parent, or [`NONE`].
    above: Vec<u32>,
    /// The names of roots in the directories that they are in, where those are read as well.
    root_names: HashMap<DirId, EntryId>,
    obstacles: Vec<Option<Obstacle>>,
    /// All directories, each before those below it.
    order: Vec<DirId>,
}

impl<'a> DirTree<'a> {
    /// Builds the tree of a listing of all entries, with metadata and with entries that roots
    /// repeat. Contents of files and targets of links are not known yet.
    pub(crate) fn new(listing: &'a Listing) -> DirTree<'a> {
        let mut tree = DirTree {
            listing,
            entries: Jagged::default(),
            values: vec![NONE; listing.len()],
            met: Vec::new(),
            links: Vec::new(),
            named_by: vec![NONE; listing.dirs()],
            above: vec![NONE; listing.dirs()],
            root_names: HashMap::new(),
            obstacles: vec![None; listing.dirs()],
            order: Vec::new(),
        };
        tree.collect();
        tree.join();
        tree.resolve();
        let roots = tree.dirs().filter(|dir| tree.above(*dir).is_none());
        tree.order = roots.flat_map(|root| tree.below(root)).collect();
        tree
    }

    /// All directories that were read; those that roots are in which are files are none.
    pub(crate) fn dirs(&self) -> impl Iterator<Item = DirId> + use<'a> {
        let listing = self.listing;
        let all = (0..listing.dirs() as u32).map(DirId);
        all.filter(|dir| listing.dir_identity(*dir).is_some())
    }

    /// Puts the entries of each directory together, and collects those that are no files.
    fn collect(&mut self) {
        let listing = self.listing;
        for entry in listing.ids() {
            let dir = listing.dir(entry);
            match listing.kind(entry) {
                FileKind::File => {
                    let links = listing.meta(entry).map_or(1, |meta| meta.nlink);
                    if !lasts(listing.name(entry).to_bytes(), links) {
                        self.obstruct(dir, Obstacle::Temporary);
                    }
                }
                FileKind::Symlink => self.links.push(entry),
                FileKind::Dir if listing.name(entry) == c"." => {
                    self.named_by[dir.0 as usize] = entry.0;
                }
                FileKind::Dir => self.met.push(entry),
                _ => self.obstruct(dir, Obstacle::Special),
            }
        }
        let named_by = &self.named_by;
        let entry = |entry: EntryId| {
            let dir = listing.dir(entry).0 as usize;
            (named_by[dir] != entry.0).then_some((dir, entry))
        };
        self.entries = Jagged::sorted(listing.dirs(), || listing.ids().filter_map(entry));
    }

    /// Finds the entry that names each directory.
    fn join(&mut self) {
        let listing = self.listing;
        for dir in self.dirs() {
            let Some(parent) = listing.parent(dir) else {
                continue;
            };
            let name = listing.dir_name(dir);
            let entries = self.entries(parent);
            let found = entries.binary_search_by(|entry| listing.name(*entry).to_bytes().cmp(name));
            let Ok(at) = found else {
                // Each directory below a root is an entry of the one that it is in.
                self.obstruct(parent, Obstacle::Unreadable);
                continue;
            };
            let entry = entries[at];
            self.above[dir.0 as usize] = parent.0;
            self.values[entry.0 as usize] = dir.0;
            self.named_by[dir.0 as usize] = entry.0;
            let dev = |dir| listing.dir_identity(dir).map(|id| id.dev);
            if listing.is_mounted(dir) && !(listing.follow(entry) && dev(dir) == dev(parent)) {
                self.obstruct(parent, Obstacle::Mount);
            }
        }
    }

    /// Finds the directories behind entries that were not read where they were met, and further
    /// obstacles to a comparison.
    fn resolve(&mut self) {
        let listing = self.listing;
        for (dir, gap) in listing.gaps() {
            if gap.failed {
                self.obstruct(*dir, Obstacle::Unreadable);
            }
        }
        let is_unread = |entry: &EntryId| self.values[entry.0 as usize] == NONE;
        let unread: Vec<EntryId> = self.met.iter().copied().filter(is_unread).collect();
        if unread.is_empty() {
            return;
        }
        let failed: HashSet<&[u8]> = listing.errors().iter().map(|error| error.path()).collect();
        let roots = self.roots();
        for entry in unread {
            let dir = listing.dir(entry);
            if listing.is_closed(entry) {
                self.values[entry.0 as usize] = CLOSED;
                continue;
            }
            let root = listing.identity(entry).and_then(|id| roots.get(&id));
            match root {
                _ if failed.contains(&listing.path(entry)[..]) => {
                    self.obstruct(dir, Obstacle::Unreadable);
                }
                _ if listing.follow(entry) => self.obstruct(dir, Obstacle::Elsewhere),
                Some(root) if self.is_plain(dir, entry) && !self.root_names.contains_key(root) => {
                    self.values[entry.0 as usize] = root.0;
                    self.above[root.0 as usize] = dir.0;
                    self.root_names.insert(*root, entry);
                }
                _ => self.obstruct(dir, Obstacle::Mount),
            }
        }
    }

    /// The directories that walks began with, by identity; without those that share theirs.
    fn roots(&self) -> HashMap<Identity, DirId> {
        let mut roots = HashMap::new();
        let mut shared = HashSet::new();
        for dir in self
            .dirs()
            .filter(|dir| self.listing.parent(*dir).is_none())
        {
            let Some(id) = self.listing.dir_identity(dir) else {
                continue;
            };
            if roots.insert(id, dir).is_some() {
                shared.insert(id);
            }
        }
        roots.retain(|id, _| !shared.contains(id));
        roots
    }

    /// Returns true if the entry is a directory of the same mount as the one that it is in.
    fn is_plain(&self, dir: DirId, entry: EntryId) -> bool {
        let listing = self.listing;
        let dev = listing.dir_identity(dir).map(|id| id.dev);
        let Ok(parent) = listing.open_dir(dir) else {
            return false;
        };
        let opened = dirfd::open_dir_at(parent, listing.name(entry).to_bytes());
        let mounted = |fd| meta::is_mount_root(fd).unwrap_or(false);
        listing.identity(entry).map(|id| id.dev) == dev && opened.is_ok_and(|fd| !mounted(fd))
    }

    /// All directories, each before those below it, in order of names. Such as lie below themselves,
    /// by a fault of the file system, are none of them.
    pub(crate) fn order(&self) -> &[DirId] {
        &self.order
    }

    /// Returns the entries of a directory, in order of names.
    pub(crate) fn entries(&self, dir: DirId) -> &[EntryId] {
        self.entries.list(dir.0 as usize)
    }

    /// Returns the kind and content of an entry.
    pub(crate) fn item(&self, entry: EntryId) -> DirItem {
        let value = self.values[entry.0 as usize];
        match (self.listing.kind(entry), value) {
            (FileKind::File, NONE) => DirItem::Alone,
            (FileKind::File, content) => DirItem::File(content),
            (FileKind::Dir, CLOSED) => DirItem::Closed,
            (_, NONE) => DirItem::Unknown,
            (FileKind::Dir, dir) => DirItem::Dir(DirId(dir)),
            (FileKind::Symlink, target) => DirItem::Link(target),
            _ => DirItem::Unknown,
        }
    }

    /// Symbolic links that were not followed, in order of paths.
    pub(crate) fn links(&self) -> &[EntryId] {
        &self.links
    }

    /// Returns true if no content is known that the file shares with others.
    pub(crate) fn is_alone(&self, entry: EntryId) -> bool {
        self.values[entry.0 as usize] == NONE
    }

    /// Says which content a file has, or which target a link.
    pub(crate) fn set_value(&mut self, entry: EntryId, value: u32) {
        self.values[entry.0 as usize] = value;
    }

    /// The directory that a directory is in, if that was read as well.
    pub(crate) fn above(&self, dir: DirId) -> Option<DirId> {
        let above = self.above[dir.0 as usize];
        (above != NONE).then_some(DirId(above))
    }

    /// Its name there.
    pub(crate) fn name(&self, dir: DirId) -> &'a [u8] {
        match self.root_names.get(&dir) {
            Some(entry) => self.listing.name(*entry).to_bytes(),
            None => self.listing.dir_name(dir),
        }
    }

    /// The entry that was looked at before the directory was read.
    pub(crate) fn named_by(&self, dir: DirId) -> Option<EntryId> {
        let entry = self.named_by[dir.0 as usize];
        (entry != NONE).then_some(EntryId(entry))
    }

    /// A directory and all that are below it, each before those below it, in order of names.
    pub(crate) fn below(&self, dir: DirId) -> Vec<DirId> {
        let (mut found, mut next) = (Vec::new(), vec![dir]);
        while let Some(dir) = next.pop() {
            found.push(dir);
            for entry in self.entries(dir).iter().rev() {
                if let DirItem::Dir(inner) = self.item(*entry) {
                    next.push(inner);
                }
            }
        }
        found
    }

    /// Marks a directory as one that cannot be compared; the first reason stays.
    pub(crate) fn obstruct(&mut self, dir: DirId, obstacle: Obstacle) {
        self.obstacles[dir.0 as usize].get_or_insert(obstacle);
    }

    /// Returns the reason why a directory cannot be compared, as far as it lies in the directory
    /// itself.
    pub(crate) fn obstacle(&self, dir: DirId) -> Option<Obstacle> {
        self.obstacles[dir.0 as usize]
    }
}

/// Totals of everything below a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirTotals {
    pub(crate) files: u64,
    /// Their sizes together.
    pub(crate) bytes: u64,
    /// Sizes of the files whose content no other file has.
    pub(crate) alone: u64,
    /// Entries that filters left out.
    pub(crate) filtered: u64,
    /// All of it is known.
    pub(crate) is_known: bool,
    /// There is a file whose content no other has.
    pub(crate) has_alone: bool,
}

/// Totals by directory.
pub(crate) struct Sums(Vec<DirTotals>);

impl Sums {
    pub(crate) fn new(tree: &DirTree<'_>) -> Sums {
        let mut sums = vec![DirTotals::default(); tree.listing.dirs()];
        for (dir, gap) in tree.listing.gaps() {
            sums[dir.0 as usize].filtered = gap.filtered;
        }
        for &dir in tree.order().iter().rev() {
            let mut sum = sums[dir.0 as usize];
            sum.is_known = tree.obstacle(dir).is_none();
            for &entry in tree.entries(dir) {
                match tree.item(entry) {
                    DirItem::File(_) => sum.add_file(size(tree, entry)),
                    DirItem::Alone => {
                        let size = size(tree, entry);
                        sum.add_file(size);
                        sum.alone = sum.alone.saturating_add(size);
                        sum.has_alone = true;
                    }
                    DirItem::Dir(inner) => sum.add(&sums[inner.0 as usize]),
                    DirItem::Link(_) | DirItem::Closed => {}
                    DirItem::Unknown => sum.is_known = false,
                }
            }
            sums[dir.0 as usize] = sum;
        }
        Sums(sums)
    }

    pub(crate) fn of(&self, dir: DirId) -> &DirTotals {
        &self.0[dir.0 as usize]
    }
}

fn size(tree: &DirTree<'_>, entry: EntryId) -> u64 {
    tree.listing.size(entry).unwrap_or(0)
}

impl DirTotals {
    /// Returns true if it can be equal to another directory, or contained in one.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_known && !self.has_alone
    }

    fn add_file(&mut self, size: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    fn add(&mut self, inner: &DirTotals) {
        self.files += inner.files;
        self.bytes = self.bytes.saturating_add(inner.bytes);
        self.alone = self.alone.saturating_add(inner.alone);
        self.filtered += inner.filtered;
        self.is_known &= inner.is_known;
        self.has_alone |= inner.has_alone;
    }
}
