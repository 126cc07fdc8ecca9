//! Leftovers of interrupted copies: their removal, its time, and files that are left alone.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bc_edit::journal::{FoundJournal, Journal, Key, push};
use bc_fs::dirfd;
use bc_fs::place::Place;

use super::resume::{interrupted, settle, stages};
use super::{Ground, Told, done, run, seen};
use crate::place::DestDir;
use crate::resume::known::VolumeNow;
use crate::resume::record;
use crate::resume::record::{AsideRecord, JobRecord, SiteRecord};
use crate::stage::JobId;
use crate::{CopyOptions, Target};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The one journal that is there.
fn journal_file(ground: &Ground) -> PathBuf {
    let names = std::fs::read_dir(ground.at("state/copy")).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let first = names.next().expect("no journal");
    assert_eq!(names.next(), None);
    first
}

/// The job of the one journal that is there, whose records `more` adds to.
fn with_records(ground: &Ground, more: impl Fn(&mut Vec<u8>)) -> JobRecord {
    let key = Key::kept_in(ground.at("state")).unwrap();
    let place = Place::find(journal_file(ground)).unwrap();
    let FoundJournal::Journal(mut journal) = Journal::open(&place, &key).unwrap() else {
        panic!("no journal");
    };
    let content = crate::resume::journal::load(&journal, &[0; 16])
        .unwrap()
        .unwrap();
    let mut piece = Vec::new();
    more(&mut piece);
    journal.append(&mut piece).unwrap();
    content.job
}

/// Makes the stage of a small file that a killed run was about to finish; returns its path.
fn begun(ground: &Ground, name: &str) -> PathBuf {
    let job = with_records(ground, |piece| {
        push(piece, record::BEGUN, |out| {
            out.extend_from_slice(format!("to/{name}").as_bytes());
        });
    });
    let path = stage_of(ground, &job, name);
    std::fs::write(&path, "half").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

fn stage_of(ground: &Ground, job: &JobRecord, name: &str) -> PathBuf {
    let dir = dirfd::open_root(ground.at("to").as_os_str().as_encoded_bytes()).unwrap();
    let dir = DestDir::of(dir).unwrap();
    ground
        .at("to")
        .join(JobId(job.id).stage(&dir, format!("to/{name}").as_bytes(), None))
}

/// Another copy, so many days later.
fn other_copy(ground: &Ground, days: u32) -> Told {
    ground.write("other/file", b"other");
    let mut options = ground.options(&["other"], "elsewhere");
    options.target = Target::Exactly;
    options.on_conflict = crate::OnConflict::Replace;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    options.now = (now.unwrap() + days * DAY).as_nanos() as i64;
    let (done, reported) = run(&options);
    assert_eq!(done.unwrap().failed, 0, "{reported:?}");
    reported
}

fn is_named(reported: &Told, path: &Path, why: &str) -> bool {
    let path = path.display().to_string();
    reported
        .iter()
        .any(|line| line.contains(&path) && line.contains(why) && line.contains("left alone"))
}

/// An interrupted copy of a huge file, and a small one that was under way.
fn orphaned() -> (Ground, CopyOptions, PathBuf, PathBuf) {
    let ground = Ground::new();
    ground.write("from/huge", &vec![5; 70 << 20]);
    let options = interrupted(&ground);
    let small = begun(&ground, "small");
    let huge = stages(&ground.at("to"))
        .into_iter()
        .find(|path| *path != small);
    (ground, options, small, huge.unwrap())
}

#[test]
fn after_a_week_they_are_removed() {
    let (ground, options, small, huge) = orphaned();
    let journal = journal_file(&ground);
    let mut reported = other_copy(&ground, 6);
    assert!(
        small.exists() && huge.exists() && journal.exists(),
        "{reported:?}"
    );
    // A clock that was set wrong makes nothing old.
    let file = std::fs::File::options()
        .append(true)
        .open(&journal)
        .unwrap();
    file.set_modified(SystemTime::now() + 30 * DAY).unwrap();
    reported = other_copy(&ground, 8);
    assert!(
        small.exists() && huge.exists() && journal.exists(),
        "{reported:?}"
    );
    file.set_modified(SystemTime::now()).unwrap();
    drop(file);
    reported = other_copy(&ground, 8);
    assert!(
        !small.exists() && !huge.exists() && !journal.exists(),
        "{reported:?}"
    );
    assert!(
        reported
            .iter()
            .any(|line| line.contains("its journal and 2 stages")),
        "{reported:?}"
    );
    // It starts again, in the directory that is there now.
    done(&options);
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("to/from")));
}

/// Sources of a move that cannot be looked for, since their disk is away, are known by their journal
/// alone.
#[test]
fn a_journal_stays_until_what_was_set_aside_is_settled() {
    for is_away in [true, false] {
        let (ground, ..) = orphaned();
        // Another volume than that of the source has the place.
        let dir = match is_away {
            true => PathBuf::from("/proc/gone"),
            false => ground.at("gone"),
        };
        let aside = AsideRecord {
            dir: dir.into_os_string().into_encoded_bytes(),
            name: b"file".to_vec(),
            private: bc_edit::names::aside([7; 8]),
        };
        let source = ground.at("from").into_os_string().into_encoded_bytes();
        let volume = VolumeNow::of_place(&source).unwrap();
        let site = SiteRecord {
            source: 0,
            dev: volume.dev,
            volume: volume.name,
        };
        with_records(&ground, |piece| {
            record::push_site(piece, &site);
            assert!(record::push_aside(piece, &aside));
        });
        let journal = journal_file(&ground);
        let reported = other_copy(&ground, 8);
        assert_eq!(journal.exists(), is_away, "{reported:?}");
    }
}

