//! `bc copy`, killed at each system call that changes something: no name ever leads to half a file,
//! and the same command completes the copy and leaves nothing behind.

use std::os::unix::process::ExitStatusExt;

use bc_testkit::{Rng, Sweep, TestTree};

use crate::common::Bc;
use crate::copy_trees::{complete, figures, is_over, litter, nothing_is_half_done, rich, tree};
use crate::strace::{self, KILL};

/// At calls that nobody has chosen, again and again into the same destination.
#[test]
fn killed_at_random_calls_it_comes_to_its_end() {
    if !strace::is_able() {
        return;
    }
    const CALLS: [&str; 6] = [
        "openat",
        "pwrite64",
        "renameat2",
        "linkat",
        "utimensat",
        "fsync",
    ];
    let mut rng = Rng::new(17);
    for sync in ["none", "batch", "file"] {
        let t = tree();
        for number in 0..150_u32 {
            let content = vec![number as u8; (number as usize * 37) % 9000];
            t.write(format!("r/many/{}/{number}", number % 13), content);
        }
        let line = format!("copy --sync={sync} --threads=2 r to");
        let mut kills = 0;
        let done = loop {
            let call = CALLS[rng.below(CALLS.len() as u64) as usize];
            let nth = 1 + rng.below(30 + 50 * kills) as usize;
            let status = strace::injected(&t, call, KILL, nth, &line).status;
            let context = format!("{line}: {call} {nth}, {kills} kills before");
            nothing_is_half_done(&t, "to", &context);
            // Killed behind its end, when nothing but a message was left, it is over too.
            if status.signal() != Some(9) || is_over(&t, "to") {
                break status;
            }
            kills += 1;
        };
        assert_eq!(done.code().unwrap_or(0), 0, "{line}: {kills}");
        complete(&t, "to", &format!("{line}: {kills}"));
    }
}

/// Kills a copy of such a tree at the calls of a sweep.
fn killed_at_calls(make: fn() -> TestTree, mut sweep: Sweep, line: &str) {
    if !strace::is_able() {
        return;
    }
    while let Some(point) = sweep.next() {
        let t = make();
        let (first, killed) = strace::disturbed(&mut sweep, &t, &point, KILL, line);
        let context = format!("{line}: killed at {point}");
        assert!(killed || first.status.success(), "{context}: {first}");
        nothing_is_half_done(&t, "to", &context);
        if is_over(&t, "to") && litter(&t).is_empty() {
            continue;
        }
        assert!(killed, "{context}: {first}");
        let out = t.bc_line(line).go();
        assert_eq!(out.status.code(), Some(0), "{context}: {out}");
        complete(&t, "to", &context);
    }
    assert!(sweep.reached() > 0, "{line}");
    figures(&format!("{line}: killed at {} calls", sweep.reached()));
}

#[test]
fn killed_at_every_call_the_same_command_completes_the_copy() {
    killed_at_calls(tree, strace::kills(3), "copy r to");
}

#[test]
fn killed_at_every_call_of_a_copy_of_everything() {
    for (sync, few) in [("none", 6), ("end", 1), ("batch", 4), ("file", 3)] {
        let sweep = strace::kills(1).few_names(few);
        killed_at_calls(rich, sweep, &format!("copy --sync={sync} r to"));
    }
}
