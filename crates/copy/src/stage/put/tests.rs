//! Names are given and kept, whatever happens beside.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use bc_digest::{Algorithm, Digest, hash};
use bc_fs::dirfd;
use bc_integrity::is_second;
use bc_walk::FileStat;

use super::*;

/// Digest of what is damaged.
fn digest() -> Option<Digest> {
    Some(hash(Algorithm::Blake3, b"bad"))
}

struct Ground {
    dir: tempfile::TempDir,
    fd: OwnedFd,
    /// The file that is chosen to lose its name.
    chosen: FileStat,
}

impl Ground {
    /// `name` is damaged, and `stage` holds what it should.
    fn new(name: &str) -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let fd = dirfd::open_root(dir.path().as_os_str().as_encoded_bytes()).unwrap();
        std::fs::write(dir.path().join(name), "bad").unwrap();
        std::fs::write(dir.path().join("stage"), "good").unwrap();
        let chosen = stat_at(&fd, name).unwrap();
        Ground { dir, fd, chosen }
    }

    fn is_chosen(&self, now: &Existing) -> bool {
        let state = |stat: &FileStat| (stat.id, stat.stamp.size, stat.stamp.mtime_ns);
        state(&now.stat) == state(&self.chosen)
    }

    fn replacement<'a>(
        &'a self,
        name: &'a str,
        keep: Keep,
        is_chosen: &'a dyn Fn(&Existing, Look) -> bool,
    ) -> Replacement<'a> {
        Replacement {
            dir: self.fd.as_fd(),
            stage: "stage",
            name: name.as_bytes(),
            is_chosen,
            keep,
        }
    }

    fn put(&self, name: &str, keep: Keep) -> Result<Option<Vec<u8>>, NotPut> {
        let is_chosen = |now: &Existing, _| self.is_chosen(now);
        self.replacement(name, keep, &is_chosen).put()
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
    let ground = Ground::new("name");
    let kept = ground.put("name", Keep::Second(digest())).unwrap();
    assert_eq!(kept, Some(second("name").into_bytes()));
    assert_eq!(
        (&*ground.text("name"), &*ground.text(second("name"))),
        ("good", "bad")
    );
    assert_eq!(ground.names(), ["name".to_owned(), second("name")]);
}

#[test]
fn nothing_is_kept_that_is_not_wanted() {
    let ground = Ground::new("name");
    assert_eq!(ground.put("name", Keep::Nothing), Ok(None));
    assert_eq!(
        (ground.text("name"), ground.names()),
        ("good".into(), vec!["name".into()])
    );
}

#[test]
fn second_names_are_never_taken_over() {
    let ground = Ground::new("name");
    std::fs::write(ground.dir.path().join(second("name")), "other").unwrap();
    let kept = ground.put("name", Keep::Second(digest())).unwrap();
    let expected = second("name") + "-2";
    assert_eq!(kept, Some(expected.clone().into_bytes()));
    assert_eq!(ground.text(expected), "bad");
    assert_eq!(ground.text(second("name")), "other");
}

#[test]
fn a_second_name_from_an_interrupted_run_is_used_again() {
    let ground = Ground::new("name");
    std::fs::hard_link(
        ground.dir.path().join("name"),
        ground.dir.path().join(second("name")),
    )
    .unwrap();
    let kept = ground.put("name", Keep::Second(digest())).unwrap();
    assert_eq!(kept, Some(second("name").into_bytes()));
    assert_eq!(ground.names(), ["name".to_owned(), second("name")]);
}

#[test]
fn what_came_meanwhile_stays() {
    for keep in [Keep::Second(digest()), Keep::Nothing] {
        let ground = Ground::new("name");
        // Both exist at once, so that the number is another one.
        std::fs::write(ground.dir.path().join("new"), "mine").unwrap();
        std::fs::rename(
            ground.dir.path().join("new"),
            ground.dir.path().join("name"),
        )
        .unwrap();
        assert_eq!(ground.put("name", keep), Err(NotPut::Changed));
        assert_eq!(
            (ground.text("name"), ground.names()),
            ("mine".into(), vec!["name".into()])
        );
    }
    let ground = Ground::new("name");
    assert_eq!(
        put_new(ground.fd.as_fd(), "stage", b"name"),
        Err(NotPut::Changed)
    );
    assert_eq!(ground.text("name"), "bad");
}

/// Saves a file as programs do that never leave half of one.
fn save(dir: &Path, text: &str) {
    std::fs::write(dir.join("new"), text).unwrap();
    std::fs::rename(dir.join("new"), dir.join("name")).unwrap();
}

