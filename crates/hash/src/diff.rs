//! Compares two manifests: both are packed, put in order of paths, and run through side by side.
//! Everything is in a few arrays.

mod moves;
mod packed;

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use crate::FileDigests;
use moves::moves;
use packed::{PackedRecord, Side};

/// One difference. Sorted by path; a move by the path it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffEntry<'a> {
    /// Only in the new manifest, its content too: the old one has it under no name.
    Added(&'a [u8]),
    /// Only in the old manifest, its content too: the new one has it under no name.
    Removed(&'a [u8]),
    /// In both with different digests.
    Modified(&'a [u8]),
    /// Same content under another name. Of the paths that only one manifest has, as many as can be
    /// are pairs; one that is left over, since the numbers of copies differ, is reported with the
    /// first path that has its content in the other manifest.
    Moved {
        /// Path in the old manifest.
        from: &'a [u8],
        /// Path in the new manifest.
        to: &'a [u8],
    },
}

impl<'a> DiffEntry<'a> {
    /// Returns the order: by path; then the first of several changes of one path, which a copied
    /// and modified file has.
    fn key(self) -> (&'a [u8], &'a [u8]) {
        match self {
            DiffEntry::Added(path) | DiffEntry::Removed(path) | DiffEntry::Modified(path) => {
                (path, b"")
            }
            DiffEntry::Moved { from, to } => (from, to),
        }
    }
}

/// A path that both manifests list without an algorithm in common, or the first of the old one
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
#[derive(Debug)]
pub struct Differences {
    old: Side,
    new: Side,
    changes: Vec<Packed>,
    same: u64,
}

/// A change, by its records in the old and the new manifest.
#[derive(Clone, Copy, Debug)]
enum Packed {
    Added(PackedRecord),
    Removed(PackedRecord),
    Modified(PackedRecord),
    Moved {
        from: PackedRecord,
        to: PackedRecord,
    },
}

impl Differences {
    /// Returns the changes, sorted by path.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = DiffEntry<'_>> {
        self.changes.iter().map(|change| self.change(*change))
    }

    /// Returns the number of paths with equal digests.
    pub fn same(&self) -> u64 {
        self.same
    }

    fn change(&self, change: Packed) -> DiffEntry<'_> {
        match change {
            Packed::Added(record) => DiffEntry::Added(self.new.path(record)),
            Packed::Removed(record) => DiffEntry::Removed(self.old.path(record)),
            Packed::Modified(record) => DiffEntry::Modified(self.old.path(record)),
            Packed::Moved { from, to } => DiffEntry::Moved {
                from: self.old.path(from),
                to: self.new.path(to),
            },
        }
    }

    fn sort(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_unstable_by(|a, b| self.change(*a).key().cmp(&self.change(*b).key()));
        self.changes = changes;
    }
}

/// Returns the bytes of memory that comparing a line takes at most: arrays grow by doubling.
pub fn line_memory(file: &FileDigests) -> u64 {
    let digests = file
        .digests
        .iter()
        .map(|(_, digest)| 2 + digest.as_bytes().len());
    (LINE + 2 * (file.path.len() + digests.sum::<usize>())) as u64
}

/// Bytes for each line beside its path and digests: where it begins, its place in the order, and a
/// change.
const LINE: usize = 128;

/// Compares two manifests. Several records of one path (as several algorithms give) count as one. A
/// path with a record without a digest is not reported, nor are paths below it, should it be a
/// directory: it existed, and could not be read.
///
/// # Errors
/// A path that both list without an algorithm in common; two manifests without one.
pub fn diff_digests(
    old: impl Iterator<Item = FileDigests>,
    new: impl Iterator<Item = FileDigests>,
) -> Result<Differences, Incomparable> {
    let (old, new) = (Side::of(old), Side::of(new));
    let (changes, same) = changes(&old, &new)?;
    let mut differences = Differences {
        old,
        new,
        changes,
        same,
    };
    differences.sort();
    Ok(differences)
}

