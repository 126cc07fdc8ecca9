//! The trash: files go where desktops find them, and undo takes them out.

use std::os::unix::fs::PermissionsExt;

use bc_testkit::loop_disk;

use super::moves::{run_journalled, undo_all};
use super::*;

/// Names in a directory of a trash, in order.
fn names(trash: &Path, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(trash.join(dir)).into_iter().flatten();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    let text = |name: std::ffi::OsString| name.into_string().unwrap();
    names.into_iter().map(text).collect()
}

fn to_trash(tree: &TestTree) -> PruneOptions {
    options(Action::Trash(Some(home_trash(tree.path()))))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_goes_to_the_trash_and_comes_out_of_it() {
    let tree = sample();
    let before = snapshot(tree.path());
    let ino = inode(tree.join("b/one"));
    let (summary, lines) = run_journalled(&tree, &to_trash(&tree).utc_offset(3600));
    assert_eq!((summary.changed, summary.errors), (3, 0), "{lines:?}");
    assert_eq!(summary.freed, 0);
    let path = tree.join("b/one");
    assert!(lines[0].starts_with(&format!("trash {} (kept: ", path.display())));
    let trash = tree.scratch("Trash");
    assert_eq!(names(&trash, "files"), ["one", "two", "two-too"]);
    let infos = ["one.trashinfo", "two-too.trashinfo", "two.trashinfo"];
    assert_eq!(names(&trash, "info"), infos);
    assert_eq!(inode(trash.join("files/one")), ino);
    for (made, expected) in [("", 0o700), ("files", 0o700), ("info", 0o700)] {
        assert_eq!(mode(&trash.join(made)), expected, "{made}");
    }
    let info = fs::read_to_string(trash.join("info/one.trashinfo")).unwrap();
    let lines: Vec<&str> = info.lines().collect();
    let path = format!("Path={}", path.display());
    assert_eq!(lines[..2], ["[Trash Info]", &path]);
    let date = lines[2].strip_prefix("DeletionDate=").unwrap();
    let ahead = bc_manifest::time::parse_rfc3339(&format!("{date}Z")).unwrap();
    let ahead = ahead - bc_fs::known::now_ns();
    assert!((0..=3_600_000_000_000).contains(&ahead), "{info}");

    let (undone, lines) = undo_all(&tree);
    assert_eq!((undone.restored, undone.failed), (3, 0), "{lines:?}");
    assert_eq!(snapshot(tree.path()), before);
    assert_eq!(inode(tree.join("b/one")), ino);
    assert!(files(&trash).is_empty());
    let (again, lines) = undo_all(&tree);
    assert_eq!((again.restored, again.failed), (0, 0), "{lines:?}");
}

#[test]
fn a_name_that_the_trash_has_gets_a_number() {
    let tree = TestTree::new();
    for name in ["a/x.txt", "b/x.txt", "c/x.txt", "d/x.txt"] {
        tree.write(name, content());
    }
    let trash = tree.scratch("Trash");
    // One that a program left there without a word, and one that is being put there.
    fs::create_dir_all(trash.join("files")).unwrap();
    fs::create_dir_all(trash.join("info")).unwrap();
    fs::write(trash.join("files/x.txt"), "other").unwrap();
    fs::write(trash.join("info/x.2.txt.trashinfo"), "").unwrap();
    let (summary, lines) = run_journalled(&tree, &to_trash(&tree));
    assert_eq!((summary.changed, summary.errors), (3, 0), "{lines:?}");
    let found = names(&trash, "files");
    assert_eq!(found, ["x.3.txt", "x.4.txt", "x.5.txt", "x.txt"]);
    assert_eq!(names(&trash, "info").len(), 4);
    let (undone, lines) = undo_all(&tree);
    assert_eq!((undone.restored, undone.failed), (3, 0), "{lines:?}");
    assert_eq!(names(&trash, "files"), ["x.txt"]);
    assert_eq!(names(&trash, "info"), ["x.2.txt.trashinfo"]);
}

/// It would be gone once the trash is emptied.
#[test]
fn a_file_in_a_trash_is_neither_kept_nor_taken() {
    for place in ["data/Trash", ".Trash-1000", ".Trash/1000"] {
        let tree = TestTree::new();
        let old = format!("{place}/files/old");
        tree.write("b/one", content()).write(&old, content());
        let home = tree.join("data/Trash").as_os_str().as_bytes().to_vec();
        for keep in ["path:files", "path:b"] {
            let mut options = options(Action::Trash(Some(home.clone())));
            options.rules = KeepRules::new(vec![keep.parse().unwrap()], Roots::Any);
            let (summary, lines) = run(&tree, &options);
            assert_eq!((summary.changed, summary.errors), (0, 0), "{lines:?}");
            assert_eq!(summary.skipped["already moved"], 1, "{place}: {lines:?}");
            assert!(tree.exists("b/one") && tree.exists(&old));
        }
    }
}

#[test]
fn undo_names_what_is_no_longer_in_the_trash() {
    let tree = sample();
    run_journalled(&tree, &to_trash(&tree));
    let trash = tree.scratch("Trash");
    // Another file has the name of the second.
    for name in ["files/one", "files/two"] {
        fs::remove_file(trash.join(name)).unwrap();
    }
    fs::write(trash.join("files/two"), content()).unwrap();
    let journal = tree.scratch("journal");
    for mode in [RunMode::DryRun, RunMode::Execute] {
        let mut lost = Vec::new();
        let undone = undo(&journal, mode, &Cancel::new(), &mut |event| {
            if let UndoOutcome::Failed(why) = event.outcome {
                lost.push(why.to_string());
            }
        });
        assert_eq!((undone.unwrap().failed, lost.len()), (2, 2), "{lost:?}");
        for name in ["files/one", "files/two"].map(|name| trash.join(name)) {
            let name = name.display();
            let text = format!("{name} is no longer in the trash, which was emptied");
            assert!(lost.contains(&text), "{lost:?}");
        }
    }
    assert!(!tree.exists("b/one") && tree.exists("c/two-too"));
    fs::remove_dir_all(&trash).unwrap();
    let (undone, lines) = undo_all(&tree);
    assert_eq!((undone.restored, undone.failed), (0, 2), "{lines:?}");
}

#[test]
fn undo_lets_be_what_has_a_name_in_the_trash_instead() {
    let tree = TestTree::new();
    let all = ["dir", "link", "other", "pipe"];
    tree.write("a", content());
    for name in all {
        tree.write(format!("b/{name}"), content());
    }
    let (summary, lines) = run_journalled(&tree, &to_trash(&tree));
    assert_eq!((summary.changed, summary.errors), (4, 0), "{lines:?}");
    let trash = tree.scratch("Trash");
    let at = |name: &str| trash.join("files").join(name);
    // Beside it, so that no number is given again.
    for name in all {
        fs::rename(at(name), tree.scratch(name)).unwrap();
    }
    fs::create_dir(at("dir")).unwrap();
    std::os::unix::fs::symlink(tree.join("a"), at("link")).unwrap();
    fs::write(at("other"), "of another size").unwrap();
    tree.fifo("p");
    fs::rename(tree.join("p"), at("pipe")).unwrap();
    for mode in [RunMode::DryRun, RunMode::Execute] {
        let mut lost = Vec::new();
        let undone = undo(
            tree.scratch("journal"),
            mode,
            &Cancel::new(),
            &mut |event| {
                if let UndoOutcome::Failed(why) = event.outcome {
                    lost.push(why.to_string());
                }
            },
        );
        assert_eq!(undone.unwrap().failed, 4, "{lost:?}");
        let text = "is no longer in the trash, which was emptied";
        assert!(lost.iter().all(|why| why.ends_with(text)), "{lost:?}");
    }
    assert_eq!(names(&trash, "files"), all);
    assert_eq!(names(&trash, "info").len(), 4);
}

/// Whatever takes the live file away would leave it to whoever empties the trash.
#[test]
fn nothing_in_a_trash_is_kept_instead_of_a_file_that_goes() {
    let to = |tree: &TestTree| Action::Move(tree.join("to").as_os_str().as_bytes().to_vec());
    for old in [".local/share/Trash/files/one", ".Trash-1000/files/one"] {
        for nth in 0..3 {
            let tree = TestTree::new();
            tree.write("b/one", content()).write(old, content());
            let action = match nth {
                0 => Action::Delete,
                1 => Action::Symlink,
                _ => to(&tree),
            };
            let mut options = options(action);
            options.rules = KeepRules::new(vec!["path:Trash".parse().unwrap()], Roots::Any);
            let (summary, lines) = run(&tree, &options);
            assert_eq!((summary.changed, summary.errors), (0, 0), "{lines:?}");
            assert_eq!(summary.skipped["in a trash"], 1, "{lines:?}");
            assert!(tree.exists("b/one") && tree.exists(old));
        }
    }
}

/// Root, whose own trash is elsewhere, comes to those of users.
#[test]
fn a_file_in_the_trash_of_another_home_is_neither_kept_nor_taken() {
    let tree = TestTree::new();
    let old = "home/u/.local/share/Trash/files/old";
    tree.write("b/one", content()).write(old, content());
    for keep in ["path:files", "path:b"] {
        let mut options = to_trash(&tree);
        options.rules = KeepRules::new(vec![keep.parse().unwrap()], Roots::Any);
        let (summary, lines) = run(&tree, &options);
        assert_eq!((summary.changed, summary.errors), (0, 0), "{lines:?}");
        assert!(tree.exists("b/one") && tree.exists(old));
    }
}

#[test]
fn on_another_disk_the_trash_is_at_its_top() {
    let disk = match loop_disk("ext4", 32 << 20) {
        Ok(disk) => disk,
        Err(why) => return bc_testkit::left_out(&format!("a disk of its own: {why}")),
    };
    let scratch = tempfile::tempdir().unwrap();
    let root = disk.path();
    let number = rustix::process::geteuid().as_raw();
    let own = format!(".Trash-{number}");
    let give_mode = |path: &Path, mode: u32| {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let shared = root.join(".Trash");
    type Setup<'s> = &'s dyn Fn();
    let cases: [(&str, Setup<'_>, String); 5] = [
        ("none", &|| (), own.clone()),
        (
            "sticky",
            &|| give_mode(&shared, 0o1777),
            format!(".Trash/{number}"),
        ),
        (
            "another user's",
            &|| {
                give_mode(&shared, 0o1777);
                std::os::unix::fs::chown(&shared, Some(number + 7), None).unwrap();
            },
            own.clone(),
        ),
        ("not sticky", &|| give_mode(&shared, 0o777), own.clone()),
        (
            "link",
            &|| std::os::unix::fs::symlink(".", &shared).unwrap(),
            own.clone(),
        ),
    ];
    let home = scratch.path().join("Trash").as_os_str().as_bytes().to_vec();
    let action = Action::Trash(Some(home));
    fs::create_dir(root.join("d")).unwrap();
    for name in ["d/a", "d/b c"] {
        fs::write(root.join(name), content()).unwrap();
    }
    let all = || groups(&root.join("d"));
    for (what, setup, expected) in cases {
        setup();
        let journal = scratch.path().join(what);
        let mut writing = Journal::create(&journal, &action, &all(), &Cancel::new()).unwrap();
        let (summary, lines) = run_groups(all(), &options(action.clone()), Some(&mut writing));
        drop(writing);
        let context = format!("{what}: {lines:?}");
        assert_eq!((summary.changed, summary.errors), (1, 0), "{context}");
        let trash = root.join(&expected);
        assert_eq!(names(&trash, "files"), ["b c"], "{context}");
        assert_eq!(mode(&trash), 0o700, "{context}");
        let info = fs::read_to_string(trash.join("info/b c.trashinfo")).unwrap();
        assert!(info.contains("\nPath=d/b%20c\n"), "{context}: {info}");
        let undone = undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| ()).unwrap();
        assert_eq!((undone.restored, undone.failed), (1, 0), "{context}");
        assert!(files(&trash).is_empty(), "{context}");
        for place in [&shared, &root.join(&own)] {
            let _ = fs::remove_file(place).or_else(|_| fs::remove_dir_all(place));
        }
    }
    assert!(names(scratch.path(), "Trash").is_empty());
    // Another user's is none.
    fs::create_dir(root.join(&own)).unwrap();
    std::os::unix::fs::chown(root.join(&own), Some(number + 7), None).unwrap();
    let (summary, lines) = run_groups(all(), &options(action), None);
    assert_eq!((summary.changed, summary.errors), (0, 1), "{lines:?}");
    assert_eq!(summary.skipped["no trash"], 1, "{lines:?}");
    assert!(lines[0].contains(&own), "{lines:?}");
}
