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
    sh(&t, "integrity update r copy >&-").code(2);
    assert_eq!(std::fs::read(t.join("copy")).unwrap(), before);
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
