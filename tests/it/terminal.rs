//! The status line, in a real pseudo-terminal and outside of one.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use bc_testkit::{Pty, PtySession, Screen, TestTree};

use crate::common::{ABC, BC, Bc};

/// A test that waits so long for a status line fails: only a hang takes this long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// The status lines drawn in `bytes`, in order: what lies between an erasure and the carriage
/// return that puts the cursor back.
fn drawn(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let pieces = text.split("\r\x1b[J").skip(1);
    pieces
        .filter_map(|piece| piece.split_once('\r'))
        .filter(|(line, rest)| !line.is_empty() && !rest.starts_with('\n'))
        .map(|(line, _)| line.to_owned())
        .collect()
}

/// Different status lines were drawn: `count` or more.
fn drew(count: usize) -> impl Fn(&[u8]) -> bool {
    move |bytes| {
        let mut lines = drawn(bytes);
        lines.dedup();
        lines.len() >= count
    }
}

/// `bc` with stdout and stderr in a terminal of `columns` and a pipe as its input, so that the
/// test decides how long it runs.
fn fed(t: &TestTree, line: &str, columns: u16) -> PtySession {
    let pty = Pty::new(columns, 24);
    let mut command = t.bc_line(line).env("TERM", "xterm").command();
    command
        .stdin(Stdio::piped())
        .stdout(pty.stream())
        .stderr(pty.stream());
    pty.start(command)
}

