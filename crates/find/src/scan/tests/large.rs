//! Files that are read in stages, and groups of several roots.

use super::*;
use std::os::unix::ffi::OsStringExt;

/// A sparse file with some bytes set.
fn sparse(tree: &TestTree, name: &str, size: u64, set: &[(u64, u8)]) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(tree.join(name)).unwrap();
    file.set_len(size).unwrap();
    for (at, byte) in set {
        file.write_all_at(&[*byte], *at).unwrap();
    }
}

#[test]
fn large_files_stop_where_they_part() {
    const MIB: u64 = 1 << 20;
    let tree = TestTree::new();
    let size = 70 * MIB + 11;
    sparse(&tree, "early-1", size, &[(5000, 1)]);
    sparse(&tree, "early-2", size, &[(5000, 2)]);
    sparse(&tree, "late-1", size, &[(60 * MIB, 1)]);
    sparse(&tree, "late-2", size, &[(60 * MIB, 2)]);
    sparse(&tree, "late-3", size, &[(60 * MIB, 1)]);
    sparse(&tree, "zero-1", size, &[]);
    sparse(&tree, "zero-2", size, &[]);
    for algorithm in ALGORITHMS {
        for workers in [1, 2] {
            let options = ScanOptions {
                algorithm,
                workers,
                ..ScanOptions::default()
            };
            let listing = list(tree.path());
            let scan = search(&listing, &options);
            assert!(scan.errors.is_empty(), "{algorithm}: {:?}", scan.errors);
            let names = paths(&listing, &scan, &options);
            let expected = [["late-1", "late-3"], ["zero-1", "zero-2"]];
            assert_eq!(
                names,
                expected.map(|group| group.map(|name| name.as_bytes().to_vec()))
            );
            for group in scan.groups() {
                let first = group.files().next().unwrap();
                let path = OsString::from_vec(listing.path(first.names[0]));
                let content = fs::read(path).unwrap();
                assert_eq!(
                    group.digest,
                    bc_digest::hash(algorithm, &content),
                    "{algorithm}"
                );
            }
            if prefix_stages::is_streaming(algorithm) {
                // The early ones were given up after a mebibyte.
                assert!(
                    scan.stats.bytes_read < 5 * size + 20 * MIB,
                    "{algorithm}: {:?}",
                    scan.stats
                );
            }
        }
    }
}

#[test]
fn roots_and_references() {
    let one = TestTree::new();
    let two = TestTree::new();
    one.write("x", "shared")
        .write("y", "only here")
        .write("z", "only here");
    two.write("x", "shared");
    let listing = list_roots(&[one.path(), two.path()]);
    let all = search(&listing, &ScanOptions::default());
    assert_eq!(all.groups().len(), 2);
    let across = ScanOptions {
        span: Span::AcrossRoots,
        ..ScanOptions::default()
    };
    let scan = search(&listing, &across);
    assert_eq!(
        paths(&listing, &scan, &across),
        [[b"x".to_vec(), b"x".to_vec()]]
    );

    // Reference files come first; a group needs at least one other file.
    let references = |tree: &TestTree| {
        let path = tree.path().as_os_str().as_encoded_bytes().to_vec();
        let mut references = Subtrees::open([path]).unwrap();
        references
            .survey(
                bc_walk::Symlinks::Skip,
                crate::Files::Named,
                1.into(),
                &Cancel::new(),
            )
            .unwrap();
        Arc::new(references)
    };
    let second = ScanOptions {
        references: references(&two),
        ..ScanOptions::default()
    };
    let scan = search(&listing, &second);
    let shared = scan.groups().find(|group| group.size == 6).unwrap();
    let first = shared.files().next().unwrap().names[0];
    assert_eq!(listing.root(first), 1);
    let first_only = ScanOptions {
        references: references(&one),
        ..ScanOptions::default()
    };
    assert_eq!(search(&listing, &first_only).groups().len(), 1);
}

#[test]
fn waste_is_what_would_really_be_freed() {
    let tree = TestTree::new();
    let content = vec![3; 50_000];
    tree.write("a/1", &content)
        .write("a/2", &content)
        .write("a/3", &content);
    let listing = list(&tree.join("a"));
    let scan = search(&listing, &ScanOptions::default());
    let group = scan.groups().next().unwrap();
    let own = group.files().next().unwrap().own;
    assert!(own >= 50_000);
    assert_eq!((group.wasted, scan.wasted()), (2 * own, 2 * own));
    assert_eq!(scan.duplicates(), 2);

    // A name outside: giving this one up would free nothing.
    tree.hard_link("a/1", "outside");
    let listing = list(&tree.join("a"));
    let scan = search(&listing, &ScanOptions::default());
    assert_eq!(
        scan.wasted(),
        2 * own,
        "the one with a name outside is kept"
    );
    tree.hard_link("a/2", "outside2");
    let listing = list(&tree.join("a"));
    assert_eq!(search(&listing, &ScanOptions::default()).wasted(), own);

    // A hole takes no space.
    let file = fs::File::create(tree.join("a/4")).unwrap();
    file.set_len(200_000).unwrap();
    let file = fs::File::create(tree.join("a/5")).unwrap();
    file.set_len(200_000).unwrap();
    let listing = list(&tree.join("a"));
    let scan = search(&listing, &ScanOptions::default());
    let holes = scan.groups().find(|group| group.size == 200_000).unwrap();
    assert_eq!(holes.wasted, 0);
}

/// The total work that a display shows equals the work done in the end, although files drop out of
/// it: a large one that differs early is not read to its end.
#[test]
fn planned_bytes_become_the_bytes_read() {
    use std::os::unix::fs::FileExt;
    let t = TestTree::new();
    for (name, differs_at) in [("a", 0), ("b", 0), ("c", 0), ("d", 9 << 20), ("e", 100)] {
        let file = std::fs::File::create(t.join(name)).unwrap();
        file.set_len(20 << 20).unwrap();
        if differs_at > 0 {
            file.write_all_at(b"other", differs_at).unwrap();
        }
    }
    t.write("small1", [1; 5000]).write("small2", [1; 5000]);
    t.write("medium1", vec![2; 300_000])
        .write("medium2", vec![2; 300_000]);
    let listing = list(t.path());
    for algorithm in [Algorithm::Xxh128, Algorithm::Blake3, Algorithm::Sha256] {
        let options = ScanOptions {
            algorithm,
            ..ScanOptions::default()
        };
        let progress = ScanProgress::default();
        scan(&listing, &options, None, &Cancel::new(), &progress).unwrap();
        let planned = progress.planned_bytes.load(Relaxed);
        let read = progress.bytes.load(Relaxed);
        assert_eq!(planned, read, "{algorithm}");
        assert!(read > 60 << 20, "{algorithm}: {read}");
    }
}
