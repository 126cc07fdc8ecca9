//! undo long after: disks were mounted again or are not there, names have something else by now, an
//! earlier undo or the run itself was stopped.

use std::os::unix::fs::MetadataExt;

use bc_fs::meta;
use bc_fs::mount::basic_traits;

use super::moves::run_journalled;
use super::*;

fn undo_all(tree: &TestTree, mode: RunMode) -> (UndoSummary, Vec<String>) {
    let mut lines = Vec::new();
    let journal = tree.scratch("journal");
    let summary = undo(&journal, mode, &Cancel::new(), &mut |event| {
        lines.push(format!("{event:?}"));
    });
    (summary.unwrap(), lines)
}

/// Undoes in a dry run, then really: the two agree in the files that come back and those that do
/// not, and in what killed runs left.
pub(super) fn undo_as_foreseen(tree: &TestTree) -> (UndoSummary, Vec<String>) {
    let (dry, said) = undo_all(tree, RunMode::DryRun);
    let (done, lines) = undo_all(tree, RunMode::Execute);
    let counts = |summary: &UndoSummary| {
        let UndoSummary {
            restored,
            incomplete,
            unneeded,
            failed,
            leftovers,
            ..
        } = *summary;
        (restored, incomplete, unneeded, failed, leftovers)
    };
    assert_eq!(counts(&dry), counts(&done), "{said:?}, then {lines:?}");
    (done, lines)
}

fn pruned(tree: &TestTree, action: &Action) {
    let mut options = options(action.clone());
    options.on_metadata_diff = OnMetadataDiff::Ignore;
    let (summary, lines) = run_journalled(tree, &options);
    assert!(summary.is_clean(), "{lines:?}");
}

fn rewrite(tree: &TestTree, edit: impl Fn(&str) -> String) {
    let path = tree.scratch("journal");
    let text = fs::read_to_string(&path).unwrap();
    let text: String = text.lines().map(|line| edit(line) + "\n").collect();
    fs::write(&path, text).unwrap();
}

/// Changes the recorded device numbers, as if the disk had had another one.
fn number_again(tree: &TestTree) {
    let dev = tree.path().metadata().unwrap().dev();
    let other = format!("\"dev\":{},", dev + 1000);
    rewrite(tree, |line| {
        line.replace(&format!("\"dev\":{dev},"), &other)
    });
}

/// Takes the recorded times of birth away, as on file systems that have none.
fn without_births(tree: &TestTree) {
    rewrite(tree, |line| {
        let mut parts = line.split("\"born_ns\":");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
            text + "\"born_ns\":null" + rest
        })
    });
}

#[test]
fn a_trash_on_a_disk_that_has_another_number_since() {
    for births in [true, false] {
        let tree = sample();
        let before = names(&tree);
        let home = tree.scratch("Trash").as_os_str().as_bytes().to_vec();
        pruned(&tree, &Action::Trash(Some(home)));
        number_again(&tree);
        match births {
            true if !has_births(&tree) => continue,
            true => {}
            false => without_births(&tree),
        }
        let (undone, lines) = undo_as_foreseen(&tree);
        assert_eq!((undone.restored, undone.failed), (3, 0), "{lines:?}");
        assert_eq!(names(&tree), before);
        assert!(files(&tree.scratch("Trash")).is_empty());
    }
}

fn has_births(tree: &TestTree) -> bool {
    let file = fs::File::open(tree.join("a/keep")).unwrap();
    let has = meta::born_ns(&file).is_some();
    if !has {
        bc_testkit::left_out("no times of birth");
    }
    has
}

/// Inode numbers and times of all names.
fn names(tree: &TestTree) -> BTreeMap<PathBuf, (Vec<u8>, u64, i64)> {
    let all = files(tree.path()).into_iter().map(|path| {
        let meta = path.metadata().unwrap();
        let content = fs::read(&path).unwrap();
        (path, (content, meta.nlink(), meta.mtime()))
    });
    all.collect()
}

