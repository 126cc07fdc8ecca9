//! Comparisons of two lists: changes, moves, duplicates, and lists of many entries.

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
