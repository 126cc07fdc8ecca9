//! Losses besides contents when a file moves to another file system and back: the only name, an
//! edit, an owner, a mode, a time, an attribute. Another process is at work between the calls, or a
//! run was killed and its files changed since.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::rc::Rc;

use bc_edit::names::prune as prune_names;
use bc_fs::meta;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::moves::{action, moved, run_journalled, undo_all};
use super::*;

/// Two equal files, of which the second is moved, and where to.
pub(super) fn pair() -> Option<(TestTree, tempfile::TempDir)> {
    let (tree, to) = two_file_systems()?;
    tree.remove("b/two").remove("c/two-too").remove("a/keep2");
    let _ = rustix::fs::setxattr(tree.join("b/one"), "user.note", b"1", XattrFlags::empty());
    Some((tree, to))
}

/// Returns such a pair after the file was moved.
fn moved_pair() -> Option<(TestTree, tempfile::TempDir, PathBuf)> {
    let (tree, to) = pair()?;
    let (summary, lines) = run_journalled(&tree, &options(action(to.path())));
    assert_eq!((summary.changed, summary.errors), (1, 0), "{lines:?}");
    let one = moved(to.path(), &tree, "b/one");
    Some((tree, to, one))
}

/// All files of the two places.
pub(super) fn all(tree: &TestTree, to: &tempfile::TempDir) -> Vec<PathBuf> {
    [files(tree.path()), files(to.path())].concat()
}

/// Returns true if one of these files has this content, mode or attribute.
pub(super) fn somewhere(paths: &[PathBuf], has: impl Fn(&Path) -> bool) -> bool {
    paths.iter().any(|path| has(path))
}

/// Changes a byte and puts the time of the last change back, unless the file is
/// guarded by a lease.
pub(super) fn edit(path: &Path) -> bool {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = fs::OpenOptions::new();
    let Ok(file) = options.write(true).custom_flags(flags).open(path) else {
        return false;
    };
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"edited", 100).unwrap();
    file.set_modified(time).unwrap();
    true
}

pub(super) fn is_edited(path: &Path) -> bool {
    fs::read(path).is_ok_and(|content| content.get(100..106) == Some(b"edited"))
}

/// The moved copy is taken away, moved away or edited before any call of undo: files that undo had
/// restored by then stay, and so does the edit.
#[test]
fn undo_takes_nothing_back_that_is_not_proven_elsewhere() {
    type Race = (&'static str, fn(&Path) -> bool);
    let races: [Race; 4] = [
        ("remove", |one| fs::remove_file(one).is_ok()),
        ("rename", |one| {
            fs::rename(one, one.with_extension("mine")).is_ok()
        }),
        ("edit", edit),
        ("replace", |one| {
            let new = one.with_extension("new");
            fs::write(&new, "new").unwrap();
            fs::rename(&new, one).is_ok()
        }),
    ];
    let mut sweep = Sweep::new(FEW).ways(races.len());
    while let Some(point) = sweep.next() {
        let (what, race) = races[sweep.way()];
        let Some((tree, to, one)) = moved_pair() else {
            return;
        };
        // The kept file has another content by now.
        tree.write("a/keep", "other");
        let stood = Rc::new(std::cell::Cell::new((false, false)));
        let (back, there, note) = (tree.join("b/one"), one.clone(), Rc::clone(&stood));
        let race = move || {
            let restored = back.exists();
            note.set((restored, there.exists() && race(&there)));
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(race)));
        let (summary, lines) = undo_all(&tree);
        let reached = saw(&mut sweep, &faults::disarm());
        let context = format!("{what} before {point}: {lines:?}");
        let (restored, raced) = stood.get();
        let paths = all(&tree, &to);
        // A restored file is taken back for the moved file alone.
        if restored && fs::read(&one).ok() != Some(content()) {
            assert_eq!(tree.read("b/one"), content(), "{context}");
            assert_eq!(summary.failed, 0, "{context}");
        }
        match what {
            "edit" if raced => assert!(somewhere(&paths, is_edited), "{context}"),
            "rename" if raced => {
                let mine = one.with_extension("mine");
                assert_eq!(fs::read(mine).unwrap(), content(), "{context}");
            }
            "replace" if raced => {
                let new = somewhere(&paths, |path| fs::read(path).unwrap() == b"new");
                assert!(new, "{context}");
            }
            _ => {}
        }
        assert!(temporaries(tree.path()).is_empty(), "{context}");
        assert!(reached || tree.exists("b/one"), "{context}");
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}

/// Two undos of one move, the one between any two calls of the other.
#[test]
fn undo_beside_undo_of_a_copy_of_the_journal_loses_nothing() {
    let mut sweep = Sweep::new(FEW);
    while let Some(point) = sweep.next() {
        let Some((tree, to, _)) = moved_pair() else {
            return;
        };
        tree.write("a/keep", "other");
        let second = tree.scratch("second");
        fs::copy(tree.scratch("journal"), &second).unwrap();
        let other = move || {
            let _ = undo(&second, RunMode::Execute, &Cancel::new(), &mut |_| {});
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(other)));
        let (_, lines) = undo_all(&tree);
        saw(&mut sweep, &faults::disarm());
        let context = format!("before {point}: {lines:?}");
        let (_, again) = undo_all(&tree);
        let stands = somewhere(&all(&tree, &to), |path| {
            fs::read(path).unwrap() == content()
        });
        assert!(stands, "{context}, then {again:?}");
    }
}

