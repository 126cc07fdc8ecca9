//! Whole directories under the same harnesses as files: killed before every system call, every call
//! failing, another process at work between any two; and undo gives all of it back.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use bc_edit::names::prune as prune_names;
use rustix::io::Errno;

use super::race::Race;
use super::*;

mod kill;
mod left;
mod old;

/// Two copies of a directory, with a file of two names in the one that goes.
fn copies() -> TestTree {
    copies_in(&quick_place())
}

fn quick_place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match tempfile::Builder::new().tempfile_in(memory) {
        Ok(_) => memory.to_owned(),
        Err(_) => std::env::temp_dir(),
    }
}

fn copies_in(parent: &Path) -> TestTree {
    let tree = TestTree::new_in(parent);
    for copy in ["a", "b"] {
        tree.write(format!("{copy}/in/one"), content())
            .write(format!("{copy}/in/two"), b"two")
            .symlink("in/one", format!("{copy}/link"))
            .symlink("nowhere", format!("{copy}/links/only"))
            .dir(format!("{copy}/void"));
    }
    tree.write("a/twice", b"two")
        .hard_link("b/in/two", "b/twice")
        .write("c/other", b"something else");
    for name in ["a/in/one", "b/in/one", "a/in/two", "a/twice", "b/twice"] {
        tree.mtime(name, 1_000_000_000, 5);
    }
    for (dir, mode) in [("b/void", 0o711), ("b/in", 0o750), ("b", 0o705)] {
        fs::set_permissions(tree.join(dir), fs::Permissions::from_mode(mode)).unwrap();
        tree.mtime(dir, 1_100_000_000, 7);
    }
    tree
}

/// A directory as a search finds it.
fn copy(root: &Path, name: &str) -> TreeCopy {
    let mut found = Vec::new();
    below(root, &root.join(name), &mut found);
    let paths: Vec<PathBuf> = found.iter().map(|(path, _)| path.clone()).collect();
    let entry = |(path, file): (PathBuf, FileRef)| {
        let above = paths
            .iter()
            .position(|above| Some(&**above) == path.parent());
        TreeEntry {
            parent: above.map(|nth| nth as u32),
            name: path.file_name().unwrap().as_bytes().to_vec(),
            kind: match fs::symlink_metadata(root.join(name).join(&path)).unwrap() {
                meta if meta.is_dir() => TreeKind::Dir,
                meta if meta.is_symlink() => TreeKind::Link,
                _ => TreeKind::File,
            },
            id: file.id,
            stamp: file.stamp,
            nlink: file.nlink,
        }
    };
    TreeCopy {
        dir: file_ref(root, &root.join(name)),
        entries: found.into_iter().map(entry).collect(),
    }
}

fn below(root: &Path, top: &Path, found: &mut Vec<(PathBuf, FileRef)>) {
    let mut pending = vec![top.to_owned()];
    while let Some(path) = pending.pop() {
        if path != top {
            let relative = path.strip_prefix(top).unwrap().to_owned();
            found.push((relative, file_ref(root, &path)));
        }
        if path.symlink_metadata().unwrap().is_dir() {
            let read = fs::read_dir(&path).unwrap();
            let mut inner: Vec<PathBuf> = read.map(|entry| entry.unwrap().path()).collect();
            inner.sort();
            pending.extend(inner.into_iter().rev());
        }
    }
}

fn group(root: &Path, names: &[&str]) -> TreeGroup {
    TreeGroup {
        copies: names.iter().map(|name| copy(root, name)).collect(),
        filtered: 0,
    }
}

fn moved(tree: &TestTree) -> Action {
    Action::Move(tree.scratch("moved").as_os_str().as_bytes().to_vec())
}

