//! `bc dup unique` against a slow and obvious reference, on random pairs of trees and for each kind
//! of reference.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{Rng, TestTree};

use crate::common::Bc;

const EVERYDAY: usize = 2;

/// How the archive is asked: what makes the reference, and how it is given.
const ASKED: [(&str, &str); 11] = [
    ("", "--reference=archive"),
    ("", "--reference=archive --verify-bytes"),
    (
        "integrity manifest --output=../m archive",
        "--reference=../m",
    ),
    (
        "integrity manifest --algorithm=blake3 --output=../m.zst archive",
        "--reference=../m.zst",
    ),
    (
        "hash --type=sha256 --output=../m archive",
        "--reference=../m",
    ),
    (
        "hash --type=blake3 --output=../m archive",
        "--reference=../m",
    ),
    (
        "hash --type=sha512 --format=bsd --output=../m archive",
        "--reference=../m",
    ),
    ("hash --type=md5 --output=../m archive", "--reference=../m"),
    (
        "hash --type=sha256 --format=jsonl --output=../m archive",
        "--reference=../m",
    ),
    (
        "hash --type=sha256 --format=csv --output=../m archive",
        "--reference=../m",
    ),
    ("export", "--reference=../deep"),
];

/// Every regular file below, with its content.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                pending.push(path);
            } else if meta.is_file() {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn inode(path: &Path) -> (u64, u64) {
    let meta = path.symlink_metadata().unwrap();
    (meta.dev(), meta.ino())
}

/// What a card is compared with.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Reference {
    /// Nothing: it has copies of its own, or not.
    None,
    /// A tree, or a manifest that says of which tree.
    Tree,
    /// A list of the tree that does not say where it was made.
    List,
}

/// Names of the card's files that are nowhere else.
fn expected(t: &TestTree, reference: Reference) -> BTreeSet<PathBuf> {
    let (card, archive) = (files(&t.join("card")), files(&t.join("archive")));
    // In a list, a name that ends like one of a file with that content may be that file's own, from
    // below the card, or from above it when that was mounted elsewhere.
    let last_two = |path: &Path| {
        path.iter()
            .rev()
            .take(2)
            .map(OsStr::to_owned)
            .collect::<Vec<_>>()
    };
    let is_a_cards = |listed: &Path, content: &Vec<u8>| {
        let mut equal = card.iter().filter(|(_, found)| *found == content);
        equal.any(|(name, _)| last_two(name) == last_two(listed))
    };
    let own: HashSet<_> = card.keys().map(|path| inode(path)).collect();
    let elsewhere = |path: &Path, content: &Vec<u8>| {
        if content.is_empty() {
            return true;
        }
        let counts = |other: &Path| {
            !own.contains(&inode(other))
                && (reference == Reference::Tree || !is_a_cards(other, content))
        };
        match reference {
            Reference::Tree | Reference::List => archive
                .iter()
                .any(|(other, found)| found == content && counts(other)),
            Reference::None => card
                .iter()
                .any(|(other, found)| found == content && inode(other) != inode(path)),
        }
    };
    let lacks = card
        .iter()
        .filter(|(path, content)| !elsewhere(path, content));
    lacks.map(|(path, _)| path.clone()).collect()
}

/// Two trees with contents of one pool, whose sizes lie where reads change.
fn pair(seed: u64) -> TestTree {
    const SIZES: [usize; 10] = [
        0, 1, 2047, 2048, 2049, 4097, 8193, 131_072, 131_073, 270_000,
    ];
    let (t, mut rng) = (TestTree::new(), Rng::new(seed));
    let mut pool: Vec<Vec<u8>> = Vec::new();
    for _ in 0..12 {
        let size = SIZES[rng.below(10) as usize];
        let mut content = rng.bytes(size);
        let near = pool.len() as u64;
        if near > 0 && rng.below(2) == 0 {
            content = pool[rng.below(near) as usize].clone();
            if !content.is_empty() {
                let at = rng.below(content.len() as u64) as usize;
                content[at] ^= 4;
            }
        }
        pool.push(content);
    }
    let mut names: Vec<String> = Vec::new();
    for side in ["card", "archive"] {
        t.dir(side);
        for nth in 0..3 + rng.below(14) {
            let depth = rng.below(5);
            let dirs: String = (0..depth).map(|_| format!("d{}/", rng.below(3))).collect();
            let name = format!(
                "{side}/{dirs}{}-{nth}",
                ["f", "\u{e9}", ".h"][rng.below(3) as usize]
            );
            match names.len() as u64 {
                // On the same side, or across.
                count if count > 0 && rng.below(10) == 0 => {
                    let other = names[rng.below(count) as usize].clone();
                    t.hard_link(other, &name);
                }
                _ => {
                    t.write(&name, &pool[rng.below(12) as usize]);
                }
            }
            names.push(name);
        }
        t.symlink("nowhere", format!("{side}/link"))
            .dir(format!("{side}/none"));
    }
    t
}

#[test]
fn as_by_comparing_bytes_with_bytes() {
    let pairs = bc_testkit::cases(EVERYDAY) as u64;
    for seed in 0..pairs {
        let t = pair(seed);
        let check = |options: &str, reference| {
            let out = t.bc_line(&format!("dup unique -0 card {options}")).go();
            let names = out.stdout.split(|byte| *byte == 0);
            let names = names.filter(|name| !name.is_empty());
            let found: BTreeSet<PathBuf> = names
                .map(|name| t.join(std::ffi::OsStr::from_bytes(name)))
                .collect();
            let expected = expected(&t, reference);
            assert_eq!(found, expected, "seed {seed} {options}{out}");
            assert_eq!(
                out.status.code(),
                Some(i32::from(!expected.is_empty())),
                "seed {seed} {options}{out}"
            );
        };
        check("", Reference::None);
        for (made, options) in ASKED {
            match made {
                "" => {}
                "export" => {
                    t.bc_line("integrity manifest --output=../o archive")
                        .go()
                        .code(0);
                    t.bc_line("integrity export ../o --format=hashdeep --output=../deep")
                        .go()
                        .code(0);
                    // Names that the card has too may be the card's own.
                    let list = std::fs::read(t.join("../deep")).unwrap();
                    let lines = list.split_inclusive(|byte| *byte == b'\n');
                    let made_above = lines.map(|line| match line.first() {
                        Some(b'0'..=b'9') => {
                            let commas = line.iter().enumerate();
                            let commas = commas.filter(|(_, byte)| **byte == b',');
                            let name = commas.map(|(at, _)| at).nth(1).unwrap() + 1;
                            [&line[..name], b"archive/", &line[name..]].concat()
                        }
                        _ => line.to_vec(),
                    });
                    std::fs::write(t.join("../deep"), made_above.collect::<Vec<_>>().concat())
                        .unwrap();
                }
                line => {
                    t.bc_line(line).go().code(0);
                }
            }
            let is_list = made == "export" || made.starts_with("hash ");
            let reference = match is_list {
                true => Reference::List,
                false => Reference::Tree,
            };
            check(options, reference);
        }
    }
}
