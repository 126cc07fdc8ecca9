//! Files whose proof is put off: what is refused all the same.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use bc_testkit::TestTree;
use bc_walk::{EntryId, ErrorKind, Listing, Metadata};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use super::{Recorder, age, bytes, each_backend, options, read_all, walk};
use crate::{Choice, Options, Proof, Want};

const SLOT: usize = 4096;

fn in_slots(backend: Choice) -> Options {
    Options {
        slot_size: SLOT,
        ..options(backend)
    }
}

fn later() -> Recorder<'static> {
    Recorder {
        proof: Proof::Later,
        ..Recorder::new(1)
    }
}

/// Three files of `len` bytes in a directory, listed.
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
    let mut recorder = later();
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
fn unchanged_files_are_read_without_a_proof() {
    for len in [1, 100, SLOT - 1, SLOT, SLOT + 1, 3 * SLOT] {
        each_backend(|backend| {
            let (tree, listing) = three(len);
            let recorder = read(&listing, backend);
            let contents = recorder.contents(&listing);
            for (entry, name) in listing.ids().zip(["a", "b", "c"]) {
                assert!(contents[entry.0 as usize] == fs::read(tree.join(name)).unwrap());
                let (opened, _) = recorder.done[&entry].as_ref().unwrap();
                assert_eq!(opened.stat.meta(), listing.meta(entry).unwrap());
                assert_eq!(opened.stat.blocks, 0, "which a proof would have told");
            }
        });
    }
}

#[test]
fn a_part_is_read_without_a_proof() {
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
            let mut recorder = later();
            recorder.want = want;
            read_all(&listing, &in_slots(backend), &mut recorder);
            for content in recorder.contents(&listing) {
                assert_eq!(content.len(), expected);
            }
        });
    }
}

/// Lists, puts another file in the place of one, and reads with a proof after one
/// without: only that one sees it, and what was read without says what was listed.
#[test]
fn what_is_not_proven_may_be_another_file() {
    each_backend(|backend| {
        let (tree, listing) = three(100);
        replace(&tree.join("b"), &[7; 100]);
        let recorder = read(&listing, backend);
        match &recorder.done[&EntryId(1)] {
            Ok((opened, content)) => {
                assert_eq!(content, &[7; 100]);
                assert_eq!(opened.stat.meta(), listing.meta(EntryId(1)).unwrap());
            }
            // What goes to a ring is proven.
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

/// Somebody else's pipe, put where the file was, keeps its bytes.
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
fn without_metadata_there_is_a_proof() {
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
