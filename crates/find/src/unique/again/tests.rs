//! Changes between the search and its last look.

use super::*;
use crate::subtrees::Subtrees;
use crate::unique::{Sides, UniqueOptions, unique};
use bc_hash::HashProgress;
use bc_pool::Cancel;
use bc_testkit::TestTree;
use bc_walk::{Entries, Metadata, Symlinks, WalkOptions, walk};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

fn listing(t: &TestTree, names: &[&str]) -> Listing {
    let options = WalkOptions::default()
        .metadata(Metadata::Basic)
        .entries(Entries::All)
        .symlinks(Symlinks::Follow);
    let roots: Vec<_> = names
        .iter()
        .map(|name| t.join(name).into_os_string())
        .collect();
    walk(&roots, &options, 1, &Cancel::new()).unwrap()
}

/// Asks, changes something, and looks again: returns the messages, and true if all is elsewhere.
fn after(change: impl FnOnce(&TestTree)) -> (Vec<String>, bool) {
    let t = TestTree::new();
    t.write("card/a", "a photo").write("card/sub/b", "another");
    t.write("ref/a", "a photo").write("ref/b", "another");
    asked(&t, &["ref"], change)
}

fn asked(t: &TestTree, references: &[&str], change: impl FnOnce(&TestTree)) -> (Vec<String>, bool) {
    let path = |name: &str| OsString::into_vec(t.join(name).into_os_string());
    let sides = Sides {
        paths: listing(t, &["card"]),
        path_roots: 1,
        own: Subtrees::open([path("card")]).unwrap(),
        references: listing(t, references),
        reference_roots: &[0][..references.len()],
        manifests: &mut [],
        manifest_numbers: &[],
    };
    let (progress, hashed) = (Default::default(), HashProgress::default());
    let options = UniqueOptions::new();
    let found = unique(sides, &options, &Cancel::new(), &progress, &hashed);
    let mut found = found.unwrap();
    assert!(found.errors.is_empty() && found.nowhere().next().is_none());
    change(t);
    found.look_again(&listing(t, &["card"]), 2).unwrap();
    let own = t.path().as_os_str().len() + 1;
    let reported = found.errors.iter();
    let reported = reported.map(|error| error.to_string()[own..].to_owned());
    let known = |presence| matches!(presence, Presence::Directory { .. } | Presence::Another);
    let all = found.contents().all(|content| known(content.presence));
    (reported.collect(), all)
}

#[test]
fn what_changes_meanwhile_is_noticed() {
    assert_eq!(after(|_| ()), (vec![], true));
    for name in ["card/sub/b", "ref/a"] {
        let (reported, all) = after(|t| {
            t.write(name, "another!");
        });
        let is_it = reported[0].starts_with(&format!("{name}: "));
        assert!(is_it && reported.len() == 1 && !all, "{reported:?}");
    }
    let (reported, all) = after(|t| {
        t.remove("ref/b");
    });
    assert!(reported[0].starts_with("ref/b: ") && !all, "{reported:?}");
    let (reported, _) = after(|t| {
        t.write("card/a0", "new").write("card/z/z", "new");
    });
    let came = "search: came to be there meanwhile";
    let all = ["card/a0", "card/z/z"].map(|name| format!("{name}: {came}"));
    assert_eq!(reported, all);
    let (reported, _) = after(|t| std::fs::rename(t.join("card/a"), t.join("card/c")).unwrap());
    assert_eq!(reported, [format!("card/c: {came}")]);
}

#[test]
fn without_references_each_copy_has_to_stay() {
    let tree = || {
        let t = TestTree::new();
        t.write("card/a", "a photo").write("card/sub/b", "a photo");
        t.write("card/empty", "");
        t
    };
    assert_eq!(asked(&tree(), &[], |_| ()), (vec![], true));
    for name in ["card/a", "card/sub/b"] {
        let (reported, all) = asked(&tree(), &[], |t| {
            t.remove(name);
        });
        let is_it = reported[0].starts_with(&format!("{name}: "));
        assert!(is_it && reported.len() == 1 && !all, "{reported:?}");
    }
    let (reported, _) = asked(&tree(), &[], |t| {
        t.write("card/empty", "no more");
    });
    assert!(
        reported[0].starts_with("card/empty: ") && reported.len() == 1,
        "{reported:?}"
    );
}

#[test]
fn what_a_link_leads_to_is_looked_at() {
    let tree = || {
        let t = TestTree::new();
        t.write("card/a", "a photo").write("elsewhere", "a photo");
        t.dir("ref").symlink("../elsewhere", "ref/a");
        t
    };
    assert_eq!(asked(&tree(), &["ref"], |_| ()), (vec![], true));
    let (reported, all) = asked(&tree(), &["ref"], |t| {
        t.write("elsewhere", "a photo!");
    });
    assert!(
        reported[0].starts_with("ref/a: ") && reported.len() == 1 && !all,
        "{reported:?}"
    );
}

#[test]
fn another_tree_in_its_place_is_noticed() {
    for swapped in ["card", "card/sub"] {
        let (reported, _) = after(|t| {
            t.write("other/a", "b").write("other/sub/b", "a");
            let [here, there, aside] =
                [swapped, &swapped.replace("card", "other"), "aside"].map(|name| t.join(name));
            std::fs::rename(&here, aside).unwrap();
            std::fs::rename(there, here).unwrap();
        });
        assert!(!reported.is_empty(), "{swapped}");
        assert!(
            reported.iter().all(|one| one.starts_with(swapped)),
            "{reported:?}"
        );
    }
}
