//! Moves to another file system: kept properties, reports, and leftovers of a killed run.

use std::os::unix::fs::MetadataExt;

use bc_edit::names::prune as prune_names;
use rustix::io::Errno;

use super::crash::{died, kills, spawn, spawn_undo};
use super::*;

pub(super) fn action(to: &Path) -> Action {
    Action::Move(to.as_os_str().as_bytes().to_vec())
}

pub(super) fn moved(to: &Path, tree: &TestTree, name: &str) -> PathBuf {
    let whole = tree.join(name);
    to.join(whole.strip_prefix("/").unwrap())
}

pub(super) fn undo_all(tree: &TestTree) -> (UndoSummary, Vec<String>) {
    let mut lines = Vec::new();
    let journal = tree.scratch("journal");
    let summary = undo(&journal, RunMode::Execute, &Cancel::new(), &mut |event| {
        lines.push(format!("{event:?}"));
    });
    (summary.unwrap(), lines)
}

pub(super) fn run_journalled(
    tree: &TestTree,
    options: &PruneOptions,
) -> (PruneSummary, Vec<String>) {
    let mut journal = create(&tree.scratch("journal"), options.action.clone(), tree).unwrap();
    run_groups(groups(tree.path()), options, Some(&mut journal))
}

#[test]
fn names_that_move_together_stay_one_file() {
    let Some((tree, to)) = two_file_systems() else {
        return;
    };
    let (summary, lines) = run_journalled(&tree, &options(action(to.path())));
    assert_eq!((summary.changed, summary.incomplete), (3, 0), "{lines:?}");
    let two = moved(to.path(), &tree, "b/two");
    assert_eq!(inode(&two), inode(moved(to.path(), &tree, "c/two-too")));
    assert_eq!(two.metadata().unwrap().nlink(), 2);
    let (undone, lines) = undo_all(&tree);
    assert_eq!(
        (undone.restored, undone.incomplete, undone.failed),
        (3, 0, 0),
        "{lines:?}"
    );
    assert_eq!(inode(tree.join("b/two")), inode(tree.join("c/two-too")));
    assert_eq!(tree.join("b/two").metadata().unwrap().nlink(), 2);
    assert!(files(to.path()).is_empty());
}

#[test]
fn names_that_part_are_told() {
    let Some((tree, to)) = two_file_systems() else {
        return;
    };
    // Outside of the searched tree.
    fs::hard_link(tree.join("b/one"), tree.scratch("another")).unwrap();
    let (summary, lines) = run_journalled(&tree, &options(action(to.path())));
    assert_eq!((summary.changed, summary.incomplete), (3, 1), "{lines:?}");
    let reported = "hard links: 1 other name of the file did not move";
    assert!(
        lines
            .iter()
            .any(|line| line.contains("b/one") && line.contains(reported)),
        "{lines:?}"
    );
    let (undone, lines) = undo_all(&tree);
    assert_eq!((undone.restored, undone.incomplete), (3, 1), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("hard links: 1 other name it had"))
    );
}

/// Hard links that the other file system refuses are reported.
#[test]
fn hard_links_that_cannot_be_are_told() {
    let Some((tree, to)) = two_file_systems() else {
        return;
    };
    faults::arm(Point::new("link", 3), faults::Fault::Errno(Errno::PERM));
    let (summary, lines) = run(&tree, &options(action(to.path())));
    faults::disarm();
    assert_eq!((summary.changed, summary.incomplete), (3, 1), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("hard link to its other name")),
        "{lines:?}"
    );
    assert_eq!(files(to.path()).len(), 3);
}

