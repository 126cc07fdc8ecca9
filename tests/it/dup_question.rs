//! What `bc dup prune` asks on a terminal, and what ends the question.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::{Pty, PtySession, TestTree, is_heeded};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{BC, Bc};

/// Three copies of one file and two of another; 4096 bytes each, which is a block or a part of
/// one everywhere.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["a/1", "a/2", "b/1"] {
        t.write(name, [b'x'; 4096]);
    }
    t.write("a/other", [b'y'; 4096])
        .write("b/other", [b'y'; 4096]);
    t
}

fn at_terminal(t: &TestTree, line: &str) -> Option<PtySession> {
    Pty::new(200, 24).lead(t, BC, line.split_whitespace())
}

fn asked(session: &PtySession) -> String {
    session.wait_for("the question", |bytes| {
        String::from_utf8_lossy(bytes).contains("[y/N] ")
    });
    let text = String::from_utf8_lossy(&session.bytes()).into_owned();
    let question = text.lines().find(|line| line.contains("[y/N]"));
    question.unwrap().trim_end().to_owned()
}

const DELETE: &str = "dup prune --action=delete .";

fn untouched(t: &TestTree) {
    for name in ["a/1", "a/2", "b/1", "a/other", "b/other"] {
        assert!(t.join(name).is_file(), "{name}");
    }
}

#[test]
fn ctrl_c_ends_the_question_without_enter() {
    let t = tree();
    // Also where something was typed already, and where that was sent without an end of line.
    for keys in [&b"\x03"[..], b"ye\x03", b"y\x04\x03"] {
        let Some(session) = at_terminal(&t, DELETE) else {
            return;
        };
        asked(&session);
        session.type_keys(keys);
        let (status, bytes) = session.end();
        let text = String::from_utf8_lossy(&bytes);
        // setsid may stand between, or have become the program.
        let interrupted = status.code() == Some(130) || status.signal() == Some(2);
        assert!(interrupted, "{status:?}: {text}");
        untouched(&t);
    }
}

#[test]
fn signals_end_the_question() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        if !is_heeded(signal.as_raw()) {
            continue;
        }
        let t = tree();
        let command = t.bc_line(DELETE).arg("--metrics=../m.json").command();
        let mut session = Pty::new(200, 24).start_in(command);
        asked(&session);
        let pid = Pid::from_child(session.child());
        kill_process(pid, signal).unwrap();
        let (status, _) = session.end();
        assert_eq!(status.signal(), Some(number), "{status:?}");
        untouched(&t);
        let metrics: serde_json::Value = serde_json::from_slice(&t.read("../m.json")).unwrap();
        assert_eq!(metrics["exit_code"], 128 + number);
    }
}

#[test]
fn only_yes_is_yes() {
    for (keys, done) in [
        (&b"y\n"[..], true),
        (b"yes\n", true),
        (b"Y\n", true),
        (b" y \n", true),
        (b"\n", false),
        (b"n\n", false),
        (b"yesterday\n", false),
        (b"\xff\n", false),
        // The end of the input, also after a letter.
        (b"\x04", false),
        (b"y\x04\x04", false),
    ] {
        let t = tree();
        let Some(session) = at_terminal(&t, DELETE) else {
            return;
        };
        asked(&session);
        session.type_keys(keys);
        let (status, bytes) = session.end();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(status.code(), Some(0), "{keys:?}: {text}");
        assert_eq!(!t.exists("b/1"), done, "{keys:?}: {text}");
        if !done {
            untouched(&t);
            assert!(text.contains("nothing was changed"), "{text}");
        }
    }
}