#[test]
fn a_disk_that_has_another_number_since() {
    for index in 0..4 {
        let tree = sample();
        if !has_births(&tree) {
            return;
        }
        let action = actions(&tree)[index].clone();
        // A name that no step is about.
        fs::hard_link(tree.join("b/one"), tree.scratch("outside")).unwrap();
        let (before, moved) = (names(&tree), inode(tree.join("b/one")));
        pruned(&tree, &action);
        number_again(&tree);
        let (summary, lines) = undo_as_foreseen(&tree);
        let context = format!("{action:?}: {lines:?}");
        assert_eq!((summary.restored, summary.failed), (3, 0), "{context}");
        if let Action::Move(_) = action {
            assert_eq!(inode(tree.join("b/one")), moved, "{context}");
            assert_eq!(names(&tree), before, "{context}");
        }
        assert_ne!(inode(tree.join("b/one")), inode(tree.join("a/keep")));
        let (again, lines) = undo_as_foreseen(&tree);
        assert_eq!((again.restored, again.failed), (0, 0), "{lines:?}");
    }
}

/// Another run, or its undo, gave the kept file another number since.
#[test]
fn a_link_to_what_has_the_kept_name_by_now_is_parted() {
    for index in 0..2 {
        let tree = sample();
        let action = actions(&tree)[index].clone();
        let before = names(&tree);
        pruned(&tree, &action);
        let keep = tree.join("a/keep");
        fs::copy(&keep, tree.join("a/new")).unwrap();
        fs::rename(tree.join("a/new"), &keep).unwrap();
        if index == 0 {
            for name in ["a/keep2", "b/one", "b/two", "c/two-too"] {
                tree.remove(name).hard_link("a/keep", name);
            }
        }
        let (summary, lines) = undo_as_foreseen(&tree);
        assert_eq!((summary.restored, summary.failed), (3, 0), "{lines:?}");
        for name in ["b/one", "b/two"] {
            let path = tree.join(name);
            assert!(path.symlink_metadata().unwrap().is_file(), "{lines:?}");
            assert_eq!(names(&tree)[&path], before[&path], "{name}: {lines:?}");
        }
    }
}

#[test]
fn what_has_the_name_of_a_moved_file_is_not_it() {
    type Put = fn(&Path);
    let kinds: [(bool, Put); 4] = [
        (true, |path| fs::create_dir(path).unwrap()),
        (true, |path| {
            std::os::unix::fs::symlink("/dev/null", path).unwrap();
        }),
        (true, |path| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        }),
        (false, |path| fs::write(path, "something else").unwrap()),
    ];
    for (nth, (is_there, put)) in kinds.into_iter().enumerate() {
        let tree = sample();
        let action = actions(&tree).remove(3);
        pruned(&tree, &action);
        put(&tree.join("b/one"));
        if !is_there {
            fs::remove_dir_all(tree.scratch("moved")).unwrap();
        }
        let (summary, lines) = undo_as_foreseen(&tree);
        let failed = if is_there { 1 } else { 3 };
        assert_eq!(summary.failed, failed, "{nth}: {lines:?}");
        assert_eq!(summary.unneeded, 0, "{nth}: {lines:?}");
    }
}

#[test]
fn nothing_is_put_into_another_file_system() {
    // Of earlier versions, which recorded no volume, the kept file's device is compared.
    for old in [false, true] {
        for index in 0..4 {
            let tree = quick_sample();
            let dir = fs::File::open(tree.path()).unwrap();
            let traits = basic_traits(&dir).unwrap();
            if old && traits.copy_up == bc_fs::mount::Answer::Yes {
                bc_testkit::left_out("numbers of devices tell nothing here");
                return;
            }
            let action = actions(&tree)[index].clone();
            pruned(&tree, &action);
            rewrite(&tree, |line| {
                let volume = line.find(",\"volume\"");
                let line = volume.map_or(line.to_owned(), |at| line[..at].to_owned() + "}");
                let dev = line
                    .find("\"dev\":")
                    .filter(|_| line.contains("\"target\""));
                let Some(dev) = dev else { return line };
                // The target comes first.
                let line = line[..dev].to_owned() + "\"dev\":1" + &line[dev + 6..];
                match old {
                    true => line,
                    false => line[..line.len() - 1].to_owned() + ",\"volume\":\"ext4 /dev/other\"}",
                }
            });
            let before = snapshot(tree.path());
            let (summary, lines) = undo_as_foreseen(&tree);
            assert_eq!((summary.restored, summary.failed), (0, 3), "{lines:?}");
            assert!(
                lines.iter().all(|line| line.contains("OtherVolume")),
                "{lines:?}"
            );
            assert_eq!(snapshot(tree.path()), before, "{lines:?}");
        }
    }
}

