//! Promises that a file system can be relied on for: one table, asked once per device.
//!
//! The table is by `statfs(2)` magic number and, where one number stands for many file systems
//! (FUSE), by the type in `/proc/self/mountinfo`. For file systems that it does not contain it
//! answers "unknown", which the caller has to treat as "no".
//!
//! One answer is not in the table because it depends on the kernel as much as on the file system:
//! whether a read reports what is resident (`RWF_NOWAIT`). Readers learn that by trying once.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};
use rustix::io::Errno;

use crate::call::{self, call};

mod mountinfo;
mod queries;
mod table;

pub use mountinfo::{BindMounts, MountEntry, TABLE, entries, entries_of};
pub use queries::{Layer, layer_of};

use mountinfo::entry;

/// The answer to a question about a file system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Yes, always.
    Yes,
    /// Never.
    No,
    /// Unknown, or not the same for all of its files: expect the worse.
    Unknown,
}

/// Lifetime of the association of an inode number with one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Inodes {
    /// Stable as long as the file exists, over remounts and restarts.
    Stable,
    /// Stable at most as long as the file system is mounted: the number may stand for another file
    /// afterwards, or as soon as the kernel forgets the file.
    Moving,
    /// Unknown.
    Unknown,
}

/// Meaning of the change time of an inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CtimeTrust {
    /// Time when content or metadata changed last; no program can set it.
    Real,
    /// The mtime again, or a time chosen by an image's maker: it proves nothing.
    MadeUp,
    /// Unknown.
    Unknown,
}

/// Greatest number of names that a file can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Links {
    /// Only one.
    One,
    /// This number.
    UpTo(u64),
    /// More than one; the limit is found by trying.
    Many,
    /// Unknown, as is whether all names of a file have its inode number.
    Unknown,
}

/// Origin of the files that a file system shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shows {
    /// Only its own files: two inode numbers of a device are two files, and no other device has
    /// them.
    Own,
    /// Files of its layers, which other mounts show under other numbers; within the mount its
    /// numbers are unique.
    Layers,
    /// Files of another file system or of a server: two numbers may be one file.
    Others,
}

/// Decompression of the files' content at a read, so that a read waits for a processor more than
/// for a disk, and a part costs what a whole block does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Decompression {
    /// Not decompressed, or not all files.
    #[default]
    None,
    /// Each reader decompresses its own data.
    ByEach,
    /// Readers share one decompressor, or one for each processor (`SQUASHFS_DECOMP_SINGLE` and its
    /// like in fs/squashfs/Kconfig), or a few blocks that are kept: more of them only get into each
    /// other's way.
    InTurn,
}

/// Identity of a device, or of several that count their bytes as one: two files with an extent at
/// the same place of equal disks, as `FIEMAP` reports it, have the same bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Disk(u128);

impl Disk {
    /// Returns the disk of a file system that has one device number (`st_dev`) and one device.
    pub fn of_device(dev: u64) -> Disk {
        Disk(dev.into())
    }
}

/// Properties of the file system that a file is on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Traits {
    /// Name for messages.
    pub name: &'static str,
    /// True if the kernel makes up its files; sizes mean nothing and reading may have effects.
    pub pseudo: bool,
    /// `Yes` if `st_size` is the number of bytes that there are to read.
    pub sizes: Answer,
    /// `Yes` if all of a mount has one device number and directory entries carry the inode numbers
    /// of `stat(2)`.
    pub plain: Answer,
    /// Lifetime of inode numbers.
    pub inodes: Inodes,
    /// Number from which on inode numbers are another file system's, of which nothing is known.
    pub inodes_below: u64,
    /// Meaning of change times.
    pub ctime: CtimeTrust,
    /// The coarsest step, in nanoseconds, in which it keeps mtimes.
    pub mtime_step_ns: u64,
    /// `Yes` if files can share extents, and be made to by `FIDEDUPERANGE`.
    pub reflinks: Answer,
    /// Disk that its extents are on; `None` where their places say nothing about other files. The
    /// subvolumes of one file system have one.
    pub disk: Option<Disk>,
    /// Greatest number of names that a file can have.
    pub links: Links,
    /// `Yes` if symbolic links can be made that lead anywhere on it.
    pub symlinks: Answer,
    /// `Yes` if small files can be stored in the metadata, where nothing is shared.
    pub inline: Answer,
    /// `Yes` if `st_blocks` is the space that a file takes: elsewhere it is computed from the size.
    pub blocks: Answer,
    /// Origin of the files that it shows.
    pub shows: Shows,
    /// `Yes` if changing a file's metadata may copy its content.
    pub copy_up: Answer,
    /// True if blocks of removed files become free a little later, in the background.
    pub frees_later: bool,
    /// `Yes` if it is on another machine.
    pub network: Answer,
    /// `Yes` if each open of a file asks a server, whatever the kernel remembers of its name
    /// (`RESOLVE_CACHED` is about the name alone).
    pub asks_at_open: Answer,
    /// Decompression of file content by the kernel or a server.
    pub decompression: Decompression,
    /// True if its files are only in memory, so that no read waits for a device.
    pub in_memory: bool,
    /// True if nothing can ever be changed in it, however it is mounted.
    pub immutable: bool,
    /// True if nothing can be changed through this mount.
    pub read_only: bool,
}

