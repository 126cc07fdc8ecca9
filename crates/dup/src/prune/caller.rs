//! Whoever runs this, as far as the kernel asks, and what it would answer.

use std::cell::OnceCell;

use bc_walk::FileStat;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

use super::skip::Skip;

/// A bit of a mode, as in inode(7).
const STICKY: u32 = 0o1000;

/// Whoever runs this.
pub(crate) struct Caller {
    uid: u32,
    /// Its groups.
    gids: Vec<u32>,
    /// Whether it may do what owners may (`CAP_FOWNER`).
    owns_all: bool,
    capabilities: CapabilitySet,
    is_guarded: OnceCell<bool>,
}

impl Caller {
    pub(super) fn own() -> Caller {
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
            owns_all: held.contains(CapabilitySet::FOWNER),
            capabilities: held,
            is_guarded: OnceCell::new(),
        }
    }

    /// Whether it may do with a file of this owner what owners may.
    pub(super) fn owns(&self, uid: u32) -> bool {
        self.owns_all || uid == self.uid
    }

    /// Whether it may give a new file of its own to this owner and group.
    pub(super) fn may_give(&self, uid: u32, gid: u32) -> bool {
        self.capabilities.contains(CapabilitySet::CHOWN)
            || uid == self.uid && self.gids.contains(&gid)
    }

    /// Whether it may give a new file of its own an extended attribute of this name.
    pub(super) fn may_set(&self, name: &[u8]) -> bool {
        let needed = match name {
            b"security.capability" => CapabilitySet::SETFCAP,
            name if name.starts_with(b"security.") || name.starts_with(b"trusted.") => {
                CapabilitySet::SYS_ADMIN
            }
            _ => return true,
        };
        self.capabilities.contains(needed)
    }

    /// Whether a name of a file of `owner` can be removed from the directory: from a sticky one only
    /// the owners of either can.
    pub(super) fn may_remove(&self, dir: &FileStat, owner: u32) -> bool {
        dir.mode & STICKY == 0 || self.owns(dir.uid) || self.owns(owner)
    }

    /// Whether `fs.protected_hardlinks` is set, as it is nearly everywhere.
    pub(super) fn is_guarded(&self) -> bool {
        *self.is_guarded.get_or_init(|| {
            let set = std::fs::read("/proc/sys/fs/protected_hardlinks");
            set.is_ok_and(|set| set.first() == Some(&b'1'))
        })
    }
}

/// Why a name cannot be taken out of a directory that is marked so.
pub(super) const FIXED: &str = "its directory is append-only or immutable (chattr)";

/// Why a name cannot be taken out of a sticky directory.
pub(super) const STUCK: &str = "its directory is sticky, and another user's";

/// What the kernel would answer to this operation, and why.
pub(super) fn denied(op: &'static str, why: &'static str) -> Skip {
    Skip::Denied {
        op,
        errno: Errno::PERM.raw_os_error(),
        why,
    }
}
