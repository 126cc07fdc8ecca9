//! The names of other programs: what cannot be compared with installed ones, because older versions
//! differ, or because it takes a look while they run.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use bc_testkit::{TestTree, left_out, tool};
use rustix::event::{PollFd, PollFlags, poll};

use crate::common::{ABC, Bc, EMPTY};
use crate::gnu_alike::{PROGRAMS, ours};

#[test]
fn the_version_says_whose_it_is() {
    let t = TestTree::new();
    for name in PROGRAMS {
        let path = format!("/usr/local/bin/{name}");
        let line = format!(
            "{name} (bit-crafts {}, after GNU coreutils 9.11)\n",
            env!("CARGO_PKG_VERSION")
        );
        ours(&t, &path, &["--version", "--nope"], "")
            .code(0)
            .stdout_is(line);
        ours(&t, &path, &["--hel"], "")
            .code(0)
            .stdout_has(format!("Usage: {path} [OPTION]... [FILE]..."));
        // Messages name the program as it was called.
        ours(&t, &path, &["missing"], "")
            .code(1)
            .stderr_is(format!("{path}: missing: No such file or directory\n"));
    }
}

/// 9.11's, which older ones do not have.
#[test]
fn what_is_new_in_cksum() {
    let t = TestTree::new();
    t.write("a", "abc").write("empty", "");
    for (args, expected) in [
        (&["-a", "crc32b", "a"][..], "891568578 3 a\n"),
        (
            &["-a", "sha2", "-l", "256", "a"],
            &*format!("SHA256 (a) = {ABC}\n"),
        ),
        (
            &["-a", "sha2", "-l", "256", "--untagged", "a"],
            &*format!("{ABC}  a\n"),
        ),
        (
            &["-a", "md5", "--base64", "empty"],
            "MD5 (empty) = 1B2M2Y8AsgTpgAmY7PhCfg==\n",
        ),
        (&["-a", "bsd", "--base64", "a"], "16556     1 a\n"),
        (
            &["-a", "sha3", "-l", "224", "a"],
            "SHA3-224 (a) = e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf\n",
        ),
    ] {
        ours(&t, "cksum", args, "")
            .code(0)
            .stdout_is(expected)
            .stderr_is("");
    }
    let raw = ours(&t, "cksum", &["--raw", "-a", "crc32b", "a"], "");
    assert_eq!(raw.code(0).stdout, [0x35, 0x24, 0x41, 0xc2]);
    for (args, message) in [
        (
            &["-a", "sha3", "a"][..],
            "--algorithm=sha3 requires specifying --length 224, 256, 384, or 512\n",
        ),
        (
            &["-a", "sha3", "-l", "248", "a"],
            "invalid length: '248'\ncksum: digest length for 'SHA3' must be 224, 256, 384, or 512\n",
        ),
        (
            &["-a", "blake2b", "-l", "18446744073709551616", "a"],
            "invalid length: '18446744073709551616'\ncksum: maximum digest length for 'BLAKE2b' is 512 bits\n",
        ),
        (
            &["-a", "md5", "-l", "8", "a"],
            "--length is only supported with --algorithm blake2b, sha2, or sha3\n",
        ),
        (
            &["--raw", "a", "a"],
            "the --raw option is not supported with multiple files\n",
        ),
        (
            &["--base64", "--raw", "a"],
            "--base64 and --raw are mutually exclusive\nTry 'cksum --help' for more information.\n",
        ),
        (
            &["--text", "--tag", "-a", "md5", "a"],
            "--text mode is only supported with --untagged\nTry 'cksum --help' for more information.\n",
        ),
        (
            &["-a", "bsd", "-c", "a"],
            "--check is not supported with --algorithm={bsd,sysv,crc,crc32b}\n",
        ),
    ] {
        ours(&t, "cksum", args, "")
            .code(1)
            .stdout_is("")
            .stderr_is(format!("cksum: {message}"));
    }
    let unknown = ours(&t, "cksum", &["-a", "sha22"], "");
    unknown.code(1).stderr_has(
        "cksum: invalid argument 'sha22' for '--algorithm'\nValid arguments are:\n  - 'bsd'\n",
    );
    unknown.stderr_has("  - 'sm3'\nTry 'cksum --help' for more information.\n");
}

/// As 9.11 quotes them; on the lines of digests themselves there are escapes.
#[test]
fn names_in_messages_are_quoted_for_a_shell() {
    let t = TestTree::new();
    t.write("a\nb", "")
        .write("it's", "")
        .write("a b", "")
        .write("é", "");
    let lines = ours(&t, "md5sum", &["a\nb", "it's", "a b", "é"], "").text();
    let checked = |locale: &str, last: &str| {
        let expected = format!("'a'$'\\n''b': OK\n\"it's\": OK\n'a b': OK\n{last}: OK\n");
        let run = t.bc().arg0("md5sum").arg("-c").env("LC_ALL", locale);
        run.stdin(lines.as_str())
            .go()
            .code(0)
            .stdout_is(expected)
            .stderr_is("");
    };
    checked("C", "''$'\\303\\251'");
    checked("C.UTF-8", "é");
    checked("de_DE.utf8@euro", "é");
    ours(&t, "md5sum", &["no\tsuch"], "")
        .code(1)
        .stderr_is("md5sum: 'no'$'\\t''such': No such file or directory\n");
}