#[test]
fn what_a_copy_cannot_have_is_told_or_refused() {
    for (op, what) in [
        ("setxattr", "attribute user.note"),
        ("chown", "owner"),
        ("chmod", "mode"),
        ("utimens", "times"),
    ] {
        for ignore in [false, true] {
            let Some((tree, to)) = two_file_systems() else {
                return;
            };
            let note = rustix::fs::setxattr(
                tree.join("b/one"),
                "user.note",
                b"mine",
                rustix::fs::XattrFlags::empty(),
            );
            if note.is_err() && op == "setxattr" {
                bc_testkit::left_out("no user attributes in /dev/shm");
                continue;
            }
            fs::create_dir_all(moved(to.path(), &tree, "b")).unwrap();
            let mut options = options(action(to.path()));
            if ignore {
                options.on_metadata_diff = OnMetadataDiff::Ignore;
            }
            faults::arm(Point::first(op), faults::Fault::Errno(Errno::OPNOTSUPP));
            let (summary, lines) = run(&tree, &options);
            assert!(faults::disarm().reached);
            let context = format!("{op}, {ignore}: {lines:?}");
            let line = lines.iter().find(|line| line.contains("b/one")).unwrap();
            assert!(line.contains(what), "{context}");
            if ignore {
                assert_eq!((summary.changed, summary.incomplete), (3, 1), "{context}");
            } else {
                assert_eq!(summary.skipped["metadata not kept"], 1, "{context}");
                assert!(tree.exists("b/one"), "{context}");
            }
        }
    }
}

/// Killed before every system call that changes something: the next run finishes, or undo puts
/// everything back; neither leaves a temporary, and none says for ever that
/// the destination exists.
fn every_kill(then: impl Fn(&TestTree, &Path, &str), across: bool) {
    let mut sweep = kills(EVERY);
    while let Some(point) = sweep.next() {
        let Some((tree, to)) = two_file_systems() else {
            return;
        };
        let to = if across {
            to.path().join("new")
        } else {
            tree.scratch("moved")
        };
        let before = snapshot(tree.path());
        let name = format!("move:{}", to.display());
        let died = died(&mut sweep, &tree, spawn(&tree, &name, &point));
        let context = format!("killed at {point}");
        check_invariant(&tree, &before, &action(&to), &context);
        if died {
            then(&tree, &to, &context);
            check_invariant(&tree, &before, &action(&to), &context);
        }
    }
    assert!(sweep.reached() >= 3, "{}", sweep.reached());
}

/// All three names are there; where the run was killed after the last original had gone, and nothing
/// led the next one there, one of the files has its temporary name as well.
fn check_moved(to: &Path, context: &str) {
    let left = temporaries(to);
    let mut found = files(to);
    found.retain(|path| !left.contains(path));
    assert_eq!(found.len(), 3, "{context}: {found:?}");
    let is_named = |left: &PathBuf| found.iter().any(|path| inode(path) == inode(left));
    assert!(
        left.len() < 2 && left.iter().all(is_named),
        "{context}: {left:?}"
    );
}

fn finish(tree: &TestTree, to: &Path, context: &str) {
    let mut options = options(action(to));
    options.earlier = vec![tree.scratch("journal")];
    let (summary, lines) = run(tree, &options);
    let context = format!("{context}, then {lines:?}");
    assert!(summary.is_clean(), "{context}");
    let names: Vec<PathBuf> = files(tree.path());
    assert_eq!(names.len(), 3, "{context}: {names:?}");
    check_moved(to, &context);
    let two = moved(to, tree, "b/two");
    assert_eq!(fs::read(&two).unwrap(), content(), "{context}");
}

/// Runs the command once more, with a journal of its own: that of the killed run is not given. Undo
/// of the second takes back the second's steps.
fn finish_without(tree: &TestTree, to: &Path, context: &str) {
    let options = options(action(to));
    let before = snapshot(tree.path());
    let there = match to.exists() {
        true => snapshot(to),
        false => BTreeMap::new(),
    };
    let second = tree.scratch("second");
    let mut journal = create(&second, options.action.clone(), tree).unwrap();
    let groups = groups(tree.path());
    let (summary, lines) = run_groups(groups, &options, Some(&mut journal));
    drop(journal);
    let context = format!("{context}, then {lines:?}");
    assert!(summary.is_clean(), "{context}");
    assert_eq!(files(tree.path()).len(), 3, "{context}");
    check_moved(to, &context);
    assert!(temporaries(tree.path()).is_empty(), "{context}");
    let mut said = Vec::new();
    let undone = undo(&second, RunMode::Execute, &Cancel::new(), &mut |event| {
        said.push(format!("{event:?}"));
    });
    assert_eq!(undone.unwrap().failed, 0, "{context}, undo: {said:?}");
    let is_ours = |path: &PathBuf| prune_names::is_ours(path.file_name().unwrap().as_bytes());
    let without = |mut tree: BTreeMap<PathBuf, Vec<u8>>| {
        tree.retain(|path, _| !is_ours(path));
        tree
    };
    assert_eq!(snapshot(tree.path()), without(before), "{context}");
    if to.exists() {
        assert_eq!(without(snapshot(to)), without(there), "{context}");
    }
}

