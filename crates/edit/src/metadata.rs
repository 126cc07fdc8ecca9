//! Metadata of files: read, compared, and given to files that this program made, in
//! [one order](FileMetadata::give), through the descriptor that they are held by: any user who may
//! write to the directory can give a name to another file at any time.

mod give;

use std::os::fd::{AsFd, BorrowedFd};

use bc_fs::call::{self, point};
use bc_fs::caller::FileOwner;
use bc_fs::dirfd::own_path;
use bc_fs::meta::{
    self, Attributed, FileStat, NoFile, XattrReader, Xattrs, exact_nanoseconds, is_clipped,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

pub use give::{GivenMode, GivenParts, GivenTimes, NotGiven, PresentAcl, SET_ID, is_acl};

/// Extended attribute that holds a file's access control list.
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";

/// Extended attribute that holds the list which new files in a directory inherit.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Extended attribute that gives a program capabilities, whoever runs it.
pub const CAPABILITIES: &[u8] = b"security.capability";

/// Signature over an inode's metadata and number: never equal, and never to be copied.
const SIGNATURE: &[u8] = b"security.evm";

/// Prefix of the names under which XFS shows root its access control lists a second time, in a form
/// of its own.
const XFS_ACL: &[u8] = b"trusted.SGI_ACL_";

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Everything about a file that is compared, recorded and given to copies, beside its content and
/// its [flags](crate::InodeFlags).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileMetadata {
    /// Permission bits, as in `st_mode` without the type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last access, in nanoseconds since 1970; not compared.
    pub atime_ns: i128,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Extended attributes, sorted by name: access control lists and capabilities among them.
    pub xattrs: Xattrs,
}

/// Part of a file's metadata.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetadataPart<'m> {
    /// Owner and group.
    Owner,
    /// Access control list that the file got from its directory, and is not to have.
    InheritedAcl,
    /// Extended attribute of this name.
    Attribute(&'m [u8]),
    /// Times of the last access and the last modification; of comparisons, the modification alone.
    Times,
    /// Permission bits.
    Mode,
    /// Set-user-ID and set-group-ID, where the file has not the owner that they are of.
    SetId,
    /// Capabilities, where the file has not the owner that they were given with.
    Capabilities,
}

