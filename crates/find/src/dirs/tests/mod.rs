//! Directories against a slow reference that reads everything and compares all with all, and cases
//! by hand that random trees seldom contain.

mod cases;
mod limits;
mod obstacles;
mod random;
mod reference;
mod roots;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_hash::{HashOptions, HashProgress};
use bc_pool::Cancel;
use bc_testkit::TestTree;
use bc_walk::{Entries, Listing, Metadata, Repeats, WalkOptions, walk};

use super::*;
use crate::scan::{Scan, ScanOptions, ScanProgress, scan};

/// A walk, a search, and the directories found.
pub(super) struct Answer {
    pub(super) listing: Listing,
    pub(super) scan: Scan,
    pub(super) found: Directories,
    /// Prefix of all paths.
    base: Vec<u8>,
}

pub(super) fn walking() -> WalkOptions {
    WalkOptions::default()
        .metadata(Metadata::Basic)
        .entries(Entries::All)
        .repeats(Repeats::List)
}

pub(super) fn list(base: &Path, roots: &[&str], walking: &WalkOptions) -> Listing {
    let roots: Vec<OsString> = roots.iter().map(|root| base.join(root).into()).collect();
    walk(&roots, walking, 1, &Cancel::new()).unwrap()
}

pub(super) fn search(listing: &Listing, algorithm: Algorithm) -> Scan {
    let options = ScanOptions {
        min_size: 0,
        algorithm,
        ..ScanOptions::default()
    };
    let progress = ScanProgress::default();
    scan(listing, &options, None, &Cancel::new(), &progress).unwrap()
}

/// With digests.
pub(super) fn options() -> DirsOptions {
    DirsOptions {
        digests: Some(HashOptions::new(Vec::new())),
        ..DirsOptions::new()
    }
}

pub(super) fn answer(base: &Path, roots: &[&str], options: &DirsOptions) -> Answer {
    let listing = list(base, roots, &walking());
    let scan = search(&listing, options.algorithm);
    made_of(base, listing, scan, options)
}

pub(super) fn made_of(base: &Path, listing: Listing, scan: Scan, options: &DirsOptions) -> Answer {
    let progress = HashProgress::default();
    let found = find(&listing, &scan, options, &Cancel::new(), &progress).unwrap();
    Answer {
        listing,
        scan,
        found,
        base: base.as_os_str().as_bytes().to_vec(),
    }
}

impl Answer {
    fn below(&self, path: Vec<u8>) -> Vec<u8> {
        let rest = path.strip_prefix(&self.base[..]).unwrap_or(&path);
        rest.strip_prefix(b"/").unwrap_or(rest).to_vec()
    }

    pub(super) fn path(&self, dir: DirId) -> Vec<u8> {
        self.below(self.listing.dir_path(dir))
    }

    /// Returns the groups as they are reported.
    pub(super) fn groups(&self) -> Vec<Vec<Vec<u8>>> {
        let paths = |group: &DirGroup| group.dirs.iter().map(|dir| self.path(*dir)).collect();
        self.found.groups.iter().map(paths).collect()
    }

    /// Returns the groups as text, members with a space between.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |group: Vec<Vec<u8>>| {
            let paths = group
                .iter()
                .map(|path| String::from_utf8_lossy(path).into_owned());
            paths.collect::<Vec<_>>().join(" ")
        };
        self.groups().into_iter().map(text).collect()
    }

    /// Returns the groups of files that are reported: all names, in order of paths.
    pub(super) fn files(&self) -> Vec<Vec<Vec<u8>>> {
        let groups: Vec<_> = self.scan.groups().collect();
        let names = |number: &u32| {
            let names = groups[*number as usize].files().flat_map(|file| file.names);
            let reported = names.filter(|name| !self.found.repeated.contains(name));
            let mut paths: Vec<_> = reported
                .map(|id| self.below(self.listing.path(*id)))
                .collect();
            paths.sort();
            paths
        };
        self.found.files.iter().map(names).collect()
    }

    /// `A in B`, or `A = B` where nothing else is in either.
    pub(super) fn contained(&self) -> Vec<String> {
        let text = |one: &Contained| {
            let [dir, within] = [one.dir, one.within]
                .map(|dir| String::from_utf8_lossy(&self.path(dir)).into_owned());
            let sign = if one.is_mutual { "=" } else { "in" };
            format!("{dir} {sign} {within}")
        };
        self.found.contained.iter().map(text).collect()
    }
}

/// Equal directories of the whole tree, as text.
pub(super) fn equal(tree: &TestTree) -> Vec<String> {
    answer(tree.path(), &[""], &options()).texts()
}
