//! Options that all applets share.

use std::collections::{BTreeMap, BTreeSet};

use bc_testkit::{TestTree, exposition, left_out, tool};

use crate::common::{ABC, Bc, EMPTY};

#[test]
fn filters() {
    let t = TestTree::new();
    t.write("a.c", "abc")
        .write("sub/b.c", "abc")
        .write("sub/b.o", "")
        .write("skip/deep/c.c", "abc")
        .write(".h.c", "abc");
    let names = |options: &str| {
        let out = t
            .bc_line("hash --relative .")
            .args(options.split_whitespace())
            .go();
        out.code(0);
        let names: Vec<String> = out
            .lines()
            .iter()
            .map(|l| String::from_utf8_lossy(&l[66..]).into_owned())
            .collect();
        names.join(" ")
    };
    assert_eq!(names(""), ".h.c a.c skip/deep/c.c sub/b.c sub/b.o");
    assert_eq!(names("--hidden"), ".h.c a.c skip/deep/c.c sub/b.c sub/b.o");
    assert_eq!(names("--no-hidden"), "a.c skip/deep/c.c sub/b.c sub/b.o");
    assert_eq!(names("--include=*.o"), "sub/b.o");
    assert_eq!(names("--exclude=skip --exclude=*.o"), ".h.c a.c sub/b.c");
    assert_eq!(names("--exclude=**/deep"), ".h.c a.c sub/b.c sub/b.o");
    assert_eq!(names("--exclude=sub/*.c"), ".h.c a.c skip/deep/c.c sub/b.o");
    assert_eq!(names("--min-size=1"), ".h.c a.c skip/deep/c.c sub/b.c");
    assert_eq!(names("--max-size=0"), "sub/b.o");
    assert_eq!(names("--max-depth=1"), ".h.c a.c");
    t.write(".gitignore", "*.o\nskip/\n");
    assert_eq!(names("--ignore-files"), ".gitignore .h.c a.c sub/b.c");
}

#[test]
fn overlapping_roots_visit_each_file_once() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("d/s/b", "");
    let expected = format!("{ABC}  d/a\n{EMPTY}  d/s/b\n");
    t.bc_line("hash d d").go().code(0).stdout_is(&expected);
    t.bc_line("hash d d/s").go().code(0).stdout_is(&expected);
    t.bc_line("hash d/s d").go().code(0).stdout_is(&expected);
}

#[test]
fn files_from() {
    let t = TestTree::new();
    t.write("a", "abc")
        .write("d/b", "")
        .write_bytes(b"new\nline", "abc");
    t.write("../list", "d/b\na\n");
    t.bc_line("hash --files-from=../list")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n{EMPTY}  d/b\n"));
    t.bc_line("hash --files-from=- -0")
        .stdin("new\nline\0a\0")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  a\n\\{ABC}  new\\nline\n"));
    t.bc_line("hash --files-from=- ")
        .stdin("missing\na\n")
        .go()
        .code(1)
        .stdout_is(format!("{ABC}  a\n"))
        .stderr_has("missing");
    t.bc_line("hash --files-from=nowhere")
        .go()
        .code(2)
        .stderr_has("nowhere: open: No such file");
    t.bc_line("hash --files-from=../list a").go().code(2);
}

#[test]
fn configuration_layers() {
    let t = TestTree::new();
    t.write("a", "abc").write("b.o", "abc");
    t.write("../conf", "exclude = [\"*.o\"]\n[hash]\ntype = \"md5\"\n");
    let md5 = "900150983cd24fb0d6963f7d28e17f72  ./a\n";
    t.bc_line("hash . --config=../conf")
        .go()
        .code(0)
        .stdout_is(md5);
    t.bc_line("hash .")
        .env("BC_CONFIG", "../conf")
        .go()
        .code(0)
        .stdout_is(md5);
    // Environment over file, command line over both.
    let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d  ./a\n";
    t.bc_line("hash . --config=../conf")
        .env("BC_TYPE", "sha1")
        .go()
        .code(0)
        .stdout_is(sha1);
    t.bc_line("hash . --config=../conf --type=sha256")
        .env("BC_TYPE", "sha1")
        .go()
        .code(0)
        .stdout_is(format!("{ABC}  ./a\n"));
    t.write("../conf", "io = \"sync\"\nthread = 3\n");
    t.bc_line("hash . --config=../conf")
        .go()
        .code(2)
        .stderr_has("conf:2: unknown key 'thread'");
    t.bc_line("hash . --config=../none")
        .go()
        .code(2)
        .stderr_has("none: read: No such file");
    t.bc_line("hash .")
        .env("BC_THREADS", "many")
        .go()
        .code(2)
        .stderr_has("many");
}

