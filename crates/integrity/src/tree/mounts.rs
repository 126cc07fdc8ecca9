//! Mount points in the tree: by the kernel's list in `/proc/self/mountinfo` (proc_pid_mountinfo(5)),
//! and where that has no entry, by links that lead to another mount and by directories on another
//! device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::mount::{MountEntry, entries};
use bc_fs::volume::uuid_at;
use bc_manifest::integrity::Mounted;
use bc_walk::{EntryId, FileKind, FileStat, Identity, Symlinks};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::Tree;
use crate::entry_ref::EntryRef;

/// One mount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mount(MountEntry);

impl Deref for Mount {
    type Target = MountEntry;

    fn deref(&self) -> &MountEntry {
        &self.0
    }
}

/// All mounts that this process can see, in the order in which they were made.
#[derive(Clone, Debug)]
pub(crate) struct MountTable(Vec<Mount>);

impl MountTable {
    /// Reads the mounts; `None` without `/proc`.
    pub(crate) fn read() -> Option<MountTable> {
        entries().map(MountTable::of_entries)
    }

    fn of_entries(entries: Vec<MountEntry>) -> MountTable {
        MountTable(entries.into_iter().map(Mount).collect())
    }

    /// Returns the mount that `path`, which is absolute and without links, lies on.
    pub(crate) fn of(&self, path: &Path) -> Option<&Mount> {
        let holds = |mount: &&Mount| path.starts_with(OsStr::from_bytes(&mount.point));
        // Where mounts lie over one another only the kernel knows the visible one.
        if let Some((_, Some(id))) = look(path)
            && let Some(mount) = self.0.iter().find(|mount| mount.id == id)
        {
            return Some(mount);
        }
        // The later of equal ones covers the earlier.
        self.0
            .iter()
            .filter(holds)
            .max_by_key(|mount| mount.point.len())
    }

    /// Returns the mount that the link at `path` leads to, if it is another one than the link lies
    /// on, and the identity of the file or directory there. `None` before Linux 5.8, which does not
    /// return mount numbers.
    pub(crate) fn led_to(&self, path: &Path) -> Option<(Identity, &Mount)> {
        let (_, from) = look_through(path.parent()?, AtFlags::empty())?;
        let (found, to) = look_through(path, AtFlags::empty())?;
        let (from, to) = from.zip(to)?;
        let mount = self.0.iter().find(|mount| mount.id == to)?;
        (from != to).then_some((found, mount))
    }

    /// Returns the mounts below `root`, which is absolute and without links, with the paths
    /// relative to it. Of several on one directory the last; automounts that wait for their first
    /// use have nothing mounted.
    pub(crate) fn below<'a>(
        &'a self,
        root: &'a Path,
    ) -> impl Iterator<Item = (&'a [u8], &'a Mount)> {
        self.0.iter().enumerate().filter_map(move |(nth, mount)| {
            let relative = Path::new(OsStr::from_bytes(&mount.point))
                .strip_prefix(root)
                .ok()?;
            let covered = |later: &Mount| later.point == mount.point && later.kind != b"autofs";
            let counts = mount.kind != b"autofs" && !self.0[nth + 1..].iter().any(covered);
            let relative = relative.as_os_str().as_bytes();
            (counts && !relative.is_empty()).then_some((relative, mount))
        })
    }
}

impl Mount {
    /// Returns the number that the kernel gives this mount.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Checks that the file that a walk found at the mount point, with this `id` if it is known, is
    /// the mounted one, and returns its identity. `None` if it was mounted after the walk had
    /// passed, or if another mount lies over it.
    pub(crate) fn is_seen_as(&self, id: Option<Identity>) -> Option<Identity> {
        let (found, mount) = look(Path::new(OsStr::from_bytes(&self.point)))?;
        let seen = id.is_none_or(|id| id == found) && mount.is_none_or(|mount| mount == self.id);
        seen.then_some(found)
    }

    /// Returns the UUID of the mounted file system, which has this device number.
    pub(crate) fn uuid(&self, dev: u64) -> Option<String> {
        let point = Path::new(OsStr::from_bytes(&self.point));
        uuid_at(point, Some(dev), Some(&self.source))
    }

    /// Returns the mount as a manifest records it.
    pub(crate) fn recorded(&self, fs_uuid: Option<String>) -> Mounted {
        Mounted {
            source: self.source.clone(),
            root: Some(self.root.clone()),
            fs_uuid,
            subvolid: self.subvolid,
        }
    }
}

/// Returns the identity of the file at `path`, and the number of its mount if the kernel returns it
/// (Linux 5.8).
fn look(path: &Path) -> Option<(Identity, Option<u64>)> {
    look_through(path, AtFlags::SYMLINK_NOFOLLOW)
}