/// Runs and returns the totals and each line that a front end would print.
fn run_trees(
    groups: Vec<TreeGroup>,
    options: &PruneOptions,
    journal: Option<&mut Journal>,
) -> (PruneSummary, Vec<String>) {
    let mut lines = Vec::new();
    let summary = prune_trees(groups, options, journal, &Cancel::new(), &mut |event| {
        lines.push(match event {
            PruneEvent::Tree(step, StepOutcome::Skipped(skip)) => format!("{step}: {skip}"),
            PruneEvent::Tree(step, StepOutcome::Done { lost, .. }) if !lost.is_empty() => {
                format!("{step}: without {}", lost.join("; "))
            }
            PruneEvent::Tree(step, _) => step.to_string(),
            other => format!("{other:?}"),
        });
    });
    (summary, lines)
}

/// A journal for these directories.
fn journal_of(tree: &TestTree, action: &Action, groups: &[TreeGroup]) -> Journal {
    let dirs = groups.iter().map(|group| FileGroup {
        files: group.copies.iter().map(|copy| copy.dir.clone()).collect(),
    });
    let dirs: Vec<FileGroup> = dirs.collect();
    Journal::create(tree.scratch("journal"), action, &dirs, &Cancel::new()).unwrap()
}

fn undo_all(tree: &TestTree) -> UndoSummary {
    let journal = tree.scratch("journal");
    crate::undo(&journal, RunMode::Execute, &Cancel::new(), &mut |_| {}).unwrap()
}

/// Everything below `root` but temporaries: kind, mode, content or text; of directories the time too,
/// if that is asked for.
fn all_of(root: &Path, times: bool) -> BTreeMap<PathBuf, String> {
    let mut names = Vec::new();
    below(root, root, &mut names);
    let ours = |path: &Path| prune_names::is_ours(path.file_name().unwrap().as_bytes());
    names.retain(|(path, _)| !ours(path));
    let reported = |(path, _): (PathBuf, FileRef)| {
        let whole = root.join(&path);
        let meta = whole.symlink_metadata().unwrap();
        let what = match meta {
            _ if meta.is_dir() && times => format!("directory of {}", meta.mtime()),
            _ if meta.is_dir() => "directory".to_owned(),
            _ if meta.is_symlink() => format!("link to {:?}", fs::read_link(&whole).unwrap()),
            _ => format!("{} bytes: {:?}", meta.len(), fs::read(&whole).unwrap()),
        };
        (path, format!("{:o} {what}", meta.mode()))
    };
    names.into_iter().map(reported).collect()
}

/// Checks that the directory that stays is as it was, and so are unrelated files; each content of
/// the other one exists in one of them.
#[track_caller]
fn check_kept(tree: &TestTree, before: &BTreeMap<PathBuf, String>, context: &str) {
    let after = all_of(tree.path(), false);
    for (path, what) in before {
        let found = after.get(path);
        if path.starts_with("b") {
            let stands = found.is_none_or(|found| {
                // As undo makes it, until all of it is there.
                found == what || what.contains("directory") && found.contains("directory")
            });
            assert!(stands, "{context}: {path:?} is {found:?}");
        } else {
            assert_eq!(found, Some(what), "{context}: {path:?}");
        }
    }
}

/// After undo everything is as it was.
#[track_caller]
fn check_back(tree: &TestTree, before: &BTreeMap<PathBuf, String>, context: &str) {
    let after = all_of(tree.path(), false);
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>(),
        "{context}"
    );
    for (path, what) in before {
        assert_eq!(after[path], *what, "{context}: {path:?}");
    }
}

