//! Ownership of journals, and which of their records are believed.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use tempfile::TempDir;

use super::*;

struct Ground {
    dir: TempDir,
    key: Key,
}

impl Ground {
    fn new() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::kept_in(dir.path().join("state")).unwrap();
        Ground { dir, key }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("out.partial")
    }

    fn place(&self) -> Place {
        Place::find(self.path()).unwrap()
    }

    fn create(&self, bodies: &[&[u8]]) -> Journal {
        Journal::create(self.place(), &self.key, &mut piece(bodies)).unwrap()
    }

    fn open(&self) -> FoundJournal {
        // Directories on the way to the file are judged too.
        let place = self.dir.path().join("out");
        let place = Place::find(&place).unwrap().beside(".partial").unwrap();
        Journal::open(&place, &self.key).unwrap()
    }

    fn journal(&self) -> Journal {
        match self.open() {
            FoundJournal::Journal(journal) => journal,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn is_foreign(&self, why: &str) {
        let before = std::fs::symlink_metadata(self.path()).unwrap();
        match self.open() {
            FoundJournal::Foreign(said) => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
        let made = Journal::create(self.place_of_link(), &self.key, &mut piece(&[b"new"]));
        assert!(made.is_err());
        let after = std::fs::symlink_metadata(self.path()).unwrap();
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
    }

    fn place_of_link(&self) -> Place {
        let place = Place::find(self.dir.path().join("out")).unwrap();
        place.beside(".partial").unwrap()
    }
}

fn piece(bodies: &[&[u8]]) -> Vec<u8> {
    let mut piece = Vec::new();
    for (kind, body) in bodies.iter().enumerate() {
        push(&mut piece, kind as u8, |out| out.extend_from_slice(body));
    }
    piece
}

fn bodies(journal: &Journal) -> (Vec<Vec<u8>>, u64) {
    let mut records = journal.records();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        all.push(record.body.to_vec());
    }
    (all, records.end())
}

#[test]
fn what_is_appended_is_read_again() {
    let ground = Ground::new();
    assert!(matches!(ground.open(), FoundJournal::Nothing));
    let long = vec![7; LONGEST - 1];
    let mut journal = ground.create(&[b"first", b""]);
    journal.append(&mut piece(&[&long, b"last"])).unwrap();
    journal.append(&mut Vec::new()).unwrap();
    drop(journal);
    let journal = ground.journal();
    let (all, end) = bodies(&journal);
    assert_eq!(all, [&b"first"[..], b"", &long, b"last"]);
    assert_eq!(end, journal.length());
    let mode = journal.file().metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let (mut buffer, view) = (Vec::new(), journal.view().unwrap());
    let first = view.record_at(HEAD, 6, &mut buffer).unwrap().unwrap();
    assert_eq!((first.at, first.kind, first.body), (HEAD, 0, &b"first"[..]));
    assert_eq!(view.record_at(HEAD + 1, 64, &mut buffer).unwrap(), None);
    // One that is longer than was expected.
    assert_eq!(view.record_at(HEAD, 5, &mut buffer).unwrap(), None);
}

/// Returns bodies that contain a record's number and some more, so that no two are the same.
fn numbered(count: u32) -> Vec<Vec<u8>> {
    let body = |n: u32| [&n.to_le_bytes()[..], &vec![n as u8; (n % 23) as usize]].concat();
    (0..count).map(body).collect()
}

#[test]
fn a_torn_end_is_cut_off_and_gone_on_from() {
    let ground = Ground::new();
    let all = numbered(5);
    let refs: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let whole = ground.create(&refs);
    let length = whole.length();
    drop(whole);
    let text = std::fs::read(ground.path()).unwrap();
    let mut seen = 0;
    for cut in HEAD..=length {
        for rest in [&b""[..], &[0; 40], &[0xff; 40]] {
            std::fs::write(ground.path(), [&text[..cut as usize], rest].concat()).unwrap();
            let mut journal = ground.journal();
            let (found, end) = bodies(&journal);
            assert_eq!(found, all[..found.len()], "{cut}");
            seen = seen.max(found.len());
            journal.cut(end).unwrap();
            journal.append(&mut piece(&[b"more"])).unwrap();
            let (again, end) = bodies(&journal);
            assert_eq!(again[..found.len()], found[..]);
            assert_eq!(again[found.len()..], [b"more"]);
            assert_eq!(end, journal.length());
        }
    }
    assert_eq!(seen, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that records read from a damaged journal are always among those written.
    #[test]
    fn damage_makes_no_records(flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6)) {
        let ground = Ground::new();
        let all = numbered(40);
        let refs: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        drop(ground.create(&refs));
        let mut text = std::fs::read(ground.path()).unwrap();
        for (at, flip) in flips {
            let at = at.index(text.len());
            text[at] ^= flip;
        }
        std::fs::write(ground.path(), &text).unwrap();
        match ground.open() {
            FoundJournal::Journal(journal) => {
                let (found, _) = bodies(&journal);
                prop_assert_eq!(&found[..], &all[..found.len()]);
                let (view, mut buffer) = (journal.view().unwrap(), Vec::new());
                for at in 0..text.len() as u64 {
                    if let Some(record) = view.record_at(at, 64, &mut buffer).unwrap() {
                        prop_assert!(all.iter().any(|body| body == record.body));
                    }
                }
            }
            FoundJournal::Foreign(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn records_of_another_journal_are_none_of_this_one() {
    let ground = Ground::new();
    drop(ground.create(&[b"one", b"two"]));
    let old = std::fs::read(ground.path()).unwrap();
    std::fs::remove_file(ground.path()).unwrap();
    drop(ground.create(&[b"new"]));
    let new = std::fs::read(ground.path()).unwrap();
    // As when the blocks of the old one show again.
    let mixed = [&new[..], &old[HEAD as usize..]].concat();
    std::fs::write(ground.path(), mixed).unwrap();
    let (found, end) = bodies(&ground.journal());
    assert_eq!(found, [b"new"]);
    assert_eq!(end, new.len() as u64);
}

#[test]
fn what_is_no_journal_of_this_user_is_left_alone() {
    let ground = Ground::new();
    drop(ground.create(&[b"mine"]));
    let text = std::fs::read(ground.path()).unwrap();
    let fresh = |mode, text: &[u8]| {
        let _ = std::fs::remove_file(ground.path());
        std::fs::write(ground.path(), text).unwrap();
        set_mode(&ground.path(), mode);
    };
    for mode in [0o620, 0o602, 0o666] {
        fresh(mode, &text);
        ground.is_foreign("others may write it");
    }
    fresh(0o600, b"a download that is not finished, say");
    ground.is_foreign("not a journal");
    fresh(0o600, &[0; 4096]);
    ground.is_foreign("not a journal");
    // Empty, and not left by a killed run.
    fresh(0o644, b"");
    ground.is_foreign("not a journal");
    fresh(0o600, &[b"bc journal v2\r\n\0", &text[16..]].concat());
    ground.is_foreign("another version");
    let other = Key::kept_in(ground.dir.path().join("other")).unwrap();
    assert_ne!(other, ground.key);
    fresh(0o600, &[&text[..16], other.bytes(), &text[32..]].concat());
    ground.is_foreign("its key is not known here");
    fresh(0o600, &text);
    std::fs::hard_link(ground.path(), ground.dir.path().join("name")).unwrap();
    ground.is_foreign("several names");
    std::fs::remove_file(ground.path()).unwrap();
    symlink("name", ground.path()).unwrap();
    ground.is_foreign("a symbolic link");
    std::fs::remove_file(ground.path()).unwrap();
    std::fs::create_dir(ground.path()).unwrap();
    ground.is_foreign("not a regular file");
    std::fs::remove_dir(ground.path()).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, ground.path(), FileType::Fifo, mode, 0).unwrap();
    ground.is_foreign("not a regular file");
    let kind = std::fs::symlink_metadata(ground.path())
        .unwrap()
        .file_type();
    assert!(kind.is_fifo());
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Needs root, as no other user can make files of others.
#[test]
fn what_belongs_to_somebody_else_is_left_alone() {
    let ground = Ground::new();
    drop(ground.create(&[b"mine"]));
    if std::os::unix::fs::chown(ground.path(), Some(65534), Some(65534)).is_err() {
        return;
    }
    ground.is_foreign("belongs to user 65534");
    set_mode(ground.dir.path(), 0o1777);
    ground.is_foreign("user 65534");
}

#[test]
fn a_living_run_holds_its_journal() {
    let ground = Ground::new();
    let living = ground.create(&[b"first"]);
    assert!(matches!(ground.open(), FoundJournal::Busy));
    let again = Journal::create(ground.place(), &ground.key, &mut piece(&[b"x"]));
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(living);
    assert!(matches!(ground.open(), FoundJournal::Journal(_)));
}

#[test]
fn what_a_run_left_that_was_killed_at_once_is_nothing() {
    let ground = Ground::new();
    std::fs::write(ground.path(), "").unwrap();
    set_mode(&ground.path(), 0o600);
    assert!(matches!(ground.open(), FoundJournal::Nothing));
    let journal = ground.create(&[b"first"]);
    assert_eq!(bodies(&journal).0, [b"first"]);
    journal.remove();
    assert!(!ground.path().exists());
}

#[test]
fn a_journal_set_aside_takes_nobodys_name() {
    let ground = Ground::new();
    std::fs::write(ground.dir.path().join("out.partial-1"), "mine").unwrap();
    for nth in [2, 3] {
        let journal = ground.create(&[b"first"]);
        let name = journal.set_aside().unwrap();
        assert_eq!(name, *format!("out.partial-{nth}"));
        assert!(!ground.path().exists() && ground.dir.path().join(name).exists());
    }
    let mine = std::fs::read(ground.dir.path().join("out.partial-1")).unwrap();
    assert_eq!(mine, b"mine");
}

#[test]
fn what_took_the_name_meanwhile_is_not_removed() {
    let ground = Ground::new();
    let journal = ground.create(&[b"first"]);
    std::fs::rename(ground.path(), ground.dir.path().join("elsewhere")).unwrap();
    std::fs::write(ground.path(), "mine").unwrap();
    journal.remove();
    assert_eq!(std::fs::read(ground.path()).unwrap(), b"mine");
}

#[test]
fn a_key_is_made_once_and_kept_from_others() {
    let ground = Ground::new();
    let state = ground.dir.path().join("state");
    assert_eq!(Key::kept_in(&state).unwrap(), ground.key);
    let file = state.join("journal.key");
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&state), mode(&file)), (0o700, 0o600));
    set_mode(&file, 0o620);
    let error = Key::kept_in(&state).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(
        error
            .to_string()
            .contains("journal.key: read: others may write it")
    );
    set_mode(&file, 0o600);
    std::fs::write(&file, "short").unwrap();
    let error = Key::kept_in(&state).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let all: Vec<_> = (0..4)
        .map(|_| {
            let state = ground.dir.path().join("race");
            std::thread::spawn(move || Key::kept_in(&state).unwrap())
        })
        .collect();
    let keys: Vec<Key> = all.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
}