impl FileMetadata {
    /// Returns the metadata of a file with these attributes.
    // The fields' widths differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub fn new(stat: &Stat, xattrs: Xattrs) -> FileMetadata {
        FileMetadata {
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            atime_ns: exact_nanoseconds(stat.st_atime as i64, stat.st_atime_nsec as i64),
            mtime_ns: exact_nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            xattrs: sorted(xattrs),
        }
    }

    /// Returns owner and group.
    pub fn owner(&self) -> FileOwner {
        FileOwner {
            uid: self.uid,
            gid: self.gid,
        }
    }

    /// Reads the metadata of an open file with a known state, and the time of the last access before
    /// it was opened, in nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of `fstat`, which is called where one of the times may have been clipped, and of the
    /// reader.
    pub fn read(
        file: impl AsFd,
        stat: &FileStat,
        atime_ns: i128,
        reader: &mut XattrReader,
    ) -> call::Result<FileMetadata> {
        let xattrs = reader.all(Attributed::Open(&file))?;
        FileMetadata::with_xattrs(file, stat, atime_ns, xattrs)
    }

    /// Like [`read`](FileMetadata::read), with attributes that are known: a link that is held with
    /// `O_PATH` cannot be asked for them.
    ///
    /// # Errors
    /// Those of `fstat`, which is called where one of the times may have been clipped.
    pub fn with_xattrs(
        file: impl AsFd,
        stat: &FileStat,
        atime_ns: i128,
        xattrs: Xattrs,
    ) -> call::Result<FileMetadata> {
        let (mut atime_ns, mut mtime_ns) = (atime_ns, i128::from(stat.stamp.mtime_ns));
        if is_clipped(atime_ns) || is_clipped(mtime_ns) {
            let now = FileMetadata::new(&meta::raw_stat(file)?, Xattrs::new());
            let exact = |known: i128, now: i128| match is_clipped(known) {
                true => now,
                false => known,
            };
            (atime_ns, mtime_ns) = (exact(atime_ns, now.atime_ns), exact(mtime_ns, now.mtime_ns));
        }
        Ok(FileMetadata {
            mode: stat.mode & 0o7777,
            uid: stat.uid,
            gid: stat.gid,
            atime_ns,
            mtime_ns,
            xattrs: sorted(xattrs),
        })
    }

    /// Returns the same without attributes, for a file that has this access control list, if any:
    /// its permission bits for the group are the list's mask, not what the group may do.
    #[must_use]
    pub fn without_acl(mut self, list: Option<&[u8]>) -> FileMetadata {
        if let Some(list) = list {
            self.mode = mode_without_acl(self.mode, list);
        }
        self
    }

    /// Returns the value of an extended attribute.
    pub fn xattr(&self, name: &[u8]) -> Option<&[u8]> {
        value(&self.xattrs, name)
    }

    /// Returns both times as the system takes them.
    pub fn times(&self) -> Timestamps {
        Timestamps {
            last_access: timespec(self.atime_ns),
            last_modification: timespec(self.mtime_ns),
        }
    }

    /// Returns the parts that differ: owner, mode, time of modification, then attributes, those of
    /// this file first. The last access does not count.
    pub fn differing<'m>(
        &'m self,
        other: &'m FileMetadata,
    ) -> impl Iterator<Item = MetadataPart<'m>> {
        let owner = |of: &FileMetadata| (of.uid, of.gid);
        let plain = [
            (MetadataPart::Owner, owner(self) != owner(other)),
            (MetadataPart::Mode, self.mode != other.mode),
            (MetadataPart::Times, self.mtime_ns != other.mtime_ns),
        ];
        let plain = plain.into_iter().filter(|(_, differs)| *differs);
        let attributes = self.differing_xattrs(&other.xattrs);
        plain
            .map(|(part, _)| part)
            .chain(attributes.map(MetadataPart::Attribute))
    }

    /// Returns the names of the attributes that a file with `found` has not, or has alone, or with
    /// another value; not of those that are [never given](is_given).
    pub fn differing_xattrs<'m>(&'m self, found: &'m Xattrs) -> impl Iterator<Item = &'m [u8]> {
        let own = self.xattrs.iter();
        let own = own.filter(|(name, own)| value(found, name) != Some(own));
        let others = found.iter();
        let others = others.filter(|(name, _)| self.xattr(name).is_none());
        let names = own.chain(others).map(|(name, _)| &name[..]);
        names.filter(|name| is_given(name))
    }

    /// True if a file has this owner and these permission bits.
    pub fn has_owner_and_mode(&self, file: &FileStat) -> bool {
        (file.uid, file.gid, file.mode & 0o7777) == (self.uid, self.gid, self.mode)
    }

    /// True if a file has this time of modification, which a listing's clipped one does not show.
    pub fn has_mtime(&self, file: &FileStat) -> bool {
        self.mtime_ns == i128::from(file.stamp.mtime_ns)
    }
}

/// True for the names of attributes that a copy is given: not for a signature over the inode, nor
/// for lists that have another name as well.
pub fn is_given(name: &[u8]) -> bool {
    name != SIGNATURE && !name.starts_with(XFS_ACL)
}

/// Returns attributes in the order of [`FileMetadata`], without lists that have another name as
/// well.
pub fn sorted(mut xattrs: Xattrs) -> Xattrs {
    xattrs.retain(|(name, _)| !name.starts_with(XFS_ACL));
    xattrs.sort_unstable();
    xattrs
}

fn value<'m>(xattrs: &'m Xattrs, name: &[u8]) -> Option<&'m [u8]> {
    let found = xattrs.iter().find(|(found, _)| found == name);
    found.map(|(_, value)| &value[..])
}

fn timespec(ns: i128) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(SECOND) as _,
        tv_nsec: ns.rem_euclid(SECOND) as _,
    }
}

