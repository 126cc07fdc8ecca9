//! Contents of directories, and the groups that are reported.

use super::*;

#[test]
fn copies_are_told_once() {
    let tree = TestTree::new();
    for copy in ["one", "two"] {
        tree.write(format!("{copy}/a/b/f"), "content")
            .write(format!("{copy}/a/g"), "more")
            .dir(format!("{copy}/empty"))
            .symlink("a/g", format!("{copy}/link"));
    }
    assert_eq!(equal(&tree), ["one two"]);
    let all = answer(tree.path(), &[""], &options());
    assert!(all.files().is_empty() && all.found.contained.is_empty());
    let [group] = &all.found.groups[..] else {
        panic!("{:?}", all.found.groups);
    };
    assert_eq!((group.files, group.bytes, group.filtered), (2, 11, 0));
}

#[test]
fn a_link_an_empty_directory_and_an_empty_file_make_a_difference() {
    type Change = fn(&TestTree);
    let changes: [Change; 8] = [
        |t| {
            t.dir("two/empty");
        },
        |t| {
            t.symlink("x", "two/link");
        },
        |t| {
            t.write("two/nothing", "");
        },
        |t| {
            t.remove("two/g").symlink("f", "two/g");
        },
        |t| {
            t.remove("two/g").dir("two/g");
        },
        |t| {
            t.write("two/g", "Same");
        },
        |t| {
            t.remove("two/l").symlink("y", "two/l");
        },
        |t| {
            t.remove("two/d").write("two/d", "");
        },
    ];
    for (nth, change) in changes.iter().enumerate() {
        let tree = TestTree::new();
        for copy in ["one", "two"] {
            tree.write(format!("{copy}/f"), "f")
                .write(format!("{copy}/g"), "same")
                .symlink("x", format!("{copy}/l"))
                .dir(format!("{copy}/d"));
        }
        assert_eq!(equal(&tree), ["one two"]);
        change(&tree);
        assert_eq!(equal(&tree), [""; 0], "change {nth}");
    }
}

#[test]
fn what_is_in_it_counts_and_what_it_is_like_does_not() {
    let tree = TestTree::new();
    tree.write("one/f", "same").write("two/f", "same");
    tree.mode("one/f", 0o600)
        .mode("two", 0o700)
        .mtime("two/f", 1, 2);
    assert_eq!(equal(&tree), ["one two"]);
}

#[test]
fn names_of_one_file_are_one_content() {
    let tree = TestTree::new();
    tree.write("one/f", "alone in the world").dir("two");
    tree.hard_link("one/f", "two/f");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.texts(), ["one two"]);
    assert_eq!(found.found.groups[0].wasted, 0);
    assert!(found.found.groups[0].digest.is_some());
}

#[test]
fn without_a_file_nothing_is_told() {
    let tree = TestTree::new();
    tree.dir("a/empty")
        .dir("b/empty")
        .symlink("x", "a/l")
        .symlink("x", "b/l");
    assert_eq!(equal(&tree), [""; 0]);
}

#[test]
fn what_does_not_follow_is_told_as_well() {
    let tree = TestTree::new();
    // Twice within each copy.
    for copy in ["a", "b"] {
        tree.write(format!("{copy}/x/f"), "f")
            .write(format!("{copy}/y/f"), "f");
    }
    assert_eq!(equal(&tree), ["a/x a/y b/x b/y", "a b"]);
    // Once more outside of them.
    let tree = TestTree::new();
    for copy in ["a", "b"] {
        tree.write(format!("{copy}/x/f"), "f")
            .write(format!("{copy}/g"), "g");
    }
    tree.write("c", "f").write("z/x/f", "f");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.texts(), ["a b", "a/x b/x z/x"]);
    // Of `g` all is said by `a b`; of `f` there is one in the root.
    assert_eq!(
        found.files(),
        [[
            b"a/x/f".to_vec(),
            b"b/x/f".to_vec(),
            b"c".to_vec(),
            b"z/x/f".to_vec()
        ]]
    );
}

#[test]
fn what_frees_most_comes_first() {
    let tree = TestTree::new();
    for (dir, content, copies) in [("s", 10, 2), ("m", 100_000, 2), ("l", 60_000, 3)] {
        for copy in 0..copies {
            tree.write(format!("{dir}{copy}/f"), vec![dir.as_bytes()[0]; content]);
        }
    }
    assert_eq!(equal(&tree), ["l0 l1 l2", "m0 m1", "s0 s1"]);
}

#[test]
fn names_may_be_ignored() {
    let tree = TestTree::new();
    tree.write("a/f", "1")
        .write("a/sub/g", "2")
        .symlink("t", "a/l");
    tree.write("b/deep/down/x", "2")
        .write("b/y", "1")
        .symlink("t", "b/deep/z");
    assert_eq!(equal(&tree), [""; 0]);
    let ignoring = DirsOptions {
        names: DirNames::Ignore,
        ..options()
    };
    let text = |tree: &TestTree| answer(tree.path(), &[""], &ignoring).texts();
    // That the inner ones are equal does not follow: their parents are not.
    assert_eq!(text(&tree), ["a b", "a/sub b/deep/down"]);
    // As often.
    tree.write("a/again", "1");
    assert_eq!(text(&tree), ["a/sub b/deep/down"]);
    let found = answer(tree.path(), &[""], &ignoring);
    assert_eq!(found.contained(), ["b = a"]);
    // A directory that holds nothing but a directory is no copy of it.
    let tree = TestTree::new();
    tree.write("a/b/c/f", "1").write("a/b/c/g", "2");
    assert_eq!(text(&tree), [""; 0]);
    tree.write("z/g", "1").write("z/f", "2");
    assert_eq!(text(&tree), ["a z"]);
}

