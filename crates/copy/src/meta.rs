//! Metadata of a copy, given in an order in which no part undoes another: owner, mode, attributes,
//! access control lists, capabilities, times.

use std::os::fd::{AsFd, BorrowedFd};

use bc_edit::metadata::{ACCESS_ACL, Subject, mode_without_acl};
pub(crate) use bc_fs::xattr::Xattrs;
use bc_fs::xattr::{Attributed, NoFile, XattrReader};
use bc_manifest::time::is_beyond;
use bc_walk::FileStat;
use rustix::fs::{FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::{Errno, retry_on_intr};

use crate::options::Preserve;

const CAPABILITY: &[u8] = b"security.capability";
/// Names under which XFS shows root its access control lists a second time, in a form of its own.
const XFS_ACL: &[u8] = b"trusted.SGI_ACL_";
/// Security label, which the policy gives.
const LABEL: &[u8] = b"security.selinux";

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Metadata of a source that its copy is to have.
#[derive(Clone, Debug)]
pub(crate) struct WantedMeta {
    mode: u32,
    uid: u32,
    gid: u32,
    times: Timestamps,
    pub(crate) xattrs: Xattrs,
}

// The fields' widths differ between architectures.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
impl WantedMeta {
    pub(crate) fn new(stat: &Stat, xattrs: Xattrs) -> WantedMeta {
        let time = |seconds, nanoseconds| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        WantedMeta {
            mode: stat.st_mode as u32,
            uid: stat.st_uid,
            gid: stat.st_gid,
            times: Timestamps {
                last_access: time(stat.st_atime as _, stat.st_atime_nsec as _),
                last_modification: time(stat.st_mtime as _, stat.st_mtime_nsec as _),
            },
            xattrs,
        }
    }

    /// Returns the metadata recorded in a manifest, without the last access, which is left as it
    /// is, as is a time of modification that cannot be held or is not known.
    pub(crate) fn recorded(
        mode: u32,
        uid: u32,
        gid: u32,
        mtime_ns: Option<i64>,
        mut xattrs: Xattrs,
    ) -> WantedMeta {
        let omitted = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        };
        let known = mtime_ns.filter(|time| !is_beyond(*time));
        let mtime = known.map_or(omitted, |time| Timespec {
            tv_sec: time.div_euclid(1_000_000_000),
            tv_nsec: time.rem_euclid(1_000_000_000) as _,
        });
        xattrs.sort_by_key(|(name, _)| rank(name));
        WantedMeta {
            mode,
            uid,
            gid,
            times: Timestamps {
                last_access: omitted,
                last_modification: mtime,
            },
            xattrs,
        }
    }

    /// The same without the attributes of its source, which has this access control list, if any:
    /// its permission bits for the group are the list's mask, not what the group may do.
    pub(crate) fn without_acl(mut self, list: Option<&[u8]>) -> WantedMeta {
        if let Some(list) = list {
            self.mode = mode_without_acl(self.mode, list);
        }
        self
    }

    pub(crate) fn times(&self) -> &Timestamps {
        &self.times
    }
}

/// Metadata that is given to copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Giving {
    pub(crate) preserve: Preserve,
    umask: u32,
    /// User and group of new files.
    own: (u32, u32),
}

impl Giving {
    pub(crate) fn new(preserve: Preserve) -> Giving {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        Giving {
            preserve,
            umask: mask.unwrap_or(0o077),
            own: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        }
    }

    /// Returns the permission bits of the copy: those of a new file where they are not preserved.
    fn mode(&self, mode: u32, dropped: u32) -> Mode {
        let bits = match self.preserve.mode {
            true => mode & 0o7777 & !dropped,
            false => mode & 0o777 & !self.umask,
        };
        Mode::from_raw_mode(bits as _)
    }
}

#[allow(clippy::unnecessary_cast)]
impl WantedMeta {
    /// Returns the permission bits with which a new file can be made, so that neither owner nor
    /// mode need be given to it afterwards; `None` where it would be open to more users, or open
    /// for writing to others, before it is complete.
    pub(crate) fn mode_from_the_start(&self, giving: &Giving, inherits: bool) -> Option<u32> {
        let Preserve { mode, owner, .. } = giving.preserve;
        let bits = self.mode & 0o7777;
        let is_list = |name: &[u8]| name.starts_with(b"system.posix_acl_");
        let fits = mode
            && owner
            && !inherits
            && (self.uid, self.gid) == giving.own
            && bits & (0o7022 | giving.umask) == 0
            // The group that the directory gives it may do no more than others.
            && (bits >> 3) & !bits & 0o7 == 0
            && !self.xattrs.iter().any(|(name, _)| is_list(name));
        fits.then_some(bits)
    }

