//! The tree that a manifest was made of: a manifest whose tree is one of those in question records no
//! other copy. File systems are identified by their UUID, or else by the source of the mount, or else
//! by the path alone; trees on one file system by their paths within it. Each entry is judged by the
//! file system that it was on, the root's or one that was mounted below.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_fs::dirfd;
use bc_fs::mount::{Inodes, MountEntry, Mounts, Shows};
use bc_fs::path::split;
use bc_manifest::integrity::{Header, Mounted};
use bc_walk::{FileStat, Identity, Stamp};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::entries::ReferenceCopy;
use crate::subtrees::Subtrees;
use crate::traces::{Kin, Trace};

/// Relation of a manifest's tree to the roots in question.
#[derive(Debug, Default)]
pub(super) struct Home {
    /// The roots.
    places: Vec<RootLocation>,
    /// Paths of entries below which the roots in question lie, each with a closing slash.
    around: Vec<Vec<u8>>,
}

impl Home {
    /// Compares the header with every root.
    ///
    /// # Errors
    /// A message, if the manifest's tree is one of the roots or lies in one, or may.
    pub(super) fn of<'p>(
        header: &Header,
        roots: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Home, String> {
        let mounts = bc_fs::mount::entries().unwrap_or_default();
        let was = RootLocation::recorded(header, &mounts);
        let mut home = Home::default();
        for root in roots {
            let path = Path::new(OsStr::from_bytes(root));
            let Some(place) = RootLocation::of(path, &mounts) else {
                // A missing root is reported by the search of it.
                match path.symlink_metadata() {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    _ => {
                        let root = bc_fs::escape(root);
                        return Err(format!("may be of {root}, whose place cannot be found"));
                    }
                }
            };
            match was.to(&place) {
                Some(Overlap::Within) => {
                    let own = header.root.as_deref().unwrap_or_default();
                    return Err(format!(
                        "is a manifest of {}, which is or may be {} itself: it says nothing of any \
                         other copy",
                        bc_fs::escape(own),
                        bc_fs::escape(root)
                    ));
                }
                Some(Overlap::Beside(around)) => home.around.extend(around),
                None => {}
            }
            home.places.push(place);
        }
        Ok(home)
    }

    /// The paths of entries, each with a closing slash, below which the roots lay.
    pub(super) fn around(&self) -> &[Vec<u8>] {
        &self.around
    }

    /// Returns the same paths for a file system that was mounted below the manifest's root, at
    /// `path`.
    pub(super) fn around_mount(
        &self,
        header: &Header,
        path: &[u8],
        mounted: &Mounted,
    ) -> Vec<Vec<u8>> {
        let root = header.root.as_deref().unwrap_or_default();
        let point = Path::new(OsStr::from_bytes(root)).join(OsStr::from_bytes(path));
        let within = mounted.root.as_deref().unwrap_or("/");
        let was = RecordedRoot {
            root: Some(&point),
            file_system: FileSystem::mounted(mounted),
            within: vec![PathBuf::from(within)],
        };
        let below = |around: Vec<u8>| [path, b"/", &around].concat();
        let all = self.places.iter().filter_map(|place| was.to(place));
        let paths = all.flat_map(|lies| match lies {
            Overlap::Within => vec![below(Vec::new())],
            Overlap::Beside(around) => around.into_iter().map(below).collect(),
        });
        paths.collect()
    }
}

/// Relation of a recorded tree to a root.
enum Overlap {
    /// It is the root, or below it.
    Within,
    /// Elsewhere, or around it: entries below these paths are the root's.
    Beside(Vec<Vec<u8>>),
}

/// Properties that identify a file system.
#[derive(Debug, Default)]
pub(super) struct FileSystem {
    uuid: Option<String>,
    /// Source of the mount, if it identifies anything.
    source: Option<String>,
    /// It may show files of others, under numbers and a UUID of its own.
    shows_others: bool,
    /// It may have files of a Btrfs of another UUID, which it grew from or which grows from it.
    shares_seeds: bool,
}

impl FileSystem {
    /// The one that a manifest's root is on.
    pub(super) fn recorded(header: &Header) -> FileSystem {
        FileSystem {
            uuid: header.fs_uuid.clone(),
            source: meaningful(header.mount_source.as_deref()),
            shows_others: may_show_others(header.mount_source.as_deref()),
            shares_seeds: false,
        }
    }

    /// Returns a file system that was mounted below that.
    pub(super) fn mounted(mounted: &Mounted) -> FileSystem {
        FileSystem {
            uuid: mounted.fs_uuid.clone(),
            source: meaningful(Some(&mounted.source)),
            shows_others: may_show_others(Some(&mounted.source)),
            shares_seeds: false,
        }
    }

