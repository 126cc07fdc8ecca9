//! Whether a change time says anything where a file lies.

use bc_fs::mount::{self, Mounts};
use bc_walk::{EntryId, FileStat};

use crate::change::Ctime;
use crate::tree::Tree;

/// Asked for damaged files only.
pub(crate) struct Hints<'a> {
    tree: &'a Tree,
    mounts: Mounts,
    elsewhere: bool,
}

impl<'a> Hints<'a> {
    /// `elsewhere`: whether the root is on another device than recorded.
    pub(crate) fn new(tree: &'a Tree, elsewhere: bool) -> Hints<'a> {
        Hints {
            tree,
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

    fn is_real(&mut self, id: Option<EntryId>) -> bool {
        let listing = &self.tree.listing;
        let dir = id.and_then(|id| listing.open_dir(listing.dir(id)).ok());
        let Some((dir, stat)) = dir.and_then(|dir| {
            let stat = rustix::fs::fstat(&dir).ok()?;
            Some((dir, stat))
        }) else {
            return false;
        };
        let dev = FileStat::from(&stat).id.dev;
        self.mounts.of(dev, || Some(dir)).ctime == mount::Ctime::Real
    }
}
