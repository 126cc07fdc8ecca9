//! What `--reference` names is protected, however it is spelt and by whichever path it is
//! reached.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bc_testkit::{TestTree, left_out};

use crate::common::{BC, Bc};

/// An archive, an inbox with the same files, and names that lead to the archive.
fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("archive/p.jpg", "a photo")
        .write("archive/sub/q.jpg", "another")
        .write("in/p.jpg", "a photo")
        .write("in/deep/q.jpg", "another")
        .symlink("archive", "link")
        .symlink("../archive", "in/up");
    t
}

/// Ways to name the archive; `@` stands for the tree's absolute path.
const SPELLINGS: [&str; 12] = [
    "archive",
    "archive/",
    "./archive",
    "archive//",
    "archive/.",
    "in/../archive",
    "archive/sub/..",
    "@/archive",
    "@/archive/",
    "link",
    "link/",
    "in/up/",
];

/// PATHs that lead to the inbox and, some of them, into the archive.
const PATHS: [&str; 18] = [
    "in",
    "in archive",
    "archive in",
    "in archive/",
    "in ./archive",
    "in @/archive",
    "in in/../archive",
    "in link",
    "in link/",
    "in archive/sub",
    "in archive/sub/..",
    "in link/sub",
    "in archive/p.jpg archive/sub/q.jpg",
    "in link/p.jpg @/archive/sub/q.jpg",
    ".",
    ". archive/sub",
    "in archive archive/ ./archive",
    "archive/sub archive in .",
];

const ACTIONS: [&str; 4] = ["delete", "move:../moved", "symlink", "hardlink"];

/// Names with inode and content: what must not change.
fn state(dir: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                pending.push(path);
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                let links = if meta.is_symlink() { 0 } else { meta.ino() };
                found.insert(path, (links, content));
            }
        }
    }
    found
}

fn prune(t: &TestTree, action: &str, reference: &str, rest: &str) -> bc_testkit::Outcome {
    let at = |text: &str| text.replace('@', t.path().to_str().unwrap());
    t.bc_line(&format!("dup prune --yes --action={action} --keep=path:in"))
        .arg(format!("--reference={}", at(reference)))
        .args(at(rest).split_whitespace())
        .go()
}

#[track_caller]
fn check(action: &str, reference: &str, paths: &str) {
    let t = tree();
    let before = state(&t.join("archive"));
    let out = prune(&t, action, reference, paths);
    let context = format!("--action={action} --reference={reference} {paths}");
    let said = format!("{}{}", out.text(), out.error_text());
    assert_eq!(out.status.code(), Some(0), "{context}: {said}");
    assert_eq!(state(&t.join("archive")), before, "{context}: {said}");
    for (name, kept) in [("in/p.jpg", "p.jpg"), ("in/deep/q.jpg", "sub/q.jpg")] {
        let there = t.join(name).symlink_metadata().ok();
        let original = std::fs::metadata(t.join("archive").join(kept))
            .unwrap()
            .ino();
        let done = match action {
            "symlink" => there.is_some_and(|meta| meta.is_symlink()),
            "hardlink" => there.is_some_and(|meta| meta.ino() == original),
            _ => there.is_none(),
        };
        assert!(done, "{context}: {name} is what it was: {said}");
    }
}

#[test]
fn every_spelling_protects_from_every_path() {
    for reference in SPELLINGS {
        for paths in PATHS {
            check("delete", reference, paths);
        }
    }
}

#[test]
fn every_action_leaves_references_alone() {
    for action in ACTIONS {
        for (index, paths) in PATHS.iter().enumerate() {
            check(action, SPELLINGS[index % SPELLINGS.len()], paths);
        }
    }
    for paths in PATHS {
        let steps = reflinks(&tree(), "archive/", paths);
        for line in &steps {
            assert!(line.ends_with(" (reference)"), "{paths}: {line}");
            let target = line.split(' ').nth(1).unwrap();
            assert!(!target.contains("archive"), "{paths}: {line}");
        }
    }
}

