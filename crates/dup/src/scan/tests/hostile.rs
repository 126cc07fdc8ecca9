//! Files that cannot be read, vanish or change, and a cancelled search.

use super::*;
use std::process::Command;

fn names_of_errors(scan: &Scan) -> Vec<String> {
    scan.errors
        .iter()
        .map(|error| {
            let path = PathBuf::from(String::from_utf8(error.path().to_vec()).unwrap());
            path.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn files_that_change_leave_their_group_and_are_told_once() {
    for (size, workers) in [(100, 1), (100_000, 2), (3 << 20, 2)] {
        let tree = TestTree::new();
        let content = vec![5; size];
        for name in ["a", "b", "c", "d", "e"] {
            tree.write(name, &content);
        }
        let listing = list(tree.path());
        // Gone, replaced by an equal one, written in place, and made a link.
        tree.remove("b");
        tree.remove("c").write("c", &content);
        let mut other = content.clone();
        other[size / 2] = 6;
        fs::write(tree.join("d"), &other).unwrap();
        tree.remove("e").symlink("a", "e");
        let options = Options {
            workers,
            ..Options::default()
        };
        let scan = search(&listing, &options);
        assert_eq!(scan.groups().len(), 0, "{size}");
        // All of a small file is read at first: then `d` differs, which is true whether or not
        // it was written to. Of a larger one what is read at first is equal still.
        let told = match size {
            100 => &["b", "c", "e"][..],
            _ => &["b", "c", "d", "e"],
        };
        assert_eq!(names_of_errors(&scan), told, "{:?}", scan.errors);
    }
}

#[test]
fn unreadable_files_are_equal_to_nothing() {
    // Unset digests of files that could not be read must not meet.
    let tree = TestTree::new();
    for name in ["a", "b", "c", "d"] {
        tree.write(name, vec![1; 20_000]);
    }
    let listing = list(tree.path());
    for name in ["a", "b", "c"] {
        tree.remove(name).dir(name);
    }
    let scan = search(&listing, &Options::default());
    assert_eq!(scan.groups().len(), 0);
    assert_eq!(names_of_errors(&scan), ["a", "b", "c"]);
}

#[test]
fn fifo_swapped_in_does_not_hang() {
    let tree = TestTree::new();
    tree.write("a", "same").write("b", "same");
    let listing = list(tree.path());
    tree.remove("b");
    assert!(
        Command::new("mkfifo")
            .arg(tree.join("b"))
            .status()
            .unwrap()
            .success()
    );
    let scan = search(&listing, &Options::default());
    assert_eq!(names_of_errors(&scan), ["b"]);
}

#[test]
fn cancelled_search_claims_nothing_it_has_not_read() {
    let tree = TestTree::new();
    let mut content = vec![9; 40_000];
    tree.write("a", &content);
    content[20_000] = 1;
    tree.write("b", &content);
    let listing = list(tree.path());
    let cancel = Cancel::new();
    cancel.cancel(15);
    let scan = scan(
        &listing,
        &Options::default(),
        None,
        &cancel,
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(scan.groups().len(), 0);
}

/// Whether a file is in a group is up to its whole digest, which takes a proof. A proof put off
/// once gave a false duplicate: a directory was swapped for the first read and back for the proof.
#[test]
fn what_was_read_without_proof_is_in_no_group() {
    let tree = TestTree::new();
    tree.write("a", "one").write("b", "one").write("c", "one");
    let listing = list(tree.path());
    for algorithm in ALGORITHMS {
        let options = Options {
            algorithm,
            ..Options::default()
        };
        let candidates = Candidates::find(&listing, &options, &mut Stats::default());
        let cancel = Cancel::new();
        let context = Context {
            listing: &listing,
            table: Table::new(&candidates, listing.len(), algorithm.digest_len()),
            prefixes: std::sync::Mutex::default(),
            extents: space::Extents::default(),
            references: Default::default(),
            candidates: &candidates,
            options: &options,
            cancel: &cancel,
            progress: &Progress::default(),
        };
        first_reads(&context, bc_read::Proof::Later).unwrap();
        let so_far = groups::equal_so_far(&context).unwrap();
        assert_eq!(so_far.members, [0, 1, 2]);
        assert!(groups::equal(&context, &so_far).members.is_empty());
        full_reads(&context, &so_far).unwrap();
        assert_eq!(groups::equal(&context, &so_far).members, [0, 1, 2]);
    }
}

#[test]
fn bytes_decide_where_digests_are_wrong() {
    // Nobody has two files of one XXH128 at hand, so the comparison is given
    // a group that is none.
    let tree = TestTree::new();
    tree.write("a", "one")
        .write("b", "two")
        .write("c", "one")
        .write("d", "two");
    let listing = list(tree.path());
    let options = Options {
        proof: Proof::Bytes,
        workers: 2,
        ..Options::default()
    };
    let cancel = Cancel::new();
    let progress = Progress::default();
    let mut stats = Stats::default();
    let candidates = Candidates::find(&listing, &options, &mut stats);
    let context = Context {
        listing: &listing,
        table: Table::new(&candidates, listing.len(), 16),
        prefixes: std::sync::Mutex::default(),
        extents: space::Extents::default(),
        references: Default::default(),
        candidates: &candidates,
        options: &options,
        cancel: &cancel,
        progress: &progress,
    };
    let mut claimed = groups::Found::default();
    claimed.push(&[0, 1, 2, 3]);
    verify::compare(&context, &mut claimed).unwrap();
    let groups: Vec<Vec<u32>> = claimed.groups().map(<[u32]>::to_vec).collect();
    assert_eq!(groups, [[0, 2], [1, 3]]);
}
