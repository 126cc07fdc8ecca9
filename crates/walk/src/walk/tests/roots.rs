//! Roots: how they print, what they may be, and that overlapping ones list each file once.

use rustix::fs::{AtFlags, CWD, Mode, mknodat};

use super::*;
use crate::{DirId, ErrorKind, Globs, Metadata, Spellings, Symlinks};

fn printed(roots: &[&[u8]], options: &WalkOptions) -> Vec<String> {
    let roots: Vec<_> = roots.iter().map(|root| root.to_vec()).collect();
    let listing = in_every_way(Given::Roots, &roots, options);
    let text = |id| String::from_utf8(listing.path(id)).unwrap();
    listing.ids().map(text).collect()
}

fn shallow() -> WalkOptions {
    WalkOptions {
        max_depth: Some(1),
        ..WalkOptions::default()
    }
}

#[test]
fn paths_begin_with_the_root_as_given() {
    // Tests run in the package's directory.
    for (root, expected) in [
        (&b"."[..], "./Cargo.toml"),
        (b"./", "./Cargo.toml"),
        (b"src/..", "src/../Cargo.toml"),
        (b".//", ".//Cargo.toml"),
    ] {
        assert!(printed(&[root], &shallow()).contains(&expected.to_owned()));
    }
    assert_eq!(printed(&[b"src/lib.rs"], &shallow()), ["src/lib.rs"]);
    assert_eq!(printed(&[b".//Cargo.toml"], &shallow()), [".//Cargo.toml"]);
    let mut top: Vec<_> = fs::read_dir("/")
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.path().to_str().unwrap().to_owned())
        .collect();
    top.sort();
    assert_eq!(printed(&[b"/"], &shallow()), top);
}

#[test]
fn links_as_roots_are_followed() {
    let tree = Tree::with(&["real/file", "plain"]);
    tree.link("real", "to-dir");
    tree.link("plain", "to-file");
    let (names, listing) = walked(&tree, &["to-dir", "to-file"], &WalkOptions::default());
    assert_eq!(names, ["to-dir/file", "to-file"]);
    let follow: Vec<_> = listing.ids().map(|id| listing.follow(id)).collect();
    assert_eq!(follow, [false, true]);
    let roots: Vec<_> = listing.ids().map(|id| listing.root(id)).collect();
    assert_eq!(roots, [0, 1]);
}

