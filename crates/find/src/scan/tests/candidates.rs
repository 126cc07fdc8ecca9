//! Grouping by size against maps, and by content on one worker and on several.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};

use bc_walk::{EntryId, Identity};

use super::*;

/// Groups of files of names, largest size first.
type Groups = Vec<Vec<Vec<EntryId>>>;

fn found(listing: &Listing, options: &ScanOptions) -> (Groups, ScanStats) {
    let mut stats = ScanStats::default();
    let candidates = Candidates::find(listing, &Marks::default(), options, &mut stats);
    let names = |one| candidates.names(one).to_vec();
    let groups = candidates
        .groups()
        .map(|group| {
            let mut files: Vec<_> = group.map(names).collect();
            files.sort();
            files
        })
        .collect();
    (groups, stats)
}

fn expected(listing: &Listing, options: &ScanOptions) -> (Groups, u64) {
    let mut sizes: BTreeMap<Reverse<u64>, BTreeMap<Identity, Vec<EntryId>>> = BTreeMap::new();
    for entry in listing.ids() {
        let meta = listing.meta(entry).unwrap();
        let files = sizes.entry(Reverse(meta.stamp.size)).or_default();
        files.entry(meta.id).or_default().push(entry);
    }
    let bytes = sizes
        .iter()
        .map(|(size, files)| size.0 * files.len() as u64)
        .sum();
    let enough = |files: &BTreeMap<_, Vec<_>>| match options.hard_links {
        HardLinks::OneFile => files.len() > 1,
        HardLinks::Duplicates => files.values().map(Vec::len).sum::<usize>() > 1,
    };
    let groups = sizes
        .into_values()
        .filter(enough)
        .map(|files| {
            let mut files: Vec<_> = files.into_values().collect();
            files.sort();
            files
        })
        .collect();
    (groups, bytes)
}

#[test]
fn sizes_and_links_as_by_maps() {
    const GIB: u64 = 1 << 30;
    let tree = TestTree::new();
    let root = tree.path();
    // Sparse; around 4 GiB a size no longer fits in half a number.
    let sizes = [1, 2, 3, 4 * GIB - 2, 4 * GIB - 1, 4 * GIB, 5 * GIB, 9 * GIB];
    for (at, size) in sizes.into_iter().enumerate() {
        // Many of size 3, one of size 2, few of the others.
        let count = [3, 1, 80].get(at).copied().unwrap_or(3);
        for one in 0..count {
            let path = root.join(format!("{one}-{at}"));
            File::create(&path).unwrap().set_len(size).unwrap();
            if one % 3 == 0 {
                for place in ["+", "~"] {
                    fs::hard_link(&path, root.join(format!("{place}{one}-{at}"))).unwrap();
                }
            }
        }
    }
    let listing = list(root);
    for hard_links in [HardLinks::OneFile, HardLinks::Duplicates] {
        let options = ScanOptions {
            hard_links,
            ..ScanOptions::default()
        };
        let (groups, stats) = found(&listing, &options);
        let (expected, bytes) = expected(&listing, &options);
        assert_eq!(groups, expected);
        assert_eq!(stats.bytes, bytes);
        assert_eq!(stats.files, 80 + 1 + 6 * 3);
    }
}

#[test]
fn many_size_groups_are_told_apart_on_any_number_of_workers() {
    let tree = TestTree::new();
    for size in 1..2 * groups::GROUPS + 10 {
        for (name, fill) in [("a", b'x'), ("b", b'x'), ("c", b'y')] {
            let bytes = vec![fill; size];
            fs::write(tree.path().join(format!("{size}{name}")), bytes).unwrap();
        }
    }
    let listing = list(tree.path());
    let on = |workers| {
        let options = ScanOptions {
            workers,
            ..ScanOptions::default()
        };
        let scan = search(&listing, &options);
        assert_eq!(scan.groups().len(), 2 * groups::GROUPS + 9);
        scan.groups()
            .map(|group| group.files().map(|file| file.names.to_vec()).collect())
            .collect::<Groups>()
    };
    let one = on(1);
    assert!(one.iter().all(|group| group.len() == 2));
    assert_eq!(on(2), one);
    assert_eq!(on(5), one);
}

#[test]
fn digests_that_begin_alike_are_told_apart() {
    let tree = TestTree::new();
    for name in ["a", "b", "c", "d", "e"] {
        tree.write(name, "same");
    }
    let listing = list(tree.path());
    let options = ScanOptions::default();
    let (cancel, progress) = (Cancel::new(), ScanProgress::default());
    let candidates = Candidates::find(
        &listing,
        &Marks::default(),
        &options,
        &mut ScanStats::default(),
    );
    let context = Context::new(
        &listing,
        &candidates,
        Marks::default(),
        Both::OfSome,
        &options,
        &cancel,
        &progress,
    );
    for (one, last) in (0..).zip([7, 3, 7, 3, 5]) {
        let mut digest = [1; 16];
        digest[15] = last;
        let digest = bc_digest::Digest::new(&digest);
        context.table.set_whole(context.table.row(one), &digest);
    }
    let so_far = groups::equal_so_far(&context).unwrap();
    assert!(so_far.lists().eq([[1, 3], [0, 2]]));
    assert!(
        groups::equal(&context, &so_far)
            .lists()
            .eq([[1, 3], [0, 2]])
    );
}
