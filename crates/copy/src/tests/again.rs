//! The same copy again, where one of its ends is not what it was: another disk at the same place,
//! another owner's file, fewer sources.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use bc_pool::Cancel;
use bc_testkit::left_out;

use super::resume::settle;
use super::{Ground, done, journal, rewrite_journal, run};
use crate::resume::record;
use crate::{CopyProgress, Event, MANIFEST_NAME, OnConflict, Preserve, Target, copy};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A copy with a file in the way, which leaves a journal.
fn unfinished() -> (Ground, crate::CopyOptions) {
    let ground = Ground::new();
    ground.write("from/picture", b"card 1");
    ground.write("from/notes", b"notes");
    ground.write("to/notes", b"the user's");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    (ground, options)
}

/// Two cards that are mounted at one place in turn are told from each other by their names alone,
/// which are other ones in the journal here.
#[test]
fn what_was_copied_from_another_volume_is_in_the_way() {
    let (ground, options) = unfinished();
    let mut volumes = 0;
    rewrite_journal(&ground, |kind, body| {
        if kind == record::VOLUME {
            volumes += 1;
            body.extend_from_slice(b"another");
        }
        true
    });
    if volumes == 0 {
        return left_out("the volume has no name here");
    }
    std::fs::remove_file(ground.at("from/picture")).unwrap();
    ground.write("from/picture", b"card 2");
    settle();
    let (copied, reported) = run(&options);
    assert_eq!(copied.unwrap().failed, 2, "{reported:#?}");
    assert_eq!(std::fs::read(ground.at("to/picture")).unwrap(), b"card 1");
}

/// As an earlier version has left it, which recorded no volumes.
#[test]
fn a_changed_source_of_the_same_volume_is_copied_anew() {
    for is_old in [false, true] {
        let (ground, options) = unfinished();
        if is_old {
            rewrite_journal(&ground, |kind, _| kind < record::VOLUME);
        }
        ground.write("from/picture", b"edited");
        settle();
        assert_eq!(run(&options).0.unwrap().failed, 1);
        assert_eq!(std::fs::read(ground.at("to/picture")).unwrap(), b"edited");
    }
}

/// What run 1 was not to give, or could not, run 2 has to.
#[test]
fn metadata_that_is_lacking_is_given_by_a_run_that_goes_on() {
    for is_lacking in [false, true] {
        let ground = Ground::new();
        ground.write("from/a", b"a");
        ground.write("from/b", b"b");
        ground.write("to/b", b"in the way");
        chmod(&ground.at("from/a"), 0o604);
        settle();
        let mut options = ground.options(&["from"], "to");
        options.target = Target::Exactly;
        if !is_lacking {
            options.preserve = Preserve::NONE;
        }
        assert_eq!(run(&options).0.unwrap().failed, 1);
        if is_lacking {
            chmod(&ground.at("to/a"), 0o640);
            rewrite_journal(&ground, |_, _| true);
            let mut piece = Vec::new();
            record::push_lacking(&mut piece, b"to/a");
            append(&ground, &mut piece);
        }
        options.preserve = Preserve::ALL;
        options.strict = true;
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 1, "{reported:#?}");
        assert_eq!(
            mode(&ground.at("to/a")),
            0o604,
            "{is_lacking}: {reported:#?}"
        );
    }
}

/// Appends to the journal that is left.
fn append(ground: &Ground, piece: &mut [u8]) {
    use bc_edit::journal::{FoundJournal, Journal, Key};
    let key = Key::kept_in(ground.at("state")).unwrap();
    let place = bc_fs::place::Place::find(journal(ground).unwrap()).unwrap();
    let FoundJournal::Journal(mut journal) = Journal::open(&place, &key).unwrap() else {
        panic!("no journal");
    };
    let end = {
        let mut records = journal.records();
        while records.next_record().unwrap().is_some() {}
        records.end()
    };
    journal.cut(end).unwrap();
    journal.append(piece).unwrap();
}

/// A FIFO of the user's that was in the way of one is so again.
#[test]
fn what_failed_is_not_done_the_next_time() {
    let ground = Ground::new();
    let fifo = |path: &str, bits: u32| {
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from_raw_mode(bits);
        rustix::fs::mknodat(rustix::fs::CWD, ground.at(path), kind, mode, 0).unwrap();
        chmod(&ground.at(path), bits);
    };
    fifo("from/pipe", 0o640);
    std::fs::create_dir(ground.at("to")).unwrap();
    fifo("to/pipe", 0o600);
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    for turn in 0..3 {
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 1, "{turn}: {reported:#?}");
        assert_eq!(mode(&ground.at("to/pipe")), 0o600);
    }
}

