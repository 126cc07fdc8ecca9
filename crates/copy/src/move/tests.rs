//! Moves while other programs are at work, at chosen calls.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bc_fs::faults::{self, Fault};
use bc_pool::Cancel;
use bc_testkit::left_out;
use bc_walk::job::Error;
use rustix::io::Errno;

use super::{MoveOptions, Moved, move_files};
use crate::tests::{Ground, Told};
use crate::{CopyProgress, Event, OnConflict};

/// A directory on another file system than that of the ground; prints why there is none.
fn other_disk(ground: &Ground) -> Option<tempfile::TempDir> {
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    let shared = Path::new("/dev/shm");
    if dev(shared).is_some() && dev(shared) != dev(ground.dir.path()) {
        return tempfile::tempdir_in(shared).ok();
    }
    left_out("there is one file system only");
    None
}

fn options(ground: &Ground, to: &Path) -> MoveOptions {
    let mut copy = ground.options(&["from"], "unused");
    copy.destination = to.as_os_str().to_owned();
    copy.workers = 1;
    MoveOptions::new(copy)
}

fn run(options: &MoveOptions) -> (Result<Moved, Error>, Told) {
    run_until(options, &Cancel::new())
}

fn run_until(options: &MoveOptions, cancel: &Cancel) -> (Result<Moved, Error>, Told) {
    let reported = Mutex::new(Told::new());
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let observer = |event: Event<'_>| {
        let text = match event {
            Event::Failed(error) => format!("! {error}"),
            Event::Note(text) | Event::Warning(text) => format!("# {text}"),
            Event::Copied(path) => format!("+ {}", shown(path)),
            _ => return,
        };
        reported.lock().unwrap().push(text);
    };
    let progress = CopyProgress::default();
    let moved = move_files(options, cancel, &progress, &observer);
    (moved, reported.into_inner().unwrap())
}

/// Runs a move that a signal stops once the first file has its name, before any source goes.
fn run_cut(options: &MoveOptions) {
    let cancel = Cancel::new();
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) {
            cancel.cancel(2);
        }
    };
    let moved = move_files(options, &cancel, &CopyProgress::default(), &observer);
    let moved = moved.unwrap();
    assert!(moved.moved == 0 && moved.resumable, "{moved:?}");
}

/// Numbers of the call that sets the source aside and of the one that removes it.
struct LastCalls {
    aside: usize,
    removal: usize,
}

/// Returns those of a move that nothing disturbs: the last rename, and what is unlinked behind it.
fn last_calls(run: impl FnOnce()) -> LastCalls {
    faults::watch();
    run();
    let calls = faults::disarm().calls;
    let last = calls.iter().rposition(|call| *call == "rename").unwrap();
    let count = |calls: &[&str], name: &str| calls.iter().filter(|call| **call == name).count();
    LastCalls {
        aside: count(&calls, "rename"),
        removal: count(&calls[..last], "unlink") + 1,
    }
}

/// Calls of a move of one file to another file system.
fn calls_across() -> Option<LastCalls> {
    let ground = Ground::new();
    ground.write("from/file", b"content");
    let disk = other_disk(&ground)?;
    Some(last_calls(|| {
        let (moved, reported) = run(&options(&ground, &disk.path().join("to")));
        assert_eq!(moved.unwrap().moved, 2, "{reported:?}");
    }))
}

/// What another program does, and why the source stays then, if it does.
type Meanwhile = (&'static str, fn(&Path, &Path), Option<&'static str>);

