//! Unknown contents are not compared, and are reported.

use bc_testkit::{is_root, left_out};

use super::*;

fn pair() -> TestTree {
    let tree = TestTree::new();
    for copy in ["top/one", "top/two"] {
        tree.write(format!("{copy}/f"), "same")
            .write(format!("{copy}/d/g"), "more");
    }
    tree
}

/// Paths of the directories that have an obstacle themselves.
fn obstacles(found: &Answer) -> Vec<(String, Obstacle)> {
    let text = |dir| String::from_utf8(found.path(dir)).unwrap();
    let all = found.found.obstacles.iter();
    all.map(|(dir, why)| (text(*dir), *why)).collect()
}

#[test]
fn a_fifo_cannot_be_compared() {
    let tree = pair();
    tree.fifo("top/one/d/p").fifo("top/two/d/p");
    let found = answer(tree.path(), &[""], &options());
    assert_eq!(found.texts(), [""; 0]);
    let special = |dir: &str| (dir.to_owned(), Obstacle::Special);
    assert_eq!(
        obstacles(&found),
        [special("top/one/d"), special("top/two/d")]
    );
    // Both, the directories that they are in, and the root.
    assert_eq!(found.found.not_comparable, 6);
    assert_eq!(found.files().len(), 2);
}

#[test]
fn what_cannot_be_read_is_not_equal() {
    if is_root() {
        return left_out("root reads everything");
    }
    for (what, mode) in [("top/two/d", 0), ("top/two/d", 0o400), ("top/two/f", 0)] {
        let tree = pair();
        tree.mode(what, mode);
        let found = answer(tree.path(), &[""], &options());
        assert!(
            !found.texts().contains(&"top/one top/two".to_owned()),
            "{what} {mode:o}"
        );
        assert!(found.found.not_comparable >= 2, "{what} {mode:o}");
    }
}

#[test]
fn a_directory_that_changes_after_it_was_listed_is_not_equal() {
    type Change = fn(&TestTree);
    let changes: [Change; 5] = [
        |t| {
            t.write("top/two/d/new", "");
        },
        |t| {
            t.remove("top/two/d/g");
        },
        |t| {
            t.dir("top/two/new");
        },
        |t| {
            t.remove("top/two");
        },
        |t| {
            std::fs::rename(t.join("top/two/d"), t.join("top/two/e")).unwrap();
        },
    ];
    for (nth, change) in changes.iter().enumerate() {
        let tree = pair();
        let listing = list(tree.path(), &[""], &walking());
        let scan = search(&listing, Algorithm::Xxh128);
        change(&tree);
        let found = made_of(tree.path(), listing, scan, &options());
        assert!(
            !found.texts().contains(&"top/one top/two".to_owned()),
            "change {nth}"
        );
        let changed = |(_, why): &(String, Obstacle)| *why == Obstacle::Changed;
        assert!(obstacles(&found).iter().any(changed), "change {nth}");
        assert!(!found.found.errors.is_empty(), "change {nth}");
    }
}

#[test]
fn a_file_that_changes_is_in_no_equal_directory() {
    // Before it is compared, and before its digest is made.
    for is_late in [false, true] {
        let tree = pair();
        let listing = list(tree.path(), &[""], &walking());
        let write = || {
            tree.write("top/one/f", "size").mtime("top/one/f", 5, 5);
        };
        if !is_late {
            write();
        }
        let scan = search(&listing, Algorithm::Xxh128);
        if is_late {
            write();
        }
        let found = made_of(tree.path(), listing, scan, &options());
        assert_eq!(found.texts(), ["top/one/d top/two/d"], "{is_late}");
        assert_eq!(
            obstacles(&found),
            [("top/one".to_owned(), Obstacle::Unreadable)]
        );
    }
}

#[test]
fn followed_links_to_what_is_listed_elsewhere_are_not_followed_twice() {
    let tree = pair();
    tree.symlink("../two/d", "top/one/link")
        .symlink("..", "top/one/up");
    let walking = walking().symlinks(bc_walk::Symlinks::Follow);
    let listing = list(tree.path(), &[""], &walking);
    let scan = search(&listing, Algorithm::Xxh128);
    let found = made_of(tree.path(), listing, scan, &options());
    assert_eq!(found.texts(), ["top/one/d top/two/d"]);
    assert_eq!(
        obstacles(&found),
        [("top/one".to_owned(), Obstacle::Elsewhere)]
    );
}
