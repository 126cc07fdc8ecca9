//! Attributes of an inode beside owner, mode and extended attributes: the flags of `chattr(1)`, the
//! project whose quota it counts against, and the encryption policy of its content.

#![allow(unsafe_code)]

use std::os::fd::AsFd;

use bc_fs::call::{self, call};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FsxAttr {
    xflags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    padding: [u8; 8],
}

const FS_IOC_FSGETXATTR: Opcode = opcode::read::<FsxAttr>(b'X', 31);

/// `struct fscrypt_get_policy_ex_arg` of `linux/fscrypt.h`, with the longest policy there is.
#[repr(C)]
struct PolicyArg {
    size: u64,
    policy: [u8; 24],
}

/// Opcode; the size in its number is that of the header and one byte.
const FS_IOC_GET_ENCRYPTION_POLICY_EX: Opcode = opcode::read_write::<[u8; 9]>(b'f', 22);

/// `FS_ENCRYPT_FL` of `linux/fs.h`.
const ENCRYPTED: u32 = 0x800;

/// Flags (`FS_*_FL` of `linux/fs.h`) that a user sets on a file or a directory, or that it got from
/// its parent directory. The others describe how its content is stored at present; `m` is among
/// them, as Btrfs sets it by itself on files that it found hard to compress
/// (`compress_file_range()` in `fs/btrfs/inode.c`).
const FLAGS: [(u32, &str); 17] = [
    (0x0000_0001, "the flag s of chattr"),
    (0x0000_0002, "the flag u of chattr"),
    (0x0000_0004, "the flag c of chattr"),
    (0x0000_0008, "the flag S of chattr"),
    (0x0000_0010, "the flag i of chattr"),
    (0x0000_0020, "the flag a of chattr"),
    (0x0000_0040, "the flag d of chattr"),
    (0x0000_0080, "the flag A of chattr"),
    (0x0000_4000, "the flag j of chattr"),
    (0x0000_8000, "the flag t of chattr"),
    (0x0001_0000, "the flag D of chattr"),
    (0x0002_0000, "the flag T of chattr"),
    (0x0010_0000, "the flag V of chattr"),
    (0x0080_0000, "the flag C of chattr"),
    (0x0200_0000, "the flag x of chattr"),
    (0x2000_0000, "the flag P of chattr"),
    (CASEFOLD, "the flag F of chattr"),
];

/// `FS_CASEFOLD_FL`, which no directory takes that holds anything.
const CASEFOLD: u32 = 0x4000_0000;

/// `FS_IMMUTABLE_FL` and `FS_APPEND_FL`: a file that has them can neither be completed nor named.
const SEALED: u32 = 0x10 | 0x20;

/// `FS_XFLAG_EXTSIZE`, `FS_XFLAG_NODEFRAG` and `FS_XFLAG_COWEXTSIZE`, which are not among those.
const XFLAGS: u32 = 0x0000_0800 | 0x0000_2000 | 0x0001_0000;

/// The flags of one file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InodeFlags {
    flags: u32,
    xflags: u32,
    extent_sizes: [u32; 2],
    project: u32,
    /// Encryption policy, which contains the identifier of the key.
    policy: Option<[u8; 24]>,
}

impl InodeFlags {
    /// Asks for the flags of an open file: two calls, and one more if it is encrypted. A file
    /// system that has none gives none.
    ///
    /// # Errors
    /// Errors of the calls, as the system gives them.
    pub fn of(file: impl AsFd) -> call::Result<InodeFlags> {
        call("get flags", || InodeFlags::read(&file))
    }

    fn read(file: impl AsFd) -> Result<InodeFlags, Errno> {
        let file = file.as_fd();
        let Some(flags) = supported(ioctl_getflags(file))? else {
            return Ok(InodeFlags::default());
        };
        let mut found = InodeFlags {
            flags: flags.bits(),
            ..InodeFlags::default()
        };
        // SAFETY: the request reads nothing from and writes one `fsxattr` to memory, whose size is
        // part of the request's number; any bits are valid in it.
        let more = unsafe { ioctl(file, Getter::<FS_IOC_FSGETXATTR, FsxAttr>::new()) };
        if let Some(more) = supported(more)? {
            found.xflags = more.xflags & XFLAGS;
            found.project = more.project;
            found.extent_sizes = [more.extent_size, more.cow_extent_size];
        }
        if found.flags & ENCRYPTED != 0 {
            found.policy = Some(policy(file)?);
        }
        Ok(found)
    }

    /// Returns the flags of `chattr` as `FS_*_FL` numbers, without those that describe how content
    /// is stored.
    pub fn chattr(&self) -> u32 {
        let all = FLAGS.iter().fold(0, |all, (bit, _)| all | bit);
        self.flags & all
    }

    /// Returns a value with these flags of `chattr` and nothing else set.
    pub fn with_chattr(flags: u32) -> InodeFlags {
        InodeFlags {
            flags,
            ..InodeFlags::default()
        }
    }

    /// Returns those of these flags that a directory takes only while it is empty (`F`, casefold).
    pub fn of_empty(&self) -> InodeFlags {
        InodeFlags::with_chattr(self.flags & CASEFOLD)
    }

    /// True if both files are encrypted with one key in one way, or neither is encrypted.
    pub fn same_encryption(&self, other: &InodeFlags) -> bool {
        self.policy == other.policy
    }

