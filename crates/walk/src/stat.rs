//! Identity, stamp and the other facts about a file, each a type of its own.

use rustix::fs::{FileType, Stat, Statx, makedev};

/// Identity of a file: device and inode number. Equal identities at one moment are the same file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Identity {
    /// The device, as `st_dev`.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

/// State of a file: any write changes at least one of these.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970; may be negative. `i64::MIN` and
    /// `i64::MAX` stand for all times before 1677 and after 2262.
    pub mtime_ns: i64,
    /// Last change of content or metadata, in nanoseconds since 1970; may be negative.
    pub ctime_ns: i64,
}

/// Metadata in a listing with [`Metadata::Basic`](crate::Metadata::Basic).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BasicStat {
    /// Identity of the file.
    pub id: Identity,
    /// State of the file.
    pub stamp: Stamp,
    /// Names that the file has.
    pub nlink: u64,
}

/// Fields of `stat` that this project uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileStat {
    /// Identity of the file.
    pub id: Identity,
    /// State of the file.
    pub stamp: Stamp,
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names that the file has.
    pub nlink: u64,
    /// Device that a device node stands for, as `st_rdev`.
    pub rdev: u64,
    /// Space used, in units of 512 bytes; 0 in a listing, which does not keep it.
    pub blocks: u64,
}

impl FileStat {
    /// Returns the type, from the mode.
    pub fn kind(&self) -> FileKind {
        FileKind::from_mode(self.mode)
    }

    /// Returns the fields that [`Metadata::Basic`](crate::Metadata::Basic) keeps.
    pub fn meta(&self) -> BasicStat {
        BasicStat {
            id: self.id,
            stamp: self.stamp,
            nlink: self.nlink,
        }
    }
}

// For our other crates. Hidden, and no part of what we promise: rustix may change its types.
#[doc(hidden)]
impl From<&Statx> for FileStat {
    fn from(stat: &Statx) -> FileStat {
        FileStat {
            id: Identity {
                dev: makedev(stat.stx_dev_major, stat.stx_dev_minor),
                ino: stat.stx_ino,
            },
            stamp: Stamp {
                size: stat.stx_size,
                mtime_ns: nanoseconds(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
                ctime_ns: nanoseconds(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            },
            mode: u32::from(stat.stx_mode),
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            nlink: u64::from(stat.stx_nlink),
            rdev: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
            blocks: stat.stx_blocks,
        }
    }
}

// The fields' widths differ between architectures.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
#[doc(hidden)]
impl From<&Stat> for FileStat {
    fn from(stat: &Stat) -> FileStat {
        FileStat {
            id: Identity {
                dev: stat.st_dev as u64,
                ino: stat.st_ino as u64,
            },
            stamp: Stamp {
                size: stat.st_size as u64,
                mtime_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
                ctime_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
            },
            mode: stat.st_mode as u32,
            uid: stat.st_uid,
            gid: stat.st_gid,
            nlink: stat.st_nlink as u64,
            rdev: stat.st_rdev as u64,
            blocks: stat.st_blocks as u64,
        }
    }
}

/// Returns a time in nanoseconds since 1970. Times further away than some 292 years, as a broken
/// clock or file system may give, become the first or the last value: comparisons must not take
/// those for equal.
fn nanoseconds(seconds: i64, nanoseconds: u32) -> i64 {
    let whole = seconds.checked_mul(1_000_000_000);
    whole
        .and_then(|whole| whole.checked_add(i64::from(nanoseconds)))
        .unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block device.
    Block,
    /// A character device.
    Char,
}

impl FileKind {
    const ALL: [FileKind; 7] = [
        FileKind::File,
        FileKind::Dir,
        FileKind::Symlink,
        FileKind::Fifo,
        FileKind::Socket,
        FileKind::Block,
        FileKind::Char,
    ];

    /// Returns the kind from the type bits of a mode. Unknown bits are taken as a character device:
    /// never opened.
    pub fn from_mode(mode: u32) -> FileKind {
        FileKind::from_type(FileType::from_raw_mode(mode)).unwrap_or(FileKind::Char)
    }

    /// Returns the kind; `None` for an unknown type.
    pub(crate) fn from_type(file_type: FileType) -> Option<FileKind> {
        Some(match file_type {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Dir,
            FileType::Symlink => FileKind::Symlink,
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            FileType::BlockDevice => FileKind::Block,
            FileType::CharacterDevice => FileKind::Char,
            FileType::Unknown => return None,
        })
    }

    /// Inverts `self as u8`.
    pub(crate) fn from_code(code: u8) -> FileKind {
        FileKind::ALL[usize::from(code)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, CWD, StatxFlags, fstat, open, statx};
    use rustix::fs::{Mode, OFlags};

    #[test]
    fn stat_and_statx_agree() {
        for path in [".", "Cargo.toml", "/dev/null", "/proc/self/status"] {
            let fd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            let by_stat = FileStat::from(&fstat(&fd).unwrap());
            let by_statx = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
            assert_eq!(by_stat, FileStat::from(&by_statx), "{path}");
        }
    }

    #[test]
    fn times_before_and_beyond() {
        assert_eq!(nanoseconds(-1, 999_999_999), -1);
        assert_eq!(nanoseconds(-2, 5), -1_999_999_995);
        assert_eq!(nanoseconds(i64::MAX, 0), i64::MAX);
        assert_eq!(nanoseconds(i64::MIN, 999), i64::MIN);
    }

    #[test]
    fn kinds() {
        for kind in FileKind::ALL {
            assert_eq!(FileKind::from_code(kind as u8), kind);
        }
        assert_eq!(FileKind::from_mode(0o100_644), FileKind::File);
        assert_eq!(FileKind::from_mode(0o040_755), FileKind::Dir);
        assert_eq!(FileKind::from_mode(0o120_777), FileKind::Symlink);
        assert_eq!(FileKind::from_mode(0), FileKind::Char);
    }
}