/// The moment before the source is set aside: it was looked at, and so was its copy.
const CASES: [Meanwhile; 6] = [
    ("nothing", |_, _| (), None),
    (
        "saves another file",
        |source, _| {
            let saved = source.with_file_name("saved");
            fs::write(&saved, "saved").unwrap();
            fs::rename(saved, source).unwrap();
        },
        Some("changed since"),
    ),
    (
        "opens it for writing",
        |source, _| {
            // It would have to wait.
            let opened = OpenOptions::new()
                .append(true)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
                .open(source);
            assert!(opened.is_err(), "a lease holds it back");
        },
        Some("open for writing"),
    ),
    (
        "gives it another name",
        |source, _| fs::hard_link(source, source.with_file_name("other")).unwrap(),
        Some("other names"),
    ),
    (
        "removes the copy",
        |_, copy| fs::remove_file(copy).unwrap(),
        Some("copy is gone"),
    ),
    (
        "writes to the copy",
        |_, copy| fs::write(copy, "other").unwrap(),
        Some("copy was changed"),
    ),
];

#[test]
fn what_another_program_does_last_keeps_the_source() {
    let Some(LastCalls { aside, .. }) = calls_across() else {
        return;
    };
    for (who, meanwhile, why) in CASES {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        let Some(disk) = other_disk(&ground) else {
            return;
        };
        let probe = fs::File::open(ground.at("from/file")).unwrap();
        if bc_fs::lease::take(&probe).is_err() {
            return left_out("there are no leases here");
        }
        drop(probe);
        let (source, to) = (ground.at("from/file"), disk.path().join("to"));
        let copy = to.join("file");
        let act = {
            let (source, copy) = (source.clone(), copy.clone());
            Box::new(move || meanwhile(&source, &copy))
        };
        faults::arm(("rename".to_owned(), aside), Fault::Run(act));
        let (moved, reported) = run(&options(&ground, &to));
        assert!(faults::disarm().reached, "{who}");
        let moved = moved.unwrap();
        match why {
            None => {
                assert_eq!((moved.moved, moved.kept), (2, 0), "{who}: {reported:?}");
                assert!(!ground.at("from").exists(), "{who}");
                assert_eq!(fs::read(&copy).unwrap(), b"content", "{who}");
            }
            Some(why) => {
                assert_eq!((moved.moved, moved.kept), (0, 2), "{who}: {reported:?}");
                let named = reported.iter().any(|line| line.contains(why));
                assert!(named, "{who}: {reported:?}");
                let expected = match who {
                    "saves another file" => &b"saved"[..],
                    _ => b"content",
                };
                assert_eq!(fs::read(&source).unwrap(), expected, "{who}");
                if who == "saves another file" {
                    // The copy is all that is left of the file that was there first.
                    let (moved, reported) = run(&options(&ground, &to));
                    assert_eq!(moved.unwrap().failed, 1, "{who}: {reported:?}");
                    assert_eq!(fs::read(&source).unwrap(), b"saved", "{who}");
                    assert_eq!(fs::read(&copy).unwrap(), b"content", "{who}");
                }
            }
        }
        let private = |path: &PathBuf| path.to_string_lossy().contains(".bc-move.");
        assert!(!ground.litter().iter().any(private), "{who}");
    }
}

/// What was copied and not removed yet when a signal comes is left at the source, and was begun.
#[test]
fn what_a_signal_leaves_is_counted_as_left_at_the_source() {
    let Some(LastCalls { aside, .. }) = calls_across() else {
        return;
    };
    let ground = Ground::new();
    for name in ["a", "b", "file"] {
        ground.write(&format!("from/{name}"), b"content");
    }
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let cancel = Cancel::new();
    let act = {
        let cancel = cancel.clone();
        Box::new(move || cancel.cancel(2))
    };
    // Three files are named before the first one is set aside.
    faults::arm(("rename".to_owned(), aside + 2), Fault::Run(act));
    let (moved, reported) = run_until(&options(&ground, &to), &cancel);
    assert!(faults::disarm().reached);
    let moved = moved.unwrap();
    let counts = (moved.walked, moved.moved + moved.kept, moved.left);
    assert_eq!(counts, (4, 4, 0), "{reported:?}");
    assert!(moved.kept >= 3 && moved.resumable, "{moved:?}");
    assert_eq!(run(&options(&ground, &to)).0.unwrap().kept, 0);
    assert!(!ground.at("from").exists());
}

