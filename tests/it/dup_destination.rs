//! `prune --action=move:DIR`: what lies in DIR has been dealt with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bc_testkit::TestTree;
use rustix::io::Errno;

use crate::common::Bc;
use crate::dup_reference::where_it_may_mount;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("a/x", "one")
        .write("b/x", "one")
        .write("b/y", "two!")
        .write("c/y", "two!")
        .symlink(".", "link");
    t
}

fn names(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.symlink_metadata().unwrap() {
                meta if meta.is_dir() => pending.push(path),
                meta if meta.is_file() => {
                    drop(found.insert(path.clone(), std::fs::read(path).unwrap()))
                }
                _ => {}
            }
        }
    }
    found
}

fn run(t: &TestTree, to: &str, rest: &str) -> bc_testkit::Outcome {
    let at = |text: &str| text.replace('@', t.path().to_str().unwrap());
    t.bc_line("dup prune --yes")
        .arg(format!("--action=move:{}", at(to)))
        .args(at(rest).split_whitespace())
        .go()
}

#[test]
fn a_directory_in_none_that_is_there_is_a_typing_error() {
    for (to, rest) in [
        ("typo/x", "."),
        ("@/typo/x", "--dry-run ."),
        ("typo/x/../y", "--dirs ."),
        ("typo/lost/x", "."),
    ] {
        let t = tree();
        if to == "typo/lost/x" {
            t.dir("typo").symlink("nowhere", "typo/lost");
        }
        let before = names(t.path());
        run(&t, to, rest)
            .code(2)
            .stderr_has(to.trim_start_matches('@'))
            .stderr_has("the directory that it would be made in does not exist");
        assert!(to == "typo/lost/x" || !t.exists("typo"), "{to}");
        assert_eq!(names(t.path()), before, "{to}");
    }
}

#[test]
fn a_second_run_changes_nothing() {
    for to in [
        "trash",
        "trash/",
        "./trash",
        "b/trash",
        "link/trash",
        "@/trash",
        "a/../trash//.",
    ] {
        for paths in [".", "a b c", "@", ". link", "link/"] {
            // Whichever file a rule prefers, what was moved is not asked.
            for keep in ["--keep=first", "--keep=last", "--keep=longest-path"] {
                let t = tree();
                let rest = format!("{keep} {paths}");
                run(&t, to, &rest).code(0).stderr_has("2 files changed");
                let once = names(t.path());
                assert_eq!(once.len(), 4, "{to} {rest}");
                let again = run(&t, to, &rest);
                again.code(0).stdout_is("").stderr_has("nothing to do");
                assert_eq!(names(t.path()), once, "{to} {rest}");
                // In other words.
                let other = run(&t, "@/link/a/../trash/../trash/x/..", &rest);
                if to != "b/trash" && !to.ends_with("x/.") {
                    other.code(0).stdout_is("").stderr_has("nothing to do");
                    assert_eq!(names(t.path()), once, "{to} {rest}");
                }
            }
        }
    }
}

#[test]
fn a_report_made_in_between_changes_nothing_either() {
    let t = tree();
    run(&t, "trash", ".").code(0);
    let once = names(t.path());
    t.bc_line("dup scan --format=json --output=../r.json .")
        .go()
        .code(0);
    for to in ["trash", "@/link/trash/"] {
        run(&t, to, "--from=../r.json --keep=last")
            .code(0)
            .stdout_is("")
            .stderr_has("nothing to do; 2 skipped: already moved");
        assert_eq!(names(t.path()), once);
    }
}

#[test]
fn a_destination_that_is_a_root_holds_what_was_moved() {
    let t = tree();
    let before = names(t.path());
    for (to, paths) in [(".", "."), ("@", "."), ("link", "a b c"), ("b/..", "a b c")] {
        run(&t, to, paths)
            .code(0)
            .stdout_is("")
            .stderr_has("nothing to do");
        assert_eq!(names(t.path()), before, "{to} {paths}");
    }
    // What lies in the destination is not the one that is kept.
    run(&t, "a", "a b").code(0).stdout_is("");
    run(&t, "a", "--keep=first a b c")
        .code(0)
        .stdout_is("move c/y to a/c/y (kept: b/y)\n");
    assert!(t.exists("a/x") && t.exists("b/x") && t.exists("b/y"));
}

