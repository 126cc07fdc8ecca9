//! Signals stop the work at once, even inside one huge file, and leave nothing behind.

use std::process::Stdio;
use std::time::Duration;

use bc_testkit::{TestTree, is_heeded};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{ABC, BC, Bc};

/// Starts a long run, sends `signal` and returns how it ended.
fn interrupted(line: &str, signal: Signal) -> (std::process::ExitStatus, TestTree) {
    use std::os::unix::process::ExitStatusExt;
    let t = TestTree::new();
    // Sparse: 10 GB take seconds to hash and no space.
    let file = std::fs::File::create(t.join("huge")).unwrap();
    file.set_len(10 << 30).unwrap();
    let mut child = t
        .bc_line(line)
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    // Until it is in the middle of the file: it has read more than a little.
    let io = format!("/proc/{}/io", child.id());
    for _ in 0..1000 {
        let read = std::fs::read_to_string(&io).unwrap_or_default();
        let chars = read
            .lines()
            .next()
            .and_then(|l| l.rsplit(' ').next()?.parse::<u64>().ok());
        if chars.unwrap_or(0) > 64 << 20 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(pid, signal).unwrap();
    let status = child.wait().unwrap();
    assert!(status.signal().is_some() || status.code().is_some());
    (status, t)
}

#[test]
fn sigint_and_sigterm_end_the_run_by_that_signal() {
    use std::os::unix::process::ExitStatusExt;
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        if !is_heeded(signal.as_raw()) {
            continue;
        }
        for line in [
            "hash --type=sha512 huge --output=out",
            "hash --type=md5 --io=sync --threads=2 huge --output=out",
        ] {
            let (status, t) = interrupted(line, signal);
            assert_eq!(status.signal(), Some(number), "{line}: {status:?}");
            let names: Vec<_> = std::fs::read_dir(t.path())
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            assert_eq!(names, ["huge"], "no partial output, no temporary");
        }
    }
}

/// A read that waits for ever on a pipe ends with the signal too.
#[test]
fn a_silent_pipe_does_not_hold_a_signal_up() {
    use std::os::unix::process::ExitStatusExt;
    if !is_heeded(Signal::TERM.as_raw()) {
        return;
    }
    let t = TestTree::new();
    t.fifo("f").dir("d");
    for line in [
        "hash check f",
        "hash check -",
        "hash -",
        "hash --files-from f",
        "hash diff f f",
        "dup prune --action=delete --yes --from f",
        "integrity verify d f",
    ] {
        let mut child = t
            .bc_line(line)
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until its handlers are in place and it waits.
        let status = format!("/proc/{}/status", child.id());
        for _ in 0..1000 {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|l| l.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
            if caught.unwrap_or(0) & (1 << 14) != 0 && text.contains("State:\tS") {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(15), "{line}: {status:?}");
    }
}

/// A report that no process reads holds up neither the signal nor the workers, which leave their files
/// as they should be.
#[test]
fn a_full_pipe_does_not_hold_a_signal_up_nor_work_that_changes_files() {
    use std::os::unix::process::ExitStatusExt;
    if !is_heeded(Signal::INT.as_raw()) {
        return;
    }
    let t = TestTree::new();
    // More than a pipe holds, and what is buffered before it.
    let name = "n".repeat(200);
    for nth in 0..1500 {
        t.write(format!("many/{nth:04}{name}"), nth.to_string());
    }
    let mut child = t
        .bc_line("copy --itemize many out")
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let report = child.stdout.take().unwrap();
    // Its last page may not be full.
    let most = rustix::pipe::fcntl_getpipe_size(&report).unwrap() as u64;
    while rustix::io::ioctl_fionread(&report).unwrap() < most / 2 {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(1));
    }
    // Until it waits.
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.signal(), Some(2), "{text}");
    assert!(
        text.contains("run the same command again to resume"),
        "{text}"
    );
    drop(report);
}

/// What whoever started the program has it ignore, as `nohup` and shells do for jobs in the
/// background, does not end it.
#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    use std::os::unix::process::ExitStatusExt;
    let caught = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        // The shell that it was before has handlers of its own.
        match status.starts_with("Name:\tbc\n") {
            true => u64::from_str_radix(mask.trim(), 16).unwrap(),
            false => 0,
        }
    };
    let bit = |signal: Signal| 1 << (signal.as_raw() - 1);
    for (name, signal, other) in [
        ("INT", Signal::INT, Signal::TERM),
        ("TERM", Signal::TERM, Signal::INT),
        ("HUP", Signal::HUP, Signal::INT),
    ] {
        if !is_heeded(other.as_raw()) {
            continue;
        }
        for end in [false, true] {
            let t = TestTree::new();
            let mut child = t
                .run("sh")
                .args(["-c", &format!("trap '' {name}; exec \"$BC\" hash -")])
                .env("BC", BC)
                .command()
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Until it takes signals in hand.
            while caught(child.id()) & bit(other) == 0 {
                assert_eq!(child.try_wait().unwrap(), None);
                std::thread::sleep(Duration::from_millis(1));
            }
            let pid = Pid::from_child(&child);
            for _ in 0..3 {
                kill_process(pid, signal).unwrap();
            }
            if end {
                kill_process(pid, other).unwrap();
                let status = child.wait().unwrap();
                assert_eq!(status.signal(), Some(other.as_raw()), "{name}");
                continue;
            }
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"abc").unwrap();
            let out = child.wait_with_output().unwrap();
            assert!(out.status.success(), "{name}: {:?}", out.status);
            assert_eq!(out.stdout, format!("{ABC}  -\n").as_bytes());
        }
    }
}
