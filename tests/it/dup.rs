//! `bc dup`, as a user meets it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;

/// Two equal pairs, one larger, and files that only look alike.
fn tree() -> TestTree {
    let t = TestTree::new();
    let big: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut middle = big.clone();
    middle[40_000] ^= 1;
    t.write("a/big", &big)
        .write("b/big", &big)
        .write("c/other-middle", &middle);
    t.write("a/small", "same")
        .write("z", "same")
        .write("c/same size", "none");
    t.write("empty1", "")
        .write("empty2", "")
        .write("alone", "nothing like it");
    t
}

fn ino(t: &TestTree, path: &str) -> u64 {
    std::fs::symlink_metadata(t.join(path)).unwrap().ino()
}

#[test]
fn groups_largest_waste_first() {
    let t = tree();
    let expected = "./a/big\n./b/big\n\n./a/small\n./z\n";
    t.bc_line("dup .")
        .go()
        .code(0)
        .stderr_is("")
        .stdout_is(expected);
    t.bc_line("dup scan .").go().code(0).stdout_is(expected);
    t.bc()
        .arg0("bcduplicate")
        .args(["scan", "."])
        .go()
        .code(0)
        .stdout_is(expected);
    t.bc_line("dup --verify-bytes .")
        .go()
        .code(0)
        .stdout_is(expected);
    for algorithm in ["xxh128", "xxh3", "blake3", "sha256"] {
        t.bc_line("dup . --algorithm")
            .arg(algorithm)
            .go()
            .code(0)
            .stdout_is(expected);
    }
    t.bc_line("dup --min-size=0 .")
        .go()
        .code(0)
        .stdout_has("./empty1\n./empty2\n");
    t.bc_line("dup --min-size=5 .")
        .go()
        .code(0)
        .stdout_is("./a/big\n./b/big\n");
    t.bc_line("dup alone").go().code(0).stdout_is("");
    for (line, advice) in [
        ("dup", "bc dup ."),
        ("dup scan", "bc dup ."),
        ("dup dirs", "bc dup dirs ."),
        ("dup summary", "bc dup summary ."),
        (
            "dup prune --action=delete --dry-run",
            "bc dup prune --action=ACTION .",
        ),
    ] {
        let advice = format!("no PATH given; see --help, or for this directory use: {advice}\n");
        t.bc_line(line).go().code(2).stderr_has(advice);
    }
}

#[test]
fn hard_links_are_one_file() {
    let t = TestTree::new();
    t.write("a", "same")
        .hard_link("a", "b")
        .write("lone", "x")
        .hard_link("lone", "lone2");
    t.bc_line("dup .").go().code(0).stdout_is("");
    t.bc_line("dup --match-hardlinks .")
        .go()
        .code(0)
        .stdout_is("./a\n./b\n\n./lone\n./lone2\n");
    t.write("c", "same");
    t.bc_line("dup .").go().code(0).stdout_is("./a\n./b\n./c\n");
}

#[test]
fn repeated_and_overlapping_roots_make_no_duplicates() {
    let t = TestTree::new();
    t.write("d/a", "same");
    for line in ["dup d d", "dup d ./d", "dup . d", "dup d d/a"] {
        t.bc_line(line).go().code(0).stdout_is("");
    }
}

#[test]
fn unreadable_files_are_in_no_group() {
    let t = TestTree::new();
    t.write("a", "same")
        .write("b", "same")
        .write("c", "same")
        .mode("b", 0);
    t.bc_line("dup .")
        .as_nobody()
        .go()
        .code(1)
        .stdout_is("./a\n./c\n")
        .stderr_has("./b: open: Permission denied");
    t.mode("c", 0);
    t.bc_line("dup .").as_nobody().go().code(1).stdout_is("");
}

#[test]
fn reports() {
    let t = tree();
    let out = t.bc_line("dup --format=json .").go();
    let report: serde_json::Value = serde_json::from_slice(&out.code(0).stdout).unwrap();
    assert_eq!(
        (&report["schema"], &report["stats"]["groups"]),
        (&1.into(), &2.into())
    );
    assert_eq!(report["groups"][0]["size"], 80_000);
    assert_eq!(report["groups"][0]["files"][1]["path"], "./b/big");
    assert_eq!(report["groups"][0]["files"][1]["ino"], ino(&t, "b/big"));
    let out = t.bc_line("dup --format=jsonl .").go();
    assert_eq!(out.code(0).lines().len(), 4);
    for line in out.lines() {
        serde_json::from_slice::<serde_json::Value>(line).unwrap();
    }
    t.bc_line("dup --format=csv .")
        .go()
        .code(0)
        .stdout_has("1,80000,")
        .stdout_has(",./b/big,\r\n");
    t.bc_line("dup --format=fdupes .")
        .go()
        .code(0)
        .stdout_is("./a/big\n./b/big\n\n./a/small\n./z\n\n");
    let out = t.bc_line("dup summary .").go();
    out.code(0)
        .stdout_has("groups                        2")
        .stdout_has("./a/big");
}

