//! Losses that are repaired, their sources, and files that stay.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use bc_digest::Algorithm;
use bc_integrity::{CreateOptions, ManifestFile, RootCheck, XattrPolicy};
use bc_pool::Cancel;
use bc_testkit::{Marked, left_out};
use bc_walk::job::{ErrorKind, Means};
use rustix::fs::XattrFlags;

use super::super::{Loss, RestoreEvent};
use super::{Ground, with_work};
use crate::{RestoreOptions, RestoreOutcome};

/// A tree with a copy called `copy`.
fn ground() -> Ground {
    let ground = Ground::new();
    ground.write("root/a/one", "content of one");
    ground.write("root/a/two", "the content of two");
    ground.write("root/a/b/large", vec![5; 700_000]);
    ground.write("root/empty", "");
    symlink("a/one", ground.at("root/link")).unwrap();
    fs::create_dir(ground.at("root/bare")).unwrap();
    fs::set_permissions(ground.at("root/a/two"), PermissionsExt::from_mode(0o640)).unwrap();
    ground.record();
    ground.copy("root", "copy");
    ground
}

#[test]
fn damage_is_healed_and_kept_beside() {
    let ground = ground();
    let before = ground.seen("root");
    ground.damage("root/a/one");
    ground.damage("root/a/b/large");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.others), (2, 0), "{reported:#?}");
    let mut after = ground.seen("root");
    // But for the second names, everything is as it was: times of directories, too.
    after.retain(|path, _| !path.to_string_lossy().contains(".damaged-"));
    assert_eq!(after, before);
    let kept = reported
        .iter()
        .filter(|line| line.contains(" kept "))
        .count();
    assert_eq!(kept, 2, "{reported:#?}");
    let again = ground.heal(&["copy"], |_| {});
    assert_eq!(again.0.wanted, 0, "{:#?}", again.1);
    assert_eq!(again.0.others, 2);
}

#[test]
fn dry_runs_foresee_what_is_immutable_or_append_only() {
    for (marked, refused) in [("root/a/one", 1), ("root/a", 3)] {
        for flag in ['i', 'a'] {
            let ground = Ground::new();
            ground.write("root/a/one", "content of one");
            ground.write("root/a/two", "the content of two");
            ground.write("root/other", "something else");
            symlink("one", ground.at("root/a/link")).unwrap();
            ground.record();
            ground.copy("root", "copy");
            ground.damage("root/a/one");
            ground.damage("root/other");
            for path in ["root/a/two", "root/a/link"] {
                fs::remove_file(ground.at(path)).unwrap();
            }
            let before = ground.text("root/a/one");
            let Some(_mark) = Marked::new(ground.at(marked), flag) else {
                return left_out("chattr does not work here");
            };
            let (dry, foreseen) = ground.heal(&["copy"], |options| options.dry_run = true);
            let (done, reported) = ground.heal(&["copy"], |_| {});
            let context = format!("{marked} +{flag}: {foreseen:#?} {reported:#?}");
            let failed = |lines: &[String]| -> Vec<String> {
                let lines = lines.iter().filter(|line| line.starts_with('x'));
                lines.cloned().collect()
            };
            assert_eq!(failed(&foreseen), failed(&reported), "{context}");
            assert_eq!((dry.failed, done.failed), (refused, refused), "{context}");
            assert_eq!(done.repaired, 4 - refused, "{context}");
            let reasons = failed(&reported).into_iter();
            for line in reasons {
                assert!(line.contains("append-only or immutable"), "{context}");
            }
            assert_eq!(ground.text("root/a/one"), before, "{context}");
        }
    }
}

#[test]
fn what_is_gone_comes_back_whole() {
    let ground = ground();
    let before = ground.seen("root");
    fs::remove_dir_all(ground.at("root/a")).unwrap();
    for path in ["root/empty", "root/link"] {
        fs::remove_file(ground.at(path)).unwrap();
    }
    let (done, reported) = ground.heal(&["copy"], |options| {
        options.dry_run = true;
        options.root_check = bc_integrity::RootCheck::Forced;
    });
    assert_eq!(
        (done.repaired, done.missing, done.bytes),
        (7, 0, 0),
        "{reported:#?}"
    );
    assert_eq!(ground.seen("root").len(), 2);
    let (done, reported) = ground.heal(&["copy"], |options| {
        options.root_check = bc_integrity::RootCheck::Forced
    });
    assert_eq!((done.repaired, done.missing), (7, 0), "{reported:#?}");
    let (mut before, mut after) = (before, ground.seen("root"));
    // The root's own time was not as recorded when this began.
    before.remove(Path::new(""));
    after.remove(Path::new(""));
    assert_eq!(after, before);
}