/// The file itself is set aside, and the kept one was edited.
#[test]
fn what_a_killed_run_set_aside_comes_back() {
    for action in ["hardlink", "symlink", "delete"] {
        let tree = sample();
        let (before, was) = (names(&tree), inode(tree.join("b/one")));
        super::crash::kill(&tree, action, &Point::first("unlink"));
        let left = temporaries(tree.path());
        assert_eq!(left.len(), 1, "{action}: {left:?}");
        assert_eq!(inode(&left[0]), was, "{action}");
        fs::write(tree.join("a/keep"), "edited").unwrap();
        let (summary, lines) = undo_as_foreseen(&tree);
        let context = format!("{action}: {lines:?}");
        assert_eq!((summary.restored, summary.failed), (1, 0), "{context}");
        assert_eq!(inode(tree.join("b/one")), was, "{context}");
        let path = tree.join("b/one");
        assert_eq!(names(&tree)[&path], before[&path], "{context}");
        assert_eq!(tree.read("a/keep"), b"edited", "{context}");
        assert!(temporaries(tree.path()).is_empty(), "{context}");
    }
}

/// Another file has the name by now: the file that was set aside is reported.
#[test]
fn what_a_killed_run_set_aside_and_cannot_come_back_is_named() {
    let tree = sample();
    super::crash::kill(&tree, "hardlink", &Point::first("unlink"));
    fs::write(tree.join("a/keep"), "edited").unwrap();
    tree.remove("b/one").write("b/one", "new work");
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.restored, summary.failed), (0, 1), "{lines:?}");
    assert!(lines[0].contains("Failed(Rest {"), "{lines:?}");
    assert_eq!(tree.read("b/one"), b"new work");
    assert_eq!(temporaries(tree.path()).len(), 1);
}

#[test]
fn what_an_earlier_undo_could_not_give_back_is_not_in_place() {
    for index in 0..3 {
        let tree = sample();
        tree.mode("b/one", 0o640);
        let action = actions(&tree)[index].clone();
        pruned(&tree, &action);
        let refused = faults::Fault::Errno(rustix::io::Errno::PERM);
        faults::arm(Point::first("chmod"), refused);
        let (first, lines) = undo_all(&tree, RunMode::Execute);
        assert!(!faults::disarm().calls.is_empty());
        assert_eq!((first.restored, first.incomplete), (3, 1), "{lines:?}");
        // It was that of the file that has two names.
        let (second, lines) = undo_as_foreseen(&tree);
        assert_eq!((second.restored, second.failed), (0, 2), "{lines:?}");
        let reported = "Incomplete(\"mode\")";
        assert!(
            lines.iter().any(|line| line.contains(reported)),
            "{lines:?}"
        );
    }
}

#[test]
fn the_time_of_the_last_access_comes_back() {
    let tree = sample();
    pruned(&tree, &Action::Delete);
    // The test itself had read all files.
    rewrite(&tree, |line| {
        let mut parts = line.split("\"atime_ns\":");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |line, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
            format!("{line}\"atime_ns\":900000000000000000{rest}")
        })
    });
    let (summary, lines) = undo_all(&tree, RunMode::Execute);
    assert_eq!(summary.restored, 3, "{lines:?}");
    for name in ["b/one", "b/two"] {
        let meta = tree.join(name).metadata().unwrap();
        assert_eq!(meta.atime(), 900_000_000, "{name}: {lines:?}");
    }
}

