//! Unreadable files: recorded with the reason, never mistaken for removed, never a reason to forget
//! a digest. Root can read everything, so as root these tests run once more as nobody.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bc_integrity::change::Class;
use bc_integrity::fields::CompareMode;
use bc_integrity::{Conclusion, Damaged};
use bc_testkit::{TestTree, as_nobody, copy_program, is_root, words_of};

use crate::support::{
    How, an_update, diffed, entry, lines, manifest_of, mode, record, recorded, rot, updated,
    verified,
};

/// As root: runs this test as nobody, in a copy of the test program that nobody can reach, and
/// returns true if there is nothing more to do.
pub fn done_as_nobody(test: &str) -> bool {
    if !is_root() {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("tests");
    copy_program(&std::env::current_exe().unwrap(), &program).unwrap();
    let words = words_of(program);
    let mut command = Command::new(&words[0]);
    command
        .current_dir(dir.path())
        .args(&words[1..])
        .args(["--exact", test]);
    let output = as_nobody(&mut command).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    true
}

fn sample() -> TestTree {
    let tree = TestTree::new();
    tree.write("open", "1")
        .write("secret", "22")
        .write("vault/in", "333")
        .write("vault/sub/x", "4");
    tree
}

fn lock(tree: &TestTree) {
    tree.mode("secret", 0).mode("vault", 0);
}

fn unlock(tree: &TestTree) {
    tree.mode("secret", 0o644).mode("vault", 0o755);
}

#[test]
fn recorded_with_the_reason() {
    if done_as_nobody("unreadable::recorded_with_the_reason") {
        return;
    }
    let tree = sample();
    lock(&tree);
    let manifest = manifest_of(tree.path());
    unlock(&tree);
    let secret = entry(&manifest, "secret");
    assert_eq!(secret["error"]["op"], "open");
    assert_eq!(secret["error"]["errno"], 13);
    assert!(secret["digest"].is_null());
    assert_eq!(secret["size"], 2);
    let vault = entry(&manifest, "vault");
    assert_eq!(vault["error"]["errno"], 13);
    assert_eq!(lines(&manifest).last().unwrap()["errors"], 2);
    assert_eq!(lines(&manifest).len(), 2 + 4);
}

#[test]
fn permission_lost_is_no_removal() {
    if done_as_nobody("unreadable::permission_lost_is_no_removal") {
        return;
    }
    let tree = sample();
    let manifest = record(&tree);
    lock(&tree);
    for mode_of in [CompareMode::Strict, CompareMode::Content] {
        let (text, summary) = verified(tree.path(), &manifest, mode(mode_of));
        let expected = "\
            ?? secret: open: Permission denied (os error 13)\n\
            ?? vault: open: Permission denied (os error 13)\n\
            ?? vault/in: in vault: open: Permission denied (os error 13)\n\
            ?? vault/sub: in vault: open: Permission denied (os error 13)\n\
            ?? vault/sub/x: in vault: open: Permission denied (os error 13)\n";
        assert_eq!(text, expected);
        assert_eq!(summary.count(Class::Unreadable), 5);
        assert_eq!(summary.unseen, 3);
        assert_eq!(summary.conclusion(), Conclusion::Different);
    }
    // Without content there is nothing to read of the file.
    let (text, _) = verified(tree.path(), &manifest, mode(CompareMode::Meta));
    assert!(
        text.starts_with("~m secret mode: 0644 -> 0000\n?? vault: "),
        "{text}"
    );
    unlock(&tree);
}

#[test]
fn an_update_keeps_what_it_cannot_read() {
    if done_as_nobody("unreadable::an_update_keeps_what_it_cannot_read") {
        return;
    }
    let tree = sample();
    let manifest = record(&tree);
    let before = std::fs::read(&manifest).unwrap();
    lock(&tree);
    tree.write("new", "5");
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    assert!(
        text.contains("?? secret: ") && text.contains("+ new\n"),
        "{text}"
    );
    assert_eq!(done.summary.conclusion(), Conclusion::Different);
    let now = std::fs::read(&manifest).unwrap();
    for path in ["secret", "vault", "vault/in", "vault/sub", "vault/sub/x"] {
        let mut kept = recorded(&now, path);
        // The entry below the directory was not looked at, and notes that.
        let unseen = kept.as_object_mut().unwrap().remove("unseen_at");
        assert_eq!(unseen.is_some(), path.starts_with("vault/"), "{path}");
        assert_eq!(kept, entry(&before, path), "{path}");
    }
    unlock(&tree);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

/// Unreadable directories are noted in the manifests: two manifests give the same as a tree and
/// one, in either direction.
#[test]
fn two_manifests_say_what_a_tree_does() {
    if done_as_nobody("unreadable::two_manifests_say_what_a_tree_does") {
        return;
    }
    let tree = sample();
    tree.write("vault-beside", "5");
    let path = record(&tree);
    let open = std::fs::read(&path).unwrap();
    tree.write("vault/new", "6").mode("vault", 0);
    let locked = manifest_of(tree.path());
    let below = |reason: &str| {
        let line =
            |path: &str| format!("?? vault{path}: {reason}open: Permission denied (os error 13)\n");
        let [dir, below @ ..] = ["", "/in", "/new", "/sub", "/sub/x"].map(line);
        (dir, below)
    };
    for mode_of in CompareMode::ALL {
        let how = mode(mode_of);
        let (text, verified) = verified(tree.path(), &path, how);
        let (dir, _) = below("");
        let (_, [inside, _, sub, x]) = below("in vault: ");
        let unlisted = [dir.clone(), inside, sub, x].concat();
        assert!(text.ends_with(&unlisted), "{text}");
        let (reported, summary) = diffed(&open, &locked, how.rules).unwrap();
        assert_eq!(reported, text);
        assert_eq!(
            summary.count(Class::Unreadable),
            verified.count(Class::Unreadable)
        );
        assert_eq!(
            (summary.unseen, summary.conclusion()),
            (3, Conclusion::Different)
        );
    }
    std::fs::write(&path, &locked).unwrap();
    tree.mode("vault", 0o755);
    let now = manifest_of(tree.path());
    for mode_of in CompareMode::ALL {
        let how = mode(mode_of);
        let (text, verified) = verified(tree.path(), &path, how);
        let (dir, _) = below("no content recorded: ");
        let (_, unrecorded) = below("not recorded: in vault: ");
        let unrecorded = [vec![dir], unrecorded.to_vec()].concat().concat();
        assert_eq!(text, unrecorded);
        let (reported, summary) = diffed(&locked, &now, how.rules).unwrap();
        assert_eq!(reported, text);
        assert_eq!((summary.unrecorded, summary.added_unread), (4, 0));
        assert_eq!(summary.unrecorded, verified.unrecorded);
        assert_eq!(summary.conclusion(), Conclusion::Different);
        // All of it can be read now.
        assert_eq!(summary.unread(), 0);
    }
    // An update records it, and has no more to say.
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &path)).unwrap();
    assert!(
        text.contains("+ vault/new: readable now; before: in vault: "),
        "{text}"
    );
    assert_eq!(done.summary.unread(), 0);
    assert_eq!(verified(tree.path(), &path, How::default()).0, "");
}

