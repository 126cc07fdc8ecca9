//! Disk space that is freed by giving up all but one of equal directories.

use std::collections::HashMap;

use bc_walk::{DirId, EntryId};

use super::tree::{DirItem, DirTree};
use crate::scan::Scan;

/// Disk space of the files below directories.
pub(crate) struct Space {
    /// Bytes of the files with one name, by directory.
    own: Vec<u64>,
    /// By directory: true if there are files below it that have several names.
    has_several: Vec<bool>,
    several: HashMap<EntryId, Several>,
}

/// One name of a file that has several in the listing.
#[derive(Clone, Copy)]
struct Several {
    first: EntryId,
    names: u32,
    /// Bytes that are freed by removing all names.
    own: u64,
}

impl Space {
    /// Adds up the space of the files that the search found equal. They suffice: every file in a
    /// group of directories is in one of files, or has a name in the directory that stays.
    pub(crate) fn new(tree: &DirTree<'_>, scan: &Scan) -> Space {
        let mut space = Space {
            own: vec![0; tree.listing.dirs()],
            has_several: vec![false; tree.listing.dirs()],
            several: HashMap::new(),
        };
        for file in scan.groups().flat_map(|group| group.files()) {
            if let [only] = file.names {
                space.own[tree.listing.dir(*only).0 as usize] += file.own;
                continue;
            }
            for name in file.names {
                let several = Several {
                    first: file.names[0],
                    names: file.names.len() as u32,
                    own: file.own,
                };
                space.several.insert(*name, several);
                space.has_several[tree.listing.dir(*name).0 as usize] = true;
            }
        }
        for &dir in tree.order().iter().rev() {
            if let Some(above) = tree.above(dir) {
                let (dir, above) = (dir.0 as usize, above.0 as usize);
                space.own[above] += space.own[dir];
                space.has_several[above] |= space.has_several[dir];
            }
        }
        space
    }

    /// Bytes of disk that are freed if these directories go.
    pub(crate) fn freed(&self, tree: &DirTree<'_>, dirs: &[DirId]) -> u64 {
        let mut freed = dirs.iter().map(|dir| self.own[dir.0 as usize]).sum();
        let mut seen: HashMap<EntryId, u32> = HashMap::new();
        let mixed = dirs.iter().filter(|dir| self.has_several[dir.0 as usize]);
        for dir in mixed.flat_map(|dir| tree.below(*dir)) {
            for entry in tree.entries(dir) {
                let is_file = matches!(tree.item(*entry), DirItem::File(_));
                let Some(several) = self.several.get(entry).filter(|_| is_file) else {
                    continue;
                };
                let names = seen.entry(several.first).or_default();
                *names += 1;
                if *names == several.names {
                    freed += several.own;
                }
            }
        }
        freed
    }
}
