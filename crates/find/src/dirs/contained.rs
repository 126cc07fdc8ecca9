//! Directories all of whose contents are in another one, under any names.

use std::collections::HashSet;

use bc_pool::Cancel;
use bc_walk::DirId;

use super::overlap::{OverlapSearch, Places};

/// A directory, and the smallest other one that has all its contents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Contained {
    /// The directory.
    pub dir: DirId,
    /// The other directory, which has all those contents as well.
    pub within: DirId,
    /// True if the other directory holds nothing else: the same contents under other names.
    pub is_mutual: bool,
    /// Files below the directory.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// Entries in there that filters left out.
    pub filtered: u64,
}

/// Searches from the largest directories down. Directories below one that was found are not
/// reported.
pub(crate) fn contained(search: &mut OverlapSearch<'_>, cancel: &Cancel) -> Vec<Contained> {
    let mut found: Vec<Contained> = Vec::new();
    let tree = search.tree;
    for &dir in tree.order() {
        if cancel.is_cancelled() {
            break;
        }
        let sum = search.sums.of(dir);
        if !search.is_subject(dir) || sum.has_alone {
            continue;
        }
        let mut contents = search.places.all_contents(search.tree, dir);
        contents.dedup();
        let Some(within) = smallest(search, dir, &mut contents) else {
            continue;
        };
        search.set_done(dir);
        let is_mutual = has_no_more(search, within, contents.len());
        let beside = match is_mutual {
            true => search.sums.of(within).filtered,
            false => 0,
        };
        found.push(Contained {
            dir,
            within,
            is_mutual,
            files: sum.files,
            bytes: sum.bytes,
            filtered: sum.filtered + beside,
        });
    }
    once(search, &mut found);
    found
}

/// Removes one of two lines that report the same pair: the one about the directory whose path comes
/// first.
fn once(search: &OverlapSearch<'_>, found: &mut Vec<Contained>) {
    let pairs: HashSet<(DirId, DirId)> = found.iter().map(|one| (one.dir, one.within)).collect();
    let path = |dir| search.tree.listing.dir_path(dir);
    found.retain(|one| !pairs.contains(&(one.within, one.dir)) || path(one.dir) > path(one.within));
}

/// Returns the smallest directory that has all these contents and lies neither above nor below
/// `dir`.
fn smallest(search: &mut OverlapSearch<'_>, dir: DirId, contents: &mut [u32]) -> Option<DirId> {
    let places = search.places;
    // Rare contents decide first.
    contents.sort_by_key(|content| places.count(*content));
    let rarest = *contents.first()?;
    if places.count(rarest) > search.limits.places {
        search.too_common += 1;
        return None;
    }
    let mut found = Vec::new();
    let mut tried = 0;
    for start in places.dirs(rarest) {
        if places.is_below(start, dir) || places.is_below(dir, start) {
            continue;
        }
        if tried == search.limits.candidates {
            search.ended += 1;
            break;
        }
        tried += 1;
        found.extend(lowest_with_all(search, start, dir, contents));
    }
    // One that holds another of them, and nothing more, is as large.
    let is_around = |one: DirId| {
        let mut others = found.iter().filter(|other| **other != one);
        others.any(|other| places.is_below(*other, one))
    };
    let innermost = found.iter().copied().filter(|one| !is_around(*one));
    innermost.reduce(|best, one| match search.is_smaller(one, best) {
        true => one,
        false => best,
    })
}

/// The first directory from `start` upwards that has all contents.
fn lowest_with_all(
    search: &OverlapSearch<'_>,
    start: DirId,
    dir: DirId,
    contents: &[u32],
) -> Option<DirId> {
    let places: &Places = search.places;
    let mut at = start;
    for content in contents {
        while !places.is_in(*content, at) {
            at = search.tree.above(at)?;
            if places.is_below(dir, at) {
                return None;
            }
        }
    }
    search.sums.of(at).is_known.then_some(at)
}

/// Returns true if a directory has `distinct` contents and no more. The caller knows that they
/// include all of another directory's.
fn has_no_more(search: &OverlapSearch<'_>, within: DirId, distinct: usize) -> bool {
    if search.sums.of(within).has_alone {
        return false;
    }
    let mut contents = search.places.all_contents(search.tree, within);
    contents.dedup();
    contents.len() == distinct
}
