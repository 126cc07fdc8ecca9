//! Directories whose default access control list gives another user everything that is made in them:
//! what was private stays so, whichever command makes it again.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, give_acl, give_default_acl, has_acl, is_root, left_out};

use crate::common::Bc;

/// All paths below a directory, itself first.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    found
}

/// What is below a directory has no list and the mode of its kind.
#[track_caller]
fn is_private(dir: &Path, context: &str) {
    for path in below(dir).iter().skip(1) {
        if path.ends_with(".bc-copy-manifest.jsonl") {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        assert!(
            !has_acl(path),
            "{context}: {path:?} has the list of its directory"
        );
        let expected = match meta.is_dir() {
            true => 0o750,
            false => 0o640,
        };
        if !meta.is_symlink() {
            assert_eq!(meta.mode() & 0o7777, expected, "{context}: {path:?}");
        }
    }
}

fn private(t: &TestTree, dir: &str) {
    for path in below(&t.join(dir)) {
        let meta = path.symlink_metadata().unwrap();
        match (meta.is_dir(), meta.is_symlink()) {
            (true, _) => drop(t.mode(path, 0o750)),
            (_, true) => {}
            _ => drop(t.mode(path, 0o640)),
        }
    }
}

/// A directory of files, links and a directory in it, twice.
fn pair(t: &TestTree) {
    for dir in ["keep", "away"] {
        t.write(format!("{dir}/in/a"), "one")
            .write(format!("{dir}/in/deep/b"), "another");
        t.symlink("a", format!("{dir}/in/link"));
        private(t, dir);
    }
}

/// Whether the file system has lists; says so where it has none.
fn has_lists(t: &TestTree) -> bool {
    let dir = t.scratch("lists");
    std::fs::create_dir(&dir).unwrap();
    give_default_acl(&dir)
        .inspect_err(|reason| left_out(reason))
        .is_ok()
}

#[test]
fn undo_gives_no_list_that_was_not_there() {
    for line in [
        "dup prune --action=delete",
        "dup prune --action=hardlink",
        "dup prune --action=symlink",
        "dup prune --action=move:moved",
        "dup prune --dirs --action=delete",
        "dup prune --dirs --action=move:moved",
    ] {
        let t = TestTree::new();
        if !has_lists(&t) {
            return;
        }
        pair(&t);
        let line = format!("{line} --yes --journal=../journal --reference=keep away");
        t.bc_line(&line).go().code(0);
        let there = match t.exists("away") {
            true => below(&t.join("away")),
            false => Vec::new(),
        };
        give_default_acl(t.path()).unwrap();
        for dir in there.iter().filter(|path| path.is_dir()) {
            give_default_acl(dir).unwrap();
        }
        t.bc_line("dup undo ../journal").go().code(0);
        for path in below(&t.join("away")) {
            // Directories that stayed have the list that they were given since.
            if there.contains(&path) && path.is_dir() {
                continue;
            }
            assert!(!has_acl(&path), "{line}: {path:?}");
        }
        for (path, mode) in [("in/a", 0o640), ("in/deep/b", 0o640), ("in/deep", 0o750)] {
            let meta = t.join("away").join(path).symlink_metadata().unwrap();
            let is_given = meta.is_dir() && there.iter().any(|there| there.ends_with(path));
            assert!(
                is_given || meta.mode() & 0o7777 == mode,
                "{line}: {path}: {:o}",
                meta.mode()
            );
        }
    }
}

/// And no list goes that was.
#[test]
fn undo_gives_the_list_that_was_there() {
    let t = TestTree::new();
    if !has_lists(&t) {
        return;
    }
    pair(&t);
    for dir in ["keep", "away"] {
        give_acl(&t.join(dir).join("in/a")).unwrap();
    }
    t.bc_line("dup prune --action=delete --yes --journal=../journal --reference=keep away")
        .go()
        .code(0);
    give_default_acl(&t.join("away/in")).unwrap();
    t.bc_line("dup undo ../journal").go().code(0);
    assert!(has_acl(&t.join("away/in/a")));
    assert!(!has_acl(&t.join("away/in/deep/b")));
}

#[test]
fn moves_to_another_file_system_give_no_list() {
    let memory = Path::new("/dev/shm");
    let t = TestTree::new();
    let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    if device(memory).is_none() || device(memory) == device(t.path()) {
        return left_out("no second file system");
    }
    let other = TestTree::new_in(memory);
    if !has_lists(&t) || !has_lists(&other) {
        return;
    }
    pair(&t);
    give_default_acl(other.path()).unwrap();
    let to = other.path().display();
    let line =
        format!("dup prune --action=move:{to} --yes --journal=../journal --reference=keep away");
    t.bc_line(&line).go().code(0);
    let moved = other.join("away/in");
    for (name, path) in [("a", moved.join("a")), ("b", moved.join("deep/b"))] {
        assert!(!has_acl(&path), "{name}");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640, "{name}");
    }
    for dir in below(&t.join("away")).iter().filter(|path| path.is_dir()) {
        give_default_acl(dir).unwrap();
    }
    t.bc_line("dup undo ../journal").go().code(0);
    for path in ["away/in/a", "away/in/deep/b"] {
        assert!(!has_acl(&t.join(path)), "{path}");
        assert_eq!(
            t.join(path).metadata().unwrap().mode() & 0o7777,
            0o640,
            "{path}"
        );
    }
}

