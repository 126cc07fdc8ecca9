//! `protect`, `update --protect` and `restore` from parity, killed at any of their calls, and with any
//! of them failing: no file is touched that was good, what there was of parity still heals, and the same
//! command does the rest.

use bc_testkit::TestTree;

use crate::common::Bc;
use crate::copy_faults::FAULTS;
use crate::copy_trees::figures;
use crate::protect::{FILES, PROTECT, bytes, is_whole, protected, rot};
use crate::strace::{self, KILL};

/// A tree whose parity is to be written again: files with three of its blocks are edited, and the
/// manifest knows it; a fourth one may be lost.
fn edited() -> TestTree {
    let t = protected();
    for (seed, path) in ["r/a/two", "r/z"].iter().enumerate() {
        t.write(path, bytes(150_000, 100 + seed as u64));
    }
    t.bc_line("integrity update r m.jsonl").go().code(0);
    t
}

/// A tree with damage.
fn damaged() -> TestTree {
    let t = protected();
    rot(&t, "r/large", 100);
    t.remove("r/a/two");
    t
}

/// What was there of a file in each state comes back, by whatever parity is there.
#[track_caller]
fn parity_heals(t: &TestTree, context: &str) {
    rot(t, "r/large", 200_000);
    let out = t.bc_line("integrity restore r m.jsonl").go();
    assert!(
        t.read("r/large") == bytes(FILES[2].1, 2),
        "{context}: {out}"
    );
}

const UPDATE: &str = "integrity update --protect r m.jsonl";
const RESTORE: &str = "integrity restore r m.jsonl";

#[test]
fn killed_at_every_call_parity_heals() {
    if !strace::is_able() {
        return;
    }
    for line in [PROTECT, UPDATE] {
        let mut sweep = strace::kills(2);
        while let Some(point) = sweep.next() {
            let t = edited();
            strace::disturbed(&mut sweep, &t, &point, KILL, line);
            let context = format!("{line}: killed at {point}");
            parity_heals(&t, &context);
            t.bc_line(PROTECT).go().code(0);
            t.bc_line("integrity protect --check r m.jsonl")
                .go()
                .code(0);
            parity_heals(&t, &context);
        }
        figures(&format!("{line}: killed at {} calls", sweep.reached()));
        assert!(sweep.reached() >= 8, "{line}: {}", sweep.reached());
    }
    let mut sweep = strace::kills(2);
    while let Some(point) = sweep.next() {
        let t = damaged();
        strace::disturbed(&mut sweep, &t, &point, KILL, RESTORE);
        let out = t.bc_line(RESTORE).go();
        assert_eq!(out.status.code(), Some(0), "killed at {point}: {out}");
        is_whole(&t);
    }
    assert!(sweep.reached() >= 8, "{}", sweep.reached());
}

/// Every fault of a command is reported, and parity heals whatever it came to.
fn sweep_faults(line: &str) {
    if !strace::is_able() {
        return;
    }
    let mut sweep = strace::faults(&FAULTS, 2);
    while let Some(point) = sweep.next() {
        let t = if line == RESTORE { damaged() } else { edited() };
        let error = strace::error(&FAULTS, &point, &sweep);
        let (out, _) = strace::disturbed(&mut sweep, &t, &point, &error, line);
        let context = format!("{line}: {error} at {point}: {out}");
        match out.status.code() {
            Some(127) if out.error_text().contains("shared librar") => continue,
            Some(0) => {}
            // Whoever cannot write a message has none.
            Some(1..=3) if point.call == "write" => {}
            Some(1..=3) => assert!(
                !out.error_text().is_empty() || !out.text().is_empty(),
                "{context}"
            ),
            _ => panic!("{context}"),
        }
        if line == RESTORE {
            let again = t.bc_line(RESTORE).go();
            assert_eq!(again.status.code(), Some(0), "{context}, then {again}");
            is_whole(&t);
        } else {
            parity_heals(&t, &context);
            if line == UPDATE {
                // What could not be read is recorded as such, and holds its parity until it is read.
                t.bc_line("integrity update r m.jsonl").go();
            }
            let again = t.bc_line(PROTECT).go();
            assert_eq!(again.status.code(), Some(0), "{context}, then {again}");
        }
    }
    figures(&format!("{line}: {} faults", sweep.reached()));
    assert!(sweep.reached() >= 8, "{line}: {}", sweep.reached());
}

#[test]
fn every_fault_of_protect_is_told_and_parity_heals() {
    sweep_faults(PROTECT);
}

#[test]
fn every_fault_of_update_is_told_and_parity_heals() {
    sweep_faults(UPDATE);
}

#[test]
fn every_fault_of_restore_is_told_and_parity_heals() {
    sweep_faults(RESTORE);
}