fn take_back(tree: &TestTree, to: &Path, context: &str) {
    let (summary, lines) = undo_all(tree);
    let context = format!("{context}, then {lines:?}");
    assert_eq!(summary.failed, 0, "{context}");
    for name in ["a/keep", "a/keep2", "b/one", "b/two", "c/two-too"] {
        assert_eq!(tree.read(name), content(), "{context}");
    }
    assert!(temporaries(tree.path()).is_empty(), "{context}");
    if to.exists() {
        let left = snapshot(to);
        assert!(left.is_empty(), "{context}: {left:?}");
    }
}

#[test]
fn killed_on_the_way_to_another_file_system_the_next_run_finishes() {
    every_kill(finish, true);
}

#[test]
fn killed_on_the_way_to_another_file_system_undo_takes_it_back() {
    every_kill(take_back, true);
}

#[test]
fn killed_on_the_way_to_another_file_system_the_next_run_finishes_without_that_journal() {
    every_kill(finish_without, true);
}

#[test]
fn killed_while_renaming_the_next_run_finishes() {
    every_kill(finish, false);
    every_kill(finish_without, false);
}

#[test]
fn killed_while_renaming_undo_takes_it_back() {
    every_kill(take_back, false);
}

/// Every system call on the way fails once; a copy that cannot be withdrawn
/// either is known for ours.
#[test]
fn every_fault_on_the_way_to_another_file_system_is_survived() {
    for (many, points) in [(1, FEW), (12, 2)] {
        let mut sweep = Sweep::new(points);
        while let Some(point) = sweep.next() {
            let Some((tree, to)) = two_file_systems() else {
                return;
            };
            let mut options = options(action(to.path()));
            options.earlier = vec![tree.scratch("journal")];
            let before = snapshot(tree.path());
            let groups = groups(tree.path());
            let path = tree.scratch("journal");
            let mut journal =
                Journal::create(&path, &options.action, &groups, &Cancel::new()).unwrap();
            faults::arm(point.clone(), faults::Fault::Errnos(Errno::IO, many));
            let (_, lines) = run_groups(groups, &options, Some(&mut journal));
            let failed = saw(&mut sweep, &faults::disarm());
            drop(journal);
            let context = format!("{many} from {point}: {lines:?}");
            check_invariant(&tree, &before, &options.action, &context);
            if !failed {
                continue;
            }
            let (summary, lines) = run(&tree, &options);
            let context = format!("{context}, then {lines:?}");
            check_invariant(&tree, &before, &options.action, &context);
            assert_eq!(summary.errors, 0, "{context}");
            let two = moved(to.path(), &tree, "b/two");
            assert_eq!(fs::read(&two).unwrap(), content(), "{context}");
        }
    }
}

/// Undo is killed before every system call that changes something; undo again finishes.
#[test]
fn killed_while_undoing_a_second_undo_finishes() {
    for (name, across) in [
        ("move", true),
        ("move", false),
        ("hardlink", false),
        ("symlink", false),
        ("delete", false),
    ] {
        let mut sweep = kills(EVERY);
        while let Some(point) = sweep.next() {
            let Some((tree, to)) = two_file_systems() else {
                return;
            };
            let to = if across {
                to.path().join("new")
            } else {
                tree.scratch("moved")
            };
            let name = match name {
                "move" => format!("move:{}", to.display()),
                name => name.to_owned(),
            };
            let action = Action::parse(name.as_bytes()).unwrap();
            run_journalled(&tree, &options(action.clone()));
            died(&mut sweep, &tree, spawn_undo(&tree, &name, &point));
            take_back(&tree, &to, &format!("{name}, undo killed at {point}"));
        }
        // One of each name is not many here.
        let least = asked_points().map_or(3, |many| many.min(3));
        assert!(sweep.reached() >= least, "{name}: {}", sweep.reached());
    }
}

