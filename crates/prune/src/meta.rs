//! Metadata of a file: owner, mode, times, extended attributes (which hold the ACLs). Compared
//! before names are merged, kept in the journal, given to copies.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use bc_edit::metadata::{ACCESS_ACL, Subject, mode_without_acl};
use bc_fs::clock::{exact, is_clipped};
use bc_fs::meta;
use bc_fs::xattr::{Attributed, XattrReader};
use bc_walk::{FileKind, FileStat};
use rustix::fs::{self, Gid, Mode, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::caller::{Caller, FileOwner};
use super::skip::Skip;

/// Names and values, sorted by name.
type SortedXattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// Everything about a file that can be compared and given to a copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Metadata {
    /// Permission bits, as in `st_mode` without the type.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) atime_ns: i128,
    pub(crate) mtime_ns: i128,
    pub(crate) xattrs: SortedXattrs,
}

/// Signed over the inode number, so never equal and never to be copied.
const PER_INODE: &[u8] = b"security.evm";

/// Attribute that gives a program capabilities, for every user who runs it.
const CAPABILITIES: &[u8] = b"security.capability";

/// Set-user-ID and set-group-ID: the program acts as its owner.
const AS_OWNER: u32 = 0o6000;

const SET_ID: &str = "set-user-ID and set-group-ID: the owner is not the recorded one";

impl Metadata {
    pub(crate) fn read(
        file: &OwnedFd,
        stat: &FileStat,
        atime_ns: impl Into<i128>,
    ) -> Result<Metadata, Skip> {
        let (mut atime_ns, mut mtime_ns) = (atime_ns.into(), i128::from(stat.stamp.mtime_ns));
        if is_clipped(atime_ns) || is_clipped(mtime_ns) {
            let (atime, mtime) = times(&meta::raw_stat(file)?);
            let exact = |known: i128, now: i128| match is_clipped(known) {
                true => now,
                false => known,
            };
            (atime_ns, mtime_ns) = (exact(atime_ns, atime), exact(mtime_ns, mtime));
        }
        Ok(Metadata {
            mode: stat.mode & 0o7777,
            uid: stat.uid,
            gid: stat.gid,
            atime_ns,
            mtime_ns,
            xattrs: match stat.kind() {
                // It is held as a place alone, of which they cannot be asked.
                FileKind::Symlink => Vec::new(),
                _ => xattrs(file)?,
            },
        })
    }

    /// Returns owner and group.
    pub(crate) fn owner(&self) -> FileOwner {
        FileOwner {
            uid: self.uid,
            gid: self.gid,
        }
    }

