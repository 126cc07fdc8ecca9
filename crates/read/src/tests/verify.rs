//! Files whose verification is put off: those that are refused all the same, and those at the end.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use bc_testkit::TestTree;
use bc_walk::{EntryId, ErrorKind, Listing, Metadata};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use super::{CLOCK_AHEAD_NS, Recorder, age, bytes, each_backend, options, read_all, walk};
use crate::{Choice, ReadOptions, VerifyWhen, Want};

const SLOT: usize = 4096;

fn in_slots(backend: Choice) -> ReadOptions {
    ReadOptions {
        slot_size: SLOT,
        ..options(backend)
    }
}

fn with(verify: VerifyWhen) -> Recorder<'static> {
    Recorder {
        verify,
        ..Recorder::new(1)
    }
}

/// Makes three files of `len` bytes in a directory, listed.
fn three(len: usize) -> (TestTree, Listing) {
    let tree = TestTree::new();
    for (seed, name) in (0..).zip(["a", "b", "c"]) {
        tree.write(name, bytes(len, seed));
        age(&tree.join(name));
    }
    let listing = walk(tree.path(), Metadata::Basic);
    (tree, listing)
}

fn read(listing: &Listing, backend: Choice) -> Recorder<'static> {
    read_with(VerifyWhen::Later, listing, backend)
}

fn read_with(verify: VerifyWhen, listing: &Listing, backend: Choice) -> Recorder<'static> {
    let mut recorder = with(verify);
    read_all(listing, &in_slots(backend), &mut recorder);
    assert_eq!(recorder.done.len(), 3);
    recorder
}

fn replace(path: &Path, content: &[u8]) {
    let other = path.with_extension("new");
    fs::write(&other, content).unwrap();
    fs::rename(&other, path).unwrap();
}

#[test]
fn unchanged_files_are_read_without_a_verification() {
    for len in [1, 100, SLOT - 1, SLOT, SLOT + 1, 3 * SLOT] {
        each_backend(|backend| {
            let (tree, listing) = three(len);
            let recorder = read(&listing, backend);
            let contents = recorder.contents(&listing);
            for (entry, name) in listing.ids().zip(["a", "b", "c"]) {
                assert!(contents[entry.0 as usize] == fs::read(tree.join(name)).unwrap());
                let (opened, _) = recorder.done[&entry].as_ref().unwrap();
                assert_eq!(opened.stat.meta(), listing.meta(entry).unwrap());
                assert_eq!(opened.stat.blocks, 0, "which an fstat would have told");
            }
        });
    }
}

#[test]
fn a_part_is_read_without_a_verification() {
    let wants = [
        (
            Want::Range {
                offset: 0,
                len: 100,
            },
            100,
        ),
        (Want::Ends { len: 100 }, 200),
    ];
    for (want, expected) in wants {
        each_backend(|backend| {
            let (_tree, listing) = three(3 * SLOT);
            let mut recorder = with(VerifyWhen::Later);
            recorder.want = want;
            read_all(&listing, &in_slots(backend), &mut recorder);
            for content in recorder.contents(&listing) {
                assert_eq!(content.len(), expected);
            }
        });
    }
}

/// Lists, puts another file in the place of one, and reads and verifies after one without: only
/// that one sees it, and the file that was read without has the listed metadata.
#[test]
fn what_is_not_verified_may_be_another_file() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        replace(&tree.join("b"), &[7; 100]);
        let recorder = read(&listing, backend);
        match &recorder.done[&EntryId(1)] {
            Ok((opened, content)) => {
                assert_eq!(content, &[7; 100]);
                assert_eq!(opened.stat.meta(), listing.meta(EntryId(1)).unwrap());
            }
            // A file that goes to a ring is verified.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Changed);
                assert_ne!(backend, Choice::Sync);
            }
        }
        let mut recorder = Recorder::new(1);
        read_all(&listing, &in_slots(backend), &mut recorder);
        assert_eq!(recorder.error(1).kind(), ErrorKind::Changed);
    });
}

