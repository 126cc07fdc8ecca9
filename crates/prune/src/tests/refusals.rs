//! Files that prune must leave alone, and report.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn different_metadata_is_refused_unless_ignored() {
    for action in [Action::Hardlink, Action::Symlink] {
        let tree = sample();
        tree.mode("b/one", 0o600);
        let noted = rustix::fs::setxattr(
            tree.join("b/two"),
            "user.note",
            b"mine",
            rustix::fs::XattrFlags::empty(),
        )
        .is_ok();
        let before = snapshot(tree.path());
        let (summary, lines) = run(&tree, &options(action.clone()));
        let refused = if noted { 3 } else { 1 };
        assert_eq!(summary.skipped["different metadata"], refused, "{lines:?}");
        assert_eq!(summary.errors, refused);
        assert_eq!(
            tree.join("b/one").metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(snapshot(tree.path()), before);
        let ignoring = PruneOptions {
            on_metadata_diff: OnMetadataDiff::Ignore,
            ..options(action)
        };
        let (summary, lines) = run(&tree, &ignoring);
        assert_eq!(summary.changed, refused, "{lines:?}");
    }
}

#[test]
fn reference_files_are_never_changed() {
    let tree = sample();
    for action in actions(&tree) {
        let tree = sample();
        let mut groups = groups(tree.path());
        for group in &mut groups {
            for file in &mut group.files {
                file.protected = file.path.ends_with(b"b/one") || file.path.ends_with(b"b/two");
            }
        }
        let inodes = ["b/one", "b/two", "c/two-too"].map(|name| inode(tree.join(name)));
        let (summary, lines) = run_groups(groups, &options(action.clone()), None);
        assert!(summary.is_clean(), "{lines:?}");
        // The kept file is b/one; two-too is another name of a protected file.
        assert_eq!(summary.changed, 2, "{action:?}: {lines:?}");
        let now = ["b/one", "b/two", "c/two-too"].map(|name| inode(tree.join(name)));
        assert_eq!(now, inodes, "{action:?}");
    }
}

#[test]
fn reference_that_changed_protects_nothing_but_stops_the_group() {
    let tree = sample();
    let mut groups = groups(tree.path());
    for file in &mut groups[0].files {
        file.protected = file.path.ends_with(b"b/one");
    }
    tree.write("b/one", "edited");
    let before = snapshot(tree.path());
    let (summary, lines) = run_groups(groups, &options(Action::Delete), None);
    assert_eq!(summary.changed, 0, "{lines:?}");
    assert_eq!(summary.errors, 1);
    assert_eq!(snapshot(tree.path()), before);
}

#[test]
fn across_roots_spares_the_keepers_own_root() {
    let tree = sample();
    let mut groups = groups(tree.path());
    for file in &mut groups[0].files {
        file.root = u32::from(!file.path.ends_with(b"b/one") && !file.path.ends_with(b"a/keep"));
    }
    let mut options = options(Action::Delete);
    options.rules.roots = Roots::Across;
    let (summary, lines) = run_groups(groups, &options, None);
    assert!(summary.is_clean());
    assert_eq!(summary.changed, 2, "{lines:?}");
    assert!(tree.exists("b/one") && tree.exists("a/keep") && !tree.exists("b/two"));
}

#[test]
fn symbolic_links_on_the_way_are_refused() {
    let tree = sample();
    let groups = groups(tree.path());
    // The directory is swapped for a link to one that looks the same.
    fs::rename(tree.join("b"), tree.scratch("elsewhere")).unwrap();
    std::os::unix::fs::symlink(tree.scratch("elsewhere"), tree.join("b")).unwrap();
    let before = snapshot(&tree.scratch("elsewhere"));
    let (summary, lines) = run_groups(groups, &options(Action::Delete), None);
    assert!(summary.errors >= 2, "{lines:?}");
    assert_eq!(snapshot(&tree.scratch("elsewhere")), before);
}

#[test]
fn one_file_under_two_paths_is_never_deleted() {
    // As a repeated argument or a bind mount would show it: the same directory
    // entry twice, with the same identity.
    let tree = TestTree::new();
    tree.write("only", "precious").mtime("only", 1_000_000, 0);
    let once = file_ref(tree.path(), &tree.join("only"));
    let mut twice = once.clone();
    twice.path = tree.path().join("./only").as_os_str().as_bytes().to_vec();
    let group = FileGroup {
        files: vec![once.clone(), twice.clone()],
    };
    for action in actions(&tree) {
        let (summary, lines) = run_groups(vec![group.clone()], &options(action), None);
        assert_eq!((summary.changed, summary.errors), (0, 0), "{lines:?}");
        assert_eq!(tree.read("only"), b"precious");
    }
    // And a report that claims they are two files, which they are not.
    twice.id.ino += 1;
    let group = FileGroup {
        files: vec![once, twice],
    };
    for action in actions(&tree) {
        let (summary, lines) = run_groups(vec![group.clone()], &options(action), None);
        assert_eq!(summary.changed, 0, "{lines:?}");
        assert_eq!(tree.read("only"), b"precious");
    }
}

