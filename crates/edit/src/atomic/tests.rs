//! Both ways to write a file that appears whole: without a name, and under a temporary one.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use bc_fs::faults;
use bc_testkit::Point;

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Begins in both ways, where the file system has both.
fn all(target: &Path) -> Vec<AtomicFile> {
    let place = || Place::find(target).unwrap();
    let named = AtomicFile::named(place(), 0o666).unwrap();
    AtomicFile::nameless(place(), 0o666)
        .into_iter()
        .chain([named])
        .collect()
}

#[test]
fn the_old_file_stays_until_commit() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m.jsonl");
    std::fs::write(&target, "old").unwrap();
    let ways = all(&target).len();
    for way in 0..ways {
        let mut new = all(&target).swap_remove(way);
        new.file().write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        if way == 0 && ways == 2 {
            // Killed while it has a name, it would stay.
            assert!(dir.path().join(new.link().unwrap()).exists());
        }
        drop(new);
        assert_eq!(names(dir.path()), ["m.jsonl"]);
    }
    for way in 0..ways {
        std::fs::write(&target, "old").unwrap();
        let new = all(&target).swap_remove(way);
        new.file().write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["m.jsonl"]);
    }
}

#[test]
fn a_new_file_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let ways = all(&target).len();
    for way in 0..ways {
        let new = all(&target).swap_remove(way);
        std::fs::write(&target, "somebody's").unwrap();
        let failed = new.commit_new().unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's");
        std::fs::remove_file(&target).unwrap();
        let new = all(&target).swap_remove(way);
        new.file().write_all(b"new").unwrap();
        new.commit_new().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["m"]);
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn only_what_was_read_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let ways = all(&target).len();
    for way in 0..ways {
        std::fs::write(&target, "read").unwrap();
        let old = AsRead::new(File::open(&target).unwrap()).unwrap();
        let new = || {
            let new = all(&target).swap_remove(way);
            new.file().write_all(b"new").unwrap();
            new
        };
        // Another file has the name, or none.
        std::fs::write(dir.path().join("else"), "somebody's").unwrap();
        let (late, gone) = (new(), new());
        std::fs::rename(dir.path().join("else"), &target).unwrap();
        let failed = late.commit_over(&old).unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's");
        std::fs::remove_file(&target).unwrap();
        let failed = gone.commit_over(&old).unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
        // It was written to in its place, as editors do that keep what has several names.
        std::fs::write(&target, "read").unwrap();
        let old = AsRead::new(File::open(&target).unwrap()).unwrap();
        let late = new();
        std::fs::write(&target, "somebody's").unwrap();
        let failed = late.commit_over(&old).unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's");
        std::fs::remove_file(&target).unwrap();
        // The file itself.
        std::fs::write(&target, "read").unwrap();
        let old = AsRead::new(File::open(&target).unwrap()).unwrap();
        new().commit_over(&old).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["m"]);
        std::fs::remove_file(&target).unwrap();
    }
}

/// Somebody takes the name before the exchange, and perhaps once more after it.
#[test]
fn what_is_written_around_an_exchange_stays() {
    for again in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("m");
        let ways = all(&target).len();
        for way in 0..ways {
            let write = |text: &str| {
                std::fs::write(dir.path().join("else"), text).unwrap();
                std::fs::rename(dir.path().join("else"), &target).unwrap();
            };
            write("read");
            let old = AsRead::new(File::open(&target).unwrap()).unwrap();
            let new = all(&target).swap_remove(way);
            let writes = |text: &'static str| {
                let (from, to) = (dir.path().join("else"), target.clone());
                faults::Fault::Run(Box::new(move || {
                    std::fs::write(&from, text).unwrap();
                    std::fs::rename(from, to).unwrap();
                }))
            };
            let first = (Point::first("exchange"), writes("first"));
            match again {
                false => faults::arm_all([first]),
                // At the look that follows.
                true => faults::arm_then(first, (Point::first("stat"), writes("second"))),
            }
            let failed = new.commit_over(&old).unwrap_err();
            assert!(faults::disarm().reached);
            // As the next run does.
            remove_leftovers(&target);
            let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
            match again {
                false => {
                    assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
                    assert_eq!(
                        (text("m"), names(dir.path())),
                        ("first".into(), vec!["m".into()])
                    );
                }
                true => {
                    assert!(failed.to_string().contains("m-1"), "{failed}");
                    assert_eq!((&*text("m"), &*text("m-1")), ("second", "first"));
                    std::fs::remove_file(dir.path().join("m-1")).unwrap();
                }
            }
        }
    }
}

