//! What the kernel refuses to everybody, or to whoever runs this: found before a file is read, in a
//! dry run as in a real one.

use std::cell::OnceCell;

use bc_walk::FileStat;
use rustix::fs::StatxAttributes;
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use super::open_file::OpenFile;
use super::skip::Skip;
use super::step::StepKind;
use super::sys;

/// Bits of a mode, as in inode(7).
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTES: u32 = 0o0010;

/// Whoever runs this, as far as the kernel asks.
pub(super) struct Caller {
    uid: u32,
    /// Whether it may do what owners may (`CAP_FOWNER`).
    owns_all: bool,
    /// See [`Caller::may_link`].
    is_guarded: OnceCell<bool>,
}

impl Caller {
    pub(super) fn own() -> Caller {
        let uid = geteuid();
        let owner = |sets: rustix::thread::CapabilitySets| {
            let held = CapabilitySet::from_bits_retain(sets.effective.bits());
            held.contains(CapabilitySet::FOWNER)
        };
        Caller {
            uid: uid.as_raw(),
            owns_all: capabilities(None).map_or(uid.is_root(), owner),
            is_guarded: OnceCell::new(),
        }
    }

    fn owns(&self, uid: u32) -> bool {
        self.owns_all || uid == self.uid
    }

    /// Whether a name of a file of `owner` can be removed from the directory: from a sticky one only
    /// the owners of either can.
    pub(super) fn may_remove(&self, dir: &FileStat, owner: u32) -> bool {
        dir.mode & STICKY == 0 || self.owns(dir.uid) || self.owns(owner)
    }

    /// Whether the file may be given another name: with `fs.protected_hardlinks`, as nearly everywhere,
    /// another's only if it may be read and written to and runs with nobody's rights
    /// (`may_linkat` in the kernel's `fs/namei.c`).
    fn may_link(&self, file: &OpenFile) -> bool {
        if self.owns(file.stat.uid) {
            return true;
        }
        let is_guarded = self.is_guarded.get_or_init(|| {
            let set = std::fs::read("/proc/sys/fs/protected_hardlinks");
            set.is_ok_and(|set| set.first() == Some(&b'1'))
        });
        let mode = file.stat.mode;
        let in_group = SET_GID | GROUP_EXECUTES;
        let is_safe = mode & SET_UID == 0
            && mode & in_group != in_group
            && sys::may_read_and_write(&file.dir, &file.name).is_ok();
        !is_guarded || is_safe
    }

    /// Refuses what the kernel would refuse of a step.
    pub(super) fn check(
        &self,
        keeper: &OpenFile,
        target: &OpenFile,
        kind: &StepKind,
    ) -> Result<(), Skip> {
        let immutable = StatxAttributes::IMMUTABLE;
        if *kind == StepKind::Reflink {
            return match target.marks.contains(immutable) {
                true => Err(denied("dedupe", MARKED)),
                false => Ok(()),
            };
        }
        let fixed = immutable | StatxAttributes::APPEND;
        let dir = target.dir.facts()?;
        if dir.marks.intersects(fixed) {
            return Err(denied("rename", FIXED));
        }
        if target.marks.intersects(fixed) {
            return Err(denied("rename", MARKED));
        }
        if !self.may_remove(&dir.stat, target.stat.uid) {
            return Err(denied("rename", STUCK));
        }
        if *kind != StepKind::Hardlink {
            return Ok(());
        }
        if keeper.marks.intersects(fixed) {
            let why = "the kept file is append-only or immutable (chattr)";
            return Err(denied("link", why));
        }
        // The temporary name is one of the kept file.
        if !self.may_remove(&dir.stat, keeper.stat.uid) {
            return Err(denied("rename", STUCK));
        }
        match self.may_link(keeper) {
            true => Ok(()),
            false => Err(denied(
                "link",
                "the kept file is another user's (fs.protected_hardlinks)",
            )),
        }
    }
}

const MARKED: &str = "it is append-only or immutable (chattr)";

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
