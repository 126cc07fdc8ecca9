//! What a file is besides its content: owner, mode, times, extended
//! attributes (which hold the ACLs). Compared before names are merged, kept
//! in the journal, given to copies.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use bc_fs::metadata::{ACCESS_ACL, Subject, mode_without_acl};
use bc_walk::{FileKind, FileStat};
use rustix::fs::{self, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use super::fail::point;
use super::skip::Skip;
use super::sys::Failed;

/// Names and values, sorted by name.
type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// Everything about a file that can be compared and given to a copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Metadata {
    /// Permission bits, as in `st_mode` without the type.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) atime_ns: i64,
    pub(crate) mtime_ns: i64,
    pub(crate) xattrs: Xattrs,
}

/// Signed over the inode number, so never equal and never to be copied.
const PER_INODE: &[u8] = b"security.evm";

/// What a program may do whoever runs it.
const CAPABILITIES: &[u8] = b"security.capability";

/// Set-user-ID and set-group-ID: the program acts as its owner.
const AS_OWNER: u32 = 0o6000;

const SET_ID: &str = "set-user-ID and set-group-ID: the owner is not the recorded one";

impl Metadata {
    pub(crate) fn read(file: &OwnedFd, stat: &FileStat, atime_ns: i64) -> Result<Metadata, Skip> {
        Ok(Metadata {
            mode: stat.mode & 0o7777,
            uid: stat.uid,
            gid: stat.gid,
            atime_ns,
            mtime_ns: stat.stamp.mtime_ns,
            xattrs: match stat.kind() {
                // It is held as a place alone, of which they cannot be asked.
                FileKind::Symlink => Vec::new(),
                _ => xattrs(file)?,
            },
        })
    }

    /// What of it differs in a way that would be lost if one name were made
    /// another name of the other file. Times do not count.
    pub(crate) fn difference(&self, other: &Metadata) -> Option<&'static str> {
        if (self.uid, self.gid) != (other.uid, other.gid) {
            return Some("owner");
        }
        if self.mode != other.mode {
            return Some("mode");
        }
        let relevant = |metadata: &Metadata| -> Xattrs {
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

    /// What of this `has` does not have, times aside.
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

    /// What a file is to have that comes back from where it was moved to as a
    /// copy, has this now and was given `made` there: that, and where it has
    /// still what it was given, what it had before. Without `made` it is taken
    /// to have been given everything but attributes that it has not.
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

    /// What of this would be gone if a file that has `other` were all that is
    /// left: what `wanted` has as well, or anything if that is not given.
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

    /// As much of it as a copy of `source`'s content may be given: nobody gets
    /// a content of his choice run as somebody else, however well it matches
    /// a digest. What the source itself `has`, if that is given, may be done
    /// with its content already. What is left out is named.
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

    /// Gives all of it to `file`, which must be of our own making. What the
    /// system refuses is named in the result; the rest is done all the same.
    /// A file that does not get the owner does not get the power to act as
    /// its owner either.
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
        note(
            "owner".to_owned(),
            point("chown").and_then(|()| fs::fchown(file, Some(uid), Some(gid))),
        );
        let now = super::sys::stat(file)?;
        let owned = (now.uid, now.gid) == (self.uid, self.gid);
        // Before the mode, which would open the file to those in a list of its directory.
        let has = |name: &[u8]| self.xattr(name).is_some();
        let inherited = Subject::open(file.as_fd());
        note(
            "ACL of the directory".to_owned(),
            point("removexattr").and_then(|()| inherited.remove_inherited_acls(has)),
        );
        let mut wanted = self.mode;
        for (name, value) in &self.xattrs {
            if name != PER_INODE && (owned || name != CAPABILITIES) {
                let set = point("setxattr").and_then(|()| {
                    fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty())
                });
                if set.is_err() && name == ACCESS_ACL {
                    wanted = mode_without_acl(wanted, value);
                }
                note(format!("attribute {}", bc_fs::Escaped(name)), set);
            }
        }
        let mode = if owned { wanted } else { wanted & !AS_OWNER };
        // The mode last: who is killed before that can open a directory once more.
        note("times".to_owned(), self.apply_times(file));
        note(
            "mode".to_owned(),
            point("chmod").and_then(|()| fs::fchmod(file, Mode::from_raw_mode(mode))),
        );
        if mode != wanted {
            refused.push(SET_ID.to_owned());
        }
        if !owned && self.xattrs.iter().any(|(name, _)| name == CAPABILITIES) {
            refused.push("capabilities: the owner is not the recorded one".to_owned());
        }
        Ok(refused)
    }

    /// Sets access and modification time alone.
    pub(crate) fn apply_times(&self, file: &OwnedFd) -> Result<(), Errno> {
        let times = self.times();
        point("utimens").and_then(|()| fs::futimens(file, &times))
    }

    /// Gives a symbolic link of our own making, which is held with `O_PATH`, its owner and its
    /// times.
    pub(crate) fn apply_to_link(&self, link: &OwnedFd) -> Result<(), Errno> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let link = Subject::link(link.as_fd());
        let owner = point("chown").and_then(|()| link.chown(Some(uid), Some(gid)));
        point("utimens").and_then(|()| link.set_times(&self.times()))?;
        owner
    }

    /// Both, as the system takes them.
    pub(crate) fn times(&self) -> Timestamps {
        Timestamps {
            last_access: timespec(self.atime_ns),
            last_modification: timespec(self.mtime_ns),
        }
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(1_000_000_000),
        tv_nsec: ns.rem_euclid(1_000_000_000) as _,
    }
}

/// All extended attributes, by name. A file system without any has none.
fn xattrs(file: &OwnedFd) -> Result<Xattrs, Skip> {
    let names = match sized("listxattr", |buffer| fs::flistxattr(file, buffer)) {
        Ok(names) => names,
        Err(Failed {
            errno: Errno::OPNOTSUPP | Errno::NOSYS,
            ..
        }) => return Ok(Vec::new()),
        Err(failed) => return Err(failed.into()),
    };
    let mut found = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        match sized("getxattr", |buffer| fs::fgetxattr(file, name, buffer)) {
            Ok(value) => found.push((name.to_vec(), value)),
            // Removed meanwhile, or listed but for others to read.
            Err(Failed {
                errno: Errno::NODATA,
                ..
            }) => {}
            Err(failed) => return Err(failed.into()),
        }
    }
    found.sort();
    Ok(found)
}

/// Calls with a buffer that is large enough, which takes a second call for
/// more than 1 KiB.
fn sized(
    op: &'static str,
    mut get: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> Result<Vec<u8>, Failed> {
    let fail = |errno| Failed { op, errno };
    point(op).map_err(fail)?;
    let mut buffer = vec![0; 1024];
    loop {
        match retry_on_intr(|| get(&mut buffer)) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            // XATTR_SIZE_MAX and XATTR_LIST_MAX are 64 KiB.
            Err(Errno::RANGE) if buffer.len() < 1 << 16 => buffer.resize(1 << 16, 0),
            Err(errno) => return Err(fail(errno)),
        }
    }
}
