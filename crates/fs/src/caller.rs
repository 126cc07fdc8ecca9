//! The process's user, groups and capabilities as the kernel checks them, and the answers that the
//! kernel would give.

use std::cell::OnceCell;
use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

use crate::call::FailedCall;
use crate::dirfd::may_read_and_write;
use crate::meta::{FileStat, FullStat, stat_all};

/// Bits of a mode, as in inode(7).
const STICKY: u32 = 0o1000;
const SET_GID: u32 = 0o2000;
const SET_UID: u32 = 0o4000;
const GROUP_EXECUTES: u32 = 0o010;

/// User, groups and capabilities of this process.
#[derive(Debug)]
pub struct Caller {
    uid: u32,
    /// Its groups.
    gids: Vec<u32>,
    /// Capabilities of the process: `CAP_FOWNER` permits it the acts of an owner, with files whose
    /// owner its user namespace maps.
    capabilities: CapabilitySet,
    /// The users and the groups of that namespace, once asked for.
    known: OnceCell<[Ids; 2]>,
    is_guarded: OnceCell<bool>,
}

/// The numbers that a user namespace has (user_namespaces(7)).
#[derive(Debug)]
enum Ids {
    All,
    /// Ranges, each a first number and a count; all others look like `nobody`, this number.
    Some {
        ranges: Vec<(u32, u32)>,
        nobody: u32,
    },
}

impl Ids {
    fn read(map: &str, overflow: &str) -> Ids {
        let map = std::fs::read_to_string(map);
        let nobody = std::fs::read_to_string(overflow);
        let nobody = nobody.ok().and_then(|text| text.trim().parse().ok());
        // Without /proc nothing is known of a namespace.
        map.map_or(Ids::All, |map| Ids::of(&map, nobody.unwrap_or(NOBODY)))
    }

    fn of(map: &str, nobody: u32) -> Ids {
        let numbers = |line: &str| {
            let mut fields = line.split_whitespace().map(str::parse::<u32>);
            let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some((first.ok()?, count.ok()?))
        };
        let ranges: Vec<(u32, u32)> = map.lines().filter_map(numbers).collect();
        match ranges[..] {
            [(0, u32::MAX)] => Ids::All,
            _ => Ids::Some { ranges, nobody },
        }
    }

    /// True if a file with this number has an owner that the namespace maps. The number that
    /// unmapped owners are shown with is not believed.
    fn has(&self, id: u32) -> bool {
        match self {
            Ids::All => true,
            Ids::Some { ranges, nobody } => {
                let within = |(first, count): &(u32, u32)| id >= *first && id - *first < *count;
                id != *nobody && ranges.iter().any(within)
            }
        }
    }
}

/// Default of `/proc/sys/kernel/overflowuid`.
const NOBODY: u32 = 65_534;

/// Owner and group of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileOwner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Reason for which the kernel refuses to take a name from its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FixedName {
    /// The directory is immutable or takes new names only.
    InMarkedDir,
    /// The file is immutable or is only appended to.
    OfMarkedFile,
    /// The directory is sticky, and both it and the file are other users'.
    InStickyDir,
    /// Something is mounted there.
    MountPoint,
}

impl FixedName {
    /// Returns the error number that a rename would have.
    pub fn errno(self) -> Errno {
        match self {
            FixedName::MountPoint => Errno::BUSY,
            _ => Errno::PERM,
        }
    }

    /// Returns the reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            FixedName::InMarkedDir => "its directory is append-only or immutable (chattr)",
            FixedName::OfMarkedFile => "it is append-only or immutable (chattr)",
            FixedName::InStickyDir => "its directory is sticky, and another user's",
            FixedName::MountPoint => "something is mounted there",
        }
    }

    /// Returns the rename as it would fail.
    pub fn failed(self) -> FailedCall {
        let (op, errno) = ("rename", self.errno());
        FailedCall { op, errno }
    }
}

/// Marks (`chattr`) with which a file or a directory loses no name.
pub const FIXED: StatxAttributes = StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND);

/// Checks that this process may take the name from what has it, or give it to another file of the
/// directory if it is free.
///
/// # Errors
/// The reason for which `renameat` would fail. What cannot be looked at is left to that.
pub fn check_name(dir: impl AsFd, name: &[u8]) -> Result<(), FixedName> {
    let Ok(above) = stat_all(&dir) else {
        return Ok(());
    };
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(&dir, name, flags, StatxFlags::BASIC_STATS);
    let Ok(there) = found.map(|found| FullStat::of_statx(&found)) else {
        return match above.marks.intersects(FIXED) {
            true => Err(FixedName::InMarkedDir),
            false => Ok(()),
        };
    };
    if there.marks.contains(StatxAttributes::MOUNT_ROOT) {
        return Err(FixedName::MountPoint);
    }
    let owner = FileOwner {
        uid: there.stat.uid,
        gid: there.stat.gid,
    };
    Caller::own().check_removable(&above, there.marks, owner)
}

