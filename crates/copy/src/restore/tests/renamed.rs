//! Damage and renames at once: every recorded content comes back, or is named.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use super::Ground;

fn then() -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_577_836_800)
}

/// Files of equal size and time that hold their names, and a copy.
fn ground(names: &[&str]) -> Ground {
    let ground = Ground::new();
    for name in names {
        ground.write(&format!("root/{name}"), name.repeat(3));
        put(&ground, name, &name.repeat(3));
    }
    ground.record();
    ground.copy("root", "copy");
    super::property::tick(&ground);
    ground
}

/// Writes in place, behind the same time.
fn put(ground: &Ground, name: &str, text: &str) {
    let path = ground.at(format!("root/{name}"));
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    file.set_modified(then()).unwrap();
}

fn mv(ground: &Ground, from: &str, to: &str) {
    let at = |name: &str| ground.at(format!("root/{name}"));
    fs::rename(at(from), at(to)).unwrap();
}

fn link(ground: &Ground, from: &str, to: &str) {
    let at = |name: &str| ground.at(format!("root/{name}"));
    fs::remove_file(at(to)).unwrap();
    fs::hard_link(at(from), at(to)).unwrap();
}

fn text(ground: &Ground, name: &str) -> String {
    ground.text(format!("root/{name}"))
}

/// It had content of its own, which is nowhere else: that of what was moved over it comes back
/// where it was.
#[test]
fn a_recorded_name_gets_its_own_content() {
    type Change = fn(&Ground);
    let all: [(&str, Change); 3] = [
        ("moved", |ground| {
            put(ground, "x", "000");
            mv(ground, "x", "y");
        }),
        // What it holds is recorded under another name, which makes it no less damaged.
        ("moved with another's content", |ground| {
            put(ground, "x", "zzz");
            mv(ground, "x", "y");
        }),
        // Two records and one file, whose ctime moves when the first of them is healed.
        ("linked", |ground| {
            put(ground, "x", "000");
            link(ground, "x", "y");
        }),
    ];
    for (what, change) in all {
        let ground = ground(&["k", "x", "y", "z"]);
        change(&ground);
        let (done, reported) = ground.heal(&["copy"], |_| {});
        assert_eq!(
            (done.repaired, done.wanted),
            (2, 2),
            "{what}: {reported:#?}"
        );
        for name in ["x", "y", "z"] {
            assert_eq!(text(&ground, name), name.repeat(3), "{what}: {reported:#?}");
        }
        let (again, reported) = ground.heal(&["copy"], |_| {});
        assert_eq!(again.wanted, 0, "{what}: {reported:#?}");
    }
    // An edit at the old name is no reason.
    let ground = ground(&["k", "x", "y", "z"]);
    put(&ground, "x", "zzz");
    mv(&ground, "x", "y");
    ground.write("root/x", "an edit");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.wanted), (1, 1), "{reported:#?}");
    assert_eq!(
        (&*text(&ground, "x"), &*text(&ground, "y")),
        ("an edit", "yyy")
    );
}

/// Each name is healed as what it is a name of now: no content is missing then.
#[test]
fn swapped_names_stay_swapped() {
    let ground = ground(&["k", "x", "y"]);
    put(&ground, "x", "000");
    mv(&ground, "x", "t");
    mv(&ground, "y", "x");
    mv(&ground, "t", "y");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.wanted), (1, 1), "{reported:#?}");
    assert_eq!((&*text(&ground, "x"), &*text(&ground, "y")), ("yyy", "xxx"));
}

/// A file that verify calls damaged, and that may be another with the same number, is reported.
#[test]
fn what_is_left_is_named() {
    let ground = ground(&["k", "x", "z"]);
    put(&ground, "x", "zzz");
    mv(&ground, "x", "n");
    ground.write("root/x", "an edit");
    let before = ground.seen("root");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.missing, done.wanted), (1, 1), "{reported:#?}");
    assert!(reported[0].starts_with("! n: ") && reported[0].ends_with("left as it is"));
    assert_eq!(ground.seen("root"), before);
}

