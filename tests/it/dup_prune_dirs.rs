//! `bc dup prune --dirs` as a user meets it: whole directories go and come back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use bc_testkit::{Pty, TestTree};

use crate::common::Bc;
use crate::dup_dirs::mounted;

/// Two copies of a directory, one of them beside something else; a pair of files.
fn tree() -> TestTree {
    let t = TestTree::new();
    for copy in ["archive/photos", "disk/photos"] {
        t.write(format!("{copy}/2024/sunset"), vec![1; 9000])
            .write(format!("{copy}/2024/empty"), "")
            .write(format!("{copy}/harbour"), vec![2; 5000])
            .symlink("harbour", format!("{copy}/latest"))
            .dir(format!("{copy}/new"));
    }
    t.write("disk/own", "own")
        .write("archive/note", "note")
        .write("disk/note", "note");
    for (dir, mode) in [("disk/photos/new", 0o711), ("disk/photos", 0o750)] {
        t.mode(dir, mode);
        t.mtime(dir, 1_000_000_000, 7);
    }
    t
}

/// Kind, mode, owner, content; of directories the time too.
fn all(t: &TestTree) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut next = vec![t.path().to_owned()];
    while let Some(dir) = next.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let what = match meta {
                _ if meta.is_dir() => format!("{}.{}", meta.mtime(), meta.mtime_nsec()),
                _ if meta.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
                _ => format!("{:?}", fs::read(&path).unwrap()),
            };
            let owner = (meta.uid(), meta.gid());
            found.insert(path.clone(), format!("{:o} {owner:?} {what}", meta.mode()));
            if meta.is_dir() {
                next.push(path);
            }
        }
    }
    // What goes and comes back in these moves their times.
    found.remove(&t.join("disk"));
    found
}

const DELETE: &str = "dup prune --dirs --action=delete --yes";

#[test]
fn a_copy_goes_and_comes_back() {
    let t = tree();
    let before = all(&t);
    let step = "delete disk/photos/ with 3 files (kept: archive/photos/)\n";
    t.bc_line(&format!("{DELETE} --dry-run archive disk"))
        .go()
        .code(0)
        .stdout_is(step)
        .stderr_has("1 directory with 3 files would be changed");
    assert_eq!(all(&t), before);
    t.bc_line(&format!("{DELETE} --journal=steps archive disk"))
        .go()
        .code(0)
        .stdout_is(step)
        .stderr_has("bc dup: 1 directory with 3 files changed");
    assert!(!t.exists("disk/photos"));
    for stays in ["disk/own", "disk/note", "archive/photos/latest"] {
        assert!(t.exists(stays), "{stays}");
    }
    t.bc_line(&format!("{DELETE} --journal=steps archive disk"))
        .go()
        .code(0)
        .stderr_has("nothing to do");
    t.bc_line("dup undo --dry-run steps")
        .go()
        .code(0)
        .stdout_has("/disk/photos/harbour (delete)\n");
    t.bc_line("dup undo steps").go().code(0);
    fs::remove_file(t.join("steps")).unwrap();
    assert_eq!(all(&t), before);
}

#[test]
fn a_copy_is_moved_whole() {
    let t = tree();
    let before = all(&t);
    let inode = fs::metadata(t.join("disk/photos")).unwrap().ino();
    let line = "dup prune --dirs --action=move:trash --yes --journal=steps archive disk";
    t.bc_line(line).go().code(0).stdout_is(
        "move disk/photos/ to trash/disk/photos/ with 3 files (kept: archive/photos/)\n",
    );
    let moved = fs::metadata(t.join("trash/disk/photos")).unwrap().ino();
    assert_eq!(moved, inode);
    t.bc_line(line).go().code(0).stderr_has("nothing to do");
    t.bc_line("dup undo steps").go().code(0);
    fs::remove_file(t.join("steps")).unwrap();
    fs::remove_dir_all(t.join("trash")).unwrap();
    assert_eq!(all(&t), before);
}