/// The kept file, or its failure, is reported.
#[test]
fn what_is_wrong_with_the_kept_file_is_told_of_that() {
    type Spoil = fn(&Path);
    let ways: [(&str, Spoil); 3] = [
        ("Missing", |path| fs::remove_file(path).unwrap()),
        ("NotRegular", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("KeptFileChanged", |path| fs::write(path, "edited").unwrap()),
    ];
    for (reported, spoil) in ways {
        let tree = sample();
        pruned(&tree, &Action::Delete);
        spoil(&tree.join("a/keep"));
        let (summary, lines) = undo_as_foreseen(&tree);
        assert_eq!((summary.restored, summary.failed), (0, 3), "{lines:?}");
        assert!(
            lines.iter().all(|line| line.contains(reported)),
            "{reported}: {lines:?}"
        );
    }
    if bc_testkit::is_root() {
        bc_testkit::left_out("root may read everything");
        return;
    }
    let tree = sample();
    pruned(&tree, &Action::Delete);
    tree.mode("a/keep", 0);
    let (_, lines) = undo_as_foreseen(&tree);
    assert!(lines.iter().all(|line| line.contains("In {")), "{lines:?}");
}

/// The state that an earlier run had recorded of a file comes back after the one of a later run,
/// and a second undo finds it in place.
#[test]
fn runs_in_one_journal_are_undone_to_the_first() {
    let tree = sample();
    pruned(&tree, &Action::Delete);
    tree.write("b/one", content());
    tree.mtime("b/one", 1_234_567_890, 0);
    pruned(&tree, &Action::Delete);
    let (summary, lines) = undo_all(&tree, RunMode::Execute);
    assert_eq!((summary.restored, summary.failed), (4, 0), "{lines:?}");
    let time = tree.join("b/one").metadata().unwrap().mtime();
    assert_eq!(time, 1_000_000_001, "{lines:?}");
}

/// A second undo does not make what a later run took from where an earlier one had moved it.
#[test]
fn what_was_moved_and_removed_comes_back_once() {
    for index in 0..3 {
        let tree = sample();
        let before = names(&tree);
        pruned(&tree, &actions(&tree).remove(3));
        let then = actions(&tree)[index].clone();
        let scratch = tree.scratch("moved");
        let mut all = groups(tree.path());
        let moved = files(&scratch).into_iter();
        all[0]
            .files
            .extend(moved.map(|path| file_ref(&scratch, &path)));
        let path = tree.scratch("journal");
        let mut journal = Journal::create(&path, &then, &all, &Cancel::new()).unwrap();
        let mut options = options(then.clone());
        options.rules.keep = vec!["oldest".parse().unwrap()];
        options.on_metadata_diff = OnMetadataDiff::Ignore;
        let (summary, lines) = run_groups(all, &options, Some(&mut journal));
        drop(journal);
        assert_eq!(summary.changed, 3, "{lines:?}");
        let (first, lines) = undo_as_foreseen(&tree);
        assert_eq!(
            (first.restored, first.failed),
            (6, 0),
            "{then:?}: {lines:?}"
        );
        assert_eq!(names(&tree), before, "{then:?}");
        let (again, lines) = undo_as_foreseen(&tree);
        let counts = (again.restored, again.unneeded, again.failed);
        assert_eq!(counts, (0, 6, 0), "{then:?}: {lines:?}");
        assert_eq!(names(&tree), before, "{then:?}");
    }
}

/// The file that a link leads to comes back before that is parted.
#[test]
fn a_kept_file_that_went_later_is_foreseen() {
    let tree = TestTree::new();
    tree.write("a", "same").write("b", "same");
    pruned(&tree, &Action::Symlink);
    tree.write("c", "same");
    let mut options = options(actions(&tree).remove(3));
    options.rules.keep = vec!["last".parse().unwrap()];
    let (summary, lines) = run_journalled(&tree, &options);
    assert_eq!((summary.changed, summary.errors), (1, 0), "{lines:?}");
    assert!(!tree.exists("a"), "{lines:?}");
    let (undone, lines) = undo_as_foreseen(&tree);
    assert_eq!((undone.restored, undone.failed), (2, 0), "{lines:?}");
    assert_eq!(tree.read("b"), b"same");
}

/// The files of a tree in which `b/1` became a link to `a/1`, while its other name `c/1` stayed.
fn parted_from_its_other_name() -> TestTree {
    let tree = TestTree::new();
    tree.write("a/1", "same");
    link_one_of_two(&tree, "b/1", "c/1");
    tree
}

/// Makes a file of two names that equals `a/1`, and the first of them a link to that.
fn link_one_of_two(tree: &TestTree, name: &str, other: &str) {
    tree.write(name, "same").hard_link(name, other);
    for file in ["a/1", name] {
        tree.mtime(file, 1_000_000, 0);
    }
    let mut options = options(Action::Hardlink);
    options.rules.roots = Roots::Across;
    let mut groups = groups(tree.path());
    for file in &mut groups[0].files {
        file.root = u32::from(file.relative() == name.as_bytes());
    }
    let path = tree.scratch("journal");
    let mut journal = Journal::create(&path, &options.action, &groups, &Cancel::new()).unwrap();
    let (summary, lines) = run_groups(groups, &options, Some(&mut journal));
    assert_eq!(summary.changed, 1, "{lines:?}");
    assert_eq!(inode(tree.join(name)), inode(tree.join("a/1")));
}

/// The kept file's own name went, and what was written to it since has the link's name alone.
#[test]
fn the_last_name_of_a_file_that_was_edited_stays() {
    let tree = parted_from_its_other_name();
    tree.remove("a/1");
    fs::write(tree.join("b/1"), "edited").unwrap();
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.restored, summary.failed), (0, 1), "{lines:?}");
    assert!(lines[0].contains("KeptFileChanged"), "{lines:?}");
    assert_eq!(tree.read("b/1"), b"edited", "{lines:?}");
    assert!(temporaries(tree.path()).is_empty(), "{lines:?}");

    // With another name of it nothing is lost, nor is with the recorded content.
    for edited in [true, false] {
        let tree = parted_from_its_other_name();
        match edited {
            true => fs::write(tree.join("a/1"), "edited").unwrap(),
            false => drop(tree.remove("a/1")),
        }
        let (summary, lines) = undo_as_foreseen(&tree);
        assert_eq!((summary.restored, summary.failed), (1, 0), "{lines:?}");
        assert_eq!(inode(tree.join("b/1")), inode(tree.join("c/1")));
        assert_eq!(tree.exists("a/1"), edited);
    }
}

