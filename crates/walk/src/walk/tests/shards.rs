//! One tree read by many walks: together they list the same as one, each entry once, and each
//! directory is read by the walk that it belongs to.

use super::*;
use crate::{DirectorySet, FileStats, FileSystems, Globs, Hidden, Metadata, Shard, Symlinks};

/// Returns the entries of a part, without the root that every part lists.
fn entries_of(listing: &Listing, shard: Shard) -> Vec<Seen> {
    let mut entries = outcome(listing).entries;
    entries.retain(|entry| entry.relative != b"." || shard.has_entry(b"."));
    entries
}

fn sorted(mut entries: Vec<Seen>) -> Vec<Seen> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// Checks that a listing with these options is the same in one part and in several.
fn agree(tree: &Tree, options: &WalkOptions) {
    let roots = || vec![tree.root()];
    let list = |options: &WalkOptions, workers| {
        let workers = Workers::from(workers);
        list(
            Given::Roots,
            &roots(),
            options,
            workers,
            &Cancel::new(),
            &at_once(),
        )
        .unwrap()
    };
    let whole = list(options, 1);
    assert_eq!(whole.settled(), DirectorySet::default());
    let expected = sorted(outcome(&whole).entries);
    for of in [1, 2, 3, 7, 16] {
        let (mut found, mut settled) = (Vec::new(), DirectorySet::default());
        let mut met = Vec::new();
        let mut skipped = Skipped::default();
        for index in 1..=of {
            let shard = Shard::new(index, of).unwrap();
            let options = WalkOptions {
                shard: Some(shard),
                ..options.clone()
            };
            let listing = list(&options, 1);
            assert_eq!(outcome(&listing), outcome(&list(&options, 4)));
            assert_eq!(listing.settled(), list(&options, 4).settled());
            for entry in entries_of(&listing, shard) {
                assert!(shard.has_entry(&entry.relative), "{entry:?}");
                found.push(entry);
            }
            settled.add(listing.settled());
            met.push(listing.met());
            skipped.add(listing.skipped());
        }
        assert_eq!(sorted(found), expected, "{of}");
        assert_eq!(&skipped, whole.skipped(), "{of}");
        assert!(met.iter().all(|met| *met == settled), "{of}");
        if options.entries == Entries::All {
            let mut all = DirectorySet::default();
            let dirs = expected.iter().filter(|entry| entry.kind == FileKind::Dir);
            dirs.for_each(|dir| all.insert(&dir.relative));
            assert_eq!(settled, all, "{of}");
        }
    }
}

fn tree() -> Tree {
    let tree = Tree::with(&[
        "a",
        "b/a",
        "b/b",
        "b/c/d/e/f",
        "b/c/g",
        "c/",
        "d/.h/i",
        "d/.j",
        "e-/f",
        "e/f",
        "e.f",
        "f/g/h/i/j/k",
        "f/g/h/l",
        "f/m.o",
        "g/target/n",
        "g/o.c",
        "empty/inner/",
    ]);
    for path in [&b"x\xff/y\n"[..], b"x\xff/z\xfe/1"] {
        tree.add(path);
    }
    tree.link("b", "l");
    tree.link("nowhere", "f/broken");
    tree.link("../..", "f/g/up");
    tree
}

#[test]
fn parts_together_are_the_whole() {
    let tree = tree();
    let exclude = |globs: &[&str]| {
        let globs: Vec<_> = globs.iter().map(|glob| glob.as_bytes().to_vec()).collect();
        Globs::new(&globs).unwrap()
    };
    for entries in [Entries::Files, Entries::All] {
        for metadata in [Metadata::None, Metadata::Full] {
            let plain = WalkOptions {
                entries,
                metadata,
                ..WalkOptions::default()
            };
            agree(&tree, &plain);
            let mut less = plain.clone();
            less.hidden = Hidden::Skip;
            less.max_depth = Some(2);
            less.file_systems = FileSystems::One;
            agree(&tree, &less);
            let mut chosen = plain.clone();
            chosen.exclude = exclude(&["target", "*.o", "/f/g/**"]);
            chosen.min_size = 3;
            agree(&tree, &chosen);
            let mut following = plain;
            following.symlinks = Symlinks::Follow;
            following.file_stats = FileStats::Left;
            agree(&tree, &following);
        }
    }
}

#[test]
fn roots_that_are_files_lie_in_the_root() {
    let tree = Tree::with(&["a", "b"]);
    let roots = || vec![tree.bytes("a"), tree.bytes("b")];
    for of in [1, 2, 5] {
        let counts = (1..=of).map(|index| {
            let options = WalkOptions {
                shard: Shard::new(index, of),
                ..WalkOptions::default()
            };
            let workers = Workers::from(1);
            let given = Given::Roots;
            list(
                given,
                &roots(),
                &options,
                workers,
                &Cancel::new(),
                &at_once(),
            )
            .unwrap()
            .len()
        });
        assert_eq!(
            counts
                .collect::<Vec<_>>()
                .into_iter()
                .filter(|len| *len == 2)
                .count(),
            1
        );
    }
}