#[test]
fn links_and_gaps_are_errors_at_once() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        fs::remove_file(tree.join("a")).unwrap();
        fs::rename(tree.join("b"), tree.join("away")).unwrap();
        symlink("away", tree.join("b")).unwrap();
        let recorder = read(&listing, backend);
        assert_eq!(recorder.error(0).errno(), Some(2), "ENOENT");
        assert_eq!(recorder.error(1).errno(), Some(40), "ELOOP");
    });
}

#[test]
fn another_length_than_listed_is_refused_at_once() {
    // A file of several pieces is read as far as was listed: that it has grown is not seen here.
    for (then, now) in [(100, 50), (100, 150), (3 * SLOT, SLOT)] {
        each_backend(|backend| {
            let (tree, listing) = three(then);
            replace(&tree.join("b"), &vec![1; now]);
            let recorder = read(&listing, backend);
            assert_eq!(recorder.error(1).kind(), ErrorKind::Changed, "{then} {now}");
        });
    }
}

/// Checks that another process's pipe, put where the file was, keeps its bytes.
#[test]
fn a_fifo_swapped_in_loses_nothing() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        let path = tree.join("b");
        fs::remove_file(&path).unwrap();
        mkfifoat(CWD, &path, Mode::from_raw_mode(0o644)).unwrap();
        let mut fifo = File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .unwrap();
        fifo.write_all(b"precious").unwrap();
        let recorder = read(&listing, backend);
        assert_eq!(recorder.error(1).kind(), ErrorKind::NotRegular);
        let mut left = [0; 8];
        fifo.read_exact(&mut left).unwrap();
        assert_eq!(&left, b"precious");
    });
}

#[test]
fn a_directory_swapped_in_is_not_regular() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        fs::remove_file(tree.join("b")).unwrap();
        fs::create_dir(tree.join("b")).unwrap();
        let recorder = read(&listing, backend);
        assert_eq!(recorder.error(1).kind(), ErrorKind::NotRegular);
    });
}

#[test]
fn without_metadata_there_is_a_verification() {
    each_backend(|backend| {
        let tree = TestTree::new();
        for name in ["a", "b", "c"] {
            tree.write(name, "content");
        }
        let listing = walk(tree.path(), Metadata::None);
        let recorder = read(&listing, backend);
        for (opened, _) in recorder.done.values().map(|done| done.as_ref().unwrap()) {
            assert!(opened.stat.blocks > 0, "by fstat");
        }
    });
}

/// Lengths that take one piece, one that just does not, and several.
const LENGTHS: [usize; 5] = [1, 100, SLOT - 1, SLOT, 3 * SLOT + 5];

#[test]
fn a_verification_at_the_end_is_of_the_descriptor_that_was_read() {
    for len in LENGTHS {
        each_backend(|backend| {
            let (tree, listing) = three(len);
            let recorder = read_with(VerifyWhen::AtEnd, &listing, backend);
            let contents = recorder.contents(&listing);
            for (entry, name) in listing.ids().zip(["a", "b", "c"]) {
                assert!(contents[entry.0 as usize] == fs::read(tree.join(name)).unwrap());
                let (opened, _) = recorder.done[&entry].as_ref().unwrap();
                assert_eq!(opened.stat.meta(), listing.meta(entry).unwrap());
                assert!(opened.stat.blocks > 0, "by fstat");
                assert_eq!(recorder.begun[&entry].stat.blocks, 0, "not yet");
            }
        });
    }
}

#[test]
fn parts_are_verified_at_the_end_too() {
    let range = |offset, len| Want::Range { offset, len };
    for want in [
        Want::Ends { len: 100 },
        range(0, 100),
        range(50, 0),
        range(1 << 20, 9),
    ] {
        each_backend(|backend| {
            let (tree, listing) = three(3 * SLOT);
            replace(&tree.join("b"), &bytes(3 * SLOT, 1));
            let mut recorder = with(VerifyWhen::AtEnd);
            recorder.want = want;
            read_all(&listing, &in_slots(backend), &mut recorder);
            assert_eq!(recorder.error(1).kind(), ErrorKind::Changed, "{want:?}");
            for entry in [0, 2] {
                let (opened, _) = recorder.done[&EntryId(entry)].as_ref().unwrap();
                assert!(opened.stat.blocks > 0, "{want:?}");
            }
        });
    }
}

