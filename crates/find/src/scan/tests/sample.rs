//! Files that are nearly all equal to others, or nearly none, so that the sample decides one way or
//! the other: the result stays the same, and the number of opened files follows.

use super::*;
use bc_walk::EntryId;

/// `count` files of one length, `copies` of each content; far apart.
fn of_one_size(count: usize, len: usize, copies: usize) -> TestTree {
    let tree = TestTree::new();
    for i in 0..count {
        let mut content = vec![b'x'; len];
        content[..4].copy_from_slice(&((i % (count / copies)) as u32).to_le_bytes());
        tree.write(format!("{}/{i}", i % 7), content);
    }
    tree
}

/// Searches with each algorithm; returns the most files that were read in vain: files read again.
fn search_all(tree: &TestTree, groups: usize, members: usize) -> u64 {
    let listing = list(tree.path());
    let twice = (1..).zip(ALGORITHMS).map(|(workers, algorithm)| {
        let options = ScanOptions {
            algorithm,
            workers,
            ..ScanOptions::default()
        };
        let scan = search(&listing, &options);
        assert!(scan.errors.is_empty(), "{:?}", scan.errors);
        let lens: Vec<usize> = scan.groups().map(|group| group.files().len()).collect();
        assert_eq!(lens, vec![members; groups], "{algorithm}");
        for group in scan.groups() {
            let head = |file: File<'_>| head(&path(&listing, file.names[0]));
            let mut heads = group.files().map(head);
            let first = heads.next();
            assert!(heads.all(|other| Some(other) == first), "{algorithm}");
        }
        assert_eq!(scan.stats.fast_hashed, scan.stats.size_candidates);
        scan.stats.full_hashed
    });
    twice.max().unwrap()
}

/// By which contents differ.
fn head(path: &Path) -> [u8; 4] {
    use std::io::Read;
    let mut head = [0; 4];
    fs::File::open(path).unwrap().read_exact(&mut head).unwrap();
    head
}

fn path(listing: &Listing, entry: EntryId) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(listing.path(entry)))
}

#[test]
fn what_is_mostly_equal_is_opened_once_where_the_first_read_is_all_of_it() {
    for (count, len) in [(60, 100), (600, 100), (600, 3000)] {
        let tree = of_one_size(count, len, 3);
        assert_eq!(search_all(&tree, count / 3, 3), 0, "{count} of {len} bytes");
    }
    // All of the sample is read again.
    let tree = of_one_size(300, 20_000, 3);
    let twice = search_all(&tree, 100, 3);
    assert!((1..=300).contains(&twice), "{twice}");
}

/// Some of the few equal ones are in the sample, and were read another way than the rest.
#[test]
fn few_equal_ones_are_found_beside_the_sample() {
    for len in [100, 3000, 20_000] {
        let tree = of_one_size(600, len, 1);
        for i in 0..20 {
            let content = tree.read(format!("{}/{}", (i * 30) % 7, i * 30));
            tree.write(format!("copies/{i}"), content);
        }
        let twice = search_all(&tree, 20, 2);
        assert!(twice <= 40, "{twice} of {len} bytes");
    }
}

/// A content that is there many times does not make its size one of equal files.
#[test]
fn one_content_that_is_everywhere_says_nothing_of_others() {
    let tree = of_one_size(1000, 3000, 1);
    for i in 0..100 {
        tree.write(format!("same/{i}"), [b'y'; 3000]);
    }
    let twice = search_all(&tree, 1, 100);
    assert!(twice <= 100, "{twice}");
}
