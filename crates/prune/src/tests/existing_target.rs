//! Moves with an existing target: the copy that the move would make counts as made, everything else
//! is in the way.

use std::os::unix::fs::MetadataExt;

use bc_edit::names::prune as prune_names;
use bc_edit::names::prune::Mark;

use super::moves::{action, moved, run_journalled, undo_all};
use super::*;

/// Makes the leftovers of a run that was killed when the copy of `b/one` had its name: the copy has
/// the temporary name too, which records its original.
fn copy_of_a_killed_run(tree: &TestTree, to: &Path) -> PathBuf {
    let one = copy_by_hand(tree, to);
    let mark = mark(&tree.join("b/one"));
    let stage = format!(".bc-dup.4194305.7.0{mark}.part");
    fs::hard_link(&one, one.with_file_name(stage)).unwrap();
    one
}

/// Returns the mark by which a later run recognises this file.
fn mark(path: &Path) -> Mark {
    let id = file_ref(path.parent().unwrap(), path).id;
    Mark::of(&fs::File::open(path).unwrap().into(), id)
}

/// Puts the file at the destination of `b/one` that a move would have put there.
fn copy_by_hand(tree: &TestTree, to: &Path) -> PathBuf {
    let one = moved(to, tree, "b/one");
    fs::create_dir_all(one.parent().unwrap()).unwrap();
    fs::write(&one, content()).unwrap();
    same_times(tree, &one);
    one
}

fn same_times(tree: &TestTree, one: &Path) {
    let original = tree.join("b/one").metadata().unwrap();
    fs::set_permissions(one, original.permissions()).unwrap();
    let file = fs::File::options().append(true).open(one).unwrap();
    file.set_modified(original.modified().unwrap()).unwrap();
}

/// Gives the copy a temporary name that marks it as another file's.
fn rename_stages(one: &Path, mark: Mark) {
    for entry in fs::read_dir(one.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if prune_names::is_ours(path.file_name().unwrap().as_bytes()) {
            let name = format!(".bc-dup.4194305.7.0{mark}.part");
            fs::rename(&path, path.with_file_name(name)).unwrap();
        }
    }
}

/// Change to a copy at the destination, and the reason that is reported then.
type Flaw = (
    &'static str,
    fn(&TestTree, &Path) -> Option<Box<dyn std::any::Any>>,
);

/// A directory to move to, on the other file system or beside the tree.
fn destination(tree: &TestTree, other: &tempfile::TempDir, across: bool) -> PathBuf {
    match across {
        true => other.path().to_owned(),
        false => tree.scratch("moved"),
    }
}

