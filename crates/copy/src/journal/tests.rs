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
    record::done_of(path.as_bytes(), &stat(10), true, &stat(20), None)
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
    record::push_session(&mut piece, boot, mount);
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
        record::push_session(piece, &[9; 16], 3);
        push(piece, record::DURABLE, |_| {});
    };
    assert_eq!(doubts(&known(&[8; 16], 3, other)), [true, true]);
    let later = |piece: &mut Vec<u8>| record::push_session(piece, &NOW, 3);
    let mixed = known(&[8; 16], 3, later);
    assert_eq!(doubts(&mixed), [true, false]);
    assert!(mixed.is_doubtful());
    assert!(!known(&NOW, 3, nothing).is_doubtful());
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
