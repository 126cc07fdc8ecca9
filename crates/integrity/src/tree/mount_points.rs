//! Mount points in the tree: by the kernel's list, and where that has no entry, by links that lead
//! to another mount and by directories on another device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_manifest::integrity::Mounted;
use bc_walk::{EntryId, FileKind, Identity, Symlinks};

use super::Tree;
use crate::entry_ref::EntryRef;
use crate::mounts::Mount;

/// Mount points within a tree.
#[derive(Default)]
pub(super) struct MountPoints {
    /// Files that are mounted, and directories where a file system is: those below which there
    /// is anything listed, since nothing else can be missed.
    holding: BTreeMap<EntryId, Found>,
    /// Mount points below which nothing is listed.
    empty: BTreeMap<EntryId, Found>,
}

/// A mounted file system, and the identity of the file or directory there, if it is known.
struct Found {
    mounted: Mounted,
    identity: Option<Identity>,
}

impl MountPoints {
    /// Returns the mount points, each once.
    pub(super) fn ids(&self) -> impl Iterator<Item = &EntryId> {
        self.holding.keys().chain(self.empty.keys())
    }

    /// Records a mount at an entry, given with its path.
    fn add(&mut self, tree: &Tree, id: EntryId, path: &[u8], found: Found) {
        let is_empty = tree.listing.kind(id) == FileKind::Dir && !tree.holds_entries(id, path);
        let place = match is_empty {
            false => &mut self.holding,
            true => &mut self.empty,
        };
        place.insert(id, found);
    }

    /// Finds the links that lead to another mount than they lie on: their targets are missing while
    /// that is not mounted, be they directories or files.
    fn add_links(&mut self, tree: &Tree) {
        let (Some(real), Some(mounts)) = (&tree.real, &tree.mounts) else {
            return;
        };
        let mut known = BTreeMap::new();
        let mut path = Vec::new();
        for id in tree.listing.ids().filter(|id| tree.is_followed(*id)) {
            path.clear();
            tree.listing.write_relative(id, &mut path);
            let at = real.join(OsStr::from_bytes(&path));
            let Some((identity, mount)) = mounts.led_to(&at) else {
                continue;
            };
            let mounted = known
                .entry(mount.id())
                .or_insert_with(|| mount.recorded(mount.uuid(identity.dev)));
            let found = Found {
                mounted: mounted.clone(),
                identity: Some(identity),
            };
            self.add(tree, id, &path, found);
        }
    }

    /// Finds the directories that lie on another device than those above them.
    fn add_other_devices(&mut self, tree: &Tree) {
        let mut path = Vec::new();
        for id in tree.listing.ids() {
            let Some(found) = tree.listing.identity(id) else {
                continue;
            };
            if tree.listing.kind(id) != FileKind::Dir {
                continue;
            }
            let above = tree.listing.dir_identity(tree.listing.dir(id));
            if above.is_none_or(|above| above.dev == found.dev) {
                continue;
            }
            path.clear();
            tree.listing.write_relative(id, &mut path);
            if tree.holds_entries(id, &path) {
                let unknown = || Found {
                    mounted: Mounted::default(),
                    identity: None,
                };
                self.holding.entry(id).or_insert_with(unknown);
            }
        }
    }
}

impl Tree {
    /// Finds the mount points of the listing. The mounts were read after the walk, so that those
    /// that the walk itself brought about are among them.
    pub(super) fn find_mount_points(&self) -> MountPoints {
        let mut points = MountPoints::default();
        if let (Some(real), Some(mounts)) = (&self.real, &self.mounts) {
            for (path, mount) in mounts.below(real) {
                if let Some((id, found)) = self.mounted_at(path, mount) {
                    points.add(self, id, path, found);
                }
            }
        }
        // The kernel lists no paths through links: there the number of the mount decides, or
        // another device.
        if self.symlinks == Symlinks::Follow {
            points.add_links(self);
        }
        if self.symlinks == Symlinks::Follow || self.mounts.is_none() {
            points.add_other_devices(self);
        }
        points
    }

    /// Finds the entry that is `mount`, which the kernel lists at `path`.
    fn mounted_at(&self, path: &[u8], mount: &Mount) -> Option<(EntryId, Found)> {
        let id = self.find(path)?;
        // Files were perhaps not looked at; their identities are compared when they are.
        let identity = mount.is_seen_as(self.listing.identity(id))?;
        let plain = matches!(self.listing.kind(id), FileKind::Dir | FileKind::File);
        let uuid = plain.then(|| mount.uuid(identity.dev));
        let found = Found {
            mounted: mount.recorded(uuid.flatten()),
            identity: Some(identity),
        };
        Some((id, found))
    }

    /// True if anything is listed in the directory `id` of this path, be it in another part of the
    /// tree. Nothing is known of other parts, so that a mount there whose files are all filtered
    /// out goes unnoticed.
    fn holds_entries(&self, id: EntryId, path: &[u8]) -> bool {
        let is_elsewhere = self.shard.is_some_and(|shard| !shard.has_directory(path));
        if is_elsewhere && self.listing.passes_by(path) {
            return false;
        }
        if let (true, Some(real)) = (is_elsewhere, &self.real) {
            let read = real.join(OsStr::from_bytes(path)).read_dir();
            return read.is_ok_and(|mut entries| entries.next().is_some());
        }
        let below = [path, b"/"].concat();
        self.listing.kind(id) == FileKind::Dir && self.first_from(&below).1.starts_with(&below)
    }

    /// Returns the file system that is mounted on an entry.
    pub(crate) fn mount(&self, id: EntryId) -> Option<&Mounted> {
        let found = self.mount_points.holding.get(&id);
        found.map(|found| &found.mounted)
    }

    /// Returns the same for an entry that was found to be `now` when it was looked at last.
    pub(crate) fn mount_of(&self, id: EntryId, now: &EntryRef<'_>) -> Option<&Mounted> {
        let found = self.mount_points.holding.get(&id)?;
        let now = now.device.zip(now.ino);
        let same = found
            .identity
            .is_none_or(|then| now.is_none_or(|now| now == (then.dev, then.ino)));
        same.then_some(&found.mounted)
    }

    /// Returns the file system that is mounted on a file or a directory, be it empty.
    pub(crate) fn any_mount(&self, id: EntryId) -> Option<&Mounted> {
        let empty = || self.mount_points.empty.get(&id);
        self.mount(id)
            .or_else(|| empty().map(|found| &found.mounted))
    }
}