fn look_through(path: &Path, links: AtFlags) -> Option<(Identity, Option<u64>)> {
    let flags = links | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(CWD, path, flags, wanted).ok()?;
    let reported = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Some((
        FileStat::from(&stat).id,
        reported.then_some(stat.stx_mnt_id),
    ))
}

/// Mount points within a tree.
#[derive(Default)]
pub(super) struct MountPoints {
    /// Files that are mounted, and directories where a file system is: those below which there
    /// is anything listed, since nothing else can be missed.
    holding: BTreeMap<EntryId, MountPoint>,
    /// Mount points below which nothing is listed.
    empty: BTreeMap<EntryId, MountPoint>,
}

/// A mounted file system, and the identity of the file or directory there, if it is known.
struct MountPoint {
    mounted: Mounted,
    identity: Option<Identity>,
}

impl MountPoints {
    /// Returns the mount points, each once.
    pub(super) fn ids(&self) -> impl Iterator<Item = &EntryId> {
        self.holding.keys().chain(self.empty.keys())
    }

    /// Records a mount at an entry, given with its path.
    fn add(&mut self, tree: &Tree, id: EntryId, path: &[u8], found: MountPoint) {
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
            let found = MountPoint {
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
                let unknown = || MountPoint {
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
    fn mounted_at(&self, path: &[u8], mount: &Mount) -> Option<(EntryId, MountPoint)> {
        let id = self.find(path)?;
        // Files were perhaps not looked at; their identities are compared when they are.
        let identity = mount.is_seen_as(self.listing.identity(id))?;
        let plain = matches!(self.listing.kind(id), FileKind::Dir | FileKind::File);
        let uuid = plain.then(|| mount.uuid(identity.dev));
        let found = MountPoint {
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

#[cfg(test)]
mod tests {
    use bc_fs::mount::entries_of;

    use super::*;

    const TEXT: &[u8] = b"\
22 1 8:2 / / rw - ext4 /dev/sda2 rw
30 22 0:40 / /srv/nfs rw shared:5 master:1 - nfs4 box:/export\\040two rw
31 22 0:41 / /srv/auto rw - autofs systemd-1 rw
32 22 0:41 / /srv/late rw - autofs systemd-1 rw
33 32 8:17 / /srv/late rw - xfs /dev/sdb1 rw
34 22 8:18 / /srv/a\\040b\\134c rw - ext4 /dev/sdb2 rw
35 22 8:19 / /srv/a\\040b\\134c rw - ext4 /dev/sdb3 rw
36 22 8:20 / /srvx rw - ext4  rw
37 22 0:42 /@\\040home/\\134x /else rw - btrfs /dev/sdb4 rw,subvolid=257,subvol=/@\\040home
bad
";

    #[test]
    fn what_is_mounted_below() {
        let mounts = MountTable::of_entries(entries_of(TEXT));
        let found: Vec<(&[u8], &str)> = mounts
            .below(Path::new("/srv"))
            .map(|(path, mount)| (path, &mount.source[..]))
            .collect();
        let expected: [(&[u8], &str); 3] = [
            (b"nfs", "box:/export two"),
            (b"late", "/dev/sdb1"),
            (b"a b\\c", "/dev/sdb3"),
        ];
        assert_eq!(found, expected);
        assert_eq!(mounts.below(Path::new("/srv/nfs")).count(), 0);
        assert_eq!(mounts.below(Path::new("/")).count(), 5);
    }

    #[test]
    fn what_of_a_file_system_is_mounted() {
        let mounts = MountTable::of_entries(entries_of(TEXT));
        let recorded = |path: &str| {
            let mount = mounts.of(Path::new(path)).unwrap();
            let recorded = mount.recorded(None);
            (recorded.root, recorded.subvolid)
        };
        assert_eq!(recorded("/srv/nfs/x"), (Some("/".into()), None));
        let volume = (Some("/@ home/\\x".into()), Some(257));
        assert_eq!(recorded("/else/x"), volume);
    }

    #[test]
    fn what_a_path_lies_on() {
        let mounts = MountTable::of_entries(entries_of(TEXT));
        let of = |path: &str| mounts.of(Path::new(path)).map(|mount| &mount.source[..]);
        assert_eq!(of("/srv/nfs/not/there"), Some("box:/export two"));
        assert_eq!(of("/srvx/not/there"), Some(""));
        let here = MountTable::read();
        if let Some(mounts) = here {
            assert!(mounts.of(Path::new("/proc/self")).is_some());
        }
    }
}