#[test]
fn rules_and_references_say_which_stays() {
    for (options, goes) in [
        ("--keep=path:disk archive disk", "archive/photos"),
        ("--keep=first disk archive", "archive/photos"),
        ("--reference=disk archive disk", "archive/photos"),
        (
            "--keep=first --reference=archive disk archive",
            "disk/photos",
        ),
        ("--across-roots --keep=last archive disk", "archive/photos"),
    ] {
        let t = tree();
        t.bc_line(&format!("{DELETE} {options}"))
            .go()
            .code(0)
            .stdout_has(format!("delete {goes}/"));
        assert!(!t.exists(goes), "{options}");
    }
    let t = tree();
    t.bc_line(&format!("{DELETE} --across-roots ."))
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn what_is_not_wholly_known_stays() {
    let t = tree();
    let before = all(&t);
    t.bc_line(&format!("{DELETE} --exclude=empty archive disk"))
        .go()
        .code(0)
        .stdout_is("")
        .stderr_has("disk/photos/ with 2 files (kept: archive/photos/): skipped: filters left out 2 entries");
    let reference = format!("{DELETE} --reference=disk/photos/2024 --keep=first archive disk");
    let out = t.bc_line(&reference).go();
    assert_eq!(all(&t), before, "{out}");
    let journal = format!("{DELETE} --journal=disk/photos/2024/steps archive disk");
    let out = t.bc_line(&journal).go();
    out.code(1).stderr_has("it holds the journal");
    assert!(t.exists("disk/photos/harbour"));
}

#[test]
fn a_mount_in_it_keeps_a_directory() {
    let t = tree();
    // The search does not compare what has a mount in it; the run would see one that came later.
    let mounts = "mount --bind archive disk/photos/new";
    let Some((said, _)) = mounted(&t, mounts, &format!("{DELETE} archive disk")) else {
        return;
    };
    assert!(!said.contains("photos/ with"), "{said}");
    assert!(t.exists("disk/photos/harbour") && t.exists("archive/photos/harbour"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let t = tree();
    for (line, text) in [
        (
            "--action=hardlink .",
            "--dirs goes with --action=delete, --action=trash and --action=move:DIR",
        ),
        ("--action=delete .", "it needs --yes"),
        (
            "--action=delete --yes --follow-symlinks .",
            "cannot be used with",
        ),
        ("--action=delete --yes --from=r.json", "cannot be used with"),
        (
            "--action=delete --interactive .",
            "--interactive asks on a terminal",
        ),
    ] {
        t.bc_line(&format!("dup prune --dirs {line}"))
            .go()
            .code(2)
            .stderr_has(text);
    }
}

#[test]
fn the_question_counts_directories() {
    for (keys, goes) in [(b"n\n", false), (b"y\n", true)] {
        let t = tree();
        let line = "dup prune --dirs --action=delete archive disk";
        let command = t.bc_line(line).env("TERM", "xterm").command();
        let session = Pty::new(200, 24).start_in(command);
        session.wait_for("the question", |bytes| {
            String::from_utf8_lossy(bytes).contains("[y/N] ")
        });
        session.type_keys(keys);
        let (status, bytes) = session.end();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(text.contains("Delete 1 directory with 3 files ("), "{text}");
        assert_eq!(t.exists("disk/photos"), !goes, "{text}");
    }
}

/// The originals of a killed move of whole directories, which versions before left half-way: the
/// directories are no copies any more, and nothing else would name them.
#[test]
fn what_was_left_half_way_is_named() {
    const LEFT: &str = ".bc-dup.4194305.7.0.65024-12.tmp";
    for twin in ["one", "none"] {
        let t = TestTree::new();
        for name in ["one", "two"] {
            t.write(format!("in/a/{name}"), name);
        }
        t.write("in/b/two", "two")
            .write(format!("in/b/{LEFT}"), twin);
        for action in ["delete", "move:D"] {
            for mode in ["--dry-run", "--yes"] {
                let line = format!("dup prune --dirs --action={action} {mode} --journal=../j in");
                t.bc_line(&line)
                    .go()
                    .code(1)
                    .stderr_has(LEFT)
                    .stderr_has("'bc dup undo' of that run's journal gives the name back");
                assert!(t.exists(format!("in/b/{LEFT}")), "{line}");
            }
        }
    }
}

/// A directory that the user's rule keeps of one group stays, whatever groups around it need.
#[test]
fn what_a_rule_keeps_stays() {
    let t = TestTree::new();
    for copy in ["disk1/A", "disk2/B"] {
        t.write(format!("{copy}/x"), vec![1; 90_000]);
    }
    for copy in ["disk1/A/sub", "disk2/B/sub", "archive/sub"] {
        t.write(format!("{copy}/y"), vec![2; 9000])
            .write(format!("{copy}/z"), vec![3; 8000]);
    }
    let line = |keep: &str, roots: &str, more: &str| {
        let line = format!("{DELETE} {keep} {roots} {more}");
        let out = t.bc_line(&line).go();
        out.code(0);
        out
    };
    let roots = "disk1 disk2 archive";
    // What the outer group keeps is no reason to remove what the rule keeps of the inner one.
    let gone = "delete disk2/B/ with 3 files (kept: disk1/A/)\n";
    line("--keep=path:archive", roots, "--dry-run")
        .stdout_is(gone)
        .stderr_has("delete disk1/A/sub/ with 2 files (kept: archive/sub/): skipped: it stays");
    // Nor does it go with a directory around it.
    let inner = "delete disk1/A/sub/ with 2 files (kept: disk2/B/sub/)\n\
        delete archive/sub/ with 2 files (kept: disk2/B/sub/)\n";
    line("--keep=path:disk2/B/sub", roots, "--dry-run")
        .stdout_is(inner)
        .stderr_has("it holds disk2/B/sub, which is to be kept");
    // Without a rule one of the inner ones is enough.
    line("", roots, "--dry-run").stdout_is(format!(
        "{gone}delete archive/sub/ with 2 files (kept: disk1/A/sub/)\n"
    ));
    line("--keep=path:archive", roots, "").stdout_is(gone);
    assert!(!t.exists("disk2/B"));
    for stays in ["archive/sub/y", "archive/sub/z", "disk1/A/sub/z"] {
        assert!(t.exists(stays), "{stays}");
    }
}

/// A file of a directory that goes has another name in a reference.
#[test]
fn a_file_of_a_reference_stays_under_all_its_names() {
    let t = tree();
    t.dir("reference")
        .hard_link("disk/photos/harbour", "reference/z");
    t.bc_line(&format!("{DELETE} --reference=reference archive disk"))
        .go()
        .code(1)
        .stdout_is("")
        .stderr_has("disk/photos/harbour: it, or the destination, is below a reference");
    assert!(t.exists("disk/photos/harbour"));
}

/// A move that cannot be done is refused in the same words by a dry run, and leaves nothing behind.
#[test]
fn a_move_that_is_refused_makes_no_directory() {
    let line = "dup prune --dirs --action=move:TO --yes --journal=steps archive disk";
    for (to, why) in [
        (
            "disk/photos/trash",
            "it holds the directory that it is to be moved to",
        ),
        ("in_a_file", "open directory: Not a directory"),
        ("in_a_link", "open directory: "),
    ] {
        let t = tree();
        t.dir("elsewhere")
            .write("in_a_file/disk", "a file")
            .dir("in_a_link")
            .symlink("../elsewhere", "in_a_link/disk");
        let before = all(&t);
        for more in ["--dry-run", ""] {
            t.bc_line(&format!("{} {more}", line.replace("TO", to)))
                .go()
                .code(1)
                .stdout_is("")
                .stderr_has(why);
            let _ = fs::remove_file(t.join("steps"));
            assert_eq!(all(&t), before, "{to} {more}");
        }
    }
}