/// Returns permission bits that without an access control list permit at most what `mode` permits
/// with it: there the group's bits are the mask of the list, and the group itself may have fewer.
pub fn mode_without_acl(mode: u32, list: &[u8]) -> u32 {
    const GROUP: u16 = 4;
    // Version, then tag, permissions and id of each entry (`linux/posix_acl_xattr.h`).
    let entries = list.get(4..).unwrap_or_default().chunks_exact(8);
    let mut group = entries.filter(|entry| u16::from_le_bytes([entry[0], entry[1]]) == GROUP);
    let bits = group.next().map_or(0, |entry| u32::from(entry[2] & 7));
    mode & (!0o070 | bits << 3)
}

/// Returns the times of a file as they are given to one.
pub fn times_of(stat: &Stat) -> Timestamps {
    FileMetadata::new(stat, Vec::new()).times()
}

/// Sets the times of a file by its name in a directory, a link's its own: for directories that this
/// user may not open.
///
/// # Errors
/// Errors of `utimensat`.
pub fn set_times_at(
    dir: impl AsFd,
    name: impl Arg + Copy,
    times: &Timestamps,
) -> Result<(), Errno> {
    point("utimens")?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    retry_on_intr(|| rustix::fs::utimensat(&dir, name, times, flags))
}

/// A file whose metadata is changed.
#[derive(Clone, Debug)]
pub struct Subject<'fd> {
    fd: BorrowedFd<'fd>,
    /// Path of a file that is held as a place alone (`O_PATH`), with whose descriptor fewer calls
    /// work.
    path: Option<String>,
    is_link: bool,
}

