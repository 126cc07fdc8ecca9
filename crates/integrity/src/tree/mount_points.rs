//! Where in the tree something is mounted: by what the kernel lists, and where that does not say,
//! by links that lead to another mount and by directories on another device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bc_manifest::integrity::Mounted;
use bc_walk::{EntryId, FileKind, Identity, Symlinks};

use super::Tree;
use crate::entry_ref::EntryRef;
use crate::mounts::Mount;

/// What is mounted within a tree.
#[derive(Default)]
pub(super) struct MountPoints {
    /// Files that are mounted, and directories where a file system is: those below which there
    /// is anything listed, since nothing else can be missed.
    holding: BTreeMap<EntryId, Found>,
    /// Those below which there is nothing.
    empty: BTreeMap<EntryId, Found>,
}

/// What is mounted somewhere, and which file or directory that is, if it is known.
struct Found {
    mounted: Mounted,
    identity: Option<Identity>,
}

impl MountPoints {
    /// The entries where something is mounted, each once.
    pub(super) fn ids(&self) -> impl Iterator<Item = &EntryId> {
        self.holding.keys().chain(self.empty.keys())
    }

    /// Takes down what is mounted at an entry, given with its path.
    fn add(&mut self, tree: &Tree, id: EntryId, path: &[u8], found: Found) {
        let is_empty = tree.listing.kind(id) == FileKind::Dir && !tree.holds_entries(id, path);
        let place = match is_empty {
            false => &mut self.holding,
            true => &mut self.empty,
        };
        place.insert(id, found);
    }

    /// Finds the links that lead to another mount than they lie on: what they lead to is missing
    /// while that is not mounted, be it a directory or a file.
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
    /// Finds the mount points of the listing. The mounts were asked for after the walk, so that
    /// those that the walk itself brought about are among them.
    pub(super) fn find_mount_points(&self) -> MountPoints {
        let mut points = MountPoints::default();
        if let (Some(real), Some(mounts)) = (&self.real, &self.mounts) {
            for (path, mount) in mounts.below(real) {
                if let Some((id, found)) = self.mounted_at(path, mount) {
                    points.add(self, id, path, found);
                }
            }
        }
        // Paths through links are not those that the kernel lists: there the number of the mount
        // tells, or another device.
        if self.symlinks == Symlinks::Follow {
            points.add_links(self);
        }
        if self.symlinks == Symlinks::Follow || self.mounts.is_none() {
            points.add_other_devices(self);
        }
        points
    }

    /// The entry that is `mount`, which the kernel lists at `path`.
    fn mounted_at(&self, path: &[u8], mount: &Mount) -> Option<(EntryId, Found)> {
        let id = self.find(path)?;
        // Files were perhaps not looked at; what they are is compared when they are.
        let identity = mount.is_seen_as(self.listing.identity(id))?;
        let plain = matches!(self.listing.kind(id), FileKind::Dir | FileKind::File);
        let uuid = plain.then(|| mount.uuid(identity.dev));
        let found = Found {
            mounted: mount.recorded(uuid.flatten()),
            identity: Some(identity),
        };
        Some((id, found))
    }

    /// Is anything listed in the directory `id` of this path, be it in another part of the tree? Of
    /// other parts nothing is known; that filters leave nothing of what is mounted is not seen
    /// there.
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

    /// What is mounted on an entry.
    pub(crate) fn mount(&self, id: EntryId) -> Option<&Mounted> {
        let found = self.mount_points.holding.get(&id);
        found.map(|found| &found.mounted)
    }

    /// The same of an entry that was found to be `now` when it was looked at last.
    pub(crate) fn mount_of(&self, id: EntryId, now: &EntryRef<'_>) -> Option<&Mounted> {
        let found = self.mount_points.holding.get(&id)?;
        let now = now.device.zip(now.ino);
        let same = found
            .identity
            .is_none_or(|then| now.is_none_or(|now| now == (then.dev, then.ino)));
        same.then_some(&found.mounted)
    }

    /// What is mounted on a file or a directory, be it empty.
    pub(crate) fn any_mount(&self, id: EntryId) -> Option<&Mounted> {
        let empty = || self.mount_points.empty.get(&id);
        self.mount(id)
            .or_else(|| empty().map(|found| &found.mounted))
    }
}