/// Nor is a file with the same bytes, after a restart.
#[test]
fn a_file_with_other_metadata_is_in_the_way_after_a_restart() {
    let ground = Ground::new();
    ground.write("from/a", b"same");
    ground.write("to/a", b"same");
    chmod(&ground.at("from/a"), 0o640);
    chmod(&ground.at("to/a"), 0o666);
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    for turn in 0..3 {
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 1, "{turn}: {reported:#?}");
        assert_eq!(mode(&ground.at("to/a")), 0o666);
        // Another start of the system.
        rewrite_journal(&ground, |kind, body| {
            if kind == record::SESSION {
                body[0] ^= 1;
            }
            true
        });
    }
}

#[test]
fn without_times_the_same_copy_is_done() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/d/b", b"b");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
    for path in ["from/a", "from/d/b"] {
        let file = std::fs::File::options().write(true).open(ground.at(path));
        file.unwrap().set_modified(long_ago).unwrap();
    }
    // The other time of the sources cannot be chosen.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    options.preserve = Preserve::parse("mode").unwrap();
    done(&options);
    let again = done(&options);
    assert_eq!(again.bytes, 0);
    ground.write("from/new", b"n");
    assert_eq!(done(&options).bytes, 1);
}

/// A source that is gone when the run is gone on with has no part in what the others are.
#[test]
fn a_journal_outlives_a_source() {
    let ground = Ground::new();
    for (path, content) in [("one/a", "a"), ("two/b", "b"), ("two/c", "c")] {
        ground.write(path, content.as_bytes());
    }
    ground.write("to/two/c", b"in the way");
    settle();
    let options = ground.options(&["one", "two"], "to");
    assert_eq!(run(&options).0.unwrap().failed, 1);
    std::fs::remove_dir_all(ground.at("one")).unwrap();
    let (copied, reported) = run(&options);
    let copied = copied.unwrap();
    // The source, and the file that is in the way.
    assert_eq!((copied.failed, copied.before), (2, 2), "{reported:#?}");
}

/// A destination that is away for a while, and another one in its place.
#[test]
fn a_journal_waits_for_its_destination() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    ground.write("to/from/b", b"in the way");
    settle();
    let options = ground.options(&["from"], "to");
    assert_eq!(run(&options).0.unwrap().failed, 1);
    let first = journal(&ground).unwrap();
    std::fs::rename(ground.at("to"), ground.at("away")).unwrap();
    ground.write("to/other", b"");
    done(&options);
    assert_eq!(journal(&ground), Some(first));
    std::fs::remove_dir_all(ground.at("to")).unwrap();
    std::fs::rename(ground.at("away"), ground.at("to")).unwrap();
    let (copied, reported) = run(&options);
    let copied = copied.unwrap();
    assert_eq!((copied.failed, copied.before), (1, 2), "{reported:#?}");
    std::fs::remove_file(ground.at("to/from/b")).unwrap();
    done(&options);
    assert_eq!(journal(&ground), None);
}

