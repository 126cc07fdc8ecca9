//! Roots that are named twice, lie in each other, or are files.

use super::*;

fn tree() -> TestTree {
    let tree = TestTree::new();
    for copy in ["d/one", "d/sub/two"] {
        tree.write(format!("{copy}/x/f"), "same")
            .write(format!("{copy}/g"), "more");
    }
    tree
}

#[test]
fn one_directory_is_told_once() {
    let tree = tree();
    for roots in [
        &["d"][..],
        &["d", "d"],
        &["d", "./d", "d/../d"],
        &["", "d"],
        &["d", "d/one"],
        &["d/one", "d", "d/sub"],
        &["d/one/x", "d/one/x/f", "d", "d/one/g"],
        &["d/sub/two", "d/one"],
    ] {
        let found = answer(tree.path(), roots, &options());
        let groups = found.groups();
        assert_eq!(
            (groups.len(), groups[0].len()),
            (1, 2),
            "{roots:?}: {:?}",
            found.texts()
        );
        assert!(groups[0][0].ends_with(b"one"), "{roots:?}");
        assert!(found.files().is_empty(), "{roots:?}: {:?}", found.files());
        assert_eq!(found.found.not_comparable, 0, "{roots:?}");
    }
}

#[test]
fn what_lies_in_another_root_belongs_to_its_directory() {
    // Without the entry that is named by itself as well, `one` and `two` would be equal.
    for extra in ["one/h", "one/deep/h"] {
        let tree = TestTree::new();
        tree.write("one/f", "same")
            .write("two/f", "same")
            .write(extra, "h");
        let root = if extra == "one/h" { extra } else { "one/deep" };
        for roots in [["", root], [root, ""]] {
            let found = answer(tree.path(), &roots, &options());
            assert_eq!(found.texts(), [""; 0], "{roots:?}");
        }
    }
}

#[test]
fn a_file_that_is_named_has_one_name() {
    let tree = TestTree::new();
    tree.write("d/f", "same")
        .write("e/g", "same")
        .write("e/x", "x");
    let found = answer(tree.path(), &["d/f", "d", "e"], &options());
    assert_eq!(found.files(), [[b"d/f".to_vec(), b"e/g".to_vec()]]);
    let found = answer(tree.path(), &["d/f", "e"], &options());
    assert_eq!(found.files(), [[b"d/f".to_vec(), b"e/g".to_vec()]]);
}

#[test]
fn hard_links_between_roots_are_equal_and_free_nothing() {
    let tree = TestTree::new();
    tree.write("a/f", "f").write("a/g", "g").dir("b");
    tree.hard_link("a/f", "b/f").hard_link("a/g", "b/g");
    let found = answer(tree.path(), &["a", "b"], &options());
    assert_eq!(found.texts(), ["a b"]);
    assert_eq!(found.found.groups[0].wasted, 0);
}