    /// Returns the file system that a path lies on now.
    pub(super) fn at(path: &Path, mounts: &[MountEntry]) -> FileSystem {
        RootLocation::of(path, mounts).map_or_else(FileSystem::default, |place| place.file_system)
    }

    /// True if it may show files of other file systems.
    pub(super) fn shows_others(&self) -> bool {
        self.shows_others
    }

    /// `None`: nothing tells. A disk that is plugged in again may be another device, so other
    /// sources are not other file systems; what shows files of others has a UUID of its own.
    pub(super) fn is(&self, other: &FileSystem) -> Option<bool> {
        let may_share = |one: &FileSystem, other: &FileSystem| {
            let uuid = other.uuid.as_deref().unwrap_or_default();
            one.shows_others || one.shares_seeds && uuid.len() == BTRFS_UUID
        };
        match (&self.uuid, &other.uuid) {
            (Some(one), Some(two)) if one != two => {
                let proves = !may_share(self, other) && !may_share(other, self);
                proves.then_some(false)
            }
            (Some(_), Some(_)) => Some(true),
            _ => (self.source.is_some() && self.source == other.source).then_some(true),
        }
    }
}

/// A directory or file that is there.
#[derive(Debug)]
struct RootLocation {
    real: PathBuf,
    file_system: FileSystem,
    /// The path within the file system.
    within: Option<PathBuf>,
}

/// The root of a manifest.
struct RecordedRoot<'h> {
    root: Option<&'h Path>,
    file_system: FileSystem,
    /// Paths that the root can have within its file system.
    within: Vec<PathBuf>,
}

impl RootLocation {
    fn of(path: &Path, mounts: &[MountEntry]) -> Option<RootLocation> {
        let real = path.canonicalize().ok()?;
        let dev = real.metadata().ok()?.dev();
        let mount = mount_of(&real, mounts);
        let source = mount.map(|mount| &mount.source[..]);
        let directory = match real.is_dir() {
            true => &real,
            false => real.parent()?,
        };
        let within = mount.and_then(|mount| {
            let below = real.strip_prefix(OsStr::from_bytes(&mount.point)).ok()?;
            Some(joined(&mount.root, below))
        });
        let uuid = bc_fs::volume::uuid_at(directory, Some(dev), source);
        let kind = mount.map_or(&[][..], |mount| &mount.kind);
        Some(RootLocation {
            file_system: FileSystem {
                shows_others: shows_others(kind),
                shares_seeds: kind == b"btrfs" && may_share_seeds(uuid.as_deref()),
                uuid,
                source: meaningful(source),
            },
            within,
            real,
        })
    }

    fn recorded<'h>(header: &'h Header, mounts: &[MountEntry]) -> RecordedRoot<'h> {
        let root = header.root.as_deref();
        let root = root.map(|root| Path::new(OsStr::from_bytes(root)));
        let file_system = FileSystem::recorded(header);
        let mut within = Vec::new();
        if let Some(root) = root {
            let now = RootLocation::of(root, mounts);
            let now = now.filter(|now| now.file_system.is(&file_system) == Some(true));
            match now.and_then(|now| now.within) {
                Some(path) => within.push(path),
                // Where it was mounted is not recorded: any part of the path may be below that.
                None => {
                    let top = header.mount_root.as_deref().unwrap_or("/");
                    let names: Vec<_> = root.iter().filter(|name| *name != "/").collect();
                    within.extend((0..=names.len()).map(|from| {
                        let below: PathBuf = names[from..].iter().collect();
                        joined(top, &below)
                    }));
                }
            }
        }
        RecordedRoot {
            root,
            file_system,
            within,
        }
    }
}

impl RecordedRoot<'_> {
    /// Returns its relation to a root; `None` if they are on different file systems.
    fn to(&self, place: &RootLocation) -> Option<Overlap> {
        match (self.file_system.is(&place.file_system), &place.within) {
            (Some(false), _) => None,
            (Some(true), Some(within)) => {
                let all = self.within.iter().map(PathBuf::as_path);
                Some(lies(all, within))
            }
            // Only the path is left; numbers of devices change from boot to boot.
            _ => Some(lies(self.root.into_iter(), &place.real)),
        }
    }
}

