//! Place of a manifest, and its entries in the order of their paths, from all sources.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use bc_edit::journal::FLAGS;
use bc_edit::output::takes_at_once;
use bc_fs::place::Place;
use bc_manifest::integrity::{Entry, ROOT, path_order};
use bc_walk::FileKind;
use rustix::fs::OFlags;

use crate::destination::{Source, Top, place_of};
use crate::options::{CopyOptions, MANIFEST_NAME, ManifestPlace};
use crate::results::Unlisted;
use crate::sources::{RootItem, SourceTree, USUAL, shown_below};

/// Place and subject of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct ManifestPlan {
    /// The file.
    pub(crate) file: PathBuf,
    /// The directory that its paths are relative to, as it is shown.
    pub(crate) root: Vec<u8>,
    /// Path of that directory below the top: empty for the top itself.
    pub(crate) below: Vec<u8>,
    /// True if the directory holds nothing but what was copied, so that the manifest describes all
    /// of it.
    pub(crate) whole: bool,
}

impl ManifestPlan {
    /// Opens the existing file in its place; `None` if there is none, or what is there takes all at
    /// once and keeps nothing.
    pub(super) fn open(&self) -> io::Result<Option<File>> {
        let place = Place::find(&self.file).ok();
        let Some(place) = place.filter(|_| !takes_at_once(&self.file)) else {
            return Ok(None);
        };
        match place.open(place.name(), OFlags::RDONLY | FLAGS) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the path that a manifest of this directory records as its root.
    pub(crate) fn real_root(&self) -> Vec<u8> {
        let root = place_of(OsStr::from_bytes(&self.root));
        let real = std::fs::canonicalize(OsStr::from_bytes(&root));
        real.map_or(root, |real| real.into_os_string().into_vec())
    }
}

/// Returns the directory that paths of the manifest are relative to: as it is shown, and below the
/// top.
pub(super) fn manifest_root(top: &Top, first: &Source) -> (Vec<u8>, Vec<u8>) {
    let below = match !top.into && first.stat.kind() == FileKind::Dir {
        true => top.names[0].clone(),
        false => Vec::new(),
    };
    (shown_below(&top.path, &below), below)
}

/// Returns the path of the manifest; `None` where it has no place of its own.
pub(super) fn manifest_file(options: &CopyOptions, top: &Top, first: &Source) -> Option<PathBuf> {
    match &options.manifest {
        ManifestPlace::None => None,
        ManifestPlace::File(file) => Some(file.clone()),
        // A single file beside which one would be in the way of others.
        ManifestPlace::Destination if !top.into && first.stat.kind() != FileKind::Dir => None,
        ManifestPlace::Destination => {
            let root = manifest_root(top, first).0;
            let path = shown_below(&root, MANIFEST_NAME.as_bytes());
            Some(OsStr::from_bytes(&path).into())
        }
    }
}

/// Returns the path of the manifest below the top, if it has its usual place there.
pub(crate) fn manifest_target(
    options: &CopyOptions,
    top: &Top,
    tree: &SourceTree,
) -> Option<Vec<u8>> {
    let first = &tree.roots.first()?.source;
    let usual = options.manifest == ManifestPlace::Destination && options.algorithm.is_some();
    manifest_file(options, top, first).filter(|_| usual)?;
    let below = manifest_root(top, first).1;
    Some(shown_below(&below, MANIFEST_NAME.as_bytes()))
}

/// Returns the plan of the manifest before it is known whether it describes the whole directory.
pub(super) fn early_plan(options: &CopyOptions, top: &Top, first: &Source) -> Option<ManifestPlan> {
    let file = manifest_file(options, top, first)?;
    let (root, below) = manifest_root(top, first);
    Some(ManifestPlan {
        file,
        root,
        below,
        whole: false,
    })
}

/// Returns the path of an entry in the manifest.
pub(super) fn path_in(tree: &SourceTree, plan: &ManifestPlan, item: RootItem) -> Vec<u8> {
    let mut path = Vec::with_capacity(USUAL);
    tree.write_target(item, &mut path);
    below(plan, path)
}

/// Turns a path below the top into one of the manifest.
pub(super) fn below(plan: &ManifestPlan, mut path: Vec<u8>) -> Vec<u8> {
    if !plan.below.is_empty() {
        path.drain(..(plan.below.len() + 1).min(path.len()));
    }
    match path.is_empty() {
        true => ROOT.to_vec(),
        false => path,
    }
}

/// An entry on its way into the manifest: ordered by path, the first at the top of a heap.
pub(super) struct ManifestHead {
    pub(super) path: Vec<u8>,
    pub(super) next: HeadSource,
}

/// Source of an entry. Of two with one path, the one whose variant is listed first here comes
/// first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum HeadSource {
    /// An item of a root whose entries end before this number.
    Item(RootItem, u32),
    /// A path without an entry: its number among those that could not be looked at.
    Unlisted(usize),
    /// An entry of an earlier run that is not part of this copy, by its number.
    Beside(usize),
}

impl ManifestHead {
    pub(super) fn of_item(path: Vec<u8>, item: RootItem, end: u32) -> ManifestHead {
        let next = HeadSource::Item(item, end);
        ManifestHead { path, next }
    }

    pub(super) fn item_and_end(&self) -> Option<(RootItem, u32)> {
        match self.next {
            HeadSource::Item(item, end) => Some((item, end)),
            HeadSource::Unlisted(_) | HeadSource::Beside(_) => None,
        }
    }

    pub(super) fn item(&self) -> Option<RootItem> {
        self.item_and_end().map(|(item, _)| item)
    }
}

impl Ord for ManifestHead {
    fn cmp(&self, other: &ManifestHead) -> Ordering {
        path_order(&other.path, &self.path).then_with(|| other.next.cmp(&self.next))
    }
}

impl PartialOrd for ManifestHead {
    fn partial_cmp(&self, other: &ManifestHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ManifestHead {
    fn eq(&self, other: &ManifestHead) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ManifestHead {}

/// Collects the first entry of each kind.
pub(super) fn heads(
    tree: &SourceTree,
    plan: &ManifestPlan,
    unlisted: &[Unlisted],
    beside: &[Entry],
) -> BinaryHeap<ManifestHead> {
    let unlisted = unlisted.iter().enumerate().map(|(nth, one)| ManifestHead {
        path: below(plan, one.target.clone()),
        next: HeadSource::Unlisted(nth),
    });
    let beside = beside.iter().enumerate().map(|(nth, entry)| ManifestHead {
        path: entry.path.clone(),
        next: HeadSource::Beside(nth),
    });
    let mut heads: BinaryHeap<ManifestHead> = unlisted.chain(beside).collect();
    for root in 0..tree.roots.len() {
        let items = tree.items_of(root);
        push(tree, plan, &mut heads, RootItem(items.start), items.end);
    }
    heads
}

/// Adds the entry of this number, if it is one of the root whose entries end there.
pub(super) fn push(
    tree: &SourceTree,
    plan: &ManifestPlan,
    heads: &mut BinaryHeap<ManifestHead>,
    item: RootItem,
    end: u32,
) {
    if item.0 < end {
        heads.push(ManifestHead::of_item(path_in(tree, plan, item), item, end));
    }
}
