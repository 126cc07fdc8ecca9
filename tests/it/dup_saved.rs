//! `prune --from=REPORT`: options beside it count or are refused.

use std::os::unix::fs::MetadataExt;

use bc_testkit::TestTree;

use crate::common::Bc;

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("archive/p", "a photo")
        .write("in/p", "a photo")
        .write("in/.h/p", "a photo")
        .write("in/skip/deep/q", "twice in the inbox")
        .write("in/q", "twice in the inbox")
        .symlink("archive", "link");
    t.bc_line("dup scan --format=json --output=../r.json archive in")
        .go()
        .code(0);
    t
}

fn steps(t: &TestTree, options: &str) -> Vec<String> {
    let out = t
        .bc_line("dup prune --action=delete --dry-run --from=../r.json")
        .args(options.split_whitespace())
        .go();
    let text = out.code(0).text();
    let targets = text.lines().map(|line| line.split(' ').nth(1).unwrap());
    let mut targets: Vec<String> = targets.map(str::to_owned).collect();
    targets.sort();
    targets
}

#[test]
fn options_that_choose_files_count() {
    let t = tree();
    for (options, expected) in [
        ("", &["in/skip/deep/q", "in/.h/p", "in/p"][..]),
        ("--reference=in", &["archive/p"]),
        ("--reference=./in/", &["archive/p"]),
        (
            "--reference=archive --keep=last",
            &["in/q", "in/.h/p", "in/p"],
        ),
        (
            "--reference=link/ --keep=last",
            &["in/q", "in/.h/p", "in/p"],
        ),
        (
            "--reference=in/.h --keep=first",
            &["in/skip/deep/q", "archive/p", "in/p"],
        ),
        ("--across-roots", &["in/.h/p", "in/p"]),
        ("--min-size=8", &["in/skip/deep/q"]),
        ("--newer=2100-01-01", &[]),
        ("--max-size=8", &["in/.h/p", "in/p"]),
        ("--max-size=1M --min-size=1K", &[]),
        ("--exclude=skip", &["in/.h/p", "in/p"]),
        ("--exclude=skip/deep", &["in/.h/p", "in/p"]),
        ("--exclude=skip/**", &["in/.h/p", "in/p"]),
        ("--exclude=p", &["in/skip/deep/q"]),
        ("--include=p", &["in/.h/p", "in/p"]),
        ("--include=p --exclude=.h", &["in/p"]),
        ("--no-hidden", &["in/skip/deep/q", "in/p"]),
        (
            "--no-hidden --hidden",
            &["in/skip/deep/q", "in/.h/p", "in/p"],
        ),
    ] {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(steps(&t, options), expected, "{options}");
    }
}

/// What a search with the same options would do is what is done with the report.
#[test]
fn filters_mean_what_they_mean_in_a_search() {
    let t = tree();
    for options in [
        "--exclude=skip",
        "--exclude=skip/deep",
        "--exclude=skip/**",
        "--exclude=deep",
        "--exclude=deep/*",
        "--exclude=**/deep/*",
        "--include=q",
        "--include=skip/**",
        "--include=*/q",
        "--no-hidden",
        "--min-size=7 --max-size=7",
        "--max-size=17",
    ] {
        let searched = t
            .bc_line("dup prune --action=delete --dry-run archive in")
            .args(options.split_whitespace())
            .go();
        t.bc_line("dup prune --action=delete --dry-run --from=../r.json")
            .args(options.split_whitespace())
            .go()
            .code(0)
            .stdout_is(&searched.code(0).stdout);
    }
}

