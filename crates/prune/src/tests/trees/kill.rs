//! The process is killed before every system call that changes something: while a directory goes, and
//! while it comes back.

use std::process::{Child, Stdio};

use super::*;
use crate::tests::crash::{died, kills, survived};
use crate::tests::undo_later::undo_as_foreseen;

const TREE: &str = "BC_DUP_TREES_TEST_TREE";
const ACTION: &str = "BC_DUP_TREES_TEST_ACTION";
const UNDO: &str = "BC_DUP_TREES_TEST_UNDO";
const POINT: &str = "BC_DUP_TREES_TEST_POINT";

#[test]
fn killed_while_deleting() {
    every_kill("delete");
}

#[test]
fn killed_while_renaming() {
    every_kill("move");
}

#[test]
fn killed_while_trashing() {
    every_kill("trash");
}

/// The process that dies.
#[test]
fn child() {
    let Some(root) = std::env::var_os(TREE).map(PathBuf::from) else {
        return;
    };
    let action = std::env::var_os(ACTION).unwrap();
    let action = parse_action(&root, action.as_encoded_bytes());
    let point: Point = std::env::var(POINT).unwrap().parse().unwrap();
    let kill = (point, faults::Fault::Kill);
    let journal_path = root.with_file_name("journal");
    if std::env::var_os(UNDO).is_some() {
        faults::arm_all([kill]);
        crate::undo(&journal_path, RunMode::Execute, &Cancel::new(), &mut |_| {}).unwrap();
        return survived(&root, &faults::disarm().calls);
    }
    let groups = vec![group(&root, &["a", "b"])];
    let dirs = groups[0].copies.iter().map(|copy| copy.dir.clone());
    let dirs = FileGroup {
        files: dirs.collect(),
    };
    let mut journal = Journal::create(&journal_path, &action, &[dirs], &Cancel::new()).unwrap();
    faults::arm_all([kill]);
    run_trees(groups, &options(action), Some(&mut journal));
    survived(&root, &faults::disarm().calls);
}