#[test]
fn a_directory_goes_and_comes_back() {
    for name in ["delete", "move", "trash"] {
        let tree = copies();
        let action = action(&tree, name);
        let before = all_of(tree.path(), true);
        let groups = vec![group(tree.path(), &["a", "b"])];
        let mut dry = options(action.clone());
        dry.mode = RunMode::DryRun;
        let (foreseen, promised) = run_trees(groups.clone(), &dry, None);
        assert_eq!(all_of(tree.path(), true), before, "{promised:?}");

        let mut journal = journal_of(&tree, &action, &groups);
        let (summary, lines) = run_trees(groups, &options(action), Some(&mut journal));
        drop(journal);
        assert!(summary.is_clean(), "{lines:?}");
        assert_eq!((summary.dirs, summary.changed), (1, 3), "{lines:?}");
        assert_eq!(lines, promised);
        assert_eq!(summary.freed, foreseen.freed, "{lines:?}");
        assert!(!tree.join("b").exists(), "{lines:?}");
        assert_eq!(temporaries(tree.path()), Vec::<PathBuf>::new());
        if name == "trash" {
            let trash = tree.scratch("Trash");
            assert!(trash.join("files/b/in/one").exists());
            assert!(trash.join("info/b.trashinfo").exists());
        }
        if name == "move" {
            let root = tree.scratch("moved");
            let there = step::path_below(root.as_os_str().as_bytes(), &copy_path(&tree));
            let there = PathBuf::from(std::ffi::OsStr::from_bytes(&there));
            let was = before.iter().filter_map(|(path, what)| {
                Some((path.strip_prefix("b").ok()?.to_owned(), what.clone()))
            });
            let mut was: BTreeMap<PathBuf, String> = was.collect();
            was.remove(Path::new(""));
            assert_eq!(all_of(&there, true), was, "{lines:?}");
        }
        let undone = undo_all(&tree);
        assert_eq!((undone.failed, undone.incomplete), (0, 0), "{undone:?}");
        assert_eq!(all_of(tree.path(), true), before);
        if name == "trash" {
            assert!(files(&tree.scratch("Trash")).is_empty());
        }
        let again = undo_all(&tree);
        assert_eq!((again.restored, again.failed), (0, 0), "{again:?}");
        assert_eq!(all_of(tree.path(), true), before);
    }
}

/// A directory that a run did not come to remove keeps the mode that it was given since; undo moved
/// its times, and restores those.
#[test]
fn a_directory_that_stayed_keeps_the_mode_it_has_by_now() {
    let tree = copies();
    let before = all_of(tree.path(), true);
    let groups = vec![group(tree.path(), &["a", "b"])];
    let mut journal = journal_of(&tree, &Action::Delete, &groups);
    faults::arm(Point::new("unlink", 2), faults::Fault::Errno(Errno::IO));
    let (_, lines) = run_trees(groups, &options(Action::Delete), Some(&mut journal));
    faults::disarm();
    drop(journal);
    let dirs = ["b", "b/in"].map(|name| tree.join(name));
    assert!(dirs.iter().all(|dir| dir.is_dir()), "{lines:?}");
    for dir in &dirs {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let undone = undo_all(&tree);
    assert!(undone.restored > 0 && undone.failed == 0, "{undone:?}");
    for dir in &dirs {
        let mode = dir.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o700, "{dir:?}: {undone:?}");
    }
    let after = all_of(tree.path(), true);
    assert!(after.keys().eq(before.keys()), "{undone:?}");
}

#[test]
fn to_another_file_system_nothing_is_moved() {
    let Some((_, other)) = two_file_systems() else {
        return;
    };
    let tree = copies();
    let there = other.path().join("moved");
    let mut to_other = options(Action::Move(there.as_os_str().as_bytes().to_vec()));
    for mode in [RunMode::DryRun, RunMode::Execute] {
        to_other.mode = mode;
        let before = all_of(tree.path(), true);
        let found = group(tree.path(), &["a", "b"]);
        let (summary, lines) = run_trees(vec![found], &to_other, None);
        assert_eq!((summary.dirs, summary.errors), (0, 1), "{lines:?}");
        assert!(lines[0].contains("'bc copy'"), "{lines:?}");
        assert_eq!(all_of(tree.path(), true), before);
        assert!(!there.exists());
    }
}

fn copy_path(tree: &TestTree) -> Vec<u8> {
    tree.join("b").as_os_str().as_bytes().to_vec()
}