/// The reflinks of a plan. Few file systems share blocks: elsewhere no plan promises any, and the
/// first one stands for all in what is said of that.
fn reflinks(t: &TestTree, reference: &str, paths: &str) -> Vec<String> {
    let out = prune(t, "reflink", reference, &format!("--dry-run {paths}"));
    let (steps, expected): (Vec<String>, usize) = if out.status.success() {
        (out.text().lines().map(str::to_string).collect(), 2)
    } else {
        let said = out.code(1).error_text();
        let skipped = |line: &str| {
            let (step, _) = line.strip_prefix("bc dup: ")?.split_once(": skipped: ")?;
            Some(step.to_string())
        };
        (said.lines().filter_map(skipped).collect(), 1)
    };
    assert_eq!(steps.len(), expected, "{paths}: {out:?}");
    steps
}

#[test]
fn a_reference_may_be_a_file() {
    for reference in [
        "archive/p.jpg",
        "./archive/../archive/p.jpg",
        "link/p.jpg",
        "@/link/p.jpg",
    ] {
        for paths in ["in archive", ".", "in archive/p.jpg", "in link/p.jpg", "in"] {
            for action in ACTIONS {
                let t = tree();
                prune(&t, action, reference, paths).code(0);
                let kept = t.join("archive/p.jpg").symlink_metadata().unwrap();
                assert!(kept.is_file() && t.read("archive/p.jpg") == b"a photo");
                let there = t.join("in/p.jpg").symlink_metadata();
                let same = there.is_ok_and(|meta| meta.is_file() && meta.ino() != kept.ino());
                assert!(!same, "{action} {reference} {paths}");
            }
        }
    }
}

/// The reference's own name is left out of the search; the file has another one in the inbox.
#[test]
fn other_names_of_a_references_files_are_left_alone() {
    for filter in [
        "--no-hidden",
        "--exclude=.hidden",
        "--max-depth=1",
        "--include=in-*",
    ] {
        for action in ACTIONS {
            let t = TestTree::new();
            t.write("archive/.hidden/x", "same")
                .hard_link("archive/.hidden/x", "in/in-x")
                .write("in/in-y", "same");
            let before = state(&t.join("archive"));
            let kept = std::fs::metadata(t.join("in/in-x")).unwrap().ino();
            t.bc_line(&format!("dup prune --yes --action={action} {filter}"))
                .args(["--keep=name:in-y", "--reference=archive/", "in"])
                .go()
                .code(0);
            assert_eq!(state(&t.join("archive")), before, "{filter} {action}");
            let there = std::fs::metadata(t.join("in/in-x")).unwrap();
            assert_eq!(there.ino(), kept, "{filter} {action}");
        }
    }
}

#[test]
fn links_that_are_followed_lead_to_protected_files() {
    for action in ["delete", "move:../moved", "hardlink"] {
        let t = tree();
        t.symlink("../archive/sub", "in/l")
            .symlink("../archive/p.jpg", "in/file");
        let before = state(&t.join("archive"));
        // Left out where it lies, and reached by a link.
        let out = prune(
            &t,
            action,
            "archive",
            "--follow-symlinks --exclude=sub --exclude=up in",
        );
        assert_eq!(
            state(&t.join("archive")),
            before,
            "{action}: {}",
            out.error_text()
        );
        assert!(t.join("in/l").symlink_metadata().unwrap().is_symlink());
    }
}

#[test]
fn a_reference_that_cannot_be_opened_ends_the_run() {
    let t = tree();
    t.fifo("fifo")
        .write("plain", "x")
        .dir("closed")
        .mode("closed", 0);
    let before = state(&t.join("in"));
    for command in ["scan", "summary", "prune --action=delete --yes"] {
        for (reference, reason) in [
            ("archve", "archve: open: No such file"),
            ("~/archive", "write --reference ~/DIR"),
            ("", "No such file"),
            ("fifo", "not a regular file"),
            ("plain/", "Not a directory"),
            ("archive/p.jpg/x", "Not a directory"),
        ] {
            t.bc_line(&format!("dup {command} in archive"))
                .arg(format!("--reference={reference}"))
                .go()
                .code(2)
                .stdout_is("")
                .stderr_has(reason);
        }
        t.bc_line(&format!(
            "dup {command} in --reference=archive --reference=closed"
        ))
        .as_nobody()
        .go()
        .code(2)
        .stderr_has("closed: open: Permission denied");
    }
    assert_eq!(state(&t.join("in")), before);
    t.mode("closed", 0o755);
}

