//! Directories that were renamed: each is reported as one change instead of one for every entry in
//! it.
//!
//! Files say where their directory went: those that moved and kept their names. A directory that
//! only the old side has was renamed to one that only the new side has if at least half of its files
//! went there, to the same paths below it. Its other entries with the same kind and content at the
//! same path below, such as links, directories and empty files, moved along. Entries that differ in
//! anything that counts, and those that are on one side only, are reported by themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use bc_manifest::integrity::Kind;

use super::moves::MovedPair;
use super::one_change::{class_of, moved_change};
use super::spill_buffer::SpillBuffer;
use crate::change::{Change, Class, Difference, Value};
use crate::fields::{CompareRules, Field};

/// Renamed directories among the waiting changes, by the records of these.
#[derive(Default)]
pub(super) struct RenamedDirs {
    /// Entries that moved along with each directory, and are not reported by themselves.
    dirs: HashMap<u64, u64>,
    /// Removed and added names that are one, directories themselves too, beside moved files.
    joined: HashMap<u64, u64>,
    arrived: HashSet<u64>,
    /// Removed names that the change of their directory reports, in order.
    covered: Vec<u64>,
}

/// Directories that only one side has, each after the one that it is in.
#[derive(Default)]
struct OneSided {
    dirs: Vec<OneSidedDir>,
    by_path: HashMap<Vec<u8>, usize>,
}

struct OneSidedDir {
    path: Vec<u8>,
    record: u64,
    above: Option<usize>,
    /// Files below it that can be found again by their content.
    files: u64,
}

/// Indices of a removed and an added directory.
type DirPair = (usize, usize);

impl OneSided {
    fn add(&mut self, path: Vec<u8>, record: u64) {
        let above = self.above(&path);
        self.by_path.insert(path.clone(), self.dirs.len());
        self.dirs.push(OneSidedDir {
            path,
            record,
            above,
            files: 0,
        });
    }

    /// Returns the directory that a path is in, if only this side has it.
    fn above(&self, path: &[u8]) -> Option<usize> {
        let end = path.iter().rposition(|byte| *byte == b'/')?;
        self.by_path.get(&path[..end]).copied()
    }

    /// Returns the directory and those above it, from below.
    fn upwards(&self, dir: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(dir, |dir| self.dirs[*dir].above)
    }