/// A source that was set aside when its run was killed has its name again, and is moved by the next.
#[test]
fn what_a_killed_run_has_set_aside_comes_back_first() {
    let Some(LastCalls { removal, .. }) = calls_across() else {
        return;
    };
    for is_taken in [false, true] {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        let Some(disk) = other_disk(&ground) else {
            return;
        };
        let to = disk.path().join("to");
        let options = options(&ground, &to);
        // It is not removed, and does not get its name back either: as if killed in between.
        let errno = rustix::io::Errno::IO;
        faults::arm(("unlink".to_owned(), removal), Fault::Errnos(errno, 1003));
        let _ = run(&options);
        faults::disarm();
        let is_private = |path: &PathBuf| path.to_string_lossy().contains(".bc-move.");
        let left = ground.litter();
        assert!(left.iter().any(is_private), "{left:?}");
        if is_taken {
            fs::write(ground.at("from/file"), "another").unwrap();
        }
        let (moved, reported) = run(&options);
        let left = ground.litter();
        assert!(!left.iter().any(is_private), "{left:?}");
        match is_taken {
            false => {
                assert_eq!(moved.unwrap().kept, 0, "{reported:?}");
                assert!(!ground.at("from").exists());
                assert_eq!(fs::read(to.join("file")).unwrap(), b"content");
            }
            true => {
                let named = reported.iter().any(|line| line.contains("file-1"));
                assert!(named, "{reported:?}");
                // All three contents are somewhere.
                let there = |name: &str| {
                    let source = fs::read(ground.at(&format!("from/{name}")));
                    source.or_else(|_| fs::read(to.join(name)))
                };
                assert_eq!(there("file-1").unwrap(), b"content");
                assert!(there("file").is_ok());
            }
        }
    }
}

/// Within a file system a name that is taken is given to the source itself, which is never copied.
#[test]
fn a_file_that_replaces_another_one_stays_itself() {
    let make = || {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        ground.write("to/file", b"other");
        let mut options = options(&ground, &ground.at("to"));
        options.copy.target = crate::Target::Exactly;
        let (moved, _) = run(&options);
        assert_eq!(moved.unwrap().failed, 1);
        options.copy.on_conflict = OnConflict::Replace;
        (ground, options)
    };
    let (_kept, undisturbed) = make();
    let LastCalls { removal, .. } = last_calls(|| {
        let (moved, reported) = run(&undisturbed);
        assert_eq!(moved.unwrap().moved, 2, "{reported:?}");
    });
    let (ground, options) = make();
    let number = ground.at("from/file").metadata().unwrap().ino();
    // It has both names then.
    let errno = rustix::io::Errno::IO;
    faults::arm(("unlink".to_owned(), removal), Fault::Errno(errno));
    let (moved, reported) = run(&options);
    faults::disarm();
    assert_eq!(moved.unwrap().kept, 2, "{reported:?}");
    let (moved, reported) = run(&options);
    assert_eq!(moved.unwrap().kept, 0, "{reported:?}");
    let there = ground.at("to/file").metadata().unwrap();
    assert_eq!((there.ino(), there.nlink()), (number, 1));
    assert!(!ground.at("from").exists() && ground.litter().is_empty());
}

