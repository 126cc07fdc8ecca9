//! The search against a slow reference that compares bytes, and its treatment of files that cannot
//! be read, change, or are large.

mod cache;
mod candidates;
mod extents;
mod hostile;
mod large;
mod reference;
mod sample;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicI64;

use bc_pool::Cancel;
use bc_testkit::TestTree;
use bc_walk::{Listing, Metadata, walk};

use super::*;

/// Offset by which the search's clock runs ahead, so that young files are old.
pub(super) static CLOCK_AHEAD_NS: AtomicI64 = AtomicI64::new(0);

pub(super) fn list(root: &Path) -> Listing {
    list_roots(&[root])
}

pub(super) fn list_roots(roots: &[&Path]) -> Listing {
    let roots: Vec<OsString> = roots
        .iter()
        .map(|root| root.as_os_str().to_owned())
        .collect();
    let options = bc_walk::WalkOptions::default().metadata(Metadata::Basic);
    walk(&roots, &options, 1, &Cancel::new()).unwrap()
}

pub(super) fn search(listing: &Listing, options: &ScanOptions) -> Scan {
    scan(
        listing,
        options,
        None,
        &Cancel::new(),
        &ScanProgress::default(),
    )
    .unwrap()
}

/// Groups of paths below the root; both sorted. Of each file the first name,
/// or all where hard links count.
pub(super) fn paths(listing: &Listing, scan: &Scan, options: &ScanOptions) -> Vec<Vec<Vec<u8>>> {
    let names = match options.hard_links {
        HardLinks::OneFile => 1,
        HardLinks::Duplicates => usize::MAX,
    };
    let mut groups: Vec<Vec<Vec<u8>>> = scan
        .groups()
        .map(|group| {
            let entries = group.files().flat_map(|file| file.names.iter().take(names));
            let mut paths: Vec<Vec<u8>> = entries
                .map(|entry| {
                    let mut path = Vec::new();
                    listing.write_relative(*entry, &mut path);
                    path
                })
                .collect();
            paths.sort();
            paths
        })
        .collect();
    groups.sort();
    groups
}

pub(super) fn found(root: &Path, options: &ScanOptions) -> Vec<Vec<String>> {
    let listing = list(root);
    let scan = search(&listing, options);
    let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
    paths(&listing, &scan, options)
        .into_iter()
        .map(|group| group.into_iter().map(text).collect())
        .collect()
}
