//! `update --reread` over many nights: nothing is starved, nothing known is forgotten.

use std::path::Path;

use bc_integrity::fields::CompareRules;
use bc_integrity::{Conclusion, Damaged, Reread};
use bc_testkit::TestTree;

use crate::support::{
    THEN, an_update, diffed, entry, manifest_of, record, resealed, rot, updated, updated_meanwhile,
};
use crate::unreadable::done_as_nobody;

const SECOND: i64 = 1_000_000_000;

/// The update of one night.
fn night(tree: &TestTree, manifest: &Path, reread: Reread, now: i64) -> (String, Conclusion, u64) {
    let what = an_update(tree.path().as_os_str(), manifest)
        .reread(reread)
        .now(now);
    let (text, done) = updated(&what).unwrap();
    let summary = done.summary;
    (text, summary.conclusion(), summary.files_read)
}

/// Overwrites a byte as a failing disk does: neither mtime nor ctime says so.
fn decay(tree: &TestTree, manifest: &Path, path: &str) {
    rot(tree, path, 1, b'#');
    let ctime = entry(&manifest_of(tree.path()), path)["ctime_ns"].clone();
    edit(manifest, path, |entry| entry["ctime_ns"] = ctime);
}

pub fn edit(manifest: &Path, path: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let name = format!("\"path\":\"{path}\"");
    let bytes = resealed(&std::fs::read(manifest).unwrap(), |lines| {
        let line = lines.iter_mut().find(|line| line.contains(&name)).unwrap();
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        change(&mut entry);
        *line = entry.to_string();
    });
    std::fs::write(manifest, bytes).unwrap();
}

fn sample() -> (TestTree, Vec<String>) {
    let tree = TestTree::new();
    let names: Vec<String> = (b'a'..=b'h').map(|name| char::from(name).into()).collect();
    for name in &names {
        tree.write(name, name.repeat(1000));
    }
    (tree, names)
}

#[test]
fn what_is_damaged_does_not_keep_the_budget_from_the_others() {
    let (tree, names) = sample();
    let manifest = record(&tree);
    let before = std::fs::read(&manifest).unwrap();
    // The first two in line, and the last.
    for path in ["a", "b", "h"] {
        decay(&tree, &manifest, path);
    }
    let mut reports = Vec::new();
    for nth in 1..=8 {
        let now = THEN + nth * SECOND;
        let (text, conclusion, read) = night(&tree, &manifest, Reread::Bytes(1000), now);
        assert_eq!(read, 1, "night {nth}: {text}");
        // Found once, and known from then on.
        assert_eq!(conclusion, Conclusion::Damaged, "night {nth}");
        reports.push(text);
    }
    assert_eq!(reports[0], "!! a: ctime unchanged, points to bitrot\n");
    for text in &reports[1..] {
        let known = "!! a: found at 2023-11-14T22:13:21Z, not tried again since\n";
        assert!(text.starts_with(known), "{text}");
        assert!(text.contains("!! b: "), "{text}");
    }
    assert!(reports[7].ends_with("!! h: ctime unchanged, points to bitrot\n"));
    let now = std::fs::read(&manifest).unwrap();
    for name in &names {
        let damaged = ["a", "b", "h"].contains(&&name[..]);
        assert_eq!(
            entry(&now, name)["verified_at"].is_null(),
            damaged,
            "{name}"
        );
        assert_eq!(entry(&now, name)["found"] == "damaged", damaged, "{name}");
        assert_eq!(entry(&now, name)["digest"], entry(&before, name)["digest"]);
    }
    // The next round begins where this one did.
    let (text, ..) = night(&tree, &manifest, Reread::Bytes(1000), THEN + 9 * SECOND);
    assert!(
        text.starts_with("!! a: ctime unchanged, points to bitrot\n"),
        "{text}"
    );
    // Nothing is read, and nothing forgotten; nor is there anything to write.
    let bytes = std::fs::read(&manifest).unwrap();
    let (text, conclusion, read) = night(&tree, &manifest, Reread::None, THEN + 10 * SECOND);
    assert_eq!(
        (text.lines().count(), conclusion, read),
        (3, Conclusion::Damaged, 0)
    );
    assert_eq!(std::fs::read(&manifest).unwrap(), bytes);
}