/// A file that lacks anything that the move would give it is the user's; a real and a dry run
/// report the difference.
#[test]
fn what_is_less_than_the_copy_is_in_the_way() {
    fn instead(one: &Path, make: impl Fn(&Path) -> bool) -> Option<Box<dyn std::any::Any>> {
        fs::remove_file(one).unwrap();
        make(one).then(|| Box::new(()) as Box<dyn std::any::Any>)
    }
    let flaws: &[Flaw] = &[
        ("its content differs", |tree, one| {
            let mut other = content();
            *other.last_mut().unwrap() ^= 1;
            fs::write(one, other).unwrap();
            same_times(tree, one);
            Some(Box::new(()))
        }),
        ("its content differs", |tree, one| {
            fs::write(one, &content()[1..]).unwrap();
            same_times(tree, one);
            Some(Box::new(()))
        }),
        ("its modification time differs", |_, one| {
            let file = fs::File::options().append(true).open(one).unwrap();
            let time = one.metadata().unwrap().modified().unwrap();
            file.set_modified(time + std::time::Duration::from_nanos(1))
                .unwrap();
            Some(Box::new(()))
        }),
        ("its mode differs", |_, one| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(one, mode).unwrap();
            Some(Box::new(()))
        }),
        ("its owner differs", |_, one| {
            std::os::unix::fs::chown(one, Some(4711), None).ok()?;
            Some(Box::new(()))
        }),
        ("an extended attribute of it differs", |_, one| {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(one, "user.note", b"mine", flags).ok()?;
            Some(Box::new(()))
        }),
        ("it is not a regular file", |tree, one| {
            instead(one, |one| {
                std::os::unix::fs::symlink(tree.join("b/one"), one).is_ok()
            })
        }),
        ("it is not a regular file", |_, one| {
            instead(one, |one| fs::create_dir(one).is_ok())
        }),
        ("it is the file itself", |tree, one| {
            instead(one, |one| fs::hard_link(tree.join("b/one"), one).is_ok())
        }),
        ("it is the kept file", |tree, one| {
            instead(one, |one| fs::hard_link(tree.join("a/keep"), one).is_ok())
        }),
        (
            "it is equal, but not known to be a copy of this file",
            |_, one| {
                for entry in fs::read_dir(one.parent().unwrap()).unwrap() {
                    let path = entry.unwrap().path();
                    if prune_names::is_ours(path.file_name().unwrap().as_bytes()) {
                        fs::remove_file(path).unwrap();
                    }
                }
                Some(Box::new(()))
            },
        ),
        (
            "it is equal, but not known to be a copy of this file",
            |tree, one| {
                // Another name of the kind, of another file.
                let mark = mark(&tree.join("b/two"));
                rename_stages(one, mark);
                Some(Box::new(()))
            },
        ),
        (
            "it is equal, but not known to be a copy of this file",
            |tree, one| {
                // The same numbers on another disk that is mounted there in turn, and the mark as
                // the first versions recorded it.
                let mut mark = mark(&tree.join("b/one"));
                mark.born_ns = mark.born_ns.map(|born| born - 1);
                rename_stages(one, mark);
                Some(Box::new(()))
            },
        ),
        (
            "it is equal, but not known to be a copy of this file",
            |tree, one| {
                let mut mark = mark(&tree.join("b/one"));
                mark.born_ns = None;
                rename_stages(one, mark);
                Some(Box::new(()))
            },
        ),
        ("it is open for writing", |_, one| {
            let file = fs::File::options().append(true).open(one).unwrap();
            Some(Box::new(file))
        }),
    ];
    for across in [true, false] {
        for (what, spoil) in flaws {
            let Some((tree, other)) = two_file_systems() else {
                return;
            };
            let to = destination(&tree, &other, across);
            let one = copy_of_a_killed_run(&tree, &to);
            // A link from the other file system, or a change that only root may make.
            let Some(_held) = spoil(&tree, &one) else {
                continue;
            };
            let before = fs::read(&one).ok();
            for mode in [RunMode::DryRun, RunMode::Execute] {
                let options = PruneOptions {
                    mode,
                    ..options(action(&to))
                };
                let (summary, lines) = run(&tree, &options);
                assert_eq!(
                    summary.skipped["destination exists"], 1,
                    "{what}: {lines:?}"
                );
                let said = format!("the destination exists; {what}");
                assert!(
                    lines.iter().any(|line| line.ends_with(&said)),
                    "{what}: {lines:?}"
                );
                assert_eq!(tree.read("b/one"), content(), "{what}");
            }
            assert_eq!(fs::read(&one).ok(), before, "{what}");
        }
    }
}

/// A copy that a killed run made counts without its journal; undo leaves it.
#[test]
fn a_whole_copy_counts_as_made_and_stays() {
    for across in [true, false] {
        for kept_file_gone in [true, false] {
            let Some((tree, other)) = two_file_systems() else {
                return;
            };
            let to = destination(&tree, &other, across);
            let one = copy_of_a_killed_run(&tree, &to);
            let before = one.metadata().unwrap();
            let (would, mut dry) = run(
                &tree,
                &PruneOptions {
                    mode: RunMode::DryRun,
                    ..options(action(&to))
                },
            );
            let (summary, lines) = run_journalled(&tree, &options(action(&to)));
            dry.sort();
            let mut sorted = lines.clone();
            sorted.sort();
            assert_eq!(dry, sorted);
            assert_eq!((would.changed, summary.changed), (3, 3), "{lines:?}");
            assert!(summary.is_clean() && !tree.exists("b/one"), "{lines:?}");
            // The content comes from where it is still.
            match kept_file_gone {
                true => tree.remove("a/keep").remove("a/keep2"),
                false => tree.write("b/new", "something"),
            };
            if !kept_file_gone {
                fs::remove_file(&one).unwrap();
            }
            let (undone, lines) = undo_all(&tree);
            assert_eq!((undone.restored, undone.failed), (3, 0), "{lines:?}");
            assert_eq!(tree.read("b/one"), content());
            let back = tree.join("b/one").metadata().unwrap();
            assert_eq!(
                (back.mode(), back.uid(), back.mtime(), back.mtime_nsec()),
                (
                    before.mode(),
                    before.uid(),
                    before.mtime(),
                    before.mtime_nsec()
                )
            );
            if kept_file_gone {
                let after = one.metadata().unwrap();
                assert_eq!((after.ino(), after.nlink()), (before.ino(), 1));
                assert_eq!(files(&to), [one]);
            }
            // Again, there is nothing to do.
            assert_eq!(undo_all(&tree).0.restored, 0);
        }
    }
}