/// A content that an update has noted as damaged comes to other names: to one that is recorded, and
/// to one that is not.
#[test]
fn known_damage_under_other_names() {
    let ground = ground(&["a", "b"]);
    put(&ground, "a", "000");
    let root = ground.at("root");
    super::with_work(&bc_pool::Cancel::new(), |work| {
        let manifest = ground.at("m");
        let origin = bc_integrity::Origin::default();
        let what = bc_integrity::UpdateOptions::new(&root, &manifest)
            .now(1_700_000_000_000_000_000)
            .origin(&origin)
            .reread(bc_integrity::Reread::Fraction(1.0));
        bc_integrity::update(&what, work, &mut |_| Ok(()))
    })
    .unwrap();
    for name in ["b", "n"] {
        ground.write("root/new", "000");
        mv(&ground, "new", name);
    }
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(
        (text(&ground, "a"), text(&ground, "b")),
        ("aaa".into(), "bbb".into())
    );
    assert_eq!((done.repaired, done.wanted), (3, 3), "{reported:#?}");
    let (again, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(again.wanted, 0, "{reported:#?}");
}

/// All that is in a renamed directory went along, be there anything to read in it or not.
#[test]
fn a_renamed_directory_is_not_made_again() {
    let ground = Ground::new();
    ground.write("root/kept", "kept");
    ground.write("root/old/file", "content");
    ground.write("root/old/empty", "");
    fs::create_dir_all(ground.at("root/old/bare/in")).unwrap();
    symlink("file", ground.at("root/old/link")).unwrap();
    ground.record();
    ground.copy("root", "copy");
    mv(&ground, "old", "new");
    let before = ground.seen("root");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.wanted, done.others), (0, 6), "{reported:#?}");
    assert_eq!(ground.seen("root"), before);
    // What is gone of it comes back where it would be.
    ground.write("root/new/file2", "other content");
    for name in ["link", "empty"] {
        fs::remove_file(ground.at("root/new").join(name)).unwrap();
    }
    fs::remove_dir_all(ground.at("root/new/bare")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.wanted), (4, 4), "{reported:#?}");
    assert!(!ground.at("root/old").exists());
    for (path, seen) in &before {
        assert_eq!(ground.seen("root")[path].content, seen.content);
    }
    // Nor is anything put into the place of what has its name there.
    ground.write("root/new/empty", "an edit");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.missing, done.wanted), (1, 1), "{reported:#?}");
    assert!(reported[0].contains("old/empty: its directory was renamed"));
    assert_eq!(ground.text("root/new/empty"), "an edit");
}

/// Nothing is put into the place of something else, and nothing is well where that has the name of
/// a file that is gone.
#[test]
fn names_that_something_of_another_kind_has_are_reported() {
    let ground = Ground::new();
    for name in ["kept", "dir/in", "file", "gone", "moved", "went/in"] {
        ground.write(&format!("root/{name}"), name);
    }
    symlink("kept", ground.at("root/link")).unwrap();
    ground.record();
    ground.copy("root", "copy");
    for name in ["file", "gone", "link"] {
        fs::remove_file(ground.at("root").join(name)).unwrap();
    }
    fs::create_dir(ground.at("root/file")).unwrap();
    ground.write("root/link", "no link");
    fs::remove_dir_all(ground.at("root/dir")).unwrap();
    ground.write("root/dir", "no directory");
    // These are not gone.
    mv(&ground, "moved", "here");
    symlink("here", ground.at("root/moved")).unwrap();
    mv(&ground, "went", "there");
    ground.write("root/went", "no directory either");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(
        reported,
        [
            "! dir: something of another kind has its name, and is left as it is",
            "! file: something of another kind has its name, and is left as it is",
            "! link: something of another kind has its name, and is left as it is",
            "+ gone from gone",
            "x dir/in: open: Not a directory (os error 20)",
        ]
    );
    assert_eq!((done.missing, done.failed, done.repaired), (3, 1, 1));
    let left = |options: &mut super::RestoreOptions<'_>| {
        options.only = vec![super::super::Loss::Damaged];
    };
    let (done, reported) = ground.heal(&["copy"], left);
    assert_eq!(done.wanted, 0, "{reported:#?}");
}