/// Where no rename refuses to replace (NFS, some of FUSE), a file has both names for a moment. A run
/// that is killed then leaves them, and the next one takes the first away.
#[test]
fn a_rename_that_is_a_link_is_ended_by_the_next_run() {
    for is_merged in [false, true] {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        ground.write("to/other", b"other");
        let mut options = options(&ground, &ground.at("to"));
        match is_merged {
            true => options.copy.target = crate::Target::Exactly,
            false => options.copy.sources = vec![ground.at("from/file").into()],
        }
        let number = ground.at("from/file").metadata().unwrap().ino();
        let lacks = |nth| (("rename".to_owned(), nth), Fault::Errno(Errno::INVAL));
        // Once without a journal, and once it is known to be needed; of directories that meet, too.
        let renames = if is_merged { 1..=4 } else { 1..=2 };
        let stays = (("unlink".to_owned(), 1), Fault::Errno(Errno::IO));
        faults::arm_all(renames.map(lacks).chain([stays]));
        let (moved, reported) = run(&options);
        let seen = faults::disarm();
        let moved = moved.unwrap();
        assert!(
            moved.resumable && moved.failed == 1,
            "{moved:?} {reported:?} {:?}",
            seen.calls
        );
        let both = [ground.at("from/file"), ground.at("to/file")];
        for name in &both {
            assert_eq!(name.metadata().unwrap().ino(), number);
        }
        let (moved, reported) = run(&options);
        let moved = moved.unwrap();
        assert_eq!((moved.failed, moved.kept), (0, 0), "{reported:?}");
        assert!(!both[0].exists() && !moved.resumable, "{moved:?}");
        let there = both[1].metadata().unwrap();
        assert_eq!((there.ino(), there.nlink()), (number, 1));
        assert!(ground.litter().is_empty(), "{:?}", ground.litter());
    }
}

/// An entry that is refused keeps no other from being looked at where renames take links, and is
/// reported and counted once.
#[test]
fn a_refused_entry_ends_no_merge_of_links() {
    let ground = Ground::new();
    for name in ["a", "b", "c"] {
        ground.write(&format!("from/{name}"), b"content");
    }
    ground.write("to/other", b"other");
    let mut options = options(&ground, &ground.at("to"));
    options.copy.target = crate::Target::Exactly;
    // Of the directory and of `a`, then of `b`, which needs a journal; with it of the directory, `b`, `c`.
    let errno = |nth| match nth {
        2 => Errno::ACCESS,
        _ => Errno::INVAL,
    };
    let fails = |nth| (("rename".to_owned(), nth), Fault::Errno(errno(nth)));
    faults::arm_all((1..=6).map(fails));
    let (moved, reported) = run(&options);
    assert!(faults::disarm().reached);
    let moved = moved.unwrap();
    let counts = (moved.walked, moved.moved, moved.failed, moved.kept);
    assert_eq!(counts, (3, 2, 1, 0), "{reported:?}");
    let failures = reported.iter().filter(|line| line.starts_with('!'));
    assert_eq!(failures.count(), 1, "{reported:?}");
    let is_there = |path: &str| ground.at(path).exists();
    assert!(is_there("from/a") && is_there("to/b") && is_there("to/c"));
    assert!(!is_there("from/b") && !is_there("from/c"));
    let (moved, reported) = run(&options);
    let moved = moved.unwrap();
    assert_eq!((moved.failed, moved.kept), (0, 0), "{reported:?}");
    assert!(is_there("to/a") && !is_there("from"));
}

/// Nor does it keep what another source has from being copied.
#[test]
fn a_refused_entry_keeps_nothing_of_another_source() {
    let ground = Ground::new();
    ground.write("x/a", b"content");
    ground.write("y/b", b"content");
    ground.write("to/x/other", b"other");
    ground.write("to/y/b", b"other");
    let mut options = options(&ground, &ground.at("to"));
    options.copy.sources = ["x", "y"].map(|name| ground.at(name).into()).to_vec();
    options.copy.on_conflict = OnConflict::Replace;
    faults::arm(("rename".to_owned(), 2), Fault::Errno(Errno::ACCESS));
    let (moved, reported) = run(&options);
    assert!(faults::disarm().reached);
    let moved = moved.unwrap();
    assert_eq!((moved.failed, moved.kept), (1, 0), "{reported:?}");
    assert!(ground.at("x/a").exists() && !ground.at("y").exists());
    assert_eq!(fs::read(ground.at("to/y/b")).unwrap(), b"content");
}

