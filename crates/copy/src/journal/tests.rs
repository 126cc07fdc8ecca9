//! What a journal is believed.

use super::*;
use bc_fs::journal::push;

const NOW: [u8; 16] = [7; 16];

fn identity(ino: u64) -> Identity {
    Identity { dev: 1, ino }
}

fn stat(ino: u64) -> bc_walk::FileStat {
    bc_walk::FileStat {
        id: identity(ino),
        stamp: stamp(),
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        nlink: 1,
        rdev: 0,
        blocks: 0,
    }
}

fn stamp() -> Stamp {
    Stamp {
        size: 3,
        mtime_ns: 4,
        ctime_ns: 5,
    }
}

fn done(path: &str) -> Done {
    let digest = Some(Digest::new(&[7; 32]));
    record::done_of(path.as_bytes(), &stat(10), true, &stat(20), digest)
}

fn session(piece: &mut Vec<u8>, boot: &[u8; 16], mount: u64, algorithm: &str) {
    let record = SessionRecord {
        boot: *boot,
        mount,
        algorithm: algorithm.to_owned(),
    };
    record::push_session(piece, &record);
}

/// What a journal tells of `a` and `b`, whose records have `between` them.
fn known(boot: &[u8; 16], mount: u64, between: impl Fn(&mut Vec<u8>)) -> Known {
    let dir = tempfile::tempdir().unwrap();
    let Site::Free(place, key) = look(dir.path(), "name", &NOW).unwrap() else {
        panic!("something is there");
    };
    let job = JobRecord {
        id: [1; 16],
        began_ns: 0,
        into: true,
        top: identity(2),
        algorithm: String::new(),
        file_system: String::new(),
    };
    let mut piece = Vec::new();
    record::push_job(&mut piece, &job);
    session(&mut piece, boot, mount, "sha256");
    record::push_done(&mut piece, &done("a"));
    between(&mut piece);
    record::push_done(&mut piece, &done("b"));
    drop(Journal::create(place, &key, &mut piece).unwrap());
    let Site::Earlier(earlier, ..) = look(dir.path(), "name", &NOW).unwrap() else {
        panic!("no journal");
    };
    let Earlier {
        job: found,
        mut known,
        ..
    } = *earlier;
    assert_eq!(found, job);
    known.mounted(3);
    assert_eq!(known.len(), 2);
    known
}

fn doubts(known: &Known) -> [bool; 2] {
    ["a", "b"].map(|path| {
        let source = (identity(10), stamp());
        known
            .file(path.as_bytes(), source, &stat(20))
            .unwrap()
            .doubtful
    })
}

#[test]
fn what_a_power_cut_may_have_undone_is_doubted() {
    let nothing = |_: &mut Vec<u8>| {};
    assert_eq!(doubts(&known(&NOW, 3, nothing)), [false, false]);
    assert_eq!(doubts(&known(&[8; 16], 3, nothing)), [true, true]);
    assert_eq!(doubts(&known(&NOW, 4, nothing)), [true, true]);
    // A kernel that does not name its starts.
    assert_eq!(doubts(&known(&[0; 16], 3, nothing)), [true, true]);
    let synced = |piece: &mut Vec<u8>| push(piece, record::DURABLE, |_| {});
    assert_eq!(doubts(&known(&[8; 16], 3, synced)), [false, true]);
    // The run that forced everything to the disk had not looked at what the one before had done.
    let other = |piece: &mut Vec<u8>| {
        session(piece, &[9; 16], 3, "sha256");
        push(piece, record::DURABLE, |_| {});
    };
    assert_eq!(doubts(&known(&[8; 16], 3, other)), [true, true]);
    let later = |piece: &mut Vec<u8>| session(piece, &NOW, 3, "sha256");
    let mixed = known(&[8; 16], 3, later);
    assert_eq!(doubts(&mixed), [true, false]);
    assert!(mixed.is_doubtful());
    assert!(!known(&NOW, 3, nothing).is_doubtful());
}

/// Runs of one copy may take different digests, and those of one kind look like those of another.
#[test]
fn digests_are_those_of_the_run_that_took_them() {
    let blocks = |known: &Known| known.blocks.contains_key("stage");
    let block = |piece: &mut Vec<u8>| record::push_block(piece, "stage", 0, &[[1; 32]]);
    let second = |piece: &mut Vec<u8>| {
        block(piece);
        session(piece, &NOW, 3, "blake3");
    };
    let digests = |algorithm: &str, between: &dyn Fn(&mut Vec<u8>)| {
        let mut known = known(&NOW, 3, between);
        known.keep_digests_of(algorithm);
        let has = |path: &str| {
            let source = (identity(10), stamp());
            let before = known.file(path.as_bytes(), source, &stat(20));
            before.unwrap().digest.is_some()
        };
        (["a", "b"].map(has), blocks(&known))
    };
    assert_eq!(digests("sha256", &block), ([true, true], true));
    assert_eq!(digests("blake3", &block), ([false, false], false));
    assert_eq!(digests("sha256", &second), ([true, false], false));
    assert_eq!(digests("blake3", &second), ([false, true], false));
    let third = |piece: &mut Vec<u8>| {
        second(piece);
        block(piece);
    };
    assert_eq!(digests("blake3", &third), ([false, true], true));
}

/// A power cut may have taken the first: the directory that was made again is the root.
#[test]
fn a_root_is_what_it_was_last() {
    let found = known(&NOW, 3, |piece| {
        for (root, ino) in [(0, 5), (1, 6), (0, 0), (0, 7)] {
            let id = identity(ino);
            let made = true;
            record::push_root(piece, &RootRecord { root, id, made });
        }
    });
    let roots: Vec<_> = found
        .roots
        .iter()
        .map(|root| (root.root, root.id.ino))
        .collect();
    assert_eq!(roots, [(1, 6), (0, 7)]);
}

#[test]
fn only_what_was_made_then_is_known() {
    let known = known(&NOW, 3, |_| {});
    let source = (identity(10), stamp());
    assert!(known.file(b"c", source, &stat(20)).is_none());
    assert!(known.file(b"a", source, &stat(21)).is_none());
    let mut other = stat(20);
    other.stamp.size += 1;
    assert!(known.file(b"a", source, &other).is_none());
    let edited = (identity(10), Stamp { size: 9, ..stamp() });
    assert!(known.file(b"a", edited, &stat(20)).unwrap().outdated);
    assert!(!known.file(b"a", source, &stat(20)).unwrap().outdated);
}
