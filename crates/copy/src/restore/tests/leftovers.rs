//! Leftovers of a killed run: removed by the next one, except files that may be worth keeping.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use bc_fs::dirfd;
use bc_integrity::ManifestFile;

use super::super::make::Present;
use super::super::options::{RestoreEvent, RestoreOptions};
use super::super::stages::Stages;
use super::super::start::RestoreRoot;
use super::{Ground, Told};
use crate::meta::stat_at;
use crate::place::DestDir;
use crate::stage::{JobId, StageUse};
use crate::{CopyOptions, CopyProgress, stage};

fn ground() -> Ground {
    let ground = Ground::new();
    ground.write("root/a/one", "content of one");
    ground.write("root/a/two", "the content of two");
    ground.record();
    ground.copy("root", "copy");
    ground.damage("root/a/one");
    ground
}

/// Simulates a run that is killed while it repairs `a/one`; `then` is its last action, with the
/// path of the stage, which exists.
fn killed(ground: &Ground, then: impl FnOnce(&Stages<'_>, &PathBuf)) -> PathBuf {
    let manifest = ManifestFile::open(ground.at("m")).unwrap();
    let root: OsString = ground.at("root").into();
    let mut options = RestoreOptions::new(&root, &manifest);
    options.state = Some(ground.at("state"));
    let top = RestoreRoot::open(root.as_encoded_bytes()).unwrap();
    let observer = |event: RestoreEvent<'_>| panic!("{event:?}");
    let id = JobId([9; 16]);
    let stages = Stages::begin(&options, &top, id, &observer).unwrap();
    let dir = DestDir::open(top.fd.as_fd(), b"a").unwrap();
    stages.begun(b"a/one");
    let name = id.stage(&dir, b"a/one", None);
    let made = stage::open(&dir, name, StageUse::Fresh).unwrap();
    let path = ground.at("root/a").join(&made.name);
    stages.made(b"a/one", &made.file);
    fs::write(&path, "half of it").unwrap();
    then(&stages, &path);
    path
}

fn next(ground: &Ground) -> (Result<crate::Restored, bc_walk::job::Error>, Told) {
    ground.try_heal(&["copy"], |options| {
        options.state = Some(ground.at("state"))
    })
}

#[track_caller]
fn is_repaired(ground: &Ground) -> Told {
    let (done, reported) = next(ground);
    assert_eq!(done.unwrap().failed, 0, "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one", "{reported:#?}");
    let journals = fs::read_dir(ground.at("state/copy")).unwrap().count();
    assert_eq!(journals, 0, "{reported:#?}");
    reported
}

#[test]
fn the_next_run_removes_it() {
    let ground = ground();
    type Then = fn(&Stages<'_>, &PathBuf);
    let cases: [(&str, Then); 4] = [
        ("its own", |_, _| {}),
        // Killed before the inode was recorded.
        ("another name", |_, path| {
            fs::remove_file(path).unwrap();
            fs::hard_link(path.with_file_name("two"), path).unwrap();
        }),
        ("a link", |_, path| {
            fs::remove_file(path).unwrap();
            symlink("two", path).unwrap();
        }),
        ("what was given up", |stages, path| {
            let one = path.with_file_name("one");
            let dir = dirfd::open_root(one.parent().unwrap().as_os_str().as_encoded_bytes());
            let stat = stat_at(dir.unwrap(), "one").unwrap();
            let digest = None;
            stages.given_up(b"a/one", &Present { stat, digest });
            // As an exchange does.
            fs::remove_file(path).unwrap();
            fs::copy(&one, path.with_file_name("healed")).unwrap();
            fs::rename(&one, path).unwrap();
            fs::rename(path.with_file_name("healed"), one).unwrap();
        }),
    ];
    for (context, then) in cases {
        let path = killed(&ground, then);
        let reported = is_repaired(&ground);
        assert!(path.symlink_metadata().is_err(), "{context}: {reported:#?}");
        assert_eq!(ground.text("root/a/two"), "the content of two", "{context}");
        let warned = reported.iter().any(|line| line.starts_with('#'));
        assert!(!warned, "{context}: {reported:#?}");
    }
}

/// Without links an exchange comes first, and the damaged file has the stage's name for a moment;
/// and another process may write to a file that is not to be kept.
#[test]
fn what_may_have_been_there_before_stays() {
    for edits in [false, true] {
        let ground = ground();
        let path = killed(&ground, |stages, path| {
            let one = path.with_file_name("one");
            if edits {
                let dir = dirfd::open_root(path.parent().unwrap().as_os_str().as_encoded_bytes());
                let stat = stat_at(dir.unwrap(), "one").unwrap();
                stages.given_up(b"a/one", &Present { stat, digest: None });
                fs::write(&one, "an edit").unwrap();
            }
            fs::rename(path, path.with_file_name("healed")).unwrap();
            fs::rename(&one, path).unwrap();
            fs::rename(path.with_file_name("healed"), one).unwrap();
        });
        let before = fs::read(&path).unwrap();
        let reported = next(&ground).1;
        assert_eq!(fs::read(&path).unwrap(), before, "{reported:#?}");
        let name = path.file_name().unwrap().to_str().unwrap();
        let named = reported
            .iter()
            .any(|line| line.contains(name) && line.contains("left alone"));
        assert!(named, "{reported:#?}");
    }
}

#[test]
fn a_second_run_is_refused_while_one_is_at_work() {
    let ground = ground();
    let path = killed(&ground, |_, path| {
        let (done, _) = next(&ground);
        let refused = done.unwrap_err().to_string();
        assert!(refused.contains("another restore"), "{refused}");
        assert!(path.exists());
        assert_ne!(ground.text("root/a/one"), "content of one");
    });
    is_repaired(&ground);
    assert!(!path.exists());
}

/// It would be verified while the first one repairs: the first one's stages look like damaged
/// files.
#[test]
fn nor_before_it_is_verified() {
    let ground = ground();
    let manifest = ManifestFile::open(ground.at("m")).unwrap();
    let root: OsString = ground.at("root").into();
    let mut options = RestoreOptions::new(&root, &manifest);
    options.state = Some(ground.at("state"));
    let top = RestoreRoot::open(root.as_encoded_bytes()).unwrap();
    let observer = |event: RestoreEvent<'_>| panic!("{event:?}");
    let first = Stages::begin(&options, &top, JobId([9; 16]), &observer).unwrap();
    let refused = next(&ground).0.unwrap_err().to_string();
    assert!(refused.contains("another restore"), "{refused}");
    drop(first);
    is_repaired(&ground);
}

/// Nothing is kept of a run that is over, nor of one that has nothing to do.
#[test]
fn no_journal_stays() {
    let ground = ground();
    is_repaired(&ground);
    let reported = is_repaired(&ground);
    assert!(reported.is_empty(), "{reported:#?}");
}

/// A tree that is not repaired again.
#[test]
fn after_a_week_a_copy_removes_it() {
    let ground = ground();
    let path = killed(&ground, |_, _| {});
    ground.write("other/file", "other");
    let week = 7 * 24 * 3600;
    for (seconds, expected) in [(week - 3600, true), (week + 3600, false)] {
        let mut options =
            CopyOptions::new(vec![ground.at("other")], ground.at(format!("to{seconds}")));
        options.state = Some(ground.at("state"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        options.now = (now.unwrap().as_secs() as i64 + seconds) * 1_000_000_000;
        let cancel = bc_pool::Cancel::new();
        crate::copy(&options, &cancel, &CopyProgress::default(), &|_| {}).unwrap();
        assert_eq!(path.exists(), expected);
    }
}
