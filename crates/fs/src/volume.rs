//! File systems and volumes by names of their own: the UUID of the file system that a file is on, as
//! the kernel knows it (Linux 6.9 and later) or udev, and the parts of one that have numbers of their
//! own.

#![allow(unsafe_code, reason = "rustix has no call for the UUID")]

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{self, AtFlags, Mode, OFlags, StatxFlags};
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use crate::call::{Result, call};
use crate::meta::{FileStat, stat};
use crate::mount::{basic_traits, entries, mount_id};

/// `struct fsuuid2` of `linux/fs.h`.
#[repr(C)]
struct FsUuid {
    len: u8,
    uuid: [u8; 16],
}

/// `FS_IOC_GETFSUUID` of `linux/fs.h`.
const GET: Opcode = opcode::read::<FsUuid>(0x15, 0);

/// Returns the UUID in its usual form, `6a3fe1a0-1f6a-4b6e-9d9a-0d2f3a6b7c8d`; `None` where the
/// file system has none of sixteen bytes, or the kernel does not report it. `fd` is a file or
/// directory opened for reading.
pub(crate) fn file_system_uuid(fd: impl AsFd) -> Option<String> {
    // SAFETY: the opcode's argument is a pointer to `struct fsuuid2`, which `FsUuid` lays out
    // alike, and the kernel fills it whole; every bit pattern of it is valid.
    let getter = unsafe { Getter::<GET, FsUuid>::new() };
    // SAFETY: as above. On what is no file system's the opcode is refused, or, being of a group
    // of its own, means nothing else.
    let found = unsafe { ioctl(fd, getter) }.ok()?;
    if usize::from(found.len) != found.uuid.len() || found.uuid == [0; 16] {
        return None;
    }
    let mut text = String::with_capacity(36);
    for (nth, byte) in found.uuid.iter().enumerate() {
        if matches!(nth, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Some(text)
}

/// True if two open files with different device numbers may be on one file system all the same, as
/// an image is that is mounted on two loop devices. A copy of a whole disk, UUID included, cannot
/// be distinguished from that.
pub fn may_be_one_file_system(one: impl AsFd, other: impl AsFd) -> bool {
    let (one, other) = (one.as_fd(), other.as_fd());
    // For ext4 and Btrfs it comes from the UUID, for the latter from the subvolume as well; for the
    // others mostly from the number of the device.
    let id = |fd| {
        let id = fs::fstatvfs(fd).ok()?.f_fsid;
        (id != 0).then_some(id)
    };
    if id(one).is_some() && id(one) == id(other) {
        return true;
    }
    has_subvolumes(one) == Some(false)
        && file_system_uuid(one).is_some_and(|uuid| file_system_uuid(other) == Some(uuid))
}

/// Returns the UUID of the file system that `path`, a directory or a regular file with the device
/// number `dev`, is on: from the kernel, or by the links that udev keeps.
pub fn uuid_at(path: impl AsRef<Path>, dev: Option<u64>, source: Option<&str>) -> Option<String> {
    uuid_of(path.as_ref(), dev, source)
}

/// Returns the name of the volume that a directory is on, by which it is known again wherever and
/// however often it is mounted: the UUID of its file system, with the subvolume where it has
/// several; where it has none, its type and source, which may be those of others too. `None` where
/// the directory cannot be opened.
pub fn volume_at(path: impl AsRef<Path>) -> Option<String> {
    let path = path.as_ref();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = fs::open(path, flags, Mode::empty()).ok()?;
    #[allow(clippy::unnecessary_cast)] // The field's width differs between architectures.
    let dev = fs::fstat(&dir).ok()?.st_dev as u64;
    let Some(uuid) = uuid_of(path, Some(dev), None) else {
        let id = mount_id(&dir)?;
        let mount = entries()?.into_iter().find(|mount| mount.id == id)?;
        let kind = String::from_utf8_lossy(&mount.kind).into_owned();
        return Some(format!("{kind} {}", mount.source));
    };
    let id = fs::fstatvfs(&dir).map_or(0, |found| found.f_fsid);
    match has_subvolumes(&dir) {
        Some(true) => Some(format!("{uuid} {id:x}")),
        _ => Some(uuid),
    }
}

/// True if the file system may have subvolumes, which have numbers of devices and inodes of their own
/// and one UUID; `None` where the system does not report its type.
fn has_subvolumes(fd: impl AsFd) -> Option<bool> {
    let traits = basic_traits(fd).ok()?;
    Some([BTRFS, BCACHEFS].contains(&traits.name))
}

fn uuid_of(path: &Path, dev: Option<u64>, source: Option<&str>) -> Option<String> {
    if let Some(uuid) = File::open(path).ok().and_then(file_system_uuid) {
        return Some(uuid);
    }
    // The device itself, or, on btrfs, that of the mount.
    let of_source = source
        .filter(|source| source.starts_with('/'))
        .and_then(|source| std::fs::metadata(source).ok())
        .filter(|meta| meta.file_type().is_block_device())
        .map(|meta| meta.rdev());
    let devices = [dev, of_source];
    let links = std::fs::read_dir("/dev/disk/by-uuid").ok()?.flatten();
    let found = links.into_iter().find(|link| {
        let device = std::fs::metadata(link.path());
        device.is_ok_and(|meta| devices.contains(&Some(meta.rdev())))
    })?;
    found.file_name().into_string().ok()
}

/// `STATX_SUBVOL` of `linux/stat.h`, since Linux 6.10.
const SUBVOLUME: StatxFlags = StatxFlags::from_bits_retain(0x8000);

/// Inode number of an empty directory that replaces in a snapshot a subvolume of the original,
/// `BTRFS_EMPTY_SUBVOL_DIR_OBJECTID` of `linux/btrfs_tree.h`.
const PLACEHOLDER: u64 = 2;

/// True for a directory that begins a part of its file system which has numbers of its own, and for
/// one that stands for such a part: subvolumes of Btrfs and bcachefs. `above` is the directory that it
/// is in.
pub fn is_subvolume(dir: impl AsFd, above: impl AsFd) -> Result<bool> {
    let wanted = StatxFlags::INO | SUBVOLUME;
    let look = |at: BorrowedFd<'_>| {
        let found = call("stat", || fs::statx(at, c"", AtFlags::EMPTY_PATH, wanted));
        match found {
            Ok(found) => {
                let reported = StatxFlags::from_bits_retain(found.stx_mask).contains(SUBVOLUME);
                let part = reported.then_some(found.stx_subvol);
                Ok((FileStat::from(&found).id, part))
            }
            // Some filters do not know the call.
            Err(_) => Ok((stat(at)?.id, None)),
        }
    };
    let ((here, part), (there, part_above)) = (look(dir.as_fd())?, look(above.as_fd())?);
    if here.dev != there.dev {
        return Ok(true);
    }
    // On an overlay the numbers are those of the layers.
    let is_kind = |kinds: &[&str]| Ok(kinds.contains(&basic_traits(&dir)?.name));
    Ok(part != part_above && is_kind(&[BTRFS, BCACHEFS])?
        || here.ino == PLACEHOLDER && is_kind(&[BTRFS])?)
}

/// True for the recorded number of a directory that [was one](is_subvolume), if `dir` is on the file
/// system that it was on. The first number of a subvolume is `BTRFS_FIRST_FREE_OBJECTID`.
pub fn was_subvolume(ino: u64, dir: impl AsFd) -> bool {
    matches!(ino, PLACEHOLDER | 256) && basic_traits(dir).is_ok_and(|traits| traits.name == BTRFS)
}

/// Name in the table of file systems.
pub const BTRFS: &str = "Btrfs";
const BCACHEFS: &str = "bcachefs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_like_one_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::open(dir.path()).unwrap();
        if let Some(uuid) = file_system_uuid(&file) {
            assert_eq!(uuid.len(), 36, "{uuid}");
            assert_eq!(file_system_uuid(&file), Some(uuid));
        }
        let volume = volume_at(dir.path());
        let uuid = uuid_at(dir.path(), None, None);
        assert!(uuid.is_none_or(|uuid| volume.as_ref().unwrap().starts_with(&uuid)));
        assert_eq!(volume, volume_at(dir.path()));
        assert_eq!(volume_at(dir.path().join("absent")), None);
        let null = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(file_system_uuid(&null), None);
    }
}