/// A pattern that cannot be understood is the fault of the line or variable that holds it.
#[test]
fn a_bad_pattern_is_blamed_on_its_place() {
    let t = TestTree::new();
    t.write("a", "abc");
    for option in ["include", "exclude"] {
        t.write(
            "../conf",
            format!("threads = 1\n{option} = [\"*.o\", \"[\"]\n"),
        );
        for line in ["hash a", "dup a", "integrity manifest ."] {
            t.bc_line(&format!("{line} --config=../conf"))
                .go()
                .code(2)
                .stderr_has(format!(
                    "../conf:2: invalid value '[' for '--{option} <GLOB>'"
                ));
            let variable = format!("BC_{}", option.to_uppercase());
            t.bc_line(line)
                .env(&variable, "[")
                .go()
                .code(2)
                .stderr_has(format!(
                    "environment variable {variable}: invalid value '['"
                ));
            t.bc_line(&format!("{line} --{option}=["))
                .go()
                .code(2)
                .stderr_has("'[' without its ']'");
        }
    }
}

/// Every line on stderr is an object, a status line that was asked for or not.
#[test]
fn json_messages_and_a_status_line_do_not_mix() {
    let t = TestTree::new();
    t.write("a", "abc").write("b", "abc");
    for line in ["hash . gone", "dup . gone", "integrity manifest -v ."] {
        let out = t
            .bc_line(&format!("{line} --progress=always --log-format=json"))
            .go();
        assert!(!out.stderr.is_empty(), "{line}");
        for line in out.stderr.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            let parsed: Result<serde_json::Value, _> = serde_json::from_slice(line);
            assert!(
                parsed.is_ok_and(|v| v.is_object()),
                "{}",
                line.escape_ascii()
            );
        }
    }
}

#[test]
fn metrics() {
    let t = TestTree::new();
    t.write("a", "abc");
    t.bc_line("hash a --metrics=../m.json").go().code(0);
    let m: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
    assert_eq!(
        (&m["files"], &m["read_bytes"], &m["exit_code"]),
        (&1.into(), &3.into(), &0.into())
    );
    t.bc_line("hash a missing --metrics=../m.prom").go().code(1);
    let text = String::from_utf8(t.read("../m.prom")).unwrap();
    assert!(
        text.contains("# TYPE bc_files gauge\nbc_files{applet=\"hash\",command=\"hash\""),
        "{text}"
    );
    assert!(
        text.contains("bc_exit_code") && text.contains("} 1\n"),
        "{text}"
    );
    t.bc_line("hash a --metrics=/nowhere/m")
        .go()
        .code(2)
        .stderr_has("/nowhere/m: ");
}

