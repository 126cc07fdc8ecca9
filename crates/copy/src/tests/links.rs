//! Hard links where the destination has some of their names already.

use std::fs::{hard_link, remove_file};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bc_pool::Cancel;

use super::{Ground, done, run};
use crate::{CopyOptions, CopyProgress, Event, ManifestPlace, OnConflict, Target, copy};

/// A source with these names of one file, and its copy.
fn copied(names: &[&str]) -> (Ground, CopyOptions) {
    let ground = Ground::new();
    ground.write(&format!("from/{}", names[0]), b"one file");
    for name in &names[1..] {
        let first = ground.at("from").join(names[0]);
        hard_link(first, ground.at("from").join(name)).unwrap();
    }
    super::resume::settle();
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    done(&options);
    (ground, options)
}

fn inode(ground: &Ground, name: &str) -> u64 {
    ground.at("to").join(name).metadata().unwrap().ino()
}

#[track_caller]
fn are_one(ground: &Ground, names: &[&str]) {
    let first = inode(ground, names[0]);
    for name in names {
        assert_eq!(inode(ground, name), first, "{name}");
    }
}

/// Names that come before and between those that were copied.
#[test]
fn new_names_are_given_to_the_file_that_is_there() {
    let (ground, options) = copied(&["b", "e"]);
    for name in ["a", "a2", "c", "f"] {
        hard_link(ground.at("from/b"), ground.at("from").join(name)).unwrap();
    }
    let before = inode(&ground, "b");
    let again = done(&options);
    let all = ["a", "a2", "b", "c", "e", "f"];
    are_one(&ground, &all);
    assert_eq!((inode(&ground, "b"), again.incomplete), (before, 0));
    assert_eq!(ground.at("to/a").metadata().unwrap().nlink(), 6);
    assert_eq!(ground.litter(), Vec::<std::path::PathBuf>::new());
    // The manifest has them as they are: nothing is left to do.
    let last = done(&options);
    assert_eq!((last.before, last.bytes), (last.walked, 0));
}

#[test]
fn a_missing_name_is_given_to_the_file_that_is_left() {
    for how in [OnConflict::Verify, OnConflict::Skip, OnConflict::Update] {
        for missing in ["a", "b", "c"] {
            let (ground, mut options) = copied(&["a", "b", "c"]);
            options.on_conflict = how;
            remove_file(ground.at("to").join(missing)).unwrap();
            let again = done(&options);
            are_one(&ground, &["a", "b", "c"]);
            assert_eq!(again.incomplete, 0, "{how:?} {missing}");
        }
    }
}

/// A file of the user's is made no name of the copy, nor the copy one of the file: that is reported.
#[test]
fn a_lost_link_is_reported() {
    let other_content = |ground: &Ground, name: &str| {
        remove_file(ground.at("to").join(name)).unwrap();
        ground.write(&format!("to/{name}"), b"the user's");
    };
    let other_mode = |ground: &Ground, name: &str| {
        remove_file(ground.at("to").join(name)).unwrap();
        std::fs::copy(ground.at("from/a"), ground.at("to").join(name)).unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(ground.at("to").join(name), mode).unwrap();
    };
    let edits: [fn(&Ground, &str); 2] = [other_content, other_mode];
    for edit in edits {
        for (missing, kept) in [("a", "b"), ("b", "a")] {
            for strict in [false, true] {
                let (ground, mut options) = copied(&["a", "b"]);
                options.on_conflict = OnConflict::Skip;
                options.strict = strict;
                edit(&ground, kept);
                remove_file(ground.at("to").join(missing)).unwrap();
                let before = std::fs::read(ground.at("to").join(kept)).unwrap();
                let state = ground.at("to").join(kept).metadata().unwrap();
                let (copied, reported) = run(&options);
                let copied = copied.unwrap();
                let lost = format!(
                    "? {}: link: File exists",
                    ground.at("to").join(missing).display()
                );
                let is_reported = reported.iter().any(|line| line.starts_with(&lost));
                let context = format!("{missing} {strict} {copied:?} {reported:#?}");
                assert_eq!(is_reported, !strict, "{context}");
                let expected = (u64::from(!strict), u64::from(strict));
                assert_eq!((copied.incomplete, copied.failed), expected, "{context}");
                let now = ground.at("to").join(kept).metadata().unwrap();
                let of = |meta: &std::fs::Metadata| (meta.ino(), meta.mode(), meta.nlink());
                assert_eq!(of(&now), of(&state));
                assert_eq!(std::fs::read(ground.at("to").join(kept)).unwrap(), before);
            }
        }
    }
}