/// Two names that lose their difference on the way below the destination: the second does not take
/// the first for its copy.
#[test]
fn two_files_with_one_destination_do_not_merge() {
    for across in [true, false] {
        let Some((tree, other)) = two_file_systems() else {
            return;
        };
        let to = destination(&tree, &other, across);
        tree.write("one", content());
        same_times(&tree, &tree.join("one"));
        let mut second = file_ref(&tree.join("b/.."), &tree.join("b/../one"));
        second.path = tree.join("b/../one").into_os_string().into_encoded_bytes();
        let group = FileGroup {
            files: vec![
                file_ref(tree.path(), &tree.join("a/keep")),
                file_ref(tree.path(), &tree.join("b/one")),
                second,
            ],
        };
        for mode in [RunMode::DryRun, RunMode::Execute] {
            let options = PruneOptions {
                mode,
                ..options(action(&to))
            };
            let (summary, lines) = run_groups(vec![group.clone()], &options, None);
            assert_eq!(summary.changed, 1, "{lines:?}");
            assert_eq!(summary.skipped["destination exists"], 1, "{lines:?}");
        }
    }
}

/// Between any two system calls another process changes the copy that was found: its data stays,
/// the original's content does, and only that process removes the copy.
#[test]
fn what_is_done_to_the_copy_meanwhile_is_not_lost() {
    let append = |one: &Path| {
        // It does not wait for a lease: it is this thread that would give it up.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut options = fs::OpenOptions::new();
        let options = std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        if let Ok(mut file) = options.append(true).open(one) {
            std::io::Write::write_all(&mut file, b"more").unwrap();
        }
    };
    let replace = |one: &Path| {
        let new = one.with_extension("new");
        fs::write(&new, "a new version").unwrap();
        fs::rename(&new, one).unwrap();
    };
    let remove = |one: &Path| fs::remove_file(one).unwrap();
    let races: [fn(&Path); 3] = [append, replace, remove];
    let mut sweep = Sweep::new(FEW).ways(races.len());
    while let Some(point) = sweep.next() {
        let race = races[sweep.way()];
        let tree = quick_sample();
        let to = tree.scratch("moved");
        let one = copy_of_a_killed_run(&tree, &to);
        let group = FileGroup {
            files: ["a/keep", "b/one"]
                .map(|name| file_ref(tree.path(), &tree.join(name)))
                .into(),
        };
        let written = std::rc::Rc::new(std::cell::RefCell::new(None));
        let (there, note) = (one.clone(), written.clone());
        faults::arm(
            point.clone(),
            faults::Fault::Run(Box::new(move || {
                race(&there);
                *note.borrow_mut() = fs::read(&there).ok();
            })),
        );
        let (_, lines) = run_groups(vec![group], &options(action(&to)), None);
        let reached = saw(&mut sweep, &faults::disarm());
        let context = format!("race {} before {point}: {lines:?}", sweep.way());
        assert_eq!(tree.read("a/keep"), content(), "{context}");
        assert!(temporaries(tree.path()).is_empty(), "{context}");
        if !reached {
            assert!(!tree.exists("b/one"), "{context}");
            continue;
        }
        if let Some(written) = written.take() {
            assert_eq!(fs::read(&one).unwrap(), written, "{context}");
        }
        if tree.exists("b/one") {
            assert_eq!(tree.read("b/one"), content(), "{context}");
        }
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}

/// A journal's word for a copy counts for the file that was born when it says,
/// and not for one that has its numbers on another disk.
#[test]
fn a_journal_without_the_time_of_birth_proves_nothing() {
    for change in ["none", "left out", "other"] {
        let Some((tree, to, left)) = super::lost::killed() else {
            return;
        };
        fs::rename(left, tree.join("b/one")).unwrap();
        for stage in temporaries(to.path()) {
            fs::remove_file(stage).unwrap();
        }
        let path = tree.scratch("journal");
        let text = fs::read_to_string(&path).unwrap();
        let known = text.contains("\"born_ns\":");
        let new = match change {
            "none" => text,
            "left out" => text.replace("\"born_ns\":", "\"was\":"),
            _ => text.replace("\"born_ns\":", "\"born_ns\":1"),
        };
        fs::write(&path, new).unwrap();
        let mut options = options(action(to.path()));
        options.earlier = vec![path];
        let (summary, lines) = run(&tree, &options);
        let taken = known && change == "none";
        assert_eq!(summary.changed, u64::from(taken), "{change}: {lines:?}");
        assert_eq!(tree.exists("b/one"), !taken, "{change}: {lines:?}");
        if !taken {
            assert_eq!(summary.skipped["destination exists"], 1, "{lines:?}");
        }
    }
}
