//! The walk against a naive recursion, in every way it can go.

mod absent;
mod deep;
mod filters;
mod gaps;
mod joining;
mod mounts;
mod roots;
mod shards;
mod trees;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bc_pool::Metering;
use tempfile::TempDir;

use super::*;
use crate::{DirId, FileKind, Gap, Skipped};

/// A temporary tree; paths are relative to it.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    /// Writes the files, with their own path as content; a path that ends in a slash is a
    /// directory.
    pub(crate) fn with(paths: &[&str]) -> Tree {
        let tree = Tree::new();
        paths.iter().for_each(|path| tree.add(path.as_bytes()));
        tree
    }

    pub(crate) fn add(&self, path: &[u8]) {
        let full = self.path(path);
        match path.strip_suffix(b"/") {
            Some(_) => fs::create_dir_all(full).unwrap(),
            None => {
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::write(full, path).unwrap();
            }
        }
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name.as_bytes())).unwrap();
    }

    pub(crate) fn root(&self) -> Vec<u8> {
        self.0.path().as_os_str().as_bytes().to_vec()
    }

    pub(crate) fn path(&self, below: &[u8]) -> PathBuf {
        self.0.path().join(std::ffi::OsStr::from_bytes(below))
    }

    pub(crate) fn bytes(&self, below: &str) -> Vec<u8> {
        [&self.root()[..], b"/", below.as_bytes()].concat()
    }
}

/// All properties of an entry.
#[derive(Debug, PartialEq)]
struct Seen {
    path: Vec<u8>,
    relative: Vec<u8>,
    kind: FileKind,
    root: usize,
    follow: bool,
    closed: bool,
    hint: u64,
    stat: Option<FileStat>,
}

/// All properties of a listing that must not depend on the way it was made.
#[derive(Debug, PartialEq)]
struct Outcome {
    entries: Vec<Seen>,
    errors: Vec<Error>,
    absent: Vec<Error>,
    skipped: Skipped,
    skipped_paths: Vec<SkippedPath>,
    gaps: Vec<(DirId, Gap)>,
    directories: u64,
}

fn outcome(listing: &Listing) -> Outcome {
    let entry = |id| {
        let mut relative = Vec::new();
        listing.write_relative(id, &mut relative);
        Seen {
            path: listing.path(id),
            relative,
            kind: listing.kind(id),
            root: listing.root(id),
            follow: listing.follow(id),
            closed: listing.is_closed(id),
            hint: listing.inode_hint(id),
            stat: listing.stat(id),
        }
    };
    Outcome {
        entries: listing.ids().map(entry).collect(),
        errors: listing.errors().to_vec(),
        absent: listing.absent().to_vec(),
        skipped: listing.skipped().clone(),
        skipped_paths: listing.skipped_paths().to_vec(),
        gaps: listing.gaps().to_vec(),
        directories: listing.directories(),
    }
}

/// Starts all workers at the first directory.
fn at_once() -> Tuning {
    Tuning {
        alone: Duration::ZERO,
        metering: Metering::default(),
    }
}

/// Returns a measurement by which workers seem only to wait for the disk: more are wanted after each
/// directory.
fn waiting() -> Metering {
    Metering {
        window: Duration::ZERO,
        pretend: Some(Box::new(|_| Duration::ZERO)),
    }
}

/// Lists with one worker and with many, from the beginning on or joining later, with and
/// without `openat2`; all must agree.
pub(crate) fn in_every_way(given: Given, paths: &[Vec<u8>], options: &WalkOptions) -> Listing {
    let paths = as_bytes(paths);
    let list = |workers, tuning: Tuning, opener| {
        let cancel = Cancel::new();
        let controls = WalkControls::from(&cancel);
        list_with(
            given,
            &paths,
            options,
            || workers,
            controls,
            &tuning,
            opener,
        )
        .unwrap()
    };
    let alone = Tuning {
        alone: Duration::from_secs(3600),
        metering: Metering::default(),
    };
    let first = list(Workers::from(1), alone, Opener::new());
    let expected = outcome(&first);
    assert!(
        expected.entries.is_sorted_by(|a, b| a.path < b.path),
        "out of order: {expected:?}"
    );
    let bounds = [1, 2, 8].map(Workers::from);
    for workers in bounds.into_iter().chain([Workers::adaptive(1)]) {
        for old_kernel in [false, true] {
            let opener = if old_kernel {
                Opener::without_openat2()
            } else {
                Opener::new()
            };
            let tuning = Tuning {
                metering: waiting(),
                ..at_once()
            };
            let listing = list(workers, tuning, opener);
            let what = format!("{workers:?}, old kernel: {old_kernel}");
            assert_eq!(outcome(&listing), expected, "{what}");
        }
    }
    first
}

/// Walks the paths below the tree and returns the listed ones, relative to the tree.
fn walked(tree: &Tree, roots: &[&str], options: &WalkOptions) -> (Vec<String>, Listing) {
    let roots: Vec<_> = match roots {
        [] => vec![tree.root()],
        roots => roots.iter().map(|root| tree.bytes(root)).collect(),
    };
    let listing = in_every_way(Given::Roots, &roots, options);
    (below(tree, &listing), listing)
}

fn below(tree: &Tree, listing: &Listing) -> Vec<String> {
    let skip = tree.root().len() + 1;
    let text =
        |path: Vec<u8>| String::from_utf8_lossy(path.get(skip..).unwrap_or(b"")).into_owned();
    listing.ids().map(|id| text(listing.path(id))).collect()
}

/// Lists everything below a directory, sorted by path, in the slow and obvious way.
fn naive(root: &Path, entries: Entries) -> Vec<Vec<u8>> {
    fn descend(directory: &Path, entries: Entries, out: &mut Vec<Vec<u8>>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_file() || entries == Entries::All {
                out.push(entry.path().as_os_str().as_bytes().to_vec());
            }
            if kind.is_dir() {
                descend(&entry.path(), entries, out);
            }
        }
    }
    let mut out = Vec::new();
    if entries == Entries::All {
        out.push(root.as_os_str().as_bytes().to_vec());
    }
    descend(root, entries, &mut out);
    out.sort();
    out
}
