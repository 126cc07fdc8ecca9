//! Random trees: copies of copies, changed, renamed and put into each other.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use bc_testkit::{Rng, TestTree};

use super::reference::Reference;
use super::*;

/// Trees in an ordinary run.
const TREES: usize = 2;

#[derive(Clone, Debug)]
enum Node {
    File(u64),
    Link(u64),
    Dir(BTreeMap<String, Node>),
}

/// Few, so that copies have the same ones.
fn name(rng: &mut Rng) -> String {
    ["a", "b", "c", "d", "e", "f", "a-b", "a.b", "x"][rng.below(9) as usize].to_owned()
}

/// Contents are few, so that they are repeated; every tenth is nowhere else.
fn file(rng: &mut Rng) -> Node {
    match rng.below(10) {
        0 => Node::File(1000 + rng.below(1 << 40)),
        1..8 => Node::File(rng.below(30)),
        8 => Node::Link(rng.below(5)),
        _ => Node::Dir(BTreeMap::new()),
    }
}

fn grown(rng: &mut Rng, depth: u64) -> Node {
    let mut entries = BTreeMap::new();
    for _ in 0..1 + rng.below(4) {
        entries.insert(name(rng), file(rng));
    }
    if depth > 0 {
        for _ in 0..1 + rng.below(2) {
            entries.insert(name(rng), grown(rng, depth - 1));
        }
    }
    Node::Dir(entries)
}

fn dirs(node: &Node) -> u64 {
    match node {
        Node::Dir(entries) => 1 + entries.values().map(dirs).sum::<u64>(),
        _ => 0,
    }
}

