//! Identity, stamp, extended attributes and the other facts about a file, each a type of its own, and
//! the calls that read them.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, AtFlags, FileType, Stat, Statx, StatxAttributes, StatxFlags, makedev};
use rustix::io::Errno;

use crate::call::{FailedCall, Result, call};

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

/// Fields of `stat` that a listing keeps of each file.
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

    /// Returns the fields that a listing keeps.
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
pub fn nanoseconds(seconds: i64, nanoseconds: u32) -> i64 {
    let whole = seconds.checked_mul(1_000_000_000);
    whole
        .and_then(|whole| whole.checked_add(i64::from(nanoseconds)))
        .unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })
}

/// Returns a time in nanoseconds since 1970, exactly, however far away it is.
pub fn exact_nanoseconds(seconds: impl Into<i64>, nanoseconds: impl Into<i64>) -> i128 {
    i128::from(seconds.into()) * 1_000_000_000 + i128::from(nanoseconds.into())
}

/// Returns an exact time as [`Stamp`] has it.
pub fn clipped(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

/// True if a time may have been clipped.
pub fn is_clipped(ns: i128) -> bool {
    let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
    // Earlier versions added the nanoseconds to the first.
    ns == last || (first..first + 1_000_000_000).contains(&ns)
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
    pub fn from_type(file_type: FileType) -> Option<FileKind> {
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
    ///
    /// # Panics
    /// For any other number.
    pub fn from_code(code: u8) -> FileKind {
        FileKind::ALL[usize::from(code)]
    }
}

/// State of a file, with the fields that its [`FileStat`] leaves out.
pub struct FullStat {
    /// Its fields that most callers use.
    pub stat: FileStat,
    /// Time of the last access, in nanoseconds since 1970.
    pub atime_ns: i64,
    /// Time of birth, in nanoseconds since 1970; `None` where its file system does not keep that.
    pub born_ns: Option<u64>,
    /// Marks (`chattr`), as far as its file system reports them, and a bit for the root of a mount.
    pub marks: StatxAttributes,
    /// The number of the mount that it was opened by; `None` from kernels that do not report it
    /// (before Linux 5.8).
    pub mount: Option<u64>,
}

impl FullStat {
    /// Returns what `statx` has found.
    pub fn of_statx(found: &Statx) -> FullStat {
        FullStat {
            stat: FileStat::from(found),
            atime_ns: nanoseconds(found.stx_atime.tv_sec, found.stx_atime.tv_nsec),
            born_ns: birth(found),
            marks: found.stx_attributes,
            mount: StatxFlags::from_bits_retain(found.stx_mask)
                .contains(StatxFlags::MNT_ID)
                .then_some(found.stx_mnt_id),
        }
    }

    // The fields' widths differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    fn of_stat(found: &Stat) -> FullStat {
        FullStat {
            stat: FileStat::from(found),
            atime_ns: nanoseconds(found.st_atime as i64, found.st_atime_nsec as u32),
            born_ns: None,
            marks: StatxAttributes::empty(),
            mount: None,
        }
    }
}

fn birth(found: &Statx) -> Option<u64> {
    let reported = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let seconds = u64::try_from(found.stx_btime.tv_sec)
        .ok()
        .filter(|_| reported)?;
    let born = seconds.checked_mul(1_000_000_000)?;
    born.checked_add(u64::from(found.stx_btime.tv_nsec))
        .filter(|born| *born > 0)
}

/// Returns all that is known of an open file.
///
/// # Errors
/// Those of `statx`.
pub fn stat_all(file: impl AsFd) -> Result<FullStat> {
    full(file, AtFlags::empty())
}

/// Returns the same from the server, where the kernel's cache may be outdated.
///
/// # Errors
/// Those of `statx`.
pub fn stat_all_now(file: impl AsFd) -> Result<FullStat> {
    full(file, AtFlags::STATX_FORCE_SYNC)
}

fn full(file: impl AsFd, more: AtFlags) -> Result<FullStat> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = call("stat", || {
        fs::statx(&file, c"", AtFlags::EMPTY_PATH | more, wanted)
    });
    match found {
        Ok(found) => Ok(FullStat::of_statx(&found)),
        // Some filters do not know the call.
        Err(FailedCall {
            errno: Errno::NOSYS | Errno::PERM,
            ..
        }) => raw_stat(file).map(|found| FullStat::of_stat(&found)),
        Err(failed) => Err(failed),
    }
}

