//! Records of a journal that are relied on.

use bc_digest::Digest;
use bc_edit::journal::push;
use bc_fs::known::Known;
use bc_walk::{Identity, Stamp};

use super::*;
use crate::place::Existing;
use crate::resume::known::NamedRecord;
use crate::resume::record::{CopiedRecord, Placed, RootRecord, SessionRecord};

const NOW: [u8; 16] = [7; 16];

fn origin(id: Identity, stamp: Stamp) -> Known<'static> {
    Known::of(id, stamp)
}

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
        ctime_ns: 500_000_005,
    }
}

fn done(path: &str) -> CopiedRecord {
    let digest = Some(Digest::new(&[7; 32]));
    record::done_of(path.as_bytes(), &stat(10), true, &stat(20), digest)
}

fn existing(ino: u64) -> Existing {
    let born_ns = Some(6);
    let stat = stat(ino);
    Existing { stat, born_ns }
}

/// Appends a file that was given its name.
fn push_file(piece: &mut Vec<u8>, path: &str) {
    record::push_done(piece, &done(path));
    record::push_placed(piece, path.as_bytes(), &Placed::of(&existing(20)));
}

/// Returns the last record of a file, where `now` is there.
fn last(known: &KnownWork, path: &str, now: &Existing) -> Option<NamedRecord> {
    let source = origin(identity(10), stamp());
    known.file(path.as_bytes(), source, now, true).next()
}

fn session(piece: &mut Vec<u8>, boot: &[u8; 16], mount: u64, algorithm: &str) {
    let record = SessionRecord {
        boot: *boot,
        mount,
        algorithm: algorithm.to_owned(),
    };
    record::push_session(piece, &record);
}

/// Loads a journal of `a` and `b`, whose records have `between` them.
fn known(boot: &[u8; 16], mount: u64, between: impl Fn(&mut Vec<u8>)) -> KnownWork {
    let dir = tempfile::tempdir().unwrap();
    let Site::Free(Some(free)) = look(dir.path(), "name", &NOW, true).unwrap() else {
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
    push_file(&mut piece, "a");
    between(&mut piece);
    push_file(&mut piece, "b");
    drop(free.claim.begin(&free.key, &mut piece).unwrap());
    let Site::Earlier(earlier) = look(dir.path(), "name", &NOW, true).unwrap() else {
        panic!("no journal");
    };
    let EarlierRuns {
        job: found,
        mut known,
        ..
    } = *earlier;
    assert_eq!(found, job);
    known.mounted(3);
    assert!(known.len() >= 2);
    known
}

fn doubts(known: &KnownWork) -> [bool; 2] {
    ["a", "b"].map(|path| !last(known, path, &existing(20)).unwrap().is_proven)
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
    let blocks = |known: &KnownWork| known.blocks.contains_key("stage");
    let block = |piece: &mut Vec<u8>| record::push_block(piece, "stage", 0, &[[1; 32]]);
    let second = |piece: &mut Vec<u8>| {
        block(piece);
        session(piece, &NOW, 3, "blake3");
    };
    let digests = |algorithm: &str, between: &dyn Fn(&mut Vec<u8>)| {
        let mut known = known(&NOW, 3, between);
        known.keep_digests_of(algorithm);
        let has = |path: &str| {
            let before = last(&known, path, &existing(20)).unwrap();
            assert!(before.content.is_some());
            before.digest.is_some()
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
fn only_what_is_in_the_recorded_state_is_proven() {
    let known = known(&NOW, 3, |_| {});
    let is_proven = |now: &Existing| last(&known, "a", now).unwrap().is_proven;
    assert!(last(&known, "c", &existing(20)).is_none());
    assert!(is_proven(&existing(20)));
    assert!(!is_proven(&existing(21)));
    let changes: [fn(&mut Existing); 5] = [
        |now| now.stat.stamp.size += 1,
        |now| now.stat.stamp.mtime_ns += 1,
        |now| now.stat.stamp.ctime_ns += 1,
        |now| now.born_ns = Some(7),
        |now| now.born_ns = None,
    ];
    for change in changes {
        let mut now = existing(20);
        change(&mut now);
        assert!(!is_proven(&now), "{now:?}");
    }
    let source = origin(identity(10), stamp());
    let now = existing(20);
    let mut untrusted = known.file(b"a", source, &now, false);
    assert!(!untrusted.next().unwrap().is_proven);
    let edited = origin(identity(10), Stamp { size: 9, ..stamp() });
    let outdated = |source| {
        known
            .file(b"a", source, &now, true)
            .next()
            .unwrap()
            .outdated
    };
    assert!(outdated(edited) && !outdated(source));
}

/// Journals of earlier versions have no states, and a killed run has not recorded the last ones.
#[test]
fn a_file_without_a_recorded_state_is_doubted() {
    let known = known(&NOW, 3, |piece| record::push_done(piece, &done("c")));
    let before = last(&known, "c", &existing(20)).unwrap();
    assert!(!before.is_proven && before.content.is_some());
}

/// An edit in the moment of the renaming leaves the time of change alone; that of modification is
/// another one then, unless it was of this moment itself.
#[test]
fn a_state_that_an_edit_may_leave_alone_proves_nothing() {
    let now = |mtime_ns: i64, ctime_ns: i64| {
        let mut now = existing(20);
        let size = 3;
        now.stat.stamp = Stamp {
            size,
            mtime_ns,
            ctime_ns,
        };
        now
    };
    let second = 1_000_000_000;
    for (mtime_ns, ctime_ns, expected) in [
        (4, second + 1, true),
        (second, second + 1, false),
        (second + 90_000_000, second + 1, false),
        (9 * second, second + 1, true),
        (4, second, false),
    ] {
        let now = now(mtime_ns, ctime_ns);
        let known = known(&NOW, 3, |piece| {
            record::push_done(piece, &done("c"));
            record::push_placed(piece, b"c", &Placed::of(&now));
        });
        let is_proven = last(&known, "c", &now).unwrap().is_proven;
        assert_eq!(is_proven, expected, "{now:?}");
    }
}

/// A run that was killed before it gave a new copy its name has left the earlier one there.
#[test]
fn what_had_the_name_before_is_known_still() {
    let again = |piece: &mut Vec<u8>| {
        let later = bc_walk::FileStat {
            id: identity(11),
            ..stat(10)
        };
        let digest = Some(Digest::new(&[8; 32]));
        let done = record::done_of(b"a", &later, true, &stat(21), digest);
        record::push_done(piece, &done);
    };
    let known = known(&NOW, 3, again);
    let now = existing(20);
    let source = origin(identity(11), stamp());
    let all: Vec<NamedRecord> = known.file(b"a", source, &now, true).collect();
    let reported: Vec<_> = all
        .iter()
        .map(|one| (one.is_proven, one.outdated))
        .collect();
    assert_eq!(reported, [(false, false), (true, true)]);
    assert!(known.has_made(b"a", 20) && known.has_made(b"a", 21) && !known.has_made(b"a", 22));
}