fn spawn(tree: &TestTree, name: &str, point: &Point, more: &[(&str, String)]) -> Child {
    let action = match name {
        "move" => format!("move:{}", tree.scratch("moved").display()),
        name => name.to_owned(),
    };
    let mut command = bc_testkit::own_program();
    command
        .args(["--exact", "tests::trees::kill::child", "--nocapture"])
        .env(TREE, tree.path())
        .env(ACTION, action)
        .env(POINT, point.to_string())
        .envs(more.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Makes two copies on a file system that reuses inode numbers, with properties that are easily
/// lost: modes, owners and times of directories, and of links.
pub(super) fn rich_copies(place: &Path) -> TestTree {
    let tree = copies_in(place);
    for (dir, mode) in [("b/links", 0o2750), ("b/void", 0o1711)] {
        fs::set_permissions(tree.join(dir), fs::Permissions::from_mode(mode)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        for name in ["b/in", "b/link", "b/twice", "b"] {
            std::os::unix::fs::lchown(tree.join(name), Some(1000), Some(1001)).unwrap();
        }
    }
    for (nth, name) in ["link", "links/only", "links", "void", "in", ""]
        .iter()
        .enumerate()
    {
        let path = tree.join("b").join(name);
        let time = rustix::fs::Timespec {
            tv_sec: 1_200_000_000 + nth as i64,
            tv_nsec: 9,
        };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        let itself = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, &path, &times, itself).unwrap();
    }
    tree
}

/// All that undo is to give back: kind, content, mode, owner, time, and which names are one file.
pub(super) fn whole_of(tree: &TestTree) -> BTreeMap<PathBuf, String> {
    let mut all = all_of(&tree.join("b"), false);
    all.insert(PathBuf::new(), "directory".to_owned());
    let mut first: std::collections::HashMap<u64, PathBuf> = std::collections::HashMap::new();
    for (path, what) in &mut all {
        let meta = tree.join("b").join(path).symlink_metadata().unwrap();
        let one = first.entry(meta.ino()).or_insert_with(|| path.clone());
        let owner = (meta.mode(), meta.uid(), meta.gid());
        let time = (meta.mtime(), meta.mtime_nsec());
        *what += &format!(" {owner:?} {time:?} {} {one:?}", path.is_dir());
    }
    all
}

/// As after an undo that nothing disturbed.
#[track_caller]
pub(super) fn check_whole(tree: &TestTree, before: &BTreeMap<PathBuf, String>, context: &str) {
    let after = whole_of(tree);
    for (path, what) in before {
        assert_eq!(after.get(path), Some(what), "{context}: {path:?}");
    }
    assert_eq!(after.len(), before.len(), "{context}");
}

fn every_kill(name: &str) {
    let mut sweep = kills(EVERY);
    while let Some(point) = sweep.next() {
        let tree = rich_copies(&quick_place());
        let before = all_of(tree.path(), false);
        let whole = whole_of(&tree);
        died(&mut sweep, &tree, spawn(&tree, name, &point, &[]));
        let context = format!("{name} killed at {point}");
        check_kept(&tree, &before, &context);
        let undone = undo_all(&tree);
        assert_eq!(undone.failed, 0, "{context}: {undone:?}");
        check_back(&tree, &before, &context);
        check_whole(&tree, &whole, &context);
        assert_eq!(undone.incomplete, 0, "{context}: {undone:?}");
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new(), "{context}");
    }
    assert!(sweep.reached() >= 3, "{name}: {}", sweep.reached());
}

#[test]
fn killed_while_undoing_a_deletion() {
    every_kill_of_undo("delete", false);
}

#[test]
fn killed_while_undoing_a_rename() {
    every_kill_of_undo("move", false);
}

#[test]
fn killed_while_taking_out_of_the_trash() {
    every_kill_of_undo("trash", false);
}

#[test]
fn killed_while_undoing_a_copy() {
    every_kill_of_undo("move", true);
}

/// Takes the copy away; by copies, as versions before did.
fn gone(tree: &TestTree, name: &str, copied: bool) {
    if copied {
        let changes = usize::MAX;
        assert!(super::old::move_as_before(
            tree,
            &tree.scratch("moved"),
            changes
        ));
        return;
    }
    let action = action(tree, name);
    let groups = vec![group(tree.path(), &["a", "b"])];
    let mut journal = journal_of(tree, &action, &groups);
    let (summary, lines) = run_trees(groups, &options(action), Some(&mut journal));
    assert!(summary.is_clean() && !tree.exists("b"), "{lines:?}");
}

/// However far a killed undo came, the next one ends as one that nothing disturbed.
fn every_kill_of_undo(name: &str, copied: bool) {
    let mut sweep = kills(EVERY);
    while let Some(point) = sweep.next() {
        // In memory numbers are new ones, on a disk those of removed files are given again.
        let place = match sweep.reached() % 16 {
            1 => std::env::temp_dir(),
            _ => quick_place(),
        };
        let tree = rich_copies(&place);
        let before = all_of(tree.path(), false);
        let whole = whole_of(&tree);
        let number = tree.join("b").metadata().unwrap().ino();
        gone(&tree, name, copied);
        let there = step::path_below(
            tree.scratch("moved").as_os_str().as_bytes(),
            &copy_path(&tree),
        );
        let there = PathBuf::from(std::ffi::OsStr::from_bytes(&there)).metadata();
        let renamed = there.is_ok_and(|there| there.ino() == number);
        assert_eq!(renamed, name == "move" && !copied);
        let undo = (UNDO, "1".to_owned());
        died(&mut sweep, &tree, spawn(&tree, name, &point, &[undo]));
        let context = format!("undo of {name} copied {copied} killed at {point}");
        check_kept(&tree, &before, &context);
        let (undone, _) = undo_as_foreseen(&tree);
        assert_eq!(
            (undone.failed, undone.incomplete),
            (0, 0),
            "{context}: {undone:?}"
        );
        check_back(&tree, &before, &context);
        check_whole(&tree, &whole, &context);
        for place in [tree.path(), &tree.scratch("moved")] {
            assert_eq!(temporaries(place), Vec::<PathBuf>::new(), "{context}");
        }
        let (again, _) = undo_as_foreseen(&tree);
        assert_eq!(
            (again.restored, again.failed),
            (0, 0),
            "{context}: {again:?}"
        );
        check_whole(&tree, &whole, &context);
    }
    assert!(sweep.reached() >= 2, "{name}: {}", sweep.reached());
}

/// It had made the link, and not given it its name yet.
#[test]
fn a_link_of_a_killed_undo_goes() {
    let tree = copies();
    gone(&tree, "delete", false);
    tree.dir("b").symlink("in/one", "b/.bc-dup.1.1.1.tmp");
    let (undone, lines) = undo_as_foreseen(&tree);
    assert_eq!((undone.failed, undone.leftovers), (0, 1), "{lines:?}");
    assert!(temporaries(tree.path()).is_empty());
}

/// A directory that another program works in again is not set back by another undo.
#[test]
fn what_is_done_since_an_undo_stays() {
    let tree = rich_copies(&quick_place());
    gone(&tree, "delete", false);
    undo_all(&tree);
    tree.write("b/in/new", "new").write("b/links/new", "new");
    let now = whole_of(&tree);
    let again = undo_all(&tree);
    assert_eq!((again.restored, again.failed), (0, 0), "{again:?}");
    check_whole(&tree, &now, "undone again");
}

/// The step of a file in a directory that comes back is foreseen as it is undone.
#[test]
fn a_file_in_a_directory_that_comes_back_is_foreseen() {
    for name in ["move", "delete"] {
        for edited in [false, true] {
            let tree = copies();
            tree.write("a-keep", content());
            let files = ["a-keep", "b/in/one"].map(|name| file_ref(tree.path(), &tree.join(name)));
            let group = FileGroup {
                files: files.to_vec(),
            };
            let mut journal = create(&tree.scratch("journal"), Action::Hardlink, &tree).unwrap();
            let mut options = options(Action::Hardlink);
            options.on_metadata_diff = OnMetadataDiff::Ignore;
            let (summary, lines) = run_groups(vec![group], &options, Some(&mut journal));
            assert_eq!(summary.changed, 1, "{lines:?}");
            drop(journal);
            gone(&tree, name, false);
            if edited {
                fs::write(tree.join("a-keep"), "edited").unwrap();
            }
            let (undone, lines) = undo_as_foreseen(&tree);
            let context = format!("{name}, edited {edited}: {lines:?}");
            // Renamed back, the link has what was written to it.
            let is_link = edited && name == "move";
            assert_eq!(undone.failed, u64::from(is_link), "{context}");
            let parted = inode(tree.join("a-keep")) != inode(tree.join("b/in/one"));
            assert_eq!(parted, !is_link, "{context}");
        }
    }
}
