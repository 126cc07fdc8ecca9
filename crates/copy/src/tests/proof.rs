//! The manifest at the end, as `bc integrity verify` checks it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bc_integrity::{Change, Class, Ctime, ManifestFile, Reading, VerifyOptions, Work};
use bc_pool::Cancel;

use super::resume::settle;
use super::{Ground, done, run};
use crate::{MANIFEST_NAME, OnConflict, Target};

/// Verifies a tree against its manifest; returns the paths of all that differs.
pub(super) fn verify(root: &Path, manifest: &Path) -> Vec<String> {
    let shown = |change: Change| format!("{:?} {}", change.class, change.path.escape_ascii());
    changes(root, manifest).into_iter().map(shown).collect()
}

/// Verifies a tree against its manifest; returns all that differs.
fn changes(root: &Path, manifest: &Path) -> Vec<Change> {
    let (cancel, progress) = (Cancel::new(), bc_hash::HashProgress::default());
    let reading = |_| Ok(Reading::new(1));
    let work = Work::new(1.into(), &reading, &cancel, &progress);
    let manifest = ManifestFile::open(manifest).unwrap();
    let what = VerifyOptions::new(root.as_os_str(), &manifest);
    let mut reported = Vec::new();
    let done = bc_integrity::verify(&what, &work, &mut |change| {
        reported.push(change.clone());
        Ok(())
    });
    let done = done.unwrap();
    assert!(done.problems.is_empty(), "{:?}", done.problems);
    assert!(done.summary.reconciles());
    reported
}

fn tree(ground: &Ground) {
    ground.write("from/a/b", b"content");
    ground.write("from/a/medium", &vec![9; 300_000]);
    ground.write("from/z", b"z");
    std::fs::hard_link(ground.at("from/z"), ground.at("from/a/z")).unwrap();
    std::os::unix::fs::symlink("a", ground.at("from/link")).unwrap();
}

#[test]
fn it_is_accepted_at_once_and_finds_damage() {
    for algorithm in ["blake3", "sha256", "xxh128"] {
        let ground = Ground::new();
        tree(&ground);
        let mut options = ground.options(&["from"], "to");
        options.algorithm = bc_digest::Algorithm::from_name(algorithm);
        let copied = done(&options);
        let manifest = ground.at("to").join(MANIFEST_NAME);
        assert_eq!(
            copied.manifest.as_deref(),
            Some(manifest.as_os_str().as_bytes())
        );
        assert_eq!(verify(&ground.at("to"), &manifest), [""; 0], "{algorithm}");
        // The source is what the manifest says, too.
        assert_eq!(
            verify(&ground.at("from"), &manifest),
            [""; 0],
            "{algorithm}"
        );
        let file = std::fs::File::options()
            .write(true)
            .open(ground.at("to/a/medium"))
            .unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"!", 200_000).unwrap();
        file.set_modified(time).unwrap();
        drop(file);
        assert_eq!(verify(&ground.at("to"), &manifest), ["Damaged a/medium"]);
    }
}

#[test]
fn it_is_about_what_was_copied_and_carries_on_what_was_before() {
    let ground = Ground::new();
    tree(&ground);
    ground.write("second/file", b"second");
    ground.write("into/stranger", b"not copied");
    done(&ground.options(&["from"], "into"));
    let manifest = ground.at("into").join(MANIFEST_NAME);
    assert_eq!(verify(&ground.at("into"), &manifest), [""; 0]);
    done(&ground.options(&["second"], "into"));
    assert_eq!(verify(&ground.at("into"), &manifest), [""; 0]);
    std::fs::remove_file(ground.at("into/from/a/b")).unwrap();
    ground.write("into/second/more", b"more");
    ground.write("into/stranger", b"edited");
    let found = verify(&ground.at("into"), &manifest);
    let has = |text: &str| found.iter().any(|line| line == text);
    assert!(
        has("Removed from/a/b") && has("Added second/more"),
        "{found:?}"
    );
    assert!(
        !found.iter().any(|line| line.contains("stranger")),
        "{found:?}"
    );
}