/// A link in the place of a manifest is in the way only where one is to be written.
#[test]
fn a_link_in_the_place_of_the_manifest_refuses_no_rename() {
    for sources in [&["x"][..], &["x", "y"]] {
        let ground = Ground::new();
        ground.write("x/a", b"content");
        ground.write("y/b", b"content");
        ground.write("to/x/other", b"other");
        for dir in ["to", "to/x"] {
            let link = ground.at(dir).join(crate::MANIFEST_NAME);
            std::os::unix::fs::symlink("elsewhere", link).unwrap();
        }
        let mut options = options(&ground, &ground.at("to"));
        options.copy.sources = sources.iter().map(|name| ground.at(name).into()).collect();
        // A source alone is renamed without a journal at first, unless that takes links.
        let lacks = |nth| (("rename".to_owned(), nth), Fault::Errno(Errno::INVAL));
        let renames = if sources.len() == 1 { 1..=4 } else { 0..=0 };
        faults::arm_all(renames.map(lacks));
        let (moved, reported) = run(&options);
        faults::disarm();
        let moved = moved.unwrap();
        assert_eq!((moved.failed, moved.kept), (0, 0), "{reported:?}");
        assert!(!ground.at("x").exists() && ground.at("to/x/a").exists());
    }
}

/// Where it is in the way, what was renamed before that is counted.
#[test]
fn a_link_in_the_place_of_the_manifest_hides_no_counts() {
    let ground = Ground::new();
    ground.write("from/a", b"content");
    ground.write("from/b", b"content");
    ground.write("to/other", b"other");
    let link = ground.at("to").join(crate::MANIFEST_NAME);
    std::os::unix::fs::symlink("elsewhere", link).unwrap();
    let mut options = options(&ground, &ground.at("to"));
    options.copy.target = crate::Target::Exactly;
    // That of `b`, in each of the two passes, as below a mount.
    let crosses = |nth| (("rename".to_owned(), nth), Fault::Errno(Errno::XDEV));
    faults::arm_all([3, 5].map(crosses));
    let (moved, reported) = run(&options);
    assert!(faults::disarm().reached);
    let moved = moved.unwrap();
    assert_eq!((moved.moved, moved.failed), (1, 1), "{reported:?}");
    let is_named = |line: &String| line.contains("is no regular file");
    assert!(reported.iter().any(is_named), "{reported:?}");
    assert!(ground.at("to/a").exists() && ground.at("from/b").exists());
}

/// Another run of the same move begins while this one renames what needs no journal.
#[test]
fn a_journal_that_another_run_holds_hides_no_counts() {
    let ground = Ground::new();
    ground.write("from/a/file", b"content");
    ground.write("from/b", b"content");
    ground.write("to/other", b"other");
    let mut options = options(&ground, &ground.at("to"));
    options.copy.target = crate::Target::Exactly;
    let (state, name) = (
        options.copy.state.clone().unwrap(),
        crate::destination::JobNames::of(&options.copy).own,
    );
    let other = Mutex::new(None);
    let observer = |event: Event<'_>| {
        if matches!(event, Event::Copied(_)) {
            let claimed = crate::resume::look(&state, &name, true, &|_| ());
            *other.lock().unwrap() = claimed.ok();
        }
    };
    // Of the directory, of `a`, and of `b`, which needs a journal.
    let lacks = |nth| (("rename".to_owned(), nth), Fault::Errno(Errno::INVAL));
    faults::arm_all([1, 2, 4].map(lacks));
    let progress = CopyProgress::default();
    let moved = move_files(&options, &Cancel::new(), &progress, &observer);
    let calls = faults::disarm().calls;
    let moved = moved.unwrap();
    assert_eq!((moved.moved, moved.failed), (1, 1), "{calls:?}");
    assert!(ground.at("to/a/file").exists() && ground.at("from/b").exists());
}

/// A second name that another program gave is no work of the move's.
#[test]
fn a_name_that_the_source_has_already_stays_refused() {
    let ground = Ground::new();
    ground.write("from/file", b"content");
    fs::create_dir(ground.at("to")).unwrap();
    fs::hard_link(ground.at("from/file"), ground.at("to/file")).unwrap();
    let mut options = options(&ground, &ground.at("to"));
    options.copy.target = crate::Target::Exactly;
    for _ in 0..2 {
        let lacks = (("rename".to_owned(), 1), Fault::Errno(Errno::INVAL));
        faults::arm_all([lacks]);
        let (moved, reported) = run(&options);
        assert!(faults::disarm().reached);
        assert_eq!(moved.unwrap().failed, 1, "{reported:?}");
        assert!(ground.at("from/file").exists() && ground.at("to/file").exists());
    }
}

