//! The steps from a search of files to the report of directories: the search for them, the check that
//! they are as they were when their entries were read, and the disk space that their removal frees.

use std::cmp::Reverse;
use std::collections::HashMap;

use bc_fs::meta;
use bc_hash::HashProgress;
use bc_pool::Cancel;
use bc_walk::{DirFdCache, DirId, EntryId, Error, ErrorKind, Listing, job};

use super::digest::Digests;
use super::equal::{Classes, Contents, Groups, largest_groups, number_contents, repeated_roots};
use super::overlap::{OverlapSearch, Places};
use super::tree::{DirItem, DirTree, Sums};
use super::{DirGroup, DirNames, Directories, DirsOptions, Obstacle, contained, similar};
use crate::scan::{Scan, require_metadata};

/// Finds equal, contained and similar directories.
///
/// The listing has to be of all [`Entries`](bc_walk::Entries), with [`Metadata`](bc_walk::Metadata)
/// and with entries that roots [repeat](bc_walk::Repeats::List); empty files count, so the search's
/// smallest size should be 0, or the listing's. After a cancellation the result is incomplete, and
/// [says so](Directories::cancelled).
///
/// # Errors
/// A listing without metadata, or not the one that was searched; a worker that panicked. Files that
/// cannot be read are in [`Directories::errors`].
pub fn find(
    listing: &Listing,
    scan: &Scan,
    options: &DirsOptions,
    cancel: &Cancel,
    progress: &HashProgress,
) -> Result<Directories, job::Error> {
    require_metadata(listing)?;
    if listing.len() != scan.entries {
        let text = format!(
            "a listing of {} entries was searched, and this one has {}",
            scan.entries,
            listing.len()
        );
        return Err(job::Error::usage(text));
    }
    let mut errors = Vec::new();
    let mut tree = DirTree::new(listing);
    let contents = number_contents(&mut tree, scan, cancel, &mut errors);
    let mut check = Check::new(&tree, cancel);
    let mut digests = Digests::new(options.algorithm, scan);
    loop {
        let sums = Sums::new(&tree);
        let classes = Classes::new(&tree, &sums, options.names);
        let mut found = look(&tree, &sums, &classes, &contents, scan, options, cancel);
        let reported = reported(&found);
        let mut is_stale = false;
        for dir in &reported {
            is_stale |= check.below(&mut tree, *dir, &mut errors);
        }
        if is_stale && !cancel.is_cancelled() {
            continue;
        }
        if let Some(reading) = &options.digests {
            let firsts: Vec<DirId> = found.groups.iter().map(|group| group.dirs[0]).collect();
            let failures = digests.read(&tree, &firsts, reading, cancel, progress)?;
            if !failures.is_empty() && !cancel.is_cancelled() {
                for (entry, error) in failures {
                    tree.obstruct(listing.dir(entry), Obstacle::Unreadable);
                    errors.push(error);
                }
                continue;
            }
            let names = options.names;
            set_digests(
                &mut found.groups,
                &tree,
                &contents,
                &classes,
                &digests,
                names,
            );
        }
        found.errors = errors;
        found.cancelled = cancel.is_cancelled() || scan.is_cancelled();
        return Ok(found);
    }
}

/// Returns every directory in the report.
fn reported(found: &Directories) -> Vec<DirId> {
    let groups = found
        .groups
        .iter()
        .flat_map(|group| group.dirs.iter().copied());
    let contained = found.contained.iter().flat_map(|one| [one.dir, one.within]);
    let similar = found.similar.iter().flat_map(|one| one.dirs);
    groups.chain(contained).chain(similar).collect()
}

/// Searches for equal, contained and similar directories with the contents known so far.
fn look(
    tree: &DirTree<'_>,
    sums: &Sums,
    classes: &Classes,
    contents: &Contents,
    scan: &Scan,
    options: &DirsOptions,
    cancel: &Cancel,
) -> Directories {
    let groups = Groups::new(tree, sums, classes, options);
    let repeated = repeated_roots(tree);
    let reported = largest_groups(tree, classes, &groups, scan, options, &repeated);
    let mut found = Directories {
        files: reported.files,
        repeated,
        ..Directories::default()
    };
    let space = Space::new(tree, scan);
    let group = |class: u32| group(tree, sums, &space, scan, groups.members(class));
    found.groups = reported.dirs.into_iter().map(group).collect();
    let path = |dir: DirId| tree.listing.dir_path(dir);
    found.groups.sort_by_cached_key(|group| {
        let sizes = [group.wasted, group.bytes, group.files].map(Reverse);
        (sizes, path(group.dirs[0]))
    });
    let all = || tree.dirs().map(|dir| (dir, sums.of(dir)));
    let obstacle = |dir: DirId| Some((dir, tree.obstacle(dir)?));
    found.obstacles = tree.dirs().filter_map(obstacle).collect();
    found.obstacles.sort_by_cached_key(|(dir, _)| path(*dir));
    found.not_comparable = all().filter(|(_, sum)| !sum.is_known).count() as u64;
    let least = options.min_files.max(1);
    let is_sought = |dir: DirId| {
        let sum = sums.of(dir);
        let is_equal = || classes.of(dir).is_some_and(|class| groups.is_group(class));
        sum.is_known
            && sum.files >= least
            && !is_equal()
            && (options.similar.is_some() || !sum.has_alone)
    };
    let seeks = options.contained || options.similar.is_some();
    if !seeks || !tree.dirs().any(is_sought) {
        return found;
    }
    let places = Places::new(tree, contents);
    let mut search =
        OverlapSearch::new(tree, sums, &places, classes, &groups, options.limits, least);
    found.contained = contained::contained(&mut search, cancel);
    if let Some(percent) = options.similar {
        found.similar = similar::similar(&mut search, percent, &found.contained, cancel);
    }
    (found.too_common, found.ended) = (search.too_common, search.ended);
    found.contained.sort_by_cached_key(|one| {
        let sizes = [one.bytes, one.files].map(Reverse);
        (sizes, path(one.dir))
    });
    found
        .similar
        .sort_by_cached_key(|one| (Reverse(one.shared), one.dirs.map(path)));
    found
}