/// Returns the time of birth of an open file, in nanoseconds since 1970; `None` where its file
/// system does not keep that.
pub fn born_ns(file: impl AsFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH;
    let found = call("stat", || fs::statx(&file, c"", flags, StatxFlags::BTIME));
    birth(&found.ok()?)
}

/// Returns the state of an open file.
///
/// # Errors
/// Those of `fstat`.
pub fn stat(file: impl AsFd) -> Result<FileStat> {
    raw_stat(file).map(|stat| FileStat::from(&stat))
}

/// Returns everything that `fstat` reports.
///
/// # Errors
/// Those of `fstat`.
pub fn raw_stat(file: impl AsFd) -> Result<Stat> {
    call("stat", || fs::fstat(&file))
}

/// Returns the state of the name itself, not of a link's target.
///
/// # Errors
/// Those of `fstatat`.
pub fn stat_at(dir: impl AsFd, name: &CStr) -> Result<FileStat> {
    let stat = call("stat", || fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
    Ok(FileStat::from(&stat))
}

/// Returns the state of the name itself, or of `at` if the name is empty; from the server, where
/// the kernel's cache may be outdated.
///
/// # Errors
/// Those of `statx`.
pub fn stat_now(at: impl AsFd, name: &CStr) -> Result<FileStat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let found = call("stat", || {
        fs::statx(&at, name, flags, StatxFlags::BASIC_STATS)
    });
    match found {
        Ok(found) => Ok(FileStat::from(&found)),
        // Some filters do not know the call.
        Err(FailedCall {
            errno: Errno::NOSYS | Errno::PERM,
            ..
        }) => match name.is_empty() {
            true => stat(at),
            false => stat_at(at, name),
        },
        Err(failed) => Err(failed),
    }
}

/// Returns the state of the file that the name leads to, through links.
///
/// # Errors
/// Those of `fstatat`.
pub fn stat_through(dir: impl AsFd, name: &CStr) -> Result<FileStat> {
    let stat = call("stat", || fs::statat(&dir, name, AtFlags::empty()))?;
    Ok(FileStat::from(&stat))
}

/// Returns true if a directory is the root of a mount; `None` from kernels that do not report it
/// (before Linux 5.8).
pub fn is_mount_root(dir: impl AsFd) -> Option<bool> {
    let flags = AtFlags::EMPTY_PATH;
    let found = call("stat", || fs::statx(&dir, c"", flags, StatxFlags::empty()));
    let found = found.ok()?;
    let reported = found
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    reported.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The kernel's limit for one value and for the list of names (`linux/limits.h`).
pub(crate) const XATTR_MAX: usize = 64 << 10;

/// Names and values, in the order of the file system.
pub type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// File whose attributes are read.
#[derive(Clone, Copy, Debug)]
pub enum Attributed<'a, F> {
    /// An open file; not one that is held as a place alone (`O_PATH`).
    Open(F),
    /// The file at a path, a link itself.
    At(&'a [u8]),
    /// The file that a path leads to, through links.
    Through(&'a [u8]),
}

/// An open file that there is none of, for paths.
pub type NoFile = BorrowedFd<'static>;

/// Buffers for attributes, one for each thread.
#[derive(Debug)]
pub struct XattrReader {
    names: Vec<u8>,
    value: Vec<u8>,
    left_out: &'static [Errno],
    is_partial: bool,
}

impl XattrReader {
    /// Makes a reader that leaves an attribute out, and reports no failure, where its value is
    /// refused with one of these: `NODATA` for one that was removed meanwhile, or is listed for
    /// others to see.
    pub fn new(left_out: &'static [Errno]) -> XattrReader {
        XattrReader {
            names: vec![0; 1024],
            value: vec![0; 1024],
            left_out,
            is_partial: false,
        }
    }

    /// True if [`all`](XattrReader::all) has last left out an attribute that this user may not read.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns all attributes that this user may see; none where the file system has none.
    ///
    /// # Errors
    /// Those of `listxattr` and `getxattr`.
    pub fn all<F: AsFd>(&mut self, of: Attributed<'_, F>) -> Result<Xattrs> {
        let XattrReader {
            names,
            value,
            left_out,
            is_partial,
        } = self;
        *is_partial = false;
        let listed = sized("listxattr", names, |names| match &of {
            Attributed::Open(file) => fs::flistxattr(file, names),
            Attributed::At(path) => fs::llistxattr(*path, names),
            Attributed::Through(path) => fs::listxattr(*path, names),
        });
        let listed = match listed {
            Err(FailedCall {
                errno: Errno::NOTSUP | Errno::NOSYS,
                ..
            }) => return Ok(Xattrs::new()),
            listed => listed?,
        };
        let mut all = Xattrs::new();
        let listed = listed.split(|byte| *byte == 0);
        for name in listed.filter(|name| !name.is_empty()) {
            match get(&of, name, value) {
                Ok(value) => all.push((name.to_vec(), value.to_vec())),
                Err(failed) if left_out.contains(&failed.errno) => {
                    *is_partial |= matches!(failed.errno, Errno::PERM | Errno::ACCESS);
                }
                Err(failed) => return Err(failed),
            }
        }
        Ok(all)
    }

    /// Returns the value of one attribute; `None` for a file without it, and where the file system
    /// has none.
    ///
    /// # Errors
    /// Those of `getxattr`.
    pub fn value<F: AsFd>(&mut self, of: Attributed<'_, F>, name: &[u8]) -> Result<Option<&[u8]>> {
        match get(&of, name, &mut self.value) {
            Ok(value) => Ok(Some(value)),
            Err(FailedCall {
                errno: Errno::NODATA | Errno::NOTSUP,
                ..
            }) => Ok(None),
            Err(failed) => Err(failed),
        }
    }
}

fn get<'v, F: AsFd>(
    of: &Attributed<'_, F>,
    name: &[u8],
    value: &'v mut Vec<u8>,
) -> Result<&'v [u8]> {
    sized("getxattr", value, |value| match of {
        Attributed::Open(file) => fs::fgetxattr(file, name, value),
        Attributed::At(path) => fs::lgetxattr(*path, name, value),
        Attributed::Through(path) => fs::getxattr(*path, name, value),
    })
}

