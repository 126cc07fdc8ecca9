//! Directories with equal contents, from equal files to the groups that are reported.
//!
//! First contents get numbers: those of the groups of the search, of the names of one file, and of
//! targets of symbolic links. Then each directory gets the number of its content, its class. With
//! their names, directories are equal if their entries are, one by one, and those are compared, never
//! only a hash of them. Without names a directory is the sum of 128-bit values of its contents, whose
//! keys are new in each run, so that no files can be chosen whose sums agree. Of the groups of one
//! class only the largest directories are reported.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

use bc_fs::meta;
use bc_pool::Cancel;
use bc_walk::{DirFdCache, DirId, EntryId, Error, FileKind, Identity, Listing};

use super::tree::{DirItem, DirTree, NONE, Sums};
use super::{DirNames, DirsOptions, Obstacle};
use crate::jagged::Jagged;
use crate::scan::{Scan, Span};

/// Meaning of the numbers of contents and link targets in a [`Tree`].
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Numbers of groups come first.
    pub(crate) groups: u32,
    /// Number of distinct contents of files.
    pub(crate) files: u32,
    /// Targets of symbolic links, by number.
    pub(crate) targets: Vec<Vec<u8>>,
}

/// Gives numbers to the contents of files and the targets of links.
pub(crate) fn number_contents(
    tree: &mut DirTree<'_>,
    scan: &Scan,
    cancel: &Cancel,
    errors: &mut Vec<Error>,
) -> Contents {
    let mut contents = Contents::default();
    for group in scan.groups() {
        let names = group.files().flat_map(|file| file.names);
        names.for_each(|name| tree.set_value(*name, contents.groups));
        contents.groups += 1;
    }
    contents.files = contents.groups;
    linked(tree, &mut contents);
    targets(tree, &mut contents, cancel, errors);
    for entry in &scan.failed {
        tree.obstruct(tree.listing.dir(*entry), Obstacle::Unreadable);
    }
    contents
}

/// Files that are in no group but have several names: a content of their own.
fn linked(tree: &mut DirTree<'_>, contents: &mut Contents) {
    let listing = tree.listing;
    // Where two files share their numbers, as on some FUSE file systems, their states differ.
    type State = (Identity, u64, i64, i64);
    let mut first: HashMap<State, (EntryId, Option<u32>)> = HashMap::new();
    for entry in listing.ids() {
        if !tree.is_alone(entry) {
            continue;
        }
        let meta = listing.meta(entry).filter(|meta| meta.nlink > 1);
        let Some(meta) = meta.filter(|_| listing.kind(entry) == FileKind::File) else {
            continue;
        };
        let stamp = meta.stamp;
        let state = (meta.id, stamp.size, stamp.mtime_ns, stamp.ctime_ns);
        match first.get_mut(&state) {
            None => {
                first.insert(state, (entry, None));
            }
            Some((other, number)) => {
                let number = *number.get_or_insert_with(|| {
                    contents.files += 1;
                    tree.set_value(*other, contents.files - 1);
                    contents.files - 1
                });
                tree.set_value(entry, number);
            }
        }
    }
}

pub(super) fn targets(
    tree: &mut DirTree<'_>,
    contents: &mut Contents,
    cancel: &Cancel,
    errors: &mut Vec<Error>,
) {
    let listing = tree.listing;
    let mut dirs = DirFdCache::new(listing);
    let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
    for entry in tree.links().to_vec() {
        match target(&mut dirs, listing, entry, cancel) {
            Ok(target) => {
                let next = contents.targets.len() as u32;
                let number = *numbers.entry(target).or_insert_with_key(|target| {
                    contents.targets.push(target.clone());
                    next
                });
                tree.set_value(entry, number);
            }
            Err(error) => {
                tree.obstruct(listing.dir(entry), Obstacle::Unreadable);
                errors.push(error);
            }
        }
    }
}

fn target(
    dirs: &mut DirFdCache<'_>,
    listing: &Listing,
    entry: EntryId,
    cancel: &Cancel,
) -> Result<Vec<u8>, Error> {
    let dir = dirs.open_waiting(listing.dir(entry), cancel)?;
    let found = rustix::fs::readlinkat(&dir, listing.name(entry), Vec::new());
    let found = found.map_err(|errno| Error::new(listing.path(entry), "readlink", errno))?;
    Ok(found.into_bytes())
}

/// The contents of directories, by number.
pub(crate) struct Classes {
    of: Vec<u32>,
    /// First directory of each content. A directory has a higher number than those that it holds.
    pub(crate) first: Vec<DirId>,
}

impl Classes {
    pub(crate) fn new(tree: &DirTree<'_>, sums: &Sums, names: DirNames) -> Classes {
        let mut classes = Classes {
            of: vec![NONE; tree.listing.dirs()],
            first: Vec::new(),
        };
        match names {
            DirNames::Compare => classes.by_entries(tree, sums),
            DirNames::Ignore => classes.by_sums(tree, sums),
        }
        classes
    }