#[test]
fn the_script_compares_and_runs_once() {
    let t = tree();
    t.write_bytes(b"it's; touch pwned\n", "same");
    t.bc_line("dup --format=script --output=../script .")
        .go()
        .code(0);
    t.write("b/big", "edited since");
    let out = t.run("sh").arg("../script").go();
    out.code(1).stderr_has("skipped, differs by now: ./b/big");
    assert_eq!(t.read("b/big"), b"edited since");
    assert_eq!(ino(&t, "a/small"), ino(&t, "z"));
    assert!(!t.exists("pwned"));
    t.run("sh")
        .arg("../script")
        .go()
        .code(1)
        .stderr_has("was run already");
}

#[test]
fn hardlink_dry_run_run_again_undo() {
    let t = tree();
    t.mtime("a/big", 1000, 5).mtime("b/big", 2000, 7);
    let dry = t.bc_line("dup prune --action=hardlink --dry-run .").go();
    dry.code(0)
        .stdout_is("hardlink ./b/big to ./a/big\nhardlink ./z to ./a/small\n")
        .stderr_has("would be");
    assert_ne!(ino(&t, "a/big"), ino(&t, "b/big"));
    let real = t
        .bc_line("dup prune --action=hardlink --journal=../j .")
        .go();
    real.code(0)
        .stdout_is(&dry.stdout)
        .stderr_has("2 files changed")
        .stderr_has("bc dup undo");
    assert_eq!(ino(&t, "a/big"), ino(&t, "b/big"));
    t.bc_line("dup prune --action=hardlink --journal=../j2 .")
        .go()
        .code(0)
        .stdout_is("")
        .stderr_has("nothing to do");
    t.bc_line("dup undo ../j")
        .go()
        .code(0)
        .stdout_has("restored")
        .stderr_has("2 restored");
    assert_ne!(ino(&t, "a/big"), ino(&t, "b/big"));
    assert_eq!(std::fs::metadata(t.join("b/big")).unwrap().mtime(), 2000);
    assert_eq!(t.read("b/big"), t.read("a/big"));
}

#[test]
fn delete_asks_and_keeps_by_rule() {
    let t = tree();
    t.bc_line("dup prune --action=delete .")
        .go()
        .code(2)
        .stderr_has("--yes");
    assert!(t.exists("z") && t.exists("a/small"));
    t.mtime("a/small", 2000, 0).mtime("z", 1000, 0);
    t.bc_line("dup prune --action=delete --keep=oldest --yes --min-size=4 --max-size=4 .")
        .go()
        .code(0)
        .stdout_is("delete ./a/small (kept: ./z)\n");
    assert!(t.exists("z") && !t.exists("a/small"));
    let journals = std::fs::read_dir(t.scratch("home/.local/state/bc"))
        .unwrap()
        .count();
    assert_eq!(journals, 1, "the journal has a place of its own");
}

#[test]
fn symlink_and_move() {
    let t = tree();
    t.bc_line("dup prune --action=symlink --yes --min-size=1K .")
        .go()
        .code(0)
        .stdout_is("symlink ./b/big to ./a/big\n");
    assert_eq!(
        std::fs::read_link(t.join("b/big")).unwrap().as_os_str(),
        "../a/big"
    );
    assert_eq!(t.read("b/big"), t.read("a/big"));
    t.bc()
        .args([
            "dup",
            "prune",
            "--action=move:../trash",
            "--yes",
            "--keep=path:a",
            ".",
        ])
        .go()
        .code(0);
    assert!(!t.exists("z"));
    assert_eq!(std::fs::read(t.scratch("trash/z")).unwrap(), b"same");
}

#[test]
fn reference_files_are_never_changed() {
    let t = TestTree::new();
    t.write("master/x", "same")
        .write("inbox/x", "same")
        .write("inbox/y", "same")
        .write("master/x2", "same");
    t.bc_line("dup --reference=master inbox")
        .go()
        .code(0)
        .stdout_is("master/x\nmaster/x2\ninbox/x\ninbox/y\n");
    t.bc_line("dup prune --action=delete --yes --reference=master inbox")
        .go()
        .code(0);
    assert!(t.exists("master/x") && t.exists("master/x2"));
    assert!(!t.exists("inbox/x") && !t.exists("inbox/y"));
    // Nothing left but reference files: nothing to report.
    t.bc_line("dup --reference=master inbox")
        .go()
        .code(0)
        .stdout_is("");
}

#[test]
fn across_roots_only() {
    let t = TestTree::new();
    t.write("p/1", "same")
        .write("p/2", "same")
        .write("q/1", "same")
        .write("p/3", "pair")
        .write("p/4", "pair");
    t.bc_line("dup --across-roots p q")
        .go()
        .code(0)
        .stdout_is("p/1\np/2\nq/1\n");
    t.bc_line("dup prune --action=delete --yes --across-roots p q")
        .go()
        .code(0);
    assert!(t.exists("p/1") && t.exists("p/2") && !t.exists("q/1") && t.exists("p/4"));
}