/// Files of each size, all kinds, and directories: as they are, or with some of it not preserved.
#[test]
fn copies_have_no_list_that_their_sources_lack() {
    for options in [
        "",
        "--preserve=mode,times",
        "--algorithm=none --reflink=never",
        "--sync=file",
    ] {
        let t = TestTree::new();
        if !has_lists(&t) {
            return;
        }
        t.write("r/d/small", "one")
            .write("r/medium", vec![7; 300 << 10])
            .fifo("r/d/pipe");
        t.symlink("small", "r/d/link");
        std::os::unix::net::UnixListener::bind(t.join("r/d/socket")).unwrap();
        let device = Path::new("r/null");
        if is_root() {
            let mode = rustix::fs::Mode::from_raw_mode(0o640);
            let kind = rustix::fs::FileType::CharacterDevice;
            rustix::fs::mknodat(rustix::fs::CWD, t.join(device), kind, mode, 0x103).unwrap();
        }
        private(&t, "r");
        give_default_acl(t.dir("to").join("to").as_path()).unwrap();
        t.bc_line(&format!("copy {options} r to")).go().code(0);
        is_private(&t.join("to"), options);
        assert!(
            t.join("to/r/d/pipe")
                .metadata()
                .unwrap()
                .file_type()
                .is_fifo()
        );
        assert_eq!(t.exists("to/r/null"), is_root());
        // A second copy finds nothing to do, and a list that came since is no reason to stay.
        give_default_acl(&t.join("to/r/d")).unwrap();
        t.remove("to/r/d/small");
        t.bc_line(&format!("copy {options} --on-conflict=skip r to"))
            .go()
            .code(0);
        assert!(!has_acl(&t.join("to/r/d/small")), "{options}");
    }
}

/// A directory that others are to get into is closed to them until it is complete.
#[test]
fn nobody_gets_in_by_the_list_before_it_goes() {
    if !crate::strace::is_able() {
        return;
    }
    let t = TestTree::new();
    if !has_lists(&t) {
        return;
    }
    t.write("r/d/small", "one");
    private(&t, "r");
    give_default_acl(t.dir("to").join("to").as_path()).unwrap();
    let killed = crate::strace::injected(&t, "renameat2", "signal=KILL", 1, "copy r to");
    assert!(!killed.status.success(), "{killed}");
    for path in below(&t.join("to")).iter().skip(1) {
        let mode = path.symlink_metadata().unwrap().mode();
        // The group's bits are the mask of a list.
        assert!(mode & 0o077 == 0 || !has_acl(path), "{path:?}: {mode:o}");
    }
}

#[test]
fn restored_files_have_no_list_that_is_not_recorded() {
    for options in ["", "--xattrs"] {
        let t = TestTree::new();
        if !has_lists(&t) {
            return;
        }
        t.write("good/d/a", "one")
            .write("good/b", "another")
            .write("good/c", "third");
        t.symlink("b", "good/link");
        private(&t, "good");
        t.bc_line("copy --algorithm=none -T good tree").go().code(0);
        t.bc_line(&format!("integrity manifest {options} --output=m tree"))
            .go()
            .code(0);
        t.mode("m", 0o600);
        std::fs::remove_dir_all(t.join("tree/d")).unwrap();
        t.remove("tree/b").remove("tree/link");
        give_default_acl(&t.join("tree")).unwrap();
        t.bc_line("integrity restore --from=good tree m")
            .go()
            .code(0);
        assert!(t.exists("tree/d/a") && t.exists("tree/b"));
        is_private(&t.join("tree"), options);
    }
}

/// A list or report that is replaced says no more to anybody than the one before.
#[test]
fn an_output_that_is_replaced_keeps_its_own_list() {
    for has in [false, true] {
        let t = TestTree::new();
        if !has_lists(&t) {
            return;
        }
        t.write("r/a", "one").dir("out");
        let line = "hash --output=out/list r";
        t.bc_line(line).go().code(0);
        t.mode("out/list", 0o640);
        if has {
            give_acl(&t.join("out/list")).unwrap();
        }
        let mode = t.join("out/list").metadata().unwrap().mode();
        give_default_acl(&t.join("out")).unwrap();
        t.bc_line(line).go().code(0);
        assert_eq!(has_acl(&t.join("out/list")), has);
        assert_eq!(t.join("out/list").metadata().unwrap().mode(), mode);
    }
}