/// A file that was moved to where nothing could be looked at is recognised again, damaged or not.
#[test]
fn moved_below_what_was_unreadable() {
    if done_as_nobody("unreadable::moved_below_what_was_unreadable") {
        return;
    }
    let tree = TestTree::new();
    tree.write("a", "content a")
        .write("b", "content b")
        .dir("vault")
        .mode("vault", 0);
    let path = record(&tree);
    tree.mode("vault", 0o755);
    for name in ["a", "b"] {
        std::fs::rename(tree.join(name), tree.join("vault").join(name)).unwrap();
    }
    rot(&tree, "vault/b", 0, b'X');
    let (text, summary) = verified(tree.path(), &path, How::default());
    assert!(text.contains("> a -> vault/a\n"), "{text}");
    assert!(text.contains("> b -> vault/b\n!! vault/b: "), "{text}");
    assert_eq!((summary.unrecorded, summary.readable_now), (0, 1));
    let (_, done) = updated(&an_update(tree.path().as_os_str(), &path)).unwrap();
    assert_eq!(done.summary.conclusion(), Conclusion::Damaged);
    assert_eq!(
        verified(tree.path(), &path, How::default()).1.conclusion(),
        Conclusion::Damaged
    );
}

/// Damage is named at its new name, though what has the old one, or had the new one, cannot be read.
#[test]
fn names_exchanged_with_what_cannot_be_read() {
    if done_as_nobody("unreadable::names_exchanged_with_what_cannot_be_read") {
        return;
    }
    // Closed before the record or after it, and damaged before or after.
    for (recorded, known) in [(true, true), (true, false), (false, true), (false, false)] {
        let tree = TestTree::new();
        tree.write("bad", "content").mtime("bad", 1000, 0);
        tree.write("closed", "another").mtime("closed", 1000, 0);
        if !recorded {
            tree.mode("closed", 0);
        }
        let manifest = record(&tree);
        let right = entry(&std::fs::read(&manifest).unwrap(), "bad")["digest"].clone();
        let what = an_update(tree.path().as_os_str(), &manifest);
        if known {
            rot(&tree, "bad", 0, b'X');
            updated(&what).unwrap();
        }
        for (from, to) in [("bad", "spare"), ("closed", "bad"), ("spare", "closed")] {
            std::fs::rename(tree.join(from), tree.join(to)).unwrap();
        }
        tree.mode("bad", 0);
        if !known {
            rot(&tree, "closed", 0, b'X');
        }
        let case = format!("{recorded} {known}");
        for _ in 0..2 {
            let (reported, _) = verified(tree.path(), &manifest, How::default());
            let (text, done) = updated(&what).unwrap();
            for text in [reported, text] {
                assert!(text.contains("!! closed: "), "{case}: {text}");
                assert!(text.contains("?? bad: "), "{case}: {text}");
            }
            assert_eq!(done.summary.unread(), 1, "{case}");
            assert_eq!(done.summary.count(Class::Damaged), 1, "{case}");
            let now = std::fs::read(&manifest).unwrap();
            assert_eq!(entry(&now, "closed")["digest"], right, "{case}");
            assert_eq!(entry(&now, "closed")["found"], "damaged", "{case}");
        }
    }
}

