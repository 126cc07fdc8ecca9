//! Filtered entries are counted, and excluded directories are not even read.

use super::*;
use crate::{Globs, Hidden, IgnoreFiles, OwnFile, SkipReason, SkippedDetail};

fn globs(patterns: &[&str]) -> Globs {
    let patterns: Vec<_> = patterns.iter().map(|p| p.as_bytes().to_vec()).collect();
    Globs::new(&patterns).unwrap()
}

#[test]
fn hidden_names() {
    let tree = Tree::with(&[".h/x", ".f", "a/.g", "a/b"]);
    let (names, _) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(names, [".f", ".h/x", "a/.g", "a/b"]);
    let skip = WalkOptions {
        hidden: Hidden::Skip,
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &skip);
    assert_eq!(names, ["a/b"]);
    assert_eq!(listing.skipped().hidden, 3);
    // Roots have been named.
    let (names, _) = walked(&tree, &[".h", ".f"], &skip);
    assert_eq!(names, [".f", ".h/x"]);
}

#[test]
fn includes_gate_files_and_excludes_win() {
    let tree = Tree::with(&["a.c", "a.h", "sub/b.c", "sub/b.o", "c/x.c", "c/y.c"]);
    let options = WalkOptions {
        include: globs(&["*.c"]),
        exclude: globs(&["c/x*", "sub/b.o"]),
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &options);
    assert_eq!(names, ["a.c", "c/y.c", "sub/b.c"]);
    assert_eq!(listing.skipped().excluded, 2);
    assert_eq!(listing.skipped().not_included, 1);
    let (names, _) = walked(&tree, &["a.h", "sub"], &options);
    assert_eq!(names, ["sub/b.c"]);
}

#[test]
fn excluded_directories_are_not_read() {
    let tree = Tree::with(&["keep/x", "target/a/b", "deep/target/c", "out/d/e", "out/f"]);
    let options = WalkOptions {
        exclude: globs(&["target", "/out/**"]),
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &options);
    assert_eq!(names, ["keep/x"]);
    assert_eq!(listing.directories(), 3, "the root, keep, deep");
    assert_eq!(listing.skipped().excluded, 3);
}

#[test]
fn two_stars_in_front_prune_only_what_they_name() {
    let tree = Tree::with(&["a/foo/x", "foo", "b/c/foo", "b/c/bar", "top.tmp", "b/x.tmp"]);
    let options = WalkOptions {
        exclude: globs(&["**/foo", "**/*.tmp"]),
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &options);
    assert_eq!(names, ["b/c/bar"]);
    assert_eq!(listing.skipped().excluded, 5);
}

#[test]
fn sizes() {
    let tree = Tree::new();
    for size in [0_usize, 1, 10, 100] {
        fs::write(tree.path(format!("{size:03}").as_bytes()), vec![b'x'; size]).unwrap();
    }
    let options = WalkOptions {
        min_size: 1,
        max_size: Some(10),
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &options);
    assert_eq!(names, ["001", "010"]);
    assert_eq!(
        (listing.skipped().too_small, listing.skipped().too_large),
        (1, 1)
    );
    let (names, _) = walked(&tree, &["000", "010"], &options);
    assert_eq!(names, ["010"]);
}

#[test]
fn times() {
    let tree = Tree::with(&["a", "d/b", "d/c", "e"]);
    for (name, seconds) in [("a", 10), ("d/b", 20), ("d/c", 30), ("e", 40), ("d", 50)] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let file = fs::File::open(tree.path(name.as_bytes())).unwrap();
        file.set_modified(time).unwrap();
    }
    let at = |seconds: i64| Some(seconds * 1_000_000_000);
    for (newer, older, expected, counts) in [
        (at(10), at(40), &["d/b", "d/c"][..], (1, 1)),
        (at(20), None, &["d/c", "e"][..], (2, 0)),
        (None, at(20), &["a"][..], (0, 3)),
    ] {
        let options = WalkOptions::default().newer(newer).older(older);
        let (names, listing) = walked(&tree, &[], &options);
        assert_eq!(names, expected);
        let skipped = listing.skipped();
        assert_eq!((skipped.too_old, skipped.too_new), counts);
        assert_eq!(skipped.filtered(), skipped.total());
    }
    // A root that is a file is filtered as any other.
    let (names, _) = walked(&tree, &["a", "e"], &WalkOptions::default().newer(at(10)));
    assert_eq!(names, ["e"]);
}

