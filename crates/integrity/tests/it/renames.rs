//! Renamed directories as one change.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use bc_integrity::change::{Change, Class};
use bc_integrity::compare::Renames;
use bc_integrity::report::{ChangeFormat, ChangeReport};
use bc_integrity::{ComparisonSummary, ManifestFile, VerifyOptions, verify};
use bc_testkit::{Rng, TestTree};

use crate::support::{record, rot, with_work};

/// Returns the lines of a verification, the changes behind them, and the counts.
fn verified(
    tree: &TestTree,
    manifest: &std::path::Path,
    renames: Renames,
) -> (String, Vec<Change>, ComparisonSummary) {
    let manifest = ManifestFile::open(manifest).unwrap();
    let what = VerifyOptions::new(tree.path().as_os_str(), &manifest).renames(renames);
    let mut report = ChangeReport::new(Vec::new(), ChangeFormat::Text);
    let mut changes = Vec::new();
    let verified = with_work(2, |work| {
        verify(&what, work, &mut |change: &Change| {
            changes.push(change.clone());
            report.change(change)
        })
    });
    let summary = verified.unwrap().summary;
    assert!(summary.reconciles(), "{summary:?}");
    let text = String::from_utf8(report.end(&summary).unwrap()).unwrap();
    (text, changes, summary)
}

/// Returns the lines, after a check that each moved entry is in one of them.
fn lines(tree: &TestTree, manifest: &std::path::Path) -> String {
    let (text, changes, summary) = verified(tree, manifest, Renames::Directories);
    for class in Class::ALL {
        let of_class = changes.iter().filter(|change| change.class == class);
        let reported: u64 = of_class.map(|change| 1 + change.entries.unwrap_or(0)).sum();
        let counted = summary.count(class);
        assert!(class == Class::Ok || reported == counted, "{class}: {text}");
    }
    let (_, each, of_each) = verified(tree, manifest, Renames::Entries);
    assert!(each.iter().all(|change| change.entries.is_none()));
    for class in [Class::Modified, Class::Damaged, Class::Meta, Class::Ok] {
        assert_eq!(summary.count(class), of_each.count(class), "{class}");
    }
    text
}

/// A directory with files, an empty one, a link and a directory.
fn album() -> TestTree {
    let tree = TestTree::new();
    tree.write("a/x/1", "one")
        .write("a/x/2", "two")
        .write("a/x/empty", "")
        .write("a/x/deep/3", "three")
        .write("a/other", "other");
    tree.dir("a/x/nothing");
    tree.symlink("1", "a/x/link");
    tree.mode("a/x/1", 0o644).mode("a/x/deep", 0o755);
    tree
}

/// Changes a tree, and gives the directories their times back, as far as they are still there.
fn keep_times(tree: &TestTree, dirs: &[&str], change: impl FnOnce()) {
    let open = |dir: &&str| std::fs::File::open(tree.join(dir));
    let before = dirs.iter().map(|dir| open(dir)?.metadata()?.modified());
    let before: Vec<_> = before.collect::<std::io::Result<_>>().unwrap();
    change();
    for (dir, time) in dirs.iter().zip(before) {
        if let Ok(dir) = open(dir) {
            dir.set_modified(time).unwrap();
        }
    }
}

fn rename(tree: &TestTree, from: &str, to: &str) {
    std::fs::rename(tree.join(from), tree.join(to)).unwrap();
}

#[test]
fn a_renamed_directory_is_one_line() {
    let tree = album();
    let manifest = record(&tree);
    keep_times(&tree, &["a"], || rename(&tree, "a/x", "a/y"));
    assert_eq!(lines(&tree, &manifest), "> a/x/ -> a/y/ (7 entries)\n");
    // To another place, and before everything that stayed.
    keep_times(&tree, &["a", "."], || rename(&tree, "a/y", "0"));
    assert_eq!(lines(&tree, &manifest), "> a/x/ -> 0/ (7 entries)\n");
}

