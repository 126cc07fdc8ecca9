//! Gaps in the listing of a directory, and entries that roots repeat.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;
use crate::{Entries, Globs, Hidden, Metadata, Repeats};

fn all() -> WalkOptions {
    WalkOptions {
        entries: Entries::All,
        metadata: Metadata::Basic,
        ..WalkOptions::default()
    }
}

/// Returns directories with gaps: path below the tree, entries that were filtered, failure.
fn gaps(tree: &Tree, options: &WalkOptions) -> Vec<(String, u64, bool)> {
    let listing = in_every_way(Given::Roots, &[tree.root()], options);
    let path = |dir| {
        let path = String::from_utf8(listing.dir_path(dir)).unwrap();
        path[tree.root().len()..].to_owned()
    };
    let gap = |(dir, gap): &(_, Gap)| (path(*dir), gap.filtered, gap.failed);
    listing.gaps().iter().map(gap).collect()
}

#[test]
fn each_directory_tells_what_filters_left_out_of_it() {
    let tree = Tree::with(&[
        "a/.h",
        "a/x.o",
        "a/x.c",
        "a/b/y.o",
        "a/b/.d/z",
        "c/f",
        "a/deep/er/f",
    ]);
    assert_eq!(gaps(&tree, &all()), []);
    let options = WalkOptions {
        hidden: Hidden::Skip,
        exclude: Globs::new(&[b"*.o".to_vec()]).unwrap(),
        ..all()
    };
    let gap = |path: &str, filtered| (path.to_owned(), filtered, false);
    assert_eq!(gaps(&tree, &options), [gap("/a", 2), gap("/a/b", 2)]);
    let options = WalkOptions {
        max_size: Some(3),
        max_depth: Some(2),
        ..all()
    };
    assert_eq!(gaps(&tree, &options), [gap("/a", 5)]);
}

#[test]
fn directories_that_are_left_unread_say_so() {
    let tree = Tree::with(&["a/f", "b/c/f"]);
    let options = WalkOptions {
        max_depth: Some(2),
        ..all()
    };
    let listing = in_every_way(Given::Roots, &[tree.root()], &options);
    let closed = listing.ids().filter(|id| listing.is_closed(*id));
    let closed: Vec<_> = closed.map(|id| listing.path(id)).collect();
    assert_eq!(closed, [tree.bytes("b/c")]);
    assert!(
        listing
            .ids()
            .all(|id| listing.kind(id) != FileKind::File || listing.size(id).is_some())
    );
}

#[test]
fn failures_are_gaps() {
    let tree = Tree::with(&["a/f", "a/b/g"]);
    let set = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(tree.path(b"a/b"), mode).unwrap();
    };
    set(0o400);
    let found = gaps(&tree, &all());
    let is_root = fs::metadata(tree.path(b"a")).unwrap().uid() == 0;
    match is_root {
        true => assert_eq!(found, []),
        // Its names can be read, and nothing else.
        false => assert_eq!(found, [("/a/b".to_owned(), 0, true)]),
    }
    set(0o700);
}

#[test]
fn what_another_root_lists_may_be_listed_again() {
    let tree = Tree::with(&["a/b/f", "a/g"]);
    let roots = [tree.root(), tree.bytes("a/b"), tree.bytes("a/g")];
    let paths = |repeats| {
        let options = WalkOptions { repeats, ..all() };
        let (tuning, cancel) = (Tuning::default(), Cancel::new());
        let listing = list(Given::Roots, &roots, &options, 1.into(), &cancel, &tuning).unwrap();
        let below = |id| {
            let path = String::from_utf8(listing.path(id)).unwrap();
            path[tree.root().len()..].to_owned()
        };
        listing.ids().map(below).collect::<Vec<_>>()
    };
    assert_eq!(paths(Repeats::Skip), ["", "/a", "/a/b", "/a/b/f", "/a/g"]);
    assert_eq!(
        paths(Repeats::List),
        ["", "/a", "/a/b", "/a/b", "/a/b/f", "/a/g", "/a/g"]
    );
}
