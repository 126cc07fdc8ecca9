//! `update`: what is read, what is kept, what is written.

use bc_integrity::change::Class;
use bc_integrity::compare::Detail;
use bc_integrity::{Conclusion, Damaged, Reread, update};
use bc_testkit::TestTree;

use crate::support::{
    How, THEN, an_update, entry, manifest_of, record, recorded, rot, updated, updated_once,
    verified, with_work,
};

fn sample() -> TestTree {
    let tree = TestTree::new();
    tree.write("a", "1")
        .write("b/c", "22")
        .write("b/d", "333")
        .write("e", "")
        .symlink("a", "l");
    tree
}

/// The entry lines of a manifest.
fn entries(manifest: &[u8]) -> String {
    let text = std::str::from_utf8(manifest).unwrap();
    text.lines()
        .filter(|line| line.starts_with("{\"type\":\"entry\""))
        .collect()
}

#[test]
fn an_unchanged_tree_is_not_read_and_not_written() {
    let tree = sample();
    let manifest = record(&tree);
    let before = std::fs::metadata(&manifest).unwrap().modified().unwrap();
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    assert_eq!(text, "");
    assert_eq!(done.written, None);
    assert_eq!(done.summary.files_read, 0);
    assert_eq!(done.summary.count(Class::Ok), 7);
    assert_eq!(
        std::fs::metadata(&manifest).unwrap().modified().unwrap(),
        before
    );
    let what = an_update(tree.path().as_os_str(), &manifest).detail(Detail::All);
    let (text, done) = updated(&what).unwrap();
    assert_eq!(text, "ok .\nok a\nok b\nok b/c\nok b/d\nok e\nok l\n");
    assert_eq!(done.written, None);
}