    /// True if a file has the wanted time of modification.
    pub(crate) fn has_times(&self, file: &FileStat) -> bool {
        let wanted = &self.times.last_modification;
        let ns = wanted.tv_nsec as i64;
        wanted
            .tv_sec
            .checked_mul(1_000_000_000)
            .and_then(|time| time.checked_add(ns))
            == Some(file.stamp.mtime_ns)
    }

    /// True if a file has these attributes and no others, except its label: the system gives labels
    /// by the place.
    pub(crate) fn has_xattrs(&self, found: &Xattrs) -> bool {
        let counted = |xattrs: &Xattrs| {
            let counted = xattrs.iter().filter(|(name, _)| name != LABEL);
            let mut counted: Vec<_> = counted.cloned().collect();
            counted.sort();
            counted
        };
        counted(&self.xattrs) == counted(found)
    }

    /// True if a file has the wanted owner, as far as this user may give one, and the wanted
    /// permission bits, where they are preserved.
    pub(crate) fn is_given_as_far(&self, file: &FileStat, preserve: Preserve) -> bool {
        let bits = |mode: u32| mode & 0o7777;
        let is_own = !preserve.owner || !is_root();
        (is_own || (file.uid, file.gid) == (self.uid, self.gid))
            && (!preserve.mode || bits(file.mode) == bits(self.mode))
    }

    /// True if a file has the wanted owner and permission bits.
    pub(crate) fn is_given(&self, file: &FileStat) -> bool {
        let bits = |mode: u32| mode & 0o7777;
        (file.uid, file.gid) == (self.uid, self.gid) && bits(file.mode) == bits(self.mode)
    }
}

/// Metadata that could not be given.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct LostMeta {
    /// Operation that failed.
    pub(crate) op: &'static str,
    pub(crate) errno: Errno,
}

/// Buffers for reading attributes, one for each worker.
pub(crate) struct SourceXattrs(XattrReader);

impl SourceXattrs {
    pub(crate) fn new() -> SourceXattrs {
        // Removed meanwhile, or listed but not for this user to see (trusted.*).
        SourceXattrs(XattrReader::new(&[
            Errno::NODATA,
            Errno::NOTSUP,
            Errno::PERM,
            Errno::ACCESS,
        ]))
    }

    /// Returns all attributes of an open file that this user may see, in the order in which they are
    /// given.
    pub(crate) fn of_file(&mut self, file: BorrowedFd<'_>) -> Result<Xattrs, Errno> {
        Ok(ranked(self.0.all(Attributed::Open(file))?))
    }

    /// Returns the same of the file at `path`; a link is not followed.
    pub(crate) fn at(&mut self, path: &[u8]) -> Result<Xattrs, Errno> {
        Ok(ranked(self.0.all(Attributed::<NoFile>::At(path))?))
    }

    /// Returns the access control list of an open file, if it has one.
    pub(crate) fn acl_of(&mut self, file: BorrowedFd<'_>) -> Result<Option<&[u8]>, Errno> {
        Ok(self.0.value(Attributed::Open(file), ACCESS_ACL)?)
    }

    /// Returns the same of the file at `path`, a link itself.
    pub(crate) fn acl_at(&mut self, path: &[u8]) -> Result<Option<&[u8]>, Errno> {
        Ok(self.0.value(Attributed::<NoFile>::At(path), ACCESS_ACL)?)
    }
}

fn ranked(mut xattrs: Xattrs) -> Xattrs {
    xattrs.retain(|(name, _)| !name.starts_with(XFS_ACL));
    xattrs.sort_by_key(|(name, _)| rank(name));
    xattrs
}

/// Ranks attributes: access control lists come after others, and capabilities, which a change of
/// the owner or of the content takes away, last.
fn rank(name: &[u8]) -> u8 {
    match name {
        CAPABILITY => 2,
        name if name.starts_with(b"system.posix_acl_") => 1,
        _ => 0,
    }
}

/// True if this process has root's user id.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a file the wanted metadata; `lost` gets what could not be given. `inherits`: it may have
/// inherited an access control list from its directory.
pub(crate) fn give(
    file: &Subject<'_>,
    wanted: &WantedMeta,
    giving: &Giving,
    inherits: bool,
    lost: &mut Vec<LostMeta>,
) {
    give_mode(file, wanted, giving, inherits, lost);
    give_rest(file, wanted, giving, lost);
}

/// The same of a directory that was there before, whose permission bits stay these where those of the
/// source are not wanted.
pub(crate) fn give_existing(
    dir: &Subject<'_>,
    wanted: &WantedMeta,
    giving: &Giving,
    bits: u32,
    lost: &mut Vec<LostMeta>,
) {
    if giving.preserve.mode {
        return give(dir, wanted, giving, true, lost);
    }
    if giving.preserve.owner {
        own(wanted, lost, |uid, gid| dir.chown(uid, gid));
        // A change of the owner takes some of them.
        let mode = Mode::from_raw_mode((bits & 0o7777) as _);
        note(lost, "chmod", dir.chmod(mode));
    }
    give_rest(dir, wanted, giving, lost);
}