#[test]
fn from_a_report_everything_is_checked_again() {
    let t = tree();
    t.bc_line("dup --format=json --output=../r.json .")
        .go()
        .code(0);
    t.write("b/big", "edited after the report");
    t.bc_line("dup prune --action=hardlink --from=../r.json")
        .go()
        .code(1)
        .stdout_is("hardlink ./z to ./a/small\n")
        .stderr_has("changed since it was scanned");
    assert_eq!(t.read("b/big"), b"edited after the report");
    let whole = t.read("../r.json");
    for (name, text) in [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        (
            "no digest",
            String::from_utf8_lossy(&whole)
                .replace("\"digest\":\"", "\"digest\":\"x")
                .into_bytes(),
        ),
        (
            "future",
            String::from_utf8_lossy(&whole)
                .replacen("\"schema\":1", "\"schema\":9", 1)
                .into_bytes(),
        ),
        (
            "escape",
            String::from_utf8_lossy(&whole)
                .replacen("./a/small", "./../a/small", 1)
                .into_bytes(),
        ),
    ] {
        t.write("../bad.json", &text);
        let out = t
            .bc_line("dup prune --action=delete --yes --from=../bad.json")
            .go();
        assert_eq!(out.status.code(), Some(2), "{name}: {}", out.error_text());
    }
}

#[test]
fn differing_metadata_is_respected() {
    let t = TestTree::new();
    t.write("a", "same").write("b", "same").mode("b", 0o600);
    t.bc_line("dup prune --action=hardlink .")
        .go()
        .code(1)
        .stderr_has("mode differs");
    assert_ne!(ino(&t, "a"), ino(&t, "b"));
    t.bc_line("dup prune --action=hardlink --ignore-metadata .")
        .go()
        .code(0);
    assert_eq!(ino(&t, "a"), ino(&t, "b"));
    assert_eq!(
        std::fs::metadata(t.join("a")).unwrap().permissions().mode() & 0o777,
        0o644
    );
}

#[test]
fn usage() {
    let t = tree();
    t.fifo("fifo");
    for (line, message) in [
        ("dup prune .", "--action"),
        ("dup prune --action=destroy .", "hardlink, reflink"),
        ("dup prune --action=delete --keep=best --yes .", "best"),
        ("dup prune --action=hardlink --from=x .", "--from"),
        ("dup undo missing", "missing"),
        ("dup undo fifo", "not a regular file"),
        (
            "dup prune --action=delete --yes --journal=fifo .",
            "not a regular file",
        ),
        (
            "dup prune --action=delete --yes --journal=/dev/zero .",
            "not a regular file",
        ),
        ("dup --algorithm=md5 .", "md5"),
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(message);
    }
}

/// Same groups as the established tools.
#[test]
fn agrees_with_jdupes_and_fdupes() {
    let t = TestTree::new();
    bc_testkit::Synth {
        files: 600,
        bytes: 6 << 20,
        ..bc_testkit::Synth::default()
    }
    .build(t.path())
    .unwrap();
    let ours = groups(&t.bc_line("dup .").go().text());
    assert!(!ours.is_empty());
    for (program, args) in [("jdupes", "-r -q ."), ("fdupes", "-r -q -n .")] {
        if tool(program).is_none() {
            left_out(&format!("{program} is not installed"));
            continue;
        }
        let theirs = t.run(program).args(args.split(' ')).go();
        assert_eq!(groups(&theirs.text()), ours, "{program}");
    }
}

fn groups(text: &str) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = text
        .split("\n\n")
        .map(|group| {
            let mut names: Vec<String> = group
                .lines()
                .map(str::to_owned)
                .filter(|l| !l.is_empty())
                .collect();
            names.sort();
            names
        })
        .filter(|group| group.len() > 1)
        .collect();
    groups.sort();
    groups
}

#[test]
fn with_a_cache_the_second_run_reads_nothing() {
    let t = tree();
    // Fresh files are not remembered: a later write within the same tick would not show.
    for name in [
        "a/big",
        "b/big",
        "c/other-middle",
        "a/small",
        "z",
        "c/same size",
    ] {
        t.mtime(name, 1_000_000, 0);
    }
    std::thread::sleep(std::time::Duration::from_millis(2200));
    let expected = t.bc_line("dup .").go();
    let run = |line: &str| {
        let out = t.bc_line(line).arg("--metrics=../m.json").go();
        out.code(0).stdout_is(&expected.stdout).stderr_is("");
        let metrics: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
        metrics["read_bytes"].as_u64().unwrap()
    };
    if !crate::common::is_cached(&t) {
        return;
    }
    assert!(run("dup --cache .") > 0);
    assert_eq!(run("dup --cache ."), 0);
    assert!(run("dup --cache=../other .") > 0);
    // What does not even begin like a cache may be a slip: refused.
    std::fs::write(t.scratch("other"), b"not a store").unwrap();
    t.bc_line("dup --cache=../other .")
        .go()
        .code(2)
        .stdout_is("")
        .stderr_has("other");
    t.write("b/big", "edited");
    t.bc_line("dup --cache .")
        .go()
        .code(0)
        .stdout_is("./a/small\n./z\n");
}
