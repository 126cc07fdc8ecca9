//! Groups of equal directories as [`prune_trees`](crate::prune::prune_trees) takes them.

use bc_walk::{DirId, EntryId, FileKind, Identity, Stamp};

use super::tree::{DirItem, DirTree};
use super::{DirGroup, DirsReport};
use crate::groups::{FileRef, TreeCopy, TreeEntry, TreeGroup, TreeKind};
use crate::report::root_len;

impl<'a> DirsReport<'a> {
    /// The groups of directories with all that is in them, one at a time.
    pub fn trees(&self) -> impl Iterator<Item = TreeGroup> + use<'a> {
        let report = *self;
        let tree = DirTree::new(report.scan.listing);
        let groups = report.found.groups.iter();
        groups.map(move |group| report.tree_group(&tree, group))
    }

    /// Returns the directories of each group alone, without their entries: enough for a choice.
    pub fn tree_roots(&self) -> Vec<Vec<FileRef>> {
        let tree = DirTree::new(self.scan.listing);
        let root = |dir: &DirId| self.dir_ref(&tree, *dir);
        let groups = self.found.groups.iter();
        groups
            .map(|group| group.dirs.iter().map(root).collect())
            .collect()
    }

    fn tree_group(&self, tree: &DirTree<'_>, group: &DirGroup) -> TreeGroup {
        let copy = |dir: &DirId| TreeCopy {
            dir: self.dir_ref(tree, *dir),
            entries: self.tree_entries(tree, *dir),
        };
        TreeGroup {
            copies: group.dirs.iter().map(copy).collect(),
            filtered: group.filtered,
        }
    }

    fn dir_ref(&self, tree: &DirTree<'_>, dir: DirId) -> FileRef {
        let listing = self.scan.listing;
        let mut path = listing.dir_path(dir);
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        // Each directory of a group has something in it.
        let root = tree
            .entries(dir)
            .first()
            .map_or(0, |entry| listing.root(*entry));
        let given = self.scan.roots.get(root).map_or(&[][..], Vec::as_slice);
        let (stamp, _) = self.state(tree.named_by(dir));
        FileRef {
            root_len: root_len(&path, given),
            path,
            root: root as u32,
            id: listing.dir_identity(dir).unwrap_or(NOTHING),
            stamp,
            nlink: 1,
            protected: self.scan.scan.is_reference_dir(dir),
        }
    }

    /// Returns everything below a directory, in order of paths' components.
    fn tree_entries(&self, tree: &DirTree<'_>, dir: DirId) -> Vec<TreeEntry> {
        let listing = self.scan.listing;
        let mut entries = Vec::new();
        let mut next = vec![(tree.entries(dir).iter(), None)];
        while let Some((rest, above)) = next.last_mut() {
            let Some(&entry) = rest.next() else {
                next.pop();
                continue;
            };
            let parent = *above;
            let inner = match tree.item(entry) {
                DirItem::Dir(inner) => Some(inner),
                _ => None,
            };
            let id = inner.and_then(|inner| listing.dir_identity(inner));
            let (stamp, nlink) = self.state(Some(entry));
            if let Some(inner) = inner {
                // A listing has fewer entries than that.
                let this = entries.len() as u32;
                next.push((tree.entries(inner).iter(), Some(this)));
            }
            entries.push(TreeEntry {
                parent,
                name: listing.name(entry).to_bytes().to_vec(),
                kind: match listing.kind(entry) {
                    FileKind::Dir => TreeKind::Dir,
                    FileKind::Symlink => TreeKind::Link,
                    _ => TreeKind::File,
                },
                id: id.or(listing.identity(entry)).unwrap_or(NOTHING),
                stamp,
                nlink,
            });
        }
        entries
    }

    fn state(&self, entry: Option<EntryId>) -> (Stamp, u64) {
        let meta = entry.and_then(|entry| self.scan.listing.meta(entry));
        meta.map_or((NEVER, 1), |meta| (meta.stamp, meta.nlink))
    }
}

/// State recorded for a root without an entry of its own.
const NEVER: Stamp = Stamp {
    size: 0,
    mtime_ns: 0,
    ctime_ns: 0,
};

/// Identity recorded where none is known; no file has it.
const NOTHING: Identity = Identity { dev: 0, ino: 0 };