/// Owner and permission bits.
fn give_mode(
    file: &Subject<'_>,
    wanted: &WantedMeta,
    giving: &Giving,
    inherits: bool,
    lost: &mut Vec<LostMeta>,
) {
    let mut dropped = 0;
    if giving.preserve.owner {
        dropped = own(wanted, lost, |uid, gid| file.chown(uid, gid));
    } else {
        // It is another user's copy of the file.
        dropped |= SET_USER | SET_GROUP;
    }
    // Permission bits that are those of the source mean the same only without a list beside them.
    if inherits && (giving.preserve.mode || giving.preserve.xattrs) {
        let has = |list: &[u8]| wanted.xattrs.iter().any(|(name, _)| name == list);
        note(
            lost,
            "remove inherited ACL",
            file.remove_inherited_acls(has),
        );
    }
    let mode = giving.mode(wanted.mode, dropped);
    note(lost, "chmod", file.chmod(mode));
}

/// Gives attributes and times, which follow owner and permission bits.
pub(crate) fn give_rest(
    file: &Subject<'_>,
    wanted: &WantedMeta,
    giving: &Giving,
    lost: &mut Vec<LostMeta>,
) {
    if giving.preserve.xattrs {
        for (name, value) in &wanted.xattrs {
            let set = file.set_xattr(name, value);
            if set.is_err() && name == ACCESS_ACL && giving.preserve.mode {
                // Without the list the owner's group would have rights that only users in the list
                // were to have.
                let mode = mode_without_acl(wanted.mode & 0o1777, value);
                note(lost, "chmod", file.chmod(Mode::from_raw_mode(mode as _)));
            }
            if name != LABEL {
                note(lost, "setxattr", set);
            }
        }
    }
    if giving.preserve.times {
        note(lost, "utimens", file.set_times(&wanted.times));
    }
}

/// Changes the mode of a directory that cannot be opened; no other kind of file that took its name
/// meanwhile is changed.
pub(crate) fn chmod_dir_at(dir: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))?;
    if FileType::from_raw_mode(fstat(&there)?.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    Subject::place(there.as_fd()).chmod(mode)
}

/// Changes the owner as far as this user may, and returns the bits of the mode that must not be set
/// then. It is no failure that users other than root cannot give files away.
fn own(
    wanted: &WantedMeta,
    lost: &mut Vec<LostMeta>,
    change: impl Fn(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
) -> u32 {
    let (uid, gid) = (Uid::from_raw(wanted.uid), Gid::from_raw(wanted.gid));
    let Err(errno) = change(Some(uid), Some(gid)) else {
        return 0;
    };
    if is_root() {
        lost.push(LostMeta { op: "chown", errno });
    }
    let group = change(None, Some(gid)).is_ok();
    let user = uid == rustix::process::geteuid();
    let mut dropped = 0;
    if !user {
        dropped |= SET_USER;
    }
    if !group {
        dropped |= SET_GROUP;
    }
    dropped
}

fn note(lost: &mut Vec<LostMeta>, op: &'static str, done: Result<(), Errno>) {
    if let Err(errno) = done {
        lost.push(LostMeta { op, errno });
    }
}

/// Returns the `stat` of an open file, for callers with `AsFd`.
pub(crate) fn fstat(file: impl AsFd) -> Result<Stat, Errno> {
    retry_on_intr(|| rustix::fs::fstat(file.as_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_count_and_order_does_not() {
        let stat = rustix::fs::stat("/").unwrap();
        let one = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        let (a, b) = (one(b"user.a", b"1"), one(b"user.b", b"2"));
        let wanted = WantedMeta::new(&stat, vec![one(LABEL, b"x"), a.clone(), b.clone()]);
        assert!(wanted.has_xattrs(&vec![b.clone(), a.clone()]));
        assert!(wanted.has_xattrs(&vec![b.clone(), one(LABEL, b"y"), a.clone()]));
        assert!(!wanted.has_xattrs(&vec![a.clone()]));
        assert!(!wanted.has_xattrs(&vec![a.clone(), one(b"user.b", b"3")]));
        assert!(!wanted.has_xattrs(&vec![a, b, one(b"user.c", b"")]));
    }

    #[test]
    fn capabilities_come_last_and_lists_before_them() {
        let mut names = [
            CAPABILITY.to_vec(),
            b"user.z".to_vec(),
            ACCESS_ACL.to_vec(),
            b"security.ima".to_vec(),
        ];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names[3], CAPABILITY);
        assert_eq!(names[2], ACCESS_ACL);
    }
}
