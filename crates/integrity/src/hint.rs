//! Whether change times and inode numbers say anything where a file lies.

use bc_fs::mount::{self, Inodes, Mounts};
use bc_walk::{DirFdCache, EntryId, FileStat};

use crate::change::Ctime;
use crate::compare::Site;
use crate::moves::Numbers;
use crate::tree::Tree;

/// Asked for damaged files, and those that may have another name by now.
pub(crate) struct Hints<'a> {
    tree: &'a Tree,
    dirs: DirFdCache<'a>,
    mounts: Mounts,
    elsewhere: bool,
}

impl<'a> Hints<'a> {
    /// `elsewhere`: whether the root is on another device than recorded.
    pub(crate) fn new(tree: &'a Tree, elsewhere: bool) -> Hints<'a> {
        Hints {
            tree,
            dirs: DirFdCache::new(&tree.listing),
            mounts: Mounts::default(),
            elsewhere,
        }
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

    /// The place of an entry that is on this device.
    pub(crate) fn at(&mut self, id: Option<EntryId>, device: Option<u64>) -> At<'_, 'a> {
        At {
            hints: self,
            id,
            device,
        }
    }

    fn is_real(&mut self, id: Option<EntryId>) -> bool {
        let Some((dir, stat)) = id.and_then(|id| {
            let dir = self.dirs.open_waiting(self.tree.listing.dir(id)).ok()?;
            let stat = rustix::fs::fstat(&dir).ok()?;
            Some((dir, stat))
        }) else {
            return false;
        };
        let dev = FileStat::from(&stat).id.dev;
        self.mounts.of(dev, || Some(dir)).ctime == mount::CtimeTrust::Real
    }
}

/// Where a file lies.
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
