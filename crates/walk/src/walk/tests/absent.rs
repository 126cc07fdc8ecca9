//! Paths that are asked for one by one: the listed ones, and the reports about the others.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use bc_testkit::words_of;

use super::*;
use crate::{ErrorKind, ExactPaths, Globs, Hidden};

fn only(paths: &[&str]) -> WalkOptions {
    let paths = paths.iter().map(|path| path.as_bytes().to_vec());
    WalkOptions {
        only: Some(Arc::new(ExactPaths::new(paths))),
        ..WalkOptions::default()
    }
}

/// Returns the reports, below the tree, as `path: operation: reason`.
fn reported(tree: &Tree, listing: &Listing) -> Vec<String> {
    let skip = tree.root().len() + 1;
    let text = |error: &Error| error.to_string()[skip..].to_owned();
    listing.absent().iter().map(text).collect()
}

const GONE: &str = "stat: No such file or directory (os error 2)";
const NO_DIR: &str = "stat: Not a directory (os error 20)";

#[test]
fn what_is_not_there_is_told_once_by_its_path() {
    let tree = Tree::with(&["a/b", "a/c", "d/e/f", "file"]);
    tree.link("a", "link");
    let list = ["a/b", "gone", "gone", "d", "a/gone/x", "file/x", "link/b"];
    for entries in [Entries::Files, Entries::All] {
        let options = only(&list).entries(entries);
        let (names, listing) = walked(&tree, &[], &options);
        let expected = match entries {
            Entries::Files => vec!["a/b", "d/e/f"],
            Entries::All => vec!["", "a", "a/b", "d", "d/e", "d/e/f"],
        };
        // Neither the file nor the link that a path leads through is asked for.
        assert_eq!(names, expected);
        assert_eq!(listing.errors(), []);
        let expected = [
            format!("a/gone/x: {GONE}"),
            format!("file/x: {NO_DIR}"),
            format!("gone: {GONE}"),
            format!("link/b: {NO_DIR}"),
        ];
        assert_eq!(reported(&tree, &listing), expected, "{entries:?}");
    }
}

#[test]
fn what_is_left_out_is_there() {
    let tree = Tree::with(&[".h/x", "ex/x", "no.o", "deep/er/x", "small", "dir/"]);
    fs::write(tree.path(b"small"), "").unwrap();
    let list = [".h/x", "ex/x", "no.o", "deep/er/x", "small", "dir", "gone"];
    let options = WalkOptions {
        hidden: Hidden::Skip,
        exclude: Globs::new(&[b"ex".to_vec()]).unwrap(),
        include: Globs::new(&[b"*[!o]".to_vec()]).unwrap(),
        max_depth: Some(2),
        min_size: 1,
        ..only(&list)
    };
    for entries in [Entries::Files, Entries::All] {
        let options = options.clone().entries(entries);
        let (_, listing) = walked(&tree, &[], &options);
        let expected = [format!("gone: {GONE}")];
        assert_eq!(reported(&tree, &listing), expected, "{entries:?}");
    }
    let options = options.max_depth(Some(0));
    let (_, listing) = walked(&tree, &[], &options);
    assert!(listing.absent().is_empty(), "{:?}", listing.absent());
}

#[test]
fn each_root_has_what_it_has() {
    let tree = Tree::with(&["1/a", "2/b", "2/in/b"]);
    let options = only(&["a", "in/b"]).entries(Entries::All);
    let (_, listing) = walked(&tree, &["1", "2", "2/in"], &options);
    // Files below the inner root are that one's.
    let expected = ["1/in/b", "2/a", "2/in/a", "2/in/in/b"].map(|path| format!("{path}: {GONE}"));
    assert_eq!(reported(&tree, &listing), expected);
    let cancel = Cancel::new();
    cancel.stop();
    let listing = walk(&[tree.path(b"1")], &options, 1, &cancel).unwrap();
    assert!(listing.absent().is_empty());
}

/// Runs, as root, who may read everything, a test of this file as the user nobody, from a copy of
/// the program that this user can reach; returns whether there is nothing more to do.
fn done_as_nobody(test: &str) -> bool {
    const NOBODY: u32 = 65534;
    let dir = tempfile::tempdir().unwrap();
    if fs::metadata(dir.path()).unwrap().uid() != 0 {
        return false;
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let words = words_of(program);
    let output = Command::new(&words[0])
        .args(&words[1..])
        .args(["--exact", &format!("walk::tests::absent::{test}")])
        .env("TMPDIR", dir.path())
        .current_dir(dir.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    true
}

#[test]
fn a_directory_that_cannot_be_read_tells_why() {
    if done_as_nobody("a_directory_that_cannot_be_read_tells_why") {
        return;
    }
    let tree = Tree::with(&["closed/a", "closed/b"]);
    let mode = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(tree.path(b"closed"), permissions).unwrap();
    };
    for (bits, op) in [(0o000, "stat"), (0o100, "open")] {
        mode(bits);
        let (_, listing) = walked(&tree, &[], &only(&["closed/a"]));
        mode(0o700);
        assert_eq!(listing.errors().len(), 1);
        let [error] = listing.absent() else {
            panic!("{:?}", listing.absent());
        };
        assert_eq!(error.path(), tree.bytes("closed/a"));
        let denied = ErrorKind::System(Errno::ACCESS.raw_os_error());
        assert_eq!((error.op(), error.kind()), (op, denied));
    }
}
