//! Runs that are interrupted and gone on from: `--resume` and the journal beside `--output=FILE`.
//!
//! Nobody can set a ctime, and what was written a moment ago is not recorded: the files that these
//! runs read are those of this project, which were there before the test was built.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use bc_testkit::{NOBODY, Outcome, Run, TestTree, is_heeded, is_root, left_out};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;
use crate::strace::{self, KILL};

/// Files that are old enough.
fn old() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crates/fs/src")
}

/// Whether what was read of them can be taken for what they hold later.
fn is_recorded() -> bool {
    let file = std::fs::File::open(old()).unwrap();
    let meta = file.metadata().unwrap();
    let traits = bc_fs::mount::traits_or_unknown(&file, meta.dev());
    let proves = traits.identity_proves_content(meta.ino());
    if !proves {
        left_out(&format!("nothing is recorded on {}", traits.name));
    }
    proves
}

/// A run that has read all files and waits for its standard input to end.
struct Waiting(Child);

impl Waiting {
    fn new(t: &TestTree, run: Run) -> Waiting {
        let child = run
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut waiting = Waiting(child);
        while t
            .join("out.partial")
            .metadata()
            .map_or(0, |meta| meta.len())
            < 1000
        {
            let ended = waiting.0.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}");
            std::thread::yield_now();
        }
        waiting
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        let status = self.0.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
    }

    fn feed(mut self, bytes: &[u8]) {
        self.0.stdin.take().unwrap().write_all(bytes).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

fn hash(t: &TestTree, more: &str) -> Run {
    t.bc()
        .args(["hash", "--output=out"])
        .args(more.split_whitespace())
        .arg(old())
        .arg("-")
}

/// What a run that is not interrupted writes.
fn whole(t: &TestTree, more: &str) -> Vec<u8> {
    let run = t.bc().arg("hash").args(more.split_whitespace());
    run.arg(old()).arg("-").go().code(0).stdout.clone()
}

fn interrupted(t: &TestTree, more: &str) {
    let more = format!("{more} --resume");
    Waiting::new(t, hash(t, &more)).end(Signal::KILL);
    assert!(!t.exists("out") && t.exists("out.partial"));
}

/// How many files an earlier run has read, as a run that goes on says.
fn known(outcome: &Outcome) -> u64 {
    let text = outcome.error_text();
    let (_, rest) = text.split_once("resuming: ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn however_it_ends_the_next_run_goes_on() {
    if !is_recorded() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        if signal != Signal::KILL && !is_heeded(signal.as_raw()) {
            continue;
        }
        for more in ["", "--type=md5,blake3", "--format=csv --io=sync"] {
            let t = TestTree::new();
            let resume = format!("{more} --resume");
            Waiting::new(&t, hash(&t, &resume)).end(signal);
            assert!(!t.exists("out"));
            let mode = t.join("out.partial").metadata().unwrap().mode();
            assert_eq!(mode & 0o7777, 0o600);
            let outcome = hash(&t, &resume).go();
            assert!(known(outcome.code(0)) > 5, "{outcome}");
            assert_eq!(t.read("out"), whole(&t, more));
            assert!(!t.exists("out.partial"));
        }
    }
}

#[test]
fn counts_are_those_of_a_run_that_was_not_interrupted() {
    if !is_recorded() {
        return;
    }
    let t = TestTree::new();
    interrupted(&t, "--format=jsonl");
    hash(&t, "--format=jsonl --resume").go().code(0);
    let counts = |text: &[u8]| {
        let last = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        let mut summary: serde_json::Value = serde_json::from_slice(last.unwrap()).unwrap();
        let object = summary.as_object_mut().unwrap();
        for varies in ["wall_ns", "threads", "reader"] {
            object.remove(varies);
        }
        summary
    };
    let expected = counts(&whole(&t, "--format=jsonl"));
    assert_eq!(counts(&t.read("out")), expected);
}

#[test]
fn without_the_option_it_is_named_and_set_aside() {
    if !is_recorded() {
        return;
    }
    let t = TestTree::new();
    for nth in 1..3 {
        interrupted(&t, "");
        let journal = t.read("out.partial");
        let aside = format!("out.partial-{nth}");
        let outcome = hash(&t, "").go();
        outcome
            .code(0)
            .stderr_has("out.partial: found the journal of an interrupted run")
            .stderr_has(format!("the journal of the earlier run is {aside} now"));
        assert_eq!(t.read(aside), journal);
        assert_eq!(t.read("out"), whole(&t, ""));
        t.remove("out");
    }
}

/// A run without the option that ends before it has a journal of its own costs nothing.
#[test]
fn a_run_that_ends_early_leaves_the_earlier_journal() {
    if !is_recorded() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        if signal != Signal::KILL && !is_heeded(signal.as_raw()) {
            continue;
        }
        let t = TestTree::new();
        interrupted(&t, "");
        let journal = t.read("out.partial");
        Waiting::new(&t, hash(&t, "")).end(signal);
        assert_eq!(t.read("out.partial"), journal);
        let outcome = hash(&t, "--resume").go();
        assert!(known(outcome.code(0)) > 5, "{outcome}");
        assert_eq!(t.read("out"), whole(&t, ""));
        // What was set aside by a run that came to its end is named.
        t.remove("out");
        interrupted(&t, "");
        hash(&t, "").go().code(0);
        hash(&t, "--resume")
            .go()
            .code(0)
            .stderr_has("no journal of this name to continue")
            .stderr_has("set aside as out.partial-1");
    }
}