impl<'fd> Subject<'fd> {
    /// Returns the subject of a file or directory that is open for reading or writing.
    pub fn open(fd: BorrowedFd<'fd>) -> Subject<'fd> {
        Subject {
            fd,
            path: None,
            is_link: false,
        }
    }

    /// Returns a subject held with `O_PATH`: FIFOs, sockets and devices, which are not opened.
    pub fn place(fd: BorrowedFd<'fd>) -> Subject<'fd> {
        Subject {
            fd,
            path: Some(own_path(fd)),
            is_link: false,
        }
    }

    /// Returns the subject of a symbolic link itself, held with `O_PATH`.
    pub fn link(fd: BorrowedFd<'fd>) -> Subject<'fd> {
        Subject {
            is_link: true,
            ..Subject::place(fd)
        }
    }

    /// Changes owner and group.
    ///
    /// # Errors
    /// Errors of `fchown`.
    pub fn chown(&self, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
        point("chown")?;
        retry_on_intr(|| match self.path {
            None => rustix::fs::fchown(self.fd, uid, gid),
            Some(_) => rustix::fs::chownat(self.fd, c"", uid, gid, AtFlags::EMPTY_PATH),
        })
    }

    /// Changes the permission bits; of a symbolic link, which has none, nothing.
    ///
    /// # Errors
    /// Errors of `fchmod`.
    pub fn chmod(&self, mode: Mode) -> Result<(), Errno> {
        if self.is_link {
            return Ok(());
        }
        point("chmod")?;
        retry_on_intr(|| match &self.path {
            None => rustix::fs::fchmod(self.fd, mode),
            Some(path) => rustix::fs::chmod(path, mode),
        })
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// Errors of `fsetxattr`.
    pub(crate) fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let flags = XattrFlags::empty();
        point("setxattr")?;
        retry_on_intr(|| match &self.path {
            None => rustix::fs::fsetxattr(self.fd, name, value, flags),
            // Through /proc it is the held file that the path leads to, be it a link itself.
            Some(path) => rustix::fs::setxattr(path, name, value, flags),
        })
    }

    /// Sets the times of the last access and the last modification.
    ///
    /// # Errors
    /// Errors of `futimens`.
    pub fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
        point("utimens")?;
        retry_on_intr(|| match &self.path {
            None => rustix::fs::futimens(self.fd, times),
            Some(path) => {
                match rustix::fs::utimensat(self.fd, c"", times, AtFlags::EMPTY_PATH) {
                    // Before Linux 5.8.
                    Err(Errno::INVAL) => rustix::fs::utimensat(CWD, path, times, AtFlags::empty()),
                    done => done,
                }
            }
        })
    }

    /// Removes the access control lists that the directory's default list gave a new file, except
    /// those among the attributes that the file is to have (`has`). Called before the permission
    /// bits are given: a file that was made for its owner alone gives no other user access until
    /// then.
    ///
    /// # Errors
    /// Errors of `fremovexattr`, unless there is no such list.
    pub(crate) fn remove_inherited_acls(&self, has: impl Fn(&[u8]) -> bool) -> Result<(), Errno> {
        let lists = [ACCESS_ACL, DEFAULT_ACL].into_iter();
        let removed = lists
            .filter(|list| !has(list))
            .map(|list| self.remove_acl(list));
        removed.fold(Ok(()), Result::and)
    }

    /// Removes the same lists from a file that others may use: without the list the permission bits
    /// for the group would be what was its mask, and are cut to what the group may do first. A list
    /// that is among the attributes (`has`) is replaced without a moment in between.
    ///
    /// # Errors
    /// Errors of `fgetxattr`, `fstat`, `fchmod` and `fremovexattr`, unless there is no such list.
    pub(crate) fn remove_acls_in_use(&self, has: impl Fn(&[u8]) -> bool) -> Result<(), Errno> {
        if self.is_link {
            return Ok(());
        }
        let goes = !has(ACCESS_ACL) && self.cut_to_group()?;
        self.remove_inherited_acls(|list| has(list) || list == ACCESS_ACL && !goes)
    }

    /// Cuts the permission bits for the group to what the access control list lets it do; returns
    /// true if there is a list.
    fn cut_to_group(&self) -> Result<bool, Errno> {
        let mut reader = XattrReader::new(&[]);
        let list = match self.list(&mut reader, ACCESS_ACL) {
            Ok(Some(list)) => list,
            Ok(None) | Err(Errno::NOSYS) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        let mode = meta::stat(self.fd)?.mode & 0o7777;
        let without = mode_without_acl(mode, list);
        if without != mode {
            self.chmod(Mode::from_raw_mode(without as _))?;
        }
        Ok(true)
    }

    /// Removes an access control list, if there is one.
    fn remove_acl(&self, list: &[u8]) -> Result<(), Errno> {
        if self.is_link {
            return Ok(());
        }
        point("removexattr")?;
        let removed = retry_on_intr(|| match &self.path {
            None => rustix::fs::fremovexattr(self.fd, list),
            Some(path) => rustix::fs::removexattr(path, list),
        });
        match removed {
            Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
            // The system refuses that to others than the owner before it looks whether there is one.
            Err(Errno::PERM | Errno::ACCESS)
                if self.list(&mut XattrReader::new(&[]), list) == Ok(None) =>
            {
                Ok(())
            }
            removed => removed,
        }
    }

    /// Reads an access control list.
    fn list<'r>(
        &self,
        reader: &'r mut XattrReader,
        list: &[u8],
    ) -> Result<Option<&'r [u8]>, Errno> {
        let read = match &self.path {
            None => reader.value(Attributed::Open(self.fd), list),
            Some(path) => {
                let held: Attributed<'_, NoFile> = Attributed::Through(path.as_bytes());
                reader.value(held, list)
            }
        };
        read.map_err(Errno::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, OFlags, UTIME_OMIT};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    fn place(path: &Path) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn the_mask_of_a_list_is_no_right_of_the_group() {
        let list = |group: u8| {
            let entry = |tag: u8, permissions: u8| [tag, 0, permissions, 0, 255, 255, 255, 255];
            let entries = [entry(1, 7), entry(2, 7), entry(4, group), entry(16, 7)].concat();
            [&[2, 0, 0, 0][..], &entries].concat()
        };
        for (mode, group, expected) in [
            (0o670, 0, 0o600),
            (0o674, 4, 0o644),
            (0o640, 7, 0o640),
            (0o2750, 5, 0o2750),
        ] {
            assert_eq!(mode_without_acl(mode, &list(group)), expected, "{mode:o}");
        }
        assert_eq!(mode_without_acl(0o640, b"odd"), 0o600);
    }

    #[test]
    fn what_is_not_opened_is_changed_all_the_same_and_a_link_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link) = (dir.path().join("pipe"), dir.path().join("link"));
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        symlink("pipe", &link).unwrap();
        let before = pipe.symlink_metadata().unwrap();
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let times = Timestamps {
            last_access: time(0, UTIME_OMIT),
            last_modification: time(5, 6),
        };
        let held = place(&link);
        let subject = Subject::link(held.as_fd());
        subject.chmod(Mode::from_raw_mode(0o777)).unwrap();
        subject.set_times(&times).unwrap();
        subject.chown(None, None).unwrap();
        subject.remove_inherited_acls(|_| false).unwrap();
        assert_eq!(link.symlink_metadata().unwrap().mtime(), 5);
        let meta = pipe.symlink_metadata().unwrap();
        assert_eq!(
            (meta.mtime(), meta.ctime_nsec()),
            (before.mtime(), before.ctime_nsec())
        );
        let held = place(&pipe);
        let subject = Subject::place(held.as_fd());
        subject.chmod(Mode::from_raw_mode(0o640)).unwrap();
        subject.set_times(&times).unwrap();
        let meta = pipe.symlink_metadata().unwrap();
        assert_eq!((meta.mtime(), meta.mode() & 0o7777), (5, 0o640));
    }