/// The other name goes while undo is at work.
#[test]
fn a_name_that_became_the_last_one_meanwhile_stays() {
    for exchanges in [true, false] {
        let tree = parted_from_its_other_name();
        fs::write(tree.join("a/1"), "edited").unwrap();
        let other = tree.join("a/1");
        let gone = move || fs::remove_file(&other).unwrap();
        let gone = faults::Fault::Run(Box::new(gone));
        let mut planned = vec![(Point::first("link"), gone)];
        if !exchanges {
            let refused = faults::Fault::Errno(rustix::io::Errno::INVAL);
            planned.push((Point::first("exchange"), refused));
        }
        faults::arm_all(planned);
        let (summary, lines) = undo_all(&tree, RunMode::Execute);
        assert!(faults::disarm().reached);
        let context = format!("exchanges {exchanges}: {lines:?}");
        assert_eq!((summary.restored, summary.failed), (0, 1), "{context}");
        assert_eq!(tree.read("b/1"), b"edited", "{context}");
        assert_eq!(tree.read("c/1"), b"same", "{context}");
        assert!(temporaries(tree.path()).is_empty(), "{context}");
    }
}

/// Each of two undos takes one of the last two names of a file that was edited, the one between any
/// two calls of the other.
#[test]
fn two_undos_leave_a_file_one_of_its_last_names() {
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let tree = parted_from_its_other_name();
        let first = tree.scratch("first");
        fs::rename(tree.scratch("journal"), &first).unwrap();
        link_one_of_two(&tree, "d/1", "e/1");
        fs::write(tree.join("a/1"), "edited").unwrap();
        tree.remove("a/1");
        let other = move || {
            let _ = undo(&first, RunMode::Execute, &Cancel::new(), &mut |_| {});
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(other)));
        let (_, lines) = undo_all(&tree, RunMode::Execute);
        saw(&mut sweep, &faults::disarm());
        let left = ["b/1", "d/1"].map(|name| tree.read(name));
        let context = format!("before {point}: {lines:?}");
        assert!(left.iter().any(|left| left == b"edited"), "{context}");
        assert!(temporaries(tree.path()).is_empty(), "{context}");
    }
}

/// What replaces the last name of a file is edited before any call of undo: the other name of the
/// step's file, or that file itself, which a killed run had set aside.
#[test]
fn a_content_outlives_an_edit_of_what_replaces_its_last_name() {
    let mut sweep = Sweep::new(FEW).ways(2);
    while let Some(point) = sweep.next() {
        let (tree, edited, content) = match sweep.way() {
            0 => {
                let tree = parted_from_its_other_name();
                tree.remove("a/1");
                let edited = tree.join("c/1");
                (tree, edited, b"same".to_vec())
            }
            _ => {
                let tree = quick_sample();
                super::crash::kill(&tree, "hardlink", &Point::first("unlink"));
                for name in ["a/keep", "a/keep2", "b/two", "c/two-too"] {
                    tree.remove(name);
                }
                let edited = temporaries(tree.path()).remove(0);
                (tree, edited, content())
            }
        };
        let name = edited.strip_prefix(tree.path()).unwrap();
        let (root, name) = (tree.path().to_owned(), name.to_str().unwrap().to_owned());
        let edit = move || drop(super::race::Race::Append.go(&root, &name));
        faults::arm(point.clone(), faults::Fault::Run(Box::new(edit)));
        let (_, lines) = undo_all(&tree, RunMode::Execute);
        saw(&mut sweep, &faults::disarm());
        let mut left = files(tree.path()).into_iter();
        let stands = left.any(|path| fs::read(path).unwrap() == content);
        assert!(stands, "{} before {point}: {lines:?}", sweep.way());
    }
}

