//! Bitrot: a byte flipped below the file system, and changes that only look like it.

use std::os::unix::fs::{FileExt, MetadataExt};

use bc_integrity::Conclusion;
use bc_integrity::change::Class;
use bc_testkit::TestTree;

use crate::support::{
    How, an_update, diffed, manifest_of, record, resealed, rot, updated, verified,
};

/// No test can change a file's content without its ctime; a manifest that says
/// the ctime is the present one looks just the same to verify.
fn forget_the_write(manifest: &[u8], path: &str, ctime_ns: i64) -> Vec<u8> {
    resealed(manifest, |lines| {
        let line = lines
            .iter_mut()
            .find(|l| l.contains(&format!("\"path\":\"{path}\"")))
            .unwrap();
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        entry["ctime_ns"] = ctime_ns.into();
        *line = entry.to_string();
    })
}

#[test]
fn a_flipped_byte_behind_unchanged_times_is_bitrot() {
    let tree = TestTree::new();
    let mut content = vec![7; 300_000];
    tree.write("good", &content)
        .write("rotten", &content)
        .write("small", "x");
    let manifest = record(&tree);
    content[200_000] ^= 1;
    rot(&tree, "rotten", 200_000, content[200_000]);
    let meta = tree.join("rotten").metadata().unwrap();
    let ctime = meta.ctime() * 1_000_000_000 + meta.ctime_nsec();
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, forget_the_write(&bytes, "rotten", ctime)).unwrap();
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "!! rotten: ctime unchanged, points to bitrot\n");
    assert_eq!(summary.conclusion(), Conclusion::Damaged);
    assert_eq!(summary.count(Class::Ok), 3);
}

#[test]
fn damage_outranks_whatever_else_differs() {
    let tree = TestTree::new();
    tree.write("a", "1").write("b", "2").write("c", "3");
    let manifest = record(&tree);
    tree.remove("a").write("d", "4");
    rot(&tree, "b", 0, b'X');
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert!(text.contains("!! b: ctime changed"), "{text}");
    assert!(text.contains("- a\n") && text.contains("+ d\n"), "{text}");
    assert_eq!(summary.conclusion(), Conclusion::Damaged);
}

const POSSIBLY: &str = "possibly moved and damaged; nothing tells the recorded file from a new one \
                        with its inode number, size and mtime";

/// Further changes of a file whose content differs are reported with it.
#[test]
fn other_metadata_is_told_beside_the_content() {
    let mode = " mode: 0644 -> 4755";
    let rewritten = "ctime changed, probably a rewrite with its mtime reset";
    let rename = |tree: &TestTree, from: &str, to: &str| {
        std::fs::rename(tree.join(from), tree.join(to)).unwrap();
    };
    type Change<'a> = (&'a dyn Fn(&TestTree), String);
    let changes: [Change<'_>; 5] = [
        (
            &|tree| {
                rot(tree, "file", 0, b'X');
                tree.mode("file", 0o4755);
            },
            format!("!! file: {rewritten};{mode}\n"),
        ),
        (
            &|tree| {
                tree.write("file", "edited")
                    .mtime("file", 5, 5)
                    .mode("file", 0o4755);
            },
            format!("~c file{mode}\n"),
        ),
        (
            &|tree| {
                rename(tree, "file", "moved");
                tree.mode("moved", 0o4755);
            },
            format!("> file -> moved{mode}\n"),
        ),
        (
            &|tree| {
                rename(tree, "file", "moved");
                rot(tree, "moved", 0, b'X');
                tree.mode("moved", 0o4755);
            },
            format!("> file -> moved{mode}\n!! moved: {rewritten}\n"),
        ),
        (
            &|tree| {
                rename(tree, "file", "other");
                rot(tree, "other", 0, b'X');
                tree.mode("other", 0o4755);
            },
            format!("!! other: {rewritten}: renamed from file;{mode}\n"),
        ),
    ];
    for (change, expected) in changes {
        let tree = TestTree::new();
        tree.write("file", "content").mode("file", 0o644);
        if expected.contains("other") {
            tree.write("other", "something else");
        }
        let manifest = record(&tree);
        let before = std::fs::read(&manifest).unwrap();
        change(&tree);
        let dir_time = |text: &str| -> String {
            let lines = text.split_inclusive('\n');
            lines
                .filter(|line| !line.starts_with("~m . ") && *line != "- file\n")
                .collect()
        };
        let (text, _) = verified(tree.path(), &manifest, How::default());
        assert_eq!(dir_time(&text), expected);
        let now = manifest_of(tree.path());
        let (text, _) = diffed(&before, &now, Default::default()).unwrap();
        // Two manifests have no time of birth, which a new name needs for a verdict.
        let offline = match &expected[..] {
            text if text.contains("!! moved") => {
                format!("~c file -> moved: {POSSIBLY};{mode}\n")
            }
            text if text.contains("!! other") => {
                format!("~c other: renamed from file: {POSSIBLY};{mode}\n")
            }
            text => text.to_owned(),
        };
        assert_eq!(dir_time(&text), offline);
        // Nothing is recorded that was not reported.
        let (text, _) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
        assert_eq!(dir_time(&text), expected);
    }
}

#[test]
fn between_manifests_as_well() {
    let tree = TestTree::new();
    tree.write("a", "1");
    let old = manifest_of(tree.path());
    rot(&tree, "a", 0, b'X');
    let (text, summary) = diffed(&old, &manifest_of(tree.path()), Default::default()).unwrap();
    assert_eq!(
        text,
        "!! a: ctime changed, probably a rewrite with its mtime reset\n"
    );
    assert_eq!(summary.conclusion(), Conclusion::Damaged);
}

#[test]
fn a_hole_filled_in_place_is_damage_too() {
    let tree = TestTree::new();
    tree.write("sparse", "");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(tree.join("sparse"))
        .unwrap();
    file.set_len(5 << 20).unwrap();
    let manifest = record(&tree);
    let mtime = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"!", 3 << 20).unwrap();
    file.set_modified(mtime).unwrap();
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert!(text.starts_with("!! sparse"), "{text}");
}