/// Returns the changes, and the number of paths that are the same.
fn changes(old: &Side, new: &Side) -> Result<(Vec<Packed>, u64), Incomparable> {
    if let (Some(first), Some(_)) = (old.paths().next(), new.paths().next())
        && !old.has_algorithm_of(new)
    {
        let path = old.path(first.start).to_vec();
        return Err(Incomparable { path });
    }
    let (mut changes, mut same) = (Vec::new(), 0);
    // Paths that only one side has.
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (old.paths().peekable(), new.paths().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(was), Some(is)) => old.path(was.start).cmp(new.path(is.start)),
        };
        let was = before.next_if(|_| order.is_le());
        let is = after.next_if(|_| order.is_ge());
        match (was, is) {
            (Some(was), Some(is)) => {
                let path = was.start;
                match compare(old, was, new, is) {
                    None => {
                        let path = old.path(path).to_vec();
                        return Err(Incomparable { path });
                    }
                    Some(true) => same += 1,
                    Some(false) => changes.push(Packed::Modified(path)),
                }
            }
            (Some(was), None) if new.is_unread(old.path(was.start)) => {}
            (None, Some(is)) if old.is_unread(new.path(is.start)) => {}
            (Some(was), None) => removed.push(was.start),
            (None, Some(is)) => added.push(is.start),
            (None, None) => {}
        }
    }
    moves(old, removed, new, added, &mut changes);
    Ok((changes, same))
}

/// Returns whether the digests of one path are the same on both sides, as far as they are of the
/// same algorithms; `None` if none are.
fn compare(
    old: &Side,
    was: Range<PackedRecord>,
    new: &Side,
    is: Range<PackedRecord>,
) -> Option<bool> {
    let new_in_old = new.digests(is.clone());
    let new_in_old = new_in_old.filter_map(|digest| old.confirms(was.clone(), digest));
    let old_in_new = old.digests(was.clone());
    let old_in_new = old_in_new.filter_map(|digest| new.confirms(is.clone(), digest));
    new_in_old.chain(old_in_new).reduce(|all, same| all && same)
}

#[cfg(test)]
mod tests {
    use bc_digest::{Algorithm, hash};

    use super::*;

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

    fn compared(old: &[(&str, &str)], new: &[(&str, &str)]) -> Differences {
        let (mut old, mut new) = (items(old), items(new));
        let sorted = diff_digests(old.clone().into_iter(), new.clone().into_iter()).unwrap();
        old.reverse();
        new.reverse();
        let reversed = diff_digests(old.into_iter(), new.into_iter()).unwrap();
        assert!(
            sorted.changes().eq(reversed.changes()),
            "order must not matter"
        );
        assert_eq!(sorted.same(), reversed.same());
        sorted
    }