/// Puts another file of the same content and times in its place while it is read, and back again
/// afterwards: by name and by directory.
#[test]
fn a_file_swapped_for_the_read_and_back_is_refused() {
    for len in LENGTHS {
        each_backend(|backend| {
            let (tree, _) = three(len);
            for side in ["here/f", "there/f"] {
                tree.write(side, bytes(len, 9));
                age(&tree.join(side));
            }
            let swap = || {
                fs::rename(tree.join("here"), tree.join("aside")).unwrap();
                fs::rename(tree.join("there"), tree.join("here")).unwrap();
                fs::rename(tree.join("aside"), tree.join("there")).unwrap();
            };
            let root = walk(tree.path(), Metadata::Basic);
            let listed = root
                .ids()
                .find(|id| root.path(*id).ends_with(b"here/f"))
                .unwrap();
            swap();
            let mut back = false;
            let mut recorder = with(VerifyWhen::AtEnd).with_hook(|_| {
                if !std::mem::replace(&mut back, true) {
                    swap();
                }
            });
            let plan = crate::Plan::new(vec![listed], 1);
            let cancel = bc_pool::Cancel::new();
            crate::pump(&root, &plan, &in_slots(backend), &cancel, &mut recorder);
            assert_eq!(recorder.error(listed.0).kind(), ErrorKind::Changed);
        });
    }
}

#[test]
fn a_write_after_the_listing_is_refused_at_the_end() {
    for len in LENGTHS {
        each_backend(|backend| {
            let (tree, listing) = three(len);
            // In place, the same bytes and the same modification time.
            fs::write(tree.join("b"), bytes(len, 1)).unwrap();
            age(&tree.join("b"));
            let recorder = read_with(VerifyWhen::AtEnd, &listing, backend);
            assert_eq!(recorder.error(1).kind(), ErrorKind::Changed, "{len}");
            assert!(recorder.done[&EntryId(0)].is_ok());
        });
    }
}

#[test]
fn a_write_between_two_pieces_is_refused_at_the_end() {
    each_backend(|backend| {
        let (tree, listing) = three(3 * SLOT);
        let mut written = false;
        let mut recorder = with(VerifyWhen::AtEnd).with_hook(|_| {
            if !std::mem::replace(&mut written, true) {
                for name in ["a", "b", "c"] {
                    fs::write(tree.join(name), [0; 3 * SLOT]).unwrap();
                }
            }
        });
        read_all(&listing, &in_slots(backend), &mut recorder);
        for entry in 0..3 {
            assert_eq!(recorder.error(entry).kind(), ErrorKind::Changed);
        }
    });
}

#[test]
fn what_is_no_file_or_has_another_length_is_refused_at_the_end() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        for name in ["a", "b", "c"] {
            fs::remove_file(tree.join(name)).unwrap();
        }
        fs::create_dir(tree.join("a")).unwrap();
        mkfifoat(CWD, tree.join("b"), Mode::from_raw_mode(0o644)).unwrap();
        tree.write("c", bytes(99, 2));
        age(&tree.join("c"));
        let recorder = read_with(VerifyWhen::AtEnd, &listing, backend);
        assert_eq!(recorder.error(0).kind(), ErrorKind::NotRegular);
        assert_eq!(recorder.error(1).kind(), ErrorKind::NotRegular);
        assert_eq!(recorder.error(2).kind(), ErrorKind::Changed);
    });
}

/// Checks fresh files: one look at the end shows nothing of a write that began just before the
/// listing.
#[test]
fn a_fresh_file_is_verified_now() {
    each_backend(|backend| {
        CLOCK_AHEAD_NS.set(0);
        let tree = TestTree::new();
        for name in ["a", "b", "c"] {
            tree.write(name, "content");
        }
        let listing = walk(tree.path(), Metadata::Basic);
        let recorder = read_with(VerifyWhen::AtEnd, &listing, backend);
        for entry in listing.ids() {
            assert!(recorder.begun[&entry].stat.blocks > 0, "by fstat");
            assert!(recorder.done[&entry].is_ok());
        }
    });
}