/// Returns the relation of a tree with one of these paths to the one at `place`.
fn lies<'p>(paths: impl Iterator<Item = &'p Path>, place: &Path) -> Overlap {
    let mut around = Vec::new();
    for path in paths {
        if path.starts_with(place) {
            return Overlap::Within;
        }
        if let Ok(below) = place.strip_prefix(path) {
            around.push([below.as_os_str().as_bytes(), b"/"].concat());
        }
    }
    Overlap::Beside(around)
}

/// A path within a file system.
fn joined(root: &str, below: &Path) -> PathBuf {
    match below.as_os_str().is_empty() {
        true => PathBuf::from(root),
        false => Path::new(root).join(below),
    }
}

/// A source that names a device or a server, not a kind of file system.
fn meaningful(source: Option<&str>) -> Option<String> {
    let source = source?;
    let means = source.starts_with('/') || source.contains(':');
    means.then(|| source.to_owned())
}

/// Characters of a UUID as a Btrfs has one: those of FAT and NTFS are shorter.
const BTRFS_UUID: usize = 36;

/// True if a recorded source may be that of a mount that shows other file systems' files. Of the
/// type a manifest says nothing: devices, file systems in memory and datasets of a pool (`tank/data`)
/// have their own; overlays have any word, FUSE programs and servers a path or an address.
fn may_show_others(source: Option<&str>) -> bool {
    let source = source.unwrap_or_default();
    let is_own = source.starts_with("/dev/") || ["", "tmpfs", "ramfs"].contains(&source);
    let is_dataset =
        source.contains('/') && !source.starts_with('/') && !source.contains([':', '=', '@']);
    !is_own && !is_dataset
}

/// The same of a type of file system, as the kernel names it. Servers pass on the numbers of files,
/// which tell more.
fn shows_others(kind: &[u8]) -> bool {
    kind == b"overlay" || kind == b"ecryptfs" || kind == b"fuse" || kind.starts_with(b"fuse.")
}

/// True if a mounted Btrfs has a device that it does not write to, or the kernel does not tell:
/// such a device may be a seed, whose files one of another UUID has as well.
fn may_share_seeds(uuid: Option<&str>) -> bool {
    let Some(uuid) = uuid else {
        return true;
    };
    let devices = Path::new("/sys/fs/btrfs").join(uuid).join("devinfo");
    let Ok(devices) = devices.read_dir() else {
        return true;
    };
    let mut devices = devices.peekable();
    devices.peek().is_none()
        || devices.any(|device| {
            let reported = device.and_then(|device| std::fs::read(device.path().join("writeable")));
            !reported.is_ok_and(|reported| reported.starts_with(b"1"))
        })
}

/// The mount that a path without links lies on.
fn mount_of<'m>(real: &Path, mounts: &'m [MountEntry]) -> Option<&'m MountEntry> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let reported = rustix::fs::statx(CWD, real, flags, StatxFlags::MNT_ID).ok();
    let reported = reported.filter(|stat| stat.stx_mask & StatxFlags::MNT_ID.bits() != 0);
    if let Some(stat) = reported
        && let Some(found) = mounts.iter().find(|mount| mount.id == stat.stx_mnt_id)
    {
        return Some(found);
    }
    // The later of equal ones covers the earlier.
    let holds = |mount: &&MountEntry| real.starts_with(OsStr::from_bytes(&mount.point));
    mounts
        .iter()
        .filter(holds)
        .max_by_key(|mount| mount.point.len())
}

/// A device that has files which are asked about.
pub(super) struct Device {
    dev: u64,
    file_system: FileSystem,
    /// Numbers stand for one file over remounts.
    is_numbered: bool,
    /// True if it has files of its own, and shows no others'.
    is_own: bool,
}

/// The devices of some trees.
pub(super) fn devices(trees: &Subtrees) -> Vec<Device> {
    let mounts = bc_fs::mount::entries().unwrap_or_default();
    let mut traits = Mounts::default();
    let device = |(dev, path): (u64, &[u8])| {
        let reported = traits.of(dev, || dirfd::open_root(path).ok());
        let is_own = reported.shows == Shows::Own;
        Device {
            dev,
            file_system: FileSystem::at(Path::new(OsStr::from_bytes(path)), &mounts),
            is_numbered: is_own && reported.inodes == Inodes::Stable,
            is_own,
        }
    };
    trees.devs().map(device).collect()
}

/// A file system that a manifest has entries of.
#[derive(Debug)]
struct System {
    /// The path that it was mounted at, with a closing slash; of the root's nothing.
    below: Vec<u8>,
    /// Relation to each device of the trees.
    kin: Vec<(u64, Kin)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Systems {
    all: Vec<System>,
    /// Paths of entries below which the roots in question lie, each with a closing slash.
    around: Vec<Vec<u8>>,
    /// Directory in which a list was made, if it says so.
    made_in: Option<PathBuf>,
}

impl Systems {
    /// Records the directory in which a list was made.
    pub(super) fn made_in(&mut self, dir: &[u8]) {
        self.made_in = Some(PathBuf::from(OsStr::from_bytes(dir)));
    }

