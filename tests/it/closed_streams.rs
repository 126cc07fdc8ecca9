//! A standard stream that is closed is an error where it is needed, never an empty file; one that
//! is `/dev/null` is not closed, however it was opened.

use std::fs::File;
use std::process::Stdio;

use bc_testkit::{Outcome, TestTree};

use crate::commands::{SAMPLES, Sample, tree};
use crate::common::{ABC, BC, Bc, EMPTY};

const CLOSED: &str = "Bad file descriptor (os error 9)";

/// Runs `bc LINE` through a shell, for its redirections.
fn sh(t: &TestTree, line: &str) -> Outcome {
    t.run("sh")
        .args(["-c", &format!("exec \"$BC\" {line}")])
        .env("BC", BC)
        .go()
}

fn changed() -> TestTree {
    tree(
        |t| {
            t.write("r/old", "old").write("r/a", "abc");
        },
        |t| {
            t.remove("r/old").write("r/new", "new");
        },
    )
}

#[test]
fn no_command_works_without_the_stdout_that_it_writes_to() {
    let t = changed();
    for Sample { command, arguments } in SAMPLES {
        // Closed, and open for reading only.
        for stdout in [">&-", "1</dev/null"] {
            sh(&t, &format!("{command} {arguments} {stdout}"))
                .code(2)
                .stderr_has(format!("stdout: {CLOSED}"));
        }
    }
    for print in [
        "--list",
        "--version",
        "--help",
        "--describe",
        "hash --help",
        "help dup",
    ] {
        sh(&t, &format!("{print} >&-"))
            .code(2)
            .stderr_has(format!("stdout: {CLOSED}"));
    }
    for name in ["/dev/stdout", "/dev/fd/1", "-"] {
        sh(&t, &format!("hash r --output={name} >&-"))
            .code(2)
            .stderr_has(CLOSED);
        sh(&t, &format!("hash r/a --output=out --metrics={name} >&-"))
            .code(2)
            .stderr_has(CLOSED);
    }
    sh(&t, "hash r --output=/dev/stderr 2>&-").code(2);
    sh(&t, "hash r --output=/dev/stdin <&-")
        .code(2)
        .stderr_has(CLOSED);
}

#[test]
fn nothing_is_changed_if_the_steps_cannot_be_told() {
    let t = changed();
    sh(&t, "dup prune --action=delete --yes --journal=new r >&-").code(2);
    assert!(t.join("r/twin").exists() && t.join("r/twin2").exists());
    assert!(!t.join("new").exists());
    let before = std::fs::read(t.join("copy")).unwrap();
    // Few lines are out only when they are flushed.
    for stdout in [">&-", ">/dev/full"] {
        sh(&t, &format!("integrity update r copy {stdout}")).code(2);
        assert_eq!(std::fs::read(t.join("copy")).unwrap(), before, "{stdout}");
    }
    sh(&t, "integrity update r copy")
        .code(0)
        .stdout_has("- old\n");
}

/// What a full disk did not take is lost, whatever the command did besides.
#[test]
fn results_that_no_place_takes_are_exit_code_2() {
    let t = changed();
    for line in [
        "hash r",
        "dup r",
        "dup summary r",
        "dup prune --action=hardlink --dry-run r",
        "dup prune --action=hardlink --journal=steps r",
        "dup undo --dry-run steps",
        "dup undo steps",
        "integrity manifest r",
        "--describe",
    ] {
        sh(&t, &format!("{line} >/dev/full"))
            .code(2)
            .stderr_has("No space left on device");
    }
}

#[test]
fn a_closed_stdout_is_no_matter_where_results_go_elsewhere() {
    let t = changed();
    for line in [
        "hash r --output=out",
        "hash check --status sums2",
        "hash diff -q sums2 sums2 --output=out",
        "dup r --output=out",
        "integrity manifest r --output=out",
        "integrity export --format=gnu m --output=out",
        "install --force links",
    ] {
        t.dir("links");
        t.bc_line("hash r -o sums2").go().code(0);
        sh(&t, &format!("{line} <&- >&-")).code(0).stderr_is("");
    }
}