#[test]
fn same_entry_is_acted_on_once() {
    let tree = sample();
    let mut groups = groups(tree.path());
    let mut twice = file_ref(tree.path(), &tree.join("b/one"));
    twice.path = tree.path().join("b/./one").as_os_str().as_bytes().to_vec();
    groups[0].files.push(twice);
    let (summary, lines) = run_groups(groups, &options(Action::Delete), None);
    assert_eq!(summary.changed, 3, "{lines:?}");
    assert_eq!(summary.skipped["same name twice"], 1);
    assert!(summary.is_clean());
}

#[test]
fn equal_stamps_with_other_bytes_are_caught() {
    // Whatever a digest or a report says, the bytes decide.
    let tree = TestTree::new();
    tree.write("a", "one content").write("b", "two content");
    tree.mtime("a", 1_000_000, 0).mtime("b", 1_000_000, 0);
    let group = FileGroup {
        files: ["a", "b"]
            .map(|name| file_ref(tree.path(), &tree.join(name)))
            .to_vec(),
    };
    for action in actions(&tree) {
        let (summary, lines) = run_groups(vec![group.clone()], &options(action), None);
        assert_eq!(summary.skipped["different content"], 1, "{lines:?}");
        assert_eq!(tree.read("b"), b"two content");
    }
}

#[test]
fn destination_that_exists_is_not_overwritten() {
    let tree = sample();
    let to = tree.scratch("moved");
    let taken = to.join(tree.join("b/one").strip_prefix("/").unwrap());
    fs::create_dir_all(taken.parent().unwrap()).unwrap();
    fs::write(&taken, "there before").unwrap();
    let action = Action::Move(to.as_os_str().as_bytes().to_vec());
    let (summary, lines) = run(&tree, &options(action));
    assert_eq!(summary.skipped["destination exists"], 1, "{lines:?}");
    assert_eq!(fs::read(&taken).unwrap(), b"there before");
    assert_eq!(tree.read("b/one"), content());
}

#[test]
fn cancelled_run_stops_between_steps() {
    let tree = sample();
    let cancel = Cancel::new();
    let mut steps = 0;
    let stop = cancel.clone();
    prune(
        groups(tree.path()),
        &options(Action::Delete),
        None,
        &cancel,
        &mut |_| {
            steps += 1;
            stop.cancel(2);
        },
    );
    assert_eq!(steps, 1);
    assert_eq!(snapshot(tree.path()).len(), 5);
}

#[test]
fn journal_that_cannot_be_written_stops_the_step() {
    let tree = sample();
    let mut journal = create(&tree.scratch("j"), Action::Delete, &tree).unwrap();
    let fault = faults::Fault::Errno(rustix::io::Errno::NOSPC);
    faults::arm(Point::first("journal"), fault);
    let (summary, lines) = run_groups(
        groups(tree.path()),
        &options(Action::Delete),
        Some(&mut journal),
    );
    faults::disarm();
    assert_eq!(summary.skipped["journal not writable"], 1, "{lines:?}");
    let path = tree.scratch("j");
    let said = format!("journal {}: write: No space left", path.display());
    assert!(lines[0].contains(&said), "{lines:?}");
    assert!(tree.exists("b/one"), "{lines:?}");
}

#[test]
fn other_file_system_is_skipped_with_its_reason() {
    let shm = Path::new("/dev/shm");
    let tree = sample();
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev).ok();
    if device(shm).is_none() || device(shm) == device(tree.path()) {
        bc_testkit::left_out("no second file system");
        return;
    }
    let other = TestTree::new_in(shm);
    other.write("far", content()).mtime("far", 1_000_000, 0);
    let mut groups = groups(tree.path());
    let mut far = file_ref(other.path(), &other.join("far"));
    far.root = 1;
    groups[0].files.push(far);
    let (summary, lines) = run_groups(groups.clone(), &options(Action::Hardlink), None);
    assert_eq!(summary.skipped["other file system"], 1, "{lines:?}");
    assert_eq!(other.read("far"), content());

    // A move across, with everything that belongs to the file.
    other.remove("far");
    let tree = sample();
    tree.mode("b/one", 0o751);
    let to = other.join("moved").as_os_str().as_bytes().to_vec();
    let (summary, lines) = run(&tree, &options(Action::Move(to)));
    assert!(summary.is_clean(), "{lines:?}");
    let moved = other
        .join("moved")
        .join(tree.join("b/one").strip_prefix("/").unwrap());
    assert_eq!(fs::read(&moved).unwrap(), content());
    let meta = moved.metadata().unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o751);
    assert_eq!(
        meta.modified().unwrap(),
        std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_001, 5)
    );
    assert!(!tree.exists("b/one"));
}
