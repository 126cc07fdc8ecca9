//! Reliability of change times and inode numbers on the file system of a file.

use bc_fs::known::{InodeTimes, Judgement};
use bc_fs::mount::{self, Inodes, Mounts};
use bc_manifest::integrity::Header;
use bc_manifest::time::parse_rfc3339;
use bc_pool::Cancel;
use bc_walk::{DirFdCache, EntryId, FileStat};
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, statx};

use crate::change::Ctime;
use crate::compare::{Later, Site};
use crate::entry_loader::LoadedEntry;
use crate::entry_ref::{EntryRef, differ};
use crate::judge::is_untouched;
use crate::moves::Numbers;
use crate::steps::may_hide_an_edit;
use crate::tree::Tree;

/// Evidence for damaged files, and for those that may have another name by now.
pub(crate) struct Hints<'a> {
    tree: &'a Tree,
    dirs: DirFdCache<'a>,
    cancel: &'a Cancel,
    mounts: Mounts,
    elsewhere: bool,
    /// Time at which the manifest was made, by its header.
    made: Option<i64>,
}

impl<'a> Hints<'a> {
    /// Takes the time from the header; `elsewhere`: true if the root is on another device than
    /// recorded.
    pub(crate) fn new(
        tree: &'a Tree,
        elsewhere: bool,
        header: &Header,
        cancel: &'a Cancel,
    ) -> Hints<'a> {
        Hints {
            tree,
            dirs: DirFdCache::new(&tree.listing),
            cancel,
            mounts: Mounts::default(),
            elsewhere,
            made: header.created_at.as_deref().and_then(parse_rfc3339),
        }
    }

    /// True if the root is on another device than recorded.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Checks that an entry is the file that was recorded with this change time, if inode number,
    /// size and mtime are the recorded ones.
    pub(crate) fn proof(&mut self, id: Option<EntryId>, ctime: Option<i64>) -> Judgement {
        let mut now = id.and_then(|id| self.times(id)).unwrap_or_default();
        // One that repeats the mtime is another file's as easily as that.
        now.ctime_ns = now.ctime_ns.filter(|_| self.is_real(id));
        now.judge(ctime, self.made)
    }

    /// Returns the times at which an entry was born and last changed, if its file system keeps
    /// them.
    fn times(&mut self, id: EntryId) -> Option<InodeTimes> {
        let listing = &self.tree.listing;
        let dir = self.dirs.open_waiting(listing.dir(id), self.cancel).ok()?;
        let links = match listing.follow(id) {
            true => AtFlags::empty(),
            false => AtFlags::SYMLINK_NOFOLLOW,
        };
        let asked = StatxFlags::BTIME | StatxFlags::CTIME;
        let found = statx(dir, listing.name(id), links, asked).ok()?;
        let time = |which: StatxFlags, time: StatxTimestamp| {
            let seconds = time.tv_sec.checked_mul(1_000_000_000)?;
            let known = found.stx_mask & which.bits() != 0;
            seconds.checked_add(time.tv_nsec.into()).filter(|_| known)
        };
        Some(InodeTimes {
            // 0 is what images and file systems write that do not keep it.
            born_ns: time(StatxFlags::BTIME, found.stx_btime).filter(|born| *born > 0),
            ctime_ns: time(StatxFlags::CTIME, found.stx_ctime),
        })
    }

    /// Marks `old`, which is compared with `now`, as unsteady where only its times deny an edit of
    /// the entry `new` since a run that began at `read` has read it, and do not prove that.
    pub(crate) fn mark_unsteady(
        &mut self,
        old: &mut EntryRef<'_>,
        now: &EntryRef<'_>,
        new: &LoadedEntry<'_>,
        read: Option<i64>,
    ) {
        if differ(old.digest, now.digest) && is_untouched(old, now) {
            old.unsteady = self.is_unsteady(new, read);
        }
    }

    /// True if the times of an entry, which are the recorded ones, do not say whether it was edited
    /// since it was read by a run that began at `read`, or when the manifest was made.
    fn is_unsteady(&mut self, new: &LoadedEntry<'_>, read: Option<i64>) -> bool {
        let (Some(id), Some(device), Some(read)) = (new.id, new.view.device, read.or(self.made))
        else {
            return false;
        };
        let listing = &self.tree.listing;
        let dir = || listing.open_dir(listing.dir(id)).ok();
        may_hide_an_edit(&new.view, read, || Some(self.mounts.of(device, dir)))
    }

    /// What `ctime` comes to for this file.
    pub(crate) fn judge(&mut self, id: Option<EntryId>, ctime: Ctime) -> Ctime {
        match ctime {
            // A copy's ctimes are all new.
            Ctime::Other if self.elsewhere => Ctime::Mute,
            Ctime::Same | Ctime::Other if !self.is_real(id) => Ctime::Mute,
            ctime => ctime,
        }
    }

    /// Returns the place of an entry that is on this device.
    pub(crate) fn at(&mut self, id: Option<EntryId>, device: Option<u64>) -> At<'_, 'a> {
        At {
            hints: self,
            id,
            device,
        }
    }

    fn is_real(&mut self, id: Option<EntryId>) -> bool {
        let Some((dir, stat)) = id.and_then(|id| {
            let dir = self.tree.listing.dir(id);
            let dir = self.dirs.open_waiting(dir, self.cancel).ok()?;
            let stat = rustix::fs::fstat(&dir).ok()?;
            Some((dir, stat))
        }) else {
            return false;
        };
        let dev = FileStat::from(&stat).id.dev;
        self.mounts.of(dev, || Some(dir)).ctime == mount::CtimeTrust::Real
    }
}

/// Place of a file.
pub(crate) struct At<'h, 'a> {
    hints: &'h mut Hints<'a>,
    id: Option<EntryId>,
    device: Option<u64>,
}

impl Site for At<'_, '_> {
    fn ctime(&mut self, ctime: Ctime) -> Ctime {
        self.hints.judge(self.id, ctime)
    }

    fn numbers(&mut self) -> Numbers {
        let (Some(id), Some(device)) = (self.id, self.device) else {
            return Numbers::Moving;
        };
        let listing = &self.hints.tree.listing;
        let dir = || listing.open_dir(listing.dir(id)).ok();
        match self.hints.mounts.of(device, dir).inodes {
            Inodes::Stable => Numbers::Stable,
            Inodes::Moving | Inodes::Unknown => Numbers::Moving,
        }
    }
}

/// Evidence about paths of the tree, which are all known by then.
impl Later for Hints<'_> {
    fn ctime(&mut self, path: &[u8], ctime: Ctime) -> Ctime {
        self.judge(self.tree.find(path), ctime)
    }

    fn proof(&mut self, path: &[u8], ctime: Option<i64>) -> Judgement {
        Hints::proof(self, self.tree.find(path), ctime)
    }
}