impl Caller {
    /// Returns those that this process has now.
    pub fn own() -> Caller {
        let uid = geteuid();
        let held = |sets: CapabilitySets| CapabilitySet::from_bits_retain(sets.effective.bits());
        let held = capabilities(None).map(held).unwrap_or(match uid.is_root() {
            true => CapabilitySet::all(),
            false => CapabilitySet::empty(),
        });
        let groups = getgroups().unwrap_or_default();
        let gids = groups.into_iter().chain([getegid()]);
        Caller {
            uid: uid.as_raw(),
            gids: gids.map(|gid| gid.as_raw()).collect(),
            capabilities: held,
            known: OnceCell::new(),
            is_guarded: OnceCell::new(),
        }
    }

    fn known(&self) -> &[Ids; 2] {
        self.known.get_or_init(|| {
            let proc = "/proc/sys/kernel/overflow";
            [
                Ids::read("/proc/self/uid_map", &format!("{proc}uid")),
                Ids::read("/proc/self/gid_map", &format!("{proc}gid")),
            ]
        })
    }

    /// Returns true if it has these capabilities.
    pub fn has(&self, needed: CapabilitySet) -> bool {
        self.capabilities.contains(needed)
    }

    fn is_fowner(&self) -> bool {
        self.capabilities.contains(CapabilitySet::FOWNER)
    }

    /// Returns true if it may act as the owner with a file of this one (`inode_owner_or_capable` in
    /// the kernel's `fs/inode.c`).
    pub fn owns(&self, uid: u32) -> bool {
        uid == self.uid || self.is_fowner() && self.known()[0].has(uid)
    }

    /// Returns true if a name of a file of this owner and group can be removed from the directory:
    /// from a sticky one only the owners of either can (`__check_sticky` in the kernel's
    /// `fs/namei.c`).
    pub fn may_remove(&self, dir: &FileStat, owner: FileOwner) -> bool {
        let is_owner = [dir.uid, owner.uid].contains(&self.uid);
        let is_above = || {
            let [users, groups] = self.known();
            self.is_fowner() && users.has(owner.uid) && groups.has(owner.gid)
        };
        dir.mode & STICKY == 0 || is_owner || is_above()
    }

    /// Checks that a name of a file with these marks and this owner can be taken from the directory.
    ///
    /// # Errors
    /// The reason for which the kernel would refuse that; never a mount point.
    pub fn check_removable(
        &self,
        dir: &FullStat,
        marks: StatxAttributes,
        owner: FileOwner,
    ) -> Result<(), FixedName> {
        if dir.marks.intersects(FIXED) {
            return Err(FixedName::InMarkedDir);
        }
        if marks.intersects(FIXED) {
            return Err(FixedName::OfMarkedFile);
        }
        match self.may_remove(&dir.stat, owner) {
            true => Ok(()),
            false => Err(FixedName::InStickyDir),
        }
    }

    /// Proves that a file that it makes, in this directory if one is given, can get this owner and
    /// group (`chown_ok` and `chgrp_ok` in the kernel's `fs/attr.c`).
    ///
    /// # Errors
    /// The one that `fchown` would have.
    pub fn may_give(&self, dir: Option<&FileStat>, owner: FileOwner) -> Result<(), Errno> {
        let FileOwner { uid, gid } = owner;
        let [users, groups] = self.known();
        let own_group = || {
            let inherits = |dir: &FileStat| dir.mode & SET_GID != 0 && dir.gid == gid;
            dir.is_some_and(inherits) || self.gids.contains(&gid)
        };
        if !(uid == self.uid || users.has(uid)) || !(groups.has(gid) || own_group()) {
            return Err(Errno::INVAL);
        }
        match self.capabilities.contains(CapabilitySet::CHOWN) || uid == self.uid && own_group() {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    }

    /// Returns true if it may give a file another name: with `fs.protected_hardlinks` another user's
    /// only if it may be read and written to and runs with no other user's rights (`may_linkat` in the
    /// kernel's `fs/namei.c`).
    pub fn may_link(&self, dir: impl AsFd, name: &CStr, file: &FileStat) -> bool {
        let in_group = SET_GID | GROUP_EXECUTES;
        self.owns(file.uid)
            || !self.is_guarded()
            || file.mode & SET_UID == 0
                && file.mode & in_group != in_group
                && may_read_and_write(dir, name).is_ok()
    }

    /// Returns true if `fs.protected_hardlinks` is set, as it is nearly everywhere.
    fn is_guarded(&self) -> bool {
        *self.is_guarded.get_or_init(|| {
            let set = std::fs::read("/proc/sys/fs/protected_hardlinks");
            set.is_ok_and(|set| set.first() == Some(&b'1'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_namespace() {
        let all = Ids::of("         0          0 4294967295\n", NOBODY);
        assert!([0, 1000, NOBODY].iter().all(|id| all.has(*id)));
        let one = Ids::of("         0       1000          1\n", NOBODY);
        assert!(one.has(0) && !one.has(1) && !one.has(NOBODY));
        let container = Ids::of("0 1000 1\n1 100000 65536\n", NOBODY);
        assert!(container.has(0) && container.has(65_536) && !container.has(65_537));
        // It may be anybody's whom the container does not know.
        assert!(!container.has(NOBODY));
        assert!(!Ids::of("", NOBODY).has(0));
    }
}