    /// Returns the directory in which a list was made, if it says so.
    pub(super) fn base(&self) -> Option<&Path> {
        self.made_in.as_deref()
    }

    /// Starts with the file system of the root.
    pub(super) fn of(header: &Header, home: &Home, devices: &[Device]) -> Systems {
        let mut systems = Systems {
            all: Vec::new(),
            around: home.around().to_vec(),
            made_in: None,
        };
        systems.push(Vec::new(), &FileSystem::recorded(header), devices);
        systems
    }

    fn push(&mut self, below: Vec<u8>, was: &FileSystem, devices: &[Device]) {
        let kin = devices.iter().map(|device| {
            let kin = match was.is(&device.file_system) {
                Some(true) if device.is_numbered => Kin::One,
                Some(false) => Kin::Two,
                None if was.shows_others() || device.file_system.shows_others() => Kin::Shown,
                _ => Kin::Unproven,
            };
            (device.dev, kin)
        });
        let kin = kin.collect();
        self.all.push(System { below, kin });
    }

    /// Records a file system that was mounted.
    pub(super) fn mounted(
        &mut self,
        path: &[u8],
        mounted: &Mounted,
        header: &Header,
        home: &Home,
        devices: &[Device],
    ) {
        if path == b"." {
            return;
        }
        let below = [path, b"/"].concat();
        self.push(below, &FileSystem::mounted(mounted), devices);
        self.around.extend(home.around_mount(header, path, mounted));
    }

    /// Records the root's number; returns true if it is one of the trees' directories. From a root
    /// that is still where it was the device is known, which distinguishes its files.
    pub(super) fn rooted(
        &mut self,
        ino: u64,
        header: &Header,
        devices: &[Device],
        trees: &Subtrees,
    ) -> bool {
        let root = Path::new(OsStr::from_bytes(
            header.root.as_deref().unwrap_or_default(),
        ));
        let now = rustix::fs::stat(root).map(|stat| FileStat::from(&stat).id);
        let stands = now.is_ok_and(|now| Some(now.dev) == header.root_dev && now.ino == ino);
        let Some(root) = self.all.first_mut() else {
            return false;
        };
        for (dev, kin) in &mut root.kin {
            let device = devices.iter().find(|device| device.dev == *dev);
            let is_own = device.is_some_and(|device| device.is_own);
            if stands && is_own && header.root_dev == Some(*dev) {
                *kin = Kin::One;
            }
        }
        let mut one = root.kin.iter().filter(|(_, kin)| *kin == Kin::One);
        one.any(|(dev, _)| trees.has_dir(Identity { dev: *dev, ino }))
    }

    /// Returns true if an entry may be one of the trees' files, by its path, number and state.
    pub(super) fn may_have(&self, reference_copy: &ReferenceCopy<'_>, trees: &Subtrees) -> bool {
        let path = [reference_copy.path, b"/"].concat();
        if self.around.iter().any(|prefix| path.starts_with(prefix)) {
            return true;
        }
        let (Some(meta), Some(system)) = (&reference_copy.meta, self.system(&path)) else {
            return false;
        };
        let trace = Trace {
            dev: 0,
            ino: meta.ino,
            stamp: Stamp {
                size: meta.size,
                mtime_ns: meta.mtime_ns,
                ctime_ns: meta.ctime_ns,
            },
            name: Trace::name(split(reference_copy.path).1),
        };
        system.kin.iter().any(|(dev, kin)| {
            let (dev, ino) = (*dev, meta.ino);
            *kin != Kin::Two && trees.has_file(Identity { dev, ino })
        }) || trees.traces().is_some_and(|traces| {
            traces.alike(trace.stamp).any(|own| {
                let known = system.kin.iter().find(|(dev, _)| *dev == own.dev);
                own.may_be(&trace, known.map_or(Kin::Unproven, |(_, kin)| *kin))
            })
        })
    }