fn group(
    tree: &DirTree<'_>,
    sums: &Sums,
    space: &Space,
    scan: &Scan,
    members: &[DirId],
) -> DirGroup {
    let mut dirs = members.to_vec();
    dirs.sort_by_cached_key(|dir| (!scan.is_reference_dir(*dir), tree.listing.dir_path(*dir)));
    let sum = sums.of(dirs[0]);
    DirGroup {
        files: sum.files,
        bytes: sum.bytes,
        filtered: dirs.iter().map(|dir| sums.of(*dir).filtered).sum(),
        wasted: space.freed(tree, &dirs[1..]),
        digest: None,
        dirs,
    }
}

fn set_digests(
    groups: &mut [DirGroup],
    tree: &DirTree<'_>,
    contents: &Contents,
    classes: &Classes,
    digests: &Digests,
    names: DirNames,
) {
    let mut known = HashMap::new();
    for group in groups {
        let dir = group.dirs[0];
        group.digest = match names {
            DirNames::Compare => classes
                .of(dir)
                .and_then(|class| digests.with_names(tree, contents, classes, &mut known, class)),
            DirNames::Ignore => digests.without_names(tree, contents, dir),
        };
    }
}

/// Looks at directories again, each once.
pub(super) struct Check<'a> {
    dirs: DirFdCache<'a>,
    cancel: &'a Cancel,
    /// By directory: true once it was checked.
    is_checked: Vec<bool>,
}

impl<'a> Check<'a> {
    pub(super) fn new(tree: &DirTree<'a>, cancel: &'a Cancel) -> Check<'a> {
        Check {
            dirs: DirFdCache::new(tree.listing),
            cancel,
            is_checked: vec![false; tree.listing.dirs()],
        }
    }

    /// Checks a directory and all below it; those that changed cannot be compared. Returns true if
    /// any did.
    pub(super) fn below(
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

/// Disk space of the files below directories.
struct Space {
    /// Bytes of the files with one name, by directory.
    own: Vec<u64>,
    /// By directory: true if there are files below it that have several names.
    has_several: Vec<bool>,
    several: HashMap<EntryId, Several>,
}

/// One name of a file that has several in the listing.
#[derive(Clone, Copy)]
struct Several {
    first: EntryId,
    names: u32,
    /// Bytes that are freed by removing all names.
    own: u64,
}

impl Space {
    /// Adds up the space of the files that the search found equal. They suffice: every file in a
    /// group of directories is in one of files, or has a name in the directory that stays.
    fn new(tree: &DirTree<'_>, scan: &Scan) -> Space {
        let mut space = Space {
            own: vec![0; tree.listing.dirs()],
            has_several: vec![false; tree.listing.dirs()],
            several: HashMap::new(),
        };
        for file in scan.groups().flat_map(|group| group.files()) {
            if let [only] = file.names {
                space.own[tree.listing.dir(*only).0 as usize] += file.own;
                continue;
            }
            for name in file.names {
                let several = Several {
                    first: file.names[0],
                    names: file.names.len() as u32,
                    own: file.own,
                };
                space.several.insert(*name, several);
                space.has_several[tree.listing.dir(*name).0 as usize] = true;
            }
        }
        for &dir in tree.order().iter().rev() {
            if let Some(above) = tree.above(dir) {
                let (dir, above) = (dir.0 as usize, above.0 as usize);
                space.own[above] += space.own[dir];
                space.has_several[above] |= space.has_several[dir];
            }
        }
        space
    }

    /// Bytes of disk that are freed if these directories go.
    fn freed(&self, tree: &DirTree<'_>, dirs: &[DirId]) -> u64 {
        let mut freed = dirs.iter().map(|dir| self.own[dir.0 as usize]).sum();
        let mut seen: HashMap<EntryId, u32> = HashMap::new();
        let mixed = dirs.iter().filter(|dir| self.has_several[dir.0 as usize]);
        for dir in mixed.flat_map(|dir| tree.below(*dir)) {
            for entry in tree.entries(dir) {
                let is_file = matches!(tree.item(*entry), DirItem::File(_));
                let Some(several) = self.several.get(entry).filter(|_| is_file) else {
                    continue;
                };
                let names = seen.entry(several.first).or_default();
                *names += 1;
                if *names == several.names {
                    freed += several.own;
                }
            }
        }
        freed
    }
}