/// A collector that reads the files of several commands takes one text for each name. Prometheus' own
/// tool has no complaint, where it is installed.
#[test]
fn metrics_of_all_commands_agree() {
    let t = TestTree::new();
    for side in ["d", "e"] {
        t.write(format!("{side}/a"), "abc")
            .write(format!("{side}/b"), "abc");
    }
    t.bc_line("hash d -o sums").go().code(0);
    t.bc_line("integrity manifest d -o m.jsonl").go().code(0);
    let has_promtool = tool("promtool").is_some();
    if !has_promtool {
        left_out("promtool is not installed (Debian's prometheus)");
    }
    let mut helps = BTreeMap::new();
    for line in [
        "hash d",
        "hash check sums",
        "dup d",
        "dup dirs d e",
        "dup unique d --reference=e",
        "integrity manifest d -o n.jsonl",
        "integrity verify d m.jsonl",
        "integrity diff d m.jsonl",
        "integrity update d m.jsonl",
        "integrity accept d m.jsonl a",
        "integrity restore --from=e d m.jsonl",
        "copy d f",
        "move f g",
        "dup prune --action=hardlink --yes d",
        "dup undo --last",
    ] {
        t.bc_line(&format!("{line} --metrics=metrics.prom"))
            .go()
            .code(0);
        let text = String::from_utf8(t.read("metrics.prom")).unwrap();
        t.remove("metrics.prom");
        exposition::parse(&text).unwrap_or_else(|error| panic!("{line}: {error}\n{text}"));
        let mut names = BTreeSet::new();
        for comment in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
            let (name, help) = comment.split_once(' ').unwrap();
            assert!(names.insert(name.to_owned()), "{line}: twice {name}");
            let first = helps.entry(name.to_owned()).or_insert(help.to_owned());
            assert_eq!(first, help, "{line}: {name}");
        }
        assert!(names.contains("bc_exit_code"), "{line}: {text}");
        if has_promtool {
            let check = t.run("promtool").args(["check", "metrics"]);
            check.stdin(text).go().code(0).stderr_is("");
        }
    }
}

#[test]
fn metrics_never_replace_what_the_command_writes() {
    let t = TestTree::new();
    t.write("a", "abc").write("b", "abc").dir("d");
    t.bc_line("integrity manifest d -o m.jsonl").go().code(0);
    t.bc_line("hash a -o sums").go().code(0);
    t.symlink("../sums", "d/link").symlink(".", "same");
    let (manifest, sums) = (t.read("m.jsonl"), t.read("sums"));
    for line in [
        "hash a -o new --metrics=new",
        "hash a -o new --metrics=d/../new",
        "hash a -o same/new --metrics=./new",
        "hash a -o sums --metrics=d/link",
        "hash diff sums sums -o new --metrics new",
        "dup a b -o new --metrics new",
        "dup prune --action=hardlink --yes --journal=new --metrics=new a b",
        "dup undo sums --metrics=sums",
        "integrity manifest d -o new --metrics new",
        "integrity verify d m.jsonl -o new --metrics new",
        "integrity diff m.jsonl m.jsonl -o new --metrics new",
        "integrity update d m.jsonl --metrics m.jsonl",
        "integrity export --format=gnu m.jsonl -o new --metrics new",
        "integrity import sums -o new --metrics new",
    ] {
        t.bc_line(line)
            .go()
            .code(2)
            .stdout_is("")
            .stderr_has("the command writes that file itself; name another one");
        assert!(!t.join("new").exists(), "{line}");
        assert!(
            t.read("m.jsonl") == manifest && t.read("sums") == sums,
            "{line}"
        );
    }
    // Nothing is replaced there.
    for line in [
        "hash a -o /dev/stdout --metrics=/dev/stdout",
        "hash a -o - --metrics=-",
        "hash a -o /dev/null --metrics=/dev/null",
        "hash a -o new --metrics=d/new",
    ] {
        t.bc_line(line).go().code(0);
    }
}

#[test]
fn diagnostics() {
    let t = TestTree::new();
    t.write("a", "abc");
    let out = t.bc_line("hash missing a --log-format=json").go();
    let line: serde_json::Value = serde_json::from_slice(out.code(1).error_lines()[0]).unwrap();
    assert_eq!(
        (&line["level"], &line["path"], &line["errno"]),
        (&"error".into(), &"missing".into(), &2.into())
    );
    t.bc_line("hash a -v")
        .go()
        .code(0)
        .stderr_has("walk: 1 files")
        .stderr_has("hash: 1 files, 3 bytes");
    t.bc_line("hash missing --color=always")
        .go()
        .code(2)
        .stderr_has("\x1b[31m");
    t.bc_line("hash missing --color=never")
        .env("CLICOLOR_FORCE", "1")
        .go()
        .code(2)
        .stderr_has("bc hash: missing");
    t.bc_line("hash missing")
        .env("CLICOLOR_FORCE", "1")
        .go()
        .code(2)
        .stderr_has("\x1b[31m");
    t.bc_line("hash missing")
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .go()
        .code(2)
        .stderr_has("bc hash: missing");
}