    /// The innermost one that a path is on.
    fn system(&self, path: &[u8]) -> Option<&System> {
        let all = self.all.iter();
        all.filter(|system| path.starts_with(&system.below))
            .max_by_key(|system| system.below.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(root: &str, uuid: Option<&str>, source: Option<&str>) -> Header {
        let mut header = Header::new("sha256", "0");
        header.root = Some(root.into());
        header.fs_uuid = uuid.map(str::to_owned);
        header.mount_source = source.map(str::to_owned);
        header.mount_root = Some("/".to_owned());
        header
    }

    fn place(real: &str, within: &str, uuid: Option<&str>, source: &str) -> RootLocation {
        RootLocation {
            real: real.into(),
            file_system: FileSystem {
                uuid: uuid.map(str::to_owned),
                source: meaningful(Some(source)),
                ..FileSystem::default()
            },
            within: Some(within.into()),
        }
    }

    /// Returns `None` for a root that is unrelated; else true if the manifest is refused, and the
    /// paths around the root.
    fn outcome(header: &Header, place: &RootLocation) -> Option<(bool, Vec<String>)> {
        Some(match RootLocation::recorded(header, &[]).to(place)? {
            Overlap::Within => (true, Vec::new()),
            Overlap::Beside(around) => {
                let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
                (false, around.into_iter().map(text).collect())
            }
        })
    }

    #[test]
    fn file_systems_are_known_by_uuid_then_source_then_path() {
        let card = || place("/mnt/x", "/", Some("U"), "/dev/sdb1");
        let refused = Some((true, vec![]));
        // Wherever the card is mounted now.
        let own = header("/nowhere/card", Some("U"), Some("/dev/sdc1"));
        assert_eq!(outcome(&own, &card()), refused);
        let other = header("/mnt/x", Some("V"), Some("/dev/sdb1"));
        assert_eq!(outcome(&other, &card()), None);
        let unnamed = || place("/mnt/x", "/", None, "/dev/sdb1");
        assert_eq!(outcome(&other, &unnamed()), refused);
        // Plugged in again it is another device; only the path is left.
        let again = header("/mnt/x", Some("V"), Some("/dev/sdc1"));
        assert_eq!(outcome(&again, &unnamed()), refused);
        let elsewhere = header("/mnt/y", Some("V"), Some("/dev/sdc1"));
        let beside = Some((false, vec![]));
        assert_eq!(outcome(&elsewhere, &unnamed()), beside);
        let memory = || place("/mnt/x", "/", None, "tmpfs");
        assert_eq!(outcome(&other, &memory()), refused);
        let below = header("/mnt/x/sub", None, Some("tmpfs"));
        assert_eq!(outcome(&below, &memory()), refused);
        let around = header("/mnt", None, None);
        assert_eq!(
            outcome(&around, &memory()),
            Some((false, vec!["x/".into()]))
        );
        let beside = header("/mnt/xy", None, None);
        assert_eq!(outcome(&beside, &memory()), Some((false, vec![])));
    }

    #[test]
    fn a_uuid_tells_only_what_has_files_of_its_own() {
        let recorded = |source| {
            let header = header("/x", Some("11111111-2222-3333-4444-555555555555"), source);
            FileSystem::recorded(&header)
        };
        let card = place("/mnt/x", "/", Some("U"), "/dev/sdb1").file_system;
        for source in [Some("/dev/sda1"), Some("tmpfs"), Some("tank/data"), None] {
            assert_eq!(recorded(source).is(&card), Some(false), "{source:?}");
        }
        for source in [
            "overlay",
            "ov",
            "nas:/export",
            "//nas/share",
            "u@h:",
            "/a:/b",
            "a=RW",
        ] {
            assert_eq!(recorded(Some(source)).is(&card), None, "{source}");
            assert!(recorded(Some(source)).shows_others());
        }
        // A Btrfs that may have a seed in common with another, and with nothing else.
        let seed = FileSystem {
            shares_seeds: true,
            ..card
        };
        assert_eq!(recorded(Some("/dev/sda1")).is(&seed), None);
        let fat = header("/x", Some("1234-ABCD"), Some("/dev/sda1"));
        assert_eq!(FileSystem::recorded(&fat).is(&seed), Some(false));
    }

    #[test]
    fn trees_of_one_file_system_are_told_by_their_paths_in_it() {
        let inbox = place("/m/inbox", "/inbox", Some("U"), "/dev/sdb1");
        let recorded = |root| header(root, Some("U"), None);
        // It may have been mounted anywhere on the way.
        for root in ["/nowhere/inbox", "/inbox", "/nowhere/else/inbox/sub"] {
            assert_eq!(
                outcome(&recorded(root), &inbox),
                Some((true, vec![])),
                "{root}"
            );
        }
        let around = outcome(&recorded("/nowhere/disk"), &inbox);
        assert_eq!(around, Some((false, vec!["inbox/".into()])));
    }
}
