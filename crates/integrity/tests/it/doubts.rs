//! Files that are taken for the recorded ones, or for their damage, and files that are not.

use std::fs;
use std::os::unix::fs::MetadataExt;

use bc_integrity::change::Class;
use bc_integrity::{Conclusion, Damaged};
use bc_testkit::{TestTree, left_out};

use crate::support::{
    How, an_update, diffed, entry, lines, manifest_of, record, resealed, rot, updated, verified,
};
use crate::unreadable::done_as_nobody;

/// Returns the text of an update, and its result.
fn update(tree: &TestTree, manifest: &std::path::Path) -> (String, Conclusion, u64) {
    let (text, done) = updated(&an_update(tree.path().as_os_str(), manifest)).unwrap();
    (text, done.summary.conclusion(), done.summary.unread())
}

fn rename(tree: &TestTree, from: &str, to: &str) {
    fs::rename(tree.join(from), tree.join(to)).unwrap();
}

fn touch(tree: &TestTree, path: &str) {
    tree.mtime(path, 5000, 0);
}

/// The lines about files.
fn of_files(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("~m ")).collect()
}

/// As packages, images and chunks of one size are: size and time are equal, and the number of a
/// deleted file comes to the next one.
#[test]
fn a_new_file_with_the_number_of_a_deleted_one_is_new() {
    let tree = TestTree::new();
    tree.write("a", "old content").mtime("a", 1000, 0);
    let ino = tree.join("a").metadata().unwrap().ino();
    let manifest = record(&tree);
    tree.remove("a");
    // The clock of the kernel has to advance.
    let time = || {
        tree.write("tick", "");
        tree.join("tick").metadata().unwrap().ctime_nsec()
    };
    let before = time();
    while time() == before {}
    tree.remove("tick");
    let has_it = |n: &u32| {
        let name = format!("b{n}");
        tree.write(&name, "new content").mtime(&name, 1000, 0);
        tree.join(&name).metadata().unwrap().ino() == ino
    };
    let Some(n) = (0..500).find(has_it) else {
        return left_out("a file system that gives a number again at once");
    };
    let name = format!("b{n}");
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert!(!text.contains("!!") && !text.contains("possibly"), "{text}");
    assert!(text.contains("- a\n") && text.contains(&format!("+ {name}\n")));
    assert_eq!(summary.conclusion(), Conclusion::Different);
    let (text, conclusion, _) = update(&tree, &manifest);
    assert_eq!(conclusion, Conclusion::Different, "{text}");
    let now = fs::read(&manifest).unwrap();
    let fresh = manifest_of(tree.path());
    assert_eq!(entry(&now, &name)["digest"], entry(&fresh, &name)["digest"]);
    assert_eq!(verified(tree.path(), &manifest, How::default()).0, "");
}