/// Each name is moved below new directories: these are as private as those that it was in,
/// whatever list the destination gives to what is made in it.
#[test]
fn new_directories_permit_what_their_sources_did() {
    let tree = sample();
    let to = tree.scratch("moved");
    fs::create_dir(&to).unwrap();
    if let Err(reason) = bc_testkit::give_default_acl(&to) {
        return bc_testkit::left_out(&reason);
    }
    tree.mode("b", 0o750).mode("c", 0o770);
    bc_testkit::give_acl(&tree.join("c")).unwrap();
    let list = |path: &Path| {
        let mut value = vec![0; 256];
        let size = rustix::fs::getxattr(path, "system.posix_acl_access", &mut value[..]);
        size.ok().map(|size| value[..size].to_vec())
    };
    let wanted = list(&tree.join("c"));
    let bits = tree.join("c").metadata().unwrap().mode();
    let (summary, lines) = run(&tree, &options(action(&to)));
    assert_eq!((summary.changed, summary.errors), (3, 0), "{lines:?}");
    let of = |name: &str| moved(&to, &tree, name);
    assert!(!bc_testkit::has_acl(&of("b")), "{lines:?}");
    assert_eq!(of("b").metadata().unwrap().mode() & 0o7777, 0o750);
    assert_eq!(list(&of("c")), wanted);
    assert_eq!(of("c").metadata().unwrap().mode(), bits);
}

/// A directory that cannot be given its group lets nobody do what only that group might.
#[test]
fn what_a_group_may_do_no_other_one_gets() {
    if !bc_testkit::is_root() {
        return bc_testkit::left_out("not root: no file can be given another group");
    }
    for (mode, is_given, expected) in [
        (0o770, true, 0o770),
        (0o770, false, 0o700),
        (0o775, false, 0o755),
        (0o705, false, 0o700),
    ] {
        let tree = sample();
        tree.mode("b", mode);
        std::os::unix::fs::chown(tree.join("b"), None, Some(12)).unwrap();
        let to = tree.scratch("moved");
        if !is_given {
            // Of each directory on the way, from the one below the root; then with its group alone.
            let nth = tree.join("b").components().count() - 1;
            let fault = faults::Fault::Errnos(Errno::PERM, 2);
            faults::arm(Point::new("chown", nth), fault);
        }
        let (summary, lines) = run(&tree, &options(action(&to)));
        faults::disarm();
        assert_eq!((summary.changed, summary.errors), (3, 0), "{lines:?}");
        let made = moved(&to, &tree, "b").metadata().unwrap();
        assert_eq!(made.mode() & 0o7777, expected, "{mode:o}");
        assert_eq!(made.gid() == 12, is_given);
    }
}

/// While undo restores a file, another process gives its name to another one: that one keeps its
/// owner, mode and times.
#[test]
fn metadata_never_goes_to_a_file_that_took_the_name() {
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let Some((tree, to)) = two_file_systems() else {
            return;
        };
        tree.mode("b/one", 0o4755);
        let mut options = options(action(to.path()));
        options.on_metadata_diff = OnMetadataDiff::Ignore;
        run_journalled(&tree, &options);
        let victim = tree.scratch("victim");
        fs::write(&victim, content()).unwrap();
        fs::set_permissions(&victim, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let before = victim.metadata().unwrap();
        let name = tree.join("b/one");
        let (from, spare) = (victim.clone(), tree.scratch("spare"));
        faults::arm(
            point.clone(),
            faults::Fault::Run(Box::new(move || {
                fs::hard_link(&from, &spare).unwrap();
                fs::rename(&spare, &name).unwrap();
            })),
        );
        undo_all(&tree);
        saw(&mut sweep, &faults::disarm());
        let after = victim.metadata().unwrap();
        assert_eq!(
            (after.mode(), after.uid(), after.mtime(), after.mtime_nsec()),
            (
                before.mode(),
                before.uid(),
                before.mtime(),
                before.mtime_nsec()
            ),
            "before {point}"
        );
    }
}
