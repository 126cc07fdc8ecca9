//! `bc move` within one file system: renamed, never over anything, directories merged.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bc_testkit::{NOBODY, Outcome, TestTree, is_root, left_out, seen};

use crate::common::Bc;
use crate::copy_trees::{MANIFEST, litter, rich, tree};

fn ino(t: &TestTree, path: &str) -> u64 {
    t.join(path).symlink_metadata().unwrap().ino()
}

#[test]
fn a_tree_goes_by_one_rename_and_leaves_nothing_behind() {
    for (line, target) in [
        ("move r to", "to"),
        ("move r into", "into/r"),
        ("move -T r free", "free"),
        ("move r/ slash/", "slash/r"),
    ] {
        let t = rich();
        t.dir("into").dir("slash");
        let before = seen(&t.join("r"), MANIFEST).unwrap();
        let number = ino(&t, "r");
        let out = t.bc_line(line).go();
        out.code(0).stderr_has("1 moved of 1; 0 B written");
        assert_eq!(ino(&t, target), number, "{line}");
        assert_eq!(seen(&t.join(target), MANIFEST).unwrap(), before, "{line}");
        assert!(!t.exists("r"), "{line}");
        assert!(!t.exists(Path::new(target).join(MANIFEST)), "{line}");
        assert!(litter(&t).is_empty(), "{line}: {:?}", litter(&t));
    }
}

#[test]
fn files_links_and_pipes_are_renamed_too() {
    let t = tree();
    t.dir("to");
    let numbers = ["r/a/file", "r/link", "r/pipe"].map(|path| ino(&t, path));
    let out = t.bc_line("move --itemize r/a/file r/link r/pipe to").go();
    out.code(0).stdout_is("+ to/file\n+ to/link\n+ to/pipe\n");
    assert_eq!(
        ["to/file", "to/link", "to/pipe"].map(|path| ino(&t, path)),
        numbers
    );
    // The other name of the file is what it was.
    assert_eq!(ino(&t, "r/second"), numbers[0]);
    assert!(litter(&t).is_empty());
}

#[test]
fn directories_that_are_there_are_merged() {
    let t = tree();
    t.write("to/r/a/mine", "mine")
        .write("to/r/other/deep", "deep");
    let before = seen(&t.join("r"), MANIFEST).unwrap();
    let number = ino(&t, "r/a/large");
    let out = t.bc_line("move r to").go();
    out.code(0);
    assert_eq!(ino(&t, "to/r/a/large"), number);
    assert_eq!(t.read("to/r/a/mine"), b"mine");
    assert!(!t.exists("r"), "{out}");
    let after = seen(&t.join("to/r"), MANIFEST).unwrap();
    for (path, one) in &before {
        let there = &after[path];
        assert_eq!(there, one, "{}", path.display());
    }
    assert_eq!(after.len(), before.len() + 3);
    assert!(litter(&t).is_empty() && !t.exists(Path::new("to").join(MANIFEST)));
}

#[test]
fn a_name_that_is_taken_keeps_its_source_unless_another_rule_is_given() {
    for (rule, taken, there, code) in [
        ("fail", "other", "other", 1),
        ("skip", "other", "other", 1),
        ("replace", "other", "content", 0),
        ("verify", "other", "content", 0),
        // What is found equal may be another view of the source.
        ("verify", "content", "content", 1),
        ("update", "other", "other", 1),
    ] {
        let t = tree();
        t.write("to/a/file", taken);
        let line = format!("move -T --on-conflict={rule} r to");
        let out = t.bc_line(&line).go();
        let context = format!("{rule}: {out}");
        assert_eq!(out.status.code(), Some(code), "{context}");
        assert_eq!(t.read("to/a/file"), there.as_bytes(), "{context}");
        assert_eq!(t.read("to/a/large").len(), 200_000, "{context}");
        assert_eq!(t.exists("r/a/file"), code == 1, "{context}");
        assert_eq!(t.exists("r"), code == 1, "{context}");
        assert!(!t.exists("r/a/large"), "{context}");
        if code == 1 {
            // A failure names the destination, as that of a copy does.
            out.stderr_has(match rule {
                "fail" => "to/a/file: create: File exists",
                _ => "r/a/file: remove: stays: the existing entry",
            });
            assert_eq!(t.read("r/a/file"), b"content", "{context}");
        }
    }
}