#[test]
fn a_reference_beside_a_report_protects() {
    for reference in [
        "archive",
        "archive/",
        "./archive",
        "link",
        "link/",
        "archive/p",
    ] {
        for action in ["delete", "hardlink", "symlink", "move:../moved"] {
            let t = tree();
            let before = std::fs::metadata(t.join("archive/p")).unwrap().ino();
            t.bc_line(&format!("dup prune --yes --action={action} --keep=last"))
                .args(["--from=../r.json", "--reference"])
                .arg(reference)
                .go()
                .code(0);
            let after = t.join("archive/p").symlink_metadata().unwrap();
            assert!(
                after.is_file() && after.ino() == before,
                "{reference} {action}"
            );
        }
    }
    let t = tree();
    t.bc_line("dup prune --action=delete --yes --from=../r.json --reference=archve")
        .go()
        .code(2)
        .stderr_has("archve: open: No such file");
}

/// The report's own references are known by identity again: a file that came to lie there since
/// is protected as well.
#[test]
fn references_of_the_search_hold() {
    let t = tree();
    t.bc_line("dup scan --format=json --output=../r.json --reference=archive/ in")
        .go()
        .code(0);
    std::fs::rename(t.join("in"), t.join("archive/in")).unwrap();
    t.symlink("archive/in", "in");
    t.bc_line("dup prune --action=delete --yes --keep=last --from=../r.json")
        .go();
    for name in [
        "archive/p",
        "archive/in/p",
        "archive/in/.h/p",
        "archive/in/q",
    ] {
        assert!(t.exists(name), "{name}");
    }
    std::fs::rename(t.join("archive"), t.join("elsewhere")).unwrap();
    t.bc_line("dup prune --action=delete --yes --from=../r.json")
        .go()
        .code(2)
        .stderr_has("--reference=archive/: open: No such file");
    let report = String::from_utf8(t.read("../r.json")).unwrap();
    let report = report.replace("\"reference_roots\":[", "\"reference_roots\":[9,");
    t.write("../bad.json", report);
    t.bc_line("dup prune --action=delete --yes --from=../bad.json")
        .go()
        .code(2)
        .stderr_has("no such root as a reference");
}

#[test]
fn options_of_a_search_are_refused() {
    let t = tree();
    for option in [
        "--algorithm=sha256",
        "--verify-bytes",
        "--match-hardlinks",
        "--cache",
        "--cache=file",
        "--ignore-files",
        "--max-depth=3",
        "--files-from=list",
        "--follow-symlinks",
        "--one-file-system",
        "-x",
    ] {
        let name = option.split('=').next().unwrap();
        let name = if name == "-x" {
            "--one-file-system"
        } else {
            name
        };
        t.bc_line("dup prune --action=delete --yes --from=../r.json")
            .arg(option)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("--from")
            .stderr_has(name);
    }
    t.bc_line("dup prune --action=delete --yes --from=../r.json in")
        .go()
        .code(2)
        .stderr_has("--from");
    assert!(t.exists("in/p") && t.exists("in/q"));
}

#[test]
fn settings_for_searches_do_not_stand_in_the_way() {
    let t = tree();
    t.write(
        "../config.toml",
        "algorithm = \"sha256\"\ncache = \"c\"\n[dup]\nverify-bytes = true\nmax-depth = 1\none-file-system = true\n",
    );
    let run = |extra: &str| {
        t.bc_line("dup prune --action=delete --dry-run --from=../r.json --config=../config.toml")
            .args(extra.split_whitespace())
            .env("BC_MATCH_HARDLINKS", "1")
            .env("BC_FOLLOW_SYMLINKS", "true")
            .env("BC_MIN_SIZE", "8")
            .go()
    };
    let out = run("");
    // One that a report can answer counts, wherever it stands.
    assert_eq!(out.code(0).text().lines().count(), 1, "{}", out.text());
    // They hold where there is a search: what lies deeper is not found.
    t.bc_line("dup scan --config=../config.toml archive in")
        .go()
        .code(0)
        .stdout_is("archive/p\nin/p\n");
}