    /// Returns the number of a directory's content; `None` if no other can hold the same, or it
    /// cannot be compared.
    pub(crate) fn of(&self, dir: DirId) -> Option<u32> {
        let class = self.of[dir.0 as usize];
        (class != NONE).then_some(class)
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    fn begin(&mut self, dir: DirId) -> u32 {
        self.first.push(dir);
        (self.first.len() - 1) as u32
    }

    fn by_entries(&mut self, tree: &DirTree<'_>, sums: &Sums) {
        let keys = RandomState::new();
        let mut newest: HashMap<u64, u32> = HashMap::new();
        // Of each class the one before with the same hash.
        let mut before: Vec<u32> = Vec::new();
        for &dir in tree.order().iter().rev() {
            if !sums.of(dir).is_shared() {
                continue;
            }
            let hash = self.hash(tree, dir, &keys);
            let last = newest.get(&hash).copied().unwrap_or(NONE);
            let mut class = last;
            while class != NONE && !self.are_equal(tree, dir, self.first[class as usize]) {
                class = before[class as usize];
            }
            if class == NONE {
                class = self.begin(dir);
                before.push(last);
                newest.insert(hash, class);
            }
            self.of[dir.0 as usize] = class;
        }
    }

    fn hash(&self, tree: &DirTree<'_>, dir: DirId, keys: &RandomState) -> u64 {
        let mut hasher = keys.build_hasher();
        for &entry in tree.entries(dir) {
            let (kind, number) = self.value(tree, entry);
            hasher.write(tree.listing.name(entry).to_bytes_with_nul());
            hasher.write_u8(kind);
            hasher.write_u32(number);
        }
        hasher.finish()
    }

    fn are_equal(&self, tree: &DirTree<'_>, one: DirId, other: DirId) -> bool {
        let (one, other) = (tree.entries(one), tree.entries(other));
        let is_same = |(a, b): (&EntryId, &EntryId)| {
            self.value(tree, *a) == self.value(tree, *b)
                && tree.listing.name(*a) == tree.listing.name(*b)
        };
        one.len() == other.len() && one.iter().zip(other).all(is_same)
    }

    /// Returns the kind of an entry and the number of its content. A directory that filters leave
    /// unread is like an empty one.
    fn value(&self, tree: &DirTree<'_>, entry: EntryId) -> (u8, u32) {
        match tree.item(entry) {
            DirItem::File(content) => (b'f', content),
            DirItem::Link(target) => (b'l', target),
            DirItem::Dir(dir) if tree.entries(dir).is_empty() => (b'd', NONE),
            DirItem::Dir(dir) => (b'd', self.of[dir.0 as usize]),
            DirItem::Closed => (b'd', NONE),
            // Such ones are in no class.
            DirItem::Alone | DirItem::Unknown => (b'?', NONE),
        }
    }

    fn by_sums(&mut self, tree: &DirTree<'_>, sums: &Sums) {
        let keys = [RandomState::new(), RandomState::new()];
        let value = |kind: u8, number: u32| {
            let half = |keys: &RandomState| keys.hash_one((kind, number));
            u128::from(half(&keys[0])) << 64 | u128::from(half(&keys[1]))
        };
        let mut totals = vec![0_u128; tree.listing.dirs()];
        let mut known: HashMap<(u128, u64), u32> = HashMap::new();
        for &dir in tree.order().iter().rev() {
            let sum = sums.of(dir);
            if !sum.is_shared() {
                continue;
            }
            let mut total = 0_u128;
            for &entry in tree.entries(dir) {
                let one = match tree.item(entry) {
                    DirItem::Dir(dir) if !tree.entries(dir).is_empty() => totals[dir.0 as usize],
                    _ => {
                        let (kind, number) = self.value(tree, entry);
                        value(kind, number)
                    }
                };
                total = total.wrapping_add(one);
            }
            totals[dir.0 as usize] = total;
            let class = match known.get(&(total, sum.files)) {
                Some(class) => *class,
                None => self.begin(dir),
            };
            known.insert((total, sum.files), class);
            self.of[dir.0 as usize] = class;
        }
    }
}

/// Directories with equal contents, by the number of the content. Fewer than two are no group.
pub(crate) struct Groups(Jagged<DirId>);

impl Groups {
    pub(crate) fn new(
        tree: &DirTree<'_>,
        sums: &Sums,
        classes: &Classes,
        options: &DirsOptions,
    ) -> Groups {
        // Without a file there is nothing that could be freed.
        let least = options.min_files.max(1);
        let class = |dir: DirId| {
            let class = classes.of(dir).filter(|_| sums.of(dir).files >= least)?;
            // Where names do not count, a directory that holds nothing but one directory equals
            // that one.
            let above = tree.above(dir).and_then(|above| classes.of(above));
            (above != Some(class)).then_some(class as usize)
        };
        let member = |dir: DirId| Some((class(dir)?, dir));
        Groups(Jagged::sorted(classes.len(), || {
            tree.dirs().filter_map(&member)
        }))
    }

