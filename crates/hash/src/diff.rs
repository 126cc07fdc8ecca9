//! Compares two manifests: one is held in memory, the other streams past it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

use bc_digest::{Algorithm, Digest};

/// One record of a manifest.
#[derive(Clone, Debug)]
pub struct Item {
    /// Path as recorded.
    pub path: Vec<u8>,
    /// What is known of its content.
    pub digests: Vec<(Algorithm, Digest)>,
}

/// One difference. Sorted by path; a move by the path it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only in the new manifest.
    Added(Vec<u8>),
    /// Only in the old manifest.
    Removed(Vec<u8>),
    /// In both with different digests.
    Modified(Vec<u8>),
    /// A removed and an added path with the same digest.
    Moved {
        /// Path in the old manifest.
        from: Vec<u8>,
        /// Path in the new manifest.
        to: Vec<u8>,
    },
}

impl Change {
    fn key(&self) -> &[u8] {
        match self {
            Change::Added(path) | Change::Removed(path) | Change::Modified(path) => path,
            Change::Moved { from, .. } => from,
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

/// A path that both manifests list without an algorithm in common.
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
    pub changes: Vec<Change>,
    /// Paths with equal digests.
    pub same: u64,
}

#[derive(Default)]
struct Known {
    digests: Vec<(Algorithm, Digest)>,
    seen: bool,
    compared: bool,
    differs: bool,
}

/// Compares `held`, of which every path is kept in memory, with `streamed`, of
/// which only the differences are. Several records of one path (as several
/// algorithms give) count as one.
///
/// # Errors
/// A path that both list without an algorithm in common.
pub fn diff(
    held: impl Iterator<Item = Item>,
    streamed: impl Iterator<Item = Item>,
    which: Held,
) -> Result<Differences, Incomparable> {
    let mut known: HashMap<Vec<u8>, Known> = HashMap::new();
    for item in held {
        known
            .entry(item.path)
            .or_default()
            .digests
            .extend(item.digests);
    }
    let mut only_streamed: BTreeMap<Vec<u8>, Vec<(Algorithm, Digest)>> = BTreeMap::new();
    for item in streamed {
        let Some(entry) = known.get_mut(&item.path) else {
            only_streamed
                .entry(item.path)
                .or_default()
                .extend(item.digests);
            continue;
        };
        entry.seen = true;
        for (algorithm, digest) in &item.digests {
            let mut same_algorithm = entry
                .digests
                .iter()
                .filter(|(a, _)| a == algorithm)
                .peekable();
            if same_algorithm.peek().is_some() {
                entry.compared = true;
                entry.differs |= !same_algorithm.any(|(_, d)| d == digest);
            }
        }
    }
    let mut differences = Differences::default();
    let mut only_held = BTreeMap::new();
    for (path, entry) in known {
        if !entry.seen {
            only_held.insert(path, entry.digests);
        } else if !entry.compared {
            return Err(Incomparable { path });
        } else if entry.differs {
            differences.changes.push(Change::Modified(path));
        } else {
            differences.same += 1;
        }
    }
    let (removed, added) = match which {
        Held::Old => (only_held, only_streamed),
        Held::New => (only_streamed, only_held),
    };
    moves(removed, added, &mut differences.changes);
    differences.changes.sort_by(|a, b| a.key().cmp(b.key()));
    Ok(differences)
}

/// Pairs removed and added paths of the same digest, both in path order; what
/// finds no partner stays removed or added.
fn moves(
    removed: BTreeMap<Vec<u8>, Vec<(Algorithm, Digest)>>,
    added: BTreeMap<Vec<u8>, Vec<(Algorithm, Digest)>>,
    changes: &mut Vec<Change>,
) {
    let mut by_digest: HashMap<(Algorithm, Digest), VecDeque<&[u8]>> = HashMap::new();
    for (path, digests) in &removed {
        for key in digests {
            by_digest.entry(*key).or_default().push_back(path);
        }
    }
    let mut gone: BTreeMap<&[u8], ()> = removed.keys().map(|path| (path.as_slice(), ())).collect();
    for (to, digests) in added {
        let from = digests.iter().find_map(|key| {
            let queue = by_digest.get_mut(key)?;
            // Under another of its digests it may have been matched already.
            while let Some(path) = queue.pop_front() {
                if gone.remove(path).is_some() {
                    return Some(path.to_vec());
                }
            }
            None
        });
        changes.push(match from {
            Some(from) => Change::Moved { from, to },
            None => Change::Added(to),
        });
    }
    changes.extend(gone.into_keys().map(|path| Change::Removed(path.to_vec())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_digest::hash;

    fn items(lines: &[(&str, &str)]) -> Vec<Item> {
        let item = |(path, content): &(&str, &str)| Item {
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
                Change::Modified(bytes("b")),
                Change::Moved {
                    from: bytes("c"),
                    to: bytes("e")
                },
                Change::Removed(bytes("d")),
                Change::Added(bytes("f")),
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
                Change::Moved {
                    from: bytes("a1"),
                    to: bytes("b1")
                },
                Change::Moved {
                    from: bytes("a2"),
                    to: bytes("b2")
                },
                Change::Removed(bytes("a3")),
            ]
        );
    }

    #[test]
    fn several_algorithms_compare_by_what_they_share() {
        let content = b"content";
        let record = |algorithm| Item {
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
    }
}
