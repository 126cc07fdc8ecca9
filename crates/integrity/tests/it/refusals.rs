//! Refusals: states that must not be taken for a mass deletion, and others.

use bc_integrity::RootCheck;
use bc_integrity::fields::{CompareMode, CompareRules};
use bc_integrity::report::ChangeFormat;
use bc_testkit::TestTree;
use bc_walk::job::ErrorKind;

use crate::support::{
    How, an_update, diffed, manifest_of, mode, record, resealed, updated, verified, verify_with,
};

#[test]
fn a_missing_root() {
    let tree = TestTree::new();
    tree.write("a", "1");
    let manifest = record(&tree);
    let (text, result) = verify_with(
        &tree.scratch("nowhere"),
        &manifest,
        How::default(),
        ChangeFormat::Text,
    );
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("No such file"), "{error}");
    assert_eq!(text, "");
}

#[test]
fn an_empty_mount_point() {
    let tree = TestTree::new();
    tree.write("a", "1").write("b/c", "2");
    let manifest = record(&tree);
    tree.remove("a").remove("b");
    for mode_of in [CompareMode::Strict, CompareMode::Content, CompareMode::Meta] {
        let (text, result) = verify_with(tree.path(), &manifest, mode(mode_of), ChangeFormat::Text);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(text, "");
    }
    let before = std::fs::read(&manifest).unwrap();
    let error = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(std::fs::read(&manifest).unwrap(), before);
    let how = How {
        root_check: RootCheck::Forced,
        ..mode(CompareMode::Content)
    };
    let (text, _) = verified(tree.path(), &manifest, how);
    assert_eq!(text, "- a\n- b\n- b/c\n");
}

#[test]
fn an_empty_tree_that_always_was() {
    let tree = TestTree::new();
    let manifest = record(&tree);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

/// Pretends that the manifest was made on another device.
fn elsewhere(manifest: &std::path::Path) {
    let bytes = std::fs::read(manifest).unwrap();
    let moved = resealed(&bytes, |lines| {
        let mut header: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        header["root_dev"] = 0xffff_ffff_u64.into();
        lines[0] = header.to_string();
    });
    std::fs::write(manifest, moved).unwrap();
}

#[test]
fn another_device_where_nothing_matches() {
    let tree = TestTree::new();
    tree.write("a", "1").write("lost+found/x", "2");
    let manifest = record(&tree);
    elsewhere(&manifest);
    tree.remove("a")
        .remove("lost+found/x")
        .write("foreign", "3")
        .write("a", "another");
    let (text, result) = verify_with(tree.path(), &manifest, How::default(), ChangeFormat::Text);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(text, "", "nothing is reported before the root is trusted");
    let error = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let how = How {
        root_check: RootCheck::Forced,
        ..mode(CompareMode::Content)
    };
    let (text, _) = verified(tree.path(), &manifest, how);
    assert_eq!(text, "~c a\n+ foreign\n- lost+found/x\n");
}

#[test]
fn another_device_where_something_matches() {
    let tree = TestTree::new();
    tree.write("a", "1").write("b", "2").write("c", "3");
    let manifest = record(&tree);
    elsewhere(&manifest);
    tree.remove("a");
    let (text, _) = verified(tree.path(), &manifest, mode(CompareMode::Content));
    assert_eq!(text, "- a\n");
    // Moved as a whole: found again by content.
    tree.dir("below");
    for name in ["b", "c"] {
        std::fs::rename(tree.join(name), tree.join("below").join(name)).unwrap();
    }
    let (text, _) = verified(tree.path(), &manifest, mode(CompareMode::Content));
    assert_eq!(text, "- a\n> b -> below/b\n+ below\n> c -> below/c\n");
}

#[test]
fn digests_of_different_algorithms() {
    let tree = TestTree::new();
    tree.write("a", "1");
    let old = manifest_of(tree.path());
    let new = crate::support::create_with(
        tree.path(),
        Default::default(),
        bc_digest::Algorithm::Blake3,
        1,
    )
    .0;
    let error = diffed(&old, &new, CompareRules::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().contains("blake3") && error.to_string().contains("sha256"),
        "{error}"
    );
    let ignore = "digest,ctime".parse().unwrap();
    let (text, _) = diffed(&old, &new, CompareRules::new(CompareMode::Strict, ignore)).unwrap();
    assert_eq!(text, "");
}

#[test]
fn a_manifest_inside_the_tree_is_no_difference() {
    let tree = TestTree::new();
    tree.write("a", "1").write("sub/b", "2");
    std::fs::write(tree.join("sub/m.jsonl"), manifest_of(tree.path())).unwrap();
    let (text, _) = verified(tree.path(), &tree.join("sub/m.jsonl"), How::default());
    assert_eq!(text, "");
    tree.write("sub/c", "3");
    let (text, _) = verified(tree.path(), &tree.join("sub/m.jsonl"), How::default());
    assert_eq!(text, "+ sub/c\n");
}

#[test]
fn a_directory_for_a_manifest() {
    let tree = TestTree::new();
    let (_, result) = verify_with(tree.path(), tree.path(), How::default(), ChangeFormat::Text);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Io);
}