fn action(tree: &TestTree, name: &str) -> Action {
    match name {
        "move" => moved(tree),
        name => parse_action(tree.path(), name.as_bytes()),
    }
}

#[test]
fn every_call_fails_once() {
    for name in ["delete", "move", "trash"] {
        // Another file system is met by renames alone.
        let renames = Sweep::new(FEW).of(&["rename"]);
        for (errno, mut sweep) in [(Errno::IO, Sweep::new(FEW)), (Errno::XDEV, renames)] {
            while let Some(point) = sweep.next() {
                saw(&mut sweep, &one_fault(name, errno, &point));
            }
            let renames = usize::from(name != "delete");
            let least = if errno == Errno::IO { 8 } else { renames };
            assert!(sweep.reached() >= least, "{errno:?}: {}", sweep.reached());
        }
    }
}

fn one_fault(name: &str, errno: Errno, point: &Point) -> faults::Seen {
    let tree = copies();
    let action = action(&tree, name);
    let before = all_of(tree.path(), false);
    let groups = vec![group(tree.path(), &["a", "b"])];
    let mut journal = journal_of(&tree, &action, &groups);
    faults::arm(point.clone(), faults::Fault::Errno(errno));
    let (summary, lines) = run_trees(groups, &options(action), Some(&mut journal));
    let seen = faults::disarm();
    drop(journal);
    let context = format!("{name} {errno:?} at {point}: {lines:?}");
    check_kept(&tree, &before, &context);
    let whole = before
        .keys()
        .all(|path| tree.path().join(path).symlink_metadata().is_ok());
    let gone = !tree.join("b").exists();
    assert!(gone || !summary.is_clean(), "{context}");
    // Half of it is gone only where that is said.
    let said = lines.iter().any(|line| line.contains("stopped after"));
    assert!(gone || whole || said, "{context}");
    let undone = undo_all(&tree);
    assert_eq!(undone.failed, 0, "{context}: {undone:?}");
    check_back(&tree, &before, &context);
    seen
}

#[test]
fn another_process_loses_nothing() {
    let races = [Race::Edit, Race::Replace, Race::RenameAway];
    for name in ["delete", "move", "trash"] {
        for file in ["a/in/one", "b/in/one"] {
            let mut sweep = Sweep::new(FEW).ways(races.len());
            while let Some(point) = sweep.next() {
                let race = races[sweep.way()];
                saw(&mut sweep, &one_race(name, race, file, &point));
            }
            assert!(sweep.reached() >= 8, "{file}: {}", sweep.reached());
        }
    }
}

fn one_race(name: &str, race: Race, file: &'static str, point: &Point) -> faults::Seen {
    let tree = copies();
    let action = action(&tree, name);
    let groups = vec![group(tree.path(), &["a", "b"])];
    let mut journal = journal_of(&tree, &action, &groups);
    let root = tree.path().to_owned();
    let (sender, receiver) = std::sync::mpsc::channel();
    let go = move || {
        // A directory that is gone holds nothing that could be changed.
        if root.join(file).parent().is_some_and(Path::exists) {
            sender.send(race.go(&root, file)).unwrap();
        }
    };
    faults::arm(point.clone(), faults::Fault::Run(Box::new(go)));
    let (_, lines) = run_trees(groups, &options(action), Some(&mut journal));
    let seen = faults::disarm();
    let context = format!("{name}, {race:?} of {file} before {point}: {lines:?}");
    let mut found = files(tree.path());
    for place in ["moved", "Trash"].map(|place| tree.scratch(place)) {
        if place.exists() {
            found.extend(files(&place));
        }
    }
    let contents: Vec<Vec<u8>> = found.iter().map(|path| fs::read(path).unwrap()).collect();
    if let Ok(Some(written)) = receiver.try_recv() {
        assert!(
            contents.contains(&written),
            "{context}: what was written is gone"
        );
    }
    assert!(contents.contains(&b"something else".to_vec()), "{context}");
    assert!(contents.contains(&b"two".to_vec()), "{context}");
    // A process that replaces the kept file right before the other one goes removes it by itself.
    let by_us = match race {
        Race::Replace | Race::Relink => file.starts_with('b'),
        race => matches!(race, Race::RenameAway),
    };
    let survives = contents.contains(&content());
    assert!(survives || !by_us, "{context}: the content is gone");
    seen
}