    /// Returns a difference that would be lost if one name were made another name of the other
    /// file. Times do not count.
    pub(crate) fn difference(&self, other: &Metadata) -> Option<&'static str> {
        if (self.uid, self.gid) != (other.uid, other.gid) {
            return Some("owner");
        }
        if self.mode != other.mode {
            return Some("mode");
        }
        let relevant = |metadata: &Metadata| -> SortedXattrs {
            let mut xattrs = metadata.xattrs.clone();
            xattrs.retain(|(name, _)| name != PER_INODE);
            xattrs
        };
        let (mine, others) = (relevant(self), relevant(other));
        if mine == others {
            return None;
        }
        let differs = |name: &[u8]| {
            let value = |list: &[(Vec<u8>, Vec<u8>)]| {
                list.iter()
                    .find(|(found, _)| found == name)
                    .map(|(_, value)| value.clone())
            };
            value(&mine) != value(&others)
        };
        Some(if differs(b"system.posix_acl_access") {
            "ACL"
        } else {
            "an extended attribute"
        })
    }

    /// Returns a part of this, other than times, that `has` lacks.
    pub(crate) fn lacking(&self, has: &Metadata) -> Option<&'static str> {
        if (self.uid, self.gid) != (has.uid, has.gid) {
            return Some("owner");
        }
        if self.mode != has.mode {
            return Some("mode");
        }
        let mut mine = self.xattrs.iter();
        let lacks = mine
            .any(|(name, value)| name != PER_INODE && has.xattr(name) != Some(value.as_slice()));
        lacks.then_some("attributes")
    }

    /// Returns the metadata for a file that comes back as a copy from where it was moved to. It has
    /// `self` now and was given `made` there: a part that still is as given gets its value from
    /// `before`, any other stays as it is now. Without `made` it is taken to have been given
    /// everything but attributes that it lacks.
    pub(crate) fn carried_back(&self, made: Option<&Metadata>, before: &Metadata) -> Metadata {
        fn pick<T: PartialEq>(now: T, made: Option<T>, before: T) -> T {
            if made.is_some_and(|made| made == now) {
                before
            } else {
                now
            }
        }
        let names = self.xattrs.iter().chain(&before.xattrs);
        let names: BTreeSet<&Vec<u8>> = names.map(|(name, _)| name).collect();
        let xattrs = names.into_iter().filter_map(|name| {
            let (now, earlier) = (self.xattr(name), before.xattr(name));
            let value = match made {
                Some(made) => pick(now, Some(made.xattr(name)), earlier),
                None => now.or(earlier),
            };
            Some((name.clone(), value?.to_vec()))
        });
        Metadata {
            mode: pick(self.mode, made.map(|made| made.mode), before.mode),
            uid: pick(self.uid, made.map(|made| made.uid), before.uid),
            gid: pick(self.gid, made.map(|made| made.gid), before.gid),
            atime_ns: self.atime_ns,
            mtime_ns: pick(
                self.mtime_ns,
                made.map(|made| made.mtime_ns),
                before.mtime_ns,
            ),
            xattrs: xattrs.collect(),
        }
    }

    fn xattr(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.xattrs.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// Returns the parts of this that would be lost if only a file that has `other` were left:
    /// those that `wanted` has as well, or all if it is not given.
    pub(crate) fn not_in(&self, other: &Metadata, wanted: Option<&Metadata>) -> Option<String> {
        fn gone<T: PartialEq>(now: T, other: T, wanted: Option<T>) -> bool {
            now != other && wanted.is_none_or(|wanted| wanted == now)
        }
        let owner = |of: &Metadata| (of.uid, of.gid);
        if gone(owner(self), owner(other), wanted.map(owner)) {
            return Some("owner".to_owned());
        }
        if gone(self.mode, other.mode, wanted.map(|wanted| wanted.mode)) {
            return Some("mode".to_owned());
        }
        if gone(
            self.mtime_ns,
            other.mtime_ns,
            wanted.map(|wanted| wanted.mtime_ns),
        ) {
            return Some("modification time".to_owned());
        }
        let mut names = self.xattrs.iter().map(|(name, _)| name);
        let lost = names.find(|name| {
            let wanted = wanted.map(|wanted| wanted.xattr(name));
            *name != PER_INODE && gone(self.xattr(name), other.xattr(name), wanted)
        });
        lost.map(|name| format!("attribute {}", bc_fs::Escaped(name)))
    }

    /// Returns the part that a copy of `source`'s content may be given, so that no user gets
    /// content of his choice run as another user, however well it matches a digest. What the source
    /// itself `has`, if that is given, may be done with its content already. The second value lists
    /// what is left out.
    pub(crate) fn entitled(
        mut self,
        source: &FileStat,
        has: Option<&Metadata>,
    ) -> (Metadata, Vec<String>) {
        let mut left_out = Vec::new();
        let owned = (source.uid, source.gid) == (self.uid, self.gid);
        if self.mode & AS_OWNER != 0 && !owned {
            self.mode &= !AS_OWNER;
            left_out.push(SET_ID.to_owned());
        }
        let before = self.xattrs.len();
        let same_owner = self.uid == source.uid;
        self.xattrs.retain(|(name, value)| {
            let has = || has.and_then(|has| has.xattr(name)) == Some(value.as_slice());
            name != CAPABILITIES || source.uid == 0 || same_owner && has()
        });
        if self.xattrs.len() < before {
            left_out.push("capabilities: the content is not root's".to_owned());
        }
        (self, left_out)
    }

    /// Gives all of it to `file`, which must be of our own making. Returns the parts that the
    /// system refuses; the rest is done all the same. A file that does not get the owner does not
    /// get the power to act as its owner either.
    pub(crate) fn apply(&self, file: &OwnedFd) -> Result<Vec<String>, Skip> {
        let mut refused = Vec::new();
        let mut note = |what: String, done: Result<(), Errno>| {
            if let Err(errno) = done {
                let reason = std::io::Error::from(errno);
                refused.push(format!("{what}: {reason}"));
            }
        };
        // The owner first: changing it clears set-user-ID and capabilities.
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let subject = Subject::open(file.as_fd());
        note("owner".to_owned(), subject.chown(Some(uid), Some(gid)));
        let now = meta::stat(file)?;
        let owned = (now.uid, now.gid) == (self.uid, self.gid);
        // Before the mode, which would open the file to those in a list of its directory.
        let has = |name: &[u8]| self.xattr(name).is_some();
        note(
            "ACL of the directory".to_owned(),
            subject.remove_inherited_acls(has),
        );
        let mut wanted = self.mode;
        for (name, value) in &self.xattrs {
            if name != PER_INODE && (owned || name != CAPABILITIES) {
                let set = subject.set_xattr(name, value);
                if set.is_err() && name == ACCESS_ACL {
                    wanted = mode_without_acl(wanted, value);
                }
                note(format!("attribute {}", bc_fs::Escaped(name)), set);
            }
        }
        let mode = if owned { wanted } else { wanted & !AS_OWNER };
        // The mode last: a process that is killed before that can open a directory once more.
        note("times".to_owned(), self.apply_times(file));
        note("mode".to_owned(), subject.chmod(Mode::from_raw_mode(mode)));
        if mode != wanted {
            refused.push(SET_ID.to_owned());
        }
        if !owned && self.xattrs.iter().any(|(name, _)| name == CAPABILITIES) {
            refused.push("capabilities: the owner is not the recorded one".to_owned());
        }
        Ok(refused)
    }

    /// Returns the metadata that [`apply`](Metadata::apply) would give a new file of the caller's,
    /// and the parts that it would list as refused: by the rules of the kernel and by the
    /// attributes that the file system `takes`, without a try.
    pub(crate) fn foresee(
        &self,
        caller: &Caller,
        takes: impl Fn(&[u8]) -> bool,
    ) -> (Metadata, Vec<String>) {
        let mut made = self.clone();
        let mut refused = Vec::new();
        let mut note = |what: String, errno: Errno| {
            refused.push(format!("{what}: {}", std::io::Error::from(errno)));
        };
        let owned = caller.may_give(None, self.owner()).is_ok();
        if !owned {
            note("owner".to_owned(), Errno::PERM);
            // No owner, as it is not known which group the file would have.
            (made.uid, made.gid) = (u32::MAX, u32::MAX);
            made.mode &= !AS_OWNER;
        }
        made.xattrs.retain(|(name, _)| {
            if name == PER_INODE || !owned && name == CAPABILITIES {
                return false;
            }
            let errno = match (takes(name), caller.may_set(name)) {
                (false, _) => Errno::OPNOTSUPP,
                (true, false) => Errno::PERM,
                (true, true) => return true,
            };
            note(format!("attribute {}", bc_fs::Escaped(name)), errno);
            false
        });
        if [self.atime_ns, self.mtime_ns].into_iter().any(is_clipped) {
            note("times".to_owned(), Errno::OVERFLOW);
        }
        if made.mode != self.mode {
            refused.push(SET_ID.to_owned());
        }
        if !owned && self.xattr(CAPABILITIES).is_some() {
            refused.push("capabilities: the owner is not the recorded one".to_owned());
        }
        (made, refused)
    }

    /// Sets access and modification time alone.
    ///
    /// # Errors
    /// The system's; `EOVERFLOW` where the file system cannot hold the time, which it replaces by
    /// the nearest without a word, or the journal could not.
    pub(crate) fn apply_times(&self, file: &OwnedFd) -> Result<(), Errno> {
        Subject::open(file.as_fd()).set_times(&self.times())?;
        self.check_times(|| fs::fstat(file))
    }

    /// Checks that times far away from now are those that were set.
    fn check_times(&self, now: impl FnOnce() -> rustix::io::Result<fs::Stat>) -> Result<(), Errno> {
        let wanted = [self.atime_ns, self.mtime_ns];
        if wanted
            .iter()
            .all(|ns| NEAR.contains(&ns.div_euclid(SECOND)))
        {
            return Ok(());
        }
        let (atime, mtime) = times(&now()?);
        let second = |ns: i128| ns.div_euclid(SECOND);
        match [atime, mtime].map(second) == wanted.map(second)
            && !wanted.into_iter().any(is_clipped)
        {
            true => Ok(()),
            false => Err(Errno::OVERFLOW),
        }
    }

    /// Gives a symbolic link of our own making, which is held with `O_PATH`, its owner and its
    /// times.
    pub(crate) fn apply_to_link(&self, link: &OwnedFd) -> Result<(), Errno> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let subject = Subject::link(link.as_fd());
        let owner = subject.chown(Some(uid), Some(gid));
        subject.set_times(&self.times())?;
        owner.and_then(|()| self.check_times(|| fs::fstat(link)))
    }

    /// Both, as the system takes them.
    pub(crate) fn times(&self) -> Timestamps {
        Timestamps {
            last_access: timespec(self.atime_ns),
            last_modification: timespec(self.mtime_ns),
        }
    }
}

