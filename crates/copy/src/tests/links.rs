//! Hard links where the destination has some of their names already.

use std::fs::{hard_link, remove_file};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{Ground, done, run};
use crate::{CopyOptions, OnConflict, Target};

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