/// Calls with a buffer that is large enough, which takes a second call where it has grown.
fn sized<'b>(
    op: &'static str,
    buffer: &'b mut Vec<u8>,
    mut ask: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> Result<&'b [u8]> {
    let length = loop {
        match call(op, || ask(&mut buffer[..])) {
            Err(FailedCall {
                errno: Errno::RANGE,
                ..
            }) if buffer.len() < XATTR_MAX => buffer.resize(XATTR_MAX, 0),
            asked => break asked?,
        }
    };
    Ok(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{CWD, Mode, OFlags, XattrFlags, fsetxattr, fstat, open, statx};

    use super::*;

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
        for seconds in [-1_i64, 1 << 40, -1 << 40, i64::MAX] {
            let exact = exact_nanoseconds(seconds, 7);
            assert_eq!(clipped(exact), nanoseconds(seconds, 7));
            assert_eq!(is_clipped(clipped(exact).into()), exact.abs() > 1 << 63);
        }
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

    #[test]
    fn all_ways_see_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        let long = vec![b'x'; 3000];
        let set = |name: &str, value: &[u8]| fsetxattr(&file, name, value, XattrFlags::empty());
        if set("user.one", b"1").is_err() {
            return bc_testkit::left_out("no user attributes on this file system");
        }
        set("user.long", &long).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let bytes = |path: &std::path::Path| path.as_os_str().as_encoded_bytes().to_vec();
        let (path, link) = (bytes(&path), bytes(&link));
        let mut reader = XattrReader::new(&[Errno::NODATA]);
        let user = |found: Xattrs| {
            let mut found = found;
            found.retain(|(name, _)| name.starts_with(b"user."));
            found.sort();
            found
        };
        let expected = vec![
            (b"user.long".to_vec(), long.clone()),
            (b"user.one".to_vec(), b"1".to_vec()),
        ];
        let open = reader.all(Attributed::Open(&file)).unwrap();
        assert_eq!(user(open), expected);
        for of in [Attributed::At(&path), Attributed::Through(&link)] {
            let of: Attributed<'_, NoFile> = of;
            assert_eq!(user(reader.all(of).unwrap()), expected, "{of:?}");
        }
        let of: Attributed<'_, NoFile> = Attributed::At(&link);
        assert_eq!(user(reader.all(of).unwrap()), vec![]);
        let value = |reader: &mut XattrReader, name: &[u8]| {
            let value = reader.value(Attributed::Open(&file), name).unwrap();
            value.map(<[u8]>::to_vec)
        };
        assert_eq!(value(&mut reader, b"user.long"), Some(long));
        assert_eq!(value(&mut reader, b"user.none"), None);
    }
}
