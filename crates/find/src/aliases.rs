//! Detection of files of some trees that are visible under another device number: through a view,
//! or because one file system is mounted twice as two devices.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_fs::dirfd;
use bc_fs::meta;
use bc_fs::mount::Shows;
use bc_pool::Cancel;
use bc_walk::{FileStat, Identity, Stamp};

use crate::subtrees::Subtrees;
use crate::traces::{Kin, Trace};
use crate::views::{Views, equally_large};

/// Relation of each device met so far to the trees' devices, determined once per device.
pub(crate) struct Aliases<'a> {
    trees: &'a Subtrees,
    views: Views,
    known: HashMap<u64, DeviceRelation>,
    cancel: &'a Cancel,
}

/// Relation of one device to the trees' devices.
#[derive(Clone, Debug)]
struct DeviceRelation {
    /// True if directories there may be the trees' under other numbers.
    involved: bool,
    /// An overlay that may show entries of the trees, under whatever names and times.
    is_layered: bool,
    /// The trees' other devices that it may be one with, or show.
    others: Vec<Other>,
}

#[derive(Clone, Copy, Debug)]
struct Other {
    dev: u64,
    /// It has the same UUID: equal numbers are one file.
    is_twin: bool,
    kin: Kin,
    /// One of the two shows the other's files, as far as their sizes indicate.
    is_shown: bool,
}

impl<'a> Aliases<'a> {
    pub(crate) fn new(trees: &'a Subtrees, cancel: &'a Cancel) -> Aliases<'a> {
        Aliases {
            trees,
            views: Views::default(),
            known: HashMap::new(),
            cancel,
        }
    }

    /// Returns true if directories of a device may be the trees' under other numbers, or if `dir`
    /// cannot be opened to find out.
    pub(crate) fn involve(&mut self, dev: u64, dir: impl FnOnce() -> Option<OwnedFd>) -> bool {
        if !self.known.contains_key(&dev) {
            let Some(dir) = dir() else {
                return true;
            };
            self.ask(dev, &dir);
        }
        self.known[&dev].involved
    }

    fn ask(&mut self, dev: u64, dir: &OwnedFd) {
        let involved = self.views.involve(self.trees, dir, dev);
        let shows = self.views.shows(dir, dev);
        let mut others = Vec::new();
        for (other, path) in self.trees.devs().filter(|(other, _)| *other != dev) {
            let (kin, is_twin, is_shown) = match dirfd::open_root(path) {
                Ok(there) => {
                    let views =
                        shows != Shows::Own || self.views.shows(&there, other) != Shows::Own;
                    let alike = equally_large(dir, &there);
                    // A server's disk of another size is another one.
                    let remote = self.views.is_remote(dir, dev) && !alike;
                    let (kin, is_twin) = kin(dir, &there);
                    let kin = if remote && !is_twin { Kin::Two } else { kin };
                    // The size of an overlay is that of its upper layer.
                    let is_shown = views && alike || shows == Shows::Layers;
                    (kin, is_twin, is_shown)
                }
                Err(_) => (Kin::Unproven, true, false),
            };
            if involved || kin != Kin::Two || is_shown {
                others.push(Other {
                    dev: other,
                    is_twin,
                    kin,
                    is_shown,
                });
            }
        }
        let is_layered = shows == Shows::Layers && has_layer_of(self.trees, dir);
        let device = DeviceRelation {
            involved,
            is_layered,
            others,
        };
        self.known.insert(dev, device);
    }

    /// Returns true if a file in a directory on `dev` may be one of the trees'. The caller has
    /// found that they contain a file of equal content.
    pub(crate) fn may_be_own(
        &mut self,
        id: Identity,
        stamp: Stamp,
        name: &CStr,
        dev: u64,
        dir: impl Fn() -> Option<OwnedFd>,
    ) -> bool {
        if !self.known.contains_key(&dev) {
            let Some(dir) = dir() else {
                return true;
            };
            self.ask(dev, &dir);
        }
        let device = &self.known[&dev];
        if device.is_layered {
            return true;
        }
        if !device.involved && device.others.is_empty() {
            return false;
        }
        let trace = Trace {
            dev: id.dev,
            ino: id.ino,
            stamp,
            name: Trace::name(name.to_bytes()),
        };
        if is_one_of(self.trees, &device.others, &trace) {
            return true;
        }
        if !device.involved {
            return false;
        }
        let Some(dir) = dir() else {
            return true;
        };
        let seen = self.views.may_show(self.trees, &dir, name, self.cancel);
        seen.unwrap_or(true)
    }
}