#[test]
fn a_line_is_there_before_the_last_file_is_read() {
    let t = TestTree::new();
    t.write("a", "abc").fifo("pipe").write("empty", "");
    let mut child = t
        .bc()
        .arg0("sha256sum")
        .args(["a", "pipe", "empty"])
        .command()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, format!("{ABC}  a\n"));
    // The pipe is only now written to, and what comes behind it was not looked at yet.
    let mut pipe = std::fs::OpenOptions::new()
        .write(true)
        .open(t.join("pipe"))
        .unwrap();
    t.write("empty", "abc");
    pipe.write_all(b"abc").unwrap();
    drop(pipe);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, format!("{ABC}  pipe\n{ABC}  empty\n"));
    assert!(child.wait().unwrap().success());
}

/// As long as the last file takes, all lines before it are there.
#[test]
fn no_line_waits_for_a_large_file() {
    let t = TestTree::new();
    let mut args: Vec<String> = (0..100).map(|i| format!("f{i}")).collect();
    for name in &args {
        t.write(name, "abc");
    }
    // A hole, which nobody reads to its end.
    let file = std::fs::File::create(t.join("large")).unwrap();
    if let Err(error) = file.set_len(1 << 40) {
        return left_out(&format!("no file of a TiB here: {error}"));
    }
    drop(file);
    args.push("large".to_owned());
    let lines: String = args.iter().map(|name| format!("{ABC}  {name}\n")).collect();
    t.write("sums", lines);
    for (args, before, after) in [
        (args.clone(), format!("{ABC}  "), ""),
        (
            vec!["-c".to_owned(), "sums".to_owned()],
            String::new(),
            ": OK",
        ),
    ] {
        let mut child = t
            .bc()
            .arg0("sha256sum")
            .args(&args)
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for i in 0..100 {
            let line = format!("{before}f{i}{after}");
            assert_eq!(lines.next().unwrap().unwrap(), line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The same with so many files that engines read ahead.
#[test]
fn pipes_take_their_turn_among_many_files() {
    let t = TestTree::new();
    t.fifo("pipe").write("late", "");
    let mut args: Vec<String> = Vec::new();
    for i in 0..200 {
        t.write(format!("f{i}"), "abc");
        args.push(format!("f{i}"));
    }
    args.insert(100, "pipe".to_owned());
    args.push("late".to_owned());
    let mut child = t
        .bc()
        .arg0("sha256sum")
        .args(&args)
        .command()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for name in &args[..100] {
        assert_eq!(lines.next().unwrap().unwrap(), format!("{ABC}  {name}"));
    }
    t.write("late", "abc");
    std::fs::write(t.join("pipe"), "abc").unwrap();
    for name in &args[100..] {
        assert_eq!(lines.next().unwrap().unwrap(), format!("{ABC}  {name}"));
    }
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn lines_are_checked_as_they_come() {
    let t = TestTree::new();
    t.write("a", "abc");
    let mut child = t
        .bc()
        .arg0("sha256sum")
        .arg("-c")
        .command()
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        writeln!(input, "{ABC}  a").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "a: OK");
    }
    // The last line needs no end.
    write!(input, "{EMPTY}  a").unwrap();
    drop(input);
    assert_eq!(lines.next().unwrap().unwrap(), "a: FAILED");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn what_cannot_be_written_is_an_error() {
    if tool("bash").is_none() {
        return left_out("bash is not installed");
    }
    let t = TestTree::new();
    t.write("a", "abc");
    let sh = |line: &str| {
        let line = format!("exec -a sha256sum \"$BC\" {line}");
        t.run("bash")
            .args(["-c", &line])
            .env("BC", crate::common::BC)
            .env("LC_ALL", "C")
            .go()
    };
    sh("a >/dev/full")
        .code(1)
        .stderr_is("sha256sum: write error: No space left on device\n");
    sh("a >&-")
        .code(1)
        .stderr_is("sha256sum: write error: Bad file descriptor\n");
    // Warnings too: who takes 0 for "all is well" has not seen them.
    t.write("sums", format!("no checksum\n{ABC}  a\n"));
    sh("-c sums").code(0).stdout_is("a: OK\n");
    for nowhere in ["2>/dev/full", "2>&-"] {
        sh(&format!("-c sums {nowhere}"))
            .code(1)
            .stdout_is("a: OK\n");
        sh(&format!("-c --status sums {nowhere}")).code(0);
        sh(&format!("a {nowhere}")).code(0);
    }
    sh("--version >/dev/full")
        .code(1)
        .stderr_is("sha256sum: write error: No space left on device\n");
    // Substituted processes are pipes; the second one ends first.
    sh("<(sleep 0.1; printf abc) <(printf abc) | cut -c1-64")
        .code(0)
        .stdout_is(format!("{ABC}\n{ABC}\n"));
    // Who has the signal ignored gets the error.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let line = "trap '' PIPE; exec -a sha256sum \"$BC\" a";
    let run = t
        .run("bash")
        .args(["-c", line])
        .env("BC", crate::common::BC);
    let out = run.command().stdout(writer).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(out.stderr, b"sha256sum: write error: Broken pipe\n");
    // Nothing to write, nothing to complain of.
    sh("-c --status >&- <<<'x'").code(1);
    let status = format!("-c --status >&- <<<'{ABC}  a'");
    sh(&status).code(0).stderr_is("");
    sh("<&-").code(1).stderr_is(
        "sha256sum: -: Bad file descriptor\nsha256sum: standard input: Bad file descriptor\n",
    );
    sh("-c <&-").code(1).stderr_is(
        "sha256sum: 'standard input': read error\nsha256sum: standard input: Bad file descriptor\n",
    );
}

#[test]
fn a_reader_that_leaves_ends_it_as_any_other_program() {
    let t = TestTree::new();
    let mut args = vec!["a".to_owned(); 50];
    t.write("a", "abc").fifo("never written to");
    args.push("never written to".to_owned());
    let (mut output, writer) = std::io::pipe().unwrap();
    let ours = writer.try_clone().unwrap();
    let mut child = t
        .bc()
        .arg0("sha256sum")
        .args(&args)
        .command()
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    output.read_exact(&mut first).unwrap();
    drop(output);
    // Whatever another test starts at that moment has it until it is another program.
    let mut left = [PollFd::new(&ours, PollFlags::empty())];
    while poll(&mut left, None).is_err() {}
    assert_eq!(left[0].revents(), PollFlags::ERR);
    // The rest of the lines may have gone out before; then it waits for the pipe's writer. If it
    // is gone, nobody opens the pipe any more.
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let mut writer = std::fs::OpenOptions::new();
        writer
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        drop(writer.open(t.join("never written to")));
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(13), "{status:?}");
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "");
}

/// What a program reads is what coreutils prints; a terminal obeys no name.
#[test]
fn no_name_acts_on_a_terminal() {
    let t = TestTree::new();
    let names = [
        "esc\x1b[32m",
        "c1 \u{9b}32m",
        "bidi \u{202e}x",
        "cr\rOWNED",
        "nl\nOWNED",
    ];
    for name in names {
        t.write(name, "abc");
    }
    let missing: Vec<String> = names.iter().map(|name| format!("missing {name}")).collect();
    let missing = missing.iter().map(String::as_str);
    let all: Vec<&str> = names.into_iter().chain(missing).collect();
    for options in [
        &["sha256sum"][..],
        &["sha256sum", "-z"],
        &["b3sum"],
        &["xxhsum"],
    ] {
        let (program, options) = options.split_first().unwrap();
        let run = t
            .bc()
            .arg0(program)
            .args(options)
            .args(&all)
            .env("TERM", "xterm");
        let (_, shown) = bc_testkit::Pty::new(200, 50).start_in(run.command()).end();
        let text = String::from_utf8(shown).unwrap();
        let acts = |c: char| c.is_control() && c != '\n' && c != '\r' || c == '\u{202e}';
        assert!(!text.contains(acts), "{program}: {text:?}");
        let mut lines = text.split(['\r', '\n']);
        assert!(
            !lines.any(|line| line.starts_with("OWNED")),
            "{program}: {text:?}"
        );
    }
}

/// Only how to work is taken from configuration.
#[test]
fn configuration_says_how_to_work_and_nothing_else() {
    let t = TestTree::new();
    t.write("a", "abc").write(
        "config",
        "quiet = true\nprogress = \"always\"\nthreads = 2\n",
    );
    let run = |name: &str, value: &str| {
        t.bc()
            .arg0("sha256sum")
            .args(["a", "a", "a", "a", "a", "a", "a", "a", "a"])
            .env(name, value)
            .go()
    };
    let lines = format!("{ABC}  a\n").repeat(9);
    for (name, value) in [
        ("BC_CONFIG", "config"),
        ("BC_THREADS", "mono"),
        ("BC_IO", "sync"),
        ("BC_MEMORY_BUDGET", "1G"),
        ("BC_LOG_FORMAT", "json"),
        ("BC_PROGRESS", "always"),
        // What is said to bc alone.
        ("BC_OUTPUT", "z"),
        ("BC_REFERENCE", "nowhere"),
        ("BC_FORMAT", "nonsense"),
    ] {
        run(name, value).code(0).stdout_is(&lines).stderr_is("");
    }
    run("BC_THREADS", "many")
        .code(1)
        .stdout_is("")
        .stderr_has("sha256sum: environment variable BC_THREADS: ");
}
