//! `--rate`: bytes a second, for all threads together.

use std::time::{Duration, Instant};

use bc_testkit::{TestTree, is_heeded, left_out};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::Bc;

/// Three files of 100 KiB.
fn tree() -> TestTree {
    let t = TestTree::new();
    for name in ["a", "b", "c"] {
        let content: Vec<u8> = name.bytes().cycle().take(100 << 10).collect();
        t.write(format!("r/{name}"), content);
    }
    t
}

/// Deletes a file that equals one of these, and keeps a journal of that.
fn deleted(t: &TestTree) {
    t.write("d/x", t.read("r/a")).write("d/y", t.read("r/a"));
    let line = "dup prune --action=delete --yes --journal=../j d";
    t.bc_line(line).go().code(0);
    assert!(!t.exists("d/y"));
}

#[test]
fn bytes_take_their_time() {
    let t = tree();
    t.bc_line("integrity manifest -o m r").go().code(0);
    let protect = "integrity protect --redundancy=100% r m";
    t.bc_line(protect).go().code(0);
    deleted(&t);
    // All but the last pieces are paid for before the run ends, so two of three files at least take
    // a second; what takes longer is the machine's affair.
    for line in [
        "hash --rate=100K r",
        "hash --rate=100K --io=sync --threads=4 r",
        "integrity verify --rate=100K r m",
        "integrity protect --check --rate=100K r m",
        "copy --rate=100K r out",
        // It reads what it compares, and the copy that it makes.
        "dup undo --rate=200K ../j",
    ] {
        let begun = Instant::now();
        t.bc_line(line).go().code(0);
        assert!(begun.elapsed() >= Duration::from_secs(1), "{line}");
    }
    // A limit beyond all disks changes no result.
    let plain = t.bc_line("hash r").go().code(0).text();
    assert_eq!(t.bc_line("hash --rate=1T r").go().code(0).text(), plain);
}

/// At a byte a second each of these would take days.
#[test]
fn waiting_ends_with_a_signal() {
    if !is_heeded(Signal::TERM.as_raw()) {
        return;
    }
    let t = tree();
    t.write("s/a", t.read("r/a")).write("s/b", t.read("r/b"));
    t.bc_line("integrity manifest -o m r").go().code(0);
    let protect = "integrity protect --redundancy=100% r m";
    t.bc_line(protect).go().code(0);
    deleted(&t);
    for line in [
        "dup undo --rate=1 ../j",
        "hash --rate=1 r",
        "hash --rate=1 --threads=3 --type=blake3 r s",
        "integrity verify --rate=1 r m",
        "integrity update --rate=1 --reread=100% r m",
        "integrity diff --rate=1 r s",
        "integrity protect --rate=1 --parity=other.parity r m",
        "integrity protect --check --rate=1 r m",
        "dup scan --rate=1 r s",
        "copy --rate=1 r out",
    ] {
        let mut child = t.bc_line(line).command().spawn().unwrap();
        // Wherever it is by now.
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "{line}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        use std::os::unix::process::ExitStatusExt;
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{line}");
        // A copy goes on in the next round.
        let _ = std::fs::remove_dir_all(t.join("out"));
    }
}

/// A process that opens a file for writing waits for a lease that a reader has on it: not for the
/// limit of bytes a second, which at a byte a second would be for as long as the kernel allows.
#[test]
fn writers_do_not_wait_for_the_limit() {
    let longest = std::fs::read_to_string("/proc/sys/fs/lease-break-time");
    let longest = longest.ok().and_then(|text| text.trim().parse().ok());
    let Some(longest) = longest
        .map(Duration::from_secs)
        .filter(|time| !time.is_zero())
    else {
        return left_out("leases are broken at once here");
    };
    for line in [
        "hash --rate=1 --threads=1 r/long",
        "hash --rate=1 --type=blake3 --threads=2 r/long",
        "copy --rate=1 r/long out",
        "copy --rate=1 --type=none r/long out",
    ] {
        let t = TestTree::new();
        t.write("r/long", vec![7; 3 << 20]);
        let path = t.join("r/long");
        let mut child = t.bc_line(line).command().spawn().unwrap();
        let is_leased = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            let own = |line: &str| line.contains("LEASE") && line.contains(&child_id(&child));
            locks.lines().any(own)
        };
        // What was written a moment ago is read under a lease, until it is at rest.
        let begun = Instant::now();
        while !is_leased() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let has_lease = is_leased();
        let asked = Instant::now();
        drop(
            std::fs::OpenOptions::new()
                .append(true)
                .open(&path)
                .unwrap(),
        );
        let waited = asked.elapsed();
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        if !has_lease {
            return left_out(&format!("{line}: no lease was taken here"));
        }
        assert!(waited < longest / 2, "{line}: {waited:?}");
    }
}

fn child_id(child: &std::process::Child) -> String {
    format!(" {} ", child.id())
}
