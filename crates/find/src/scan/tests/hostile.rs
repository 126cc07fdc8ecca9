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
        let options = ScanOptions {
            workers,
            ..ScanOptions::default()
        };
        let scan = search(&listing, &options);
        assert_eq!(scan.groups().len(), 0, "{size}");
        assert_eq!(
            names_of_errors(&scan),
            ["b", "c", "d", "e"],
            "{:?}",
            scan.errors
        );
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
    let scan = search(&listing, &ScanOptions::default());
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
    let scan = search(&listing, &ScanOptions::default());
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
        &ScanOptions::default(),
        None,
        &cancel,
        &ScanProgress::default(),
    )
    .unwrap();
    assert_eq!(scan.groups().len(), 0);
}

/// Runs `test` with the context that a search of the listing starts with.
fn in_context(listing: &Listing, options: &ScanOptions, test: impl FnOnce(&Context<'_>)) {
    let candidates = Candidates::find(
        listing,
        &Marks::default(),
        options,
        &mut ScanStats::default(),
    );
    test(&Context::new(
        listing,
        &candidates,
        Marks::default(),
        Both::OfSome,
        options,
        &Cancel::new(),
        &ScanProgress::default(),
    ));
}

fn each_algorithm(test: impl Fn(&ScanOptions)) {
    for algorithm in ALGORITHMS {
        test(&ScanOptions {
            algorithm,
            ..ScanOptions::default()
        });
    }
}

/// Only its whole digest, which takes a proof, puts a file into a group.
#[test]
fn what_was_read_without_proof_is_in_no_group() {
    let tree = TestTree::new();
    for name in ["a", "b", "c"] {
        tree.write(name, vec![1; 20_000]);
    }
    let listing = list(tree.path());
    each_algorithm(|options| {
        in_context(&listing, options, |context| {
            first_reads(context, bc_read::VerifyWhen::Later).unwrap();
            let so_far = groups::equal_so_far(context).unwrap();
            assert_eq!(so_far.items(), [0, 1, 2]);
            assert!(groups::equal(context, &so_far).items().is_empty());
            assert_eq!(full_reads(context, &so_far).unwrap().read.files, 3);
            assert_eq!(groups::equal(context, &so_far).items(), [0, 1, 2]);
        });
    });
}

#[test]
fn what_one_read_finishes_is_proven_in_it() {
    let tree = TestTree::new();
    for name in ["a", "b", "c"] {
        tree.write(name, "one");
    }
    let listing = list(tree.path());
    each_algorithm(|options| {
        in_context(&listing, options, |context| {
            let (done, repeated) = first_reads(context, bc_read::VerifyWhen::Later).unwrap();
            assert_eq!((done.read.files, done.whole, repeated), (3, 3, 0));
            let so_far = groups::equal_so_far(context).unwrap();
            assert_eq!(groups::equal(context, &so_far).items(), [0, 1, 2]);
            assert_eq!(full_reads(context, &so_far).unwrap().read.files, 0);
        });
    });
}

/// A proof put off once gave a false duplicate: a directory was swapped for the first read and back
/// for the proof. Where the first read is proven, the descriptor that was read shows it.
#[test]
fn a_directory_swapped_for_the_first_read_and_back_gives_no_duplicates() {
    // So few that there is no sample, or so many that the sample finds all equal; of one size and
    // of many; small enough for the first read, whole, and in parts.
    for (count, sizes, len) in [
        (3, 1, 8),
        (3, 1, 5000),
        (3, 1, 200_000),
        (300, 1, 8),
        (300, 100, 500),
        (300, 1, 5000),
        (300, 100, 5000),
    ] {
        let tree = TestTree::new();
        for i in 0..count {
            let content = |side: u32| {
                let mut content = vec![side as u8; len + i % sizes];
                content[..4].copy_from_slice(&(2 * i as u32 + side).to_le_bytes());
                content
            };
            tree.write(format!("top/here/{i}"), content(0))
                .write(format!("top/other/{i}"), content(1))
                .write(format!("away/{i}"), content(1));
        }
        let listing = list(&tree.join("top"));
        let swap = || {
            fs::rename(tree.join("top/here"), tree.join("aside")).unwrap();
            fs::rename(tree.join("away"), tree.join("top/here")).unwrap();
            fs::rename(tree.join("aside"), tree.join("away")).unwrap();
        };
        each_algorithm(|options| {
            in_context(&listing, options, |context| {
                swap();
                let (first, _) = first_reads(context, bc_read::VerifyWhen::Later).unwrap();
                swap();
                let so_far = groups::equal_so_far(context).unwrap();
                full_reads(context, &so_far).unwrap();
                let members = groups::equal(context, &so_far).items().to_vec();
                assert!(members.is_empty(), "{count} of {len} bytes: {members:?}");
                // Those that were proven were refused there and then.
                assert!(len > 4096 || !first.failures.is_empty());
                assert!(
                    first
                        .failures
                        .iter()
                        .all(|(_, e)| e.kind() == bc_walk::ErrorKind::Changed)
                );
            });
        });
    }
}

#[test]
fn bytes_decide_where_digests_are_wrong() {
    // No two files of one XXH128 are known, so the comparison is given a group whose files differ.
    let tree = TestTree::new();
    tree.write("a", "one")
        .write("b", "two")
        .write("c", "one")
        .write("d", "two");
    let listing = list(tree.path());
    let options = ScanOptions {
        equality: Equality::Bytes,
        workers: 2,
        ..ScanOptions::default()
    };
    in_context(&listing, &options, |context| {
        let mut claimed = CandidateGroups::default();
        claimed.push(&[0, 1, 2, 3]);
        verify::compare(context, &mut claimed).unwrap();
        let groups: Vec<Vec<u32>> = claimed.lists().map(<[u32]>::to_vec).collect();
        assert_eq!(groups, [[0, 2], [1, 3]]);
    });
}

#[test]
fn what_cannot_be_read_for_a_comparison_is_named_itself() {
    // The reads of three equal files: a and b, then a and c.
    for (failing, unread, groups) in [
        (1, "b", vec![vec![0, 2]]),
        (2, "a", vec![vec![1, 2]]),
        (3, "c", vec![vec![0, 1]]),
        (4, "a", vec![vec![1, 2]]),
    ] {
        let tree = TestTree::new();
        tree.write("a", "one").write("b", "one").write("c", "one");
        let listing = list(tree.path());
        let options = ScanOptions {
            equality: Equality::Bytes,
            workers: 1,
            ..ScanOptions::default()
        };
        in_context(&listing, &options, |context| {
            let mut claimed = CandidateGroups::default();
            claimed.push(&[0, 1, 2]);
            let fault = bc_fs::faults::Fault::Errno(rustix::io::Errno::IO);
            bc_fs::faults::arm(("read".to_owned(), failing), fault);
            let done = verify::compare(context, &mut claimed).unwrap();
            let seen = bc_fs::faults::disarm();
            assert!(seen.reached, "{seen:?}");
            let failed: Vec<_> = done
                .failures
                .iter()
                .map(|(_, error)| error.path())
                .collect();
            let path = tree.join(unread);
            assert_eq!(failed, [path.as_os_str().as_encoded_bytes()], "{failing}");
            let left: Vec<Vec<u32>> = claimed.lists().map(<[u32]>::to_vec).collect();
            assert_eq!(left, groups, "{failing}");
        });
    }
}