#[test]
fn contained_directories_are_told_from_the_largest_down() {
    let tree = TestTree::new();
    tree.write("all/x/1", "1")
        .write("all/x/2", "2")
        .write("all/y/3", "3");
    tree.write("some/a/one", "1")
        .write("some/b/two", "2")
        .write("other", "4");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.contained(), ["some = all/x"]);
    tree.write("all/x/5", "5");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.contained(), ["some in all/x"]);
    // A link is a content as well, and has to be there.
    tree.symlink("there", "some/link");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.contained(), ["some/a in all/x", "some/b in all/x"]);
    tree.symlink("there", "all/y/other name");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.contained(), ["some in all"]);
}

#[test]
fn similar_directories_share_bytes() {
    let tree = TestTree::new();
    for n in 0..10 {
        let content = vec![b'a' + n; 1000];
        tree.write(format!("a/{n}"), &content);
        if n < 9 {
            tree.write(format!("b/sub/renamed {n}"), &content);
        }
    }
    tree.write("b/sub/else", vec![1; 1000]).write("alone", "x");
    let percent = |percent| {
        let options = DirsOptions {
            similar: Some(percent),
            ..options()
        };
        let found = answer(tree.path(), &[""], &options);
        let similar = found.found.similar.iter().map(|one| {
            let names = one
                .dirs
                .map(|dir| String::from_utf8(found.path(dir)).unwrap());
            format!("{} {} {} {}", names[0], names[1], one.shared, one.percent())
        });
        similar.collect::<Vec<_>>()
    };
    assert_eq!(percent(90), ["a b/sub 9000 90"]);
    assert_eq!(percent(91), [""; 0]);
}

#[test]
fn what_filters_leave_out_is_counted_and_not_compared() {
    let tree = TestTree::new();
    tree.write("one/f", "same")
        .write("one/f.o", "object")
        .write("one/.git/x", "1");
    tree.write("two/f", "same").write("two/f.o", "other");
    let mut walking = walking();
    walking.exclude = bc_walk::Globs::new(&[b"*.o".to_vec(), b".git".to_vec()]).unwrap();
    let listing = list(tree.path(), &[""], &walking);
    let scan = search(&listing, Algorithm::Xxh128);
    let found = made_of(tree.path(), listing, scan, &options());
    assert_eq!(found.texts(), ["one two"]);
    assert_eq!(found.found.groups[0].filtered, 3);
    // Nor files that lie too deep.
    let tree = TestTree::new();
    tree.write("one/f", "same")
        .write("one/d/x", "1")
        .write("two/f", "same")
        .dir("two/d");
    let walking = super::walking().max_depth(Some(2));
    let listing = list(tree.path(), &[""], &walking);
    let scan = search(&listing, Algorithm::Xxh128);
    let found = made_of(tree.path(), listing, scan, &options());
    assert_eq!(found.texts(), ["one two"]);
    assert_eq!(found.found.groups[0].filtered, 2);
}

#[test]
fn names_are_bytes() {
    let tree = TestTree::new();
    for copy in [&b"one"[..], b"\xff\xfe"] {
        let path = [copy, b"/\xf0\x28 \n/f"].concat();
        tree.write_bytes(&path, "same");
    }
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.groups(), [[b"one".to_vec(), b"\xff\xfe".to_vec()]]);
}

#[test]
fn digests_are_the_same_whatever_the_search_compared() {
    let tree = TestTree::new();
    for copy in ["one", "two"] {
        tree.write(format!("{copy}/f"), "same")
            .write(format!("{copy}/d/large"), vec![3; 70_000]);
    }
    let digest = |algorithm| {
        let options = DirsOptions {
            algorithm,
            ..options()
        };
        let found = answer(tree.path(), &[""], &options).found;
        found.groups[0].digest.unwrap().to_string()
    };
    let blake3 = digest(Algorithm::Blake3);
    assert_eq!(digest(Algorithm::Xxh128), blake3);
    assert_eq!(digest(Algorithm::Xxh3), blake3);
    assert_ne!(digest(Algorithm::Sha256), blake3);
    assert_eq!(
        (digest_algorithm(Algorithm::Xxh3), blake3.len()),
        (Algorithm::Blake3, 64)
    );
}

#[test]
fn many_and_deep_directories_are_as_any_others() {
    let tree = TestTree::new();
    for n in 0..800 {
        tree.write(format!("many/{n}/a"), "1")
            .write(format!("many/{n}/b"), "2");
    }
    let found = answer(tree.path(), &[""], &options());
    assert_eq!((found.groups().len(), found.groups()[0].len()), (1, 800));
    let tree = TestTree::new();
    for copy in ["one", "two"] {
        let path = format!("{copy}/{}", ["d"; 1200].join("/"));
        tree.write(format!("{path}/f"), "deep");
    }
    assert_eq!(equal(&tree), ["one two"]);
    let ignoring = DirsOptions {
        names: DirNames::Ignore,
        similar: Some(50),
        ..options()
    };
    assert_eq!(answer(tree.path(), &[""], &ignoring).texts(), ["one two"]);
}
