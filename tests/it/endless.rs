//! Inputs without an end: devices, pipes, lines. Each is given up with a
//! reason, in little memory, and a signal ends the reading of any.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use bc_testkit::TestTree;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{BC, Bc};

/// Commands that read a file somebody names, which stands at the end.
const READERS: &[&str] = &[
    "hash check",
    "hash check -z",
    "hash check --type=md5",
    "hash diff sums",
    "hash --files-from",
    "hash -0 --files-from",
    "dup --files-from",
    "dup -0 --files-from",
    "dup prune --action=hardlink --from",
];

fn tree() -> TestTree {
    let t = TestTree::new();
    t.write("a", "abc");
    t.bc_line("hash --output=sums a").go().code(0);
    t
}

#[test]
fn devices_are_given_up() {
    let t = tree();
    for reader in READERS {
        // Half a GiB of addresses, as batch systems allow: nothing may be gathered.
        let limited = "ulimit -v 524288; exec \"$0\" \"$@\"";
        let out = t
            .run("sh")
            .args(["-c", limited, BC])
            .args(reader.split(' '))
            .args(["/dev/zero", "--threads=mono"])
            .go();
        assert!(matches!(out.status.code(), Some(1 | 2)), "{out}");
        assert!(out.stdout.is_empty(), "{out}");
        out.stderr_has("/dev/zero");
        let text = out.error_text();
        assert!(
            [
                "does not end",
                "longer than 16 MiB",
                "no properly formatted"
            ]
            .iter()
            .any(|reason| text.contains(reason)),
            "{out}"
        );
    }
    for config in ["--config=/dev/zero", "--config=/dev/full"] {
        t.bc_line(&format!("hash a {config}"))
            .go()
            .code(2)
            .stderr_has("larger than 1 MiB");
    }
}

#[test]
fn empty_devices_are_empty_files() {
    let t = tree();
    t.bc_line("hash --files-from=/dev/null")
        .go()
        .code(0)
        .stdout_is("");
    t.bc_line("hash diff /dev/null /dev/null").go().code(0);
    t.bc_line("hash a --config=/dev/null").go().code(0);
    t.bc_line("hash check /dev/null")
        .go()
        .code(1)
        .stderr_has("no properly formatted");
}

#[test]
fn a_line_without_an_end_is_none() {
    let t = tree();
    let file = std::fs::File::create(t.join("sparse")).unwrap();
    file.set_len(20 << 20).unwrap();
    t.bc_line("hash --files-from=sparse")
        .go()
        .code(2)
        .stderr_has("longer than 16 MiB");
    t.bc_line("dup --files-from=sparse")
        .go()
        .code(2)
        .stderr_has("longer than 16 MiB");
    file.set_len(2 << 30).unwrap();
    t.bc_line("dup prune --action=hardlink --from=sparse")
        .go()
        .code(2)
        .stderr_has("larger than 1 GiB");
}

#[test]
fn a_signal_ends_the_reading_of_a_huge_file() {
    let t = tree();
    // Sparse: it takes no space, and half a minute to read.
    let file = std::fs::File::create(t.join("huge")).unwrap();
    file.set_len(100 << 30).unwrap();
    for reader in [
        "hash check",
        "hash check -z",
        "hash diff huge",
        "hash -0 --files-from",
    ] {
        let mut child = t
            .bc_line(reader)
            .arg("huge")
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let io = format!("/proc/{}/io", child.id());
        let read = || {
            let text = std::fs::read_to_string(&io).unwrap_or_default();
            let line = text
                .lines()
                .next()
                .and_then(|l| l.rsplit(' ').next()?.parse().ok());
            line.unwrap_or(0_u64)
        };
        while read() < 4 << 20 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(15), "{reader}: {status:?}");
    }
}

/// Where nobody reads what is written, and where nobody has opened the pipe.
#[test]
fn a_signal_ends_the_waiting_for_a_reader() {
    let t = TestTree::new();
    for index in 0..5000 {
        t.write(format!("d/a-name-of-usual-length-{index}"), "x");
    }
    t.fifo("pipe");
    for line in [
        "hash d",
        "dup d",
        "integrity manifest d",
        "hash --output=pipe d",
        "dup -o pipe d",
    ] {
        let mut child = t
            .bc_line(line)
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = ended_while_it_waits(&mut child);
        assert_eq!(status.signal(), Some(15), "{line}: {status:?}");
    }
}

/// Sends SIGTERM once the handlers are in place and it waits.
fn ended_while_it_waits(child: &mut Child) -> ExitStatus {
    let status = format!("/proc/{}/status", child.id());
    let waits = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
        let wait = std::fs::read_to_string(format!("/proc/{}/wchan", child.id()));
        let asleep = text.contains("State:\tS") && wait.is_ok_and(|w| !w.contains("futex"));
        caught.unwrap_or(0) & (1 << 14) != 0 && asleep
    };
    let mut times = 0;
    for _ in 0..5000 {
        times = if waits() { times + 1 } else { 0 };
        if times > 20 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
    child.wait().unwrap()
}

/// A FIFO that nobody has opened for writing, where a list or a report is expected.
#[test]
fn a_signal_ends_the_waiting_for_a_writer() {
    let t = tree();
    t.fifo("pipe");
    for reader in READERS {
        let mut command = t.bc().args(reader.split(' ')).arg("pipe").command();
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        let status = ended_while_it_waits(&mut child);
        assert_eq!(status.signal(), Some(15), "{reader}: {status:?}");
    }
}
