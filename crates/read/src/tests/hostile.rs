//! Files that change, vanish, or turn into something else.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bc_testkit::{is_root, left_out};
use bc_walk::{ErrorKind, Metadata};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::{Recorder, age, bytes, each_backend, files, list, options, read_all, walk};
use crate::{Changed, Choice, ReadOptions, Want};

/// Small enough that a file of a few pages takes several reads.
const SLOT: usize = 4096;
const LEN: usize = 5 * SLOT;

fn in_pieces(backend: Choice, changed: Changed) -> ReadOptions {
    ReadOptions {
        slot_size: SLOT,
        changed,
        ..options(backend)
    }
}

/// Changes a file of several pieces when its first piece is presented, and expects the change to be
/// noticed, or the rest of the file to be read.
#[track_caller]
fn changes(change: impl Fn(&Path), expected: impl Fn(&[u8]) -> Vec<u8>) {
    for changed in [Changed::Refuse, Changed::Allow] {
        each_backend(|backend| {
            let (_tree, paths, contents) = files(&[LEN, 10]);
            age(&paths[0]);
            let listing = list(&paths, Metadata::Basic);
            let done = RefCell::new(false);
            let mut recorder = Recorder::new(1).with_hook(|piece| {
                if piece.len() > 10 && !done.replace(true) {
                    change(&paths[0]);
                }
            });
            let stats = read_all(&listing, &in_pieces(backend, changed), &mut recorder);
            match changed {
                Changed::Refuse => {
                    let error = recorder.error(0);
                    assert_eq!((error.op(), error.kind()), ("read", ErrorKind::Changed));
                    assert_eq!((stats.files, stats.errors), (1, 1));
                }
                Changed::Allow => {
                    let read = recorder.contents(&listing);
                    let expected = expected(&contents[0]);
                    assert_eq!(read[0].len(), expected.len(), "{backend:?}");
                    assert!(read[0] == expected);
                    assert!(read[1] == contents[1]);
                }
            }
        });
    }
}

#[test]
fn growth_while_reading() {
    let more = bytes(3 * SLOT + 7, 99);
    changes(
        |path| {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(&more).unwrap();
        },
        |content| [content, &more].concat(),
    );
}

#[test]
fn shrinkage_while_reading() {
    changes(
        |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(2 * SLOT as u64 + 5).unwrap();
        },
        |content| content[..2 * SLOT + 5].to_vec(),
    );
    // Behind what has been read already.
    changes(
        |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(7).unwrap();
        },
        |content| content[..SLOT].to_vec(),
    );
}

#[test]
fn overwriting_while_reading() {
    let other = vec![0xee; LEN];
    changes(
        |path| {
            let mut file = OpenOptions::new().write(true).open(path).unwrap();
            file.write_all(&other).unwrap();
        },
        |content| [&content[..SLOT], &other[SLOT..]].concat(),
    );
}

/// Checks that the descriptor stays with the file that was opened.
#[test]
fn replacement_while_reading_changes_nothing_but_the_link_count() {
    each_backend(|backend| {
        let (tree, paths, contents) = files(&[LEN]);
        let listing = list(&paths, Metadata::Basic);
        tree.write("other", "other");
        let mut recorder = Recorder::new(1).with_hook(|_| {
            let _ = fs::rename(tree.join("other"), &paths[0]);
        });
        read_all(&listing, &in_pieces(backend, Changed::Allow), &mut recorder);
        assert!(recorder.contents(&listing) == contents);
    });
}

#[test]
fn a_file_that_shrinks_below_its_last_part() {
    each_backend(|backend| {
        let (_tree, paths, _) = files(&[LEN]);
        age(&paths[0]);
        let listing = list(&paths, Metadata::Basic);
        let mut recorder = Recorder::new(1).with_hook(|_| {
            let file = OpenOptions::new().write(true).open(&paths[0]).unwrap();
            file.set_len(LEN as u64 / 2).unwrap();
        });
        recorder.want = Want::Ends { len: 100 };
        read_all(
            &listing,
            &in_pieces(backend, Changed::Refuse),
            &mut recorder,
        );
        assert_eq!(recorder.error(0).kind(), ErrorKind::Changed);
    });
}

/// Changes the middle one of three files between the walk and the reading, and
/// returns how it ended; the others must be read as ever.
fn between(metadata: Metadata, backend: Choice, change: impl Fn(&Path)) -> Recorder<'static> {
    let (_tree, paths, contents) = files(&[100, 200, 300]);
    let listing = list(&paths, metadata);
    change(&paths[1]);
    let mut recorder = Recorder::new(2);
    read_all(&listing, &options(backend), &mut recorder);
    assert_eq!(recorder.done.len(), 3);
    for at in [0, 2] {
        let (_, bytes) = recorder.done[&bc_walk::EntryId(at)].as_ref().unwrap();
        assert!(*bytes == contents[at as usize]);
    }
    recorder
}

