//! Index from the number of a content to the directories that hold it.

use bc_walk::DirId;

use super::contents::Contents;
use super::tree::{DirItem, DirTree, NONE};

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
    /// Start of each content's places in `places`; one more at the end.
    starts: Vec<u32>,
    /// Ranks; one for each entry.
    places: Vec<u32>,
}

impl Places {
    pub(crate) fn new(tree: &DirTree<'_>, contents: &Contents) -> Places {
        let mut places = Places {
            ranks: vec![NONE; tree.listing.dirs()],
            by_rank: tree.order().to_vec(),
            sizes: vec![1; tree.listing.dirs()],
            files: contents.files,
            starts: vec![0; contents.files as usize + contents.targets.len() + 1],
            places: Vec::new(),
        };
        places.rank(tree);
        places.fill(tree);
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

    fn fill(&mut self, tree: &DirTree<'_>) {
        for &dir in &self.by_rank {
            for content in self.contents(tree, dir) {
                self.starts[content as usize + 1] += 1;
            }
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        let mut next = self.starts.clone();
        let mut places = vec![0; self.starts.last().map_or(0, |all| *all as usize)];
        for (rank, &dir) in self.by_rank.iter().enumerate() {
            for content in self.contents(tree, dir) {
                let at = &mut next[content as usize];
                places[*at as usize] = rank as u32;
                *at += 1;
            }
        }
        self.places = places;
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
        self.starts.len() - 1
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
        let at = content as usize;
        &self.places[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