/// As where there are no links: a rename does it.
#[test]
fn a_new_file_replaces_nothing_without_links() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let ways = all(&target).len();
    for way in 0..ways {
        let mut new = all(&target).swap_remove(way);
        new.file().write_all(b"new").unwrap();
        let temporary = match &new.temporary {
            Some(temporary) => temporary.clone(),
            None => new.link().unwrap(),
        };
        std::fs::write(&target, "somebody's").unwrap();
        let failed = new.rename_new(&temporary, new.place.name()).unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's");
        std::fs::remove_file(&target).unwrap();
        new.rename_new(&temporary, new.place.name()).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        drop(new);
        assert_eq!(names(dir.path()), ["m"]);
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn the_mode_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    std::fs::write(&target, "old").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    AtomicFile::create(&target).unwrap().commit().unwrap();
    let mode = std::fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn only_what_dead_runs_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let living = all(&target);
    let mut dead = OsString::from(names::output(b"m"));
    dead.push("1-0.tmp");
    std::fs::write(dir.path().join(&dead), "half").unwrap();
    remove_leftovers(&target);
    assert!(!dir.path().join(&dead).exists());
    std::fs::write(dir.path().join(&dead), "half").unwrap();
    let mut foreign = OsString::from(names::output(b"other"));
    foreign.push("1-0.tmp");
    std::fs::write(dir.path().join(&foreign), "").unwrap();
    let second = AtomicFile::create(&target).unwrap();
    let left = names(dir.path());
    assert!(!left.contains(&dead.into_string().unwrap()), "{left:?}");
    assert!(left.contains(&foreign.into_string().unwrap()));
    for file in living.iter().chain([&second]) {
        let named = |name| dir.path().join(name).exists();
        assert!(file.temporary.as_ref().is_none_or(named));
    }
    drop(second);
    // They do not get into each other's way.
    for file in living {
        file.commit().unwrap();
    }
    assert_eq!(names(dir.path()).len(), 2);
}

#[test]
fn a_target_that_cannot_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let ways = all(&target).len();
    for way in 0..ways {
        let new = all(&target).swap_remove(way);
        std::fs::create_dir(&target).unwrap();
        let failed = new.commit().unwrap_err();
        assert_eq!(failed.operation, "rename");
        assert_eq!(names(dir.path()), ["m"]);
        std::fs::remove_dir(&target).unwrap();
    }
    assert!(AtomicFile::create(dir.path().join("none/m")).is_err());
}

#[test]
fn links_are_followed_and_long_names_work() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("x".repeat(255));
    std::fs::write(&real, "old").unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let new = AtomicFile::create(&link).unwrap();
    new.file().write_all(b"new").unwrap();
    new.commit().unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&real).unwrap(), b"new");
}

#[test]
fn a_link_to_nothing_yet_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("other/new", &link).unwrap();
    AtomicFile::create(&link).unwrap().commit().unwrap();
    assert!(link.is_symlink());
    assert_eq!(names(&dir.path().join("other")), ["new"]);
    let lost = dir.path().join("lost");
    std::os::unix::fs::symlink("none/new", &lost).unwrap();
    assert!(AtomicFile::create(&lost).is_err());
    let round = dir.path().join("round");
    std::os::unix::fs::symlink("round", &round).unwrap();
    assert!(AtomicFile::create(&round).is_err());
    assert_eq!(names(dir.path()), ["link", "lost", "other", "round"]);
}

#[test]
fn what_can_never_be_named_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let target = |name: &str| dir.path().join(name);
    std::fs::write(target("file"), "old").unwrap();
    for name in ["x".repeat(256), "new/".to_owned(), "file/".to_owned()] {
        assert!(AtomicFile::create(target(&name)).is_err(), "{name}");
    }
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn a_second_writer_is_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    std::fs::write(&target, "old").unwrap();
    let held = lock(&target).unwrap();
    assert_eq!(lock(&target).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(held);
    lock(&target).unwrap();
}

/// Checks that files of other users and kinds under temporary names are kept: only what a killed
/// run left is removed.
#[test]
fn temporary_names_that_are_taken_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let mut free = temporaries(target.file_name().unwrap());
    let (folder, link) = (free.next().unwrap(), free.next().unwrap());
    std::fs::create_dir(dir.path().join(&folder)).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join(&link)).unwrap();
    let before = names(dir.path());
    let ways = all(&target).len();
    for way in 0..ways {
        let new = all(&target).swap_remove(way);
        new.file().write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        std::fs::remove_file(&target).unwrap();
        AtomicFile::create(&target).unwrap().commit().unwrap();
        std::fs::remove_file(&target).unwrap();
        assert_eq!(names(dir.path()), before);
    }
}

#[test]
fn only_files_are_locked() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for other in [fifo.as_path(), dir.path(), Path::new("/dev/null")] {
        let kind = lock(other).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::InvalidInput, "{other:?}");
    }
}

#[test]
fn only_its_owner_writes_to_what_is_believed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    // The umask is the whole process's, so it is given to the file as one would.
    for way in 0..all(&target).len() {
        let new = all(&target).swap_remove(way);
        let open = std::fs::Permissions::from_mode(0o664);
        new.file().set_permissions(open).unwrap();
        new.only_owner_writes();
        new.commit().unwrap();
        assert_eq!(mode(&target), 0o644);
        std::fs::remove_file(&target).unwrap();
    }
    std::fs::write(&target, "").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o664)).unwrap();
    let new = AtomicFile::create(&target).unwrap();
    new.only_owner_writes();
    new.commit().unwrap();
    assert_eq!(mode(&target), 0o664);
}

/// As a process does that was forked meanwhile, until it runs its own program.
#[test]
fn a_lock_ends_though_somebody_has_its_descriptor() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    let new = AtomicFile::create(&target).unwrap();
    let _of_another = new.file().try_clone().unwrap();
    new.commit().unwrap();
    let held = lock(&target).unwrap();
    let _of_another = held.try_clone().unwrap();
    lock(&target).unwrap_err();
    drop(held);
    lock(&target).unwrap();
}
