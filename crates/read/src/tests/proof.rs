//! Files whose proof is the caller's: what the reader still refuses, and what
//! the [`Prover`] finds out afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;

use bc_testkit::TestTree;
use bc_walk::{EntryId, ErrorKind, Listing, Metadata};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use super::{Recorder, age, bytes, each_backend, options, read_all, walk};
use crate::{Choice, Options, Proof, Prover, Want};

const SLOT: usize = 4096;

fn unproven(backend: Choice) -> Options {
    Options {
        slot_size: SLOT,
        proof: Proof::Caller,
        ..options(backend)
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
    let mut recorder = Recorder::new(2);
    read_all(listing, &unproven(backend), &mut recorder);
    assert_eq!(recorder.done.len(), 3);
    recorder
}

fn replace(path: &Path, content: &[u8]) {
    let other = path.with_extension("new");
    fs::write(&other, content).unwrap();
    fs::rename(&other, path).unwrap();
}

#[test]
fn unchanged_files_are_read_and_proven() {
    for len in [1, 100, SLOT - 1, SLOT, SLOT + 1, 3 * SLOT] {
        each_backend(|backend| {
            let (tree, listing) = three(len);
            let contents = read(&listing, backend).contents(&listing);
            let mut prover = Prover::new(&listing);
            for (entry, name) in listing.ids().zip(["a", "b", "c"]) {
                assert!(contents[entry.0 as usize] == fs::read(tree.join(name)).unwrap());
                let stat = prover.prove(entry).unwrap();
                assert_eq!(stat.meta(), listing.meta(entry).unwrap());
                assert!(stat.blocks > 0, "of the file itself, not of the listing");
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
            let mut recorder = Recorder::new(2);
            recorder.want = want;
            read_all(&listing, &unproven(backend), &mut recorder);
            for content in recorder.contents(&listing) {
                assert_eq!(content.len(), expected);
            }
        });
    }
}

/// Whatever was done to the middle one of three files, in whatever order with
/// the reading: either it is an error at once, or the prover refuses it.
#[test]
fn the_prover_sees_what_the_reader_does_not() {
    type Change = fn(&Path, usize);
    let changes: [Change; 7] = [
        |path, len| replace(path, &vec![7; len]),
        // The same content: another file all the same.
        |path, _| replace(path, &fs::read(path).unwrap()),
        |path, _| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(b"!", 0).unwrap();
        },
        |path, len| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(len as u64 / 2).unwrap();
        },
        |path, _| {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(&[1; 2 * SLOT]).unwrap();
        },
        |path, _| fs::remove_file(path).unwrap(),
        |path, _| {
            let away = path.with_extension("away");
            fs::rename(path, &away).unwrap();
            symlink(&away, path).unwrap();
        },
    ];
    for len in [100, SLOT, 3 * SLOT] {
        for (index, change) in changes.iter().enumerate() {
            each_backend(|backend| {
                for before in [true, false] {
                    let (tree, listing) = three(len);
                    if before {
                        change(&tree.join("b"), len);
                    }
                    let recorder = read(&listing, backend);
                    if !before {
                        change(&tree.join("b"), len);
                    }
                    let refused = recorder.done[&EntryId(1)].is_err();
                    assert!(before || !refused);
                    let mut prover = Prover::new(&listing);
                    assert!(refused || prover.prove(EntryId(1)).is_err(), "{index}");
                    for other in [0, 2] {
                        assert!(recorder.done[&EntryId(other)].is_ok());
                        prover.prove(EntryId(other)).unwrap();
                    }
                }
            });
        }
    }
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
        assert!(Prover::new(&listing).prove(EntryId(1)).is_err());
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
        let error = Prover::new(&listing).prove(EntryId(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotRegular);
    });
}

/// Nothing to compare with later: the reader proves.
#[test]
fn without_metadata_the_reader_proves() {
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
        assert!(Prover::new(&listing).prove(EntryId(0)).is_err());
    });
}