    /// Adds the files of each directory to those above it.
    fn sum_up(&mut self) {
        for dir in (0..self.dirs.len()).rev() {
            let (files, above) = (self.dirs[dir].files, self.dirs[dir].above);
            if let Some(above) = above {
                self.dirs[above].files += files;
            }
        }
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

impl RenamedDirs {
    /// Finds them among `changes`, of which `pairs` are files that moved.
    pub(super) fn find(
        changes: &SpillBuffer,
        pairs: &[MovedPair],
        rules: CompareRules,
    ) -> io::Result<RenamedDirs> {
        // A damaged file went where it is, too.
        let moved = |pair: &&MovedPair| class_of(pair) != Class::Modified;
        if !pairs.iter().any(|pair| moved(&pair)) {
            return Ok(RenamedDirs::default());
        }
        let (mut old, mut new) = (OneSided::default(), OneSided::default());
        for waiting in changes.iter() {
            let (record, change) = waiting?;
            match (change.class, change.kind) {
                (Class::Removed, Kind::Dir) => old.add(change.path, record),
                (Class::Added, Kind::Dir) if change.reason.is_none() => {
                    new.add(change.path, record);
                }
                (Class::Removed, Kind::File) => {
                    if let (Some(dir), true) = (old.above(&change.path), has_content(&change)) {
                        old.dirs[dir].files += 1;
                    }
                }
                _ => {}
            }
        }
        if old.dirs.is_empty() || new.dirs.is_empty() {
            return Ok(RenamedDirs::default());
        }
        old.sum_up();
        let mut votes: BTreeMap<DirPair, u64> = BTreeMap::new();
        for pair in pairs.iter().filter(moved) {
            let (from, to) = (changes.get(pair.removed())?, changes.get(pair.added())?);
            let dirs = (old.above(&from.path), new.above(&to.path));
            if let (Some(from_dir), Some(to_dir)) = dirs
                && name(&from.path) == name(&to.path)
            {
                *votes.entry((from_dir, to_dir)).or_default() += 1;
            }
        }
        let renamed = renamed(&votes, &old, &new);
        if renamed.is_empty() {
            return Ok(RenamedDirs::default());
        }
        let mut found = RenamedDirs::default();
        found.join(changes, pairs, rules, (&old, &new), &renamed)?;
        Ok(found)
    }

    /// Finds the entries that moved along.
    fn join(
        &mut self,
        changes: &SpillBuffer,
        pairs: &[MovedPair],
        rules: CompareRules,
        (old, new): (&OneSided, &OneSided),
        renamed: &HashMap<usize, usize>,
    ) -> io::Result<()> {
        let targets: HashSet<usize> = renamed.values().copied().collect();
        // Each added name is one removed one at most: a directory that was renamed is no other's.
        self.arrived
            .extend(targets.iter().map(|to| new.dirs[*to].record));
        let mut moved_here: Vec<u64> = pairs.iter().map(MovedPair::added).collect();
        moved_here.sort_unstable();
        // Names below the new directories that no moved file has.
        let mut arrivals: HashMap<Vec<u8>, u64> = HashMap::new();
        for waiting in changes.iter() {
            let (record, change) = waiting?;
            if change.class == Class::Added
                && change.reason.is_none()
                && moved_here.binary_search(&record).is_err()
                && (new.upwards(new.above(&change.path))).any(|dir| targets.contains(&dir))
            {
                arrivals.insert(change.path, record);
            }
        }
        let mut pairs = pairs.iter().peekable();
        for waiting in changes.iter() {
            let (record, change) = waiting?;
            let pair = pairs.next_if(|pair| pair.removed() == record);
            if change.class != Class::Removed {
                continue;
            }
            let itself = old.by_path.get(&change.path);
            if let Some(to) = itself.and_then(|dir| renamed.get(dir)) {
                let added = new.dirs[*to].record;
                self.dirs.entry(record).or_default();
                self.joined.insert(record, added);
                continue;
            }
            let mut above = old.upwards(old.above(&change.path));
            let Some((from, to)) = above.find_map(|dir| Some((dir, *renamed.get(&dir)?))) else {
                continue;
            };
            let (from, to) = (&old.dirs[from], &new.dirs[to]);
            let below = &change.path[from.path.len()..];
            let expected = [&to.path[..], below].concat();
            let added = match pair {
                Some(pair) if class_of(pair) == Class::Moved => pair.added(),
                Some(_) => continue,
                None => match arrivals.get(&expected) {
                    Some(added) => *added,
                    None => continue,
                },
            };
            let arrived = changes.get(added)?;
            let is_taken = || self.arrived.contains(&added) || !is_alike(&change, &arrived, rules);
            if arrived.path != expected || pair.is_none() && is_taken() {
                continue;
            }
            if pair.is_none() {
                self.joined.insert(record, added);
                self.arrived.insert(added);
            }
            let moved = moved_change(change, arrived, Class::Moved, rules);
            if moved.differences.is_empty() {
                self.covered.push(record);
                *self.dirs.entry(from.record).or_default() += 1;
            }
        }
        Ok(())
    }

    /// True if the change of a directory reports the removed name.
    pub(super) fn covers(&self, removed: u64) -> bool {
        self.covered.binary_search(&removed).is_ok()
    }

    /// Returns the added name that a removed one is, if it is no file that moved by its content.
    pub(super) fn joined(&self, removed: u64) -> Option<u64> {
        self.joined.get(&removed).copied()
    }

    /// True if a removed name is one with this added one.
    pub(super) fn has_arrived(&self, added: u64) -> bool {
        self.arrived.contains(&added)
    }

    /// Returns the number of entries that the change of a renamed directory reports beside itself.
    pub(super) fn entries(&self, removed: u64) -> Option<u64> {
        self.dirs.get(&removed).copied()
    }
}

/// True for a removed file that can be found again by its content.
fn has_content(change: &Change) -> bool {
    let is_empty = |d: &Difference| d.field == Field::Size && d.old == Value::Number(0);
    !change.differences.iter().any(is_empty)
}

/// True if two names have the same kind of entry with the same content.
fn is_alike(removed: &Change, added: &Change, rules: CompareRules) -> bool {
    let both = removed.differences.iter().filter_map(|before| {
        let after = added.differences.iter().find(|d| d.field == before.field)?;
        Some((before.field, before.old == after.new))
    });
    let (mut is_same, mut has_digest) = (true, false);
    for (field, equal) in both {
        match field {
            Field::Digest => {
                has_digest = true;
                is_same &= equal;
            }
            Field::Size if removed.kind == Kind::File => is_same &= equal,
            Field::Target | Field::Rdev => is_same &= equal,
            _ => {}
        }
    }
    let has_content =
        removed.kind != Kind::File || has_digest && rules.compares(Field::Digest, Kind::File);
    removed.kind == added.kind && is_same && has_content
}

/// Returns the added directory that each renamed one is now.
///
/// The highest directories that the moved files of `votes` agree on are taken first, those of most
/// files before others; each old and each new name once. Files that these leave are asked again,
/// about directories further down.
fn renamed(
    votes: &BTreeMap<DirPair, u64>,
    old: &OneSided,
    new: &OneSided,
) -> HashMap<usize, usize> {
    let mut renamed: HashMap<usize, usize> = HashMap::new();
    let mut taken: HashSet<usize> = HashSet::new();
    let mut refused: BTreeSet<DirPair> = BTreeSet::new();
    let mut files: Vec<u64> = old.dirs.iter().map(|dir| dir.files).collect();
    loop {
        let mut tally: BTreeMap<DirPair, u64> = BTreeMap::new();
        for (lowest, moved) in votes {
            let highest = ways_up(*lowest, old, new)
                .filter(|pair| {
                    let is_free = !renamed.contains_key(&pair.0) && !taken.contains(&pair.1);
                    is_free && !refused.contains(pair)
                })
                .last();
            let is_covered =
                ways_up(*lowest, old, new).any(|(from, to)| renamed.get(&from) == Some(&to));
            if let (Some(highest), false) = (highest, is_covered) {
                *tally.entry(highest).or_default() += moved;
            }
        }
        if tally.is_empty() {
            return renamed;
        }
        let mut order: Vec<(DirPair, u64)> = tally.into_iter().collect();
        order.sort_by_key(|(pair, moved)| (std::cmp::Reverse(*moved), *pair));
        let before = renamed.len();
        for &((from, to), moved) in &order {
            let is_free = !renamed.contains_key(&from) && !taken.contains(&to);
            if is_free && moved.saturating_mul(2) >= files[from] {
                renamed.insert(from, to);
                taken.insert(to);
                // They are no part of what the directories above it held.
                let went = files[from];
                for above in old.upwards(Some(from)) {
                    files[above] = files[above].saturating_sub(went);
                }
            }
        }
        if renamed.len() == before {
            refused.extend(order.into_iter().map(|(pair, _)| pair));
        }
    }
}

/// Returns a pair of directories and those above them, as far as their names are the same.
fn ways_up<'d>(
    lowest: DirPair,
    old: &'d OneSided,
    new: &'d OneSided,
) -> impl Iterator<Item = DirPair> + 'd {
    std::iter::successors(Some(lowest), |(from, to)| {
        let (from, to) = (&old.dirs[*from], &new.dirs[*to]);
        let has_same_name = name(&from.path) == name(&to.path);
        has_same_name.then_some((from.above?, to.above?))
    })
}
