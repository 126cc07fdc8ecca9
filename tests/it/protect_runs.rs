//! Runs of `protect` that are interrupted, or come while another is at work.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::{TestTree, is_heeded};
use rustix::fs::{FlockOperation, flock};

use crate::common::Bc;
use crate::protect::{FILES, bytes, is_whole, protected, rot};
use crate::strace;

const CHECK: &str = "integrity protect --check r m.jsonl";

/// A tree of several volumes, most of which are to be written.
fn unprotected() -> TestTree {
    let t = TestTree::new();
    for number in 0..6 {
        t.write(format!("r/{number}"), bytes(120_000, number));
    }
    t.bc_line("integrity manifest --output=m.jsonl r")
        .go()
        .code(0);
    t
}

const MANY: &str = "integrity protect --volume=128K --redundancy=50% r m.jsonl";

fn volumes(t: &TestTree) -> usize {
    let Ok(all) = std::fs::read_dir(t.join("m.parity")) else {
        return 0;
    };
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".bcp")).count()
}

/// A signal ends the run as that of any command; volumes that are complete by then stay, and serve.
#[test]
fn a_signal_ends_a_run_and_complete_volumes_stay() {
    if !strace::is_able() {
        return;
    }
    for (name, signal) in [("INT", 2), ("TERM", 15)] {
        if !is_heeded(signal) {
            continue;
        }
        let (mut ended, mut most) = (0, 0);
        // The first name is that of a volume.
        for (call, nth) in [("linkat", 1), ("linkat", 3), ("fsync", 2), ("pwrite64", 2)] {
            let t = unprotected();
            let out = strace::injected(&t, call, &format!("signal={name}"), nth, MANY);
            match out.status.signal() {
                Some(number) => {
                    assert_eq!(number, signal, "{out}");
                    ended += 1;
                    most = most.max(volumes(&t));
                }
                None => {
                    out.code(0);
                }
            }
            t.bc_line(MANY).go().code(0);
            t.bc_line(CHECK).go().code(0);
            rot(&t, "r/0", 5);
            t.bc_line("integrity restore r m.jsonl").go().code(0);
            assert!(t.read("r/0") == bytes(120_000, 0));
        }
        assert!(ended > 0 && most > 0, "{ended} {most}");
    }
}

#[test]
fn a_signal_ends_an_update_and_a_check() {
    if !strace::is_able() || !is_heeded(2) {
        return;
    }
    let t = unprotected();
    let update = "integrity update --protect r m.jsonl";
    strace::injected(&t, "linkat", "signal=INT", 1, update).signal(2);
    t.bc_line(update).go().code(0);
    t.bc_line(CHECK).go().code(0);
    // In the middle of its volumes.
    let reads = strace::counted(&t, &["pread64"], CHECK)["pread64"];
    strace::injected(&t, "pread64", "signal=INT", reads - 5, CHECK).signal(2);
    t.bc_line(CHECK).go().code(0);
}

#[test]
fn one_run_at_a_time_writes_and_others_read_meanwhile() {
    let t = protected();
    rot(&t, "r/a/two", 5);
    let lock = std::fs::File::open(t.join("m.parity/lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockShared).unwrap();
    let busy = "m.parity: another run is at work in this parity directory";
    let writers = |t: &TestTree| {
        t.write("r/new", bytes(100, 9));
        for line in [
            "integrity update --protect r m.jsonl",
            "integrity protect r m.jsonl",
        ] {
            t.bc_line(line).go().code(2).stderr_has(busy);
        }
        t.remove("r/new");
        t.bc_line("integrity update r m.jsonl").go();
    };
    writers(&t);
    t.bc_line(CHECK).go().code(0);
    t.bc_line("integrity restore r m.jsonl").go().code(0);
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    writers(&t);
    flock(&lock, FlockOperation::Unlock).unwrap();
    t.bc_line("integrity update --protect r m.jsonl")
        .go()
        .code(0);
    assert!(t.read("r/a/two") == bytes(FILES[1].1, 1));
    is_whole(&t);
}