/// Returns true if the file of a trace may be one that is on other devices of the trees.
fn is_one_of(trees: &Subtrees, others: &[Other], trace: &Trace) -> bool {
    let numbered = |other: &Other| {
        let (dev, ino) = (other.dev, trace.ino);
        other.is_twin && trees.has_file(Identity { dev, ino })
    };
    if others.iter().any(numbered) {
        return true;
    }
    let Some(traces) = trees.traces() else {
        return false;
    };
    let mut alike = traces.alike(trace.stamp);
    alike.any(|own| {
        let found = others.iter().find(|other| other.dev == own.dev);
        found.is_some_and(|other| other.is_shown || own.may_be(trace, other.kin))
    })
}

/// Returns true if a layer of an overlay lies in the trees, or one of them in it. A layer that is
/// named relative to an unknown directory counts, as it cannot be looked up; one that cannot be
/// opened does not, as the trees cannot be there.
fn has_layer_of(trees: &Subtrees, dir: &OwnedFd) -> bool {
    bc_fs::mount::layers_of(dir).iter().any(|layer| {
        if !layer.starts_with(b"/") {
            return true;
        }
        let opened = dirfd::open_root(layer);
        let Some(id) = opened
            .ok()
            .and_then(|layer| Some(meta::stat(&layer).ok()?.id))
        else {
            return false;
        };
        let files = trees.open_files().map(|(_, file)| file);
        let mut tops = trees.open_dirs().chain(files);
        trees.has_dir(id) || tops.any(|top| may_lie_in(top, id))
    })
}

/// True if an open file or directory lies in a directory, or may: where the system does not tell
/// its place, or what is above it.
fn may_lie_in(top: &OwnedFd, dir: Identity) -> bool {
    let Some(real) = dirfd::real_path(top) else {
        return true;
    };
    let mut above = Path::new(OsStr::from_bytes(&real)).ancestors();
    above.any(|above| {
        let stat = rustix::fs::stat(above);
        stat.is_ok_and(|stat| FileStat::from(&stat).id == dir) || stat.is_err()
    })
}

/// Returns the relation of two mounted file systems with two device numbers, and true if they may
/// be one file system (the same UUID).
fn kin(one: &OwnedFd, other: &OwnedFd) -> (Kin, bool) {
    if bc_fs::volume::may_be_one_file_system(one, other) {
        return (Kin::Unproven, true);
    }
    match are_two(one, other) {
        true => (Kin::Two, false),
        false => (Kin::Unproven, false),
    }
}

/// Returns true if two mounted file systems are provably two: their UUIDs differ, or one of them is
/// in memory, or their formats differ.
fn are_two(first: &OwnedFd, second: &OwnedFd) -> bool {
    let uuid = |dir: &OwnedFd| {
        let opened = dirfd::open_dir_at(dir, b".").ok()?;
        let dev = meta::stat(&opened).ok()?.id.dev;
        let path = dirfd::own_path(&opened);
        bc_fs::volume::uuid_at(Path::new(&path), Some(dev), None)
    };
    if let (Some(one), Some(other)) = (uuid(first), uuid(second)) {
        return one != other;
    }
    let kind = |dir: &OwnedFd| {
        let found = rustix::fs::fstatfs(dir.as_fd()).ok()?;
        let kind = found.f_type as u32;
        Some(kind)
    };
    let (Some(one), Some(other)) = (kind(first), kind(second)) else {
        return false;
    };
    // That of ext4 comes from its UUID.
    let numbers = [first, second].map(|dir| rustix::fs::fstatvfs(dir).ok().map(|stat| stat.f_fsid));
    let reported = numbers
        .iter()
        .all(|number| number.is_some_and(|number| number != 0));
    if (one, other) == (EXT4, EXT4) && reported && numbers[0] != numbers[1] {
        return true;
    }
    let in_memory = [one, other].iter().any(|kind| MEMORY.contains(kind));
    in_memory || one != other && DISKS.contains(&one) && DISKS.contains(&other)
}

/// `EXT4_SUPER_MAGIC`.
const EXT4: u32 = 0xef53;
/// `TMPFS_MAGIC` and `RAMFS_MAGIC`.
pub(crate) const MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
/// Magic numbers of ext4, XFS, Btrfs, F2FS, FAT, exFAT and SquashFS: no disk is two of these.
const DISKS: [u32; 7] = [
    EXT4,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x4d44,
    0x2011_bab0,
    0x7371_7368,
];