/// Files that were moved, shown in another place by a mount, are still files that were moved.
#[test]
fn mounts_lead_to_the_destination() {
    for (mount, paths) in [
        ("mount --bind trash m", "a b m"),
        ("mount --bind trash/b m", "a b m"),
        ("mount --bind trash/b a/m", "a b a/m"),
        ("mount --bind . m", "a b m/trash"),
    ] {
        let t = tree();
        t.dir("m").dir("a/m");
        run(&t, "trash", "a b c").code(0);
        let once = names(t.path());
        let script =
            format!("{mount}; \"$BC\" dup prune --yes --action=move:trash --keep=last {paths}");
        let Some(out) = where_it_may_mount(&t, &script) else {
            return;
        };
        out.code(0).stdout_is("").stderr_has("nothing to do");
        assert_eq!(names(t.path()), once, "{script}");
    }
}

#[test]
fn a_destination_in_or_around_a_reference_is_refused() {
    let t = tree();
    let before = names(t.path());
    for (to, reason) in [
        ("a", "below a --reference"),
        ("a/", "below a --reference"),
        ("a/new/deeper", "below a --reference"),
        ("link/a/new", "below a --reference"),
        ("@/a", "below a --reference"),
        ("none/../a/new", "below a --reference"),
        ("none/none/../../a", "below a --reference"),
        (".", "a --reference lies below it"),
        ("@/link/.", "a --reference lies below it"),
    ] {
        run(&t, to, "--reference=a/ b c")
            .code(2)
            .stdout_is("")
            .stderr_has(reason);
        assert_eq!(names(t.path()), before, "{to}");
    }
    assert!(!t.exists("none"));
    // The report knows its references.
    t.bc_line("dup scan --format=json --output=../r.json --reference=a b c")
        .go()
        .code(0);
    run(&t, "a/new", "--from=../r.json")
        .code(2)
        .stderr_has("below a --reference");
    run(&t, "around", "--reference=a/ b c").code(0);
}

/// What stands in the way of a destination that nothing was moved to yet is seen by a dry run, and
/// said in the same words.
#[test]
fn a_dry_run_foresees_that_no_directory_can_be_made() {
    for (named, reason) in [
        ("lost", Errno::NOENT),
        ("file-in-way", Errno::NOTDIR),
        ("link-in-way", Errno::LOOP),
        ("closed", Errno::ACCESS),
        ("closed/new", Errno::ACCESS),
    ] {
        let t = tree();
        for dir in [".", "a", "b", "c"] {
            t.mode(dir, 0o777);
        }
        t.symlink("nowhere", "lost")
            .write("file-in-way/b", "")
            .dir("link-in-way/to")
            .symlink("to", "link-in-way/b")
            .dir("closed")
            .mode("closed", 0o555);
        std::fs::create_dir(t.scratch("journals")).unwrap();
        t.mode("../journals", 0o777);
        let prune = |mode: &str| {
            let line = format!("dup prune {mode} --keep=first a/x b/x");
            let run = t.bc_line(&line).arg(format!("--action=move:{named}"));
            run.as_nobody().go()
        };
        let before = names(t.path());
        let (dry, real) = (prune("--dry-run"), prune("--yes --journal=../journals/j"));
        let reason = reason.to_string();
        dry.code(1).stdout_is("").stderr_has(&reason);
        real.code(1).stdout_is("").stderr_has(&reason);
        let said = |out: &bc_testkit::Outcome| {
            let text = out.error_text();
            text.lines()
                .find(|line| line.contains("skipped: "))
                .map(str::to_owned)
        };
        assert_eq!(said(&dry), said(&real), "{named}");
        assert_eq!(names(t.path()), before, "{named}");
    }
}