#[test]
fn kinds_that_do_not_go_together() {
    let t = TestTree::new();
    t.write("r/dir/x", "x")
        .write("r/file", "file")
        .write("r/through/y", "y");
    t.write("to/dir", "a file")
        .write("to/file/z", "z")
        .dir("elsewhere");
    t.symlink("../elsewhere", "to/through");
    let out = t.bc_line("move -T r to").go();
    out.code(1)
        .stderr_has("to/dir: mkdir: is no directory there")
        .stderr_has("to/file: create: Is a directory")
        .stderr_has("to/through: mkdir: is a symbolic link there");
    assert_eq!(t.read("r/dir/x"), b"x");
    assert_eq!(t.read("r/file"), b"file");
    assert_eq!(t.read("r/through/y"), b"y");
    assert!(!t.exists("elsewhere/y"));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_changed() {
    let t = tree();
    t.hard_link("r/a/large", "same").symlink("r", "to-r");
    let before = seen(t.path(), MANIFEST).unwrap();
    for (line, text) in [
        ("move r r/a", "cannot be moved into itself"),
        ("move r to-r/a", "cannot be moved into itself"),
        ("move r r/a/new", "cannot be moved into itself"),
        ("move r/a/large same", "is what it would be moved to"),
        ("move -T r r", "is what it would be moved to"),
        ("move r/a r", "is what it would be moved to"),
        ("move r/. to", "has no name of its own"),
        ("move to-r/ to", "is a symbolic link"),
        ("move none to", "none: stat: No such file"),
        ("move r a/b/c", "open directory: No such file"),
        ("move r to --to=other", "one destination"),
        ("move --algorithm=none r to", "digest"),
        ("move --sync=none r to", "on the disk"),
        ("move r", "destination"),
    ] {
        let out = t.bc_line(line).go();
        out.code(2).stderr_has(text);
        assert_eq!(seen(t.path(), MANIFEST).unwrap(), before, "{line}");
    }
    assert!(litter(&t).is_empty());
}

#[test]
fn one_of_several_that_is_missing_stops_none_of_the_others() {
    let t = tree();
    t.dir("to").write("x", "x");
    let out = t.bc_line("move r none x to").go();
    out.code(1)
        .stderr_has("none: stat: No such file")
        .stderr_has("2 moved, 1 failed of 3");
    assert!(t.exists("to/r/a/file") && t.exists("to/x") && !t.exists("r") && !t.exists("x"));
}

#[test]
fn a_dry_run_prints_what_the_run_does() {
    let t = tree();
    t.write("to/r/a/file", "taken").write("x", "x");
    for (line, lines) in [
        ("move --dry-run x y", "+ y\n"),
        ("move --dry-run r free", "+ free\n"),
        (
            "move --dry-run -T --on-conflict=skip r to/r",
            "+ to/r/a/large\n= to/r/a/file: exists\n",
        ),
    ] {
        let before = seen(t.path(), MANIFEST).unwrap();
        let out = t.bc_line(line).go();
        out.stdout_has(lines)
            .stderr_has("dry run: nothing is written");
        assert_eq!(seen(t.path(), MANIFEST).unwrap(), before, "{line}");
    }
    assert!(litter(&t).is_empty());
}

/// Lines, reasons and counts of a dry run are those of the run.
#[test]
fn a_dry_run_counts_as_the_run_does() {
    for rule in ["fail", "skip", "replace"] {
        let t = tree();
        t.write("r/new/one", "1").write("r/a/sub/two", "2");
        t.write("to/r/a/large", "taken").write("to/r/other", "mine");
        agree(&t, &format!("move --on-conflict={rule} r to"));
    }
    // The file has two names, of which one is taken.
    let t = tree();
    t.write("to/second", "taken");
    agree(&t, "move -T --on-conflict=skip r to");
}

/// A line says before what it does: lines, reasons and counts.
#[track_caller]
pub fn agree(t: &TestTree, line: &str) {
    let reasons = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(": "));
        lines
            .map(str::to_owned)
            .filter(|line| is_reason(line))
            .collect()
    };
    let counts = |text: String| -> Option<String> {
        let counts = text.lines().find(|line| line.contains(" moved"))?;
        let counts = counts.rsplit(": ").next()?;
        Some(counts.split(';').next()?.to_owned())
    };
    let dry = t.bc_line(&format!("{line} --dry-run")).go();
    let run = t.bc_line(&format!("{line} --itemize")).go();
    let context = format!("{line}: {dry}{run}");
    assert_eq!(dry.text(), run.text(), "{context}");
    assert_eq!(
        reasons(dry.error_text()),
        reasons(run.error_text()),
        "{context}"
    );
    assert_eq!(
        counts(dry.error_text()),
        counts(run.error_text()),
        "{context}"
    );
    assert_eq!(dry.status.code(), run.status.code(), "{context}");
}

