//! The order in which a file is given its metadata. No part undoes another one, and at no moment
//! has anybody more access than the file gives in the end, wherever the process is killed:
//!
//! 1. The owner: changing it clears set-user-ID, set-group-ID and capabilities.
//! 2. Access control lists that the file has and is not to have go, as long as the permission bits
//!    keep others out: the bits of the group are the list's mask, which it alone restrains.
//! 3. Attributes, before the permission bits may forbid the owner to write. Access control lists
//!    come after others: bits for a group that the list keeps out must not come first. Capabilities
//!    come last.
//! 4. Times, which nothing after them changes.
//! 5. Permission bits: a directory that still lacks something can be opened once more by whoever
//!    goes on after a kill.
//!
//! A file that does not get its owner does not get the power that it had with it either.

use bc_fs::meta::{self, FileKind, FileStat, is_clipped};
use rustix::fs::{Gid, Mode, Timespec, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::file_metadata::SECOND;
use super::{
    ACCESS_ACL, CAPABILITIES, DEFAULT_ACL, FileMetadata, MetadataPart, Subject, is_given,
    mode_without_acl,
};

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Bits with which a program acts as the owner of its file, or its group.
pub const SET_ID: u32 = SET_USER | SET_GROUP;

/// Seconds since 1970 that every file system holds which has 32 bits for them.
const NEAR: std::ops::Range<i128> = 0..1 << 31;

/// Parts of its metadata that a file is given.
#[derive(Clone, Copy, Debug)]
pub struct GivenParts {
    /// Owner and group. A file that keeps the owner it has gets neither set-user-ID nor
    /// set-group-ID.
    pub owner: bool,
    /// Permission bits.
    pub mode: GivenMode,
    /// Extended attributes.
    pub xattrs: bool,
    /// Times.
    pub times: GivenTimes,
    /// Treatment of access control lists that the file has and is not to have.
    pub acl: PresentAcl,
}

impl GivenParts {
    /// All parts, for a new file that was made for its owner alone.
    pub const ALL: GivenParts = GivenParts {
        owner: true,
        mode: GivenMode::Recorded,
        xattrs: true,
        times: GivenTimes::Both,
        acl: PresentAcl::Inherited,
    };
}

/// Permission bits that a file is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GivenMode {
    /// Those of the metadata.
    Recorded,
    /// These, unless an access control list is given, which has bits of its own.
    Other(u32),
    /// None: it keeps those that it has.
    Kept,
}

/// Times that a file is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GivenTimes {
    /// Of the last access and the last modification.
    Both,
    /// Of the last modification alone.
    Modification,
    /// None.
    Kept,
}

/// Access control lists that a file may have before it is given its metadata.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PresentAcl {
    /// There are none, or they stay.
    Kept,
    /// A new file, made for its owner alone, has them from its directory: they are removed.
    Inherited,
    /// A file that others may use has them: they are removed, and nobody may do more meanwhile.
    InUse,
}

/// Part of its metadata that a file was not given, and the system's reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotGiven<'m> {
    /// The part.
    pub part: MetadataPart<'m>,
    /// The system's reason; of what was withheld, that for which the file has another owner.
    pub errno: Errno,
}