#[test]
fn any_name_will_do_and_single_files() {
    let ground = ground();
    fs::create_dir(ground.at("attic")).unwrap();
    fs::rename(ground.at("copy/a/one"), ground.at("attic/another")).unwrap();
    fs::rename(ground.at("copy/a/two"), ground.at("single")).unwrap();
    fs::remove_dir_all(ground.at("copy")).unwrap();
    ground.damage("root/a/one");
    fs::remove_file(ground.at("root/a/two")).unwrap();
    ground.damage("root/a/b/large");
    let (done, reported) = ground.heal(&["attic", "single"], |_| {});
    assert_eq!((done.repaired, done.missing), (2, 1), "{reported:#?}");
    assert_eq!(reported[0], "! a/b/large: no copy holds it");
    assert!(reported[2].ends_with("a/two from single"), "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one");
    assert_eq!(
        fs::metadata(ground.at("root/a/two")).unwrap().mode() & 0o777,
        0o640
    );
}

/// A source may be given as a link, to a file as to a tree.
#[test]
fn links_to_copies() {
    let ground = ground();
    fs::rename(ground.at("copy/a/one"), ground.at("single")).unwrap();
    fs::remove_file(ground.at("copy/a/two")).unwrap();
    fs::create_dir(ground.at("links")).unwrap();
    symlink("../single", ground.at("links/file")).unwrap();
    symlink("file", ground.at("links/again")).unwrap();
    symlink("../copy", ground.at("links/tree")).unwrap();
    for path in ["root/a/one", "root/a/b/large"] {
        ground.damage(path);
    }
    let (done, reported) = ground.heal(&["links/again", "links/tree"], |_| {});
    assert_eq!((done.repaired, done.missing), (2, 0), "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one");
}

/// A copy that is damaged itself, or in the same way, does not count.
#[test]
fn copies_are_compared() {
    let ground = ground();
    ground.copy("root", "better");
    ground.damage("root/a/one");
    ground.damage("copy/a/one");
    ground.write("copy/a/other", "content of onf");
    let before = ground.seen("root");
    let (done, reported) = ground.heal(&["copy", "root"], |_| {});
    assert_eq!((done.repaired, done.missing), (0, 1), "{reported:#?}");
    assert_eq!(ground.seen("root"), before);
    // Nor is one that is the damaged file itself, by another name.
    fs::hard_link(ground.at("root/a/one"), ground.at("copy/its-name")).unwrap();
    let (done, reported) = ground.heal(&["copy", "better"], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one");
}

/// Trees in one another, in both directions, and the tree itself.
/// Copies that do not do, and the search, are not counted among the repairs.
#[test]
fn progress_never_passes_its_total() {
    let ground = Ground::new();
    ground.write("root/a", vec![1; 300_000]);
    ground.write("root/b", vec![2; 300_000]);
    ground.write("root/c", vec![3; 300_000]);
    ground.record();
    for (name, content) in [("a", 9), ("b", 2), ("c", 8)] {
        ground.write(&format!("first/{name}"), vec![content; 300_000]);
        ground.write(&format!("second/{name}"), vec![7; 300_000]);
    }
    ground.write("second/elsewhere", vec![1; 300_000]);
    for name in ["a", "b", "c"] {
        ground.damage(&format!("root/{name}"));
    }
    let manifest = ManifestFile::open(ground.at("m")).unwrap();
    let root = ground.at("root");
    let mut options = RestoreOptions::new(root.as_os_str(), &manifest);
    options.from = ["first", "second"]
        .map(|path| ground.at(path).into())
        .into();
    let phases = Mutex::new(Vec::new());
    let restored = with_work(&Cancel::new(), |work| {
        let progress = work.progress;
        let counts = || [&progress.files, &progress.bytes].map(|count| count.load(Relaxed));
        let report = |event: RestoreEvent<'_>| {
            let mut phases = phases.lock().unwrap();
            if let RestoreEvent::Begins { what, files, bytes } = event {
                phases.push((what, [files, bytes], counts()));
            }
            let Some((what, totals, begun)) = phases.last() else {
                return;
            };
            for ((now, begun), total) in counts().into_iter().zip(begun).zip(totals) {
                assert!(now.saturating_sub(*begun) <= *total, "{what}: {event:?}");
            }
        };
        super::super::restore(&options, work, &report)
    });
    let restored = restored.unwrap();
    assert_eq!((restored.repaired, restored.missing), (2, 1));
    let phases = phases.into_inner().unwrap().into_iter();
    let phases: Vec<_> = phases.map(|(what, totals, _)| (what, totals)).collect();
    let expected = [
        ("restore", [3, 900_000]),
        ("search", [7, 2_100_000]),
        ("restore", [2, 600_000]),
    ];
    assert_eq!(phases, expected);
}

