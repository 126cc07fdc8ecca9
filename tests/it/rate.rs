//! `--rate`: bytes a second, for all threads together.

use std::time::{Duration, Instant};

use bc_testkit::{TestTree, is_heeded};
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

#[test]
fn bytes_take_their_time() {
    let t = tree();
    t.bc_line("integrity manifest -o m r").go().code(0);
    // All but the last pieces are paid for before the run ends, so two of three files at least take
    // a second; what takes longer is the machine's affair.
    for line in [
        "hash --rate=100K r",
        "hash --rate=100K --io=sync --threads=4 r",
        "integrity verify --rate=100K r m",
        "copy --rate=100K r out",
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
    for line in [
        "hash --rate=1 r",
        "hash --rate=1 --threads=3 --type=blake3 r s",
        "integrity verify --rate=1 r m",
        "integrity update --rate=1 --reread=100% r m",
        "integrity diff --rate=1 r s",
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
