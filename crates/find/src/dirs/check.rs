//! Check that directories are as they were when their entries were read.

use bc_fs::meta;
use bc_pool::Cancel;
use bc_walk::{DirFdCache, DirId, Error, ErrorKind};

use super::Obstacle;
use super::tree::DirTree;

/// Looks at directories again, each once.
pub(crate) struct Check<'a> {
    dirs: DirFdCache<'a>,
    cancel: &'a Cancel,
    /// By directory: true once it was checked.
    is_checked: Vec<bool>,
}

impl<'a> Check<'a> {
    pub(crate) fn new(tree: &DirTree<'a>, cancel: &'a Cancel) -> Check<'a> {
        Check {
            dirs: DirFdCache::new(tree.listing),
            cancel,
            is_checked: vec![false; tree.listing.dirs()],
        }
    }

    /// Checks a directory and all below it; those that changed cannot be compared. Returns true if
    /// any did.
    pub(crate) fn below(
        &mut self,
        tree: &mut DirTree<'a>,
        dir: DirId,
        errors: &mut Vec<Error>,
    ) -> bool {
        let before = errors.len();
        if self.is_checked[dir.0 as usize] {
            return false;
        }
        for dir in tree.below(dir) {
            if std::mem::replace(&mut self.is_checked[dir.0 as usize], true) {
                continue;
            }
            if let Err(error) = self.one(tree, dir) {
                tree.obstruct(dir, Obstacle::Changed);
                errors.push(error);
            }
        }
        errors.len() > before
    }

    /// A directory's times were taken before it was read, so they are older than any change since.
    fn one(&mut self, tree: &DirTree<'a>, dir: DirId) -> Result<(), Error> {
        let listing = tree.listing;
        let opened = self.dirs.open_waiting(dir, self.cancel)?;
        let now = meta::stat(&opened)
            .map_err(|why| Error::new(listing.dir_path(dir), why.op, why.errno))?;
        let listed = tree.named_by(dir).and_then(|entry| listing.meta(entry));
        match listed {
            Some(listed) if (listed.id, listed.stamp) == (now.id, now.stamp) => Ok(()),
            _ => Err(Error::of_kind(
                listing.dir_path(dir),
                "read directory",
                ErrorKind::Changed,
            )),
        }
    }
}