impl Traits {
    /// True if equal device and inode numbers, at one moment, are one file. Elsewhere they may be
    /// passed on from several file systems that number alike.
    pub fn numbers_are_its_own(&self) -> bool {
        self.shows != Shows::Others
    }

    /// True if directory entries report the kind of each file reliably. Unions of several file
    /// systems list the entry of one and show the file of another, by policies of their own.
    pub fn lists_kinds(&self) -> bool {
        self.shows != Shows::Others || self.network == Answer::Yes
    }

    /// True if an unchanged device, inode, size, mtime and ctime prove that the content is
    /// unchanged, over remounts too, for a file with this inode number.
    pub fn identity_proves_content(&self, ino: u64) -> bool {
        self.inodes == Inodes::Stable && self.ctime == CtimeTrust::Real && ino < self.inodes_below
    }
}

/// Returns the traits that the magic number alone gives for the file system that `file` is on: one
/// call, enough to recognise pseudo and plain file systems.
///
/// # Errors
/// `fstatfs` as the system gives it.
pub fn basic_traits(file: impl AsFd) -> call::Result<Traits> {
    Ok(by_magic(file)?.1)
}

fn by_magic(file: impl AsFd) -> call::Result<(u32, Traits)> {
    let found = call("statfs", || fstatfs(&file))?;
    // The kernel's magic numbers have 32 bits; `f_type` is signed or wider on some machines.
    let magic = found.f_type as u32;
    let mut traits = table::by_magic(magic);
    traits.read_only = is_read_only(&found);
    Ok((magic, traits))
}

/// Returns the traits of the file system that `file` is on, for files with the device number `dev`
/// (`st_dev`): layered file systems have several.
///
/// # Errors
/// `fstatfs` as the system gives it.
pub(crate) fn traits(file: impl AsFd, dev: u64) -> Result<Traits, Errno> {
    let (magic, mut traits) = by_magic(&file)?;
    if table::is_xfs(magic)
        && let Some(made) = queries::xfs_features(&file)
    {
        traits.reflinks = if made.reflinks {
            Answer::Yes
        } else {
            Answer::No
        };
        traits.disk = (!made.realtime).then(|| Disk::of_device(dev));
    } else if table::is_btrfs(magic) {
        traits.disk = queries::btrfs_number(&file).map(Disk);
    }
    let is_fuse = table::is_fuse(magic);
    if !is_fuse && traits.shows != Shows::Layers {
        return Ok(traits);
    }
    let read_only = traits.read_only;
    let Some(mount) = mount_id(file).and_then(entry) else {
        return Ok(traits);
    };
    if is_fuse {
        traits = table::by_type(&mount.kind);
        traits.read_only = read_only;
    } else if mount.dev == dev && !read_only {
        // The numbers are those of the file system that is written to, passed on
        // (Documentation/filesystems/overlayfs.rst, "Inode properties"). Only with xino
        // are there others, marked by their highest bits.
        traits.inodes = Inodes::Stable;
        if mount.mixes_inodes() {
            traits.inodes_below = 1 << 32;
        }
    }
    Ok(traits)
}

