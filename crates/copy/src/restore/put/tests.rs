//! Names are given and kept, whatever happens beside.

use std::os::fd::OwnedFd;
use std::path::Path;

use bc_digest::{Algorithm, hash};
use bc_fs::dirfd;
use bc_integrity::is_second;

use super::*;

struct Ground {
    dir: tempfile::TempDir,
    fd: OwnedFd,
}

impl Ground {
    /// `name` is damaged, and `stage` holds what it should.
    fn new(name: &str) -> (Ground, Present) {
        let dir = tempfile::tempdir().unwrap();
        let fd = dirfd::open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap();
        std::fs::write(dir.path().join(name), "bad").unwrap();
        std::fs::write(dir.path().join("stage"), "good").unwrap();
        let present = Present {
            stat: look(fd.as_fd(), name.as_bytes()).unwrap(),
            digest: Some(hash(Algorithm::Blake3, b"bad")),
        };
        (Ground { dir, fd }, present)
    }

    fn put(&self, name: &str, present: &Present, keep: Keep) -> Result<Option<Vec<u8>>, NotPut> {
        put_over(self.fd.as_fd(), "stage", name.as_bytes(), present, keep)
    }

    fn text(&self, name: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn second(name: &str) -> String {
    format!(
        "{name}.damaged-{}",
        &hash(Algorithm::Blake3, b"bad").to_string()[..8]
    )
}

#[test]
fn what_is_replaced_keeps_a_second_name() {
    let (ground, present) = Ground::new("name");
    let kept = ground.put("name", &present, Keep::Second).unwrap();
    assert_eq!(kept, Some(second("name").into_bytes()));
    assert_eq!(
        (&*ground.text("name"), &*ground.text(second("name"))),
        ("good", "bad")
    );
    assert_eq!(ground.names(), ["name".to_owned(), second("name")]);
}

#[test]
fn nothing_is_kept_that_is_not_wanted() {
    let (ground, present) = Ground::new("name");
    assert_eq!(ground.put("name", &present, Keep::Nothing), Ok(None));
    assert_eq!(
        (ground.text("name"), ground.names()),
        ("good".into(), vec!["name".into()])
    );
}

#[test]
fn second_names_are_never_taken_over() {
    let (ground, present) = Ground::new("name");
    std::fs::write(ground.dir.path().join(second("name")), "other").unwrap();
    let kept = ground.put("name", &present, Keep::Second).unwrap();
    let expected = second("name") + "-2";
    assert_eq!(kept, Some(expected.clone().into_bytes()));
    assert_eq!(ground.text(expected), "bad");
    assert_eq!(ground.text(second("name")), "other");
}

#[test]
fn a_second_name_from_an_interrupted_run_is_used_again() {
    let (ground, present) = Ground::new("name");
    std::fs::hard_link(
        ground.dir.path().join("name"),
        ground.dir.path().join(second("name")),
    )
    .unwrap();
    let kept = ground.put("name", &present, Keep::Second).unwrap();
    assert_eq!(kept, Some(second("name").into_bytes()));
    assert_eq!(ground.names(), ["name".to_owned(), second("name")]);
}

#[test]
fn what_came_meanwhile_stays() {
    for keep in [Keep::Second, Keep::Nothing] {
        let (ground, present) = Ground::new("name");
        // Both exist at once, so that the number is another one.
        std::fs::write(ground.dir.path().join("new"), "mine").unwrap();
        std::fs::rename(
            ground.dir.path().join("new"),
            ground.dir.path().join("name"),
        )
        .unwrap();
        assert_eq!(ground.put("name", &present, keep), Err(NotPut::Changed));
        assert_eq!(
            (ground.text("name"), ground.names()),
            ("mine".into(), vec!["name".into()])
        );
    }
    let (ground, _) = Ground::new("name");
    assert_eq!(
        put_new(ground.fd.as_fd(), "stage", b"name"),
        Err(NotPut::Changed)
    );
    assert_eq!(ground.text("name"), "bad");
}

/// Puts the stage over a file that was replaced by `saved` just before, while `meanwhile` happens
/// between the exchange and the look.
fn put_over_saved(meanwhile: impl Fn(&Path)) -> (Ground, Held, Result<Option<Vec<u8>>, NotPut>) {
    let (ground, present) = Ground::new("name");
    let held = Held::new(ground.fd.as_fd(), "stage").unwrap();
    save(ground.dir.path(), "saved");
    let dir = ground.fd.as_fd();
    let swap = Swap {
        dir,
        staged: b"stage",
        ours: held.id,
        name: b"name",
        replaced: present.stat.id,
    };
    let settle = || {
        meanwhile(ground.dir.path());
        settle(dir, "stage", b"name", &present, Keep::Nothing, None)
    };
    let put = swap.put_over(settle, || unreachable!("names can be exchanged here"));
    let put = put.map_err(NotPut::from);
    (ground, held, put)
}

fn save(dir: &Path, text: &str) {
    std::fs::write(dir.join("new"), text).unwrap();
    std::fs::rename(dir.join("new"), dir.join("name")).unwrap();
}

#[test]
fn what_is_saved_again_during_an_exchange_stays() {
    let (ground, held, put) = put_over_saved(|dir| save(dir, "saved again"));
    assert_eq!(put, Err(NotPut::Displaced));
    assert_eq!(
        (&*ground.text("name"), &*ground.text("stage")),
        ("saved again", "saved")
    );
    // The file with the stage's name is not the stage.
    assert_eq!(
        held.remove(ground.fd.as_fd(), "stage"),
        Err(NotPut::Displaced)
    );
    assert_eq!(ground.text("stage"), "saved");
    // No file has the name any more.
    let (ground, _, put) = put_over_saved(|dir| std::fs::remove_file(dir.join("name")).unwrap());
    assert_eq!(put, Err(NotPut::Changed));
    assert_eq!(
        (ground.text("name"), ground.names()),
        ("saved".into(), vec!["name".into()])
    );
}

/// It is all that is left of what is damaged when that run removes its stage.
#[test]
fn the_second_name_of_another_run_stays() {
    let (ground, mut present) = Ground::new("name");
    let at = |name: &str| ground.dir.path().join(name);
    std::fs::hard_link(at("name"), at(&second("name"))).unwrap();
    std::fs::hard_link(at("name"), at("others stage")).unwrap();
    // Written to since.
    present.stat.stamp.mtime_ns -= 1;
    let put = ground.put("name", &present, Keep::Second);
    assert_eq!(put, Err(NotPut::Changed));
    let expected = ["name".to_owned(), second("name"), "others stage".to_owned()];
    assert_eq!(ground.names(), expected);
}

/// The one that was relied upon is gone when it is needed.
#[test]
fn a_second_name_that_is_gone_is_made_again() {
    let (ground, present) = Ground::new("name");
    bc_edit::entry::exchange(&ground.fd, "stage", "name").unwrap();
    let relied = Second {
        name: second("name").into_bytes(),
        made: false,
    };
    let dir = ground.fd.as_fd();
    let kept = settle(dir, "stage", b"name", &present, Keep::Second, Some(&relied));
    assert_eq!(kept, Ok(Some(second("name").into_bytes())));
    assert_eq!(ground.text(second("name")), "bad");
}

#[test]
fn long_names_are_shortened_between_characters() {
    let long = "ü".repeat(127);
    let (ground, present) = Ground::new(&long);
    let kept = ground.put(&long, &present, Keep::Second).unwrap().unwrap();
    let kept = String::from_utf8(kept).unwrap();
    assert!(
        kept.len() <= NAME_MAX && kept.len() > NAME_MAX - 4,
        "{}",
        kept.len()
    );
    assert_eq!(ground.text(kept), "bad");
    assert_eq!(
        shortened(b"\x80\x80\x80\x80\x80\x80", 5),
        b"\x80\x80\x80\x80\x80"
    );
    assert_eq!(shortened(b"abc", 3), b"abc");
}

#[test]
fn second_names_are_known() {
    let digest = Some(hash(Algorithm::Blake3, b"bad"));
    for (name, known) in [
        (second("d/name"), true),
        (second("d/name") + "-2", true),
        (second("d/name") + "2", false),
        ("d/name.damaged-00000000".to_owned(), false),
        ("7".to_owned(), false),
    ] {
        assert_eq!(is_second(name.as_bytes(), digest), known, "{name}");
    }
    assert!(is_second(b"name.damaged-unread", None));
}