#[test]
fn reports_name_references_first() {
    for reference in SPELLINGS {
        for paths in ["in archive", "in link/", "in archive/sub archive/p.jpg"] {
            let t = tree();
            let reference = reference.replace('@', t.path().to_str().unwrap());
            let line = format!("dup {paths} --reference={reference}");
            let out = t.bc_line(&line).go();
            for group in out.code(0).text().split("\n\n") {
                assert!(
                    !group.starts_with("in/p") && !group.starts_with("in/d"),
                    "{group}"
                );
            }
            let out = t.bc_line(&line).arg("--format=json").go();
            let report: serde_json::Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
            let roots = report["reference_roots"].as_array().unwrap();
            assert_eq!(roots.len(), 1, "{report}");
            for group in report["groups"].as_array().unwrap() {
                for file in group["files"].as_array().unwrap() {
                    let path = file["path"].as_str().unwrap();
                    let inbox = path.starts_with("in/p.jpg") || path.starts_with("in/deep");
                    assert_eq!(file["reference"], !inbox, "{line}: {path}");
                }
                assert_eq!(group["files"][0]["reference"], true);
            }
        }
    }
}

#[test]
fn steps_say_that_the_kept_file_is_a_reference() {
    for (action, expected) in [
        ("delete", "delete in/p.jpg (kept: archive/p.jpg, reference)"),
        ("hardlink", "hardlink in/p.jpg to archive/p.jpg (reference)"),
        ("symlink", "symlink in/p.jpg to archive/p.jpg (reference)"),
        (
            "move:d",
            "move in/p.jpg to d/in/p.jpg (kept: archive/p.jpg, reference)",
        ),
    ] {
        let t = tree();
        let dry = prune(&t, action, "archive", "--dry-run in");
        dry.code(0).stdout_has(format!("{expected}\n"));
        prune(&t, action, "archive", "in")
            .code(0)
            .stdout_is(&dry.stdout);
    }
    let steps = reflinks(&tree(), "archive", "in");
    assert_eq!(steps[0], "reflink in/p.jpg from archive/p.jpg (reference)");
}

/// Runs a shell script where it may mount things, `$BC` being the program; `None` where that
/// is not allowed.
pub fn where_it_may_mount(t: &TestTree, script: &str) -> Option<bc_testkit::Outcome> {
    for flags in ["-m", "-rm"] {
        let probe = t
            .run("unshare")
            .args([
                flags,
                "sh",
                "-c",
                "mkdir ../probe && mount --bind . ../probe",
            ])
            .command()
            .output();
        let _ = std::fs::remove_dir(t.scratch("probe"));
        if probe.is_ok_and(|output| output.status.success()) {
            let run = t.run("unshare").args([flags, "sh", "-ec", script]);
            return Some(run.env("BC", BC).go());
        }
    }
    left_out("mounts are not permitted here");
    None
}

#[test]
fn mounts_lead_to_protected_files() {
    for (mount, paths) in [
        ("mount --bind archive m", "m in"),
        ("mount --bind archive/sub m", "in m"),
        ("mount --bind archive/sub in/m", "in"),
        ("mount --bind archive/sub in/m", "in in/m --exclude=sub"),
        ("mount --bind . m", "m/archive in"),
        (
            "mount --bind archive m; mount --bind m/sub in/m",
            "m in/m in",
        ),
        ("mount --bind archive/p.jpg in/bound", "in/bound in"),
        // The destination holds the archive.
        (
            "mkdir -p ../moved/in/deep; mount --bind archive/sub ../moved/in/deep",
            "in",
        ),
    ] {
        for action in ACTIONS {
            let t = tree();
            t.dir("m").dir("in/m").write("in/bound", "");
            let before = state(&t.join("archive"));
            let script = format!(
                "{mount}; \"$BC\" dup prune --yes --action={action} --keep=path:in --keep=first \
                 --reference=archive/ {paths} || test $? = 1"
            );
            let Some(out) = where_it_may_mount(&t, &script) else {
                return;
            };
            out.code(0);
            let said = format!("{}{}", out.text(), out.error_text());
            assert_eq!(state(&t.join("archive")), before, "{script}: {said}");
        }
    }
}