/// The figures are those that the dry run ends with.
#[test]
fn the_question_says_what_the_run_will_do() {
    let t = tree();
    t.write("trash/1", [b'x'; 4096]);
    for (line, expected) in [
        (
            "--action=delete --keep=first a b",
            "Delete 3 files (#) of 2 groups, keeping the first of each? [y/N]",
        ),
        (
            "--action=delete --keep=oldest --max-size=4096 --include=other a b",
            "Delete 1 file (#) of 1 group, keeping the oldest? [y/N]",
        ),
        (
            "--action=symlink a b",
            "Replace 3 files (#) of 2 groups by symbolic links, keeping the one with most hard \
             links, then the first of each? [y/N]",
        ),
        (
            "--action=delete --across-roots --keep=last a b",
            "Delete 3 files (#) of 2 groups, keeping the last of each, and files under the \
             same PATH? [y/N]",
        ),
        (
            "--action=delete --across-roots --keep=first a b",
            "Delete 2 files (#) of 2 groups, keeping the first of each, and files under the \
             same PATH? [y/N]",
        ),
        (
            "--action=delete --reference=a --keep=newest a b",
            "Delete 2 files (#) of 2 groups, keeping reference files, else the newest of each? \
             [y/N]",
        ),
        (
            "--action=delete --keep=path:nowhere a b",
            "Delete 3 files (#) of 2 groups, keeping what matches path:nowhere (nothing does), then \
             the first of each? [y/N]",
        ),
        (
            "--action=move:trash --keep=name:1 --keep=first .",
            "Move 3 files (@) of 2 groups to trash, keeping what matches name:1, then the first \
             of each? [y/N]",
        ),
    ] {
        let dry = t
            .bc_line("dup prune --dry-run")
            .args(line.split_whitespace())
            .go();
        let text = dry.code(0).error_text();
        let freed = text.split(" changed, ").nth(1).unwrap();
        let freed = freed.split(" would be freed").next().unwrap();
        let steps = dry.lines().len();
        let Some(session) = at_terminal(&t, &format!("dup prune {line}")) else {
            return;
        };
        let question = asked(&session);
        session.type_keys(b"n\n");
        let (_, bytes) = session.end();
        assert!(String::from_utf8_lossy(&bytes).contains("--dry-run lists every step"));
        assert!(
            question.contains(&format!(" {steps} file")),
            "{line}: {question}"
        );
        let size = question.split(['(', ')']).nth(1).unwrap();
        let expected = match expected.contains('@') {
            // Moving frees nothing.
            true => expected.replace('@', size),
            false => expected.replace('#', freed),
        };
        assert_eq!(question, expected, "{line}");
    }
}

#[test]
fn nothing_is_asked_where_nothing_would_be_done() {
    let t = tree();
    for line in [
        "dup prune --action=delete --reference=a --reference=b .",
        "dup prune --action=move:. .",
        "dup prune --action=delete --across-roots .",
        "dup prune --action=delete a/1",
    ] {
        let Some(session) = at_terminal(&t, line) else {
            return;
        };
        let (status, bytes) = session.end();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            status.success() && !text.contains("[y/N]"),
            "{line}: {text}"
        );
        assert!(text.contains("nothing to do"), "{line}: {text}");
        untouched(&t);
    }
}

/// Nobody answers a question that goes into a file.
#[test]
fn a_question_that_cannot_be_seen_is_not_asked() {
    let t = tree();
    let pty = Pty::new(80, 24);
    let mut command = t.bc_line(DELETE).command();
    command
        .stdin(pty.stream())
        .stdout(pty.stream())
        .stderr(std::fs::File::create(t.scratch("log")).unwrap());
    let (status, _) = pty.start(command).end();
    assert_eq!(status.code(), Some(2));
    let log = std::fs::read_to_string(t.scratch("log")).unwrap();
    assert!(log.contains("--yes"), "{log}");
    untouched(&t);
}

/// Where files were chosen, no rule is named.
#[test]
fn decisions_are_asked_about_as_chosen() {
    let t = tree();
    let report = t.bc_line("dup scan --format=json .").go().code(0).text();
    let mut decisions: serde_json::Value = serde_json::from_str(&report).unwrap();
    decisions["command"] = "dup decisions".into();
    for group in decisions["groups"].as_array_mut().unwrap() {
        for file in group["files"].as_array_mut().unwrap() {
            let is_kept = file["path"].as_str().unwrap().starts_with("./b");
            file["decision"] = if is_kept { "keep" } else { "prune" }.into();
        }
    }
    t.write("../d.json", decisions.to_string());
    let line = "dup prune --action=delete --from=../d.json";
    let Some(session) = at_terminal(&t, line) else {
        return;
    };
    assert_eq!(
        asked(&session),
        "Delete 3 files (12.0 KiB) of 2 groups, as chosen? [y/N]"
    );
    session.type_keys(b"n\n");
    let (status, _) = session.end();
    assert!(status.success(), "{status:?}");
    untouched(&t);
}