    fn plain(xattrs: &[(&str, &str)]) -> FileMetadata {
        let pair =
            |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        FileMetadata {
            mode: 0o644,
            uid: 1,
            gid: 2,
            atime_ns: 3,
            mtime_ns: 4,
            xattrs: sorted(xattrs.iter().map(pair).collect()),
        }
    }

    #[test]
    fn every_part_that_differs_is_named_and_the_last_access_does_not_count() {
        let one = plain(&[("user.a", "1"), ("user.b", "2"), ("security.evm", "x")]);
        let mut other = plain(&[("user.c", "3"), ("user.b", "2"), ("security.evm", "y")]);
        let attribute = |name: &'static str| MetadataPart::Attribute(name.as_bytes());
        let parts: Vec<_> = one.differing(&other).collect();
        assert_eq!(parts, [attribute("user.a"), attribute("user.c")]);
        other.xattrs = vec![(b"user.b".to_vec(), b"3".to_vec())];
        (other.gid, other.mode, other.atime_ns, other.mtime_ns) = (3, 0o600, 5, 6);
        let parts: Vec<_> = one.differing(&other).collect();
        let expected = [
            MetadataPart::Owner,
            MetadataPart::Mode,
            MetadataPart::Times,
            attribute("user.a"),
            attribute("user.b"),
        ];
        assert_eq!(parts, expected);
        other = one.clone();
        other.atime_ns = 9;
        assert_eq!(one.differing(&other).next(), None);
    }

    #[test]
    fn lists_that_have_another_name_too_are_left_out() {
        let one = plain(&[("trusted.SGI_ACL_FILE", "x"), ("user.a", "1")]);
        assert_eq!(one, plain(&[("user.a", "1")]));
        // As earlier versions recorded it.
        let mut recorded = one.clone();
        let double = (b"trusted.SGI_ACL_FILE".to_vec(), b"x".to_vec());
        recorded.xattrs.insert(0, double);
        assert_eq!(recorded.differing(&one).next(), None);
    }

    #[test]
    fn times_of_any_length() {
        for ns in [-1, -SECOND, 1 << 70, 0, i128::from(i64::MIN)] {
            let time = timespec(ns);
            #[allow(clippy::unnecessary_cast)] // As above.
            let back = exact_nanoseconds(time.tv_sec as i64, time.tv_nsec as i64);
            assert_eq!(back, ns);
        }
    }
}
