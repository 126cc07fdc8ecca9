//! Hard links where the destination has some of their names already.

use std::fs::{hard_link, remove_file};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use bc_pool::Cancel;

use super::{Ground, done, run};
use crate::{Copied, CopyOptions, CopyProgress, Event, ManifestPlace, OnConflict, Target, copy};

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
fn copied_and(options: &CopyOptions, path: &std::path::Path, then: impl Fn() + Sync) -> Copied {
    use std::os::unix::ffi::OsStrExt;
    let seen = std::sync::atomic::AtomicBool::new(false);
    let observer = |event: Event<'_>| {
        let (Event::Copied(shown) | Event::Replaced(shown)) = event else {
            return;
        };
        if shown == path.as_os_str().as_bytes() {
            then();
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let copied = copy(options, &Cancel::new(), &CopyProgress::default(), &observer);
    assert!(seen.into_inner());
    copied.unwrap()
}

/// Saves a file as editors do, or in place.
fn save(path: &std::path::Path, content: &[u8], is_in_place: bool) {
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
        let done = copied_and(&options, &first, || save(&first, b"saved", is_in_place));
        let context = format!("{how:?} {has_manifest} {is_in_place}");
        assert_eq!(std::fs::read(&first).unwrap(), b"saved", "{context}");
        let second = std::fs::read(ground.at("to/b")).unwrap();
        assert_eq!(second, b"one file", "{context}");
        assert_eq!((done.failed, done.incomplete), (0, 1), "{context}");
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