/// What was moved is all that is left of it: a file that has its old name by now is another one.
#[test]
fn what_was_moved_is_never_replaced_by_the_next_run() {
    for restart in [false, true] {
        let ground = Ground::new();
        ground.write("from/scan", b"the first");
        ground.write("from/stays", b"content");
        fs::hard_link(ground.at("from/stays"), ground.at("outside")).unwrap();
        let Some(disk) = other_disk(&ground) else {
            return;
        };
        let to = disk.path().join("to");
        let mut options = options(&ground, &to);
        options.copy.target = crate::Target::Exactly;
        let moved = run(&options).0.unwrap();
        assert!(moved.moved == 1 && moved.resumable, "{moved:?}");
        ground.write("from/scan", b"the second");
        options.copy.restart = restart;
        let (moved, reported) = run(&options);
        assert_eq!(moved.unwrap().failed, 1, "{reported:?}");
        let named = reported.iter().any(|line| line.contains("File exists"));
        assert!(named, "{reported:?}");
        assert_eq!(fs::read(to.join("scan")).unwrap(), b"the first");
        assert_eq!(fs::read(ground.at("from/scan")).unwrap(), b"the second");
    }
}

/// A source that stayed and was edited since is moved by the next run, whose copy takes the name of
/// the one that is out of date. What has its name after that is another file.
#[test]
fn a_source_that_was_kept_and_edited_is_moved_once() {
    let ground = Ground::new();
    for name in ["edited", "stays"] {
        ground.write(&format!("from/{name}"), b"the first");
        let (source, outside) = (ground.at(&format!("from/{name}")), ground.at(name));
        fs::hard_link(source, outside).unwrap();
    }
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let mut options = options(&ground, &to);
    options.copy.target = crate::Target::Exactly;
    assert_eq!(run(&options).0.unwrap().kept, 3);
    fs::remove_file(ground.at("edited")).unwrap();
    ground.write("from/edited", b"the second");
    let (moved, reported) = run(&options);
    let moved = moved.unwrap();
    assert_eq!((moved.moved, moved.failed), (1, 0), "{reported:?}");
    assert_eq!(fs::read(to.join("edited")).unwrap(), b"the second");
    ground.write("from/edited", b"the third");
    let (moved, reported) = run(&options);
    assert_eq!(moved.unwrap().failed, 1, "{reported:?}");
    assert_eq!(fs::read(to.join("edited")).unwrap(), b"the second");
    assert_eq!(fs::read(ground.at("from/edited")).unwrap(), b"the third");
}

/// Checks that a further run replaces no copy by the next log, which has the name of its source by now.
fn the_oldest_stays(ground: &Ground, options: &MoveOptions, to: &Path) {
    let (moved, reported) = run(options);
    assert_eq!(moved.unwrap().failed, 1, "{reported:?}");
    assert_eq!(fs::read(to.join("log.5")).unwrap(), b"the oldest");
    assert_eq!(fs::read(ground.at("from/log.5")).unwrap(), b"the next");
}

/// Another file under the name of a source that stayed, as logs that rotate leave one, is not that
/// source: the copy may be all that is left of it.
#[test]
fn another_file_under_the_name_of_a_kept_source_replaces_nothing() {
    let ground = Ground::new();
    ground.write("from/log.5", b"the oldest");
    fs::hard_link(ground.at("from/log.5"), ground.at("outside")).unwrap();
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let mut options = options(&ground, &to);
    options.copy.target = crate::Target::Exactly;
    run(&options).0.unwrap();
    fs::remove_file(ground.at("outside")).unwrap();
    ground.write("from/log.4", b"the next");
    fs::rename(ground.at("from/log.4"), ground.at("from/log.5")).unwrap();
    the_oldest_stays(&ground, &options, &to);
}