/// Feeds `bc hash -` until its line was drawn `times` times in different words, ends its input.
fn feed_until_drawn(session: &mut PtySession, times: usize) {
    let mut input = session.child().stdin.take().unwrap();
    let begun = std::time::Instant::now();
    while !drew(times)(&session.bytes()) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", drawn(&session.bytes()));
        input.write_all(&[0; 64 << 10]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn appears_moves_and_disappears() {
    let t = TestTree::new();
    let mut session = fed(&t, "hash -", 80);
    feed_until_drawn(&mut session, 4);
    let (status, bytes) = session.end();
    assert!(status.success(), "{status}");
    let lines = drawn(&bytes);
    for line in &lines {
        assert!(line.starts_with("hash  "), "{line}");
        assert!(line.contains("iB/s"), "{line}");
        assert!(!line.contains("files/s"), "a speed of nothing: {line}");
        assert!(!line.contains('%'), "the total is not known: {line}");
    }
    let mut screen = Screen::new(80);
    screen.feed(&bytes);
    let left = screen.lines();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with("  -"), "{left:?}");
    assert_eq!(screen.wraps(), 0);
}

#[test]
fn fits_any_width() {
    for columns in [5, 20, 40, 200] {
        let t = TestTree::new();
        let mut session = fed(&t, "hash --output=/dev/null -", columns);
        feed_until_drawn(&mut session, if columns < 20 { 1 } else { 3 });
        let (status, bytes) = session.end();
        assert!(status.success(), "{status}");
        let mut screen = Screen::new(columns.into());
        screen.feed(&bytes);
        assert_eq!(screen.wraps(), 0, "{columns}: {:?}", drawn(&bytes));
        assert_eq!(screen.lines(), [""; 0], "{columns}");
    }
}

#[test]
fn a_short_run_has_a_rate() {
    let t = TestTree::new();
    let file = std::fs::File::create(t.join("big")).unwrap();
    file.set_len(16 << 20).unwrap();
    // Open for writing it is read twice, as a file that was written just now; its bytes count once.
    let pty = Pty::new(100, 24);
    let mut command = t
        .bc_line("hash --progress=always --output=/dev/null big")
        .env("TERM", "xterm")
        .command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(pty.stream());
    let (status, bytes) = pty.start(command).end();
    assert!(status.success(), "{status}");
    let lines = drawn(&bytes);
    let last = lines.last().unwrap();
    assert!(last.contains("16.0 MiB  "), "{lines:?}");
    assert!(
        last.contains("iB/s") && !last.contains(" 0 B/s"),
        "{lines:?}"
    );
}

/// The last line of a search says what was done last, and of what its percentage is.
#[test]
fn phases_have_names_and_shares_say_of_what() {
    let t = TestTree::new();
    let content = vec![7; 4 << 20];
    t.write("a", &content).write("b", &content);
    let last = |line: &str| {
        let pty = Pty::new(120, 24);
        let mut command = t.bc_line(line).env("TERM", "xterm").command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(pty.stream());
        let (_, bytes) = pty.start(command).end();
        drawn(&bytes).pop().unwrap_or_default()
    };
    let line = last("dup --progress=always a b");
    assert!(line.starts_with("whole files  ["), "{line}");
    assert!(line.contains("% of bytes"), "{line}");
    let line = last("dup --progress=always a SUMS");
    assert!(line.starts_with("first bytes"), "{line}");
    t.bc_line("hash --output=SUMS a b").go().code(0);
    let line = last("hash check --progress=always SUMS");
    assert!(
        line.starts_with("check  [================]  100% of files"),
        "{line}"
    );
}

#[test]
fn follows_a_change_of_width() {
    let t = TestTree::new();
    let mut session = fed(&t, "hash --output=/dev/null -", 90);
    let mut input = session.child().stdin.take().unwrap();
    let mut until = |session: &PtySession, test: &dyn Fn(&str) -> bool| {
        let begun = std::time::Instant::now();
        while !drawn(&session.bytes()).last().is_some_and(|l| test(l)) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", drawn(&session.bytes()));
            input.write_all(&[0; 64 << 10]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    until(&session, &|line| line.len() > 22);
    session.resize(20, 24);
    until(&session, &|line| line.len() < 20);
    session.resize(90, 24);
    until(&session, &|line| line.len() > 22);
    drop(input);
    let (status, bytes) = session.end();
    assert!(status.success(), "{status}");
    let mut screen = Screen::new(90);
    screen.feed(&bytes);
    assert_eq!(screen.lines(), [""; 0]);
}

#[test]
fn messages_stand_on_lines_of_their_own() {
    let t = TestTree::new();
    t.write("a", "abc");
    // The first missing path is reported by the walk, while the line may be on the screen.
    let mut session = fed(&t, "hash missing a -", 120);
    feed_until_drawn(&mut session, 3);
    let (status, bytes) = session.end();
    assert_eq!(status.code(), Some(1));
    let mut screen = Screen::new(120);
    screen.feed(&bytes);
    let lines = screen.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("bc hash:") && lines[0].ends_with("(os error 2)"));
    assert!(lines.contains(&format!("{ABC}  a")), "{lines:?}");
}

/// `bc` in a session of its own whose terminal is the test's; None without setsid.
fn at_terminal(t: &TestTree, line: &str) -> Option<PtySession> {
    Pty::new(100, 24).lead(t, BC, line.split_whitespace())
}

#[test]
fn ctrl_c_leaves_a_clean_terminal() {
    let t = TestTree::new();
    // Sparse: takes seconds to hash and no space. The total is known, so there is an ETA.
    let file = std::fs::File::create(t.join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    for line in [
        "hash --type=sha512 huge --output=out",
        "hash --type=sha512 --threads=2 huge",
        "dup --match-hardlinks --algorithm=sha256 huge link",
        "integrity manifest --output=../out .",
    ] {
        if t.join("link").symlink_metadata().is_err() {
            t.hard_link("huge", "link");
        }
        let Some(session) = at_terminal(&t, line) else {
            return;
        };
        let eta = |bytes: &[u8]| drawn(bytes).iter().filter(|l| l.contains("ETA ")).count() > 3;
        if line.starts_with("dup") {
            session.wait_for(line, drew(2));
        } else {
            session.wait_for(line, eta);
        }
        let before = session.screen().lines();
        assert_eq!(before.len(), 1, "{line}: {before:?}");
        session.type_keys(b"\x03");
        let (status, bytes) = session.end();
        assert_eq!(status.signal(), Some(2), "{line}: {status}");
        let mut screen = Screen::new(100);
        screen.feed(&bytes);
        assert_eq!(screen.lines(), [""; 0], "{line}");
        assert!(!t.join("out").exists() && !t.scratch("out").exists());
    }
}

#[test]
fn ctrl_c_at_a_waiting_prompt_for_input() {
    let t = TestTree::new();
    for line in ["hash -", "hash --files-from=-", "hash check -"] {
        let Some(session) = at_terminal(&t, line) else {
            return;
        };
        session.wait_for(line, drew(1));
        session.type_keys(b"\x03");
        let (status, bytes) = session.end();
        assert_eq!(status.signal(), Some(2), "{line}: {status}");
        let mut screen = Screen::new(100);
        screen.feed(&bytes);
        assert_eq!(screen.lines(), [""; 0], "{line}");
    }
}

#[test]
fn never_in_pipes_dumb_terminals_or_when_unwanted() {
    let t = TestTree::new();
    // Long enough for a line to be drawn, if one were wanted.
    let slow = |command: std::process::Command, pty: Option<Pty>| -> Vec<u8> {
        let mut command = command;
        command.stdin(Stdio::piped());
        match pty {
            None => {
                command.stdout(Stdio::null()).stderr(Stdio::piped());
                let mut child = command.spawn().unwrap();
                let input = child.stdin.take();
                std::thread::sleep(std::time::Duration::from_millis(700));
                drop(input);
                child.wait_with_output().unwrap().stderr
            }
            Some(pty) => {
                command.stdout(Stdio::null()).stderr(pty.stream());
                let mut session = pty.start(command);
                let input = session.child().stdin.take();
                std::thread::sleep(std::time::Duration::from_millis(700));
                drop(input);
                session.end().1
            }
        }
    };
    let bc = |line: &str, term: &str| t.bc_line(line).env("TERM", term).command();
    let pty = || Some(Pty::new(80, 24));
    assert_eq!(slow(bc("hash -", "xterm"), None), b"");
    assert_eq!(slow(bc("hash -", "dumb"), pty()), b"");
    assert_eq!(slow(bc("hash - --progress=never", "xterm"), pty()), b"");
    assert_eq!(slow(bc("hash - --quiet", "xterm"), pty()), b"");
    // The same with the line wanted, or these checks could not fail.
    let mut session = fed(&t, "hash -", 80);
    feed_until_drawn(&mut session, 1);
    session.end();
    assert_ne!(slow(bc("hash - --progress=always", "dumb"), pty()), b"");
    assert_ne!(slow(bc("hash - --progress=always", "xterm"), None), b"");
}