#[test]
fn trees_within_each_other() {
    let ground = ground();
    ground.write("root/a/twin", "content of one");
    ground.record();
    fs::remove_dir_all(ground.at("copy")).unwrap();
    ground.damage("root/a/one");
    let (done, reported) = ground.heal(&["", "root", "root/a"], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one");
}

#[test]
fn names_of_one_file_stay_one_file() {
    let ground = Ground::new();
    ground.write("root/d/one", "content");
    for name in ["root/d/two", "root/three", "root/four"] {
        fs::hard_link(ground.at("root/d/one"), ground.at(name)).unwrap();
    }
    ground.record();
    ground.write("copy/x", "content");
    ground.damage("root/d/one");
    fs::remove_file(ground.at("root/four")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(done.repaired, 4, "{reported:#?}");
    let inode = ground.inode("root/d/one");
    for name in ["root/d/two", "root/three", "root/four"] {
        assert_eq!(ground.inode(name), inode, "{name}");
        assert_eq!(ground.text(name), "content");
    }
    // The damaged file is kept once.
    let kept: Vec<_> = reported
        .iter()
        .filter(|line| line.contains("kept"))
        .collect();
    assert_eq!(kept.len(), 1, "{reported:#?}");
    let names = ground.seen("root");
    let kept = names
        .keys()
        .filter(|path| path.to_string_lossy().contains("damaged"));
    assert_eq!(kept.count(), 1);
    // One that is gone is a name of those that are there, without any copy.
    fs::remove_file(ground.at("root/three")).unwrap();
    let (done, reported) = ground.heal(&[], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
    assert_eq!(ground.inode("root/three"), inode);
}

/// A file that has the name of a recorded one is not that: with other owners, another mode, or
/// names elsewhere it may be anybody's.
#[test]
fn no_name_is_given_to_a_file_that_was_never_recorded() {
    let mut all = vec!["mode", "link"];
    match bc_testkit::is_root() {
        true => all.push("owner"),
        false => bc_testkit::left_out("another user's files need root"),
    }
    for other in all.into_iter().chain(["alike"]) {
        let ground = ground();
        fs::hard_link(ground.at("root/a/one"), ground.at("root/three")).unwrap();
        ground.record();
        fs::remove_file(ground.at("root/three")).unwrap();
        // It exists beside the old one, so that it has another number.
        let path = ground.at("new");
        fs::copy(ground.at("root/a/one"), &path).unwrap();
        match other {
            "mode" => fs::set_permissions(&path, PermissionsExt::from_mode(0o606)).unwrap(),
            "link" => fs::hard_link(&path, ground.at("elsewhere")).unwrap(),
            "owner" => std::os::unix::fs::chown(&path, Some(12), None).unwrap(),
            _ => {}
        }
        fs::rename(&path, ground.at("root/a/one")).unwrap();
        let (done, reported) = ground.heal(&["copy"], |_| {});
        assert_eq!(
            (done.repaired, done.wanted),
            (1, 1),
            "{other}: {reported:#?}"
        );
        let is_joined = ground.inode("root/three") == ground.inode("root/a/one");
        assert_eq!(is_joined, other == "alike", "{other}: {reported:#?}");
    }
}

#[test]
fn moved_files_stay_and_are_healed_where_they_are() {
    let ground = ground();
    fs::create_dir(ground.at("root/new")).unwrap();
    fs::rename(ground.at("root/a/one"), ground.at("root/new/one")).unwrap();
    fs::rename(ground.at("root/a/b/large"), ground.at("root/new/large")).unwrap();
    fs::remove_dir(ground.at("root/a/b")).unwrap();
    ground.damage("root/new/large");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.missing), (1, 0), "{reported:#?}");
    assert_eq!(
        fs::read(ground.at("root/new/large")).unwrap(),
        vec![5; 700_000]
    );
    // Neither the old names nor the directory that went with them.
    assert!(!ground.at("root/a/one").exists() && !ground.at("root/a/b").exists());
    // One that is damaged under a name that another file had.
    fs::rename(ground.at("root/a/two"), ground.at("root/a/one")).unwrap();
    ground.damage("root/a/one");
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(done.missing + done.failed, 0, "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "the content of two");
}

#[test]
fn edits_come_back_only_if_that_is_asked_for() {
    let ground = ground();
    ground.write("root/a/one", "an edit");
    let (done, _) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.wanted, done.others), (0, 1));
    assert_eq!(ground.text("root/a/one"), "an edit");
    let (done, reported) = ground.heal(&["copy"], |options| options.only = vec![Loss::Modified]);
    assert_eq!(done.repaired, 1, "{reported:#?}");
    assert_eq!(ground.text("root/a/one"), "content of one");
    let (_, kept) = reported[0].split_once(" kept ").unwrap();
    assert_eq!(ground.text(format!("root/a/{kept}")), "an edit");
    for (only, path) in [(Loss::Damaged, "root/a/two"), (Loss::Removed, "root/empty")] {
        ground.damage("root/a/one");
        fs::remove_file(ground.at("root/empty")).unwrap();
        let (done, reported) = ground.heal(&["copy"], |options| options.only = vec![only]);
        assert_eq!(done.repaired, 1, "{reported:#?}");
        assert!(ground.at(path).exists());
        ground.heal(&["copy"], |_| {});
    }
}

