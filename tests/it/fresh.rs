//! Files that were written to a moment ago, or are being written to: no digest is of a state that
//! never was.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bc_testkit::{TestTree, left_out, tool};

use crate::common::Bc;
use crate::denied::without_leases;

/// Set when dropped, so that a test that fails ends too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Overwrites the file in place with one of two patterns after the other while `f` runs.
fn while_rewritten(path: &Path, patterns: &[Vec<u8>; 2], reopen: bool, f: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let open = || OpenOptions::new().write(true).open(path).unwrap();
            let kept = (!reopen).then(open);
            for pattern in patterns.iter().cycle() {
                if stop.load(Relaxed) {
                    return;
                }
                let opened = kept.is_none().then(open);
                let file = kept.as_ref().or(opened.as_ref()).unwrap();
                file.write_all_at(pattern, 0).unwrap();
            }
        });
        let _stop = Stop(&stop);
        f();
    });
}

#[test]
fn a_digest_is_of_one_state_of_the_file() {
    for len in [60_000, 1 << 20, 20 << 20] {
        let t = TestTree::new();
        let patterns = [vec![b'a'; len], vec![b'b'; len]];
        let mut states = Vec::new();
        for pattern in &patterns {
            t.write("f", pattern);
            states.push(t.bc_line("hash f").go().code(0).text());
        }
        for reopen in [true, false] {
            while_rewritten(&t.join("f"), &patterns, reopen, || {
                let lines = ["hash f", "hash --io=sync f", "hash --threads=mono f"];
                // A large file is under the writer's hands all the time, so each attempt fails.
                let (lines, times) = match len > 2 << 20 {
                    true if reopen => (&lines[..1], 1),
                    true => (&lines[1..2], 1),
                    false => (&lines[..], 2),
                };
                for line in lines {
                    for _ in 0..times {
                        let outcome = t.bc_line(line).go();
                        let text = outcome.text();
                        if text.is_empty() {
                            outcome.code(1).stderr_has("f: read: changed while reading");
                        } else {
                            outcome.code(0);
                            assert!(states.contains(&text), "{line}, {len}: {text}");
                        }
                    }
                }
            });
        }
    }
}

/// As after unpacking an archive: each file at once, with leases and without, and also while
/// somebody has it open for writing without doing so.
#[test]
fn what_was_written_just_now_is_read() {
    let t = TestTree::new();
    let names: Vec<String> = (0..1000).map(|i| format!("d{}/{i:04}", i % 7)).collect();
    let all = || {
        let hash = t.bc_line("hash d0 d1 d2 d3 d4 d5 d6").go();
        hash.code(0).stderr_is("");
        assert_eq!(hash.lines().len(), names.len());
        t.write("SUMS", hash.text());
        t.bc_line("hash check --quiet SUMS")
            .go()
            .code(0)
            .stdout_is("")
            .stderr_is("");
        t.bc_line("integrity manifest --output=m d0").go().code(0);
        t.bc_line("integrity verify --quiet d0 m").go().code(0);
        hash.text()
    };
    let write = || {
        for name in &names {
            t.write(name, name);
        }
    };
    write();
    let leased = all();
    write();
    without_leases(|| assert_eq!(all(), leased));
    write();
    let open = |name: &String| OpenOptions::new().append(true).open(t.join(name)).unwrap();
    let held: Vec<_> = names.iter().step_by(10).map(open).collect();
    assert_eq!(all(), leased);
    drop(held);
}

/// Calls about leases that `bc hash DIR` makes.
fn calls(dir: &Path) -> Option<usize> {
    let Some(strace) = tool("strace") else {
        left_out("strace is not installed");
        return None;
    };
    let t = TestTree::new();
    let log = t.join("log");
    let traced = t
        .run(strace)
        .args(["-f", "-e", "trace=fcntl", "-o"])
        .arg(&log)
        .args([crate::common::BC, "hash", "--threads=mono"])
        .arg(dir)
        .go();
    if traced.lines().is_empty() {
        left_out("strace may not trace here");
        return None;
    }
    let log = std::fs::read_to_string(log).unwrap();
    let about_leases = |line: &&str| line.contains("LEASE") || line.contains("F_SETSIG");
    Some(log.lines().filter(about_leases).count())
}

#[test]
fn a_fresh_file_costs_two_calls_and_an_old_one_none() {
    let fresh = TestTree::new();
    for i in 0..200 {
        // From the future: fresh however long the test takes.
        fresh
            .write(format!("{i}"), "fresh")
            .mtime(format!("{i}"), 4_000_000_000, 1);
    }
    let Some(of_fresh) = calls(fresh.path()) else {
        return;
    };
    assert!((2..=400).contains(&of_fresh), "{of_fresh}");
    // Nobody can set a ctime: what was written before this test was built is old.
    let old = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(calls(&old), Some(0));
}
