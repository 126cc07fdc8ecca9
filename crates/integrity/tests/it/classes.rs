//! Every class of difference in every mode and format, against a tree and
//! between manifests.

use bc_integrity::change::Class;
use bc_integrity::compare::Detail;
use bc_integrity::fields::{CompareMode, CompareRules, Fields};
use bc_integrity::report::ChangeFormat;
use bc_integrity::{Conclusion, Trust};
use bc_testkit::TestTree;

use crate::support::{How, diffed, lines, manifest_of, mode, record, rot, verified, verify_with};

/// A change made to the tree, and the class in each mode: strict, content, meta.
struct Case {
    name: &'static str,
    change: fn(&TestTree),
    text: [&'static str; 3],
}

fn sample() -> TestTree {
    let tree = TestTree::new();
    tree.write("dir/file", "some content")
        .write("dir/other", "other content")
        .write("empty", "")
        .write("twin-1", "twin")
        .write("twin-2", "twin")
        .symlink("dir/file", "link")
        .mode("dir/file", 0o644)
        .mode("dir/other", 0o640);
    for path in ["dir/file", "dir/other", "empty", "twin-1", "twin-2"] {
        tree.mtime(path, -5, 250_000_000);
    }
    tree.mtime("dir", 1_000, 0).mtime(".", 1_000, 0);
    tree
}

/// Directories keep their times: only what the case is about differs.
fn settle(tree: &TestTree) {
    for dir in ["dir", "."] {
        if tree.join(dir).is_dir() {
            tree.mtime(dir, 1_000, 0);
        }
    }
}

const CASES: &[Case] = &[
    Case {
        name: "nothing",
        change: |_| {},
        text: ["", "", ""],
    },
    Case {
        name: "added",
        change: |tree| {
            tree.write("new", "new content");
        },
        text: ["+ new\n"; 3],
    },
    Case {
        name: "removed",
        change: |tree| {
            tree.remove("dir/other");
        },
        text: ["- dir/other\n"; 3],
    },
    Case {
        name: "moved",
        change: |tree| {
            std::fs::rename(tree.join("dir/other"), tree.join("a-name")).unwrap();
        },
        text: [
            "> dir/other -> a-name\n",
            "> dir/other -> a-name\n",
            "+ a-name\n- dir/other\n",
        ],
    },
    Case {
        name: "moved with another mode and time",
        change: |tree| {
            std::fs::rename(tree.join("dir/other"), tree.join("a-name")).unwrap();
            tree.mode("a-name", 0o4711).mtime("a-name", 0, 0);
        },
        text: [
            "> dir/other -> a-name mode: 0640 -> 4711, mtime: 1969-12-31T23:59:55.250000000Z -> 1970-01-01T00:00:00Z\n",
            "> dir/other -> a-name\n",
            "+ a-name\n- dir/other\n",
        ],
    },
    Case {
        name: "duplicates renamed around",
        change: |tree| {
            tree.dir("z");
            std::fs::rename(tree.join("twin-1"), tree.join("z/twin-2")).unwrap();
            std::fs::rename(tree.join("twin-2"), tree.join("z/twin-1")).unwrap();
        },
        text: [
            "> twin-1 -> z/twin-1\n> twin-2 -> z/twin-2\n+ z\n",
            "> twin-1 -> z/twin-1\n> twin-2 -> z/twin-2\n+ z\n",
            "- twin-1\n- twin-2\n+ z\n+ z/twin-1\n+ z/twin-2\n",
        ],
    },
    Case {
        name: "one of two duplicates moved, the other gone",
        change: |tree| {
            std::fs::rename(tree.join("twin-2"), tree.join("moved")).unwrap();
            tree.remove("twin-1");
        },
        text: [
            "> twin-1 -> moved\n- twin-2\n",
            "> twin-1 -> moved\n- twin-2\n",
            "+ moved\n- twin-1\n- twin-2\n",
        ],
    },
    Case {
        name: "an empty file renamed is no move",
        change: |tree| {
            std::fs::rename(tree.join("empty"), tree.join("void")).unwrap();
        },
        text: ["- empty\n+ void\n"; 3],
    },
    Case {
        name: "mode",
        change: |tree| {
            tree.mode("dir/file", 0o600);
        },
        text: [
            "~m dir/file mode: 0644 -> 0600\n",
            "",
            "~m dir/file mode: 0644 -> 0600\n",
        ],
    },
    Case {
        name: "mtime",
        change: |tree| {
            tree.mtime("dir/file", 0, 1);
        },
        text: [
            "~m dir/file mtime: 1969-12-31T23:59:55.250000000Z -> 1970-01-01T00:00:00.000000001Z\n",
            "",
            "~m dir/file mtime: 1969-12-31T23:59:55.250000000Z -> 1970-01-01T00:00:00.000000001Z\n",
        ],
    },
    Case {
        name: "hard link",
        change: |tree| {
            tree.hard_link("dir/file", "again");
        },
        text: [
            "+ again\n~m dir/file nlink: 1 -> 2\n",
            "+ again\n",
            "+ again\n~m dir/file nlink: 1 -> 2\n",
        ],
    },
    Case {
        name: "edited",
        change: |tree| {
            tree.write("dir/file", "SOME content")
                .mtime("dir/file", 7, 0);
        },
        text: [
            "~c dir/file\n",
            "~c dir/file\n",
            "~m dir/file mtime: 1969-12-31T23:59:55.250000000Z -> 1970-01-01T00:00:07Z\n",
        ],
    },
    Case {
        name: "grown behind the same mtime",
        change: |tree| {
            tree.write("dir/file", "some more content")
                .mtime("dir/file", -5, 250_000_000);
        },
        text: ["~c dir/file\n"; 3],
    },
    Case {
        name: "rewritten behind the same size and mtime",
        change: |tree| rot(tree, "dir/file", 3, b'X'),
        text: [
            "!! dir/file: ctime changed, probably a rewrite with its mtime reset\n",
            "!! dir/file: ctime changed, probably a rewrite with its mtime reset\n",
            "",
        ],
    },
    Case {
        name: "retargeted link",
        change: |tree| {
            tree.remove("link").symlink("dir/fil2", "link");
        },
        text: ["~c link\n"; 3],
    },
    Case {
        name: "a link where a file was",
        change: |tree| {
            tree.remove("empty").symlink("x", "empty");
        },
        text: ["~t empty file -> symlink\n"; 3],
    },
    Case {
        name: "a directory where a file was",
        change: |tree| {
            tree.remove("twin-1").dir("twin-1").write("twin-1/x", "");
        },
        text: ["~t twin-1 file -> dir\n+ twin-1/x\n"; 3],
    },
    Case {
        name: "a file where a directory was",
        change: |tree| {
            tree.remove("dir").write("dir", "!");
        },
        text: ["~t dir dir -> file\n- dir/file\n- dir/other\n"; 3],
    },
    Case {
        name: "a FIFO where a file was",
        change: |tree| {
            tree.remove("dir/other").fifo("dir/other");
        },
        text: ["~t dir/other file -> fifo\n"; 3],
    },
    Case {
        name: "names that need escapes",
        change: |tree| {
            tree.write_bytes(b"new\nline\\\x1b", "");
        },
        text: ["+ new\\nline\\\\\\x1b\n"; 3],
    },
];

const MODES: [CompareMode; 3] = [CompareMode::Strict, CompareMode::Content, CompareMode::Meta];

/// The links' times are those of their making, and cannot be predicted.
fn without_link_times(text: &str) -> String {
    let keeps = |line: &&str| !(line.starts_with("~m link ") && line.contains(" mtime: "));
    text.lines()
        .filter(keeps)
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn a_tree_against_its_manifest() {
    for case in CASES {
        let tree = sample();
        let manifest = record(&tree);
        (case.change)(&tree);
        settle(&tree);
        for (mode_of, expected) in MODES.into_iter().zip(case.text) {
            for workers in [1, 3] {
                let how = How {
                    workers,
                    ..mode(mode_of)
                };
                let (text, summary) = verified(tree.path(), &manifest, how);
                assert_eq!(
                    sorted(&without_link_times(&text)),
                    sorted(expected),
                    "{}, {mode_of:?}",
                    case.name
                );
                assert!(in_path_order(&text), "{}, {mode_of:?}: {text}", case.name);
                let conclusion = match () {
                    () if text.contains("!! ") => Conclusion::Damaged,
                    () if text.is_empty() => Conclusion::Same,
                    () => Conclusion::Different,
                };
                assert_eq!(
                    summary.conclusion(),
                    conclusion,
                    "{}, {mode_of:?}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn json_says_the_same_as_text() {
    for case in CASES {
        let tree = sample();
        let manifest = record(&tree);
        (case.change)(&tree);
        settle(&tree);
        let old = lines(&std::fs::read(&manifest).unwrap()).len() as u64 - 2;
        let new = lines(&manifest_of(tree.path())).len() as u64 - 2;
        for mode_of in MODES {
            let name = format!("{}, {mode_of:?}", case.name);
            let how = How {
                detail: Detail::All,
                ..mode(mode_of)
            };
            let (text, result) = verify_with(tree.path(), &manifest, how, ChangeFormat::Text);
            let (json, _) = verify_with(tree.path(), &manifest, how, ChangeFormat::Json);
            let summary = result.unwrap().summary;
            assert_eq!(text.lines().count(), json.lines().count(), "{name}");
            let mut counts = [0; Class::ALL.len()];
            for (line, text) in json.lines().zip(text.lines()) {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["type"], "change");
                let class = Class::ALL
                    .into_iter()
                    .find(|class| line["class"] == class.name())
                    .unwrap();
                counts[class as usize] += 1;
                let path = line["path"].as_str().unwrap();
                let path = bc_fs::escape(path.as_bytes());
                assert!(text.starts_with(&sign(class, &path)), "{name}: {text}");
            }
            for class in Class::ALL {
                assert_eq!(
                    summary.count(class),
                    counts[class as usize],
                    "{name}: {}",
                    class.name()
                );
            }
            // Every entry of either side is in one class; a moved one is of both.
            let of = |class: Class| summary.count(class);
            let both: u64 = summary_of_both(&summary);
            let (added, removed) = (of(Class::Added), of(Class::Removed));
            assert_eq!(old, both + removed + of(Class::Moved), "{name}");
            assert_eq!(new, both + added + of(Class::Moved), "{name}");
        }
    }
}

/// Entries with a counterpart of the same path.
fn summary_of_both(summary: &bc_integrity::ComparisonSummary) -> u64 {
    let one_sided = [Class::Added, Class::Removed, Class::Moved];
    let both = Class::ALL
        .into_iter()
        .filter(|class| !one_sided.contains(class));
    both.map(|class| summary.count(class)).sum()
}

/// Returns the beginning of a line of text.
fn sign(class: Class, path: &str) -> String {
    match class {
        Class::Ok => format!("ok {path}"),
        Class::Added => format!("+ {path}"),
        Class::Removed => format!("- {path}"),
        Class::Moved => format!("> {path} -> "),
        Class::Meta => format!("~m {path} "),
        Class::Modified => format!("~c {path}"),
        Class::Damaged => format!("!! {path}: "),
        Class::Unreadable => format!("?? {path}: "),
        Class::Replaced => format!("~t {path} "),
    }
}

#[test]
fn two_manifests() {
    for case in CASES {
        let tree = sample();
        let old = manifest_of(tree.path());
        (case.change)(&tree);
        settle(&tree);
        let new = manifest_of(tree.path());
        let (text, _) = diffed(&old, &new, CompareRules::default()).unwrap();
        assert_eq!(
            sorted(&without_link_times(&text)),
            sorted(case.text[0]),
            "{}",
            case.name
        );
        let (text, summary) = diffed(
            &new,
            &new,
            CompareRules::new(CompareMode::Strict, Fields::NONE),
        )
        .unwrap();
        assert_eq!(
            (text.as_str(), summary.conclusion()),
            ("", Conclusion::Same),
            "{}",
            case.name
        );
    }
}

/// Lines as a set: which of two equal paths comes first is checked elsewhere.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// True if the paths that lines begin with are in order.
fn in_path_order(text: &str) -> bool {
    let path = |line: &str| {
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest);
        rest.split([' ', ':']).next().unwrap_or("").to_string()
    };
    let paths: Vec<String> = text.lines().map(path).collect();
    paths.is_sorted()
}

#[test]
fn verbose_reports_what_is_ok_too() {
    let tree = sample();
    let manifest = record(&tree);
    tree.remove("dir/other");
    settle(&tree);
    let how = How {
        detail: Detail::All,
        ..How::default()
    };
    let (text, _) = verified(tree.path(), &manifest, how);
    let expected =
        "ok .\nok dir\nok dir/file\n- dir/other\nok empty\nok link\nok twin-1\nok twin-2\n";
    assert_eq!(text, expected);
}

#[test]
fn fail_fast_stops_at_the_first_difference() {
    let tree = sample();
    let manifest = record(&tree);
    tree.mode("dir/file", 0o600)
        .remove("twin-1")
        .write("zzz", "");
    settle(&tree);
    for workers in [1, 2] {
        let how = How {
            detail: Detail::First,
            workers,
            ..How::default()
        };
        let (text, summary) = verified(tree.path(), &manifest, how);
        assert_eq!(text, "~m dir/file mode: 0644 -> 0600\n");
        assert!(!summary.complete);
        assert_eq!(summary.conclusion(), Conclusion::Different);
    }
}

#[test]
fn ignored_fields_replace_the_default() {
    let tree = sample();
    let manifest = record(&tree);
    // Another inode with the same content and time.
    let content = tree.read("dir/file");
    tree.write("copy", content)
        .mode("copy", 0o644)
        .mtime("copy", -5, 250_000_000);
    std::fs::rename(tree.join("copy"), tree.join("dir/file")).unwrap();
    settle(&tree);
    let (text, _) = verified(tree.path(), &manifest, How::default());
    assert_eq!(text, "");
    let ignore = "uid,gid,ctime".parse().unwrap();
    let how = How {
        rules: CompareRules::new(CompareMode::Strict, ignore),
        ..How::default()
    };
    let (text, _) = verified(tree.path(), &manifest, how);
    assert!(text.contains("~m dir/file ino: "), "{text}");
    assert!(!text.contains("ctime"), "{text}");
}

#[test]
fn a_damaged_manifest_is_read_when_forced() {
    let tree = sample();
    let manifest = record(&tree);
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes.truncate(bytes.len() - 40);
    std::fs::write(&manifest, &bytes).unwrap();
    let (text, result) = verify_with(tree.path(), &manifest, How::default(), ChangeFormat::Text);
    assert!(result.unwrap_err().to_string().contains("truncated"));
    assert_eq!(text, "");
    let how = How {
        trust: Trust::Forced,
        ..How::default()
    };
    let (text, result) = verify_with(tree.path(), &manifest, how, ChangeFormat::Text);
    assert_eq!(text, "");
    assert_eq!(result.unwrap().problems.len(), 1);
}