#[test]
fn nothing_is_kept_that_is_not_wanted() {
    let ground = ground();
    let before = ground.seen("root");
    ground.damage("root/a/one");
    ground.heal(&["copy"], |options| options.discard_damaged = true);
    assert_eq!(ground.seen("root"), before);
}

/// Short digests say too little.
#[test]
fn short_digests() {
    for (algorithm, same, elsewhere) in [
        (Algorithm::Md5, 1, 1),
        (Algorithm::Xxh64, 1, 0),
        (Algorithm::Xxh32, 0, 0),
    ] {
        for (path, expected) in [("copy/one", same), ("copy/other", elsewhere)] {
            let ground = Ground::new();
            ground.write("root/one", "content");
            ground.record_by(algorithm, XattrPolicy::Skip);
            ground.write(path, "content");
            ground.damage("root/one");
            let (done, reported) = ground.heal(&["copy"], |_| {});
            assert_eq!(
                done.repaired, expected,
                "{algorithm:?} {path} {reported:#?}"
            );
        }
    }
}

/// Attributes that no record has stay; recorded ones come back.
#[test]
fn attributes() {
    let set =
        |path, value: &[u8]| rustix::fs::setxattr(path, "user.bc-test", value, XattrFlags::empty());
    for policy in [XattrPolicy::Skip, XattrPolicy::Record] {
        let ground = Ground::new();
        ground.write("root/one", "content");
        if let Err(errno) = set(ground.at("root/one"), b"mine") {
            return bc_testkit::left_out(&format!("extended attributes: {errno}"));
        }
        ground.record_by(Algorithm::Blake3, policy);
        let before = ground.seen("root");
        ground.write("copy/one", "content");
        ground.damage("root/one");
        if policy == XattrPolicy::Record {
            set(ground.at("root/one"), b"other").unwrap();
        }
        ground.heal(&["copy"], |options| options.discard_damaged = true);
        assert_eq!(ground.seen("root"), before, "{policy:?}");
    }
}

