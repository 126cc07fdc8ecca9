//! A slow and obvious answer: every file is read, every directory is the set of all entries below
//! it, and every two are compared.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use bc_digest::{Algorithm, Digest, hash};
use bc_testkit::reference;
use rustix::fs::FileType;

use crate::dirs::DirNames;

pub(super) type Path8 = Vec<u8>;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Item {
    File(Digest, u64),
    Link(Vec<u8>),
    Empty,
}

/// A directory: its entries by the path below it.
type Content = BTreeMap<Path8, Item>;

pub(super) struct Reference {
    /// By path; the root's is empty.
    dirs: BTreeMap<Path8, Content>,
    /// Names of files with the numbers of their inodes.
    files: BTreeMap<Path8, (u64, Item)>,
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty()
        || path
            .strip_prefix(dir)
            .is_some_and(|rest| rest.starts_with(b"/"))
}

fn are_related(a: &[u8], b: &[u8]) -> bool {
    a == b || is_below(a, b) || is_below(b, a)
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

impl Reference {
    pub(super) fn of(root: &Path) -> Reference {
        let found = reference::listing(root).unwrap();
        let mut items: Content = BTreeMap::new();
        let mut files = BTreeMap::new();
        let mut paths = vec![Vec::new()];
        for one in &found {
            let item = match one.kind() {
                FileType::RegularFile => {
                    let bytes = reference::read(root, &one.path).unwrap();
                    let item = Item::File(hash(Algorithm::Blake3, &bytes), bytes.len() as u64);
                    files.insert(one.path.clone(), (one.stat.st_ino, item.clone()));
                    item
                }
                FileType::Symlink => Item::Link(one.target.clone().unwrap()),
                FileType::Directory => {
                    paths.push(one.path.clone());
                    if found.iter().any(|other| is_below(&other.path, &one.path)) {
                        continue;
                    }
                    Item::Empty
                }
                kind => panic!("{kind:?}"),
            };
            items.insert(one.path.clone(), item);
        }
        let content = |dir: &Path8| {
            let start = if dir.is_empty() { 0 } else { dir.len() + 1 };
            let below = items.iter().filter(|(path, _)| is_below(path, dir));
            below
                .map(|(path, item)| (path[start..].to_vec(), item.clone()))
                .collect()
        };
        let dirs = paths.iter().map(|dir| (dir.clone(), content(dir)));
        Reference {
            dirs: dirs.collect(),
            files,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.dirs.len()
    }

    fn sizes(&self, dir: &[u8]) -> (u64, u64) {
        let sizes = self.dirs[dir].values().filter_map(|item| match item {
            Item::File(_, size) => Some(*size),
            _ => None,
        });
        sizes.fold((0, 0), |(bytes, files), size| (bytes + size, files + 1))
    }

    /// Returns all groups of equal directories with so many files, including those that are not
    /// reported.
    pub(super) fn equal(&self, names: DirNames, least: u64) -> Vec<Vec<Path8>> {
        let key = |content: &Content| match names {
            DirNames::Compare => content.clone().into_iter().collect::<Vec<_>>(),
            DirNames::Ignore => {
                let mut items: Vec<Item> = content.values().cloned().collect();
                items.sort();
                items.into_iter().map(|item| (Vec::new(), item)).collect()
            }
        };
        let mut groups: BTreeMap<Vec<(Path8, Item)>, Vec<Path8>> = BTreeMap::new();
        for (dir, content) in &self.dirs {
            if self.sizes(dir).1 >= least {
                groups.entry(key(content)).or_default().push(dir.clone());
            }
        }
        let mut groups: Vec<Vec<Path8>> = groups.into_values().collect();
        for group in &mut groups {
            let all = group.clone();
            // Not a directory that holds it and nothing else.
            group.retain(|dir| dir.is_empty() || !all.iter().any(|other| other == split(dir).0));
        }
        groups.retain(|group| group.len() > 1);
        groups
    }

    /// Returns true if the members' equality follows from the equality of their parents.
    fn is_covered(&self, groups: &[Vec<Path8>], names: DirNames, members: &[Path8]) -> bool {
        if members.iter().any(|member| member.is_empty()) {
            return false;
        }
        let parents: BTreeSet<&[u8]> = members.iter().map(|member| split(member).0).collect();
        let called: BTreeSet<&[u8]> = members.iter().map(|member| split(member).1).collect();
        let is_group = |group: &Vec<Path8>| {
            // One that holds only a directory of the group is equal to it, too.
            parents.iter().all(|parent| {
                group.iter().any(|dir| {
                    dir == parent
                        || names == DirNames::Ignore && {
                            let same = |a: &[u8], b: &[u8]| {
                                let all = |dir: &[u8]| {
                                    let mut all: Vec<&Item> = self.dirs[dir].values().collect();
                                    all.sort();
                                    all
                                };
                                all(a) == all(b)
                            };
                            is_below(parent, dir) && same(parent, dir)
                        }
                })
            })
        };
        parents.len() == members.len()
            && (names == DirNames::Ignore || called.len() == 1)
            && groups.iter().any(is_group)
    }

    /// Returns the groups that are reported.
    pub(super) fn largest(&self, names: DirNames, least: u64) -> Vec<Vec<Path8>> {
        let all = self.equal(names, least);
        let reported = all
            .iter()
            .filter(|group| !self.is_covered(&all, names, group));
        reported.cloned().collect()
    }

    /// Returns the groups of files that are reported: all names.
    pub(super) fn files(&self, names: DirNames, least: u64) -> Vec<Vec<Path8>> {
        let all = self.equal(names, least);
        let mut groups: BTreeMap<&Item, Vec<Path8>> = BTreeMap::new();
        for (path, (_, item)) in &self.files {
            groups.entry(item).or_default().push(path.clone());
        }
        let mut groups: Vec<Vec<Path8>> = groups.into_values().collect();
        groups.retain(|group| {
            let inodes: HashSet<u64> = group.iter().map(|path| self.files[path].0).collect();
            inodes.len() > 1 && !self.is_covered(&all, names, group)
        });
        groups.sort();
        groups
    }

    /// Contents of files and links.
    fn set(&self, dir: &[u8]) -> BTreeSet<&Item> {
        let items = self.dirs[dir].values();
        items.filter(|item| **item != Item::Empty).collect()
    }

    /// Returns true if a directory holds a directory and nothing else.
    fn is_wrapper(&self, dir: &[u8]) -> bool {
        let names: BTreeSet<&[u8]> = self.dirs[dir]
            .keys()
            .map(|path| path.split(|byte| *byte == b'/').next().unwrap_or_default())
            .collect();
        let is_dir = |name: &&[u8]| {
            !matches!(
                self.dirs[dir].get(*name),
                Some(Item::File(..) | Item::Link(_))
            )
        };
        names.len() == 1 && names.iter().all(is_dir)
    }

    /// Returns the directories that follow from another group in the report.
    fn equals(&self, names: DirNames, least: u64) -> BTreeSet<Path8> {
        self.equal(names, least).into_iter().flatten().collect()
    }

    /// Returns the lines that are reported.
    pub(super) fn contained(&self, names: DirNames, least: u64) -> Vec<(Path8, Path8, bool)> {
        let mut found = self.all_contained(names, least);
        let pairs: BTreeSet<(Path8, Path8)> = found
            .iter()
            .map(|(a, b, _)| (a.clone(), b.clone()))
            .collect();
        found.retain(|(a, b, _)| !pairs.contains(&(b.clone(), a.clone())) || a > b);
        found
    }

    /// Returns all lines, including second ones about the same two directories.
    fn all_contained(&self, names: DirNames, least: u64) -> Vec<(Path8, Path8, bool)> {
        let mut done = self.equals(names, least);
        let mut found = Vec::new();
        let sets: BTreeMap<&Path8, BTreeSet<&Item>> =
            self.dirs.keys().map(|dir| (dir, self.set(dir))).collect();
        for dir in self.dirs.keys() {
            let is_done = done
                .iter()
                .any(|other| other == dir || is_below(dir, other));
            if is_done || self.sizes(dir).1 < least || self.is_wrapper(dir) {
                continue;
            }
            let has_all =
                |other: &&Path8| !are_related(dir, other) && sets[dir].is_subset(&sets[other]);
            let others: Vec<&Path8> = self.dirs.keys().filter(has_all).collect();
            let is_least = |other: &&&Path8| {
                !others
                    .iter()
                    .any(|inner| is_below(inner, other) && split(inner).0 == ***other)
            };
            let best = others.iter().filter(is_least).min_by_key(|other| {
                let (bytes, files) = self.sizes(other);
                (bytes, files, other.to_vec())
            });
            if let Some(best) = best {
                done.insert(dir.clone());
                found.push((dir.clone(), best.to_vec(), sets[dir] == sets[*best]));
            }
        }
        found
    }

    fn shared(&self, a: &[u8], b: &[u8]) -> u64 {
        let counts = |dir: &[u8]| {
            let mut counts: BTreeMap<(Digest, u64), u64> = BTreeMap::new();
            for item in self.dirs[dir].values() {
                if let Item::File(digest, size) = item {
                    *counts.entry((*digest, *size)).or_default() += 1;
                }
            }
            counts
        };
        let (a, b) = (counts(a), counts(b));
        let shared = a
            .iter()
            .map(|(file, count)| file.1 * *count.min(b.get(file).unwrap_or(&0)));
        shared.sum()
    }

    /// Pairs with their shared bytes.
    pub(super) fn similar(
        &self,
        names: DirNames,
        least: u64,
        percent: u64,
    ) -> Vec<(Path8, Path8, u64)> {
        let mut done = self.equals(names, least);
        let mut reported: BTreeSet<(Path8, Path8)> = BTreeSet::new();
        let ordered = |a: &Path8, b: &Path8| (a.min(b).clone(), a.max(b).clone());
        for (dir, within, _) in self.all_contained(names, least) {
            reported.insert(ordered(&dir, &within));
            done.insert(dir);
        }
        let mut found: BTreeMap<(Path8, Path8), u64> = BTreeMap::new();
        for dir in self.dirs.keys() {
            let is_done = done
                .iter()
                .any(|other| other == dir || is_below(dir, other));
            let (bytes, files) = self.sizes(dir);
            if is_done || files < least || bytes == 0 || self.is_wrapper(dir) {
                continue;
            }
            let mut best: Option<(u64, u64, &Path8)> = None;
            for other in self.dirs.keys() {
                let larger = bytes.max(self.sizes(other).0);
                if are_related(dir, other) || reported.contains(&ordered(dir, other)) {
                    continue;
                }
                let is_in = |inner: &Path8| is_below(inner, other) && split(inner).0 == *other;
                let mut inner = self.dirs.keys().filter(|inner| is_in(inner));
                if inner.any(|inner| self.sizes(inner).0 == self.sizes(other).0) {
                    continue;
                }
                if bytes.min(self.sizes(other).0) * 100 < percent * larger {
                    continue;
                }
                let shared = self.shared(dir, other);
                let is_better = best.is_none_or(|(of_best, larger_of_best, _)| {
                    shared * larger_of_best > of_best * larger
                });
                if shared * 100 >= percent * larger && is_better {
                    best = Some((shared, larger, other));
                }
            }
            if let Some((shared, _, other)) = best {
                done.insert(dir.clone());
                found.insert(ordered(dir, other), shared);
            }
        }
        found
            .into_iter()
            .map(|((a, b), shared)| (a, b, shared))
            .collect()
    }

    /// The digest of a directory, as the documentation has it.
    pub(super) fn digest(&self, dir: &[u8], names: DirNames) -> Digest {
        match names {
            DirNames::Compare => with_names(&self.dirs[dir]),
            DirNames::Ignore => {
                let mut records: Vec<String> = self.dirs[dir].values().map(record).collect();
                records.sort();
                let text: String = records.iter().map(|record| format!("{record}\0")).collect();
                hash(Algorithm::Blake3, text.as_bytes())
            }
        }
    }
}

fn record(item: &Item) -> String {
    match item {
        Item::File(digest, _) => format!("f{digest}"),
        Item::Link(target) => format!("l{}", hash(Algorithm::Blake3, target)),
        Item::Empty => format!("d{}", hash(Algorithm::Blake3, b"")),
    }
}

fn with_names(content: &Content) -> Digest {
    let mut children: BTreeMap<&[u8], Content> = BTreeMap::new();
    let mut records: BTreeMap<&[u8], String> = BTreeMap::new();
    for (path, item) in content {
        match path.iter().position(|byte| *byte == b'/') {
            None => {
                records.insert(path, record(item));
            }
            Some(at) => {
                let child = children.entry(&path[..at]).or_default();
                child.insert(path[at + 1..].to_vec(), item.clone());
            }
        }
    }
    for (name, child) in &children {
        records.insert(name, format!("d{}", with_names(child)));
    }
    let mut text = Vec::new();
    for (name, record) in records {
        text.extend_from_slice(record.as_bytes());
        text.extend_from_slice(name);
        text.push(0);
    }
    hash(Algorithm::Blake3, &text)
}