const SECOND: i128 = 1_000_000_000;

/// Seconds since 1970 that every file system holds which has 32 bits for them.
const NEAR: std::ops::Range<i128> = 0..1 << 31;

fn timespec(ns: i128) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(SECOND) as _,
        tv_nsec: ns.rem_euclid(SECOND) as _,
    }
}

/// Returns the times of the last access and the last modification.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // As in `bc_walk`.
fn times(stat: &fs::Stat) -> (i128, i128) {
    (
        exact(stat.st_atime as i64, stat.st_atime_nsec as i64),
        exact(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    )
}

/// Returns true if the file system of a directory has attributes of this kind; it is asked for one.
pub(crate) fn takes_attribute(dir: &OwnedFd, name: &[u8]) -> bool {
    let flags = fs::OFlags::RDONLY | fs::OFlags::DIRECTORY | fs::OFlags::CLOEXEC;
    let Ok(dir) = fs::openat(dir, c".", flags, Mode::empty()) else {
        return true;
    };
    fs::fgetxattr(&dir, name, &mut [0_u8; 0][..]) != Err(Errno::OPNOTSUPP)
}

/// Returns all extended attributes, by name. A file system without any has none.
fn xattrs(file: &OwnedFd) -> Result<SortedXattrs, Skip> {
    // Removed meanwhile, or listed but for others to read.
    let mut found = XattrReader::new(&[Errno::NODATA]).all(Attributed::Open(file))?;
    found.sort();
    Ok(found)
}
