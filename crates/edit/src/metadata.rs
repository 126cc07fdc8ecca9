//! Metadata of files: read, compared, and given to files that this program made, in
//! [one order](FileMetadata::give), through the descriptor that they are held by: any user who may
//! write to the directory can give a name to another file at any time.

mod file_metadata;
mod give;

use std::os::fd::{AsFd, BorrowedFd};

use bc_fs::call::point;
use bc_fs::dirfd::own_path;
use bc_fs::meta;
use bc_fs::meta::{Attributed, NoFile, XattrReader};
use rustix::fs::{AtFlags, CWD, Gid, Mode, Stat, Timestamps, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

pub use file_metadata::{CAPABILITIES, FileMetadata, MetadataPart, is_given, sorted};
pub use give::{GivenMode, GivenParts, GivenTimes, NotGiven, PresentAcl, SET_ID};

/// Extended attribute that holds a file's access control list.
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";

/// Extended attribute that holds the list which new files in a directory inherit.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

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
    pub fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
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
    pub fn remove_inherited_acls(&self, has: impl Fn(&[u8]) -> bool) -> Result<(), Errno> {
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
    pub fn remove_acls_in_use(&self, has: impl Fn(&[u8]) -> bool) -> Result<(), Errno> {
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
        let list = match &self.path {
            None => reader.value(Attributed::Open(self.fd), ACCESS_ACL),
            Some(path) => {
                let held: Attributed<'_, NoFile> = Attributed::Through(path.as_bytes());
                reader.value(held, ACCESS_ACL)
            }
        };
        let list = match list.map_err(Errno::from) {
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
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, OFlags, Timespec, UTIME_OMIT};
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
}