/// The same where no source was to be removed yet: logs rotate, and other programs remove the oldest.
#[test]
fn another_file_under_the_name_of_a_copied_source_replaces_nothing() {
    let ground = Ground::new();
    ground.write("from/log.5", b"the oldest");
    ground.write("log.4", b"the next");
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let mut options = options(&ground, &to);
    options.copy.target = crate::Target::Exactly;
    run_cut(&options);
    assert_eq!(fs::read(to.join("log.5")).unwrap(), b"the oldest");
    fs::rename(ground.at("log.4"), ground.at("from/log.5")).unwrap();
    the_oldest_stays(&ground, &options, &to);
}

/// On FAT, exFAT and some of FUSE every file has another number once its disk is mounted again. It may
/// be any other file then, but an equal one lacks nothing of the copy.
#[test]
fn equal_sources_with_other_numbers_are_moved_by_the_next_run() {
    let ground = Ground::new();
    for name in ["a", "b"] {
        ground.write(&format!("from/{name}"), b"content");
    }
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let mut options = options(&ground, &to);
    options.copy.target = crate::Target::Exactly;
    run_cut(&options);
    for name in ["a", "b"] {
        let (source, then) = (ground.at(&format!("from/{name}")), ground.at(name));
        fs::rename(&source, &then).unwrap();
        fs::copy(&then, &source).unwrap();
        let times = fs::FileTimes::new().set_modified(then.metadata().unwrap().modified().unwrap());
        let file = OpenOptions::new().write(true).open(&source).unwrap();
        file.set_times(times).unwrap();
    }
    let (moved, reported) = run(&options);
    let moved = moved.unwrap();
    assert_eq!(
        (moved.moved, moved.failed, moved.kept),
        (3, 0, 0),
        "{reported:?}"
    );
    assert!(!ground.at("from").exists() && !moved.resumable, "{moved:?}");
    assert_eq!(fs::read(to.join("a")).unwrap(), b"content");
}

/// A source that is edited in place after a killed run has copied it is that source still.
#[test]
fn a_source_that_was_copied_and_edited_is_moved() {
    let ground = Ground::new();
    ground.write("from/file", b"the first");
    if has_no_births(&ground) {
        return;
    }
    crate::tests::resume::settle();
    ground.write("from/file", b"the second");
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let to = disk.path().join("to");
    let mut options = options(&ground, &to);
    options.copy.target = crate::Target::Exactly;
    run_cut(&options);
    crate::tests::resume::settle();
    ground.write("from/file", b"the third");
    let (moved, reported) = run(&options);
    assert_eq!(moved.unwrap().moved, 2, "{reported:?}");
    assert_eq!(fs::read(to.join("file")).unwrap(), b"the third");
    assert!(!ground.at("from").exists());
}

/// True if no file of the ground has a time of birth; says so.
fn has_no_births(ground: &Ground) -> bool {
    let has_none = ground.dir.path().metadata().unwrap().created().is_err();
    if has_none {
        left_out("files have no times of birth here");
    }
    has_none
}

/// A source that is missing was moved if its journal shows it, and only then.
#[test]
fn a_source_that_was_never_there_is_not_moved_by_the_next_run() {
    let ground = Ground::new();
    ground.write("a/file", b"content");
    ground.write("b/stays", b"content");
    fs::hard_link(ground.at("b/stays"), ground.at("outside")).unwrap();
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let mut options = options(&ground, disk.path());
    options.copy.sources = ["a", "b", "typo"]
        .map(|name| ground.at(name).into())
        .to_vec();
    for (nth, before) in [(1, 0), (2, 1)] {
        let (moved, reported) = run(&options);
        let moved = moved.unwrap();
        assert!(moved.resumable, "{reported:?}");
        assert_eq!(
            (moved.failed, moved.before),
            (1, before),
            "{nth}: {reported:?}"
        );
        let named = reported.iter().any(|line| line.contains("typo: stat"));
        assert!(named, "{reported:?}");
    }
    // The copy of a source that is gone is what shows it.
    fs::remove_dir_all(disk.path().join("a")).unwrap();
    assert_eq!(run(&options).0.unwrap().failed, 2);
}