/// Damage that an update noted is damage in every comparison of its manifest with an older one,
/// under its old name and under a new one.
#[test]
fn a_diff_shows_what_the_newer_manifest_notes() {
    let (tree, _) = sample();
    let manifest = record(&tree);
    for path in ["a", "c", "e"] {
        decay(&tree, &manifest, path);
    }
    let old = std::fs::read(&manifest).unwrap();
    night(&tree, &manifest, Reread::Fraction(1.0), THEN + SECOND);
    let new = std::fs::read(&manifest).unwrap();
    let at = "found at 2023-11-14T22:13:21Z, not tried again since";
    let (text, summary) = diffed(&old, &new, CompareRules::default()).unwrap();
    // The ctime of a record that was kept says nothing of what was found.
    let line = |path| format!("!! {path}: {at}\n");
    assert_eq!(text, ["a", "c", "e"].map(line).concat());
    assert_eq!(summary.conclusion(), Conclusion::Damaged);
    // It is no difference of two that both note it, nor is one that is no longer noted.
    for newer in [&new, &old] {
        let (text, _) = diffed(&new, newer, CompareRules::default()).unwrap();
        assert_eq!(text, "");
    }
    // An edit before the damage, and another name, hide nothing.
    edit(&manifest, "c", |entry| {
        entry["digest"] = "1".repeat(64).into()
    });
    edit(&manifest, "e", |entry| entry["path"] = "e2".into());
    let new = std::fs::read(&manifest).unwrap();
    let (text, summary) = diffed(&old, &new, CompareRules::default()).unwrap();
    for line in ["!! a: ", "!! c: ", "!! e2: "] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(summary.count(bc_integrity::change::Class::Damaged), 3);
}

#[test]
fn what_was_damaged_is_cleared_once_it_is_right() {
    let (tree, _) = sample();
    let manifest = record(&tree);
    decay(&tree, &manifest, "a");
    decay(&tree, &manifest, "c");
    let all = Reread::Fraction(1.0);
    let (text, ..) = night(&tree, &manifest, all, THEN + SECOND);
    assert_eq!(text.lines().count(), 2, "{text}");
    // Restored from a backup: another inode, the same times. The other is accepted as it is.
    let copy = tree.join("copy");
    std::fs::write(&copy, "a".repeat(1000)).unwrap();
    let mtime = std::fs::metadata(tree.join("a"))
        .unwrap()
        .modified()
        .unwrap();
    let file = std::fs::File::options().write(true).open(&copy).unwrap();
    file.set_modified(mtime).unwrap();
    std::fs::rename(&copy, tree.join("a")).unwrap();
    let what = an_update(tree.path().as_os_str(), &manifest)
        .damaged(Damaged::Accept)
        .now(THEN + 2 * SECOND);
    let (text, _) = updated(&what).unwrap();
    assert!(text.contains("!! c: ") && !text.contains("!! a"), "{text}");
    let now = std::fs::read(&manifest).unwrap();
    for path in ["a", "c"] {
        for key in ["tried_at", "found"] {
            assert!(entry(&now, path)[key].is_null(), "{path}");
        }
    }
    let (text, conclusion, _) = night(&tree, &manifest, Reread::None, THEN + 3 * SECOND);
    assert_eq!((&text[..], conclusion), ("", Conclusion::Same));
}

