//! Another process changes files between the scan and the action, and between any two system calls
//! of it: its data must never be lost.

use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::*;

/// Change that the other process makes to a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Race {
    /// Overwrites some bytes in place.
    Edit,
    Truncate,
    Append,
    /// Puts a new file under the name, as editors do.
    Replace,
    /// Moves the file away and puts nothing there.
    RenameAway,
    /// Replaces it by a directory's worth of nothing: removes it.
    Remove,
    /// Makes it another name of the unrelated file.
    Relink,
}

const RACES: [Race; 7] = [
    Race::Edit,
    Race::Truncate,
    Race::Append,
    Race::Replace,
    Race::RenameAway,
    Race::Remove,
    Race::Relink,
];

impl Race {
    /// Makes the change; returns the content that must exist somewhere from then on, if it is new.
    pub(super) fn go(self, root: &Path, name: &str) -> Option<Vec<u8>> {
        let path = root.join(name);
        // No file is created by the first three: the name may be gone. And they do not wait: it is
        // this thread that they would wait for.
        let existing = || {
            let mut options = fs::OpenOptions::new();
            let options = options
                .write(true)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
            options.open(&path).ok()
        };
        match self {
            Race::Edit => existing()?.write_all_at(b"written by another", 100).ok()?,
            Race::Truncate => existing()?.set_len(17).ok()?,
            Race::Append => {
                let file = existing()?;
                let end = file.metadata().ok()?.len();
                file.write_all_at(b"appended", end).ok()?;
            }
            Race::Replace => {
                let new = root.join("new");
                fs::write(&new, b"an editor's new version").unwrap();
                fs::rename(&new, &path).unwrap();
                return Some(b"an editor's new version".to_vec());
            }
            Race::RenameAway => {
                fs::rename(&path, root.join("away")).ok()?;
                return Some(content());
            }
            Race::Remove => {
                fs::remove_file(&path).ok()?;
                return None;
            }
            Race::Relink => {
                let new = root.join("new");
                fs::hard_link(root.join("c/other"), &new).unwrap();
                fs::rename(&new, &path).unwrap();
                return Some(b"something else".to_vec());
            }
        }
        fs::read(&path).ok()
    }
}

#[test]
fn between_scan_and_action_every_change_stands() {
    for race in RACES {
        for index in 0..5 {
            for name in ["a/keep", "b/one", "b/two"] {
                let tree = quick_sample();
                let action = actions(&tree)[index].clone();
                let groups = groups(tree.path());
                race.go(tree.path(), name);
                let before = snapshot(tree.path());
                let (_, lines) = run_groups(groups, &options(action.clone()), None);
                let context = format!("{race:?} of {name}, {action:?}: {lines:?}");
                check_invariant(&tree, &before, &action, &context);
                let path = tree.join(name);
                assert_eq!(
                    snapshot(tree.path()).get(&path),
                    before.get(&path),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn hardlink() {
    between_any_two_calls(0);
}

#[test]
fn symlink() {
    between_any_two_calls(1);
}

#[test]
fn delete() {
    between_any_two_calls(2);
}

#[test]
fn move_() {
    between_any_two_calls(3);
}

#[test]
fn trash() {
    between_any_two_calls(4);
}

fn between_any_two_calls(index: usize) {
    for name in ["a/keep", "b/one"] {
        let mut sweep = Sweep::new(FEW).ways(RACES.len());
        while let Some(point) = sweep.next() {
            let seen = one_race(index, RACES[sweep.way()], name, &point);
            saw(&mut sweep, &seen);
        }
        assert!(sweep.reached() >= 8, "{name}: {}", sweep.reached());
    }
}

fn one_race(index: usize, race: Race, name: &'static str, point: &Point) -> faults::Seen {
    let tree = quick_sample();
    let action = actions(&tree)[index].clone();
    let root = tree.path().to_owned();
    let (sender, receiver) = std::sync::mpsc::channel();
    faults::arm(
        point.clone(),
        faults::Fault::Run(Box::new(move || {
            sender.send(race.go(&root, name)).unwrap();
        })),
    );
    let (_, lines) = run(&tree, &options(action.clone()));
    let seen = faults::disarm();
    let context = format!("{action:?}, {race:?} of {name} before {point}: {lines:?}");
    let mut contents: Vec<Vec<u8>> = files(tree.path())
        .iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    for place in ["moved", "Trash"].map(|place| tree.scratch(place)) {
        if place.exists() {
            contents.extend(files(&place).iter().map(|path| fs::read(path).unwrap()));
        }
    }
    if let Ok(Some(written)) = receiver.try_recv() {
        assert!(
            contents.contains(&written),
            "{context}: what was written is gone"
        );
    }
    assert!(
        contents.contains(&b"something else".to_vec()),
        "{context}: an uninvolved file is gone"
    );
    // The duplicates' content can only be gone if the other process did that:
    // by changing the one file that all names had become.
    let survivors = contents.iter().filter(|found| **found == content()).count();
    let by_us = matches!(race, Race::Replace | Race::RenameAway | Race::Relink);
    assert!(survivors > 0 || !by_us, "{context}: the content is gone");
    seen
}