/// Without a journal no source could be removed.
#[test]
fn without_a_journal_nothing_is_copied() {
    let ground = Ground::new();
    ground.write("from/file", b"content");
    let Some(disk) = other_disk(&ground) else {
        return;
    };
    let mut options = options(&ground, &disk.path().join("to"));
    options.copy.state = None;
    let (moved, _) = run(&options);
    assert!(moved.unwrap_err().to_string().contains("no journal"));
    assert!(ground.at("from/file").exists() && !disk.path().join("to").exists());
    // Nor within a file system, where entries go one by one.
    options.copy.destination = ground.at("to").into();
    options.copy.walk.exclude = bc_walk::Globs::new(&["left"]).unwrap();
    let (moved, _) = run(&options);
    assert!(moved.unwrap_err().to_string().contains("no journal"));
    assert!(ground.at("from/file").exists() && !ground.at("to").exists());
}

/// A file that comes into a directory of which others were left out keeps it, and is not passed over.
#[test]
fn what_comes_into_a_directory_keeps_it_beside_what_was_left_out() {
    for is_new in [false, true] {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        ground.write("from/left", b"left");
        let Some(disk) = other_disk(&ground) else {
            return;
        };
        let mut options = options(&ground, &disk.path().join("to"));
        options.copy.walk.exclude = bc_walk::Globs::new(&["left"]).unwrap();
        let new = ground.at("from/new");
        let act = Box::new(move || {
            if is_new {
                fs::write(new, "new").unwrap();
            }
        });
        faults::arm(("rmdir".to_owned(), 1), Fault::Run(act));
        let (moved, reported) = run(&options);
        assert!(faults::disarm().reached);
        let moved = moved.unwrap();
        let counts = (moved.walked, moved.moved, moved.kept, moved.left);
        let expected = match is_new {
            true => (2, 1, 1, 0),
            false => (1, 1, 0, 0),
        };
        assert_eq!(counts, expected, "{reported:?}");
        assert!(ground.at("from/left").exists());
    }
}

/// An attribute that this user may not read would be lost with the source.
#[test]
fn an_attribute_that_cannot_be_read_keeps_the_source() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let has = |path: &Path| getxattr(path, c"user.a", &mut [0; 8][..]) == Ok(5);
    let mut lossy = 0;
    for nth in 1.. {
        let ground = Ground::new();
        ground.write("from/file", b"content");
        let Some(disk) = other_disk(&ground) else {
            return;
        };
        let (source, to) = (ground.at("from/file"), disk.path().join("to"));
        for dir in [disk.path(), &source] {
            if setxattr(dir, c"user.a", b"value", XattrFlags::empty()).is_err() {
                return left_out("there are no attributes here");
            }
        }
        let options = options(&ground, &to);
        let errno = rustix::io::Errno::PERM;
        faults::arm(("getxattr".to_owned(), nth), Fault::Errno(errno));
        let (moved, reported) = run(&options);
        if !faults::disarm().reached {
            assert!(lossy > 0);
            return;
        }
        let is_told = reported.iter().any(|line| line.contains("lacks some"));
        lossy += usize::from(is_told);
        assert_eq!(
            is_told,
            moved.is_ok_and(|moved| moved.kept > 0),
            "{reported:?}"
        );
        assert!(
            source.exists() || has(&to.join("file")),
            "{nth}: {reported:?}"
        );
        if source.exists() {
            let (moved, reported) = run(&options);
            assert_eq!(moved.unwrap().kept, 0, "{nth}: {reported:?}");
            assert!(!source.exists() && has(&to.join("file")), "{reported:?}");
        }
    }
}