/// Calls `then` when a path was reported as copied: before any further names are given.
fn copied_and(options: &CopyOptions, path: &Path, then: impl Fn() + Sync) {
    let seen = AtomicBool::new(false);
    let observer = |event: Event<'_>| {
        let (Event::Copied(shown) | Event::Replaced(shown)) = event else {
            return;
        };
        if shown == path.as_os_str().as_bytes() {
            then();
            seen.store(true, Relaxed);
        }
    };
    let copied = copy(options, &Cancel::new(), &CopyProgress::default(), &observer);
    assert!(seen.into_inner());
    assert_eq!(copied.unwrap().failed, 0);
}

/// Saves a file as editors do, or in place.
fn save(path: &Path, content: &[u8], is_in_place: bool) {
    if is_in_place {
        return std::fs::write(path, content).unwrap();
    }
    let new = path.with_extension("new");
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// The first name is copied, the second is there: the copy would be joined to that.
#[test]
fn what_was_saved_over_a_copy_meanwhile_is_not_joined() {
    let kept = [OnConflict::Update, OnConflict::Verify, OnConflict::Skip];
    for (how, has_manifest, is_in_place) in kept
        .into_iter()
        .flat_map(|how| [(how, false, false), (how, true, false), (how, true, true)])
    {
        let (ground, mut options) = copied(&["a", "b"]);
        options.on_conflict = how;
        if !has_manifest {
            options.manifest = ManifestPlace::None;
        }
        let first = ground.at("to/a");
        remove_file(&first).unwrap();
        copied_and(&options, &first, || save(&first, b"saved", is_in_place));
        let context = format!("{how:?} {has_manifest} {is_in_place}");
        assert_eq!(std::fs::read(&first).unwrap(), b"saved", "{context}");
        let second = std::fs::read(ground.at("to/b")).unwrap();
        assert_eq!(second, b"one file", "{context}");
    }
}

/// All names of a copy are joined to the file that is there.
#[test]
fn copies_with_several_names_are_joined() {
    for how in [OnConflict::Verify, OnConflict::Update] {
        let (ground, mut options) = copied(&["a", "a2", "b"]);
        options.on_conflict = how;
        for missing in ["a", "a2"] {
            remove_file(ground.at("to").join(missing)).unwrap();
        }
        let (again, reported) = run(&options);
        are_one(&ground, &["a", "a2", "b"]);
        let again = again.unwrap();
        assert_eq!((again.failed, again.incomplete), (0, 0), "{reported:#?}");
        assert!(
            reported.iter().all(|line| !line.contains("is the same as")),
            "{reported:#?}"
        );
    }
}

/// A source with these names of one file, which is not copied yet.
fn uncopied(names: &[&str]) -> (Ground, CopyOptions) {
    let (ground, options) = copied(names);
    std::fs::remove_dir_all(ground.at("to")).unwrap();
    (ground, options)
}

#[test]
fn what_was_saved_over_a_copy_meanwhile_gets_no_further_name() {
    for (has_manifest, is_in_place) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let (ground, mut options) = uncopied(&["a", "b", "c"]);
        if !has_manifest {
            options.manifest = ManifestPlace::None;
        }
        let first = ground.at("to/a");
        copied_and(&options, &first, || save(&first, b"saved", is_in_place));
        let context = format!("{has_manifest} {is_in_place}");
        assert_eq!(std::fs::read(&first).unwrap(), b"saved", "{context}");
        let second = std::fs::read(ground.at("to/b")).unwrap();
        assert_eq!(second, b"one file", "{context}");
        are_one(&ground, &["b", "c"]);
    }
}