fn depth(node: &Node) -> u64 {
    match node {
        Node::Dir(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The directory that a random way leads to.
fn pick<'n>(
    rng: &mut Rng,
    mut at: &'n mut BTreeMap<String, Node>,
) -> &'n mut BTreeMap<String, Node> {
    loop {
        let is_dir =
            |(name, node): (&String, &Node)| matches!(node, Node::Dir(_)).then(|| name.clone());
        let inner: Vec<String> = at.iter().filter_map(is_dir).collect();
        if inner.is_empty() || rng.below(4) == 0 {
            return at;
        }
        let name = &inner[rng.below(inner.len() as u64) as usize];
        let Some(Node::Dir(next)) = at.get_mut(name) else {
            unreachable!("{name} is a directory");
        };
        at = next;
    }
}

fn mutate(rng: &mut Rng, copy: &mut BTreeMap<String, Node>) {
    let at = pick(rng, copy);
    let any = |rng: &mut Rng, at: &BTreeMap<String, Node>| {
        let nth = rng.below(at.len().max(1) as u64) as usize;
        at.keys().nth(nth).cloned()
    };
    match (rng.below(4), any(rng, at)) {
        (0, Some(old)) => drop(at.remove(&old)),
        (1, Some(old)) => {
            if let Some(node) = at.remove(&old) {
                at.insert(name(rng), node);
            }
        }
        (2, Some(old)) if !matches!(at[&old], Node::Dir(_)) => {
            at.insert(old, file(rng));
        }
        _ => drop(at.insert(name(rng), file(rng))),
    }
}

/// At least 300 directories, 6 deep.
fn tree(rng: &mut Rng) -> Node {
    let mut root = BTreeMap::from([("o".to_owned(), grown(rng, 6))]);
    loop {
        let mut copy = pick(rng, &mut root).clone();
        let size = dirs(&Node::Dir(copy.clone()));
        if size > 100 || size < 2 && rng.below(3) > 0 {
            continue;
        }
        for _ in 0..[0, 0, 0, 1, 2][rng.below(5) as usize] {
            mutate(rng, &mut copy);
        }
        let to = name(rng) + ["", "", "1", "2"][rng.below(4) as usize];
        pick(rng, &mut root).entry(to).or_insert(Node::Dir(copy));
        let whole = Node::Dir(root);
        if dirs(&whole) >= 300 && depth(&whole) >= 6 {
            return whole;
        }
        let Node::Dir(again) = whole else {
            unreachable!("it is the root");
        };
        root = again;
    }
}

/// Puts a tree on disk; every sixth file whose content is there already is one more name of it.
fn make(rng: &mut Rng, path: &Path, node: &Node, made: &mut HashMap<u64, Vec<std::path::PathBuf>>) {
    match node {
        Node::Dir(entries) => {
            fs::create_dir_all(path).unwrap();
            for (name, node) in entries {
                make(rng, &path.join(name), node, made);
            }
        }
        Node::Link(target) => {
            std::os::unix::fs::symlink(format!("../{target}"), path).unwrap();
        }
        Node::File(content) => {
            let known = made.entry(*content).or_default();
            if !known.is_empty() && rng.below(6) == 0 {
                let other = &known[rng.below(known.len() as u64) as usize];
                fs::hard_link(other, path).unwrap();
                return;
            }
            let mut bytes = Rng::new(*content).bytes((content % 37) as usize);
            if content % 7 == 0 {
                // Larger than the part that is read first.
                bytes.resize(5000 + (content % 3) as usize, 0);
            }
            fs::write(path, bytes).unwrap();
            known.push(path.to_path_buf());
        }
    }
}

/// Returns the bytes that go with these directories.
fn freed(answer: &Answer, going: &[DirId]) -> u64 {
    let going: Vec<Vec<u8>> = going.iter().map(|dir| answer.path(*dir)).collect();
    let goes = |name: &bc_walk::EntryId| {
        let path = answer.below(answer.listing.path(*name));
        going
            .iter()
            .any(|dir| path.starts_with(dir) && path.get(dir.len()) == Some(&b'/'))
    };
    let files = answer
        .scan
        .groups()
        .flat_map(|group| group.files().collect::<Vec<_>>());
    let go = files.filter(|file| file.names.iter().all(goes));
    go.map(|file| file.own).sum()
}

fn compare(seed: u64) {
    let mut rng = Rng::new(seed);
    let built = tree(&mut rng);
    let tree = TestTree::new();
    make(&mut rng, tree.path(), &built, &mut HashMap::new());
    let reference = Reference::of(tree.path());
    assert!(reference.len() >= 300, "seed {seed}");
    for (names, least) in [
        (DirNames::Compare, 1),
        (DirNames::Compare, 4),
        (DirNames::Ignore, 1),
    ] {
        let what = format!("seed {seed}, {names:?}, {least} files");
        let percent = 40 + (seed % 60) as u8;
        let options = DirsOptions {
            names,
            min_files: least,
            similar: Some(percent),
            limits: Limits {
                places: usize::MAX,
                candidates: usize::MAX,
            },
            ..options()
        };
        let answer = answer(tree.path(), &[""], &options);
        let mut groups = answer.groups();
        groups.sort();
        let mut expected = reference.largest(names, least);
        expected.sort();
        assert_eq!(groups, expected, "{what}");
        let mut files = answer.files();
        files.sort();
        assert_eq!(files, reference.files(names, least), "{what}");
        for group in &answer.found.groups {
            for dir in &group.dirs {
                let path = answer.path(*dir);
                assert_eq!(group.digest, Some(reference.digest(&path, names)), "{what}");
            }
            assert_eq!(group.wasted, freed(&answer, &group.dirs[1..]), "{what}");
        }
        let contained = answer.found.contained.iter();
        let mut contained: Vec<_> = contained
            .map(|one| (answer.path(one.dir), answer.path(one.within), one.is_mutual))
            .collect();
        contained.sort();
        assert_eq!(contained, reference.contained(names, least), "{what}");
        let similar = answer.found.similar.iter();
        let mut similar: Vec<_> = similar
            .map(|one| {
                (
                    answer.path(one.dirs[0]),
                    answer.path(one.dirs[1]),
                    one.shared,
                )
            })
            .collect();
        similar.sort();
        let expected = reference.similar(names, least, percent.into());
        assert_eq!(similar, expected, "{what}");
        assert!(
            answer.found.errors.is_empty() && answer.found.not_comparable == 0,
            "{what}"
        );
    }
}

#[test]
fn all_is_as_the_reference_has_it() {
    let trees = bc_testkit::cases(TREES) as u64;
    // In the first, a directory holds one that has all its contents, and only a link beside it.
    let seeds = [0x32f].into_iter().chain(0..trees);
    seeds.for_each(|seed| compare(0xd1e5_0000 + seed));
}
