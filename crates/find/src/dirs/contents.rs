//! Numbers for equal contents of files: those of a group of the search, and the names of one file.
//! And numbers for targets of symbolic links.

use std::collections::HashMap;

use bc_pool::Cancel;
use bc_walk::{DirFdCache, EntryId, Error, FileKind, Identity, Listing};

use super::Obstacle;
use super::tree::DirTree;
use crate::scan::Scan;

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
pub(crate) fn number(
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

fn targets(
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