/// Files that this copy has not made are still to be asked for.
#[test]
fn records_of_other_files_stay() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    ground.write("from/b", b"b");
    ground.write("more/c", b"c");
    std::fs::create_dir(ground.at("to")).unwrap();
    done(&ground.options(&["from"], "to"));
    std::fs::remove_file(ground.at("to/from/a")).unwrap();
    ground.write("to/from/b", b"changed");
    done(&ground.options(&["more"], "to"));
    let text = std::fs::read_to_string(ground.at("to").join(MANIFEST_NAME)).unwrap();
    for path in ["from", "from/a", "from/b", "more", "more/c"] {
        assert!(
            text.contains(&format!("\"path\":\"{path}\"")),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_named_manifest_is_not_left_out_in_silence() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    done(&ground.options(&["from"], "copied"));
    std::fs::create_dir(ground.at("to")).unwrap();
    let options = ground.options(&[&format!("copied/{MANIFEST_NAME}")], "to");
    let (copied, reported) = run(&options);
    assert_eq!(copied.unwrap().failed, 1, "{reported:#?}");
    // Of a directory that is copied it is a part, for which the new one stands.
    let mut options = ground.options(&["copied"], "other");
    options.target = Target::Exactly;
    assert_eq!(done(&options).skipped, 1);
}

/// A directory that was there keeps the mode that nobody asked to change.
#[test]
fn directories_that_were_there_keep_their_modes() {
    let ground = Ground::new();
    ground.write("from/sub/a", b"a");
    chmod(&ground.at("from/sub"), 0o755);
    ground.write("to/sub/b", b"b");
    for path in ["to", "to/sub"] {
        chmod(&ground.at(path), 0o700);
    }
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    options.preserve = Preserve::NONE;
    done(&options);
    assert_eq!(
        [mode(&ground.at("to")), mode(&ground.at("to/sub"))],
        [0o700; 2]
    );
    options.preserve = Preserve::ALL;
    options.on_conflict = OnConflict::Skip;
    done(&options);
    assert_eq!(mode(&ground.at("to/sub")), 0o755);
}

/// The mask of a list is no right of the group, and a list that was there goes with the mode.
#[test]
fn lists_widen_nothing() {
    let ground = Ground::new();
    ground.write("from/d/a", b"secret");
    chmod(&ground.at("from/d/a"), 0o600);
    chmod(&ground.at("from/d"), 0o750);
    ground.write("there/d/b", b"");
    chmod(&ground.at("there/d"), 0o700);
    let given = bc_testkit::give_acl(&ground.at("from/d/a"));
    if let Err(reason) = given.and_then(|()| bc_testkit::give_acl(&ground.at("there/d"))) {
        return left_out(&reason);
    }
    // The group has nothing, the user who is named all.
    let (name, file) = ("system.posix_acl_access", ground.at("from/d/a"));
    let mut list = [0; 44];
    assert_eq!(rustix::fs::getxattr(&file, name, &mut list[..]), Ok(44));
    list[4 + 2 * 8 + 2] = 0;
    rustix::fs::setxattr(&file, name, &list, rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(mode(&file) & 0o070, 0o070);
    let mut options = ground.options(&["from"], "to");
    options.preserve = Preserve::parse("mode,times").unwrap();
    done(&options);
    assert_eq!(mode(&ground.at("to/d/a")) & 0o070, 0);
    let mut options = ground.options(&["from"], "there");
    options.target = Target::Exactly;
    done(&options);
    let there = ground.at("there/d");
    assert!(!bc_testkit::has_acl(&there), "{:o}", mode(&there));
    assert_eq!(mode(&there), 0o750);
}

/// Between the look that found it older and the moment in which it would lose its name.
#[test]
fn a_file_that_has_become_newer_meanwhile_stays() {
    for how in [OnConflict::Update, OnConflict::Verify] {
        let ground = Ground::new();
        for name in ["a", "b"] {
            ground.write(&format!("to/{name}"), b"old");
            ground.write(&format!("from/{name}"), b"of the source");
            let file = std::fs::File::options()
                .write(true)
                .open(ground.at(&format!("to/{name}")));
            file.unwrap()
                .set_modified(std::time::SystemTime::UNIX_EPOCH)
                .unwrap();
        }
        let mut options = ground.options(&["from"], "to");
        options.target = Target::Exactly;
        options.on_conflict = how;
        options.workers = 1;
        let edited = ground.at("to/b");
        // Both are decided about before the first has its name.
        let observer = |event: Event<'_>| {
            if matches!(event, Event::Replaced(_)) {
                std::fs::write(&edited, "of today").unwrap();
            }
        };
        let copied = copy(
            &options,
            &Cancel::new(),
            &CopyProgress::default(),
            &observer,
        );
        assert_eq!(copied.unwrap().failed, 1);
        assert_eq!(std::fs::read(&edited).unwrap(), b"of today");
        assert_eq!(std::fs::read(ground.at("to/a")).unwrap(), b"of the source");
    }
}

/// Neither journal nor manifest go where another directory has been put meanwhile.
#[test]
fn the_manifest_goes_with_its_destination() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    std::fs::create_dir(ground.at("to")).unwrap();
    let options = ground.options(&["from"], "to");
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) {
            std::fs::rename(ground.at("to"), ground.at("moved")).unwrap();
            std::fs::create_dir(ground.at("to")).unwrap();
        }
    };
    let copied = copy(
        &options,
        &Cancel::new(),
        &CopyProgress::default(),
        &observer,
    );
    let error = copied.unwrap_err().to_string();
    assert!(error.contains("was moved meanwhile"), "{error}");
    assert!(ground.at("moved/from/a").exists());
    assert!(!ground.at("to").join(MANIFEST_NAME).exists());
}