/// A file that is changed after it was looked at, be it in place or by another one of its name.
#[test]
fn what_is_changed_just_before_it_loses_its_name_has_it_again() {
    let edits: [&dyn Fn(&Path); 2] = [
        &|dir| std::fs::write(dir.join("name"), "edited").unwrap(),
        &|dir| save(dir, "edited"),
    ];
    for (edit, keep) in edits
        .iter()
        .flat_map(|edit| [(edit, Keep::Nothing), (edit, Keep::Second(digest()))])
    {
        let ground = Ground::new("name");
        let looks = Cell::new(0);
        let is_chosen = |now: &Existing, look: Look| {
            let is_it =
                (now.stat.id, now.stat.stamp.size) == (ground.chosen.id, ground.chosen.stamp.size);
            looks.set(looks.get() + 1);
            if look == Look::Before {
                edit(ground.dir.path());
            }
            is_it
        };
        let put = ground.replacement("name", keep, &is_chosen).put();
        assert_eq!(put, Err(NotPut::Changed));
        assert!(looks.get() <= 2);
        assert_eq!(ground.text("name"), "edited");
        // The stage is of no use any more.
        assert_eq!(ground.names(), ["name"]);
    }
}

#[test]
fn what_is_saved_again_during_an_exchange_stays() {
    type Meanwhile<'m> = (&'m dyn Fn(&Path), NotPut, &'m [(&'m str, &'m str)]);
    let meanwhile: [Meanwhile<'_>; 2] = [
        (
            &|dir| save(dir, "saved again"),
            NotPut::Displaced,
            // The file with the stage's name is not the stage.
            &[("name", "saved again"), ("stage", "bad")],
        ),
        // No file has the name any more.
        (
            &|dir| std::fs::remove_file(dir.join("name")).unwrap(),
            NotPut::Changed,
            &[("name", "bad")],
        ),
    ];
    for (meanwhile, why, texts) in meanwhile {
        let ground = Ground::new("name");
        let is_chosen = |_: &Existing, look: Look| {
            if look == Look::After {
                meanwhile(ground.dir.path());
            }
            look == Look::Before
        };
        let put = ground.replacement("name", Keep::Nothing, &is_chosen).put();
        assert_eq!(put, Err(why));
        let names: Vec<&str> = texts.iter().map(|(name, _)| *name).collect();
        assert_eq!(ground.names(), names);
        for (name, text) in texts {
            assert_eq!(ground.text(name), *text, "{name}");
        }
    }
}

#[test]
fn a_name_that_is_gone_is_reported() {
    let ground = Ground::new("name");
    std::fs::remove_file(ground.dir.path().join("name")).unwrap();
    for keep in [Keep::Second(digest()), Keep::Nothing] {
        assert_eq!(ground.put("name", keep), Err(NotPut::Gone));
    }
    assert_eq!(ground.text("stage"), "good");
}

/// It is all that is left of what is damaged when that run removes its stage.
#[test]
fn the_second_name_of_another_run_stays() {
    let ground = Ground::new("name");
    let at = |name: &str| ground.dir.path().join(name);
    std::fs::hard_link(at("name"), at(&second("name"))).unwrap();
    std::fs::hard_link(at("name"), at("others stage")).unwrap();
    // Written to since.
    let is_chosen = |_: &Existing, look| look == Look::Before;
    let keep = Keep::Second(digest());
    let put = ground.replacement("name", keep, &is_chosen).put();
    assert_eq!(put, Err(NotPut::Changed));
    let expected = ["name".to_owned(), second("name"), "others stage".to_owned()];
    assert_eq!(ground.names(), expected);
}

/// The one that was relied upon is gone when it is needed.
#[test]
fn a_second_name_that_is_gone_is_made_again() {
    let ground = Ground::new("name");
    bc_edit::entry::exchange(&ground.fd, "stage", "name").unwrap();
    let relied = Second {
        name: second("name").into_bytes(),
        made: false,
    };
    let is_chosen = |now: &Existing, _| ground.is_chosen(now);
    let replacement = ground.replacement("name", Keep::Second(digest()), &is_chosen);
    let kept = replacement.settle(ground.chosen.id, Some(&relied));
    assert_eq!(kept, Ok(Some(second("name").into_bytes())));
    assert_eq!(ground.text(second("name")), "bad");
}

#[test]
fn long_names_are_shortened_between_characters() {
    let long = "ü".repeat(127);
    let ground = Ground::new(&long);
    let kept = ground.put(&long, Keep::Second(digest())).unwrap().unwrap();
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