/// RunMode and attributes that the file at hand is given through a descriptor, which
/// its temporary name does not keep off, before any call but the last.
fn is_carried(make: impl Fn() -> Option<(TestTree, tempfile::TempDir, PathBuf)>, undoes: bool) {
    let mut sweep = Sweep::new(FEW).ways(2);
    while let Some(point) = sweep.next() {
        let Some((tree, to, path)) = make() else {
            return;
        };
        let file = OwnedFd::from(fs::File::open(&path).unwrap());
        let change = sweep.way() == 0;
        let race = move || match change {
            true => rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o604)).unwrap(),
            false => {
                let _ = rustix::fs::fsetxattr(&file, "user.mine", b"2", XattrFlags::empty());
            }
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(race)));
        let lines = match undoes {
            true => undo_all(&tree).1,
            false => run(&tree, &options(action(to.path()))).1,
        };
        let seen = faults::disarm();
        // Right before the name goes the last look is at the other file, and after that no look is
        // possible.
        if !saw(&mut sweep, &seen) || seen.at + 1 >= seen.first("unlink") {
            continue;
        }
        let context = format!("before {point}: {lines:?}");
        let carried = somewhere(&all(&tree, &to), |path| match change {
            true => path.metadata().unwrap().mode() & 0o777 == 0o604,
            false => has_attribute(path, "user.mine"),
        });
        let no_attributes = !change && !has_attribute(&path, "user.note") && !carried;
        assert!(
            carried || no_attributes && !supports_attributes(&tree),
            "{context}"
        );
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}

fn has_attribute(path: &Path, name: &str) -> bool {
    rustix::fs::getxattr(path, name, &mut [0; 8][..]).is_ok()
}

fn supports_attributes(tree: &TestTree) -> bool {
    let probe = tree.join("a/keep");
    rustix::fs::setxattr(probe, "user.note", b"1", XattrFlags::empty()).is_ok()
}

#[test]
fn what_the_original_is_given_while_it_moves_is_not_lost() {
    let make = || {
        let (tree, to) = pair()?;
        let path = tree.join("b/one");
        Some((tree, to, path))
    };
    is_carried(make, false);
}

#[test]
fn what_the_moved_file_is_given_while_it_comes_back_is_not_lost() {
    is_carried(moved_pair, true);
}