fn is_reason(line: &str) -> bool {
    let operations = ["remove", "create", "rename", "rmdir", "mkdir"];
    operations
        .iter()
        .any(|op| line.contains(&format!(": {op}: ")))
}

/// A file of another user that may get a link is not copied, and keeps its owner, where its new
/// directory is made first, too. One that may not is copied.
#[test]
fn a_dry_run_foresees_links_of_files_of_others() {
    if !is_root() {
        return left_out("only root has files of others");
    }
    for (mode, is_made) in [(0o666, false), (0o666, true), (0o644, false), (0o644, true)] {
        let t = TestTree::new();
        t.write("r/file", "content").write("r/left.tmp", "left");
        t.mode("r/file", mode).mode("", 0o777);
        let home = t.scratch("home");
        std::fs::create_dir_all(&home).unwrap();
        let mut own = vec![home, t.join("r")];
        if is_made {
            own.push(t.dir("to").join("to"));
        }
        for path in &own {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let number = ino(&t, "r/file");
        let line = "move -T --exclude=*.tmp r to";
        let dry = t.bc_line(&format!("{line} --dry-run")).as_nobody().go();
        let run = t.bc_line(line).as_nobody().go();
        let lost = |out: &Outcome| out.error_text().contains("to/file: chown: ");
        let context = format!("{mode:o} {is_made}: {dry}{run}");
        assert_eq!(dry.status.code(), run.status.code(), "{context}");
        assert_eq!(lost(&dry), lost(&run), "{context}");
        assert_eq!(t.exists("r/file"), lost(&run), "{context}");
        if mode == 0o666 {
            assert_eq!(ino(&t, "to/file"), number, "{context}");
        }
    }
}

/// A filter leaves files where they are, and their directories.
#[test]
fn what_is_left_out_stays() {
    let t = tree();
    let number = ino(&t, "r/a/file");
    let out = t.bc_line("move --exclude=large r to").go();
    out.code(0);
    // Nothing is copied, and names of one file are names of one file.
    assert_eq!(
        (ino(&t, "to/a/file"), ino(&t, "to/second")),
        (number, number)
    );
    assert!(t.exists("r/a/large") && !t.exists("to/a/large"), "{out}");
    assert!(!t.exists("r/a/file") && !t.exists("r/second"), "{out}");
}

/// A manifest that is asked for is made: files are read for it, and stay what they are.
#[test]
fn a_manifest_that_is_asked_for_is_made() {
    let t = tree();
    let number = ino(&t, "r/a/file");
    t.bc_line("move --manifest=m.jsonl r to").go().code(0);
    assert_eq!(ino(&t, "to/a/file"), number);
    assert!(!t.exists("r"));
    t.bc_line("integrity verify to m.jsonl").go().code(0);
    let text = String::from_utf8(t.read("m.jsonl")).unwrap();
    assert!(text.contains("blake3") && text.contains("a/file"), "{text}");
}

/// What is renamed into a directory that may be written to and not be read is no failure, and the
/// next source is renamed, too.
#[test]
fn a_directory_that_cannot_be_read_is_no_failure() {
    let t = TestTree::new();
    t.write("out/one", "1").write("out/two", "2").dir("out/box");
    t.mode("out", 0o777).mode("out/box", 0o333);
    if is_root() {
        let home = t.scratch("home");
        std::fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let line = "move out/one out/two out/box";
    t.bc_line(line)
        .as_nobody()
        .go()
        .code(0)
        .stderr_has("2 moved of 2");
}

/// One source in another one is refused before anything is changed.
#[test]
fn a_source_in_another_one_is_refused() {
    for line in ["move r r/a to", "move r/a/file r to", "move r ./r to"] {
        let t = tree();
        t.dir("to");
        let before = seen(t.path(), MANIFEST).unwrap();
        t.bc_line(line).go().code(2);
        assert_eq!(seen(t.path(), MANIFEST).unwrap(), before, "{line}");
    }
}

/// Temporary names of a copy or move that may be at work stay when directories are merged.
#[test]
fn what_another_job_is_at_work_with_stays() {
    let stage = ".bc-copy.0123456789abcdef.part";
    let aside = ".bc-move.0123456789abcdef.tmp";
    let t = TestTree::new();
    t.write("r/file", "content").dir("to/r");
    for name in [stage, aside] {
        t.write(Path::new("r").join(name), "another");
    }
    let out = t.bc_line("move r to").go();
    out.code(1).stderr_has(stage).stderr_has(aside);
    for name in [stage, aside] {
        assert!(t.exists(Path::new("r").join(name)), "{name}");
    }
    assert_eq!(t.read("to/r/file"), b"content");
}