#[test]
fn depth() {
    let tree = Tree::with(&["1", "a/2", "a/b/3", "a/b/c/4"]);
    for (depth, expected, too_deep) in [
        (0, &[][..], 1),
        (1, &["1"][..], 1),
        (2, &["1", "a/2"], 1),
        (4, &["1", "a/2", "a/b/3", "a/b/c/4"], 0),
    ] {
        let options = WalkOptions {
            max_depth: Some(depth),
            ..WalkOptions::default()
        };
        let (names, listing) = walked(&tree, &[], &options);
        assert_eq!(names, expected, "depth {depth}");
        assert_eq!(listing.skipped().too_deep, too_deep, "depth {depth}");
    }
    let none = WalkOptions {
        max_depth: Some(0),
        ..WalkOptions::default()
    };
    assert_eq!(walked(&tree, &["1", "a"], &none).0, ["1"]);
}

#[test]
fn left_out() {
    let tree = Tree::with(&["a", "out", "b/c"]);
    let right = OwnFile::at(tree.path(b"out")).unwrap();
    let wrong = OwnFile::at(std::path::Path::new("/proc/version")).unwrap();
    let options = |own: &OwnFile| WalkOptions {
        leave_out: vec![own.clone()],
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &options(&right));
    assert_eq!(names, ["a", "b/c"]);
    assert_eq!(listing.skipped().left_out, 1);
    let (names, _) = walked(&tree, &["a", "out"], &options(&right));
    assert_eq!(names, ["a"]);
    let (names, _) = walked(&tree, &[], &options(&wrong));
    assert_eq!(names, ["a", "b/c", "out"]);
}

#[test]
fn ignore_files() {
    let tree = Tree::with(&[
        "x.o",
        "keep.o",
        "build/a",
        "src/build",
        "src/x.o",
        "src/y.log",
        "src/in/y.log",
        "src/in/z.o",
        "other/anchored",
        "anchored",
        "odd/\u{e9}",
    ]);
    fs::write(
        tree.path(b".gitignore"),
        "*.o\r\n!keep.o\nbuild/\n/anchored\n# no\n\n[\n",
    )
    .unwrap();
    fs::write(tree.path(b"src/.gitignore"), "*.log\n").unwrap();
    fs::write(tree.path(b"src/in/.gitignore"), "!y.log\n!z.o\n").unwrap();
    fs::write(tree.path(b"src/in/.ignore"), "z.o\n").unwrap();
    fs::write(tree.path(b"odd/.ignore"), b"\xff\xfe\n").unwrap();
    let honour = WalkOptions {
        ignore_files: IgnoreFiles::Honour,
        hidden: Hidden::Skip,
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &honour);
    assert_eq!(
        names,
        [
            "keep.o",
            "odd/\u{e9}",
            "other/anchored",
            "src/build",
            "src/in/y.log"
        ]
    );
    assert_eq!(listing.skipped().ignored, 6);
    assert_eq!(listing.directories(), 5);
    // One line that means nothing switches no other off, and is named.
    let errors: Vec<String> = listing.errors().iter().map(Error::to_string).collect();
    let named = tree.path(b".gitignore");
    let text = "read: line 7 is left out: '[' without its ']'";
    assert_eq!(errors, [format!("{}: {text}", named.display())]);
    // Only files inside the root count.
    let (names, _) = walked(&tree, &["src/in"], &honour);
    assert_eq!(names, ["src/in/y.log"]);
    let (names, _) = walked(&tree, &[], &WalkOptions::default());
    assert_eq!(names.len(), 16);
}