#[test]
fn only_the_same_run_goes_on_from_it() {
    if !is_recorded() {
        return;
    }
    let t = TestTree::new();
    interrupted(&t, "--exclude=x");
    let journal = t.read("out.partial");
    for (more, said) in [
        ("", "--exclude: x, now none"),
        ("--exclude=y", "--exclude: x, now y"),
        ("--exclude=x --type=blake3", "algorithm: sha256, now blake3"),
        (
            "--exclude=x --allow-changed",
            "--allow-changed: none, now given",
        ),
        ("--exclude=x --min-size=1", "--min-size: none, now 1"),
        ("--exclude=x /etc/hostname", "root"),
    ] {
        let outcome = hash(&t, &format!("{more} --resume")).go();
        outcome
            .code(2)
            .stderr_has("out.partial: --resume cannot continue it: of another run than this one")
            .stderr_has(said);
        assert!(!t.exists("out"));
    }
    t.bc_line("integrity manifest --resume --output=out")
        .arg(old())
        .go()
        .code(2)
        .stderr_has("command: hash, now integrity manifest");
    assert_eq!(t.read("out.partial"), journal);
    // The format decides about nothing that is recorded.
    hash(&t, "--exclude=x --format=bsd --resume").go().code(0);
    assert_eq!(t.read("out"), whole(&t, "--exclude=x --format=bsd"));
}

#[test]
fn a_living_run_keeps_its_journal() {
    if !is_recorded() {
        return;
    }
    let t = TestTree::new();
    let living = Waiting::new(&t, hash(&t, "--resume"));
    hash(&t, "--resume")
        .go()
        .code(2)
        .stderr_has("out.partial: --resume cannot continue it: another run is writing it");
    hash(&t, "")
        .go()
        .code(0)
        .stderr_has("out.partial: another run is writing it: left as it is");
    assert!(t.exists("out.partial"));
    living.feed(b"abc");
    assert!(!t.exists("out.partial"));
    let out = String::from_utf8(t.read("out")).unwrap();
    assert!(out.contains(&format!("{}  -\n", crate::common::ABC)));
}

#[test]
fn what_is_no_journal_is_left_alone() {
    let t = TestTree::new();
    for (content, mode, said) in [
        ("a download", 0o644, "not a journal"),
        (
            "bc journal v1\r\n\0 and so on",
            0o666,
            "others may write it",
        ),
        ("", 0o644, "not a journal"),
    ] {
        t.write("out.partial", content).mode("out.partial", mode);
        hash(&t, "--resume").go().code(2).stderr_has(said);
        assert!(!t.exists("out"));
        let outcome = hash(&t, "").go();
        outcome.code(0).stderr_has(said);
        assert_eq!(outcome.error_lines().len(), 1, "{outcome}");
        hash(&t, "--quiet").go().code(0).stderr_is("");
        assert_eq!(t.read("out.partial"), content.as_bytes());
        t.remove("out");
    }
}

#[test]
fn what_another_user_planted_is_left_alone() {
    if !is_root() {
        return left_out("only root can make files of others");
    }
    let t = TestTree::new();
    t.write("out.partial", "theirs").mode("out.partial", 0o600);
    std::os::unix::fs::chown(t.join("out.partial"), Some(NOBODY), Some(NOBODY)).unwrap();
    for shared in [0o755, 0o1777] {
        std::fs::set_permissions(t.path(), std::fs::Permissions::from_mode(shared)).unwrap();
        let said = format!("belongs to user {NOBODY}");
        hash(&t, "--resume").go().code(2).stderr_has(&said);
        hash(&t, "").go().code(0).stderr_has(&said);
        assert_eq!(t.read("out.partial"), b"theirs");
        t.remove("out");
    }
}