#[test]
fn what_did_not_move_along_is_listed_below() {
    let tree = album();
    let manifest = record(&tree);
    keep_times(&tree, &["a"], || rename(&tree, "a/x", "a/y"));
    keep_times(&tree, &["a/y"], || {
        tree.write("a/y/new", "new")
            .remove("a/y/2")
            .remove("a/y/link");
        tree.symlink("2", "a/y/link");
    });
    tree.mode("a/y/1", 0o600).mode("a/y/deep", 0o700);
    rot(&tree, "a/y/deep/3", 0, b'X');
    let text = lines(&tree, &manifest);
    let expected = [
        "+ a/y/link",
        "+ a/y/new",
        "> a/x/ -> a/y/ (2 entries)",
        "> a/x/1 -> a/y/1 mode: 0644 -> 0600",
        "- a/x/2",
        "> a/x/deep -> a/y/deep mode: 0755 -> 0700",
        "> a/x/deep/3 -> a/y/deep/3",
        "!! a/y/deep/3: ctime changed, probably a rewrite with its mtime reset",
        "- a/x/link",
    ];
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_directory_is_renamed_once() {
    // Half of it went here, half there, and two became one.
    let tree = TestTree::new();
    for name in ["a", "b", "c", "d"] {
        tree.write(format!("old/{name}"), name);
    }
    tree.write("m1/p", "p")
        .write("m1/q", "q")
        .write("m2/r", "r");
    let manifest = record(&tree);
    keep_times(&tree, &["."], || {
        for (from, to) in [
            ("old/a", "n1/a"),
            ("old/b", "n1/b"),
            ("old/c", "n2/c"),
            ("old/d", "n2/d"),
            ("m1/p", "merged/p"),
            ("m1/q", "merged/q"),
            ("m2/r", "merged/r"),
        ] {
            std::fs::create_dir_all(tree.join(to).parent().unwrap()).unwrap();
            rename(&tree, from, to);
        }
        for dir in ["old", "m1", "m2"] {
            std::fs::remove_dir(tree.join(dir)).unwrap();
        }
    });
    let text = lines(&tree, &manifest);
    let without_times = |line: &str| line.split(" mtime").next().unwrap().to_owned();
    let found: Vec<String> = text.lines().map(without_times).collect();
    let expected = [
        "> m1/ -> merged/ (2 entries)",
        "- m2",
        "> m2/r -> merged/r",
        "+ n2",
        "> old/ -> n1/ (2 entries)",
        "> old/c -> n2/c",
        "> old/d -> n2/d",
    ];
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_name_that_another_directory_took_over_is_one_of_them() {
    // Two directories are renamed, the second to the name of a removed one in the first.
    let tree = TestTree::new();
    for name in ["f1", "f2", "f3"] {
        tree.write(format!("photos/{name}"), name);
    }
    tree.write("photos/2024/g", "g")
        .write("photos/2024/empty", "")
        .write("new/h1", "h1")
        .write("new/h2", "h2")
        .write("new/empty", "");
    let manifest = record(&tree);
    rename(&tree, "photos", "album");
    std::fs::remove_dir_all(tree.join("album/2024")).unwrap();
    rename(&tree, "new", "album/2024");
    let text = lines(&tree, &manifest);
    let removed = text.lines().filter(|line| line.starts_with("- "));
    assert_eq!(
        removed.collect::<Vec<_>>(),
        ["- photos/2024", "- photos/2024/empty", "- photos/2024/g"],
        "{text}"
    );
    assert!(text.contains("> new/ -> album/2024/ (3 entries)"), "{text}");
}

#[test]
fn few_files_of_a_directory_rename_nothing() {
    let tree = TestTree::new();
    for name in ["a", "b", "c"] {
        tree.write(format!("old/{name}"), name);
    }
    let manifest = record(&tree);
    keep_times(&tree, &["."], || {
        tree.write("new/a", "a");
        std::fs::remove_dir_all(tree.join("old")).unwrap();
    });
    let text = lines(&tree, &manifest);
    assert!(
        text.starts_with("+ new\n- old\n> old/a -> new/a mtime"),
        "{text}"
    );
    // A directory that is still there was not renamed either.
    let tree = TestTree::new();
    tree.write("old/a", "a").write("old/b", "b");
    let manifest = record(&tree);
    keep_times(&tree, &[".", "old"], || {
        tree.dir("new");
        rename(&tree, "old/a", "new/a");
        rename(&tree, "old/b", "new/b");
    });
    let text = lines(&tree, &manifest);
    assert_eq!(text, "+ new\n> old/a -> new/a\n> old/b -> new/b\n");
}

#[test]
fn a_directory_that_went_elsewhere_from_a_renamed_one() {
    let tree = TestTree::new();
    for name in ["1", "2", "3"] {
        tree.write(format!("old/{name}"), name)
            .write(format!("old/sub/{name}"), format!("below {name}"));
    }
    tree.write("old/sub/4", "more");
    tree.dir("to");
    let manifest = record(&tree);
    keep_times(&tree, &[".", "to"], || {
        keep_times(&tree, &["old"], || rename(&tree, "old/sub", "to/sub"));
        rename(&tree, "old", "new");
    });
    let text = lines(&tree, &manifest);
    assert_eq!(
        text,
        "> old/ -> new/ (3 entries)\n> old/sub/ -> to/sub/ (4 entries)\n"
    );
}

/// What is found at each path of a tree: all that the default rules compare.
fn states(tree: &TestTree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![String::new()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(tree.join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{dir}{name}");
            let meta = entry.metadata().unwrap();
            let content = match meta.is_symlink() {
                true => format!("{:?}", std::fs::read_link(entry.path())),
                false => format!("{:?}", std::fs::read(entry.path()).ok()),
            };
            let mtime = meta.modified().unwrap();
            let state = format!(
                "{:?} {:o} {mtime:?} {content}",
                meta.file_type(),
                meta.mode()
            );
            if meta.is_dir() {
                dirs.push(format!("{path}/"));
            }
            found.insert(path, state);
        }
    }
    found
}

/// Does something to a tree.
fn change(tree: &TestTree, rng: &mut Rng) {
    let mut all: Vec<String> = states(tree).into_keys().collect();
    if rng.below(2) == 0 {
        all.retain(|path| tree.join(path).is_dir());
    }
    let Some(path) = all.get(rng.below(all.len().max(1) as u64) as usize) else {
        return;
    };
    // Beside an entry that there is, under a name that may be new.
    let beside = &all[rng.below(all.len() as u64) as usize];
    let name = ["a", "b", "e", "f", "g"][rng.below(5) as usize];
    let to = match beside.rsplit_once('/') {
        Some((above, _)) => format!("{above}/{name}"),
        None => name.to_owned(),
    };
    let above = tree.join(&to).parent().unwrap().to_owned();
    let is_free = tree.join(&to).symlink_metadata().is_err() && above.is_dir();
    let is_below = to.starts_with(&format!("{path}/"));
    match rng.below(8) {
        // Either fails on entries of the other kind.
        0 => drop(std::fs::remove_file(tree.join(path))),
        1 => drop(std::fs::remove_dir_all(tree.join(path))),
        2 if is_free => {
            tree.write(&to, "new");
        }
        3 if tree.join(path).is_file() && !tree.join(path).is_symlink() => {
            tree.mode(path, 0o600);
        }
        _ if is_free && !is_below => {
            let dirs = [above, tree.join(path).parent().unwrap().to_owned()];
            let before = dirs
                .clone()
                .map(|dir| dir.metadata().unwrap().modified().unwrap());
            rename(tree, path, &to);
            for (dir, time) in dirs.iter().zip(before) {
                if let Ok(dir) = std::fs::File::open(dir) {
                    dir.set_modified(time).unwrap();
                }
            }
        }
        _ => {}
    }
}

fn random_path(rng: &mut Rng) -> String {
    let depth = 1 + rng.below(3);
    let names = (0..depth).map(|_| ["a", "b", "c", "d"][rng.below(4) as usize]);
    names.collect::<Vec<_>>().join("/")
}

#[test]
fn every_entry_of_a_renamed_directory_is_where_that_says() {
    let mut renamed = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let tree = TestTree::new();
        for _ in 0..25 {
            let path = random_path(&mut rng);
            let above = std::path::Path::new(&path).ancestors().skip(1);
            let mut above = above.filter(|above| !above.as_os_str().is_empty());
            let taken = tree.join(&path).symlink_metadata().is_ok();
            if taken
                || above.any(|above| {
                    tree.join(above)
                        .symlink_metadata()
                        .is_ok_and(|meta| !meta.is_dir())
                })
            {
                continue;
            }
            match rng.below(6) {
                0 => tree.symlink(format!("to {}", rng.below(2)), &path),
                1 => tree.write(&path, ""),
                _ => tree.write(&path, format!("content {}", rng.below(12))),
            };
        }
        let before = states(&tree);
        let manifest = record(&tree);
        for _ in 0..1 + rng.below(4) {
            change(&tree, &mut rng);
        }
        let now = states(&tree);
        if now.is_empty() {
            continue;
        }
        lines(&tree, &manifest);
        let (text, changes, _) = verified(&tree, &manifest, Renames::Directories);
        let text_of = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
        let dirs: BTreeMap<String, (String, u64)> = changes
            .iter()
            .filter_map(|change| {
                let to = text_of(change.to.as_ref()?);
                Some((text_of(&change.path), (to, change.entries?)))
            })
            .collect();
        let reported: BTreeSet<String> = changes
            .iter()
            .filter(|change| change.class != Class::Added)
            .map(|change| text_of(&change.path))
            .collect();
        let mut along: BTreeMap<&String, u64> = BTreeMap::new();
        for (path, state) in &before {
            let is_in = |dir: &&String| path.starts_with(&format!("{dir}/"));
            let Some(dir) = dirs.keys().filter(is_in).max_by_key(|dir| dir.len()) else {
                continue;
            };
            if reported.contains(path) {
                continue;
            }
            let there = format!("{}{}", dirs[dir].0, &path[dir.len()..]);
            assert_eq!(now.get(&there), Some(state), "seed {seed}: {path}\n{text}");
            *along.entry(dir).or_default() += 1;
        }
        for (dir, (_, entries)) in &dirs {
            let found = along.get(dir).copied().unwrap_or(0);
            assert_eq!(found, *entries, "seed {seed}: {dir}\n{text}");
        }
        renamed += dirs.len();
    }
    assert!(renamed > 5, "{renamed}");
}
