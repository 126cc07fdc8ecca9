//! Groups of directories with equal contents, and the choice of those that are reported: only the
//! largest.

use std::collections::HashSet;

use bc_walk::{DirId, EntryId};

use super::classes::Classes;
use super::sums::Sums;
use super::tree::DirTree;
use super::{DirNames, DirsOptions};
use crate::jagged::Jagged;
use crate::scan::{Scan, Span};

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
pub(crate) struct Told {
    /// Classes.
    pub(crate) dirs: Vec<u32>,
    /// Groups of the search.
    pub(crate) files: Vec<u32>,
}

/// Leaves out groups that follow from the equality of larger directories: a group whose members'
/// parents are all equal, each of them with one member, under one name.
pub(crate) fn largest(
    tree: &DirTree<'_>,
    classes: &Classes,
    groups: &Groups,
    scan: &Scan,
    options: &DirsOptions,
    repeated: &HashSet<EntryId>,
) -> Told {
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
    Told { dirs, files }
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