/// Returns the traits, and everything as unknown where the system does not report them.
pub fn traits_or_unknown(file: impl AsFd, dev: u64) -> Traits {
    traits(file, dev).unwrap_or(table::UNKNOWN)
}

/// Traits by device, each asked once.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    known: Vec<(u64, Traits)>,
}

impl Mounts {
    /// Returns the traits for files with the device number `dev`, one of which, or its directory,
    /// `open` returns if they are not known yet; traits that cannot be asked for are unknown.
    ///
    /// A device that is mounted more than once may be read-only in one place
    /// only: `read_only` is that of the place asked first.
    pub fn of<F: AsFd>(&mut self, dev: u64, open: impl FnOnce() -> Option<F>) -> Traits {
        if let Some((_, traits)) = self.known.iter().find(|(known, _)| *known == dev) {
            return *traits;
        }
        let traits = open().map_or(table::UNKNOWN, |file| traits_or_unknown(file, dev));
        self.known.push((dev, traits));
        traits
    }
}

#[allow(clippy::unnecessary_cast)] // The field's width differs between architectures.
fn is_read_only(found: &rustix::fs::StatFs) -> bool {
    // ST_RDONLY: of the file system or of this mount of it.
    found.f_flags as u64 & 1 != 0
}

/// Returns a number for the mount by which `file` was opened, which no other mount of this boot has
/// (Linux 6.8; before that, none that is mounted at the same time): while it stays the same, data
/// that were written to the file system and not yet to its disk are still there. `None` before
/// Linux 5.8.
pub fn mount_number(file: impl AsFd) -> Option<u64> {
    // STATX_MNT_ID_UNIQUE of include/uapi/linux/stat.h, which has no name in rustix.
    const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
    let found = statx(&file, c"", AtFlags::EMPTY_PATH, UNIQUE).ok()?;
    match found.stx_mask & UNIQUE.bits() {
        0 => mount_id(file),
        _ => Some(found.stx_mnt_id),
    }
}

/// Returns the directories whose entries are shown where `file` was opened, as they were named when
/// the overlay was mounted; relative names are relative to the working directory of that `mount`.
/// Empty if it is no overlay.
pub fn layers_of(file: impl AsFd) -> Vec<Vec<u8>> {
    let mount = mount_id(file).and_then(entry);
    mount.map_or_else(Vec::new, |mount| mount.layers())
}

/// Returns the number of the mount by which `file` was opened (Linux 5.8).
pub(crate) fn mount_id(file: impl AsFd) -> Option<u64> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let given = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    given.then_some(found.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    fn of(path: &str) -> Traits {
        let file = File::open(path).unwrap();
        let dev = file.metadata().unwrap().dev();
        traits(&file, dev).unwrap()
    }

    #[test]
    fn this_system() {
        for path in ["/proc", "/sys"] {
            let traits = of(path);
            assert!(traits.pseudo, "{path}");
            assert_eq!(traits.sizes, Answer::No);
            assert!(!traits.identity_proves_content(1));
        }
        assert!(!of(".").pseudo);
    }

    #[test]
    fn each_device_is_asked_once() {
        let mut mounts = Mounts::default();
        let first = mounts.of(7, || File::open("/proc").ok());
        assert_eq!(first.name, "proc");
        let again = mounts.of(7, || -> Option<File> { panic!("asked again") });
        assert_eq!(again, first);
        let none = mounts.of(8, || None::<File>);
        assert!(!none.identity_proves_content(1));
        assert_eq!(none.inodes, Inodes::Unknown);
    }

    #[test]
    fn mounts_are_told_apart_by_number() {
        let number = |path: &str| mount_number(File::open(path).unwrap());
        assert_eq!(number("/proc"), number("/proc/self"));
        if number("/proc").is_some() {
            assert_ne!(number("/proc"), number("/sys"));
        }
    }

    #[test]
    fn the_mount_of_a_file_is_found() {
        let file = File::open("/proc").unwrap();
        let Some(id) = mount_id(&file) else {
            return; // Before Linux 5.8.
        };
        let found = entry(id).unwrap();
        assert_eq!(found.kind, b"proc");
        assert_eq!(found.dev, file.metadata().unwrap().dev());
    }
}