/// The manifest's digests are of the states that it has beside them.
#[test]
fn what_was_saved_over_a_linked_copy_meanwhile_is_not_recorded() {
    for (over, is_in_place) in [("a", false), ("a", true), ("b", false)] {
        let (ground, options) = uncopied(&["a", "b", "c"]);
        let over = ground.at("to").join(over);
        copied_and(&options, &ground.at("to/c"), || {
            save(&over, &[1; 4321], is_in_place);
        });
        let manifest = std::fs::read(ground.at("to").join(crate::MANIFEST_NAME)).unwrap();
        let manifest = String::from_utf8(manifest).unwrap();
        assert!(!manifest.contains("4321"), "{over:?} {manifest}");
    }
}

#[test]
fn names_are_linked_past_one_that_is_none() {
    // One that fails: its directory cannot be made.
    let (ground, options) = uncopied(&["a", "e", "f"]);
    ground.write("from/d/other", b"other");
    hard_link(ground.at("from/a"), ground.at("from/d/b")).unwrap();
    ground.write("to/d", b"the user's");
    let (copied_now, reported) = run(&options);
    assert!(copied_now.unwrap().failed > 0, "{reported:#?}");
    are_one(&ground, &["a", "e", "f"]);
    // One that is the user's.
    let (ground, mut options) = copied(&["a", "b", "c"]);
    options.on_conflict = OnConflict::Skip;
    save(&ground.at("to/b"), b"the user's", false);
    remove_file(ground.at("to/c")).unwrap();
    done(&options);
    are_one(&ground, &["a", "c"]);
    // One that the first could not be joined to, where that is an error.
    let (ground, mut options) = copied(&["a", "b", "c", "d"]);
    options.on_conflict = OnConflict::Skip;
    options.strict = true;
    save(&ground.at("to/b"), b"the user's", false);
    for missing in ["a", "c", "d"] {
        remove_file(ground.at("to").join(missing)).unwrap();
    }
    let (copied_now, reported) = run(&options);
    assert_eq!(copied_now.unwrap().failed, 1, "{reported:#?}");
    are_one(&ground, &["a", "c", "d"]);
}

/// A replacement is saved over before its state is looked at.
#[test]
fn what_was_saved_over_a_replacement_meanwhile_is_not_recorded() {
    let (ground, mut options) = copied(&["a"]);
    options.on_conflict = OnConflict::Replace;
    options.restart = true;
    save(&ground.at("to/a"), b"to be replaced", false);
    let first = ground.at("to/a");
    copied_and(&options, &first, || save(&first, &[1; 4321], true));
    let manifest = std::fs::read(ground.at("to").join(crate::MANIFEST_NAME)).unwrap();
    let manifest = String::from_utf8(manifest).unwrap();
    assert!(!manifest.contains("4321"), "{manifest}");
}

/// A name that is replaced becomes one of the file that is left.
#[test]
fn a_replaced_name_is_given_to_the_file_that_is_left() {
    for how in [OnConflict::Verify, OnConflict::Update] {
        let (ground, mut options) = copied(&["a", "b"]);
        options.on_conflict = how;
        save(&ground.at("to/b"), b"an older file", false);
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = std::fs::File::options().write(true).open(ground.at("to/b"));
        file.unwrap().set_modified(old).unwrap();
        let again = done(&options);
        are_one(&ground, &["a", "b"]);
        assert_eq!(again.incomplete, 0);
    }
}