#[test]
fn roots_that_cannot_be_walked_are_errors_and_the_others_are() {
    let tree = Tree::with(&["d/file", "plain"]);
    tree.link("nowhere", "broken");
    mknodat(
        CWD,
        tree.path(b"fifo"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    let roots = ["missing", "broken", "plain/", "fifo", "nul\0name", "d"];
    let (names, listing) = walked(&tree, &roots, &WalkOptions::default());
    assert_eq!(names, ["d/file"]);
    let system = |errno: Errno| ErrorKind::System(errno.raw_os_error());
    let mut expected = [
        ("missing", "stat", system(Errno::NOENT)),
        ("broken", "stat", system(Errno::NOENT)),
        ("plain/", "stat", system(Errno::NOTDIR)),
        ("fifo", "open", ErrorKind::NotRegular),
        ("nul\0name", "stat", system(Errno::INVAL)),
    ]
    .map(|(path, op, kind)| Error::of_kind(tree.bytes(path), op, kind));
    expected.sort_by(|a, b| a.path().cmp(b.path()));
    assert_eq!(listing.errors(), expected);

    let listing = in_every_way(Given::Roots, &[Vec::new()], &WalkOptions::default());
    assert_eq!(listing.errors()[0].kind(), system(Errno::NOENT));
    assert!(in_every_way(Given::Roots, &[], &WalkOptions::default()).is_empty());
}

#[test]
fn overlapping_roots_list_each_file_once() {
    let tree = Tree::with(&["t/a", "t/m/x", "t/m/y/z", "t/z"]);
    tree.link("t/m", "to-m");
    let everything = ["t/a", "t/m/x", "t/m/y/z", "t/z"];
    let check = |roots: &[&str], roots_of: &[usize]| {
        let (names, listing) = walked(&tree, roots, &WalkOptions::default());
        assert_eq!(names, everything, "{roots:?}");
        let found: Vec<_> = listing.ids().map(|id| listing.root(id)).collect();
        assert_eq!(found, roots_of, "{roots:?}");
        assert_eq!(
            listing.skipped().repeated,
            roots.len() as u64 - 1,
            "{roots:?}"
        );
        for id in listing.ids() {
            listing.open_dir(listing.dir(id)).unwrap();
        }
    };
    check(&["t", "t"], &[0; 4]);
    check(&["t", "t/"], &[0; 4]);
    check(&["t", "t/m"], &[0, 1, 1, 0]);
    check(&["t/m", "t"], &[1, 0, 0, 1]);
    check(&["t/m/y", "t", "t/m"], &[1, 2, 0, 1]);
    check(&["t", "t/m/x"], &[0, 1, 0, 0]);
    check(&["t/z", "t", "t/a"], &[2, 1, 1, 0]);
    check(&["t", "t/m", "t/m/y/z", "t/a"], &[3, 1, 2, 0]);

    // Under the name of the root that leads there.
    let (names, listing) = walked(&tree, &["t", "to-m"], &WalkOptions::default());
    assert_eq!(names, ["t/a", "t/z", "to-m/x", "to-m/y/z"]);
    assert_eq!(listing.skipped().repeated, 1);
}

#[test]
fn order_spans_all_roots() {
    let tree = Tree::with(&["b/1", "b-/1", "b.txt", "a/1", "c", "b/2/3"]);
    let (names, _) = walked(
        &tree,
        &["c", "b", "b.txt", "a", "b-"],
        &WalkOptions::default(),
    );
    assert_eq!(names, ["a/1", "b-/1", "b.txt", "b/1", "b/2/3", "c"]);
    let options = WalkOptions {
        entries: Entries::All,
        ..WalkOptions::default()
    };
    let (names, _) = walked(&tree, &["c", "b", "b.txt", "a", "b-", "b/2"], &options);
    assert_eq!(
        names,
        [
            "a", "a/1", "b", "b-", "b-/1", "b.txt", "b/1", "b/2", "b/2/3", "c"
        ]
    );
}

#[test]
fn hard_links_and_equal_names_elsewhere_are_not_repeated() {
    let tree = Tree::with(&["a/x", "b/"]);
    fs::hard_link(tree.path(b"a/x"), tree.path(b"a/y")).unwrap();
    fs::hard_link(tree.path(b"a/x"), tree.path(b"b/x")).unwrap();
    let (names, listing) = walked(&tree, &["a/x", "a/y", "b/x", "a"], &WalkOptions::default());
    assert_eq!(names, ["a/x", "a/y", "b/x"]);
    assert_eq!(listing.skipped().repeated, 2, "x and y met again in a");
}

#[test]
fn a_root_left_out_by_a_filter_does_not_hide_the_file() {
    let tree = Tree::with(&["t/sub/x.c"]);
    let options = WalkOptions {
        exclude: Globs::new(&[b"/x.c".to_vec()]).unwrap(),
        ..WalkOptions::default()
    };
    // Directly in its root it matches, deeper it does not.
    let (names, listing) = walked(&tree, &["t", "t/sub/x.c"], &options);
    assert_eq!(names, ["t/sub/x.c"]);
    assert_eq!(listing.skipped().excluded, 1);
}

#[test]
fn more_roots_than_descriptors_are_kept() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = Tree::new();
    let roots: Vec<String> = (0..150).map(|number| format!("root-{number:03}")).collect();
    for root in &roots {
        tree.add(format!("{root}/sub/file").as_bytes());
    }
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let (names, listing) = walked(&tree, &roots, &WalkOptions::default());
    assert_eq!(names.len(), 150);
    for id in listing.ids() {
        listing.open_dir(listing.dir(id)).unwrap();
    }
    // The last root's descriptor is not kept: another directory in its place is noticed.
    fs::rename(tree.path(b"root-149"), tree.path(b"moved")).unwrap();
    tree.add(b"root-149/sub/file");
    let last = listing.ids().next_back().unwrap();
    let error = listing.open_dir(listing.dir(last)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert_eq!(error.path(), tree.bytes("root-149/sub"));
}

#[test]
fn exactly_the_listed_files() {
    let tree = Tree::with(&["a/x", "a/y", "b", "c/d"]);
    tree.link("b", "link");
    let paths = ["b", "a/x", "a/../a/x", "a/x", "c", "no", "link"].map(|path| tree.bytes(path));
    let listing = in_every_way(Given::Exactly, &paths, &WalkOptions::default());
    // The first of several ways to the same name counts.
    assert_eq!(below(&tree, &listing), ["a/x", "b", "link"]);
    let roots: Vec<_> = listing.ids().map(|id| listing.root(id)).collect();
    assert_eq!(roots, [1, 0, 6]);
    assert_eq!(listing.skipped().repeated, 2);
    assert_eq!(listing.directories(), 0);
    let errors: Vec<_> = listing
        .errors()
        .iter()
        .map(|e| (e.op(), e.errno().unwrap()))
        .collect();
    assert_eq!(errors, [("open", 21), ("stat", 2)]);

    let options = WalkOptions {
        entries: Entries::All,
        ..WalkOptions::default()
    };
    let listing = in_every_way(Given::Exactly, &paths, &options);
    assert_eq!(below(&tree, &listing), ["a/x", "b", "c", "link"]);
}

#[test]
fn a_long_list_is_looked_at_in_parallel() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = Tree::new();
    let paths: Vec<_> = (0..4000)
        .map(|number| {
            let path = format!("{}/{number}", number % 7);
            tree.add(path.as_bytes());
            tree.bytes(&path)
        })
        .collect();
    let listing = in_every_way(Given::Exactly, &paths, &WalkOptions::default());
    assert_eq!(listing.len(), 4000);
    for id in listing.ids() {
        assert_eq!(listing.path(id), paths[listing.root(id)]);
    }
    // One directory record for each directory, not for each file.
    assert_eq!(listing.dirs(), 7);
}

#[test]
fn named_files_stay_in_the_order_of_their_names_as_often_as_they_are_named() {
    let tree = Tree::with(&["a/x", "a/y", "a/z", "b", "c/d"]);
    tree.link("a", "way");
    let names = [
        "b", "a/y", "a/x", "c/d", "a/z", "a/y", "no/x", "a/../b", "a/", "way/y", "way/z", "a/no",
    ];
    let paths = names.map(|path| tree.bytes(path));
    let options = WalkOptions {
        spellings: Spellings::AsNamed,
        metadata: Metadata::Basic,
        ..WalkOptions::default()
    };
    for workers in [1, 8] {
        let listing = crate::list_files(&paths, &options, workers, &Cancel::new()).unwrap();
        let roots: Vec<usize> = listing.ids().map(|id| listing.root(id)).collect();
        assert_eq!(roots, [0, 1, 2, 3, 4, 5, 7, 9, 10]);
        for (id, root) in listing.ids().zip(roots) {
            assert_eq!(listing.path(id), paths[root]);
            let is = rustix::fs::stat(paths[root].as_slice()).unwrap();
            assert_eq!(listing.identity(id), Some(FileStat::from(&is).id));
            let dir = listing.open_dir(listing.dir(id)).unwrap();
            assert!(rustix::fs::statat(dir, listing.name(id), AtFlags::empty()).is_ok());
        }
        assert_eq!((listing.skipped().repeated, listing.dirs()), (0, 5));
        let failed: Vec<&[u8]> = listing.errors().iter().map(|error| error.path()).collect();
        assert_eq!(failed, [&paths[8], &paths[11], &paths[6]]);
    }
}

/// Checks that files of which their directories alone are asked are listed as those that are looked
/// at one by one: what is no regular file, or missing, is looked at in any case.
#[test]
fn crowded_directories_list_what_looks_at_each_name_do() {
    if !bc_testkit::has_descriptors(1024) {
        return;
    }
    let tree = Tree::new();
    let mut names: Vec<String> = Vec::new();
    for number in 0..40 {
        names.push(format!("some/{number}"));
        names.push(format!("sub/of/{number}"));
        names.push(format!("few of many/{number}"));
    }
    names.iter().for_each(|name| tree.add(name.as_bytes()));
    (0..2000).for_each(|other| tree.add(format!("few of many/other {other}").as_bytes()));
    tree.add(b"some/dir/");
    tree.link("0", "some/link");
    tree.link("nowhere", "some/broken");
    let fifo = tree.path(b"some/fifo");
    mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let odd = [
        "some/dir",
        "some/dir/",
        "some/link",
        "some/broken",
        "some/fifo",
        "some/no",
        "some/0/x",
        "some/../some/1",
        "some//2",
        "some/3",
        "no/at all",
    ];
    names.extend(odd.map(str::to_owned));
    names.sort();
    let paths: Vec<Vec<u8>> = names.iter().map(|name| tree.bytes(name)).collect();
    let list = |metadata| {
        let options = WalkOptions {
            spellings: Spellings::Each,
            metadata,
            ..WalkOptions::default()
        };
        in_every_way(Given::Exactly, &paths, &options)
    };
    let (by_dirs, looked_at) = (list(Metadata::None), list(Metadata::Basic));
    assert_eq!(looked_at.len(), 40 * 3 + 3);
    let entries = |listing: &Listing| -> Vec<_> {
        let entry = |id| (listing.path(id), listing.kind(id), listing.inode_hint(id));
        listing.ids().map(entry).collect()
    };
    assert_eq!(entries(&by_dirs), entries(&looked_at));
    assert_eq!(by_dirs.errors(), looked_at.errors());
    assert_eq!(by_dirs.skipped(), looked_at.skipped());
    assert!(looked_at.named_bytes().is_some());
    // Of files in a crowded directory the sizes are not known.
    assert_eq!(by_dirs.named_bytes(), None);
}

#[test]
fn directories_are_known_by_identity() {
    let tree = Tree::with(&["d/sub/deep/x", "d/sub/y", "d/empty/", "e/f", "real/z"]);
    tree.link("../real", "d/link");
    let options = WalkOptions {
        symlinks: Symlinks::Follow,
        metadata: Metadata::Basic,
        ..WalkOptions::default()
    };
    let roots = ["d", "d/sub/", "e/f", "d/../e/f"].map(|root| tree.bytes(root));
    let listing = in_every_way(Given::Roots, &roots, &options);
    let mut files_alone = 0;
    for dir in (0..listing.dirs() as u32).map(DirId) {
        let path = listing.dir_path(dir);
        let is = rustix::fs::stat(path.as_slice()).unwrap();
        match listing.dir_identity(dir) {
            Some(id) => assert_eq!(id, FileStat::from(&is).id, "{path:?}"),
            None => files_alone += 1,
        }
    }
    assert_eq!((listing.dirs(), files_alone), (6, 1));
}
