//! Directories that have most of their bytes in common, under any names.

use std::collections::{HashMap, HashSet};

use bc_pool::Cancel;
use bc_walk::DirId;

use super::contained::Contained;
use super::overlap::OverlapSearch;
use super::tree::{DirItem, DirTree};

/// Two directories, the first of which comes first by path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Similar {
    /// The two.
    pub dirs: [DirId; 2],
    /// Files below each.
    pub files: [u64; 2],
    /// Their sizes together.
    pub bytes: [u64; 2],
    /// Bytes of files that both have; a content that one has twice and the other once counts once.
    pub shared: u64,
    /// Entries in both that filters left out.
    pub filtered: u64,
}

impl Similar {
    /// Shared bytes in percent of the larger one's.
    pub fn percent(&self) -> f64 {
        100.0 * self.shared as f64 / self.bytes[0].max(self.bytes[1]) as f64
    }
}

/// Searches from the largest directories down for the one that each has most in common with.
/// Directories below one that was found are not reported. `percent` is at least 1 and at most 100.
pub(crate) fn similar(
    search: &mut OverlapSearch<'_>,
    percent: u8,
    contained: &[Contained],
    cancel: &Cancel,
) -> Vec<Similar> {
    let percent = u128::from(percent.clamp(1, 100));
    let reported: HashSet<_> = contained
        .iter()
        .map(|one| pair(one.dir, one.within))
        .collect();
    let sizes = sizes(search.tree, search.places.len());
    let mut found: HashMap<(DirId, DirId), Similar> = HashMap::new();
    let tree = search.tree;
    for &dir in tree.order() {
        if cancel.is_cancelled() {
            break;
        }
        let sum = search.sums.of(dir);
        if !search.is_subject(dir) || sum.bytes == 0 {
            continue;
        }
        let Some((other, shared)) = most_similar(search, dir, percent, &sizes, &reported) else {
            continue;
        };
        search.set_done(dir);
        found
            .entry(pair(dir, other))
            .or_insert_with(|| line(search, dir, other, shared));
    }
    let mut found: Vec<Similar> = found.into_values().collect();
    found.sort_unstable_by_key(|one| one.dirs);
    found
}

fn pair(one: DirId, other: DirId) -> (DirId, DirId) {
    (one.min(other), one.max(other))
}

fn line(search: &OverlapSearch<'_>, one: DirId, other: DirId, shared: u64) -> Similar {
    let mut dirs = [one, other];
    dirs.sort_by_cached_key(|dir| search.tree.listing.dir_path(*dir));
    let sums = dirs.map(|dir| search.sums.of(dir));
    Similar {
        dirs,
        files: sums.map(|sum| sum.files),
        bytes: sums.map(|sum| sum.bytes),
        shared,
        filtered: sums[0].filtered + sums[1].filtered,
    }
}

/// Returns the bytes of a file or link by the number of its content.
fn sizes(tree: &DirTree<'_>, contents: usize) -> Vec<u64> {
    let mut sizes = vec![0; contents];
    for entry in tree.dirs().flat_map(|dir| tree.entries(dir)) {
        if let DirItem::File(content) = tree.item(*entry) {
            sizes[content as usize] = tree.listing.size(*entry).unwrap_or(0);
        }
    }
    sizes
}

/// The directory that has most in common with `dir`, and how many bytes that are.
fn most_similar(
    search: &mut OverlapSearch<'_>,
    dir: DirId,
    percent: u128,
    sizes: &[u64],
    reported: &HashSet<(DirId, DirId)>,
) -> Option<(DirId, u64)> {
    let contents = search.places.all_contents(search.tree, dir);
    let mut best: Option<(DirId, u64)> = None;
    for other in candidates(search, dir, &contents, percent, sizes) {
        if reported.contains(&pair(dir, other)) {
            continue;
        }
        let others = search.places.all_contents(search.tree, other);
        let shared = shared(&contents, &others, sizes);
        let larger = |other| search.sums.of(dir).bytes.max(search.sums.of(other).bytes);
        if u128::from(shared) * 100 < percent * u128::from(larger(other)) {
            continue;
        }
        let is_better = |(best, of_best): (DirId, u64)| {
            // Of the same share, the one that comes first.
            let share = u128::from(shared) * u128::from(larger(best));
            let share_of_best = u128::from(of_best) * u128::from(larger(other));
            let path = |dir| search.tree.listing.dir_path(dir);
            share > share_of_best || share == share_of_best && path(other) < path(best)
        };
        if best.is_none_or(is_better) {
            best = Some((other, shared));
        }
    }
    best
}

/// Returns the directories that may have so many percent in common with `dir`: those that have one
/// of its rarest contents. Without all of these it would have too little in common with any.
fn candidates(
    search: &mut OverlapSearch<'_>,
    dir: DirId,
    contents: &[u32],
    percent: u128,
    sizes: &[u64],
) -> Vec<DirId> {
    let (tree, places, sums) = (search.tree, search.places, search.sums);
    let bytes = sums.of(dir).bytes;
    let mut runs: Vec<&[u32]> = contents.chunk_by(|a, b| a == b).collect();
    runs.retain(|run| sizes[run[0] as usize] > 0);
    runs.sort_by_key(|run| places.count(run[0]));
    let mut missing = u128::from(sums.of(dir).alone);
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let mut is_too_common = false;
    for run in runs {
        if missing * 100 > (100 - percent) * u128::from(bytes) {
            break;
        }
        missing += u128::from(sizes[run[0] as usize]) * run.len() as u128;
        if places.count(run[0]) > search.limits.places {
            is_too_common = true;
            continue;
        }
        for start in places.dirs(run[0]) {
            let mut at = Some(start).filter(|start| !places.is_below(*start, dir));
            let mut below = 0;
            while let Some(other) = at.filter(|other| !places.is_below(dir, *other)) {
                let sum = sums.of(other);
                // A directory with no more bytes than the one in it is covered by that one.
                let has_more = std::mem::replace(&mut below, sum.bytes) < sum.bytes;
                let (least, most) = (bytes.min(sum.bytes), bytes.max(sum.bytes));
                let is_near = u128::from(least) * 100 >= percent * u128::from(most);
                if sum.bytes > bytes && !is_near || !known.insert(other) {
                    break;
                }
                if is_near && has_more && sum.is_known {
                    found.push(other);
                }
                at = tree.above(other);
            }
        }
    }
    search.too_common += u64::from(is_too_common);
    if found.len() > search.limits.candidates {
        search.ended += 1;
        found.truncate(search.limits.candidates);
    }
    found
}

/// Returns the bytes of files that two directories have in common; their contents are given in
/// order.
fn shared(one: &[u32], other: &[u32], sizes: &[u64]) -> u64 {
    let (mut a, mut b, mut shared) = (0, 0, 0_u64);
    while let (Some(x), Some(y)) = (one.get(a), other.get(b)) {
        if x == y {
            shared = shared.saturating_add(sizes[*x as usize]);
        }
        a += usize::from(x <= y);
        b += usize::from(y <= x);
    }
    shared
}
