//! Bounds of the searches for contained and similar directories, and the reports where they end.

use super::*;

fn limited(places: usize, candidates: usize, similar: Option<u8>) -> DirsOptions {
    DirsOptions {
        limits: Limits { places, candidates },
        similar,
        ..options()
    }
}

/// `few` is in `all`, whose contents are in ten other directories as well, one by one.
fn tree() -> TestTree {
    let tree = TestTree::new();
    for n in 0..10 {
        tree.write(format!("others/{n}/f"), "f")
            .write(format!("others/{n}/own"), n.to_string());
    }
    tree.write("few/a", "f").write("few/b", "other");
    tree.write("z/all/c", "f")
        .write("z/all/d", "other")
        .write("z/all/e", "more");
    for n in 0..10 {
        tree.write(format!("others/{n}/g"), "other");
    }
    tree
}

#[test]
fn contents_in_too_many_places_lead_nowhere() {
    let tree = tree();
    let found = answer(tree.path(), &[""], &limited(1000, 50, None));
    assert_eq!(found.contained(), ["few in others/0"]);
    assert_eq!((found.found.too_common, found.found.ended), (0, 0));
    let found = answer(tree.path(), &[""], &limited(12, 50, None));
    assert_eq!(found.found.too_common, 0);
    let found = answer(tree.path(), &[""], &limited(11, 50, None));
    assert_eq!((found.contained().len(), found.found.too_common), (0, 1));
    let found = answer(tree.path(), &[""], &limited(11, 50, Some(80)));
    assert!(found.found.similar.is_empty() && found.found.too_common > 1);
}

#[test]
fn no_more_than_so_many_candidates_are_tried() {
    let tree = tree();
    let found = answer(tree.path(), &[""], &limited(1000, 11, None));
    assert_eq!((found.contained().len(), found.found.ended), (1, 0));
    // Those that are tried do not have it.
    for n in 0..10 {
        tree.remove(format!("others/{n}/g"));
    }
    tree.write("z/g", "other");
    for n in 0..8 {
        tree.write(format!("y/{n}/x"), "other")
            .write(format!("y/{n}/own"), format!("y{n}"));
    }
    let found = answer(tree.path(), &[""], &limited(1000, 50, None));
    assert_eq!((found.contained().len(), found.found.ended), (1, 0));
    let found = answer(tree.path(), &[""], &limited(1000, 3, None));
    assert_eq!((found.contained().len(), found.found.ended), (0, 1));
    assert_eq!(found.found.too_common, 0);
}