#[test]
fn memory_budget() {
    let t = TestTree::new();
    t.write("a", "abc").write("big", vec![7; 1 << 20]);
    let expected = t.bc_line("hash a big").go();
    t.bc_line("hash a big --memory-budget=64M")
        .go()
        .code(0)
        .stdout_is(&expected.stdout);
    t.bc_line("hash a big --memory-budget=1M --threads=mono")
        .go()
        .code(0)
        .stdout_is(&expected.stdout);
    t.bc_line("hash a big --memory-budget=1K")
        .go()
        .code(2)
        .stderr_has("at least");
}

/// What a run takes beyond one that reads a single small file stays within the budget.
#[test]
fn memory_budget_holds() {
    let t = TestTree::new();
    t.write("small/a", "abc");
    for i in 0..300 {
        t.write(format!("many/{i}"), vec![i as u8; 200 << 10]);
    }
    let peak = |line: &str| {
        t.bc_line(line).arg("--metrics=../m.json").go().code(0);
        let metrics: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
        metrics["peak_memory_bytes"].as_u64().unwrap()
    };
    for io in ["sync", "auto", "uring"] {
        if io == "uring" && t.bc_line("hash small --io=uring").go().status.code() == Some(2) {
            bc_testkit::left_out("io_uring is refused here");
            continue;
        }
        let least = peak("hash small --threads=mono --io=sync");
        let budget: u64 = 4 << 20;
        let got = peak(&format!(
            "hash many --threads=4 --memory-budget={budget} --io={io}"
        ));
        // Beside the buffers: stacks of three more threads and 300 results.
        let allowed = least + budget + (2 << 20);
        assert!(
            got <= allowed,
            "{io}: {got} bytes at most, {least} without work, {budget} allowed"
        );
    }
}

/// What is missing among others is a failure; where nothing that was named is there, nothing could be
/// done.
#[test]
fn nothing_that_was_named_is_there() {
    let t = TestTree::new();
    t.write("d/a", "abc").write("sums", "");
    for command in [
        "hash",
        "hash --format=json",
        "dup",
        "dup --format=json",
        "dup summary",
        "dup dirs",
        "dup unique",
        "dup prune --action=delete --yes",
    ] {
        let gone = t.bc_line(&format!("{command} gone none")).go();
        gone.code(2).stderr_has("gone");
    }
    for command in [
        "hash",
        "dup",
        "dup summary",
        "dup dirs",
        "dup prune --action=delete --yes",
    ] {
        let one = t.bc_line(&format!("{command} gone d")).go();
        one.code(1).stderr_has("gone: stat: ");
    }
    // Standard input is there.
    t.bc_line("hash gone -").stdin("abc").go().code(1);
}

/// An earlier list stays where nothing that was named is there: a disk may be unplugged.
#[test]
fn what_is_not_there_replaces_no_result() {
    let t = TestTree::new();
    t.write("list", "of before");
    for command in [
        "hash --output=list",
        "dup --format=json --output=list",
        "dup unique --output=list",
    ] {
        t.bc_line(&format!("{command} gone")).go().code(2);
        assert_eq!(t.read("list"), b"of before", "{command}");
    }
}

/// Of each option that a variable may set, the guide lists the variable.
#[test]
fn the_guide_lists_the_variables() {
    let rules = include_str!("../../src/guide/rules.md");
    let mut listed: Vec<&str> = rules
        .lines()
        .filter(|line| line.starts_with("| `BC_"))
        .flat_map(|line| line.split('`'))
        .filter(|word| word.starts_with("BC_"))
        .collect();
    listed.sort_unstable();
    let mut variables = vec!["BC_CONFIG".to_owned()];
    for (_, tree) in crate::commands::described() {
        let arguments = tree["arguments"].as_array().unwrap();
        for argument in arguments.iter().filter(|one| one["configurable"] == true) {
            let name = argument["long"].as_str().unwrap();
            variables.push(format!("BC_{}", name.replace('-', "_").to_uppercase()));
        }
    }
    variables.sort_unstable();
    variables.dedup();
    assert_eq!(listed, variables);
}
