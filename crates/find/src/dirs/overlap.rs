//! State shared by the searches for contained and for similar directories: an index from contents to
//! the directories that hold them, bounds, and the directories that are reported already.

use bc_walk::DirId;

use super::Limits;
use super::equal::{Classes, Contents, Groups};
use super::tree::{DirItem, DirTree, NONE, Sums};
use crate::jagged::Jagged;

/// The state of such a search.
pub(crate) struct OverlapSearch<'a> {
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

impl<'a> OverlapSearch<'a> {
    /// Starts with the groups of equal directories as the only ones in the report.
    pub(crate) fn new(
        tree: &'a DirTree<'a>,
        sums: &'a Sums,
        places: &'a Places,
        classes: &Classes,
        groups: &Groups,
        limits: Limits,
        least: u64,
    ) -> OverlapSearch<'a> {
        let is_equal = |dir| classes.of(dir).is_some_and(|class| groups.is_group(class));
        let mut search = OverlapSearch {
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

/// Directories by rank, so that those below one of them are a range of ranks; and for each content
/// the directories that have it, by rank.
pub(crate) struct Places {
    ranks: Vec<u32>,
    /// Directories by rank.
    by_rank: Vec<DirId>,
    /// Number of directories below each one, itself included.
    sizes: Vec<u32>,
    /// Numbers of links come after those of files.
    files: u32,
    /// For each content the ranks of the directories that have it, in order; one for each entry.
    places: Jagged<u32>,
}

impl Places {
    pub(crate) fn new(tree: &DirTree<'_>, contents: &Contents) -> Places {
        let mut places = Places {
            ranks: vec![NONE; tree.listing.dirs()],
            by_rank: tree.order().to_vec(),
            sizes: vec![1; tree.listing.dirs()],
            files: contents.files,
            places: Jagged::default(),
        };
        places.rank(tree);
        let count = contents.files as usize + contents.targets.len();
        places.places = Jagged::sorted(count, || places.all(tree));
        places
    }

    fn rank(&mut self, tree: &DirTree<'_>) {
        for (rank, &dir) in self.by_rank.iter().enumerate().rev() {
            self.ranks[dir.0 as usize] = rank as u32;
            if let Some(above) = tree.above(dir) {
                self.sizes[above.0 as usize] += self.sizes[dir.0 as usize];
            }
        }
    }

    /// All contents, each with the rank of the directory that it is in.
    fn all(&self, tree: &DirTree<'_>) -> impl Iterator<Item = (usize, u32)> {
        let ranked = (0..).zip(&self.by_rank);
        ranked.flat_map(|(rank, dir)| {
            let contents = self.contents(tree, *dir);
            contents.map(move |content| (content as usize, rank))
        })
    }

    /// The contents of the files and links that are directly in a directory, once for each, as far
    /// as they can be elsewhere as well.
    pub(crate) fn contents<'t>(
        &self,
        tree: &'t DirTree<'_>,
        dir: DirId,
    ) -> impl Iterator<Item = u32> + use<'t> {
        let files = self.files;
        let entries = tree.entries(dir).iter();
        entries.filter_map(move |entry| match tree.item(*entry) {
            DirItem::File(content) => Some(content),
            DirItem::Link(target) => Some(files + target),
            _ => None,
        })
    }

    /// Returns all contents below a directory, sorted, each as often as it occurs.
    pub(crate) fn all_contents(&self, tree: &DirTree<'_>, dir: DirId) -> Vec<u32> {
        let below = self.range(dir).map(|rank| self.by_rank[rank as usize]);
        let mut all: Vec<u32> = below.flat_map(|dir| self.contents(tree, dir)).collect();
        all.sort_unstable();
        all
    }

    /// Returns the number of distinct contents.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The ranks of a directory and of those below it.
    pub(crate) fn range(&self, dir: DirId) -> std::ops::Range<u32> {
        let rank = self.ranks[dir.0 as usize];
        rank..rank + self.sizes[dir.0 as usize]
    }

    /// Returns true if one directory is another or lies below it.
    pub(crate) fn is_below(&self, dir: DirId, above: DirId) -> bool {
        self.range(above).contains(&self.ranks[dir.0 as usize])
    }

    /// Returns the number of places of a content.
    pub(crate) fn count(&self, content: u32) -> usize {
        self.ranks_of(content).len()
    }

    /// The directories that hold a content, each once.
    pub(crate) fn dirs(&self, content: u32) -> impl Iterator<Item = DirId> {
        let runs = self.ranks_of(content).chunk_by(|a, b| a == b);
        runs.map(|run| self.by_rank[run[0] as usize])
    }

    /// Returns true if a content is below a directory.
    pub(crate) fn is_in(&self, content: u32, dir: DirId) -> bool {
        let range = self.range(dir);
        let ranks = self.ranks_of(content);
        let first = ranks.partition_point(|rank| *rank < range.start);
        ranks.get(first).is_some_and(|rank| *rank < range.end)
    }

    fn ranks_of(&self, content: u32) -> &[u32] {
        self.places.list(content as usize)
    }
}