#[test]
fn ignore_files_of_other_kinds_are_not_opened() {
    use rustix::fs::{CWD, Mode, mknodat};
    let tree = Tree::with(&["a/x", "b/.ignore/y", "c/z"]);
    let fifo = tree.path(b"a/.gitignore");
    mknodat(
        CWD,
        fifo,
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    fs::write(tree.path(b"patterns"), "*").unwrap();
    tree.link("../patterns", "c/.gitignore");
    let honour = WalkOptions {
        ignore_files: IgnoreFiles::Honour,
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &[], &honour);
    assert_eq!(names, ["a/x", "b/.ignore/y", "c/z", "patterns"]);
    assert!(listing.errors().is_empty(), "{:?}", listing.errors());
}

/// Checks that each counter has as many paths, whichever filter finds them, and that they are those
/// that were left out.
#[test]
fn each_path_that_is_left_out_is_named() {
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    let tree = Tree::with(&[
        ".hidden/x",
        "a/.dot",
        "a/deep/er/file",
        "a/fine.c",
        "a/small.c",
        "large.c",
        "no.o",
        "not/this.c",
        "other.txt",
        "own.c",
    ]);
    fs::write(tree.path(b"a/small.c"), "").unwrap();
    fs::write(tree.path(b"large.c"), vec![b'x'; 100]).unwrap();
    fs::write(tree.path(b".gitignore"), "no.*\n").unwrap();
    tree.link("large.c", "link");
    mknodat(CWD, tree.path(b"pipe"), Kind::Fifo, Mode::RUSR, 0).unwrap();
    let mut options = WalkOptions {
        hidden: Hidden::Skip,
        ignore_files: IgnoreFiles::Honour,
        exclude: globs(&["not"]),
        include: globs(&["*.c"]),
        min_size: 1,
        max_size: Some(50),
        max_depth: Some(2),
        leave_out: vec![OwnFile::at(tree.path(b"own.c")).unwrap()],
        ..WalkOptions::default()
    };
    let (names, listing) = walked(&tree, &["", "a"], &options);
    assert_eq!(names, ["a/fine.c"]);
    assert_eq!(listing.skipped_paths(), []);
    options.skipped = SkippedDetail::Paths;
    let (_, listing) = walked(&tree, &["", "a"], &options);
    let root = tree.path(b"");
    let root = root.as_os_str().as_bytes();
    let named: Vec<(String, SkipReason)> = listing
        .skipped_paths()
        .iter()
        .map(|skipped| {
            let path = skipped.path.strip_prefix(root).unwrap();
            let path = path.strip_prefix(b"/").unwrap_or(path);
            (String::from_utf8(path.to_vec()).unwrap(), skipped.reason)
        })
        .collect();
    let expected = [
        (".gitignore", SkipReason::Hidden),
        (".hidden", SkipReason::Hidden),
        ("a", SkipReason::Repeated),
        ("a/.dot", SkipReason::Hidden),
        ("a/deep/er", SkipReason::TooDeep),
        ("a/small.c", SkipReason::TooSmall),
        ("large.c", SkipReason::TooLarge),
        ("link", SkipReason::Symlink),
        ("no.o", SkipReason::Ignored),
        ("not", SkipReason::Excluded),
        ("other.txt", SkipReason::NotIncluded),
        ("own.c", SkipReason::LeftOut),
        ("pipe", SkipReason::Special),
    ];
    let mut counts = listing.skipped().clone();
    for (_, reason) in &expected {
        let paths = named.iter().filter(|(_, named)| named == reason).count();
        assert_eq!(
            *counts.counter(*reason),
            paths as u64,
            "{reason:?}: {named:?}"
        );
    }
    let named: Vec<(&str, SkipReason)> = named.iter().map(|(p, r)| (p.as_str(), *r)).collect();
    assert_eq!(named, expected);
}
