//! Damage and renames at once: every recorded content comes back, or is named.

use std::fs;
use std::os::unix::fs::FileExt;
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
        let what =
            bc_integrity::UpdateOptions::new(&root, &manifest, 1_700_000_000_000_000_000, &origin)
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
