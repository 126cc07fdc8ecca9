//! Changes of the user to files that an interrupted run left are the user's, whatever happened
//! meanwhile.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::resume::settle;
use super::{Ground, rewrite_journal, run};
use crate::resume::record;
use crate::{CopyOptions, OnConflict, Target};

/// A copy of three files that one conflict has left incomplete, with its journal.
fn left() -> (Ground, CopyOptions) {
    let ground = Ground::new();
    for name in ["edited", "kept", "mine"] {
        ground.write(
            &format!("from/{name}"),
            format!("of the source: {name}").as_bytes(),
        );
    }
    ground.write("to/mine", b"the user's");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    (ground, options)
}

/// Event since the interruption.
#[derive(Clone, Copy, Debug)]
enum Since {
    Nothing,
    Boot,
    Mount,
    /// The journal is that of an earlier version, which recorded no states.
    Update,
}

impl Since {
    const ALL: [Since; 4] = [Since::Nothing, Since::Boot, Since::Mount, Since::Update];

    fn happens(self, ground: &Ground) {
        rewrite_journal(ground, |kind, body| {
            match (self, kind) {
                (Since::Boot, record::SESSION) => body[0] ^= 1,
                (Since::Mount, record::SESSION) => body[16] ^= 1,
                (Since::Update, record::PLACED) => return false,
                _ => {}
            }
            true
        });
    }
}

/// Writes into a file as it is. `is_secret`: with its size and time of modification.
fn edit(path: &Path, is_secret: bool) {
    let file = File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    match is_secret {
        true => {
            file.write_all_at(b"MY", 0).unwrap();
            file.set_modified(time).unwrap();
        }
        false => file
            .write_all_at(b"my own words, which nobody else has", 0)
            .unwrap(),
    }
}

#[test]
fn an_edit_in_place_meets_the_policy_whatever_happened() {
    for since in Since::ALL {
        for is_secret in [false, true] {
            for policy in OnConflict::ALL {
                let (ground, mut options) = left();
                edit(&ground.at("to/edited"), is_secret);
                let edited = std::fs::read(ground.at("to/edited")).unwrap();
                since.happens(&ground);
                options.on_conflict = policy;
                let (copied, reported) = run(&options);
                let context = format!("{since:?} {is_secret} {policy:?}: {reported:#?}");
                let now = std::fs::read(ground.at("to/edited")).unwrap();
                let is_replaced = matches!(policy, OnConflict::Replace | OnConflict::Verify);
                assert_eq!(now != edited, is_replaced, "{context}");
                let copied = copied.unwrap();
                let failed = if policy == OnConflict::Fail { 2 } else { 0 };
                assert_eq!((copied.failed, copied.before), (failed, 1), "{context}");
            }
        }
    }
}

/// A file of the user's stays, whichever of them is in the place of a copy's.
#[test]
fn a_file_of_the_users_that_was_in_the_way_stays_in_the_way() {
    for since in Since::ALL {
        let (ground, options) = left();
        since.happens(&ground);
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 1, "{since:?}: {reported:#?}");
        let mine = std::fs::read(ground.at("to/mine")).unwrap();
        assert_eq!(mine, b"the user's", "{since:?}");
    }
}

/// Nor does it if a run has met it there, and its file was made while the journal was written to.
#[test]
fn a_file_that_the_user_has_made_between_two_runs_stays_in_the_way() {
    for since in Since::ALL {
        let (ground, options) = left();
        std::fs::remove_file(ground.at("to/kept")).unwrap();
        ground.write("to/kept", b"of my own");
        assert_eq!(run(&options).0.unwrap().failed, 2, "{since:?}");
        since.happens(&ground);
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 2, "{since:?}: {reported:#?}");
        let kept = std::fs::read(ground.at("to/kept")).unwrap();
        assert_eq!(kept, b"of my own", "{since:?}");
    }
}

/// An edit after a file was found to be the copy's own, just before its successor has its name.
#[test]
fn an_edit_while_its_successor_is_copied_stays() {
    for is_secret in [false, true] {
        let (ground, mut options) = left();
        options.workers = 1;
        for name in ["edited", "kept"] {
            ground.write(&format!("from/{name}"), b"other words");
        }
        let other = std::sync::Mutex::new(None);
        let observer = |event: crate::Event<'_>| {
            let mut other = other.lock().unwrap();
            // Both are copied by then, and one has its name.
            if let (crate::Event::Replaced(path), None) = (event, &*other) {
                let name = if path.ends_with(b"/kept") {
                    "to/edited"
                } else {
                    "to/kept"
                };
                edit(&ground.at(name), is_secret);
                *other = Some((name, std::fs::read(ground.at(name)).unwrap()));
            }
        };
        let progress = crate::CopyProgress::default();
        let copied = crate::copy(&options, &bc_pool::Cancel::new(), &progress, &observer);
        assert_eq!(copied.unwrap().failed, 2);
        let (name, content) = other.into_inner().unwrap().unwrap();
        assert_eq!(std::fs::read(ground.at(name)).unwrap(), content);
    }
}

/// A file with the recorded bytes is the copy's own, whatever its times are: it follows its source.
#[test]
fn what_was_only_touched_is_still_ours() {
    for since in Since::ALL {
        let (ground, options) = left();
        let file = File::options()
            .write(true)
            .open(ground.at("to/kept"))
            .unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
        ground.write("from/kept", b"other words");
        since.happens(&ground);
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 1, "{since:?}: {reported:#?}");
        let kept = std::fs::read(ground.at("to/kept")).unwrap();
        assert_eq!(kept, b"other words", "{since:?}: {reported:#?}");
    }
}

/// `--restart` copies again all that the copy has made, and nothing else.
#[test]
fn a_restart_replaces_what_the_copy_has_made_alone() {
    for since in Since::ALL {
        let (ground, mut options) = left();
        edit(&ground.at("to/edited"), true);
        let edited = std::fs::read(ground.at("to/edited")).unwrap();
        since.happens(&ground);
        options.restart = true;
        let (copied, reported) = run(&options);
        assert_eq!(copied.unwrap().failed, 2, "{since:?}: {reported:#?}");
        let is_kept = |line: &String| line.starts_with('~') && line.ends_with("/kept");
        assert!(reported.iter().any(is_kept), "{since:?}: {reported:#?}");
        let now = std::fs::read(ground.at("to/edited")).unwrap();
        assert_eq!(now, edited, "{since:?}");
    }
}

/// Copies that were linked to one file since, as `bc dup prune` does: replacing one of the names
/// changes the state of the other one.
#[test]
fn copies_that_were_linked_since_are_replaced_each() {
    let ground = Ground::new();
    for name in ["one", "two"] {
        ground.write(&format!("from/{name}"), b"of both");
    }
    ground.write("from/mine", b"of the source");
    ground.write("to/mine", b"the user's");
    settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    options.workers = 1;
    assert_eq!(run(&options).0.unwrap().failed, 1);
    std::fs::remove_file(ground.at("to/two")).unwrap();
    std::fs::hard_link(ground.at("to/one"), ground.at("to/two")).unwrap();
    for name in ["one", "two"] {
        ground.write(&format!("from/{name}"), name.as_bytes());
    }
    let (copied, reported) = run(&options);
    assert_eq!(copied.unwrap().failed, 1, "{reported:#?}");
    for name in ["one", "two"] {
        let path = ground.at("to").join(name);
        assert_eq!(std::fs::read(path).unwrap(), name.as_bytes());
    }
}