/// A manifest that others may write gives content only.
#[test]
fn manifests_of_others_give_content_only() {
    let ground = ground();
    let open = PermissionsExt::from_mode(0o666);
    fs::set_permissions(ground.at("m"), open).unwrap();
    ground.damage("root/a/one");
    fs::set_permissions(ground.at("root/a/one"), PermissionsExt::from_mode(0o600)).unwrap();
    for path in ["root/a/two", "root/link", "root/a/b/large"] {
        fs::remove_file(ground.at(path)).unwrap();
    }
    fs::remove_file(ground.at("copy/link")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.missing), (3, 1), "{reported:#?}");
    let warned = |line: &String| line.starts_with('#') && line.contains("not trusted");
    assert!(reported.iter().any(warned), "{reported:#?}");
    let mode = |path| fs::metadata(ground.at(path)).unwrap().mode() & 0o7777;
    // The mode of the previous file; that of a new file, as far as the copy permits.
    assert_eq!(mode("root/a/one"), 0o600);
    ground.write("new", "");
    assert_eq!(mode("root/a/two"), mode("new") & mode("copy/a/two"));
    // A copy that has the link speaks for it.
    symlink("a/one", ground.at("copy/link")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!(done.repaired, 1, "{reported:#?}");
    fs::remove_file(ground.at("root/a/two")).unwrap();
    ground.heal(&["copy"], |options| options.trust_metadata = true);
    assert_eq!(mode("root/a/two"), 0o640);
}

/// The guards of verify come first, and change nothing.
#[test]
fn guards() {
    let ground = ground();
    let empty = |ground: &Ground| {
        fs::rename(ground.at("root"), ground.at("away")).unwrap();
        fs::create_dir(ground.at("root")).unwrap();
    };
    empty(&ground);
    let (done, reported) = ground.try_heal(&["copy"], |_| {});
    assert!(
        done.is_err_and(|error| error.kind() == ErrorKind::Refused),
        "{reported:#?}"
    );
    assert_eq!(ground.seen("root").len(), 1);
    let (done, reported) = ground.heal(&["copy"], |options| {
        options.root_check = RootCheck::Forced;
    });
    assert_eq!(
        (done.repaired, done.missing + done.failed),
        (8, 0),
        "{reported:#?}"
    );
    // A copy that is not there, and one that looks unmounted.
    assert!(ground.try_heal(&["none"], |_| {}).0.is_err());
    fs::create_dir(ground.at("nothing")).unwrap();
    let (_, reported) = ground.heal(&["nothing"], |_| {});
    assert!(reported[0].contains("is empty"), "{reported:#?}");
}

/// A file that changed since verify looked is left, in any case.
#[test]
fn what_changes_meanwhile_is_left() {
    let ground = ground();
    ground.damage("root/a/one");
    ground.damage("root/a/b/large");
    fs::remove_file(ground.at("root/a/two")).unwrap();
    let manifest = bc_integrity::ManifestFile::open(ground.at("m")).unwrap();
    let root = ground.at("root");
    let mut options = super::RestoreOptions::new(root.as_os_str(), &manifest);
    options.from = vec![ground.at("copy").into()];
    let reported = std::sync::Mutex::new(Vec::new());
    // When repairing begins, verify has ended.
    let report = |event: super::RestoreEvent<'_>| {
        if let super::RestoreEvent::Begins {
            what: "restore", ..
        } = event
        {
            ground.write("root/a/one", "newer");
            ground.write("root/a/two", "newer");
            ground.write("new", vec![6; 700_000]);
            fs::rename(ground.at("new"), ground.at("root/a/b/large")).unwrap();
        }
        reported.lock().unwrap().extend(super::words(event));
    };
    let done = super::with_work(&Cancel::new(), |work| {
        super::restore(&options, work, &report)
    });
    let reported = reported.into_inner().unwrap();
    assert_eq!(done.unwrap().failed, 3, "{reported:#?}");
    assert_eq!(
        (ground.text("root/a/one"), ground.text("root/a/two")),
        ("newer".into(), "newer".into())
    );
    assert_eq!(
        fs::read(ground.at("root/a/b/large")).unwrap(),
        vec![6; 700_000]
    );
    assert!(
        reported.iter().all(|line| line.contains("left as it is")),
        "{reported:#?}"
    );
}

