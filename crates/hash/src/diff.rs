//! Compares two manifests: one is held in memory, the other streams past it.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use bc_digest::{Algorithm, Digest};

use crate::FileDigests;

/// One difference. Sorted by path; a move by the path it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffEntry {
    /// Only in the new manifest, its content too: the old one has it under no name.
    Added(Vec<u8>),
    /// Only in the old manifest, its content too: the new one has it under no name.
    Removed(Vec<u8>),
    /// In both with different digests.
    Modified(Vec<u8>),
    /// The same content under another name. Of the paths that only one manifest has, as many as
    /// can be are pairs; one that is left over, since the numbers of copies differ, is told with
    /// the first path that has its content in the other manifest.
    Moved {
        /// Path in the old manifest.
        from: Vec<u8>,
        /// Path in the new manifest.
        to: Vec<u8>,
    },
}

impl DiffEntry {
    fn key(&self) -> &[u8] {
        match self {
            DiffEntry::Added(path) | DiffEntry::Removed(path) | DiffEntry::Modified(path) => path,
            DiffEntry::Moved { from, .. } => from,
        }
    }

    /// What comes first of changes of one path, which a copied and modified file has.
    fn second_key(&self) -> &[u8] {
        match self {
            DiffEntry::Moved { to, .. } => to,
            _ => b"",
        }
    }
}

/// Which of the two manifests [`diff`] holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// `held` is the old one.
    Old,
    /// `held` is the new one.
    New,
}

/// A path that both manifests list without an algorithm in common, or the first of the held one
/// if no two digests could be compared at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomparable {
    /// The first such path.
    pub path: Vec<u8>,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        write!(f, "{path}: the two manifests have no algorithm in common")
    }
}

impl std::error::Error for Incomparable {}

/// The differences and how many paths are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Differences {
    /// Sorted by path.
    pub changes: Vec<DiffEntry>,
    /// Paths with equal digests.
    pub same: u64,
}

/// What is known of one path; the flags change while others borrow its name.
#[derive(Default)]
struct Known {
    digests: Digests,
    seen: Cell<bool>,
    compared: Cell<bool>,
    differs: Cell<bool>,
}

type Digests = Vec<(Algorithm, Digest)>;

/// Paths of one manifest alone, with their digests.
type Alone = BTreeMap<Vec<u8>, Digests>;

/// Where one content is: the first path in each manifest. Only contents of the held one are
/// kept, so that memory does not grow with the other.
struct Content<'a> {
    held: &'a [u8],
    streamed: Option<Cow<'a, [u8]>>,
}

type Contents<'a> = HashMap<(Algorithm, Digest), Content<'a>>;

/// Compares `held`, of which every path is kept in memory, with `streamed`, of
/// which only the differences are. Several records of one path (as several
/// algorithms give) count as one.
///
/// # Errors
/// A path that both list without an algorithm in common; two manifests without one.
pub fn diff(
    held: impl Iterator<Item = FileDigests>,
    streamed: impl Iterator<Item = FileDigests>,
    which: Held,
) -> Result<Differences, Incomparable> {
    let mut known: HashMap<Vec<u8>, Known> = HashMap::new();
    let mut algorithms = Vec::new();
    for item in held {
        for (algorithm, _) in &item.digests {
            if !algorithms.contains(algorithm) {
                algorithms.push(*algorithm);
            }
        }
        let entry = known.entry(item.path).or_default();
        entry.digests.extend(item.digests);
    }
    let mut contents = contents_of(&known);
    let mut only_streamed = Alone::new();
    let (mut any, mut comparable) = (false, false);
    for item in streamed {
        any = true;
        comparable |= item.digests.iter().any(|(a, _)| algorithms.contains(a));
        let same_path = known.get_key_value(&item.path);
        for key in &item.digests {
            if let Some(content) = contents.get_mut(key)
                && content.streamed.as_ref().is_none_or(|p| **p > *item.path)
            {
                content.streamed = Some(match same_path {
                    Some((path, _)) => Cow::Borrowed(path),
                    None => Cow::Owned(item.path.clone()),
                });
            }
        }
        match same_path {
            Some((_, entry)) => compare(entry, &item.digests),
            None => only_streamed
                .entry(item.path)
                .or_default()
                .extend(item.digests),
        }
    }
    if any && !comparable && !known.is_empty() {
        let first = known.keys().min().cloned();
        let path = first.unwrap_or_default();
        return Err(Incomparable { path });
    }
    let mut differences = Differences::default();
    let mut only_held = Alone::new();
    for (path, entry) in &known {
        if !entry.seen.get() {
            only_held.insert(path.clone(), entry.digests.clone());
        } else if !entry.compared.get() {
            return Err(Incomparable { path: path.clone() });
        } else if entry.differs.get() {
            differences.changes.push(DiffEntry::Modified(path.clone()));
        } else {
            differences.same += 1;
        }
    }
    let held_path = |key: &_| contents.get(key).map(|content| content.held.to_vec());
    let streamed_path = |key: &_| Some(contents.get(key)?.streamed.as_deref()?.to_vec());
    let changes = &mut differences.changes;
    match which {
        Held::Old => moves(
            &only_held,
            &only_streamed,
            held_path,
            streamed_path,
            changes,
        ),
        Held::New => moves(
            &only_streamed,
            &only_held,
            streamed_path,
            held_path,
            changes,
        ),
    }
    changes.sort_by(|a, b| (a.key(), a.second_key()).cmp(&(b.key(), b.second_key())));
    Ok(differences)
}

