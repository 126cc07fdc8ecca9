//! Names of one file whose move to another file system was killed between them.

use std::cell::Cell;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::rc::Rc;

use super::moves::{action, moved, run_journalled, undo_all};
use super::*;

/// Only the file with two names, beside a kept one.
fn linked() -> Option<(TestTree, tempfile::TempDir)> {
    let (tree, to) = two_file_systems()?;
    tree.remove("b/one").remove("a/keep2");
    Some((tree, to))
}

/// A repeated command makes them one file again, with the journal at hand and, where a temporary
/// name identifies the file, without it.
#[test]
fn names_that_a_killed_move_parted_arrive_as_one_file() {
    {
        let Some((probe, to)) = linked() else { return };
        faults::watch();
        run_journalled(&probe, &options(action(to.path())));
        let calls = faults::disarm().calls;
        let unlinks = calls.iter().filter(|call| **call == "unlink");
        assert_eq!(unlinks.count(), 4, "{calls:?}");
    }
    // Before the first original goes, before its copy's temporary name does, and after both.
    for point in [1, 2, 3].map(|nth| Point::new("unlink", nth)) {
        for journal in [true, false] {
            let Some((tree, to)) = linked() else { return };
            let name = format!("move:{}", to.path().display());
            super::crash::kill(&tree, &name, &point);
            let mut options = options(action(to.path()));
            if journal {
                options.earlier = vec![tree.scratch("journal")];
            }
            let (summary, lines) = run(&tree, &options);
            let context = format!("killed at {point}, journal {journal}: {lines:?}");
            assert!(summary.is_clean(), "{context}");
            let names = ["b/two", "c/two-too"].map(|name| moved(to.path(), &tree, name));
            assert!(
                !tree.exists("b/two") && !tree.exists("c/two-too"),
                "{context}"
            );
            if journal || point.nth == 1 {
                assert_eq!(inode(&names[0]), inode(&names[1]), "{context}");
            }
        }
    }
}

/// One name cannot go where it should: that the other one leaves it is said, and undo makes them
/// names of one file again.
#[test]
fn a_name_that_stays_where_another_goes_is_told() {
    for stays in ["b", "c"] {
        let Some((tree, to)) = linked() else { return };
        let blocked = moved(to.path(), &tree, stays);
        fs::create_dir_all(blocked.parent().unwrap()).unwrap();
        fs::write(&blocked, "in the way").unwrap();
        let (summary, lines) = run_journalled(&tree, &options(action(to.path())));
        let context = format!("{stays} stays: {lines:?}");
        assert_eq!((summary.changed, summary.errors), (1, 1), "{context}");
        // Which one stays is not known yet where it comes last.
        if stays == "b" {
            let reported = "hard links: 1 other name of the file did not move";
            assert!(
                lines.iter().any(|line| line.contains(reported)),
                "{context}"
            );
        }
        let (undone, lines) = undo_all(&tree);
        let context = format!("{context}, then {lines:?}");
        assert_eq!((undone.restored, undone.incomplete), (1, 0), "{context}");
        let inodes = ["b/two", "c/two-too"].map(|name| inode(tree.join(name)));
        assert_eq!(inodes[0], inodes[1], "{context}");
    }
}

/// After a copy of the whole tree files have other numbers: the name that a killed move left still
/// identifies the original, and names that identify nothing are reported.
#[test]
fn undo_knows_the_original_of_a_killed_move_in_a_copied_tree() {
    for known in [true, false] {
        for gone in [true, false] {
            let Some((tree, to, left)) = super::lost::killed() else {
                return;
            };
            let copied = left.with_extension("copied");
            fs::copy(&left, &copied).unwrap();
            let time = left.metadata().unwrap().modified().unwrap();
            fs::remove_file(&left).unwrap();
            let left = match known {
                true => left,
                false => left.with_file_name(".bc-dup.4194305.7.0.1-2-3.tmp"),
            };
            fs::rename(&copied, &left).unwrap();
            let file = fs::File::options().append(true).open(&left).unwrap();
            file.set_modified(time).unwrap();
            drop(file);
            // Events have paths as numbers.
            let name = format!("{:?}", left.file_name().unwrap().as_bytes());
            let name = name.trim_start_matches('[');
            if gone {
                fs::remove_dir_all(to.path().join("dev")).unwrap();
                tree.remove("a/keep");
            }
            let (summary, lines) = undo_all(&tree);
            let context = format!("known {known}, gone {gone}: {lines:?}");
            assert_eq!(left.exists(), !known, "{context}");
            assert_eq!(tree.exists("b/one"), known || !gone, "{context}");
            assert_eq!(summary.failed > 0, !known, "{context}");
            assert!(
                known || lines.iter().any(|line| line.contains(name)),
                "{context}"
            );
        }
    }
}

/// The whole copy of a killed move that has lost its name, while all else that
/// had its content was edited: it is the last to have that, and stays.
#[test]
fn undo_keeps_the_last_bearer_of_a_content() {
    for last in [true, false] {
        let Some((tree, to, left)) = super::lost::killed() else {
            return;
        };
        fs::remove_file(moved(to.path(), &tree, "b/one")).unwrap();
        let part = temporaries(to.path()).remove(0);
        if last {
            tree.write("a/keep", "other");
            fs::write(&left, "edited").unwrap();
        }
        let (summary, lines) = undo_all(&tree);
        let context = format!("last {last}: {lines:?}");
        assert_eq!(part.exists(), last, "{context}");
        assert_eq!(summary.failed > 0, last, "{context}");
        let name = format!("{:?}", part.file_name().unwrap().as_bytes());
        let named = lines
            .iter()
            .any(|line| line.contains(name.trim_start_matches('[')));
        assert_eq!(named, last, "{context}");
    }
}

/// While the second name of a moved file becomes another one of the first, which is back, another
/// process writes to that: its moved name is given up only for a file with its content.
#[test]
fn a_second_name_comes_back_with_its_content_alone() {
    let mut sweep = Sweep::new(EVERY).of(&["stat"]);
    let mut written = 0;
    while let Some(point) = sweep.next() {
        let Some((tree, to)) = linked() else { return };
        run_journalled(&tree, &options(action(to.path())));
        let names = ["b/two", "c/two-too"].map(|name| tree.join(name));
        // Undo begins with the last step: then only the second name is still to come back.
        let first = names[1].clone();
        let (second, wrote) = (names[0].clone(), Rc::new(Cell::new(false)));
        let noted = Rc::clone(&wrote);
        let edit = move || {
            let mut options = fs::OpenOptions::new();
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let opened = options.write(true).custom_flags(flags).open(&first);
            if let Ok(file) = opened
                && !second.exists()
            {
                file.write_all_at(b"edited", 0).unwrap();
                noted.set(true);
            }
        };
        faults::arm(point.clone(), faults::Fault::Run(Box::new(edit)));
        let (_, lines) = undo_all(&tree);
        saw(&mut sweep, &faults::disarm());
        written += u32::from(wrote.get());
        let there = [names[0].clone(), moved(to.path(), &tree, "b/two")];
        let stays = there
            .iter()
            .any(|path| fs::read(path).is_ok_and(|found| found == content()));
        assert!(stays, "before {point}: {lines:?}");
    }
    assert!(written > 0);
}
