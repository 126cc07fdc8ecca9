//! File systems recorded in a manifest, and the entries on them that may be of the very files in
//! question: each entry is judged by the file system that it was on, the root's or one that was
//! mounted below.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bc_fs::dirfd;
use bc_fs::mount::{Inodes, Mounts, Shows};
use bc_fs::path::split;
use bc_manifest::integrity::{Header, Mounted};
use bc_walk::{FileStat, Identity, Stamp};

use super::entries::ReferenceCopy;
use super::home::{FileSystem, Home};
use crate::subtrees::Subtrees;
use crate::traces::{Kin, Trace};

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