fn contents_of(known: &HashMap<Vec<u8>, Known>) -> Contents<'_> {
    let mut contents = Contents::new();
    for (path, entry) in known {
        for key in &entry.digests {
            let content = contents.entry(*key).or_insert(Content {
                held: path,
                streamed: None,
            });
            content.held = content.held.min(path);
        }
    }
    contents
}

/// Notes what another record of the same path says of it.
fn compare(entry: &Known, digests: &[(Algorithm, Digest)]) {
    entry.seen.set(true);
    for (algorithm, digest) in digests {
        let of_algorithm = |(a, _): &&(Algorithm, Digest)| a == algorithm;
        let mut same_algorithm = entry.digests.iter().filter(of_algorithm).peekable();
        if same_algorithm.peek().is_some() {
            entry.compared.set(true);
            if !same_algorithm.any(|(_, d)| d == digest) {
                entry.differs.set(true);
            }
        }
    }
}

/// Pairs removed and added paths of the same digest, both in path order. What finds no partner
/// there goes with the path that has its content in the other manifest; only what has none is
/// removed or added.
fn moves(
    removed: &Alone,
    added: &Alone,
    in_old: impl Fn(&(Algorithm, Digest)) -> Option<Vec<u8>>,
    in_new: impl Fn(&(Algorithm, Digest)) -> Option<Vec<u8>>,
    changes: &mut Vec<DiffEntry>,
) {
    let mut by_digest: HashMap<(Algorithm, Digest), VecDeque<&[u8]>> = HashMap::new();
    for (path, digests) in removed {
        for key in digests {
            by_digest.entry(*key).or_default().push_back(path);
        }
    }
    let mut gone: BTreeMap<&[u8], &Digests> = removed
        .iter()
        .map(|(path, digests)| (path.as_slice(), digests))
        .collect();
    for (to, digests) in added {
        let partner = digests.iter().find_map(|key| {
            let queue = by_digest.get_mut(key)?;
            // Under another of its digests it may have been matched already.
            while let Some(path) = queue.pop_front() {
                if gone.remove(path).is_some() {
                    return Some(path.to_vec());
                }
            }
            None
        });
        let to = to.clone();
        changes.push(match partner.or_else(|| digests.iter().find_map(&in_old)) {
            Some(from) => DiffEntry::Moved { from, to },
            None => DiffEntry::Added(to),
        });
    }
    for (path, digests) in gone {
        let from = path.to_vec();
        changes.push(match digests.iter().find_map(&in_new) {
            Some(to) => DiffEntry::Moved { from, to },
            None => DiffEntry::Removed(from),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_digest::hash;

    fn items(lines: &[(&str, &str)]) -> Vec<FileDigests> {
        let item = |(path, content): &(&str, &str)| FileDigests {
            path: path.as_bytes().to_vec(),
            digests: vec![(
                Algorithm::Sha256,
                hash(Algorithm::Sha256, content.as_bytes()),
            )],
        };
        lines.iter().map(item).collect()
    }

    fn both_ways(old: &[(&str, &str)], new: &[(&str, &str)]) -> Differences {
        let (old, new) = (items(old), items(new));
        let a = diff(old.clone().into_iter(), new.clone().into_iter(), Held::Old).unwrap();
        let b = diff(new.into_iter(), old.into_iter(), Held::New).unwrap();
        assert_eq!(a, b, "which side is held must not matter");
        a
    }

    #[test]
    fn each_kind_of_change() {
        let got = both_ways(
            &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")],
            &[("a", "1"), ("b", "x"), ("e", "3"), ("f", "new")],
        );
        let bytes = |s: &str| s.as_bytes().to_vec();
        assert_eq!(
            got.changes,
            [
                DiffEntry::Modified(bytes("b")),
                DiffEntry::Moved {
                    from: bytes("c"),
                    to: bytes("e")
                },
                DiffEntry::Removed(bytes("d")),
                DiffEntry::Added(bytes("f")),
            ]
        );
        assert_eq!(got.same, 1);
    }

    #[test]
    fn moves_match_many_to_many() {
        let got = both_ways(
            &[("a1", "x"), ("a2", "x"), ("a3", "x")],
            &[("b1", "x"), ("b2", "x")],
        );
        let bytes = |s: &str| s.as_bytes().to_vec();
        assert_eq!(
            got.changes,
            [
                DiffEntry::Moved {
                    from: bytes("a1"),
                    to: bytes("b1")
                },
                DiffEntry::Moved {
                    from: bytes("a2"),
                    to: bytes("b2")
                },
                DiffEntry::Moved {
                    from: bytes("a3"),
                    to: bytes("b1")
                },
            ]
        );
    }

    /// Whatever the numbers of copies and whichever names are in both: removed is what the new
    /// manifest has nowhere, added what the old one has nowhere.
    #[test]
    fn removed_and_added_are_contents_that_are_nowhere_on_the_other_side() {
        let names = ["a", "b", "c"];
        // No file or one of three contents under each of three names, on either side.
        let trees: Vec<Vec<(&str, &str)>> = (0..64_usize)
            .map(|n| {
                let digit = |i: usize| (n >> (2 * i)) & 3;
                let file = |(i, name): (usize, &&'static str)| {
                    let content = ["x", "y", "z"].get(digit(i).wrapping_sub(1))?;
                    Some((*name, *content))
                };
                names.iter().enumerate().filter_map(file).collect()
            })
            .collect();
        let has = |tree: &[(&str, &str)], content: String| tree.iter().any(|(_, c)| *c == content);
        let at = |tree: &[(&str, &str)], path: &[u8]| {
            tree.iter()
                .find(|(p, _)| p.as_bytes() == path)
                .map(|(_, c)| c.to_string())
        };
        for old in &trees {
            for new in &trees {
                let got = both_ways(old, new);
                for change in &got.changes {
                    match change {
                        DiffEntry::Removed(path) => assert!(!has(new, at(old, path).unwrap())),
                        DiffEntry::Added(path) => assert!(!has(old, at(new, path).unwrap())),
                        DiffEntry::Modified(path) => assert_ne!(at(old, path), at(new, path)),
                        DiffEntry::Moved { from, to } => {
                            assert_ne!(from, to);
                            assert_eq!(at(old, from).unwrap(), at(new, to).unwrap());
                        }
                    }
                }
                // Every name that only one side has is told once at least.
                let told = |path: &[u8]| {
                    got.changes.iter().any(|change| match change {
                        DiffEntry::Moved { from, to } => from == path || to == path,
                        change => change.key() == path,
                    })
                };
                for (one, other) in [(old, new), (new, old)] {
                    for (path, _) in one {
                        let path = path.as_bytes();
                        assert!(at(other, path).is_some() || told(path), "{old:?} {new:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn several_algorithms_compare_by_what_they_share() {
        let content = b"content";
        let record = |algorithm| FileDigests {
            path: b"p".to_vec(),
            digests: vec![(algorithm, hash(algorithm, content))],
        };
        let old = [record(Algorithm::Md5), record(Algorithm::Sha256)];
        let new = [record(Algorithm::Sha256)];
        let got = diff(old.into_iter(), new.into_iter(), Held::Old).unwrap();
        assert_eq!((got.changes.len(), got.same), (0, 1));
        let old = [record(Algorithm::Md5)];
        let new = [record(Algorithm::Sha256)];
        let error = diff(old.into_iter(), new.into_iter(), Held::Old).unwrap_err();
        assert_eq!(error.path, b"p");
        // Without a path in common nothing would be known of any content either.
        let other = FileDigests {
            path: b"q".to_vec(),
            ..record(Algorithm::Sha256)
        };
        let error = diff(
            [record(Algorithm::Md5)].into_iter(),
            [other].into_iter(),
            Held::New,
        );
        assert_eq!(error.unwrap_err().path, b"p");
    }
}