/// Metadata that the moved file was given since comes back with it, and metadata that its file
/// system did not take is restored from before.
#[test]
fn undo_carries_what_the_file_has_now() {
    let Some((tree, _to, one)) = moved_pair() else {
        return;
    };
    let attributes = has_attribute(&one, "user.note");
    if attributes {
        rustix::fs::setxattr(&one, "user.mine", b"2", XattrFlags::empty()).unwrap();
        rustix::fs::removexattr(&one, "user.note").unwrap();
    }
    fs::set_permissions(&one, PermissionsExt::from_mode(0o604)).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_234_567_890);
    let file = fs::File::options().append(true).open(&one).unwrap();
    file.set_modified(time).unwrap();
    if bc_testkit::is_root() {
        std::os::unix::fs::chown(&one, Some(bc_testkit::NOBODY), None).unwrap();
    }
    drop(file);
    let before = one.metadata().unwrap();
    let (summary, lines) = undo_all(&tree);
    assert_eq!(
        (summary.restored, summary.incomplete, summary.failed),
        (1, 0, 0),
        "{lines:?}"
    );
    let back = tree.join("b/one");
    let after = back.metadata().unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid(), after.mtime()),
        (before.mode(), before.uid(), before.gid(), before.mtime())
    );
    assert_eq!(has_attribute(&back, "user.mine"), attributes);
    assert!(!has_attribute(&back, "user.note") && !one.exists());
}

#[test]
fn what_the_move_lost_comes_back_and_what_cannot_come_back_stays() {
    for lost_when in ["moved", "undone"] {
        let Some((tree, to)) = pair() else { return };
        let back = tree.join("b/one");
        if !has_attribute(&back, "user.note") {
            return bc_testkit::left_out("no user attributes in /dev/shm");
        }
        let mut options = options(action(to.path()));
        options.on_metadata_diff = OnMetadataDiff::Ignore;
        let fault = |when: &str| {
            if when == lost_when {
                let refused = faults::Fault::Errno(Errno::OPNOTSUPP);
                faults::arm(Point::first("setxattr"), refused);
            }
        };
        fault("moved");
        run_journalled(&tree, &options);
        assert!(faults::disarm().reached);
        let one = moved(to.path(), &tree, "b/one");
        assert_eq!(has_attribute(&one, "user.note"), lost_when == "undone");
        fault("undone");
        let (summary, lines) = undo_all(&tree);
        assert!(faults::disarm().reached);
        assert_eq!(summary.restored, 1, "{lines:?}");
        assert_eq!(tree.read("b/one"), content());
        assert_eq!(has_attribute(&back, "user.note"), lost_when == "moved");
        // A file that has it still is not removed, now or later.
        for _ in 0..2 {
            assert_eq!(one.exists(), lost_when == "undone", "{lines:?}");
            let (again, lines) = undo_all(&tree);
            assert_eq!(again.incomplete, u64::from(one.exists()), "{lines:?}");
        }
    }
}