/// Known damage, by the deed done to it afterwards.
#[test]
fn what_was_found_damaged_stays_damaged() {
    type Deed<'a> = (&'a str, &'a dyn Fn(&TestTree), &'a [&'a str]);
    let deeds: [Deed<'_>; 5] = [
        ("touch", &|t| touch(t, "f"), &["f"]),
        ("mv", &|t| rename(t, "f", "g"), &["g"]),
        (
            "mv and touch",
            &|t| {
                rename(t, "f", "g");
                touch(t, "g");
            },
            &["g"],
        ),
        (
            "mv, and a good copy in its place",
            &|t| {
                rename(t, "f", "f.bad");
                t.write("f", "content").mtime("f", 1000, 0);
            },
            &["f.bad"],
        ),
        // As a move looks where inode numbers do not last.
        (
            "cp and rm, over another file",
            &|t| {
                fs::copy(t.join("f"), t.join("other")).unwrap();
                t.remove("f");
            },
            &["other"],
        ),
    ];
    for (deed, act, bad) in deeds {
        let tree = TestTree::new();
        tree.write("f", "content").mtime("f", 1000, 0);
        tree.write("other", "something else").write("kept", "x");
        let manifest = record(&tree);
        rot(&tree, "f", 0, b'X');
        assert_eq!(update(&tree, &manifest).1, Conclusion::Damaged);
        act(&tree);
        // Every night, and by every command.
        for _ in 0..3 {
            let (reported, summary) = verified(tree.path(), &manifest, How::default());
            let (text, conclusion, _) = update(&tree, &manifest);
            for text in [&reported, &text] {
                for path in bad {
                    assert!(text.contains(&format!("!! {path}: ")), "{deed}: {text}");
                }
                assert_eq!(text.matches("!!").count(), bad.len(), "{deed}: {text}");
            }
            assert_eq!(summary.conclusion(), Conclusion::Damaged, "{deed}");
            assert_eq!(conclusion, Conclusion::Damaged, "{deed}");
        }
        let what = an_update(tree.path().as_os_str(), &manifest).damaged(Damaged::Accept);
        updated(&what).unwrap();
        assert_eq!(verified(tree.path(), &manifest, How::default()).0, "");
    }
}

#[test]
fn what_is_no_damage_any_more_is_none() {
    let tree = TestTree::new();
    tree.write("f", "content").mtime("f", 1000, 0);
    let manifest = record(&tree);
    rot(&tree, "f", 0, b'X');
    update(&tree, &manifest);
    let bad = fs::read(tree.join("f")).unwrap();
    // Other content with a new time is an edit.
    tree.write("f", "edited").mtime("f", 6000, 0);
    let (text, conclusion, _) = update(&tree, &manifest);
    assert_eq!(
        (of_files(&text), conclusion),
        ("~c f\n".to_owned(), Conclusion::Different)
    );
    assert_eq!(verified(tree.path(), &manifest, How::default()).0, "");
    // The recorded content is back, and a file that a restore has set aside is no new damage.
    rot(&tree, "f", 0, b'X');
    assert_eq!(update(&tree, &manifest).1, Conclusion::Damaged);
    let bad_again = fs::read(tree.join("f")).unwrap();
    assert_ne!(bad, bad_again);
    let digest = bc_digest::hash(bc_digest::Algorithm::Sha256, &bad_again).to_string();
    let aside = format!("f.damaged-{}", &digest[..8]);
    rename(&tree, "f", &aside);
    tree.write("f", "edited").mtime("f", 6000, 0);
    let (text, conclusion, _) = update(&tree, &manifest);
    assert_eq!(conclusion, Conclusion::Different, "{text}");
    assert_eq!(verified(tree.path(), &manifest, How::default()).0, "");
}

/// Content that a write to the wrong place has taken from a sound file is sound there.
#[test]
fn what_another_file_holds_by_right_is_no_damage_of_it() {
    let tree = TestTree::new();
    tree.write("f", "content f").write("g", "content g");
    tree.mtime("f", 1000, 0);
    let manifest = record(&tree);
    fs::copy(tree.join("g"), tree.join("f")).unwrap();
    tree.mtime("f", 1000, 0);
    assert_eq!(update(&tree, &manifest).1, Conclusion::Damaged);
    tree.write("new", "content g");
    let (text, _, _) = update(&tree, &manifest);
    assert!(
        text.contains("+ new\n") && text.contains("!! f: "),
        "{text}"
    );
}

/// Earlier versions recorded that a file is damaged, and not how.
#[test]
fn damage_that_is_not_recorded_is_told_from_no_edit() {
    let tree = TestTree::new();
    tree.write("f", "content").mtime("f", 1000, 0);
    let manifest = record(&tree);
    rot(&tree, "f", 0, b'X');
    update(&tree, &manifest);
    let bytes = fs::read(&manifest).unwrap();
    let earlier = resealed(&bytes, |lines| {
        for line in lines {
            let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry.as_object_mut().unwrap().remove("damaged_digest");
            *line = entry.to_string();
        }
    });
    assert_ne!(earlier, bytes);
    fs::write(&manifest, &earlier).unwrap();
    tree.mtime("f", 5000, 0);
    for _ in 0..2 {
        let what = an_update(tree.path().as_os_str(), &manifest);
        let (text, done) = updated(&what).unwrap();
        assert!(text.contains("~c f: was found damaged before"), "{text}");
        assert_eq!(done.summary.undecided, 1);
        let now = entry(&fs::read(&manifest).unwrap(), "f");
        assert_eq!(now["digest"], entry(&earlier, "f")["digest"]);
    }
}

#[test]
fn every_name_of_a_damaged_file_is_named() {
    let tree = TestTree::new();
    tree.write("a", "content").mtime("a", 1000, 0);
    tree.write("b", "content b").mtime("b", 1000, 0);
    let manifest = record(&tree);
    // Renamed and linked, or linked only.
    rot(&tree, "a", 0, b'X');
    rename(&tree, "a", "a1");
    tree.hard_link("a1", "a2").hard_link("a1", "d/a3");
    rot(&tree, "b", 0, b'X');
    tree.hard_link("b", "b1");
    for _ in 0..2 {
        let (reported, _) = verified(tree.path(), &manifest, How::default());
        let (text, _, _) = update(&tree, &manifest);
        for text in [reported, text] {
            for path in ["a1", "a2", "d/a3", "b", "b1"] {
                assert!(text.contains(&format!("!! {path}: ")), "{path}: {text}");
            }
        }
    }
}

#[test]
fn of_two_that_swap_names_the_sound_one_is_sound() {
    // Known before, or not.
    for is_known in [true, false] {
        let tree = TestTree::new();
        for name in ["a", "b"] {
            tree.write(name, format!("content {name}"))
                .mtime(name, 1000, 0);
        }
        let manifest = record(&tree);
        if is_known {
            rot(&tree, "a", 0, b'X');
            update(&tree, &manifest);
        }
        rename(&tree, "a", "spare");
        rename(&tree, "b", "a");
        rename(&tree, "spare", "b");
        if !is_known {
            rot(&tree, "b", 0, b'X');
        }
        for _ in 0..2 {
            let (reported, _) = verified(tree.path(), &manifest, How::default());
            let (text, conclusion, _) = update(&tree, &manifest);
            for text in [reported, text] {
                assert!(text.contains("!! b: "), "{text}");
                assert!(!text.contains("!! a"), "{text}");
            }
            assert_eq!(conclusion, Conclusion::Damaged);
        }
    }
}

/// A file moved over another one of its size and time is no damage of that.
#[test]
fn a_file_that_takes_the_name_of_its_like_is_no_damage() {
    let tree = TestTree::new();
    for name in ["a", "b", "c"] {
        tree.write(name, format!("content {name}"))
            .mtime(name, 1000, 0);
    }
    let manifest = record(&tree);
    rename(&tree, "b", "c");
    rename(&tree, "a", "b");
    let (reported, _) = verified(tree.path(), &manifest, How::default());
    let (text, _, _) = update(&tree, &manifest);
    for text in [reported, text] {
        assert_eq!(of_files(&text), "- a\n~c b\n~c c\n", "{text}");
    }
    assert_eq!(verified(tree.path(), &manifest, How::default()).0, "");
}

/// A content that another name has lost is damage where it has not come with its mtime: a rename
/// brings that along.
#[test]
fn a_content_of_another_file_with_the_time_of_this_one_is_damage() {
    for is_removed in [true, false] {
        let tree = TestTree::new();
        tree.write("keep", "k")
            .write("a", "content a")
            .write("b", "content b");
        tree.mtime("a", 1000, 0).mtime("b", 2000, 0);
        let manifest = record(&tree);
        tree.write("new", "content a").mtime("new", 2000, 0);
        rename(&tree, "new", "b");
        match is_removed {
            true => fs::remove_file(tree.join("a")).unwrap(),
            false => drop(tree.write("a", "content c").mtime("a", 3000, 0)),
        }
        let (reported, _) = verified(tree.path(), &manifest, How::default());
        let (text, conclusion, _) = update(&tree, &manifest);
        for text in [reported, text] {
            assert!(text.contains("!! b: "), "{is_removed} {text}");
        }
        assert_eq!(conclusion, Conclusion::Damaged, "{is_removed}");
    }
}

/// Nor is one that keeps its own name beside it, as `ln -f` leaves it, unless it is damaged itself.
#[test]
fn a_link_in_the_place_of_its_like_is_no_damage() {
    for (outside, rotten) in [(false, false), (true, false), (false, true), (true, true)] {
        let tree = TestTree::new();
        for name in ["a", "b"] {
            tree.write(name, format!("content {name}"))
                .mtime(name, 1000, 0);
        }
        let spare = tree.scratch("spare");
        if outside {
            // Its number of links stays the same.
            fs::hard_link(tree.join("a"), &spare).unwrap();
        }
        let manifest = record(&tree);
        let before = fs::read(&manifest).unwrap();
        if rotten {
            rot(&tree, "a", 0, b'X');
        }
        if !outside {
            fs::hard_link(tree.join("a"), &spare).unwrap();
        }
        fs::rename(&spare, tree.join("b")).unwrap();
        let (reported, _) = verified(tree.path(), &manifest, How::default());
        let now = manifest_of(tree.path());
        let (offline, _) = diffed(&before, &now, Default::default()).unwrap();
        let (text, conclusion, _) = update(&tree, &manifest);
        for text in [&reported, &offline, &text] {
            let text = &of_files(text);
            match rotten {
                false => assert!(text.starts_with("~c b") && !text.contains("!!"), "{text}"),
                true => assert!(text.contains("!! a: "), "{outside}: {text}"),
            }
        }
        for text in [&reported, &text] {
            assert_eq!(text.contains("!! b: "), rotten, "{outside}: {text}");
        }
        assert_eq!(conclusion == Conclusion::Damaged, rotten);
        let (after, _) = verified(tree.path(), &manifest, How::default());
        match rotten {
            false => assert_eq!(after, "", "{outside}"),
            true => assert!(
                after.contains("!! a: ") && after.contains("!! b: "),
                "{after}"
            ),
        }
    }
}

/// What is reported as damaged under a new name is not recorded as right there, though nothing but
/// its content shows that the file in its place is another one.
#[test]
fn damage_beside_a_file_of_its_size_and_time_is_not_recorded_as_right() {
    let tree = TestTree::new();
    tree.write("a", "content").mtime("a", 1000, 0);
    let manifest = record(&tree);
    let right = entry(&fs::read(&manifest).unwrap(), "a")["digest"].clone();
    rot(&tree, "a", 0, b'X');
    rename(&tree, "a", "b");
    tree.write("a", "another").mtime("a", 1000, 0);
    // A copy of it is none that is right, either.
    tree.write("c", "Xontent");
    for _ in 0..2 {
        let (text, conclusion, _) = update(&tree, &manifest);
        assert_eq!(conclusion, Conclusion::Damaged);
        let now = fs::read(&manifest).unwrap();
        for path in ["b", "c"] {
            assert!(text.contains(&format!("!! {path}: ")), "{path}: {text}");
            assert_eq!(entry(&now, path)["digest"], right, "{path}");
            assert_eq!(entry(&now, path)["found"], "damaged", "{path}");
        }
    }
}

#[test]
fn another_kind_that_cannot_be_read_is_named_at_once() {
    if done_as_nobody("doubts::another_kind_that_cannot_be_read_is_named_at_once") {
        return;
    }
    let tree = TestTree::new();
    tree.write("kept", "x");
    tree.write("file", "1")
        .write("dir/below", "2")
        .symlink("file", "link");
    let manifest = record(&tree);
    tree.remove("file").dir("file").mode("file", 0);
    fs::remove_dir_all(tree.join("dir")).unwrap();
    tree.write("dir", "3").mode("dir", 0);
    tree.remove("link").write("link", "4").mode("link", 0);
    let denied = "open: Permission denied (os error 13)\n";
    for run in ["first", "second"] {
        let (text, conclusion, unread) = update(&tree, &manifest);
        assert_eq!(
            (conclusion, unread),
            (Conclusion::Different, 3),
            "{run}: {text}"
        );
        for path in ["file", "dir", "link"] {
            let line = text.lines().find(|line| line[3..].starts_with(path));
            let ends = line.is_some_and(|line| line.ends_with(denied.trim_end()));
            assert!(ends, "{run}: {path}: {text}");
        }
    }
    tree.mode("file", 0o755)
        .mode("dir", 0o644)
        .mode("link", 0o644);
}

/// The note that an update has written is read with its meaning.
#[test]
fn the_damaged_content_is_in_the_manifest() {
    let tree = TestTree::new();
    tree.write("f", "content").mtime("f", 1000, 0);
    let manifest = record(&tree);
    let good = entry(&fs::read(&manifest).unwrap(), "f")["digest"].clone();
    rot(&tree, "f", 0, b'X');
    let (_, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    assert_eq!(done.summary.count(Class::Damaged), 1);
    let now = fs::read(&manifest).unwrap();
    let found = bc_digest::hash(bc_digest::Algorithm::Sha256, b"Xontent").to_string();
    assert_eq!(entry(&now, "f")["digest"], good);
    assert_eq!(entry(&now, "f")["damaged_digest"], found);
    assert!(lines(&now).iter().all(|line| line["unproven"].is_null()));
}

/// A copy of what is damaged is no sound file, though it is recorded in the very run that finds the
/// damage, before it or behind it in order.
#[test]
fn a_copy_of_what_is_found_damaged_is_damaged_too() {
    for rewritten in [false, true] {
        let tree = TestTree::new();
        tree.write("m", "the only good copy").write("keep", "k");
        for path in ["a", "z"] {
            if rewritten {
                tree.write(path, "something else").mtime(path, 5, 5);
            }
        }
        let manifest = record(&tree);
        let right = entry(&std::fs::read(&manifest).unwrap(), "m")["digest"].clone();
        rot(&tree, "m", 0, b'#');
        let bad = tree.read("m");
        tree.write("a", &bad).write("z", &bad);
        let what = an_update(tree.path().as_os_str(), &manifest);
        let (text, done) = updated(&what).unwrap();
        for path in ["a", "z"] {
            let line = format!("!! {path}: the content that was found damaged before, as m");
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert_eq!(done.summary.count(Class::Damaged), 3, "{text}");
        let now = std::fs::read(&manifest).unwrap();
        for path in ["a", "m", "z"] {
            let entry = entry(&now, path);
            assert_eq!(entry["found"], "damaged", "{path}");
            assert_eq!(entry["digest"], right, "{path}");
        }
        // And so it stays, whatever name and time it has.
        rename(&tree, "m", "c");
        tree.mtime("c", 9, 9);
        let (text, _) = updated(&what).unwrap();
        assert!(text.contains("!! c: "), "{text}");
        let (_, summary) = verified(tree.path(), &manifest, How::default());
        assert_eq!(summary.count(Class::Damaged), 3);
    }
}

/// A write that went to the wrong file leaves the content of another one, of which a new copy is as
/// sound as that.
#[test]
fn a_copy_of_a_sound_content_is_sound_wherever_else_that_went() {
    let tree = TestTree::new();
    tree.write("a", "content of a").write("b", "content of b");
    let manifest = record(&tree);
    rot(&tree, "a", 11, b'b');
    assert_eq!(tree.read("a"), tree.read("b"));
    tree.write("copy", "content of b");
    let (text, done) = updated(&an_update(tree.path().as_os_str(), &manifest)).unwrap();
    assert_eq!(done.summary.count(Class::Damaged), 1, "{text}");
    assert!(text.contains("+ copy\n"), "{text}");
    let now = std::fs::read(&manifest).unwrap();
    assert!(entry(&now, "copy")["found"].is_null());
}

/// Two files that swapped their names by copies are recorded as what is said of them: moved.
#[test]
fn names_swapped_by_copies_are_recorded_as_moved() {
    let tree = TestTree::new();
    tree.write("keep", "k")
        .write("1", "track one")
        .write("2", "track two");
    tree.mtime("1", 5, 5).mtime("2", 5, 5);
    let manifest = record(&tree);
    tree.write("n1", "track two").write("n2", "track one");
    for (new, name) in [("n1", "1"), ("n2", "2")] {
        tree.mtime(new, 5, 5);
        rename(&tree, new, name);
    }
    let what = an_update(tree.path().as_os_str(), &manifest);
    let (text, done) = updated(&what).unwrap();
    assert!(
        text.contains("> 1 -> 2\n") && text.contains("> 2 -> 1\n"),
        "{text}"
    );
    assert_eq!(done.summary.conclusion(), Conclusion::Different);
    let (text, done) = updated(&what).unwrap();
    assert_eq!(text, "");
    assert_eq!(done.written, None);
    let (now, fresh) = (std::fs::read(&manifest).unwrap(), manifest_of(tree.path()));
    for path in ["1", "2"] {
        assert!(entry(&now, path)["found"].is_null());
        for key in ["digest", "ino", "ctime_ns"] {
            assert_eq!(
                entry(&now, path)[key],
                entry(&fresh, path)[key],
                "{path} {key}"
            );
        }
    }
}

/// A file that took the name of one of its size and time is an edit, on a disk that has another
/// number than it had, too.
#[test]
fn what_took_a_name_is_recorded_where_devices_have_other_numbers() {
    let tree = TestTree::new();
    let dir = std::fs::File::open(tree.path()).unwrap();
    let traits = bc_fs::mount::traits_or_unknown(&dir, tree.path().metadata().unwrap().dev());
    if traits.inodes != bc_fs::mount::Inodes::Stable {
        return left_out("a file system with lasting inode numbers");
    }
    tree.write("keep", "k")
        .write("a", "track 1")
        .write("g", "track 2");
    tree.mtime("a", 5, 5).mtime("g", 5, 5);
    let manifest = record(&tree);
    let bytes = resealed(&std::fs::read(&manifest).unwrap(), |lines| {
        let mut header: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        header["root_dev"] = (header["root_dev"].as_u64().unwrap() + 1).into();
        lines[0] = header.to_string();
    });
    std::fs::write(&manifest, bytes).unwrap();
    rename(&tree, "a", "g");
    let what = an_update(tree.path().as_os_str(), &manifest);
    let (text, done) = updated(&what).unwrap();
    assert!(text.contains("~c g\n"), "{text}");
    assert_eq!(done.summary.conclusion(), Conclusion::Different, "{text}");
    let (now, fresh) = (std::fs::read(&manifest).unwrap(), manifest_of(tree.path()));
    assert!(entry(&now, "g")["found"].is_null());
    assert_eq!(entry(&now, "g")["digest"], entry(&fresh, "g")["digest"]);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
}

/// What a restore has put aside is a file that was added, by whatever name the healed one is recorded.
#[test]
fn a_second_name_is_no_new_damage() {
    let tree = TestTree::new();
    tree.write("keep", "k")
        .write("n", "good content")
        .mtime("n", 5, 5);
    let manifest = record(&tree);
    rot(&tree, "n", 1, b'#');
    let digest = bc_digest::hash(bc_digest::Algorithm::Sha256, &tree.read("n"));
    let second = format!("n2{}", bc_integrity::second_ending(Some(digest)));
    // Renamed, and healed under its new name.
    rename(&tree, "n", &second);
    tree.write("n2", "good content").mtime("n2", 5, 5);
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert_eq!(summary.conclusion(), Conclusion::Different, "{text}");
    assert!(text.contains("> n -> n2\n"), "{text}");
    assert!(text.contains(&format!("+ {second}\n")), "{text}");
    let (text, conclusion, _) = update(&tree, &manifest);
    assert_eq!(conclusion, Conclusion::Different, "{text}");
    let now = fs::read(&manifest).unwrap();
    assert!(entry(&now, &second)["found"].is_null());
    let (text, summary) = verified(tree.path(), &manifest, How::default());
    assert_eq!((&text[..], summary.conclusion()), ("", Conclusion::Same));
    let (text, conclusion, _) = update(&tree, &manifest);
    assert_eq!((&text[..], conclusion), ("", Conclusion::Same));
}