    /// The members of a class that is a group; else none.
    pub(crate) fn members(&self, class: u32) -> &[DirId] {
        let members = self.0.list(class as usize);
        if members.len() < 2 { &[] } else { members }
    }

    /// Returns true if several directories have this class.
    pub(crate) fn is_group(&self, class: u32) -> bool {
        !self.members(class).is_empty()
    }
}

/// Groups that are reported.
pub(crate) struct ReportedGroups {
    /// Classes.
    pub(crate) dirs: Vec<u32>,
    /// Groups of the search.
    pub(crate) files: Vec<u32>,
}

/// Leaves out groups that follow from the equality of larger directories: a group whose members'
/// parents are all equal, each of them with one member, under one name.
pub(crate) fn largest_groups(
    tree: &DirTree<'_>,
    classes: &Classes,
    groups: &Groups,
    scan: &Scan,
    options: &DirsOptions,
    repeated: &HashSet<EntryId>,
) -> ReportedGroups {
    let mut cover = Cover {
        classes,
        groups,
        names: options.names,
        parents: Vec::new(),
    };
    let is_reported = |class: &u32| {
        let members = groups.members(*class);
        !members.is_empty()
            && is_wanted(tree, scan, options, members)
            && !cover.covers(
                members
                    .iter()
                    .map(|dir| (tree.above(*dir), tree.name(*dir))),
            )
    };
    let dirs = (0..classes.len() as u32).filter(is_reported).collect();
    let mut files = Vec::new();
    for (number, group) in scan.groups().enumerate() {
        let names = group.files().flat_map(|file| file.names);
        let place = |entry: &EntryId| {
            let listing = tree.listing;
            (Some(listing.dir(*entry)), listing.name(*entry).to_bytes())
        };
        let names = names.filter(|name| !repeated.contains(name));
        if !cover.covers(names.map(place)) {
            files.push(number as u32);
        }
    }
    ReportedGroups { dirs, files }
}

/// Returns true for groups that are to be reported, as for groups of files: with a member that is
/// no reference, and spanning roots where that is requested.
fn is_wanted(tree: &DirTree<'_>, scan: &Scan, options: &DirsOptions, members: &[DirId]) -> bool {
    let root = |dir: &DirId| tree.named_by(*dir).map(|entry| tree.listing.root(entry));
    let spans = || members.iter().any(|dir| root(dir) != root(&members[0]));
    (options.span == Span::Any || spans()) && !members.iter().all(|dir| scan.is_reference_dir(*dir))
}

struct Cover<'a> {
    classes: &'a Classes,
    groups: &'a Groups,
    names: DirNames,
    /// Kept from one group to the next for its memory.
    parents: Vec<DirId>,
}

impl Cover<'_> {
    /// Returns true if the members' parents are equal and the members' equality follows from that.
    fn covers<'n>(&mut self, members: impl Iterator<Item = (Option<DirId>, &'n [u8])>) -> bool {
        self.parents.clear();
        let mut first = None;
        for (parent, name) in members {
            let class = parent.and_then(|parent| self.classes.of(parent));
            let (Some(parent), Some(class)) = (parent, class) else {
                return false;
            };
            let (of_first, name_of_first) = *first.get_or_insert((class, name));
            let is_alike = self.names == DirNames::Ignore || name == name_of_first;
            if class != of_first || !is_alike || !self.groups.is_group(class) {
                return false;
            }
            self.parents.push(parent);
        }
        self.parents.sort_unstable();
        self.parents.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// Returns the entries of roots that are files and lie in a directory that was read as well: one
/// name, listed twice.
pub(crate) fn repeated_roots(tree: &DirTree<'_>) -> HashSet<EntryId> {
    let listing = tree.listing;
    let is_root = |entry: &EntryId| listing.dir_identity(listing.dir(*entry)).is_none();
    let roots: Vec<EntryId> = listing.ids().filter(is_root).collect();
    if roots.is_empty() {
        return HashSet::new();
    }
    let identity = |dir| Some((listing.dir_identity(dir)?, dir));
    let dirs: HashMap<Identity, DirId> = tree.dirs().filter_map(identity).collect();
    // Many roots may be in one directory.
    let mut known: HashMap<DirId, Option<DirId>> = HashMap::new();
    let mut read = |dir: DirId| {
        let opened = || meta::stat(listing.open_dir(dir).ok()?).ok();
        let find = || dirs.get(&opened()?.id).copied();
        *known.entry(dir).or_insert_with(find)
    };
    let is_repeated = |entry: &EntryId| {
        let name = listing.name(*entry);
        let there = read(listing.dir(*entry)).and_then(|dir| {
            let entries = tree.entries(dir);
            let at = entries.binary_search_by(|other| listing.name(*other).cmp(name));
            Some(entries[at.ok()?])
        });
        there.is_some_and(|other| listing.identity(other) == listing.identity(*entry))
    };
    roots.into_iter().filter(is_repeated).collect()
}
