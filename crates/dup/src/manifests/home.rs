//! Whether the tree that a manifest was made of is one of those that are asked about: then it says
//! nothing of any other disk. File systems are known by their UUID, or else by the source of the
//! mount, or else by the path alone; trees on one file system by their paths within it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_fs::mount::MountEntry;
use bc_manifest::integrity::Header;
use rustix::fs::{AtFlags, CWD, StatxFlags};

/// What is known of how a manifest's tree lies to the roots that are asked about.
#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    /// Devices of roots that are on the manifest's file system: its inode numbers mean the same
    /// there.
    devs: HashSet<u64>,
    /// Paths of entries below which lies what is asked about, each with a closing slash.
    around: Vec<Vec<u8>>,
}

impl Home {
    /// Compares the header with every root.
    ///
    /// # Errors
    /// In words, if the manifest's tree is one of the roots or lies in one, or may.
    pub(super) fn of<'p>(
        header: &Header,
        roots: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Home, String> {
        let mounts = bc_fs::mount::entries().unwrap_or_default();
        let was = Place::recorded(header, &mounts);
        let mut home = Home::default();
        for root in roots {
            let path = Path::new(OsStr::from_bytes(root));
            let Some(place) = Place::of(path, &mounts) else {
                // What is not there is reported by whoever searches it.
                match path.symlink_metadata() {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    _ => {
                        let root = bc_fs::escape(root);
                        return Err(format!("may be of {root}, whose place cannot be found"));
                    }
                }
            };
            let Some((on_one, lies)) = was.to(&place) else {
                continue;
            };
            home.devs.extend(on_one.then_some(place.dev));
            match lies {
                Lies::Within => {
                    let own = header.root.as_deref().unwrap_or_default();
                    return Err(format!(
                        "is a manifest of {}, which is or may be {} itself: it says nothing of any \
                         other copy",
                        bc_fs::escape(own),
                        bc_fs::escape(root)
                    ));
                }
                Lies::Beside(around) => home.around.extend(around),
            }
        }
        Ok(home)
    }

    /// Whether an entry may be one of the files that are asked about, `own` being those by device and
    /// inode number.
    pub(super) fn is_own(
        &self,
        path: &[u8],
        ino: Option<u64>,
        own: impl Fn(u64, u64) -> bool,
    ) -> bool {
        let numbered = |ino: u64| self.devs.iter().any(|dev| own(*dev, ino));
        ino.is_some_and(numbered) || self.around.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// How a recorded tree lies to a root.
enum Lies {
    /// It is that, or below it.
    Within,
    /// Elsewhere, or around it: entries below these paths are the root's.
    Beside(Vec<Vec<u8>>),
}

/// What tells a file system from others.
#[derive(Debug, Default)]
struct FileSystem {
    uuid: Option<String>,
    /// Of the mount, if it means anything.
    source: Option<String>,
}

impl FileSystem {
    /// `None`: nothing tells.
    fn is(&self, other: &FileSystem) -> Option<bool> {
        match (&self.uuid, &other.uuid) {
            (Some(one), Some(other)) => Some(one == other),
            _ => match (&self.source, &other.source) {
                (Some(one), Some(other)) => Some(one == other),
                _ => None,
            },
        }
    }
}

/// A directory or file that is there.
struct Place {
    real: PathBuf,
    dev: u64,
    file_system: FileSystem,
    /// The path within the file system.
    within: Option<PathBuf>,
}

/// The root of a manifest.
struct Recorded<'h> {
    root: Option<&'h Path>,
    file_system: FileSystem,
    /// What it can be called within its file system.
    within: Vec<PathBuf>,
}

impl Place {
    fn of(path: &Path, mounts: &[MountEntry]) -> Option<Place> {
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
        Some(Place {
            dev,
            file_system: FileSystem {
                uuid: bc_fs::uuid_at(directory, Some(dev), source),
                source: meaningful(source),
            },
            within,
            real,
        })
    }

    fn recorded<'h>(header: &'h Header, mounts: &[MountEntry]) -> Recorded<'h> {
        let root = header.root.as_deref();
        let root = root.map(|root| Path::new(OsStr::from_bytes(root)));
        let file_system = FileSystem {
            uuid: header.fs_uuid.clone(),
            source: meaningful(header.mount_source.as_deref()),
        };
        let mut within = Vec::new();
        if let Some(root) = root {
            let now = Place::of(root, mounts);
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
        Recorded {
            root,
            file_system,
            within,
        }
    }
}

impl Recorded<'_> {
    /// How it lies to a root, and whether both are known to be on one file system; `None` if they
    /// have nothing to do with each other.
    fn to(&self, place: &Place) -> Option<(bool, Lies)> {
        match (self.file_system.is(&place.file_system), &place.within) {
            (Some(false), _) => None,
            (Some(true), Some(within)) => {
                let all = self.within.iter().map(PathBuf::as_path);
                Some((true, lies(all, within)))
            }
            // Nothing but the path tells; numbers of devices change from boot to boot.
            (known, _) => {
                let own = lies(self.root.into_iter(), &place.real);
                Some((known == Some(true), own))
            }
        }
    }
}

/// How a tree with one of these paths lies to the one at `place`.
fn lies<'p>(paths: impl Iterator<Item = &'p Path>, place: &Path) -> Lies {
    let mut around = Vec::new();
    for path in paths {
        if path.starts_with(place) {
            return Lies::Within;
        }
        if let Ok(below) = place.strip_prefix(path) {
            around.push([below.as_os_str().as_bytes(), b"/"].concat());
        }
    }
    Lies::Beside(around)
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

/// The mount that a path without links lies on.
fn mount_of<'m>(real: &Path, mounts: &'m [MountEntry]) -> Option<&'m MountEntry> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let told = rustix::fs::statx(CWD, real, flags, StatxFlags::MNT_ID).ok();
    let told = told.filter(|stat| stat.stx_mask & StatxFlags::MNT_ID.bits() != 0);
    if let Some(stat) = told
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

    fn place(real: &str, within: &str, uuid: Option<&str>, source: &str) -> Place {
        Place {
            real: real.into(),
            dev: 7,
            file_system: FileSystem {
                uuid: uuid.map(str::to_owned),
                source: meaningful(Some(source)),
            },
            within: Some(within.into()),
        }
    }

    /// `None`: nothing to do with each other; else whether it is refused, and what lies around.
    fn outcome(header: &Header, place: &Place) -> Option<(bool, Vec<String>)> {
        let (_, lies) = Place::recorded(header, &[]).to(place)?;
        Some(match lies {
            Lies::Within => (true, Vec::new()),
            Lies::Beside(around) => {
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
        let elsewhere = header("/mnt/x", Some("V"), Some("/dev/sdc1"));
        assert_eq!(outcome(&elsewhere, &unnamed()), None);
        // Only the path is left.
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
