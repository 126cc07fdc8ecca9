//! Unions: one directory that shows several, of which one may be a reference's. A name made or
//! changed in it is made in the one that the union chooses (mergerfs by its policies, unionfs-fuse
//! and an overlay in the one that can be written to), also if the current file is another's. So a
//! directory in which a reference's entries are visible counts as the reference's, and so do those
//! below: the union makes the directories on the way where it writes.

use std::os::fd::OwnedFd;

use bc_find::views::SeenView;
use bc_fs::meta;
use bc_fs::mount::Shows;

use super::ancestors::visit_ancestors;
use super::protect::{Open, WatchedPlaces};
use super::skip::Skip;

/// Relation of a directory to a reference's that it may show.
pub(super) enum Union {
    /// It does, or it does not.
    Known(bool),
    /// Known only by making a file in this directory: it shows the reference's, or may.
    Ask(OwnedFd),
}

impl WatchedPlaces<'_> {
    /// Determines if a reference's directory is visible in `dir`, or in one above it in the same
    /// mount.
    pub(super) fn union(&mut self, dir: &OwnedFd) -> Result<Union, Skip> {
        if self.references.is_empty() {
            return Ok(Union::Known(false));
        }
        let dev = meta::stat(dir)?.id.dev;
        let shows = self.views.shows(dir, dev);
        if shows == Shows::Own || !self.views.involve(self.references, dir, dev) {
            return Ok(Union::Known(false));
        }
        let (mut ask, mut failed, mut first) = (None, None, true);
        visit_ancestors(dir, |id, at| {
            if id.dev != dev {
                return true;
            }
            let seen = match self.unions.get(&id) {
                Some(seen) => *seen,
                None => match self.views.shown(self.references, at, self.cancel) {
                    Ok(seen) => *self.unions.entry(id).or_insert(seen),
                    Err(error) => {
                        failed = Some(error);
                        return true;
                    }
                },
            };
            // Of directories further up the names alone say too little to ask.
            let open = match seen {
                SeenView::Yes => true,
                SeenView::Maybe => first,
                SeenView::No => false,
            };
            if open {
                ask = at.try_clone().ok().map(|at| (seen, at));
            }
            first = false;
            open && seen == SeenView::Yes
        })?;
        match (failed, ask) {
            (Some(error), _) => Err(error.into()),
            // An overlay always writes to its upper layer, which need not be the reference's.
            (None, Some((SeenView::Yes, _))) if shows == Shows::Others => Ok(Union::Known(true)),
            (None, Some((_, at))) => Ok(Union::Ask(at)),
            (None, None) => Ok(Union::Known(false)),
        }
    }

    /// Returns true unless `dir` is known to show no reference's directory.
    pub(super) fn may_be_union(&mut self, dir: &OwnedFd) -> bool {
        !matches!(self.union(dir), Ok(Union::Known(false)))
    }

    /// Asks the same for a step in `dir`, which is refused where a reference's directory is
    /// visible.
    pub(super) fn check_union(&mut self, dir: &OwnedFd) -> Result<Open, Skip> {
        match self.union(dir)? {
            Union::Known(true) => Err(Skip::Protected),
            Union::Known(false) => Ok(Open::No),
            Union::Ask(at) => Ok(Open::Union(at)),
        }
    }
}