/// With nothing below it, too.
#[test]
fn an_empty_directory_comes_back_as_it_was_recorded() {
    let ground = ground();
    let bare = ground.at("root/bare");
    fs::set_permissions(&bare, PermissionsExt::from_mode(0o700)).unwrap();
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(981_173_106);
    fs::File::open(&bare).unwrap().set_modified(then).unwrap();
    if bc_testkit::is_root() {
        std::os::unix::fs::chown(&bare, Some(12), Some(34)).unwrap();
    }
    ground.record();
    let before = ground.seen("root");
    fs::remove_dir(&bare).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert_eq!((done.repaired, done.incomplete), (1, 0), "{reported:#?}");
    let (after, bare) = (ground.seen("root"), Path::new("bare"));
    assert_eq!(after[bare], before[bare]);
}

/// An access control list that lets one user read and write, and the group nothing.
fn list_for_one_user() -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    let entry = |tag: u16, may: u16, id: u32| {
        let (tag, may) = (tag.to_le_bytes(), may.to_le_bytes());
        [&tag[..], &may, &id.to_le_bytes()].concat()
    };
    let entries = [
        entry(1, 6, NO_ID),
        entry(2, 6, 4001),
        entry(4, 0, NO_ID),
        entry(16, 6, NO_ID),
        entry(32, 0, NO_ID),
    ];
    [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
}

