//! In a directory where others may write, what another user laid there counts
//! for nothing: his links are not followed, his files not replaced, whatever
//! the kernel's own protection is set to.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use bc_testkit::{NOBODY, TestTree, is_root, left_out};

use crate::common::Bc;

/// A tree with a directory `open` of this mode, where anybody may write.
fn open_tree(mode: u32) -> TestTree {
    let t = TestTree::new();
    t.write("data/file", "abc")
        .write("mine", "what was there")
        .dir("open");
    std::fs::set_permissions(t.join("open"), PermissionsExt::from_mode(mode)).unwrap();
    t.bc_line("integrity manifest --output=good.jsonl data")
        .go()
        .code(0);
    t
}

fn give_to_nobody(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Every way to name a file that is written: the arguments before and after its name.
const WRITERS: &[(&str, &str)] = &[
    ("hash --output=", "data"),
    ("hash --metrics=", "data"),
    ("hash --metrics=", "--quiet data"),
    ("hash diff --output=", "sums sums"),
    ("dup --output=", "data"),
    ("dup --format=html --output=", "data"),
    ("dup summary --metrics=", "data"),
    ("dup --cache=", "data"),
    ("integrity manifest --output=", "data"),
    ("integrity verify --output=", "data good.jsonl"),
    ("integrity diff --output=", "good.jsonl good.jsonl"),
    ("integrity export --format=gnu --output=", "good.jsonl"),
    ("integrity import --output=", "sums"),
    ("integrity update data ", ""),
];

#[test]
fn links_and_files_of_others_are_refused() {
    if !is_root() {
        return left_out("only root can make files of other users");
    }
    for mode in [0o1777, 0o777, 0o775] {
        let t = open_tree(mode);
        t.bc_line("hash --output=sums --relative data").go().code(0);
        let manifest = t.read("good.jsonl");
        for (before, after) in WRITERS {
            symlink(t.join("mine"), t.join("open/link")).unwrap();
            t.write("mine", &manifest);
            symlink("../data", t.join("open/way")).unwrap();
            t.write("open/file", &manifest);
            for name in ["link", "way", "file"] {
                give_to_nobody(&t.join(format!("open/{name}")));
            }
            // What is updated must be there.
            let below = match before.contains("update") {
                true => "way/../good.jsonl",
                false => "way/new",
            };
            for name in ["link", "file", below] {
                let line = format!("{before}open/{name} {after}");
                let outcome = t.bc_line(&line).go();
                outcome
                    .code(2)
                    .stderr_has("belongs to user 65534")
                    .stderr_has("others may write");
            }
            assert_eq!(t.read("mine"), manifest, "{before}");
            assert_eq!(t.read("open/file"), manifest, "{before}");
            assert_eq!(
                std::fs::metadata(t.join("open/file")).unwrap().uid(),
                NOBODY
            );
            let mut names: Vec<_> = std::fs::read_dir(t.join("open"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            assert_eq!(names, ["file", "link", "way"], "{before}");
            assert_eq!(std::fs::read_dir(t.join("data")).unwrap().count(), 1);
            for name in names {
                std::fs::remove_file(t.join("open").join(name)).unwrap();
            }
        }
    }
}

#[test]
fn pipes_of_others_are_refused() {
    if !is_root() {
        return left_out("only root can make files of other users");
    }
    let t = open_tree(0o1777);
    t.fifo("open/pipe");
    give_to_nobody(&t.join("open/pipe"));
    for option in ["output", "metrics"] {
        t.bc_line(&format!("hash --{option}=open/pipe data"))
            .go()
            .code(2)
            .stderr_has("belongs to user 65534");
    }
}

#[test]
fn in_his_own_directory_a_users_file_stays_his() {
    if !is_root() {
        return left_out("only root can make files of other users");
    }
    let t = open_tree(0o755);
    t.write("open/real", "old");
    symlink("real", t.join("open/link")).unwrap();
    for name in ["open/real", "open/link", "open"] {
        give_to_nobody(&t.join(name));
    }
    for name in ["link", "real"] {
        t.bc_line(&format!("hash --output=open/{name} data"))
            .go()
            .code(0);
        let meta = std::fs::metadata(t.join("open/real")).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (NOBODY, NOBODY));
        assert!(t.join("open/link").is_symlink());
    }
    // A third user's file can only have been brought there by the directory's owner.
    chown(t.join("open/real"), Some(12_345), Some(12_345)).unwrap();
    t.bc_line("hash --output=open/real data").go().code(0);
    assert_eq!(std::fs::metadata(t.join("open/real")).unwrap().uid(), 0);
}

#[test]
fn own_links_are_followed_everywhere() {
    for mode in [0o1777, 0o777, 0o755] {
        let t = open_tree(mode);
        symlink("../mine", t.join("open/link")).unwrap();
        symlink("../data", t.join("open/way")).unwrap();
        symlink("fresh", t.join("open/lost")).unwrap();
        for name in ["link", "way/new", "lost"] {
            t.bc_line(&format!("hash --output=open/{name} data/file"))
                .go()
                .code(0);
        }
        for written in ["mine", "data/new", "open/fresh"] {
            assert!(t.read(written).ends_with(b"  data/file\n"), "{written}");
        }
        assert!(t.join("open/link").is_symlink());
    }
}
