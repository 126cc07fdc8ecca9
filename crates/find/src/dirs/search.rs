//! State shared by the searches for contained and for similar directories: their bounds, and the
//! directories that are reported already.

use bc_walk::DirId;

use super::Limits;
use super::classes::Classes;
use super::groups::Groups;
use super::places::Places;
use super::sums::Sums;
use super::tree::{DirItem, DirTree};

/// The state of such a search.
pub(crate) struct Search<'a> {
    pub(crate) tree: &'a DirTree<'a>,
    pub(crate) sums: &'a Sums,
    pub(crate) places: &'a Places,
    pub(crate) limits: Limits,
    /// Directories with fewer files are not looked at.
    pub(crate) least: u64,
    /// Directories that were not tried, or not wholly, as their contents are everywhere.
    pub(crate) too_common: u64,
    /// Directories for which there were more candidates than are tried.
    pub(crate) ended: u64,
    /// By directory: true if it is in the report, or one above it is known to be.
    done: Vec<bool>,
}

impl<'a> Search<'a> {
    /// Starts with the groups of equal directories as the only ones in the report.
    pub(crate) fn new(
        tree: &'a DirTree<'a>,
        sums: &'a Sums,
        places: &'a Places,
        classes: &Classes,
        groups: &Groups,
        limits: Limits,
        least: u64,
    ) -> Search<'a> {
        let is_equal = |dir| classes.of(dir).is_some_and(|class| groups.is_group(class));
        let mut search = Search {
            tree,
            sums,
            places,
            limits,
            least,
            too_common: 0,
            ended: 0,
            done: vec![false; tree.listing.dirs()],
        };
        tree.dirs()
            .filter(|dir| is_equal(*dir))
            .for_each(|dir| search.done[dir.0 as usize] = true);
        search
    }

    /// Returns true if a directory may be reported, as far as that does not depend on others. A
    /// directory whose only entry is a directory may not: the inner one says more.
    pub(crate) fn is_subject(&mut self, dir: DirId) -> bool {
        let is_done = self.is_done(dir);
        let sum = self.sums.of(dir);
        let is_wrapper = || match self.tree.entries(dir) {
            [only] => matches!(self.tree.item(*only), DirItem::Dir(_)),
            _ => false,
        };
        !is_done && sum.is_known && sum.files >= self.least && !is_wrapper()
    }

    /// Marks a directory as reported.
    pub(crate) fn set_done(&mut self, dir: DirId) {
        self.done[dir.0 as usize] = true;
    }

    /// Returns true if a directory or one above it is in the report. Ask about directories before
    /// those below them.
    fn is_done(&mut self, dir: DirId) -> bool {
        let above = self.tree.above(dir);
        if above.is_some_and(|above| self.done[above.0 as usize]) {
            self.set_done(dir);
        }
        self.done[dir.0 as usize]
    }

    /// Returns true if a directory is smaller than another one, or as large with a path that sorts
    /// before.
    pub(crate) fn is_smaller(&self, one: DirId, other: DirId) -> bool {
        let size = |dir| {
            let sum = self.sums.of(dir);
            (sum.bytes, sum.files)
        };
        let path = |dir| self.tree.listing.dir_path(dir);
        size(one)
            .cmp(&size(other))
            .then_with(|| path(one).cmp(&path(other)))
            .is_lt()
    }
}