/// What replaces the last name of a file, or a leftover, is on the disk before that goes.
#[test]
fn what_replaces_a_last_name_is_on_the_disk_first() {
    type Left = fn(&TestTree);
    let undone: [(Left, [u64; 2]); 2] = [
        (
            |tree| {
                tree.remove("a/1");
            },
            [0, 1],
        ),
        (
            |tree| {
                tree.write("b/.bc-dup.4194305.7.0.tmp", "same");
            },
            [1, 0],
        ),
    ];
    for (nth, (change, expected)) in undone.into_iter().enumerate() {
        let tree = parted_from_its_other_name();
        change(&tree);
        let fault = faults::Fault::Errno(rustix::io::Errno::IO);
        faults::arm(Point::first("fsync"), fault);
        let (summary, lines) = undo_all(&tree, RunMode::Execute);
        assert!(faults::disarm().reached, "{nth}: {lines:?}");
        let counts = [summary.restored, summary.failed];
        assert_eq!(
            (counts, summary.leftovers),
            (expected, 0),
            "{nth}: {lines:?}"
        );
        let (summary, lines) = undo_as_foreseen(&tree);
        assert_eq!(summary.failed, 0, "{nth}: {lines:?}");
        assert!(temporaries(tree.path()).is_empty(), "{nth}: {lines:?}");
    }
}

/// A process that has the file open goes on writing into it.
#[test]
fn the_last_name_of_a_file_that_is_open_for_writing_stays() {
    let tree = parted_from_its_other_name();
    if !super::open::leases(&tree, "c/1") {
        return;
    }
    tree.remove("a/1");
    let writer = fs::File::options().write(true).open(tree.join("b/1"));
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.restored, summary.failed), (0, 1), "{lines:?}");
    assert!(lines[0].contains("OpenForWriting"), "{lines:?}");
    assert_ne!(inode(tree.join("b/1")), inode(tree.join("c/1")));
    drop(writer);
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.restored, summary.failed), (1, 0), "{lines:?}");
}

/// The file itself is set aside, and the link in its place is the last name of a kept file that was
/// edited.
#[test]
fn what_a_killed_run_set_aside_takes_no_last_name() {
    let tree = sample();
    super::crash::kill(&tree, "hardlink", &Point::first("unlink"));
    let left = temporaries(tree.path());
    tree.remove("a/keep").remove("a/keep2");
    fs::write(tree.join("b/one"), "edited").unwrap();
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.restored, summary.failed), (0, 1), "{lines:?}");
    assert!(lines[0].contains("KeptFileChanged"), "{lines:?}");
    assert_eq!(tree.read("b/one"), b"edited", "{lines:?}");
    assert_eq!(temporaries(tree.path()), left, "{lines:?}");
    assert_eq!(fs::read(&left[0]).unwrap(), content(), "{lines:?}");
}

/// Undo was killed when the link had its temporary name: a process that has it open writes into it.
#[test]
fn a_leftover_that_is_open_for_writing_stays() {
    let tree = parted_from_its_other_name();
    if !super::open::leases(&tree, "c/1") {
        return;
    }
    tree.remove("a/1");
    let left = tree.join("b/.bc-dup.4194305.7.0.tmp");
    fs::rename(tree.join("b/1"), &left).unwrap();
    tree.hard_link("c/1", "b/1");
    let writer = fs::File::options().write(true).open(&left).unwrap();
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.leftovers, summary.failed), (0, 0), "{lines:?}");
    assert!(left.exists(), "{lines:?}");
    drop(writer);
    let (summary, lines) = undo_as_foreseen(&tree);
    assert_eq!((summary.leftovers, summary.failed), (1, 0), "{lines:?}");
    assert!(!left.exists(), "{lines:?}");
}

/// Two runs, with an undo between them.
#[test]
fn a_name_that_two_runs_of_a_journal_took_comes_back_once() {
    for index in 0..5 {
        let tree = sample();
        let action = actions(&tree)[index].clone();
        let before = names(&tree);
        pruned(&tree, &action);
        let (undone, lines) = undo_all(&tree, RunMode::Execute);
        assert_eq!(undone.restored, 3, "{lines:?}");
        pruned(&tree, &action);
        let (undone, lines) = undo_as_foreseen(&tree);
        let counts = (undone.restored, undone.unneeded, undone.failed);
        assert_eq!(counts, (3, 3, 0), "{action:?}: {lines:?}");
        assert_eq!(names(&tree).len(), before.len());
    }
}