/// Changes of another process that put something new in the way.
const ARRIVALS: [fn(&Path) -> std::io::Result<()>; 5] = [
    |root| fs::write(root.join("b/new"), "new"),
    |root| fs::write(root.join("b/in/new"), "new"),
    |root| fs::write(root.join("b/void/new"), "new"),
    |root| swap(root, "b/in"),
    |root| swap(root, "b"),
];

/// Puts another directory in the place of this one.
fn swap(root: &Path, name: &str) -> std::io::Result<()> {
    fs::rename(root.join(name), root.join("was"))?;
    fs::create_dir(root.join(name))?;
    fs::write(root.join(name).join("new"), "new")
}

/// Entries that are added to a directory between the passes, or while its names go, stay, and with
/// them the directory.
#[test]
fn what_comes_meanwhile_stays() {
    for name in ["delete", "move"] {
        // Each call has two of them.
        for turn in [0, 2] {
            let mut sweep = Sweep::new(FEW).ways(ARRIVALS.len());
            while let Some(point) = sweep.next() {
                let arrive = ARRIVALS[(sweep.way() + turn) % ARRIVALS.len()];
                let tree = copies();
                let action = action(&tree, name);
                let groups = vec![group(tree.path(), &["a", "b"])];
                let mut journal = journal_of(&tree, &action, &groups);
                let root = tree.path().to_owned();
                let (sender, receiver) = std::sync::mpsc::channel();
                let write = move || sender.send(arrive(&root).is_ok()).unwrap();
                faults::arm(point.clone(), faults::Fault::Run(Box::new(write)));
                let (_, lines) = run_trees(groups, &options(action), Some(&mut journal));
                saw(&mut sweep, &faults::disarm());
                let context = format!("{name}, before {point}: {lines:?}");
                let mut found = files(tree.path());
                if tree.scratch("moved").exists() {
                    found.extend(files(&tree.scratch("moved")));
                }
                let contents: Vec<Vec<u8>> =
                    found.iter().map(|path| fs::read(path).unwrap()).collect();
                let came = receiver.try_recv() == Ok(true);
                assert!(!came || contents.contains(&b"new".to_vec()), "{context}");
                assert!(contents.contains(&content()), "{context}");
            }
            assert!(sweep.reached() >= 8, "{name}: {}", sweep.reached());
        }
    }
}

/// The link's name is taken, and its temporary one is another file's by then.
#[test]
fn a_link_that_gets_no_name_takes_no_other_file_with_it() {
    let tree = copies();
    let groups = vec![group(tree.path(), &["a", "b"])];
    let mut journal = journal_of(&tree, &Action::Delete, &groups);
    let (summary, lines) = run_trees(groups, &options(Action::Delete), Some(&mut journal));
    drop(journal);
    assert_eq!(summary.dirs, 1, "{lines:?}");
    tree.write("mine", "mine");
    let root = tree.path().to_owned();
    let other = move || {
        let temporary = temporaries(&root).remove(0);
        fs::rename(root.join("mine"), &temporary).unwrap();
        for name in ["b/link", "b/links/only"] {
            let _ = fs::write(root.join(name), "taken");
        }
    };
    faults::arm(Point::first("rename"), faults::Fault::Run(Box::new(other)));
    let undone = undo_all(&tree);
    assert!(faults::disarm().reached);
    assert!(undone.failed > 0, "{undone:?}");
    let left = temporaries(tree.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read(&left[0]).unwrap(), b"mine");
}