#[test]
fn replaced_between_walk_and_open() {
    let replace = |path: &Path| {
        let other = path.with_extension("new");
        fs::write(&other, "other").unwrap();
        fs::rename(&other, path).unwrap();
    };
    each_backend(|backend| {
        let recorder = between(Metadata::Basic, backend, replace);
        let error = recorder.error(1);
        assert_eq!((error.op(), error.kind()), ("open", ErrorKind::Changed));
        // Without metadata there is nothing to compare with: what is there now counts.
        let recorder = between(Metadata::None, backend, replace);
        let (_, bytes) = recorder.done[&bc_walk::EntryId(1)].as_ref().unwrap();
        assert_eq!(bytes, b"other");
    });
}

#[test]
fn a_fifo_swapped_in_does_not_block() {
    each_backend(|backend| {
        let recorder = between(Metadata::None, backend, |path| {
            fs::remove_file(path).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        });
        assert_eq!(recorder.error(1).kind(), ErrorKind::NotRegular);
    });
}

#[test]
fn a_link_or_a_directory_swapped_in_is_not_read() {
    each_backend(|backend| {
        let recorder = between(Metadata::None, backend, |path| {
            let target = path.with_extension("target");
            fs::rename(path, &target).unwrap();
            symlink(&target, path).unwrap();
        });
        // A root named on the command line may be a link; then it is followed.
        if recorder.done[&bc_walk::EntryId(1)].is_err() {
            assert_eq!(recorder.error(1).errno(), Some(40), "ELOOP");
        }
        let recorder = between(Metadata::None, backend, |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        });
        assert_eq!(recorder.error(1).kind(), ErrorKind::NotRegular);
    });
}

#[test]
fn a_link_swapped_in_below_a_root_is_not_followed() {
    each_backend(|backend| {
        let tree = bc_testkit::TestTree::new();
        tree.write("a/file", "mine").write("b/secret", "secret");
        let listing = walk(&tree.join("a"), Metadata::None);
        fs::remove_file(tree.join("a/file")).unwrap();
        symlink(tree.join("b/secret"), tree.join("a/file")).unwrap();
        let mut recorder = Recorder::new(1);
        read_all(&listing, &options(backend), &mut recorder);
        let error = recorder.error(0);
        assert_eq!((error.op(), error.errno()), ("open", Some(40)), "ELOOP");
    });
}

#[test]
fn a_directory_swapped_for_a_link_is_not_entered() {
    each_backend(|backend| {
        let tree = bc_testkit::TestTree::new();
        tree.write("root/dir/one", "mine")
            .write("root/dir/two", "mine");
        tree.write("root/else", "fine");
        tree.write("evil/one", "secret").write("evil/two", "secret");
        let listing = walk(&tree.join("root"), Metadata::None);
        fs::rename(tree.join("root/dir"), tree.join("away")).unwrap();
        symlink(tree.join("evil"), tree.join("root/dir")).unwrap();
        let mut recorder = Recorder::new(4);
        let stats = read_all(&listing, &options(backend), &mut recorder);
        assert_eq!((stats.files, stats.errors), (1, 2));
        for entry in 0..2 {
            let error = recorder.error(entry);
            assert_eq!(error.op(), "open");
            assert_eq!(error.path(), listing.path(bc_walk::EntryId(entry)));
        }
    });
}

#[test]
fn vanished_between_walk_and_open() {
    each_backend(|backend| {
        let recorder = between(Metadata::Basic, backend, |path| {
            fs::remove_file(path).unwrap();
        });
        let error = recorder.error(1);
        assert_eq!((error.op(), error.errno()), ("open", Some(2)));
    });
}

/// Runs `test` on a thread without the superuser's powers over files.
fn as_a_mere_user(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            let powers = CapabilitySet::DAC_OVERRIDE
                | CapabilitySet::DAC_READ_SEARCH
                | CapabilitySet::FOWNER;
            sets.effective -= powers;
            set_capabilities(None, sets).unwrap();
            test();
        });
        thread.join().unwrap();
    });
}

#[test]
fn unreadable_files_are_errors() {
    as_a_mere_user(|| {
        each_backend(|backend| {
            let recorder = between(Metadata::Basic, backend, |path| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
            });
            let error = recorder.error(1);
            assert_eq!((error.op(), error.errno()), ("open", Some(13)));
        });
    });
}

/// Checks that files are read although `O_NOATIME` is refused to all but the owner.
#[test]
fn files_of_other_owners_are_read() {
    let (_tree, mut paths, mut contents) = files(&[100; 5]);
    if is_root() {
        for path in &paths[..3] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
    } else {
        left_out("giving files away takes root; reading /etc/passwd instead");
        paths.insert(0, PathBuf::from("/etc/passwd"));
        contents.insert(0, fs::read("/etc/passwd").unwrap());
    }
    as_a_mere_user(|| {
        let listing = list(&paths, Metadata::Basic);
        each_backend(|backend| {
            let mut recorder = Recorder::new(2);
            read_all(&listing, &options(backend), &mut recorder);
            let mut read = recorder.contents(&listing);
            read.sort();
            let mut contents = contents.clone();
            contents.sort();
            assert!(read == contents);
        });
    });
}