/// Root moves another user's program that has capabilities of its own.
#[test]
fn capabilities_come_back_with_the_file_that_has_them() {
    if !bc_testkit::is_root() {
        return bc_testkit::left_out("capabilities: not root");
    }
    let Some((tree, to)) = pair() else { return };
    let name = "security.capability";
    // Version 2, effective: cap_net_raw.
    let mut value = [0; 20];
    value[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
    value[4..8].copy_from_slice(&(1_u32 << 13).to_le_bytes());
    for path in ["a/keep", "b/one"] {
        std::os::unix::fs::chown(tree.join(path), Some(bc_testkit::NOBODY), None).unwrap();
    }
    let back = tree.join("b/one");
    if rustix::fs::setxattr(&back, name, &value, XattrFlags::empty()).is_err() {
        return bc_testkit::left_out("no capabilities in /dev/shm");
    }
    let has = |path: &Path| {
        let mut found = [0; 64];
        let length = rustix::fs::getxattr(path, name, &mut found[..]).unwrap_or(0);
        found[..length] == value
    };
    run_journalled(&tree, &options(action(to.path())));
    assert!(!back.exists() && has(&moved(to.path(), &tree, "b/one")));
    let (summary, lines) = undo_all(&tree);
    assert_eq!((summary.restored, summary.incomplete), (1, 0), "{lines:?}");
    assert!(has(&back));
}

/// Kills a run right before the original, which it had set aside, went.
pub(super) fn killed() -> Option<(TestTree, tempfile::TempDir, PathBuf)> {
    let (tree, to) = pair()?;
    let name = format!("move:{}", to.path().display());
    super::crash::kill(&tree, &name, &Point::first("unlink"));
    let left = temporaries(tree.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(prune_names::is_original(
        left[0].file_name().unwrap().as_bytes()
    ));
    assert!(!tree.exists("b/one"));
    Some((tree, to, left.into_iter().next().unwrap()))
}

type Change = (&'static str, fn(&TestTree, &Path));

/// Changes made to the copy, and to the kept file, since.
const CHANGES: [Change; 5] = [
    ("removed", |_, one| fs::remove_file(one).unwrap()),
    ("edited", |_, one| assert!(edit(one))),
    ("other mode", |_, one| {
        fs::set_permissions(one, PermissionsExt::from_mode(0o604)).unwrap();
    }),
    ("kept file edited", |tree, one| {
        tree.write("a/keep", "other");
        fs::remove_file(one).unwrap();
    }),
    ("all removed", |tree, one| {
        tree.remove("a/keep");
        fs::remove_dir_all(one.parent().unwrap()).unwrap();
    }),
];

#[test]
fn the_original_of_a_killed_move_comes_back_by_undo() {
    for (what, change) in CHANGES {
        let Some((tree, to, left)) = killed() else {
            return;
        };
        let one = moved(to.path(), &tree, "b/one");
        change(&tree, &one);
        let before = left.metadata().unwrap();
        let there = one.metadata().ok().map(|meta| meta.mode());
        let (dry, lines) = undo_dry(&tree);
        assert_eq!((dry.restored, dry.failed), (1, 0), "{what}: {lines:?}");
        assert!(left.exists());
        let (summary, lines) = undo_all(&tree);
        let context = format!("{what}: {lines:?}");
        assert_eq!((summary.restored, summary.failed), (1, 0), "{context}");
        let after = tree.join("b/one").metadata().unwrap();
        assert_eq!(
            (after.ino(), after.mode(), after.mtime(), after.uid()),
            (before.ino(), before.mode(), before.mtime(), before.uid()),
            "{context}"
        );
        // Metadata that the copy alone has is not removed, and reported.
        assert_eq!(
            one.metadata().ok().map(|meta| meta.mode()),
            there,
            "{context}"
        );
        assert_eq!(summary.incomplete, u64::from(there.is_some()), "{context}");
        assert!(temporaries(tree.path()).is_empty(), "{context}");
    }
}

fn undo_dry(tree: &TestTree) -> (UndoSummary, Vec<String>) {
    let mut lines = Vec::new();
    let journal = tree.scratch("journal");
    let summary = undo(&journal, RunMode::DryRun, &Cancel::new(), &mut |event| {
        lines.push(format!("{event:?}"));
    });
    (summary.unwrap(), lines)
}

#[test]
fn the_original_of_a_killed_move_is_no_rubbish() {
    for index in 0..4 {
        for (what, change) in CHANGES {
            let Some((tree, to, left)) = killed() else {
                return;
            };
            change(&tree, &moved(to.path(), &tree, "b/one"));
            let other = tree.scratch("elsewhere");
            let to = match index {
                3 => action(to.path()),
                _ => actions(&tree)[index].clone(),
            };
            for action in [to, action(&other)] {
                let grouped = !groups(tree.path()).is_empty();
                let (summary, lines) = run(&tree, &options(action));
                let context = format!("{what}: {lines:?}");
                assert_eq!(fs::read(&left).unwrap(), content(), "{context}");
                assert_eq!(summary.leftovers, 0, "{context}");
                if grouped {
                    assert_eq!(summary.skipped["original of a killed move"], 1, "{context}");
                    assert!(!summary.is_clean(), "{context}");
                }
            }
        }
    }
}

/// The run also visits the directory of a killed move's copy, and its dry run says so.
#[test]
fn what_lies_beside_the_copy_is_foreseen() {
    let Some((tree, to, left)) = killed() else {
        return;
    };
    let one = moved(to.path(), &tree, "b/one");
    // No process has that number.
    let part = one.with_file_name(".bc-dup.4194305.7.0.part");
    fs::write(&part, &content()[..99]).unwrap();
    let given = options(action(to.path()));
    let dry = PruneOptions {
        mode: RunMode::DryRun,
        ..given.clone()
    };
    let (foreseen, reported) = run(&tree, &dry);
    assert!(part.exists() && left.exists());
    let (done, lines) = run(&tree, &given);
    assert_eq!(foreseen.leftovers, done.leftovers, "{reported:?} {lines:?}");
    if meta::born_ns(fs::File::open(&one).unwrap()).is_some() {
        assert!(!part.exists() && !left.exists(), "{lines:?}");
    }
}

/// A name authorises nothing: what has the name of a copy in the making goes only if all that it
/// holds is somewhere else, and is reported otherwise.
#[test]
fn what_is_called_like_a_stage_stays_with_what_is_nowhere_else() {
    let whole = content();
    let mut other = whole[..99].to_vec();
    other[98] ^= 1;
    let longer = [&whole[..], b"more"].concat();
    let contents: [(&[u8], bool); 5] = [
        (b"", true),
        (&whole[..99], true),
        (&whole, true),
        (&other, false),
        (&longer, false),
    ];
    for (held, goes) in contents {
        for index in 0..4 {
            for undone in [false, true] {
                let tree = sample();
                let action = actions(&tree)[index].clone();
                if undone {
                    let (_, lines) = super::moves::run_journalled(&tree, &options(action.clone()));
                    assert_eq!(lines.len(), 3, "{lines:?}");
                }
                // No process has that number.
                let part = tree.join("b/.bc-dup.4194305.7.0.part");
                fs::write(&part, held).unwrap();
                let (leftovers, failed, lines) = match undone {
                    true => {
                        let (dry, reported) = undo_dry(&tree);
                        let (done, lines) = undo_all(&tree);
                        assert_eq!(dry.leftovers, done.leftovers, "{reported:?} {lines:?}");
                        assert_eq!(done.restored, 3, "{lines:?}");
                        (done.leftovers, done.failed, lines)
                    }
                    false => {
                        let (done, lines) = run(&tree, &options(action.clone()));
                        assert_eq!(done.changed, 3, "{lines:?}");
                        (done.leftovers, done.errors, lines)
                    }
                };
                let context = format!("{action:?}, undone {undone}, goes {goes}: {lines:?}");
                assert_eq!(fs::read(&part).ok().is_none(), goes, "{context}");
                assert_eq!((leftovers, failed), (u64::from(goes), 0), "{context}");
                let named = |line: &&String| {
                    !goes && (line.contains(".part") || line.contains("UnknownStage"))
                };
                let reported = lines.iter().filter(named).count();
                assert_eq!(reported, usize::from(!goes), "{context}");
                assert!(goes || fs::read(&part).unwrap() == held, "{context}");
            }
        }
    }
}

/// An original that was edited under its temporary name is neither put back nor removed; it is
/// reported.
#[test]
fn an_original_that_was_edited_since_is_named() {
    let Some((tree, _to, left)) = killed() else {
        return;
    };
    assert!(edit(&left));
    let (summary, lines) = undo_all(&tree);
    assert_eq!((summary.restored, summary.incomplete), (1, 1), "{lines:?}");
    let name = left.file_name().unwrap().to_str().unwrap();
    assert!(lines[0].contains(name), "{lines:?}");
    assert!(is_edited(&left));
    assert_eq!(tree.read("b/one"), content());
}