    /// Returns the first flag of `chattr` that `other` lacks.
    pub fn missing_from(&self, other: &InodeFlags) -> Option<&'static str> {
        let found = FLAGS
            .iter()
            .find(|(bit, _)| self.flags & !other.flags & bit != 0);
        found.map(|(_, name)| *name)
    }

    /// Gives a file those flags of `chattr` that it lacks, and returns those that it does not get,
    /// each with its error. It has to be new and empty, as some flags say how content is to be
    /// stored; a directory only for [the flag that needs that](InodeFlags::of_empty). Flags that it
    /// has already, as from its directory, stay; `i` and `a`, which would seal it, are never given.
    ///
    /// # Errors
    /// If the flags cannot be asked for.
    pub fn give(&self, file: impl AsFd) -> call::Result<Vec<(&'static str, Errno)>> {
        call("set flags", || self.set(&file))
    }

    fn set(&self, file: impl AsFd) -> Result<Vec<(&'static str, Errno)>, Errno> {
        let file = file.as_fd();
        if FLAGS.iter().all(|(bit, _)| self.flags & bit == 0) {
            return Ok(Vec::new());
        }
        let mut has = InodeFlags::read(file)?.flags;
        let mut refused = Vec::new();
        for (bit, name) in FLAGS {
            if self.flags & !has & bit == 0 {
                continue;
            }
            let given = match bit & SEALED {
                0 => ioctl_setflags(file, IFlags::from_bits_retain(has | bit)),
                _ => Err(Errno::PERM),
            };
            has = InodeFlags::read(file)?.flags;
            match given {
                Err(errno) => refused.push((name, errno)),
                // Taken and dropped.
                Ok(()) if has & bit == 0 => refused.push((name, Errno::OPNOTSUPP)),
                Ok(()) => {}
            }
        }
        Ok(refused)
    }

    /// Returns the name of the first attribute that differs, encryption excepted.
    pub fn difference(&self, other: &InodeFlags) -> Option<&'static str> {
        let differing = self.flags ^ other.flags;
        if let Some((_, name)) = FLAGS.iter().find(|(bit, _)| differing & bit != 0) {
            return Some(name);
        }
        if self.project != other.project {
            return Some("the project (quota)");
        }
        let extents = |of: &InodeFlags| (of.xflags, of.extent_sizes);
        (extents(self) != extents(other)).then_some("how extents are allocated (xfs_io)")
    }
}

fn policy(file: impl AsFd) -> Result<[u8; 24], Errno> {
    let mut asked = PolicyArg {
        size: 24,
        policy: [0; 24],
    };
    // SAFETY: the request reads `size` and writes it and at most so many bytes of the policy after
    // it, which `PolicyArg` has room for; any bits are valid in it.
    unsafe {
        ioctl(
            file,
            Updater::<FS_IOC_GET_ENCRYPTION_POLICY_EX, PolicyArg>::new(&mut asked),
        )?;
    }
    Ok(asked.policy)
}

/// Turns refusals into `None`, where the file system, or the kernel, knows no such flags.
fn supported<T>(asked: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match asked {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels() {
        assert_eq!(size_of::<FsxAttr>(), 28);
        assert_eq!(size_of::<PolicyArg>(), 32);
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(FS_IOC_FSGETXATTR, 0x801c_581f);
            assert_eq!(FS_IOC_GET_ENCRYPTION_POLICY_EX, 0xc009_6616);
        }
    }

    #[test]
    fn what_a_file_is_stored_like_is_no_difference() {
        let plain = InodeFlags::default();
        let with = |flags| InodeFlags { flags, ..plain };
        // Extents, an index, inline data, a huge file, blocks compressed and not to be compressed.
        assert_eq!(with(0x100c_1700).difference(&plain), None);
        for (bit, name) in FLAGS {
            assert_eq!(with(bit).difference(&plain), Some(name));
            assert_eq!(plain.difference(&with(bit | 0x8_0000)), Some(name));
        }
        let project = InodeFlags {
            project: 7,
            ..plain
        };
        assert_eq!(project.difference(&plain), Some("the project (quota)"));
        let key = |byte| InodeFlags {
            policy: Some([byte; 24]),
            ..with(ENCRYPTED)
        };
        assert!(!key(1).same_encryption(&key(2)) && !key(1).same_encryption(&plain));
        assert!(key(1).same_encryption(&key(1)) && plain.same_encryption(&with(8)));
        assert_eq!(key(1).difference(&plain), None);
    }

    #[test]
    fn what_a_file_system_does_not_take_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("file")).unwrap();
        let with = |flags| InodeFlags {
            flags,
            ..InodeFlags::default()
        };
        assert_eq!(with(0x8_1000).give(&file), Ok(Vec::new()));
        let all = FLAGS.iter().fold(0, |all, (bit, _)| all | bit);
        let refused = with(all).give(&file).unwrap();
        let has = InodeFlags::of(&file).unwrap();
        for (bit, name) in FLAGS {
            let is_refused = refused.iter().any(|(refused, _)| *refused == name);
            assert_eq!(is_refused, has.flags & bit == 0, "{name}");
            assert_eq!(with(bit).missing_from(&has).is_some(), is_refused, "{name}");
        }
        let sealing = ["the flag i of chattr", "the flag a of chattr"];
        assert!(
            sealing
                .iter()
                .all(|name| refused.iter().any(|(refused, _)| refused == name))
        );
    }

    #[test]
    fn a_new_file_has_the_flags_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            InodeFlags::of(&file).unwrap()
        };
        let (one, other) = (of("one"), of("other"));
        assert_eq!(one.difference(&other), None);
        assert!(one.same_encryption(&other));
        let made_up = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(InodeFlags::of(made_up).unwrap(), InodeFlags::default());
    }
}