    fn all(differences: &Differences) -> Vec<DiffEntry<'_>> {
        differences.changes().collect()
    }

    #[test]
    fn each_kind_of_change() {
        let got = compared(
            &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")],
            &[("a", "1"), ("b", "x"), ("e", "3"), ("f", "new")],
        );
        assert_eq!(
            all(&got),
            [
                DiffEntry::Modified(b"b"),
                DiffEntry::Moved {
                    from: b"c",
                    to: b"e"
                },
                DiffEntry::Removed(b"d"),
                DiffEntry::Added(b"f"),
            ]
        );
        assert_eq!(got.same(), 1);
    }

    /// Returns a path with its digests as lines of several algorithms give them.
    fn lines(path: &str, digests: &[(Algorithm, &str)]) -> Vec<FileDigests> {
        let line = |(algorithm, content): &(Algorithm, &str)| FileDigests {
            path: path.as_bytes().to_vec(),
            digests: vec![(*algorithm, hash(*algorithm, content.as_bytes()))],
        };
        digests.iter().map(line).collect()
    }

    /// Checks moves by all common digests; MD5 represents digests that are equal by chance, or on
    /// purpose.
    #[test]
    fn a_move_needs_every_digest_that_both_sides_know() {
        let (weak, strong) = (Algorithm::Md5, Algorithm::Sha256);
        let both = |path, content| lines(path, &[(weak, "same"), (strong, content)]);
        let got = diff_digests(both("x", "1").into_iter(), both("y", "2").into_iter()).unwrap();
        assert_eq!(
            all(&got),
            [DiffEntry::Removed(b"x"), DiffEntry::Added(b"y")]
        );
        // The right one among several that agree in part, whatever comes first.
        for swapped in [false, true] {
            let mut old = both("x", "1");
            let mut new = [both("a", "2"), both("b", "1")].concat();
            if swapped {
                old.reverse();
                new.reverse();
            }
            let got = diff_digests(old.into_iter(), new.into_iter()).unwrap();
            let moved = DiffEntry::Moved {
                from: b"x",
                to: b"b",
            };
            assert_eq!(all(&got), [DiffEntry::Added(b"a"), moved]);
        }
        // One digest is enough where the other side knows no other.
        let got = diff_digests(
            both("x", "1").into_iter(),
            lines("y", &[(weak, "same")]).into_iter(),
        );
        let moved = DiffEntry::Moved {
            from: b"x",
            to: b"y",
        };
        assert_eq!(all(&got.unwrap()), [moved]);
    }

    #[test]
    fn where_a_copy_was_does_not_depend_on_the_order_of_algorithms() {
        let (weak, strong) = (Algorithm::Md5, Algorithm::Sha256);
        let kept = [
            lines("a", &[(strong, "1")]),
            lines("b", &[(weak, "1"), (strong, "1")]),
        ];
        for order in [[weak, strong], [strong, weak]] {
            let gone = lines("x", &order.map(|algorithm| (algorithm, "1")));
            let old = [kept.concat(), gone].concat();
            let got = diff_digests(old.into_iter(), kept.concat().into_iter()).unwrap();
            let moved = DiffEntry::Moved {
                from: b"x",
                to: b"a",
            };
            assert_eq!(all(&got), [moved]);
        }
    }

    #[test]
    fn moves_match_many_to_many() {
        let got = compared(
            &[("a1", "x"), ("a2", "x"), ("a3", "x")],
            &[("b1", "x"), ("b2", "x")],
        );
        assert_eq!(
            all(&got),
            [
                DiffEntry::Moved {
                    from: b"a1",
                    to: b"b1"
                },
                DiffEntry::Moved {
                    from: b"a2",
                    to: b"b2"
                },
                DiffEntry::Moved {
                    from: b"a3",
                    to: b"b1"
                },
            ]
        );
    }

    /// Checks, for all numbers of copies and names in both, that files are removed only if the new
    /// manifest has their content nowhere, and added only if the old one has it nowhere.
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
                let got = compared(old, new);
                for change in all(&got) {
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
                // Every name that only one side has is reported at least once.
                let reported = |path: &[u8]| {
                    all(&got).into_iter().any(|change| match change {
                        DiffEntry::Moved { from, to } => from == path || to == path,
                        change => change.key().0 == path,
                    })
                };
                for (one, other) in [(old, new), (new, old)] {
                    for (path, _) in one {
                        let path = path.as_bytes();
                        assert!(
                            at(other, path).is_some() || reported(path),
                            "{old:?} {new:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_could_not_be_read_is_neither_removed_nor_added() {
        let unread = |path: &str| FileDigests {
            path: path.as_bytes().to_vec(),
            digests: Vec::new(),
        };
        let whole = items(&[
            ("a", "1"),
            ("d", "2"),
            ("d-", "3"),
            ("d/x", "4"),
            ("e", "5"),
        ]);
        let part = [items(&[("a", "1")]), vec![unread("d"), unread("z")]].concat();
        let reported = |old: &[FileDigests], new: &[FileDigests]| {
            let got = diff_digests(old.iter().cloned(), new.iter().cloned()).unwrap();
            let words = got.changes().map(|change| format!("{change:?}"));
            (words.collect::<Vec<_>>(), got.same())
        };
        let removed = ["d-", "e"].map(|path| format!("{:?}", DiffEntry::Removed(path.as_bytes())));
        assert_eq!(reported(&whole, &part), (removed.to_vec(), 1));
        let added = ["d-", "e"].map(|path| format!("{:?}", DiffEntry::Added(path.as_bytes())));
        assert_eq!(reported(&part, &whole), (added.to_vec(), 1));
        // A record with a digest beside it says what it is.
        let both = [items(&[("d", "2")]), vec![unread("d")]].concat();
        assert_eq!(reported(&whole[1..2], &both), (vec![], 1));
        // Nothing but that could be read.
        assert_eq!(reported(&whole, &[unread("a")]).0.len(), 4);
        assert_eq!(reported(&whole[..1], &[unread("a")]), (vec![], 0));
        assert_eq!(reported(&[unread("a")], &[unread("a")]), (vec![], 0));
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
        let got = diff_digests(old.into_iter(), new.into_iter()).unwrap();
        assert_eq!((got.changes().len(), got.same()), (0, 1));
        let old = [record(Algorithm::Md5)];
        let new = [record(Algorithm::Sha256)];
        let error = diff_digests(old.into_iter(), new.into_iter()).unwrap_err();
        assert_eq!(error.path, b"p");
        // Without a path in common nothing would be known of any content either.
        let other = FileDigests {
            path: b"q".to_vec(),
            ..record(Algorithm::Sha256)
        };
        let error = diff_digests([record(Algorithm::Md5)].into_iter(), [other].into_iter());
        assert_eq!(error.unwrap_err().path, b"p");
    }
}