/// A file was edited with its time put back, and then lost one of its names to the copy: the record of
/// the other name keeps the time of change that shows the edit.
#[test]
fn an_edit_of_a_file_that_loses_a_name_stays_known() {
    for is_edited in [false, true] {
        let ground = Ground::new();
        ground.write("from/a", b"content");
        std::fs::hard_link(ground.at("from/a"), ground.at("from/b")).unwrap();
        done(&ground.options(&["from"], "to"));
        ground.write("new/a", b"another");
        settle();
        if is_edited {
            let path = ground.at("to/b");
            let file = std::fs::File::options().write(true).open(path).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"C", 0).unwrap();
            file.set_modified(time).unwrap();
        }
        let mut options = ground.options(&["new/a"], "to");
        options.on_conflict = OnConflict::Replace;
        assert_eq!(done(&options).copied, 1);
        let manifest = ground.at("to").join(MANIFEST_NAME);
        let found = changes(&ground.at("to"), &manifest);
        match (&found[..], is_edited) {
            ([], false) => {}
            ([one], true) => {
                assert_eq!((one.class, &one.path[..]), (Class::Damaged, &b"b"[..]));
                assert_ne!(one.ctime, Some(Ctime::Same));
            }
            _ => panic!("{is_edited}: {found:?}"),
        }
    }
}

#[test]
fn what_was_left_is_in_it_too() {
    let ground = Ground::new();
    tree(&ground);
    done(&ground.options(&["from"], "to"));
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    options.on_conflict = OnConflict::Skip;
    ground.write("to/z", b"other");
    let copied = done(&options);
    assert!(copied.skipped > 0);
    let manifest = ground.at("to").join(MANIFEST_NAME);
    assert_eq!(verify(&ground.at("to"), &manifest), [""; 0]);
}

#[test]
fn failures_are_in_it() {
    let ground = Ground::new();
    tree(&ground);
    ground.write("to/a/b", b"mine");
    let mut options = ground.options(&["from"], "to");
    options.target = Target::Exactly;
    let (copied, reported) = run(&options);
    let copied = copied.unwrap();
    assert_eq!(copied.failed, 1, "{reported:?}");
    let text = std::fs::read_to_string(ground.at("to").join(MANIFEST_NAME)).unwrap();
    let line = text.lines().find(|line| line.contains("\"a/b\"")).unwrap();
    assert!(line.contains("\"error\""), "{line}");
}

#[test]
fn a_single_file_has_none_unless_it_is_named() {
    let ground = Ground::new();
    ground.write("from/a", b"a");
    let mut options = ground.options(&["from/a"], "file");
    assert_eq!(done(&options).manifest, None);
    assert!(!ground.at(MANIFEST_NAME).exists());
    options.destination = ground.at("other").into();
    options.manifest = crate::ManifestPlace::File(ground.at("list.jsonl"));
    assert!(done(&options).manifest.is_some());
    assert_eq!(verify(ground.dir.path(), &ground.at("list.jsonl")), [""; 0]);
}

/// The destination of a copy is copied itself: its manifest gives way to the new one.
#[test]
fn a_copy_of_a_copy_has_its_own() {
    let ground = Ground::new();
    tree(&ground);
    done(&ground.options(&["from"], "to"));
    let copied = done(&ground.options(&["to"], "again"));
    assert_eq!(copied.skipped, 1);
    let manifest = ground.at("again").join(MANIFEST_NAME);
    assert_eq!(verify(&ground.at("again"), &manifest), [""; 0]);
    std::fs::create_dir(ground.at("into")).unwrap();
    // Below the root it is a file like others.
    done(&ground.options(&["to"], "into"));
    assert!(ground.at("into/to").join(MANIFEST_NAME).exists());
    assert_eq!(
        verify(&ground.at("into"), &ground.at("into").join(MANIFEST_NAME)),
        [""; 0]
    );
}

/// A file in the manifest's place that cannot be carried on keeps its content.
#[test]
fn what_cannot_be_carried_on_gets_another_name() {
    let ground = Ground::new();
    tree(&ground);
    std::fs::create_dir(ground.at("into")).unwrap();
    ground.write("second/file", b"second");
    let manifest = ground.at("into").join(MANIFEST_NAME);
    std::fs::write(&manifest, b"a text of somebody").unwrap();
    done(&ground.options(&["from"], "into"));
    let aside = |nth: u32| ground.at("into").join(format!("{MANIFEST_NAME}-{nth}"));
    assert_eq!(std::fs::read(aside(1)).unwrap(), b"a text of somebody");
    let blake3 = std::fs::read(&manifest).unwrap();
    let mut options = ground.options(&["second"], "into");
    options.algorithm = bc_digest::Algorithm::from_name("sha256");
    done(&options);
    assert_eq!(std::fs::read(aside(2)).unwrap(), blake3);
    assert_eq!(verify(&ground.at("into"), &manifest), [""; 0]);
    assert_eq!(verify(&ground.at("into"), &aside(2)), [""; 0]);
}