/// The record has the mask of a list, which is not recorded, for the rights of the group.
#[test]
fn the_mask_of_a_list_is_given_to_no_group() {
    let ground = Ground::new();
    for path in ["root/f", "root/d/g", "root/stays"] {
        ground.write(path, path);
    }
    for path in ["root/f", "root/d"] {
        let flags = rustix::fs::XattrFlags::empty();
        let name = "system.posix_acl_access";
        let path = ground.at(path);
        if let Err(errno) = rustix::fs::setxattr(&path, name, &list_for_one_user(), flags) {
            return bc_testkit::left_out(&format!("no access control lists: {errno}"));
        }
    }
    ground.record();
    ground.copy("root", "copy");
    fs::remove_file(ground.at("root/f")).unwrap();
    fs::remove_dir_all(ground.at("root/d")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert!(done.failed == 0 && done.repaired > 1, "{reported:#?}");
    for path in ["root/f", "root/d"] {
        let mode = ground.at(path).metadata().unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{path} {mode:o}");
    }
}

/// A record that others could write to says nothing of who may read what comes back.
#[test]
fn what_comes_back_permits_no_more_than_its_copy() {
    let ground = Ground::new();
    for path in ["root/f", "root/d/g", "root/stays"] {
        ground.write(path, path);
    }
    let permit = |path: &str, mode| {
        fs::set_permissions(ground.at(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    permit("root/f", 0o600);
    permit("root/d", 0o700);
    ground.record();
    ground.copy("root", "copy");
    permit("m", 0o666);
    fs::remove_file(ground.at("root/f")).unwrap();
    fs::remove_dir_all(ground.at("root/d")).unwrap();
    let (done, reported) = ground.heal(&["copy"], |_| {});
    assert!(done.repaired > 1, "{reported:#?}");
    for path in ["root/f", "root/d"] {
        let mode = ground.at(path).metadata().unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{path} {mode:o}");
    }
}

/// Restores, and has a neighbour do something when the first file is healed: all that directories
/// are to have is given after that.
fn heal_beside(ground: &Ground, neighbour: impl Fn() + Sync) -> (crate::Restored, Vec<String>) {
    let manifest = bc_integrity::ManifestFile::open(ground.at("m")).unwrap();
    let root = ground.at("root");
    let mut options = super::RestoreOptions::new(root.as_os_str(), &manifest);
    options.from = vec![ground.at("copy").into()];
    let reported = std::sync::Mutex::new(Vec::new());
    let once = std::sync::Once::new();
    let report = |event: super::RestoreEvent<'_>| {
        if matches!(event, super::RestoreEvent::Repaired(repaired) if repaired.from.is_some()) {
            once.call_once(&neighbour);
        }
        reported.lock().unwrap().extend(super::words(event));
    };
    let done = super::with_work(&Cancel::new(), |work| {
        super::restore(&options, work, &report)
    });
    (done.unwrap(), reported.into_inner().unwrap())
}

/// Its name leads to a directory that is closed to those for whom it was open.
#[test]
fn another_directory_is_given_nothing() {
    let ground = ground();
    fs::set_permissions(ground.at("root/a/b"), PermissionsExt::from_mode(0o777)).unwrap();
    ground.record();
    let secret = ground.at("root/secret");
    fs::create_dir(&secret).unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).unwrap();
    for is_made in [true, false] {
        let b = ground.at("root/a/b");
        match is_made {
            true => fs::remove_dir_all(&b).unwrap(),
            false => ground.damage("root/a/b/large"),
        }
        let before = secret.metadata().unwrap();
        let (done, reported) = heal_beside(&ground, || {
            fs::rename(&b, ground.at("root/moved")).unwrap();
            fs::rename(&secret, &b).unwrap();
        });
        assert_eq!((done.failed, done.incomplete), (0, 1), "{reported:#?}");
        let named = |line: &String| line.starts_with('?') && line.contains("another directory");
        assert!(reported.iter().any(named), "{reported:#?}");
        let after = b.metadata().unwrap();
        assert_eq!(
            (after.mode(), after.modified().unwrap()),
            (before.mode(), before.modified().unwrap())
        );
        fs::rename(&b, &secret).unwrap();
        fs::rename(ground.at("root/moved"), &b).unwrap();
        // For the second turn: the time that is recorded.
        fs::set_permissions(&b, PermissionsExt::from_mode(0o777)).unwrap();
        ground.record();
    }
}

#[test]
fn interrupted_it_says_what_is_left() {
    let ground = ground();
    ground.damage("root/a/one");
    let manifest = bc_integrity::ManifestFile::open(ground.at("m")).unwrap();
    let root = ground.at("root");
    let options = super::RestoreOptions::new(root.as_os_str(), &manifest);
    let cancel = Cancel::new();
    let report = |event: super::RestoreEvent<'_>| {
        if let super::RestoreEvent::Begins { .. } = event {
            cancel.cancel(15);
        }
    };
    let done = super::with_work(&cancel, |work| super::restore(&options, work, &report)).unwrap();
    assert_eq!((done.wanted, done.left), (1, 1));
}

/// A callback hears what the lists would have, and the report still knows that something is missing.
#[test]
fn outcomes_go_to_a_callback() {
    let ground = Ground::new();
    let (root, copy) = (ground.at("root"), ground.at("copy"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&copy).unwrap();
    for name in ["a", "b", "c", "stays"] {
        fs::write(root.join(name), name).unwrap();
    }
    let (file, means) = (ground.at("manifest"), Means::new());
    CreateOptions::new(&root, Algorithm::Blake3)
        .run_to(&file, &means)
        .unwrap();
    for name in ["a", "c"] {
        fs::rename(root.join(name), copy.join(name)).unwrap();
    }
    fs::remove_file(root.join("b")).unwrap();
    let manifest = ManifestFile::open(&file).unwrap();
    let restore = RestoreOptions::new(&root, &manifest).from([&copy]);
    let planned = restore.clone().dry_run(true).run(&means).unwrap();
    assert_eq!((planned.repaired.len(), planned.missing.len()), (2, 1));
    let (mut repaired, mut missing) = (Vec::new(), Vec::new());
    let report = restore.run_each(&means, |outcome| match outcome {
        RestoreOutcome::Repaired(path) => repaired.push(path),
        RestoreOutcome::Missing(path) => missing.push(path),
    });
    let report = report.unwrap();
    assert!(report.repaired.is_empty() && report.missing.is_empty());
    assert_eq!((repaired, missing), (planned.repaired, planned.missing));
    assert!(report.unrestored == 1 && !report.is_complete());
    let error = report.complete().unwrap_err();
    assert_eq!(error.to_string(), "1 paths were not restored");
}