/// A copy of what is damaged, where nothing could be read before.
#[test]
fn damage_copied_over_what_could_not_be_read() {
    if done_as_nobody("unreadable::damage_copied_over_what_could_not_be_read") {
        return;
    }
    let tree = TestTree::new();
    tree.write("bad", "content")
        .write("copy", "another")
        .mode("copy", 0);
    let manifest = record(&tree);
    rot(&tree, "bad", 0, b'X');
    tree.mode("copy", 0o644).write("copy", "Xontent");
    let what = an_update(tree.path().as_os_str(), &manifest);
    for _ in 0..2 {
        let (text, done) = updated(&what).unwrap();
        let (reported, _) = verified(tree.path(), &manifest, How::default());
        for text in [reported, text] {
            assert!(text.contains("!! copy: "), "{text}");
        }
        assert_eq!(done.summary.count(Class::Damaged), 2);
    }
}

/// What is known to be damaged stays so while it cannot be read, whatever its names are and though
/// a good copy has its old one.
#[test]
fn damage_set_aside_unread_is_not_forgotten() {
    if done_as_nobody("unreadable::damage_set_aside_unread_is_not_forgotten") {
        return;
    }
    for names in [&["f", "g"][..], &["f", "g", "h"]] {
        let tree = TestTree::new();
        tree.write("f", "content").mtime("f", 1000, 0);
        tree.write("kept", "x");
        let manifest = record(&tree);
        let right = entry(&std::fs::read(&manifest).unwrap(), "f")["digest"].clone();
        let what = an_update(tree.path().as_os_str(), &manifest);
        rot(&tree, "f", 0, b'X');
        updated(&what).unwrap();
        tree.mode("f", 0);
        updated(&what).unwrap();
        for pair in names.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            std::fs::rename(tree.join(from), tree.join(to)).unwrap();
            tree.write(from, "content").mtime(from, 1000, 0);
            let (text, done) = updated(&what).unwrap();
            assert_eq!(done.summary.unread(), 1, "{text}");
        }
        let last = names[names.len() - 1];
        tree.mode(last, 0o644);
        for _ in 0..2 {
            let (reported, _) = verified(tree.path(), &manifest, How::default());
            let (text, _) = updated(&what).unwrap();
            for text in [reported, text] {
                assert!(text.contains(&format!("!! {last}: ")), "{text}");
                assert_eq!(text.matches("!!").count(), 1, "{text}");
            }
            let now = std::fs::read(&manifest).unwrap();
            assert_eq!(entry(&now, last)["digest"], right);
        }
    }
}

/// The record of a file does not stay behind under a name that has another one, which cannot be
/// read: what was accepted of it elsewhere would be damage again once it is back.
#[test]
fn accepted_elsewhere_is_accepted() {
    if done_as_nobody("unreadable::accepted_elsewhere_is_accepted") {
        return;
    }
    // Of the same size and time, or of others.
    for time in [1000, 2000] {
        let tree = TestTree::new();
        tree.write("f", "content").mtime("f", 1000, 0);
        let manifest = record(&tree);
        let what = an_update(tree.path().as_os_str(), &manifest).damaged(Damaged::Accept);
        rot(&tree, "f", 0, b'X');
        std::fs::rename(tree.join("f"), tree.join("g")).unwrap();
        tree.write("f", "another").mtime("f", time, 0).mode("f", 0);
        let (text, _) = updated(&what).unwrap();
        assert!(text.contains("!! g: "), "{text}");
        std::fs::rename(tree.join("g"), tree.join("f")).unwrap();
        let (text, _) = verified(tree.path(), &manifest, How::default());
        assert!(!text.contains("!!"), "{time}: {text}");
    }
}

#[test]
fn names_without_stat() {
    if done_as_nobody("unreadable::names_without_stat") {
        return;
    }
    let tree = sample();
    let manifest = record(&tree);
    // Its names can be listed, nothing else.
    tree.mode("vault", 0o444);
    let recorded = manifest_of(tree.path());
    let (text, _) = verified(tree.path(), &manifest, mode(CompareMode::Content));
    tree.mode("vault", 0o755);
    assert!(
        text.contains("?? vault/in: stat: Permission denied"),
        "{text}"
    );
    assert!(!text.contains("- vault"), "{text}");
    let inside = entry(&recorded, "vault/in");
    assert_eq!(inside["error"]["op"], "stat");
    assert!(inside["size"].is_null());
}