#[test]
fn only_what_changed_is_read_and_the_result_is_a_fresh_manifest() {
    let tree = sample();
    let manifest = record(&tree);
    tree.write("b/c", "changed")
        .write("new/file", "new")
        .remove("a")
        .mode("b/d", 0o600);
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    for line in [
        "~c b/c\n",
        "+ new\n",
        "+ new/file\n",
        "- a\n",
        "~m b/d mode: ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // b/d was read because its ctime changed.
    assert_eq!(done.summary.files_read, 3);
    let now = std::fs::read(&manifest).unwrap();
    assert_eq!(entry(&now, "b/c")["verified_at"], "2023-11-14T22:13:21Z");
    assert!(entry(&now, "e")["verified_at"].is_null());
    let tried = ",\"verified_at\":\"2023-11-14T22:13:21Z\",\"tried_run\":1";
    let without: String = entries(&now).replace(tried, "");
    assert_eq!(without, entries(&manifest_of(tree.path())));
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

#[test]
fn damage_is_not_overwritten_unless_accepted() {
    let tree = sample();
    let manifest = record(&tree);
    let before = std::fs::read(&manifest).unwrap();
    rot(&tree, "b/d", 1, b'X');
    tree.write("new", "new");
    for _ in 0..2 {
        let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
        assert!(text.contains("!! b/d: "), "{text}");
        assert_eq!(done.summary.conclusion(), Conclusion::Damaged);
        let now = std::fs::read(&manifest).unwrap();
        assert_eq!(recorded(&now, "b/d"), entry(&before, "b/d"));
        assert!(entry(&now, "new").is_object());
    }
    let what = an_update(tree.path().as_os_str(), &manifest).damaged(Damaged::Accept);
    let (_, done) = updated(&what).unwrap();
    assert_eq!(done.summary.conclusion(), Conclusion::Damaged);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

#[test]
fn a_scrub_reads_the_least_recently_verified_first() {
    let tree = TestTree::new();
    for name in ["a", "b", "c", "d"] {
        tree.write(name, name.repeat(100));
    }
    let manifest = record(&tree);
    let scrub = |reread, seconds: i64| {
        let now = THEN + seconds * 1_000_000_000;
        let what = an_update(tree.path().as_os_str(), &manifest)
            .reread(reread)
            .now(now);
        let (text, done) = updated(&what).unwrap();
        assert_eq!(text, "");
        done.summary.files_read
    };
    let verified_at = || {
        let now = std::fs::read(&manifest).unwrap();
        ["a", "b", "c", "d"].map(|path| {
            entry(&now, path)["verified_at"]
                .as_str()
                .map(str::to_string)
        })
    };
    let at = |text: &str| Some(text.to_string());
    assert_eq!(scrub(Reread::Fraction(0.5), 10), 2);
    assert_eq!(
        verified_at(),
        [
            at("2023-11-14T22:13:30Z"),
            at("2023-11-14T22:13:30Z"),
            None,
            None
        ]
    );
    assert_eq!(scrub(Reread::Bytes(150), 20), 2);
    let second = at("2023-11-14T22:13:40Z");
    assert_eq!(verified_at()[2..], [second.clone(), second]);
    assert_eq!(scrub(Reread::Bytes(1), 30), 1);
    assert_eq!(verified_at()[0], at("2023-11-14T22:13:50Z"));
    assert_eq!(
        scrub(Reread::For(std::time::Duration::from_secs(600)), 40),
        4
    );
    assert!(
        verified_at()
            .iter()
            .all(|time| *time == at("2023-11-14T22:14:00Z"))
    );
    assert_eq!(scrub(Reread::For(std::time::Duration::ZERO), 50), 0);
}

#[test]
fn a_scrub_finds_bitrot() {
    for reread in [
        Reread::Fraction(1.0),
        Reread::For(std::time::Duration::from_secs(600)),
    ] {
        let tree = sample();
        let manifest = record(&tree);
        rot(&tree, "b/d", 1, b'X');
        // As if nothing had been written: the ctime of now becomes the recorded one.
        let bytes = std::fs::read(&manifest).unwrap();
        let fresh = manifest_of(tree.path());
        let ctime = entry(&fresh, "b/d")["ctime_ns"].clone();
        let unchanged = crate::support::resealed(&bytes, |lines| {
            let line = lines
                .iter_mut()
                .find(|line| line.contains("\"b/d\""))
                .unwrap();
            let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry["ctime_ns"] = ctime;
            *line = entry.to_string();
        });
        std::fs::write(&manifest, &unchanged).unwrap();
        let (text, _) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
        assert_eq!(text, "", "an update alone does not read it");
        let what = an_update(tree.path().as_os_str(), &manifest).reread(reread);
        let (text, done) = updated(&what).unwrap();
        assert_eq!(text, "!! b/d: ctime unchanged, points to bitrot\n");
        assert_eq!(done.summary.conclusion(), Conclusion::Damaged);
        let now = std::fs::read(&manifest).unwrap();
        assert_eq!(recorded(&now, "b/d"), entry(&unchanged, "b/d"));
        assert!(entry(&now, "a")["verified_at"].is_string());
    }
}

#[test]
fn moved_files_are_reported_and_read() {
    let tree = sample();
    let manifest = record(&tree);
    std::fs::rename(tree.join("b/d"), tree.join("moved")).unwrap();
    tree.mtime(".", 9, 9).mtime("b", 9, 9);
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    assert!(text.contains("> b/d -> moved\n"), "{text}");
    assert_eq!(done.summary.files_read, 1);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

#[test]
fn one_update_at_a_time() {
    let tree = sample();
    let manifest = record(&tree);
    let held = bc_edit::atomic::lock(&manifest).unwrap();
    let error = updated_once(&an_update(tree.path().as_os_str(), &manifest)).unwrap_err();
    assert!(error.to_string().contains("another update"), "{error}");
    drop(held);
    updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
}

/// A file that another program has written there while the tree was read is not replaced.
#[test]
fn a_manifest_that_was_replaced_meanwhile_is_left() {
    for in_place in [false, true] {
        let tree = TestTree::new();
        tree.write("a", "a");
        let manifest = record(&tree);
        tree.write("b", "b");
        let what = an_update(tree.path().as_os_str(), &manifest);
        let result = with_work(2, |work| {
            update(&what, work, &mut |_| {
                let other = match in_place {
                    true => manifest.clone(),
                    false => tree.scratch("other"),
                };
                std::fs::write(&other, "somebody's")?;
                std::fs::rename(&other, &manifest)
            })
        });
        let error = result.map(|done| done.written).unwrap_err().to_string();
        assert!(
            error.contains("another one was written there since this update began"),
            "{error}"
        );
        assert_eq!(std::fs::read(&manifest).unwrap(), b"somebody's");
        let beside = std::fs::read_dir(manifest.parent().unwrap()).unwrap();
        let left = beside.map(|entry| entry.unwrap().file_name());
        assert!(
            left.into_iter()
                .all(|name| !name.to_string_lossy().ends_with(".tmp"))
        );
    }
}
