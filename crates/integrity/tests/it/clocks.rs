//! Clocks that are wrong, of the files and of the machine: every file has its turn all the same.

use bc_integrity::{Conclusion, CreateOptions, Reread, create};
use bc_testkit::TestTree;

use crate::support::{How, THEN, an_update, entry, manifest_of, rot, updated, verified, with_work};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Seconds since 1970, as the clock of a file's last writer or of the machine has it.
const CLOCKS: [(&str, i64); 9] = [
    ("1970", 0),
    ("a second before 1970", -1),
    ("1901", -2_147_483_648),
    ("2023", THEN / SECOND),
    ("the last second of 2038", 2_147_483_647),
    ("2038 and after", 2_147_483_648),
    ("in the future by a day", THEN / SECOND + 86_400),
    ("2200", 7_258_118_400),
    // Nanoseconds of 64 bits reach to 2262.
    ("2500", 16_725_225_600),
];

/// Those that a machine may have: Linux sets its clock neither before 1970 nor after 2232.
fn of_machines() -> impl Iterator<Item = (&'static str, i64, i64)> {
    let nanoseconds = |seconds: i64| seconds.checked_mul(SECOND).filter(|now| *now >= 0);
    CLOCKS
        .into_iter()
        .filter_map(move |(name, seconds)| Some((name, seconds, nanoseconds(seconds)?)))
}

const FILES: usize = 6;

fn name(nth: usize) -> String {
    format!("f{nth}")
}

/// Files of one size with the time that the system keeps of this one.
fn sample(seconds: i64) -> TestTree {
    let tree = TestTree::new();
    for nth in 0..FILES {
        let name = name(nth);
        tree.write(&name, name.repeat(500)).mtime(&name, seconds, 5);
    }
    tree
}

fn recorded_at(tree: &TestTree, now: i64) -> std::path::PathBuf {
    let what =
        CreateOptions::new(tree.path().as_os_str(), bc_digest::Algorithm::Sha256).created_at(now);
    let path = tree.scratch("m.jsonl");
    let made = with_work(2, |work| create(&what, work, Vec::new(), &mut |_, _| {}));
    std::fs::write(&path, made.unwrap().0).unwrap();
    path
}

/// Decays a file as a failing disk does: neither time says so.
fn decay(tree: &TestTree, manifest: &std::path::Path, path: &str) {
    rot(tree, path, 1, b'#');
    let ctime = entry(&manifest_of(tree.path()), path)["ctime_ns"].clone();
    crate::scrubbing::edit(manifest, path, |entry| entry["ctime_ns"] = ctime);
}

#[test]
fn times_of_files() {
    for (clock, seconds) in CLOCKS {
        let tree = sample(seconds);
        let manifest = recorded_at(&tree, THEN);
        let (text, summary) = verified(tree.path(), &manifest, How::default());
        assert_eq!(
            (&text[..], summary.conclusion()),
            ("", Conclusion::Same),
            "{clock}"
        );
        for nth in [1, 4] {
            // Where the time of the content cannot be held, the other one has to tell.
            decay(&tree, &manifest, &name(nth));
        }
        let (text, summary) = verified(tree.path(), &manifest, How::default());
        assert_eq!(summary.conclusion(), Conclusion::Damaged, "{clock}: {text}");
        assert_eq!(text.matches("!! ").count(), 2, "{clock}: {text}");
        let what = an_update(tree.path().as_os_str(), &manifest).reread(Reread::Fraction(1.0));
        let (text, done) = updated(&what).unwrap();
        assert_eq!(text.matches("!! ").count(), 2, "{clock}: {text}");
        assert_eq!(done.summary.conclusion(), Conclusion::Damaged, "{clock}");
    }
}

/// A part of a third reads every file in three rounds, whatever the clock said when the manifest
/// was made, says in each round, and says of the files.
#[test]
fn rounds_find_every_damaged_file() {
    for (clock, seconds, now) in of_machines() {
        let tree = sample(seconds);
        for made in [now, THEN, now + DAY] {
            let manifest = recorded_at(&tree, made);
            let decayed = [0, 3, FILES - 1].map(name);
            for path in &decayed {
                decay(&tree, &manifest, path);
            }
            let mut found = std::collections::BTreeSet::new();
            let mut read = 0;
            for round in 0..3 {
                let what = an_update(tree.path().as_os_str(), &manifest)
                    .reread(Reread::Fraction(1.0 / 3.0))
                    .now(now + 1 + round);
                let (text, done) = updated(&what).unwrap();
                read += done.summary.files_read;
                found.extend(
                    text.lines()
                        .filter_map(|line| line.strip_prefix("!! "))
                        .map(|line| line.split(':').next().unwrap_or(line).to_owned()),
                );
            }
            let about = format!("{clock}, made at {made}: {read} read");
            assert!(
                decayed.iter().all(|path| found.contains(path)),
                "{about}: {found:?}"
            );
            assert_eq!(found.len(), decayed.len(), "{about}");
            for (nth, path) in [0, 3, FILES - 1].into_iter().zip(&decayed) {
                tree.write(path, name(nth).repeat(500))
                    .mtime(path, seconds, 5);
            }
        }
    }
}

/// A clock that was right, then wrong for a round or two, and is right again.
#[test]
fn a_clock_that_jumps_between_rounds() {
    for (clock, _, wrong) in of_machines() {
        let tree = sample(THEN / SECOND);
        let manifest = recorded_at(&tree, THEN);
        decay(&tree, &manifest, &name(FILES - 1));
        let mut found = false;
        // One round with the wrong clock is lost at most.
        for now in [wrong, THEN + DAY, THEN + 2 * DAY, THEN + 3 * DAY] {
            let what = an_update(tree.path().as_os_str(), &manifest)
                .reread(Reread::Fraction(1.0 / 3.0))
                .now(now);
            let (text, _) = updated(&what).unwrap();
            found |= text.contains("!! ");
        }
        assert!(found, "{clock}");
    }
}

/// A new file that was given the number of a recorded one, whose times are in the future: nothing
/// proves that it is that one, damaged.
#[test]
fn a_record_of_a_time_that_was_not_yet_proves_nothing() {
    let tree = TestTree::new();
    tree.write("keep", "k")
        .write("old", "AAAA")
        .mtime("old", 5, 5);
    let manifest = recorded_at(&tree, THEN);
    crate::scrubbing::edit(&manifest, "old", |entry| {
        let ahead = entry["ctime_ns"].as_i64().unwrap() + 3600 * SECOND;
        entry["ctime_ns"] = ahead.into();
    });
    // Whether it is given the number or has had it all along, stat says the same.
    std::fs::rename(tree.join("old"), tree.join("new")).unwrap();
    tree.write("new", "BBBB").mtime("new", 5, 5);
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert_eq!(summary.conclusion(), Conclusion::Different, "{text}");
    let what = an_update(tree.path().as_os_str(), &manifest);
    let (text, done) = updated(&what).unwrap();
    assert_eq!(done.summary.conclusion(), Conclusion::Different, "{text}");
}