#[test]
fn no_command_takes_a_missing_stdin_for_an_empty_one() {
    let t = changed();
    for line in [
        "hash IN",
        "hash r/a IN",
        "hash --files-from=IN",
        "hash check IN",
        "hash check sums IN",
        "hash diff IN sums",
        "hash diff sums IN",
        "dup --files-from=IN",
        "dup summary --files-from=IN",
        "dup prune --action=hardlink --files-from=IN",
        "integrity verify r IN",
        "integrity diff IN m",
        "integrity diff m IN",
        "integrity export --format=gnu IN",
        "integrity import IN",
    ] {
        for (name, shown) in [("-", "stdin"), ("/dev/stdin", "/dev/stdin")] {
            let line = line.replace("IN", name);
            // Hashed by its path it is a device, which is never opened.
            if name != "-" && (line == "hash /dev/stdin" || line.starts_with("hash r/a")) {
                sh(&t, &format!("{line} <&-")).code(1);
                continue;
            }
            let out = sh(&t, &format!("{line} <&-"));
            out.code(2).stderr_has(format!("{shown}: {CLOSED}"));
            assert!(
                !String::from_utf8_lossy(&out.stdout).contains(EMPTY),
                "{out}"
            );
            if name == "-" {
                sh(&t, &format!("{line} 0>/dev/null"))
                    .code(2)
                    .stderr_has(CLOSED);
            }
        }
    }
}

#[test]
fn the_null_device_is_an_empty_input_and_a_place_for_results() {
    let t = changed();
    // As Python's subprocess.DEVNULL and container runtimes open it: for both.
    let both = || -> Stdio {
        let null = File::options().read(true).write(true).open("/dev/null");
        null.unwrap().into()
    };
    let mut command = t.bc_line("hash - r/a --output=out").command();
    command.stdin(both()).stdout(both()).stderr(both());
    assert!(command.status().unwrap().success());
    let got = std::fs::read_to_string(t.join("out")).unwrap();
    assert_eq!(got, format!("{EMPTY}  -\n{ABC}  r/a\n"));
    for Sample { command, arguments } in SAMPLES {
        let line = format!("{command} {arguments}");
        let expected = t.bc_line(&line).go().status;
        let mut silent = t.bc_line(&line).command();
        silent.stdin(both()).stdout(both()).stderr(both());
        assert_eq!(silent.status().unwrap(), expected, "{line}");
        sh(&t, &format!("{line} </dev/null >/dev/null 2>/dev/null")).code(expected.code().unwrap());
    }
    sh(&t, "hash - </dev/null")
        .code(0)
        .stdout_is(format!("{EMPTY}  -\n"));
    sh(&t, "hash - <>/dev/null")
        .code(0)
        .stdout_is(format!("{EMPTY}  -\n"));
}

#[test]
fn messages_without_a_stderr_go_into_no_file() {
    let t = changed();
    for streams in ["2>&-", "<&- 2>&-", "<&- >&- 2>&-"] {
        let line = "hash -v missing r/a --output=out --metrics=figures";
        sh(&t, &format!("{line} {streams}")).code(1).stderr_is("");
        let got = std::fs::read_to_string(t.join("out")).unwrap();
        assert_eq!(got, format!("{ABC}  r/a\n"), "{streams}");
        let figures = std::fs::read(t.join("figures")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&figures).unwrap();
    }
    let out = sh(&t, "hash -v missing r/a 2>&-");
    out.code(1).stdout_is(format!("{ABC}  r/a\n"));
    sh(&t, "hash r/a <&- >&- 2>&-").code(2);
}

/// Whatever of stdin and stderr is missing, every command gives the same results, and what it
/// opens in their place gets no message.
#[test]
fn no_command_needs_the_streams_that_it_does_not_use() {
    // Manifests and summaries have times in them.
    let lasts = |line: &&[u8]| !line.starts_with(b"{\"type\":") && !line.starts_with(b"time ");
    for Sample { command, arguments } in SAMPLES {
        let t = changed();
        let plain = t.bc_line(command).args(arguments.split(' ')).go();
        // A message that many of them have: a file that is not there.
        let messages = ["hash hash", "dup scan"].contains(command);
        let missing = if messages { " missing" } else { "" };
        let code = if messages {
            Some(1)
        } else {
            plain.status.code()
        };
        let results = |out: &Outcome| -> Vec<Vec<u8>> {
            let lines = out.lines().into_iter().filter(lasts);
            lines.map(<[u8]>::to_vec).collect()
        };
        for streams in ["<&-", "2>&-", "<&- 2>&-", "2</dev/null", "0>/dev/null 2>&-"] {
            let writes = *command == "integrity update";
            if writes {
                t.run("cp").args(["m", "copy"]).go().code(0);
            }
            let before = contents(&t);
            let out = sh(&t, &format!("{command} {arguments}{missing} {streams}"));
            assert_eq!(out.status.code(), code, "{streams}: {out}");
            assert_eq!(results(&out), results(&plain), "{streams}: {out}");
            let after = contents(&t);
            let other = |(one, other): &(_, _)| one != other;
            let written = before.iter().zip(&after).filter(other).count();
            assert_eq!(written, usize::from(writes), "{command} {streams}");
            assert_eq!(before.len(), after.len(), "{command} {streams}");
        }
    }
}

/// Every file of the tree with its content.
fn contents(t: &TestTree) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![t.path().to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => pending.push(path),
                false => found.push((path.clone(), std::fs::read(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}