#[test]
fn sizes_that_no_file_can_have_are_refused() {
    let t = tree();
    for line in [
        "hash --min-size=5 --max-size=3 in",
        "hash --min-size=1K --max-size=1000 in",
        "dup --min-size=5 --max-size=3 in",
        "dup summary --min-size=5 --max-size=3 in",
        "dup prune --action=delete --yes --min-size=5 --max-size=3 in",
        "dup prune --action=delete --yes --min-size=5 --max-size=3 --from=../r.json",
        "dup --max-size=0 in",
        "integrity manifest --min-size=5 --max-size=3 in",
        "hash --files-from=- --min-size=5 --max-size=3",
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("-size");
    }
    t.bc_line("dup --max-size=0 --min-size=0 in").go().code(0);
    t.bc_line("dup --min-size=7 --max-size=7 in")
        .go()
        .code(0)
        .stdout_is("in/.h/p\nin/p\n");
    t.bc_line("hash --max-size=0 in").go().code(0).stdout_is("");
}

/// A second rule is not asked where the first has decided, and still its pattern may match.
#[test]
fn only_patterns_that_match_nothing_are_warned_of() {
    let t = TestTree::new();
    t.write("a/a", "same")
        .write("b/b", "same")
        .write("a/c", "else")
        .write("b/d", "else");
    let run = |rules: &str| {
        t.bc_line("dup prune --action=delete --dry-run .")
            .args(rules.split_whitespace())
            .go()
    };
    let quiet = |rules| {
        assert!(
            !run(rules).code(0).error_text().contains("--keep"),
            "{rules}"
        )
    };
    quiet("--keep=path:a --keep=name:a");
    quiet("--keep=name:a --keep=path:a");
    quiet("--keep=first --keep=name:d --keep=path:b");
    run("--keep=path:a --keep=name:nothing")
        .code(0)
        .stderr_has("--keep=name:nothing: none of the duplicates matches");
    run("--keep=path:z --keep=name:a")
        .code(0)
        .stderr_has("--keep=path:z: none of the duplicates matches");
    // Where there are no duplicates, none could match.
    t.remove("b");
    quiet("--keep=path:a --keep=name:a");
}

/// Reports that are put together may have a file in several groups.
#[test]
fn groups_that_have_a_file_in_common_are_one() {
    let report = |t: &TestTree| {
        for name in ["a", "b", "c", "d", "e"] {
            t.write(name, "the same in all of them")
                .mtime(name, 1_000_000, 0);
        }
        t.hard_link("b", "b-too");
        let out = t.bc_line("dup scan --format=json .").go();
        let text = out.code(0).text();
        let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let group = report["groups"][0].clone();
        let of = |names: &[&str]| {
            let mut group = group.clone();
            let files = group["files"].as_array_mut().unwrap();
            files.retain(|file| names.iter().any(|name| file["path"] == format!("./{name}")));
            assert_eq!(files.len(), names.len());
            group
        };
        // The last one joins the two before it.
        let groups = vec![
            of(&["a", "b"]),
            of(&["d", "e"]),
            of(&["b-too", "c"]),
            of(&["e", "c"]),
        ];
        report["groups"] = groups.into();
        t.write("../r.json", report.to_string());
    };
    for action in ["hardlink", "symlink --yes", "delete --yes"] {
        let t = TestTree::new();
        report(&t);
        let line = format!("dup prune --from=../r.json --keep=first --action={action}");
        let dry = t.bc_line(&format!("{line} --dry-run")).go();
        let real = t.bc_line(&line).go();
        dry.code(0);
        real.code(0).stdout_is(dry.text());
        assert_eq!(dry.lines().len(), 5, "{}", dry.text());
    }
}

