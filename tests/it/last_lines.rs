//! Last lines at a terminal: what was done, and what to type next. Pipes get none of them, nor does
//! `--quiet`.

use bc_testkit::{Pty, TestTree};

use crate::colours;
use crate::common::Bc;

/// What a terminal without colours gets.
fn shown(t: &TestTree, line: &str) -> String {
    colours::shown(t, line, &[("NO_COLOR", "1")])
}

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("my dir/x/a", "abc").write("my dir/b", "abcd");
    t
}

/// Checks the last line of a command, and that it is for a terminal alone. `again` undoes what the
/// command wrote.
fn check(t: &TestTree, arguments: &[&str], last: &str, again: &dyn Fn()) {
    let run = || {
        t.bc()
            .args(arguments)
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
    };
    let on_terminal = |run: bc_testkit::Run| {
        let (status, bytes) = Pty::new(200, 50).start_in(run.command()).end();
        assert!(status.success(), "{arguments:?}: {status}");
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        text.replace("\x1b[J", "")
    };
    let text = on_terminal(run());
    assert_eq!(text.lines().last(), Some(last), "{arguments:?}: {text}");
    again();
    let text = on_terminal(run().arg("--quiet"));
    assert!(!text.contains(last), "{arguments:?}: {text}");
    again();
    let text = on_terminal(run().arg("--log-format=json"));
    assert!(!text.contains(last), "{arguments:?}: {text}");
    again();
    let piped = run().go().code(0).error_text();
    assert!(!piped.contains(last), "{arguments:?}: {piped}");
}

#[test]
fn lists_and_manifests_name_the_command_that_reads_them() {
    let t = tree();
    let nothing = || {};
    check(
        &t,
        &["hash", "--output=my sums", "my dir"],
        "bc hash: my sums: digests of 2 files; 'bc hash check 'my sums'' verifies them",
        &nothing,
    );
    check(
        &t,
        &["hash", "--relative", "-o", "sums", "my dir"],
        "bc hash: sums: digests of 2 files; 'bc hash check --base='my dir' sums' verifies them",
        &nothing,
    );
    check(
        &t,
        &["hash", "--format=json", "-o", "json", "my dir"],
        "bc hash: json: digests of 2 files",
        &nothing,
    );
    check(
        &t,
        &["integrity", "manifest", "-o", "m", "my dir"],
        "bc integrity: m: 4 entries, 7 B read; 'bc integrity verify 'my dir' m' compares my dir with it",
        &nothing,
    );
    check(
        &t,
        &["integrity", "verify", "my dir", "m"],
        "bc integrity: as recorded: 4 entries, 7 B read",
        &nothing,
    );
    check(
        &t,
        &["integrity", "diff", "m", "my dir"],
        "bc integrity: the same: 4 entries",
        &nothing,
    );
    // The commands that are named work.
    t.bc()
        .args(["hash", "check", "--quiet", "my sums"])
        .go()
        .code(0);
    t.bc()
        .args(["hash", "check", "--base=my dir", "sums"])
        .go()
        .code(0);
}

#[test]
fn a_copy_names_the_command_that_verifies_it() {
    let t = tree();
    t.dir("to");
    let fresh = || {
        t.remove("to");
        t.dir("to");
    };
    let verify =
        "'bc integrity verify to to/.bc-copy-manifest.jsonl' compares the copy with its manifest";
    let last = format!("bc copy: {verify}");
    check(&t, &["copy", "my dir", "to"], &last, &fresh);
    t.bc_line("integrity verify to to/.bc-copy-manifest.jsonl")
        .go()
        .code(0);
    let last = "bc copy: 'bc integrity verify . one.jsonl' compares the copy with its manifest";
    let gone = || t.remove("b");
    check(
        &t,
        &["copy", "--manifest=one.jsonl", "my dir/b", "b"],
        last,
        &|| {
            gone();
            t.remove("one.jsonl");
        },
    );
    t.bc_line("integrity verify . one.jsonl").go();
    // No path is typed as an option.
    let text = shown(&t, "copy -- to -to");
    let verify = "'bc integrity verify ./-to ./-to/.bc-copy-manifest.jsonl' compares";
    assert!(text.contains(verify), "{text}");
    // What went to the terminal is not there to be read.
    // Nor is a part of a manifest verified, nor a list that no check reads.
    for line in [
        "copy --manifest=/dev/stdout one.jsonl two.jsonl",
        "integrity manifest --output=/dev/stdout to",
        "integrity manifest --output=- to",
        "integrity manifest --shard=1/2 --output=part to",
        "hash --output=- to",
        "hash --type=crc --output=crc to",
        "hash --relative --output=one one.jsonl",
        "hash --output=none --include=none to",
    ] {
        let text = shown(&t, line);
        let names = |command| text.contains(command);
        assert!(
            !names("bc integrity verify") && !names("bc hash check"),
            "{text}"
        );
    }
}

/// Undo is named whole, with the journal: by the time that it is typed another may be the last.
#[test]
fn prune_names_the_whole_command_of_undo() {
    let t = TestTree::new();
    for journal in ["", " --journal=j.jsonl", " --journal=-j"] {
        for name in ["d/a", "d/b"] {
            t.write(name, "abc");
        }
        let line = format!("dup prune --action=delete --yes{journal} d");
        let said = t.bc_line(&line).go().code(0).error_text();
        let command = said.split_once("'bc ").unwrap().1;
        let (command, _) = command.split_once("' reverts it\n").unwrap();
        t.write("d/a2", "else").write("d/b2", "else");
        t.bc_line("dup prune --action=delete --yes d").go().code(0);
        t.bc_line(command).go().code(0);
        assert!(t.exists("d/a") && t.exists("d/b"), "{command}");
    }
}

/// The question shows the first files that would go, and how many more there are.
#[test]
fn the_question_shows_what_would_go() {
    let t = TestTree::new();
    for nth in 0..8 {
        t.write(format!("d/{nth}"), "abc");
    }
    let pty = Pty::new(200, 50);
    let command = t
        .bc_line("dup prune --action=delete d")
        .env("NO_COLOR", "1")
        .command();
    let session = pty.start_in(command);
    session.wait_for("the question", |bytes| {
        String::from_utf8_lossy(bytes).contains("[y/N] ")
    });
    session.type_keys(b"n\n");
    let (_, bytes) = session.end();
    let text = String::from_utf8_lossy(&bytes).replace('\r', "");
    let expected = "  delete d/1\n  delete d/2\n  delete d/3\n  delete d/4\n  delete d/5\n  and 2 more\n\
                    --dry-run lists every step and changes nothing.\nDelete 7 files";
    assert!(text.contains(expected), "{text}");
    let whole = shown(&t, "dup d");
    assert!(whole.contains("--dry-run d' shows how"), "{whole}");
    // A command without the user's reference would be about other files.
    t.write("e/a", "abc");
    for option in ["--reference=e", "--exclude=x", "--no-hidden", "-x", "-vx"] {
        let whole = shown(&t, &format!("dup {option} d"));
        let told = "--dry-run …' shows how, with the same paths and options";
        assert!(whole.contains(told), "{option}: {whole}");
    }
}