impl FileMetadata {
    /// Gives parts of this to a file. Returns what the file was not given; the rest is done all the
    /// same.
    pub fn give(&self, file: &Subject<'_>, parts: &GivenParts) -> Vec<NotGiven<'_>> {
        let mut not_given = Vec::new();
        let mut note = |part, done: Result<(), Errno>| {
            if let Err(errno) = done {
                not_given.push(NotGiven { part, errno });
            }
        };
        let owner = match parts.owner {
            true => self.give_owner(file),
            false => Ok(()),
        };
        note(MetadataPart::Owner, owner);
        let (withheld, is_capable) = match parts.owner {
            true => self.withheld(file),
            false => (SET_ID, true),
        };
        let is_lost = parts.owner && parts.mode == GivenMode::Recorded;
        let lost = || Err(owner.err().unwrap_or(Errno::PERM));
        let has = |list: &[u8]| parts.xattrs && self.xattr(list).is_some();
        let removed = match parts.acl {
            PresentAcl::Kept => Ok(()),
            PresentAcl::Inherited => file.remove_inherited_acls(has),
            PresentAcl::InUse => file.remove_acls_in_use(has),
        };
        note(MetadataPart::InheritedAcl, removed);
        let (mut mode, mut has_list) = (self.mode, false);
        let mut is_weaker = false;
        for (name, value) in self.in_order().filter(|_| parts.xattrs) {
            if name == CAPABILITIES && !is_capable {
                is_weaker = true;
                continue;
            }
            let set = file.set_xattr(name, value);
            if name == ACCESS_ACL {
                has_list = set.is_ok();
            }
            if set.is_err() && is_acl(name) {
                if name == ACCESS_ACL {
                    mode = mode_without_acl(mode, value);
                }
                if parts.acl != PresentAcl::Kept {
                    // Else the one of its directory would be left in its place.
                    note(MetadataPart::InheritedAcl, file.remove_acl(name));
                }
            }
            note(MetadataPart::Attribute(name), set);
        }
        note(MetadataPart::Times, self.give_times(file, parts.times));
        let bits = match parts.mode {
            GivenMode::Recorded => Some(mode & 0o7777 & !withheld),
            GivenMode::Other(bits) => Some(bits).filter(|_| !has_list),
            GivenMode::Kept => None,
        };
        if let Some(bits) = bits {
            note(
                MetadataPart::Mode,
                file.chmod(Mode::from_raw_mode(bits as _)),
            );
        }
        if is_lost && mode & withheld != 0 {
            note(MetadataPart::SetId, lost());
        }
        if is_weaker {
            note(MetadataPart::Capabilities, lost());
        }
        not_given
    }

    /// Gives a file the times alone.
    ///
    /// # Errors
    /// The system's; `EOVERFLOW` where the file system cannot hold a time, which it replaces by the
    /// nearest without a word, or a listing could not.
    pub fn give_times(&self, file: &Subject<'_>, given: GivenTimes) -> Result<(), Errno> {
        let mut times = self.times();
        match given {
            GivenTimes::Both => {}
            GivenTimes::Modification => {
                times.last_access = Timespec {
                    tv_sec: 0,
                    tv_nsec: UTIME_OMIT,
                };
            }
            GivenTimes::Kept => return Ok(()),
        }
        file.set_times(&times)?;
        let given = |of: &FileMetadata| match given {
            GivenTimes::Both => [of.atime_ns, of.mtime_ns],
            GivenTimes::Modification | GivenTimes::Kept => [of.mtime_ns; 2],
        };
        let second = |ns: i128| ns.div_euclid(SECOND);
        let wanted = given(self);
        if wanted.iter().all(|ns| NEAR.contains(&second(*ns))) {
            return Ok(());
        }
        let now = FileMetadata::new(&meta::raw_stat(file.fd)?, Vec::new());
        let is_kept = given(&now).map(second) == wanted.map(second);
        match is_kept && !wanted.into_iter().any(is_clipped) {
            true => Ok(()),
            false => Err(Errno::OVERFLOW),
        }
    }

    /// Gives owner and group; the group alone where this user cannot give files away.
    fn give_owner(&self, file: &Subject<'_>) -> Result<(), Errno> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        file.chown(Some(uid), Some(gid)).inspect_err(|_| {
            let _ = file.chown(None, Some(gid));
        })
    }

    /// Returns the bits that a file must not get with the owner that it has now, and true if it may
    /// get capabilities. Where there are neither, it is not asked for its owner.
    fn withheld(&self, file: &Subject<'_>) -> (u32, bool) {
        if self.mode & SET_ID == 0 && self.xattr(CAPABILITIES).is_none() {
            return (0, true);
        }
        // The system may have taken the owner without a word, and kept another one.
        match meta::stat(file.fd) {
            Ok(now) => self.withheld_of(&now),
            Err(_) => (SET_ID, false),
        }
    }

    fn withheld_of(&self, now: &FileStat) -> (u32, bool) {
        let has_group = now.gid == self.gid;
        match now.uid == self.uid && has_group {
            true => (0, true),
            // Of a directory it says whose group new files get.
            false if has_group && now.kind() == FileKind::Dir => (SET_USER, false),
            false => (SET_ID, false),
        }
    }

    /// Returns the attributes in the order in which they are given.
    fn in_order(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let given = self.xattrs.iter().filter(|(name, _)| is_given(name));
        let of = move |wanted: u8| given.clone().filter(move |(name, _)| rank(name) == wanted);
        let all = of(0).chain(of(1)).chain(of(2));
        all.map(|(name, value)| (&name[..], &value[..]))
    }
}

fn is_acl(name: &[u8]) -> bool {
    name == ACCESS_ACL || name == DEFAULT_ACL
}

/// Ranks attributes: access control lists come after others, and capabilities, which a change of
/// the owner or of the content takes away, last.
fn rank(name: &[u8]) -> u8 {
    match name {
        CAPABILITIES => 2,
        name if is_acl(name) => 1,
        _ => 0,
    }
}