/// A report that somebody forged or edited: another file than the one that it names is never
/// touched, however its path and its root are spelled.
#[test]
fn paths_of_reports_are_those_that_are_acted_on() {
    let t = TestTree::new();
    let own = t.join("r/ef/f").display().to_string();
    t.write("r/ef/f", "the same content")
        .write("w/k", "the same content")
        .write("ref/f", "something else..")
        .write("ef/f", "something else..")
        .symlink("w", "r/to-w");
    let scan = |root: &str| {
        let out = t.bc_line(&format!("dup scan --format=json {root} w")).go();
        let text = out.code(0).text();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let mut tried = 0;
    let mut refuse = |root: &str, forged: &str, path: &str| {
        let mut report = scan(root);
        report["roots"][0]["path"] = forged.into();
        let files = report["groups"][0]["files"].as_array_mut().unwrap();
        let file = files.iter_mut().find(|file| file["root"] == 0).unwrap();
        file["path"] = path.into();
        t.write("../forged.json", report.to_string());
        for dry in ["--dry-run", ""] {
            let line = format!("dup prune --action=delete --yes --keep=name:k {dry}");
            let out = t.bc_line(&line).arg("--from=../forged.json").go();
            assert_ne!(
                out.status.code(),
                Some(0),
                "{root} {forged} {path}: {}",
                out.text()
            );
            assert!(
                !out.text().contains("delete"),
                "{forged} {path}: {}",
                out.text()
            );
            assert!(t.exists("r/ef/f") && t.exists("w/k"), "{forged} {path}");
            tried += 1;
        }
    };
    for root in ["r", "./r", "r/"] {
        refuse(root, "r", "ref/f");
        refuse(root, "r", "r//ef/f");
        refuse(root, "r", &format!("r/{own}"));
        refuse(root, "r/", &format!("r/{own}"));
        refuse(root, "r", "r/./ef/f");
        refuse(root, "r", "r/ef/../ef/f");
        refuse(root, "r", "r/../r/ef/f");
        refuse(root, "r", "r/ef/f/");
        refuse(root, "r/e", "r/ef/f");
        refuse(root, "/", &own[1..]);
        refuse(root, ".", "r/ef/f");
        refuse(root, "./r", "r/ef/f");
        refuse(root, "r", "./r/ef/f");
    }
    assert_eq!(tried, 78);
    // Roots as they may be written, and the paths that a search finds below them.
    for root in [
        "r",
        "r/",
        "r//",
        "./r",
        "r/.",
        "r/ef/..",
        "r/ef/f",
        "r//ef/./f",
    ] {
        t.write("../r.json", scan(root).to_string());
        let out = t
            .bc_line("dup prune --action=delete --dry-run --keep=name:k --from=../r.json")
            .go();
        assert_eq!(out.code(0).lines().len(), 1, "{root}: {}", out.text());
    }
    let mut report = scan("r");
    let file = &mut report["groups"][0]["files"][0];
    file["path_b64"] = "cmVmL2Y=".into();
    t.write("../forged.json", report.to_string());
    t.bc_line("dup prune --action=delete --yes --from=../forged.json")
        .go()
        .code(2)
        .stderr_has("group 1: a path is");
}

/// Files that were listed have no root: their own paths are what is opened, in a report as well.
#[test]
fn listed_files_are_acted_on_by_their_own_paths() {
    let t = TestTree::new();
    t.write("a/f", "twice").write("b/g", "twice");
    let here = |name: &str| t.join(name).display().to_string();
    for names in [[here("a/f"), here("b/g")], ["a/f".into(), "./b/g".into()]] {
        t.write("../list", names.join("\n"));
        let line = "dup prune --action=delete --keep=name:f --dry-run";
        let step = format!("delete {} (kept: {})\n", names[1], names[0]);
        t.bc_line(line)
            .arg("--files-from=../list")
            .go()
            .code(0)
            .stdout_is(&step);
        t.bc_line("dup scan --format=json --files-from=../list --output=../r.json")
            .go()
            .code(0);
        t.bc_line(line)
            .arg("--from=../r.json")
            .go()
            .code(0)
            .stdout_is(&step);
    }
}

/// The reference is no part of the report, and has another name of a file that is.
#[test]
fn a_file_of_a_reference_is_known_by_itself() {
    let t = TestTree::new();
    t.write("b/x", "the same")
        .write("b/y", "the same")
        .dir("ref");
    t.hard_link("b/y", "ref/z");
    t.bc_line("dup --format=json -o r.json b").go().code(0);
    t.bc_line("dup prune --from=r.json --reference=ref --keep=name:x --action=delete --yes")
        .go()
        .code(0)
        .stdout_is("delete b/x (kept: b/y, reference)\n");
    assert!(t.exists("b/y") && !t.exists("b/x"));
}

/// Decisions as a page saves them: all files of a report, those pruned that `prune` names.
fn decide(t: &TestTree, prune: &[&str]) -> serde_json::Value {
    let report = String::from_utf8(t.read("../r.json")).unwrap();
    let mut decisions: serde_json::Value = serde_json::from_str(&report).unwrap();
    decisions["command"] = "dup decisions".into();
    for group in decisions["groups"].as_array_mut().unwrap() {
        for file in group["files"].as_array_mut().unwrap() {
            let goes = prune.iter().any(|path| file["path"] == **path);
            file["decision"] = if goes { "prune" } else { "keep" }.into();
        }
    }
    decisions
}

#[test]
fn decisions_are_obeyed_and_can_be_undone() {
    let t = tree();
    t.write(
        "../d.json",
        decide(&t, &["archive/p", "in/p", "in/q"]).to_string(),
    );
    let line = "dup prune --action=delete --from=../d.json";
    let expected = "delete archive/p (kept: in/.h/p)\ndelete in/p (kept: in/.h/p)\n\
                    delete in/q (kept: in/skip/deep/q)\n";
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let dry = t.bc_line(line).arg("--dry-run").go();
    assert_eq!(sorted(dry.code(0).text()), sorted(expected.to_owned()));
    let real = t.bc_line(line).args(["--yes", "--journal=../j"]).go();
    assert_eq!(sorted(real.code(0).text()), sorted(expected.to_owned()));
    for (name, is_there) in [
        ("archive/p", false),
        ("in/p", false),
        ("in/.h/p", true),
        ("in/q", false),
        ("in/skip/deep/q", true),
    ] {
        assert_eq!(t.exists(name), is_there, "{name}");
    }
    t.bc_line("dup undo ../j").go().code(0);
    assert_eq!(t.read("archive/p"), b"a photo");
    assert_eq!(t.read("in/q"), b"twice in the inbox");
}

/// Filters hold as beside a report; nothing goes for a file that was filtered out.
#[test]
fn options_beside_decisions_only_let_more_stay() {
    let t = tree();
    let line = "dup prune --action=delete --dry-run --from=../d.json";
    let decisions = decide(&t, &["archive/p", "in/p", "in/q"]).to_string();
    t.write("../d.json", decisions);
    for (option, count) in [
        ("--exclude=skip", 2),
        ("--exclude=.h", 1),
        ("--min-size=8", 1),
        ("--across-roots", 1),
        // What is chosen to stay decides, and a reference is not compared with instead.
        ("--reference=in/p", 1),
    ] {
        let out = t.bc_line(line).arg(option).go();
        assert_eq!(out.code(0).lines().len(), count, "{option}: {}", out.text());
    }
    // Chosen files that stay for a reference are counted.
    let out = t
        .bc_line(line)
        .args(["--reference=in", "--reference=archive"])
        .go();
    out.code(0)
        .stdout_is("")
        .stderr_has("nothing to do; 3 skipped: of a reference");
    // Several may stay, and what nobody decided on does.
    t.write("../d.json", decide(&t, &["in/p"]).to_string());
    t.bc_line(line)
        .go()
        .code(0)
        .stdout_is("delete in/p (kept: archive/p)\n");
    t.write("../d.json", decide(&t, &[]).to_string());
    t.bc_line(line).go().code(0).stdout_is("");
}

#[test]
fn decisions_that_keep_nothing_are_refused() {
    let t = tree();
    let refused = |decisions: &serde_json::Value, option: &str, why: &str| {
        t.write("../d.json", decisions.to_string());
        t.bc_line("dup prune --action=delete --yes --from=../d.json")
            .args(option.split_whitespace())
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has(why);
        assert!(t.exists("archive/p") && t.exists("in/p") && t.exists("in/q"));
    };
    let all = ["archive/p", "in/p", "in/.h/p"];
    refused(
        &decide(&t, &all),
        "",
        "../d.json: group 1: no file of it is kept",
    );
    let some = decide(&t, &all[..2]);
    for option in ["--keep=newest", "--keep-copies=2"] {
        let name = option.split('=').next().unwrap();
        let why = format!("{name}: ../d.json says which files stay");
        refused(&some, option, &why);
    }
    // One file by two names, or in two groups.
    let mut two = some.clone();
    let mut group = two["groups"][0].clone();
    for file in group["files"].as_array_mut().unwrap() {
        let kept = file["decision"] == "keep";
        file["decision"] = if kept { "prune" } else { "keep" }.into();
    }
    two["groups"].as_array_mut().unwrap().push(group);
    refused(
        &two,
        "",
        "group 3: archive/p: the same file is kept and pruned",
    );
    let mut protected = some.clone();
    for file in protected["groups"][0]["files"].as_array_mut().unwrap() {
        file["reference"] = true.into();
    }
    refused(&protected, "", "a reference, which is never pruned");
    let mut unknown = some.clone();
    unknown["groups"][0]["files"][0]["decision"] = "shred".into();
    refused(
        &unknown,
        "",
        "../d.json: not decisions from a page of bc dup: unknown variant `shred`",
    );
    let mut undecided = some.clone();
    let file = undecided["groups"][0]["files"][0].as_object_mut().unwrap();
    file.remove("decision");
    refused(&undecided, "", "missing field `decision`");
    let mut elsewhere = some.clone();
    elsewhere["groups"][0]["files"][0]["path"] = "/etc/passwd".into();
    refused(&elsewhere, "", "/etc/passwd: not a path under its root");
    let mut newer = some;
    newer["schema"] = 2.into();
    refused(&newer, "", "schema 2 is newer than 1");
}

/// Each pair is proven again: files that changed or are gone since are named, and others go.
#[test]
fn files_that_changed_since_the_decision_stay() {
    let t = tree();
    t.write(
        "../d.json",
        decide(&t, &["archive/p", "in/p", "in/q"]).to_string(),
    );
    t.write("in/p", "A PHOTO").remove("in/skip/deep/q");
    let line = "dup prune --action=delete --yes --from=../d.json";
    t.bc_line(line)
        .go()
        .code(1)
        .stdout_is("delete archive/p (kept: in/.h/p)\n")
        .stderr_has("delete in/p (kept: in/.h/p): skipped: changed since it was scanned")
        .stderr_has("in/skip/deep/q: cannot be kept: no longer there");
    assert!(t.exists("in/p") && t.exists("in/q") && !t.exists("archive/p"));
}

/// Names that are no UTF-8 are taken by their bytes.
#[test]
fn decisions_name_files_by_their_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let t = TestTree::new();
    let odd = |dir: &str| {
        t.path()
            .join(dir)
            .join(std::ffi::OsStr::from_bytes(b"\xff\n<b>"))
    };
    for dir in ["a", "b"] {
        std::fs::create_dir(t.join(dir)).unwrap();
        std::fs::write(odd(dir), "the same").unwrap();
    }
    t.bc_line("dup scan --format=json --output=../r.json .")
        .go()
        .code(0);
    let mut decisions = decide(&t, &[]);
    decisions["groups"][0]["files"][0]["decision"] = "prune".into();
    t.write("../d.json", decisions.to_string());
    t.bc_line("dup prune --action=delete --yes --from=../d.json")
        .go()
        .code(0);
    assert!(!odd("a").exists() && odd("b").exists());
}