#[test]
fn an_ordinary_user_goes_on_from_his_own() {
    if !is_recorded() || !is_root() {
        return;
    }
    let t = TestTree::new();
    std::fs::set_permissions(t.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let home = t.scratch("his");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let run = |more: &str| hash(&t, more).env("HOME", &home).as_nobody();
    let readable = run("").go();
    if readable.status.code() != Some(0) {
        return left_out("the project's files are closed to others");
    }
    t.remove("out");
    Waiting::new(&t, run("--resume")).end(Signal::KILL);
    // Not even root takes it for his own.
    let said = format!("belongs to user {NOBODY}");
    hash(&t, "--resume").go().code(2).stderr_has(said);
    assert!(known(run("--resume").go().code(0)) > 5);
    assert_eq!(t.read("out"), whole(&t, ""));
}

#[test]
fn what_is_written_to_no_file_has_no_journal() {
    let t = TestTree::new();
    t.write("a", "abc");
    for line in ["hash --resume a", "integrity manifest --resume ."] {
        t.bc_line(line).go().code(2).stderr_has("--output");
    }
    for line in [
        "hash --resume --output=- a",
        "integrity manifest --resume --output=/dev/stdout .",
    ] {
        t.bc_line(line).go().code(2).stderr_has("--resume: ");
    }
    // Too long a name for a journal is none for the result.
    let name = "n".repeat(250);
    let long = t.bc_line(&format!("hash --output={name} a")).go();
    long.code(0).stderr_is("");
    t.bc_line(&format!("hash --resume --output={name} a"))
        .go()
        .code(0);
    assert!(t.exists(&name));
}

#[test]
fn the_journal_is_no_part_of_what_is_read() {
    if !is_recorded() {
        return;
    }
    let t = TestTree::new();
    t.write("a", "abc");
    let run = || hash(&t, "--resume .");
    Waiting::new(&t, run()).end(Signal::KILL);
    run().go().code(0);
    let out = String::from_utf8(t.read("out")).unwrap();
    assert!(out.contains("  ./a\n") && !out.contains("partial"), "{out}");
}

/// The header's time and the trailer's digest, which covers it, are all that differs.
fn but_for_the_time(manifest: &[u8]) -> String {
    let text = String::from_utf8(manifest.to_vec()).unwrap();
    let mut lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines[0]["created_at"].take();
    lines.last_mut().unwrap()["sha256"].take();
    format!("{lines:#?}")
}

#[test]
fn a_manifest_killed_at_every_call_is_gone_on_from() {
    if !strace::is_able() || !is_recorded() {
        return;
    }
    let t = TestTree::new();
    let root = old();
    let root = root.display();
    let line = format!("integrity manifest --resume --output=m {root}");
    t.bc_line(&line).go().code(0);
    let expected = but_for_the_time(&t.read("m"));
    let mut gone_on = 0;
    let mut sweep = strace::kills(6);
    while let Some(point) = sweep.next() {
        let t = TestTree::new();
        let (first, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, &line);
        let context = format!("killed at {point}");
        if !killed {
            assert_eq!(first.status.code(), Some(0), "{context}");
            assert!(!t.exists("m.partial"), "{context}");
            continue;
        }
        if t.exists("m") {
            assert_eq!(but_for_the_time(&t.read("m")), expected, "{context}");
        }
        let outcome = t.bc_line(&line).go();
        outcome.code(0);
        gone_on += u64::from(outcome.error_text().contains("resuming: "));
        assert_eq!(but_for_the_time(&t.read("m")), expected, "{context}");
        assert!(!t.exists("m.partial"), "{context}");
    }
    let points = sweep.reached();
    assert!(points >= 6 && gone_on >= 2, "{points} {gone_on}");
}

#[test]
fn whatever_fails_on_the_way_is_said_and_the_result_is_right() {
    if !strace::is_able() || !is_recorded() {
        return;
    }
    let t = TestTree::new();
    let root = old();
    let line = format!("hash --resume --output=out {}", root.display());
    t.bc_line(&line).go().code(0);
    let expected = t.read("out");
    for (call, error) in [
        ("pwrite64", "ENOSPC"),
        ("pwrite64", "EIO"),
        ("fsync", "EIO"),
        ("flock", "ENOLCK"),
        ("mkdir", "EROFS"),
    ] {
        for n in 1..4 {
            let t = TestTree::new();
            let outcome = strace::injected(&t, call, &format!("error={error}"), n, &line);
            let context = format!("{call} {n}: {error}: {outcome}");
            match outcome.status.code() {
                Some(0) => assert_eq!(t.read("out"), expected, "{context}"),
                Some(2) => assert!(!t.exists("out"), "{context}"),
                _ => panic!("{context}"),
            }
            t.bc_line(&line).go().code(0);
            assert_eq!(t.read("out"), expected, "{context}");
        }
    }
}