/// A run that is killed before it records anything has held the place of its journal by an empty
/// file.
#[test]
fn a_place_that_nobody_holds_any_more_is_given_up() {
    let ground = Ground::new();
    other_copy(&ground, 0);
    let stub = ground.at("state/copy/0123456789abcdef.journal");
    std::fs::write(&stub, "").unwrap();
    std::fs::set_permissions(&stub, PermissionsExt::from_mode(0o600)).unwrap();
    other_copy(&ground, 6);
    assert!(stub.exists());
    other_copy(&ground, 8);
    assert!(!stub.exists());
}

#[test]
fn those_of_a_living_run_stay() {
    let (ground, _, small, huge) = orphaned();
    let key = Key::kept_in(ground.at("state")).unwrap();
    let place = Place::find(journal_file(&ground)).unwrap();
    let held = Journal::open(&place, &key).unwrap();
    assert!(matches!(held, FoundJournal::Journal(_)));
    other_copy(&ground, 8);
    assert!(small.exists() && huge.exists() && journal_file(&ground).exists());
}

#[test]
fn what_is_not_ours_is_named_and_left() {
    let (ground, _, small, huge) = orphaned();
    std::fs::set_permissions(&small, PermissionsExt::from_mode(0o666)).unwrap();
    std::fs::hard_link(&huge, ground.at("second")).unwrap();
    let link = begun(&ground, "link");
    std::fs::remove_file(&link).unwrap();
    symlink("../victim", &link).unwrap();
    ground.write("victim", b"kept");
    let dir = begun(&ground, "dir");
    std::fs::remove_file(&dir).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let journal = journal_file(&ground);
    let foreign = ground.at("state/copy/foreign.journal");
    std::fs::write(&foreign, vec![7; 100]).unwrap();
    let reported = other_copy(&ground, 8);
    assert!(
        is_named(&reported, &small, "others may write it"),
        "{reported:?}"
    );
    assert!(is_named(&reported, &huge, "several names"), "{reported:?}");
    assert!(is_named(&reported, &link, ""), "{reported:?}");
    assert!(
        is_named(&reported, &dir, "not a regular file"),
        "{reported:?}"
    );
    assert!(
        is_named(&reported, &foreign, "not a journal"),
        "{reported:?}"
    );
    for path in [&small, &huge, &dir, &foreign] {
        assert!(path.exists(), "{}", path.display());
    }
    assert!(link.is_symlink() && !journal.exists());
    assert_eq!(std::fs::read(ground.at("victim")).unwrap(), b"kept");
    if bc_testkit::is_root() {
        let (ground, _, small, _) = orphaned();
        std::os::unix::fs::chown(&small, Some(bc_testkit::NOBODY), None).unwrap();
        let reported = other_copy(&ground, 8);
        assert!(
            is_named(&reported, &small, "belongs to user"),
            "{reported:?}"
        );
        assert!(small.exists());
    }
}

/// A disk that is not there now may come back.
#[test]
fn where_the_destination_is_not_there_the_journal_stays() {
    let ground = Ground::new();
    ground.write("from/file", b"content");
    ground.write("disk/to/file", b"mine");
    settle();
    let mut options = ground.options(&["from"], "disk/to");
    options.target = Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    let journal = journal_file(&ground);
    std::fs::rename(ground.at("disk"), ground.at("away")).unwrap();
    other_copy(&ground, 8);
    assert!(journal.exists());
    // Another disk is in its place.
    std::fs::create_dir_all(ground.at("disk/to")).unwrap();
    other_copy(&ground, 8);
    assert!(journal.exists());
    std::fs::remove_dir_all(ground.at("disk")).unwrap();
    std::fs::rename(ground.at("away"), ground.at("disk")).unwrap();
    other_copy(&ground, 8);
    assert!(!journal.exists());
}

/// The resumed run finds no source for a stage of the killed one.
#[test]
fn stages_whose_sources_are_gone_go_when_the_copy_is_complete() {
    let (ground, options, small, _) = orphaned();
    settle();
    done(&options);
    assert!(!small.exists());
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());

    // Recorded already, and killed before the renaming.
    let ground = Ground::new();
    ground.write("from/gone", b"content");
    ground.write("from/other", b"other");
    ground.write("to/other", b"mine");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    let job = with_records(&ground, |_| {});
    std::fs::rename(ground.at("to/gone"), stage_of(&ground, &job, "gone")).unwrap();
    std::fs::remove_file(ground.at("from/gone")).unwrap();
    options.on_conflict = crate::OnConflict::Replace;
    done(&options);
    assert_eq!(seen(&ground.at("from")), seen(&ground.at("to")));
    assert!(ground.litter().is_empty(), "{:?}", ground.litter());
}