#[test]
fn what_was_damaged_and_is_something_else_now_is_no_longer_known() {
    let (tree, _) = sample();
    let manifest = record(&tree);
    for path in ["a", "c", "e"] {
        decay(&tree, &manifest, path);
    }
    let all = Reread::Fraction(1.0);
    night(&tree, &manifest, all, THEN + SECOND);
    tree.remove("a").remove("c").write("c/d", "in a directory");
    tree.write("e", "an edit");
    let (text, conclusion, _) = night(&tree, &manifest, Reread::None, THEN + 2 * SECOND);
    for line in ["- a\n", "~t c file -> dir\n", "~c e\n"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(conclusion, Conclusion::Different);
    let (text, conclusion, _) = night(&tree, &manifest, Reread::None, THEN + 3 * SECOND);
    assert_eq!((&text[..], conclusion), ("", Conclusion::Same));
}

/// A file that cannot be read although nothing about it changed, as on a failing disk: its
/// permissions are taken away and the recorded ctime follows.
#[test]
fn what_is_unreadable_does_not_either() {
    if done_as_nobody("scrubbing::what_is_unreadable_does_not_either") {
        return;
    }
    let (tree, names) = sample();
    tree.mode("a", 0o000);
    let manifest = tree.scratch("manifest.jsonl");
    tree.mode("a", 0o600);
    std::fs::write(&manifest, manifest_of(tree.path())).unwrap();
    tree.mode("a", 0o000);
    let meta = manifest_of(tree.path());
    let ctime = entry(&meta, "a")["ctime_ns"].clone();
    edit(&manifest, "a", |entry| entry["ctime_ns"] = ctime);
    for nth in 1..=8 {
        let now = THEN + nth * SECOND;
        let (text, conclusion, _) = night(&tree, &manifest, Reread::Bytes(1000), now);
        assert!(
            text.contains("?? a: ") && conclusion == Conclusion::Different,
            "{text}"
        );
    }
    let now = std::fs::read(&manifest).unwrap();
    for name in &names[1..] {
        assert!(entry(&now, name)["verified_at"].is_string(), "{name}");
    }
    tree.mode("a", 0o600);
    let (text, ..) = night(&tree, &manifest, Reread::None, THEN + 9 * SECOND);
    assert!(!text.contains("??"), "{text}");
}

/// Stamps of a clock that was wrong once, and times at the ends of what can be written.
#[test]
fn a_time_that_is_not_over_counts_as_never() {
    for wrong in [
        THEN + 1000 * SECOND,
        i64::MAX,
        // Not in the future: as it is, the oldest of all.
        -5,
        i64::MIN,
    ] {
        let (tree, names) = sample();
        let manifest = record(&tree);
        let (_, _, read) = night(&tree, &manifest, Reread::Fraction(1.0), THEN + SECOND);
        assert_eq!(read, 8);
        for name in ["d", "e"] {
            let stamp = bc_manifest::time::format_rfc3339(wrong);
            edit(&manifest, name, |entry| entry["verified_at"] = stamp.into());
        }
        decay(&tree, &manifest, "e");
        let (text, _, read) = night(&tree, &manifest, Reread::Bytes(2000), THEN + 2 * SECOND);
        assert_eq!(read, 2);
        assert!(text.contains("!! e: "), "{wrong}: {text}");
        let now = std::fs::read(&manifest).unwrap();
        assert_eq!(entry(&now, "d")["verified_at"], "2023-11-14T22:13:22Z");
        // And the round continues with the others.
        for nth in 3..=5 {
            night(&tree, &manifest, Reread::Bytes(2000), THEN + nth * SECOND);
        }
        let now = std::fs::read(&manifest).unwrap();
        for name in names.iter().filter(|name| *name != "e") {
            let time = entry(&now, name)["verified_at"].clone();
            assert!(
                time.as_str().unwrap() > "2023-11-14T22:13:21Z",
                "{name}: {time}"
            );
        }
    }
}

/// A manifest made by a clock in the future: all its entries count as never verified.
#[test]
fn a_manifest_from_the_future_is_scrubbed_round_by_round() {
    let (tree, names) = sample();
    let manifest = record(&tree);
    for nth in 0..4 {
        // An hour before the manifest was made.
        let now = THEN - (3600 - nth) * SECOND;
        let (_, _, read) = night(&tree, &manifest, Reread::Bytes(2000), now);
        assert_eq!(read, 2);
    }
    let now = std::fs::read(&manifest).unwrap();
    assert!(
        names
            .iter()
            .all(|name| entry(&now, name)["verified_at"].is_string())
    );
}

/// A file edited between the walk and the reading is recorded as it was read, time limit or not.
#[test]
fn an_edit_before_the_reading_is_no_damage() {
    let limits = [
        Reread::For(std::time::Duration::from_secs(600)),
        Reread::Fraction(1.0),
    ];
    for reread in limits {
        let (tree, _) = sample();
        let manifest = record(&tree);
        // Whoever is asked how to read is asked when the walk is over.
        let edit = || {
            tree.write("c", "an edit").mtime("d", 5, 5);
        };
        let what = an_update(tree.path().as_os_str(), &manifest).reread(reread);
        let (text, done) = updated_meanwhile(&what, &edit);
        assert_eq!(done.summary.conclusion(), Conclusion::Different, "{text}");
        assert!(text.contains("~c c\n") && text.contains("~m d "), "{text}");
        let (now, fresh) = (std::fs::read(&manifest).unwrap(), manifest_of(tree.path()));
        for path in ["c", "d"] {
            for key in ["size", "mtime_ns", "ctime_ns", "digest"] {
                assert_eq!(
                    entry(&now, path)[key],
                    entry(&fresh, path)[key],
                    "{path} {key}"
                );
            }
            assert!(entry(&now, path)["found"].is_null(), "{path}");
        }
    }
}
